"""RoCE frames by hand: each header packed field by field, as IBTA and the RFCs draw them. None of our code is used."""

from __future__ import annotations

import struct

MACS = bytes.fromhex("0200 5e00 0001 0200 5e00 0002".replace(" ", ""))
GID_A = bytes.fromhex("fd000100" + "00" * 11 + "02")
GID_B = bytes.fromhex("fd000100" + "00" * 11 + "01")
IP_A, IP_B = bytes([192, 168, 100, 2]), bytes([192, 168, 100, 1])

#: Extended headers by opcode (IBTA Vol. 1, table 38; A17; A19), spelled out once more so that no table of ours is used.
RETH, AETH, ATOMIC, ATOMIC_ACK, IMM, IETH, DETH, RDETH, XRCETH, FETH, CNP = (
    "reth", "aeth", "atomic", "atomic_ack", "imm", "ieth", "deth", "rdeth", "xrceth", "feth", "cnp",
)  # fmt: skip
_RC = {
    0x00: [], 0x01: [], 0x02: [], 0x03: [IMM], 0x04: [], 0x05: [IMM], 0x06: [RETH], 0x07: [], 0x08: [], 0x09: [IMM],
    0x0A: [RETH], 0x0B: [RETH, IMM], 0x0C: [RETH], 0x0D: [AETH], 0x0E: [], 0x0F: [AETH], 0x10: [AETH], 0x11: [AETH],
    0x12: [AETH, ATOMIC_ACK], 0x13: [ATOMIC], 0x14: [ATOMIC],
}  # fmt: skip
CHAINS: dict[int, list[str]] = dict(_RC)
CHAINS |= {0x16: [IETH], 0x17: [IETH], 0x1C: [FETH, RETH], 0x1D: [RETH]}
CHAINS |= {0x20 | code: chain for code, chain in _RC.items() if code < 0x0C}
CHAINS |= {0x40 | code: [RDETH, *([] if 0x0D <= code <= 0x12 else [DETH]), *chain] for code, chain in _RC.items()}
CHAINS |= {0x55: [RDETH, DETH], 0x64: [DETH], 0x65: [DETH, IMM], 0x81: [CNP]}
CHAINS |= {0xA0 | code: [*([] if 0x0D <= code <= 0x12 else [XRCETH]), *chain] for code, chain in _RC.items()}
CHAINS |= {0xB6: [XRCETH, IETH], 0xB7: [XRCETH, IETH]}

#: Columns of each extended header and how they are packed, reserved bytes as pad.
FIELDS = {
    RETH: (">QII", ("va", "r_key", "dma_len")),
    AETH: (">I", ("syndrome<<24|msn",)),
    ATOMIC: (">QIQQ", ("va", "r_key", "swap_add_data", "compare_data")),
    ATOMIC_ACK: (">Q", ("orig_data",)),
    IMM: (">I", ("imm_data",)),
    IETH: (">I", ("inv_r_key",)),
    DETH: (">II", ("q_key", "src_qp")),
    RDETH: (">I", ("ee_context",)),
    XRCETH: (">I", ("xrc_srq",)),
    FETH: (">I", ("feth",)),
    CNP: (">16x", ()),
}
BITS = {"msn": 24, "syndrome": 8, "src_qp": 24, "ee_context": 24, "xrc_srq": 24}
BITS |= {"va": 64, "swap_add_data": 64, "compare_data": 64, "orig_data": 64}


def values_of(opcode, rng):
    """Random values for every field of the opcode's extended headers."""
    names = [part for header in CHAINS[opcode] for name in FIELDS[header][1] for part in name.split("<<24|")]
    return {name: rng.getrandbits(BITS.get(name, 32)) for name in names}


def extended(opcode, values):
    """The extended headers of an opcode."""
    out = b""
    for header in CHAINS[opcode]:
        form, names = FIELDS[header]
        packed = [
            values["syndrome"] << 24 | values["msn"] if name == "syndrome<<24|msn" else values[name] for name in names
        ]
        out += struct.pack(form, *packed)
    return out


def bth(opcode=4, psn=0, dest_qp=17, se=0, mig_req=0, pad_count=0, tver=0, p_key=0xFFFF, fecn=0, becn=0, ack_req=0):
    """IBTA 9.2: twelve bytes."""
    flags = se << 7 | mig_req << 6 | pad_count << 4 | tver
    return struct.pack(
        ">BBHII", opcode, flags, p_key, fecn << 31 | becn << 30 | dest_qp, ack_req << 31 | psn & 0xFFFFFF
    )


def packet(opcode=4, payload=b"", values=None, icrc=0x01020304, **fields):
    """BTH to ICRC; the payload is padded to four bytes."""
    pad = -len(payload) % 4
    fields.setdefault("pad_count", pad)
    return (
        bth(opcode, **fields)
        + extended(opcode, values or dict.fromkeys(values_of_names(opcode), 0))
        + payload
        + bytes(pad)
        + struct.pack("<I", icrc)
    )


def values_of_names(opcode):
    return [part for header in CHAINS[opcode] for name in FIELDS[header][1] for part in name.split("<<24|")]


def udp(body, sport=0xC123, dport=4791, length=None):
    return struct.pack(">HHHH", sport, dport, len(body) + 8 if length is None else length, 0) + body


def ipv4(body, src=IP_A, dst=IP_B, tos=0, ttl=64, ip_id=1, options=b"", protocol=17, length=None, fragment=0x4000):
    """RFC 791; the options are padded to four bytes."""
    options += bytes(-len(options) % 4)
    size = 20 + len(options)
    total = size + len(body) if length is None else length
    header = struct.pack(">BBHHHBBH4s4s", 0x40 | size // 4, tos, total, ip_id, fragment, ttl, protocol, 0, src, dst)
    return header + options + body


def ipv6(body, src=GID_A, dst=GID_B, tclass=0, flow=0, hops=64, following=17, length=None):
    """RFC 8200; `body` holds extension headers, too, if `following` names one. A GRH has the same form."""
    length = len(body) if length is None else length
    return struct.pack(">IHBB", 6 << 28 | tclass << 20 | flow, length, following, hops) + src + dst + body


def grh(body, **fields):
    """IBTA 8.3: next header 0x1b is BTH, the length counts BTH to ICRC."""
    return ipv6(body, **({"following": 0x1B} | fields))


def ethernet(body, ether_type, tags=()):
    """`tags`: (TPID, TCI) from the outside in."""
    return MACS + b"".join(struct.pack(">HH", *tag) for tag in tags) + struct.pack(">H", ether_type) + body


def v2(opcode=4, payload=b"", values=None, tags=(), ip=None, sport=0xC123, **fields):
    """RoCE v2 over IPv4."""
    return ethernet(ipv4(udp(packet(opcode, payload, values, **fields), sport), **(ip or {})), 0x0800, tags)


def v2_ipv6(opcode=4, payload=b"", values=None, tags=(), ip=None, sport=0xC123, **fields):
    """RoCE v2 over IPv6."""
    return ethernet(ipv6(udp(packet(opcode, payload, values, **fields), sport), **(ip or {})), 0x86DD, tags)


def v1(opcode=4, payload=b"", values=None, tags=(), ip=None, **fields):
    """RoCE v1."""
    return ethernet(grh(packet(opcode, payload, values, **fields), **(ip or {})), 0x8915, tags)


def v1_from_v2(frame):
    """A RoCE v2 frame without tags as version 1: same addresses, traffic class and transport."""
    ether_type = struct.unpack_from(">H", frame, 12)[0]
    if ether_type == 0x0800:
        header = (frame[14] & 15) * 4
        mapped = bytes(10) + b"\xff\xff"
        src, dst = mapped + frame[26:30], mapped + frame[30:34]
        tclass, hops, flow = frame[15], frame[22], 0
    else:
        header = 40
        src, dst = frame[22:38], frame[38:54]
        first = struct.unpack_from(">I", frame, 14)[0]
        tclass, hops, flow = first >> 20 & 255, frame[21], first & 0xFFFFF
    at = 14 + header
    (udp_length,) = struct.unpack_from(">H", frame, at + 4)
    return ethernet(grh(frame[at + 8 : at + udp_length], src=src, dst=dst, tclass=tclass, flow=flow, hops=hops), 0x8915)


def pcap(frames, nano=False, wire=None, link_type=1, first_ns=1_700_000_000_000_000_000, step_ns=1000, snap=1 << 18):
    """A classic little-endian pcap file; `wire`: lengths on the wire where they differ."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap, link_type)]
    for number, frame in enumerate(frames):
        seconds, rest = divmod(first_ns + number * step_ns, 10**9)
        length = len(frame) if wire is None else wire[number]
        out.append(struct.pack("<IIII", seconds, rest if nano else rest // 1000, len(frame), length) + frame)
    return b"".join(out)


def records(capture):
    """(seconds, fraction, wire length, frame) of a classic little-endian pcap file."""
    at, found = 24, []
    while at + 16 <= len(capture):
        seconds, fraction, captured, wire = struct.unpack_from("<IIII", capture, at)
        found.append((seconds, fraction, wire, capture[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return found


def sliced(capture, snap):
    """A classic little-endian pcap file as a capture with a snap length would have been."""
    out = [capture[:24]]
    for seconds, fraction, wire, frame in records(capture):
        out.append(struct.pack("<IIII", seconds, fraction, min(snap, len(frame)), wire) + frame[:snap])
    return b"".join(out)


# -- link types other than Ethernet, and tunnels -----------------------------------------------------------------------


def network(frame):
    """(Ethertype, what follows) of an Ethernet frame, its tags skipped."""
    at = 12
    while struct.unpack_from(">H", frame, at)[0] in (0x8100, 0x88A8, 0x9100):
        at += 4
    return struct.unpack_from(">H", frame, at)[0], frame[at + 2 :]


def cooked(body, ether_type, arphrd=1):
    """LINKTYPE_LINUX_SLL."""
    return struct.pack(">HHH8sH", 4, arphrd, 6, MACS[6:12] + b"\0\0", ether_type) + body


def cooked2(body, ether_type, arphrd=1):
    """LINKTYPE_LINUX_SLL2."""
    return struct.pack(">HHIHBB8s", ether_type, 0, 3, arphrd, 4, 6, MACS[6:12] + b"\0\0") + body


def native(body, gid_header=None, vl=1, sl=3, slid=0x12, dlid=0x34, length=None):
    """LRH, a GRH where `gid_header` holds its fields, `body` (BTH to ICRC), and a VCRC."""
    body = body if gid_header is None else grh(body, **gid_header)
    words = (8 + len(body)) // 4 if length is None else length
    first = vl << 12 | sl << 4 | (2 if gid_header is None else 3)
    return struct.pack(">HHHH", first, dlid, words, slid) + body + b"\x5a\xa5"


def erf(body, kind=21, extensions=0):
    """LINKTYPE_ERF: type 21 is InfiniBand, 2 Ethernet (two bytes of offset and pad first)."""
    pad = b"\0\0" if kind == 2 else b""
    more = b"".join(bytes([0x80 * (number + 1 < extensions)]) + bytes(7) for number in range(extensions))
    size = 16 + len(more) + len(pad) + len(body)
    head = struct.pack("<Q", 1) + struct.pack(">BBHHH", kind | 0x80 * bool(extensions), 4, size, 0, len(body))
    return head + more + pad + body


def gre(body, protocol, key=None, sequence=None, checksum=False, flags=0):
    """RFC 2784 and 2890."""
    flags |= 0x8000 * checksum | 0x2000 * (key is not None) | 0x1000 * (sequence is not None)
    out = struct.pack(">HH", flags, protocol) + bytes(4 * checksum)
    out += b"" if key is None else struct.pack(">I", key)
    return out + (b"" if sequence is None else struct.pack(">I", sequence)) + body


def vxlan(frame, vni=42, flags=8, **options):
    """RFC 7348: UDP and behind."""
    return udp(struct.pack(">BxxxI", flags, vni << 8) + frame, sport=0xD001, dport=4789, **options)


def geneve(body, protocol=0x6558, vni=42, options=b"", version=0):
    """RFC 8926: UDP and behind; the options are a multiple of four bytes."""
    head = struct.pack(">BBHI", version << 6 | len(options) // 4, 0, protocol, vni << 8)
    return udp(head + options + body, sport=0xD002, dport=6081)


def erspan2(frame, session=7, version=1):
    """The header of ERSPAN II and the frame; GRE with a sequence number goes before it."""
    return struct.pack(">HHI", version << 12 | 100, session, 5) + frame


def erspan3(frame, session=7, kind=0, sub=False):
    """The header of ERSPAN III (granularity 3, a subheader if `sub`)."""
    return struct.pack(">HHIHH", 2 << 12, session, 123456, 0, kind << 10 | 6 | sub) + bytes(8 * sub) + frame


def mpls(body, labels=(16,)):
    """RFC 3032: labels from the outside in."""
    last = len(labels) - 1
    return b"".join(struct.pack(">I", label << 12 | (n == last) << 8 | 64) for n, label in enumerate(labels)) + body


OUTER_A, OUTER_B = bytes([10, 9, 9, 2]), bytes([10, 9, 9, 1])
OUTER_6A, OUTER_6B = bytes.fromhex("20010db8" + "00" * 11 + "a2"), bytes.fromhex("20010db8" + "00" * 11 + "b1")


def outer(body, protocol, version=4):
    """An IP packet between the outer addresses."""
    if version == 4:
        return ipv4(body, src=OUTER_A, dst=OUTER_B, protocol=protocol, ip_id=9)
    return ipv6(body, src=OUTER_6A, dst=OUTER_6B, following=protocol)


def outer_ethernet(body, version=4, tags=()):
    """That IP packet in a frame."""
    return ethernet(body, 0x0800 if version == 4 else 0x86DD, tags)


#: Name -> (function of a frame giving the outer IP protocol and what follows it, vni, session, sequence).
TUNNELS = {
    "vxlan": (lambda frame: (17, vxlan(frame, 4242)), 4242, None, None),
    "vxlan_group_policy": (lambda frame: (17, vxlan(frame, 0xFFFFFF, flags=0x88)), 0xFFFFFF, None, None),
    "geneve": (lambda frame: (17, geneve(frame, vni=5)), 5, None, None),
    "geneve_options": (
        lambda frame: (17, geneve(frame, vni=6, options=bytes.fromhex("0102800100000001") * 3)),
        6,
        None,
        None,
    ),
    "geneve_ip": (lambda frame: (17, geneve(network(frame)[1], network(frame)[0], vni=7)), 7, None, None),
    "gre": (lambda frame: (47, gre(network(frame)[1], network(frame)[0])), None, None, None),
    "gre_all": (
        lambda frame: (47, gre(network(frame)[1], network(frame)[0], key=77, sequence=8, checksum=True)),
        None,
        None,
        8,
    ),
    "gretap": (lambda frame: (47, gre(frame, 0x6558)), None, None, None),
    "gretap_key": (lambda frame: (47, gre(frame, 0x6558, key=77)), 77, None, None),
    "gretap_key_sequence": (lambda frame: (47, gre(frame, 0x6558, key=0x100001, sequence=2)), 0x100001, None, 2),
    "nvgre": (lambda frame: (47, gre(frame, 0x6558, key=0x12345678)), 0x123456, None, None),
    "erspan1": (lambda frame: (47, gre(frame, 0x88BE)), None, None, None),
    "erspan2": (lambda frame: (47, gre(erspan2(frame, 1023), 0x88BE, sequence=99)), None, 1023, 99),
    "erspan3": (lambda frame: (47, gre(erspan3(frame, 6), 0x22EB, sequence=99)), None, 6, 99),
    "erspan3_sub": (lambda frame: (47, gre(erspan3(frame, 6, sub=True), 0x22EB, sequence=99)), None, 6, 99),
    "erspan3_ip": (lambda frame: (47, gre(erspan3(network(frame)[1], 6, 2), 0x22EB, sequence=99)), None, 6, 99),
    "ipip": (lambda frame: ({0x0800: 4, 0x86DD: 41}[network(frame)[0]], network(frame)[1]), None, None, None),
    "mpls_in_ip": (lambda frame: (137, mpls(network(frame)[1], (3, 17))), None, None, None),
    "mpls_in_gre": (lambda frame: (47, gre(mpls(network(frame)[1]), 0x8847)), None, None, None),
}
#: Tunnels that carry the packet without its Ethernet header.
WITHOUT_ETHERNET = {"geneve_ip", "gre", "gre_all", "erspan3_ip", "ipip", "mpls_in_ip", "mpls_in_gre"}
