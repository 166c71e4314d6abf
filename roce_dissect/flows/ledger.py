# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The tracker's books: streams, host pairs, open gaps, and the events that come of them.

`Ledger` keeps the tables and knows no protocol. On it stand `roce_dissect.flows.episodes` (requests sent again),
`roce_dissect.flows.messages` (verbs under way), `roce_dissect.flows.responder` and `roce_dissect.flows.tracker`. One
source, two forms, as there. Where C would wrap and Python would not (the hash), the source masks.
"""

from __future__ import annotations

import cython

COMPILED = cython.compiled

if not cython.compiled:  # compiled: the same names are C enums in states.pxd
    from roce_dissect.flows.states import *


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mix(word: cython.ulonglong) -> cython.ulonglong:
    """Every bit of the result depends on every bit of the word (the finaliser of splitmix64)."""
    low64: cython.ulonglong = 0xFFFFFFFFFFFFFFFF  # Python does not wrap; the mask costs C nothing
    one: cython.ulonglong = 0xBF58476D1CE4E5B9  # typed: as an operand, a literal above 2**31 is a Python object
    other: cython.ulonglong = 0x94D049BB133111EB
    word = (word ^ (word >> 30)) * one & low64
    word = (word ^ (word >> 27)) * other & low64
    return word ^ (word >> 31)


@cython.cclass
class Ledger:
    """Tables are the caller's arrays (see `states`), so that Python can read, store and share them."""

    slots: cython.int[::1]
    classes: cython.const[cython.uint][::1]
    streams: cython.longlong[:, ::1]
    pairs: cython.longlong[:, ::1]
    holes: cython.longlong[:, ::1]
    recent: cython.longlong[:, ::1]
    events: cython.longlong[:, ::1]
    counts: cython.longlong[::1]
    seed: cython.ulonglong
    # the packet at hand
    frame: cython.longlong
    time: cython.longlong
    missing: cython.longlong
    extended: cython.longlong
    hole_time: cython.longlong  # when the gap was noticed that the packet fills

    def __init__(self, slots, classes, streams, pairs, holes, recent, events, counts, seed):
        self.seed = seed
        self.slots = memoryview(slots)
        self.classes = memoryview(classes)
        self.streams = memoryview(streams)
        self.pairs = memoryview(pairs)
        self.holes = memoryview(holes)
        self.recent = memoryview(recent)
        self.events = memoryview(events)
        self.counts = memoryview(counts)
        self.frame = 0
        self.time = 0
        self.missing = 0
        self.extended = -1
        self.hole_time = 0
        if (
            self.classes.shape[0] != 256
            or self.streams.shape[1] != STREAM_WORDS
            or self.counts.shape[0] != COUNTS
            or self.pairs.shape[1] != PAIR_WORDS
            or self.holes.shape[1] != HOLE_WORDS
            or self.recent.shape[1] != RECENT_WORDS
            or self.events.shape[1] != EVENT_WORDS
        ):
            raise ValueError("a table has the wrong shape")
        for size in (self.slots.shape[0], self.pairs.shape[0], self.recent.shape[0]):
            if size & (size - 1):
                raise ValueError("slots, pairs and recent: powers of two")
        if self.slots.shape[0] <= self.streams.shape[0] or self.pairs.shape[0] <= self.streams.shape[0]:
            raise ValueError("slots and pairs: more than there are streams")
        if self.counts[HOLES_USED] < 1:
            raise ValueError("hole 0 is the end of every list, so one is in use from the beginning")

    # -- tables ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def slot_of(self, hosts: cython.longlong, qp: cython.longlong, source: cython.longlong) -> cython.longlong:
        """Hash of a key, 32 bits. The seed is random: without it nobody can make keys that collide."""
        key: cython.ulonglong = hosts
        more: cython.ulonglong = qp
        key = mix(mix(key ^ self.seed) ^ more)
        if source != 0:
            more = source
            key = mix(key ^ more)
        return key >> 32

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-2, check=False)
    def find_stream(
        self, hosts: cython.longlong, qp: cython.longlong, source: cython.longlong, enter: cython.bint
    ) -> cython.Py_ssize_t:
        """Stream of a key, entered if it is new and wanted; -1 where there is none or no room."""
        last: cython.Py_ssize_t = self.slots.shape[0] - 1
        slot: cython.Py_ssize_t = self.slot_of(hosts, qp, source) & last
        stream: cython.Py_ssize_t
        while self.slots[slot] != 0:
            stream = self.slots[slot] - 1
            if (
                self.streams[stream, KEY_QP] == qp
                and self.streams[stream, KEY_HOSTS] == hosts
                and self.streams[stream, KEY_SOURCE] == source
            ):
                return stream
            slot = (slot + 1) & last
        if not enter or self.counts[STREAMS_USED] >= self.streams.shape[0]:
            return -1
        return self.enter_stream(hosts, qp, source, slot, 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2, check=False)
    def enter_stream(
        self,
        hosts: cython.longlong,
        qp: cython.longlong,
        source: cython.longlong,
        slot: cython.Py_ssize_t,
        life: cython.longlong,
    ) -> cython.Py_ssize_t:
        """A new stream in a slot, first in the list of its host pair; the caller has made sure of room."""
        stream: cython.Py_ssize_t = self.counts[STREAMS_USED]
        pair: cython.Py_ssize_t = self.find_pair(hosts)
        self.counts[STREAMS_USED] += 1
        self.slots[slot] = stream + 1
        self.streams[stream, KEY_HOSTS] = hosts
        self.streams[stream, KEY_QP] = qp
        self.streams[stream, KEY_SOURCE] = source
        self.streams[stream, LIFE] = life
        self.streams[stream, FIRST_FRAME] = self.frame
        self.streams[stream, FIRST_TIME] = self.time
        self.streams[stream, LAST_FRAME] = self.frame
        self.streams[stream, LAST_TIME] = self.time
        self.streams[stream, PAIR] = pair
        self.streams[stream, NEXT_IN_PAIR] = self.pairs[pair, PAIR_HEAD]
        self.pairs[pair, PAIR_HEAD] = stream + 1
        return stream

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def find_pair(self, hosts: cython.longlong) -> cython.Py_ssize_t:
        """Host pair of a key, either direction; the table is its own hash and never full (`__init__`)."""
        source: cython.longlong = hosts >> 32
        destination: cython.longlong = hosts - (source << 32)
        last: cython.Py_ssize_t = self.pairs.shape[0] - 1
        key: cython.longlong = (
            (source << 32) | destination if source < destination else (destination << 32) | source
        ) + 1
        pair: cython.Py_ssize_t = self.slot_of(key, 0, 0) & last
        while self.pairs[pair, PAIR_HOSTS] != 0:
            if self.pairs[pair, PAIR_HOSTS] == key:
                return pair
            pair = (pair + 1) & last
        self.pairs[pair, PAIR_HOSTS] = key
        return pair

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def emit(
        self,
        kind: cython.longlong,
        stream: cython.Py_ssize_t,
        psn: cython.longlong,
        count: cython.longlong,
        value: cython.longlong,
    ) -> cython.int:
        """Append an event about the packet at hand; `track` has made sure of room."""
        event: cython.Py_ssize_t = self.counts[EVENTS_USED]
        word: cython.int
        self.events[event, EVENT_KIND] = kind
        self.events[event, EVENT_STREAM] = stream
        self.events[event, EVENT_FRAME] = self.frame
        self.events[event, EVENT_LAST_FRAME] = self.frame
        self.events[event, EVENT_TIME] = self.time
        self.events[event, EVENT_LAST_TIME] = self.time
        self.events[event, EVENT_PSN] = psn & 0xFFFFFF
        self.events[event, EVENT_COUNT] = count
        self.events[event, EVENT_STALL] = 0
        self.events[event, EVENT_VALUE] = value
        for word in range(EVENT_CAUSE_FRAME, EVENT_WORDS):
            self.events[event, word] = 0
        self.counts[EVENTS_USED] = event + 1
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def added_time(self, total: cython.longlong, more: cython.longlong) -> cython.longlong:
        """A sum of times that stays in range whatever the clocks say; what ran backwards adds nothing."""
        most: cython.longlong = 0x1000000000000000  # 36 years
        return min(total + min(max(more, 0), most), most)

    # -- holes: what the capture has not seen ------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def new_hole(
        self, stream: cython.Py_ssize_t, start: cython.longlong, stop: cython.longlong, link: cython.longlong
    ) -> cython.longlong:
        """A hole before `link` in the stream's list; `link` itself when the table or the stream's share is full."""
        hole: cython.longlong = self.counts[HOLE_FREE]
        if self.streams[stream, HOLE_COUNT] >= MOST_HOLES:
            return link
        if hole != 0:
            self.counts[HOLE_FREE] = self.holes[hole, HOLE_LINK]
        elif self.counts[HOLES_USED] < self.holes.shape[0]:
            hole = self.counts[HOLES_USED]
            self.counts[HOLES_USED] = hole + 1
        else:
            return link
        self.streams[stream, HOLE_COUNT] += 1
        self.holes[hole, HOLE_START] = start
        self.holes[hole, HOLE_STOP] = stop
        self.holes[hole, HOLE_LINK] = link
        self.holes[hole, HOLE_TIME] = self.time
        self.holes[hole, HOLE_FRAME] = self.frame
        return hole

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def fill_hole(self, stream: cython.Py_ssize_t, psn: cython.longlong, stop: cython.longlong) -> cython.bint:
        """Whether `psn` lies in a hole; psn <= x < stop is seen from now on. The list runs from high to low PSNs.

        `hole_time` then says when the hole was noticed.
        """
        before: cython.longlong = 0
        lower: cython.longlong
        hole: cython.longlong = self.streams[stream, HOLE]
        while hole != 0 and psn < self.holes[hole, HOLE_STOP]:
            if psn >= self.holes[hole, HOLE_START]:
                self.hole_time = self.holes[hole, HOLE_TIME]
                if psn == self.holes[hole, HOLE_START]:
                    self.holes[hole, HOLE_START] = stop
                    if stop >= self.holes[hole, HOLE_STOP]:
                        self.drop_hole(stream, before, hole)
                elif stop >= self.holes[hole, HOLE_STOP]:
                    self.holes[hole, HOLE_STOP] = psn
                else:  # hit in the middle: this one keeps the upper part, a new one behind it the lower
                    lower = self.new_hole(stream, self.holes[hole, HOLE_START], psn, self.holes[hole, HOLE_LINK])
                    if lower != self.holes[hole, HOLE_LINK]:  # else there was no room for it
                        self.holes[lower, HOLE_TIME] = self.holes[hole, HOLE_TIME]
                        self.holes[lower, HOLE_FRAME] = self.holes[hole, HOLE_FRAME]
                    self.holes[hole, HOLE_LINK] = lower
                    self.holes[hole, HOLE_START] = stop
                return True
            before = hole
            hole = self.holes[hole, HOLE_LINK]
        return False

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def find_hole(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.longlong:
        """The hole that `psn` lies in, 0: none."""
        hole: cython.longlong = self.streams[stream, HOLE]
        while hole != 0 and psn < self.holes[hole, HOLE_STOP]:
            if psn >= self.holes[hole, HOLE_START]:
                return hole
            hole = self.holes[hole, HOLE_LINK]
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def drop_hole(self, stream: cython.Py_ssize_t, before: cython.longlong, hole: cython.longlong) -> cython.int:
        """Take a hole out of its stream's list (`before`: the one before it, 0: it is the head) and free it."""
        if before != 0:
            self.holes[before, HOLE_LINK] = self.holes[hole, HOLE_LINK]
        else:
            self.streams[stream, HOLE] = self.holes[hole, HOLE_LINK]
        self.holes[hole, HOLE_LINK] = self.counts[HOLE_FREE]
        self.counts[HOLE_FREE] = hole
        self.streams[stream, HOLE_COUNT] -= 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def forget_holes(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.longlong:
        """Free the holes below `psn`; returns how many PSNs they held."""
        before: cython.longlong = 0
        hole: cython.longlong = self.streams[stream, HOLE]
        held: cython.longlong = 0
        while hole != 0:
            if self.holes[hole, HOLE_STOP] <= psn:
                held += self.holes[hole, HOLE_STOP] - self.holes[hole, HOLE_START]
                self.drop_hole(stream, before, hole)
                hole = self.holes[before, HOLE_LINK] if before != 0 else self.streams[stream, HOLE]
            else:
                if self.holes[hole, HOLE_START] < psn:
                    held += psn - self.holes[hole, HOLE_START]
                    self.holes[hole, HOLE_START] = psn
                before = hole
                hole = self.holes[hole, HOLE_LINK]
        return held

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def open_hole(self, stream: cython.Py_ssize_t, start: cython.longlong, stop: cython.longlong) -> cython.int:
        """Remember a gap. A stream keeps a bounded number: with too many, the older half is forgotten."""
        hole: cython.longlong
        kept: cython.int = 1
        if self.streams[stream, HOLE_COUNT] >= MOST_HOLES:
            hole = self.streams[stream, HOLE]
            while kept < MOST_HOLES // 2:
                hole = self.holes[hole, HOLE_LINK]
                kept += 1
            self.forget_holes(stream, self.holes[hole, HOLE_START])
        if start < stop:
            self.streams[stream, HOLE] = self.new_hole(stream, start, stop, self.streams[stream, HOLE])
        return 0
