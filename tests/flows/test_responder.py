"""What answers say, beyond the worked examples: lives behind a fatal NAK, cut answers, coalesced and replayed ones."""

from __future__ import annotations

import pytest

from roce_dissect.flows import states
from roce_dissect.flows.tables import build_tables
from roce_dissect.spec import headers


def start(p):
    return [p("SEND_ONLY", 99, 0), p("ACKNOWLEDGE", 99, 0.2, "B")]


def test_a_qp_number_used_again_behind_a_fatal_nak(p, build, track):
    """What is sent behind the NAK is answered: the next packets begin a new life, in which nothing is in error."""
    packets = [*start(p), p("SEND_ONLY", 100, 1), p("ACKNOWLEDGE", 100, 2, "B", syndrome=0x61)]
    packets += [p("SEND_ONLY", 101, 50), p("ACKNOWLEDGE", 101, 51, "B"), p("SEND_ONLY", 102, 52)]
    packets += [p("ACKNOWLEDGE", 102, 53, "B"), p("SEND_ONLY", 103, 54), p("ACKNOWLEDGE", 103, 55, "B")]
    result = track(packets)
    assert result.accepted[0::2] == ["accepted", "accepted", "qp_error", "accepted", "accepted"]
    lives = build_tables(result.flows, build.ADDRESSES).connections
    assert lives["life"].tolist() == [1, 2]
    assert lives["ended_by"].tolist() == ["nak", "nothing"]


def test_late_answers_to_earlier_requests_are_no_new_life(p, track):
    packets = [*start(p), p("SEND_ONLY", 100, 1), p("SEND_ONLY", 101, 1)]
    packets += [p("ACKNOWLEDGE", 101, 2, "B", syndrome=0x61), p("ACKNOWLEDGE", 100, 3, "B"), p("SEND_ONLY", 102, 4)]
    assert track(packets).accepted[-1] == "qp_error"


def test_a_read_response_is_no_nak_even_if_its_aeth_is_cut(p, track):
    packets = [*start(p), p("READ_REQUEST", 100, 1, dma_len=10), p("READ_RESPONSE_ONLY", 100, 2, "B")]
    packets[-1]["present"] &= ~headers.HAS_AETH
    frame = track(packets).message_frame
    assert frame["status"].tolist() == ["complete", "complete"]


def test_coalesced_acks(p, track):
    """One ACK for three messages; one for one message of two packets; one that says nothing new."""
    packets = [p("SEND_ONLY", psn, 1) for psn in (100, 101, 102)] + [p("ACKNOWLEDGE", 102, 2, "B")]
    packets += [p("SEND_FIRST", 103, 3), p("SEND_LAST", 104, 3), p("ACKNOWLEDGE", 104, 4, "B")]
    result = track([*start(p), *packets, p("ACKNOWLEDGE", 104, 5, "B"), p("ACKNOWLEDGE", 103, 6, "B")])
    assert result.word(states.COALESCED_ACKS) == 1
    assert result.word(states.DUPLICATE_ACKS) == 2
    assert result.word(states.ACK_REGRESSIONS) == 1


def test_replayed_responses(p, track):
    packets = [p("READ_REQUEST", 100, 1, dma_len=10), p("READ_RESPONSE_ONLY", 100, 2, "B")]
    packets += [p("READ_REQUEST", 100, 3, dma_len=10), p("READ_RESPONSE_ONLY", 100, 4, "B")]
    assert track([*start(p), *packets]).word(states.REPLAYED_RESPONSES) == 1


def test_credits_and_msn(p, build, track):
    """Syndrome 0 grants no credit; the MSN goes from 3 to 5, with one that is late between."""
    packets = [p("SEND_ONLY", psn, psn) for psn in (1, 2, 3)]
    answers = [p("ACKNOWLEDGE", psn, psn + 0.5, "B", syndrome=code, msn=msn)
               for psn, code, msn in ((1, 0, 3), (3, 0x1F, 5), (2, 0, 4))]  # fmt: skip
    tables = build_tables(track([*packets, *answers]).flows, build.ADDRESSES)
    assert tables.streams["msn_messages"].tolist()[0] == 2
    assert tables.streams["zero_credit_acks"].tolist() == [0, 2]


@pytest.mark.parametrize("answer", ["ACKNOWLEDGE", "XRC_ACKNOWLEDGE"])
def test_only_a_response_of_the_same_transport_answers(p, build, track, answer):
    """The evidence of PSNs counts within RC and within XRC."""
    packets = [p("XRC_SEND_ONLY", 5, 0), p(answer, 5, 1, "B")]
    evidence = build_tables(track(packets).flows, build.ADDRESSES).streams["paired_by"].tolist()
    assert (evidence == ["psn", "psn"]) == (answer == "XRC_ACKNOWLEDGE")


def test_the_first_naks_are_looked_at(p, build, track):
    """Seventy ACKs that fit nothing, then the requests, then a NAK that does."""
    packets = [p("ACKNOWLEDGE", 9000 + n, n, "B") for n in range(70)]
    packets += [p("SEND_ONLY", 100, 80), p("SEND_ONLY", 101, 81), p("ACKNOWLEDGE", 100, 82, "B", syndrome=0x60)]
    assert "psn" in build_tables(track(packets).flows, build.ADDRESSES).streams["paired_by"].tolist()
