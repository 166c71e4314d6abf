"""Packets as real stacks, NICs and mirrors make them: each gives the right values, or a status that says what is wrong.

A table: name -> (how the frame is built, what differs from the plain packet). The frames are built by hand
(`frames.py`), so that every length in them can lie; None stands for a missing value.
"""

from __future__ import annotations

import struct

import numpy as np
import pandas as pd
import pytest

import roce_dissect as rd
from roce_dissect import layout
from roce_dissect.columns import PACKETS
from roce_dissect.spec import headers as bit
from roce_dissect.terms import Status, Tunnel

DATA = b"abcdefgh"
BTH_AT = 14 + 20 + 8
#: What the plain packet gives, a SEND ONLY of eight bytes over IPv4.
PLAIN = {
    "status": Status.OK, "version": 2, "udp_sport": 0xC123, "ip_len": 52, "udp_len": 32, "opcode": 4, "dest_qp": 17,
    "psn": 0x123456, "pad_count": 0, "payload_len": 8, "payload_offset": BTH_AT + 12, "icrc": 0xA1B2C3D4,
}  # fmt: skip
ACK = {"syndrome": 0x1F, "msn": 0x010203}
RETH = {"va": 0x0102030405060708, "r_key": 0x090A0B0C, "dma_len": 8}


def body(f, opcode=4, payload=DATA, values=None, **fields):
    """BTH to ICRC."""
    return f.packet(opcode, payload, values, **({"psn": 0x123456, "icrc": 0xA1B2C3D4} | fields))


def over_ipv4(f, packet, udp_length=None, **ip):
    return f.ethernet(f.ipv4(f.udp(packet, length=udp_length), **ip), 0x0800)


def over_ipv6(f, packet, chain=b"", udp_length=None, **ip):
    return f.ethernet(f.ipv6(chain + f.udp(packet, length=udp_length), **ip), 0x86DD)


def first_fragment(f, packet, size, version=4):
    """`size` bytes of UDP and what it carries; the rest is in another frame."""
    data = f.udp(packet)[:size]
    if version == 4:
        return f.ethernet(f.ipv4(data, fragment=0x2000), 0x0800)
    return f.ethernet(f.ipv6(bytes.fromhex("1100000100000007") + data, following=44), 0x86DD)


def changed(frame, at, new):
    return frame[:at] + new + frame[at + len(new) :]


def jumbogram(f, packet, udp_length):
    """RFC 2675: the length stands in a hop-by-hop option, that of IPv6 is 0."""
    chain = struct.pack(">BBBBI", 17, 0, 0xC2, 4, 8 + 8 + len(packet))
    return over_ipv6(f, packet, chain, udp_length, following=0, length=0)


V6 = {"payload_offset": BTH_AT + 20 + 12, "ip_len": 32}
FRAGMENT = {"status": Status.FRAGMENT, "icrc": None}
ODDITIES = {
    "plain": (lambda f: over_ipv4(f, body(f)), {}),
    # -- ports and checksums
    "source port 0": (lambda f: f.ethernet(f.ipv4(f.udp(body(f), sport=0)), 0x0800), {"udp_sport": 0}),
    "CNP from source port 0": (
        lambda f: f.ethernet(f.ipv4(f.udp(body(f, 0x81, b"", becn=1, psn=0), sport=0)), 0x0800),
        {"udp_sport": 0, "opcode": 0x81, "becn": 1, "psn": 0, "payload_len": 0, "payload_offset": BTH_AT + 28,
         "ip_len": 60, "udp_len": 40},
    ),
    "IP checksum not 0": (lambda f: changed(over_ipv4(f, body(f)), 14 + 10, b"\xbe\xef"), {}),
    "UDP checksum not 0": (lambda f: changed(over_ipv4(f, body(f)), BTH_AT - 2, b"\xbe\xef"), {}),
    # -- lengths that disagree: UDP's word, and a status
    "UDP longer than IP": (
        lambda f: over_ipv4(f, body(f), udp_length=36),
        {"status": Status.MALFORMED, "udp_len": 36, "payload_len": 12, "icrc": None},
    ),
    "UDP longer than IP by an FCS that is there": (
        lambda f: over_ipv4(f, body(f), udp_length=36) + b"\x01\x02\x03\x04",
        {"status": Status.MALFORMED, "udp_len": 36, "payload_len": 12, "icrc": 0x04030201},
    ),
    "UDP shorter than IP": (
        lambda f: over_ipv4(f, body(f), udp_length=28),
        {"status": Status.MALFORMED, "udp_len": 28, "payload_len": 4, "icrc": 0x68676665},
    ),
    "UDP shorter than IPv6": (
        lambda f: over_ipv6(f, body(f), udp_length=28),
        V6 | {"status": Status.MALFORMED, "udp_len": 28, "payload_len": 4, "icrc": 0x68676665},
    ),
    "IP total length 0": (lambda f: over_ipv4(f, body(f), length=0), {"ip_len": 0}),
    "IP total length too small": (
        lambda f: over_ipv4(f, body(f), length=51), {"status": Status.MALFORMED, "ip_len": 51},
    ),
    "IP total length below its header": (
        lambda f: over_ipv4(f, body(f), length=3), {"status": Status.MALFORMED, "ip_len": 3},
    ),
    "IP total length too large": (
        lambda f: over_ipv4(f, body(f), length=1500), {"status": Status.MALFORMED, "ip_len": 1500},
    ),
    "IPv6 payload length 0": (lambda f: over_ipv6(f, body(f), length=0), V6 | {"ip_len": 0}),
    "IPv6 payload length too small": (
        lambda f: over_ipv6(f, body(f), length=31), V6 | {"status": Status.MALFORMED, "ip_len": 31},
    ),
    # -- what follows a packet
    **{f"trailer of {size} bytes and FCS": (lambda f, size=size: over_ipv4(f, body(f)) + b"\xee" * size + b"FCS.", {})
       for size in range(19, 30)},
    "version 1 with a trailer": (
        lambda f: f.ethernet(f.grh(body(f)), 0x8915) + b"\xee" * 29,
        V6 | {"version": 1, "udp_sport": None, "udp_len": None, "ip_len": 24, "payload_offset": 14 + 40 + 12},
    ),
    # -- acknowledgements with more than an AETH
    "ACK with payload": (
        lambda f: over_ipv4(f, body(f, 0x11, values=ACK)),
        ACK | {"opcode": 0x11, "ip_len": 56, "udp_len": 36, "payload_offset": BTH_AT + 16},
    ),
    "AETH of eight bytes": (
        lambda f: over_ipv4(f, body(f, 0x11, bytes(4), ACK)),
        ACK | {"opcode": 0x11, "payload_len": 4, "payload_offset": BTH_AT + 16},
    ),
    # -- small and large payloads
    "path MTU 64": (
        lambda f: over_ipv4(f, body(f, 0, bytes(64))), {"opcode": 0, "payload_len": 64, "ip_len": 108, "udp_len": 88},
    ),
    "9000 bytes": (
        lambda f: over_ipv4(f, body(f, payload=bytes(9000))), {"payload_len": 9000, "ip_len": 9044, "udp_len": 9024},
    ),
    "9000 bytes over IPv6": (
        lambda f: over_ipv6(f, body(f, payload=bytes(9000))),
        V6 | {"payload_len": 9000, "ip_len": 9024, "udp_len": 9024},
    ),
    "jumbogram that UDP can count": (
        lambda f: jumbogram(f, body(f), 32), V6 | {"ip_len": 0, "payload_offset": BTH_AT + 20 + 8 + 12},
    ),
    "jumbogram that UDP cannot count": (
        lambda f: jumbogram(f, body(f, payload=bytes(70_000)), 0),
        dict.fromkeys(PLAIN) | {"status": Status.MALFORMED, "version": 2, "udp_sport": 0xC123, "udp_len": 0,
                                "ip_len": 0, "payload_offset": BTH_AT + 20 + 8},
    ),
    # -- the ICRC
    "ICRC 0": (lambda f: over_ipv4(f, body(f, icrc=0)), {"icrc": 0}),
    "cut before its ICRC": (lambda f: over_ipv4(f, body(f))[:-4], {"icrc": None}),  # cap_len is wire_len
    "cut within its ICRC": (lambda f: over_ipv4(f, body(f))[:-1], {"icrc": None}),
    "cut within its payload": (lambda f: over_ipv4(f, body(f))[:-9], {"icrc": None}),
    "cut within its BTH": (
        lambda f: over_ipv4(f, body(f))[: BTH_AT + 11],
        dict.fromkeys(PLAIN) | {name: PLAIN[name] for name in ("version", "udp_sport", "udp_len", "ip_len")}
        | {"status": Status.CUT, "payload_offset": BTH_AT},
    ),
    "ACK without ICRC, nor counted": (
        lambda f: over_ipv4(f, body(f, 0x11, b"", ACK)[:-4]),
        {"status": Status.MALFORMED, "opcode": 0x11, "syndrome": None, "msn": None, "payload_len": 0, "ip_len": 44,
         "udp_len": 24, "icrc": 0x0302011F},
    ),
    "ACK without ICRC, but counted": (
        lambda f: over_ipv4(f, body(f, 0x11, b"", ACK))[:-4],
        ACK | {"opcode": 0x11, "payload_len": 0, "payload_offset": BTH_AT + 16, "ip_len": 48, "udp_len": 28,
               "icrc": None},
    ),
    # -- IP with more than its header
    "IPv4 options": (
        lambda f: over_ipv4(f, body(f), options=b"\x94\x04\x00\x00" + b"\x01" * 8),
        {"ip_len": 64, "payload_offset": BTH_AT + 12 + 12},
    ),
    "IPv6 hop-by-hop and destination options": (
        lambda f: over_ipv6(f, body(f), bytes.fromhex("3c00010400000000 1100010400000000"), following=0),
        V6 | {"ip_len": 48, "payload_offset": BTH_AT + 20 + 16 + 12},
    ),
    "IPv6 fragment header of a whole packet": (
        lambda f: over_ipv6(f, body(f), bytes.fromhex("1100000000000007"), following=44),
        V6 | {"ip_len": 40, "payload_offset": BTH_AT + 20 + 8 + 12},
    ),
    # -- first fragments
    "first fragment": (lambda f: first_fragment(f, body(f), 24), FRAGMENT | {"ip_len": 44}),
    "first fragment with a trailer": (
        lambda f: first_fragment(f, body(f), 24) + b"\xee" * 29, FRAGMENT | {"ip_len": 44},
    ),
    "first fragment over IPv6": (
        lambda f: first_fragment(f, body(f), 24, version=6),
        V6 | FRAGMENT | {"ip_len": 32, "payload_offset": BTH_AT + 20 + 8 + 12},
    ),
    "first fragment with its RETH": (
        lambda f: first_fragment(f, body(f, 0x0A, values=RETH), 40) + bytes(20),
        RETH | FRAGMENT | {"opcode": 0x0A, "ip_len": 60, "udp_len": 48, "payload_offset": BTH_AT + 28},
    ),
    "first fragment with half its RETH": (  # the frame's padding is none of it
        lambda f: first_fragment(f, body(f, 0x0A, values=RETH), 32) + bytes(20),
        dict.fromkeys(RETH) | FRAGMENT | {"opcode": 0x0A, "ip_len": 52, "udp_len": 48},
    ),
    "first fragment with UDP alone": (
        lambda f: first_fragment(f, body(f), 8) + bytes(18),
        dict.fromkeys(PLAIN) | {"status": Status.CUT, "version": 2, "ip_len": 28, "udp_sport": 0xC123, "udp_len": 32,
                                "payload_offset": BTH_AT},
    ),
    "first fragment that is all UDP counts": (  # the ICRC may be another's: more data is to follow
        lambda f: over_ipv4(f, body(f), fragment=0x2000), FRAGMENT,
    ),
    "first fragment of another transport version": (
        lambda f: first_fragment(f, body(f, tver=1), 24),
        FRAGMENT | {"status": Status.UNKNOWN_VERSION, "ip_len": 44},
    ),
    "tunnel in fragments": (  # the frame within is none itself: what is not there was not captured
        lambda f: f.ethernet(f.ipv4(f.vxlan(over_ipv4(f, body(f)))[:72], fragment=0x2000), 0x0800),
        {"tunnel": Tunnel.VXLAN, "payload_offset": 50 + BTH_AT + 12, "icrc": None},
    ),
}  # fmt: skip


def shown(row, name):
    """A value as users get it: None where the headers that hold it are not there."""
    column = PACKETS[name]
    there = row["present"] & column.needs == column.needs
    return row[name] if there and (not column.any_of or row["present"] & column.any_of) else None


@pytest.mark.parametrize("name", ODDITIES)
def test_right_or_said_to_be_wrong(decode, frames, name):
    build, differs = ODDITIES[name]
    frame = build(frames)
    [row], _ = decode(frame)
    expected = PLAIN | differs | {"cap_len": len(frame), "wire_len": len(frame)}
    assert {column: shown(row, column) for column in expected} == expected


@pytest.mark.parametrize("name", ["UDP longer than IP", "first fragment", "IP total length 0", "cut before its ICRC"])
def test_the_row_before_leaves_nothing(decode, frames, name):
    build, differs = ODDITIES[name]
    [_, row, after], _ = decode(over_ipv4(frames, body(frames)), build(frames), over_ipv4(frames, body(frames)))
    assert {column: shown(row, column) for column in PLAIN} == PLAIN | differs
    assert {column: shown(after, column) for column in PLAIN} == PLAIN


def test_one_icrc_on_all_packets(decode, frames):
    rows, _ = decode(*[over_ipv4(frames, body(frames, psn=psn, icrc=0xDEADBEEF)) for psn in range(200)])
    assert [(row["psn"], row["icrc"]) for row in rows] == [(psn, 0xDEADBEEF) for psn in range(200)]


def test_no_icrc_shows_as_payload_of_four_bytes_less(decode, frames):
    """Nothing in such a packet tells it from one whose ICRC is wrong: what the ICRC says of it is another matter."""
    [row], _ = decode(over_ipv4(frames, body(frames)[:-4]))
    assert (row["status"], row["payload_len"], row["icrc"]) == (Status.OK, 4, int.from_bytes(b"efgh", "little"))


@pytest.mark.parametrize("version", [4, 6])
def test_later_fragments_are_counted(decode, frames, version):
    """All but the first have no ports, be there a UDP header at the same place or not."""
    packet = body(frames, payload=bytes(100))
    for offset, more in ((1, 1), (3, 0), (0x1FFF, 1)):
        if version == 4:
            frame = over_ipv4(frames, packet, fragment=more << 13 | offset)
        else:
            chain = struct.pack(">BBHI", 17, 0, offset << 3 | more, 7)
            frame = over_ipv6(frames, packet, chain, following=44)
        rows, decoder = decode(frame)
        assert rows == []
        assert np.flatnonzero(decoder.tallies).tolist() == [layout.TALLY_FRAGMENT]


@pytest.mark.parametrize("carrier", ["ipv4", "ipv6", "v1", "native"])
def test_opcodes_without_a_name(decode, frames, carrier):
    """Reserved and vendor opcodes: no header is guessed, all behind the BTH up to pad and ICRC is payload."""
    below = {"ipv4": 42, "ipv6": 62, "v1": 54, "native": 8}[carrier]
    link_type = 247 if carrier == "native" else 1
    nameless = sorted(set(range(256)) - set(frames.CHAINS))
    assert {0x15, *range(0x18, 0x1C), 0x1E, 0x1F, 0x80, *range(0x82, 0xA0), *range(0xC0, 0x100)} <= set(nameless)
    for opcode in nameless:
        pad = opcode % 4
        fields = frames.bth(opcode, 0x123456, pad_count=pad, dest_qp=0xABCDEF, ack_req=1)
        packet = fields + bytes(range(1, 41 - pad)) + bytes(pad) + struct.pack("<I", 0xA1B2C3D4)
        frame = {
            "ipv4": over_ipv4, "ipv6": over_ipv6, "native": lambda f, packet: f.native(packet),
            "v1": lambda f, packet: f.ethernet(f.grh(packet), 0x8915),
        }[carrier](frames, packet)  # fmt: skip
        [row], _ = decode(frame, link_type=link_type)
        assert (row["status"], row["opcode"]) == (Status.UNKNOWN_OPCODE, opcode)
        assert (row["psn"], row["dest_qp"], row["ack_req"], row["icrc"]) == (0x123456, 0xABCDEF, 1, 0xA1B2C3D4)
        assert (row["payload_offset"], row["payload_len"]) == (below + 12, 40 - pad)
        assert row["present"] & sum(bit.EXTENDED_SIZE) == 0
        for cut in (len(frame) - 3, below + 12):
            [row], _ = decode(frame[:cut], wire=[len(frame)], link_type=link_type)
            assert (row["status"], row["payload_offset"]) == (Status.UNKNOWN_OPCODE, below + 12)
            assert row["payload_len"] == 40 - pad


def test_what_users_see(frames, tmp_path):
    """Words and missing values, and what takes part in the analysis."""
    whole = body(frames, payload=bytes(100))
    given = [
        first_fragment(frames, whole, 64),
        over_ipv4(frames, whole, fragment=0x0008),
        over_ipv4(frames, frames.bth(0xC7, 5) + bytes(8)),
        over_ipv4(frames, whole),
    ]
    path = tmp_path / "odd.pcap"
    path.write_bytes(frames.pcap(given))
    packets = rd.read_packets(path, ["frame", "status", "operation", "payload_len", "icrc"])
    assert packets["frame"].tolist() == [1, 3, 4]
    assert packets["status"].tolist() == ["fragment", "unknown_opcode", "ok"]
    assert packets["operation"].tolist() == ["RC SEND ONLY", "opcode 0xc7", "RC SEND ONLY"]
    assert packets["payload_len"].tolist() == [100, 4, 100]
    assert [pd.isna(value) for value in packets["icrc"]] == [True, False, False]
    capture = rd.analyze(path).capture
    assert capture["other_packets"]["ip_fragments"] == 1
    assert capture["foreign_packets"] == 1


def test_path_mtu_of_64(frames, tmp_path):
    """It is learned from FIRST and MIDDLE, and tells how many PSNs a READ takes."""
    sent = [(0x00, 0, 64), (0x01, 1, 64), (0x02, 2, 10)]
    given = [over_ipv4(frames, body(frames, opcode, bytes(size), psn=psn)) for opcode, psn, size in sent]
    given.append(over_ipv4(frames, body(frames, 0x0C, b"", RETH | {"dma_len": 256}, psn=3)))
    given.append(over_ipv4(frames, body(frames, psn=7)))
    path = tmp_path / "mtu64.pcap"
    path.write_bytes(frames.pcap(given))
    assert rd.analyze(path).packets()["verdict"].tolist() == ["first", "new", "new", "new", "new"]
