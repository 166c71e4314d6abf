"""Bytes of files, pipes and file objects; gzip and zstd made by their own tools and libraries."""

from __future__ import annotations

import fcntl
import gzip
import io
import os
import random
import select
import threading
import time
import tracemalloc
import zlib

import pytest

from roce_dissect.capture.formats import compression_of, looks_like
from roce_dissect.capture.source import open_source
from roce_dissect.errors import ArgumentError, CaptureError

zstandard = pytest.importorskip("zstandard")


def content(size, seed=1):
    """Bytes that compress, but not to nothing."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randrange(2, 30)) for _ in range(200)]
    data = b"".join(rng.choice(words) for _ in range(size // 16 + 1))
    return (data * (size // len(data) + 1))[:size]


def drain(source, size=1 << 16):
    """All bytes, and the error's words or None."""
    buffer = memoryview(bytearray(size))
    data = bytearray()
    try:
        while count := source.readinto(buffer):
            data += buffer[:count]
    except CaptureError as error:
        fault = error
    else:
        return bytes(data), None
    assert fault.offset == len(data)
    return bytes(data), fault.reason


def zstd_frames(data, **options):
    return zstandard.ZstdCompressor(**options).compress(data)


def streamed_zstd(data):
    """A frame without its content size, flushed into many blocks, as a growing file has it."""
    stream = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    parts = [
        stream.compress(data[i : i + 5000]) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for i in range(0, len(data), 5000)
    ]
    return b"".join(parts) + stream.flush()


DATA = content(300_000)
HALF = len(DATA) // 2
SKIPPABLE = b"\x53\x2a\x4d\x18" + (300_000).to_bytes(4, "little") + bytes(300_000)
COMPRESSED = {
    "gzip": gzip.compress(DATA, mtime=0),
    "gzip with a name": b"\x1f\x8b\x08\x08" + bytes(6) + b"name.pcap\x00" + gzip.compress(DATA, mtime=0)[10:],
    "gzip members": gzip.compress(DATA[:HALF]) + gzip.compress(b"") + gzip.compress(DATA[HALF:]),
    "gzip padded": gzip.compress(DATA) + bytes(1000),
    "gzip stored": gzip.compress(DATA, 0),
    "zstd": zstd_frames(DATA),
    "zstd checksum": zstd_frames(DATA, write_checksum=True),
    "zstd without size": zstd_frames(DATA, write_content_size=False),
    "zstd blocks": streamed_zstd(DATA),
    "zstd frames": zstd_frames(DATA[:HALF]) + zstd_frames(b"") + streamed_zstd(DATA[HALF:]),
    "zstd skippable": SKIPPABLE + zstd_frames(DATA[:HALF]) + b"\x50\x2a\x4d\x18" + bytes(4) + zstd_frames(DATA[HALF:]),
    "zstd hard": zstd_frames(DATA, level=19),
    "zstd small": zstd_frames(DATA[:1]) + zstd_frames(DATA[1:200]) + zstd_frames(DATA[200:]),
}


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("size", [97, 1 << 16, 1 << 20])
def test_decompression(tmp_path, kind, size):
    path = tmp_path / "no-telling-name"
    path.write_bytes(COMPRESSED[kind])
    source = open_source(path)
    assert source.compression == kind.partition(" ")[0]
    assert drain(source, size) == (DATA, None)
    assert source.position == source.size == len(COMPRESSED[kind])
    source.close()


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_what_the_tools_write(tmp_path, tool, name):
    path = tmp_path / "data"
    packed = tool(name, "-c", stdin=DATA)
    path.write_bytes(packed + packed)
    assert drain(open_source(path)) == (DATA + DATA, None)


@pytest.mark.parametrize("kind", COMPRESSED)
def test_data_that_ends_early(kind):
    packed = COMPRESSED[kind]
    rng = random.Random(5)
    for length in sorted({*rng.sample(range(5, len(packed)), 60), *range(len(packed) - 12, len(packed))}):
        data, reason = drain(open_source(io.BytesIO(packed[:length])))
        assert DATA.startswith(data)
        if reason is None:  # the cut falls between two members or frames
            assert "members" in kind or "frames" in kind or "padded" in kind or kind in ("zstd skippable", "zstd small")
        else:
            assert reason.startswith("compressed data ends early"), length
            assert kind.partition(" ")[0] in reason


def test_growing_gzip_gives_what_zlib_gives():
    """All bytes that can be had are delivered before the error."""
    packed = COMPRESSED["gzip"]
    dense = gzip.compress(bytes(100_000) + b"end")  # a match of 258 bytes may not fit into what is asked for
    for whole in (packed, dense):
        for length in (40, 100, 5000, *range(len(whole) - 12, len(whole))):
            expected = zlib.decompressobj(31).decompress(whole[:length])
            for size in (7, 1000, 1 << 16):
                assert drain(open_source(io.BytesIO(whole[:length])), size)[0] == expected


@pytest.mark.parametrize("kind", COMPRESSED)
def test_corrupt_data(kind):
    """A flipped bit gives an error, or other bytes where nothing checks them; never another exception."""
    packed = COMPRESSED[kind]
    rng = random.Random(6)
    faults = 0
    for _ in range(60):
        at = rng.randrange(4, min(len(packed), 60_000))
        damaged = bytearray(packed)
        damaged[at] ^= 1 << rng.randrange(8)
        data, reason = drain(open_source(io.BytesIO(bytes(damaged))))
        if reason is not None:
            faults += 1
        elif kind == "gzip":
            assert data == DATA  # its CRC sees all else
    assert faults or "skippable" in kind


def test_everything_before_a_corrupt_byte_is_delivered():
    packed = bytearray(COMPRESSED["gzip stored"])
    packed[200_000] ^= 1  # only the CRC at the end notices
    data, reason = drain(open_source(io.BytesIO(bytes(packed))))
    assert len(data) == len(DATA)
    assert reason == "gzip data is corrupt (incorrect data check)"

    # A stored block with a wrong length in the middle.
    first = zlib.compressobj(0, wbits=31)
    start = first.compress(DATA[:150_000]) + first.flush(zlib.Z_FULL_FLUSH)
    data, reason = drain(open_source(io.BytesIO(start + b"\x00\x10\x00\x10\x00" + bytes(100_000))), 1 << 20)
    assert data == DATA[:150_000]
    assert "gzip data is corrupt" in reason

    packed = zstd_frames(DATA[:HALF]) + b"\x28\xb5\x2f\xfd" + bytes([0x00, 0x58, 0x07, 0, 0, 1, 2, 3])
    data, reason = drain(open_source(io.BytesIO(packed)))
    assert data == DATA[:HALF]
    assert reason == "zstd data is corrupt (block header)"


@pytest.mark.parametrize(
    ("kind", "words"), [("gzip", "after the end of the gzip"), ("zstd", "after the end of the zstd")]
)
def test_data_behind_the_end(kind, words):
    data, reason = drain(open_source(io.BytesIO(COMPRESSED[kind] + b"something else")))
    assert data == DATA
    assert f"after the end of the {kind} data" in reason


def test_many_empty_members_and_frames():
    packed = gzip.compress(b"", mtime=0) * 20_000 + gzip.compress(b"end")
    assert drain(open_source(io.BytesIO(packed))) == (b"end", None)
    packed = b"\x50\x2a\x4d\x18" + bytes(4)
    assert drain(open_source(io.BytesIO(packed * 40_000 + zstd_frames(b"end") * 2))) == (b"endend", None)


def zstd_of_zeros(size):
    """A frame of run-length blocks: 4 bytes for each 128 KiB."""
    block = ((1 << 17) << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"
    last = (1 << 1 | 1).to_bytes(3, "little") + b"\x00"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (size >> 17) + last


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_expanding_data_takes_constant_memory(kind):
    size = 1 << 28
    if kind == "gzip":
        packer = zlib.compressobj(9, wbits=31)
        packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    else:
        packed = zstd_of_zeros(size)
    source = open_source(io.BytesIO(packed))
    buffer = memoryview(bytearray(1 << 20))
    tracemalloc.start()
    total = 0
    while count := source.readinto(buffer):
        total += count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == size
    assert peak < 4 << 20


# -- where bytes come from


@pytest.mark.parametrize("kind", ["readinto", "readinto1", "read"])
def test_file_objects(kind):
    class Reader:
        """Gives at most 1000 bytes a call, through one method only."""

        def __init__(self):
            self.stream = io.BytesIO(DATA)
            setattr(self, kind, self._read if kind == "read" else self._readinto)

        def _read(self, size):
            return self.stream.read(min(size, 1000))

        def _readinto(self, buffer):
            return self.stream.readinto(memoryview(buffer)[:1000])

    source = open_source(Reader())
    assert source.path == "<stream>"
    assert source.size is None
    assert drain(source) == (DATA, None)


def test_a_file_that_was_opened_here_is_closed(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"abcd")
    source = open_source(path)
    source.close()
    with pytest.raises(ValueError, match="closed"):
        drain(source)


def test_a_file_object_stays_open(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(DATA)
    with path.open("rb") as file:
        source = open_source(file)
        assert (source.path, source.size) == (str(path), len(DATA))
        assert drain(source) == (DATA, None)
        source.close()
        assert not file.closed


def test_pipe_is_read_with_what_is_there():
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as file:
        os.write(writer, b"first bytes")
        source = open_source(file)
        buffer = memoryview(bytearray(1 << 20))
        assert source.readinto(buffer) == 11  # no waiting for a full buffer
        os.write(writer, b"more")
        assert source.readinto(buffer) == 4
        started = time.monotonic()
        assert source.readinto(buffer, 0.05) is None
        assert 0.04 < time.monotonic() - started < 5
        os.write(writer, b"again")
        assert source.readinto(buffer, 5) == 5
        os.close(writer)
        assert source.readinto(buffer, 5) == 0
        assert source.position == 20


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_compressed_pipe_gives_what_is_there(kind):
    if kind == "gzip":
        packer = zlib.compressobj(wbits=31)
        flush = zlib.Z_SYNC_FLUSH
    else:
        packer = zstandard.ZstdCompressor().compressobj()
        flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as file:
        os.write(writer, packer.compress(b"first bytes") + packer.flush(flush))
        source = open_source(file)
        buffer = memoryview(bytearray(1 << 20))
        assert source.readinto(buffer, 0.05) == 11
        assert source.readinto(buffer, 0.05) is None
        os.write(writer, packer.compress(b"more") + packer.flush(flush))
        assert source.readinto(buffer, 0.05) == 4
        os.write(writer, packer.flush())
        os.close(writer)
        assert source.readinto(buffer, 5) == 0


def test_descriptor_that_does_not_block():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with os.fdopen(reader, "rb", buffering=0) as file:
        timer = threading.Timer(0.1, lambda: (os.write(writer, b"late bytes"), os.close(writer)))
        timer.start()
        assert drain(open_source(file)) == (b"late bytes", None)
        timer.join()


@pytest.fixture
def high_descriptor():
    """``high_descriptor(fd)``: the same as a descriptor above 1023, which select takes no more."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1100:
        pytest.skip("no such descriptor may be opened")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1100), hard) if soft >= 0 else (soft, hard))

    def move(descriptor):
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 1050)
        os.close(descriptor)
        return moved

    yield move
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("blocking", [True, False])
def test_descriptor_above_1023(high_descriptor, blocking):
    reader, writer = os.pipe()
    os.set_blocking(reader, blocking)
    reader = high_descriptor(reader)
    assert reader > 1023
    with os.fdopen(reader, "rb", buffering=0) as file:
        os.write(writer, b"first bytes")
        source = open_source(file)
        buffer = memoryview(bytearray(100))
        assert source.readinto(buffer, 0.01) == 11
        assert source.readinto(buffer, 0.01) is None
        timer = threading.Timer(0.1, lambda: (os.write(writer, b"late"), os.close(writer)))
        timer.start()
        assert source.readinto(buffer) == 4
        assert source.readinto(buffer, 5) == 0
        timer.join()


def test_regular_files_are_not_waited_for(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(DATA)
    monkeypatch.setattr(select, "poll", None)
    source = open_source(tmp_path / "file")
    buffer = memoryview(bytearray(1 << 16))
    data = b""
    while count := source.readinto(buffer, 0.01):
        data += buffer[:count]
    source.close()
    assert data == DATA


def test_standard_input(monkeypatch, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(COMPRESSED["gzip"])
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        source = open_source("-")
        assert source.path == "-"
        assert drain(source) == (DATA, None)
        source.close()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DATA)))
    assert drain(open_source("-")) == (DATA, None)


def test_failing_read_keeps_what_came_before():
    class Broken(io.RawIOBase):
        calls = 0

        def readinto(self, buffer):
            self.calls += 1
            if self.calls > 2:
                raise OSError(5, "Input/output error")
            buffer[:4] = b"abcd"
            return 4

    assert drain(open_source(Broken())) == (b"abcdabcd", "cannot be read: Input/output error")


@pytest.mark.parametrize("kind", ["gzip", "zstd blocks"])
def test_failing_read_of_compressed_data_keeps_what_came_before(kind):
    class Broken(io.RawIOBase):
        stream = io.BytesIO(COMPRESSED[kind][:70_000])

        def readinto(self, buffer):
            return self.stream.readinto(buffer) or os.read(-1, 1)

    data, reason = drain(open_source(Broken()), 1 << 20)
    assert DATA.startswith(data)
    assert len(data) > 60_000
    assert reason == "cannot be read: Bad file descriptor"


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(CaptureError, match="cannot be opened: No such file"):
        open_source(tmp_path / "missing")
    with pytest.raises(CaptureError, match="cannot be opened: Is a directory"):
        open_source(tmp_path)
    with pytest.raises(CaptureError, match="cannot be opened"):
        open_source("a\x00b")
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(CaptureError, match="is empty") as caught:
        open_source(path)
    assert (caught.value.path, caught.value.offset) == (str(path), 0)


def test_what_is_no_source(tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_text("text")
    with path.open() as file, pytest.raises(ArgumentError, match="neither a path nor a binary file object"):
        open_source(file)
    with pytest.raises(ArgumentError, match="neither a path nor a binary file object"):
        open_source(5)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CaptureError, match="-: standard input is closed"):
        open_source("-")


def test_object_that_has_nothing_yet():
    class Late:
        pieces = (None, b"late", None, b" bytes", b"")

        def read(self, size):
            piece, *self.pieces = self.pieces
            return piece

    assert drain(open_source(Late())) == (b"late bytes", None)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "secret"
    path.touch(0o000)
    with pytest.raises(CaptureError, match="cannot be opened: Permission denied"):
        open_source(path)


def test_compression_is_told_by_magic():
    assert compression_of(b"\x1f\x8b\x08") == "gzip"
    assert compression_of(b"\x28\xb5\x2f\xfd\x00") == "zstd"
    assert compression_of(b"\x5f\x2a\x4d\x18\x00") == "zstd"
    assert compression_of(b"\x60\x2a\x4d\x18\x00") is None
    assert compression_of(b"") is None


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"No.,Time,Source\n1,0.0,10.0.0.1\n", "text"),
        ("Überschrift".encode(), "text"),
        ("Überschrift".encode()[:1], "text"),
        ("text".encode("utf-16"), "text in UTF-16"),
        (b"\xfd7zXZ\x00\x00", "compressed with xz"),
        (b"BZh91AY", "compressed with bzip2"),
        (b"PK\x03\x04\x14", "a ZIP archive"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd again"),
        (b"snoop\x00\x00\x00\x00\x00\x00\x02", "a snoop capture: convert it with editcap"),
        (bytes(30), "nothing but zeros"),
        (bytes.fromhex("d0cf11e0a1b11ae1"), ""),
    ],
)
def test_what_it_looks_like(head, kind):
    assert looks_like(head) == kind
