"""Streams, connections, events, hosts and counters as tables: figures worked out by hand for a few packets."""

from __future__ import annotations

import pytest

from roce_dissect.flows.tables import build_tables

START = 1_700_000_000_000_000_000


@pytest.fixture
def tables(build, tracker):
    """Two hosts and a third: a lossy connection, a one-sided stream, CNPs, datagrams."""
    p = build.packet
    packets = [
        p("SEND_ONLY", 10, 0, payload_len=100),
        p("SEND_ONLY", 12, 1, payload_len=200),
        p("ACKNOWLEDGE", 11, 2, build.B, build.A, syndrome=0x60),
        p("SEND_ONLY", 11, 4, payload_len=50),
        p("SEND_ONLY", 12, 5, payload_len=200, ecn=3),
        p("ACKNOWLEDGE", 12, 6, build.B, build.A),
        p("ACKNOWLEDGE", 12, 7, build.B, build.A, syndrome=0x2C),
        p("CNP", 0, 8, build.B, build.A),
        p("SEND_ONLY", 5, 9, build.A, 3, dest_qp=99),
        p("SEND_ONLY", 5, 10, build.A, 3, dest_qp=99),
        p("UD_SEND_ONLY", 1, 11, 3, build.A, dest_qp=40, src_qp=41),
    ]
    for number, one in enumerate(packets, start=1):
        one["frame_key"] = 3 << 40 | number
    return build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES)


def test_streams(tables):
    first, back, alone, datagrams = tables.streams.itertuples()
    assert (first.src, first.dst, first.dest_qp, first.src_qp) == ("10.0.0.1", "10.0.0.2", 17, 18)
    assert (first.packets, first.requests, first.responses) == (4, 4, 0)
    assert (first.bytes, first.payload_bytes, first.goodput_bytes) == (4 * 58 + 550, 550, 350)
    assert (first.gaps, first.missing_packets, first.late_packets, first.resent_packets) == (1, 1, 1, 1)
    assert (first.first_file, first.first_frame, first.last_file, first.last_frame) == (3, 1, 3, 5)
    assert (first.first_time_ns, first.last_time_ns) == (START, START + 5_000_000)
    assert (first.episodes, first.stall_ns, first.ce_packets) == (1, 4_000_000, 1)
    assert (first.duplicate_request, first.out_of_seq_request) == (0, 1)
    assert (first.transport, first.life, first.connection, first.paired_by) == ("RC", 1, 1, "psn")
    assert first.confirmed
    assert not first.qp_error
    assert (back.acks, back.naks, back.rnr_naks, back.cnps, back.packets) == (1, 1, 1, 1, 4)
    assert (back.dest_qp, back.src_qp, back.connection) == (18, 17, 1)
    assert not alone.confirmed
    assert (alone.paired_by, alone.connection) == ("none", 2)
    assert tables.streams["src_qp"].isna().tolist() == [False, False, True, False]
    assert (datagrams.transport, datagrams.src_qp, datagrams.connection) == ("UD", 41, 0)


def test_connections(tables):
    both, alone = tables.connections.itertuples()
    assert (both.a_address, both.a_qp, both.b_address, both.b_qp) == ("10.0.0.1", 18, "10.0.0.2", 17)
    assert (both.a_to_b_packets, both.b_to_a_packets) == (4, 4)
    assert (both.a_to_b_naks, both.b_to_a_naks) == (0, 1)
    assert (both.resent_packets, both.stall_ns, both.confidence) == (1, 4_000_000, 0.9)
    assert (both.last_frame, both.last_time_ns) == (8, START + 8_000_000)
    assert (alone.a_address, alone.b_address, alone.b_qp) == ("10.0.0.1", "10.0.0.3", 99)
    assert tables.connections["a_qp"].isna().tolist() == [False, True]
    assert (alone.paired_by, alone.confidence, alone.b_to_a_stream, alone.b_to_a_packets) == ("none", 0.0, -1, 0)


def test_connections_in_the_order_of_their_first_frames(build, tracker):
    packets = [build.packet("SEND_ONLY", 1, n, build.A, 3 - n % 2, dest_qp=50 - n) for n in range(6)]
    connections = build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES).connections
    assert connections["first_frame"].tolist() == [1, 2, 3, 4, 5, 6]
    assert connections["connection"].tolist() == [1, 2, 3, 4, 5, 6]


def test_events(tables):
    events = tables.events
    assert list(zip(events["kind"], events["frame"], events["last_frame"], strict=True)) == [
        ("gap", 2, 2), ("nak", 3, 3), ("resend", 4, 5), ("ce", 5, 5), ("rnr_nak", 7, 7), ("cnp", 8, 8),
        ("resend", 10, 10),
    ]  # fmt: skip
    assert events["connection"].tolist() == [1, 1, 1, 1, 1, 1, 2]
    assert events["psn"].tolist() == [11, 11, 11, -1, 12, -1, 5]
    assert events["count"].tolist() == [1, 1, 2, 1, 1, 1, 1]
    assert events["value"].tolist()[:3] == [0, 0x60, 1]
    assert events["duration_ns"].tolist() == [0, 0, 1_000_000, 0, 0, 0, 0]
    assert events["stall_ns"].tolist()[2] == 4_000_000


def test_hosts(tables):
    hosts = tables.hosts.set_index("address")
    assert hosts.loc[["10.0.0.1", "10.0.0.2", "10.0.0.3"], "sent_packets"].tolist() == [6, 4, 1]
    assert hosts.loc[["10.0.0.1", "10.0.0.2", "10.0.0.3"], "received_packets"].tolist() == [5, 4, 2]
    assert hosts.loc[["10.0.0.1", "10.0.0.2", "10.0.0.3"], "qps"].tolist() == [2, 1, 1]


def test_counters(tables):
    """By the host that counts: the responder its duplicates and NAKs sent, the requester the NAKs received."""
    counters = tables.counters
    b, a, c = (counters.loc[f"10.0.0.{n}"] for n in (2, 1, 3))
    assert (b.sent_pkts, b.rcvd_pkts, b.out_of_seq_request, b.send_rnr_err, b.rcvd_rnr_err) == (4, 4, 1, 1, 0)
    assert (a.packet_seq_err, a.rcvd_rnr_err, a.send_rnr_err, a.rp_cnp_handled) == (1, 1, 0, 1)
    assert (b.np_cnp_sent, b.np_ecn_marked_roce_packets, a.np_ecn_marked_roce_packets) == (1, 1, 0)
    # what a model says of a responder that was never heard is left out
    assert c.duplicate_request == 0


def test_tables_may_be_built_again(build, tracker):
    """A live view builds them time and again; the flow table goes on."""
    columns = build.columns([build.packet("SEND_ONLY", psn, psn) for psn in range(4)])
    flows = build.FlowTable(tracker)
    flows.feed({name: values[:2].copy() for name, values in columns.items()}, 2)
    early = build_tables(flows, build.ADDRESSES)
    flows.feed({name: values[2:].copy() for name, values in columns.items()}, 2)
    late = build_tables(flows, build.ADDRESSES)
    assert (early.streams["packets"].tolist(), late.streams["packets"].tolist()) == ([2], [4])


def test_ends_by_time_not_by_file(build, tracker):
    """One file for each direction: A sends first in file 1, B's answer in file 0 carries lower keys."""
    packets = [
        build.packet("SEND_ONLY", 5, 5, frame_key=1 << 40 | 7),
        build.packet("ACKNOWLEDGE", 5, 10, build.B, build.A, frame_key=1),
        build.packet("SEND_ONLY", 6, 20, frame_key=1 << 40 | 8),
        build.packet("ACKNOWLEDGE", 6, 30, build.B, build.A, frame_key=2),
    ]
    row = build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES).connections.iloc[0]
    assert (row.a_address, row.b_address) == ("10.0.0.1", "10.0.0.2")
    assert (row.first_file, row.first_frame, row.first_time_ns) == (1, 7, START + 5_000_000)
    assert (row.last_file, row.last_frame, row.last_time_ns) == (0, 2, START + 30_000_000)


def test_what_is_not_known_is_missing(build, tracker):
    """No path MTU was told; RoCE v1 has no UDP port."""
    packets = [build.packet("SEND_ONLY", 5, 0, version=1), build.packet("SEND_ONLY", 5, 1, dest_qp=9)]
    streams = build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES).streams
    assert streams["udp_sport"].isna().tolist() == [True, False]
    assert streams["mtu"].isna().all()
