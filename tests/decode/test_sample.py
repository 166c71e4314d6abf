"""The sample of a capture's first packets: what it holds, whatever the blocks, and who is not kept waiting."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from roce_dissect.decode import sample
from roce_dissect.decode.blocks import Block
from roce_dissect.decode.sample import sampled
from roce_dissect.errors import CaptureError


@pytest.fixture(autouse=True)
def ten(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE", 10)


class Judge:
    def __init__(self, decides=(True,)):
        self.seen = []
        self._decides = list(decides)

    def __call__(self, block, rows, whole):
        self.seen.append((block.columns["n"][:rows].tolist(), whole))
        return self._decides.pop(0)


def blocks(*sizes, fail=None):
    """Blocks of 1, 2, 3 ... in one array that each block overwrites, as the decoder's."""
    array, number = np.zeros(64, np.int64), 0
    for size in sizes:
        array[:] = -1
        array[:size] = range(number + 1, number + size + 1)
        number += size
        yield Block({"n": array}, size, [])
    if fail is not None:
        raise fail


def rows_of(stream):
    for block in stream:
        yield block.columns["n"][: block.rows].tolist()


@pytest.mark.parametrize("sizes", [[30], [12, 18], [10, 20], [3, 3, 3, 21], [1] * 30, [9, 21], [0, 4, 0, 26]])
def test_the_sample_depends_on_the_packets_alone(sizes):
    judge = Judge()
    found = [row for rows in rows_of(sampled(blocks(*sizes), judge, False)) for row in rows]
    assert found == list(range(1, 31))
    assert judge.seen == [(list(range(1, 11)), False)]


@pytest.mark.parametrize("sizes", [[9], [4, 5], [0, 9, 0]])
def test_a_short_capture_is_the_sample(sizes):
    judge = Judge()
    found = [row for rows in rows_of(sampled(blocks(*sizes), judge, False)) for row in rows]
    assert found == list(range(1, 10))
    assert judge.seen == [(list(range(1, 10)), True)]


def test_nothing_at_all():
    judge = Judge()
    assert [*sampled(blocks(), judge, False)] == []
    assert judge.seen == []


def test_the_first_block_is_not_copied_when_it_is_enough():
    given = next(blocks(10))
    [block] = sampled(iter([given]), Judge(), False)
    assert block is given


@pytest.mark.parametrize("error", [CaptureError("x", 5, "breaks off"), KeyboardInterrupt()])
def test_what_was_held_goes_out_before_the_error(error):
    judge = Judge()
    stream = rows_of(sampled(blocks(4, 3, fail=error), judge, False))
    assert [next(stream), next(stream)] == [[1, 2, 3, 4], [5, 6, 7]]
    with pytest.raises(type(error)):
        next(stream)
    assert judge.seen == [([1, 2, 3, 4, 5, 6, 7], True)]


def test_live_nothing_is_held_when_nothing_comes():
    """An empty block ends the sample; one that was too small to tell begins anew."""
    judge = Judge([False, True])
    stream = rows_of(sampled(blocks(0, 2, 3, 0, 4, 0, 2), judge, True))
    assert list(stream) == [[], [1, 2], [3, 4, 5], [], [6, 7, 8, 9], [], [10, 11]]
    assert judge.seen == [([1, 2, 3, 4, 5], False), ([6, 7, 8, 9], False)]


def test_live_nothing_is_held_for_long(monkeypatch):
    """Each block takes a second: the sample ends with the first one that comes after the patience."""
    now = [0]

    def slowly():
        for block in blocks(1, 1, 1, 1, 1, 1):
            now[0] += 1
            yield block

    monkeypatch.setattr(sample, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(sample, "PATIENCE_S", 2)
    judge = Judge()
    stream = rows_of(sampled(slowly(), judge, True))
    assert [row for rows in stream for row in rows] == [1, 2, 3, 4, 5, 6]
    assert len(judge.seen) == 1
    assert judge.seen[0][0] == [1, 2, 3, 4]
