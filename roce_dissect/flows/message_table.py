"""Rows of messages that ended as the table that `roce_dissect.columns.MESSAGES` promises."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roce_dissect.columns import MESSAGES
from roce_dissect.flows import states
from roce_dissect.flows.dataframes import known, place_columns, table_frame, term_names
from roce_dissect.terms import MessageStatus, Verb

__all__ = ["connections_of", "message_frame"]


def connections_of(stream: np.ndarray, connection: np.ndarray) -> np.ndarray:
    """Connection of each stream; 0 for one that came into a file after it was analysed."""
    there = stream < len(connection)
    found = np.zeros(len(stream), np.int64)
    found[there] = connection[stream[there]]
    return found


def message_frame(rows: np.ndarray, connection: np.ndarray) -> pd.DataFrame:
    """A DataFrame of messages.

    Parameters
    ----------
    rows : numpy.ndarray
        int64[n, MESSAGE_WORDS].
    connection : numpy.ndarray
        Connection of each stream, 0: none.
    """
    flags, stream = rows[:, states.M_FLAGS], rows[:, states.M_STREAM]
    verb = rows[:, states.M_VERB]
    span = rows[:, states.M_STOP] - rows[:, states.M_PSN]
    packets = rows[:, states.M_PACKETS]
    asks = flags & states.M_ASKS != 0
    ends = states.M_STARTED | states.M_ENDED
    whole = (flags & ends == ends) & (flags & states.M_HOLED == 0) & (asks | (packets == span))
    # more than its RETH announced: two messages that the sender numbered alike
    whole &= (flags & states.M_HAS_LENGTH == 0) | (rows[:, states.M_BYTES] <= rows[:, states.M_DMA_LEN])
    ended_by_answer = np.isin(rows[:, states.M_STATUS], (MessageStatus.COMPLETE, MessageStatus.REFUSED))
    answered = (rows[:, states.M_ANSWER_FRAME] != 0) & ended_by_answer  # a READ's last response so far is none
    responded = rows[:, states.M_ANSWER_FIRST_FRAME] != 0
    latency = rows[:, states.M_ANSWER_TIME] - rows[:, states.M_TIME]
    addressed, refused = flags & states.M_HAS_RETH != 0, rows[:, states.M_SYNDROME] != 0
    values = {
        "connection": connections_of(stream, connection),
        "stream": stream,
        "verb": term_names(Verb, verb),
        "status": term_names(MessageStatus, rows[:, states.M_STATUS]),
        "whole": whole,
        **place_columns("", rows[:, states.M_FRAME]),
        **place_columns("last", rows[:, states.M_LAST_FRAME]),
        "psn": rows[:, states.M_PSN] & 0xFFFFFF,
        "last_psn": (rows[:, states.M_STOP] - 1) & 0xFFFFFF,
        "packets": packets,
        "bytes": known(rows[:, states.M_BYTES], (verb != Verb.READ) | (flags & states.M_HAS_LENGTH != 0)),
        "dma_len": known(rows[:, states.M_DMA_LEN], flags & states.M_HAS_LENGTH != 0),
        "time_ns": rows[:, states.M_TIME],
        "last_time_ns": rows[:, states.M_LAST_TIME],
        **place_columns("answer_first", rows[:, states.M_ANSWER_FIRST_FRAME], responded),
        "answer_first_time_ns": known(rows[:, states.M_ANSWER_FIRST_TIME], responded),
        **place_columns("answer", rows[:, states.M_ANSWER_FRAME], answered),
        "answer_time_ns": known(rows[:, states.M_ANSWER_TIME], answered),
        "latency_ns": known(latency, answered & (latency >= 0) & (flags & states.M_STARTED != 0)),
        "answer_packets": rows[:, states.M_ANSWER_PACKETS],
        "resends": rows[:, states.M_RESENDS],
        "rnr_naks": rows[:, states.M_RNRS],
        "syndrome": known(rows[:, states.M_SYNDROME] - refused, refused),
        "va": known(rows[:, states.M_VA].view(np.uint64), addressed),
        "r_key": known(rows[:, states.M_R_KEY], addressed),
        "imm_data": known(rows[:, states.M_IMM], flags & states.M_HAS_IMM != 0),
        "inv_r_key": known(rows[:, states.M_IMM], flags & states.M_HAS_INV != 0),
    }
    return table_frame(MESSAGES, values)
