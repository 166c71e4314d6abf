"""Episodes beyond the worked examples of docs/semantics.md: where they begin and end, and what they cost."""

from __future__ import annotations

import pytest

from roce_dissect.flows import states


def of(result, *columns):
    """Chosen columns of the episodes, as tuples."""
    return [tuple(row) for row in result.episodes[list(columns)].astype(object).itertuples(index=False)]


def connection(p, *packets):
    """A paired connection of A (requests to QP 17) and B, then the packets."""
    return [p("SEND_ONLY", 99, 0), p("ACKNOWLEDGE", 99, 0.2, "B"), *packets]


def test_every_going_back_is_one(p, track):
    """Back to 100 twice, each time 100 to 102."""
    sends = [p("SEND_ONLY", psn, 1 + psn / 1e3) for psn in (100, 101, 102)]
    again = [p("SEND_ONLY", psn, ms) for ms in (10, 20) for psn in (100, 101, 102)]
    result = track(connection(p, *sends, *again))
    assert of(result, "frame", "last_frame", "packets", "retry") == [(6, 8, 3, 1), (9, 11, 3, 2)]
    assert result.word(states.EPISODES) == 2
    assert result.word(states.MOST_RETRIES) == 2


def test_back_to_what_was_acknowledged_meanwhile(p, track):
    """The second time it goes back to 101, since 100 has been acknowledged: progress, so that it is a first retry."""
    packets = [p("SEND_ONLY", psn, 1 + psn / 1e3) for psn in (100, 101, 102)]
    packets += [p("SEND_ONLY", psn, 10) for psn in (100, 101, 102)]
    packets += [p("ACKNOWLEDGE", 100, 11, "B"), p("SEND_ONLY", 101, 20), p("SEND_ONLY", 102, 20)]
    result = track(connection(p, *packets))
    assert of(result, "psn", "packets", "retry") == [(100, 3, 1), (101, 2, 1)]


def test_a_nak_within_an_episode_begins_the_next(p, track):
    packets = [p("SEND_ONLY", psn, 1 + psn / 1e3) for psn in (100, 101, 102, 103)]
    packets += [p("SEND_ONLY", psn, 10) for psn in (100, 101, 102)]
    packets += [p("ACKNOWLEDGE", 102, 11, "B", syndrome=0x60), p("SEND_ONLY", 102, 12), p("SEND_ONLY", 103, 12)]
    result = track(connection(p, *packets))
    assert of(result, "trigger", "psn", "packets") == [("timeout", 100, 3), ("nak", 102, 2)]
    assert of(result, "reaction_ns")[1] == (1_000_000,)


def test_the_first_sight_of_what_a_nak_asked_for(p, track):
    """101 never passed here before, nor did anything behind it: its resend is plainly next, and still an episode."""
    packets = [p("SEND_ONLY", 100, 1), p("ACKNOWLEDGE", 101, 2, "B", syndrome=0x60), p("SEND_ONLY", 101, 5)]
    result = track(connection(p, *packets, p("SEND_ONLY", 102, 6)))
    assert result.verdicts[-2:] == ["new", "new"]
    assert of(result, "trigger", "frame", "packets", "late_packets", "reaction_ns", "stall_ns") == [
        ("nak", 5, 1, 1, 3_000_000, 4_000_000)
    ]


def test_rnr_nak_and_the_nak_behind_it_are_one_cause(p, track):
    packets = [p("SEND_ONLY", 100, 1), p("SEND_ONLY", 101, 1)]
    packets += [p("ACKNOWLEDGE", 100, 2, "B", syndrome=0x2C), p("ACKNOWLEDGE", 100, 2, "B", syndrome=0x60)]
    result = track(connection(p, *packets, p("SEND_ONLY", 100, 5), p("SEND_ONLY", 101, 5)))
    assert of(result, "trigger", "trigger_frame") == [("rnr_nak", 5)]


def test_a_nak_that_an_ack_overtook_causes_nothing(p, track):
    """What the NAK asked for is acknowledged after all; a timeout of a later packet is no answer to it."""
    packets = [p("SEND_ONLY", 100, 1), p("ACKNOWLEDGE", 100, 2, "B", syndrome=0x60), p("ACKNOWLEDGE", 100, 3, "B")]
    packets += [p("SEND_ONLY", 101, 4), p("SEND_ONLY", 101, 90)]
    assert of(track(connection(p, *packets)), "trigger", "psn") == [("timeout", 101)]


def test_selective(p, track):
    """100 alone is sent again, then the sender goes on behind 102."""
    packets = [p("SEND_ONLY", psn, 1 + psn / 1e3) for psn in (100, 101, 102)]
    packets += [p("ACKNOWLEDGE", 100, 2, "B", syndrome=0x60), p("SEND_ONLY", 100, 3), p("SEND_ONLY", 103, 4)]
    assert of(track(connection(p, *packets)), "trigger", "recovery") == [("nak", "selective")]


def test_bytes_and_what_had_arrived(p, track):
    packets = [p("SEND_ONLY", psn, 1, payload_len=100) for psn in (100, 101)]
    packets += [p("ACKNOWLEDGE", 100, 2, "B"), p("SEND_ONLY", 100, 50, payload_len=100)]
    result = track(connection(p, *packets, p("SEND_ONLY", 101, 50, payload_len=100)))
    # 100 was answered long ago, so that only its answer can have been lost; 101 has arrived by the model
    assert of(result, "trigger", "packets", "bytes", "arrived_packets") == [("timeout", 2, 200, 2)]


def test_extent(p, track):
    """Three PSNs behind, 2 ms after its gap was noticed."""
    packets = [p("SEND_ONLY", 101, 1), p("SEND_ONLY", 102, 2.95), p("SEND_ONLY", 100, 3)]
    result = track(connection(p, *packets))
    assert of(result, "trigger", "extent_packets", "extent_ns") == [("reordering", 3, 2_000_000)]


def test_silence_without_answers_may_hide_a_nak(p, track):
    """Nobody was heard to answer: one resend has no known cause; the same packet three times is a timeout."""
    once = track([p("SEND_ONLY", 100, 0), p("SEND_ONLY", 100, 50), p("SEND_ONLY", 101, 51)])
    assert of(once, "trigger") == [("unknown",)]
    assert once.episodes["arrived_packets"].isna().all()
    thrice = track([p("SEND_ONLY", 100, ms) for ms in (0, 50, 100, 150)])
    assert of(thrice, "trigger") == [("timeout",)] * 3


def test_adaptive_timeouts_are_three_in_a_row(p, track):
    """2, 4, 8 ms, then one that did not grow; two that grow may be chance."""
    packets = [p("SEND_ONLY", 100, ms) for ms in (1, 3, 7, 15, 23)]
    assert of(track(connection(p, *packets)), "trigger") == [("adaptive_timeout",)] * 3 + [("timeout",)]
    packets = [p("SEND_ONLY", 100, ms) for ms in (1, 3, 7)]
    assert of(track(connection(p, *packets)), "trigger") == [("timeout",)] * 2


def test_uc_never_goes_back(p, track):
    packets = [p("UC_SEND_ONLY", psn, ms) for psn, ms in ((10, 0), (12, 1), (11, 50), (13, 51))]
    assert of(track(packets), "trigger", "recovery") == [("reordering", "none")]


@pytest.mark.parametrize("back", [0.0, -5.0, -1e7])
def test_time_that_runs_backwards(p, track, back):
    packets = [p("SEND_ONLY", 100, 10), p("SEND_ONLY", 100, 10 + back), p("SEND_ONLY", 101, 9)]
    result = track(connection(p, *packets))
    assert of(result, "wait_ns", "packets") == [(0, 1)]
    assert result.word(states.STALL) >= 0


def counted_up(p, *sends):
    """Twenty plain requests with identifications that count up, answered; then sends of (PSN, ms, identification)."""
    plain = [p("SEND_ONLY", psn, psn / 100, ip_id=psn) for psn in range(100, 120)]
    answer = [p("ACKNOWLEDGE", 119, 1.3, "B")]
    return plain + answer + [p("SEND_ONLY", psn, ms, ip_id=number) for psn, ms, number in sends]


def test_identifications_tell_reordering(p, track):
    """122 and 123 passed before 121, which was sent before them: no timeout, however long it took."""
    packets = counted_up(p, (120, 2, 120), (122, 2, 122), (123, 2, 123), (121, 9, 121), (124, 9.1, 124))
    assert of(track(packets), "trigger", "recovery", "retry") == [("reordering", "none", 0)]


def test_identifications_tell_going_back_twice(p, track):
    """Back to 120, then to 122 again without a silence: two acts, since the second 122 was sent later."""
    sends = [(psn, 2, psn) for psn in (120, 121, 122, 123)]
    again = [(120, 9, 200), (121, 9, 201), (122, 9, 202), (123, 9, 203), (122, 9.01, 204), (123, 9.01, 205)]
    assert of(track(counted_up(p, *sends, *again)), "psn", "packets") == [(120, 4), (122, 2)]


def test_a_network_duplicate_beyond_the_window_is_no_timeout(p, track):
    packets = counted_up(p, (120, 2, 120), (121, 2, 121), (120, 9, 120), (122, 9.1, 122))
    assert of(track(packets), "trigger") == [("reordering",)]


def test_resends_that_were_reordered_are_one_going_back(p, track):
    """10, 12, 11, 13 again, 10 us apart: without identifications that tell, a silence would have to lie between."""
    packets = [p("SEND_ONLY", psn, 1) for psn in (100, 101, 102, 103)]
    packets += [p("SEND_ONLY", psn, 9 + n / 100) for n, psn in enumerate((100, 102, 101, 103))]
    assert of(track(connection(p, *packets)), "packets") == [(4,)]


def test_what_is_in_flight_behind_an_rnr_nak_takes_no_cause(p, build, track):
    """The last try: 100 is refused while 101 is on its way, and nothing comes any more."""
    packets = []
    for ms in (1, 10, 20):
        packets += [p("SEND_ONLY", 100, ms), p("ACKNOWLEDGE", 100, ms + 1, "B", syndrome=0x2E)]
        packets += [p("SEND_ONLY", 101, ms + 1.1)]
    result = track(connection(p, *packets))
    assert of(result, "trigger", "packets") == [("rnr_nak", 2), ("rnr_nak", 2)]
    assert build.build_tables(result.flows, build.ADDRESSES, packets[-1]["time_ns"] + 10**8).connections[
        "ended_by"
    ].tolist() == ["rnr_retries"]


def test_a_nak_that_waits_keeps_a_step_further_back_from_a_cause(p, track):
    """Asked for 102, the sender goes back to 100: by the NAK, or by a timeout before it heard of it."""
    packets = [p("SEND_ONLY", psn, 1) for psn in (100, 101, 102, 103)]
    packets += [p("ACKNOWLEDGE", 102, 2, "B", syndrome=0x60), p("SEND_ONLY", 100, 9), p("SEND_ONLY", 101, 9)]
    assert of(track(connection(p, *packets)), "trigger") == [("unknown",)]


def test_an_implied_nak_names_the_first_answer(p, track):
    """Two ACKs beyond an unanswered READ; the first one tells, and the reaction counts from there."""
    packets = [p("READ_REQUEST", 100, 1, dma_len=64), p("SEND_ONLY", 101, 1), p("SEND_ONLY", 102, 1)]
    packets += [p("ACKNOWLEDGE", 101, 2, "B"), p("ACKNOWLEDGE", 102, 4, "B"), p("READ_REQUEST", 100, 5, dma_len=64)]
    assert of(track(connection(p, *packets)), "trigger", "trigger_frame", "reaction_ns") == [
        ("implied_nak", 6, 3_000_000)
    ]


def test_the_gap_of_another_stream_is_none_of_this_one(p, track):
    packets = [p("SEND_ONLY", 1, 0, dest_qp=40), p("SEND_ONLY", 3, 0, dest_qp=40), p("SEND_ONLY", 2, 1, dest_qp=40)]
    packets += [*connection(p), p("ACKNOWLEDGE", 100, 2, "B", syndrome=0x60), p("SEND_ONLY", 100, 500)]
    last = track(packets).episodes.iloc[-1]
    assert last["trigger"] == "nak"
    assert str(last["extent_ns"]) == "<NA>"


def test_a_lossy_path_seen_from_one_side_is_no_timeout(p, track):
    """100 is sent again twice, since its resend was lost, too; then the stream goes on: NAKs may have passed unseen."""
    packets = [p("SEND_ONLY", psn, psn / 100) for psn in (100, 101, 102)]
    packets += [p("SEND_ONLY", psn, ms) for ms in (20, 30) for psn in (100, 101, 102)] + [p("SEND_ONLY", 103, 31)]
    assert of(track(packets), "trigger", "retry") == [("unknown", 1), ("unknown", 2)]


def test_answers_that_are_all_cut_say_nothing(p, build, track):
    """Three resends from one PSN each: whether the cut answers were NAKs is not known, and nobody gave up."""
    packets = [p("SEND_ONLY", 100, 0)]
    for ms in (10, 20):
        packets += [p("ACKNOWLEDGE", 100, ms - 1, "B"), p("SEND_ONLY", 100, ms)]
        packets[-2]["present"] &= ~64  # AETH
    result = track([*packets, p("SEND_ONLY", 101, 30)])
    assert of(result, "trigger") == [("unknown",)] * 2
    assert not build.build_tables(result.flows, build.ADDRESSES).streams["confirmed"].any()
