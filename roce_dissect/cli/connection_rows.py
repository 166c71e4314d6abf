"""The table of connections: which ones to show, and their cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roce_dissect.units import count, duration, size

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["FIGURES", "TROUBLE", "WEAK_PAIRING", "ConnectionRow", "connection_faults", "connection_rows", "end_text"]

#: Headings of the figures, in order.
FIGURES = (
    "packets",
    "new data a>b",
    "new data b>a",
    "gaps/missing",
    "resent/late",
    "NAK/RNR",
    "CNP/CE",
    "copies",
    "stall",
)
#: Figures of a direction of which any but 0 is trouble.
TROUBLE = ("missing_packets", "late_packets", "resent_packets", "copies", "naks", "rnr_naks", "response_gaps")
_NOTHING = "-"
#: Evidence that needs a word, unlike a handshake or PSNs that fit.
WEAK_PAIRING = {"only": "elimination", "udp_sport": "UDP source port"}


#: Ends that are no ordinary ones, in words.
_ENDS = {
    "nak": "ended by NAK",
    "retries": "gave up after {}",
    "rnr_retries": "gave up after {} of what met an RNR NAK",
}


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """One connection as it is printed.

    Attributes
    ----------
    record : dict
        The row of the connections table, missing values as None.
    number : int
        Its number.
    ends : (str, str)
        ``address:QP`` of a and b.
    figures : list of str
        Cells under `FIGURES`; ``-`` where there is nothing.
    notes : str
        What else is to be said.
    troubled : bool
        Something is missing, repeated or refused.
    """

    record: dict[str, Any]
    number: int
    ends: tuple[str, str]
    transport: str
    figures: list[str]
    notes: str
    troubled: bool = field(default=False)


def connection_rows(result: Analysis, top: int) -> list[ConnectionRow]:
    """The connections with most stall, then most resends, then the order of their first frames."""
    table = result.connections
    ordered = table.sort_values(["stall_ns", "resent_packets"], ascending=False, kind="stable").head(top)
    plain = ordered.astype(object).where(ordered.notna(), None)
    faults = connection_faults(result)
    return [_row(record, faults.get(int(record["connection"]), [])) for record in plain.to_dict("records")]


def connection_faults(result: Analysis) -> dict[int, list[str]]:
    """What went so wrong with a connection that it was refused or ended, in words; nothing for all others."""
    found: dict[int, list[str]] = {}
    refused = result.events.loc[result.events["kind"] == "cm_rej", "connection"]
    for number in dict.fromkeys(refused.tolist()):
        found.setdefault(number, []).append("refused")
    streams = result.streams
    last_retry = result.episodes.groupby("stream")["retry"].last().to_dict()
    sick = streams[streams["ended_by"].isin(_ENDS) | streams["psn_mismatch"].astype(bool)]
    for connection, stream, ended, mismatch in zip(
        *(sick[name].tolist() for name in ("connection", "stream", "ended_by", "psn_mismatch")), strict=True
    ):
        words = found.setdefault(connection, [])
        if mismatch:
            words.append("its ends do not agree on the PSN")
        if ended in _ENDS:
            words.append(_ENDS[ended].format(_retries(last_retry.get(stream, 0))))
    found.pop(0, None)
    return found


def _retries(number: int) -> str:
    return {0: "no retry", 1: "1 retry"}.get(number, f"{count(number)} retries")


def end_text(record: dict[str, Any], end: str) -> str:
    """Address and QP of an end: ``192.168.0.1:0x11``, ``[fd00::1]:0x11``; ``?`` where the QP is not known."""
    address, qp = record[f"{end}_address"], record[f"{end}_qp"]
    return f"{f'[{address}]' if ':' in address else address}:{'?' if qp is None else f'{int(qp):#x}'}"


def _row(record: dict[str, Any], faults: list[str]) -> ConnectionRow:
    number = int(record["connection"])

    def both(name: str) -> int:
        return int(record[f"a_to_b_{name}"]) + int(record[f"b_to_a_{name}"])

    return ConnectionRow(
        record,
        number,
        (end_text(record, "a"), end_text(record, "b")),
        record["transport"],
        [
            _number(both("packets")),
            _amount(int(record["a_to_b_goodput_bytes"])),
            _amount(int(record["b_to_a_goodput_bytes"])),
            _pair(both("gaps"), both("missing_packets")),
            _pair(both("resent_packets"), both("late_packets")),
            _pair(both("naks"), both("rnr_naks")),
            _pair(both("cnps"), both("ce_packets")),
            _number(both("copies")),
            duration(both("stall_ns")) if both("stall_ns") else _NOTHING,
        ],
        ", ".join([*faults, *_notes(record, "refused" in faults)]),
        any(both(name) for name in TROUBLE) or bool(faults),
    )


def _number(value: int) -> str:
    return count(value) if value else _NOTHING


def _amount(octets: int) -> str:
    return size(octets) if octets else _NOTHING


def _pair(one: int, other: int) -> str:
    return f"{count(one)}/{count(other)}" if one or other else _NOTHING


def _notes(record: dict[str, Any], refused: bool) -> list[str]:
    notes = []
    if record.get("vni") is not None:
        notes.append(f"VNI {int(record['vni'])}")
    packets = [int(record[f"{way}_packets"]) for way in ("a_to_b", "b_to_a")]
    if max(packets) == 0 and not refused:
        notes.append("CM only")
    elif record["transport"] in ("RC", "XRC") and max(packets) > 0 and min(packets) == 0:
        requests = int(record["a_to_b_requests"]) + int(record["b_to_a_requests"])
        notes.append("no answer seen" if requests else "answers only")
    if record["paired_by"] in WEAK_PAIRING:
        notes.append(f"paired by {WEAK_PAIRING[record['paired_by']]} ({record['confidence']:g})")
    if int(record["life"]) > 1:
        notes.append(f"life {record['life']}")
    response_gaps = int(record["a_to_b_response_gaps"]) + int(record["b_to_a_response_gaps"])
    if response_gaps:
        notes.append(f"{count(response_gaps)} READ responses missing")
    changed = int(record["a_to_b_changed_requests"]) + int(record["b_to_a_changed_requests"])
    if changed:
        notes.append(f"{count(changed)} sent again as another operation")
    unseen = int(record["a_to_b_unseen_packets"]) + int(record["b_to_a_unseen_packets"])
    if unseen:
        notes.append(f"capture lacks {count(unseen)}")
    return notes
