"""BTH: each field beside tshark's reading, and what building fills in."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Padding, Raw

from roce_dissect.layers import AETH, BTH, RETH
from roce_dissect.spec.opcodes import HEADERS, Opcode, operation_name

# tshark 4.0.17: udp.srcport 4791, udp.length 48, bth.opcode 38, se 1, m 1, padcnt 0, tver 0, p_key 32769,
# destqp 0xabcdef, a 1, psn 1193046, reth.va 0x1122334455667788, r_key 0x99aabbcc, dmalen 8192, data 0001020304050607
FRAME = bytes.fromhex(
    "0200000000020200000000010800 456a0044000100004011f63ac0000201c0000202 12b712b700300000"
    "26c0800100abcdef80123456 112233445566778899aabbcc00002000 0001020304050607 efbeadde"
)


def test_fields():
    packet = Ether(FRAME)
    bth = packet[BTH]
    assert (bth.opcode, bth.se, bth.mig_req, bth.pad_count, bth.tver, bth.p_key) == (38, 1, 1, 0, 0, 32769)
    assert (bth.dest_qp, bth.ack_req, bth.psn) == (0xABCDEF, 1, 1193046)
    assert packet[Raw].load == bytes.fromhex("0001020304050607")
    assert bytes(packet) == FRAME


@pytest.mark.parametrize(
    ("byte", "mask", "name"),
    # IBTA 9.2: figure of the BTH; tshark shows FECN and BECN as a reserved byte (trap 2)
    [(1, 0x80, "se"), (1, 0x40, "mig_req"), (1, 0x30, "pad_count"), (1, 0x0F, "tver"), (4, 0x80, "fecn"),
     (4, 0x40, "becn"), (4, 0x3F, "reserved6"), (8, 0x80, "ack_req"), (8, 0x7F, "reserved7")],
)  # fmt: skip
def test_bits(byte, mask, name):
    header = bytearray(12)
    header[byte] = mask
    bth = BTH(bytes(header) + bytes(8))
    set_fields = {field for field, value in bth.fields.items() if value and field not in {"pad", "icrc"}}
    assert set_fields == {name}
    assert bth.fields[name] == mask >> (mask & -mask).bit_length() - 1


def test_frame_longer_than_the_packet():
    # ACK in a frame that Ethernet filled up to 64 bytes with FCS: neither fill nor FCS is payload or ICRC.
    frame = bytes.fromhex(
        "02005e00000202005e0000010800 450000309d2940004011543fc0a86401c0a86402 fa2412b7001c0000"
        "1100ffff0000007a00370eeb 1f000001 aa02e77f"
    )
    packet = Ether(frame + b"\0FCS!")
    assert packet[BTH].icrc == 0x7FE702AA
    assert packet[AETH].payload == packet[Padding]
    assert packet[Padding].load == b"\0FCS!"
    assert bytes(packet) == frame + b"\0FCS!"


@pytest.mark.parametrize("length", [0, 7, 8, 12, 20, 23])
def test_udp_length_without_room(length):
    datagram = bytes.fromhex("c00012b7") + length.to_bytes(2, "big") + bytes(2) + bytes(range(1, 29))
    packet = UDP(datagram)
    assert bytes(packet) == datagram
    if BTH in packet:
        assert packet[BTH].icrc == b""


@pytest.mark.parametrize("size", range(9))
def test_pad_is_built_from_the_payload(size):
    built = BTH(bytes(BTH(icrc=0xDEADBEEF) / RETH() / Raw(b"x" * size))[:12] + b"x" * size + bytes(-size % 4 + 4))
    assert (built.pad_count, built.pad) == (-size % 4, bytes(-size % 4))
    assert len(bytes(BTH() / (b"x" * size))) % 4 == 0


def test_what_is_given_is_kept():
    assert bytes(BTH(pad_count=3, icrc=1) / b"abcd")[-7:] == bytes.fromhex("000000 01000000")
    assert bytes(BTH(pad=b"zz", icrc=b"wire") / b"ab")[12:] == b"abzzwire"
    assert BTH(bytes(BTH(pad=b"zz") / b"ab")).pad_count == 2
    assert BTH(bytes(BTH(pad=b"z") / b"ab")).pad_count == 1  # wrong, as it was asked for
    assert bytes(BTH(pad_count=0, icrc=b"") / b"abc")[12:] == b"abc"


def test_opcode_by_name():
    for code in HEADERS:
        assert BTH(opcode=operation_name(code)).opcode == BTH(opcode=Opcode(code)).opcode == code
        assert BTH(opcode=Opcode(code).name).opcode == code
    assert "opcode=RC WRITE FIRST " in repr(BTH(opcode=6))
    assert BTH(opcode=6, dest_qp=0x11, psn=5).summary() == "BTH RC WRITE FIRST dest_qp=0x11 psn=5"
    assert BTH(opcode=0xC7).summary() == "BTH opcode 0xc7 dest_qp=0x0 psn=0"


def test_crafted_lengths_and_ports():
    built = IP(bytes(IP(src="192.0.2.1", dst="192.0.2.2") / UDP() / BTH(psn=1) / b"abc"))
    assert (built.len, built[UDP].len, built[UDP].sport, built[UDP].dport) == (48, 28, 0xC000, 4791)
    assert built[Raw].load == b"abc"
