"""Where packets come from, and come from again: files that are read once more, or a DataFrame that was given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import pandas as pd

from roce_dissect import layout
from roce_dissect.analysis.frame_ranges import FrameRanges
from roce_dissect.analysis.packet_frame import kernel_columns, packet_frame, text_index
from roce_dissect.analysis.qp_ends import with_ends
from roce_dissect.analysis.summary import capture_summary
from roce_dissect.capture.states import BATCH
from roce_dissect.columns import FILE_SHIFT, FRAME_MASK, PACKETS, TRACKED, Column
from roce_dissect.decode.blocks import Blocks, FileSummary
from roce_dissect.decode.hosts import HostTable
from roce_dissect.decode.options import DEFAULT_OPTIONS, ReadOptions
from roce_dissect.decode.standing import Judgements
from roce_dissect.errors import ArgumentError
from roce_dissect.flows.flow_table import FLOW_COLUMNS, KEY_COLUMNS, FlowTable, Verdicts
from roce_dissect.terms import IcrcStatus, Standing

if TYPE_CHECKING:
    from roce_dissect.decode.cm import Message

__all__ = [
    "DISSECTION_COLUMNS",
    "Captures",
    "FileSource",
    "FrameSource",
    "MessageRows",
    "PacketSession",
    "PacketSource",
    "Progress",
    "input_list",
]

#: One capture or several: paths, ``-`` for standard input, or a binary file object.
Captures = str | os.PathLike[str] | BinaryIO | Sequence[str | os.PathLike[str]] | list[str | BinaryIO]
Progress = Callable[[int, int | None], None]

#: Beside the columns of packets, what `roce_dissect.dissect` needs of each: its frame as bytes (an object), the link
#: type as in pcap, and where the innermost network header begins in the frame.
DISSECTION_COLUMNS = ("frame_bytes", "link_type", "network_offset")


def input_list(captures: Captures) -> list[str | BinaryIO]:
    """Inputs as the reader takes them: paths as text, file objects as they are.

    Raises
    ------
    ArgumentError
        What was given is neither a path nor a file object, nor a sequence at all.
    """
    one = isinstance(captures, str | os.PathLike) or hasattr(captures, "read") or hasattr(captures, "readinto")
    several: Any = [captures]
    if not one:
        try:
            several = list(cast(Any, captures))
        except TypeError:
            several = None
    if several is None or isinstance(captures, bytes | bytearray | memoryview):
        raise ArgumentError(f"{captures!r:.100} is neither a path nor a binary file object")
    return [os.fspath(capture) if isinstance(capture, str | os.PathLike) else capture for capture in several]


class PacketSession:
    """Reading packets, as `Session` is an analysis under way: an iterator of their DataFrames.

    Parameters
    ----------
    captures : path, ``"-"``, binary file object, or sequence of paths
        Several files are one capture in time order; ``"-"`` is standard input.
    wanted : sequence of Column
        Columns of the DataFrames, in order.
    keep_going : bool
        Note a file that cannot be read (on) in `files` and go on, instead of raising its error.
    progress : callable, optional
        Called with (bytes read, bytes in all or None) now and then.
    poll_s : float, optional
        For a pipe: deliver an empty DataFrame when nothing came for so many seconds. Default: wait.
    streams : numpy.ndarray, optional
        Integers, shape (n,): only the packets of these rows of the streams table.
    options : ReadOptions
        How to read.
    shown : bool
        Whether the options' selection chooses what is delivered of all packets, so that it may name columns of the
        tracker, which sees all of them; otherwise what is read at all.
    frames : FrameRanges, optional
        Only these frames of each file, which is read no further than the batch of the last of them.
    as_filed : bool
        Leave the packets as they stand in the files: neither put in order of time nor told apart from copies.
    with_bytes : bool
        Hand on what a dissection needs: the columns of `DISSECTION_COLUMNS` behind the wanted ones.

    Raises
    ------
    ArgumentError
        No capture at all; standard input, a pipe or a file object together with other captures; what is neither a path
        nor a binary file object. The latter comes with the first step.
    CaptureError
        From a step, without `keep_going`: a file cannot be read, with path and byte offset.
    """

    def __init__(
        self,
        captures: Captures,
        wanted: Sequence[Column],
        *,
        keep_going: bool,
        progress: Progress | None = None,
        poll_s: float | None = None,
        streams: np.ndarray | None = None,
        options: ReadOptions = DEFAULT_OPTIONS,
        shown: bool = False,
        frames: FrameRanges | None = None,
        with_bytes: bool = False,
        as_filed: bool = False,
    ) -> None:
        self._wanted = wanted
        self._frames = frames
        self._with_bytes = with_bytes
        self._streams = streams
        self._addresses = text_index([])
        needed = () if options.selection is None else options.selection.tracked
        self._tracked = streams is not None or bool(needed) or any(column.name in TRACKED for column in wanted)
        # without a tracker it is all the same, and what is not chosen costs less
        self._chooses = shown and (self._tracked or frames is not None)
        self._inputs = input_list(captures)
        self._options, self._progress = options, progress
        names = kernel_columns(wanted) + (FLOW_COLUMNS if self._tracked else ())
        if with_bytes:
            names += ("offset", "network_offset", "cap_len")
        # no function with `self` in it: a cycle would keep arrays of many megabytes until the collector comes by
        self._open = partial(
            Blocks,
            self._inputs,
            names,
            keep_going=keep_going,
            progress=progress,
            poll_s=poll_s,
            choose=not self._chooses,
            keep_bytes=with_bytes,
            as_filed=as_filed,
            last_frame=None if frames is None else frames.last,
        )
        self._blocks = self._open(options=options)

    @property
    def files(self) -> list[FileSummary]:
        """What is known of each input so far."""
        return self._blocks.files

    @property
    def first_time_ns(self) -> int | None:
        """Time of the capture's first frame, RoCE or not."""
        return min((one.first_time_ns for one in self.files if one.first_time_ns is not None), default=None)

    def stop(self) -> None:
        """Read no further; the DataFrames end with what was read."""
        self._blocks.stop()

    def __iter__(self) -> Iterator[pd.DataFrame]:
        options = with_ends(self._inputs, self._options, self._progress)
        if options is not self._options:
            self._options, self._blocks = options, self._open(options=options)
        chooser = self._blocks.chooser
        flows = FlowTable() if self._tracked else None
        first = 0
        for block in self._blocks:
            columns, verdicts = block.columns, None
            if flows is not None:
                verdicts = Verdicts.empty(max(block.rows, 2))
                flows.feed(columns, block.rows, block.messages, verdicts)
                columns = columns | {name: getattr(verdicts, name) for name in TRACKED}
            rows: slice | np.ndarray = slice(0, block.rows)
            if self._streams is not None and verdicts is not None:
                rows = np.flatnonzero(np.isin(verdicts.stream[: block.rows], self._streams))
                if len(rows) == 0:
                    continue
            if self._frames is not None:
                numbers = columns["frame_key"][: block.rows] & FRAME_MASK
                rows = np.arange(block.rows)[rows][self._frames.contain(numbers[rows])]
            if self._chooses:
                mask = chooser.mask(columns, block.rows, block.messages)
                chosen = np.arange(block.rows)[rows]
                if mask is not None:
                    chosen = chosen[mask[chosen]]
                    if len(chosen) == 0 < block.rows:
                        continue
                rows = chosen[: chooser.admit(columns["time_ns"][chosen])]
            frame = packet_frame(self._wanted, columns, rows, self._address_index(), first)
            if self._with_bytes:
                frame = frame.assign(**_dissection_columns(columns, rows, block.data))
            first += len(frame)
            yield frame
            if self._chooses and chooser.full:  # else `Blocks` counts, and hands out what its stages still hold
                return

    def _address_index(self) -> pd.Index:
        """Addresses of all hosts so far; made anew only when there are more."""
        if len(self._addresses) != len(self._blocks.hosts):
            self._addresses = text_index(self._blocks.hosts.texts())
        return self._addresses


def _dissection_columns(
    columns: Mapping[str, np.ndarray], rows: np.ndarray | slice, data: Mapping[int, np.ndarray]
) -> dict[str, np.ndarray]:
    """`DISSECTION_COLUMNS` of chosen rows, from columns of `Blocks` and the bytes of their batches."""
    batch, offset, cap_len = (columns[name][rows].tolist() for name in ("batch", "offset", "cap_len"))
    places = zip(batch, offset, cap_len, strict=True)
    frames = np.empty(len(batch), object)
    frames[:] = [data[number][first : first + size].tobytes() for number, first, size in places]
    more = {name: columns[name][rows].astype(np.int64) for name in ("link_type", "network_offset")}
    return {"frame_bytes": frames} | more


class PacketSource:
    """Where the packets of an `Analysis` come from."""

    def frames(self, wanted: Sequence[Column], streams: np.ndarray | None) -> Iterator[pd.DataFrame]:
        """DataFrames of the wanted columns, of all packets or of some streams."""
        raise NotImplementedError

    def message_rows(self) -> Iterator[np.ndarray]:
        """The tracker's rows of messages, int64[n, MESSAGE_WORDS], as they end."""
        raise NotImplementedError


class MessageRows:
    """Collects rows of messages that ended, for a `FlowTable`."""

    def __init__(self) -> None:
        self._pieces: list[np.ndarray] = []

    def __call__(self, rows: np.ndarray) -> None:
        self._pieces.append(rows.copy())

    def take(self) -> Iterator[np.ndarray]:
        """What came since the last call."""
        pieces, self._pieces = self._pieces, []
        return iter(pieces)

    def __iter__(self) -> Iterator[np.ndarray]:
        """All that was not taken."""
        return iter(self._pieces)


def _ended_messages(
    blocks: Iterable[tuple[dict[str, np.ndarray], int, Sequence[Message]]],
) -> Iterator[np.ndarray]:
    """Rows of messages as they end, from the arguments of `FlowTable.feed`: columns, rows, CM messages."""
    ended = MessageRows()
    flows = FlowTable(on_messages=ended)
    for columns, rows, messages in blocks:
        flows.feed(columns, rows, messages)
        yield from ended.take()
    flows.finish()
    yield from ended.take()


class FileSource(PacketSource):
    """Packets of files, which are read once more each time.

    Parameters
    ----------
    paths : list of str or binary file object
        As `input_list` gives them. Standard input and file objects cannot be read again: `frames` raises ArgumentError.
    keep_going : bool
        Pass over what cannot be read of a file, instead of raising its CaptureError.
    options : ReadOptions
        How to read.
    """

    def __init__(
        self, paths: list[str | BinaryIO], keep_going: bool = False, options: ReadOptions = DEFAULT_OPTIONS
    ) -> None:
        self._paths = paths
        self._options = options
        self._keep_going = keep_going

    def frames(self, wanted: Sequence[Column], streams: np.ndarray | None) -> Iterator[pd.DataFrame]:
        self._demand_files("packets")
        return iter(
            PacketSession(self._paths, wanted, keep_going=self._keep_going, streams=streams, options=self._options)
        )

    def message_rows(self) -> Iterator[np.ndarray]:
        self._demand_files("messages")
        blocks = Blocks(self._paths, FLOW_COLUMNS + KEY_COLUMNS, keep_going=self._keep_going, options=self._options)
        return _ended_messages((block.columns, block.rows, block.messages) for block in blocks)

    def _demand_files(self, what: str) -> None:
        if any(not isinstance(path, str) or path == "-" for path in self._paths):
            raise ArgumentError(f"standard input and file objects can be read only once: to get {what}, analyse a file")


#: Headers whose presence a DataFrame tells by a column that is not missing.
_TOLD_BY_COLUMN = (
    layout.HAS_AETH,
    layout.HAS_RETH,
    layout.HAS_DETH,
    layout.HAS_ICRC,
    layout.HAS_IPV4,
    layout.HAS_IMMDT,
    layout.HAS_IETH,
    layout.HAS_VNI,
)


class FrameSource(PacketSource):
    """Packets given as a DataFrame.

    Parameters
    ----------
    packets : pandas.DataFrame
        Rows in capture order, as for `roce_dissect.track`.
    bad_icrc : bool array, optional
        Shape (rows,): packets that are damaged take no part.

    Raises
    ------
    ArgumentError
        `packets` is no DataFrame, a column is missing or comes twice, a value does not fit it, or `bad_icrc` is not one
        flag for each packet.
    """

    _REQUIRED = ("time_ns", "src", "dst", "dest_qp", "psn", "opcode")

    def __init__(self, packets: pd.DataFrame, bad_icrc: pd.Series | np.ndarray | None) -> None:
        if not isinstance(packets, pd.DataFrame):
            raise ArgumentError(f"the packets must be a DataFrame, not {type(packets).__name__}")
        twice = packets.columns[packets.columns.duplicated()]
        if any(name in PACKETS for name in twice):
            raise ArgumentError(f"the DataFrame has more than one {next(name for name in twice if name in PACKETS)}")
        missing = [name for name in self._REQUIRED if name not in packets.columns]
        if missing:
            raise ArgumentError(f"the DataFrame lacks {', '.join(missing)}")
        self._packets = packets
        self.hosts = HostTable()
        self._columns = self._flow_columns(packets)
        if bad_icrc is not None:
            self._columns["standing"][_flags(bad_icrc, len(packets), "bad_icrc")] = Standing.DAMAGED

    def blocks(self) -> Iterator[tuple[dict[str, np.ndarray], int]]:
        """(columns, rows) piece by piece."""
        for start in range(0, len(self._packets), BATCH):
            stop = min(start + BATCH, len(self._packets))
            piece = {name: values[start:stop] for name, values in self._columns.items()}
            yield piece, stop - start

    def frames(self, wanted: Sequence[Column], streams: np.ndarray | None) -> Iterator[pd.DataFrame]:
        flows = FlowTable()
        start = 0
        for columns, rows in self.blocks():
            verdicts = Verdicts.empty(max(rows, 2))
            flows.feed(columns, rows, verdicts=verdicts)
            keep = np.arange(rows) if streams is None else np.flatnonzero(np.isin(verdicts.stream[:rows], streams))
            given = self._packets.iloc[start : start + rows].iloc[keep]
            start += rows
            tracked = packet_frame(
                [PACKETS[name] for name in TRACKED],
                {name: getattr(verdicts, name) for name in TRACKED} | {"present": columns["present"]},
                keep,
                text_index([]),
            )
            # by position: the given index may hold a label more than once
            both = given.drop(columns=[name for name in TRACKED if name in given.columns])
            both = both.assign(**{name: tracked[name].array for name in TRACKED})
            names = [column.name for column in wanted if column.name in both.columns]
            yield both[names]

    def message_rows(self) -> Iterator[np.ndarray]:
        return _ended_messages((columns, count, ()) for columns, count in self.blocks())

    def capture(self, flows: FlowTable) -> dict[str, Any]:
        """A capture summary for packets that came from no file."""
        times = self._columns["time_ns"]
        tallies = np.zeros(layout.TALLIES, np.int64)
        tallies[layout.TALLY_ROCE] = len(times)
        summary = capture_summary([], tallies, flows, self._judgements())
        summary["packets"] = len(times)
        if len(times):
            summary |= {"first_time_ns": int(times.min()), "last_time_ns": int(times.max())}
        return summary

    def _judgements(self) -> Judgements:
        """What the DataFrame says of ICRCs."""
        packets = self._packets
        status = np.zeros(len(packets), np.int64)
        if "icrc_status" in packets.columns:
            status = _numbers(packets["icrc_status"], PACKETS["icrc_status"])
        damaged = np.count_nonzero(self._columns["standing"] == Standing.DAMAGED)
        return Judgements(np.bincount(status, minlength=len(IcrcStatus)), damaged=int(damaged))

    def _flow_columns(self, packets: pd.DataFrame) -> dict[str, np.ndarray]:
        """The tracker's columns from whatever the DataFrame has; presence bits from which values are there."""
        count = len(packets)
        columns: dict[str, np.ndarray] = {}
        present = np.full(count, layout.HAS_BTH, np.uint32)
        untold = np.uint32(0)  # headers of which the DataFrame lacks the column that tells their value
        keys = KEY_COLUMNS if all(name in packets.columns for name in KEY_COLUMNS) else ()
        for name in FLOW_COLUMNS + keys:
            if name in ("frame_key", "present"):
                continue
            column = PACKETS[name]
            dtype = np.dtype("uint32" if column.dtype == "address" else column.dtype)
            if name not in packets.columns:
                untold |= np.uint32(column.needs if column.needs in _TOLD_BY_COLUMN else 0)
                columns[name] = np.zeros(count, dtype) if name != "version" else np.full(count, 2, dtype)
                continue
            given = packets[name]
            if column.dtype == "address":
                columns[name] = self._host_codes(given, name)
                continue
            there = given.notna().to_numpy(bool)
            columns[name] = _numbers(given, column)
            for bit in _TOLD_BY_COLUMN:
                if column.needs == bit:
                    present[there] |= np.uint32(bit)
            if name in self._REQUIRED:
                present[~there] &= ~np.uint32(layout.HAS_BTH)
        columns["present"] = present
        if "present" in packets.columns:
            columns["present"] = _integers(packets["present"], np.dtype(np.uint32), "present") & ~untold
        file = (
            _integers(packets["file"], np.dtype(np.int64), "file", (1 << 16) - 1, 0) if "file" in packets.columns else 0
        )
        frame = (
            _integers(packets["frame"], np.dtype(np.int64), "frame", FRAME_MASK, 0)
            if "frame" in packets.columns
            else np.arange(1, count + 1, dtype=np.int64)
        )
        columns["frame_key"] = np.ascontiguousarray((np.zeros(count, np.int64) + file << FILE_SHIFT) | frame)
        return columns

    def _host_codes(self, given: pd.Series, name: str) -> np.ndarray:
        """Codes of addresses given as text; 0 where there is none (a GRH that was cut)."""
        try:
            which, texts = pd.factorize(given.astype(object))  # what is missing is -1
        except TypeError as error:  # something that has no hash
            raise ArgumentError(f"column {name!r} holds values that are not text") from error
        codes = np.zeros(len(texts) + 1, np.uint32)  # the last one, which -1 picks, is 0
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise ArgumentError(f"column {name!r} holds {text!r:.100}: addresses must be text")
            try:
                codes[number] = self.hosts.enter(text)
            except ArgumentError as error:
                raise ArgumentError(f"column {name!r}: {error}") from error
        return np.ascontiguousarray(codes[which])


def _numbers(given: pd.Series, column: Column) -> np.ndarray:
    """Values of a column as it stores them: integers, and words of a vocabulary as their numbers."""
    if column.terms is not None:
        if not pd.api.types.is_numeric_dtype(given.dtype):
            given = _term_numbers(given, column.terms, column.name)
        return _integers(given, np.dtype(column.dtype), column.name, max(column.terms))
    return _integers(given, np.dtype(column.dtype), column.name, None if column.field is None else column.field[2])


def _term_numbers(given: pd.Series, terms: type[IntEnum], name: str) -> pd.Series:
    """Numbers of a vocabulary's words; numbers stay."""
    numbers: dict[str | int, int] = {term.name.lower(): int(term) for term in terms}
    numbers |= {int(term): int(term) for term in terms}
    words = given.astype(object)
    try:
        known = words.map(numbers)
    except TypeError as error:  # something that has no hash
        raise ArgumentError(f"column {name!r} holds values that are not words") from error
    unknown = words[(known.isna() & words.notna()).to_numpy()]
    if len(unknown):
        raise ArgumentError(f"column {name!r} holds {unknown.iloc[0]!r:.100}, which is none of its words")
    return known


def _flags(given: Any, count: int, name: str) -> np.ndarray:
    """One bool for each packet."""
    try:
        values = np.asarray(given)
        if values.ndim != 1:
            raise ArgumentError(f"{name} has {values.ndim} dimensions, not one")
        if len(values) != count:
            raise ArgumentError(f"{name} has {len(values)} values for {count} packets")
        flags = values.astype(bool)
        fit = values.dtype.kind in "biuf" or (values.dtype.kind == "O" and bool((values == flags).all()))
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{name} holds values that are neither true nor false") from error
    if not fit or pd.isna(values).any():
        raise ArgumentError(f"{name} holds values that are neither true nor false")
    return flags


def _integers(
    given: pd.Series, dtype: np.dtype, name: str, highest: int | None = None, lowest: int | None = None
) -> np.ndarray:
    """Values of a column as C-contiguous integers; missing ones are 0. Limits are those of the type, or narrower."""
    try:
        with np.errstate(invalid="ignore"):  # infinity: it is found below
            numbers = pd.to_numeric(given).fillna(0)
            values = numbers.to_numpy(np.int64 if dtype != np.uint64 else np.uint64)
        if not (numbers.to_numpy() == values).all():
            raise ValueError("a fraction")
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise ArgumentError(f"column {name!r} holds values that are not integers") from error
    limits = np.iinfo(dtype)
    least = limits.min if lowest is None else lowest
    most = limits.max if highest is None else min(highest, limits.max)
    if len(values) and (values.min() < least or values.max() > most):
        raise ArgumentError(f"column {name!r} holds values outside of {least} to {most}")
    return np.ascontiguousarray(values.astype(dtype))
