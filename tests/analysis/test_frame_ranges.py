"""Frames that a user names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from roce_dissect.analysis.frame_ranges import FrameRanges
from roce_dissect.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "expected", "last"),
    [
        ("5", [5], 5),
        ("86-88", [86, 87, 88], 88),
        ("90, 5 ,7 - 8", [5, 7, 8, 90], 90),
        ("98-", [98, 99, 100], (1 << 40) - 1),
        ("3-3,3", [3], 3),
    ],
)
def test_ranges(text, expected, last):
    ranges = FrameRanges(text)
    numbers = np.arange(101)
    assert numbers[ranges.contain(numbers)].tolist() == expected
    assert ranges.last == last


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is no frame number and no range of them, such as 5 or 86-90"),
        ("5,", "'' is no frame number"),
        ("-5", "'-5' is no frame number"),
        ("x", "'x' is no frame number"),
        ("٣", "is no frame number"),
        ("1-2-3", "'1-2-3' is no frame number"),
        ("9" * 50, "is no frame number"),
        ("0", "frames are numbered from 1 on"),
        ("9-5", "frames 9-5: the range ends before it begins"),
    ],
)
def test_what_is_none(text, said):
    with pytest.raises(ArgumentError, match=re.escape(said)):
        FrameRanges(text)
