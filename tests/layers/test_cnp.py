"""CNP: 16 reserved bytes that are no payload."""

from __future__ import annotations

from scapy.layers.l2 import Ether
from scapy.packet import Raw

from roce_dissect.layers import BTH, CNP

# tshark 4.0.17: udp.srcport 0, bth.opcode 129, bth.padcnt 0, bth.p_key 32769, bth.destqp 0xabcdef, bth.a 0, bth.psn 0.
# The rest is "vendor data" to it, and FECN and BECN a reserved byte, 0x40 (trap 2). Layout: IBTA A17.9.3.
FRAME = bytes.fromhex(
    "0200000000020200000000010800 456a003c000100004011f642c0000201c0000202 000012b700280000"
    "8140800140abcdef00000000 00000000000000000000000000000000 efbeadde"
)


def test_dissects():
    packet = Ether(FRAME)
    bth = packet[BTH]
    assert (bth.opcode, bth.mig_req, bth.p_key, bth.dest_qp, bth.ack_req, bth.psn) == (0x81, 1, 0x8001, 0xABCDEF, 0, 0)
    assert (bth.fecn, bth.becn, bth.icrc) == (0, 1, 0xDEADBEEF)
    assert packet[CNP].reserved == bytes(16)
    assert Raw not in packet
    assert bytes(packet) == FRAME


def test_laid_upon_a_bth_makes_it_a_cnp():
    packet = BTH(mig_req=1, p_key=0x8001, dest_qp=0xABCDEF, icrc=0xDEADBEEF) / CNP()
    assert bytes(packet) == FRAME[42:]
