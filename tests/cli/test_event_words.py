"""The sentence of each kind of event, read aloud."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from roce_dissect.cli.event_words import EventWords, trigger_words
from roce_dissect.terms import EventKind, Trigger


def words(confirmed=True, vantage="unknown", files=1):
    result = SimpleNamespace(
        capture={"files": [{}] * files},
        streams=pd.DataFrame({"confirmed": [confirmed, False]}),
        events=pd.DataFrame({"kind": ["damaged"], "stream": [1], "psn": [11]}),
        connections=pd.DataFrame({"a_to_b_stream": [0], "b_to_a_stream": [1], "vantage": [vantage]}),
    )
    return EventWords(result)


def event(kind, **changes):
    plain = {
        "kind": kind, "stream": 0, "file": 0, "frame": 20, "last_file": 0, "last_frame": 20, "time_ns": 0, "psn": 11,
        "count": 1, "stall_ns": 0, "value": 0, "trigger": "", "cause_file": None, "cause_frame": None, "cause_ns": None,
    }  # fmt: skip
    return plain | changes


def resend(trigger, **changes):
    figures = {
        "trigger": trigger, "last_frame": 22, "count": 3, "bytes": 2500, "late_packets": 0, "arrived_packets": 1,
        "recovery": "go_back_n", "retry": 1, "wait_ns": 67_000_000, "reaction_ns": None, "stall_ns": 200_000,
        "extent_packets": 3, "extent_ns": None,
    }  # fmt: skip
    return event("resend", **figures) | changes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"trigger": "nak", "cause_file": 0, "cause_frame": 4, "reaction_ns": 100_000},
            "frames 20-22: went back to PSN 11 after the NAK in frame 4, 100 µs later: 3 packets (2.5 kB) sent again, "
            "the receiver had 1 of them; 200 µs without progress",
        ),
        (
            {"trigger": "nak", "arrived_packets": 0, "late_packets": 1, "bytes": 0, "stall_ns": 0},
            "frames 20-22: went back to PSN 11 after a NAK: 3 packets sent again, 1 of them not seen here before, "
            "the receiver had taken none of them",
        ),
        (
            {"trigger": "rnr_nak", "cause_file": 0, "cause_frame": 4, "reaction_ns": 640_000, "arrived_packets": None},
            "frames 20-22: went back to PSN 11 after the RNR NAK in frame 4, 640 µs later: 3 packets (2.5 kB) sent "
            "again; 200 µs without progress",
        ),
        (
            {"trigger": "implied_nak", "arrived_packets": 3},
            "frames 20-22: went back to PSN 11 after an answer beyond an unanswered READ or atomic: 3 packets "
            "(2.5 kB) sent again, the receiver had all of them; 200 µs without progress",
        ),
        (
            {"trigger": "timeout", "retry": 3},
            "frames 20-22: went back to PSN 11 on a timeout, 67 ms after the last try seen here, though the answer had "
            "passed here, retry 3: 3 packets (2.5 kB) sent again, the receiver had 1 of them (unless lost behind this "
            "point); 200 µs without progress",
        ),
        (
            {"trigger": "adaptive_timeout", "arrived_packets": None},
            "frames 20-22: went back to PSN 11 on an adaptive timeout, 67 ms after the last try seen here: 3 packets "
            "(2.5 kB) sent again; 200 µs without progress",
        ),
        (
            {"trigger": "spurious", "arrived_packets": 3},
            "frames 20-22: went back to PSN 11 although its answer was on its way: 3 packets (2.5 kB) sent again, "
            "the receiver had all of them; 200 µs without progress",
        ),
        (
            {"trigger": "unknown", "recovery": "selective", "count": 1, "arrived_packets": 1, "bytes": 1024},
            "frames 20-22: repeated PSN 11 alone for a reason that does not show here: 1 packet (1.02 kB) sent again, "
            "the receiver had it (unless lost behind this point); 200 µs without progress",
        ),
        (
            {"trigger": "timeout", "recovery": "selective", "late_packets": 3, "arrived_packets": None, "stall_ns": 0},
            "frames 20-22: repeated a part from PSN 11 on a timeout, 67 ms after the last try seen here: 3 packets "
            "(2.5 kB) sent again, none of them seen here before",
        ),
        (
            {"trigger": "reordering", "late_packets": 3, "extent_ns": 300_000, "extent_packets": 12},
            "frames 20-22: reordering: 3 packets from PSN 11 on came late, by 12 packets or 300 µs; nobody went back",
        ),
        (
            {"trigger": "reordering", "recovery": "none", "count": 1, "extent_packets": 1, "last_frame": 20},
            "frame 20: reordering: PSN 11 came late, by 1 packet; nobody went back",
        ),
    ],
)  # fmt: skip
def test_resends(changes, sentence):
    assert words().sentence([resend("") | changes]) == sentence


def test_a_receiver_that_was_never_heard_is_not_spoken_for():
    assert "arrived" not in words(confirmed=False).sentence([resend("timeout")])


def test_a_capture_point_near_the_receiver_is_sure_of_what_arrived():
    assert "the receiver had 1 of them;" in words(vantage="near_b").sentence([resend("timeout")])
    assert "(unless lost behind this point)" in words(vantage="near_a").sentence([resend("timeout")])


def test_retries_in_a_row_are_one_sentence():
    tries = [resend("timeout", frame=20 + 10 * n, last_frame=22 + 10 * n, wait_ns=10**7 * (n + 1)) for n in range(3)]
    assert words().sentence(tries) == (
        "frames 20 to 42: went back to PSN 11 3 times on timeouts, 10 ms to 30 ms after the last try seen here: "
        "9 packets (7.5 kB) sent again; 600 µs without progress"
    )
    tries = [resend("rnr_nak", reaction_ns=640_000, bytes=0) for _ in range(2)]
    assert "went back to PSN 11 twice after RNR NAKs, 640 µs later: 6 packets sent again;" in words().sentence(tries)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (event("gap"), "frame 20: gap before it: PSN 11 had not passed here"),
        (event("gap", count=4), "frame 20: gap before it: 4 packets from PSN 11 on had not passed here"),
        (event("gap", stream=1), "frame 20: gap before it: PSN 11 came damaged"),
        (event("gap", value=1), "frame 20: gap before it: READ response PSN 11 had not passed here"),
        (event("nak", value=0x60), "frame 20: NAK PSN sequence error, expects PSN 11"),
        (
            event("nak", value=0x62, cause_file=0, cause_frame=16),
            "frame 20: NAK remote access error for PSN 11, the request in frame 16: the QP is in error",
        ),
        (event("nak", value=0x61), "frame 20: NAK invalid request for PSN 11: the QP is in error"),
        (
            event("rnr_nak", value=0x2C, cause_file=0, cause_frame=16),
            "frame 20: RNR NAK (no receive posted) for PSN 11, the request in frame 16, wait 0.64 ms",
        ),
        (event("cnp", count=2), "frame 20: 2 CNPs (congestion notification)"),
        (event("ce", count=1), "frame 20: 1 packet marked CE (congestion experienced)"),
        (
            event("unseen", count=3),
            "frame 20: the receiver has 3 packets up to PSN 11 that never passed here: missing from the capture",
        ),
        (event("new_life"), "frame 20: the QP number is reused, from PSN 11"),
        (event("damaged"), "frame 20: PSN 11 damaged on the way (wrong ICRC): its receiver drops it"),
        (event("cm_rej", value=8), "frame 20: connection refused by CM REJ: invalid service id (reason 8)"),
        (event("cm_req", value=0x1234), "frame 20: CM REQ, communication id 0x1234"),
    ],
)
def test_other_kinds(given, sentence):
    assert words().sentence([given]) == sentence


def test_repetition_is_counted():
    assert words().sentence([event("nak", value=0x60), event("nak", value=0x60, frame=30, last_frame=30)]) == (
        "frames 20 to 30: 2 times NAK PSN sequence error, expects PSN 11"
    )


def test_several_files_name_theirs():
    given = resend("nak", cause_file=1, cause_frame=4, reaction_ns=100_000)
    assert (
        words(files=2)
        .sentence([given])
        .startswith("file 1 frames 20-22: went back to PSN 11 after the NAK in file 2 frame 4, 100 µs later:")
    )


def test_every_kind_and_trigger_has_words():
    for kind in EventKind:
        if kind is not EventKind.RESEND:
            assert words().sentence([event(kind.name.lower())])
    assert [trigger_words(trigger.name.lower()) for trigger in Trigger] == [
        "cause unknown", "NAK", "implied NAK", "RNR NAK", "timeout", "adaptive timeout", "spurious", "reordering",
    ]  # fmt: skip


def test_ways():
    told = words()
    assert [told.way(event("gap", stream=stream)) for stream in (0, 1, -1, 7)] == ["a>b", "b>a", "", ""]
