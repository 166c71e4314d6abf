"""First and further sightings, against a slow model; in bounded memory, whatever comes."""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect.decode import sightings
from roce_dissect.decode.sightings import Sightings

MS = 1_000_000
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def found(keys, ways, times, copies=1, sizes=(7,)):
    """Rows that are further sightings, fed in pieces."""
    seen, rows, start, turn = Sightings(copies), [], 0, 0
    while start < len(keys):
        stop = start + sizes[turn % len(sizes)]
        part = slice(start, stop)
        further = seen.further(
            np.array(keys[part], np.uint64), np.array(ways[part], np.uint64), np.array(times[part], np.int64)
        )
        rows += (start + np.flatnonzero(further)).tolist()
        start, turn = stop, turn + 1
    return rows


def model(keys, ways, times, copies=1):
    """One by one, as the module's text says."""
    groups, clock, further = {}, LEAST, []
    for place, (key, way, time) in enumerate(zip(keys, ways, times, strict=True)):
        clock = max(clock, time)

        def over(last, clock=clock, place=place):
            return clock - last[0] > sightings.WINDOW_NS or place - last[1] > sightings.REACH

        group = groups.get(key)
        if group is None or over(group["last"]):
            group = groups[key] = {"best": 0, "ways": {}}
        count, last = group["ways"].get(way, (0, (clock, place)))
        count = 1 if over(last) else count + 1
        packet = -(-count // copies)
        if packet <= group["best"]:
            further.append(place)
        group["best"] = max(group["best"], packet)
        group["ways"][way] = (count, (clock, place))
        group["last"] = (clock, place)
    return further


A, B = 1, 2
CASES = {
    "each once": ([1, 2, 3], [A, A, A], [0, 1, 2], []),
    "by two ways": ([1, 1, 2, 2], [A, B, A, B], [0, 1, 2, 3], [1, 3]),
    "crossed": ([1, 2, 1, 2], [A, A, B, B], [0, 1, 2, 3], [2, 3]),
    "from the other side": ([1, 1, 2, 2], [A, B, B, A], [0, 1, 2, 3], [1, 3]),
    "one lost between": ([1, 2, 2], [A, A, B], [0, 1, 2], [2]),
    "lost and sent again, equal bit for bit": ([1, 1, 1], [A, A, B], [0, 5 * MS, 6 * MS], [2]),
    "sent again, both seen twice": ([1, 1, 1, 1], [A, B, A, B], [0, 1, 5 * MS, 6 * MS], [1, 3]),
    "again after the window": ([1, 1, 1], [A, B, B], [0, 1, 101 * MS + 1], [1]),
    "the window goes from one sighting to the next": ([1] * 3, [A, B, B], [0, 60 * MS, 120 * MS], [1]),
    "one way begins late": ([1, 2, 3, 3], [A, A, A, B], [0, 1, 2, 3], [3]),
    "the clock is set back": ([1, 1, 2, 2], [A, B, A, B], [500 * MS, 0, 1, 2], [1, 3]),
    "all 64 bits": ([1, 1, 1, 1], [A, A, B, B], [LEAST, MOST, MOST, LEAST], [2]),
}


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("name", CASES)
def test_sightings_by_way(name, size):
    keys, ways, times, expected = CASES[name]
    assert found(keys, ways, times, 1, (size,)) == expected
    assert model(keys, ways, times) == expected


def test_without_ways_every_kth_counts():
    assert found([1] * 7 + [2] * 2, [A] * 9, range(9), 3) == [1, 2, 4, 5, 8]
    assert found([1, 2, 1, 2, 3], [A] * 5, range(5), 2) == [2, 3]


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_any_sightings_in_any_blocks(seed, copies, monkeypatch):
    monkeypatch.setattr(sightings, "REACH", [40, 1 << 16][seed % 2])
    rng = np.random.default_rng(seed)
    count = 600
    keys = rng.integers(0, [5, 40, 300][seed % 3], count).tolist()
    ways = rng.integers(0, 3, count).tolist()
    times = np.cumsum(rng.integers(-5 * MS, [10, 40][seed % 2] * MS, count)).tolist()
    expected = model(keys, ways, times, copies)
    assert 4 < len(expected) < count
    for sizes in ((1,), rng.integers(1, 90, 20).tolist(), (count,)):
        assert found(keys, ways, times, copies, sizes) == expected


@pytest.mark.parametrize("kind", ["equal", "different", "ways"])
def test_memory_is_bounded(kind, monkeypatch):
    """Neither one packet for ever, nor ever new packets, nor ever new ways of one packet."""
    monkeypatch.setattr(sightings, "REACH", 500)
    seen = Sightings(1)
    for start in range(0, 20_000, 1000):
        numbers = np.arange(start, start + 1000, dtype=np.uint64)
        nothing = np.zeros(1000, np.uint64)
        seen.further(
            numbers if kind == "different" else nothing, numbers if kind == "ways" else nothing,
            np.zeros(1000, np.int64),
        )  # fmt: skip
        assert len(seen._known.key) <= 500


def test_nothing_is_a_block_too():
    seen = Sightings(1)
    no = np.zeros(0, np.uint64)
    assert len(seen.further(no, no, np.zeros(0, np.int64))) == 0
