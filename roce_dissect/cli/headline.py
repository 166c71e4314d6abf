"""A capture in one sentence, and what is to be said of it besides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roce_dissect.analysis.trust import chosen_packets, is_doubled
from roce_dissect.cli.choice import packet_choice
from roce_dissect.cli.connection_rows import TROUBLE
from roce_dissect.cli.event_words import CM_STEPS
from roce_dissect.cli.safe import safe
from roce_dissect.terms import EndedBy, Trigger
from roce_dissect.units import clock, count, duration, plural

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["Totals", "capture_lines", "headline", "totals"]

#: What frames are that are not RoCE, by their key in ``capture["other_packets"]``.
_OTHER_NAMES = {
    "tcp": "TCP",
    "udp": "other UDP",
    "icmp": "ICMP",
    "other_ip": "other IP",
    "arp": "ARP",
    "lldp": "LLDP",
    "mac_control": "MAC control (PFC, PAUSE)",
    "other_ethernet": "other Ethernet types",
    "ip_fragments": "IP fragments",
    "malformed": "malformed",
    "cut": "cut too short to identify",
    "other_link_type": "of a link type that is not decoded",
    "other_tunnel": "in tunnels that are not decoded",
}

#: Totals of which any but 0 is trouble. Marks and CNPs are the fabric at work.
_TROUBLE_TOTALS = (
    "missing", "late", "resent", "copies", "naks", "rnr_naks", "response_gaps", "unseen", "rejects", "ended", "gave_up",
    "mismatched", "damaged",
)  # fmt: skip
_MOST_FILES = 12
_GAVE_UP = (EndedBy.RETRIES.name.lower(), EndedBy.RNR_RETRIES.name.lower())
#: Why senders went back, in the order of the sentence. Reordering is none of it.
_CAUSES = {
    Trigger.NAK: "after NAKs",
    Trigger.IMPLIED_NAK: "after implied NAKs",
    Trigger.RNR_NAK: "after RNR NAKs",
    Trigger.TIMEOUT: "on timeouts",
    Trigger.ADAPTIVE_TIMEOUT: "on adaptive timeouts",
    Trigger.SPURIOUS: "needlessly",
    Trigger.UNKNOWN: "for no reason that shows here",
}


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all streams that the sentence is made of."""

    connections: int
    troubled: int
    missing: int
    late: int
    resent: int
    copies: int
    naks: int
    rnr_naks: int
    response_gaps: int
    unseen: int
    rejects: int
    ended: int
    gave_up: int
    mismatched: int
    damaged: int
    causes: dict[str, int]
    stall_ns: int
    cnps: int
    ce_packets: int
    datagrams: int
    requests: int
    unanswered: int

    @property
    def healthy(self) -> bool:
        """Nothing is missing, repeated or refused."""
        return not any(getattr(self, name) for name in _TROUBLE_TOTALS)


def totals(result: Analysis) -> Totals:
    """Sums over the tables."""
    streams, connections, events = result.streams, result.connections, result.events

    def total(name: str) -> int:
        return int(streams[name].sum())

    troubled = set(streams.loc[streams[[*TROUBLE]].sum(axis=1) > 0, "connection"].tolist())
    rejects, damaged = events["kind"] == "cm_rej", events["kind"] == "damaged"
    gave_up = streams["ended_by"].isin(_GAVE_UP)
    troubled |= set(events.loc[rejects | damaged, "connection"].tolist()) | set(
        streams.loc[gave_up, "connection"].tolist()
    )
    datagrams = (streams["transport"] == "UD") & (streams["dest_qp"] > 1)
    return Totals(
        connections=len(connections),
        troubled=len(troubled - {0}),
        missing=total("missing_packets"),
        late=total("late_packets"),
        resent=total("resent_packets"),
        copies=total("copies"),
        naks=total("naks"),
        rnr_naks=total("rnr_naks"),
        response_gaps=total("response_gaps"),
        unseen=total("unseen_packets"),
        rejects=int(rejects.sum()),
        ended=int(streams["qp_error"].sum()),
        gave_up=int(gave_up.sum()),
        mismatched=int(streams["psn_mismatch"].sum()),
        damaged=result.capture["damaged_packets"],
        causes={str(name): int(number) for name, number in result.episodes["trigger"].value_counts().items()},
        stall_ns=total("stall_ns"),
        cnps=total("cnps"),
        ce_packets=total("ce_packets"),
        datagrams=int(streams.loc[datagrams, "packets"].sum()),
        requests=total("requests"),
        unanswered=int(streams.loc[(streams["requests"] > 0) & ~streams["confirmed"], "connection"].nunique()),
    )


def headline(result: Analysis, sums: Totals) -> str:
    """One sentence for a newcomer: healthy, or what is wrong, or that there is no RoCE."""
    capture = result.capture
    if capture["roce_packets"] == 0:
        return _no_roce(capture)
    if chosen_packets(capture) == 0:
        return (
            f"No packet chosen: none of {plural(capture['roce_packets'], 'RoCE packet')} fits {packet_choice(capture)}."
        )
    if _all_foreign(capture):
        frames = f"{plural(chosen_packets(capture), 'frame')} on its UDP port (4791) or Ethertype"
        if capture["sliced_packets"]:
            return f"No RoCE to be seen: {frames}, cut before the RoCE header ends (54 bytes of a plain IPv4 frame)."
        return f"No RoCE in this capture: {frames}, but none holds a RoCE packet."
    if is_doubled(capture, sums.requests):
        return (
            f"{count(capture['twin_packets'])} of {plural(sums.requests, 'request')} are in the capture twice (same IP "
            "identification and ICRC): the same traffic from two capture points? Analyse them one by one; here the "
            "second ones are counted as sent again."
        )
    if not sums.healthy:
        where = f" on {count(sums.troubled)} of {count(sums.connections)} connections" if sums.troubled else ""
        return f"Trouble{where}: {_listed(_troubles(sums))}.{_own_gaps(capture)}"
    marks = _marks(sums)
    if sums.connections == 0:
        what = f"{plural(sums.datagrams, 'UD datagram')}, which carry no sequence that could show a loss"
        seen = what if sums.datagrams else "no connection, only " + plural(chosen_packets(capture), "RoCE packet")
        return f"No problem visible: {seen}{'; ' + marks if marks else ''}."
    every = f"{plural(sums.connections, 'connection')}, nothing missing, sent again or refused"
    if not capture["complete"]:
        return f"No problem visible in what was read: {every}{'; ' + marks if marks else ''}."
    if sums.unanswered:
        return (
            f"No problem visible: {every}{'; ' + marks if marks else ''}. Requests of "
            f"{plural(sums.unanswered, 'connection')} get no answer here (UC, or one direction only): what was lost "
            "behind this point does not show."
        )
    return f"Healthy: {every}{'; ' + marks if marks else ''}."


def _no_roce(capture: dict[str, Any]) -> str:
    if capture["packets"] == 0:
        return "No RoCE in this capture: it holds no frames at all."
    links = _listed([safe(name) for name in capture["link_types"]])
    if capture["other_packets"]["other_link_type"] == capture["packets"]:
        return (
            f"No RoCE in this capture: it holds {plural(capture['packets'], 'frame')} of {links}, which is not decoded."
        )
    held = _listed(_others(capture))
    return f"No RoCE in this capture: it holds {plural(capture['packets'], 'frame')} of {links}: {held}."


def _all_foreign(capture: dict[str, Any]) -> bool:
    return bool(capture["foreign_packets"] == chosen_packets(capture) > 0)


def _own_gaps(capture: dict[str, Any]) -> str:
    """A warning where an expression may have torn holes into connections; hosts, QPs and times leave them whole."""
    chosen = capture["selection"]
    if chosen is None or chosen["filter"] is None or not chosen["left_out_packets"]:
        return ""
    return " What --filter left out counts as missing here."


def _chosen(capture: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A line on which packets were chosen, where not all were."""
    selection = capture["selection"]
    if selection is None:
        return
    number, of_all = selection["chosen_packets"], plural(capture["roce_packets"], "RoCE packet")
    rest = "; reading stopped behind them" if selection["limited"] else ""
    options = packet_choice(capture)
    if selection["count"] is not None and number >= selection["count"]:
        which = f"the first {plural(number, 'packet')}"
        yield "chosen", f"{options}: {which}{rest}" if options else f"{which}{rest}"
    else:
        yield "chosen", f"{options or 'all'}: {count(number)} of {of_all}{rest}"


def _others(capture: dict[str, Any]) -> list[str]:
    held = sorted(capture["other_packets"].items(), key=lambda pair: -pair[1])
    return [f"{count(number)} {_OTHER_NAMES.get(key, key)}" for key, number in held if number]


def _troubles(sums: Totals) -> list[str]:
    """What is wrong, most telling first."""
    parts = []
    if sums.rejects:
        parts.append(f"{plural(sums.rejects, 'connection attempt')} refused")
    if sums.ended:
        parts.append(f"{plural(sums.ended, 'QP')} ended by a NAK")
    if sums.gave_up:
        parts.append(f"{plural(sums.gave_up, 'QP')} gave up after the last retry")
    if sums.mismatched:
        parts.append(f"{plural(sums.mismatched, 'connection')} whose ends do not agree on the PSN")
    if sums.damaged:
        parts.append(f"{plural(sums.damaged, 'packet')} damaged on the way (wrong ICRC)")
    if sums.missing:
        came = f" ({count(sums.late)} came later)" if sums.late else ""
        parts.append(f"{plural(sums.missing, 'packet')} missing in sequence{came}")
    if sums.response_gaps:
        parts.append(f"{plural(sums.response_gaps, 'READ response')} missing in sequence")
    parts += _resends(sums)
    reordered = sums.causes.get("reordering", 0)
    if reordered:
        parts.append(f"{count(reordered)} times delivered late (reordering)")
    # what follows a request that met an RNR NAK is out of sequence, naturally
    if sums.naks > sums.ended and not {"nak", "rnr_nak"} & set(sums.causes):
        parts.append(plural(sums.naks - sums.ended, "NAK"))
    if sums.rnr_naks and "rnr_nak" not in sums.causes:
        parts.append(plural(sums.rnr_naks, "RNR NAK"))
    if sums.copies:
        parts.append(f"{plural(sums.copies, 'frame')} duplicated by the network or the mirror")
    if sums.stall_ns:
        several = " in total" if sums.troubled > 1 else ""
        parts.append(f"{duration(sums.stall_ns)} without progress{several}")
    if sums.unseen:
        parts.append(f"{plural(sums.unseen, 'packet')} that the receiver has and the capture lacks")
    marks = _marks(sums)
    return [*parts, marks] if marks else parts


def _resends(sums: Totals) -> list[str]:
    """How often senders went back, and why, and what they sent again."""
    causes = {words: sums.causes.get(trigger.name.lower(), 0) for trigger, words in _CAUSES.items()}
    named = {words: number for words, number in causes.items() if number}
    parts = []
    if named:
        told = [f"{count(number)} {words}" for words, number in named.items()] if len(named) > 1 else [*named]
        why = ", ".join(told)
        times = sum(named.values())
        parts.append(f"senders went back {_often(times)} ({why})")
    if sums.resent:
        parts.append(f"{plural(sums.resent, 'packet')} sent again")
    return parts


def _often(times: int) -> str:
    return {1: "once", 2: "twice"}.get(times, f"{count(times)} times")


def _marks(sums: Totals) -> str:
    parts = []
    if sums.ce_packets:
        parts.append(f"{plural(sums.ce_packets, 'packet')} marked CE (congestion)")
    if sums.cnps:
        parts.append(plural(sums.cnps, "CNP"))
    return _listed(parts)


def _listed(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def capture_lines(result: Analysis, sums: Totals) -> list[tuple[str, str]]:
    """Label and text of what the capture is: files, frames, time, and notes."""
    capture = result.capture
    lines = _file_lines(capture["files"])
    kind = "on RoCE's port or Ethertype" if _all_foreign(capture) else "RoCE"
    frames = f"{count(capture['packets'])}, of which {count(capture['roce_packets'])} {kind}"
    others = _others(capture)
    lines.append(("frames", frames + (f"; also {', '.join(others)}" if others else "")))
    if capture["first_time_ns"] is not None:
        span = duration(capture["last_time_ns"] - capture["first_time_ns"])
        lines.append(("time", f"{span} from {clock(capture['first_time_ns'])}"))
    lines += _chosen(capture)
    steps = result.events["kind"].value_counts()
    steps = ", ".join(f"{count(int(steps[kind]))} {kind[3:].upper()}" for kind in CM_STEPS if kind in steps)
    if steps:
        lines.append(("set-up", f"by the connection manager: {steps}"))
    if capture["roce_packets"] or not capture["complete"]:
        lines.append(("trust", _trust(result)))
    return lines + [("note", note) for note in _notes(capture, sums)]


def _trust(result: Analysis) -> str:
    """The level, and all reasons in one line."""
    told = result.capture["trust"]
    return "; ".join([told["level"], *(reason["text"] for reason in told["reasons"])]).replace(";", ":", 1)


def _file_lines(files: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """One line a file; several are numbered, since events name their file by that number."""
    if len(files) == 1:
        return [("capture", _file_line(files[0]))]
    lines = [(f"file {number}", _file_line(one)) for number, one in enumerate(files[:_MOST_FILES], start=1)]
    if len(files) > _MOST_FILES:
        lines.append(("", f"and {plural(len(files) - _MOST_FILES, 'file')} more"))
    return lines


def _file_line(one: dict[str, Any]) -> str:
    kind = [part for part in (one["format"], one["compression"], *one["link_types"]) if part]
    return safe(one["path"]) + (f" ({', '.join(map(safe, kind))})" if kind else " (not read)")


def _notes(capture: dict[str, Any], sums: Totals) -> list[str]:
    """What is to be said besides: which file breaks off where, and what is not judged."""
    notes = []
    for one in capture["files"]:
        if one["truncated"]:
            notes.append(f"{safe(one['path'])}: the last record is unfinished (a capture still being written?)")
        if one["error"] is not None and one["frames"]:
            notes.append(
                f"{safe(one['path'])}: breaks off after {plural(one['frames'], 'frame')}: {safe(one['error'])}"
            )
    if sums.datagrams and sums.connections:
        notes.append(f"{plural(sums.datagrams, 'UD datagram')}, not judged: they carry no sequence")
    return notes
