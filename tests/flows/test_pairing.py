"""Pairing after all packets: the table of evidence in docs/semantics.md, case by case."""

from __future__ import annotations

import pytest

from roce_dissect.flows.pairing import pair_streams
from roce_dissect.flows.tables import build_tables
from roce_dissect.terms import PairedBy


@pytest.fixture
def pairs(build, tracker):
    """``pairs(packets)``: {(stream, stream): evidence} of all that is paired."""

    def run(packets):
        streams = build.Tracked(packets, tracker).flows.streams
        partner, evidence = pair_streams(streams)
        found = {}
        for one, other in enumerate(partner.tolist()):
            if other >= 0:
                assert partner[other] == one
                assert evidence[one] == evidence[other]
                found[min(one, other), max(one, other)] = PairedBy(int(evidence[one])).name
        return found

    return run


@pytest.fixture
def p(build):
    def make(operation, psn, ms, side="A", qp=None, **more):
        ends = {"A": (build.A, build.B), "B": (build.B, build.A)}[side]
        qp = {"A": 17, "B": 18}[side] if qp is None else qp
        return build.packet(operation, psn, ms, *ends, dest_qp=qp, **more)

    return make


def test_by_psn(p, pairs):
    assert pairs([p("SEND_ONLY", 5, 0), p("ACKNOWLEDGE", 5, 1, "B")]) == {(0, 1): "PSN"}


def test_the_only_two(p, pairs):
    """Requests both ways and no answer seen: the only streams of their directions, at the same time."""
    packets = [p("SEND_ONLY", 5, 0), p("SEND_ONLY", 900, 1, "B"), p("SEND_ONLY", 6, 2), p("SEND_ONLY", 901, 3, "B")]
    assert pairs(packets) == {(0, 1): "ONLY"}


def test_not_at_the_same_time(p, pairs):
    packets = [p("SEND_ONLY", 5, 0), p("SEND_ONLY", 6, 1), p("SEND_ONLY", 900, 2, "B"), p("SEND_ONLY", 901, 3, "B")]
    assert pairs(packets) == {}


def test_by_source_port(p, pairs):
    """Two connections: who belongs to whom is told by the UDP source port only."""
    packets = []
    for ms in (0, 5):
        packets += [
            p("SEND_ONLY", 5 + ms, ms, qp=17, udp_sport=50001),
            p("SEND_ONLY", 5000 + ms, ms, qp=27, udp_sport=50002),
            p("SEND_ONLY", 900 + ms, ms + 1, "B", qp=28, udp_sport=50002),
            p("SEND_ONLY", 9000 + ms, ms + 1, "B", qp=18, udp_sport=50001),
        ]
    assert pairs(packets) == {(0, 3): "UDP_SPORT", (1, 2): "UDP_SPORT"}


def test_ambiguous_stays_unpaired(p, pairs):
    packets = []
    for ms in (0, 5):
        packets += [p("SEND_ONLY", 5 + ms, ms, qp=17), p("SEND_ONLY", 5000 + ms, ms, qp=27)]
        packets += [p("SEND_ONLY", 900 + ms, ms + 1, "B")]
    assert pairs(packets) == {}


def test_uc_and_rc_do_not_belong_together(p, pairs):
    packets = [
        p("UC_SEND_ONLY", 5, 0),
        p("SEND_ONLY", 900, 1, "B"),
        p("UC_SEND_ONLY", 6, 2),
        p("SEND_ONLY", 901, 3, "B"),
    ]
    assert pairs(packets) == {}


def test_datagrams_are_not_connected(p, pairs):
    packets = [p("UD_SEND_ONLY", n, n, "AB"[n % 2], src_qp=9) for n in range(4)]
    assert pairs(packets) == {}


def test_answers_that_never_fitted(p, pairs):
    """Sixteen answers were compared with the requests of the only other stream and never fitted: not its partner."""
    few = [p("SEND_ONLY", 5, 0)] + [p("ACKNOWLEDGE", 4000 + n, 1, "B") for n in range(15)] + [p("SEND_ONLY", 6, 2)]
    many = [p("SEND_ONLY", 5, 0)] + [p("ACKNOWLEDGE", 4000 + n, 1, "B") for n in range(16)] + [p("SEND_ONLY", 6, 2)]
    assert pairs(few) == {(0, 1): "ONLY"}
    assert pairs(many) == {}


def test_a_lost_link(p, build, tracker):
    """Both lives of A's QP are paired with their own answers; ends and QPs stand on both connections."""
    packets = [
        p("SEND_ONLY", 0, 0), p("ACKNOWLEDGE", 0, 1, "B"), p("SEND_ONLY", 5_000_000, 2),
        p("ACKNOWLEDGE", 5_000_000, 3, "B"),
    ]  # fmt: skip
    tables = build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES)
    connections = tables.connections
    assert connections["life"].tolist() == [1, 2]
    assert connections["paired_by"].tolist() == ["psn", "psn"]
    assert connections["a_qp"].tolist() == [18, 18]
    assert connections["b_qp"].tolist() == [17, 17]
    assert (connections["confidence"] == 0.9).all()


def test_no_streams(build, tracker):
    partner, evidence = pair_streams(build.FlowTable(tracker).streams)
    assert len(partner) == len(evidence) == 0
