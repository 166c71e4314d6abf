"""LRH and VCRC of native InfiniBand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.packet import Padding, Raw

from roce_dissect.layers import BTH, DETH, GRH, LRH, RETH, CrcVerdict, CutHeader
from roce_dissect.layers.vcrc import vcrc_of

# Made for the test; written as an ERF record of type 21, tshark 4.0.17 reads: lrh.vl 7, lver 0, sl 1, reserved2 0,
# lnh 2, dlid 14172, reserved5 0, pktlen 14, slid 6098; bth.opcode 10, bth.padcnt 2, p_key 9351, destqp 0x87b1b3, a 0,
# psn 0x0dec2a; reth.va 0x01710a1c015d4002, r_key 0x38f27a05, dmalen 14; invariant.crc 0x9625b75a, variant.crc 0x45fa.
# Up to the ICRC it is the sample packet of IBTA Vol. 1, 7.8.
LOCAL = bytes.fromhex(
    "7012375c000e17d2 0a20248700 87b1b3000dec2a 01710a1c015d400238f27a050000000e"
    "bb884d85fd5cfba4728bc0690ed4 0000 9625b75a 45fa"
)


def test_fields():
    packet = LRH(LOCAL)
    assert (packet.vl, packet.lver, packet.sl, packet.lnh, packet.dlid) == (7, 0, 1, 2, 14172)
    assert (packet.reserved2, packet.reserved5, packet.pkt_len, packet.slid) == (0, 0, 14, 6098)
    bth, reth = packet[BTH], packet[RETH]
    assert (bth.opcode, bth.pad_count, bth.p_key, bth.dest_qp, bth.ack_req, bth.psn) == (
        10,
        2,
        9351,
        0x87B1B3,
        0,
        0xDEC2A,
    )
    assert (reth.va, reth.r_key, reth.dma_len) == (0x01710A1C015D4002, 0x38F27A05, 14)
    assert (bth.pad, bth.icrc, packet.vcrc) == (bytes(2), 0x5AB72596, 0xFA45)
    assert (packet.verify_vcrc(), bth.verify_icrc()) == (CrcVerdict.GOOD, CrcVerdict.GOOD)
    assert bytes(packet) == LOCAL
    assert "vcrc      = 0xfa45" in packet.show(dump=True)


def test_built_as_the_literal():
    packet = (
        LRH(vl=7, sl=1, dlid=0x375C, slid=0x17D2)
        / BTH(opcode="RC WRITE ONLY", p_key=0x2487, dest_qp=0x87B1B3, psn=0xDEC2A)
        / RETH(va=0x01710A1C015D4002, r_key=0x38F27A05, dma_len=14)
        / LOCAL[36:50]
    )
    assert bytes(packet) == LOCAL


@pytest.mark.parametrize("bit", [3, 7 * 8, 20 * 8 + 1, len(LOCAL) * 8 - 20, len(LOCAL) * 8 - 1])
def test_vcrc_covers_every_bit(bit):
    changed = bytearray(LOCAL)
    changed[bit // 8] ^= 1 << bit % 8
    assert LRH(bytes(changed)).verify_vcrc() is CrcVerdict.BAD


@settings(deadline=None)  # a busy machine is no fault
@given(st.binary(max_size=60))
def test_vcrc_by_long_division(data):
    """The same remainder, computed as the specification writes it: polynomial 0x100B, bits least significant first."""
    register = 0xFFFF
    for byte in data:
        for bit in range(8):
            top = register >> 15 ^ (byte >> bit & 1)
            register = register << 1 & 0xFFFF ^ (0x100B if top else 0)
    reflected = int(f"{register ^ 0xFFFF:016b}"[::-1], 2)
    assert vcrc_of(data) == reflected


def test_grh_between():
    packet = LRH(dlid=5, slid=6) / GRH(sgid="fe80::1", dgid="fe80::2") / BTH(opcode="UD SEND ONLY") / DETH() / b"hello"
    read = LRH(bytes(packet))
    assert (read.lnh, read.pkt_len, read[GRH].pay_len) == (3, 20, 32)
    assert (read[Raw].load, read[BTH].pad) == (b"hello", bytes(3))
    assert read[BTH].verify_icrc()
    assert read.verify_vcrc()


def test_the_length_of_the_lrh_wins_over_pay_len():
    read = LRH(bytes(LRH() / GRH(pay_len=16) / BTH() / b"abcdefgh"))
    assert read[Raw].load == b"abcdefgh"
    assert bytes(read) == bytes(LRH() / GRH(pay_len=16) / BTH() / b"abcdefgh")


def test_sliced_at_every_length():
    for size in range(1, len(LOCAL)):
        packet = LRH(LOCAL[:size])
        assert bytes(packet) == LOCAL[:size]
        if size >= 8:
            assert packet.vcrc == LOCAL[-2:][: max(0, size - len(LOCAL) + 2)]
            assert packet.verify_vcrc() is CrcVerdict.UNKNOWN
        assert (CutHeader in packet) == (size not in {8, 20, *range(36, 58)})


def test_what_follows_the_vcrc_is_padding():
    packet = LRH(LOCAL + b"\0\0\0")
    assert packet[Padding].load == bytes(3)
    assert packet.vcrc == 0xFA45
    assert bytes(packet) == LOCAL + bytes(3)


@pytest.mark.parametrize("lnh", [0, 1])
def test_raw_packets_are_not_taken_apart(lnh):
    packet = LRH(bytes([LOCAL[0], LOCAL[1] & 0xFC | lnh]) + LOCAL[2:])
    assert BTH not in packet
    assert packet.vcrc == 0xFA45


@pytest.mark.parametrize("words", [0, 1, 2])
def test_a_length_without_room_holds_nothing(words):
    packet = LRH(LOCAL[:5] + bytes([words]) + LOCAL[6:])
    assert BTH not in packet
    assert packet.vcrc == int.from_bytes(LOCAL[8:10], "little")
    assert bytes(packet) == LOCAL[:5] + bytes([words]) + LOCAL[6:]


def test_a_packet_too_long_to_be_told_leaves_the_bits_beside_the_length():
    packet = LRH(bytes(LRH() / BTH() / bytes(9000)))
    assert (packet.reserved5, packet.pkt_len) == (0, (8 + 12 + 9000 + 4) // 4 % 2048)


def test_given_and_not_built():
    assert bytes(LRH(vcrc=0x0102) / BTH()).endswith(bytes.fromhex("0201"))
    assert bytes(LRH(pkt_len=99) / BTH())[4:6] == bytes.fromhex("0063")
    assert LRH().verify_vcrc() is CrcVerdict.UNKNOWN


def test_link_type():
    assert conf.l2types[247] is LRH
