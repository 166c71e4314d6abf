"""Ranges of time: every form, exactly to the nanosecond, against the calendar of `date`."""

from __future__ import annotations

import pytest

from roce_dissect.decode.time_range import parse_time_range
from roce_dissect.errors import ArgumentError

#: 2026-11-29 13:05:03.269948 UTC, by ``date -u -d ... +%s``.
START = 1_795_957_503_269_948_000
NOON = 1_795_953_600_000_000_000  # of that day

CASES = {
    "1.5..2": (START + 1_500_000_000, START + 2_000_000_000),
    "..0.25": (None, START + 250_000_000),
    "3..": (START + 3_000_000_000, None),
    ".5..": (START + 500_000_000, None),
    " 1 .. 2 ": (START + 1_000_000_000, START + 2_000_000_000),
    "-1..0": (START - 1_000_000_000, START),
    "0.000000001..0.123456789": (START + 1, START + 123_456_789),
    "1000000000.000000001..": (START + 1_000_000_000_000_000_001, None),  # a float would lose the last digit
    "13:05:03..13:05:04.5": (NOON + 3_903_000_000_000, NOON + 3_904_500_000_000),
    "12:00..": (NOON, None),
    "2026-11-29 12:00:00..2026-11-29T13:00:00Z": (NOON, NOON + 3_600_000_000_000),
    "2026-11-29 13:05:03.269948 UTC..": (START, None),  # as the report prints it
    "2026-11-29 13:00:00.000000001+01:00..": (NOON + 1, None),
    "..2026-11-29 06:30:00-0530": (None, NOON),
    "2026-11-29..2026-11-30": (NOON - 43_200_000_000_000, NOON + 43_200_000_000_000),
    "1969-12-31 23:59:59.5..": (-500_000_000, None),
    "0..13:05:03.269948001": (START, START + 1),
}


@pytest.mark.parametrize("text", CASES)
def test_every_form(text):
    one = parse_time_range(text)
    assert one.bounds(START) == CASES[text]
    assert one.text == text


def test_the_day_is_the_first_frame_s():
    one = parse_time_range("00:00:01..")
    assert one.bounds(NOON - 1) == (NOON - 43_199_000_000_000, None)
    assert one.bounds(-1) == (-86_399_000_000_000, None)


def test_far_beyond_any_time():
    first, last = parse_time_range("-99999999999999999..99999999999999999").bounds(START)
    assert -(1 << 63) < first < 0 < last < 1 << 63


@pytest.mark.parametrize(
    "text",
    ["", "..", "5", "1,5..2", "1-2", "a..b", "2..1", "13:05:04..13:05:03", "25:00..", "12:60..", "12:00:60..",
     "2026-13-01..", "2026-02-30..", "2026-11-29 25:00..", "2026-11-29 12..", "1...2..", "nan..", "inf..", "1e3..",
     "2026-11-29 12:00+99:00.."],
)  # fmt: skip
def test_wrong_ones(text):
    with pytest.raises(ArgumentError, match=r"^time: ") as caught:
        parse_time_range(text)
    assert "\n" not in str(caught.value)
