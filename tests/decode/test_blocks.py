"""Blocks of several files in time order, against a sort by hand."""

from __future__ import annotations

import os

import numpy as np
import pytest

from roce_dissect import layout
from roce_dissect.analysis.frame_ranges import FrameRanges
from roce_dissect.analysis.packet_sources import PacketSession
from roce_dissect.capture import reader
from roce_dissect.columns import packet_columns
from roce_dissect.decode.blocks import Blocks
from roce_dissect.errors import ArgumentError, CaptureError

BASE = 1_700_000_000_000_000_000


@pytest.fixture
def write(frames, tmp_path):
    """``write(name, [time in ms ...])``: a capture whose frames carry 1, 2, 3 ... as PSN."""

    def make(name, times):
        parts = [frames.pcap([], nano=True)]
        for number, ms in enumerate(times, start=1):
            frame = frames.v2(4, psn=number)
            parts.append(frames.pcap([frame], nano=True, first_ns=BASE + round(ms * 1e6))[24:])
        path = tmp_path / name
        path.write_bytes(b"".join(parts))
        return str(path)

    return make


def rows_of(paths, **options):
    """(file, frame, time in ms) of all rows, and the Blocks."""
    blocks = Blocks(paths, ["psn"], **options)
    found = []
    for block in blocks:
        keys = block.columns["frame_key"][: block.rows]
        times = (block.columns["time_ns"][: block.rows] - BASE) / 1e6
        assert (block.columns["psn"][: block.rows] == keys & (1 << 40) - 1).all()
        found += list(zip((keys >> 40).tolist(), (keys & (1 << 40) - 1).tolist(), times.tolist(), strict=True))
    return found, blocks


def merged(*files):
    """Rows by time; at equal times the earlier file first; within a file its own order."""
    rows = []
    for number, times in enumerate(files):
        reached = np.maximum.accumulate(times)
        rows += [(reached[i], number, i + 1, float(ms)) for i, ms in enumerate(times)]
    return [(number, frame, ms) for _, number, frame, ms in sorted(rows, key=lambda row: row[:3])]


CASES = {
    "one": [[0, 1, 2]],
    "rotated": [[0, 1, 2], [3, 4, 5], [6, 7]],
    "overlapping": [[0, 2, 4, 6], [1, 3, 5, 7]],
    "one within the other": [[0, 10], [4, 5, 6]],
    "equal times": [[0, 1, 1, 2], [1, 1, 2, 2]],
    "a gap between": [[0, 1], [1000, 1001]],
    "three": [[0, 5, 9], [1, 5, 8], [2, 5, 7]],
    "one ends early": [[0, 1], [0.5, 3, 4, 5], [0.7, 2, 9]],
    "clock that steps back": [[0, 5, 3, 6], [1, 4, 7]],
}


@pytest.mark.parametrize("buffer", [1 << 12, 1 << 22])
@pytest.mark.parametrize("name", CASES)
def test_time_order(name, buffer, write, monkeypatch):
    monkeypatch.setattr(reader, "_BUFFER_BYTES", buffer)
    times = CASES[name]
    paths = [write(f"{number}.pcap", part) for number, part in enumerate(times)]
    found, blocks = rows_of(paths)
    assert found == merged(*times)
    again, _ = rows_of(paths[::-1])
    assert again == found or name == "equal times"  # whatever order they are given in
    assert all(one.complete for one in blocks.files)


@pytest.mark.parametrize("seed", range(6))
def test_random_files(seed, write, monkeypatch):
    """Many frames, small batches: the merge waits for nobody in vain and leaves nobody behind."""
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 12)
    rng = np.random.default_rng(seed)
    times = []
    for _ in range(int(rng.integers(2, 5))):
        start, count = rng.integers(0, 300), int(rng.integers(1, 250))
        times.append((start + np.cumsum(rng.integers(-1 if seed % 2 else 0, 4, count))).tolist())
    times.sort(key=lambda part: part[0])
    found, _ = rows_of([write(f"{n}.pcap", part) for n, part in enumerate(times)])
    assert found == merged(*times)


def test_files_without_roce_or_frames(write, tmp_path, frames):
    """They are noted, and hold nobody up."""
    empty = write("empty.pcap", [])
    foreign = tmp_path / "foreign.pcap"
    foreign.write_bytes(frames.pcap([bytes(60)] * 3, first_ns=BASE + 500_000))
    found, blocks = rows_of([write("a.pcap", [0, 1]), empty, str(foreign), write("b.pcap", [2])])
    assert [time for *_, time in found] == [0, 1, 2]
    assert {one.path.rpartition("/")[2]: one.frames for one in blocks.files} == {
        "empty.pcap": 0, "a.pcap": 2, "foreign.pcap": 3, "b.pcap": 1,
    }  # fmt: skip
    assert all(one.complete for one in blocks.files)


def test_a_file_that_breaks_off(write, tmp_path):
    """With `keep_going` the others go on; without, its error comes after all rows before the fault."""
    broken = write("broken.pcap", [0, 2, 4, 6])
    with open(broken, "r+b") as file:
        size = 16 + 58
        file.seek(24 + 2 * size + 8)
        file.write(b"\xff\xff\xff\xff")
    other = write("other.pcap", [1, 3, 5, 7])
    found, blocks = rows_of([broken, other], keep_going=True)
    assert [time for *_, time in found] == [0, 1, 2, 3, 5, 7]
    first, second = blocks.files
    assert (first.frames, first.complete, first.error_offset) == (2, False, 24 + 2 * size)
    assert (second.frames, second.complete) == (4, True)
    blocks = iter(Blocks([broken], ["psn"]))
    assert next(blocks).rows == 2
    with pytest.raises(CaptureError) as caught:
        next(blocks)
    assert caught.value.offset == 24 + 2 * size


def test_inputs_that_can_be_read_once(write):
    with pytest.raises(ArgumentError, match="alone"):
        Blocks(["-", write("a.pcap", [0])], ["psn"])
    with pytest.raises(ArgumentError, match="no capture"):
        Blocks([], ["psn"])


@pytest.mark.parametrize("kind", ["fifo", "descriptor", "device", "link"])
def test_pipes_and_devices_go_alone(write, tmp_path, kind):
    """They are refused before anything is opened: opening a FIFO waits for its writer."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(fifo)
    reading, writing = os.pipe()
    try:
        path = {"fifo": str(fifo), "descriptor": f"/dev/fd/{reading}", "device": os.devnull}.get(
            kind, str(tmp_path / "link")
        )
        for inputs in ([path, write("a.pcap", [0])], [write("a.pcap", [0]), path]):
            with pytest.raises(ArgumentError, match=f"{path}: .* give it alone"):
                Blocks(inputs, ["psn"], keep_going=True)
    finally:
        os.close(reading)
        os.close(writing)


def test_missing_files_and_directories_among_several_are_noted(write, tmp_path):
    found, blocks = rows_of([str(tmp_path / "no"), str(tmp_path), write("a.pcap", [0])], keep_going=True)
    assert len(found) == 1
    assert [one.error for one in blocks.files[:2]] == [
        "cannot be opened: No such file or directory", "cannot be opened: Is a directory",
    ]  # fmt: skip


def test_a_pipe_alone_is_read(write):
    reading, writing = os.pipe()
    with open(write("a.pcap", [0, 1]), "rb") as file:
        os.write(writing, file.read())
    os.close(writing)
    found, _ = rows_of([f"/dev/fd/{reading}"])
    os.close(reading)
    assert len(found) == 2


def test_summary(write):
    _, blocks = rows_of([write("a.pcap", [5, 9])])
    [one] = blocks.files
    assert (one.format, one.compression, one.frames, one.sliced_frames) == ("pcap", None, 2, 0)
    assert (one.first_time_ns, one.last_time_ns) == (BASE + 5_000_000, BASE + 9_000_000)
    assert one.link_types == {1: 2}
    assert one.bytes_read == 24 + 2 * (16 + 58)


def test_chosen_frames_that_came_out_of_order(frames, tmp_path):
    """A frame near the end of a batch may be put behind one of the next batch."""
    count = 40_000
    made = [frames.v2(4, b"data", psn=number, dest_qp=17, ip={"ip_id": number & 0xFFFF}) for number in range(count)]
    raw = bytearray(frames.pcap(made, nano=True))
    size = (len(raw) - 24) // count
    for first in range(1, count - 1, 2):  # neighbours swapped in time
        one, other = 24 + first * size, 24 + (first + 1) * size
        raw[one : one + 8], raw[other : other + 8] = raw[other : other + 8], raw[one : one + 8]
    path = tmp_path / "swapped.pcap"
    path.write_bytes(raw)
    for number in (16_383, 16_384, 16_385, 32_768, 32_769, 40_000):
        session = PacketSession(
            str(path), packet_columns(["frame", "verdict"]), keep_going=False, frames=FrameRanges(str(number))
        )
        assert [frame for packets in session for frame in packets["frame"]] == [number]


@pytest.mark.parametrize("files", [1, 2, 3])
def test_stopped_what_was_read_comes_out(frames, tmp_path, files):
    """Of several files whose packets alternate, too: a batch of each waits for its turn."""
    paths = []
    for number in range(files):
        made = [frames.v2(4, b"data", psn=psn, ip={"ip_id": psn & 0xFFFF}) for psn in range(40_000)]
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(frames.pcap(made, first_ns=1_700_000_000_000_000_000 + number * 300))
        paths.append(str(path))
    blocks = Blocks(paths, ["psn"])
    handed_out = 0
    for block in blocks:
        handed_out += block.rows
        blocks.stop()
    assert handed_out == blocks.tallies[layout.TALLY_ROCE] < files * 40_000
