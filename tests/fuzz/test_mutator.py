"""Mutations keep containers in order as they mean to, and are the same for the same seed."""

from __future__ import annotations

import io
import random

import pytest

from roce_dissect.capture.reader import open_capture
from roce_dissect.errors import CaptureError


def bare(seed):
    """Stands for the engine's own mutation: bytes changed, put in, or left out."""
    rng = random.Random(seed)

    def change(data, most):
        data = bytearray(data or b"\0")
        at = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 2:
                del data[at : at + 3]
        return bytes(data[:most]) or b"\0"

    return change


def whether_read(data):
    """Whether a capture is read to its end, and its frames."""
    frames = 0
    try:
        with open_capture(io.BytesIO(data)) as capture:
            for records in capture:
                frames += records.count
    except CaptureError:
        return False, frames
    return not capture.truncated, frames


@pytest.mark.parametrize("name", ["opcodes0.pcap", "blocks0.pcapng", "resolution40.pcapng"])
def test_mutations(fuzz, name):
    [data] = [data for seed, data in fuzz.seeds.all_seeds() if seed == name]
    read, counts, made = 0, set(), set()
    for seed in range(300):
        mutated = fuzz.mutator.mutate(data, 2000, seed, bare(seed))
        assert mutated == fuzz.mutator.mutate(data, 2000, seed, bare(seed))
        assert 0 < len(mutated) <= 2000
        fine, frames = whether_read(mutated)
        read += fine
        counts.add(frames)
        made.add(mutated)
    assert 150 < read < 300  # most stay readable, and not all
    assert len(counts) > 3
    assert len(made) > 200


def test_never_longer_than_allowed(fuzz):
    for name, data in fuzz.seeds.all_seeds():
        for seed in range(30):
            assert 0 < len(fuzz.mutator.mutate(data, len(data), seed, bare(seed))) <= len(data), name


def test_what_is_no_capture(fuzz):
    for data in (b"\0", b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a" + bytes(30), bytes(60)):
        for seed in range(50):
            assert fuzz.mutator.mutate(data, 100, seed, bare(seed))
