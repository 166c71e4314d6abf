"""Points for a picture, from packets of any number, in bounded memory.

A screen has some two thousand by one thousand places. So up to `KEEP` points of a kind are kept as they are, and beyond
that one for each place of a grid: what is seen stays the same, and rare marks stay whole, since each kind has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from roce_dissect.columns import PACKETS
from roce_dissect.errors import CaptureError

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["KEEP", "Cloud", "Staircase", "column", "packet_pieces"]

#: Points of one kind that are kept whatever happens.
KEEP = 20_000
_GRID = (2048, 1024)


class Cloud:
    """Points (time, PSN, size) of one kind.

    Parameters
    ----------
    keep : int
        Up to so many points, all are kept; beyond, one for each place of a grid, and never more than `keep`.

    Attributes
    ----------
    count : int
        Points that were added.
    """

    def __init__(self, keep: int = KEEP) -> None:
        self.count = 0
        self._keep = keep
        self._pieces: list[np.ndarray] = []
        self._held = 0

    def add(self, time_ns: np.ndarray, psn: np.ndarray, size: np.ndarray | None = None) -> None:
        """Add points: int64 arrays of equal length; `size` is 0 where not given."""
        if len(time_ns) == 0:
            return
        self.count += len(time_ns)
        self._held += len(time_ns)
        self._pieces.append(np.stack([time_ns, psn, np.zeros_like(time_ns) if size is None else size]))
        if self._held > 4 * self._keep:
            self._thin()

    def points(self) -> np.ndarray:
        """What is kept: shape (3, n), int64: time in nanoseconds, unwrapped PSN, size."""
        if self._held > self._keep:
            self._thin()
        return np.concatenate(self._pieces, axis=1) if self._pieces else np.zeros((3, 0), np.int64)

    def _thin(self) -> None:
        points = np.concatenate(self._pieces, axis=1)
        columns, rows = _GRID
        while points.shape[1] > self._keep:
            place = _cells(points[0], columns) * rows + _cells(points[1], rows)
            points = points[:, np.sort(np.unique(place, return_index=True)[1])]
            columns, rows = max(columns // 2, 1), max(rows // 2, 1)
        self._pieces, self._held = [points], points.shape[1]


class Staircase:
    """The highest value so far, as the places where it rises.

    Parameters
    ----------
    keep : int
        Up to so many rises, all are kept; beyond, the first and the last in each column of a screen.

    Attributes
    ----------
    count : int
        Values that were added.
    """

    def __init__(self, keep: int = KEEP) -> None:
        self.count = 0
        self._keep = keep
        self._top = np.iinfo(np.int64).min
        self._last = 0
        self._pieces: list[np.ndarray] = []
        self._held = 0

    def add(self, time_ns: np.ndarray, psn: np.ndarray) -> None:
        """Add values in time order: int64 arrays of equal length."""
        if len(psn) == 0:
            return
        self.count += len(psn)
        top = np.maximum.accumulate(np.concatenate([[self._top], psn]))
        rises = np.flatnonzero(top[1:] > top[:-1])
        self._top, self._last = top[-1], int(time_ns[-1])
        self._pieces.append(np.stack([time_ns[rises], psn[rises]]))
        self._held += len(rises)
        if self._held > 4 * self._keep:
            self._thin()

    def points(self) -> np.ndarray:
        """Shape (2, n), int64: time in nanoseconds, and the value from then on; the last time is the last value's."""
        if not self._pieces:
            return np.zeros((2, 0), np.int64)
        return np.concatenate([*self._pieces, [[self._last], [self._top]]], axis=1)

    def _thin(self) -> None:
        # Within a column of the screen only where the line comes in and where it leaves can be seen.
        points = np.concatenate(self._pieces, axis=1)
        place = _cells(points[0], min(_GRID[0], self._keep))
        change = np.flatnonzero(np.diff(place)) + 1
        edges = np.unique(np.concatenate([[0], change, change - 1, [len(place) - 1]]))
        if len(edges) > self._keep:  # times that jump to and fro
            edges = edges[:: len(edges) // self._keep + 1]
        points = points[:, edges]
        self._pieces, self._held = [points], points.shape[1]


def _cells(values: np.ndarray, cells: int) -> np.ndarray:
    """Which of `cells` equal parts of their range the values lie in."""
    low = values.min()
    return ((values - low) / (float(values.max() - low) + 1.0) * cells).astype(np.int64)


def column(frame: pd.DataFrame, name: str, absent: int = 0) -> np.ndarray:
    """A packet column as int64; `absent` where it has no value, or where the DataFrame lacks it.

    Coded columns give the numbers of their vocabulary.
    """
    if name not in frame.columns:
        return np.full(len(frame), absent, np.int64)
    values = frame[name]
    if isinstance(values.dtype, pd.CategoricalDtype):
        terms = PACKETS[name].terms
        if terms is None:
            raise TypeError(f"{name} is not a coded column")
        numbers = np.array([*(int(terms[word.upper()]) for word in values.cat.categories), absent], np.int64)
        return numbers[values.cat.codes.to_numpy()]  # code -1, no value, is the last one
    missing = values.isna().to_numpy(bool)
    if not missing.any():
        return values.to_numpy(dtype=np.int64)
    numbers = values.to_numpy(dtype=np.int64, na_value=0)  # filled before the cast: `absent` may not fit the dtype
    return np.where(missing, absent, numbers)


def packet_pieces(analysis: Analysis, connection: int | None, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Packets piece by piece. Where the analysis already knows that its capture breaks off, this ends there, too."""
    try:
        yield from analysis.iter_packets(connection, columns)
    except CaptureError:
        if analysis.capture.get("complete", True):
            raise
