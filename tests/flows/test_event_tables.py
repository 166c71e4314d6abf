"""Events and episodes as tables: causes that later knowledge settles, places, order."""

from __future__ import annotations

from roce_dissect.columns import EPISODES, EVENTS
from roce_dissect.flows.event_tables import settled_events
from roce_dissect.flows.tables import build_tables


def tables(build, result):
    return build_tables(result.flows, build.ADDRESSES)


def test_a_nak_names_what_it_answers(p, build, track):
    """0x60: the packet behind the gap; a fatal one: the request that was refused."""
    packets = [p("SEND_ONLY", 1, 0), p("SEND_ONLY", 3, 1), p("ACKNOWLEDGE", 2, 5, "B", syndrome=0x60)]
    packets += [p("SEND_ONLY", 2, 6), p("SEND_ONLY", 3, 6), p("ACKNOWLEDGE", 3, 7, "B")]
    packets += [p("WRITE_FIRST", 4, 8), p("WRITE_LAST", 5, 9), p("ACKNOWLEDGE", 5, 10, "B", syndrome=0x62)]
    events = tables(build, track(packets)).events
    naks = events[events["kind"] == "nak"]
    assert naks["cause_frame"].tolist() == [2, 7]
    assert naks["cause_ns"].tolist() == [4_000_000, 2_000_000]
    assert list(events.columns) == list(EVENTS)


def test_an_rnr_nak_names_the_request(p, build, track):
    packets = [p("SEND_ONLY", 1, 0), p("SEND_ONLY", 2, 1), p("ACKNOWLEDGE", 2, 5, "B", syndrome=0x2C)]
    events = tables(build, track(packets)).events
    assert events["cause_frame"].tolist() == [2]


def test_only_resends_have_a_trigger(p, build, track):
    packets = [p("SEND_ONLY", 1, 0), p("SEND_ONLY", 3, 1), p("ACKNOWLEDGE", 2, 5, "B", syndrome=0x60)]
    events = tables(build, track([*packets, p("SEND_ONLY", 2, 6), p("SEND_ONLY", 3, 6)])).events
    assert dict(zip(events["kind"], events["trigger"], strict=True)) == {"gap": "", "nak": "", "resend": "nak"}
    assert events.loc[events["kind"] == "resend", "cause_frame"].tolist() == [3]
    assert events.loc[events["kind"] == "resend", "cause_ns"].tolist() == [1_000_000]


def test_the_given_rows_stay(p, build, track):
    packets = [p("SEND_ONLY", 100, 0), p("SEND_ONLY", 100, 50), p("SEND_ONLY", 101, 51)]
    result = track(packets)
    before = result.flows.events.copy()
    settled_events(result.flows.events, build.np.zeros(1, bool))
    assert (result.flows.events == before).all()


def test_rows_in_a_row_are_of_one_stream(p, build, track):
    """Timeouts of two streams in turn: each has its own three that grow."""
    packets = []
    for ms in (0, 2, 6, 14):
        packets += [p("SEND_ONLY", 5, ms, dest_qp=17), p("SEND_ONLY", 5, ms + 1, dest_qp=30)]
    episodes = tables(build, track(packets)).episodes
    assert episodes["trigger"].tolist() == ["adaptive_timeout"] * 6
    assert episodes["retry"].tolist() == [1, 1, 2, 2, 3, 3]


def test_no_events(build, track):
    made = tables(build, track([]))
    assert len(made.events) == len(made.episodes) == 0
    assert list(made.episodes.columns) == list(EPISODES)


def test_places_name_file_and_frame(p, build, track):
    packets = [p("SEND_ONLY", 1, 0), p("SEND_ONLY", 1, 9)]
    for number, one in enumerate(packets, start=7):
        one["frame_key"] = 2 << 40 | number
    [row] = tables(build, track(packets)).episodes.itertuples()
    assert (row.file, row.frame, row.last_file, row.last_frame) == (2, 8, 2, 8)
