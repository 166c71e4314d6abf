"""The tracker: hand-worked cases beyond those of docs/semantics.md, in both forms.

Expected values follow from the page's rules, worked out beside each case.
"""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect.flows import states
from roce_dissect.flows.flow_table import class_table
from roce_dissect.spec import headers
from roce_dissect.terms import Standing

WRAP = 1 << 24


def ack(p, psn, ms, syndrome=0x1F, **more):
    return p("ACKNOWLEDGE", psn, ms, "B", syndrome=syndrome, **more)


# -- sequence ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1, WRAP - 1, WRAP - 3, 1 << 23, (1 << 23) - 1])
def test_wrap_anywhere(p, track, first):
    """Plain order, a gap and its filling, across every edge of the 24 bits."""
    result = track([p("SEND_ONLY", first + step, step) for step in (0, 1, 4, 2, 3, 5)])
    assert result.verdicts == ["first", "new", "gap", "late", "late", "new"]
    assert result.missing == [0, 0, 2, 0, 0, 0]
    assert result.out.psn_ext[:6].tolist() == [WRAP + first + step for step in (0, 1, 4, 2, 3, 5)]


def test_late_then_resent(p, track):
    """A hole is filled once: 1 and 3 of the hole 1-3, then again; 2 stays open until it comes."""
    result = track([p("SEND_ONLY", psn, ms) for ms, psn in enumerate((0, 4, 1, 3, 1, 3, 2, 2, 4, 5))])
    assert result.verdicts == [
        "first", "gap", "late", "late", "resent", "resent", "late", "resent", "resent", "new",
    ]  # fmt: skip
    assert result.word(states.GAPS) == 1
    assert result.word(states.MISSING) == 3
    assert result.word(states.LATE_PACKETS) == 3
    assert result.word(states.RESENT_PACKETS) == 4
    assert result.word(states.HOLE_COUNT) == 0


def test_several_holes(p, track):
    """Holes 1-2, 4-5, 7-8, filled from the middle outwards, with what was seen between them."""
    order = (0, 3, 6, 9, 4, 8, 1, 3, 5, 2, 7, 6, 4, 10)
    words = [
        "first",
        "gap",
        "gap",
        "gap",
        "late",
        "late",
        "late",
        "resent",
        "late",
        "late",
        "late",
        "resent",
        "resent",
        "new",
    ]
    assert track([p("SEND_ONLY", psn, ms) for ms, psn in enumerate(order)]).verdicts == words


def test_older_than_the_first_packet(p, track):
    result = track([p("SEND_ONLY", 100, 0), p("SEND_ONLY", 98, 1), p("SEND_ONLY", 101, 2)])
    assert result.verdicts == ["first", "resent", "new"]


def test_a_late_read_fills_its_range(p, track):
    """A READ of three PSNs that fills part of a hole takes all three out of it."""
    packets = [
        p("WRITE_FIRST", 0, 0, payload_len=1024),
        p("WRITE_LAST", 1, 1, payload_len=1),
        p("SEND_ONLY", 6, 2),
        p("READ_REQUEST", 2, 3, dma_len=3000),
        p("SEND_ONLY", 3, 4),
        p("SEND_ONLY", 5, 5),
    ]
    result = track(packets)
    assert result.verdicts == ["first", "new", "gap", "late", "resent", "late"]
    assert result.missing[2] == 4


def test_figures_of_a_stream(p, track):
    """Payload of all packets, and of what was new here: 100 + 200 (gap) + 50 (late), not the 50 sent again."""
    packets = [
        p("SEND_ONLY", 0, 0, payload_len=100),
        p("SEND_ONLY", 2, 1, payload_len=200),
        p("SEND_ONLY", 1, 2, payload_len=50),
        p("SEND_ONLY", 1, 3, payload_len=50),
    ]
    result = track(packets)
    assert result.word(states.PACKETS) == 4
    assert result.word(states.BYTES) == 4 * 58 + 400
    assert result.word(states.PAYLOAD_BYTES) == 400
    assert result.word(states.GOODPUT_BYTES) == 350
    assert result.word(states.REQUESTS) == 4


# -- runs and stall ------------------------------------------------------------------------------------------------


def test_stall_is_since_the_last_progress(p, track):
    """Progress at 0 and 1 ms; sent again at 71 and 72: the run lasts 1 ms, the stall 71, idling is no part."""
    packets = [p("SEND_ONLY", psn, ms) for psn, ms in ((0, 0), (1, 1), (0, 71), (1, 72), (2, 500))]
    result = track(packets)
    [event] = result.flows.events.tolist()
    assert result.events == ["resend@3-4"]
    assert event[states.EVENT_LAST_TIME] - event[states.EVENT_TIME] == 1_000_000
    assert event[states.EVENT_STALL] == 71_000_000 == result.word(states.STALL)
    assert event[states.EVENT_COUNT] == 2
    assert event[states.EVENT_VALUE] == 0
    assert event[states.EVENT_PSN] == 0


def test_a_run_counts_its_late_packets(p, track):
    result = track([p("SEND_ONLY", psn, ms) for ms, psn in enumerate((0, 2, 1, 2, 3))])
    resend = result.flows.events[1].tolist()
    assert result.events == ["gap@2", "resend@3-4"]
    assert (resend[states.EVENT_COUNT], resend[states.EVENT_VALUE]) == (2, 1)
    assert result.word(states.EPISODES) == 1


def test_an_open_run_is_told_at_the_end(p, track):
    packets = [p("SEND_ONLY", psn, ms) for ms, psn in enumerate((0, 1, 0, 1))]
    assert track(packets, finish=False).events == []
    assert track(packets).events == ["resend@3-4"]


def test_time_that_runs_backwards_costs_no_stall(p, track):
    result = track([p("SEND_ONLY", 0, 100), p("SEND_ONLY", 0, 50), p("SEND_ONLY", 1, 60)])
    assert result.events == ["resend@2"]
    assert result.word(states.STALL) == 0


def test_read_responses_are_progress(p, track):
    """Sent again at 10 ms after progress at 0; responses come at 1 and 5: the stall is 5 ms, not 10."""
    packets = [
        p("WRITE_FIRST", 8, 0, payload_len=64),
        p("WRITE_LAST", 9, 0),
        p("READ_REQUEST", 10, 0, dma_len=64 * 4),
        p("READ_RESPONSE_FIRST", 10, 1, "B", payload_len=64),
        p("READ_RESPONSE_MIDDLE", 11, 5, "B", payload_len=64),
        p("READ_REQUEST", 12, 10, dma_len=64 * 2),
        p("SEND_ONLY", 14, 20),
    ]
    result = track(packets)
    assert result.events == ["resend@6"]
    assert result.word(states.STALL) == 5_000_000


def test_responses_within_a_run(p, track):
    """Asked again at 10 and 30, a new response at 20: two episodes, 10 ms up to the first, 10 ms after the response."""
    packets = [
        p("WRITE_FIRST", 8, 0, payload_len=64),
        p("WRITE_LAST", 9, 0),
        p("READ_REQUEST", 10, 0, dma_len=64 * 4),
        p("READ_RESPONSE_FIRST", 10, 0, "B", payload_len=64),
        p("READ_REQUEST", 11, 10, dma_len=64 * 3),
        p("READ_RESPONSE_FIRST", 11, 20, "B", payload_len=64),
        p("READ_REQUEST", 12, 30, dma_len=64 * 2),
        p("SEND_ONLY", 14, 90),
    ]
    result = track(packets)
    assert result.events == ["resend@5", "resend@7"]
    assert result.word(states.STALL) == 20_000_000


# -- copies --------------------------------------------------------------------------------------------------------


def twice(p, ms, **more):
    """Two packets with identifications 1 and 2; the second once more after `ms`."""
    return [
        p("SEND_ONLY", 0, 0, ip_id=1, icrc=11),
        p("SEND_ONLY", 1, 1, ip_id=2, icrc=22),
        p("SEND_ONLY", 1, 1 + ms, **({"ip_id": 2, "icrc": 22} | more)),
    ]


@pytest.mark.parametrize(
    ("ms", "more", "verdict"),
    [
        (0, {}, "copy"),
        (1, {}, "copy"),
        (1.001, {}, "resent"),  # too late
        (-0.5, {}, "resent"),  # before the original
        (0.1, {"ip_id": 3}, "resent"),  # the sender's own
        (0.1, {"icrc": 23}, "resent"),
    ],
)
def test_copy(p, track, ms, more, verdict):
    result = track(twice(p, ms, **more))
    assert result.verdicts == ["first", "new", verdict]
    assert result.accepted[2] == "duplicate"
    assert result.events == ([] if verdict == "copy" else ["resend@3"])
    assert result.word(states.COPIES) == (verdict == "copy")


def test_no_copy_where_identifications_do_not_vary(p, track):
    packets = [p("SEND_ONLY", psn, 0, ip_id=7, icrc=9) for psn in (0, 1, 1)]
    assert track(packets).verdicts == ["first", "new", "resent"]


def test_no_copy_over_ipv6(p, track):
    present = headers.HAS_ETH | headers.HAS_IPV6 | headers.HAS_UDP | headers.HAS_BTH | headers.HAS_ICRC
    packets = [p("SEND_ONLY", psn, 0, ip_id=ip_id, icrc=9, present=present) for psn, ip_id in ((0, 1), (1, 2), (1, 2))]
    assert track(packets).verdicts == ["first", "new", "resent"]


def test_sliced_copy_by_its_identification(p, track):
    """The ICRC was not captured: what stands in its column is nothing."""
    present = headers.HAS_ETH | headers.HAS_IPV4 | headers.HAS_UDP | headers.HAS_BTH
    packets = [
        p("SEND_ONLY", psn, 0, ip_id=i, icrc=k, present=present) for k, (psn, i) in enumerate(((0, 1), (1, 2), (1, 2)))
    ]
    assert track(packets).verdicts == ["first", "new", "copy"]


def test_a_copy_of_a_late_packet_is_a_copy(p, track):
    packets = [p("SEND_ONLY", psn, 0, ip_id=i) for i, psn in ((1, 0), (2, 2), (3, 1), (3, 1))]
    assert track(packets).verdicts == ["first", "gap", "late", "copy"]


# -- READ ranges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "span"),
    [(0, 1), (1, 1), (64, 1), (65, 1), (1024, 1), (1025, 2), (2048, 2), (3000, 3), (0x7FFFFFFF, 2097152)],
)
def test_read_with_known_mtu(p, track, length, span):
    """max(1, ceil(L / 1024)) PSNs."""
    known = [p("WRITE_FIRST", 0, 0, payload_len=1024), p("WRITE_LAST", 1, 0, payload_len=1)]
    read = p("READ_REQUEST", 2, 1, dma_len=length)
    assert track([*known, read, p("SEND_ONLY", 2 + span, 2)]).verdicts[3] == "new"
    beyond = track([*known, read, p("SEND_ONLY", 3 + span, 2)])
    assert (beyond.verdicts[3], beyond.missing[3]) == ("gap", 1)
    if span > 1:
        assert track([*known, read, p("SEND_ONLY", 1 + span, 2)]).verdicts[3] == "resent"


@pytest.mark.parametrize(("length", "most"), [(64, 1), (65, 2), (3000, 47), (6400, 100)])
def test_read_with_unknown_mtu(p, track, length, most):
    """Up to ceil(L / 64) PSNs; the responder model takes the jump as well."""
    for jump in (1, most):
        result = track([p("READ_REQUEST", 0, 0, dma_len=length), p("SEND_ONLY", jump, 1), p("SEND_ONLY", jump + 1, 2)])
        assert result.verdicts == ["first", "new", "new"]
        assert result.accepted == ["accepted"] * 3
    result = track([p("READ_REQUEST", 0, 0, dma_len=length), p("SEND_ONLY", most + 1, 1)])
    assert (result.verdicts[1], result.missing[1]) == ("gap", 1)


def test_read_of_unknown_length(p, track):
    """RETH cut off: up to 2**16 PSNs."""
    present = headers.HAS_BTH | headers.HAS_IPV4
    read = p("READ_REQUEST", 0, 0, present=present)
    assert track([read, p("SEND_ONLY", 1 << 16, 1)]).verdicts[1] == "new"
    assert track([read, p("SEND_ONLY", (1 << 16) + 2, 1)]).verdicts[1] == "gap"


def test_mtu_of_the_responses(p, track):
    """The responses in the other direction tell the MTU of the next READ's range: 3000 / 512 = 6."""
    packets = [
        p("READ_REQUEST", 0, 0, dma_len=3000),
        p("READ_RESPONSE_FIRST", 0, 1, "B", payload_len=512),
        *[p("READ_RESPONSE_MIDDLE", n, 1, "B", payload_len=512) for n in range(1, 5)],
        p("READ_RESPONSE_LAST", 5, 1, "B", payload_len=440),
        p("READ_REQUEST", 6, 2, dma_len=3000),
        p("SEND_ONLY", 13, 3),
    ]
    result = track(packets)
    assert result.verdicts[-1] == "gap"
    assert result.missing[-1] == 1
    assert "unseen" not in " ".join(result.events)


def test_mtu_of_the_host_pair(p, track, build):
    """Another QP between the same hosts has shown 1024; a small ONLY packet shows nothing."""
    packets = [
        p("WRITE_FIRST", 5, 0, payload_len=1024, dest_qp=99),
        p("SEND_ONLY", 0, 1, payload_len=10),
        p("READ_REQUEST", 1, 1, dma_len=3000),
        p("SEND_ONLY", 5, 2),
    ]
    result = track(packets)
    assert (result.verdicts[3], result.missing[3]) == ("gap", 1)


def test_the_streams_own_mtu_first(p, track):
    """256 on this QP, 1024 on another: 600 bytes take three PSNs here."""
    packets = [
        p("WRITE_FIRST", 5, 0, payload_len=1024, dest_qp=99), p("WRITE_FIRST", 0, 1, payload_len=256),
        p("WRITE_LAST", 1, 1), p("READ_REQUEST", 2, 2, dma_len=600), p("SEND_ONLY", 5, 3), p("SEND_ONLY", 7, 3),
    ]  # fmt: skip
    assert track(packets).verdicts[3:] == ["new", "new", "gap"]


def test_the_peers_mtu_before_the_pairs(p, track):
    """The responses to this QP carry 256, another QP 1024: the READ's range follows the responses."""
    packets = [
        p("WRITE_FIRST", 5, 0, payload_len=1024, dest_qp=99),
        p("READ_REQUEST", 700, 1, dma_len=64),
        p("READ_RESPONSE_ONLY", 700, 2, "B", payload_len=64),
        p("READ_RESPONSE_FIRST", 700, 2, "B", payload_len=256),
        p("READ_REQUEST", 701, 3, dma_len=600),
        p("SEND_ONLY", 704, 4),
        p("SEND_ONLY", 706, 4),
    ]
    assert track(packets).verdicts[4:] == ["new", "new", "gap"]


def test_fpga_mtu(p, track):
    """A path MTU of 64 is believed: 640 bytes take ten PSNs."""
    packets = [
        p("WRITE_FIRST", 0, 0, payload_len=64),
        p("WRITE_LAST", 1, 0, payload_len=64),
        p("READ_REQUEST", 2, 1, dma_len=640),
        p("SEND_ONLY", 12, 2),
        p("SEND_ONLY", 14, 2),
    ]
    assert track(packets).verdicts == ["first", "new", "new", "new", "gap"]


@pytest.mark.parametrize("operation", ["COMPARE_SWAP", "FETCH_ADD", "FLUSH", "ATOMIC_WRITE", "SEND_ONLY_INV"])
def test_one_psn_each(p, track, operation):
    result = track([p(operation, 10, 0), p(operation, 11, 1), p("SEND_ONLY", 13, 2)])
    assert result.verdicts == ["first", "new", "gap"]


# -- the responder -------------------------------------------------------------------------------------------------


def test_one_nak_for_an_episode(p, track):
    """Two losses in one flight are one episode; a new loss after the recovery is another."""
    packets = [p("SEND_ONLY", psn, psn / 100) for psn in (0, 2, 4, 5)]
    packets += [ack(p, 1, 1, 0x60)]
    packets += [p("SEND_ONLY", psn, 2 + psn / 100) for psn in (1, 2, 3, 4, 5, 6, 8)]
    packets += [ack(p, 7, 3, 0x60), p("SEND_ONLY", 7, 4), p("SEND_ONLY", 8, 4), ack(p, 8, 5)]
    result = track(packets)
    assert result.accepted == [
        "accepted", "out_of_sequence", "discarded", "discarded", "none",
        "accepted", "accepted", "accepted", "accepted", "accepted", "accepted", "out_of_sequence", "none",
        "accepted", "accepted", "none",
    ]  # fmt: skip
    assert result.word(states.OUT_OF_SEQ_REQUEST, 0) == 2
    assert result.word(states.DUPLICATE_REQUEST, 0) == 0
    assert result.word(states.SEQUENCE_NAKS, 1) == 2


def test_nak_that_the_capture_does_not_explain(p, track):
    """Frames lost behind the capture point, twice in a row: each NAK is an episode."""
    packets = [p("SEND_ONLY", psn, 0) for psn in range(3)]
    packets += [ack(p, 1, 1, 0x60)]
    packets += [p("SEND_ONLY", psn, 2) for psn in (1, 2)]
    packets += [ack(p, 1, 3, 0x60)]
    packets += [p("SEND_ONLY", psn, 4) for psn in (1, 2, 3)]
    packets += [ack(p, 3, 5)]
    result = track(packets)
    assert result.accepted[4:6] == ["accepted", "accepted"]
    assert result.accepted[7:10] == ["accepted", "accepted", "accepted"]
    assert result.word(states.OUT_OF_SEQ_REQUEST, 0) == 2
    assert result.word(states.DUPLICATE_REQUEST, 0) == 0


def test_rnr_without_followers(p, track):
    packets = [
        p("SEND_ONLY", 5, 0), ack(p, 5, 1, 0x20 | 12), p("SEND_ONLY", 5, 2), ack(p, 5, 3), p("SEND_ONLY", 6, 4),
    ]  # fmt: skip
    result = track(packets)
    assert result.accepted[2] == "accepted"
    assert result.word(states.OUT_OF_SEQ_REQUEST, 0) == result.word(states.DUPLICATE_REQUEST, 0) == 0
    assert result.word(states.RNR_NAKS, 1) == 1
    assert result.events == ["rnr_nak@2", "resend@3"]


@pytest.mark.parametrize("syndrome", [0x61, 0x62, 0x63])
def test_fatal_nak_takes_back_what_followed(p, track, syndrome):
    """30 was refused; the 31 that passed before the NAK was seen, and came again, was counted and is taken back."""
    packets = [
        p("SEND_ONLY", 29, 0), p("WRITE_ONLY", 30, 0.1), p("SEND_ONLY", 31, 0.2), p("SEND_ONLY", 31, 0.3),
        ack(p, 29, 0.4), ack(p, 30, 0.5, syndrome), p("SEND_ONLY", 32, 1), p("SEND_ONLY", 30, 2),
    ]  # fmt: skip
    result = track(packets)
    assert result.accepted[3] == "duplicate"
    assert result.accepted[6:] == ["qp_error", "qp_error"]
    assert result.word(states.DUPLICATE_REQUEST, 0) == 0
    assert result.word(states.FLAGS, 0) & states.DEAD
    assert result.word(states.NAKS, 1) == 1
    assert result.word(states.SEQUENCE_NAKS) == 0


@pytest.mark.parametrize("syndrome", [0x64, 0x65, 0x7F, 0x40, 0x5F])
def test_other_syndromes_end_nothing(p, track, syndrome):
    result = track([p("SEND_ONLY", 1, 0), ack(p, 1, 1, syndrome), p("SEND_ONLY", 2, 2)])
    assert result.accepted[2] == "accepted"


def test_reserved_bit_of_the_syndrome(p, track):
    """Bit 7 is reserved: 0xe2 is the NAK 0x62."""
    assert track([p("SEND_ONLY", 1, 0), ack(p, 1, 1, 0xE2), p("SEND_ONLY", 2, 2)]).accepted[2] == "qp_error"


def test_ack_in_an_open_read_range_is_no_gap_of_the_capture(p, track):
    """Responses 0 to 2 to a READ with unknown MTU: the range is three PSNs, nothing is unseen."""
    packets = [
        p("READ_REQUEST", 0, 0, dma_len=3000),
        p("READ_RESPONSE_FIRST", 0, 1, "B", payload_len=1024),
        p("READ_RESPONSE_MIDDLE", 1, 1, "B", payload_len=1024),
        p("READ_RESPONSE_LAST", 2, 1, "B", payload_len=952),
        p("SEND_ONLY", 3, 2),
        p("SEND_ONLY", 5, 3),
    ]
    result = track(packets)
    assert result.verdicts[4:] == ["new", "gap"]
    assert result.accepted[4:] == ["accepted", "out_of_sequence"]
    assert result.events == ["gap@6"]


@pytest.mark.parametrize("length", [128, 3 * 64])
def test_an_answer_anywhere_in_the_open_range(p, track, length):
    """Of two or three possible PSNs, the first and the last behind the certain one are answered: none is unseen."""
    for psn in (1, length // 64 - 1):
        packets = [p("READ_REQUEST", 0, 0, dma_len=length), p("READ_RESPONSE_ONLY", 0, 1, "B", payload_len=64)]
        result = track([*packets, ack(p, psn, 2), p("SEND_ONLY", psn + 1, 3)])
        assert result.word(states.UNSEEN_PACKETS) == 0
        assert (result.verdicts[3], result.accepted[3]) == ("new", "accepted")


def test_an_old_ack_takes_no_nak_back(p, track):
    """11 is missing and a NAK due; the ACK for 10, which was on its way, says nothing about that."""
    result = track([p("SEND_ONLY", 10, 0), p("SEND_ONLY", 12, 1), ack(p, 10, 2), p("SEND_ONLY", 13, 3)])
    assert result.accepted[3] == "discarded"
    assert result.word(states.OUT_OF_SEQ_REQUEST, 0) == 1


def test_every_rnr_with_followers_is_an_episode(p, track):
    packets = []
    for ms in (0, 10, 20):
        packets += [p("SEND_ONLY", 20, ms), p("SEND_ONLY", 21, ms), ack(p, 20, ms + 1, 0x2C), ack(p, 20, ms + 2, 0x60)]
    assert track(packets).word(states.OUT_OF_SEQ_REQUEST, 0) == 3


def test_response_beyond_what_was_seen(p, track):
    """An ACK for 9 where only 0 passed: nine packets are the capture's loss, none is counted out of sequence."""
    result = track([p("SEND_ONLY", 0, 0), ack(p, 0, 1), p("SEND_ONLY", 1, 2), ack(p, 9, 3), p("SEND_ONLY", 10, 4)])
    assert result.verdicts == ["first", "first", "new", "new", "gap"]
    assert result.accepted[4] == "accepted"
    assert result.word(states.UNSEEN_PACKETS, 0) == 8
    assert result.word(states.OUT_OF_SEQ_REQUEST, 0) == 0
    unseen = result.flows.events[0].tolist()
    assert result.events[0] == "unseen@4"
    assert [unseen[word] for word in (states.EVENT_PSN, states.EVENT_COUNT, states.EVENT_VALUE)] == [9, 8, 0]


def test_rnr_for_what_was_never_sent(p, track):
    """An RNR NAK beyond the expected PSN moves nothing."""
    result = track([p("SEND_ONLY", 5, 0), ack(p, 5, 1), ack(p, 9, 2, 0x2C), p("SEND_ONLY", 6, 3)])
    assert result.accepted[3] == "accepted"


def test_naks_owed_are_owed_once(p, track):
    """The NAK that an RNR's followers bring is told; the next one, which nothing explains, is an episode of its own."""
    packets = [
        p("SEND_ONLY", 20, 0), p("SEND_ONLY", 21, 0), ack(p, 20, 1, 0x2C), ack(p, 20, 1, 0x60),
        p("SEND_ONLY", 20, 2), p("SEND_ONLY", 21, 2), p("SEND_ONLY", 22, 2), ack(p, 21, 3, 0x60),
        p("SEND_ONLY", 21, 4), p("SEND_ONLY", 22, 4), ack(p, 22, 5),
    ]  # fmt: skip
    result = track(packets)
    assert result.accepted[8:10] == ["accepted", "accepted"]
    assert result.word(states.OUT_OF_SEQ_REQUEST, 0) == 2


def test_nothing_is_owed_after_unseen_packets(p, track):
    """A gap that was the capture's takes its NAK back; the NAK of a real loss afterwards counts."""
    packets = [
        p("SEND_ONLY", 50, 0), ack(p, 50, 1), p("SEND_ONLY", 52, 2), ack(p, 52, 3), p("SEND_ONLY", 53, 4),
        ack(p, 53, 5, 0x60), p("SEND_ONLY", 53, 6), ack(p, 53, 7),
    ]  # fmt: skip
    result = track(packets)
    assert result.accepted[4:7] == ["accepted", "none", "accepted"]
    assert result.word(states.OUT_OF_SEQ_REQUEST, 0) == 1


def test_patience(p, track):
    """After 16,384 PSNs beyond a gap that nobody complains of, the gap was the capture's, and the model goes on."""
    packets = [p("SEND_ONLY", 0, 0), *[p("SEND_ONLY", psn, psn / 1000) for psn in range(2, 16384 + 20)]]
    result = track(packets)
    turn = result.accepted.index("accepted", 1)
    assert packets[turn]["psn"] == pytest.approx(16384, abs=3)
    assert set(result.accepted[2 : turn - 1]) == {"discarded"}
    assert result.word(states.OUT_OF_SEQ_REQUEST) == 0
    assert [event.split("@")[0] for event in result.events] == ["gap", "unseen"]


# -- linking -------------------------------------------------------------------------------------------------------


def test_ambiguous_answers_link_nothing(p, track):
    """Two streams asked for PSN 5: an answer with it may belong to either."""
    packets = [p("SEND_ONLY", 5, 0, dest_qp=17), p("SEND_ONLY", 5, 0, dest_qp=27), ack(p, 5, 1)]
    result = track(packets)
    assert result.flows.streams[:, states.PEER].tolist() == [0, 0, 0]


def test_the_only_one_that_asked(p, track):
    packets = [p("SEND_ONLY", 5, 0, dest_qp=17), p("SEND_ONLY", 500, 0, dest_qp=27), ack(p, 500, 1)]
    result = track(packets)
    assert result.flows.streams[:, states.PEER].tolist() == [0, 3, 2]
    assert result.flows.streams[1, states.PAIRED] == 3  # terms.PairedBy.PSN


def test_tries_double(p, track):
    """The 1st, 2nd, 4th and 8th response are compared; the 5th, which would fit, is not; a NAK always is."""
    asked = [p("SEND_ONLY", 1000, 2)]
    lost = [ack(p, 5, n / 10) for n in range(4)]  # four answers to nobody
    linked = track([*lost, *asked, ack(p, 1000, 3)])
    assert linked.word(states.PEER) == 0
    nak = track([*lost, *asked, ack(p, 1000, 3, 0x62)])
    assert nak.word(states.PEER) != 0
    for count in (1, 2, 3, 4):  # the 5th to 8th
        result = track([*lost, *asked, *[ack(p, 1000, 3 + n) for n in range(count)]])
        assert (result.word(states.PEER) != 0) == (count == 4)


def test_uc_streams_are_never_answered(p, track):
    result = track([p("UC_SEND_ONLY", 5, 0), ack(p, 5, 1)])
    assert result.word(states.PEER) == 0


def test_both_ends_request(p, track):
    """Requests and responses of one stream are two spaces: B's requests begin at 7, its answers carry A's 100."""
    packets = [
        p("SEND_ONLY", 100, 0), p("SEND_ONLY", 7, 0, "B"), ack(p, 100, 1),
        p("ACKNOWLEDGE", 7, 1, "A"), p("SEND_ONLY", 8, 2, "B"), p("SEND_ONLY", 101, 2), ack(p, 101, 3),
        p("ACKNOWLEDGE", 8, 3, "A"),
    ]  # fmt: skip
    result = track(packets)
    assert result.verdicts == ["first", "first", "first", "first", "new", "new", "new", "new"]
    assert result.word(states.GAPS) == result.word(states.RESENT_PACKETS) == 0
    assert result.out.role[:8].tolist() == [1, 1, 2, 2, 1, 1, 2, 2]


# -- lives ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("jump", "lives"), [((1 << 18) - 1, 1), (1 << 18, 2), (-(1 << 18), 2), (-(1 << 18) + 1, 1)])
def test_impossible_psn(p, track, jump, lives):
    """`jump` from the PSN that would be next."""
    result = track([p("SEND_ONLY", 5_000_000, 0), p("SEND_ONLY", 5_000_001 + jump, 1)])
    assert len(result.flows.streams) == lives
    assert result.stream == [0, lives - 1]
    if lives == 2:
        assert result.events == ["new_life@2"]
        assert result.flows.streams[:, states.LIFE].tolist() == [1, 2]
        assert result.verdicts == ["first", "first"]


def test_the_other_direction_begins_anew(p, track):
    """A's QP is used again: B's answers to the new life are a new stream, too."""
    packets = [
        p("SEND_ONLY", 0, 0), ack(p, 0, 1), p("SEND_ONLY", 5_000_000, 2), ack(p, 5_000_000, 3),
        p("SEND_ONLY", 5_000_001, 4), ack(p, 5_000_001, 5),
    ]  # fmt: skip
    result = track(packets)
    assert result.stream == [0, 1, 2, 3, 2, 3]
    assert result.verdicts == ["first", "first", "first", "first", "new", "new"]
    assert result.flows.streams[:, states.PEER].tolist() == [2, 1, 4, 3]


def test_torn_down_then_reused(p, track, build):
    """After a teardown a PSN that the stream had is a resend, any other a new life, however near."""

    def run(psn):
        result = track([p("SEND_ONLY", n, 0) for n in (10, 11, 12)], finish=False)
        result.flows.close(build.A, build.B, 17)
        later = build.columns([p("SEND_ONLY", psn, 1, frame_key=4)])
        out = build.Verdicts.empty(2)
        result.flows.feed(later, 1, (), out)
        return len(result.flows.streams), int(out.verdict[0])

    assert run(13) == (1, 2)
    assert run(11) == (1, 5)
    assert run(15) == (2, 1)
    assert run(9) == (2, 1)


def test_a_long_read_asked_again_from_its_start(p, track):
    """A READ of 2^18 PSNs and more jumps back by its range: the same life. Before its start it is another."""

    def run(psn):
        packets = [p("WRITE_FIRST", 9, 0, payload_len=1024), p("READ_REQUEST", 10, 1, dma_len=1 << 30)]
        return track([*packets, p("SEND_ONLY", 10 + (1 << 20), 2), p("READ_REQUEST", psn, 3, dma_len=1 << 30)])

    assert run(10).verdicts == ["first", "new", "new", "resent"]
    assert run(9).verdicts == ["first", "new", "new", "first"]


def test_an_old_answer_does_not_spoil_the_next_life(p, track):
    """An ACK of the former life opens the new response stream; the READ responses that follow are new all the same."""
    packets = [
        p("SEND_ONLY", 5_000_000, 0), ack(p, 5_000_000, 1), p("SEND_ONLY", 5_000_001, 2),
        p("READ_REQUEST", 60, 10, dma_len=100), ack(p, 5_000_001, 11),
        p("READ_RESPONSE_ONLY", 60, 12, "B", payload_len=100),
        p("READ_REQUEST", 61, 20, dma_len=100), p("READ_RESPONSE_ONLY", 61, 21, "B", payload_len=100),
    ]  # fmt: skip
    result = track(packets)
    assert result.verdicts[5] in ("first", "new")
    assert result.verdicts[7] == "new"
    assert result.word(states.GOODPUT_BYTES, 3) == 200


# -- responses -----------------------------------------------------------------------------------------------------


def test_response_verdicts(p, track):
    packets = [
        p("READ_REQUEST", 10, 0, dma_len=64 * 6),
        p("READ_RESPONSE_FIRST", 10, 1, "B", payload_len=64),
        p("READ_RESPONSE_MIDDLE", 11, 1, "B", payload_len=64),
        p("READ_RESPONSE_MIDDLE", 14, 1, "B", payload_len=64),
        p("READ_RESPONSE_LAST", 15, 1, "B", payload_len=64),
        p("READ_RESPONSE_MIDDLE", 12, 2, "B", payload_len=64),
        ack(p, 20, 3),
        ack(p, 20, 3),
        ack(p, 18, 3),
    ]
    result = track(packets)
    assert result.verdicts[1:] == ["first", "new", "gap", "new", "resent", "new", "resent", "resent"]
    assert result.missing == [0, 0, 0, 2, 0, 0, 0, 0, 0]
    assert result.word(states.RESPONSE_GAPS, 1) == 2
    assert result.accepted[1:] == ["none"] * 8
    # of the responses that were new here
    assert result.word(states.GOODPUT_BYTES, 1) == 4 * 64


def test_responses_are_unwrapped_beside_their_requests(p, track):
    """Before and after the 24 bits wrap, and also when the first response seen is a later one."""
    packets = [p("SEND_ONLY", psn, 0) for psn in (WRAP - 2, WRAP - 1, 0, 1)]
    packets += [ack(p, psn, 1) for psn in (0, 1)] + [p("SEND_ONLY", 2, 2), ack(p, 2, 3)]
    extended = track(packets).out.psn_ext[:8].tolist()
    assert extended[:4] == [2 * WRAP - 2, 2 * WRAP - 1, 2 * WRAP, 2 * WRAP + 1]
    assert extended[4:] == [2 * WRAP, 2 * WRAP + 1, 2 * WRAP + 2, 2 * WRAP + 2]


def test_responses_without_requests(p, track):
    """Nothing to unwrap them beside: from their own first PSN plus 2**24."""
    assert track([ack(p, 7, 0), ack(p, 9, 1)]).out.psn_ext[:2].tolist() == [WRAP + 7, WRAP + 9]


def test_a_nak_does_not_answer_its_psn(p, track):
    """A NAK or RNR NAK for p answers what lies before p: the ACK for p that follows is new."""
    for syndrome in (0x60, 0x2C):
        packets = [p("SEND_ONLY", 5, 0), p("SEND_ONLY", 6, 0), ack(p, 5, 1), ack(p, 6, 2, syndrome)]
        packets += [p("SEND_ONLY", 6, 3), ack(p, 6, 4), ack(p, 6, 5)]
        assert track(packets).verdicts[2:] == ["first", "new", "resent", "new", "resent"]


def test_gaps_of_responses_add_up(p, track):
    packets = [p("READ_REQUEST", 10, 0, dma_len=64 * 20), p("READ_RESPONSE_FIRST", 10, 1, "B", payload_len=64)]
    packets += [p("READ_RESPONSE_MIDDLE", psn, 2, "B", payload_len=64) for psn in (12, 15)]
    assert track(packets).word(states.RESPONSE_GAPS) == 1 + 2


def test_a_stream_of_answers_that_began_with_a_cnp(p, track):
    """Its transport is that of the answers, not the CNP's."""
    result = track([p("CNP", 0, 0), p("ACKNOWLEDGE", 5, 1, "A")])
    assert result.word(states.OPCODE) == 0x11


def test_aeth_that_was_cut(p, track):
    """An ACKNOWLEDGE without AETH confirms nothing: neither NAK nor ACK."""
    present = headers.HAS_BTH | headers.HAS_IPV4
    result = track([p("SEND_ONLY", 1, 0), p("ACKNOWLEDGE", 9, 1, "B", present=present, syndrome=0x62)])
    assert result.events == []
    assert result.word(states.ACKS) == result.word(states.NAKS) == 0
    assert result.word(states.UNSEEN_PACKETS) == 0
    linked = [p("SEND_ONLY", 1, 0), ack(p, 1, 1), p("ACKNOWLEDGE", 9, 2, "B", present=present), p("SEND_ONLY", 2, 3)]
    result = track(linked)
    assert result.events == []
    assert result.accepted[3] == "accepted"


# -- what takes no part --------------------------------------------------------------------------------------------


def test_uc(p, track):
    """The rest of a message after a gap is lost; MIDDLE and LAST do not bring it back, FIRST and ONLY do."""
    sent = [("FIRST", 0), ("MIDDLE", 2), ("LAST", 3), ("FIRST", 9), ("LAST", 10), ("LAST", 11)]
    packets = [p(f"UC_SEND_{part}", psn, ms) for ms, (part, psn) in enumerate(sent)]
    result = track(packets)
    assert result.accepted == ["accepted", "discarded", "discarded", "accepted", "accepted", "accepted"]
    assert result.verdicts == ["first", "gap", "new", "gap", "new", "new"]
    assert result.word(states.DUPLICATE_REQUEST) == result.word(states.OUT_OF_SEQ_REQUEST) == 0


def test_datagrams_are_not_judged(p, track):
    """UD: a stream for each source QP, no gap whatever the PSN; QP 0 and 1 are management."""
    packets = [p("UD_SEND_ONLY", psn, 0, src_qp=source, dest_qp=40) for psn, source in ((1, 5), (9, 5), (3, 6))]
    packets += [p("UD_SEND_ONLY", 1, 0, src_qp=1, dest_qp=1), p("UD_SEND_ONLY", 1, 0, src_qp=0, dest_qp=0)]
    result = track(packets)
    assert result.stream == [0, 0, 1, 2, 3]
    assert result.verdicts == ["none"] * 5
    assert result.out.role[:5].tolist() == [3, 3, 3, 4, 4]
    assert result.out.psn_ext[:5].tolist() == [-1] * 5
    assert result.events == []


def test_foreign_packets(p, track):
    """No BTH, a bad status, an opcode without meaning, damage: rows without a stream, and nothing else."""
    packets = [
        p("SEND_ONLY", 1, 0),
        p("SEND_ONLY", 2, 0, present=headers.HAS_IPV4),
        p("SEND_ONLY", 2, 0, status=2),
        p("0xc7", 2, 0, status=3),
        p("SEND_ONLY", 2, 0, status=4),
        p("SEND_ONLY", 2, 0, standing=Standing.DAMAGED),
        p("SEND_ONLY", 2, 0, status=1),
        p("SEND_ONLY", 3, 0, status=5),
    ]
    result = track(packets)
    assert result.stream == [0, -1, -1, -1, -1, -1, 0, 0]
    assert result.verdicts == ["first", *["none"] * 5, "new", "new"]
    assert result.out.role[:8].tolist() == [1, 0, 0, 0, 0, 0, 1, 1]
    assert result.flows.foreign == 4
    assert result.word(states.PACKETS) == 3


def test_a_damaged_packet_is_an_event_of_the_stream_that_it_names(p, track):
    """None of a stream that is not there, and nothing else changes."""
    damaged = {"standing": Standing.DAMAGED}
    result = track([p("SEND_ONLY", 1, 0), p("SEND_ONLY", 2, 1, **damaged), p("SEND_ONLY", 2, 2, "B", **damaged),
                    p("SEND_ONLY", 2, 3)])  # fmt: skip
    assert result.verdicts == ["first", "none", "none", "new"]
    assert result.stream == [0, -1, -1, 0]
    assert result.events == ["damaged@2"]
    assert (result.flows.foreign, len(result.flows.streams)) == (0, 1)
    assert result.flows.damaged == {(1, 2): 1, (2, 1): 1}


def doubtful(p, psn, side="A", **more):
    return p("SEND_ONLY", psn, psn, side, standing=Standing.DOUBTFUL, **more)


def test_a_doubtful_packet_makes_no_stream(p, track):
    """Whatever came to the port: without an earlier packet of its key that it continues, it is none of a stream's."""
    result = track([doubtful(p, 5), doubtful(p, 6, dest_qp=99), doubtful(p, 6, "B"), doubtful(p, 5)])
    assert result.stream == [-1] * 4
    assert len(result.flows.streams) == 0
    assert result.flows.foreign == 4
    assert result.flows.untracked == 0


@pytest.mark.parametrize(
    ("step", "taken"), [(1, True), (1 << 14, True), (0, False), ((1 << 14) + 1, False), (-1, False)]
)
def test_a_doubtful_packet_that_continues_an_earlier_one(p, track, step, taken):
    result = track([doubtful(p, 0xFFFFFF), doubtful(p, (0xFFFFFF + step) & 0xFFFFFF)])
    assert result.stream == [-1, 0 if taken else -1]
    assert result.flows.foreign == (1 if taken else 2)


def test_a_doubtful_packet_joins_a_stream_that_is_there(p, track):
    result = track([p("SEND_ONLY", 5, 0), doubtful(p, 6), doubtful(p, 9)])
    assert result.stream == [0, 0, 0]
    assert result.verdicts == ["first", "new", "gap"]


@pytest.mark.parametrize("operation", ["RD_SEND_ONLY", "RD_WRITE_FIRST"])
def test_transports_that_are_only_counted(p, track, operation):
    result = track([p(operation, 1, 0), p(operation, 9, 1)])
    assert result.verdicts == ["none", "none"]
    assert result.out.role[:2].tolist() == [0, 0]
    assert result.word(states.PACKETS) == 2


# -- marks ---------------------------------------------------------------------------------------------------------


def test_runs_of_cnps(p, track):
    """Less than 100 ms between two belong together; their PSN of 0 disturbs nothing."""
    packets = [p("SEND_ONLY", 500, 0), *[p("CNP", 0, ms) for ms in (1, 50, 150, 251)], p("SEND_ONLY", 501, 300)]
    result = track(packets)
    assert result.verdicts == ["first", *["none"] * 4, "new"]
    assert result.events == ["cnp@2-4", "cnp@5"]
    assert result.word(states.CNPS) == 4
    assert sorted(result.flows.events[:, states.EVENT_COUNT].tolist()) == [1, 3]
    assert result.out.role[1] == 5


def test_runs_of_ce_marks(p, track):
    packets = [p("SEND_ONLY", n, n * 60, ecn=ecn) for n, ecn in enumerate((3, 3, 0, 1, 2, 3, 3))]
    result = track(packets)
    assert result.events == ["ce@1-2", "ce@6-7"]
    assert result.word(states.CE_PACKETS) == 4


def test_a_cnp_first_does_not_name_the_transport(p, track):
    result = track([p("CNP", 0, 0), p("UC_SEND_ONLY", 5, 1), p("UC_SEND_ONLY", 9, 2)])
    assert result.verdicts == ["none", "first", "gap"]
    assert result.word(states.OPCODE) & 0xE0 == 0x20


# -- bounds --------------------------------------------------------------------------------------------------------


def test_sums_of_several(p, track):
    """Two gaps of 1 and 2, two copies, two datagrams of 10 bytes."""
    packets = [p("SEND_ONLY", psn, 0) for psn in (0, 2, 5)]
    packets += [p("SEND_ONLY", 6, 0, ip_id=9, icrc=9)] * 3
    packets += [p("UD_SEND_ONLY", 0, 1, dest_qp=40, src_qp=3, payload_len=10)] * 2
    result = track(packets)
    assert (result.word(states.MISSING), result.word(states.COPIES)) == (3, 2)
    assert result.word(states.GOODPUT_BYTES, 1) == 20


def test_an_answer_to_nobody_leaves_no_trace(p, track):
    """No partner: no row beyond those in use is written."""
    result = track([ack(p, 5, 0), p("SEND_ONLY", 900, 1)], max_streams=4)
    assert not result.flows._streams[2:].any()


def test_handshakes_without_room(p, build, tracker):
    """`announce` finds no room: -1, and nothing else happens."""
    result = build.Tracked([p("SEND_ONLY", 1, 0), p("SEND_ONLY", 1, 0, dest_qp=30)], tracker, max_streams=2)
    kernel = result.flows._tracker
    before = result.flows.streams.copy()
    assert kernel.announce(9, 9, build.A << 32 | build.B, 77, 5, 1024, 14) == -1
    assert (
        kernel.announce(9, 9, build.A << 32 | build.B, 17, 5, 1024, 14) == -1
    )  # the QP again, and no room for a new life
    assert np.array_equal(result.flows.streams, before)
    for one, other in ((0, 0), (0, 2), (2, 0), (-1, 0), (0, -1)):
        with pytest.raises(ValueError, match="no such streams"):
            kernel.unite(one, other)
    assert kernel.close(build.A << 32 | build.B, 99) == -1


def test_no_room_for_streams(p, track):
    packets = [p("SEND_ONLY", 1, 0, dest_qp=qp) for qp in (17, 18, 19, 20, 17)]
    result = track(packets, max_streams=2)
    assert result.stream == [0, 1, -1, -1, 0]
    assert result.flows.untracked == 2
    assert result.out.role[:5].tolist() == [1, 1, 0, 0, 1]


def test_many_holes_forget_the_older_half(p, track):
    """600 holes of one stream; the youngest are still known, the oldest counts as seen."""
    packets = [p("SEND_ONLY", 2 * n, n / 1000) for n in range(600)]
    packets += [p("SEND_ONLY", 1197, 1), p("SEND_ONLY", 1, 1.1)]
    result = track(packets)
    assert result.verdicts[-2:] == ["late", "resent"]
    assert result.word(states.HOLE_COUNT) <= 512
    assert result.word(states.GAPS) == 599


def test_wrong_tables_are_refused(tracker):
    def tables(**change):
        given = {
            "slots": np.zeros(8, np.int32), "classes": class_table(),
            "streams": np.zeros((4, states.STREAM_WORDS), np.int64),
            "pairs": np.zeros((8, states.PAIR_WORDS), np.int64),
            "holes": np.zeros((4, states.HOLE_WORDS), np.int64), "recent": np.zeros((4, states.RECENT_WORDS), np.int64),
            "events": np.zeros((16, states.EVENT_WORDS), np.int64), "counts": np.zeros(states.COUNTS, np.int64),
            "seed": 1, "messages": np.zeros((4, states.MESSAGE_WORDS), np.int64),
            "ended": np.zeros((4, states.MESSAGE_WORDS), np.int64),
            "latency": np.zeros((states.LATENCY_GROUPS, states.LATENCY_WORDS), np.int64),
        }  # fmt: skip
        given["counts"][[states.HOLES_USED, states.MESSAGES_USED]] = 1
        return tracker.Tracker(**(given | change))

    tables()
    for change in (
        {"slots": np.zeros(6, np.int32)},
        {"slots": np.zeros(4, np.int32)},
        {"pairs": np.zeros((4, states.PAIR_WORDS), np.int64)},
        {"recent": np.zeros((3, states.RECENT_WORDS), np.int64)},
        {"classes": np.zeros(255, np.uint32)},
        {"messages": np.zeros((4, 3), np.int64)},
        {"ended": np.zeros((4, 3), np.int64)},
        {"latency": np.zeros((states.LATENCY_GROUPS - 1, states.LATENCY_WORDS), np.int64)},
        {"latency": np.zeros((states.LATENCY_GROUPS, states.LATENCY_WORDS - 1), np.int64)},
        {"streams": np.zeros((4, states.STREAM_WORDS - 1), np.int64)},
        {"events": np.zeros((16, states.EVENT_WORDS + 1), np.int64)},
        {"holes": np.zeros((4, 2), np.int64)},
        {"counts": np.zeros(states.COUNTS - 1, np.int64)},
        {"counts": np.zeros(states.COUNTS, np.int64)},
    ):
        with pytest.raises(ValueError, match=r"shape|powers|more than|hole 0"):
            tables(**change)
    with pytest.raises(ValueError, match="no such streams"):
        tables().unite(0, 1)
    with pytest.raises(ValueError, match="no such stream"):
        tables().finish(-1)
    with pytest.raises(ValueError, match="no room"):
        tables(events=np.zeros((4, states.EVENT_WORDS), np.int64)).announce(1, 1, 1 << 32 | 2, 17, 5, 0, 0)


def test_columns_that_are_too_short(build, tracker, p):
    """Every column and every out column must reach as far as the packets asked for."""
    columns = build.columns([p("SEND_ONLY", psn, psn) for psn in range(4)])
    names = list(build.FLOW_COLUMNS)
    for short in names:
        flows = build.FlowTable(tracker)
        with pytest.raises(ValueError, match="shorter"):
            flows.feed(columns | {short: columns[short][:3].copy()}, 4)
    for field in build.Verdicts.__dataclass_fields__:
        out = build.Verdicts.empty(4)
        setattr(out, field, getattr(out, field)[:3].copy())
        with pytest.raises(ValueError, match="shorter"):
            build.FlowTable(tracker).feed(columns, 4, (), out)
    with pytest.raises(ValueError, match="shorter"):
        build.FlowTable(tracker).feed(columns, 5)


def test_a_host_that_talks_to_itself(p, build, track):
    """Both directions have the same hosts: a stream is not its own peer."""
    packets = [
        build.packet("SEND_ONLY", 5, 0, build.A, build.A, dest_qp=17),
        build.packet("ACKNOWLEDGE", 5, 1, build.A, build.A, dest_qp=17),
    ]
    assert track(packets).word(states.PEER, 0) == 0
    packets[1]["dest_qp"] = 18
    assert track(packets).flows.streams[:, states.PEER].tolist() == [2, 1]


def test_a_payload_that_is_no_mtu(p, track):
    """A FIRST of 63 bytes tells no path MTU, of 64 bytes it does: a READ of 640 bytes takes ten PSNs then."""
    for payload, following in ((63, "new"), (64, "gap")):
        first = p("WRITE_FIRST", 9, 0, payload_len=payload)
        result = track([first, p("READ_REQUEST", 10, 1, dma_len=640), p("READ_REQUEST", 20, 2, dma_len=64)])
        assert result.verdicts[1:] == ["new", "new"]
        result = track([first, p("READ_REQUEST", 10, 1, dma_len=640), p("SEND_ONLY", 21, 2)])
        assert result.verdicts[2] == "gap"
        result = track([first, p("READ_REQUEST", 10, 1, dma_len=640), p("SEND_ONLY", 15, 2)])
        assert result.verdicts[2] == ("new" if following == "new" else "resent")


def test_holes_split_in_the_middle_are_bounded(p, track):
    """One gap, filled at every second PSN: 512 holes are kept, and the tracker never walks more of them."""
    packets = [p("SEND_ONLY", 0, 0), p("SEND_ONLY", 3000, 1)]
    packets += [p("SEND_ONLY", psn, 2) for psn in range(2998, 2, -2)]
    result = track(packets)
    assert result.verdicts[2:4] == ["late", "late"]
    assert result.word(states.HOLE_COUNT) <= states.MOST_HOLES


def test_times_beyond_reason(p, track):
    """Clocks at both ends of 64 bits: a stall is at most 2^60 ns, nothing wraps, nothing is a copy."""
    ends = (-(1 << 63), (1 << 63) - 1)
    packets = [p("SEND_ONLY", 5, 0), p("SEND_ONLY", 6, 0)]
    packets += [p("SEND_ONLY", 6, 0, time_ns=ends[n % 2], ip_id=9, ecn=3) for n in range(6)]
    result = track([*packets, p("SEND_ONLY", 7, 0, time_ns=ends[1])])
    assert "copy" not in result.verdicts
    assert 0 <= result.word(states.STALL) <= 1 << 60


def test_a_life_without_room_is_untracked(p, track):
    """The QP is reused when the table is full: those packets are counted as untracked, and invent no loss."""
    packets = [p("SEND_ONLY", 5, 0), p("SEND_ONLY", 9_000_000, 1), p("SEND_ONLY", 9_000_001, 2), p("SEND_ONLY", 6, 3)]
    result = track(packets, max_streams=1)
    assert result.verdicts == ["first", "none", "none", "new"]
    assert result.flows.untracked == 2
    assert result.word(states.MISSING) == 0


def test_hosts_without_room_are_untracked(p, track):
    """Host code 0 stands for all that found no room: no stream is made of them."""
    result = track([p("SEND_ONLY", n * 100, n) | {"src": 0} for n in range(3)])
    assert len(result.flows.streams) == 0
    assert result.flows.untracked == 3


def test_no_counter_falls_below_zero(p, track):
    """A NAK is owed, a fatal one takes its episode back, an ACK beyond takes back what is owed: once only."""
    result = track([p("SEND_ONLY", 10, 0), p("SEND_ONLY", 12, 1), ack(p, 10, 2, 0x62), ack(p, 12, 3)])
    assert result.word(states.OUT_OF_SEQ_REQUEST) == 0
