"""The public face: `analyze`, `read_packets`, `iter_packets`, `track`, and the `Analysis` they lead to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from roce_dissect import layout
from roce_dissect.analysis.packet_frame import kernel_columns, packet_frame
from roce_dissect.columns import FILE_SHIFT, PACKETS, TRACKED, Column, packet_columns
from roce_dissect.decode import kernel
from roce_dissect.decode.blocks import Blocks, FileSummary
from roce_dissect.decode.hosts import HostTable
from roce_dissect.errors import ArgumentError, CaptureError
from roce_dissect.flows import tracker
from roce_dissect.flows.flow_table import FLOW_COLUMNS, FlowTable, Verdicts
from roce_dissect.flows.tables import Tables, build_tables
from roce_dissect.spec.net import LINKTYPE_NAMES

if TYPE_CHECKING:
    from roce_dissect.plot.accessor import PlotAccessor

__all__ = ["SCHEMA", "Analysis", "analyze", "iter_packets", "read_packets", "track"]

#: Version of the JSON form: `docs/json.md`.
SCHEMA = 1

#: One capture or several: paths, ``-`` for standard input, or a binary file object.
Captures = str | os.PathLike[str] | BinaryIO | Sequence[str | os.PathLike[str]] | list[str | BinaryIO]
Progress = Callable[[int, int | None], None]

#: What the frames were that are no RoCE.
_OTHER = {
    "tcp": layout.TALLY_TCP,
    "udp": layout.TALLY_UDP,
    "icmp": layout.TALLY_ICMP,
    "other_ip": layout.TALLY_IP,
    "arp": layout.TALLY_ARP,
    "lldp": layout.TALLY_LLDP,
    "mac_control": layout.TALLY_MAC_CONTROL,
    "other_ethernet": layout.TALLY_ETHERNET,
    "ip_fragments": layout.TALLY_FRAGMENT,
    "malformed": layout.TALLY_MALFORMED,
    "cut": layout.TALLY_CUT,
    "other_link_type": layout.TALLY_LINK,
}


class Analysis:
    """What a capture holds. Made by `analyze` or `track`; tables are built when they are first asked for.

    Attributes
    ----------
    capture : dict
        Files, packet counts, times (`docs/json.md`).
    streams, connections, events, hosts, counters : pandas.DataFrame
        Columns as in `roce_dissect.columns`, meaning as in ``docs/semantics.md``.
    findings : list
        Empty: rules come later.
    plot : PlotAccessor
        ``result.plot.sequence(connection=3)``, ``result.plot.rate()``.

    Examples
    --------
    >>> import roce_dissect as rd
    >>> result = rd.analyze("pcaps/imp_loss1_write.server.pcap.gz")  # doctest: +SKIP
    >>> result.connections.sort_values("resent_packets").tail()  # doctest: +SKIP
    """

    def __init__(self, capture: dict[str, Any], tables: Tables, source: _Source) -> None:
        self.capture = capture
        self.streams = tables.streams
        self.connections = tables.connections
        self.events = tables.events
        self.hosts = tables.hosts
        self.counters = tables.counters
        self.findings: list[Any] = []
        self._source = source

    def __repr__(self) -> str:
        return (
            f"<Analysis: {self.capture['packets']} frames, {self.capture['roce_packets']} RoCE, "
            f"{len(self.connections)} connections, {len(self.events)} events>"
        )

    @property
    def plot(self) -> PlotAccessor:
        """Pictures of this analysis; matplotlib is loaded when the first one is drawn."""
        from roce_dissect.plot.accessor import PlotAccessor

        return PlotAccessor(self)

    def packets(self, connection: int | None = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """The packets, with the tracker's columns; the capture is read once more.

        Parameters
        ----------
        connection : int, optional
            Only the packets of one row of `connections`.
        columns : sequence of str, optional
            Columns of `roce_dissect.columns.PACKETS`; default all.

        Raises
        ------
        ArgumentError
            The connection does not exist, or the capture was a pipe and cannot be read again.
        CaptureError
            The file has gone, or broke off where it had not before.
        """
        blocks = list(self.iter_packets(connection, columns))
        return _concatenate(blocks, packet_columns(columns))

    def iter_packets(
        self, connection: int | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pd.DataFrame]:
        """As `packets`, in pieces of at most some ten thousand rows, in constant memory."""
        wanted = packet_columns(columns)
        streams = None if connection is None else self._streams_of(connection)
        return self._source.frames(wanted, streams)

    def _streams_of(self, connection: int) -> np.ndarray:
        row = self.connections[self.connections["connection"] == connection]
        if row.empty:
            raise ArgumentError(f"no connection {connection}: there are {len(self.connections)}")
        both = np.array([row["a_to_b_stream"].iloc[0], row["b_to_a_stream"].iloc[0]], np.int64)
        return both[both >= 0]

    def to_dict(self) -> dict[str, Any]:
        """The analysis as plain Python values, ready for ``json.dumps``: the form that ``docs/json.md`` specifies."""
        return {
            "schema": SCHEMA,
            "capture": self.capture,
            "hosts": _records(self.hosts),
            "streams": _records(self.streams),
            "connections": [_connection_record(record) for record in _records(self.connections)],
            "events": _records(self.events),
            "counters": {
                address: dict(zip(self.counters.columns, map(int, values), strict=True))
                for address, values in zip(self.counters.index, self.counters.to_numpy(), strict=True)
            },
            "findings": self.findings,
        }


def analyze(
    captures: Captures, *, errors: str = "raise", progress: Progress | None = None, poll_s: float | None = None
) -> Analysis:
    """Read one or more captures to the end and say what happened in them. Memory does not grow with their length.

    Parameters
    ----------
    captures : path, ``"-"``, binary file object, or sequence of paths
        Several files are one capture in time order.
    errors : {"raise", "keep"}
        What to do when a file cannot be read (on): raise its `CaptureError`, whose ``analysis`` attribute holds what
        was analysed so far; or keep going and note it in ``capture["files"]``. With "keep", Ctrl-C, too, ends with what
        was analysed.
    progress : callable, optional
        Called with (bytes read, bytes in all or None) now and then.
    poll_s : float, optional
        For a pipe: how long to wait for packets at most before looking at signals again.

    Returns
    -------
    Analysis

    Raises
    ------
    CaptureError
        A file cannot be read, with path and byte offset.
    ArgumentError
        Standard input together with other captures; an unknown value of `errors`.
    """
    if errors not in ("raise", "keep"):
        raise ArgumentError(f"errors must be 'raise' or 'keep', not {errors!r}")
    session = Session(captures, keep_going=errors == "keep", progress=progress, poll_s=poll_s)
    try:
        for _ in session:
            pass
    except CaptureError as error:
        error.analysis = session.analysis()  # type: ignore[attr-defined]
        raise
    except KeyboardInterrupt:
        if errors == "raise":
            raise
        session.interrupted = True
    return session.analysis()


def iter_packets(captures: Captures, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """RoCE packets of one or more captures, in pieces of at most some ten thousand rows, in constant memory.

    Parameters
    ----------
    captures
        As for `analyze`.
    columns : sequence of str, optional
        Columns of `roce_dissect.columns.PACKETS`; default all. Those of the tracker (``verdict`` ...) cost a little
        more.

    Yields
    ------
    pandas.DataFrame
        Its index counts on from piece to piece.

    Raises
    ------
    CaptureError
        After all packets before the fault.
    ArgumentError
        A column that does not exist.
    """
    return _FileSource(_paths(captures)).frames(packet_columns(columns), None)


def read_packets(captures: Captures, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """All RoCE packets as one DataFrame: one row per RoCE frame. For large captures see `iter_packets`.

    Parameters, columns and errors as there.
    """
    return _concatenate(list(iter_packets(captures, columns)), packet_columns(columns))


def track(packets: pd.DataFrame, bad_icrc: pd.Series | np.ndarray | None = None) -> Analysis:
    """Reconstruct the flows of any DataFrame of packets: a filtered one, one from Parquet, one made by hand.

    Parameters
    ----------
    packets : pandas.DataFrame
        Rows in capture order, with at least ``time_ns``, ``src``, ``dst``, ``dest_qp``, ``psn`` and ``opcode``. Of the
        other columns of `roce_dissect.columns.PACKETS` the tracker uses what is there.
    bad_icrc : bool array, optional
        Packets that are damaged: they take no part.

    Returns
    -------
    Analysis
        Its `packets` are the given ones with the tracker's columns.

    Raises
    ------
    ArgumentError
        A column is missing, or a value does not fit it.
    """
    source = _FrameSource(packets, bad_icrc)
    flows = FlowTable()
    for columns, rows, bad in source.blocks():
        flows.feed(columns, rows, bad_icrc=bad)
    flows.finish()
    tables = build_tables(flows, source.hosts.texts())
    return Analysis(source.capture(), tables, source)


class Session:
    """An analysis under way: an iterator that takes in one block of packets a step; for `analyze` and live captures."""

    def __init__(
        self,
        captures: Captures,
        *,
        keep_going: bool,
        progress: Progress | None = None,
        poll_s: float | None = None,
    ) -> None:
        self.interrupted = False
        self._paths = _paths(captures)
        self._keep_going = keep_going
        self._blocks = Blocks(self._paths, FLOW_COLUMNS, keep_going=keep_going, progress=progress, poll_s=poll_s)
        self._flows = FlowTable()

    def __iter__(self) -> Iterator[int]:
        """Yields the number of RoCE packets of each block, 0 when nothing came within the poll time."""
        for block in self._blocks:
            self._flows.feed(block.columns, block.rows, block.messages)
            yield block.rows

    def analysis(self, final: bool = True) -> Analysis:
        """What is known now. With `final`, runs that are still open are ended."""
        if final:
            self._flows.finish()
        tables = build_tables(self._flows, self._blocks.hosts.texts())
        return Analysis(self._summary(), tables, _FileSource(self._paths, self._keep_going))

    def _summary(self) -> dict[str, Any]:
        blocks, flows = self._blocks, self._flows
        summary = _capture_summary(blocks.files, blocks.tallies, self.interrupted)
        summary["foreign_packets"] = flows.foreign
        summary["untracked_packets"] = flows.untracked
        summary["events_left_out"] = flows.events_left_out + flows.handshakes.left_out
        return summary


class PacketSession:
    """Reading packets, as `Session` is an analysis under way: an iterator of their DataFrames.

    Parameters
    ----------
    captures
        As for `analyze`.
    wanted : sequence of Column
        Columns of the DataFrames.
    keep_going : bool
        Note a file that cannot be read (on) in `files` and go on, instead of raising its error.
    poll_s : float, optional
        For a pipe: deliver an empty DataFrame when nothing came for so long.
    streams : numpy.ndarray, optional
        Only the packets of these streams.
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
    ) -> None:
        self._wanted = wanted
        self._streams = streams
        self._tracked = streams is not None or any(column.name in TRACKED for column in wanted)
        names = kernel_columns(wanted) + (FLOW_COLUMNS if self._tracked else ())
        self._blocks = Blocks(_paths(captures), names, keep_going=keep_going, progress=progress, poll_s=poll_s)

    @property
    def files(self) -> list[FileSummary]:
        """What is known of each input so far."""
        return self._blocks.files

    @property
    def first_time_ns(self) -> int | None:
        """Time of the capture's first frame, RoCE or not."""
        return min((one.first_time_ns for one in self.files if one.first_time_ns is not None), default=None)

    def __iter__(self) -> Iterator[pd.DataFrame]:
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
            frame = packet_frame(self._wanted, columns, rows, list(self._blocks.hosts.texts()), first)
            first += len(frame)
            yield frame


# -- what packets can be read from, and read from again --------------------------------------------------------------


class _Source:
    """Where the packets of an `Analysis` come from."""

    def frames(self, wanted: Sequence[Column], streams: np.ndarray | None) -> Iterator[pd.DataFrame]:
        """DataFrames of the wanted columns, of all packets or of some streams."""
        raise NotImplementedError


class _FileSource(_Source):
    def __init__(self, paths: list[str | BinaryIO], keep_going: bool = False) -> None:
        self._paths = paths
        self._keep_going = keep_going

    def frames(self, wanted: Sequence[Column], streams: np.ndarray | None) -> Iterator[pd.DataFrame]:
        return iter(PacketSession(self._paths, wanted, keep_going=self._keep_going, streams=streams))


class _FrameSource(_Source):
    """Packets given as a DataFrame."""

    _REQUIRED = ("time_ns", "src", "dst", "dest_qp", "psn", "opcode")
    _PIECE = 16384

    def __init__(self, packets: pd.DataFrame, bad_icrc: pd.Series | np.ndarray | None) -> None:
        missing = [name for name in self._REQUIRED if name not in packets.columns]
        if missing:
            raise ArgumentError(f"the DataFrame lacks {', '.join(missing)}")
        self._packets = packets
        self.hosts = HostTable()
        self._columns = self._flow_columns(packets)
        self._bad = None if bad_icrc is None else np.ascontiguousarray(np.asarray(bad_icrc, bool).astype(np.uint8))
        if self._bad is not None and len(self._bad) != len(packets):
            raise ArgumentError(f"bad_icrc has {len(self._bad)} values for {len(packets)} packets")

    def blocks(self) -> Iterator[tuple[dict[str, np.ndarray], int, np.ndarray | None]]:
        """(columns, rows, bad) piece by piece."""
        for start in range(0, len(self._packets), self._PIECE):
            stop = min(start + self._PIECE, len(self._packets))
            piece = {name: values[start:stop] for name, values in self._columns.items()}
            yield piece, stop - start, None if self._bad is None else self._bad[start:stop]

    def frames(self, wanted: Sequence[Column], streams: np.ndarray | None) -> Iterator[pd.DataFrame]:
        flows = FlowTable()
        start = 0
        for columns, rows, bad in self.blocks():
            verdicts = Verdicts.empty(max(rows, 2))
            flows.feed(columns, rows, verdicts=verdicts, bad_icrc=bad)
            keep = np.arange(rows) if streams is None else np.flatnonzero(np.isin(verdicts.stream[:rows], streams))
            given = self._packets.iloc[start : start + rows].iloc[keep]
            start += rows
            tracked = packet_frame(
                [PACKETS[name] for name in TRACKED],
                {name: getattr(verdicts, name) for name in TRACKED} | {"present": columns["present"]},
                keep,
                [],
            )
            tracked.index = given.index
            both = given.drop(columns=[name for name in TRACKED if name in given.columns]).join(tracked)
            names = [column.name for column in wanted if column.name in both.columns]
            yield both[names]

    def capture(self) -> dict[str, Any]:
        """A capture summary for packets that came from no file."""
        times = self._columns["time_ns"]
        count = len(self._packets)
        return {
            "files": [],
            "packets": count,
            "roce_packets": count,
            "sliced_packets": 0,
            "first_time_ns": int(times.min()) if count else None,
            "last_time_ns": int(times.max()) if count else None,
            "link_types": {},
            "other_packets": dict.fromkeys(_OTHER, 0),
            "complete": True,
            "interrupted": False,
            "compiled": bool(kernel.COMPILED and tracker.COMPILED),
            "foreign_packets": 0,
            "untracked_packets": 0,
            "events_left_out": 0,
        }

    def _flow_columns(self, packets: pd.DataFrame) -> dict[str, np.ndarray]:
        """The tracker's columns from whatever the DataFrame has; presence bits from which values are there."""
        count = len(packets)
        columns: dict[str, np.ndarray] = {}
        present = np.full(count, layout.HAS_BTH, np.uint32)
        for name in FLOW_COLUMNS:
            if name in ("frame_key", "present"):
                continue
            column = PACKETS[name]
            dtype = np.dtype("uint32" if column.dtype == "address" else column.dtype)
            if name not in packets.columns:
                columns[name] = np.zeros(count, dtype) if name != "version" else np.full(count, 2, dtype)
                continue
            given = packets[name]
            if column.dtype == "address":
                columns[name] = self._host_codes(given)
                continue
            there = given.notna().to_numpy(bool)
            if column.terms is not None and not pd.api.types.is_numeric_dtype(given.dtype):
                codes = {term.name.lower(): int(term) for term in column.terms}
                given = given.astype(object).map(codes)
            columns[name] = _integers(given, dtype, name)
            for bit in (layout.HAS_AETH, layout.HAS_RETH, layout.HAS_DETH, layout.HAS_ICRC, layout.HAS_IPV4):
                if column.needs == bit:
                    present[there] |= np.uint32(bit)
        columns["present"] = present
        if "present" in packets.columns:
            columns["present"] = _integers(packets["present"], np.dtype(np.uint32), "present")
        file = _integers(packets["file"], np.dtype(np.int64), "file") if "file" in packets.columns else 0
        frame = (
            _integers(packets["frame"], np.dtype(np.int64), "frame")
            if "frame" in packets.columns
            else np.arange(1, count + 1, dtype=np.int64)
        )
        columns["frame_key"] = np.ascontiguousarray((np.zeros(count, np.int64) + file << FILE_SHIFT) | frame)
        return columns

    def _host_codes(self, given: pd.Series) -> np.ndarray:
        """Codes of addresses given as text."""
        texts = given.astype(object)
        return np.ascontiguousarray(texts.map(self.hosts.enter).to_numpy(np.uint32))


# -- helpers -----------------------------------------------------------------------------------------------------------


def _paths(captures: Captures) -> list[str | BinaryIO]:
    """Inputs as the reader takes them."""
    one = isinstance(captures, str | os.PathLike) or hasattr(captures, "read") or hasattr(captures, "readinto")
    return [_path(capture) for capture in ([captures] if one else captures)]  # type: ignore[union-attr, arg-type]


def _path(capture: str | os.PathLike[str] | BinaryIO) -> str | BinaryIO:
    return os.fspath(capture) if isinstance(capture, str | os.PathLike) else capture


def _capture_summary(files: list[FileSummary], tallies: np.ndarray, interrupted: bool) -> dict[str, Any]:
    link_types: dict[str, int] = {}
    for one in files:
        for link_type, frames in one.link_types.items():
            name = LINKTYPE_NAMES.get(link_type, f"link type {link_type}")
            link_types[name] = link_types.get(name, 0) + frames
    firsts = [one.first_time_ns for one in files if one.first_time_ns is not None]
    lasts = [one.last_time_ns for one in files if one.last_time_ns is not None]
    listed = []
    for one in files:
        record = asdict(one)
        record["link_types"] = {LINKTYPE_NAMES.get(k, f"link type {k}"): v for k, v in one.link_types.items()}
        listed.append(record)
    return {
        "files": listed,
        "packets": sum(one.frames for one in files),
        "roce_packets": int(tallies[layout.TALLY_ROCE]),
        "sliced_packets": sum(one.sliced_frames for one in files),
        "first_time_ns": min(firsts, default=None),
        "last_time_ns": max(lasts, default=None),
        "link_types": link_types,
        "other_packets": {name: int(tallies[tally]) for name, tally in _OTHER.items()},
        "complete": not interrupted and all(one.complete for one in files),
        "interrupted": interrupted,
        "compiled": bool(kernel.COMPILED and tracker.COMPILED),
    }


def _integers(given: pd.Series, dtype: np.dtype, name: str) -> np.ndarray:
    """Values of a column as C-contiguous integers; missing ones are 0."""
    try:
        values = pd.to_numeric(given).fillna(0).to_numpy(np.int64 if dtype != np.uint64 else np.uint64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"column {name!r} holds what is no integer") from error
    limits = np.iinfo(dtype)
    if len(values) and (values.min() < limits.min or values.max() > limits.max):
        raise ArgumentError(f"column {name!r} holds values outside of {limits.min} to {limits.max}")
    return np.ascontiguousarray(values.astype(dtype))


def _concatenate(frames: list[pd.DataFrame], wanted: Sequence[Column]) -> pd.DataFrame:
    """Pieces as one DataFrame; the addresses' categories are those of the last piece, which knows all of them."""
    if not frames:
        empty = {"present": np.zeros(0, np.uint32)}
        columns = {name: np.zeros(0, np.int64) for name in (*kernel_columns(wanted), *TRACKED)} | empty
        return packet_frame(wanted, columns, slice(0, 0), [])
    if len(frames) > 1:
        for name in ("src", "dst"):
            if name in frames[0] and isinstance(frames[-1][name].dtype, pd.CategoricalDtype):
                last = frames[-1][name].cat.categories
                for frame in frames[:-1]:
                    frame[name] = frame[name].cat.set_categories(last)
    return pd.concat(frames)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts of plain Python values; missing ones are None."""
    columns = {}
    for name in table.columns:
        values = table[name]
        plain = values.astype(object).where(values.notna(), None).tolist()
        columns[name] = [value.item() if isinstance(value, np.generic) else value for value in plain]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _connection_record(record: dict[str, Any]) -> dict[str, Any]:
    """A connection with its ends and directions nested, as people expect it in JSON."""
    nested: dict[str, Any] = {"id": record.pop("connection")}
    ends = {end: {key: record.pop(f"{end}_{key}") for key in ("address", "qp")} for end in ("a", "b")}
    ways: dict[str, dict[str, Any]] = {}
    for way in ("a_to_b", "b_to_a"):
        keys = [key for key in record if key.startswith(way + "_")]
        ways[way] = {key.removeprefix(way + "_"): record.pop(key) for key in keys}
    return nested | record | ends | ways
