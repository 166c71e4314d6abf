"""Time order: packets that several queues or capture points wrote a little late go to their place.

The tracker takes packets as they come: one that stands a millisecond behind its successor in the file would be a loss
and a late delivery that no network made. So rows whose time steps back by `WINDOW_NS` at most are put in order, those
of equal times as they stand in the file. A capture that is in order is handed through: nothing is held back or copied.

Where time steps back further, a clock was set, or files stand one behind the other: such packets stay where they are,
are counted, and nothing moves across them. What is put in order depends on the packets alone, not on how they are cut
into blocks: from the first packet on, where the sample has a step back; else from the first step on, behind what went
out before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect.capture.states import BATCH
from roce_dissect.decode.rows import cut_rows, join_rows, keep_rows, order_rows
from roce_dissect.decode.sample import sampled
from roce_dissect.errors import CaptureError

if TYPE_CHECKING:
    from roce_dissect.decode.blocks import Block

__all__ = ["MOST_HELD", "WINDOW_NS", "Ordering"]

#: How far time may step back to be put in order. Queues of a NIC, threads of a capture tool and buffers of a mirror are
#: drained within a few milliseconds; at ten million packets a second this much is 100,000 rows to hold.
WINDOW_NS = 10_000_000

#: Rows held at most, whatever their times say: a coarse clock gives a million packets one and the same. Beyond, the
#: earliest go out, and what should have gone before them is unordered.
MOST_HELD = 4 * BATCH
#: How often that is looked at, counted in rows: so it does not matter how they are cut into blocks.
_PIECE = BATCH


class Ordering:
    """Puts the rows of blocks in order of time, within a window.

    Parameters
    ----------
    window_ns : int
        The greatest step back that is put in order.

    Attributes
    ----------
    reordered : int
        Packets that stood behind later ones and were put before them.
    unordered : int
        Packets that were handed out behind later ones.
    greatest_step_ns : int
        How far time runs backwards there, at most.
    step_frame_key : int
        Frame key of the packet at which it does.
    """

    def __init__(self, window_ns: int = WINDOW_NS) -> None:
        self.reordered = 0
        self.unordered = 0
        self.greatest_step_ns = 0
        self.step_frame_key = 0
        self._window = np.uint64(window_ns)
        self._holding = False
        self._came = 0  # rows, since they are held
        self._held: Block | None = None  # rows in order, which later ones may still precede
        self._newest: int | None = None  # greatest time that came in
        self._latest: int | None = None  # greatest time that went out

    def stream(self, blocks: Iterator[Block], live: bool = False) -> Iterator[Block]:
        """The same rows, in order.

        Parameters
        ----------
        blocks : iterator of Block
            Valid until the next one, each.
        live : bool
            Whether somebody waits for these packets: then an empty block lets out all that is held.
        """
        failure: BaseException | None = None
        try:
            for block in sampled(blocks, self._look, live):
                if live and block.rows == 0:
                    yield from self._rest()
                yield from self._ordered(block) if block.rows else (block,)
        except (CaptureError, KeyboardInterrupt) as error:
            failure = error
        yield from self._rest()
        if failure is not None:
            raise failure

    def _look(self, block: Block, rows: int, whole: bool) -> bool:
        """Whether the sample has a step back: then all packets are put in order, from the first one on."""
        self._holding = bool(_steps_back(block.columns["time_ns"][:rows]).any())
        return True

    def _ordered(self, block: Block) -> Iterator[Block]:
        if not self._holding:
            times = block.columns["time_ns"][: block.rows]
            back = _steps_back(times)
            start = 0 if self._newest is not None and times[0] < self._newest else block.rows
            if start and back.any():
                start = int(np.argmax(back)) + 1
            if start == block.rows:
                self._newest = self._latest = int(times[-1])
                yield block
                return
            self._holding = True
            if start:
                yield self._out(cut_rows(block, 0, start))
                block = cut_rows(block, start, block.rows)
            self._newest = None  # what went out is out of reach
        start = 0
        while start < block.rows:
            stop = min(block.rows, start + _PIECE - self._came % _PIECE)
            self._came += stop - start
            piece = block if stop - start == block.rows else cut_rows(block, start, stop)
            yield from self._placed(piece, self._came % _PIECE == 0)
            start = stop

    def _placed(self, block: Block, bounded: bool) -> Iterator[Block]:
        """Hand out the rows that nothing still to come may precede, and hold the others; no more than may be held."""
        held, self._held = self._held, None
        before = 0 if held is None else held.rows
        came = block.columns["time_ns"][: block.rows]
        times = came if held is None else np.concatenate([held.columns["time_ns"], came])
        reached = _reached(self._newest, came)
        newest = self._newest = int(reached[-1])
        far = _distance(came, reached) > self._window
        if _steps_back(times).any():
            joined = block if held is None else join_rows([held, block])
            segment = np.cumsum(np.concatenate([np.zeros(before, bool), far]))
            order = np.lexsort((times, segment))
            self.reordered += int(np.count_nonzero(_overtaken(order)))
            held, block, before = None, order_rows(joined, order), 0
            times, segment = times[order], segment[order]
            # what stands before the last row that is far behind is at its place, and so is that row
            barrier = int(np.searchsorted(segment, segment[-1])) + bool(segment[-1])
        else:
            barrier = 0
        final = _distance(times[barrier:], np.full(len(times) - barrier, newest)) > self._window
        ready = barrier + int(np.count_nonzero(final))
        if bounded:
            ready = max(ready, len(times) - MOST_HELD)
        if held is not None:
            if ready < before:
                block, before = join_rows([held, block]), 0
            else:
                yield self._out(held)
        if ready > before:
            yield self._out(cut_rows(block, 0, ready - before))
        if ready < len(times):
            self._held = keep_rows(cut_rows(block, ready - before, block.rows))

    def _rest(self) -> Iterator[Block]:
        held, self._held = self._held, None
        if held is not None:
            yield self._out(held)

    def _out(self, block: Block) -> Block:
        """Count what stands behind later rows all the same."""
        times = block.columns["time_ns"][: block.rows]
        reached = _reached(self._latest, times)
        steps = _distance(times, reached)
        behind = int(np.count_nonzero(steps))
        if behind:
            self.unordered += behind
            at = int(np.argmax(steps))
            if int(steps[at]) > self.greatest_step_ns:
                self.greatest_step_ns = int(steps[at])
                self.step_frame_key = int(block.columns["frame_key"][at])
        self._latest = int(reached[-1])
        return block


def _steps_back(times: np.ndarray) -> np.ndarray:
    """Whether each time but the first is before the one that stands before it."""
    back: np.ndarray = times[1:] < times[:-1]
    return back


def _reached(before: int | None, times: np.ndarray) -> np.ndarray:
    """int64, the greatest time up to each row, and of those before them."""
    reached: np.ndarray = np.maximum.accumulate(times)
    return reached if before is None else np.maximum(reached, before)


def _distance(earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
    """uint64, ns between times of which the second one is never less: any two of 64 bits have one."""
    distance: np.ndarray = later.astype(np.int64).view(np.uint64) - earlier.astype(np.int64).view(np.uint64)
    return distance


def _overtaken(order: np.ndarray) -> np.ndarray:
    """Which places of a permutation hold a row that stood behind some row which now follows it."""
    least = np.minimum.accumulate(order[::-1])[::-1]
    overtaken: np.ndarray = order > least
    return overtaken
