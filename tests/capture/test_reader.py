"""Whole captures: against tshark, capinfos and dpkt, and what goes wrong with files."""

from __future__ import annotations

import gzip
import io
import os
import random
import tracemalloc

import numpy as np
import pytest

from roce_dissect.capture import NO_PACKET, open_capture
from roce_dissect.errors import CaptureError, NotACaptureError

SAMPLES = ["imp_loss1_write.server", "encap_qinq.client", "rc_mix_vlan100_ipv6.client"]


def count_frames(capture):
    return sum(records.count for records in capture)


def rows_of(capture):
    """Rows (number, captured, wire, time in ns) as `frames_by_tshark` gives them."""
    rows = []
    for records in capture:
        for i in range(records.count):
            numbers = records.cap_len[i], records.wire_len[i], records.time_ns[i]
            rows.append((records.first_frame + i, *map(int, numbers)))
    return rows


@pytest.fixture
def sample(softroce, tmp_path):
    """``sample(name)``: an unpacked Soft-RoCE capture."""

    def unpack(name):
        path = tmp_path / f"{name}.pcap"
        path.write_bytes(gzip.decompress((softroce / f"{name}.pcap.gz").read_bytes()))
        return path

    return unpack


# -- outside oracles


@pytest.mark.parametrize("name", SAMPLES)
def test_frames_equal_tshark(softroce, frames_by_tshark, name):
    path = softroce / f"{name}.pcap.gz"
    with open_capture(path) as capture:
        assert (capture.format, capture.compression, capture.path) == ("pcap", "gzip", str(path))
        assert rows_of(capture) == frames_by_tshark(path)
        assert capture.position == capture.size == path.stat().st_size
        assert not capture.truncated


@pytest.mark.parametrize("form", ["pcap", "nsecpcap", "pcapng", "modpcap"])
@pytest.mark.parametrize("slicing", [[], ["-s", "66"]])
def test_formats_that_editcap_writes(sample, tmp_path, tool, frames_by_tshark, form, slicing):
    path = tmp_path / "written"
    tool("editcap", "-F", form, *slicing, sample("encap_qinq.client"), path)
    if form == "modpcap":
        with pytest.raises(NotACaptureError, match=r"is not a capture \(a capture of a patched libpcap"):
            open_capture(path)
        return
    with open_capture(path) as capture:
        assert capture.format == form.removeprefix("nsec")
        expected = frames_by_tshark(path)
        assert rows_of(capture) == expected
        assert capture.sliced_frames == sum(captured < wire for _, captured, wire, _ in expected)
        assert (capture.sliced_frames > 0) == bool(slicing)
        times = [time for *_, time in expected]
        assert (capture.first_time_ns, capture.last_time_ns) == (min(times), max(times))
        assert capture.link_types == {1: len(expected)}


def test_several_interfaces_and_sections(sample, tmp_path, tool, frames_by_tshark, build):
    one, two, merged = sample("encap_qinq.client"), sample("rc_mix_vlan100_ipv6.client"), tmp_path / "merged"
    cooked = tmp_path / "cooked"
    tool("editcap", "-T", "linux-sll", two, cooked)
    tool("mergecap", "-F", "pcapng", "-w", merged, one, cooked)
    # Then a section of the other byte order by hand, and the first one again.
    sections = tmp_path / "sections"
    sections.write_bytes(merged.read_bytes() + build.small_pcapng(">") + merged.read_bytes())
    for path in (merged, sections):
        expected = frames_by_tshark(path)
        with open_capture(path) as capture:
            found = rows_of(capture)
            assert [row[0] for row in found] == [row[0] for row in expected]
            assert [row[3] for row in found] == [row[3] or 0 for row in expected]
            packets = [i for i, row in enumerate(found) if row[2]]  # a custom block has no length here
            assert [found[i][1:3] for i in packets] == [expected[i][1:3] for i in packets]
            assert len(expected) - len(packets) == (path == sections)
            assert capture.link_types[113] > 70
            assert sum(capture.link_types.values()) == len(expected)


def test_every_kind_of_block_is_the_frame_that_tshark_counts(tmp_path, frames_by_tshark, build):
    path = tmp_path / "blocks"
    for order in "<>":
        path.write_bytes(build.small_pcapng(order))
        expected = frames_by_tshark(path)
        with open_capture(path) as capture:
            found = rows_of(capture)
        assert [row[0] for row in found] == [row[0] for row in expected]
        assert [row[3] for row in found] == [row[3] or 0 for row in expected]
        packets = [i for i, row in enumerate(found) if row[2]]  # a custom block has no length here
        assert len(packets) == len(expected) - 1
        assert [found[i][1:3] for i in packets] == [expected[i][1:3] for i in packets]


def test_frames_of_damaged_captures_equal_tshark(tmp_path, frames_by_tshark, build):
    """Where exactly each gives up is its own affair; up to there both see the same frames.

    Only pcapng: in a damaged classic file Wireshark tries the record headers of several patched libpcaps.
    """
    path = tmp_path / "damaged"
    compared = whole = 0
    for data in build.mutants(77, 24):
        if data[:4] != b"\n\r\r\n":
            continue
        path.write_bytes(data)
        expected = frames_by_tshark(path, check=False)
        found, error = [], None
        try:
            with open_capture(path) as capture:
                for records in capture:
                    for i in range(records.count):
                        packet = records.link_type[i] != NO_PACKET
                        found.append(
                            (int(records.cap_len[i]), min(int(records.wire_len[i]), 2**31 - 1)) if packet else None
                        )
        except CaptureError as caught:
            error = caught
        if error is None:
            assert len(found) >= len(expected)  # tshark refuses some more
            whole += len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=False):
            assert ours is None or ours == theirs[1:3]
            compared += 1
    assert compared > 30
    assert whole > 3


def test_bytes_equal_dpkt(sample, tmp_path, tool):
    dpkt = pytest.importorskip("dpkt")
    plain = sample("imp_loss1_write.server")
    blocks = tmp_path / "blocks"
    tool("editcap", "-F", "pcapng", plain, blocks)
    for path, reader in ((plain, dpkt.pcap.Reader), (blocks, dpkt.pcapng.Reader)):
        with path.open("rb") as file:
            expected = [data for _, data in reader(file)]
        with open_capture(path) as capture:
            found = [r.data[o : o + n].tobytes() for r in capture for o, n in zip(r.offset, r.cap_len, strict=True)]
        assert found == expected


def test_capture_that_dumpcap_ended(tool, softroce, tmp_path):
    """Summary figures as capinfos gives them, for a folder of captures."""
    paths = sorted(softroce.glob("*.server.pcap.gz"))[:25]
    table = tool("capinfos", "-T", "-M", "-c", "-a", "-e", "-r", *paths).decode().splitlines()
    for path, line in zip(paths, table, strict=True):
        name, packets, *_ = line.split("\t")
        with open_capture(path) as capture:
            for _ in capture:
                pass
        assert (name, int(packets)) == (str(path), capture.frames)


# -- batches


def test_batches_are_bounded_and_numbered(build):
    data = build.pcap_header() + build.pcap_record(1, 2, b"abcd") * 40_000
    with open_capture(io.BytesIO(data)) as capture:
        sizes = []
        for records in capture:
            assert records.first_frame == sum(sizes) + 1
            assert records.data.dtype == np.uint8
            for array in (records.offset, records.cap_len, records.wire_len, records.time_ns):
                assert array.dtype == np.int64
            assert records.link_type.dtype == np.uint16
            assert len(records.offset) == len(records.link_type) == records.count
            sizes.append(records.count)
        assert sizes == [16384, 16384, 40_000 - 2 * 16384]
        assert capture.frames == 40_000
        assert capture.offset == len(data)


def test_records_across_the_ends_of_the_buffer(build):
    rng = random.Random(3)
    frames = [rng.randbytes(rng.randrange(0, 9000)) for _ in range(3000)]  # 13 MB: more than three buffers
    plain = build.pcap_header() + b"".join(build.pcap_record(i, 0, f) for i, f in enumerate(frames))
    blocks = build.section() + build.interface() + b"".join(build.enhanced(i, f) for i, f in enumerate(frames))
    for data in (plain, blocks):
        with open_capture(io.BytesIO(data)) as capture:
            found = [r.data[o : o + n].tobytes() for r in capture for o, n in zip(r.offset, r.cap_len, strict=True)]
        assert found == frames


def test_a_record_longer_than_the_buffer_grows_it(build):
    long = bytes(10 << 20)
    data = build.section() + build.interface() + build.enhanced(1, long) + build.enhanced(2, b"after")
    with open_capture(io.BytesIO(data)) as capture:
        assert [list(r.cap_len) for r in capture] == [[len(long)], [5]]


def test_the_buffer_grows_only_as_bytes_arrive(build):
    """A length of 64 MiB in a small file takes no memory."""
    data = build.section() + build.interface() + build.block(0x777, bytes(100), length=64 << 20)
    tracemalloc.start()
    with open_capture(io.BytesIO(data)) as capture:
        assert list(capture) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert capture.truncated
    assert peak < 10 << 20


def test_memory_is_bounded_however_far_the_data_expands(build, load_form):
    load_form("roce_dissect.capture.records", "compiled")  # it is a matter of seconds otherwise
    zstandard = pytest.importorskip("zstandard")
    # Records without bytes, run-length blocks of zeros: 256 MiB from 8 KiB.
    block = ((1 << 17) << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"
    zeros = b"\x28\xb5\x2f\xfd\x00\x58" + block * 2048 + b"\x03\x00\x00\x00"
    data = zstandard.compress(build.pcap_header()) + zeros
    tracemalloc.start()
    with open_capture(io.BytesIO(data)) as capture:
        total = count_frames(capture)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == capture.frames == 2048 * (1 << 17) // 16
    assert peak < 10 << 20

    # No capture: noticed in the first bytes.
    with pytest.raises(NotACaptureError, match="nothing but zeros") as caught:
        open_capture(io.BytesIO(zeros))
    assert caught.value.offset == 0


def test_compressed_forms_of_a_capture(build, tmp_path):
    zstandard = pytest.importorskip("zstandard")
    data = build.small_pcapng()
    with open_capture(io.BytesIO(data)) as capture:
        expected = rows_of(capture)
        assert capture.compression is None
    for name, packed in (("gzip", gzip.compress(data)), ("zstd", zstandard.compress(data))):
        path = tmp_path / "capture.pcap"  # the name says nothing
        path.write_bytes(packed)
        with open_capture(path) as capture:
            assert (capture.compression, rows_of(capture)) == (name, expected)
            assert capture.offset == len(data)


# -- pipes


def test_growing_pipe(build):
    reader, writer = os.pipe()
    record = build.pcap_record(1, 2, b"abcdefgh")
    os.write(writer, build.pcap_header() + record + record[:7])
    with os.fdopen(reader, "rb", buffering=0) as file, open_capture(file, poll_s=0.02) as capture:
        assert next(capture).count == 1
        empty = next(capture)
        assert (empty.count, empty.first_frame, len(empty.offset)) == (0, 2, 0)
        os.write(writer, record[7:] + record)
        assert next(capture).count == 2
        assert next(capture).count == 0
        os.write(writer, record[:20])
        os.close(writer)
        assert list(capture) == []
        assert capture.truncated
        assert capture.frames == 3
        assert capture.size is None


def test_pipe_without_poll_ends_with_its_writer(build):
    reader, writer = os.pipe()
    os.write(writer, build.small_pcap())
    os.close(writer)
    with os.fdopen(reader, "rb") as file, open_capture(file) as capture:
        assert count_frames(capture) == 8


# -- what is wrong with files


def fail(path):
    with pytest.raises(CaptureError) as caught:
        open_capture(path)
    assert caught.value.path == str(path)
    return caught.value


def test_what_is_no_capture(tmp_path, build):
    path = tmp_path / "file"
    assert fail(path).reason == "cannot be opened: No such file or directory"
    assert fail(tmp_path).reason == "cannot be opened: Is a directory"
    for data, words in (
        (b"", "is empty"),
        (gzip.compress(b""), "is empty"),
        (b"1 0.000 10.0.0.1 -> 10.0.0.2 RRoCE\n", "is not a capture (text)"),
        (gzip.compress(b"just text\n" * 1000), "is not a capture (text)"),
        (gzip.compress(gzip.compress(build.small_pcap())), "is not a capture (compressed with gzip again)"),
        (random.Random(1).randbytes(100), "is not a capture"),
        (b"BZh91AY&SY", "is not a capture (compressed with bzip2)"),
    ):
        path.write_bytes(data)
        error = fail(path)
        assert (error.reason, error.offset) == (words, 0)
        assert isinstance(error, NotACaptureError) == words.startswith("is not")
        assert str(error) == f"{path}: {words} (at byte 0)"


def test_cut_file_header(tmp_path, build):
    path = tmp_path / "file"
    for length in range(1, 24):
        path.write_bytes(build.small_pcap()[:length])
        error = fail(path)
        assert error.reason.startswith("the file header is cut")
        assert error.offset == length
    for length in range(1, 28):
        path.write_bytes(build.section()[:length])
        assert "header is cut" in fail(path).reason


def test_file_header_without_records(build):
    for data in (build.pcap_header(), build.section(), build.section() + build.interface()):
        with open_capture(io.BytesIO(data)) as capture:
            assert list(capture) == []
            assert (capture.frames, capture.first_time_ns, capture.last_time_ns) == (0, None, None)
            assert (capture.link_types, capture.truncated, capture.offset) == ({}, False, len(data))


@pytest.mark.parametrize("version", [(1, 0), (2, 2), (543, 0), (0, 0)])
def test_versions_of_other_forms(build, version):
    with pytest.raises(CaptureError, match=f"pcap version {version[0]}.{version[1]} is not supported"):
        open_capture(io.BytesIO(build.pcap_header(version=version) + build.pcap_record(1, 2, b"abcd")))


@pytest.mark.parametrize("length", [0, 27, 29, 0x80000000, 0xFFFFFFFF])
def test_first_block_of_an_absurd_length(build, length):
    data = bytearray(build.small_pcapng())
    data[4:8] = length.to_bytes(4, "little")
    with pytest.raises(CaptureError, match=f"a section header of {length} bytes") as caught:
        open_capture(io.BytesIO(bytes(data)))
    assert caught.value.offset == 0


def test_everything_before_a_fault_is_delivered(build):
    good = build.pcap_header() + build.pcap_record(1, 2, b"abcd") * 20_000
    data = good + b"\xff" * 100
    with open_capture(io.BytesIO(data)) as capture:
        assert [next(capture).count, next(capture).count] == [16384, 20_000 - 16384]
        for _ in range(2):  # each time again, not a quiet end
            with pytest.raises(CaptureError) as caught:
                next(capture)
        assert capture.frames == 20_000
        assert caught.value.offset == capture.offset == len(good)


def test_compressed_data_that_ends_early(build):
    rng = random.Random(9)
    plain = build.pcap_header() + b"".join(build.pcap_record(1, 2, rng.randbytes(400)) for _ in range(500))
    packed = gzip.compress(plain)
    with open_capture(io.BytesIO(packed[:-5000])) as capture:
        assert 480 < next(capture).count < 500
        with pytest.raises(CaptureError, match="compressed data ends early") as caught:
            next(capture)
        assert 0 <= caught.value.offset - capture.offset < 416


def test_a_closed_capture_gives_no_more(build):
    capture = open_capture(io.BytesIO(build.small_pcap()))
    capture.close()
    assert list(capture) == []


def test_no_packet_is_the_documented_number():
    assert NO_PACKET == 65535
