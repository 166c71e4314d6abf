"""Damaged capture files through the whole toolkit: no crash, no hang, no exception but our own.

Fixed seeds. A thread that dumps all stacks and ends the process stands behind each part, so that a hang fails.
"""

from __future__ import annotations

import faulthandler
import gzip
import io
import random
import time

import pytest

import roce_dissect as rd
from roce_dissect.api import Session

#: Small samples of each kind: pcap in micro- and nanoseconds, sliced, pcapng, CM, RNR, VLAN, IPv6, UC, UD.
SAMPLES = [
    "cm_refused.client.pcap.gz",
    "cm_rping_ipv4.client.pcap.gz",
    "flt_bad_rkey_write.server.pcap.gz",
    "fmt_dumpcap.pcapng.gz",
    "fmt_nsec_snap80.pcap.gz",
    "rc_mix_ipv4_mtu1024.server.pcap.gz",
    "rc_mix_ipv6_mtu1024.client.pcap.gz",
    "rc_mix_vlan100_ipv4.client.pcap.gz",
    "uc_mix_ipv4.client.pcap.gz",
    "ud_mix_ipv4.server.pcap.gz",
]
EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 24, 28, 32, 1 << 16, 1 << 18, 1 << 26)
CASES = 300


@pytest.fixture
def in_time():
    """Ends the process with all stacks after two minutes."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def damaged(data, rng):
    """A capture with bits, bytes, numbers and pieces changed."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(data)) if rng.random() < 0.8 else rng.randrange(min(len(data), 64))
        match rng.randrange(7):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                at &= ~3
                data[at : at + 4] = rng.choice(EDGES).to_bytes(4, rng.choice(("little", "big")))
            case 3:
                data[at : at + 2] = rng.randbytes(2)
            case 4 if rng.random() < 0.3:
                del data[at:]
            case 5:
                del data[at : at + rng.randrange(1, 60)]
            case 6:
                data[at:at] = data[at : at + rng.randrange(1, 200)]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


def look_at(result):
    """What a user does next with any analysis."""
    capture = result.capture
    assert capture["roce_packets"] <= capture["packets"]
    without_stream = ("foreign_packets", "untracked_packets", "damaged_packets", "doubled_packets")
    in_streams = result.streams["packets"].sum()
    assert in_streams + sum(capture[name] for name in without_stream) == capture["roce_packets"]
    assert set(result.to_dict()) >= {"capture", "connections", "events", "streams"}
    [summary] = capture["files"]
    assert capture["complete"] == (summary["error"] is None)
    assert (result.events["stream"] < len(result.streams)).all()
    assert (result.events["connection"] <= len(result.connections)).all()


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_captures(name, samples, in_time):
    """Each of them is read and tracked to its end; the tables of every twentieth are built and looked at."""
    rng = random.Random(name)
    original = gzip.decompress((samples / name).read_bytes())
    failed = 0
    for case in range(CASES):
        data = damaged(original, rng)
        if case % 20:
            session = Session(io.BytesIO(data), keep_going=True)
            rows = sum(session)
            assert rows <= len(data)
            continue
        result = rd.analyze(io.BytesIO(data), errors="keep")
        look_at(result)
        if not result.capture["complete"]:
            failed += 1
            with pytest.raises(rd.CaptureError) as caught:
                rd.analyze(io.BytesIO(data))
            assert caught.value.analysis.capture["packets"] == result.capture["packets"]
            assert caught.value.reason == result.capture["files"][0]["error"]
            assert len(caught.value.analysis.streams) == len(result.streams)
    assert failed < CASES // 20


@pytest.mark.parametrize("name", SAMPLES[:4])
def test_packets_of_damaged_captures(name, samples, in_time):
    """read_packets raises nothing but our own errors, and iter_packets gives all packets before the fault."""
    rng = random.Random(name + "packets")
    original = gzip.decompress((samples / name).read_bytes())
    for _ in range(25):
        data = damaged(original, rng)
        result = rd.analyze(io.BytesIO(data), errors="keep")
        rows = 0
        try:
            for frame in rd.iter_packets(io.BytesIO(data), ["frame", "psn", "src", "verdict"]):
                rows += len(frame)
        except rd.CaptureError:
            assert not result.capture["complete"]
        assert rows == result.capture["roce_packets"]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_damaged_compression(kind, samples, in_time):
    rng = random.Random(kind)
    data = gzip.decompress((samples / SAMPLES[0]).read_bytes())
    if kind == "zstd":
        import zstandard

        data = zstandard.ZstdCompressor().compress(data)
    else:
        data = gzip.compress(data, mtime=0)
    whole = rd.analyze(io.BytesIO(data)).capture["packets"]
    unreadable = 0
    for _ in range(30):
        result = rd.analyze(io.BytesIO(damaged(data, rng)), errors="keep")
        look_at(result)
        unreadable += not result.capture["complete"]
    assert whole == 8
    assert unreadable > 7


@pytest.mark.parametrize("name", SAMPLES)
def test_cut_anywhere(name, samples, in_time):
    """A capture that is still being written: all frames before the cut, a note, no error."""
    data = gzip.decompress((samples / name).read_bytes())
    rng = random.Random(name + "cut")
    whole = rd.analyze(io.BytesIO(data)).capture
    frames = 0
    for cut in sorted(rng.sample(range(len(data)), 10)):
        try:
            result = rd.analyze(io.BytesIO(data[:cut]))
        except rd.CaptureError:
            assert cut < 64  # the file's own header
            continue
        assert result.capture["complete"]
        assert frames <= result.capture["packets"] <= whole["packets"]
        frames = result.capture["packets"]


def test_noise(in_time):
    """Bytes that are no capture, also behind the magics of captures."""
    rng = random.Random(5)
    magics = [b"", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]
    start = time.monotonic()
    for case in range(300):
        data = rng.choice(magics) + rng.randbytes(rng.randrange(400))
        session = Session(io.BytesIO(data), keep_going=True)
        assert sum(session) == 0
        if case % 10 == 0:
            look_at(session.analysis())
    assert time.monotonic() - start < 60
