"""Extended headers: byte literals, with what tshark 4.0.17 reads in them.

Decoded with ``tshark --disable-heuristic rpcrdma_infiniband -T fields``. Frames with addresses 192.168.100.x are real
Soft-RoCE traffic, those with 192.0.2.x were made for the test (their ICRC, deadbeef, is not right).
"""

from __future__ import annotations

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from roce_dissect.layers import AETH, BTH, DETH, FETH, IETH, RDETH, RETH, XRCETH, AtomicAckETH, AtomicETH, ImmDt

ETH_IP_UDP = "0200000000020200000000010800 456a{ip_len}000100004011{checksum}c0000201c0000202 c00012b7{udp_len}0000"


def made(ip_len: int, checksum: str, rest: str) -> Ether:
    header = ETH_IP_UDP.format(ip_len=f"{ip_len:04x}", checksum=checksum, udp_len=f"{ip_len - 20:04x}")
    return dissected(header + rest)


def dissected(text: str) -> Ether:
    frame = bytes.fromhex(text)
    packet = Ether(frame)
    assert bytes(packet) == frame
    return packet


def values(layer) -> dict:
    return {field.name: layer.getfieldval(field.name) for field in layer.fields_desc}


def test_reth_of_a_read_request():
    # bth.opcode 12, bth.destqp 0x00007a, bth.psn 3608418, reth.va 0x00007fa5d6bc2000, reth.r_key 0x00005e8f,
    # reth.dmalen 4000, invariant.crc 0x78391ebb (big-endian: trap 7)
    packet = dissected(
        "02005e00000102005e0000020800 4500003ceb844000401105d8c0a86402c0a86401 fa2412b700280000"
        "0c00ffff0000007a80370f62 00007fa5d6bc200000005e8f00000fa0 78391ebb"
    )
    assert (packet[BTH].opcode, packet[BTH].dest_qp, packet[BTH].psn, packet[BTH].icrc) == (
        12,
        0x7A,
        3608418,
        0xBB1E3978,
    )
    assert values(packet[RETH]) == {"va": 0x00007FA5D6BC2000, "r_key": 0x5E8F, "dma_len": 4000}
    assert Raw not in packet


def test_immediate_data_behind_a_reth():
    # bth.opcode 11, reth.va 0x00007ffd45c5e5f0, reth.r_key 0x45c5e5b0, reth.dmalen 0, immdt e0000000
    packet = dissected(
        "02005e00000202005e0000010800 45000040ea24400040110734c0a86401c0a86402 ef3312b7002c0000"
        "0b00ffff00000090809b2c5d 00007ffd45c5e5f045c5e5b000000000 e0000000 d4feb38c"
    )
    assert values(packet[RETH]) == {"va": 0x00007FFD45C5E5F0, "r_key": 0x45C5E5B0, "dma_len": 0}
    assert packet[RETH].payload == packet[ImmDt]
    assert packet[ImmDt].imm_data == 0xE0000000


def test_atomic_eth():
    # bth.opcode 19, reth.va 0x00007f67bfbe1000, reth.r_key 0x00006ba4 (shown as RETH fields),
    # atomiceth.swapdt 11072869122414935808, atomiceth.cmpdt 1234605616436508552
    packet = dissected(
        "02005e00000102005e0000020800 45000048113640004011e01ac0a86402c0a86401 ca6512b700340000"
        "1300ffff0000008a803c6d3c 00007f67bfbe100000006ba499aabbccddeeff001122334455667788 5d42ee8a"
    )
    assert values(packet[AtomicETH]) == {
        "va": 0x00007F67BFBE1000,
        "r_key": 0x6BA4,
        "swap_add_data": 11072869122414935808,
        "compare_data": 1234605616436508552,
    }


def test_atomic_ack_eth_behind_an_aeth():
    # bth.opcode 18, aeth.syndrome 31, aeth.msn 1, atomicacketh.origremdt 16195404420207683079
    packet = dissected(
        "02005e00000202005e0000010800 450000383ab140004011b6afc0a86401c0a86402 c48412b700240000"
        "1200ffff0000002200f77861 1f000001 e0c1a28364452607 90b8c63c"
    )
    assert (packet[AETH].syndrome, packet[AETH].msn) == (31, 1)
    assert packet[AtomicAckETH].orig_data == 16195404420207683079


def test_ieth():
    # bth.opcode 23, bth.padcnt 1, ieth 99aabbcc, data 01020300 (trap 6: with the pad), invariant.crc 0xefbeadde
    packet = made(52, "f64a", "17d0800100abcdef80123456 99aabbcc 010203 00 efbeadde")
    assert packet[IETH].inv_r_key == 0x99AABBCC
    assert packet[Raw].load == bytes.fromhex("010203")
    assert (packet[BTH].pad, packet[BTH].icrc) == (b"\0", 0xDEADBEEF)


def test_deth_with_immediate_data():
    # bth.opcode 101, bth.padcnt 2, deth.q_key 0x80010000, deth.srcqp 0x00fedcba, immdt feedf00d, data a0a10000
    packet = made(60, "f642", "65e0800100abcdef80123456 8001000000fedcba feedf00d a0a1 0000 efbeadde")
    assert values(packet[DETH]) == {"q_key": 0x80010000, "reserved": 0, "src_qp": 0xFEDCBA}
    assert packet[ImmDt].imm_data == 0xFEEDF00D
    assert packet[Raw].load == bytes.fromhex("a0a1")


def test_rdeth():
    # No oracle decodes RD: to tshark 0x40-0x5f is NVIDIA's DC (trap 3). It reads bth.opcode 78 and 68, bth.psn 1193046.
    # Layout: IBTA 9.3.1 (reserved 8 bits, end-to-end context 24); requests have a DETH behind it, responses have not.
    packet = made(52, "f64a", "4e40800100abcdef80123456 00abcdef 01020304 efbeadde")
    assert values(packet[RDETH]) == {"reserved": 0, "ee_context": 0xABCDEF}
    assert packet[RDETH].payload == packet[Raw]
    packet = made(60, "f642", "4440800100abcdef80123456 7f123456 11223344 00fedcba 01020304 efbeadde")
    assert values(packet[RDETH]) == {"reserved": 0x7F, "ee_context": 0x123456}
    assert values(packet[DETH]) == {"q_key": 0x11223344, "reserved": 0, "src_qp": 0xFEDCBA}
    assert packet[Raw].load == bytes.fromhex("01020304")


def test_xrceth():
    # tshark reads bth.opcode 171, bth.psn 1193046, and no extended header of XRC (trap 16). Layout: IBTA annex A14
    # (reserved 8 bits, XRC SRQ 24), before the RETH and the immediate data.
    packet = made(
        72, "f636", "ab40800100abcdef80123456 00fedcba 00007fa5d6bc200000005e8f00000004 feedf00d 01020304 efbeadde"
    )
    assert values(packet[XRCETH]) == {"reserved": 0, "xrc_srq": 0xFEDCBA}
    assert values(packet[RETH]) == {"va": 0x00007FA5D6BC2000, "r_key": 0x5E8F, "dma_len": 4}
    assert (packet[ImmDt].imm_data, packet[Raw].load) == (0xFEEDF00D, bytes.fromhex("01020304"))


def test_feth_before_a_reth():
    # No tshark: 4.0 does not know opcode 0x1c, 4.4 shifts the FETH by a bit (trap 4). The program that sent this frame
    # through Linux 6.12 rxe asked for global visibility of a range of 3000 bytes; bits as in rxe_hdr.h.
    packet = dissected(
        "02005e00000102005e0000020800 45000040fd3b40004011f41cc0a86402c0a86401 c12112b7002c0000"
        "1c00ffff000000118014e003 00000001 000055a7bd4900000000022d00000bb8 32dff668"
    )
    assert values(packet[FETH]) == {"reserved": 0, "selectivity": 0, "placement": 1}
    assert packet[FETH].placement.global_visibility
    assert not packet[FETH].placement.persistence
    assert values(packet[RETH]) == {"va": 0x000055A7BD490000, "r_key": 0x22D, "dma_len": 3000}
    assert packet[BTH].icrc == 0x68F6DF32


@pytest.mark.parametrize(
    ("word", "selectivity", "placement"), [(0x10, 1, 0), (0x12, 1, 2), (0x3F, 3, 15), (0xFFFFFFC0, 0, 0)]
)
def test_feth_bits(word, selectivity, placement):
    feth = FETH(word.to_bytes(4, "big"))
    assert (feth.selectivity, feth.placement, feth.reserved) == (selectivity, placement, word >> 6)


def test_made_by_name_equals_the_literal():
    bth = BTH(opcode="UD_SEND_ONLY_IMM", se=1, mig_req=1, p_key=0x8001, dest_qp=0xABCDEF, ack_req=1, psn=0x123456)
    bth.icrc = 0xDEADBEEF
    packet = bth / DETH(q_key=0x80010000, src_qp=0xFEDCBA) / ImmDt(imm_data=0xFEEDF00D) / b"\xa0\xa1"
    # as in test_deth_with_immediate_data
    literal = "65e0800100abcdef80123456 8001000000fedcba feedf00d a0a1 0000 efbeadde"
    assert bytes(packet) == bytes.fromhex(literal)
