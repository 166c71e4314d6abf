"""The flow table: opcode classes, events kept and left out, the form handed to the tracker."""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect.flows import flow_table, states
from roce_dissect.flows.flow_table import FlowTable, Verdicts, class_table
from roce_dissect.terms import Verb

#: What IBTA's operations are to go-back-N, by the low five bits, spelled out again.
REQUESTS = {*range(0x00, 0x0D), 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D}
RESPONSES = set(range(0x0D, 0x13))
FULL = {0x00, 0x01, 0x06, 0x07, 0x0D, 0x0E}  # FIRST and MIDDLE
STARTS = {0x00, 0x04, 0x05, 0x06, 0x0A, 0x0B}  # FIRST and ONLY of SEND and WRITE
WITH_AETH = {0x0D, 0x0F, 0x10, 0x11, 0x12}


def test_classes():
    table = class_table()
    for code in range(32):
        kind = int(table[code])
        assert bool(kind & states.REQUEST) == (code in REQUESTS), hex(code)
        assert bool(kind & states.RESPONSE) == (code in RESPONSES)
        assert bool(kind & states.READ) == (code == 0x0C)
        assert bool(kind & states.READ_RESPONSE) == (code in range(0x0D, 0x11))
        assert bool(kind & states.ACKNOWLEDGES) == (code in WITH_AETH)
        assert bool(kind & states.FULL) == (code in FULL)
        assert not kind & states.UNRELIABLE
        uc = int(table[0x20 | code])
        assert uc == ((kind | states.UNRELIABLE) if code < 0x0C else 0)
        xrc = int(table[0xA0 | code])
        assert xrc == (0 if code in (0x1C, 0x1D) else kind)
        if code in STARTS:
            assert kind & states.STARTS
        assert bool(kind & states.ASKS) == (code in (0x0C, 0x12, 0x13, 0x14))
        assert bool(kind & states.ENDS) == (kind != 0 and code not in FULL)
    for code, verb in ((0x64, Verb.SEND), (0x65, Verb.SEND_IMM)):
        datagram = states.DATAGRAM | states.UNRELIABLE | states.STARTS | states.ENDS
        assert int(table[code]) == datagram | verb << states.VERB_SHIFT
    assert int(table[0x81]) == states.CONGESTION
    assert all(table[code] == 0 for code in (0x15, 0x18, 0x1F, 0x80, 0xC0, 0xFF, 0x66))
    assert all(table[code] == states.COUNTED for code in (0x44, 0x51))


def test_verbs():
    """By the names of the operations, from Linux ib_pack.h."""
    verbs = {
        Verb.SEND: (0, 1, 2, 4), Verb.SEND_IMM: (3, 5), Verb.SEND_INV: (0x16, 0x17), Verb.WRITE: (6, 7, 8, 0x0A),
        Verb.WRITE_IMM: (9, 0x0B), Verb.READ: (0x0C,), Verb.COMPARE_SWAP: (0x13,), Verb.FETCH_ADD: (0x14,),
        Verb.FLUSH: (0x1C,), Verb.ATOMIC_WRITE: (0x1D,), 0: (0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12),
    }  # fmt: skip
    told = {code: verb for verb, codes in verbs.items() for code in codes}
    assert {code: int(class_table()[code]) >> states.VERB_SHIFT for code in told} == told


def test_events_beyond_the_most_are_counted(build, tracker, monkeypatch):
    """The first ones stay, the others are counted, the streams' own figures stay exact."""
    packets = [build.packet("SEND_ONLY", 2 * n, n) for n in range(50)]
    whole = build.Tracked(packets, tracker)
    monkeypatch.setattr(flow_table, "MAX_EVENTS", 20)
    few = build.Tracked(packets, tracker)
    assert len(whole.flows.events) == 49
    assert few.flows.events.tolist() == whole.flows.events[:20].tolist()
    assert few.flows.events_left_out == 29
    assert few.word(states.GAPS) == 49


def test_small_event_buffer(build, tracker, monkeypatch):
    """Drained in time, a buffer of one packet's events loses none."""
    packets = [build.packet("SEND_ONLY", 2 * n, n) for n in range(50)]
    whole = build.Tracked(packets, tracker)
    monkeypatch.setattr(flow_table, "EVENT_ROWS", states.MOST_EVENTS)
    assert build.Tracked(packets, tracker).flows.events.tolist() == whole.flows.events.tolist()


def test_finish_with_many_open_runs(build, tracker, monkeypatch):
    """More open runs than the event buffer holds."""
    monkeypatch.setattr(flow_table, "EVENT_ROWS", states.MOST_EVENTS)
    packets = [build.packet("SEND_ONLY", 5, n // 40, dest_qp=100 + n % 40) for n in range(80)]
    result = build.Tracked(packets, tracker)
    assert len(result.flows.events) == 40
    assert sorted(result.flows.events[:, states.EVENT_STREAM].tolist()) == list(range(40))


def test_rows_beyond_the_given_ones_are_not_touched(build, tracker):
    columns = build.columns([build.packet("SEND_ONLY", psn, psn) for psn in range(5)])
    out = Verdicts.empty(5)
    for array in out.arrays():
        array[:] = 77
    flows = FlowTable(tracker)
    flows.feed(columns, 3, (), out)
    assert out.verdict.tolist()[3:] == [77, 77]
    assert flows.streams[0, states.PACKETS] == 3


def test_without_verdicts(build, tracker):
    columns = build.columns([build.packet("SEND_ONLY", psn, psn) for psn in (0, 3, 1)])
    one, other = FlowTable(tracker), FlowTable(tracker)
    one.feed(columns, 3)
    other.feed(columns, 3, (), Verdicts.empty(3))
    assert np.array_equal(one.streams, other.streams)


def test_nothing(tracker):
    flows = FlowTable(tracker)
    flows.finish()
    assert flows.streams.shape == (0, states.STREAM_WORDS)
    assert flows.events.shape == (0, states.EVENT_WORDS)
    assert (flows.foreign, flows.untracked) == (0, 0)


def test_streams_read_only_as_far_as_used(build, tracker):
    result = build.Tracked(
        [build.packet("SEND_ONLY", 1, 0, dest_qp=qp) for qp in range(17, 27)], tracker, max_streams=16
    )
    assert len(result.flows.streams) == 10


@pytest.mark.parametrize("size", [3, 100])
def test_streams_are_a_power_of_two(tracker, size):
    with pytest.raises(ValueError, match="powers of two"):
        FlowTable(tracker, max_streams=size)
