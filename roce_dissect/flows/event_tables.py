"""The tracker's events, with the CM's, as the tables of events and of episodes.

Here the causes are settled that need more than what came before: a NAK that seems to have caused two episodes, timeouts
whose spacing grows, and silence on a stream that nobody was seen to answer.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from roce_dissect.columns import EPISODES, EVENTS
from roce_dissect.flows import states
from roce_dissect.flows.dataframes import known, place_columns, table_frame, term_names
from roce_dissect.terms import EventKind, Recovery, Trigger

__all__ = ["episode_frame", "event_frame", "settled_events", "trigger_counts"]

#: A retry that waited so many times as long as the one before it: the timeout is adaptive.
GROWTH = 1.5
#: Episodes in a row from one PSN that no chance makes: a NAKed packet may be lost twice on a lossy path.
SURE_RETRIES = 3


def settled_events(events: np.ndarray, heard: np.ndarray) -> np.ndarray:
    """The tracker's events with the final causes of episodes; the given rows stay as they are.

    Parameters
    ----------
    events : numpy.ndarray
        int64[n, EVENT_WORDS], in the order in which they ended.
    heard : numpy.ndarray
        bool, per stream: the other direction answered.
    """
    events = events.copy()
    at = np.flatnonzero(events[:, states.EVENT_KIND] == EventKind.RESEND)
    if len(at) == 0:
        return events
    episodes = pd.DataFrame(
        {
            "stream": events[at, states.EVENT_STREAM],
            "trigger": events[at, states.EVENT_TRIGGER],
            "cause": events[at, states.EVENT_CAUSE_FRAME],
            "first_sights": events[at, states.EVENT_VALUE] == events[at, states.EVENT_COUNT],
            "recovery": events[at, states.EVENT_RECOVERY],
            "retry": events[at, states.EVENT_RETRY],
            "wait": events[at, states.EVENT_WAIT],
        }
    )
    # two episodes name one NAK: the first, of nothing but first sights, was the original, delayed
    named = episodes["cause"] != 0
    again = episodes[named].duplicated(["stream", "cause"], keep="last")
    delayed = again[again].index.intersection(episodes.index[episodes["first_sights"]])
    episodes.loc[delayed, ["trigger", "recovery", "retry"]] = [Trigger.REORDERING, Recovery.NONE, 0]
    # retries in a row: the one before, on the same stream
    former = episodes.groupby("stream").shift()
    in_a_row = (episodes["retry"] > 1) & (former["retry"] == episodes["retry"] - 1)
    # nobody was seen to answer, so that NAKs may have passed unseen; the same packet three times in a row is a timeout
    silent = ~heard[episodes["stream"].to_numpy()] & (episodes["trigger"] == Trigger.TIMEOUT)
    third = in_a_row & (episodes["retry"] >= SURE_RETRIES)
    repeated = third.copy()
    for step in range(1, SURE_RETRIES):
        repeated |= third.groupby(episodes["stream"]).shift(-step, fill_value=False)
    episodes.loc[silent & ~repeated, "trigger"] = Trigger.UNKNOWN
    timeouts = episodes["trigger"] == Trigger.TIMEOUT
    grows = timeouts & in_a_row & (former["trigger"] == Trigger.TIMEOUT)
    grows &= episodes["wait"] >= GROWTH * former["wait"]
    streams = episodes["stream"]
    twice = grows & grows.groupby(streams).shift(
        fill_value=False
    )  # once may be chance: the first wait is of any length
    adaptive = twice.copy()
    for step in (1, 2):
        adaptive |= twice.groupby(streams).shift(-step, fill_value=False)
    episodes.loc[adaptive, "trigger"] = Trigger.ADAPTIVE_TIMEOUT
    events[at, states.EVENT_TRIGGER] = episodes["trigger"]
    events[at, states.EVENT_RECOVERY] = episodes["recovery"]
    events[at, states.EVENT_RETRY] = episodes["retry"]
    return events


def trigger_counts(events: np.ndarray, streams: int) -> dict[str, np.ndarray]:
    """Per stream: how many ``timeouts`` (adaptive, too) and ``reorderings``; events as `settled_events` has them."""
    rows = events[events[:, states.EVENT_KIND] == EventKind.RESEND]
    stream, trigger = rows[:, states.EVENT_STREAM], rows[:, states.EVENT_TRIGGER]
    timed_out = (trigger == Trigger.TIMEOUT) | (trigger == Trigger.ADAPTIVE_TIMEOUT)
    return {
        "timeouts": np.bincount(stream[timed_out], minlength=streams),
        "reorderings": np.bincount(stream[trigger == Trigger.REORDERING], minlength=streams),
    }


def event_frame(events: np.ndarray, of_stream: np.ndarray, cm: np.ndarray, of_exchange: dict[int, int]) -> pd.DataFrame:
    """The table of events, in time order.

    Parameters
    ----------
    events : numpy.ndarray
        As `settled_events` returns them.
    of_stream : numpy.ndarray
        Connection of each stream, 0: none.
    cm : numpy.ndarray
        int64[m, 5]: kind, exchange, frame key, time, value of each CM message.
    of_exchange : dict
        Connection of each CM exchange.
    """
    nothing = np.zeros(len(cm), np.int64)

    def both(word: int, of_cm: np.ndarray) -> np.ndarray:
        return np.concatenate([events[:, word], of_cm])

    stream = both(states.EVENT_STREAM, nothing - 1)
    connection = np.concatenate(
        [
            of_stream[events[:, states.EVENT_STREAM]] if len(events) else nothing[:0],
            np.array([of_exchange.get(number, 0) for number in cm[:, 1].tolist()], np.int64),
        ]
    )
    kind, key, time = (
        both(states.EVENT_KIND, cm[:, 0]),
        both(states.EVENT_FRAME, cm[:, 2]),
        both(states.EVENT_TIME, cm[:, 3]),
    )
    cause = both(states.EVENT_CAUSE_FRAME, nothing)
    since = time - both(states.EVENT_CAUSE_TIME, nothing)
    values = {
        "connection": connection,
        "stream": stream,
        "time_ns": time,
        "duration_ns": both(states.EVENT_LAST_TIME, cm[:, 3]) - time,
        "psn": both(states.EVENT_PSN, nothing - 1),
        "count": both(states.EVENT_COUNT, nothing + 1),
        "stall_ns": both(states.EVENT_STALL, nothing),
        "value": both(states.EVENT_VALUE, cm[:, 4]),
        "kind": kind,
        "trigger": np.where(kind == EventKind.RESEND, both(states.EVENT_TRIGGER, nothing - 1), -1),
        "key": key,
        "last_key": both(states.EVENT_LAST_FRAME, cm[:, 2]),
        "cause": cause,
        "since": since,
    }
    order = np.lexsort((kind, key, time))
    values = {name: column[order] for name, column in values.items()}
    led = (values["cause"] != 0) & (values["trigger"] != Trigger.REORDERING)
    return table_frame(
        EVENTS,
        values
        | {
            "kind": term_names(EventKind, values["kind"]),
            "trigger": term_names(Trigger, values["trigger"]),
            "cause_ns": known(values["since"], led & (values["since"] >= 0)),
            **place_columns("", values["key"]),
            **place_columns("last", values["last_key"]),
            **place_columns("cause", values["cause"], led),
        },
    )


def episode_frame(events: np.ndarray, of_stream: np.ndarray) -> pd.DataFrame:
    """The table of episodes, in time order; `events` as `settled_events` returns them."""
    rows = events[events[:, states.EVENT_KIND] == EventKind.RESEND]
    rows = rows[np.lexsort((rows[:, states.EVENT_FRAME], rows[:, states.EVENT_TIME]))]
    time, cause = rows[:, states.EVENT_TIME], rows[:, states.EVENT_CAUSE_FRAME]
    # what came late by itself was not caused by the NAK that it drew
    drew = (rows[:, states.EVENT_TRIGGER] == Trigger.REORDERING) & (cause != 0)
    triggered = (cause != 0) & ~drew
    reaction = time - rows[:, states.EVENT_CAUSE_TIME]
    hole = rows[:, states.EVENT_HOLE_TIME]
    values = {
        "episode": np.arange(1, len(rows) + 1),
        "connection": of_stream[rows[:, states.EVENT_STREAM]] if len(rows) else rows[:, states.EVENT_STREAM],
        "stream": rows[:, states.EVENT_STREAM],
        "trigger": term_names(Trigger, rows[:, states.EVENT_TRIGGER]),
        **place_columns("trigger", cause, triggered),
        **place_columns("", rows[:, states.EVENT_FRAME]),
        **place_columns("last", rows[:, states.EVENT_LAST_FRAME]),
        "time_ns": time,
        "duration_ns": rows[:, states.EVENT_LAST_TIME] - time,
        "psn": rows[:, states.EVENT_PSN],
        "packets": rows[:, states.EVENT_COUNT],
        "bytes": rows[:, states.EVENT_BYTES],
        "late_packets": rows[:, states.EVENT_VALUE],
        "arrived_packets": known(rows[:, states.EVENT_ARRIVED], rows[:, states.EVENT_ARRIVED] >= 0),
        "recovery": term_names(Recovery, rows[:, states.EVENT_RECOVERY]),
        "retry": rows[:, states.EVENT_RETRY],
        "wait_ns": rows[:, states.EVENT_WAIT],
        "reaction_ns": known(reaction, triggered & (reaction >= 0)),
        "stall_ns": rows[:, states.EVENT_STALL],
        "drew_nak": known(drew, rows[:, states.EVENT_TRIGGER] == Trigger.REORDERING),
        "extent_packets": rows[:, states.EVENT_EXTENT],
        "extent_ns": known(time - hole, (hole != 0) & (time >= hole)),
    }
    return table_frame(EPISODES, values)
