"""How far the statements about a capture can be trusted: what it lacks, and what was not looked at.

A reason lowers the level by its share of what it could concern at most. The thresholds stand beside the rules, each
with its reason; a reason without thresholds is for information and never lowers the level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from roce_dissect.terms import PairedBy
from roce_dissect.units import count, duration, plural

__all__ = ["LEVELS", "chosen_packets", "is_doubled", "trust_statement"]

#: From best to worst.
LEVELS = ("good", "limited", "poor")
_GOOD, _LIMITED, _POOR = range(3)

#: Shares from which on a reason makes the level "poor".
#: A capture that lacks one packet in a hundred: losses of the network that matter are no more frequent than that.
_POOR_UNSEEN = 0.01
#: Half of the connections without their answers: what responders made of requests is a guess for most of the capture.
_POOR_ONE_SIDED = 0.5
#: One answer in ten unreadable: a NAK among them would turn the story of its connection.
_POOR_CUT_ANSWERS = 0.1
#: One packet in a hundred belongs to no row of any table.
_POOR_UNTRACKED = 0.01
#: Half of the frames on RoCE's port cannot be read as RoCE: cut too short, or something else.
_POOR_FOREIGN = 0.5

#: Shares from which on it is "limited", where it is not by the first one.
#: Single connections among hundreds that nobody answers, or that are paired by elimination, are told by their rows.
_LIMITED_CONNECTIONS = 0.01
#: Now and then something else uses the port.
_LIMITED_FOREIGN = 0.01

#: Share of requests that are in the capture twice from which on the capture itself is doubled, and their least number:
#: no network duplicates one frame in four.
_DOUBLED, _LEAST_TWINS = 0.25, 10

#: In what the sightings of each packet differ, in words: `copies_differ_in` of the capture summary.
_WAYS = {
    "file": "the file", "mac_addresses": "MAC addresses", "vlan_tags": "VLAN tags", "tunnel": "the tunnel",
    "ttl": "TTL",
}  # fmt: skip

_WEAK = (PairedBy.ONLY.name.lower(), PairedBy.UDP_SPORT.name.lower())


@dataclass(frozen=True, slots=True)
class _Reason:
    code: str
    count: int
    text: str
    level: int


def trust_statement(capture: dict[str, Any], streams: pd.DataFrame, connections: pd.DataFrame) -> dict[str, Any]:
    """What limits the statements about a capture.

    Parameters
    ----------
    capture : dict
        As `roce_dissect.analysis.summary.capture_summary` makes it.
    streams, connections : pandas.DataFrame
        Columns as in `roce_dissect.columns`.

    Returns
    -------
    dict
        ``level``: one of `LEVELS`; ``reasons``: list of dicts, the gravest first, with ``reason`` (a code), ``count``
        (of what the text says) and ``text`` (a sentence without its full stop). Reasons may be there with any level:
        those that are for information stand at the end.
    """
    found = [
        reason
        for reason in (*_of_reading(capture), *_of_packets(capture, streams), *_of_connections(connections))
        if reason.count
    ]
    level = max((reason.level for reason in found), default=_GOOD)
    found += [reason for reason in (*_of_mending(capture), *_of_icrcs(capture), *_of_choice(capture)) if reason.count]
    ordered = sorted(found, key=lambda reason: -reason.level)
    return {
        "level": LEVELS[level],
        "reasons": [{"reason": one.code, "count": one.count, "text": one.text} for one in ordered],
    }


def is_doubled(capture: dict[str, Any], requests: int) -> bool:
    """Whether so many of the requests are in the capture twice that the network cannot have doubled them."""
    return bool(capture["twin_packets"] >= max(_LEAST_TWINS, _DOUBLED * requests))


def chosen_packets(capture: dict[str, Any]) -> int:
    """RoCE packets that the tables are made of."""
    selection = capture["selection"]
    return int(capture["roce_packets"] if selection is None else selection["chosen_packets"])


def _judged(number: int, total: int, limited: float | None, poor: float | None) -> int:
    """Level by a share; None: this level is never reached."""
    share = number / total if total else float(number > 0)
    if number and poor is not None and share >= poor:
        return _POOR
    return _LIMITED if number and limited is not None and share >= limited else _GOOD


# -- reasons -----------------------------------------------------------------------------------------------------------


def _of_reading(capture: dict[str, Any]) -> Iterator[_Reason]:
    """Files that end too soon. What was read is as good as ever, but it is not all: limited, not poor."""
    broken = [one for one in capture["files"] if one["error"] is not None]
    unread = sum(one["frames"] == 0 for one in broken)
    if unread:
        yield _Reason("unread_files", unread, f"{plural(unread, 'file')} could not be read at all", _LIMITED)
    if len(broken) > unread:
        number = len(broken) - unread
        text = f"{plural(number, 'file')} {'breaks' if number == 1 else 'break'} off: what came after is not in here"
        yield _Reason("broken_files", number, text, _LIMITED)
    if capture["interrupted"]:
        yield _Reason("interrupted", 1, "interrupted: this is what was read up to then", _LIMITED)
    unfinished = sum(bool(one["truncated"]) for one in capture["files"])
    text = f"the last record of {plural(unfinished, 'file')} is unfinished (a capture still being written?)"
    yield _Reason("unfinished_files", unfinished, text, _GOOD)


def _of_packets(capture: dict[str, Any], streams: pd.DataFrame) -> Iterator[_Reason]:
    requests, responses = int(streams["requests"].sum()), int(streams["responses"].sum())
    packets = chosen_packets(capture)
    if is_doubled(capture, requests):
        twins = capture["twin_packets"]
        text = f"{count(twins)} of {plural(requests, 'request')} are here twice: the second ones count as sent again"
        yield _Reason("doubled_frames", twins, text, _POOR)
    unordered = capture["unordered_packets"]
    if unordered:
        yield _Reason("unordered_packets", unordered, _backwards(capture), _LIMITED)
    unseen = int(streams["unseen_packets"].sum())
    text = f"the capture lacks {plural(unseen, 'packet')} that their receivers have"
    yield _Reason("unseen_packets", unseen, text, _judged(unseen, requests + unseen, 0, _POOR_UNSEEN))
    cut = capture["cut_answers"]
    text = f"{plural(cut, 'answer')} cut before the AETH: ACK or NAK is not known"
    yield _Reason("cut_answers", cut, text, _judged(cut, responses, 0, _POOR_CUT_ANSWERS))
    foreign = capture["foreign_packets"]
    text = f"{plural(foreign, 'frame')} on RoCE's port or Ethertype not judged: no RoCE, damaged, or cut too short"
    yield _Reason("foreign_packets", foreign, text, _judged(foreign, packets, _LIMITED_FOREIGN, _POOR_FOREIGN))
    untracked = capture["untracked_packets"]
    text = f"{plural(untracked, 'packet')} of streams beyond the limit of the tables"
    yield _Reason("untracked_packets", untracked, text, _judged(untracked, packets, 0, _POOR_UNTRACKED))
    unfollowed = capture["unfollowed_messages"]
    text = f"{plural(unfollowed, 'message')} not followed: too many at once"
    yield _Reason("unfollowed_messages", unfollowed, text, _judged(unfollowed, 0, 0, None))
    left_out = capture["events_left_out"]
    text = f"{plural(left_out, 'event')} beyond the limit of the table; counters are exact"
    yield _Reason("events_left_out", left_out, text, _judged(left_out, 0, 0, None))
    sliced = capture["sliced_packets"]
    text = f"{plural(sliced, 'frame')} cut by the snap length: sizes are taken from what is left of their headers"
    yield _Reason("sliced_packets", sliced, text, _GOOD)


def _backwards(capture: dict[str, Any]) -> str:
    """Where time runs backwards, and what to do about it."""
    files = capture["files"]
    path = f" of {files[capture['step_back_file']]['path']}" if len(files) > 1 else ""
    return (
        f"time runs backwards by {duration(capture['greatest_step_back_ns'])} at frame "
        f"{count(capture['step_back_frame'])}{path}, and {plural(capture['unordered_packets'], 'packet')} come behind "
        "later ones: files put one behind the other, or a clock that was set? mergecap or reordercap puts them in order"
    )


def _of_mending(capture: dict[str, Any]) -> Iterator[_Reason]:
    """What was put right: for information, since the tables heed it."""
    doubled, ways = capture["doubled_packets"], capture["copies_differ_in"]
    differ = "in " + ", ".join(_WAYS[way] for way in ways) if ways else "in time, if at all: merged captures?"
    text = (
        f"nearly each packet is here {count(capture['copies_of_each'])} times (the copies differ {differ}): of "
        f"{plural(doubled, 'packet')} an earlier sighting counts"
    )
    yield _Reason("doubled_packets", doubled, text, _GOOD)
    reordered = capture["reordered_packets"]
    text = f"{plural(reordered, 'packet')} stood a little behind later ones: put in order of time"
    yield _Reason("reordered_packets", reordered, text, _GOOD)


def _of_connections(connections: pd.DataFrame) -> Iterator[_Reason]:
    seen = connections[(connections["a_to_b_packets"] + connections["b_to_a_packets"]).astype("int64") > 0]
    answering = seen[seen["transport"].isin(["RC", "XRC"])]
    alone = answering[["a_to_b_stream", "b_to_a_stream"]].min(axis=1) < 0
    one_sided = int(alone.sum())
    text = f"{plural(one_sided, 'connection')} seen in one direction only: what the other end made of it is a guess"
    level = _judged(one_sided, len(answering), _LIMITED_CONNECTIONS, _POOR_ONE_SIDED)
    yield _Reason("one_sided", one_sided, text, level)
    weak = int(answering["paired_by"].isin(_WEAK).sum())
    text = f"{plural(weak, 'connection')} paired by elimination or UDP port: the directions may not belong together"
    yield _Reason("weakly_paired", weak, text, _judged(weak, len(answering), _LIMITED_CONNECTIONS, None))
    begun = int((seen["paired_by"] != PairedBy.CM.name.lower()).sum())
    text = f"the set-up of {plural(begun, 'connection')} is not in the capture"
    yield _Reason("no_handshake", begun, text, _GOOD)


def _of_choice(capture: dict[str, Any]) -> Iterator[_Reason]:
    """What was left out because it was asked for: for information, and a warning of what looks like loss."""
    chosen = capture["selection"]
    if chosen is None:
        return
    left_out = chosen["left_out_packets"]
    text = f"{plural(left_out, 'packet')} left out as asked for: gaps and missing answers may come of that alone"
    yield _Reason("left_out_packets", left_out, text, _GOOD)
    text = "not all of the capture was read, as asked for"
    yield _Reason("limited", int(chosen["limited"]), text, _GOOD)


def _of_icrcs(capture: dict[str, Any]) -> Iterator[_Reason]:
    """What ICRCs say, and of how many packets they say nothing: for information, since the tables heed them."""
    if capture["foreign_packets"] == capture["roce_packets"]:
        return  # nothing is judged
    icrc = capture["icrc"]
    damaged = capture["damaged_packets"]
    text = f"{plural(damaged, 'packet')} with a wrong ICRC: receivers drop them, and so do these tables"
    yield _Reason("damaged_packets", damaged, text, _GOOD)
    odd = capture["odd_flushes"]
    text = f"{plural(odd, 'FLUSH', 'FLUSHes')} with the wrong ICRC of Linux rxe 6.12, which such hosts take for right"
    yield _Reason("odd_flushes", odd, text, _GOOD)
    unexplained = icrc["bad"] - damaged - odd
    text = f"{plural(unexplained, 'packet')} with a wrong ICRC, and none right from there before: no RoCE, or none made"
    yield _Reason("wrong_icrcs", unexplained, text, _GOOD)
    text = f"{plural(icrc['placeholder'], 'packet')} with 0 or the same number in the place of every ICRC"
    yield _Reason("placeholder_icrcs", icrc["placeholder"], text, _GOOD)
    unverified = icrc["sliced"] + icrc["none"]
    text = f"the ICRC of {plural(unverified, 'packet')} is not verified: a damaged one counts as a good one"
    yield _Reason("icrc_not_verified", unverified, text, _GOOD)
