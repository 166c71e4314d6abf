"""CM exchanges: which message belongs to which, and what REQ and REP tell of streams. Worked by hand from IBTA 12.9."""

from __future__ import annotations

import dataclasses

import pytest

from roce_dissect.decode.cm import Message
from roce_dissect.flows import handshake, states
from roce_dissect.flows.tables import build_tables
from roce_dissect.spec.cm import CmMessage
from roce_dissect.terms import EventKind


def message(row, kind, src, dst, local_id, remote_id=0, **more):
    return Message(row, row + 1, 10**15 + row * 1000, src, dst, CmMessage[kind], local_id, remote_id, 2, **more)


@pytest.fixture
def connect(build, tracker):
    """``connect(messages, packets)``: CM messages on UD rows, at the row that each names, among packets."""

    def run(messages, packets):
        datagrams = {one.row: one for one in messages}
        rows, given = [], iter(packets)
        for row in range(len(messages) + len(packets)):
            if row in datagrams:
                one = datagrams[row]
                rows.append(build.packet("UD_SEND_ONLY", row, row, one.src, one.dst, dest_qp=1, src_qp=1))
            else:
                rows.append(next(given) | {"time_ns": 10**15 + row * 1000})
        return build.Tracked(rows, tracker, messages=messages)

    return run


def handshake_messages(first=0, a_id=100, b_id=200, a_qp=18, b_qp=17, a_psn=700, b_psn=0xFFFFFF, mtu=1024):
    """REQ from A (1) to B (2), REP and RTU."""
    return [
        message(first, "REQ", 1, 2, a_id, qpn=a_qp, starting_psn=a_psn, mtu=mtu),
        message(first + 1, "REP", 2, 1, b_id, a_id, qpn=b_qp, starting_psn=b_psn),
        message(first + 2, "RTU", 1, 2, a_id, b_id),
    ]


def test_starting_psn(build, connect):
    """Packets to the REP's QP begin at the REP's PSN: that one is `first`, a later one a gap from it."""
    forth = build.packet("SEND_ONLY", 0xFFFFFF, 0)
    back = build.packet("SEND_ONLY", 702, 0, build.B, build.A)
    result = connect(handshake_messages(), [forth, back, build.packet("SEND_ONLY", 0, 0)])
    assert result.verdicts[3:] == ["first", "gap", "new"]
    assert result.missing[4] == 2
    assert result.accepted[4] == "out_of_sequence"


def test_pair_and_mtu(build, connect):
    """The streams are linked, and a READ's range follows the REQ's path MTU of 1024."""
    read = build.packet("READ_REQUEST", 0xFFFFFF, 0, dma_len=3000)
    result = connect(handshake_messages(), [read, build.packet("SEND_ONLY", 2, 0), build.packet("SEND_ONLY", 4, 0)])
    assert result.verdicts[3:] == ["first", "new", "gap"]
    tables = build_tables(result.flows, build.ADDRESSES)
    [connection] = tables.connections.itertuples()
    assert (connection.paired_by, connection.confidence) == ("cm", 1.0)
    assert (connection.a_address, connection.b_address) == ("10.0.0.1", "10.0.0.2")
    assert (connection.a_qp, connection.b_qp) == (18, 17)
    assert (connection.first_frame, connection.last_frame) == (1, 6)
    [stream] = tables.streams[tables.streams["dest_qp"] == 17].itertuples()
    assert (stream.mtu, stream.first_frame, stream.last_frame, stream.packets) == (1024, 4, 6, 3)
    assert stream.last_time_ns - stream.first_time_ns == 2000


def test_end_a_sent_the_req(build, connect):
    """Whoever sends data first: a is the REQ's sender."""
    back = build.packet("SEND_ONLY", 700, 0, build.B, build.A)
    result = connect(handshake_messages(), [back])
    [connection] = build_tables(result.flows, build.ADDRESSES).connections.itertuples()
    assert (connection.a_address, connection.a_to_b_packets, connection.b_to_a_packets) == ("10.0.0.1", 0, 1)


def test_rejected(build, connect):
    """A REQ and a REJ, which may carry local id 0 (no listener): one connection without streams or a known QP of b."""
    messages = [
        message(0, "REQ", 1, 2, 100, qpn=18, starting_psn=700, mtu=1024),
        message(1, "REJ", 2, 1, 0, 100, reason=8),
    ]
    result = connect(messages, [])
    tables = build_tables(result.flows, build.ADDRESSES)
    [connection] = tables.connections.itertuples()
    assert (connection.a_qp, connection.a_to_b_stream, connection.b_to_a_stream) == (18, -1, -1)
    assert tables.connections["b_qp"].isna().all()
    events = tables.events
    assert events["kind"].tolist() == ["cm_req", "cm_rej"]
    assert events["value"].tolist() == [100, 8]
    assert events["connection"].tolist() == [1, 1]


def test_rejected_by_its_own_sender(build, connect):
    """Timeout: the REQ's sender rejects, remote id 0: matched by its local id."""
    messages = [
        message(0, "REQ", 1, 2, 100, qpn=18, starting_psn=700),
        message(1, "REJ", 1, 2, 100, 0, reason=4),
    ]
    events = build_tables(connect(messages, []).flows, build.ADDRESSES).events
    assert events["connection"].tolist() == [1, 1]


def test_repeated_messages_say_nothing_new(build, connect):
    """A REQ that was sent again, and its REP: one exchange, one life, though packets passed in between."""
    once = handshake_messages()
    again = [
        message(5, "REQ", 1, 2, 100, qpn=18, starting_psn=700, mtu=1024),
        message(6, "REP", 2, 1, 200, 100, qpn=17, starting_psn=0xFFFFFF),
    ]
    packets = [build.packet("SEND_ONLY", 0xFFFFFF, 0), build.packet("SEND_ONLY", 0, 0), build.packet("SEND_ONLY", 1, 0)]
    result = connect([*once, *again], packets)
    assert result.verdicts[3:5] + result.verdicts[7:] == ["first", "new", "new"]
    assert len(result.flows.handshakes.exchanges) == 1
    assert len(build_tables(result.flows, build.ADDRESSES).connections) == 1


def test_the_same_id_for_another_qp_is_another_exchange(build, connect):
    other = [message(3, "REQ", 1, 2, 100, qpn=19, starting_psn=5)]
    result = connect([*handshake_messages(), *other], [])
    assert len(result.flows.handshakes.exchanges) == 2


def test_the_qp_again_is_a_new_life(build, connect):
    """A second handshake names QP 17 again: its packets are another stream, and 0xffffff is `first` once more."""
    packets = [build.packet("SEND_ONLY", psn, 0) for psn in (0xFFFFFF, 0)]
    later = build.packet("SEND_ONLY", 5, 0)
    second = handshake_messages(5, a_id=101, b_id=201, b_psn=5)
    result = connect([*handshake_messages(), *second], [*packets, later])
    assert result.verdicts[3:5] + result.verdicts[8:] == ["first", "new", "first"]
    assert result.word(states.GAPS) == result.word(states.RESENT_PACKETS) == 0
    lives = build_tables(result.flows, build.ADDRESSES).connections["life"]
    assert lives.tolist() == [1, 2]
    assert [event for event in result.events if event.startswith("new_life")] != []


def test_teardown_closes_both_directions(build, connect):
    """DREQ names the receiver's QP; a near PSN afterwards, in either direction, is a new life."""
    messages = [
        *handshake_messages(),
        message(5, "DREQ", 1, 2, 100, 200, qpn=17),
        message(6, "DREP", 2, 1, 200, 100),
    ]
    packets = [
        build.packet("SEND_ONLY", 0xFFFFFF, 0),
        build.packet("SEND_ONLY", 700, 0, build.B, build.A),
        build.packet("SEND_ONLY", 50, 0),
        build.packet("SEND_ONLY", 750, 0, build.B, build.A),
    ]
    result = connect(messages, packets)
    assert result.verdicts[7:] == ["first", "first"]
    assert result.word(states.GAPS) == 0


def test_messages_of_nobody(build, connect):
    """Messages whose REQ was not captured are events of no connection, and tell nothing."""
    messages = [
        message(0, "REP", 2, 1, 200, 100, qpn=17, starting_psn=9),
        message(1, "RTU", 1, 2, 100, 200),
        message(2, "DREQ", 1, 2, 100, 200, qpn=17),
    ]
    result = connect(messages, [build.packet("SEND_ONLY", 3, 0)])
    tables = build_tables(result.flows, build.ADDRESSES)
    assert tables.events["kind"].tolist() == ["cm_rep", "cm_rtu", "cm_dreq"]
    assert tables.events["connection"].tolist() == [0, 0, 0]
    assert result.verdicts[3] == "first"


def test_a_rep_from_elsewhere_is_not_believed(build, connect):
    """Only the REQ's receiver can answer it."""
    messages = [
        message(0, "REQ", 1, 2, 100, qpn=18, starting_psn=700),
        message(1, "REP", 3, 1, 200, 100, qpn=17, starting_psn=9),
    ]
    result = connect(messages, [])
    [exchange] = result.flows.handshakes.exchanges
    assert exchange.b_qp == -1


def test_bounds(build, connect, monkeypatch):
    monkeypatch.setattr(handshake, "MOST_EXCHANGES", 2)
    monkeypatch.setattr(handshake, "MOST_CM_EVENTS", 3)
    messages = [message(n, "REQ", 1, 2, 100 + n, qpn=18 + n, starting_psn=700) for n in range(5)]
    result = connect(messages, [])
    assert len(result.flows.handshakes.exchanges) == 2
    assert len(result.flows.handshakes.events) == 3
    assert result.flows.handshakes.left_out == 5  # three exchanges and two events


@pytest.mark.parametrize("kind", [kind for kind in EventKind if kind.name.startswith("CM_")])
def test_every_message_is_an_event(kind, build, connect):
    name = kind.name.removeprefix("CM_")
    result = connect([message(0, name, 1, 2, 9, 8)], [])
    assert build_tables(result.flows, build.ADDRESSES).events["kind"].tolist() == [kind.name.lower()]


def test_drep_alone_tears_down(build, connect):
    """The capture lacks the DREQ: a near PSN after the DREP is a new life all the same."""
    messages = [*handshake_messages(b_psn=1000), message(5, "DREP", 2, 1, 200, 100)]
    result = connect(messages, [build.packet("SEND_ONLY", psn, 0) for psn in (1000, 1001, 1050)])
    assert result.verdicts[6] == "first"
    assert result.word(states.GAPS) == 0


def test_a_repeated_dreq_leaves_the_next_life_alone(build, connect):
    """The same QP is connected again before the former teardown is repeated: a gap of one stays a gap."""
    messages = [
        *handshake_messages(b_psn=1000),
        message(4, "DREQ", 1, 2, 100, 200, qpn=17),
        *handshake_messages(5, a_id=101, b_id=201, b_psn=5000),
        message(9, "DREQ", 1, 2, 100, 200, qpn=17),
    ]
    result = connect(messages, [build.packet("SEND_ONLY", psn, 0) for psn in (1000, 5000, 5002)])
    assert [result.verdicts[row] for row in (3, 8, 10)] == ["first", "first", "gap"]


def test_the_req_names_the_transport(build, connect):
    """IBTA 12.7.4: transport service type 1 is UC; the connection never carried a packet."""
    messages = handshake_messages()[:1]
    assert build_tables(connect(messages, []).flows, build.ADDRESSES).connections["transport"].tolist() == ["RC"]
    told = dataclasses.replace(messages[0], transport=0x20)
    assert build_tables(connect([told], []).flows, build.ADDRESSES).connections["transport"].tolist() == ["UC"]
