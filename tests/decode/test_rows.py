"""Rows of blocks kept, cut, joined and ordered, with their CM messages."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from roce_dissect.decode.blocks import Block
from roce_dissect.decode.cm import Message
from roce_dissect.decode.rows import cut_rows, join_rows, keep_rows, order_rows
from roce_dissect.spec.cm import CmMessage


def message(row):
    return Message(row, 100 + row, 0, 1, 2, CmMessage.REQ, 0, 0, 2)


def block(numbers, messages=(), **more):
    """Columns longer than the rows, as the decoder's are; the message of row i has the key 100 + i."""
    columns = {"a": np.array([*numbers, 99, 99]), "b": np.array([*numbers, 99], np.uint8)}
    columns |= {name: np.array(values) for name, values in more.items()}
    return Block(columns, len(numbers), [message(row) for row in messages])


def told(given):
    rows = given.rows
    assert all(len(values) >= rows for values in given.columns.values())
    return given.columns["a"][:rows].tolist(), given.columns["b"][:rows].tolist(), [
        (one.row, one.frame_key) for one in given.messages
    ]  # fmt: skip


def test_cut():
    whole = block([5, 6, 7, 8], [0, 1, 3])
    assert told(cut_rows(whole, 1, 3)) == ([6, 7], [6, 7], [(0, 101)])
    assert told(cut_rows(whole, 3, 4)) == ([8], [8], [(0, 103)])
    assert cut_rows(whole, 1, 3).columns["a"].base is not None  # a view
    assert told(whole)[2] == [(0, 100), (1, 101), (3, 103)]


def test_what_is_kept_outlives_the_batch():
    whole = block([5, 6], [1])
    kept = keep_rows(whole)
    whole.columns["a"][:] = 0
    whole.columns["b"][:] = 0
    assert told(kept) == ([5, 6], [5, 6], [(1, 101)])


def test_join():
    one, two = block([1, 2], [1]), block([3], [0])
    assert join_rows([one]) is one
    assert told(join_rows([one, two, one])) == ([1, 2, 3, 1, 2], [1, 2, 3, 1, 2], [(1, 101), (2, 100), (4, 101)])
    assert join_rows([one, two]).columns["b"].dtype == np.uint8


@pytest.mark.parametrize("first", [True, False])
def test_a_column_that_was_dropped_is_left_out(first):
    blocks = [block([1], c=[7]), block([2])]
    assert sorted(join_rows(blocks if first else blocks[::-1]).columns) == ["a", "b"]


def test_order():
    ordered = order_rows(block([10, 11, 12], [0, 2]), np.array([2, 0, 1]))
    assert told(ordered) == ([12, 10, 11], [12, 10, 11], [(0, 102), (1, 100)])


def test_further_fields_of_a_block_stay():
    """Whatever else a block carries."""

    @dataclasses.dataclass
    class Further(Block):
        more: str = ""

    given = Further(block([1, 2]).columns, 2, [], more="x")
    for made in (cut_rows(given, 0, 1), keep_rows(given), order_rows(given, np.array([1, 0])), join_rows([given] * 2)):
        assert made.more == "x"
