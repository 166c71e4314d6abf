"""Goodput and counts in bins of time, gathered from packets of any number in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect import units
from roce_dissect.errors import ArgumentError
from roce_dissect.plot.points import column, packet_pieces
from roce_dissect.plot.units import bin_width_ns
from roce_dissect.spec.aeth import SyndromeKind
from roce_dissect.spec.net import ECN_CE
from roce_dissect.spec.opcodes import RC_READ_RESPONSES
from roce_dissect.terms import ADVANCING, Accepted, Role, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.api import Analysis

__all__ = ["COUNTED", "Bins", "bin_packets", "goodput_of"]

_COLUMNS = ("time_ns", "stream", "role", "verdict", "accepted", "opcode", "syndrome", "payload_len", "ecn")
#: What is counted per bin, by the name of its mark (`roce_dissect.plot.style.MARKS`).
COUNTED = ("resent", "response_resent", "late", "copy", "gap", "response_gap", "nak", "rnr_nak", "ce", "cnp")
_MOST_BINS = 1_000_000


@dataclass(slots=True)
class Bins:
    """Goodput and counts over time.

    Attributes
    ----------
    start_ns : int
        Where the first bin begins.
    width_ns : int
        Width of a bin.
    span_ns : int
        From the first packet to the last.
    goodput : numpy.ndarray
        Shape (groups, bins), int64: payload bytes of what was new to the capture point. Each group's sum is the sum of
        its streams' ``goodput_bytes``.
    counts : dict of str to numpy.ndarray
        Per mark, shape (bins,), int64: packets. Only what occurs.
    outside : int
        Packets with a time before the first or after the last bin (files whose times jump back); they are counted in
        the bin at the edge.
    """

    start_ns: int
    width_ns: int
    span_ns: int
    goodput: np.ndarray
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    outside: int = 0

    @property
    def edges_ns(self) -> np.ndarray:
        """Shape (bins + 1,), int64, nanoseconds from the start."""
        return np.arange(self.goodput.shape[1] + 1, dtype=np.int64) * self.width_ns


def goodput_of(
    role: np.ndarray, verdict: np.ndarray, accepted: np.ndarray, opcode: np.ndarray, payload_len: np.ndarray
) -> np.ndarray:
    """Payload bytes of each packet that are goodput, else 0: the tracker's rule for ``goodput_bytes``.

    Requests that were new or late, except those that met a QP in error; READ responses that were new; UD datagrams,
    which nobody judges, without management.
    """
    advances = np.isin(verdict, ADVANCING)
    read = np.isin(opcode, RC_READ_RESPONSES)
    good = (role == Role.REQUEST) & (advances | (verdict == Verdict.LATE)) & (accepted != Accepted.QP_ERROR)
    good |= (role == Role.RESPONSE) & read & advances
    good |= role == Role.DATAGRAM
    return np.where(good, payload_len, 0)


def bin_packets(
    analysis: Analysis, groups: list[list[int]], connection: int | None = None, bin_ns: int | None = None
) -> Bins | None:
    """Goodput of groups of streams, and counts over all of them; None where they have no packet.

    Parameters
    ----------
    analysis : Analysis
        Its capture is read once more.
    groups : list of list of int
        Rows of the streams table.
    connection : int, optional
        Read its packets only.
    bin_ns : int, optional
        Bin width in nanoseconds; default: `bin_width_ns`.

    Raises
    ------
    ArgumentError
        A bin width below 1, or so small that there would be more than a million bins.
    """
    members = [stream for group in groups for stream in group]
    rows: pd.DataFrame = analysis.streams[analysis.streams["stream"].isin(members)]
    packets = int(rows["packets"].sum()) if len(rows) else 0
    if packets == 0:
        return None
    used = rows[rows["packets"] > 0]
    start, stop = int(used["first_time_ns"].min()), int(used["last_time_ns"].max())
    width = bin_width_ns(stop - start, packets) if bin_ns is None else int(bin_ns)
    if width < 1:
        raise ArgumentError(f"a bin width of {width} ns: it must be at least 1")
    count = max(stop - start, 0) // width + 1
    if count > _MOST_BINS:
        raise ArgumentError(f"bins of {width} ns: there would be {count:,} over {units.duration(stop - start)}")
    group_of = np.full(int(analysis.streams["stream"].max()) + 1, -1, np.int64)
    for number, group in enumerate(groups):
        group_of[group] = number
    bins = Bins(start, width, max(stop - start, 0), np.zeros((len(groups), count), np.int64))
    for frame in packet_pieces(analysis, connection, _COLUMNS):
        _add(bins, group_of, {name: column(frame, name) for name in _COLUMNS})
    return bins


def _add(bins: Bins, group_of: np.ndarray, packets: dict[str, np.ndarray]) -> None:
    """Take in one piece of packets."""
    groups, count = bins.goodput.shape
    stream, role, verdict = packets["stream"], packets["role"], packets["verdict"]
    group = np.where((stream >= 0) & (stream < len(group_of)), group_of[np.clip(stream, 0, len(group_of) - 1)], -1)
    place = (packets["time_ns"] - bins.start_ns) // bins.width_ns
    mine = group >= 0
    bins.outside += int((mine & ((place < 0) | (place >= count))).sum())
    place = np.clip(place, 0, count - 1)
    good = goodput_of(role, verdict, packets["accepted"], packets["opcode"], packets["payload_len"])
    # bincount adds in float64: exact, since a piece's payload is far below 2^53 bytes.
    summed = np.bincount(group[mine] * count + place[mine], good[mine], minlength=groups * count)
    bins.goodput += summed.reshape(groups, count).astype(np.int64)
    request, response = mine & (role == Role.REQUEST), mine & (role == Role.RESPONSE)
    read = response & np.isin(packets["opcode"], RC_READ_RESPONSES)
    said = packets["syndrome"] >> 5 & 3  # without AETH this is 0, an ACK
    where = {
        "resent": request & (verdict == Verdict.RESENT),
        "response_resent": read & (verdict == Verdict.RESENT),
        "late": request & (verdict == Verdict.LATE),
        "copy": request & (verdict == Verdict.COPY),
        "gap": request & (verdict == Verdict.GAP),
        "response_gap": read & (verdict == Verdict.GAP),
        "nak": response & (said == SyndromeKind.NAK),
        "rnr_nak": response & (said == SyndromeKind.RNR_NAK),
        "ce": mine & (packets["ecn"] == ECN_CE),
        "cnp": mine & (role == Role.CNP),
    }
    for name in COUNTED:
        if where[name].any():
            counts = bins.counts.setdefault(name, np.zeros(count, np.int64))
            counts += np.bincount(place[where[name]], minlength=count)
