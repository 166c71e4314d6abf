"""The timeline against brute force over packets and messages, and against intervals by hand."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

import roce_dissect as rd
from roce_dissect.analysis.timeline import MOST_BINS
from roce_dissect.capture import reader
from roce_dissect.columns import TIMELINE

START = 1_700_000_000_000_000_000
SUMS = [
    "packets", "bytes", "goodput_bytes", "resent_packets", "late_packets", "naks", "rnr_naks", "cnps", "ce_packets"
]  # fmt: skip
#: Verbs that only their own response answers.
ASKING = ("read", "compare_swap", "fetch_add")
MOST = ["most_messages", "most_reads", "most_packets"]
SAMPLES = [
    "rc_mix_ipv4_mtu1024.server", "rc_psn_wrap_read.server", "flt_rnr_recovers.client", "ecn_red_ce.server",
    "uc_mix_ipv4.client", "ud_mix_ipv4.server", "cm_rping_ipv4.client",
    # in which responses came again, too: they are no requests
    "imp_loss1_write.server", "imp_ackloss20.server", "imp_dup5.server", "imp_loss5_readreq.server",
]  # fmt: skip


def sample(samples, name):
    [path] = samples.glob(f"{name}.pcap*")
    return path


def brute_force(result, width):
    """(stream, bin) -> figures, by loops; a bin in which nothing passed and nothing was outstanding is not there."""
    start, end = result.capture["first_time_ns"], result.capture["last_time_ns"]
    table = {}
    packets = result.packets(
        columns=["time_ns", "stream", "role", "verdict", "accepted", "wire_len", "payload_len", "syndrome", "ecn"]
    )
    for packet in packets.itertuples():
        if packet.stream < 0:
            continue
        row = table.setdefault((packet.stream, (packet.time_ns - start) // width), dict.fromkeys(SUMS + MOST, 0))
        request, answers = packet.role == "request", packet.syndrome is not pd.NA
        row["packets"] += 1
        row["bytes"] += packet.wire_len
        if packet.role == "datagram" or packet.verdict in ("first", "new", "gap", "late"):
            row["goodput_bytes"] += packet.payload_len
        row["resent_packets"] += request and packet.verdict == "resent"
        row["late_packets"] += request and packet.verdict == "late"
        row["naks"] += answers and packet.syndrome & 0x60 == 0x60
        row["rnr_naks"] += answers and packet.syndrome & 0x60 == 0x20
        row["cnps"] += packet.role == "cnp"
        row["ce_packets"] += packet.ecn is not pd.NA and packet.ecn == 3
    spans = {}
    for message in result.messages.itertuples():
        if message.status != "sent":  # nothing answers it: it is never outstanding
            over = end + 1 if message.answer_time_ns is pd.NA else message.answer_time_ns
            psns = (message.last_psn - message.psn) % (1 << 24) + 1
            spans.setdefault(message.stream, []).append((message.time_ns, over, (1, message.verb in ASKING, psns)))
    for stream, of_stream in spans.items():
        for number in range((end - start) // width + 1):
            for name, value in zip(MOST, outstanding(of_stream, start + number * width, width), strict=True):
                if value:
                    row = table.setdefault((stream, number), dict.fromkeys(SUMS + MOST, 0))
                    row[name] = value
    return table


def outstanding(spans, start, width):
    """Most of each that is outstanding at once: right before the bin, or whenever a message begins in it."""
    most = np.zeros(3, np.int64)
    moments = sorted({begun for begun, _, _ in spans if start <= begun < start + width})
    before = [weights for begun, over, weights in spans if begun < start <= over]
    active = [[weights for begun, over, weights in spans if begun <= moment < over] for moment in moments]
    for weights in (before, *active):
        if weights:
            most = np.maximum(most, np.array(weights, np.int64).sum(axis=0))
    return most.tolist()


def check(table, expected, width, start):
    assert list(table.columns) == list(TIMELINE)
    assert (table["interval_ns"] == width).all()
    keys = list(zip(table["stream"], ((table["time_ns"] - start) // width).tolist(), strict=True))
    assert keys == sorted(expected)
    for name in SUMS + MOST:
        assert table[name].tolist() == [expected[key][name] for key in keys], name


# -- against brute force ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [None, 1_000_000, 10**12])
@pytest.mark.parametrize("name", SAMPLES)
def test_table_is_what_loops_over_packets_and_messages_give(samples, name, width):
    result = rd.analyze(sample(samples, name))
    table = result.timeline(width)
    used = int(table["interval_ns"].iloc[0])
    span = result.capture["last_time_ns"] - result.capture["first_time_ns"]
    if width is None:
        assert str(used).rstrip("0") in ("1", "2", "5")
        assert 75 < span / used <= 201
    check(table, brute_force(result, used), used, result.capture["first_time_ns"])
    connection = result.streams["connection"].tolist()
    assert table["connection"].tolist() == [connection[stream] for stream in table["stream"]]


@pytest.mark.parametrize("name", SAMPLES)
def test_sums_are_those_of_the_streams(samples, name):
    result = rd.analyze(sample(samples, name))
    sums = result.timeline(1_000_000)[["stream", *SUMS]].groupby("stream").sum()
    streams = result.streams.set_index("stream")
    streams = streams[streams["packets"] > 0]  # the others are known to the CM alone
    assert sums.index.tolist() == streams.index.tolist()
    for column in SUMS:
        assert sums[column].tolist() == streams[column].tolist(), column


def test_goodput_meets_no_qp_in_error(samples):
    result = rd.analyze(sample(samples, "flt_bad_rkey_write.server"))
    assert result.timeline()["goodput_bytes"].sum() == result.streams["goodput_bytes"].sum()


@pytest.mark.parametrize("name", ["imp_loss1_write.server", "cm_rping_ipv4.client"])
def test_batches_do_not_matter(samples, name, monkeypatch):
    """Bins that are divided among many blocks of packets and pieces of messages."""
    result = rd.analyze(sample(samples, name))
    whole = result.timeline()
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 13)
    assert len(list(result.iter_packets())) > 1
    pd.testing.assert_frame_equal(result.timeline(), whole)


def test_one_connection(samples):
    """The rows of its two streams, in the same bins."""
    result = rd.analyze(sample(samples, "cm_rping_ipv4.client"))
    whole = result.timeline()
    for number in result.connections["connection"]:
        some = result.timeline(connection=number)
        expected = whole[whole["connection"] == number].reset_index(drop=True)
        pd.testing.assert_frame_equal(some, expected)


def test_several_files_are_one_time_line(samples, tmp_path):
    data = gzip.decompress(sample(samples, "imp_loss1_write.server").read_bytes())
    frames, at = [], 24
    while at < len(data):
        length = 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        frames.append(data[at : at + length])
        at += length
    paths = []
    for number in (1, 0):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(data[:24] + b"".join(frames[number * 800 : 800 if number == 0 else None]))
        paths.append(path)
    whole = rd.analyze(sample(samples, "imp_loss1_write.server")).timeline()
    pd.testing.assert_frame_equal(rd.analyze(paths).timeline(), whole)


# -- by hand ---------------------------------------------------------------------------------------------------------


def packets_by_hand(*rows):
    """``(time, opcode, psn, other columns)``: requests from A to QP 17 of B, answers (0x0d and up) to QP 18 of A."""
    made = []
    for time, opcode, psn, more in rows:
        back = opcode & 0x1F in range(0x0D, 0x13)
        a, b = ("10.0.0.2", "10.0.0.1") if back else ("10.0.0.1", "10.0.0.2")
        one = {"time_ns": START + time, "src": a, "dst": b, "dest_qp": 18 if back else 17, "psn": psn, "opcode": opcode}
        made.append(one | {"wire_len": 100, "payload_len": 10} | more)
    table = pd.DataFrame(made)
    for name in ("syndrome", "ecn"):
        table[name] = table.get(name, pd.NA)
    for name in table.columns:
        if name not in ("src", "dst"):
            table[name] = table[name].astype("Int64")
    return table


SEND, WRITE, READ, ACK, RESPONSE, FETCH_ADD = 0x04, 0x0A, 0x0C, 0x11, 0x10, 0x14
UC_FIRST, UC_MIDDLE, UC_LAST, UC_ONLY = 0x20, 0x21, 0x22, 0x24


def bins(table, stream=0, names=("most_messages", "most_reads", "most_packets")):
    """(begin of the bin, figures) of one stream."""
    some = table[table["stream"] == stream]
    return [(row[0] - START, *row[1:]) for row in some[["time_ns", *names]].itertuples(index=False)]


def test_intervals_by_hand():
    """Two SENDs and a READ of two PSNs, answered one after the other; bins of 100 ns."""
    packets = packets_by_hand(
        (0, SEND, 5, {}),
        (50, SEND, 6, {}),
        (150, READ, 7, {"dma_len": 500}),
        (420, ACK, 5, {"syndrome": 31}),
        (450, ACK, 6, {"syndrome": 31}),
        (500, 0x0D, 7, {"syndrome": 31, "payload_len": 256}),
        (730, 0x0F, 8, {"syndrome": 31, "payload_len": 244}),
        (1000, SEND, 9, {}),
        (1200, ACK, 9, {"syndrome": 31}),
    )
    table = rd.track(packets).timeline(100)
    assert bins(table) == [
        (0, 2, 0, 2),
        (100, 3, 1, 4),
        (200, 3, 1, 4),
        (300, 3, 1, 4),
        (400, 3, 1, 4),
        (500, 1, 1, 2),
        (600, 1, 1, 2),
        (700, 1, 1, 2),
        (1000, 1, 0, 1),
        (1100, 1, 0, 1),
        (1200, 1, 0, 1),  # outstanding when the bin began, at the very time of the answer
    ]
    assert bins(table, 0, ["packets", "bytes"]) == [
        (0, 2, 200), (100, 1, 100), *((at, 0, 0) for at in range(200, 800, 100)), (1000, 1, 100), (1100, 0, 0),
        (1200, 0, 0),
    ]  # fmt: skip
    assert bins(table, 1, ["packets", "goodput_bytes"]) == [(400, 2, 20), (500, 1, 256), (700, 1, 244), (1200, 1, 10)]


def test_one_ends_when_the_next_begins():
    """At one and the same time, what ends comes first: never two at once."""
    packets = packets_by_hand(
        (0, SEND, 5, {}), (50, ACK, 5, {"syndrome": 31}), (50, SEND, 6, {}), (90, ACK, 6, {"syndrome": 31})
    )
    assert bins(rd.track(packets).timeline(1000)) == [(0, 1, 0, 1)]


def test_an_answer_at_the_very_time_or_before():
    """Clocks that do not move, or run backwards: such a message was outstanding at no time, and hides no other."""
    packets = packets_by_hand(
        (0, SEND, 5, {}),
        (50, SEND, 6, {}),
        (50, SEND, 7, {}),
        (50, ACK, 5, {"syndrome": 31}),
        (40, ACK, 6, {"syndrome": 31}),
        (990, ACK, 7, {"syndrome": 31}),
    )
    assert bins(rd.track(packets).timeline(1000)) == [(0, 1, 0, 1)]


def test_what_is_never_answered_is_outstanding_to_the_end():
    packets = packets_by_hand(
        (0, SEND, 5, {}), (10, ACK, 5, {"syndrome": 31}), (100, SEND, 6, {}), (350, ACK, 5, {"syndrome": 31})
    )
    assert bins(rd.track(packets).timeline(100)) == [(0, 1, 0, 1), (100, 1, 0, 1), (200, 1, 0, 1), (300, 1, 0, 1)]


def test_nothing_of_uc_is_ever_outstanding():
    """Nothing answers a message of UC, whole or not."""
    packets = packets_by_hand(
        (0, UC_FIRST, 5, {}), (1, UC_LAST, 7, {}), (2, UC_ONLY, 8, {}), (3, UC_FIRST, 9, {}), (500, UC_ONLY, 12, {})
    )
    table = rd.track(packets).timeline(100)
    assert table["most_messages"].tolist() == [0, 0]


def test_a_fatal_nak_ends_all_that_is_outstanding():
    """The refused one and those behind it; what comes after that meets a QP in error."""
    packets = packets_by_hand(
        (0, SEND, 5, {}), (20, SEND, 6, {}), (40, SEND, 7, {}), (150, ACK, 5, {"syndrome": 0x62}), (990, 0x81, 0, {})
    )
    assert bins(rd.track(packets).timeline(100)) == [(0, 3, 0, 3), (100, 3, 0, 3), (900, 0, 0, 0)]


def test_what_the_requester_took_as_answered_is_not_outstanding():
    """The capture lacks the response to a READ; the requester goes on, and nothing is sent again for it."""
    later = [(1000 + 10 * step, SEND, 6 + step, {}) for step in range(40)]
    answers = [(1005 + 10 * step, ACK, 6 + step, {"syndrome": 31}) for step in range(40)]
    first = [(0, SEND, 4, {}), (5, ACK, 4, {"syndrome": 31}), (10, READ, 5, {"dma_len": 10})]
    between = sorted([*later, *answers], key=lambda row: row[0])
    result = rd.track(packets_by_hand(*first, *between, (9000, SEND, 46, {})))
    assert "answer_unseen" in set(result.messages["status"])
    assert bins(result.timeline(1000))[-1] == (9000, 1, 0, 1)


def test_gaps_of_time_take_no_rows():
    """A day between two packets, in bins of a second."""
    day = 86_400 * 10**9
    packets = packets_by_hand(
        (0, SEND, 5, {}), (10, ACK, 5, {"syndrome": 31}), (day, SEND, 6, {}), (day + 10, ACK, 6, {"syndrome": 31})
    )
    table = rd.track(packets).timeline(10**9)
    assert bins(table, 0, ["packets", "most_messages"]) == [(0, 1, 1), (day, 1, 1)]
    assert bins(table, 1, ["packets", "most_messages"]) == [(0, 1, 0), (day, 1, 0)]


def test_columns_that_the_packets_lack():
    """`rd.track` needs six columns; what is not there counts as nothing."""
    needed = ["time_ns", "src", "dst", "dest_qp", "psn", "opcode"]
    packets = packets_by_hand((0, SEND, 5, {}), (1, SEND, 6, {}))
    assert rd.track(packets[needed]).timeline(100)["packets"].tolist() == [2]


def test_damaged_packets_take_no_part():
    packets = packets_by_hand((0, SEND, 5, {}), (1, SEND, 6, {}), (2, SEND, 7, {}))
    table = rd.track(packets, bad_icrc=[False, True, False]).timeline(100)
    assert table["packets"].tolist() == [2]


# -- nothing, and what is wrong ----------------------------------------------------------------------------------------


def no_frames(samples, tmp_path):
    """A capture without any frame."""
    path = tmp_path / "none.pcap"
    path.write_bytes(gzip.decompress(sample(samples, "rc_mix_ipv4_mtu1024.server").read_bytes())[:24])
    return rd.analyze(path)


def no_roce(samples, tmp_path):
    """One frame, of a protocol that is none of ours."""
    path = tmp_path / "lldp.pcap"
    header = gzip.decompress(sample(samples, "rc_mix_ipv4_mtu1024.server").read_bytes())[:24]
    frame = bytes(12) + b"\x88\xcc" + bytes(50)
    path.write_bytes(header + (1).to_bytes(8, "little") + len(frame).to_bytes(4, "little") * 2 + frame)
    return rd.analyze(path)


def no_rows(samples, tmp_path):
    """A DataFrame without rows."""
    return rd.track(rd.read_packets(sample(samples, "rc_mix_ipv4_mtu1024.server")).head(0))


@pytest.mark.parametrize("width", [None, 1000])
@pytest.mark.parametrize("nothing", [no_frames, no_roce, no_rows])
def test_nothing_has_a_time_line_without_rows(samples, tmp_path, nothing, width):
    result = nothing(samples, tmp_path)
    table = result.timeline(width)
    full = rd.analyze(sample(samples, "rc_mix_ipv4_mtu1024.server")).timeline()
    assert list(table.columns) == list(TIMELINE)
    assert len(table) == 0
    assert table.dtypes.tolist() == full.dtypes.tolist()


def test_a_connection_without_packets(samples):
    """A REQ that was rejected: no stream, no row."""
    result = rd.analyze(sample(samples, "cm_refused.client"))
    alone = result.connections[result.connections["a_to_b_stream"] < 0]["connection"].iloc[0]
    assert len(result.timeline(connection=int(alone))) == 0


def test_dtypes(samples):
    table = rd.analyze(sample(samples, "rc_mix_ipv4_mtu1024.server")).timeline()
    for column in TIMELINE.values():
        assert table[column.name].dtype.numpy_dtype == np.dtype(column.dtype), column.name
    assert not table.isna().any(axis=None)


@pytest.mark.parametrize("width", [0, -1, -(10**18)])
def test_interval_must_be_positive(samples, width):
    result = rd.analyze(sample(samples, "rc_mix_ipv4_mtu1024.server"))
    with pytest.raises(rd.ArgumentError, match="positive"):
        result.timeline(width)


def test_interval_that_makes_too_many_bins():
    """So many bins and no more."""
    packets = packets_by_hand((0, SEND, 5, {}), (MOST_BINS * 10 - 1, SEND, 6, {}))
    assert len(rd.track(packets.head(1)).timeline(1)) == 1
    result = rd.track(packets)
    assert result.timeline(10)["packets"].sum() == 2
    with pytest.raises(rd.ArgumentError, match="bins"):
        result.timeline(9)


@pytest.mark.parametrize("width", [1 << 63, 10**30, float("nan"), float("inf"), "1ms"])
def test_interval_that_is_none(samples, width):
    """Too large for any time in ns, or no number: an ArgumentError, as for all arguments, or one bin."""
    result = rd.analyze(sample(samples, "rc_mix_ipv4_mtu1024.server"))
    with pytest.raises(rd.ArgumentError, match="interval"):
        result.timeline(width)


def test_connection_that_does_not_exist(samples):
    with pytest.raises(rd.ArgumentError, match="no connection 99"):
        rd.analyze(sample(samples, "rc_mix_ipv4_mtu1024.server")).timeline(connection=99)


def test_what_can_be_read_only_once(samples):
    with sample(samples, "rc_mix_ipv4_mtu1024.server").open("rb") as file:
        result = rd.analyze(file)
    with pytest.raises(rd.ArgumentError, match="only once"):
        result.timeline()


def test_a_file_that_has_grown(samples, tmp_path):
    """It is read once more: streams that came since belong to no connection of this analysis."""
    before, after = (
        gzip.decompress(sample(samples, name).read_bytes())
        for name in ("rc_mix_ipv4_mtu1024.server", "imp_loss1_write.server")
    )
    path = tmp_path / "growing.pcap"
    path.write_bytes(before)
    result = rd.analyze(path)
    assert len(result.streams) == 2
    path.write_bytes(before + after[24:])
    assert set(result.timeline(10**12)["connection"]) == {0, 1}
