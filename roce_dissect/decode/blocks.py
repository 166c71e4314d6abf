"""Decoded packets of one or more captures, in time order, block by block.

Several files are one capture: rotated files follow each other, files that overlap in time are merged as mergecap would.
What was read stays valid whatever happens later: a file that breaks off is noted in its `FileSummary`, and the next
goes on.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from roce_dissect.capture.reader import Capture, Records, open_capture
from roce_dissect.capture.states import BATCH
from roce_dissect.columns import FRAME_MASK, JUDGED
from roce_dissect.decode.cm import CM_COLUMNS, Message, cm_messages
from roce_dissect.decode.decoder import Decoder
from roce_dissect.decode.doubles import DOUBLES_COLUMNS, Doubles
from roce_dissect.decode.hosts import HostTable
from roce_dissect.decode.identity import SIGHTING_COLUMNS
from roce_dissect.decode.options import DEFAULT_OPTIONS, ReadOptions
from roce_dissect.decode.ordering import Ordering
from roce_dissect.decode.replies import REPLY_COLUMNS, keep_proven
from roce_dissect.decode.rows import cut_rows, join_rows, order_rows
from roce_dissect.decode.selection import Chooser, Selection
from roce_dissect.decode.standing import STANDING_COLUMNS, Judge, Judgements
from roce_dissect.errors import ArgumentError, CaptureError
from roce_dissect.terms import Standing

__all__ = ["BYTES_COLUMNS", "Block", "Blocks", "FileSummary"]

#: Column of waiting blocks: the greatest time of the file up to each row.
_REACHED = "reached"
#: Columns that come with the bytes of frames: where a row's frame lies in ``Block.data``, and its link type.
BYTES_COLUMNS = ("batch", "offset", "cap_len", "link_type")


@dataclass(slots=True)
class FileSummary:
    """What is known of one input."""

    path: str
    index: int
    format: str | None = None
    compression: str | None = None
    frames: int = 0
    sliced_frames: int = 0
    first_time_ns: int | None = None
    last_time_ns: int | None = None
    link_types: dict[int, int] = field(default_factory=dict)
    bytes_read: int = 0
    complete: bool = False
    truncated: bool = False
    error: str | None = None
    error_offset: int | None = None

    def update(self, capture: Capture) -> None:
        """Take over what the reader knows so far."""
        self.format, self.compression = capture.format, capture.compression
        self.frames, self.sliced_frames = capture.frames, capture.sliced_frames
        self.first_time_ns, self.last_time_ns = capture.first_time_ns, capture.last_time_ns
        self.link_types = capture.link_types
        self.bytes_read = capture.offset
        self.truncated = bool(capture.truncated)


@dataclass(slots=True)
class Block:
    """Decoded packets: `rows` valid rows of `columns` (valid until the next block), and the CM messages among them.

    With `keep_bytes`, the frame of a row is ``data[batch][offset : offset + cap_len]`` (`BYTES_COLUMNS`); ``data`` is
    valid until the next block, too.
    """

    columns: dict[str, np.ndarray]
    rows: int
    messages: list[Message]
    data: dict[int, np.ndarray] = field(default_factory=dict)


@dataclass(slots=True)
class _Active:
    """A file that is being read, with a block that waits for its turn."""

    summary: FileSummary
    capture: Capture
    waiting: Block | None = None
    latest: int = 0  # greatest time so far
    passed: bool = False  # nothing that is wanted is left in it


class Blocks:
    """Iterator of `Block` over one or more inputs.

    Parameters
    ----------
    inputs : sequence of path, ``-`` or binary file object
        The captures. Several must be regular files, since they are looked at before they are read.
    names : sequence of str
        Columns for the `Decoder`.
    keep_going : bool
        What to do with a file that cannot be read (on): note it and go on, or raise its error.
    poll_s : float, optional
        For a live pipe: yield an empty block when nothing came for so long.
    progress : callable, optional
        Called with (bytes read, bytes in all or None) after each batch.
    hosts : HostTable, optional
        Addresses known so far.
    options : ReadOptions
        How to read.
    choose : bool
        Whether to hand out only the packets of the options' selection. If not, the selection only tells how far to
        read, and its columns are there, for somebody who chooses later.
    keep_bytes : bool
        Hand on the bytes of the frames, too.
    last_frame : int, optional
        Read each file no further than the batch that holds this frame.
    as_filed : bool
        Leave the packets as they stand in the files: neither put in order of time nor told apart from copies.

    Attributes
    ----------
    files : list of FileSummary
        In time order; complete only when the iterator is exhausted.
    tallies : numpy.ndarray
        Frames by kind, as `Decoder.tallies`.
    hosts : HostTable
    judgements : Judgements
        What ICRCs said, where the columns ask for it; of the packets that were handed out.
    chooser : Chooser
        What it chose, or what the caller has to choose with.
    ordering, doubles : Ordering, Doubles
        What became of the order of time, and of packets that are here more than once: where the columns ask for
        ``standing`` or ``icrc_status``. Otherwise the packets come as they are.
    """

    def __init__(
        self,
        inputs: Sequence[str | BinaryIO],
        names: Sequence[str],
        *,
        keep_going: bool = False,
        poll_s: float | None = None,
        progress: Callable[[int, int | None], None] | None = None,
        hosts: HostTable | None = None,
        options: ReadOptions = DEFAULT_OPTIONS,
        choose: bool = True,
        keep_bytes: bool = False,
        last_frame: int | None = None,
        as_filed: bool = False,
    ) -> None:
        if not inputs:
            raise ArgumentError("no capture given")
        self._keep_going = keep_going
        self._poll_s = poll_s
        self._progress = progress
        selection = Selection() if options.selection is None else options.selection
        if selection:
            names = (*names, *selection.columns)
        judged = any(name in JUDGED for name in names)
        needed = ["frame_key", "time_ns", *CM_COLUMNS, *(name for name in names if name not in JUDGED)]
        needed += (*STANDING_COLUMNS, *DOUBLES_COLUMNS) if judged else ()
        needed += REPLY_COLUMNS if options.icrc else ()
        self._options = options
        self._decoder = Decoder(tuple(dict.fromkeys(needed)), hosts, ports=options.ports, replies=options.icrc)
        self._unneeded = set(SIGHTING_COLUMNS).difference(names)  # once the sample of the packets is judged
        self.hosts = self._decoder.hosts
        self.tallies = self._decoder.tallies
        self._judge: Judge | None = None
        self.judgements = Judgements()
        if judged:
            self._judge = Judge(options.icrc, len(self.hosts.words), BATCH)
            self._decoder.columns |= self._judge.columns
        self.chooser = Chooser(selection, self.hosts)
        self._chooses = choose and bool(selection)
        self._stopped = False
        self._keep_bytes = keep_bytes
        self._last_frame = last_frame
        self._as_filed = as_filed
        self._batches = 0
        if keep_bytes:
            self._decoder.columns |= {"batch": np.zeros(BATCH, np.int64), "link_type": np.zeros(BATCH, np.uint16)}
        self.ordering, self.doubles = Ordering(), Doubles()
        self._several = len(inputs) > 1
        self._live = poll_s is not None and not (
            isinstance(inputs[0], str) and inputs[0] != "-" and not _is_special(inputs[0])
        )
        self.files: list[FileSummary] = []
        self._queue: list[tuple[FileSummary, str | BinaryIO]] = []
        self._sizes: dict[int, tuple[int, int | None]] = {}
        self._look_at(inputs)

    def _look_at(self, inputs: Sequence[str | BinaryIO]) -> None:
        """Put the inputs into time order; one alone needs no look."""
        if len(inputs) > 1 and any(not isinstance(one, str) or one == "-" for one in inputs):
            raise ArgumentError("standard input and file objects can be read only once: give one of them alone")
        for one in inputs:
            if len(inputs) > 1 and isinstance(one, str) and _is_special(one):
                raise ArgumentError(f"{one}: a pipe or a device can be read only once: give it alone")
        summaries = []
        for one in inputs:
            summary = FileSummary(one if isinstance(one, str) else getattr(one, "name", "") or "(file object)", 0)
            if len(inputs) > 1 and not self._first_time(summary):
                self.files.append(summary)  # it cannot be opened: noted, first of all
                continue
            summaries.append((summary, one))
        summaries.sort(key=lambda pair: -1 if pair[0].first_time_ns is None else pair[0].first_time_ns)
        self._queue = summaries
        self.files += [summary for summary, _ in summaries]
        for index, summary in enumerate(self.files):
            summary.index = index
        known = [one.first_time_ns for one in self.files if one.first_time_ns is not None]
        self.chooser.begin(min(known, default=None))

    def _first_time(self, summary: FileSummary) -> bool:
        """Time of the file's first batch. False: it cannot be opened."""
        try:
            capture = open_capture(summary.path)
        except CaptureError as error:
            self._fail(summary, error)
            return False
        with capture:
            # a file that breaks off at once is read all the same, in its turn
            with contextlib.suppress(CaptureError):
                next(iter(capture), None)
            summary.first_time_ns = capture.first_time_ns
            self._sizes[id(summary)] = (0, capture.size)
        return True

    def _fail(self, summary: FileSummary, error: CaptureError) -> None:
        if not self._keep_going:
            raise error
        summary.error, summary.error_offset, summary.complete = error.reason, error.offset, False

    def stop(self) -> None:
        """Read no further: what was read and is held back comes out, then the iterator ends."""
        self._stopped = True

    def __iter__(self) -> Iterator[Block]:
        blocks = self._merged()
        if self._judge is None or self._as_filed:
            return blocks
        return self.doubles.stream(self.ordering.stream(blocks, self._live), self._live)

    def _merged(self) -> Iterator[Block]:
        """The blocks of all files as one sequence, each file in its own order."""
        active: list[_Active] = []
        try:
            while active or self._queue:
                if self._stopped:  # what waits for its turn still comes out
                    self._queue.clear()
                    for one in active:
                        one.passed = True
                self._open_due(active)
                self._fill(active)
                for ready in self._ready(active):
                    block = self._admitted(ready)
                    if self._judge is not None:
                        self.judgements.count(block.columns, block.rows)
                    yield block
                    if self._chooses and self.chooser.full:
                        return
        finally:
            for one in active:
                one.summary.update(one.capture)
                one.capture.close()

    # -- one turn: open what is due, have a block of each, hand out what no other file can precede

    def _open_due(self, active: list[_Active]) -> None:
        """Open the next files: the first of all, and those that begin before what waits has ended."""
        while self._queue:
            summary, one = self._queue[0]
            if self.chooser.is_behind(summary.first_time_ns):
                self.chooser.limited = True
                del self._queue[0]
                continue
            if active and (summary.first_time_ns is None or summary.first_time_ns > _horizon(active)):
                return
            del self._queue[0]
            try:
                active.append(_Active(summary, open_capture(one, poll_s=self._poll_s)))
            except CaptureError as error:
                self._fail(summary, error)

    def _fill(self, active: list[_Active]) -> None:
        """Decode a block for every file that has none waiting; files that ended leave the list."""
        alone = len(active) == 1 and not self._queue
        for one in list(active):
            while one.waiting is None:
                if one.passed:
                    active.remove(one)
                    self._close(one)
                    break
                try:
                    records = next(one.capture, None)
                except CaptureError as error:
                    active.remove(one)
                    self._close(one)
                    self._fail(one.summary, error)
                    break
                if self._unneeded and self.doubles.decided:
                    self._forget_sightings()
                if records is None:
                    active.remove(one)
                    one.summary.complete = True
                    self._close(one)
                    break
                rows = self._decoder.decode(records, one.summary.index)
                if self._options.icrc:
                    rows = keep_proven(
                        self._decoder.columns, rows, records.data, self._options.ports, self._decoder.tallies
                    )
                if self._judge is not None:
                    self._judge.judge(self._decoder.columns, rows, records.data)
                columns = self._decoder.columns
                messages = self._messages(rows, records)
                data = self._bytes(records, rows) if self._keep_bytes and rows else {}
                self._report(one)
                self.chooser.begin(one.summary.first_time_ns)
                if rows and not alone:
                    # within a file the order of the file stands, even where its clock stepped back
                    reached = np.maximum(np.maximum.accumulate(columns["time_ns"][:rows]), one.latest)
                    columns, one.latest = columns | {_REACHED: reached}, int(reached[-1])
                if self._chooses:
                    columns, rows, messages = self.chooser.choose(columns, rows, messages)
                if rows or (alone and self._poll_s is not None):
                    if not alone:  # the decoder's arrays serve the next file, too
                        columns = {name: column[:rows].copy() for name, column in columns.items()}
                    one.waiting = Block(columns, rows, messages, data)
                if self.chooser.has_passed(one.summary.index, records.time_ns):
                    self.chooser.limited = one.passed = True
                if self._last_frame is not None and records.first_frame + records.count > self._last_frame:
                    one.passed = True

    def _messages(self, rows: int, records: Records) -> list[Message]:
        """The CM messages of a decoded batch, save damaged ones."""
        columns = self._decoder.columns
        messages = cm_messages(columns, rows, records.data) if rows else []
        if self._judge is None:
            return messages
        return [message for message in messages if columns["standing"][message.row] != Standing.DAMAGED]

    def _admitted(self, block: Block) -> Block:
        """As much of a block as the selection's count leaves room for."""
        if not self._chooses:
            return block
        rows = self.chooser.admit(block.columns["time_ns"][: block.rows])
        return block if rows == block.rows else cut_rows(block, 0, rows)

    def _bytes(self, records: Records, rows: int) -> dict[int, np.ndarray]:
        """The batch's bytes under a number of their own.

        They are the reader's buffer, as long as nobody holds rows back: a file's next batch is read, into the same,
        when all rows of this one are handed out and done with.
        """
        columns = self._decoder.columns
        self._batches += 1
        columns["batch"][:rows] = self._batches
        columns["link_type"][:rows] = records.link_type[
            (columns["frame_key"][:rows] & FRAME_MASK) - records.first_frame
        ]
        end = int((columns["offset"][:rows] + columns["cap_len"][:rows]).max())
        data = records.data[:end]
        # the stages behind the merge hold rows back while the next batch is read
        return {self._batches: data.copy() if self._judge is not None else data}

    def _forget_sightings(self) -> None:
        """Decode no further what tells sightings apart, where no packet is seen twice.

        Of several files, blocks wait that have these columns, and all must have the same.
        """
        if self._judge is not None and self.doubles.doubling is None and not self._several:
            self._decoder.drop(self._unneeded)
        self._unneeded = set()

    def _ready(self, active: list[_Active]) -> Iterator[Block]:
        """The blocks, or the parts of blocks, that nothing still to come can precede."""
        if len(active) == 1 and not (self._queue and self._due(active)):
            block, active[0].waiting = active[0].waiting, None
            if block is not None:
                yield block
            return
        if self._queue and self._due(active):
            return  # another file must be opened first
        limits = [(_last_time(one.waiting), one.summary.index) for one in active if one.waiting is not None]
        parts = []
        for one in sorted(active, key=lambda one: one.summary.index):
            if one.waiting is not None:
                part, one.waiting = _split(one.waiting, _horizon_of(one.summary.index, limits))
                if part.rows:
                    parts.append(part)
        if parts:
            yield _merge(parts)

    def _due(self, active: list[_Active]) -> bool:
        first = self._queue[0][0].first_time_ns
        return first is not None and first <= _horizon(active)

    def _close(self, one: _Active) -> None:
        one.summary.update(one.capture)
        self._report(one)
        one.capture.close()

    def _report(self, one: _Active) -> None:
        one.summary.update(one.capture)
        if self._progress is not None:
            self._sizes[id(one.summary)] = (one.capture.position, one.capture.size)
            sizes = [size for _, size in self._sizes.values()]
            total = None if None in sizes else sum(size for size in sizes if size is not None)
            self._progress(sum(position for position, _ in self._sizes.values()), total)


def _is_special(path: str) -> bool:
    """Whether it is a pipe, a device or a socket; what is missing, or a directory, has errors of its own."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _last_time(block: Block) -> int:
    return int(block.columns[_REACHED][-1])


def _horizon(active: list[_Active]) -> int:
    """Time up to which the files that are being read have shown everything."""
    waiting = [_last_time(one.waiting) for one in active if one.waiting is not None and one.waiting.rows]
    return max(waiting, default=-1)


def _horizon_of(index: int, limits: list[tuple[int, int]]) -> int:
    """Time up to which nothing that the other files still hold comes before the rows of file `index`.

    At equal times the earlier file goes first, so that a later one waits until that has shown more than its last time.
    """
    return min(time - (other < index) for time, other in limits if other != index or len(limits) == 1)


def _split(block: Block, horizon: int) -> tuple[Block, Block | None]:
    """The rows up to and with the last one at or before the horizon, and the rest."""
    cut = int(np.searchsorted(block.columns[_REACHED], horizon, side="right"))
    if cut >= block.rows:
        return block, None
    return cut_rows(block, 0, cut), cut_rows(block, cut, block.rows)


def _merge(parts: list[Block]) -> Block:
    """Blocks of several files as one in time order; rows of equal time keep the order of the files."""
    joined = join_rows(parts)
    if len(parts) == 1:
        return joined
    return order_rows(joined, np.argsort(joined.columns[_REACHED][: joined.rows], kind="stable"))
