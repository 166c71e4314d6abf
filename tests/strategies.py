"""Hypothesis strategies of RoCE packets, made by the Scapy layers.

Every strategy gives packets with automatic lengths, pads and ICRCs: ``bytes(packet)`` is a valid frame. They are
imported as ``from strategies import frames``; `tests/layers/conftest.py` shows how a folder of tests makes that work.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from scapy.fields import BitField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from roce_dissect.layers import BTH, GRH, LRH
from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.layers.trailer import PadField
from roce_dissect.spec.opcodes import HEADERS

#: UDP source ports at which other tools take RoCE for something else, and those that NICs use.
SOURCE_PORTS = (0, 53, 69, 123, 4789, 4791, 8472, 0xC000, 0xFFFF)

#: Operations that carry payload: SENDs, WRITEs, READ responses, ATOMIC WRITE.
WITH_PAYLOAD = {*range(0x0C), *range(0x0D, 0x11), 0x16, 0x17, 0x1D}

_AUTOMATIC = {"pad_count", "icrc", "pay_len", "pkt_len", "vcrc"}
_FIXED = {"ip_ver", "nxt_hdr", "lver", "lnh", "opcode", "tver"}


def payloads(max_size: int = 80) -> st.SearchStrategy[bytes]:
    """Payloads of any length, the empty one included."""
    return st.binary(max_size=max_size)


def psns() -> st.SearchStrategy[int]:
    """PSNs, often at the wrap."""
    return st.sampled_from([0, 1, 0x7FFFFF, 0x800000, 0xFFFFFE, 0xFFFFFF]) | st.integers(0, 0xFFFFFF)


def opcodes() -> st.SearchStrategy[int]:
    """Every opcode that has a name."""
    return st.sampled_from(sorted(HEADERS))


def ipv4_addresses() -> st.SearchStrategy[str]:
    """IPv4 addresses."""
    return st.ip_addresses(v=4).map(str)


def ipv6_addresses() -> st.SearchStrategy[str]:
    """IPv6 addresses and GIDs; some stand for IPv4 addresses."""
    return st.ip_addresses(v=6).map(str) | ipv4_addresses().map("::ffff:{}".format)


def mac_addresses() -> st.SearchStrategy[str]:
    """Ethernet addresses."""
    return st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))


@st.composite
def headers(draw: st.DrawFn, layer: type[Packet], **given: Any) -> Packet:
    """One header with any values in all its fields, reserved ones too; what is computed is left to be."""
    values = dict(given)
    for field in layer.fields_desc:
        if field.name in values or field.name in _AUTOMATIC | _FIXED or isinstance(field, PadField):
            continue
        if field.name in {"sgid", "dgid"}:
            values[field.name] = draw(ipv6_addresses())
        elif field.name == "reserved" and not isinstance(field, BitField) and field.sz > 8:
            values[field.name] = draw(st.binary(min_size=int(field.sz), max_size=int(field.sz)))
        else:
            bits = field.size if isinstance(field, BitField) else int(field.sz * 8)
            values[field.name] = draw(st.integers(0, (1 << bits) - 1))
    return layer(**values)


@st.composite
def transports(
    draw: st.DrawFn,
    opcode: st.SearchStrategy[int] | None = None,
    payload: st.SearchStrategy[bytes] | None = None,
    **given: Any,
) -> Packet:
    """BTH, the extended headers of its opcode, payload where the operation has one; `given` are fields of the BTH."""
    given.setdefault("psn", draw(psns()))
    packet = draw(headers(BTH, opcode=draw(opcodes() if opcode is None else opcode), **given))
    chain = HEADERS.get(packet.opcode, 0)
    for presence, layer in sorted(ExtendedHeader.by_presence.items()):
        if chain & presence:
            packet /= draw(headers(layer))
    if packet.opcode & 0x1F not in WITH_PAYLOAD or packet.opcode == 0x81:
        return packet
    data = draw(payloads() if payload is None else payload)
    return packet / Raw(data) if data else packet


@st.composite
def tags(draw: st.DrawFn, most: int = 2) -> list[Packet]:
    """VLAN tags: none, one, or several with a service tag outside."""
    count = draw(st.integers(0, most))
    kinds = [Dot1Q] if count < 2 else [draw(st.sampled_from([Dot1Q, Dot1AD])), *[Dot1Q] * (count - 1)]
    return [
        kind(vlan=draw(st.integers(0, 4095)), prio=draw(st.integers(0, 7)), dei=draw(st.integers(0, 1)))
        for kind in kinds[:count]
    ]


@st.composite
def carriers(
    draw: st.DrawFn, versions: tuple[str, ...] = ("v1", "ipv4", "ipv6"), source_ports: Any = None, most_tags: int = 2
) -> Packet:
    """Ethernet, VLAN tags, and IP with UDP or a GRH; `versions` is any of ``"v1"``, ``"ipv4"``, ``"ipv6"``."""
    packet: Packet = Ether(src=draw(mac_addresses()), dst=draw(mac_addresses()))
    for tag in draw(tags(most_tags)):
        packet /= tag
    version = draw(st.sampled_from(versions))
    if version == "v1":
        return packet / draw(headers(GRH))
    byte = st.integers(0, 255)
    if version == "ipv4":
        packet /= IP(src=draw(ipv4_addresses()), dst=draw(ipv4_addresses()), tos=draw(byte), ttl=draw(byte),
                     id=draw(st.integers(0, 65535)), flags=draw(st.sampled_from([0, "DF"])))  # fmt: skip
    else:
        packet /= IPv6(src=draw(ipv6_addresses()), dst=draw(ipv6_addresses()), tc=draw(byte), hlim=draw(byte),
                       fl=draw(st.integers(0, 0xFFFFF)))  # fmt: skip
    ports = st.sampled_from(SOURCE_PORTS) | st.integers(0, 65535) if source_ports is None else source_ports
    return packet / UDP(sport=draw(ports), dport=4791)


@st.composite
def native_carriers(draw: st.DrawFn) -> Packet:
    """LRH of native InfiniBand, with or without a GRH."""
    packet = draw(headers(LRH))
    return packet / draw(headers(GRH)) if draw(st.booleans()) else packet


@st.composite
def frames(
    draw: st.DrawFn,
    carrier: st.SearchStrategy[Packet] | None = None,
    transport: st.SearchStrategy[Packet] | None = None,
) -> Packet:
    """Whole Ethernet frames of RoCE v1 and v2."""
    below = draw(carriers() if carrier is None else carrier)
    return below / draw(transports() if transport is None else transport)


@st.composite
def tunnelled(draw: st.DrawFn, inner: st.SearchStrategy[Packet] | None = None) -> Packet:
    """Frames in VXLAN."""
    outer = draw(carriers(("ipv4", "ipv6")))
    outer[UDP].dport = 4789
    outer[UDP].sport = draw(st.integers(0xC000, 0xFFFF))
    return outer / VXLAN(flags=8, vni=draw(st.integers(0, 0xFFFFFF))) / draw(frames() if inner is None else inner)
