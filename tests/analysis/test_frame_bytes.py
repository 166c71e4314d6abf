"""Bytes of frames beside their packets: those of the file, whatever way it is read."""

from __future__ import annotations

import gzip
import io
import os
import struct
import threading

from roce_dissect.analysis.frame_ranges import FrameRanges
from roce_dissect.analysis.packet_sources import DISSECTION_COLUMNS, PacketSession
from roce_dissect.columns import packet_columns
from roce_dissect.decode.blocks import Blocks

NAME = "imp_loss1_write.server.pcap.gz"
OTHER = "imp_loss1_write.client.pcap.gz"
WANTED = packet_columns(["file", "frame", "cap_len", "psn"])


def frames_of(path):
    """Frames of a little-endian pcap file by number, read without any code of ours."""
    data = gzip.decompress(path.read_bytes())
    assert data[:4] == b"\xd4\xc3\xb2\xa1"
    at, found = 24, {}
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        found[len(found) + 1] = data[at + 16 : at + 16 + size]
        at += 16 + size
    return found


def read(captures, **more):
    return list(PacketSession(captures, WANTED, keep_going=False, with_bytes=True, **more))


def check(tables, *files):
    count = 0
    for table in tables:
        assert list(table.columns[-3:]) == list(DISSECTION_COLUMNS)
        for file, frame, data in zip(table["file"], table["frame"], table["frame_bytes"], strict=True):
            assert data == files[file][frame]
            count += 1
        assert (table["link_type"] == 1).all()
        assert (table["network_offset"] == 14).all()
    return count


def test_one_file(samples):
    assert check(read(str(samples / NAME)), frames_of(samples / NAME)) == 1687


def test_files_that_overlap(samples):
    """Merged by time, split and put together: each row keeps its own bytes."""
    paths = [str(samples / name) for name in (NAME, OTHER)]
    session = PacketSession(paths, WANTED, keep_going=False, with_bytes=True)
    tables = list(session)
    files = [frames_of(samples / os.path.basename(one.path)) for one in session.files]
    assert check(tables, *files) == sum(len(table) for table in tables) > 3000


def test_small_batches(samples, monkeypatch):
    """Many batches, two files, a small buffer: what is kept is only what waiting rows need."""
    monkeypatch.setattr("roce_dissect.capture.reader._BUFFER_BYTES", 1 << 13)
    paths = [str(samples / name) for name in (NAME, OTHER)]
    session = PacketSession(paths, WANTED, keep_going=False, with_bytes=True)
    tables = list(session)
    assert len(tables) > 50
    check(tables, *[frames_of(samples / os.path.basename(one.path)) for one in session.files])
    blocks = Blocks(paths, ("psn", "cap_len", "offset"), keep_bytes=True)
    kept = [sum(data.nbytes for data in block.data.values()) for block in blocks]
    assert max(kept) <= 2 * (1 << 13)


def test_a_pipe(samples):
    data = gzip.decompress((samples / NAME).read_bytes())
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "wb") as pipe:
            for at in range(0, len(data), 50_000):
                pipe.write(data[at : at + 50_000])

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        tables = read(pipe)
    thread.join()
    assert check(tables, frames_of(samples / NAME)) == 1687


def test_chosen_frames(samples):
    [table] = [one for one in read(str(samples / NAME), frames=FrameRanges("86-88,3,1700-1701")) if len(one)]
    numbers = table["frame"].tolist()
    assert numbers == [number for number in (3, 86, 87, 88, 1700, 1701) if number in set(numbers)]
    assert {86, 87, 88} <= set(numbers)
    check([table], frames_of(samples / NAME))


def test_reading_stops_behind_the_last_frame(samples, monkeypatch):
    monkeypatch.setattr("roce_dissect.capture.reader._BUFFER_BYTES", 1 << 13)
    source = io.BytesIO(gzip.decompress((samples / NAME).read_bytes()))
    read(source, frames=FrameRanges("1-90"))
    stopped = source.tell()
    assert 0 < stopped < 1 << 18 < len(source.getvalue())
    source.seek(0)
    read(source, frames=FrameRanges("1-90,1000-"))
    assert source.tell() == len(source.getvalue())


def pcapng(*frames):
    """Frames as (interface, bytes) of a pcapng file with an Ethernet, a cooked and a raw interface."""

    def block(kind, body):
        size = len(body) + 12
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += b"".join(block(1, struct.pack("<HHI", link_type, 0, 0)) for link_type in LINK_TYPES)
    for number, (interface, frame) in enumerate(frames):
        head = struct.pack("<IIIII", interface, 0, number, len(frame), len(frame))
        out += block(6, head + frame + bytes(-len(frame) % 4))
    return out


LINK_TYPES = (1, 113, 101)


def test_link_types(monkeypatch):
    """That of each frame's own interface, in every batch, between frames that are no RoCE."""
    monkeypatch.setattr("roce_dissect.capture.reader._BUFFER_BYTES", 1 << 10)
    packet = bytes.fromhex("4500003000004000401100000a0000010a000002c00012b7001c0000") + bytes(20)
    headers = (bytes(12) + b"\x08\x00", bytes(14) + b"\x08\x00", b"")
    arp = (0, bytes(12) + b"\x08\x06" + bytes(28))
    given = []
    for number in range(100):
        given += [(number * 7 % 3, headers[number * 7 % 3] + packet), *([arp] * (number % 4))]
    tables = read(io.BytesIO(pcapng(*given)))
    assert len(tables) > 3
    expected = [(LINK_TYPES[interface], frame) for interface, frame in given if (interface, frame) != arp]
    assert [pair for table in tables
            for pair in zip(table["link_type"], table["frame_bytes"], strict=True)] == expected  # fmt: skip


def test_nobody_pays_who_does_not_ask(samples):
    for block in Blocks([str(samples / NAME)], ("psn",)):
        assert not block.data
        assert not {"batch", "link_type"} & set(block.columns)
