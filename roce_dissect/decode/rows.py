"""Rows of decoded blocks: kept, cut, joined and put in another order, with the CM messages that point to them.

Every column is treated alike, whatever it is for. What is kept or put in order is a copy: the decoder writes its next
batch over its arrays. What is only cut stays a view.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from roce_dissect.decode.blocks import Block

__all__ = ["cut_rows", "join_rows", "keep_rows", "order_rows"]


def cut_rows(block: Block, start: int, stop: int) -> Block:
    """Rows `start` up to `stop`, as views."""
    return dataclasses.replace(
        block,
        columns={name: values[start:stop] for name, values in block.columns.items()},
        rows=stop - start,
        messages=[
            dataclasses.replace(message, row=message.row - start)
            for message in block.messages
            if start <= message.row < stop
        ],
    )


def keep_rows(block: Block) -> Block:
    """The same rows in arrays of their own, which stay valid after the next block."""
    columns = {name: values[: block.rows].copy() for name, values in block.columns.items()}
    return dataclasses.replace(block, columns=columns)


def join_rows(blocks: Sequence[Block]) -> Block:
    """One block of all rows, in order; arrays of its own where it is made from more than one.

    A column that one of the blocks lacks is left out: the decoder may drop what nobody needs any longer.
    """
    if len(blocks) == 1:
        return blocks[0]
    names = [name for name in blocks[0].columns if all(name in block.columns for block in blocks)]
    columns = {name: np.concatenate([block.columns[name][: block.rows] for block in blocks]) for name in names}
    messages = []
    first = 0
    for block in blocks:
        messages += [dataclasses.replace(message, row=first + message.row) for message in block.messages]
        first += block.rows
    data = {batch: held for block in blocks for batch, held in block.data.items()}
    return dataclasses.replace(blocks[0], columns=columns, rows=first, messages=messages, data=data)


def order_rows(block: Block, order: np.ndarray) -> Block:
    """The rows in another order, in arrays of their own.

    Parameters
    ----------
    block : Block
        With rows enough.
    order : numpy.ndarray
        Integers, shape (rows,): a permutation; row ``order[i]`` comes to place i.
    """
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    messages = [dataclasses.replace(message, row=int(place[message.row])) for message in block.messages]
    messages.sort(key=lambda message: message.row)
    columns = {name: values[: block.rows][order] for name, values in block.columns.items()}
    return dataclasses.replace(block, columns=columns, messages=messages)
