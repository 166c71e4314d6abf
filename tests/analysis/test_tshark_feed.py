"""Captures as bytes that tshark can read: what they hold is read back by tshark and by our reader."""

from __future__ import annotations

import struct
import subprocess

import pytest
import zstandard

from roce_dissect.analysis.tshark_feed import feed_for, infiniband_as_erf
from roce_dissect.capture.reader import open_capture
from roce_dissect.errors import CaptureError, NotACaptureError


def records_of(path):
    """(link type, time, captured, wire, bytes) of each frame."""
    found = []
    with open_capture(path) as capture:
        for batch in capture:
            for n in range(batch.count):
                start, captured = int(batch.offset[n]), int(batch.cap_len[n])
                frame = batch.data[start : start + captured].tobytes()
                found.append((int(batch.link_type[n]), int(batch.time_ns[n]), captured, int(batch.wire_len[n]), frame))
    return found


@pytest.fixture
def native(frames, tmp_path):
    """A capture of native InfiniBand, the second frame sliced."""
    made = [frames.native(frames.packet(4, b"data", psn=psn)) for psn in range(3)]
    path = tmp_path / "native.pcap"
    cut = [made[0], made[1][:25], made[2]]
    first_ns, step_ns = 1_699_999_999_999_999_999, 123_456_789
    path.write_bytes(frames.pcap(cut, True, [*map(len, made)], 247, first_ns, step_ns))
    return path


def mixed(frames):
    """pcapng: Ethernet, native InfiniBand of an interface that is described late, a custom block, Ethernet."""

    def block(kind, body):
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    def packet(interface, time_us, frame):
        head = struct.pack("<IIIII", interface, 0, time_us, len(frame), len(frame))
        return block(6, head + frame + bytes(-len(frame) % 4))

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack("<HHI", 1, 0, 0)) + packet(0, 5, frames.v2(4, b"data", psn=1))
    native = frames.native(frames.packet(4, b"data", psn=2))
    out += block(1, struct.pack("<HHI", 247, 0, 0)) + packet(1, 6, native)
    return out + block(0xBAD, struct.pack("<I", 1)) + packet(0, 7, frames.v2(4, b"data", psn=4))


def test_erf_records_have_the_frames_of_the_capture(native, tmp_path):
    written = tmp_path / "erf.pcapng"
    written.write_bytes(b"".join(infiniband_as_erf(str(native))))
    before, after = records_of(native), records_of(written)
    assert len(before) == 3
    for (_, time_ns, captured, wire, frame), other in zip(before, after, strict=True):
        assert other == (197, time_ns, captured + 16, wire + 16, other[4])
        assert other[4][16:] == frame
        assert other[4][8] == 21  # InfiniBand


def test_tshark_reads_the_very_times_and_lengths(native, tshark):
    fields = ("frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "infiniband.bth.psn")
    asked = [part for name in fields for part in ("-e", name)]
    command = [tshark.path, "-r", "-", "-T", "fields", *asked]
    done = subprocess.run(command, input=b"".join(infiniband_as_erf(str(native))), capture_output=True, check=True)
    # times as the capture was made, lengths: LRH 8, BTH 12, data 4, ICRC 4, VCRC 2
    assert [line.split("\t") for line in done.stdout.decode().splitlines()] == [
        ["1", "1699999999.999999999", "30", "30", "0"],
        ["2", "1700000000.123456788", "30", "25", "1"],
        ["3", "1700000000.246913577", "30", "30", "2"],
    ]


def test_link_types_side_by_side(frames, tmp_path):
    path, written = tmp_path / "mixed.pcapng", tmp_path / "written.pcapng"
    path.write_bytes(mixed(frames))
    written.write_bytes(b"".join(feed_for(str(path), True)))
    before, after = records_of(path), records_of(written)
    assert len(before) == len(after) == 4
    assert [one[0] for one in before][:2] == [1, 247]
    assert [one[0] for one in after] == [1, 197, 1, 1]
    assert [one[2] for one in after] == [before[0][2], before[1][2] + 16, 0, before[3][2]]
    assert (after[0], after[3]) == (before[0], before[3])


def test_what_tshark_can_read_is_not_fed(samples, plain, tmp_path):
    capture = samples / "rc_mix_vlan100_ipv4.client.pcap.gz"
    zst = tmp_path / "capture.zst"
    zst.write_bytes(zstandard.compress(plain(capture).read_bytes()))
    assert feed_for(str(capture), False) is None
    assert feed_for(str(plain(capture)), False) is None
    assert feed_for(str(zst), True) is None
    assert b"".join(feed_for(str(zst), False)) == plain(capture).read_bytes()


def test_what_is_no_capture(tmp_path):
    path = tmp_path / "text"
    path.write_text("hello, world")
    with pytest.raises(NotACaptureError):
        feed_for(str(path), True)
    with pytest.raises(CaptureError, match="No such file"):
        feed_for(str(tmp_path / "missing"), True)
