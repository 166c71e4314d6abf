"""Rows of messages as a table: every column of messages worked by hand, and of rows with extreme values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roce_dissect.columns import MESSAGES
from roce_dissect.flows import states
from roce_dissect.flows.message_table import message_frame
from roce_dissect.terms import MessageStatus, Verb

START = 1_700_000_000_000_000_000
MS = 1_000_000
NA = pd.NA


@pytest.fixture
def table(build, tracker):
    """``table(packets)``: the messages of packets by hand, in the order in which they ended, as dicts."""

    def run(packets, connections=(1, 1)):
        rows = build.Tracked(packets, tracker).message_rows
        return plain(message_frame(rows, np.array(connections)))

    return run


def plain(frame):
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]


def row_of(**words):
    """One row by hand: a SEND of one packet that was answered, with other words by name."""
    row = np.zeros(states.MESSAGE_WORDS, np.int64)
    given = {
        "PSN": (1 << 24) + 5, "STOP": (1 << 24) + 6, "FLAGS": states.M_STARTED | states.M_ENDED, "VERB": Verb.SEND,
        "STATUS": MessageStatus.COMPLETE, "FRAME": 1, "TIME": START, "LAST_FRAME": 1, "LAST_TIME": START, "PACKETS": 1,
        "ANSWER_FRAME": 2, "ANSWER_TIME": START + 9,
    } | words  # fmt: skip
    for name, value in given.items():
        row[getattr(states, f"M_{name}")] = value
    return row


def frame_of(*rows, connections=(1,)):
    given = np.array(rows, np.int64).reshape(-1, states.MESSAGE_WORDS)
    return message_frame(given, np.array(connections, np.int64))


# -- what the tracker gives ------------------------------------------------------------------------------------------


def test_a_write_in_three_packets(build, table):
    p = build.packet
    reth = {"va": (1 << 64) - 4096, "r_key": 0xFFFFFFFF, "dma_len": 2148}
    packets = [
        p("WRITE_FIRST", 0xFFFFFF, 0, payload_len=1024, **reth),
        p("WRITE_MIDDLE", 0, 1, payload_len=1024),
        p("WRITE_MIDDLE", 0, 1.5, payload_len=1024),
        p("WRITE_LAST_IMM", 1, 2, payload_len=100, imm_data=0xFFFFFFFE),
        p("ACKNOWLEDGE", 1, 5, build.B, build.A),
    ]
    for number, one in enumerate(packets, start=7):
        one["frame_key"] = 4 << 40 | number
    [message] = table(packets)
    assert message == {
        "connection": 1, "stream": 0, "verb": "write_imm", "status": "complete", "whole": True, "file": 4, "frame": 7,
        "last_file": 4, "last_frame": 10, "psn": 0xFFFFFF, "last_psn": 1, "packets": 3, "bytes": 2148, "dma_len": 2148,
        "time_ns": START, "last_time_ns": START + 2 * MS, "answer_first_file": NA, "answer_first_frame": NA,
        "answer_first_time_ns": NA, "answer_file": 4, "answer_frame": 11, "answer_time_ns": START + 5 * MS,
        "latency_ns": 5 * MS, "answer_packets": 0, "resends": 1, "rnr_naks": 0, "syndrome": NA,
        "va": (1 << 64) - 4096, "r_key": 0xFFFFFFFF, "imm_data": 0xFFFFFFFE, "inv_r_key": NA,
    }  # fmt: skip


def test_a_read(build, table):
    p = build.packet
    packets = [
        p("SEND_FIRST", 9, 0, payload_len=1024),
        p("SEND_LAST", 10, 0.1, payload_len=0),
        p("READ_REQUEST", 11, 1, dma_len=3000, va=77, r_key=0),
        p("ACKNOWLEDGE", 10, 2, build.B, build.A),
        p("READ_RESPONSE_FIRST", 11, 3, build.B, build.A, payload_len=1024),
        p("READ_RESPONSE_MIDDLE", 12, 4, build.B, build.A, payload_len=1024),
        p("READ_RESPONSE_LAST", 13, 6, build.B, build.A, payload_len=952),
    ]
    send, read = table(packets)
    assert (send["verb"], send["bytes"], send["answer_frame"], send["dma_len"]) == ("send", 1024, 4, NA)
    expected = {
        "verb": "read", "status": "complete", "whole": True, "frame": 3, "last_frame": 3, "psn": 11, "last_psn": 13,
        "packets": 1, "bytes": 3000, "dma_len": 3000, "answer_first_frame": 5, "answer_first_file": 0,
        "answer_first_time_ns": START + 3 * MS, "answer_frame": 7, "answer_time_ns": START + 6 * MS,
        "latency_ns": 5 * MS, "answer_packets": 3, "va": 77, "r_key": 0,
    }  # fmt: skip
    assert {name: read[name] for name in expected} == expected


def test_an_atomic_and_a_send_with_invalidate(build, table):
    p = build.packet
    packets = [
        p("FETCH_ADD", 3, 0, va=8, r_key=5),
        p("ATOMIC_ACKNOWLEDGE", 3, 1, build.B, build.A),
        p("SEND_ONLY_INV", 4, 2, payload_len=7, inv_r_key=0x1234),
        p("ACKNOWLEDGE", 4, 3, build.B, build.A),
    ]
    atomic, send = table(packets)
    assert (atomic["verb"], atomic["bytes"], atomic["va"], atomic["r_key"]) == ("fetch_add", 8, 8, 5)
    assert (atomic["dma_len"], atomic["latency_ns"]) == (NA, MS)
    assert (send["verb"], send["inv_r_key"], send["imm_data"], send["va"]) == ("send_inv", 0x1234, NA, NA)


def test_a_refused_one_and_what_was_behind_it(build, table):
    p = build.packet
    packets = [
        p("WRITE_ONLY", 3, 0, payload_len=7, va=1, r_key=2, dma_len=7),
        p("SEND_ONLY", 4, 1, payload_len=7),
        p("ACKNOWLEDGE", 3, 2, build.B, build.A, syndrome=0x62),
    ]
    refused, flushed = table(packets)
    assert (refused["status"], refused["syndrome"], refused["answer_frame"]) == ("refused", 0x62, 3)
    assert refused["latency_ns"] == 2 * MS
    assert (flushed["status"], flushed["syndrome"], flushed["answer_frame"]) == ("flushed", NA, NA)
    assert (flushed["latency_ns"], flushed["answer_time_ns"]) == (NA, NA)


def test_a_part_of_a_message_is_not_whole(build, table):
    """The capture begins within one, and lacks the middle of another: their latency or their size is not known."""
    p = build.packet
    packets = [
        p("SEND_LAST", 9, 0, payload_len=4),
        p("WRITE_FIRST", 10, 1, payload_len=1024, dma_len=3000),
        p("WRITE_LAST", 12, 2, payload_len=952),
        p("ACKNOWLEDGE", 12, 3, build.B, build.A),
    ]
    cut, holed = table(packets)
    assert (cut["whole"], cut["status"], cut["latency_ns"], cut["answer_frame"]) == (False, "complete", NA, 4)
    assert (holed["whole"], holed["status"], holed["latency_ns"]) == (False, "complete", 2 * MS)
    assert (holed["psn"], holed["last_psn"], holed["packets"], holed["bytes"]) == (10, 12, 2, 1976)


def test_an_answer_before_its_request(build, table):
    """Clocks run backwards: the times stand as they are, and there is no latency below 0."""
    p = build.packet
    packets = [p("SEND_ONLY", 3, 5, payload_len=7), p("ACKNOWLEDGE", 3, 4, build.B, build.A)]
    [message] = table(packets)
    assert (message["answer_time_ns"], message["latency_ns"]) == (START + 4 * MS, NA)
    assert message["answer_frame"] == 2


def test_connection_by_stream(build, table):
    p = build.packet
    packets = [
        p("SEND_ONLY", 3, 0, payload_len=7),
        p("UD_SEND_ONLY", 3, 1, dest_qp=40, src_qp=41, payload_len=7),
        p("ACKNOWLEDGE", 3, 2, build.B, build.A),
    ]
    messages = {one["stream"]: one for one in table(packets, connections=(6, 0, 6))}
    assert {stream: one["connection"] for stream, one in messages.items()} == {0: 6, 1: 0}
    assert (messages[1]["status"], messages[1]["latency_ns"]) == ("sent", NA)


# -- rows alone ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("connections", [(), (1, 1)])
def test_no_rows(connections):
    """Also without any stream: the columns, in order, in their dtypes."""
    frame = frame_of(connections=connections)
    assert list(frame.columns) == list(MESSAGES)
    assert len(frame) == 0
    full = frame_of(row_of())
    assert [str(dtype) for dtype in frame.dtypes] == [str(dtype) for dtype in full.dtypes]


def test_dtypes():
    frame = frame_of(row_of())
    for column in MESSAGES.values():
        dtype = frame[column.name].dtype
        if column.dtype == "str" or column.terms is not None:
            assert dtype == "str", column.name
        else:
            assert isinstance(dtype, pd.ArrowDtype), column.name
            assert dtype.numpy_dtype == np.dtype(column.dtype), column.name


def test_highest_values():
    """All bits of an address, of keys, of a file's and a frame's number; 0 is a value where a flag says so."""
    flags = states.M_STARTED | states.M_ENDED | states.M_HAS_RETH | states.M_HAS_LENGTH | states.M_HAS_IMM
    most = row_of(
        FLAGS=flags, VA=-1, R_KEY=0xFFFFFFFF, DMA_LEN=0xFFFFFFFF, IMM=0xFFFFFFFF, BYTES=1 << 62, SYNDROME=0x100,
        FRAME=(0xFFFF << 40) + (1 << 40) - 1, STOP=(1 << 62) + 5,
    )  # fmt: skip
    none = row_of(FLAGS=flags)
    high, low = plain(frame_of(most, none))
    assert (high["va"], high["r_key"], high["dma_len"], high["imm_data"]) == ((1 << 64) - 1, *[0xFFFFFFFF] * 3)
    assert (high["bytes"], high["syndrome"]) == (1 << 62, 0xFF)
    assert (high["file"], high["frame"]) == (0xFFFF, (1 << 40) - 1)
    assert (high["last_psn"], high["whole"]) == (4, False)
    assert (low["va"], low["r_key"], low["dma_len"], low["imm_data"]) == (0, 0, 0, 0)
    assert low["inv_r_key"] is NA


def test_flags_say_what_is_known():
    """Words without their flag are not values."""
    row = row_of(VA=1, R_KEY=2, DMA_LEN=3, IMM=4)
    [message] = plain(frame_of(row))
    assert [message[name] for name in ("va", "r_key", "dma_len", "imm_data", "inv_r_key")] == [NA] * 5
    row[states.M_FLAGS] |= states.M_HAS_INV
    [message] = plain(frame_of(row))
    assert (message["imm_data"], message["inv_r_key"]) == (NA, 4)


@pytest.mark.parametrize(
    ("flags", "packets", "whole"),
    [
        (states.M_STARTED | states.M_ENDED, 3, True),
        (states.M_STARTED | states.M_ENDED, 2, False),
        (states.M_STARTED, 3, False),
        (states.M_ENDED, 3, False),
        (states.M_STARTED | states.M_ENDED | states.M_HOLED, 3, False),
        (states.M_STARTED | states.M_ENDED | states.M_ASKS, 1, True),
    ],
)
def test_whole(flags, packets, whole):
    """All PSNs passed, from the first to the last; a READ's request is one packet whatever its range."""
    [message] = plain(frame_of(row_of(FLAGS=flags, PACKETS=packets, STOP=(1 << 24) + 8)))
    assert message["whole"] is whole


def test_rows_of_any_layout():
    """A slice of a larger array, with steps."""
    rows = np.array([row_of(VA=number, FLAGS=states.M_HAS_RETH) for number in range(6)])
    assert message_frame(rows[::2], np.array([1]))["va"].tolist() == [0, 2, 4]
    assert message_frame(np.asfortranarray(rows)[1::2], np.array([1]))["va"].tolist() == [1, 3, 5]


@pytest.mark.parametrize("connections", [(), (5,)])
def test_streams_beyond_the_table(connections):
    """A file that was still being written has more streams when it is read again: they are in no connection."""
    frame = frame_of(row_of(STREAM=0), row_of(STREAM=3), connections=connections)
    assert frame["connection"].tolist() == [5 if connections else 0, 0]
