"""What the end of a stream, its retries and the timing of its answers tell, from the tracker's rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from roce_dissect.flows import states
from roce_dissect.flows.dataframes import known
from roce_dissect.spec.aeth import RNR_WAIT_NS
from roce_dissect.spec.cm import TIMEOUT_UNIT_NS
from roce_dissect.terms import EndedBy, Trigger, Vantage

__all__ = ["ended_by", "never_matched", "timeout_estimates", "vantages"]

#: A QP has given up when it is silent for so many times its last wait: the waits of one QP differ by less.
SILENCE = 2
#: Retries in a row from which on silence means that the QP gave up, not that the application stopped; and the same
#: where nobody was heard to answer, so that NAKs may have driven them.
LEAST_RETRIES, LEAST_UNHEARD = 2, 3
#: Timers fire a little early where the clock that stamps the packets is another one.
EARLY = 0.97
#: One end answers so many times as fast as the other: the capture point is near it.
NEARER = 3
#: Reactions to NAKs of which the shortest is believed.
LEAST_NAKS = 4
#: Quick reactions, and the share of others, from which on they are no coincidence.
LEAST_REACTIONS, MOST_OTHERS = 16, 0.125


def ended_by(rows: np.ndarray, end_time_ns: int) -> np.ndarray:
    """What ended each stream within the capture, as `roce_dissect.terms.EndedBy`.

    Parameters
    ----------
    rows : numpy.ndarray
        int64[n, STREAM_WORDS], the tracker's rows.
    end_time_ns : int
        Time of the capture's last frame: silence up to then is known.

    Returns
    -------
    numpy.ndarray
        uint8[n].
    """
    flags = rows[:, states.FLAGS]
    closed, over = flags & states.CLOSED != 0, flags & states.EXPIRED != 0
    last = rows[:, states.REQUEST_TIME]
    silence = np.where(closed | over, rows[:, states.LAST_TIME], end_time_ns) - last
    unanswered = rows[:, states.LAST_ANSWER_TIME] < last
    # the last thing that happened is a retry, it brought nothing, and the next one never came
    gave_up = (
        (rows[:, states.RETRY] >= np.where(rows[:, states.LAST_ANSWER_TIME] != 0, LEAST_RETRIES, LEAST_UNHEARD))
        & (rows[:, states.RETRY_ACKED] == rows[:, states.ACKED])
        & np.isin(rows[:, states.LAST_TRIGGER], (Trigger.TIMEOUT, Trigger.UNKNOWN))
        & unanswered
        & ((silence > SILENCE * np.maximum(rows[:, states.RETRY_WAIT], states.LEAST_TIMEOUT_NS)) | closed | over)
    )
    # an RNR NAK waits for the requester to come again, and it never does
    since = np.where(closed | over, rows[:, states.LAST_TIME], end_time_ns) - np.maximum(
        rows[:, states.CAUSE_TIME], last
    )
    waits = np.array(RNR_WAIT_NS)[rows[:, states.RNR_CODE] & 31]
    rnr = (rows[:, states.CAUSE] == Trigger.RNR_NAK) & ((since > SILENCE * waits) | closed | over)
    return np.select(
        [flags & states.DEAD != 0, rnr, gave_up, closed, over],
        [EndedBy.NAK, EndedBy.RNR_RETRIES, EndedBy.RETRIES, EndedBy.TEARDOWN, EndedBy.NEW_LIFE],
        EndedBy.NOTHING,
    ).astype(np.uint8)


def never_matched(rows: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """Streams whose responder never expected any of their PSNs: the two ends were set up with different ones.

    It answers all the same, always with one PSN, the last it believes to have taken, and that was never sent.

    Parameters
    ----------
    rows : numpy.ndarray
        int64[n, STREAM_WORDS].
    partner : numpy.ndarray
        int64[n], row of the other direction, -1: none.

    Returns
    -------
    numpy.ndarray
        bool[n].
    """
    if len(rows) == 0:
        return np.zeros(0, bool)
    other = rows[np.maximum(partner, 0)]
    one_psn = (other[:, states.RESPONSES] > 1) & (other[:, states.RESPONSE_NEXT] == other[:, states.RESPONSE_FIRST])
    answered = other[:, states.RESPONSE_NEXT] - 1
    beyond = (answered - rows[:, states.FIRST_PSN]) & 0xFFFFFF >= rows[:, states.NEXT] - rows[:, states.FIRST_PSN]
    requests = rows[:, states.REQUESTS] > 0
    return (partner >= 0) & requests & one_psn & beyond & (rows[:, states.ACKED] == rows[:, states.FIRST_PSN])


def timeout_estimates(rows: np.ndarray, orderly: np.ndarray) -> pa.Array:
    """Exponent t of the local ACK timeout 4.096 us x 2^t of each stream, missing without any sample.

    The samples are waits from one resend of a packet to the next with no answer between: before the first resend a
    timer may have run for any part of its time. A requester may wait longer than its timeout (IBTA allows four times as
    long, timers are coarse), but never shorter: the shortest wait decides.

    Parameters
    ----------
    rows : numpy.ndarray
        int64[n, STREAM_WORDS].
    orderly : numpy.ndarray
        bool[n]: nothing was reordered or copied on the way here, which makes waits look too short.
    """
    least = rows[:, states.TIMEOUT_LEAST]
    exponent = np.floor(np.log2(np.maximum(least, 1) / (TIMEOUT_UNIT_NS * EARLY)))
    return known(np.clip(exponent, 0, 31).astype(np.int64), (least > 0) & orderly)


def vantages(rows: np.ndarray, ab: np.ndarray, ba: np.ndarray, orderly: np.ndarray) -> np.ndarray:
    """Which end each capture point is near, as `roce_dissect.terms.Vantage`.

    An end that is near answers soon: a responder with its ACK, a requester with what a NAK made it send. Both depend on
    the NICs alone, not on the application. Where only one end was seen to answer, what remains is a requester of one
    message after the other, whose next one nearly always came much sooner after an answer than that answer had come: no
    application thinks that fast, unless the way to it is short.

    Parameters
    ----------
    rows : numpy.ndarray
        int64[n, STREAM_WORDS].
    ab, ba : numpy.ndarray
        int64[m], streams of each connection, -1 for none.
    orderly : numpy.ndarray
        bool[n]: nothing of the stream was reordered or copied on the way here, which makes reactions look too quick.
    """
    never = np.iinfo(np.int64).max

    def word(stream: np.ndarray, column: int) -> np.ndarray:
        values = rows[np.maximum(stream, 0), column] if len(rows) else np.zeros(len(stream), np.int64)
        return np.where(stream >= 0, values, 0)

    def soonest(requests: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Shortest delay of the end that `requests` go to."""
        often = word(other, states.REACTIONS) >= LEAST_NAKS
        often &= orderly[np.maximum(other, 0)] if len(orderly) else False
        delays = np.stack([word(requests, states.LEAST_ANSWER), word(other, states.LEAST_REACTION) * often])
        return np.where(delays > 0, delays, never).min(axis=0)

    def quick(requests: np.ndarray) -> np.ndarray:
        quick, slow = word(requests, states.QUICK_REACTIONS), word(requests, states.SLOW_REACTIONS)
        one_by_one = word(requests, states.MOST_MESSAGES) == 1  # else the next one was on its way already
        return one_by_one & (quick >= LEAST_REACTIONS) & (slow <= quick * MOST_OTHERS)

    of_b, of_a = soonest(ab, ba), soonest(ba, ab)
    both = (of_a < never) & (of_b < never)
    near_a = np.where(both, of_a < of_b // NEARER, quick(ab) & ~quick(ba))
    near_b = np.where(both, of_b < of_a // NEARER, quick(ba) & ~quick(ab))
    return np.select([near_a, near_b], [Vantage.NEAR_A, Vantage.NEAR_B], Vantage.UNKNOWN).astype(np.uint8)
