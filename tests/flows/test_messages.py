"""Messages beyond the worked examples of docs/semantics.md: parts that find each other, READs in pieces, limits."""

from __future__ import annotations

from roce_dissect.flows import flow_table, states


def told(result, *columns):
    """``verb:psn-last_psn status`` of each message, with further columns."""
    frame = result.message_frame
    texts = [f"{row.verb}:{row.psn}-{row.last_psn} {row.status}" for row in frame.itertuples()]
    if not columns:
        return texts
    rows = frame[list(columns)].astype(object).where(frame[list(columns)].notna(), None)
    return [(text, *row) for text, row in zip(texts, rows.itertuples(index=False, name=None), strict=True)]


def start(p):
    return [p("SEND_ONLY", 99, 0), p("ACKNOWLEDGE", 99, 0.2, "B")]


def test_one_ack_ends_many(p, track):
    packets = [p("WRITE_FIRST", 100, 1, payload_len=256, dma_len=300), p("WRITE_LAST", 101, 1, payload_len=44)]
    packets += [p("SEND_ONLY", 102, 2), p("ACKNOWLEDGE", 102, 3, "B")]
    result = track(start(p) + packets)
    assert told(result, "bytes", "dma_len", "latency_ns", "answer_frame", "whole")[1:] == [
        ("write:100-101 complete", 300, 300, 2_000_000, 6, True),
        ("send:102-102 complete", 0, None, 1_000_000, 6, True),
    ]
    assert result.word(states.MOST_MESSAGES) == 2
    assert result.word(states.MOST_PACKETS) == 3


def test_an_ack_in_the_middle_ends_nothing(p, track):
    packets = [p("WRITE_FIRST", 100, 1), p("ACKNOWLEDGE", 100, 2, "B"), p("WRITE_LAST", 101, 3)]
    result = track(start(p) + packets + [p("ACKNOWLEDGE", 101, 4, "B")])
    assert told(result, "answer_frame")[1:] == [("write:100-101 complete", 6)]


def test_the_first_packet_comes_last(p, track):
    """FIRST was lost; its resend joins what passed: one message, whole, of three packets."""
    packets = [p("SEND_MIDDLE", 101, 1, payload_len=64), p("SEND_LAST_IMM", 102, 2, payload_len=8, imm_data=7)]
    packets += [p("SEND_FIRST", 100, 3, payload_len=64), p("ACKNOWLEDGE", 102, 4, "B")]
    result = track(start(p) + packets)
    assert told(result, "packets", "bytes", "whole", "frame", "last_frame", "imm_data")[1:] == [
        ("send_imm:100-102 complete", 3, 136, True, 3, 5, 7)
    ]


def test_a_hole_that_holds_an_end_and_a_beginning(p, track):
    """Of two messages of two packets the inner ones were lost: they are not taken for one when the rest comes."""
    packets = [p("SEND_FIRST", 100, 1), p("SEND_LAST", 103, 1), p("SEND_LAST", 101, 2), p("SEND_FIRST", 102, 2)]
    result = track(start(p) + packets + [p("ACKNOWLEDGE", 103, 4, "B")])
    assert told(result, "whole")[1:] == [("send:100-101 complete", True), ("send:102-103 complete", True)]


def test_the_capture_lacks_the_middle(p, track):
    packets = [p("SEND_FIRST", 100, 1), p("SEND_LAST", 102, 1), p("ACKNOWLEDGE", 102, 4, "B")]
    result = track(start(p) + packets)
    assert told(result, "whole", "packets")[1:] == [("send:100-102 complete", False, 2)]


def test_begun_before_the_capture(p, track):
    result = track([p("WRITE_MIDDLE", 5, 0), p("WRITE_LAST", 6, 0), p("ACKNOWLEDGE", 6, 1, "B")])
    assert told(result, "whole", "latency_ns") == [("write:5-6 complete", False, None)]


def test_read_in_pieces(p, track):
    """The second response was lost on the way here and asked for again, with the third: four responses, three PSNs."""
    read = [p("WRITE_FIRST", 98, 0, payload_len=256), p("WRITE_LAST", 99, 0), p("ACKNOWLEDGE", 99, 0.1, "B")]
    read += [p("READ_REQUEST", 100, 1, dma_len=700, va=(1 << 64) - 1, r_key=5)]
    read += [p("READ_RESPONSE_FIRST", 100, 2, "B", payload_len=256), p("READ_RESPONSE_LAST", 102, 3, "B")]
    read += [p("READ_REQUEST", 101, 4, dma_len=444)]
    read += [p("READ_RESPONSE_FIRST", 101, 5, "B", payload_len=256), p("READ_RESPONSE_LAST", 102, 6, "B")]
    result = track(read)
    columns = ("bytes", "answer_packets", "answer_first_frame", "answer_frame", "resends", "va", "r_key")
    assert told(result, *columns)[1:] == [("read:100-102 complete", 700, 3, 5, 8, 1, (1 << 64) - 1, 5)]


def test_responses_out_of_order(p, track):
    read = [p("WRITE_FIRST", 98, 0, payload_len=256), p("WRITE_LAST", 99, 0), p("READ_REQUEST", 100, 1, dma_len=1024)]
    read += [p("READ_RESPONSE_FIRST", 100, 2, "B"), p("READ_RESPONSE_MIDDLE", 102, 3, "B")]
    read += [p("READ_RESPONSE_LAST", 103, 4, "B"), p("READ_RESPONSE_MIDDLE", 101, 5, "B")]
    result = track(read)
    assert told(result, "answer_frame", "answer_packets")[1:] == [("read:100-103 complete", 7, 4)]


def test_read_whose_range_is_not_known(p, track):
    """No path MTU was seen: the LAST response tells where it ends."""
    read = [p("READ_REQUEST", 100, 1, dma_len=3000), p("READ_RESPONSE_FIRST", 100, 2, "B", payload_len=1024)]
    read += [p("READ_RESPONSE_MIDDLE", 101, 3, "B", payload_len=1024), p("READ_RESPONSE_LAST", 102, 4, "B")]
    assert told(track(read), "whole") == [("read:100-102 complete", True)]


def test_several_reads_and_an_atomic(p, track):
    packets = [p("READ_REQUEST", 100, 1, dma_len=64), p("READ_REQUEST", 101, 1, dma_len=64), p("FETCH_ADD", 102, 1)]
    packets += [p("READ_RESPONSE_ONLY", 100, 2, "B"), p("READ_RESPONSE_ONLY", 101, 3, "B")]
    result = track(start(p) + packets + [p("ATOMIC_ACKNOWLEDGE", 102, 4, "B")])
    assert told(result, "bytes")[1:] == [
        ("read:100-100 complete", 64),
        ("read:101-101 complete", 64),
        ("fetch_add:102-102 complete", 8),
    ]
    assert result.word(states.MOST_READS) == 3


def test_flush_and_atomic_write_are_answered_by_either(p, track):
    packets = [p("FLUSH", 100, 1), p("READ_RESPONSE_ONLY", 100, 2, "B"), p("ATOMIC_WRITE", 101, 3, payload_len=8)]
    result = track(start(p) + packets + [p("ACKNOWLEDGE", 101, 4, "B")])
    assert told(result)[1:] == ["flush:100-100 complete", "atomic_write:101-101 complete"]


def test_refused_while_its_packets_are_on_their_way(p, track):
    packets = [p("WRITE_FIRST", 100, 1), p("ACKNOWLEDGE", 100, 2, "B", syndrome=0x62)]
    packets += [p("WRITE_LAST", 101, 3), p("SEND_ONLY", 102, 3)]
    result = track(start(p) + packets)
    assert told(result, "syndrome", "whole")[1:] == [
        ("write:100-101 refused", 0x62, True),
        ("send:102-102 flushed", None, True),
    ]


def test_answers_that_passed_elsewhere(p, track):
    """A READ is never answered here, and never asked for again: after sixteen later answers it is let go."""
    packets = [p("READ_REQUEST", 100, 1, dma_len=64)]
    for n in range(1, 20):
        packets += [p("SEND_ONLY", 100 + n, 1 + n), p("ACKNOWLEDGE", 100 + n, 1.5 + n, "B")]
    result = track(start(p) + packets)
    texts = told(result)
    assert texts[1] == "read:100-100 answer_unseen"
    assert texts[2:] == [f"send:{100 + n}-{100 + n} complete" for n in range(1, 20)]


def test_nobody_answers(p, track, monkeypatch):
    """One-sided: when the table is half full, sixteen are kept; none is invented."""
    monkeypatch.setattr(flow_table, "MAX_MESSAGES", 50)
    result = track([p("SEND_ONLY", psn, psn) for psn in range(40)])
    assert told(result) == [f"send:{psn}-{psn} unanswered" for psn in range(40)]
    assert result.word(states.MOST_MESSAGES) == 25
    assert result.flows.unfollowed == 0


def test_uc_message_with_a_hole(p, track):
    packets = [p("UC_SEND_FIRST", 10, 0), p("UC_SEND_LAST", 12, 1), p("UC_WRITE_ONLY", 13, 2)]
    packets += [p("UC_SEND_FIRST", 14, 3), p("UC_SEND_ONLY", 15, 4)]  # its LAST was lost
    assert told(track(packets)) == [
        "send:10-12 lost",
        "write:13-13 sent",
        "send:14-14 lost",
        "send:15-15 sent",
    ]


def test_uc_begun_before_the_capture(p, track):
    packets = [p("UC_SEND_MIDDLE", 10, 0), p("UC_SEND_LAST", 11, 1)]
    assert told(track(packets), "whole") == [("send:10-11 sent", False)]


def test_datagrams(p, track):
    packets = [p("UD_SEND_ONLY", 7, 0, src_qp=3, payload_len=9), p("UD_SEND_ONLY_IMM", 7, 1, src_qp=3, imm_data=1)]
    packets += [p("UD_SEND_ONLY", 8, 2, src_qp=3, dest_qp=1)]  # management
    assert told(track(packets), "bytes", "imm_data") == [("send:7-7 sent", 9, None), ("send_imm:7-7 sent", 0, 1)]


def test_xrc_is_followed_like_rc(p, track):
    packets = [
        p("XRC_SEND_ONLY", 10, 0),
        p("XRC_SEND_ONLY", 11, 1),
        p("XRC_ACKNOWLEDGE", 11, 2, "B", present=2**24 - 1),
    ]
    result = track(packets)
    assert result.verdicts[:2] == ["first", "new"]
    assert told(result) == ["send:10-10 complete", "send:11-11 complete"]


def test_busy_and_idle(p, track):
    """Busy 0 to 0.2, 1 to 3, 10 to 11; idle between."""
    packets = [p("SEND_ONLY", 100, 1), p("SEND_ONLY", 101, 2), p("ACKNOWLEDGE", 101, 3, "B")]
    packets += [p("SEND_ONLY", 102, 10), p("ACKNOWLEDGE", 102, 11, "B")]
    result = track(start(p) + packets)
    assert result.word(states.BUSY_TIME, 0) == 3_200_000
    assert result.word(states.IDLE_TIME, 0) == 800_000 + 7_000_000


def test_no_room_for_messages(p, track, monkeypatch):
    monkeypatch.setattr(flow_table, "MAX_MESSAGES", 4)
    packets = [p("SEND_ONLY", psn, psn) for psn in range(10)]
    result = track(packets)
    assert told(result) == [f"send:{psn}-{psn} unanswered" for psn in range(3)]
    assert result.flows.unfollowed == 7


def test_keys_may_be_missing(p, build, tracker):
    columns = build.columns([p("WRITE_ONLY_IMM", 5, 0, va=9, r_key=8, imm_data=7, dma_len=6)])
    for name in flow_table.KEY_COLUMNS:
        del columns[name]
    row = build.Tracked(columns, tracker).message_frame.iloc[0]
    assert row[["va", "r_key", "imm_data"]].isna().all()
    assert row["dma_len"] == 6


def test_a_new_life_ends_them(p, track):
    packets = [*start(p), p("SEND_ONLY", 100, 1), p("SEND_FIRST", 101, 1), p("SEND_ONLY", 9_000_000, 9)]
    assert told(track(packets))[1:] == [
        "send:100-100 unanswered",
        "send:101-101 unfinished",
        "send:9000000-9000000 unanswered",
    ]


def test_a_late_read_of_unknown_range(p, track):
    """No path MTU is known; the READ was lost first, and comes in the middle of a gap: its LAST response ends it."""
    packets = [p("SEND_ONLY", 10, 0), p("ACKNOWLEDGE", 10, 0.1, "B"), p("SEND_ONLY", 14, 1)]
    packets += [p("ACKNOWLEDGE", 11, 2, "B", syndrome=0x60), p("READ_REQUEST", 11, 3, dma_len=150)]
    packets += [
        p("READ_RESPONSE_FIRST", 11, 4, "B", payload_len=64),
        p("READ_RESPONSE_MIDDLE", 12, 5, "B", payload_len=64),
    ]
    packets += [p("READ_RESPONSE_LAST", 13, 6, "B"), p("SEND_ONLY", 14, 7), p("ACKNOWLEDGE", 14, 8, "B")]
    result = track(packets)
    assert told(result, "answer_packets")[1:] == [("read:11-13 complete", 3), ("send:14-14 complete", 0)]
    assert result.word(states.UNSEEN_PACKETS) == 0


def test_a_read_that_came_in_part_has_no_answer(p, track):
    packets = [p("READ_REQUEST", 100, 1, dma_len=3000), p("READ_RESPONSE_FIRST", 100, 2, "B", payload_len=1024)]
    assert told(track(packets), "answer_frame", "latency_ns", "answer_first_frame") == [
        ("read:100-100 unanswered", None, None, 2)
    ]


def test_what_came_late_before_a_refused_one(p, track):
    """11 comes late while the refused 12 is still on its way: it was flushed, 12 was refused."""
    packets = [p("SEND_ONLY", 10, 1), p("SEND_FIRST", 12, 1), p("ACKNOWLEDGE", 12, 2, "B", syndrome=0x61)]
    packets += [p("SEND_ONLY", 11, 3), p("SEND_LAST", 13, 3)]
    result = track([p("SEND_ONLY", 9, 0), p("ACKNOWLEDGE", 9, 0.1, "B"), *packets])
    assert told(result, "syndrome")[1:] == [
        ("send:10-10 complete", None),
        ("send:11-11 flushed", None),
        ("send:12-13 refused", 0x61),
    ]


def test_a_resend_is_no_short_answer(p, track):
    """Karn: the ACK 5 us after the second try may answer the first one."""
    packets = [p("SEND_ONLY", 100, 1), p("SEND_ONLY", 100, 1.995), p("ACKNOWLEDGE", 100, 2, "B")]
    assert track(start(p) + packets).word(states.LEAST_ANSWER) == 200_000


def test_the_epoch_itself_is_a_time(p, track):
    packets = [*start(p), p("SEND_ONLY", 100, 1), p("SEND_ONLY", 100, 68)]
    epoch = packets[2]["time_ns"]
    for one in packets:
        one["time_ns"] -= epoch
    [row] = track(packets).episodes.itertuples()
    assert (row.trigger, row.wait_ns) == ("timeout", 66_999_999)


def test_requests_sent_again_as_another_operation(p, track):
    """100 began a message of two packets; sent again, 101 begins one: the sender numbered anew."""
    packets = [p("WRITE_FIRST", 100, 1, payload_len=64, dma_len=128), p("WRITE_LAST", 101, 1, payload_len=64)]
    packets += [p("WRITE_LAST", 100, 9, payload_len=64), p("WRITE_FIRST", 101, 9, payload_len=64, dma_len=128)]
    assert track(start(p) + packets).word(states.CHANGED_REQUESTS) == 2
    again = [p("WRITE_FIRST", 100, 9, payload_len=64, dma_len=128), p("WRITE_LAST", 101, 9, payload_len=64)]
    assert track(start(p) + packets[:2] + again).word(states.CHANGED_REQUESTS) == 0
    read = [p("READ_REQUEST", 100, 1, dma_len=64), p("READ_REQUEST", 100, 9, dma_len=32)]
    assert track(start(p) + read).word(states.CHANGED_REQUESTS) == 0


def test_more_bytes_than_announced_is_not_whole(p, track):
    packets = [p("WRITE_FIRST", 100, 1, payload_len=64, dma_len=100), p("WRITE_LAST", 101, 1, payload_len=64)]
    assert told(track(start(p) + packets), "whole")[1:] == [("write:100-101 unanswered", False)]
