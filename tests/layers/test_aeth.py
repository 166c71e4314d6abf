"""AETH: real acknowledgements with tshark's reading of them, and every syndrome against the specification's words."""

from __future__ import annotations

import pytest
from scapy.layers.inet import UDP

from roce_dissect.layers import AETH, BTH
from roce_dissect.spec.aeth import SyndromeKind


@pytest.mark.parametrize(
    ("aeth", "syndrome", "kind", "code", "msn", "credits", "rnr_wait_ns", "shown"),
    [
        # aeth.syndrome 31, opcode 0 (Ack), credit_count 31, msn 1
        ("1f000001", 31, SyndromeKind.ACK, 31, 1, None, None, "0x1f (ACK, no credit limit)"),
        # aeth.syndrome 5, opcode 0, credit_count 5, msn 6636321; code 5 means 6 messages (IBTA table 45)
        ("05654321", 5, SyndromeKind.ACK, 5, 6636321, 6, None, "0x5 (ACK, 6 credits)"),
        # aeth.syndrome 44, opcode 1 (RNR Nak), timer 12 (0.64 ms), msn 0
        ("2c000000", 44, SyndromeKind.RNR_NAK, 12, 0, None, 640_000, "0x2c (RNR NAK 0.64 ms)"),
        # code 0 is the longest wait
        ("20000000", 32, SyndromeKind.RNR_NAK, 0, 0, None, 655_360_000, "0x20 (RNR NAK 655.36 ms)"),
        # aeth.syndrome 96, opcode 3 (Nak), error_code 0 (PSN Sequence Error), msn 2
        ("60000002", 96, SyndromeKind.NAK, 0, 2, None, None, "0x60 (NAK PSN sequence error)"),
        # aeth.syndrome 98, opcode 3, error_code 2 (Remote Access Error), msn 6636321
        ("62654321", 98, SyndromeKind.NAK, 2, 6636321, None, None, "0x62 (NAK remote access error)"),
        ("7f000000", 127, SyndromeKind.NAK, 31, 0, None, None, "0x7f (NAK code 31)"),
        ("45000000", 69, SyndromeKind.RESERVED, 5, 0, None, None, "0x45 (reserved syndrome 0x45)"),
    ],
)
def test_syndrome(aeth, syndrome, kind, code, msn, credits, rnr_wait_ns, shown):
    udp = UDP(bytes.fromhex("d00012b7001c0000 1100ffff000000400000fef0" + aeth + "67483343"))
    ack = udp[BTH].payload
    assert (ack.syndrome, ack.kind, ack.code, ack.msn) == (syndrome, kind, code, msn)
    assert (ack.credits, ack.rnr_wait_ns) == (credits, rnr_wait_ns)
    assert ack.get_field("syndrome").i2repr(ack, ack.syndrome) == shown
    assert shown in repr(udp)
    assert shown[shown.index("(") + 1 : -1] in udp.summary()


def test_every_syndrome_can_be_shown():
    for syndrome in range(256):
        ack = AETH(syndrome=syndrome)
        assert repr(ack)
        assert ack.kind == syndrome >> 5 & 3
        assert (ack.rnr_wait_ns is not None) == (ack.kind is SyndromeKind.RNR_NAK)


def test_default_tells_no_credit_limit():
    assert bytes(AETH()) == bytes.fromhex("1f000000")
