"""Which events are worth a line of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roce_dissect.cli.event_words import CM_STEPS, EventWords
from roce_dissect.cli.places import spans_of
from roce_dissect.spec.aeth import FATAL_NAKS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from roce_dissect.api import Analysis

__all__ = ["Happening", "happenings"]

#: Kinds that are part of an ordinary connection's life: no line of their own.
_ORDINARY = tuple(step for step in CM_STEPS if step != "cm_rej")
#: Kinds of which one that repeats with the same PSN, value and stream is one line.
_REPEATING = ("nak", "rnr_nak")
#: Triggers of which retries in a row at the same PSN are one line.
_RETRIED = ("rnr_nak", "timeout", "adaptive_timeout")
#: What comes first when not all can be shown; fatal NAKs before all.
_ORDER = ("cm_rej", "resend", "damaged", "gap", "unseen", "new_life", "rnr_nak", "nak", "cnp", "ce")
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
        File, first and last frame, once for each repetition (some, when there are many) and each file; of fatal NAKs
        the refused request, too.
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

    When there are more, fatal NAKs and refused connections come first, then the episodes with most stall, gaps and the
    rest; no kind takes more than half of the lines while others wait.
    """
    import numpy as np

    from roce_dissect.cli.event_table import events_with_episodes, records

    events = events_with_episodes(result)
    events = events[~events["kind"].isin(_ORDINARY)].reset_index(drop=True)
    if events.empty:
        return [], 0
    leaders, members = _repetitions(events)
    stalls = events["stall_ns"].to_numpy("int64")
    lines = events.loc[leaders].assign(stall_ns=[stalls[members[leader]].sum() for leader in leaders])
    chosen = _choose(lines, np.array([len(members[leader]) for leader in leaders]), most)
    words = EventWords(result)
    lengths = [one["frames"] for one in result.capture["files"]]
    found = [_happening(records(events.loc[members[leaders[at]]]), words, lengths) for at in chosen]
    return sorted(found, key=lambda one: (one.time_ns, one.spans[0])), len(leaders)


def _repetitions(events: pd.DataFrame) -> tuple[list[int], dict[int, list[int]]]:
    """First rows of the lines, and the rows of each."""
    chain = _retries(events)
    repeating = events["kind"].isin(_REPEATING) | (chain > 0)
    members: dict[int, list[int]] = {int(row): [int(row)] for row in events.index[~repeating]}
    some = events.loc[repeating, ["kind", "file", "stream", "psn", "value"]].assign(chain=chain[repeating])
    some.loc[some["chain"] > 0, ["file", "value"]] = 0  # retries may go on in the next file
    for rows in some.groupby(["kind", "file", "stream", "psn", "value", "chain"], sort=False).indices.values():
        at = some.index[rows].tolist()
        members[at[0]] = at
    return sorted(members), members


def _retries(events: pd.DataFrame) -> pd.Series:
    """For each event the number of its chain of retries with one cause at one PSN, 0: it stands alone."""
    import pandas as pd

    chain = pd.Series(0, index=events.index)
    resends = events.loc[events["kind"] == "resend", ["stream", "psn", "retry", "trigger"]]
    if resends.empty:
        return chain
    former = resends.groupby("stream").shift()
    goes_on = resends["trigger"].isin(_RETRIED)
    for name, step in (("trigger", 0), ("psn", 0), ("retry", 1)):
        before = former[name] + step if step else former[name]
        goes_on &= (resends[name] == before).fillna(False).astype(bool)
    number = (~goes_on).groupby(resends["stream"]).cumsum().astype("int64")
    several = number.groupby([resends["stream"], number]).transform("size") > 1
    chain[resends.index] = number.where(several, 0)
    return chain


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


def _happening(events: list[dict[str, Any]], words: EventWords, lengths: list[int]) -> Happening:
    first = events[0]
    places = [place for event in events for place in words.places(event)[: _places(event)]]
    if len(events) > _FRAMES_OF_A_LINE:  # too many for a filter: all from the first to the last
        last = events[-1]
        places = [(first["file"], first["frame"], last["last_file"], last["last_frame"])]
    return Happening(
        int(first["time_ns"]),
        int(first["connection"]),
        words.way(first),
        first["kind"],
        [span for place in places for span in spans_of(place, lengths)],
        words.sentence(events),
    )


def _places(event: dict[str, Any]) -> int:
    """How many of an event's places its line's filter names: only a fatal NAK's cause has no line of its own."""
    return 2 if event["kind"] == "nak" and event["value"] & 31 in FATAL_NAKS else 1
