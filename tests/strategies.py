"""Hypothesis strategies of RoCE packets, made by the Scapy layers.

Every strategy gives packets with automatic lengths, pads and ICRCs: ``bytes(packet)`` is a valid frame. They are
imported as ``from strategies import frames``; `tests/layers/conftest.py` shows how a folder of tests makes that work.

`frames` and `tunnelled` are what Scapy dissects again without help; `captured` is all that a capture may hold, whatever
Scapy makes of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import assume
from hypothesis import strategies as st
from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III, ERSPAN_PlatformSpecific
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.contrib.mpls import MPLS, EoMCW
from scapy.fields import BitField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import GRE, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback, LoopbackOpenBSD
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
    return packet / draw(networks(versions, source_ports))


@st.composite
def networks(draw: st.DrawFn, versions: tuple[str, ...], source_ports: Any = None, most_extras: int = 0) -> Packet:
    """IP with UDP, or a GRH; `most_extras` as for `addressed`."""
    version = draw(st.sampled_from(versions))
    if version == "v1":
        return draw(headers(GRH))
    ports = st.sampled_from(SOURCE_PORTS) | st.integers(0, 65535) if source_ports is None else source_ports
    return draw(addressed((version,), most_extras)) / UDP(sport=draw(ports), dport=4791)


@st.composite
def addressed(draw: st.DrawFn, versions: tuple[str, ...] = ("ipv4", "ipv6"), most_extras: int = 0) -> Packet:
    """IPv4, with options if there may be extras; IPv6, with that many extension headers at most."""
    byte = st.integers(0, 255)
    if draw(st.sampled_from(versions)) == "ipv4":
        packet = IP(src=draw(ipv4_addresses()), dst=draw(ipv4_addresses()), tos=draw(byte), ttl=draw(byte),
                    id=draw(st.integers(0, 65535)), flags=draw(st.sampled_from([0, "DF"])))  # fmt: skip
        options = draw(st.just(b"") | st.binary(max_size=40)) if most_extras else b""
        if options:
            packet.options = [Raw(options)]  # padded to words of four bytes when it is built
        return packet
    packet = IPv6(src=draw(ipv6_addresses()), dst=draw(ipv6_addresses()), tc=draw(byte), hlim=draw(byte),
                  fl=draw(st.integers(0, 0xFFFFF)))  # fmt: skip
    kinds = draw(st.lists(st.sampled_from(sorted(_EXTENSIONS)), max_size=most_extras))
    if kinds and _EXTENSIONS[kinds[-1]] is AH:
        kinds.append(60)  # AH knows none of the layers that may follow
    if kinds:
        packet.nh = kinds[0]
    for kind, following in zip(kinds, [*kinds[1:], None], strict=False):
        header = draw(extension_headers(_EXTENSIONS[kind]))
        if following is not None:
            header.nh = following
        packet /= header
    return packet


#: IPv6 extension headers by their numbers.
_EXTENSIONS = {0: IPv6ExtHdrHopByHop, 43: IPv6ExtHdrRouting, 44: IPv6ExtHdrFragment, 51: AH, 60: IPv6ExtHdrDestOpt}


@st.composite
def extension_headers(draw: st.DrawFn, kind: type[Packet]) -> Packet:
    """One IPv6 extension header of any size; the fragment header is one of a whole packet."""
    if kind is IPv6ExtHdrFragment:
        return kind(offset=0, m=0, id=draw(st.integers(0, 0xFFFFFFFF)))
    if kind is IPv6ExtHdrRouting:
        return kind(addresses=draw(st.lists(ipv6_addresses(), max_size=2)))
    if kind is AH:
        words = draw(st.integers(0, 6))  # Scapy does not count them
        return kind(spi=draw(st.integers(0, 0xFFFFFFFF)), icv=bytes(4 * words), payloadlen=1 + words)
    return kind(options=[PadN(optdata=draw(st.binary(max_size=30)))])


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


# -- all that a capture may hold


class Captured(NamedTuple):
    """A packet and the link type of the capture that it is in."""

    link_type: int
    packet: Packet


#: VLAN tag types; the last one is older than 802.1ad.
TAG_TYPES = (0x8100, 0x88A8, 0x9100)
#: Tunnels that carry an Ethernet frame, and those that carry an IP packet.
FRAME_TUNNELS = ("vxlan", "geneve", "gretap", "nvgre", "erspan1", "erspan2", "erspan3", "pseudowire")
IP_TUNNELS = ("geneve_ip", "gre", "erspan3_ip", "ipip", "mpls")
#: MPLS may stand on a link, in IP or in GRE.
_LABELLED = ("pseudowire", "mpls")
#: Ethertypes by which a pseudowire's control word is told from an Ethernet address.
_TELLING = {bytes.fromhex(text) for text in ("0800", "86dd", "8915", "8100", "88a8", "9100")}
#: Link types by what they carry, raw IP and loopback without an Ethertype, and the loopback's address families.
LINKS = (1, 113, 276)
IP_LINKS = {IP: (0, 108, 12, 14, 101, 228), IPv6: (0, 108, 12, 14, 101, 229)}
_FAMILIES = {IP: (2,), IPv6: (10, 24, 28, 30)}


@st.composite
def tagged(draw: st.DrawFn, link: Packet) -> Packet:
    """A link header with up to two VLAN tags of any type behind it; a tag's type stands in what is before it."""
    types = draw(st.lists(st.sampled_from(TAG_TYPES), max_size=2))
    if types:
        setattr(link, "proto" if isinstance(link, CookedLinux) else "type", types[0])
    for following in [*types[1:], None][: len(types)]:
        tag = Dot1Q(vlan=draw(st.integers(0, 4095)), prio=draw(st.integers(0, 7)), dei=draw(st.integers(0, 1)))
        if following is not None:
            tag.type = following
        link /= tag
    return link


@st.composite
def linked(draw: st.DrawFn, packet: Packet, link_type: int | None = None) -> Captured:
    """A packet behind the header of any link type that can carry it."""
    if link_type is None:
        link_type = draw(st.sampled_from(LINKS + IP_LINKS.get(type(packet), ())))
    if link_type in (0, 108):
        layer = LoopbackOpenBSD if link_type == 108 else draw(st.sampled_from([Loopback, LoopbackOpenBSD]))
        return Captured(link_type, layer(type=draw(st.sampled_from(_FAMILIES[type(packet)]))) / packet)
    if link_type not in LINKS:
        return Captured(link_type, packet)
    if link_type == 1:
        return Captured(1, draw(tagged(Ether(src=draw(mac_addresses()), dst=draw(mac_addresses())))) / packet)
    layer = CookedLinux if link_type == 113 else CookedLinuxV2
    known = {IP: 0x0800, IPv6: 0x86DD, GRH: 0x8915, MPLS: 0x8847}[type(packet)]  # Scapy binds no MPLS to these
    header = layer(proto=known, pkttype=draw(st.integers(0, 4)), lladdrtype=draw(st.sampled_from([1, 772])))
    header.lladdrlen, header.src = 6, draw(st.binary(min_size=8, max_size=8))
    return Captured(link_type, draw(tagged(header)) / packet)


@st.composite
def labels(draw: st.DrawFn) -> Packet:
    """An MPLS stack."""
    count = draw(st.integers(1, 3) | st.just(16))
    stack = [MPLS(label=draw(st.integers(0, 0xFFFFF)), cos=draw(st.integers(0, 7)), ttl=draw(st.integers(0, 255)), s=0)
             for _ in range(count)]  # fmt: skip
    stack[-1].s = 1
    packet = stack[0]
    for layer in stack[1:]:
        packet /= layer
    return packet


@st.composite
def gre_headers(draw: st.DrawFn, kind: str) -> Packet:
    """GRE of a tunnel that is one of GRE: protocol, key, sequence number, checksum."""
    if kind == "nvgre":  # RFC 7637: a key, no other option, a VSID from 0x1000 on
        return GRE(proto=0x6558, key_present=1, key=draw(st.integers(0x100000, 0xFFFFFFFF)))
    if kind == "erspan1":
        return GRE(proto=0x88BE)
    number = draw(st.integers(0, 0xFFFFFFFF))
    if kind == "erspan2":
        return GRE(proto=0x88BE, seqnum_present=1, sequence_number=number)
    if kind in ("erspan3", "erspan3_ip"):
        return GRE(proto=0x22EB, seqnum_present=1, sequence_number=number)
    options = {name: draw(st.integers(0, 1)) for name in ("chksum_present", "key_present", "seqnum_present")}
    alone = options == {"chksum_present": 0, "key_present": 1, "seqnum_present": 0}
    header = GRE(key=draw(st.integers(0, 0xFFFFF if alone else 0xFFFFFFFF)), sequence_number=number, **options)
    if kind == "gretap":
        header.proto = 0x6558
    return header


@st.composite
def tunnel_headers(draw: st.DrawFn, kind: str) -> Packet | None:
    """What lies between a tunnel's own IP header and what it carries; None: nothing."""
    vni = draw(st.integers(0, 0xFFFFFF))
    if kind == "vxlan":
        flags = draw(st.sampled_from([8, 0x88]))
        return UDP(sport=draw(st.integers(0, 65535)), dport=4789) / VXLAN(flags=flags, vni=vni)
    if kind in ("geneve", "geneve_ip"):
        data = draw(st.lists(st.binary(max_size=5).map(lambda word: word * 4), max_size=3))
        geneve = GENEVE(vni=vni, options=[GeneveOptions(classid=0x0102, type=0x80, data=each) for each in data])
        if kind == "geneve":
            geneve.proto = 0x6558
        return UDP(sport=draw(st.integers(0, 65535)), dport=6081) / geneve
    if kind == "ipip":
        return None
    if kind in _LABELLED:
        stack = draw(labels())
        control = kind == "pseudowire" and draw(st.booleans())
        return stack / EoMCW(seq=draw(st.sampled_from([0, 1, 0xFFFF]))) if control else stack
    packet = draw(gre_headers(kind))
    session = draw(st.integers(0, 1023))
    if kind == "erspan2":
        packet /= ERSPAN_II(vlan=draw(st.integers(0, 4095)), session_id=session, index=draw(st.integers(0, 0xFFFFF)))
    if kind in ("erspan3", "erspan3_ip"):
        sub = draw(st.integers(0, 1))
        packet /= ERSPAN_III(vlan=draw(st.integers(0, 4095)), session_id=session, ft=2 * (kind == "erspan3_ip"), o=sub,
                             timestamp=draw(st.integers(0, 0xFFFFFFFF)), gra=3)  # fmt: skip
        if sub:
            packet /= ERSPAN_PlatformSpecific(platf_id=draw(st.integers(0, 63)), info2=draw(st.integers(0, 0xFFFFFFFF)))
    return packet


@st.composite
def in_tunnel(draw: st.DrawFn, inner: Packet, kind: str, outermost: bool = True) -> tuple[Packet, int]:
    """A packet in a tunnel, and how many tunnels these are; `inner` begins with IP, GRH or MPLS, the result with IP.

    An outermost MPLS stack may stand alone, or in GRE, which is a tunnel more.
    """
    header = draw(tunnel_headers(kind))
    if kind in FRAME_TUNNELS:
        first = draw(st.sampled_from([0x00, 0x02, 0x1C, 0xFE]) | st.integers(0, 255))
        dst, src = (draw(st.binary(min_size=6, max_size=6)) for _ in "ab")
        dst = bytes([first]) + dst[1:]
        if header is not None and EoMCW in header:
            assume(src[2:4] not in _TELLING)
        elif kind == "pseudowire":  # its first bits would be those of IP, or of a control word (RFC 4928)
            assume(dst[0] >> 4 not in (4, 6) and dst[:4] != bytes(4))
            assume(dst[0] >> 4 or GRH not in inner)  # which it is cannot be told yet where a GRH begins
        inner = draw(tagged(Ether(dst=dst.hex(":"), src=src.hex(":")))) / inner
    packet = inner if header is None else header / inner
    if kind in _LABELLED:
        carrier = draw(st.sampled_from(["link", "ip", "gre"] if outermost else ["ip"]))
        if carrier == "link":
            return packet, 1
        if carrier == "gre":
            return draw(addressed(most_extras=1)) / GRE() / packet, 2
    return draw(addressed(most_extras=1)) / packet, 1


@st.composite
def captured(
    draw: st.DrawFn,
    transport: st.SearchStrategy[Packet] | None = None,
    versions: tuple[str, ...] = ("v1", "ipv4", "ipv6"),
    tunnels: tuple[str, ...] | None = (),
    link_type: int | None = None,
) -> Captured:
    """RoCE of any version, with options and extension headers, in tunnels, behind any link header.

    `tunnels` from the inside out; None for any, to the depth of four that is stated.
    """
    above = draw(transports(icrc=draw(st.none() | st.integers(0, 0xFFFFFFFF))) if transport is None else transport)
    packet = draw(networks(versions, most_extras=3)) / above
    any_tunnels = st.lists(st.sampled_from(FRAME_TUNNELS + IP_TUNNELS), min_size=1, max_size=4)
    kinds = draw(any_tunnels) if tunnels is None else tunnels
    count = 0
    for number, kind in enumerate(kinds):
        if kind in IP_TUNNELS and type(packet) not in IP_LINKS:
            assume(tunnels is None)
            kind = "vxlan"
        packet, more = draw(in_tunnel(packet, kind, number == len(kinds) - 1))
        count += more
    assume(count <= 4)
    return draw(linked(packet, link_type))


@st.composite
def captured_natively(draw: st.DrawFn, transport: st.SearchStrategy[Packet] | None = None) -> Captured:
    """Native InfiniBand."""
    above = draw(transports(icrc=draw(st.none() | st.integers(0, 0xFFFFFFFF))) if transport is None else transport)
    return Captured(247, draw(native_carriers()) / above)
