"""Everything about one connection: what it is, and both directions side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from roce_dissect.analysis.filters import connection_filter, frames_filter
from roce_dissect.cli.aligned import aligned
from roce_dissect.cli.connection_list import episode_counts, place_of
from roce_dissect.cli.connection_rows import connection_faults, end_text
from roce_dissect.cli.event_table import records
from roce_dissect.cli.event_words import CM_STEPS, trigger_words
from roce_dissect.cli.places import frame_in_words, frames_in_words
from roce_dissect.spec.cm import TIMEOUT_UNIT_NS
from roce_dissect.units import clock, count, duration, size

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["detail_lines"]

_MOST_STEPS = 8

_ENDS = {
    "nothing": "no: in use, or idle, when the capture ended",
    "teardown": "closed by the connection manager (DREQ, DREP)",
    "nak": "a NAK put the QP into error",
    "retries": "nothing acknowledged the last one",
    "rnr_retries": "nothing came after the last RNR NAK",
    "new_life": "the QP number was used anew",
}
_PAIRING = {
    "cm": "the connection manager's REQ and REP named both QPs",
    "psn": "the PSNs of answers fit the requests",
    "only": "elimination: the only unpaired streams between the two hosts",
    "udp_sport": "the UDP source port, alone",
    "none": "not paired: the other direction is not in the capture, or not to be told from others",
}
_VANTAGE = {
    "near_a": "near a: latencies of a's requests are what a sees, those of b's lack the way to b and back",
    "near_b": "near b: latencies of b's requests are what b sees, those of a's lack the way to a and back",
    "unknown": "not known: latencies may lack a part of the way",
}

_Figure = tuple[str, Callable[[dict[str, Any]], str]]


def detail_lines(result: Analysis, connection: int, width: int | None) -> list[str]:
    """Label and value lines for one connection, then its figures by direction.

    Parameters
    ----------
    result : Analysis
    connection : int
        Its number; it exists.
    width : int, optional
        Columns of the terminal; None: no limit.
    """
    [record] = records(result.connections[result.connections["connection"] == connection])
    streams = records(result.streams[result.streams["connection"] == connection])
    by_number = {one["stream"]: one for one in streams}
    ways = [by_number.get(record[f"{way}_stream"]) for way in ("a_to_b", "b_to_a")]
    told = [pair for pair in _facts(result, record, ways) if pair[1]]
    lead = max(len(label) for label, _ in told) + 2
    lines = []
    for label, text in told:
        folded = [text] if width is None or label == "Wireshark" else textwrap.wrap(text, max(width - lead, 20))
        lines += [f"{label if not number else '':{lead}}{part}" for number, part in enumerate(folded)]
    rows = list(_figures(result, record, ways))
    return [*lines, "", *aligned(("", "a>b", "b>a"), rows, right=("a>b", "b>a"))] if rows else lines


# -- what it is --------------------------------------------------------------------------------------------------------


def _facts(result: Analysis, record: dict[str, Any], ways: list[dict[str, Any] | None]) -> Iterator[tuple[str, str]]:
    several = len(result.capture["files"]) > 1
    number = record["connection"]
    version = f"RoCE v{record['version']}" if record["version"] else "native InfiniBand"
    yield "connection", f"#{number}, {record['transport']}, {version}"
    yield "VNI", "" if record["vni"] is None else f"{record['vni']}"
    for end in ("a", "b"):
        yield end, end_text(record, end)
    span = duration(record["last_time_ns"] - record["first_time_ns"])
    yield "seen", f"{frames_in_words([place_of(record)], several)}, {span} from {clock(record['first_time_ns'])}"
    yield "set-up", _steps(result, number, several)
    yield "ended", _end(record, connection_faults(result).get(number, []))
    yield "life", f"{record['life']}: the QP numbers were used before" if record["life"] > 1 else ""
    if any(way is not None for way in ways):
        yield "paired by", f"{_PAIRING[record['paired_by']]} (confidence {record['confidence']:g})"
        yield "path MTU", _mtu(ways)
        if record["transport"] == "RC":
            yield "capture point", _VANTAGE[record["vantage"]]
        yield "Wireshark", connection_filter(record)
    elif not several:
        yield "Wireshark", frames_filter((frame, frame) for frame in _step_frames(result, number))


def _end(record: dict[str, Any], faults: list[str]) -> str:
    if "refused" in faults:
        return "never begun: refused"
    others = [fault for fault in faults if fault != "ended by NAK"]
    return ": ".join([", ".join(others), _ENDS[record["ended_by"]]] if others else [_ENDS[record["ended_by"]]])


def _step_frames(result: Analysis, number: int) -> list[int]:
    events = result.events
    return [int(frame) for frame in events.loc[events["connection"] == number, "frame"]]


def _steps(result: Analysis, number: int, several: bool) -> str:
    """The connection manager's messages with their frames."""
    events = result.events
    steps = records(events[(events["connection"] == number) & events["kind"].isin(CM_STEPS)])
    named = [f"{one['kind'][3:].upper()} {frame_in_words(one['file'], one['frame'], several)}" for one in steps]
    more = f" and {count(len(named) - _MOST_STEPS)} more" if len(named) > _MOST_STEPS else ""
    return ", ".join(named[:_MOST_STEPS]) + more if named else "not in the capture"


def _mtu(ways: list[dict[str, Any] | None]) -> str:
    told = list(dict.fromkeys(way["mtu"] for way in ways if way is not None and way["mtu"] is not None))
    return ", ".join(f"{mtu} bytes" for mtu in told) or "not known"


# -- its figures -------------------------------------------------------------------------------------------------------


def _figures(
    result: Analysis, record: dict[str, Any], ways: list[dict[str, Any] | None]
) -> Iterator[tuple[str, str, str]]:
    counts = episode_counts(result)
    span = record["last_time_ns"] - record["first_time_ns"]

    def rate(way: dict[str, Any]) -> str:
        octets = way["goodput_bytes"]
        return f"{size(octets)}, {octets * 8e3 / span:.3g} Mbit/s" if octets and span else size(octets)

    def causes(way: dict[str, Any]) -> str:
        told = counts.get(way["stream"], {})
        return ", ".join(f"{count(number)} {trigger_words(trigger)}" for trigger, number in told.items())

    figures: list[_Figure] = [
        ("packets", _count("packets")),
        ("frames", lambda way: f"{way['first_frame']}-{way['last_frame']}" if way["packets"] else ""),
        ("bytes on the wire", lambda way: size(way["bytes"])),
        ("new data", rate),
        ("requests / responses", lambda way: f"{count(way['requests'])} / {count(way['responses'])}"),
        ("UDP source port", lambda way: str(way["udp_sport"] or "")),
        ("messages complete", lambda way: _of(way["complete_messages"], way["messages"])),
        ("outstanding at most: messages", _count("most_messages")),
        ("  READs and atomics", _count("most_reads")),
        ("  packets", _count("most_packets")),
        ("busy", _time("busy_ns")),
        ("idle between messages", _time("idle_ns")),
        ("stall", _time("stall_ns")),
        ("missing / came late", lambda way: _pair(way["missing_packets"], way["late_packets"])),
        ("READ responses missing", _count("response_gaps")),
        ("sent again", _count("resent_packets")),
        ("went back", causes),
        ("retries in a row at most", lambda way: count(way["most_retries"]) if way["episodes"] else ""),
        ("timeout, as its REQ told", lambda way: _timeout(way["ack_timeout"])),
        ("timeout, as its retries tell", _estimate),
        ("duplicated frames", _count("copies")),
        ("duplicates to the receiver", _if_confirmed("duplicate_request")),
        ("times out of sequence there", _if_confirmed("out_of_seq_request")),
        ("the capture lacks", _count("unseen_packets")),
        ("ACKs", _count("acks")),
        ("  that told nothing new", _count("duplicate_acks")),
        ("  for a lower PSN than before", _count("ack_regressions")),
        ("  without a credit", _count("zero_credit_acks")),
        ("NAKs / RNR NAKs", lambda way: _pair(way["naks"], way["rnr_naks"])),
        ("answers out of turn (implied NAK)", _count("implied_naks")),
        ("CNPs / marked CE", lambda way: _pair(way["cnps"], way["ce_packets"])),
        ("answered, soonest", _time("least_answer_ns")),
        ("reaction to a NAK, soonest", _time("least_reaction_ns")),
        ("receiver's answers seen", lambda way: ("yes" if way["confirmed"] else "no") if way["requests"] else ""),
    ]
    for label, cell in figures:
        cells = ["" if way is None else cell(way) for way in ways]
        if any(text not in ("", "-", "0") for text in cells):
            yield label, cells[0] or "-", cells[1] or "-"


def _count(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda way: count(way[name]) if way[name] else ""


def _if_confirmed(name: str) -> Callable[[dict[str, Any]], str]:
    """A figure of the model of the receiver, which is a guess where nobody answered."""
    return lambda way: (count(way[name]) if way["confirmed"] else "not known") if way[name] else ""


def _time(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda way: duration(way[name]) if way[name] else ""


def _of(some: int, every: int) -> str:
    return f"{count(some)} of {count(every)}" if every else ""


def _pair(one: int, other: int) -> str:
    return f"{count(one)} / {count(other)}" if one or other else ""


def _timeout(exponent: int | None) -> str:
    if exponent is None:
        return ""
    if exponent == 0:
        return "none (t = 0)"
    return f"{duration(TIMEOUT_UNIT_NS << exponent)} (t = {exponent})"


def _estimate(way: dict[str, Any]) -> str:
    if way["timeout_estimate"] is None:
        return ""
    samples = way["timeout_samples"]
    return f"{_timeout(way['timeout_estimate'])}, {count(samples)} {'sample' if samples == 1 else 'samples'}"
