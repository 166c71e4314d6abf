"""The first packets of a capture, held back until a stage has made up its mind about all that follow.

A healthy file fills the sample with its first batch, so that nothing is copied. A pipe that is slow to fill it is not
kept waiting: what is there is judged when nothing comes for a poll time, or after `PATIENCE_S`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from roce_dissect.capture.states import BATCH
from roce_dissect.decode.rows import join_rows, keep_rows
from roce_dissect.errors import CaptureError

if TYPE_CHECKING:
    from roce_dissect.decode.blocks import Block

__all__ = ["PATIENCE_S", "SAMPLE", "Judgement", "sampled"]

#: Packets of the sample. As many as a batch holds at most, so that the first batch of a capture with short frames is
#: enough; at a million packets a second these are 16 ms, which covers the way between two capture points.
SAMPLE = BATCH

#: How long a live capture keeps its first packets back, at most: nobody minds a second before the first line.
PATIENCE_S = 1.0

#: Looks at the first rows of a block: (block, rows of the sample, whether they are the whole capture). False: these
#: were too few to tell, and the next ones are to be looked at as well.
Judgement = Callable[["Block", int, bool], bool]


def sampled(blocks: Iterator[Block], judge: Judgement, live: bool) -> Iterator[Block]:
    """The same blocks; none of the first `SAMPLE` packets is handed out before `judge` has seen them.

    For files the sample depends on nothing but the packets. Where reading fails, or is interrupted, what was held back
    goes out before the error.

    Parameters
    ----------
    blocks : iterator of Block
        Valid until the next one, each.
    judge : callable
        Called with the blocks of the sample joined.
    live : bool
        Whether somebody waits for these packets: then an empty block, which says that nothing came, and `PATIENCE_S`
        end the sample. (In files an empty block only says that a batch held other frames.)
    """
    held: list[Block] = []
    rows = 0
    since = time.monotonic()
    failure: BaseException | None = None
    try:
        for block in blocks:
            if block.rows:
                since = since if held else time.monotonic()
                held.append(block)
                rows += block.rows
            waits = live and (block.rows == 0 or time.monotonic() - since > PATIENCE_S)
            if rows >= SAMPLE or (waits and rows):
                decided = judge(join_rows(held), min(rows, SAMPLE), False)
                yield from held
                held, rows = [], 0
                if decided:
                    if block.rows == 0:
                        yield block
                    yield from blocks
                    return
            elif block.rows:
                held[-1] = keep_rows(block)
            if block.rows == 0:
                yield block
    except (CaptureError, KeyboardInterrupt) as error:
        failure = error
    if held:
        judge(join_rows(held), rows, True)
        yield from held
    if failure is not None:
        raise failure
