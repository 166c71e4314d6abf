"""Random packets through the tracker: both forms, any chunk size and small tables give the same, and figures add up.

Fixed seeds. The compiled form checks no bounds; what it does within them has to equal the interpreted form, in which
an index too far is an IndexError.
"""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect.flows import flow_table, states
from roce_dissect.flows.flow_table import FLOW_COLUMNS, KEY_COLUMNS, FlowTable, Verdicts
from roce_dissect.spec import headers
from roce_dissect.terms import Accepted, MessageStatus, Role, Standing, Trigger, Verdict

#: Opcodes of every kind: a case takes the first few, so that some see only requests of one kind.
OPCODES = [
    4, 0, 1, 2, 0x0C, 0x11, 6, 7, 8, 0x0A, 0x0D, 0x0E, 0x0F, 0x10, 0x12, 0x13, 0x14, 0x17, 0x1C, 0x1D, 0x24, 0x26, 0x27,
    0x28, 0x64, 0x81, 0xA4, 0x44, 0xC7,
]  # fmt: skip
SYNDROMES = [0x1F, 0x1F, 0, 0x60, 0x60, 0x20, 0x2C, 0x62, 0x63, 0x61, 0x7F, 0x40, 0xE0]
PSNS = [0, 5, 0xFFFFF0, 0x7FFFF8, 1000, 0xABCDEF]


def random_packets(rng, count):
    """Columns of a few hosts and QPs whose PSNs walk forward with steps back, jumps and now and then anything."""
    hosts, qps = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    src = rng.integers(1, hosts + 1, count)
    dst = (src - 1 + rng.integers(1, hosts, count)) % hosts + 1
    steps = rng.choice([0, 1, 1, 1, 1, 1, 2, 3, -1, -2, -8, 40], count)
    psn = (int(rng.choice(PSNS)) + np.cumsum(steps) // max(1, hosts * qps // 2)) & 0xFFFFFF
    wild = rng.random(count) < rng.choice([0, 0.01, 0.1])
    psn[wild] = rng.integers(0, 1 << 24, int(wild.sum()))
    opcode = rng.choice(OPCODES[: int(rng.integers(2, len(OPCODES) + 1))], count)
    present = np.full(count, headers.HAS_BTH, np.int64)
    for bit, chance in (
        (headers.HAS_IPV4, rng.choice([0, 1])),
        (headers.HAS_ICRC, 0.7),
        (headers.HAS_AETH, 0.95),
        (headers.HAS_RETH, 0.9),
        (headers.HAS_DETH, 0.9),
        (headers.HAS_ATOMIC_ETH, 0.1),
        (headers.HAS_IMMDT, 0.2),
        (headers.HAS_IETH, 0.2),
        (headers.HAS_VNI, rng.choice([0, 0.1, 1])),
    ):
        present[rng.random(count) < chance] |= bit
    present[rng.random(count) < 0.01] &= ~headers.HAS_BTH
    values = {
        "frame_key": np.arange(1, count + 1),
        "time_ns": np.cumsum(rng.choice([0, 10, 1000, 400_000, 90_000_000, -5000], count)) + 10**15,
        "src": src,
        "dst": dst,
        "dest_qp": rng.choice([0, 1, *range(17, 17 + qps)], count, p=[0.01, 0.01, *[0.98 / qps] * qps]),
        "src_qp": rng.integers(1, 3, count),
        "psn": psn,
        "opcode": opcode,
        "syndrome": rng.choice(SYNDROMES, count),
        "payload_len": rng.choice([0, 64, 256, 1024, 4096], count),
        "dma_len": rng.choice([0, 64, 3000, 65536, 0xFFFFFFFF, 0x7FFFFFFF], count),
        "wire_len": rng.integers(60, 9000, count),
        "present": present,
        "status": rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 2, 4], count),
        "version": np.full(count, 2),
        "ecn": rng.choice([0, 2, 3], count, p=[0.8, 0.1, 0.1]),
        "ip_id": rng.integers(0, int(rng.choice([1, 3, 65536])), count),
        "icrc": rng.integers(0, 3, count),
        "udp_sport": rng.integers(0, 1 << 16, count),
        "msn": rng.integers(0, 1 << 24, count),
        "vni": rng.choice([0, 7, 0xFFFFFF, 0xFFFFFFFF], count, p=[0.2, 0.5, 0.2, 0.1]),
        "standing": rng.choice([0, 1, 2, 3, 4], count, p=[0.9, 0.03, 0.03, 0.02, 0.02])
        if rng.random() < 0.5
        else np.zeros(count, np.uint8),
        "va": rng.integers(0, 1 << 64, count, dtype=np.uint64),
        "r_key": rng.integers(0, 1 << 32, count),
        "imm_data": rng.integers(0, 1 << 32, count),
        "inv_r_key": rng.integers(0, 1 << 32, count),
    }
    if rng.random() < 0.1:
        values["time_ns"] = rng.choice([-(1 << 63), -(1 << 61), 0, 1 << 61, (1 << 63) - 1], count)
    for row in np.flatnonzero(rng.random(count) < 0.05)[1:].tolist():  # the very same packet again
        for name in FLOW_COLUMNS + KEY_COLUMNS:
            values[name][row] = values[name][row - 1] + (name == "frame_key")
    return values


class Outcome:
    """All that the tracker said: columns, stream rows, events, counts."""

    def __init__(self, tracker, columns, pieces, max_streams):
        count = len(columns["psn"])
        ended = []
        flows = FlowTable(tracker, max_streams, lambda rows: ended.append(rows.copy()))
        out = {name: [] for name in Verdicts.__dataclass_fields__}
        start = 0
        while start < count:
            stop = min(count, start + next(pieces))
            part = {name: np.ascontiguousarray(values[start:stop]) for name, values in columns.items()}
            verdicts = Verdicts.empty(max(stop - start, 2))
            flows.feed(part, stop - start, (), verdicts)
            for name, values in out.items():
                values.append(getattr(verdicts, name)[: stop - start])
            start = stop
        flows.finish()
        self.flows = flows
        self.out = {name: np.concatenate(values) for name, values in out.items()}
        self.streams = flows.streams.copy()
        self.events = flows.events.copy()
        self.messages = np.concatenate([np.zeros((0, states.MESSAGE_WORDS), np.int64), *ended])
        self.latency = flows.latency.copy()
        self.rest = (flows.foreign, flows.untracked, flows.events_left_out, flows.unfollowed)

    def equals(self, other):
        return (
            all((self.out[name] == other.out[name]).all() for name in self.out)
            and np.array_equal(self.streams, other.streams)
            and np.array_equal(self.events, other.events)
            and np.array_equal(self.messages, other.messages)
            and np.array_equal(self.latency, other.latency)
            and self.rest == other.rest
        )


@pytest.fixture(scope="module")
def trackers(load_form):
    return [load_form("roce_dissect.flows.tracker", form) for form in ("compiled", "interpreted")]


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    """Tables of some dozens of rows: allocating them costs little, and they run full."""
    monkeypatch.setattr(flow_table, "MAX_HOLES", 64)
    monkeypatch.setattr(flow_table, "RECENT", 16)
    monkeypatch.setattr(flow_table, "EVENT_ROWS", 5 * states.MOST_EVENTS)
    monkeypatch.setattr(flow_table, "MAX_EVENTS", 60)
    monkeypatch.setattr(flow_table, "MAX_MESSAGES", 32)
    monkeypatch.setattr(flow_table, "ENDED_ROWS", states.MOST_ENDS + 3)


def typed(values, build):
    names = FLOW_COLUMNS + (KEY_COLUMNS if values["msn"][0] % 4 else ())  # the keys may be missing
    return {name: np.ascontiguousarray(values[name].astype(build.DTYPES[name])) for name in names}


def endless(rng, most):
    while True:
        yield int(rng.integers(1, most))


def one_case(rng, trackers, build):
    values = random_packets(rng, int(rng.integers(1, 300)))
    columns = typed(values, build)
    room = int(rng.choice([4, 256, 256]))
    whole = Outcome(trackers[0], columns, iter([10**6]), room)
    for tracker, pieces in (
        (trackers[0], endless(rng, 9)),
        (trackers[0], endless(rng, 2)),
        (trackers[1], endless(rng, 60)),
    ):
        assert whole.equals(Outcome(tracker, columns, pieces, room))
    return columns, whole


def check_sums(columns, whole):
    """What must be true of any packets: counts per stream are counts of rows, and verdicts keep to their roles."""
    out, streams = whole.out, whole.streams
    count = len(columns["psn"])
    tracked = out["stream"] >= 0
    passed_over = int((columns["standing"] > Standing.DOUBTFUL).sum())
    assert whole.rest[0] + whole.rest[1] + int(tracked.sum()) + passed_over == count
    per_stream = np.bincount(out["stream"][tracked], minlength=len(streams))
    assert (streams[:, states.PACKETS] == per_stream).all()
    request, response = out["role"] == Role.REQUEST, out["role"] == Role.RESPONSE
    for word, verdict in (
        (states.GAPS, Verdict.GAP),
        (states.LATE_PACKETS, Verdict.LATE),
        (states.RESENT_PACKETS, Verdict.RESENT),
        (states.COPIES, Verdict.COPY),
    ):
        rows = out["stream"][request & (out["verdict"] == verdict)]
        assert (streams[:, word] == np.bincount(rows, minlength=len(streams))).all(), verdict
    assert (out["verdict"][~(request | response)] == Verdict.NONE).all()
    assert (out["verdict"][request | response] != Verdict.NONE).all()
    assert (out["accepted"][request] != Accepted.NONE).all()
    assert (out["accepted"][~request] == Accepted.NONE).all()
    assert ((out["missing_before"] > 0) == (out["verdict"] == Verdict.GAP)).all()
    judged = out["psn_ext"] >= 0
    assert (judged == (request | response)).all()
    assert (out["psn_ext"][judged] & 0xFFFFFF == columns["psn"][judged]).all()
    firsts = request & (out["verdict"] == Verdict.FIRST)
    assert (np.bincount(out["stream"][firsts], minlength=len(streams)) <= 1).all()
    assert not whole.flows._streams[len(streams) :].any(), "a row that is not in use was written"
    events = whole.events
    if whole.rest[2] == 0:  # every resend belongs to one episode
        episodes = events[events[:, states.EVENT_KIND] == states.KIND_RESEND]
        resent = np.bincount(
            episodes[:, states.EVENT_STREAM],
            episodes[:, states.EVENT_COUNT] - episodes[:, states.EVENT_VALUE],
            len(streams),
        )
        assert (resent == streams[:, states.RESENT_PACKETS]).all()
    assert (events[:, states.EVENT_LAST_FRAME] >= events[:, states.EVENT_FRAME]).all()
    assert (events[:, states.EVENT_STREAM] < len(streams)).all()
    assert (events[:, states.EVENT_COUNT] >= 0).all()
    check_messages(whole)
    for stream in streams[streams[:, states.PEER] > 0]:
        hosts = stream[states.KEY_HOSTS]
        peer = streams[stream[states.PEER] - 1]
        assert peer[states.KEY_HOSTS] == (hosts & 0xFFFFFFFF) << 32 | hosts >> 32


def check_messages(whole):
    """Each message that was followed ended, once; what is counted of it keeps to its range and to its stream."""
    messages, streams = whole.messages, whole.streams
    per_stream = np.bincount(messages[:, states.M_STREAM], minlength=len(streams))
    assert (streams[:, states.MESSAGES_ENDED] == per_stream).all()
    complete = messages[:, states.M_STATUS] == MessageStatus.COMPLETE
    assert (streams[:, states.MESSAGES_COMPLETE] == np.bincount(messages[complete, 0], minlength=len(streams))).all()
    assert not streams[:, [states.HEAD, states.TAIL, states.OUTSTANDING, states.READS]].any()
    assert (messages[:, states.M_STOP] > messages[:, states.M_PSN]).all()
    assert (messages[:, states.M_PACKETS] >= 1).all()
    packets = np.bincount(messages[:, states.M_STREAM], messages[:, states.M_PACKETS], len(streams))
    assert (packets <= streams[:, states.PACKETS]).all()
    assert ((messages[:, states.M_ANSWER_FRAME] != 0) | ~complete).all()
    assert (whole.latency[:, states.LATENCY_COUNT] == whole.latency[:, : states.BUCKETS].sum(axis=1)).all()
    assert whole.latency[:, states.LATENCY_COUNT].sum() <= complete.sum()


@pytest.mark.parametrize("seed", range(8))
def test_forms_and_pieces(seed, trackers, build):
    rng = np.random.default_rng([11, seed])
    reached = {"full": 0, "linked": 0, "left_out": 0, "lives": 0, "unfollowed": 0}
    statuses, triggers = np.zeros(max(MessageStatus) + 1, np.int64), np.zeros(max(Trigger) + 1, np.int64)
    verdicts, accepted = np.zeros(7, np.int64), np.zeros(6, np.int64)
    for _ in range(150):
        columns, whole = one_case(rng, trackers, build)
        check_sums(columns, whole)
        verdicts += np.bincount(whole.out["verdict"], minlength=7)
        accepted += np.bincount(whole.out["accepted"], minlength=6)
        reached["full"] += whole.rest[1] > 0
        reached["left_out"] += whole.rest[2] > 0
        reached["unfollowed"] += whole.rest[3] > 0
        statuses += np.bincount(whole.messages[:, states.M_STATUS], minlength=len(statuses))
        episodes = whole.events[whole.events[:, states.EVENT_KIND] == states.KIND_RESEND]
        triggers += np.bincount(episodes[:, states.EVENT_TRIGGER], minlength=len(triggers))
        reached["linked"] += bool((whole.streams[:, states.PEER] > 0).any())
        reached["lives"] += bool((whole.streams[:, states.LIFE] > 1).any())
    # the cases reach what they are meant to reach
    assert all(count > 5 for count in reached.values()), reached
    assert (verdicts > 20).all(), verdicts
    assert (accepted > 20).all(), accepted
    assert (np.delete(statuses, [0, MessageStatus.ANSWER_UNSEEN]) > 5).all(), statuses  # that one takes many answers
    rare = [Trigger.ADAPTIVE_TIMEOUT, Trigger.SPURIOUS, Trigger.IMPLIED_NAK, Trigger.RNR_NAK]  # the first is told later
    assert (np.delete(triggers, rare) > 0).all(), triggers
