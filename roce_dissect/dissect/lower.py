"""From the first byte of a frame to where RoCE begins: link, tags, tunnels, IP and UDP, header by header.

The way is the kernel's (`roce_dissect.decode.kernel`): the destination port tells RoCE, never a guess by another port
or by content. Only what the kernel took for RoCE comes here, so that the headers of tunnels are whole.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from roce_dissect.dissect import fields as layout
from roce_dissect.dissect import words
from roce_dissect.dissect.layer_fields import layer_fields
from roce_dissect.dissect.options import geneve_options, ipv4_options
from roce_dissect.dissect.tree import Field, Node, Section, plain_bytes, read_header
from roce_dissect.layers import GRH, LRH
from roce_dissect.layout import MOST_LABELS, MOST_TUNNELS
from roce_dissect.spec import net
from roce_dissect.spec.headers import BTH_SIZE, GRH_SIZE, ICRC_SIZE
from roce_dissect.terms import Tunnel

__all__ = ["Descent", "Transport"]

_ETHERNET_COLUMNS = ("eth_dst", "eth_src", "vlan_id", "pcp", "vlan2_id")
_IP_COLUMNS = ("src", "dst", "dscp", "ecn", "ttl", "ip_id", "flow_label", "ip_len", "udp_sport", "udp_dport", "udp_len")
_TAGS = (net.ETHERTYPE_VLAN, net.ETHERTYPE_QINQ, net.ETHERTYPE_QINQ_OLD)
_EXTENSIONS = {
    net.PROTO_HOP_BY_HOP: "Hop-by-hop options",
    net.PROTO_ROUTING: "Routing header",
    net.PROTO_FRAGMENT: "Fragment header",
    net.PROTO_AUTHENTICATION: "Authentication header",
    net.PROTO_DESTINATION: "Destination options",
}
_UDP_SIZE = 8


class _EndError(Exception):
    """Nothing more can be told of what follows."""


@dataclass(slots=True)
class Transport:
    """Where the transport packet lies, by the lengths of the headers below it.

    Attributes
    ----------
    version : int
        1 or 2; 0 for native InfiniBand.
    network : int
        First byte that the ICRC covers: IP header, GRH or LRH.
    bth, end : int
        First byte of the BTH; the end of the ICRC.
    doubt : str
        What is wrong with the lengths, or empty.
    lrh : int or None
        First byte of the LRH.
    fragment_end : int or None
        End of a first IP fragment: what lies behind is in others. None for a whole packet.
    """

    version: int
    network: int
    bth: int
    end: int
    doubt: str = ""
    lrh: int | None = None
    fragment_end: int | None = None

    @property
    def room(self) -> bool:
        """Whether the lengths have room for a BTH and an ICRC."""
        return self.end - self.bth >= BTH_SIZE + ICRC_SIZE


class Descent:
    """Reads the headers below the transport.

    Parameters
    ----------
    data : bytes
        The frame.
    link_type : int
        As in pcap.
    tunnels : int
        How many tunnels the packet came in, by the kernel.

    Attributes
    ----------
    sections : list of Node
        The headers, in order.
    columns : dict of str to Node
        Which node has a column's value.
    transport : Transport or None
        None where the headers below are cut.
    at : int
        Where reading stopped.
    tunnel_kinds : list of Tunnel
        Outermost first.
    """

    def __init__(self, data: bytes, link_type: int, tunnels: int) -> None:
        self.sections: list[Node] = []
        self.columns: dict[str, Node] = {}
        self.transport: Transport | None = None
        self.tunnel_kinds: list[Tunnel] = []
        self.at = 0
        self._data = data
        self._tunnels = tunnels
        self._outer_is_told = False
        self._ip: Node | None = None
        with contextlib.suppress(_EndError):
            self._descend(link_type)

    # -- bookkeeping

    def _header(self, name: str, title: str, header: tuple[Field, ...], whole: bool = True) -> Section:
        """The next header; it must be whole to go on, unless not `whole`. Without a name it goes on with the latest."""
        section = read_header(self._data, self.at, len(self._data), name, title, header)
        if name:
            self.sections.append(section.node)
        else:
            self.sections[-1].children += section.node.children
            self.sections[-1].size += section.node.size
        self._tell(section.node)
        if whole and not section.whole:
            raise _EndError
        self.at = section.end
        return section

    def _part(self, header: tuple[Field, ...]) -> None:
        """More fields of the latest header."""
        self._header("", "", header)

    def _tell(self, section: Node) -> None:
        """The columns' values are those of the latest header that has them."""
        for node in section.children:
            if node.column:
                former = self.columns.get(node.column)
                if former is not None and former is not node:
                    former.column = ""
                self.columns[node.column] = node

    def _forget(self, names: tuple[str, ...]) -> None:
        for name in names:
            node = self.columns.pop(name, None)
            if node is not None:
                node.column = ""

    def _byte(self, at: int) -> int:
        if at >= len(self._data):
            raise _EndError
        return self._data[at]

    # -- the way

    def _descend(self, link_type: int) -> None:
        following: int | None = self._link(link_type)
        while following is not None:
            if following == net.ETHERTYPE_TEB:
                self._forget(_ETHERNET_COLUMNS)
                following = self._header("ethernet", "Ethernet", layout.ETHERNET).values["ether_type"]
            following = self._type(self._tags(following))

    def _link(self, link_type: int) -> int | None:
        """The link header. Returns the Ethertype of what it carries; None when all was read."""
        if link_type == net.LINKTYPE_ETHERNET:
            return net.ETHERTYPE_TEB
        if link_type in (net.LINKTYPE_NULL, net.LINKTYPE_LOOP):
            return self._loopback()
        if link_type == net.LINKTYPE_COOKED:
            return self._header("cooked", "Linux cooked capture v1", layout.COOKED).values["protocol"]
        if link_type == net.LINKTYPE_COOKED2:
            return self._header("cooked", "Linux cooked capture v2", layout.COOKED2).values["protocol"]
        if link_type == net.LINKTYPE_INFINIBAND:
            self._native()
            return None
        if link_type == net.LINKTYPE_ERF:
            return self._erf()
        if link_type == net.LINKTYPE_IPV6:
            return net.ETHERTYPE_IPV6
        if link_type == net.LINKTYPE_IPV4 or self._byte(0) >> 4 != 6:
            return net.ETHERTYPE_IPV4
        return net.ETHERTYPE_IPV6

    def _loopback(self) -> int:
        section = self._header("loopback", "Loopback", layout.LOOPBACK)
        family = section.values["family"]
        if family > 0xFFFF:
            family = int.from_bytes(self._data[:4], "little")
        section.node.children[0].meaning = layout.loopback_family(family)
        return net.ETHERTYPE_IPV4 if family == net.AF_INET else net.ETHERTYPE_IPV6

    def _erf(self) -> int | None:
        values = self._header("erf", "ERF record", layout.ERF).values
        kind, more = values["type"], values["extension"]
        while more:
            more = self._header("erf_extension", "ERF extension header", layout.ERF_EXTENSION).values["extension"]
        if kind == net.ERF_INFINIBAND:
            self._native()
            return None
        self._header("erf_ethernet", "ERF Ethernet", layout.ERF_PAD)
        return net.ETHERTYPE_TEB

    def _native(self) -> None:
        lrh = self.at
        values = self._header("lrh", "LRH", layer_fields(LRH)).values
        end = lrh + values["pkt_len"] * 4
        if not values["lnh"] & 1 or len(self._data) - self.at < GRH_SIZE:
            self._tell_lids()
        if values["lnh"] & 1:
            self._grh(0, lrh, end)
            return
        self.transport = Transport(0, lrh, self.at, end, "", lrh)

    def _tell_lids(self) -> None:
        """Without a GRH the LIDs are the packet's source and destination."""
        lrh = self.sections[-1]
        for name, column in (("slid", "src"), ("dlid", "dst")):
            node = next(one for one in lrh.children if one.name == name)
            text = f"LID {node.value}"
            lrh.children.append(Node(column, text, text, "", node.first_byte, node.size, None, column))
        self._tell(lrh)

    def _tags(self, ether_type: int) -> int:
        while ether_type in _TAGS and "vlan2_id" not in self.columns:
            if "vlan_id" in self.columns:
                ether_type = self._header("vlan2", "Second VLAN tag", layout.VLAN2).values["ether_type"]
            else:
                ether_type = self._header("vlan", "VLAN tag", layout.VLAN).values["ether_type"]
        return ether_type

    def _type(self, ether_type: int) -> int | None:
        """What an Ethertype says. Returns the Ethertype of what a tunnel carries, or None when all was read."""
        if ether_type == net.ETHERTYPE_IPV4:
            return self._ipv4()
        if ether_type == net.ETHERTYPE_IPV6:
            return self._ipv6()
        if ether_type == net.ETHERTYPE_ROCE_V1:
            self._grh(1, None, None)
            return None
        if ether_type in (net.ETHERTYPE_MPLS, net.ETHERTYPE_MPLS_MULTICAST):
            return self._mpls(in_ip=False)
        raise _EndError

    def _grh(self, version: int, lrh: int | None, lrh_end: int | None) -> None:
        base = self.at
        section = self._header("grh", "GRH", layer_fields(GRH))
        values = section.values
        end = self.at + values["ip_len"]
        doubt = ""
        if values["ip_ver"] != 6 or values["nxt_hdr"] != net.PROTO_IBA:
            doubt = "the GRH names no BTH"
        elif lrh_end is not None and lrh_end != end:
            doubt = "LRH and GRH disagree on the length"
        bad = values["ip_ver"] != 6 or values["nxt_hdr"] != net.PROTO_IBA
        self.transport = Transport(version, base, self.at, self.at if bad else end, doubt, lrh)

    # -- IP and UDP

    def _ipv4(self) -> int | None:
        base = self.at
        section = self._header("ipv4", "IPv4", layout.IPV4)
        self._ip = section.node
        values = section.values
        size = values["header_len"] * 4
        if size < 20:
            raise _EndError
        header = self._data[base : base + size]
        if size > 20:
            section.node.children += ipv4_options(header, base)
            section.node.size = len(header)
        self.at = base + size
        checksum = next(node for node in section.node.children if node.name == "header_checksum")
        if len(header) == size:
            right = words.ipv4_checksum(header)
            checksum.meaning = "good" if right == checksum.value else f"bad, {right:#06x} would be right"
        end = base + values["ip_len"]
        if values["fragment_offset"]:
            raise _EndError
        return self._protocol(values["protocol"], base, end, open_end=end == base, more=bool(values["more_fragments"]))

    def _ipv6(self) -> int | None:
        base = self.at
        section = self._header("ipv6", "IPv6", layout.IPV6)
        self._ip = section.node
        following, length = section.values["next_header"], section.values["ip_len"]
        more = False
        while following in _EXTENSIONS:
            if following == net.PROTO_FRAGMENT:
                fragment = self._header("fragment", _EXTENSIONS[following], layout.FRAGMENT).values
                following = fragment["next_header"]
                more |= bool(fragment["more_fragments"])
            else:
                following = self._extension(following)
        # a fragment of a jumbo payload: where it ends is not known
        end = base + 40 + length if length else 0
        return self._protocol(following, base, end, open_end=not length, more=more)

    def _extension(self, kind: int) -> int:
        first = self.at
        section = self._header("extension", _EXTENSIONS[kind], layout.EXTENSION)
        units = section.values["header_len"]
        size = (units + 2) * 4 if kind == net.PROTO_AUTHENTICATION else (units + 1) * 8
        section.node.children[1].meaning = f"{size} bytes"
        section.node.size = min(size, len(self._data) - first)
        if size > 8:
            section.node.children.append(plain_bytes("content", self._data[first + 8 : first + size], first + 8))
        self.at = first + size
        return section.values["next_header"]

    def _protocol(self, protocol: int, ip: int, end: int, *, open_end: bool, more: bool) -> int | None:
        """What an IP protocol says; `end` is the packet's by its header, `open_end`: which does not tell it."""
        if protocol == net.PROTO_UDP:
            return self._udp(ip, end, open_end, more)
        if protocol == net.PROTO_GRE:
            self._enter()
            return self._gre()
        if protocol in (net.PROTO_IPIP, net.PROTO_IPV6):
            self._enter()
            self.tunnel_kinds.append(Tunnel.IPIP)
            return net.ETHERTYPE_IPV4 if protocol == net.PROTO_IPIP else net.ETHERTYPE_IPV6
        if protocol == net.PROTO_MPLS:
            return self._mpls(in_ip=True)
        raise _EndError

    def _udp(self, ip: int, ip_end: int, open_end: bool, more: bool) -> int | None:
        first = self.at
        section = self._header("udp", "UDP", layout.UDP, whole=False)
        if not section.whole and "udp_dport" not in section.values:
            raise _EndError
        port = section.values["udp_dport"]
        if port == net.PORT_ROCE_V2 or len(self.tunnel_kinds) == self._tunnels:
            if not section.whole:
                raise _EndError
            end = first + section.values["udp_len"]
            self.transport = Transport(2, ip, self.at, end, "", None, ip_end if more else None)
            if self.transport.room and end != ip_end and not open_end and not more:
                self.transport.doubt = "UDP's length is not IP's"
            return None
        if port == net.PORT_VXLAN:
            self._enter()
            self._header("vxlan", "VXLAN", layout.VXLAN)
            self.tunnel_kinds.append(Tunnel.VXLAN)
            return net.ETHERTYPE_TEB
        if port == net.PORT_GENEVE:
            self._enter()
            return self._geneve()
        raise _EndError

    # -- tunnels

    def _enter(self, by_ip: bool = True) -> None:
        """A tunnel begins: what was read of IP and UDP is the outside."""
        if len(self.tunnel_kinds) == MOST_TUNNELS:
            raise _EndError
        self._forget(_IP_COLUMNS)
        for section in self.sections:
            if section.name in ("ipv4", "ipv6", "udp") and not section.text.startswith("Outer"):
                section.text = f"Outer {section.text}"
        if by_ip and not self._outer_is_told and self._ip is not None:
            self._outer_is_told = True
            for node in self._ip.children:
                if node.name in ("src", "dst"):
                    node.name = node.column = f"outer_{node.name}"
            self._tell(self._ip)

    def _geneve(self) -> int:
        section = self._header("geneve", "GENEVE", layout.GENEVE)
        size = section.values["options_len"] * 4
        section.node.children += geneve_options(self._data[self.at : self.at + size], self.at)
        section.node.size += size
        self.at += size
        self.tunnel_kinds.append(Tunnel.GENEVE)
        return section.values["protocol"]

    def _gre(self) -> int | None:
        section = self._header("gre", "GRE", layout.GRE)
        values = section.values
        following = values["protocol"]
        kind = Tunnel.GRE
        if values["has_checksum"]:
            self._part(layout.GRE_CHECKSUM)
        if following == net.ETHERTYPE_TEB:
            kind = Tunnel.GRETAP
        if values["has_key"]:
            key = int.from_bytes(self._data[self.at : self.at + 4], "big")
            if kind == Tunnel.GRETAP and not values["has_checksum"] and not values["has_sequence"] and key >> 20:
                kind = Tunnel.NVGRE
            keys = {Tunnel.NVGRE: layout.NVGRE_KEY, Tunnel.GRETAP: layout.GRETAP_KEY}
            self._part(keys.get(kind, layout.GRE_KEY))
        if values["has_sequence"]:
            self._part(layout.GRE_SEQUENCE)
        if kind == Tunnel.NVGRE:
            section.node.text = "NVGRE"
        if following == net.ETHERTYPE_ERSPAN:
            kind = Tunnel.ERSPAN2 if values["has_sequence"] else Tunnel.ERSPAN1
            if kind == Tunnel.ERSPAN2:
                self._header("erspan", "ERSPAN II", layout.ERSPAN2)
            following = net.ETHERTYPE_TEB
        elif following == net.ETHERTYPE_ERSPAN3:
            kind = Tunnel.ERSPAN3
            following = self._erspan3()
        self.tunnel_kinds.append(kind)
        return following

    def _erspan3(self) -> int:
        values = self._header("erspan", "ERSPAN III", layout.ERSPAN3).values
        if values["subheader"]:
            self._part(layout.ERSPAN3_SUBHEADER)
        if values["frame_type"] == 0:
            return net.ETHERTYPE_TEB
        return net.ETHERTYPE_IPV6 if self._byte(self.at) >> 4 == 6 else net.ETHERTYPE_IPV4

    def _leads_on(self, offset: int) -> bool:
        """Whether an Ethertype behind which RoCE may be stands there."""
        found = int.from_bytes(self._data[self.at + offset : self.at + offset + 2], "big")
        return found in (net.ETHERTYPE_IPV4, net.ETHERTYPE_IPV6, net.ETHERTYPE_ROCE_V1, *_TAGS)

    def _mpls(self, in_ip: bool) -> int:
        self._enter(by_ip=in_ip)
        self.tunnel_kinds.append(Tunnel.MPLS)
        for number in range(MOST_LABELS):
            section = self._header("mpls", f"MPLS label {number + 1}", layout.MPLS)
            if section.values["bottom"]:
                break
        first = self._byte(self.at) >> 4
        if first in (4, 6):
            return net.ETHERTYPE_IPV4 if first == 4 else net.ETHERTYPE_IPV6
        # many a MAC address begins with 0, too: the Ethertype decides, in a tagged frame the rest of the word
        control_word = (
            first == 0 and self._leads_on(16) and (not any(self._data[self.at :][:4]) or not self._leads_on(12))
        )
        if control_word:
            self._header("control_word", "Pseudowire control word", layout.CONTROL_WORD)
        return net.ETHERTYPE_TEB
