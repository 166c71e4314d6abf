"""Which sightings of packets are the first ones, over any number of blocks, in bounded memory.

The sightings of a packet form a group, which ends when none came for `WINDOW_NS`, or within `REACH` packets: then an
equal packet is another one. Where sightings tell by what way they came (two ports of a switch, two files), the n-th one
of a way is a further sighting of the n-th packet: it is the first only where no other way has shown as many. So a
packet that one capture point lacks shifts nothing, and genuine repeats that are equal bit for bit stay as many as they
were. Where nothing tells the ways apart, the 1st, the (K + 1)th, the (2 K + 1)th of a group are first ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["REACH", "WINDOW_NS", "Sightings", "groups_end"]

#: How long after a sighting the next one of the same packet may come: the way from one end of a network to the other
#: with full buffers on it takes milliseconds, clocks of two hosts that keep time differ by less than this. A resend
#: that is equal bit for bit (IPv6) comes after 4 ms and more, so that it may be in the same group: hence the counting.
WINDOW_NS = 100_000_000

#: Packets between two sightings, at most. Nothing older is remembered: that bounds memory (some 5 MB) and time (65,536
#: sightings are sorted with each block) whatever a capture holds. A sighting that comes later counts as a first one.
REACH = 1 << 16


@dataclass(slots=True)
class _Known:
    """Sightings so far, a row for each (packet, way), sorted by packet; arrays of equal length."""

    key: np.ndarray  # uint64, the packet
    way: np.ndarray  # uint64
    count: np.ndarray  # int64, sightings of it by this way
    best: np.ndarray  # int64, packets that the group has shown, less one
    clock: np.ndarray  # int64, time and place of the last one by this way
    place: np.ndarray
    group_clock: np.ndarray  # int64, of the last one by any way
    group_place: np.ndarray

    def pick(self, rows: np.ndarray) -> _Known:
        return _Known(*(getattr(self, name)[rows] for name in self.__slots__))

    def merged(self, other: _Known) -> _Known:
        """Both, by packet; each of them is in this order already, which the stable sort makes use of."""
        joined = _Known(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))
        return joined.pick(np.argsort(joined.key, kind="stable"))


class Sightings:
    """Counts the sightings of packets.

    Parameters
    ----------
    copies : int
        Sightings of each packet by one way.
    window_ns : int
        How long after a sighting the next one may come.
    """

    def __init__(self, copies: int, window_ns: int = WINDOW_NS) -> None:
        self._copies = copies
        self._window = window_ns
        self._clock: int | None = None  # greatest time so far
        self._place = 0  # packets so far
        no, numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._known = _Known(no, no, *[numbers] * 6)

    def further(self, keys: np.ndarray, ways: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Which of the next packets were seen before.

        Parameters
        ----------
        keys, ways : numpy.ndarray
            uint64, shape (n,): what packet it is, and by what way it came.
        times : numpy.ndarray
            int64, shape (n,), ns.

        Returns
        -------
        numpy.ndarray
            bool, shape (n,).
        """
        if len(keys) == 0:
            return np.zeros(0, bool)
        # the others stay as they are: with each block only what it names is sorted
        named = _named(self._known.key, keys)
        known, resting = self._known.pick(named), self._known.pick(~named)
        old = len(known.key)
        # a clock that runs backwards stands still here
        clocks = np.maximum.accumulate(times)
        clocks = clocks if self._clock is None else np.maximum(clocks, self._clock)
        self._clock = int(clocks[-1])
        places = self._place + np.arange(len(keys))
        self._place += len(keys)

        everything = _Known(
            np.concatenate([known.key, keys]),
            np.concatenate([known.way, ways]),
            np.concatenate([known.count, np.ones(len(keys), np.int64)]),
            np.concatenate([known.best, np.full(len(keys), -1)]),
            np.concatenate([known.clock, clocks]),
            np.concatenate([known.place, places]),
            np.concatenate([known.group_clock, clocks]),
            np.concatenate([known.group_place, places]),
        )
        order = np.argsort(everything.key, kind="stable")
        rows = everything.pick(order)
        new = order >= old
        begins = groups_end(rows.key, rows.group_clock, rows.group_place, self._window, new)
        group = np.cumsum(begins) - 1

        number = self._numbers(rows, group, new)
        packet = np.where(new, (number - 1) // self._copies, rows.best)
        # the greatest so far of each group: groups are set apart by more than any number in them
        apart = group * (int(packet.max()) + 2)
        reached = np.maximum.accumulate(packet + 1 + apart)
        before = np.empty_like(reached)
        before[1:] = reached[:-1]
        before[begins] = apart[begins]
        further = np.zeros(len(keys), bool)
        further[order[new] - old] = (packet + 1 + apart <= before)[new]

        rows.count, rows.best = number, reached - apart - 1
        self._known = self._open(resting).merged(self._remembered(rows, group, begins))
        return further

    def _open(self, known: _Known) -> _Known:
        """What later sightings may continue: the next one has a greater place, and no earlier time."""
        near = known.place > self._place - 1 - REACH
        near &= _distance(known.clock, np.full(len(known.clock), self._clock)) <= self._window
        return known if near.all() else known.pick(near)

    def _numbers(self, rows: _Known, group: np.ndarray, new: np.ndarray) -> np.ndarray:
        """int64: the how manieth sighting of its packet by its way each one is."""
        order = np.lexsort((rows.way, group))  # stable: of equal ones, in order of time
        begins = np.ones(len(order), bool)
        begins[1:] = np.diff(group[order]) != 0
        begins[1:] |= rows.way[order][1:] != rows.way[order][:-1]
        clock, place = rows.clock[order], rows.place[order]
        begins[1:] |= _apart(clock, place, self._window) & new[order][1:]  # silent for too long: it counts anew
        total = np.cumsum(rows.count[order])
        first = np.flatnonzero(begins)
        offset = total[first] - rows.count[order][first]
        number = np.empty(len(order), np.int64)
        number[order] = total - np.repeat(offset, np.diff(np.append(first, len(order))))
        return number

    def _remembered(self, rows: _Known, group: np.ndarray, begins: np.ndarray) -> _Known:
        """The groups that later sightings may continue."""
        # the last group of each packet, and its last row, which knows the whole group
        ends = np.append(begins[1:], True)
        last_of_key = np.append(rows.key[1:] != rows.key[:-1], True)
        last = np.flatnonzero(ends)
        of_group = last[group]
        rows.best, rows.group_clock, rows.group_place = (
            rows.best[of_group], rows.group_clock[of_group], rows.group_place[of_group],
        )  # fmt: skip
        # of each way the last row, which has its count
        order = np.lexsort((rows.place, rows.way, group))
        latest = np.ones(len(order), bool)
        latest[:-1] = (np.diff(group[order]) != 0) | (rows.way[order][1:] != rows.way[order][:-1])
        keep = np.zeros(len(order), bool)
        keep[order[latest]] = True
        return self._open(rows.pick(keep & last_of_key[of_group]))


def _named(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """bool: which of the known keys, which are sorted, are among others."""
    asked = np.sort(keys)
    begin, end = np.searchsorted(known, asked, "left"), np.searchsorted(known, asked, "right")
    ranges = np.bincount(begin, minlength=len(known) + 1) - np.bincount(end, minlength=len(known) + 1)
    named: np.ndarray = np.cumsum(ranges)[:-1] > 0
    return named


def groups_end(
    keys: np.ndarray, clocks: np.ndarray, places: np.ndarray, window_ns: int, new: np.ndarray | None = None
) -> np.ndarray:
    """Where another group begins, among sightings sorted by packet and, within it, in order.

    Parameters
    ----------
    keys : numpy.ndarray
        uint64, shape (n,).
    clocks, places : numpy.ndarray
        int64, shape (n,): times (ns), which never run backwards within a packet, and numbers of packets.
    window_ns : int
        Greatest time between two sightings.
    new : numpy.ndarray, optional
        bool, shape (n,): rows before which a group may end; default all.

    Returns
    -------
    numpy.ndarray
        bool, shape (n,).
    """
    begins = np.ones(len(keys), bool)
    apart = _apart(clocks, places, window_ns)
    begins[1:] = (keys[1:] != keys[:-1]) | (apart if new is None else apart & new[1:])
    return begins


def _apart(clocks: np.ndarray, places: np.ndarray, window_ns: int) -> np.ndarray:
    """bool, shape (n - 1,): whether each sighting is too far behind the one before it."""
    apart: np.ndarray = (_distance(clocks[:-1], clocks[1:]) > window_ns) | (np.diff(places) > REACH)
    return apart


def _distance(earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
    """uint64, ns: any two times of 64 bits have a distance."""
    distance: np.ndarray = later.view(np.uint64) - earlier.view(np.uint64)
    return distance
