"""What to say of an event: one plain sentence, beginning with its frames, with its cause and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roce_dissect.cli.places import Place, frame_in_words, frames_in_words
from roce_dissect.spec.aeth import FATAL_NAKS, syndrome_name
from roce_dissect.spec.cm import reject_reason_name
from roce_dissect.terms import EventKind, Trigger, Vantage
from roce_dissect.units import count, duration, plural, size

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["CM_STEPS", "EventWords", "trigger_words"]

#: Kinds of the connection manager's messages, in the order of a connection's life.
CM_STEPS = tuple(kind.name.lower() for kind in EventKind if kind.name.startswith("CM_"))

_NAKS = ("nak", "implied_nak", "rnr_nak")
_TIMEOUTS = ("timeout", "adaptive_timeout")

#: An episode's trigger behind its number: ``8 NAK, 1 timeout``.
_TRIGGER_WORDS = {
    Trigger.UNKNOWN: "cause unknown",
    Trigger.NAK: "NAK",
    Trigger.IMPLIED_NAK: "implied NAK",
    Trigger.RNR_NAK: "RNR NAK",
    Trigger.TIMEOUT: "timeout",
    Trigger.ADAPTIVE_TIMEOUT: "adaptive timeout",
    Trigger.SPURIOUS: "spurious",
    Trigger.REORDERING: "reordering",
}


def trigger_words(trigger: str) -> str:
    """A trigger as people write it: ``RNR NAK``."""
    return _TRIGGER_WORDS[Trigger[trigger.upper()]]


@dataclass(frozen=True, slots=True)
class _Way:
    """A stream as the words need it: ``a>b`` or ``b>a``; whether its receiver answered, and is near."""

    words: str
    confirmed: bool
    near_receiver: bool


_NO_WAY = _Way("", False, False)


class EventWords:
    """Sentences for the events of one analysis.

    Parameters
    ----------
    result : Analysis
    """

    def __init__(self, result: Analysis) -> None:
        self.several = len(result.capture["files"]) > 1
        self._ways = _ways(result)
        damaged = result.events[result.events["kind"] == "damaged"]
        self._damaged = set(zip(damaged["stream"].tolist(), damaged["psn"].tolist(), strict=True))

    def way(self, event: dict[str, Any]) -> str:
        """``"a>b"`` or ``"b>a"``; empty where the event has no stream on a connection."""
        return self._ways.get(event["stream"], _NO_WAY).words

    def sentence(self, events: Sequence[dict[str, Any]]) -> str:
        """What happened; several events are one that repeats.

        Parameters
        ----------
        events : sequence of dict
            Rows of `roce_dissect.cli.event_table.events_with_episodes` as `records` gives them.
        """
        first = events[0]
        places = [(one["file"], one["frame"], one["last_file"], one["last_frame"]) for one in events]
        where = frames_in_words(places, self.several)
        if first["kind"] == "resend" and len(events) > 1:
            return f"{where}: {self._retries(events)}"
        return f"{where}: {_WORDS[first['kind']](self, first, len(events))}"

    def frame(self, file: int, frame: int) -> str:
        """A frame in words."""
        return frame_in_words(file, frame, self.several)

    def places(self, event: dict[str, Any]) -> list[Place]:
        """The frames of an event, and the one that led to it."""
        found: list[Place] = [(event["file"], event["frame"], event["last_file"], event["last_frame"])]
        if event["cause_frame"] is not None:
            found.append((event["cause_file"], event["cause_frame"]) * 2)
        return found

    # -- episodes ------------------------------------------------------------------------------------------------------

    def resend(self, episode: dict[str, Any], _: int) -> str:
        """An episode: its cause, what was sent again, what it cost."""
        way = self._ways.get(episode["stream"], _NO_WAY)
        if episode["trigger"] == "reordering":
            return _reordering(episode)
        retry = f", retry {episode['retry']}" if episode["retry"] > 1 else ""
        amount = f" ({size(episode['bytes'])})" if episode["bytes"] else ""
        what = f"{plural(episode['count'], 'packet')}{amount} sent again"
        known = [part for part in (_first_sights(episode), _arrived(episode, way)) if part]
        parts = [", ".join([what, *known]), _stall(episode["stall_ns"])]
        return f"{_back(episode)} {self._why(episode)}{retry}: {'; '.join(part for part in parts if part)}"

    def _why(self, episode: dict[str, Any]) -> str:
        trigger, wait = episode["trigger"], duration(episode["wait_ns"])
        if trigger in _NAKS:
            if episode["cause_frame"] is None:
                return f"after {_NAK_WORDS[trigger][0]}"
            later = f", {duration(episode['reaction_ns'])} later" if episode["reaction_ns"] is not None else ""
            frame = self.frame(episode["cause_file"], episode["cause_frame"])
            return f"after {_NAK_WORDS[trigger][1]} in {frame}{later}"
        if trigger in _TIMEOUTS:
            kind = "an adaptive timeout" if trigger == "adaptive_timeout" else "a timeout"
            answered = "" if episode["arrived_packets"] is None else ", though the answer had passed here"
            return f"on {kind}, {wait} after the last try seen here{answered}"
        if trigger == "spurious":
            return "although its answer was on its way"
        return "for a reason that does not show here"

    def _retries(self, episodes: Sequence[dict[str, Any]]) -> str:
        """Retries in a row, all with the same cause."""
        first = episodes[0]
        trigger = first["trigger"]
        if trigger in _TIMEOUTS:
            waits = [one["wait_ns"] for one in episodes]
            kind = "adaptive timeouts" if trigger == "adaptive_timeout" else "timeouts"
            why = f"on {kind}, {_range(waits)} after the last try seen here"
        else:
            reactions = [one["reaction_ns"] for one in episodes if one["reaction_ns"] is not None]
            why = f"after {_NAK_WORDS[trigger][2]}" + (f", {_range(reactions)} later" if reactions else "")
        packets = sum(one["count"] for one in episodes)
        octets = sum(one["bytes"] for one in episodes)
        amount = f" ({size(octets)})" if octets else ""
        parts = [f"{plural(packets, 'packet')}{amount} sent again", _stall(sum(one["stall_ns"] for one in episodes))]
        times = "twice" if len(episodes) == 2 else f"{count(len(episodes))} times"
        return f"went back to PSN {first['psn']} {times} {why}: {'; '.join(part for part in parts if part)}"

    # -- other kinds ---------------------------------------------------------------------------------------------------

    def gap(self, event: dict[str, Any], _: int) -> str:
        """A gap in the sequence."""
        missing, responses = event["count"], event["value"] == 1
        if missing == 1 and (event["stream"], event["psn"]) in self._damaged:
            return f"gap before it: PSN {event['psn']} came damaged"
        if missing == 1:
            return f"gap before it: {'READ response ' if responses else ''}PSN {event['psn']} had not passed here"
        what = "READ responses" if responses else "packets"
        return f"gap before it: {count(missing)} {what} from PSN {event['psn']} on had not passed here"

    def nak(self, event: dict[str, Any], times: int) -> str:
        """A NAK; a fatal one names the request that it refused."""
        name, often = syndrome_name(event["value"]), _often(times)
        if event["value"] & 31 in FATAL_NAKS:
            return f"{often}{name} for PSN {event['psn']}{self._asked(event)}: the QP is in error"
        return f"{often}{name}, expects PSN {event['psn']}"

    def rnr_nak(self, event: dict[str, Any], times: int) -> str:
        """No receive was posted."""
        wait = syndrome_name(event["value"]).removeprefix("RNR NAK ")
        asked = self._asked(event) if times == 1 else ""
        return f"{_often(times)}RNR NAK (no receive posted) for PSN {event['psn']}{asked}, wait {wait}"

    def _asked(self, event: dict[str, Any]) -> str:
        if event["cause_frame"] is None:
            return ""
        return f", the request in {self.frame(event['cause_file'], event['cause_frame'])}"

    def cnp(self, event: dict[str, Any], _: int) -> str:
        """A run of CNPs."""
        return f"{plural(event['count'], 'CNP')} (congestion notification)"

    def ce(self, event: dict[str, Any], _: int) -> str:
        """A run of marked packets."""
        return f"{plural(event['count'], 'packet')} marked CE (congestion experienced)"

    def unseen(self, event: dict[str, Any], _: int) -> str:
        """What the capture lacks."""
        return (
            f"the receiver has {plural(event['count'], 'packet')} up to PSN {event['psn']} that never passed here: "
            "missing from the capture"
        )

    def new_life(self, event: dict[str, Any], _: int) -> str:
        """A QP number that is used anew."""
        return f"the QP number is reused, from PSN {event['psn']}"

    def damaged(self, event: dict[str, Any], _: int) -> str:
        """A wrong ICRC."""
        return f"PSN {event['psn']} damaged on the way (wrong ICRC): its receiver drops it"

    def reject(self, event: dict[str, Any], _: int) -> str:
        """A connection that was refused."""
        return f"connection refused by CM REJ: {reject_reason_name(event['value'])} (reason {event['value']})"

    def step(self, event: dict[str, Any], _: int) -> str:
        """An ordinary message of the connection manager."""
        return f"CM {event['kind'][3:].upper()}, communication id {event['value']:#x}"


#: A cause without its frame, with it, and many of them.
_NAK_WORDS = {
    "nak": ("a NAK", "the NAK", "NAKs"),
    "implied_nak": (
        "an answer beyond an unanswered READ or atomic",
        "the answer beyond it",
        "answers beyond an unanswered READ or atomic",
    ),
    "rnr_nak": ("an RNR NAK", "the RNR NAK", "RNR NAKs"),
}

_WORDS = {
    "gap": EventWords.gap,
    "resend": EventWords.resend,
    "nak": EventWords.nak,
    "rnr_nak": EventWords.rnr_nak,
    "cnp": EventWords.cnp,
    "ce": EventWords.ce,
    "unseen": EventWords.unseen,
    "new_life": EventWords.new_life,
    "damaged": EventWords.damaged,
    **dict.fromkeys(CM_STEPS, EventWords.step),
    "cm_rej": EventWords.reject,
}


def _ways(result: Analysis) -> dict[int, _Way]:
    confirmed = dict(enumerate(result.streams["confirmed"].tolist()))
    ways: dict[int, _Way] = {}
    for name, words, near in (("a_to_b_stream", "a>b", Vantage.NEAR_B), ("b_to_a_stream", "b>a", Vantage.NEAR_A)):
        for stream, vantage in zip(
            result.connections[name].tolist(), result.connections["vantage"].tolist(), strict=True
        ):
            ways[stream] = _Way(words, bool(confirmed.get(stream)), vantage == near.name.lower())
    ways.pop(-1, None)
    return ways


def _back(episode: dict[str, Any]) -> str:
    """What the requester did: all from a PSN on, or a part."""
    if episode["recovery"] == "go_back_n":
        return f"went back to PSN {episode['psn']}"
    if episode["count"] == 1:
        return f"repeated PSN {episode['psn']} alone"
    return f"repeated a part from PSN {episode['psn']}"


def _first_sights(episode: dict[str, Any]) -> str:
    late, packets = episode["late_packets"], episode["count"]
    if not late:
        return ""
    if late == packets:
        return "not seen here before" if packets == 1 else "none of them seen here before"
    return f"{count(late)} of them not seen here before"


def _arrived(episode: dict[str, Any], way: _Way) -> str:
    """What the responder had already: its NAK tells, or the capture point near it; else losses may lie behind us."""
    arrived, packets = episode["arrived_packets"], episode["count"]
    if not way.confirmed or arrived is None:
        return ""
    if arrived == 0:
        return "the receiver had taken none of them" if episode["trigger"] in _NAKS and packets > 1 else ""
    text = (
        f"the receiver had {'all' if arrived == packets else count(arrived)} of them"
        if packets > 1
        else "the receiver had it"
    )
    sure = episode["trigger"] in (*_NAKS, "spurious") or way.near_receiver
    return text if sure else f"{text} (unless lost behind this point)"


def _reordering(episode: dict[str, Any]) -> str:
    by = []
    if episode["extent_packets"]:
        by.append(plural(episode["extent_packets"], "packet"))
    if episode["extent_ns"]:
        by.append(duration(episode["extent_ns"]))
    what = (
        f"{plural(episode['count'], 'packet')} from PSN {episode['psn']} on"
        if episode["count"] > 1
        else (f"PSN {episode['psn']}")
    )
    return f"reordering: {what} came late{', by ' + ' or '.join(by) if by else ''}; nobody went back"


def _stall(time_ns: int) -> str:
    return f"{duration(time_ns)} without progress" if time_ns > 0 else ""


def _range(times_ns: Sequence[int]) -> str:
    least, most = duration(min(times_ns)), duration(max(times_ns))
    return least if least == most else f"{least} to {most}"


def _often(times: int) -> str:
    return f"{count(times)} times " if times > 1 else ""
