"""Order of time within a window, against a slow model; and captures that were shuffled."""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect.analysis.trust import trust_statement
from roce_dissect.decode import ordering as ordering_module
from roce_dissect.decode import sample
from roce_dissect.decode.blocks import Block
from roce_dissect.decode.ordering import WINDOW_NS, Ordering

MS = 1_000_000
LEAST, MOST = -(1 << 63), (1 << 63) - 1


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE", 8)


def blocks(times, sizes):
    """Blocks that share one array, of sizes in turn; the frame key is the row from 0."""
    start, turn = 0, 0
    columns = {"time_ns": np.zeros(len(times) + 1, np.int64), "frame_key": np.zeros(len(times) + 1, np.int64)}
    while start < len(times):
        size = min(sizes[turn % len(sizes)], len(times) - start)
        columns["time_ns"][:size] = times[start : start + size]
        columns["frame_key"][:size] = range(start, start + size)
        yield Block(columns, size, [])
        start, turn = start + size, turn + 1


def ordered(times, sizes=(5,), window=10):
    """Rows in the order in which they come out, and the Ordering."""
    ordering = Ordering(window)
    rows = []
    for block in ordering.stream(blocks(times, sizes)):
        assert block.columns["time_ns"][: block.rows].tolist() == [
            times[row] for row in block.columns["frame_key"][: block.rows].tolist()
        ]
        rows += block.columns["frame_key"][: block.rows].tolist()
    return rows, ordering


def model(times, window=10):
    """The same one by one, as the module's text says; (rows, those put before others)."""
    steps = [row for row in range(1, len(times)) if times[row] < times[row - 1]]
    start = 0 if any(row < 8 for row in steps) else min(steps, default=len(times))
    rows, segment, moved, newest = list(range(start)), [], 0, None
    for row in range(start, len(times)):
        newest = times[row] if newest is None else max(newest, times[row])
        if newest - times[row] > window:
            rows += [*segment, row]
            segment = []
            continue
        place = len(segment)
        while place and times[segment[place - 1]] > times[row]:
            place -= 1
        moved += place < len(segment)
        segment.insert(place, row)
    return rows + segment, moved


def behind(times, rows):
    """How many come behind a later one, the greatest step back, and the row where."""
    found, newest, greatest, where = 0, times[rows[0]], 0, None
    for row in rows:
        newest = max(newest, times[row])
        if times[row] < newest:
            found += 1
            if newest - times[row] > greatest:
                greatest, where = newest - times[row], row
    return found, greatest, where


CASES = {
    "in order": list(range(0, 40, 2)),
    "equal times": [1] * 20,
    "a little late at the start": [0, 5, 3, *range(6, 40)],
    "a little late behind the sample": [*range(0, 30, 2), 25, 30, 29, 33, 31, 40, 55],
    "late by the window": [0, 20, 10, 30, 31, 32, 33, 34, 35],
    "late by more than the window": [0, 20, 9, 30, 31, 25, 33, 34, 35],
    "two files one behind the other": [*range(100, 130), *range(0, 30), 27, 31],
    "the second one not in order": [*range(100, 130), *range(0, 30, 3), 20, 31, 28, 45],
    "both not in order": [100, 103, 101, *range(104, 120), 0, 3, 1, *range(4, 20)],
    "one of a far future": [0, 1, 2, 1000, 3, 4, 5, 6, 5, 7, 8],
    "all 64 bits": [LEAST, MOST, 0, MOST, LEAST, -1, LEAST + 3, LEAST, MOST, MOST - 4, MOST],
    "always backwards": list(range(0, -200, -6)),
}


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (5,), (8,), (100,)])
@pytest.mark.parametrize("name", CASES)
def test_order(name, sizes):
    times = CASES[name]
    rows, ordering = ordered(times, sizes)
    expected, moved = model(times)
    assert rows == expected
    assert ordering.reordered == moved
    found, greatest, where = behind(times, rows)
    assert (ordering.unordered, ordering.greatest_step_ns) == (found, greatest)
    if found:
        assert ordering.step_frame_key == where


@pytest.mark.parametrize("seed", range(40))
def test_any_times_in_any_blocks(seed):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(-2 if seed % 2 else 0, 6, 300)) + rng.integers(0, [1, 8, 14, 40][seed % 4], 300)
    times[300 - 20 * (seed % 3) :] -= 500
    times = times.tolist()
    rows, ordering = ordered(times, rng.integers(1, 60, 50).tolist())
    expected, moved = model(times)
    assert rows == expected
    assert ordering.reordered == moved
    assert ordering.unordered == behind(times, rows)[0]


def test_in_order_nothing_is_copied():
    ordering = Ordering()
    given = [block for first in range(0, 100, 20) for block in blocks(list(range(first, first + 20)), (20,))]
    assert [id(block) for block in ordering.stream(iter(given))] == [id(block) for block in given]


def test_little_is_held():
    """Of a long capture only the window."""
    times = [5, 3, *range(10, 10_000)]
    came, held = [0], []

    def counted():
        for block in blocks(times, (50,)):
            if came[0]:
                held.append(came[0] - went)
            came[0] += block.rows
            yield block

    went = 0
    for block in Ordering(10).stream(counted()):
        went += block.rows
    assert went == len(times)
    assert max(held) <= 11


@pytest.mark.parametrize("sizes", [(1,), (3, 5), (16,), (7,), (100,)])
def test_what_is_held_is_bounded(monkeypatch, sizes):
    """With all times the same, after one step back; the cut into blocks changes nothing."""
    monkeypatch.setattr(ordering_module, "MOST_HELD", 32)
    monkeypatch.setattr(ordering_module, "_PIECE", 16)
    times = [5, 4, *[4] * 500, 3, *[4] * 100]
    rows, ordering = ordered(times, sizes)
    expected, _ = ordered(times, (1,))
    assert rows == expected
    assert sorted(rows) == list(range(len(times)))
    assert rows[:2] == [1, 2]
    assert ordering.unordered > 0  # the 3 finds those gone that it should precede
    ordering = Ordering(10)
    held = [0 if ordering._held is None else ordering._held.rows for _ in ordering.stream(blocks(times, sizes))]
    assert max(held) <= 32 + 16


def test_live_what_is_held_goes_out_when_nothing_comes():
    def some():
        yield from blocks([5, 3, 7, 9, 8], (5,))
        yield Block({}, 0, [])
        yield from blocks([8, 30], (2,))

    found = [block.columns["time_ns"][: block.rows].tolist() if block.rows else [] for block in
             Ordering(10).stream(some(), live=True)]  # fmt: skip
    assert found == [[3, 5, 7, 8, 9], [], [8], [30]]


# -- whole captures ----------------------------------------------------------------------------------------------------


@pytest.fixture
def whole_sample(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE", 16384)


def shuffled(records, width_ns):
    """Each record late by up to `width_ns` in the file, with its own time."""
    places = np.array([record[0] for record in records]) + np.random.default_rng(4).integers(0, width_ns, len(records))
    return [records[row] for row in np.argsort(places, kind="stable")]


@pytest.mark.parametrize("name", ["imp_loss1_write.server", "rc_mix_ipv6_mtu1024.client", "cm_rping_ipv4.client"])
def test_a_shuffled_capture_says_the_same(samples, tmp_path, mirrors, name, whole_sample):
    """All but the frame numbers, which stay those of the file."""
    records = mirrors.read_pcap(samples / f"{name}.pcap.gz")
    late = shuffled(records, 5 * MS)
    assert late != records
    one = mirrors.analyzed(mirrors.write_pcap(tmp_path / "one.pcap", records))
    other = mirrors.analyzed(mirrors.write_pcap(tmp_path / "other.pcap", late))
    assert mirrors.differences(one, other) == {}
    assert other.capture["reordered_packets"] > 5
    assert other.capture["unordered_packets"] == 0
    packets = other.packets(columns=["time_ns", "frame", "verdict"])
    assert packets["time_ns"].is_monotonic_increasing
    assert [late[frame - 1][0] for frame in packets["frame"]] == packets["time_ns"].tolist()


def test_captures_one_behind_the_other(samples, tmp_path, mirrors, whole_sample):
    records = mirrors.read_pcap(samples / "rc_mix_ipv4_mtu1024.server.pcap.gz")
    earlier = [(time - 3 * 3600 * 10**9, *rest) for time, *rest in records]
    path = mirrors.write_pcap(tmp_path / "both.pcap", records + earlier)
    result = mirrors.analyzed(path)
    capture = result.capture
    packets = result.packets(columns=["time_ns", "frame", "verdict"])
    first = int(packets["frame"].iloc[len(packets) // 2])
    assert (capture["unordered_packets"], capture["step_back_frame"]) == (len(packets) // 2, first)
    assert capture["reordered_packets"] == 0
    [reason] = [
        one for one in trust_statement(capture, result.streams, result.connections)["reasons"]
        if one["reason"] == "unordered_packets"
    ]  # fmt: skip
    assert f"time runs backwards by 3 h 0 min at frame {first}, and 58 packets come behind later ones" in reason["text"]
    assert capture["trust"]["level"] != "good"


def test_the_window_is_that_of_the_documents():
    assert WINDOW_NS == 10 * MS
