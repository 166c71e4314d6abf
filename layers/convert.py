"""The same transport packet over another carrier: v1, v2 over IPv4 or IPv6, behind VLAN tags, in VXLAN.

Every function takes a packet, crafted or captured, and returns a new one, dissected from its bytes. What lies above the
UDP or GRH stays as it is, but for the ICRC, which covers the layers below and is computed anew. An ICRC that was wrong
stays wrong by the same bits, so that a corrupted packet is one still. Sliced packets stay sliced: their length fields
say what the whole packet would have. What a frame has behind the packet (Ethernet padding, FCS) is left out, except
where only VLAN tags are touched.

What the carriers have in common is kept: addresses (an IPv4 address is the GID, and the IPv6 address, ::ffff:a.b.c.d),
traffic class, TTL or hop limit, flow label. The entropy that NICs put into UDP's source port, 0xC000 and more, becomes
the flow label of a GRH and comes back from it, as rdma-core makes one of the other.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet

from roce_dissect.errors import ArgumentError
from roce_dissect.layers.bindings import SOURCE_PORT
from roce_dissect.layers.bth import BTH
from roce_dissect.layers.craft import carrier
from roce_dissect.layers.grh import GRH
from roce_dissect.layers.icrc import expected_icrc
from roce_dissect.spec.headers import BTH_SIZE
from roce_dissect.spec.net import ETHERTYPE_QINQ, ETHERTYPE_QINQ_OLD, ETHERTYPE_VLAN, PORT_ROCE_V2

__all__ = ["add_vlan", "add_vxlan", "strip_vlan", "strip_vxlan", "to_ipv4", "to_ipv6", "to_v1", "to_v2"]

_UDP_SIZE = 8
_IPV4_SIZE = 20
_ENTROPY = 0x3FFF  # bits of UDP's source port that NICs vary
_PORT_VXLAN = 4789
_MACS = 12  # bytes of an Ethernet frame before the first tag or the Ethertype
_TAG = 4
_TAG_TYPES = {ETHERTYPE_VLAN, ETHERTYPE_QINQ, ETHERTYPE_QINQ_OLD}
_VXLAN_UDP = 0x08  # flag: the VNI is valid


def to_v1(packet: Packet) -> Packet:
    """RoCE v2 as v1: a GRH in the place of IP and UDP.

    Raises
    ------
    ArgumentError
        No BTH in a UDP datagram or behind a GRH, or a link layer that carries no v1. So do all functions here.

    Examples
    --------
    >>> from roce_dissect.layers import requests
    >>> packet = requests.rdma_send(carrier("192.0.2.1", "192.0.2.2", udp_sport=0xC123), 3, dest_qp=1)[0]
    >>> v1 = to_v1(packet)
    >>> v1[GRH].sgid, hex(v1[GRH].flow_label), v1[BTH].verify_icrc().name
    ('::ffff:192.0.2.1', '0x123', 'GOOD')
    >>> to_v2(v1)[UDP].sport == 0xC123
    True
    """
    return _over(packet, lambda old, length: _grh(old, length))


def to_v2(packet: Packet, *, udp_sport: int | None = None) -> Packet:
    """RoCE v1 as v2: IPv4 between GIDs that stand for IPv4 addresses, IPv6 between others.

    Parameters
    ----------
    packet : Packet
        A packet that is v2 already keeps its IP version.
    udp_sport : int, optional
        UDP source port; None: the old one, or from the flow label.
    """

    def network(old: dict[str, Any], length: int) -> Packet:
        ends = (ip_address(old["src"]), ip_address(old["dst"]))
        four = all(isinstance(end, IPv4Address) or end.ipv4_mapped is not None for end in ends)
        keep_six = old["version"] == 6
        return _udp(old, length, 6 if keep_six or not four else 4, udp_sport)

    return _over(packet, network)


def to_ipv6(packet: Packet, *, src: str | None = None, dst: str | None = None) -> Packet:
    """RoCE over IPv6: of an IPv4 address a.b.c.d becomes ::ffff:a.b.c.d, unless `src` and `dst` are given."""
    return _over(packet, lambda old, length: _udp(_with_ends(old, src, dst), length, 6, None))


def to_ipv4(packet: Packet, *, src: str | None = None, dst: str | None = None) -> Packet:
    """RoCE over IPv4. IPv6 addresses other than ::ffff:a.b.c.d need `src` and `dst`, else it is an `ArgumentError`."""
    return _over(packet, lambda old, length: _udp(_with_ends(old, src, dst), length, 4, None))


def add_vlan(packet: Packet, vlan_id: int, *, pcp: int = 0, dei: int = 0, tag_type: int = ETHERTYPE_VLAN) -> Packet:
    """Add a VLAN tag before all that are there. ICRC and IP know nothing of it.

    Examples
    --------
    >>> from roce_dissect.layers import requests
    >>> packet = requests.rdma_send(carrier("192.0.2.1", "192.0.2.2"), 3, dest_qp=1)[0]
    >>> strip_vlan(add_vlan(packet, 100, pcp=3)) == Ether(bytes(packet))
    True
    """
    frame = _ethernet(packet)
    if not 0 <= vlan_id < 1 << 12 or not 0 <= pcp < 1 << 3 or dei not in (0, 1):
        raise ArgumentError(f"VLAN {vlan_id}, priority {pcp}, DEI {dei}: 12, 3 and 1 bits")
    tag = tag_type.to_bytes(2, "big") + (pcp << 13 | dei << 12 | vlan_id).to_bytes(2, "big")
    return Ether(frame[:_MACS] + tag + frame[_MACS:])


def strip_vlan(packet: Packet) -> Packet:
    """Take away all VLAN tags of a frame; those within a tunnel stay."""
    frame = _ethernet(packet)
    while int.from_bytes(frame[_MACS : _MACS + 2], "big") in _TAG_TYPES:
        frame = frame[:_MACS] + frame[_MACS + _TAG :]
    return Ether(frame)


def add_vxlan(packet: Packet, vni: int, src: str, dst: str, **fields: Any) -> Packet:
    """Put a frame into a VXLAN tunnel.

    Parameters
    ----------
    packet : Packet
        An Ethernet frame, which becomes the inner one.
    vni : int
        VXLAN network identifier.
    src, dst : str
        Ends of the tunnel, IPv4 or IPv6.
    **fields
        As for `roce_dissect.layers.carrier`: ``vlan_id``, ``udp_sport``, ``dscp`` ...
    """
    packet = packet.__class__(_ethernet(packet))
    missing = _missing(packet)
    frame = bytes(packet)
    outer = carrier(src, dst, **fields)
    outer[UDP].dport = _PORT_VXLAN
    tunnel = outer / VXLAN(flags=_VXLAN_UDP, vni=vni)
    # The checksum of a tunnel's UDP is 0 as a rule (RFC 7348); lengths count what a sliced frame had.
    tunnel[UDP].chksum = 0
    behind = len(bytes(tunnel[VXLAN])) + len(frame) + missing
    tunnel[UDP].len = _UDP_SIZE + behind
    if IP in tunnel:
        tunnel[IP].len = _IPV4_SIZE + _UDP_SIZE + behind
    else:
        tunnel[IPv6].plen = _UDP_SIZE + behind
    return Ether(bytes(tunnel) + frame)


def strip_vxlan(packet: Packet) -> Packet:
    """Take a frame out of its VXLAN tunnel.

    Raises
    ------
    ArgumentError
        There is no tunnel.
    """
    packet = packet.__class__(bytes(packet))
    if VXLAN not in packet:
        raise ArgumentError(f"no VXLAN in {packet.summary()}")
    return Ether(packet[VXLAN].payload.do_build())


def _ethernet(packet: Packet) -> bytes:
    """Bytes of an Ethernet frame."""
    if not isinstance(packet, Ether):
        raise ArgumentError(f"an Ethernet frame is needed, not {packet.summary()}")
    return bytes(packet)


def _over(packet: Packet, network_for: Any) -> Packet:
    """The same transport packet over another network layer.

    `network_for` takes what the old one said (`_facts`) and the bytes from the BTH to the end of the ICRC, and returns
    the new one with its lengths.
    """
    packet = packet.__class__(bytes(packet))  # crafted or captured: from here on all fields have their values
    if BTH not in packet:
        raise ArgumentError(f"no BTH in {packet.summary()}")
    bth = packet[BTH]
    old = _facts(bth)
    expected = expected_icrc(bth)
    wrong_bits = 0 if expected is None else expected ^ bth.icrc
    transport = bth.do_build()
    new = network_for(old, len(transport) + _missing(packet))
    link = old["network"].underlayer
    if link is not None:
        grown = len(bytes(new)) - old["size"]
        link.remove_payload()
        _carry(link, new)
        _grow_tunnel(packet, grown)
        new = packet / new
    result = new.__class__(bytes(new) + transport)
    if isinstance(result[BTH].icrc, int):
        result[BTH].icrc = (expected_icrc(result[BTH]) or 0) ^ wrong_bits
        if old["chksum"] and isinstance(result[BTH].underlayer, UDP):
            del result[BTH].underlayer.chksum
        result = result.__class__(bytes(result))
    return result


def _facts(bth: Any) -> dict[str, Any]:
    """What the layers below a BTH say, under names that they share.

    ``network``: the lowest of them; ``size``: bytes of all; ``version``: 1 for a GRH, else of IP.
    """
    below = bth.underlayer
    if isinstance(below, GRH):
        traffic_class = below.dscp << 2 | below.ecn
        return {"network": below, "size": len(below.self_build()), "version": 1, "src": below.sgid, "dst": below.dgid,
                "traffic_class": traffic_class, "ttl": below.hop_limit, "flow_label": below.flow_label,
                "sport": None, "chksum": 0}  # fmt: skip
    if not isinstance(below, UDP):
        raise ArgumentError("no UDP and no GRH below the BTH")
    shared = {"sport": below.sport, "chksum": below.chksum}
    size = 0
    network: Any = below
    while network is not None:
        size += len(network.self_build())
        if isinstance(network, IP):
            return shared | {"network": network, "size": size, "version": 4, "src": network.src, "dst": network.dst,
                             "traffic_class": network.tos, "ttl": network.ttl, "flow_label": 0}  # fmt: skip
        if isinstance(network, IPv6):
            return shared | {"network": network, "size": size, "version": 6, "src": network.src, "dst": network.dst,
                             "traffic_class": network.tc, "ttl": network.hlim, "flow_label": network.fl}  # fmt: skip
        network = network.underlayer
    raise ArgumentError("no IP below UDP")


def _missing(packet: Packet) -> int:
    """Bytes of the transport packet that the capture has sliced off."""
    bth = packet.getlayer(BTH)
    declared = None if bth is None else bth.transport_length()
    return 0 if bth is None or declared is None else max(0, BTH_SIZE + declared - len(bth.do_build()))


def _with_ends(old: dict[str, Any], src: str | None, dst: str | None) -> dict[str, Any]:
    return old | {name: given for name, given in (("src", src), ("dst", dst)) if given is not None}


def _grh(old: dict[str, Any], length: int) -> Packet:
    flow_label = old["flow_label"] or (old["sport"] or 0) & _ENTROPY
    return GRH(
        sgid=_as_ipv6(old["src"]),
        dgid=_as_ipv6(old["dst"]),
        dscp=old["traffic_class"] >> 2,
        ecn=old["traffic_class"] & 3,
        flow_label=flow_label,
        hop_limit=old["ttl"],
        pay_len=length,
    )


def _udp(old: dict[str, Any], length: int, version: int, sport: int | None) -> Packet:
    label = old["flow_label"]
    if sport is None:
        sport = old["sport"] if old["sport"] is not None else SOURCE_PORT | ((label & _ENTROPY) ^ (label >> 14))
    udp = UDP(sport=sport, dport=PORT_ROCE_V2, len=_UDP_SIZE + length, chksum=0)
    if version == 6:
        src, dst = _as_ipv6(old["src"]), _as_ipv6(old["dst"])
        return IPv6(src=src, dst=dst, tc=old["traffic_class"], hlim=old["ttl"], fl=label, plen=_UDP_SIZE + length) / udp
    src, dst = _as_ipv4(old["src"]), _as_ipv4(old["dst"])
    # Never fragmented, so that the identification is of no use (RFC 6864).
    return IP(src=src, dst=dst, tos=old["traffic_class"], ttl=old["ttl"], id=0, flags="DF",
              len=_IPV4_SIZE + _UDP_SIZE + length) / udp  # fmt: skip


def _as_ipv6(address: str) -> str:
    parsed = ip_address(address)
    return f"::ffff:{parsed}" if isinstance(parsed, IPv4Address) else str(parsed)


def _as_ipv4(address: str) -> str:
    parsed = ip_address(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else parsed
    if mapped is None:
        raise ArgumentError(f"{address} stands for no IPv4 address: give src and dst")
    return str(mapped)


def _carry(link: Packet, new: Packet) -> None:
    """Leave the field of a link layer that tells what follows to the new layer's binding."""
    # as Scapy looks for it: a VLAN tag goes for an Ethernet header
    fields = next((new.overload_fields[kind] for kind in link.aliastypes if kind in new.overload_fields), None)
    if not fields:
        raise ArgumentError(f"{link.name} carries no {new.name}")
    for name in fields:
        delattr(link, name)


def _grow_tunnel(packet: Packet, grown: int) -> None:
    """Add to the lengths of the layers of a tunnel; its UDP checksum becomes 0, as is the rule (RFC 7348)."""
    layer: Any = packet
    while layer:
        if isinstance(layer, IP):
            layer.len += grown
            del layer.chksum
        elif isinstance(layer, IPv6):
            layer.plen += grown
        elif isinstance(layer, UDP):
            layer.len += grown
            layer.chksum = 0
        layer = layer.payload
