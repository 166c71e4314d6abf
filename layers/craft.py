"""Whole packets: the layers below the BTH, one packet of any opcode, a message cut into packets.

`roce_dissect.layers.requests` and `roce_dissect.layers.replies` make the common ones of these.
"""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from roce_dissect.errors import ArgumentError
from roce_dissect.layers.bindings import SOURCE_PORT
from roce_dissect.layers.bth import BTH
from roce_dissect.layers.grh import GRH
from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.spec.net import PORT_ROCE_V2
from roce_dissect.spec.opcodes import HEADERS, Opcode

__all__ = ["carrier", "message", "roce"]

_PSN_MASK = (1 << 24) - 1


def carrier(
    src: str,
    dst: str,
    *,
    version: int = 2,
    vlan_id: int | None = None,
    pcp: int = 0,
    dscp: int = 0,
    ecn: int = 0,
    ttl: int = 64,
    flow_label: int = 0,
    udp_sport: int = SOURCE_PORT,
    src_mac: str = "02:00:00:00:00:01",
    dst_mac: str = "02:00:00:00:00:02",
) -> Packet:
    """Layers below the BTH.

    Parameters
    ----------
    src, dst : str
        IPv4 or IPv6 addresses, of one family. For version 1 an IPv4 address becomes the GID ::ffff:a.b.c.d.
    version : int
        2: Ethernet, IP, UDP. 1: Ethernet, GRH.
    vlan_id, pcp : int
        VLAN tag; no tag for None.
    dscp, ecn, ttl, flow_label : int
        Of the IP header or GRH; IPv4 has no flow label.
    udp_sport : int
        UDP source port, version 2 only.
    src_mac, dst_mac : str
        Ethernet addresses. They are given, so that Scapy does not ask the network for them.

    Raises
    ------
    ArgumentError
        Addresses of two families, or another version.

    Examples
    --------
    >>> carrier("192.0.2.1", "192.0.2.2", vlan_id=100).summary()
    'Ether / Dot1Q / IP / UDP 192.0.2.1:49152 > 192.0.2.2:4791'
    >>> (carrier("192.0.2.1", "192.0.2.2", version=1) / BTH()).summary()
    'Ether / GRH ::ffff:192.0.2.1 > ::ffff:192.0.2.2 / BTH RC SEND ONLY dest_qp=0x0 psn=0'
    """
    ends = [ip_address(src), ip_address(dst)]
    if ends[0].version != ends[1].version:
        raise ArgumentError(f"addresses of two families: {src} and {dst}")
    if version not in (1, 2):
        raise ArgumentError(f"RoCE version {version}: there are 1 and 2 (native InfiniBand: begin with LRH yourself)")
    link: Packet = Ether(src=src_mac, dst=dst_mac)
    if vlan_id is not None:
        link /= Dot1Q(vlan=vlan_id, prio=pcp)
    traffic_class = dscp << 2 | ecn
    if version == 1:
        sgid, dgid = (f"::ffff:{end}" if isinstance(end, IPv4Address) else str(end) for end in ends)
        return link / GRH(sgid=sgid, dgid=dgid, dscp=dscp, ecn=ecn, hop_limit=ttl, flow_label=flow_label)
    if ends[0].version == 4:
        network: Packet = IP(src=src, dst=dst, tos=traffic_class, ttl=ttl)
    else:
        network = IPv6(src=src, dst=dst, tc=traffic_class, hlim=ttl, fl=flow_label)
    return link / network / UDP(sport=udp_sport, dport=PORT_ROCE_V2)


def roce(carrier: Packet | None, opcode: Any, payload: bytes = b"", **fields: Any) -> Packet:
    """One packet with the headers of its opcode.

    Parameters
    ----------
    carrier : Packet or None
        Layers below the BTH.
    opcode : int, Opcode or str
        As for `BTH`.
    payload : bytes
        Pad and ICRC are built behind it.
    **fields
        Fields of the BTH and of the extended headers of that opcode, by their names.

    Raises
    ------
    ArgumentError
        A name that no opcode has, or a field that none of those headers has.

    Examples
    --------
    >>> roce(None, "XRC WRITE ONLY", b"abcd", dest_qp=1, xrc_srq=5, va=0x1000, dma_len=4).summary()
    'BTH XRC WRITE ONLY dest_qp=0x1 psn=0 / XRCETH xrc_srq=0x5 / RETH va=0x1000 r_key=0x0 dma_len=4 / Raw'
    """
    if isinstance(opcode, str) and opcode.replace(" ", "_") not in Opcode.__members__:
        raise ArgumentError(f"there is no {opcode}")
    packet: Packet = BTH(opcode=opcode)
    chain = HEADERS.get(packet.opcode, 0)
    classes = [header for presence, header in sorted(ExtendedHeader.by_presence.items()) if chain & presence]
    layers = [packet, *(header() for header in classes)]
    for name, value in fields.items():
        holder = next((layer for layer in layers if any(field.name == name for field in layer.fields_desc)), None)
        if holder is None:
            raise ArgumentError(f"no header of {packet.sprintf('%BTH.opcode%')} has a field {name!r}")
        setattr(holder, name, value)
    for layer in layers[1:]:
        packet /= layer
    if payload:
        packet /= Raw(payload)
    return packet if carrier is None else carrier / packet


def message(
    carrier: Packet | None,
    operation: str,
    data: bytes | int,
    mtu: int,
    *,
    suffix: str = "",
    first: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    psn: int = 0,
    **fields: Any,
) -> list[Packet]:
    """Packets of a message: ONLY, or FIRST, MIDDLE ... and LAST.

    FIRST and MIDDLE carry exactly the path MTU (IBTA 9.7.3, table of packet lengths), PSNs go on modulo 2**24.

    Parameters
    ----------
    carrier : Packet or None
        Layers below the BTH.
    operation : str
        Name of the opcodes without what tells the part: ``"RC WRITE"``, ``"RC READ RESPONSE"``.
    data : bytes or int
        Payload, or how many zero bytes of it.
    mtu : int
        Path MTU in bytes, a multiple of 4.
    suffix : str
        Of the opcode of the last packet: ``" IMM"``, ``" INV"`` or nothing.
    first, last : dict
        Fields of the first and of the last packet alone.
    psn : int
        Of the first packet.
    **fields
        Fields of all packets.

    Raises
    ------
    ArgumentError
        A path MTU that is no multiple of 4 above 0, or a field that a packet's headers have not.
    """
    if mtu < 4 or mtu % 4:
        raise ArgumentError(f"path MTU {mtu}: a multiple of 4 is needed")
    payload = bytes(data)
    pieces = [payload[at : at + mtu] for at in range(0, len(payload), mtu)] or [b""]
    packets = []
    for number, piece in enumerate(pieces):
        own = dict(fields)
        begins, ends = number == 0, number == len(pieces) - 1
        if begins:
            own |= first or {}
        if ends:
            own |= last or {}
        part = {(True, True): "ONLY", (True, False): "FIRST", (False, True): "LAST"}.get((begins, ends), "MIDDLE")
        opcode = f"{operation} {part}{suffix if ends else ''}"
        packets.append(roce(carrier, opcode, piece, psn=(psn + number) & _PSN_MASK, **own))
    return packets
