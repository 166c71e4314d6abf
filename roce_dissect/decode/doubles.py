"""Captures that hold nearly every frame more than once: each packet is kept once in the flow tables.

Both sides of a bridge, the ingress and the egress of a mirror, ``-i any``, merged files of two hosts: there the second
sighting of a packet is no resend. A frame that the network itself doubled is one: it reaches the receiver. So nothing
is taken out unless the whole capture is doubled, which a sample of its first packets tells; then the first sighting of
each packet counts, that is, of two ends the sender's. The others get the standing `Standing.DOUBLED`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect.decode.identity import DOUBLES_COLUMNS, WAYS, fingerprints, way_fingerprints, way_words
from roce_dissect.decode.sample import sampled
from roce_dissect.decode.sightings import WINDOW_NS, Sightings, groups_end
from roce_dissect.spec.headers import HAS_BTH, HAS_IPV4
from roce_dissect.terms import Standing

if TYPE_CHECKING:
    from roce_dissect.decode.blocks import Block

__all__ = ["DOUBLES_COLUMNS", "Doubles", "Doubling", "recognise"]

#: Sightings of each packet that are looked for: a packet that goes in and out of two bridges of a host is seen by
#: ``-i any`` on the two bridges and four of their ports.
_MOST_COPIES = 8

#: Share of the frames that must lie in groups of a multiple of K: of two capture points with a network between them
#: that loses one frame in ten, 18 in 19 do, of one that loses one in five, 8 in 9; where a network doubles one frame in
#: twenty, one in ten does.
_NEARLY_ALL = 0.8
#: Packets that must have been seen so often: fewer may repeat by chance, such as the retries of a single request.
_LEAST_PACKETS = 10
#: Live, a sample with fewer frames decides nothing: the next packets are looked at as well.
_LEAST_FRAMES = 200

#: Share of packets whose sightings differ in a way from which on the ways stand for capture points; and from which on
#: they tell all sightings apart. The first allows for frames that came twice by one way and not by the other.
_SYSTEMATIC, _APART = 0.8, 0.95

#: Share of different identifications among the packets of a host from which on equal ones mean the same packet.
_IDENTIFIED = 0.5
#: How close the sightings of a packet are looked for in the sample, in turn: within the host or the switch, between two
#: points of a network, within `WINDOW_NS`. The closer they are, the less do resends in between confuse their number.
_SPACINGS_NS = (1_000_000, 10_000_000, WINDOW_NS)
#: Where neither identification nor way tells a sighting from a resend, sightings must follow each other as closely as
#: this. No timeout is that short; what an RNR NAK calls for may be, but then not both directions have each packet as
#: often. From there on a group ends before the shortest timeout, 4 ms.
_CLOSE_NS, _BEFORE_TIMEOUTS_NS = 1_000_000, 4_000_000
#: Share of the groups whose sightings are expected within the time after which the end of the sample no longer matters.
_MOST_OF_THEM = 0.9

#: Ways whose sightings have headers of unequal length.
_LENGTHENING = {"vlan_tags", "tunnel"}


@dataclass(frozen=True, slots=True)
class Doubling:
    """How a capture is doubled.

    Attributes
    ----------
    copies : int
        Sightings of each packet.
    ways : tuple of str
        In what they differ, of `roce_dissect.decode.identity.WAYS`; empty: in nothing but time.
    by_way : bool
        Whether the ways tell all sightings of a packet apart.
    whole : bool
        Whether extended headers and ICRC are part of a packet's identity.
    window_ns : int
        How long after a sighting the next one may come.
    """

    copies: int
    ways: tuple[str, ...]
    by_way: bool
    whole: bool
    window_ns: int


class Doubles:
    """Finds out whether a capture is doubled, and marks what is there too often.

    Attributes
    ----------
    doubling : Doubling, optional
        What the sample told; None: the capture is not doubled, or that is not known yet.
    decided : bool
        Whether the sample was looked at.
    packets : int
        Packets with the standing DOUBLED.
    """

    def __init__(self) -> None:
        self.doubling: Doubling | None = None
        self.decided = False
        self.packets = 0
        self._sightings = Sightings(1)

    def stream(self, blocks: Iterator[Block], live: bool = False) -> Iterator[Block]:
        """The same packets, `standing` changed where they are doubled; their CM messages are left out.

        Parameters
        ----------
        blocks : iterator of Block
            With `DOUBLES_COLUMNS` and ``standing`` up to the first one that this yields, and for all of a capture that
            is doubled. Valid until the next one, each.
        live : bool
            As for `roce_dissect.decode.sample.sampled`.
        """
        for block in sampled(blocks, self._look, live):
            if self.doubling is not None and block.rows:
                self._mark(block, self.doubling)
            yield block

    def _look(self, block: Block, rows: int, whole: bool) -> bool:
        self.doubling = recognise(block.columns, rows, whole)
        self.decided = whole or self.doubling is not None or rows >= _LEAST_FRAMES
        if self.doubling is not None:
            copies = 1 if self.doubling.by_way else self.doubling.copies
            self._sightings = Sightings(copies, self.doubling.window_ns)
        return self.decided

    def _mark(self, block: Block, doubling: Doubling) -> None:
        columns = block.columns
        rows = np.flatnonzero(columns["present"][: block.rows] & np.uint32(HAS_BTH))
        keys = fingerprints(columns, rows, doubling.whole)
        ways = way_fingerprints(columns, rows, doubling.ways) if doubling.by_way else np.zeros_like(keys)
        further = rows[self._sightings.further(keys, ways, columns["time_ns"][rows])]
        standing = columns["standing"]
        # what is damaged takes no part already, and is counted as such
        further = further[standing[further] != Standing.DAMAGED]
        standing[further] = Standing.DOUBLED
        self.packets += len(further)
        if block.messages and len(further):
            block.messages = [message for message in block.messages if standing[message.row] != Standing.DOUBLED]


def recognise(columns: Mapping[str, np.ndarray], rows: int, whole: bool) -> Doubling | None:
    """Whether the first packets of a capture are there K times each.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        At least `DOUBLES_COLUMNS`.
    rows : int
        Valid rows: the sample.
    whole : bool
        Whether the sample is the whole capture, so that no sighting can be missing at its end.

    Returns
    -------
    Doubling or None
    """
    packets = np.flatnonzero(columns["present"][:rows] & np.uint32(HAS_BTH))
    if len(packets) < 2 * _LEAST_PACKETS:
        return None
    found = _Sample(columns, packets, True, whole).doubling()
    if found is None or not _LENGTHENING.isdisjoint(found.ways):
        sliced = columns["cap_len"][packets] < columns["wire_len"][packets]
        if sliced.any():
            # the further header leaves less room for the packet: its sightings may show unequal parts of it
            return _Sample(columns, packets, False, whole).doubling() or found
    return found


class _Sample:
    """The packets of a sample, sorted so that the sightings of each one stand together.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        At least `DOUBLES_COLUMNS`.
    rows : numpy.ndarray
        Integers, shape (n,): rows of the sample that have a BTH.
    identity : bool
        `Doubling.whole`.
    whole : bool
        Whether the sample is the whole capture.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], rows: np.ndarray, identity: bool, whole: bool) -> None:
        self._columns = columns
        self._identity, self._whole = identity, whole
        keys = fingerprints(columns, rows, identity)
        self._places = np.argsort(keys, kind="stable")
        self._keys, self._rows = keys[self._places], rows[self._places]
        clocks = np.maximum.accumulate(columns["time_ns"][rows])
        self._end = clocks[-1:].view(np.uint64)
        self._clocks = clocks[self._places]

    def doubling(self) -> Doubling | None:
        """The greatest number of sightings that nearly all packets have, at the closest spacing that shows it."""
        found = [one for spacing in _SPACINGS_NS if (one := self._spaced(spacing)) is not None]
        return max(found, key=lambda one: one.copies, default=None)

    def _spaced(self, spacing_ns: int) -> Doubling | None:
        """The same among sightings that are no further apart."""
        first = np.flatnonzero(groups_end(self._keys, self._clocks, self._places, spacing_ns))
        sizes = np.diff(np.append(first, len(self._keys)))
        complete = self._complete(first, sizes)
        frames = int(sizes[complete].sum())
        for copies in range(_MOST_COPIES, 1, -1):
            chosen = complete & (sizes % copies == 0)
            if np.count_nonzero(chosen) < _LEAST_PACKETS or sizes[chosen].sum() < _NEARLY_ALL * frames:
                continue
            ways, by_way = self._ways(first[sizes == copies], copies)
            identified = self._identified(first, chosen)
            if ways or identified or (spacing_ns <= _CLOSE_NS and self._answered(first[chosen])):
                window = WINDOW_NS if by_way or identified else max(spacing_ns, _BEFORE_TIMEOUTS_NS)
                return Doubling(copies, ways, by_way, self._identity, window)
        return None

    def _complete(self, first: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """bool: which groups cannot have further sightings behind the sample."""
        begin = self._clocks[first].view(np.uint64)
        several = sizes > 1
        if self._whole or not several.any():
            return np.ones(len(first), bool)
        spans = np.sort((self._clocks[first + sizes - 1].view(np.uint64) - begin)[several])
        complete: np.ndarray = self._end - begin >= spans[int(_MOST_OF_THEM * len(spans))]
        return complete

    def _ways(self, first: np.ndarray, copies: int) -> tuple[tuple[str, ...], bool]:
        """In what the sightings of a packet differ, and whether that tells them all apart."""
        if len(first) < _LEAST_PACKETS:
            return (), False
        rows = self._rows[first[:, None] + np.arange(copies)]
        ways = []
        for way in WAYS:
            words = way_words(self._columns, rows, way)
            if (words != words[:, :1]).any(axis=1).mean() >= _SYSTEMATIC:
                ways.append(way)
        if not ways:
            return (), False
        words = np.sort(way_fingerprints(self._columns, rows, tuple(ways)), axis=1)
        return tuple(ways), bool((words[:, 1:] != words[:, :-1]).all(axis=1).mean() >= _APART)

    def _identified(self, first: np.ndarray, chosen: np.ndarray) -> bool:
        """Whether nearly all of the chosen groups have an identification that tells their packets from resends."""
        rows = self._rows[first]
        sources = self._columns["src"][rows].astype(np.int64)
        hosts, packets = np.unique(sources, return_counts=True)
        _, different = np.unique(np.unique(sources << 16 | self._columns["ip_id"][rows]) >> 16, return_counts=True)
        varied = hosts[(different > 1) & (different >= _IDENTIFIED * packets)]
        identified = np.isin(sources[chosen], varied)
        identified &= (self._columns["present"][rows[chosen]] & np.uint32(HAS_IPV4)) != 0
        return bool(identified.mean() >= _NEARLY_ALL)

    def _answered(self, first: np.ndarray) -> bool:
        """Whether nearly all of these groups are of pairs of hosts of which both send."""
        rows = self._rows[first]
        source, destination = self._columns["src"][rows].astype(np.int64), self._columns["dst"][rows].astype(np.int64)
        return bool(np.isin(destination << 32 | source, source << 32 | destination).mean() >= _NEARLY_ALL)
