"""The harness itself: the seeds reach what they are for, frames lie apart, and a difference is one."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from roce_dissect import layout
from roce_dissect.capture.reader import open_capture
from roce_dissect.spec.opcodes import HEADERS
from roce_dissect.terms import Tunnel


def test_seeds_reach_everything(fuzz, agree):
    """Both forms agree on all of them, and together they reach every opcode, tunnel, link type and status."""
    reached, errors = set(), 0
    for _name, data in fuzz.seeds.all_seeds():
        outcome = agree(data)
        assert "refused" not in outcome
        errors += "error" in outcome
        reached |= outcome["reached"]
    assert errors == 0
    assert {value for kind, value in reached if kind == "opcode"} >= set(HEADERS)
    assert {value for kind, value in reached if kind == "tunnel"} == {0, *map(int, Tunnel)}
    assert {value for kind, value in reached if kind == "link type"} >= {0, 1, 12, 113, 197, 228, 247, 276}
    assert ("tally", layout.TALLY_UDP) in reached


def test_plain_seeds_reach_nothing_of_it(fuzz, agree):
    """They are what shows that coverage leads somewhere."""
    for _name, data in fuzz.seeds.plain():
        assert agree(data)["reached"] == {("link type", 1), ("tally", layout.TALLY_UDP)}


def test_seeds_are_the_same_every_time(fuzz):
    assert list(fuzz.seeds.all_seeds()) == list(fuzz.seeds.all_seeds())
    assert fuzz.seeds.words() == fuzz.seeds.words()


def test_words(fuzz):
    words = fuzz.seeds.words().splitlines()
    assert {r'"\x12\xb7"', r'"\xb7\x12"', r'"\x88\x47"', r'"\x2f"', r'"\xf7\x00\x00\x00"'} <= set(words)
    assert len(words) > 60


@pytest.mark.parametrize("name", ["packets", "streams", "times", "tallies"])
def test_a_difference_is_told(fuzz, agree, name):
    [data] = [data for seed, data in fuzz.seeds.all_seeds() if seed == "imp_dup5.server.pcap"]
    outcome = agree(data)
    other = outcome | {name: outcome[name][:-1]}
    with pytest.raises(AssertionError, match=f"differ in {name}"):
        fuzz.harness.compare(outcome, other)
    fuzz.harness.compare(outcome, dict(outcome))


def test_frames_lie_apart(fuzz, monkeypatch, tmp_path):
    """Each frame's bytes are in their new place; every byte around them is poisoned, and none of theirs."""
    poisoned = []
    monkeypatch.setattr(fuzz.harness, "poison", lambda address, size: poisoned.append((address, size)))
    given = [bytes(range(size)) for size in (60, 0, 1, 7, 8, 9, 64)]
    path = tmp_path / "some.pcap"
    path.write_bytes(fuzz.frames.pcap(given))
    with open_capture(path) as capture:
        [records] = capture
    moved = fuzz.harness.apart(records)
    free = np.ones(len(moved.data), bool)
    for address, size in poisoned:
        at = address - moved.data.ctypes.data
        assert free[at : at + size].all()
        free[at : at + size] = False
    for start, frame in zip(moved.offset.tolist(), given, strict=True):
        assert start % 8 == 0  # else the sanitizer's unit would hold the end of what lies before
        assert moved.data[start : start + len(frame)].tobytes() == frame
        assert free[start : start + len(frame)].all()
        assert not free[start - 1]
        assert not free[start + len(frame)]
    assert free.sum() == sum(map(len, given))


def test_tables_are_as_before(fuzz, both):
    """What is made small while fuzzing is of its own size again."""
    from roce_dissect.capture import states
    from roce_dissect.flows import flow_table

    before = (states.BATCH, flow_table.MAX_EVENTS)
    with fuzz.harness.small_tables():
        assert states.BATCH == fuzz.harness.BATCH < before[0]
    assert before == (states.BATCH, flow_table.MAX_EVENTS)


def test_nothing_is_kept(fuzz, both):
    """A million captures go through one process: what each leaves behind would fill it."""
    captures = [data for _name, data in fuzz.seeds.all_seeds()]
    objects = []
    with fuzz.harness.small_tables():
        for _ in range(2):
            for data in captures:
                both[0].run(data)
            gc.collect()
            objects.append(len(gc.get_objects()))
    assert objects[1] - objects[0] < len(captures)
