"""Counters per stream and time bin, and what was outstanding in it."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import numpy as np
import pandas as pd

from roce_dissect.columns import TIMELINE
from roce_dissect.errors import ArgumentError
from roce_dissect.flows.dataframes import table_frame
from roce_dissect.flows.message_table import connections_of
from roce_dissect.spec.net import ECN_CE

__all__ = ["MOST_BINS", "TIMELINE_COLUMNS", "interval", "timeline"]

#: Bins of a timeline, and rows of the table, at most: with more, an interval was given in the wrong unit.
MOST_BINS = 1_000_000
MOST_ROWS = 10_000_000
#: Bins when no interval is asked for, about.
_USUAL_BINS = 200
#: Times beyond are clipped, as the tracker does, so that differences stay in range.
_MOST_TIME = 0x3FFFFFFFFFFFFFFF
#: Columns of packets that a timeline is made of.
TIMELINE_COLUMNS = (
    "time_ns",
    "stream",
    "role",
    "verdict",
    "accepted",
    "wire_len",
    "payload_len",
    "syndrome",
    "ecn",
)
_ASKING = ("read", "compare_swap", "fetch_add")
_OUTSTANDING = ("most_messages", "most_reads", "most_packets")
_SUMS = (
    "packets",
    "bytes",
    "goodput_bytes",
    "resent_packets",
    "late_packets",
    "naks",
    "rnr_naks",
    "cnps",
    "ce_packets",
)


def timeline(
    span: tuple[int, int],
    interval_ns: int,
    packets: Iterable[pd.DataFrame],
    messages: Iterable[pd.DataFrame],
    connection_of: np.ndarray,
) -> pd.DataFrame:
    """Counters per stream and time bin in which something passed or was outstanding.

    Parameters
    ----------
    span : tuple of int
        Times of the first and the last frame, ns.
    interval_ns : int
        Width of the bins.
    packets : iterable of pandas.DataFrame
        With `TIMELINE_COLUMNS`, in pieces.
    messages : iterable of pandas.DataFrame
        With the columns of `roce_dissect.columns.MESSAGES`, in pieces.
    connection_of : numpy.ndarray
        int64, connection of each stream.

    Returns
    -------
    pandas.DataFrame
        Columns of `roce_dissect.columns.TIMELINE`.

    Raises
    ------
    ArgumentError
        The interval makes too many bins.
    """
    start, end = (max(-_MOST_TIME, min(time, _MOST_TIME)) for time in span)
    if (end - start) // interval_ns >= MOST_BINS:
        raise ArgumentError(f"an interval of {interval_ns} ns makes more than {MOST_BINS} bins: take a longer one")
    pieces = [_counted(piece, start, interval_ns) for piece in packets]
    counted = pd.concat(pieces).groupby(level=[0, 1]).sum() if pieces else _counted(_nothing(), start, interval_ns)
    outstanding = _outstanding(_steps(messages, end), start, interval_ns, end)
    table = counted.join(outstanding, how="outer").fillna(0).sort_index().reset_index()
    stream = table["stream"].to_numpy(np.int64)
    table["connection"] = connections_of(stream, connection_of)
    table["time_ns"] = start + table["bin"] * interval_ns
    table["interval_ns"] = interval_ns
    return table_frame(TIMELINE, {name: table[name].to_numpy(np.int64) for name in TIMELINE})


def interval(wanted: object, span: tuple[int, int], streams: int) -> int:
    """Width of the bins in ns: what is wanted, or (None) for some two hundred round ones, fewer for many streams.

    Raises
    ------
    ArgumentError
        It is no positive integer of 63 bits.
    """
    if wanted is None:
        return _usual_interval(span, max(min(_USUAL_BINS, MOST_ROWS // max(streams, 1)), 1))
    try:
        width = operator.index(wanted)  # type: ignore[arg-type]
    except TypeError:
        width = 0
    if not 0 < width < 1 << 63:
        raise ArgumentError(f"the interval must be a positive integer of nanoseconds, not {wanted!r:.50}")
    return width


def _usual_interval(span: tuple[int, int], bins: int) -> int:
    """The least of 1, 2, 5 x 10^n ns that makes no more than so many bins of (first, last) time, about."""
    least = max((span[1] - span[0]) // bins, 1)
    power = 10 ** (len(str(least)) - 1)
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _nothing() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype="int64") for name in TIMELINE_COLUMNS})


def _counted(packets: pd.DataFrame, start: int, width: int) -> pd.DataFrame:
    """Sums of each stream and bin."""
    packets = packets[packets["stream"] >= 0]
    verdict, role = packets["verdict"], packets["role"]
    # as the streams' goodput: READ responses have no verdict late
    new = verdict.isin(["first", "new", "gap", "late"]) & (packets["accepted"] != "qp_error") | (role == "datagram")
    request = role == "request"
    kind = _numbers(packets, "syndrome") >> 5 & 3
    frame = pd.DataFrame(
        {
            "stream": packets["stream"].to_numpy(np.int64),
            "bin": (np.clip(packets["time_ns"].to_numpy(np.int64), -_MOST_TIME, _MOST_TIME) - start) // width,
            "packets": 1,
            "bytes": _numbers(packets, "wire_len"),
            "goodput_bytes": np.where(new, _numbers(packets, "payload_len"), 0),
            "resent_packets": (request & (verdict == "resent")).to_numpy(np.int64),
            "late_packets": (request & (verdict == "late")).to_numpy(np.int64),
            "naks": (kind == 3).astype(np.int64),
            "rnr_naks": (kind == 1).astype(np.int64),
            "cnps": (packets["role"] == "cnp").to_numpy(np.int64),
            "ce_packets": (_numbers(packets, "ecn") == ECN_CE).astype(np.int64),
        }
    )
    return frame.groupby(["stream", "bin"])[list(_SUMS)].sum()


def _numbers(packets: pd.DataFrame, name: str) -> np.ndarray:
    """A column as integers, 0 where it is missing, or is no column of packets that came as a DataFrame."""
    if name not in packets:
        return np.zeros(len(packets), np.int64)
    return packets[name].fillna(0).to_numpy(np.int64)


def _steps(messages: Iterable[pd.DataFrame], end: int) -> pd.DataFrame:
    """What each message adds when it begins and takes away when it is answered, in order; one never answered stays."""
    names = ["stream", "verb", "status", "psn", "last_psn", "time_ns", "last_time_ns", "answer_time_ns"]
    pieces = [piece.loc[~piece["status"].isin(["sent", "lost"]), names] for piece in messages]  # UC, UD: nothing waits
    if not pieces:
        return pd.DataFrame({name: pd.Series(dtype="int64") for name in (*_OUTSTANDING, "stream", "time", "sign")})
    rows = pd.concat(pieces, ignore_index=True)
    psns = ((rows["last_psn"].to_numpy(np.int64) - rows["psn"].to_numpy(np.int64)) & 0xFFFFFF) + 1
    reads = rows["verb"].isin(_ASKING).to_numpy(np.int64)
    adds = np.stack([np.ones(len(rows), np.int64), reads, psns], axis=1)
    answered = rows["answer_time_ns"].astype("Int64")
    # rows come in the order in which they ended: a QP in error flushed what stands behind the refused one
    refusal = answered.where(rows["status"] == "refused").groupby(rows["stream"]).ffill()
    over = answered.where(rows["status"] != "flushed", refusal)
    # the answer passed elsewhere: when is not known, only that it did
    over = over.where(rows["status"] != "answer_unseen", rows["last_time_ns"].astype("Int64"))
    begun, stream = rows["time_ns"].to_numpy(np.int64), rows["stream"].to_numpy(np.int64)
    ended = np.maximum(over.fillna(end + 1).to_numpy(np.int64), begun)
    steps = [
        pd.DataFrame(sign * adds, columns=list(_OUTSTANDING)).assign(stream=stream, time=times, sign=sign)
        for sign, times in ((1, begun), (-1, ended))
    ]
    # at one and the same time, what ends comes first: an answer makes room for the next message
    return pd.concat(steps).sort_values(["stream", "time", "sign"], kind="stable")


def _outstanding(steps: pd.DataFrame, start: int, width: int, end: int) -> pd.DataFrame:
    """Most messages, READs and PSNs outstanding in each bin of each stream."""
    level = steps.groupby("stream")[list(_OUTSTANDING)].cumsum()
    level["stream"], level["bin"] = steps["stream"], (steps["time"] - start) // width
    grouped = level.groupby(["stream", "bin"])[list(_OUTSTANDING)]
    most, last = grouped.max(), grouped.last().to_numpy(np.int64)
    stream = most.index.get_level_values(0).to_numpy(np.int64)
    at = most.index.get_level_values(1).to_numpy(np.int64)
    same = np.zeros(len(most), bool)  # the row before is of the same stream
    same[1:] = stream[1:] == stream[:-1]
    before = np.where(same[:, None], np.roll(last, 1, axis=0), 0)
    values = np.maximum(most.to_numpy(np.int64), before)
    # bins in which nothing changed have what the one before them left
    until = np.where(np.roll(same, -1) & (np.arange(len(most)) < len(most) - 1), np.roll(at, -1), at + 1)
    quiet = np.where(last[:, 0] > 0, until - at - 1, 0)
    if quiet.sum() > MOST_ROWS:
        raise ArgumentError(f"an interval of {width} ns makes more than {MOST_ROWS} rows: take a longer one")
    row = np.repeat(np.arange(len(most)), quiet)
    step = np.arange(len(row)) - np.repeat(np.cumsum(quiet) - quiet, quiet) + 1
    index = pd.MultiIndex.from_arrays(
        [np.concatenate([stream, stream[row]]), np.concatenate([at, at[row] + step])], names=["stream", "bin"]
    )
    table = pd.DataFrame(np.concatenate([values, last[row]]), index, list(_OUTSTANDING))
    inside = index.get_level_values(1) <= (end - start) // width
    return table[inside & (table["most_messages"] > 0).to_numpy()]
