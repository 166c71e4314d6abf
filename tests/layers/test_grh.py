"""GRH and RoCE v1, where the packet ends before the frame does."""

from __future__ import annotations

import pytest
from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1Q, Ether
from scapy.packet import Padding, Raw

from roce_dissect.layers import AETH, BTH, GRH, RETH, CutHeader, ImmDt

ETHER = bytes.fromhex("0200000000020200000000018915")
# tshark 4.0.17: grh.ipver 6, tclass 106, flowlabel 74565, paylen 44, nxthdr 27, hoplmt 63, sgid fe80::1,
# dgid ::ffff:192.0.2.2; bth.opcode 11, se 1, m 1, padcnt 3, tver 0, p_key 32769, destqp 0xabcdef, a 1, psn 1193046;
# reth.va 0x1122334455667788, r_key 0x99aabbcc, dmalen 5; immdt feedf00d; data 68656c6c6f000000 (trap 6: with the pad);
# invariant.crc 0xefbeadde
WRITE = ETHER + bytes.fromhex(
    "66a12345002c1b3f fe800000000000000000000000000001 00000000000000000000ffffc0000202"
    "0bf0800100abcdef80123456 112233445566778899aabbcc00000005 feedf00d 68656c6c6f 000000 efbeadde"
)
# tshark: grh.paylen 20, bth.opcode 17, aeth.syndrome 5, aeth.msn 6636321, invariant.crc 0xefbeadde
ACK = ETHER + bytes.fromhex(
    "66a1234500141b3f fe800000000000000000000000000001 00000000000000000000ffffc0000202"
    "1140800100abcdef80123456 05654321 efbeadde"
)


def test_fields():
    packet = Ether(WRITE)
    grh, bth, reth = packet[GRH], packet[BTH], packet[RETH]
    assert (grh.ip_ver, grh.dscp << 2 | grh.ecn, grh.flow_label, grh.pay_len) == (6, 106, 74565, 44)
    assert (grh.dscp, grh.ecn) == (26, 2)
    assert (grh.nxt_hdr, grh.hop_limit, grh.sgid, grh.dgid) == (27, 63, "fe80::1", "::ffff:192.0.2.2")
    assert (bth.opcode, bth.se, bth.mig_req, bth.pad_count, bth.tver, bth.p_key) == (11, 1, 1, 3, 0, 32769)
    assert (bth.dest_qp, bth.ack_req, bth.psn) == (0xABCDEF, 1, 1193046)
    assert (reth.va, reth.r_key, reth.dma_len) == (0x1122334455667788, 0x99AABBCC, 5)
    assert packet[ImmDt].imm_data == 0xFEEDF00D
    assert packet[Raw].load == b"hello"
    assert (bth.pad, bth.icrc) == (bytes(3), 0xDEADBEEF)
    assert bytes(packet) == WRITE


@pytest.mark.parametrize("trailer", [b"", b"\0\0", b"FCS!", b"\xa5" * 14], ids=len)
def test_what_follows_pay_len_is_padding(trailer):
    packet = Ether(ACK + trailer)
    assert (packet[AETH].syndrome, packet[AETH].msn, packet[BTH].icrc) == (5, 6636321, 0xDEADBEEF)
    assert Raw not in packet
    assert (packet[Padding].load if Padding in packet else b"") == trailer
    assert bytes(packet) == ACK + trailer


def test_sliced_at_every_length():
    whole = Ether(WRITE)
    for size in range(len(ETHER), len(WRITE)):
        packet = Ether(WRITE[:size])
        assert bytes(packet) == WRITE[:size]
        if BTH in packet:
            assert packet[BTH].icrc == WRITE[len(WRITE) - 4 : size]
        if Raw in packet:
            assert whole[Raw].load.startswith(packet[Raw].load)
        assert (CutHeader in packet) == (size - 14 not in {0, 40, 52, 68, *range(72, 84)})


def test_built_as_the_literal():
    packet = (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / GRH(dscp=26, ecn=2, flow_label=0x12345, hop_limit=63, sgid="fe80::1", dgid="::ffff:192.0.2.2")
        / BTH(
            opcode="RC ACKNOWLEDGE", mig_req=1, p_key=0x8001, dest_qp=0xABCDEF, ack_req=1, psn=0x123456, icrc=0xDEADBEEF
        )
        / AETH(syndrome=5, msn=0x654321)
    )
    assert bytes(packet) == ACK


def test_behind_vlan_tags():
    tagged = ACK[:12] + bytes.fromhex("88a8 012c 8100 6064") + ACK[12:]
    packet = Ether(tagged)
    assert (packet[Dot1Q].vlan, packet[AETH].msn) == (100, 6636321)
    assert bytes(Ether() / Dot1Q() / GRH())[16:18] == bytes.fromhex("8915")


@pytest.mark.parametrize("link", [CookedLinux, CookedLinuxV2])
def test_in_cooked_captures(link):
    built = bytes(link() / GRH(ACK[14:]))
    packet = link(built)
    assert (packet.proto, packet[AETH].msn) == (0x8915, 6636321)


def test_another_next_header_is_not_a_bth():
    packet = Ether(ACK[:20] + b"\x11" + ACK[21:])
    assert BTH not in packet
    assert bytes(packet)[20] == 0x11
