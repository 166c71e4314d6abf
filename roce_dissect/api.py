"""The public face: `analyze`, `read_packets`, `iter_packets`, `track`, and the `Analysis` they lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from roce_dissect.analysis.counter_comparison import compare_counters
from roce_dissect.analysis.packet_frame import kernel_columns, packet_frame, text_index
from roce_dissect.analysis.packet_sources import (
    Captures,
    FileSource,
    FrameSource,
    MessageRows,
    PacketSession,
    PacketSource,
    Progress,
    input_list,
)
from roce_dissect.analysis.qp_ends import with_ends
from roce_dissect.analysis.records import connection_records, counter_records, table_records
from roce_dissect.analysis.summary import capture_summary
from roce_dissect.analysis.timeline import TIMELINE_COLUMNS, interval, timeline
from roce_dissect.analysis.trust import trust_statement
from roce_dissect.columns import TRACKED, Column, packet_columns
from roce_dissect.decode.blocks import Blocks
from roce_dissect.decode.options import DEFAULT_OPTIONS, ReadOptions
from roce_dissect.decode.selection import Selection
from roce_dissect.errors import ArgumentError, CaptureError
from roce_dissect.flows import states
from roce_dissect.flows.flow_table import FLOW_COLUMNS, KEY_COLUMNS, FlowTable
from roce_dissect.flows.message_table import message_frame
from roce_dissect.flows.tables import Tables, build_tables

if TYPE_CHECKING:
    from roce_dissect.plot.accessor import PlotAccessor

__all__ = ["SCHEMA", "Analysis", "Session", "analyze", "iter_packets", "read_packets", "track"]

_NO_MESSAGES = np.zeros((0, states.MESSAGE_WORDS), np.int64)

#: Version of the JSON form: `docs/json.md`.
SCHEMA = 1


class Analysis:
    """What a capture holds. Made by `analyze` or `track`.

    Attributes
    ----------
    capture : dict
        Files, packet counts, times (`docs/json.md`).
    streams, connections, events, episodes, latency, hosts, counters : pandas.DataFrame
        Columns as in `roce_dissect.columns`, meaning as in ``docs/semantics.md`` and ``docs/metrics.md``.
    counter_comparison : pandas.DataFrame
        What hosts counted beside `counters` (``docs/counters.md``); empty until somebody puts it there, as ``analyze
        --counters`` does.
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

    def __init__(
        self, capture: dict[str, Any], tables: Tables, source: PacketSource, messages: MessageRows | None = None
    ) -> None:
        self.capture = capture | {"trust": trust_statement(capture, tables.streams, tables.connections)}
        self.streams = tables.streams
        self.connections = tables.connections
        self.events = tables.events
        self.episodes = tables.episodes
        self.latency = tables.latency
        self.hosts = tables.hosts
        self.counters = tables.counters
        self.counter_comparison = compare_counters(tables.counters, {}, ())
        self.findings: list[Any] = []
        self._source = source
        self._message_rows = messages
        self._messages: pd.DataFrame | None = None

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

    @property
    def messages(self) -> pd.DataFrame:
        """One row per verb (`roce_dissect.columns.MESSAGES`), in the order in which they ended.

        The capture is read once more when this is first asked for, unless the rows were kept (``analyze(...,
        messages=True)``). For captures with many millions of messages see `iter_messages`.

        Raises
        ------
        ArgumentError
            The capture was a pipe and cannot be read again.
        CaptureError
            The file has gone, or broke off where it had not before.
        """
        if self._messages is None:
            pieces = list(self.iter_messages())
            self._messages = pd.concat(pieces, ignore_index=True) if pieces else self._message_frame(_NO_MESSAGES)
        return self._messages

    def iter_messages(self, connection: int | None = None) -> Iterator[pd.DataFrame]:
        """As `messages`, in pieces, in constant memory; only those of one connection where that is named.

        Raises
        ------
        ArgumentError
            The connection does not exist, or the capture was a pipe and cannot be read again.
        CaptureError
            As `messages`.
        """
        streams = None if connection is None else self._streams_of(connection)
        if self._messages is not None:
            known = self._messages if streams is None else self._messages[self._messages["stream"].isin(streams)]
            return iter([known] if len(known) else [])
        pieces = self._source.message_rows() if self._message_rows is None else iter(self._message_rows)
        return self._message_frames(pieces, streams)

    def _message_frames(self, pieces: Iterator[np.ndarray], streams: np.ndarray | None) -> Iterator[pd.DataFrame]:
        for rows in pieces:
            if streams is not None:
                rows = rows[np.isin(rows[:, states.M_STREAM], streams)]
            if len(rows):
                yield self._message_frame(rows)

    def _message_frame(self, rows: np.ndarray) -> pd.DataFrame:
        return message_frame(rows, self._connection_of())

    def _connection_of(self) -> np.ndarray:
        return self.streams["connection"].to_numpy(np.int64)

    def timeline(self, interval_ns: int | None = None, connection: int | None = None) -> pd.DataFrame:
        """Counters per stream and time bin, and what was outstanding in it; the capture is read twice more.

        Memory grows with the bins and with the messages.

        Parameters
        ----------
        interval_ns : int, optional
            Width of the bins; by default some two hundred of a round number of nanoseconds.
        connection : int, optional
            Only the streams of one row of `connections`.

        Returns
        -------
        pandas.DataFrame
            Columns as in `roce_dissect.columns.TIMELINE`.

        Raises
        ------
        ArgumentError
            The interval is not positive or makes too many bins, the connection does not exist, or the capture was a
            pipe and cannot be read again.
        CaptureError
            As `messages`.
        """
        span = self._span()
        return timeline(
            span,
            interval(interval_ns, span, len(self.streams)),
            self.iter_packets(connection, TIMELINE_COLUMNS),
            self.iter_messages(connection),
            self._connection_of(),
        )

    def _span(self) -> tuple[int, int]:
        """Times of the first and the last frame, within the range of time that was chosen."""
        first, last = self.capture["first_time_ns"] or 0, self.capture["last_time_ns"] or 0
        chosen = self.capture["selection"]
        if chosen is not None and chosen["from_time_ns"] is not None:
            first = min(max(first, chosen["from_time_ns"]), last)
        if chosen is not None and chosen["to_time_ns"] is not None:
            last = max(min(last, chosen["to_time_ns"]), first)
        return first, last

    def _streams_of(self, connection: int) -> np.ndarray:
        row = self.connections[self.connections["connection"] == connection]
        if row.empty:
            raise ArgumentError(f"no connection {connection}: the capture has {len(self.connections)}")
        both = np.array([row["a_to_b_stream"].iloc[0], row["b_to_a_stream"].iloc[0]], np.int64)
        return both[both >= 0]

    def to_dict(self) -> dict[str, Any]:
        """The analysis as plain Python values, ready for ``json.dumps``: the form that ``docs/json.md`` specifies."""
        return {
            "schema": SCHEMA,
            "capture": self.capture,
            "hosts": table_records(self.hosts),
            "streams": table_records(self.streams),
            "connections": connection_records(self.connections),
            "events": table_records(self.events),
            "episodes": table_records(self.episodes),
            "latency": table_records(self.latency),
            "counters": counter_records(self.counters),
            "counter_comparison": table_records(self.counter_comparison),
            "findings": self.findings,
        }


def analyze(
    captures: Captures,
    *,
    errors: str = "raise",
    progress: Progress | None = None,
    poll_s: float | None = None,
    messages: bool = False,
    ports: Sequence[int] = (),
    icrc: bool = True,
    filter: str | None = None,
    hosts: str | Sequence[str] = (),
    qps: int | Sequence[int] = (),
    time: str | None = None,
    count: int | None = None,
) -> Analysis:
    """Read one or more captures to the end and say what happened in them. Memory does not grow with their length.

    Parameters
    ----------
    captures : path, ``"-"``, binary file object, or sequence of paths
        Several files are one capture in time order; ``"-"`` is standard input.
    errors : {"raise", "keep"}
        What to do when a file cannot be read (on): raise its `CaptureError`, whose ``analysis`` attribute holds what
        was analysed so far; or keep going and note it in ``capture["files"]``. With "keep", Ctrl-C, too, ends with what
        was analysed.
    progress : callable, optional
        Called with (bytes read, bytes in all or None) now and then.
    poll_s : float, optional
        For a pipe: how long to wait for packets at most before looking at signals again.
    messages : bool
        Keep the rows of `Analysis.messages` while reading: some 230 bytes each. Needed for what cannot be read twice;
        `Analysis.packets` and `Analysis.timeline` cannot be had of such a capture all the same.
    ports : sequence of int
        UDP destination ports of RoCE v2 beside 4791.
    icrc : bool
        Whether to verify the ICRC of whole packets; it decides which of them take part in the flow tables.
    filter : str, optional
        Analyse only the packets that this expression over columns holds for, such as ``"dscp == 26"``
        (``docs/filters.md``). Columns of the tracker are not known yet: filter the DataFrame of `Analysis.packets`.
    hosts : str or sequence of str
        Addresses or networks: only packets from or to one of them.
    qps : int or sequence of int
        Only packets to one of these QPs, or from one; where they come from, an additional reading finds out first. What
        cannot be read twice is chosen by the QPs that a packet names itself.
    time : str, optional
        Only packets of a range of time, ``"FROM..TO"``: seconds since the first frame, or times of day or dates (UTC).
    count : int, optional
        Only the first so many packets that all else holds for; the rest is not read.

    Returns
    -------
    Analysis

    Raises
    ------
    CaptureError
        With "raise" only: a file cannot be read, with path and byte offset.
    ArgumentError
        With "keep", too: a choice that cannot be understood, or a filter over columns of the tracker; no capture at
        all; standard input, a pipe or a file object together with other captures; what is neither a path nor a binary
        file object; an unknown value of `errors`.
    """
    if errors not in ("raise", "keep"):
        raise ArgumentError(f"errors must be 'raise' or 'keep', not {errors!r}")
    options = _options(ports, icrc, filter, hosts, qps, time, count)
    session = Session(
        captures, keep_going=errors == "keep", progress=progress, poll_s=poll_s, messages=messages, options=options
    )
    try:
        for _ in session:
            pass
    except CaptureError as error:
        error.analysis = session.analysis()
        raise
    except KeyboardInterrupt:
        if errors == "raise":
            raise
        session.interrupted = True
    return session.analysis()


def iter_packets(
    captures: Captures,
    columns: Sequence[str] | None = None,
    *,
    ports: Sequence[int] = (),
    icrc: bool = True,
    filter: str | None = None,
    hosts: str | Sequence[str] = (),
    qps: int | Sequence[int] = (),
    time: str | None = None,
    count: int | None = None,
) -> Iterator[pd.DataFrame]:
    """RoCE packets of one or more captures, in pieces of at most some ten thousand rows, in constant memory.

    Parameters
    ----------
    captures : path, ``"-"``, binary file object, or sequence of paths
        Several files are one capture in time order; ``"-"`` is standard input.
    columns : sequence of str, optional
        Columns of `roce_dissect.columns.PACKETS`, in the order wanted; default all. Those of the tracker
        (``verdict`` ...) cost a little more.
    ports : sequence of int
        UDP destination ports of RoCE v2 beside 4791.
    icrc : bool
        Whether to verify the ICRC of whole packets; it decides which of them take part in the flow tables.
    filter, hosts, qps, time, count : optional
        As for `analyze`, but they choose what is delivered: the tracker sees all packets, so that ``filter`` may name
        its columns, too: ``'verdict == "resent"'``.

    Yields
    ------
    pandas.DataFrame
        Its index counts on from piece to piece.

    Raises
    ------
    CaptureError
        After all packets before the fault.
    ArgumentError
        A column that does not exist; no capture at all; standard input, a pipe or a file object together with other
        captures; what is neither a path nor a binary file object.
    """
    options = _options(ports, icrc, filter, hosts, qps, time, count)
    return iter(PacketSession(captures, packet_columns(columns), keep_going=False, options=options, shown=True))


def read_packets(
    captures: Captures,
    columns: Sequence[str] | None = None,
    *,
    ports: Sequence[int] = (),
    icrc: bool = True,
    filter: str | None = None,
    hosts: str | Sequence[str] = (),
    qps: int | Sequence[int] = (),
    time: str | None = None,
    count: int | None = None,
) -> pd.DataFrame:
    """All RoCE packets as one DataFrame. For large captures see `iter_packets`.

    Parameters
    ----------
    captures : path, ``"-"``, binary file object, or sequence of paths
        Several files are one capture in time order; ``"-"`` is standard input.
    columns : sequence of str, optional
        Columns of `roce_dissect.columns.PACKETS`, in the order wanted; default all.
    ports : sequence of int
        UDP destination ports of RoCE v2 beside 4791.
    icrc : bool
        Whether to verify the ICRC of whole packets; it decides which of them take part in the flow tables.
    filter, hosts, qps, time, count : optional
        As for `analyze`, but they choose what is delivered: the tracker sees all packets, so that ``filter`` may name
        its columns, too: ``'verdict == "resent"'``.

    Returns
    -------
    pandas.DataFrame
        One row per RoCE frame, in time order. Integers are Arrow-backed, so that what a packet lacks is missing;
        addresses, operations and coded columns are categorical. Units are those of `roce_dissect.columns.PACKETS`.

    Raises
    ------
    CaptureError
        A file cannot be read, or not to its end; use `iter_packets` to get the packets before the fault.
    ArgumentError
        A column that does not exist; no capture at all; standard input, a pipe or a file object together with other
        captures; what is neither a path nor a binary file object.
    """
    pieces = iter_packets(
        captures,
        columns,
        ports=ports,
        icrc=icrc,
        filter=filter,
        hosts=hosts,
        qps=qps,
        time=time,
        count=count,
    )
    return _concatenate(list(pieces), packet_columns(columns))


def track(packets: pd.DataFrame, bad_icrc: pd.Series | np.ndarray | None = None) -> Analysis:
    """Reconstruct the flows of any DataFrame of packets: a filtered one, one from Parquet, one made by hand.

    Handshakes of the connection manager take no part: a DataFrame has no payload bytes to read them from. So there
    are no events of the CM, and streams are paired by what else there is.

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
    source = FrameSource(packets, bad_icrc)
    flows = FlowTable()
    for columns, rows in source.blocks():
        flows.feed(columns, rows)
    flows.finish()
    tables = build_tables(flows, source.hosts.texts())
    return Analysis(source.capture(flows), tables, source)


class Session:
    """An analysis under way: an iterator that takes in one block of packets a step; for `analyze` and live captures.

    Parameters
    ----------
    captures : path, ``"-"``, binary file object, or sequence of paths
        Several files are one capture in time order; ``"-"`` is standard input.
    keep_going : bool
        Note a file that cannot be read (on) in ``capture["files"]`` and go on, instead of raising its error.
    progress : callable, optional
        Called with (bytes read, bytes in all or None) now and then.
    poll_s : float, optional
        For a pipe: make a step of 0 packets when nothing came for so many seconds. Default: wait.
    messages : bool
        Keep the rows of messages.
    options : ReadOptions
        How to read.

    Attributes
    ----------
    interrupted : bool
        To be set by whoever stops reading before the end; it is passed on as ``capture["interrupted"]``.

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
        *,
        keep_going: bool,
        progress: Progress | None = None,
        poll_s: float | None = None,
        messages: bool = False,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.interrupted = False
        if options.selection is not None:
            options.selection.demand_decoded()
        self._options, self._progress = options, progress
        self._paths = input_list(captures)
        self._keep_going = keep_going
        self._messages = MessageRows() if messages else None
        names = FLOW_COLUMNS + (KEY_COLUMNS if messages else ())
        # no function with `self` in it: a cycle would keep tables of many megabytes until the collector comes by
        self._open = partial(Blocks, self._paths, names, keep_going=keep_going, progress=progress, poll_s=poll_s)
        self._blocks = self._open(options=options)
        self._flows = FlowTable(on_messages=self._messages)

    def __iter__(self) -> Iterator[int]:
        """Yields the number of RoCE packets of each block, 0 when nothing came within the poll time."""
        options = with_ends(self._paths, self._options, self._progress)
        if options is not self._options:
            self._options, self._blocks = options, self._open(options=options)
        for block in self._blocks:
            self._flows.feed(block.columns, block.rows, block.messages)
            yield block.rows

    def stop(self) -> None:
        """Read no further; the steps end with what was read."""
        self._blocks.stop()

    def analysis(self, final: bool = True) -> Analysis:
        """What is known now. With `final`, runs that are still open are ended."""
        if final:
            self._flows.finish()
        blocks, flows = self._blocks, self._flows
        summary = capture_summary(
            blocks.files,
            blocks.tallies,
            flows,
            blocks.judgements,
            ordering=blocks.ordering,
            doubles=blocks.doubles,
            interrupted=self.interrupted,
            selection=blocks.chooser.summary() if self._options.selection else None,
        )
        tables = build_tables(flows, blocks.hosts.texts(), blocks.chooser.end_ns(summary["last_time_ns"]))
        return Analysis(summary, tables, FileSource(self._paths, self._keep_going, self._options), self._messages)


def _options(
    ports: Sequence[int],
    icrc: bool,
    filter: str | None,
    hosts: str | Sequence[str],
    qps: int | Sequence[int],
    time: str | None,
    count: int | None,
) -> ReadOptions:
    selection = Selection(filter, hosts, (qps,) if isinstance(qps, int) else qps, time, count)
    return ReadOptions(ports, icrc, selection if selection else None)


def _concatenate(frames: list[pd.DataFrame], wanted: Sequence[Column]) -> pd.DataFrame:
    """Pieces as one DataFrame; the addresses' categories are those of the last piece, which knows all of them."""
    if not frames:
        empty = {"present": np.zeros(0, np.uint32)}
        columns = {name: np.zeros(0, np.int64) for name in (*kernel_columns(wanted), *TRACKED)} | empty
        return packet_frame(wanted, columns, slice(0, 0), text_index([]))
    if len(frames) > 1:
        for name in ("src", "dst", "outer_src", "outer_dst"):
            if name in frames[0] and isinstance(frames[-1][name].dtype, pd.CategoricalDtype):
                last = frames[-1][name].cat.categories
                for frame in frames[:-1]:
                    frame[name] = frame[name].cat.set_categories(last)
    return pd.concat(frames)
