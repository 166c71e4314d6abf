"""Meanings: each by its source."""

from __future__ import annotations

import subprocess

import pytest

from roce_dissect.dissect import words


@pytest.mark.parametrize(
    ("value", "name"),
    # IANA's registry of DSCPs
    [(0, "default (CS0)"), (8, "CS1"), (48, "CS6"), (26, "AF31"), (10, "AF11"), (38, "AF43"), (46, "EF"),
     (44, "VOICE-ADMIT"), (1, ""), (9, ""), (42, ""), (63, "")],
)  # fmt: skip
def test_dscp(value, name):
    assert words.dscp(value) == name


def test_ecn():
    # RFC 3168, figure 1
    assert [words.ecn(value) for value in range(4)] == [
        "not ECT: takes no part in ECN", "ECT(1)", "ECT(0)", "CE: congestion experienced",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0x1F, "ACK, no credit limit"),
        (0x00, "ACK, 0 credits"),
        (0x0D, "ACK, 96 credits"),
        (0x60, "NAK PSN sequence error"),
        (0x62, "NAK remote access error"),
        (0x69, "NAK code 9"),
        (0x2C, "RNR NAK 0.64 ms (timer code 12): no receive was ready, to be sent again after that"),
        (0x20, "RNR NAK 655.36 ms (timer code 0): no receive was ready, to be sent again after that"),
        (0x40, "reserved syndrome 0x40"),
        (0xE0, "NAK PSN sequence error, reserved bit 7 set"),
    ],
)
def test_syndrome(value, text):
    assert words.syndrome(value) == text


def test_p_key():
    assert words.p_key(0xFFFF) == "full member of the default partition"
    assert words.p_key(0x7FFF) == "limited member of the default partition"
    assert words.p_key(0x8001) == "full member of partition 0x1"
    assert words.p_key(0x8000) == "invalid: partition 0"


def test_queue_pairs_and_addresses():
    assert words.qp(0).startswith("SMI")
    assert words.qp(1).startswith("GSI")
    assert words.qp(0xFFFFFF) == "multicast"
    assert words.qp(17) == ""
    assert words.mac(0xFFFFFFFFFFFF) == "broadcast"
    assert words.mac(0x0180C2000001) == "multicast"
    assert words.mac(0x02005E000001) == "locally administered"
    assert words.mac(0x0002C9000001) == ""
    assert [words.lid(value) for value in (0, 1, 0xBFFF, 0xC000, 0xFFFF)] == [
        "none", "", "", "multicast", "permissive",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0x68690000, '1751711744 as a number, as text "hi"'),
        (0x68692E21, '1751723553 as a number, as text "hi.!"'),
        (0, "0 as a number"),
        (0x68001B5B, "1744837467 as a number"),
        (7, "7 as a number"),
    ],
)
def test_immediate(value, text):
    assert words.immediate(value) == text


def test_timeouts():
    # IBTA 12.7.34: 4.096 us times 2 to the code
    assert words.ack_timeout(0) == "none: waits for ever"
    assert words.ack_timeout(14) == "67.11 ms (4.096 µs x 2^14)"
    assert words.exponential(0) == "4.096 µs (4.096 µs x 2^0)"
    assert words.exponential(31) == "8796 s (4.096 µs x 2^31)"


def test_checksum():
    # RFC 1071's rule on the header of Wikipedia's example, whose checksum is 0xb861
    header = bytes.fromhex("4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7")
    assert words.ipv4_checksum(header) == 0xB861
    assert words.ipv4_checksum(bytes(20)) == 0xFFFF


def test_printable():
    assert words.printable(b"a\x1b[2J\xff~ ") == "a.[2J.~ "


def test_ip_protocols_are_the_systems():
    names = subprocess.run(["getent", "protocols", "6", "17", "47"], capture_output=True, text=True, check=False).stdout
    if not names:
        pytest.skip("the system has no list of protocols")
    for line in names.splitlines():
        name, number = line.split()[:2]
        assert words.ip_protocol(int(number)).lower() == name
    assert words.ip_protocol(200) == "a protocol that is not dissected"
