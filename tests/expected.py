"""What the kernel should say of a packet that the Scapy layers build: from what was put in, at any length of capture.

`Expected` walks the layers of a packet that was crafted, never of one that was dissected. Lengths that were left to be
computed follow from the sizes of what was built. It is imported as `strategies` is.
"""

from __future__ import annotations

import ipaddress
from typing import Any, NamedTuple

from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, CookedLinux, Dot1Q, Ether, Loopback
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from roce_dissect.columns import PACKETS
from roce_dissect.layers import BTH, FETH, GRH, LRH
from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.spec import headers as bit
from roce_dissect.terms import Status, Tunnel

#: Columns that are no matter of the packet.
OTHER = {"time_ns"}
COLUMNS = [name for name, column in PACKETS.items() if column.field is not None and name not in OTHER]
#: Where no GID is known, LIDs are the hosts: ``::fffe:0:<LID>``.
LOCAL = int(ipaddress.ip_address("::fffe:0:0"))
ENDS = ("src", "dst", "outer_src", "outer_dst")


class Part(NamedTuple):
    """A header that a row has or has not: where it ends, its presence bit, its values."""

    end: int
    present: int
    values: dict[str, Any]


class Expected:
    """Rows of one packet.

    Parameters
    ----------
    link_type : int
        Of the capture.
    packet : Packet
        As it was crafted.

    Attributes
    ----------
    built : bytes
        The frame.
    known : int
        Bytes by which the frame is known as RoCE: with less there is no row.
    """

    def __init__(self, link_type: int, packet: Packet) -> None:
        self.built = bytes(packet)
        self.link: dict[str, Any] = {}
        self.network: dict[str, Any] = {}
        self.tunnel: dict[str, Any] = {"tunnel": int(Tunnel.NONE), "tunnels": 0}
        self.link_bits = self.network_bits = self.tunnel_bits = 0
        self.parts: list[Part] = []
        self.known = self.payload_at = 0
        at = 0
        layer = packet
        size = len(self.built)
        while not isinstance(layer, BTH):
            behind = len(bytes(layer.payload))
            if isinstance(layer, LRH):
                size = 8 + behind  # its own trailer stands behind all
            self._below(layer, at, size, behind)
            at += size - behind
            size = behind
            layer = layer.payload
        self._transport(layer, at, packet)

    def row(self, length: int) -> dict[str, Any] | None:
        """Columns of a frame of which `length` bytes were captured; None: no row. What is missing is 0."""
        if length < self.known:
            return None
        values = dict.fromkeys(COLUMNS, 0) | {"wire_len": len(self.built), "cap_len": length, "status": int(Status.OK)}
        values |= self.link | self.tunnel | {"payload_offset": self.payload_at}
        present = self.link_bits | self.tunnel_bits
        if self.network:
            values |= self.network
            present |= self.network_bits
        for part in self.parts:
            if length < part.end:
                values["status"] = int(Status.CUT)
                break
            values |= part.values | {"payload_offset": part.end}
            present |= part.present
        if present & bit.HAS_BTH and length >= self.end:
            values["icrc"] = self.icrc
            present |= bit.HAS_ICRC
        return values | {"present": present}

    def _below(self, layer: Packet, at: int, size: int, behind: int) -> None:
        """A layer before the BTH, that begins at `at`; `size` bytes with what it carries, `behind` bytes of that."""
        end = at + size - behind
        if isinstance(layer, Ether):
            self.link = {"eth_src": number(layer.src), "eth_dst": number(layer.dst)}
            self.link_bits = bit.HAS_ETH
        elif isinstance(layer, (CookedLinux, Loopback)):
            pass
        elif isinstance(layer, Dot1Q):
            if self.link_bits & bit.HAS_VLAN:
                self.link_bits |= bit.HAS_VLAN2
                self.link["vlan2_id"] = layer.vlan
            else:
                self.link_bits |= bit.HAS_VLAN
                self.link |= {"vlan_id": layer.vlan, "pcp": layer.prio}
        elif isinstance(layer, (IP, IPv6)):
            self._network(layer, size, behind)
        elif isinstance(layer, LRH):
            self.link = {"vl": layer.vl, "sl": layer.sl, "slid": layer.slid, "dlid": layer.dlid,
                         "src": LOCAL | layer.slid, "dst": LOCAL | layer.dlid}  # fmt: skip
            self.link_bits = bit.HAS_LRH
            self.known = self.payload_at = end
        elif isinstance(layer, GRH):
            if not self.link_bits & bit.HAS_LRH:
                self.known = at
                self.link["version"] = 1
            self.payload_at = at
            values = {"dscp": layer.dscp, "ecn": layer.ecn, "ttl": layer.hop_limit, "flow_label": layer.flow_label,
                      "src": address(layer.sgid), "dst": address(layer.dgid), "ip_len": behind}  # fmt: skip
            self.parts.append(Part(end, bit.HAS_GRH, values))
        elif isinstance(layer, UDP) and isinstance(layer.payload, BTH):
            self.known = at + 4  # the destination port
            self.payload_at = at
            self.link["version"] = 2
            values = {"udp_sport": layer.sport, "udp_dport": 4791, "udp_len": size}
            self.parts.append(Part(end, bit.HAS_UDP, values))
        else:
            self._tunnel(layer)

    def _network(self, layer: Packet, size: int, behind: int) -> None:
        """An IP header; behind another one it is IPIP that leads to it."""
        if self.network:
            self._enter(Tunnel.IPIP)
        traffic = layer.tos if isinstance(layer, IP) else layer.tc
        self.network = {"src": address(layer.src), "dst": address(layer.dst), "dscp": traffic >> 2, "ecn": traffic & 3}
        if isinstance(layer, IP):
            self.network |= {"ttl": layer.ttl, "ip_id": layer.id, "ip_len": size}
            self.network_bits = bit.HAS_IPV4
        else:
            self.network |= {"ttl": layer.hlim, "flow_label": layer.fl, "ip_len": behind}
            self.network_bits = bit.HAS_IPV6

    def _enter(self, kind: Tunnel) -> None:
        """One tunnel more: the outermost IP header is told beside the innermost."""
        if self.network and "outer_src" not in self.tunnel:
            self.tunnel |= {"outer_src": self.network["src"], "outer_dst": self.network["dst"]}
            self.tunnel_bits |= bit.HAS_OUTER_IP
        self.tunnel |= {"tunnel": int(kind), "tunnels": self.tunnel["tunnels"] + 1}
        self.tunnel_bits |= bit.HAS_TUNNEL
        self.network = {}
        self.network_bits = 0

    def _tunnel(self, layer: Packet) -> None:
        """A tunnel's header. What only accompanies another layer tells nothing: UDP, options, a control word."""
        if isinstance(layer, (VXLAN, GENEVE)):
            self._enter(Tunnel.VXLAN if isinstance(layer, VXLAN) else Tunnel.GENEVE)
            self._tell("vni", layer.vni, bit.HAS_VNI)
        elif isinstance(layer, GRE):
            self._gre(layer)
        elif isinstance(layer, (ERSPAN_II, ERSPAN_III)):
            self._tell("session", layer.session_id, bit.HAS_SESSION)
        elif isinstance(layer, MPLS) and not isinstance(layer.underlayer, MPLS):
            self._enter(Tunnel.MPLS)

    def _gre(self, layer: Packet) -> None:
        carried = type(layer.payload)
        erspan = {ERSPAN_II: Tunnel.ERSPAN2, ERSPAN_III: Tunnel.ERSPAN3}
        if carried in erspan:
            self._enter(erspan[carried])
        elif carried is not Ether:
            self._enter(Tunnel.GRE)
        elif layer.proto == 0x88BE:
            self._enter(Tunnel.ERSPAN1)
        elif layer.key_present and layer.key > 0xFFFFF and not layer.seqnum_present and not layer.chksum_present:
            self._enter(Tunnel.NVGRE)  # RFC 7637: VSIDs begin at 0x1000
            self._tell("vni", layer.key >> 8, bit.HAS_VNI)
        else:
            self._enter(Tunnel.GRETAP)
            if layer.key_present:
                self._tell("vni", layer.key, bit.HAS_VNI)
        if layer.seqnum_present:
            self._tell("gre_seq", layer.sequence_number, bit.HAS_GRE_SEQ)

    def _tell(self, name: str, value: int, present: int) -> None:
        self.tunnel[name] = value
        self.tunnel_bits |= present

    def _transport(self, bth: Packet, at: int, packet: Packet) -> None:
        """BTH, extended headers, payload, pad, ICRC."""
        last = packet.lastlayer()
        payload = last.load if isinstance(last, Raw) else b""
        pad = -len(payload) % 4
        values = fields(bth) | {"pad_count": pad, "payload_len": len(payload)}
        headers = [Part(at + 12, bit.HAS_BTH, {name: values[name] for name in values if name != "icrc"})]
        layer = bth.payload
        while isinstance(layer, ExtendedHeader):
            own = layer.self_build()
            values = {"feth": int.from_bytes(own, "big")} if isinstance(layer, FETH) else fields(layer)
            headers.append(Part(headers[-1].end + len(own), layer.presence, values))
            layer = layer.payload
        self.parts += headers
        self.end = headers[-1].end + len(payload) + pad + 4
        self.icrc = int.from_bytes(self.built[self.end - 4 : self.end], "little") if bth.icrc is None else bth.icrc
        self.payload = payload


def fields(header: Packet) -> dict[str, Any]:
    """Values of a header's fields that are columns: both have the same names."""
    return {field.name: header.getfieldval(field.name) for field in header.fields_desc if field.name in PACKETS}


def number(mac: str) -> int:
    """An Ethernet address as the column has it."""
    return int(mac.replace(":", ""), 16)


def address(text: str) -> int:
    """An address as 128 bits; that of IPv4 is ::ffff:a.b.c.d."""
    parsed = ipaddress.ip_address(text)
    return int(parsed) if parsed.version == 6 else 0xFFFF << 32 | int(parsed)
