"""Frame numbers that a user names: ``5``, ``86-90``, ``5,86-90,1000-``."""

from __future__ import annotations

import re

import numpy as np

from roce_dissect.columns import FRAME_MASK
from roce_dissect.errors import ArgumentError

__all__ = ["FrameRanges"]

_PART = re.compile(r"\s*(\d{1,13})\s*(-\s*(\d{1,13})?)?\s*", re.ASCII)


class FrameRanges:
    """Frames by their numbers in a file, from 1 as Wireshark counts.

    Parameters
    ----------
    text : str
        Numbers and ranges with commas between them; a range without an end goes to the end of the file.

    Raises
    ------
    ArgumentError
        Something else, a number 0, or a range that ends before it begins.

    Attributes
    ----------
    last : int
        The greatest number.

    Examples
    --------
    >>> FrameRanges("86-90,5").contain(np.array([5, 6, 90, 91])).tolist()
    [True, False, True, False]
    """

    def __init__(self, text: str) -> None:
        self._ranges = [_range(part) for part in text.split(",")]
        self.last = max(last for _, last in self._ranges)

    def contain(self, numbers: np.ndarray) -> np.ndarray:
        """Which of the frame numbers (integers, shape (n,)) are among them: bool, shape (n,)."""
        found = np.zeros(len(numbers), bool)
        for first, last in self._ranges:
            found |= (numbers >= first) & (numbers <= last)
        return found


def _range(part: str) -> tuple[int, int]:
    parts = _PART.fullmatch(part)
    if parts is None:
        raise ArgumentError(f"{part.strip()[:40]!r} is no frame number and no range of them, such as 5 or 86-90")
    first = int(parts[1])
    last = first if parts[2] is None else FRAME_MASK if parts[3] is None else int(parts[3])
    if first == 0:
        raise ArgumentError("frames are numbered from 1 on")
    if last < first:
        raise ArgumentError(f"frames {first}-{last}: the range ends before it begins")
    return first, last
