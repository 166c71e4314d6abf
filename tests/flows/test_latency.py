"""Latency by verb and size: the counters in buckets against numpy.quantile of the raw latencies."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from roce_dissect.columns import LATENCY
from roce_dissect.flows import states
from roce_dissect.flows.latency import bucket_bounds, latency_columns
from roce_dissect.flows.message_table import message_frame
from roce_dissect.flows.tables import build_tables
from roce_dissect.terms import Verb

MTU = 4096
START = 1_700_000_000_000_000_000
SHARES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999}

#: Operations of a verb, and what its responder answers.
REQUESTS = {
    "send": (["SEND_ONLY"], "ACKNOWLEDGE"),
    "send_imm": (["SEND_FIRST", "SEND_LAST_IMM"], "ACKNOWLEDGE"),
    "write": (["WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST"], "ACKNOWLEDGE"),
    "read": (["READ_REQUEST"], "READ_RESPONSE_ONLY"),
    "fetch_add": (["FETCH_ADD"], "ATOMIC_ACKNOWLEDGE"),
}


def traffic(build, verbs, sizes, latencies):
    """One message after the other: packets, and (verb, bytes, latency, first frame) of each.

    The bytes of a message in several packets are what the first ones do not carry, in the last one.
    """
    packets, messages, psn, time = [], [], 100, START
    for verb, size, latency in zip(verbs, sizes, latencies, strict=True):
        operations, answer = REQUESTS[verb]
        carried = MTU * (len(operations) - 1)
        frame = len(packets) + 1
        for step, operation in enumerate(operations):
            more = {"payload_len": MTU if step < len(operations) - 1 else size - carried}
            if operation == "READ_REQUEST":
                more = {"dma_len": size}
            elif operation in ("FETCH_ADD", "COMPARE_SWAP"):
                more = {}
            # all its packets at once: the first frame's time is the one that counts
            packets.append(build.packet(operation, psn & 0xFFFFFF, 0, time_ns=time, **more))
            psn += 1
        more = {"payload_len": size} if answer.startswith("READ") else {}
        when = time + latency
        packets.append(build.packet(answer, (psn - 1) & 0xFFFFFF, 0, build.B, build.A, time_ns=when, **more))
        messages.append((verb, 8 if verb == "fetch_add" else size, latency, frame))
        time = when + 1
    return packets, messages


def size_class(size):
    """The power of two that holds so many bytes, by doubling; 1 for none."""
    power = 1
    while power < size:
        power *= 2
    return power


def check(latency, messages):
    """The table against the raw latencies of each verb and size class."""
    groups = {}
    for verb, size, *rest in messages:
        groups.setdefault((verb, size_class(size)), []).append(rest)
    assert {(row.verb, row.most_bytes) for row in latency.itertuples()} == set(groups)
    for row in latency.itertuples():
        raw = groups[row.verb, row.most_bytes]
        values = np.array([value for value, _ in raw])
        assert row.messages == len(values)
        assert (row.least_ns, row.most_ns) == (values.min(), values.max())
        assert row.most_frame == next(frame for value, frame in raw if value == values.max())
        for name, share in SHARES.items():
            exact = np.quantile(values, share, method="inverted_cdf")
            assert abs(getattr(row, name) - exact) <= 0.02 * exact, (row.verb, name)


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_are_those_of_the_raw_latencies(build, tracker, seed):
    """Log-uniform from a nanosecond to minutes: each bucket has its turn."""
    random = np.random.default_rng(seed)
    rows = 600
    verbs = random.choice(list(REQUESTS), rows).tolist()
    sizes = [MTU * (len(REQUESTS[verb][0]) - 1) + int(random.integers(1, MTU + 1)) for verb in verbs]
    sizes = [0 if verb == "send" and size % 16 == 0 else size for verb, size in zip(verbs, sizes, strict=True)]
    latencies = np.exp(random.uniform(0, np.log(3e11), rows)).astype(np.int64)
    latencies[random.integers(0, rows, 20)] = 0
    packets, messages = traffic(build, verbs, sizes, latencies.tolist())
    tables = build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES)
    check(tables.latency, messages)
    assert (tables.latency["most_connection"] == 1).all()
    assert (tables.latency["most_file"] == 0).all()


def test_table_is_that_of_the_messages(build, tracker):
    """The latencies that are counted are the ones of the messages table."""
    packets, _ = traffic(build, ["send", "write", "read"] * 9, [40, 9000, 3000] * 9, [10**n for n in range(9)] * 3)
    tracked = build.Tracked(packets, tracker)
    tables = build_tables(tracked.flows, build.ADDRESSES)
    messages = message_frame(tracked.message_rows, tables.streams["connection"].to_numpy(np.int64))
    rows = [(row.verb, row.bytes, row.latency_ns, row.frame) for row in messages.itertuples()]
    assert len(rows) == 27
    check(tables.latency, rows)


def test_what_is_not_counted(build, tracker):
    """No answer, no first packet, an answer that came before the request, a datagram: no latency."""
    p = build.packet
    packets = [
        p("SEND_LAST", 9, 0, payload_len=4),
        p("SEND_ONLY", 10, 1, payload_len=4),
        p("ACKNOWLEDGE", 10, 0.5, build.B, build.A),
        p("SEND_ONLY", 11, 2, payload_len=4),
        p("UD_SEND_ONLY", 5, 3, dest_qp=40, src_qp=41, payload_len=4),
        p("UC_SEND_ONLY", 5, 3, dest_qp=50, payload_len=4),
    ]
    tables = build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES)
    assert tables.latency.empty
    assert list(tables.latency.columns) == list(LATENCY)


def test_connection_and_frame_of_the_longest(build, tracker):
    """Two connections, the frame in a third file."""
    p = build.packet
    packets = [
        p("SEND_ONLY", 10, 0, payload_len=4),
        p("SEND_ONLY", 70, 1, build.A, 3, dest_qp=99, payload_len=3),
        p("ACKNOWLEDGE", 10, 2, build.B, build.A),
        p("ACKNOWLEDGE", 70, 9, 3, build.A, dest_qp=98),
    ]
    for number, one in enumerate(packets, start=1):
        one["frame_key"] = 2 << 40 | number
    [row] = build_tables(build.Tracked(packets, tracker).flows, build.ADDRESSES).latency.itertuples()
    assert (row.messages, row.least_ns, row.most_ns) == (2, 2_000_000, 8_000_000)
    assert (row.most_connection, row.most_file, row.most_frame) == (2, 2, 2)


# -- the buckets alone -----------------------------------------------------------------------------------------------


def bucket_of(latency):
    """Where a latency belongs, in its doubling's 32 parts, by division."""
    if latency < 64:
        return latency
    octave = latency.bit_length() - 6
    return 32 * octave + (latency >> octave)


def test_bounds_of_the_buckets():
    """Each begins where the one before ends; none is wider than 3.2 % of its least value."""
    bounds = bucket_bounds()
    assert len(bounds) == states.BUCKETS + 1
    assert bounds[:65].tolist() == list(range(65))
    assert (np.diff(bounds)[64:] <= 0.032 * bounds[64:-1]).all()
    for bucket in range(states.BUCKETS):
        assert bucket_of(int(bounds[bucket])) == bucket
        assert bucket_of(int(bounds[bucket + 1]) - 1) == bucket
    assert bounds[-1] == 1 << 40


def counts(latencies, verb=Verb.SEND, size=4):
    """The tracker's counters of one group, filled by hand."""
    rows = np.zeros((states.LATENCY_GROUPS, states.LATENCY_WORDS), np.int64)
    row = rows[verb * states.SIZES + size]
    for latency in latencies:
        row[min(bucket_of(latency), states.BUCKETS - 1)] += 1
    row[states.LATENCY_COUNT] = len(latencies)
    row[states.LATENCY_LEAST], row[states.LATENCY_MOST] = min(latencies), max(latencies)
    return rows


@pytest.mark.parametrize("number", [1, 2, 3, 9, 10, 11, 99, 100, 101, 999, 1000, 1001, 2000, 10_000])
def test_rank_of_percentiles(number):
    """The nearest rank: the least value that is not below so many of all. These buckets hold one value each."""
    latencies = [value % 64 for value in range(number)]
    columns = latency_columns(counts(latencies))
    for name, share in SHARES.items():
        rank = ceil(Fraction(str(share)) * number)
        assert columns[name].tolist() == [sorted(latencies)[rank - 1]]


def test_percentiles_lie_between_the_extremes():
    """The middle of a bucket may lie beyond the only value in it, also in the last bucket, which has no end."""
    for latency in (64, 65, 1_000_003, (1 << 40) - 1, 1 << 40, 1 << 50):
        columns = latency_columns(counts([latency]))
        assert {int(columns[name][0]) for name in SHARES} == {latency}


def test_groups():
    """Verb and size class by row; verbs and classes without a message are no rows."""
    rows = counts([5], Verb.READ, 0) + counts([7, 9], Verb.FLUSH, 33)
    columns = latency_columns(rows)
    assert columns["verb"].tolist() == [Verb.READ, Verb.FLUSH]
    assert columns["most_bytes"].tolist() == [1, 1 << 33]
    assert columns["messages"].tolist() == [1, 2]
    assert [len(column) for column in latency_columns(rows * 0).values()] == [0] * len(columns)
