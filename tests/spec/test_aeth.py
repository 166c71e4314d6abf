"""AETH codes against IBTA's tables 44 to 46, spelled out."""

from __future__ import annotations

import pytest

from roce_dissect.spec import aeth


def test_rnr_timers():
    """Table 45, in milliseconds."""
    ms = [
        655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84,
        5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
    ]  # fmt: skip
    assert list(aeth.RNR_WAIT_NS) == [round(value * 1e6) for value in ms]


def test_credits():
    """Table 46: from 2 on each second code doubles."""
    assert len(aeth.CREDITS) == 31
    assert aeth.CREDITS[:5] == (0, 1, 2, 3, 4)
    assert all(aeth.CREDITS[code] == 2 * aeth.CREDITS[code - 2] for code in range(4, 31))
    assert aeth.CREDITS[30] == 32768
    assert aeth.NO_CREDIT_LIMIT == 31


@pytest.mark.parametrize(
    ("syndrome", "kind", "name"),
    [
        (0x1F, "ACK", "ACK"),
        (0x00, "ACK", "ACK"),
        (0x9F, "ACK", "ACK"),  # bit 7 is reserved
        (0x2C, "RNR_NAK", "RNR NAK 0.64 ms"),
        (0x20, "RNR_NAK", "RNR NAK 655.36 ms"),
        (0x40, "RESERVED", "reserved syndrome 0x40"),
        (0x60, "NAK", "NAK PSN sequence error"),
        (0x61, "NAK", "NAK invalid request"),
        (0x62, "NAK", "NAK remote access error"),
        (0x63, "NAK", "NAK remote operational error"),
        (0x64, "NAK", "NAK invalid RD request"),
        (0x65, "NAK", "NAK code 5"),
        (0x7F, "NAK", "NAK code 31"),
        (0xE0, "NAK", "NAK PSN sequence error"),
    ],
)
def test_syndrome(syndrome, kind, name):
    assert aeth.syndrome_kind(syndrome).name == kind
    assert aeth.syndrome_name(syndrome) == name


def test_every_syndrome_has_a_name():
    assert all(aeth.syndrome_name(value) for value in range(256))
    assert {int(code) for code in aeth.FATAL_NAKS} == {1, 2, 3}
