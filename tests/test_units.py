"""Figures as people read them."""

from __future__ import annotations

import pytest

from roce_dissect.units import clock, duration, plural, size


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0 s"),
        (1, "1 ns"),
        (850, "850 ns"),
        (999_600, "1 ms"),
        (6_191_000, "6.19 ms"),
        (95_931_000, "95.9 ms"),
        (399_965_000, "400 ms"),
        (1_519_000_000, "1.52 s"),
        (5_377_709_000, "5.38 s"),
        (7_200_000_000_000, "2 h 0 min"),
        (200_000_000_000, "3 min 20 s"),
        (7_260_000_000_000, "2 h 1 min"),
        (-5_000, "-5 µs"),
    ],
)
def test_duration(time_ns, text):
    assert duration(time_ns) == text


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (64, "64 B"),
        (999_600, "1 MB"),
        (983_040, "983 kB"),
        (9_000_000_000, "9 GB"),
        (5_000_000_000_000_000, "5,000 TB"),
    ],
)
def test_size(octets, text):
    assert size(octets) == text


def test_plural():
    assert [plural(number, "packet") for number in (0, 1, 1687)] == ["0 packets", "1 packet", "1,687 packets"]


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        # capinfos: earliest packet of imp_loss1_write.server.pcap
        (1795957503269948000, "2026-11-29 13:05:03.269948 UTC"),
        (1795957503269948001, "2026-11-29 13:05:03.269948001 UTC"),
        (1_795_957_504_324_531_999, "2026-11-29 13:05:04.324531999 UTC"),
        (-1, "1969-12-31 23:59:59.999999999 UTC"),
        (-(1 << 63), "1677-09-21 00:12:43.145224192 UTC"),
        ((1 << 63) - 1, "2262-04-11 23:47:16.854775807 UTC"),
        (9_000_000_000_000_000_000, "2255-03-14 16:00:00.000000 UTC"),
    ],
)
def test_clock(time_ns, text):
    assert clock(time_ns) == text
