"""Which events are worth reading, and what to say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roce_dissect.spec.aeth import FATAL_NAKS, syndrome_name
from roce_dissect.spec.cm import reject_reason_name
from roce_dissect.terms import EventKind
from roce_dissect.units import count, duration, plural

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from roce_dissect.api import Analysis

__all__ = ["CM_STEPS", "Happening", "happenings"]

#: Kinds of the connection manager's messages, in the order of a connection's life.
CM_STEPS = tuple(kind.name.lower() for kind in EventKind if kind.name.startswith("CM_"))

#: Kinds that are part of an ordinary connection's life: no line of their own.
_ORDINARY = tuple(step for step in CM_STEPS if step != "cm_rej")
#: Kinds of which one that repeats with the same PSN, value and stream is one line.
_REPEATING = ("nak", "rnr_nak")
#: What comes first when not all can be shown; fatal NAKs before all.
_ORDER = ("cm_rej", "resend", "gap", "unseen", "new_life", "rnr_nak", "nak", "cnp", "ce")
#: By what the events of a kind are ranked among themselves.
_MEASURE = {"resend": "stall_ns"}
#: Frames of one line that its filter names.
_FRAMES_OF_A_LINE = 8


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the report.

    Attributes
    ----------
    time_ns : int
        Of the first frame.
    connection : int
        Row of the connections table, 0: none.
    direction : str
        ``"a>b"`` or ``"b>a"``; empty where the event has no stream.
    kind : str
        As in the events table.
    spans : list of (int, int, int)
        File, first and last frame, once for each repetition (some, when there are many) and each file.
    text : str
        What happened, beginning with the frames.
    """

    time_ns: int
    connection: int
    direction: str
    kind: str
    spans: list[tuple[int, int, int]]
    text: str


def happenings(result: Analysis, most: int) -> tuple[list[Happening], int]:
    """The events worth reading, at most `most`, in time order; and how many there are in all.

    When there are more, fatal NAKs and refused connections come first, then the runs with most stall, gaps and the
    rest; no kind takes more than half of the lines while others wait.
    """
    import numpy as np

    events = result.events[~result.events["kind"].isin(_ORDINARY)].reset_index(drop=True)
    if events.empty:
        return [], 0
    leaders, members = _repetitions(events)
    lines = events.loc[leaders]
    chosen = _choose(lines, np.array([len(members[leader]) for leader in leaders]), most)
    directions = _directions(result)
    lengths = [one["frames"] for one in result.capture["files"]]
    picked = [leaders[position] for position in chosen]
    records = events.loc[picked].astype(object).to_dict("records")
    found = []
    for leader, record in zip(picked, records, strict=True):
        places = events.loc[members[leader], ["file", "frame", "last_file", "last_frame"]].to_numpy("int64").tolist()
        found.append(_happening(record, places, directions, lengths))
    return sorted(found, key=lambda one: (one.time_ns, one.spans[0])), len(leaders)


def _repetitions(events: pd.DataFrame) -> tuple[list[int], dict[int, list[int]]]:
    """First rows of the lines, and the rows of each."""
    repeating = events["kind"].isin(_REPEATING)
    members: dict[int, list[int]] = {int(row): [int(row)] for row in events.index[~repeating]}
    some = events[repeating]
    for rows in some.groupby(["kind", "file", "stream", "psn", "value"], sort=False).indices.values():
        at = some.index[rows].tolist()
        members[at[0]] = at
    return sorted(members), members


def _choose(lines: pd.DataFrame, repeats: np.ndarray, most: int) -> list[int]:
    """Positions of the lines to show."""
    import numpy as np

    if len(lines) <= most:
        return list(range(len(lines)))
    kinds = lines["kind"].to_numpy(object)
    rank = {kind: position for position, kind in enumerate(_ORDER, start=1)}
    order = np.array([rank.get(kind, len(rank) + 1) for kind in kinds])
    order[(kinds == "nak") & np.isin(lines["value"].to_numpy(np.int64) & 31, list(FATAL_NAKS))] = 0
    measure = lines["count"].to_numpy(np.int64) * repeats
    for kind, name in _MEASURE.items():
        measure = np.where(kinds == kind, lines[name].to_numpy(np.int64), measure)
    ranked = np.lexsort((np.arange(len(lines)), -measure, order))
    share = max(most // 2, 1)
    first: list[int] = []
    rest: list[int] = []
    taken = dict.fromkeys(range(len(rank) + 2), 0)
    for position in ranked.tolist():
        taken[int(order[position])] += 1
        (first if taken[int(order[position])] <= share else rest).append(position)
    return (first + rest)[:most]


def _directions(result: Analysis) -> dict[int, str]:
    """Stream -> its direction on its connection."""
    ways: dict[int, str] = {}
    for name, words in (("a_to_b_stream", "a>b"), ("b_to_a_stream", "b>a")):
        ways |= dict.fromkeys(result.connections[name].tolist(), words)
    ways.pop(-1, None)
    return ways


def _happening(
    record: dict[str, Any], places: list[list[int]], directions: dict[int, str], lengths: list[int]
) -> Happening:
    spans = [span for place in places[:_FRAMES_OF_A_LINE] for span in _spans(place, lengths)]
    where = _frames_in_words(places, len(lengths) > 1)
    return Happening(
        int(record["time_ns"]),
        int(record["connection"]),
        directions.get(int(record["stream"]), ""),
        record["kind"],
        spans,
        f"{where}: {_WORDS[record['kind']](record, len(places))}",
    )


def _spans(place: list[int], lengths: list[int]) -> list[tuple[int, int, int]]:
    """Frames by file, of [file, frame, last file, last frame]. Files between the first and the last are taken whole."""
    file, frame, last_file, last_frame = place
    if file == last_file:
        return [(file, frame, last_frame)]
    if last_file < file:
        return [(file, frame, frame), (last_file, last_frame, last_frame)]
    between = [(middle, 1, lengths[middle]) for middle in range(file + 1, last_file)]
    return [(file, frame, lengths[file]), *between, (last_file, 1, last_frame)]


def _frames_in_words(places: list[list[int]], name_file: bool) -> str:
    file, first, last_file, last = *places[0][:2], *places[-1][2:]
    if file != last_file:
        return f"file {file + 1} frame {first} to file {last_file + 1} frame {last}"
    where = f"file {file + 1} " if name_file else ""
    if first == last:
        return f"{where}frame {first}"
    return f"{where}frames {first}-{last}" if len(places) == 1 else f"{where}frames {first} to {last}"


# -- words -------------------------------------------------------------------------------------------------------------


def _gap(event: dict[str, Any], _: int) -> str:
    missing = event["count"]
    responses = event["value"] == 1
    if missing == 1:
        return f"gap before it: {'READ response ' if responses else ''}PSN {event['psn']} had not passed here"
    what = "READ responses" if responses else "packets"
    return f"gap before it: {count(missing)} {what} from PSN {event['psn']} on had not passed here"


def _resend(event: dict[str, Any], _: int) -> str:
    packets, late = event["count"], event["value"]
    if late == packets:  # nothing was seen before: lost before this point and sent again, or overtaken
        text = f"{plural(packets, 'packet')} behind the sequence at PSN {event['psn']}, not seen here before"
    else:
        place = ", PSN" if packets == 1 else " from PSN"
        text = f"{plural(packets, 'packet')} sent again{place} {event['psn']}"
        if late:
            text += f", {count(late)} of them not seen here before"
    return f"{text}, {duration(event['stall_ns'])} without progress"


def _nak(event: dict[str, Any], times: int) -> str:
    name = syndrome_name(event["value"])
    often = f"{count(times)} times " if times > 1 else ""
    if event["value"] & 31 in FATAL_NAKS:
        return f"{often}{name} for PSN {event['psn']}: the QP is in error"
    return f"{often}{name}, expects PSN {event['psn']}"


def _rnr(event: dict[str, Any], times: int) -> str:
    often = f"{count(times)} times " if times > 1 else ""
    wait = syndrome_name(event["value"]).removeprefix("RNR NAK ")
    return f"{often}RNR NAK (no receive posted) for PSN {event['psn']}, wait {wait}"


def _cnp(event: dict[str, Any], _: int) -> str:
    return f"{plural(event['count'], 'CNP')} (congestion notification)"


def _ce(event: dict[str, Any], _: int) -> str:
    return f"{plural(event['count'], 'packet')} marked CE (congestion experienced)"


def _unseen(event: dict[str, Any], _: int) -> str:
    return (
        f"the receiver has {plural(event['count'], 'packet')} up to PSN {event['psn']} that never passed here: "
        "missing from the capture"
    )


def _new_life(event: dict[str, Any], _: int) -> str:
    return f"the QP number is reused, from PSN {event['psn']}"


def _reject(event: dict[str, Any], _: int) -> str:
    return f"connection refused by CM REJ: {reject_reason_name(event['value'])} (reason {event['value']})"


_WORDS = {
    "gap": _gap,
    "resend": _resend,
    "nak": _nak,
    "rnr_nak": _rnr,
    "cnp": _cnp,
    "ce": _ce,
    "unseen": _unseen,
    "new_life": _new_life,
    "cm_rej": _reject,
}
