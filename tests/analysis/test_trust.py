"""How far a capture can be trusted: every reason, and what is no reason."""

from __future__ import annotations

import pandas as pd
import pytest

import roce_dissect as rd
from roce_dissect.analysis.trust import LEVELS, is_doubled, trust_statement

HEALTHY = [
    "rc_mix_ipv4_mtu1024.server.pcap.gz", "rc_mix_ipv6_mtu1024.client.pcap.gz", "cm_rping_ipv4.client.pcap.gz",
    "rc_psn_wrap.client.pcap.gz", "rc_psn_wrap_read.server.pcap.gz", "fmt_dumpcap.pcapng.gz",
    "fmt_nsec_snap80.pcap.gz", "ecn_red_ce.server.pcap.gz", "uc_mix_ipv4.client.pcap.gz", "ud_mix_ipv4.server.pcap.gz",
]  # fmt: skip
#: Lossy networks whose captures lack nothing.
LOSSY = ["imp_loss1_write.server.pcap.gz", "imp_loss1_write.client.pcap.gz", "imp_dup5.server.pcap.gz"]


def capture(**changes):
    plain = {
        "files": [{"error": None, "frames": 1000, "truncated": False}], "roce_packets": 1000, "interrupted": False,
        "twin_packets": 0, "cut_answers": 0, "foreign_packets": 0, "untracked_packets": 0, "unfollowed_messages": 0,
        "events_left_out": 0, "sliced_packets": 0, "damaged_packets": 0, "odd_flushes": 0,
        "selection": None,
        "icrc": {"none": 0, "good": 1000, "bad": 0, "sliced": 0, "placeholder": 0},
        "doubled_packets": 0, "copies_of_each": 1, "copies_differ_in": [], "reordered_packets": 0,
        "unordered_packets": 0, "greatest_step_back_ns": 0, "step_back_file": None, "step_back_frame": None,
    }  # fmt: skip
    return plain | changes


def streams(**changes):
    return pd.DataFrame({"requests": [500, 0], "responses": [0, 500], "unseen_packets": [0, 0]} | changes)


def connections(count=1, **changes):
    plain = {
        "transport": "RC", "paired_by": "cm", "a_to_b_stream": 0, "b_to_a_stream": 1, "a_to_b_packets": 500,
        "b_to_a_packets": 500,
    }  # fmt: skip
    return pd.DataFrame([plain] * (count - 1) + [plain | changes])


def told(capture=None, streams_=None, connections_=None):
    return trust_statement(
        capture or globals()["capture"](),
        streams() if streams_ is None else streams_,
        connections() if connections_ is None else connections_,
    )


@pytest.mark.parametrize("name", HEALTHY + LOSSY)
def test_complete_captures_are_good(samples, name):
    result = rd.analyze(samples / name)
    statement = trust_statement(result.capture, result.streams, result.connections)
    assert statement["level"] == "good", statement


def test_a_capture_without_fault_has_no_reason():
    assert told() == {"level": "good", "reasons": []}


def icrc(**statuses):
    """Counts by what ICRCs say; the rest of 1,000 packets are good."""
    plain = dict.fromkeys(("none", "good", "bad", "sliced", "placeholder"), 0) | statuses
    return {"icrc": plain | {"good": 1000 - sum(statuses.values())}}


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        (
            icrc(none=600, sliced=400),
            {"icrc_not_verified": "the ICRC of 1,000 packets is not verified: a damaged one counts as a good one"},
        ),
        (
            icrc(bad=14) | {"damaged_packets": 14},
            {"damaged_packets": "14 packets with a wrong ICRC: receivers drop them, and so do these tables"},
        ),
        (
            icrc(bad=4) | {"odd_flushes": 4},
            {"odd_flushes": "4 FLUSHes with the wrong ICRC of Linux rxe 6.12, which such hosts take for right"},
        ),
        (
            icrc(bad=7) | {"damaged_packets": 2, "odd_flushes": 1},
            {
                "damaged_packets": "2 packets with a wrong ICRC: receivers drop them, and so do these tables",
                "odd_flushes": "1 FLUSH with the wrong ICRC of Linux rxe 6.12, which such hosts take for right",
                "wrong_icrcs": "4 packets with a wrong ICRC, and none right from there before: no RoCE, or none made",
            },
        ),
        (
            icrc(placeholder=1000),
            {"placeholder_icrcs": "1,000 packets with 0 or the same number in the place of every ICRC"},
        ),
    ],
)
def test_what_icrcs_say_is_for_information(changes, reasons):
    statement = told(capture(**changes))
    assert statement["level"] == "good"
    assert {one["reason"]: one["text"] for one in statement["reasons"]} == reasons


@pytest.mark.parametrize(
    ("changes", "code", "level", "text"),
    [
        ({"cut_answers": 1}, "cut_answers", "limited", "1 answer cut before the AETH: ACK or NAK is not known"),
        ({"cut_answers": 50}, "cut_answers", "poor", "50 answers cut before the AETH: ACK or NAK is not known"),
        (
            {"sliced_packets": 900}, "sliced_packets", "good",
            "900 frames cut by the snap length: sizes are taken from what is left of their headers",
        ),
        (
            {"twin_packets": 500}, "doubled_frames", "poor",
            "500 of 500 requests are here twice: the second ones count as sent again",
        ),
        (
            {"untracked_packets": 1}, "untracked_packets", "limited",
            "1 packet of streams beyond the limit of the tables",
        ),
        (
            {"untracked_packets": 10}, "untracked_packets", "poor",
            "10 packets of streams beyond the limit of the tables",
        ),
        ({"unfollowed_messages": 3}, "unfollowed_messages", "limited", "3 messages not followed: too many at once"),
        (
            {"events_left_out": 3}, "events_left_out", "limited",
            "3 events beyond the limit of the table; counters are exact",
        ),
        (
            {"foreign_packets": 9}, "foreign_packets", "good",
            "9 frames on RoCE's port or Ethertype not judged: no RoCE, damaged, or cut too short",
        ),
        (
            {"foreign_packets": 10}, "foreign_packets", "limited",
            "10 frames on RoCE's port or Ethertype not judged: no RoCE, damaged, or cut too short",
        ),
        (
            {"foreign_packets": 1000}, "foreign_packets", "poor",
            "1,000 frames on RoCE's port or Ethertype not judged: no RoCE, damaged, or cut too short",
        ),
        ({"interrupted": True}, "interrupted", "limited", "interrupted: this is what was read up to then"),
        (
            {"files": [{"error": "x", "frames": 5, "truncated": False}]}, "broken_files", "limited",
            "1 file breaks off: what came after is not in here",
        ),
        (
            {"files": [{"error": "x", "frames": 0, "truncated": False}] * 2}, "unread_files", "limited",
            "2 files could not be read at all",
        ),
        (
            {"files": [{"error": None, "frames": 5, "truncated": True}]}, "unfinished_files", "good",
            "the last record of 1 file is unfinished (a capture still being written?)",
        ),
    ],
)  # fmt: skip
def test_reasons_of_the_capture(changes, code, level, text):
    statement = told(capture(**changes))
    assert statement["level"] == level
    assert [reason["text"] for reason in statement["reasons"] if reason["reason"] == code] == [text]


@pytest.mark.parametrize(("unseen", "level"), [(1, "limited"), (5, "limited"), (6, "poor")])
def test_unseen_packets(unseen, level):
    """Of 500 requests that passed; six more are more than one in a hundred of all."""
    statement = told(streams_=streams(unseen_packets=[unseen, 0]))
    assert statement["level"] == level
    assert statement["reasons"][0]["count"] == unseen
    assert "that their receivers have" in statement["reasons"][0]["text"]


@pytest.mark.parametrize(
    ("of_all", "level"), [(1, "poor"), (2, "poor"), (3, "limited"), (100, "limited"), (101, "good")]
)
def test_one_sided_connections(of_all, level):
    statement = told(connections_=connections(of_all, b_to_a_stream=-1, b_to_a_packets=0, paired_by="none"))
    assert statement["level"] == level
    texts = [reason["text"] for reason in statement["reasons"] if reason["reason"] == "one_sided"]
    assert texts == ["1 connection seen in one direction only: what the other end made of it is a guess"]


@pytest.mark.parametrize(("evidence", "level"), [("only", "limited"), ("udp_sport", "limited"), ("psn", "good")])
def test_weak_pairing(evidence, level):
    statement = told(connections_=connections(paired_by=evidence))
    assert statement["level"] == level
    codes = [reason["reason"] for reason in statement["reasons"]]
    assert ("weakly_paired" in codes) == (level == "limited")
    assert "no_handshake" in codes


def test_what_cannot_be_one_sided_is_not():
    assert told(connections_=connections(transport="UC", b_to_a_stream=-1, b_to_a_packets=0))["level"] == "good"
    alone = connections(a_to_b_stream=-1, b_to_a_stream=-1, a_to_b_packets=0, b_to_a_packets=0)  # refused by the CM
    assert told(connections_=alone)["level"] == "good"


def test_the_gravest_comes_first():
    statement = told(capture(cut_answers=1, twin_packets=500, sliced_packets=1))
    assert [reason["reason"] for reason in statement["reasons"]] == [
        "doubled_frames", "cut_answers", "sliced_packets",
    ]  # fmt: skip
    assert statement["level"] == LEVELS[-1]


def test_nothing_at_all():
    empty = told(capture(roce_packets=0), streams().iloc[:0], connections().iloc[:0])
    assert empty == {"level": "good", "reasons": []}


@pytest.mark.parametrize(
    ("twins", "requests", "doubled"), [(9, 9, False), (10, 40, True), (24, 100, False), (25, 100, True)]
)
def test_what_counts_as_doubled(twins, requests, doubled):
    assert is_doubled(capture(twin_packets=twins), requests) is doubled


def test_what_was_left_out_informs_and_shares_are_of_what_was_chosen():
    """Half of the 60 packets that were chosen are foreign: poor, though they are few of all that were read."""
    chosen = {"chosen_packets": 60, "left_out_packets": 940, "limited": True}
    statement = told(capture(selection=chosen, foreign_packets=30))
    assert statement["level"] == "poor"
    assert [(one["reason"], one["count"]) for one in statement["reasons"]] == [
        ("foreign_packets", 30), ("left_out_packets", 940), ("limited", 1),
    ]  # fmt: skip
    assert told(capture(selection=chosen | {"left_out_packets": 0, "limited": False})) == {
        "level": "good",
        "reasons": [],
    }
    assert told(capture(selection=chosen))["level"] == "good"


# -- copies of packets, and the order of time --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ways", "differ"),
    [
        ([], "in time, if at all: merged captures?"), (["vlan_tags"], "in VLAN tags"),
        (["file", "mac_addresses", "tunnel", "ttl"], "in the file, MAC addresses, the tunnel, TTL"),
    ],
)  # fmt: skip
def test_copies_that_were_left_out_are_no_harm(ways, differ):
    assert told(capture(doubled_packets=1333, copies_of_each=3, copies_differ_in=ways)) == {
        "level": "good",
        "reasons": [
            {
                "reason": "doubled_packets",
                "count": 1333,
                "text": f"nearly each packet is here 3 times (the copies differ {differ}): "
                "of 1,333 packets an earlier sighting counts",
            }
        ],
    }


def test_copies_that_could_not_be_left_out_are():
    statement = told(capture(doubled_packets=10, copies_of_each=2, twin_packets=500))
    assert statement["level"] == "poor"
    assert [one["reason"] for one in statement["reasons"]] == ["doubled_frames", "doubled_packets"]


def test_packets_that_were_put_in_order_are_no_harm():
    statement = told(capture(reordered_packets=1))
    assert (statement["level"], statement["reasons"][0]["text"]) == (
        "good", "1 packet stood a little behind later ones: put in order of time",
    )  # fmt: skip


@pytest.mark.parametrize(("files", "where"), [(1, "frame 12,345"), (2, "frame 12,345 of b.pcap")])
def test_time_that_runs_backwards(files, where):
    listed = [{"path": name, "error": None, "frames": 9, "truncated": False} for name in ("a.pcap", "b.pcap")[-files:]]
    statement = told(
        capture(
            files=listed,
            unordered_packets=400,
            greatest_step_back_ns=3 * 3600 * 10**9,
            step_back_file=files - 1,
            step_back_frame=12345,
        )
    )
    assert statement["level"] == "limited"
    assert statement["reasons"][0]["text"] == (
        f"time runs backwards by 3 h 0 min at {where}, and 400 packets come behind later ones: files put one behind "
        "the other, or a clock that was set? mergecap or reordercap puts them in order"
    )
