"""The same choice of packets in every reading: `read_packets`, `analyze`, and what an `Analysis` reads again."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pandas as pd
import pytest

import roce_dissect as rd
from roce_dissect.columns import TIMELINE

LOSS = "imp_loss1_write.server"
READS = "imp_loss5_readreq.server"
CM = "cm_rping_ipv4.client"
MIX = "rc_mix_ipv4_mtu1024.server"


@pytest.fixture
def paths(samples):
    """``paths("a", "b")``: their paths."""
    return lambda *names: [str(samples / f"{name}.pcap.gz") for name in names]


def seconds(packets, files):
    """Time since the first frame of the capture, ns; frames that are no RoCE count, too."""
    return packets["time_ns"].astype("int64") - rd.analyze(files).capture["first_time_ns"]


def even_requests(packets):
    return (packets["role"] == "request") & (packets["psn"].astype("int64") % 2 == 0)


CHOICES = {
    "filter": ({"filter": "psn % 3 == 0"}, lambda p, t: p["psn"].astype("int64") % 3 == 0),
    "missing values": (
        {"filter": "syndrome != 0"},
        lambda p, t: p["syndrome"].notna() & (p["syndrome"].fillna(0) != 0),
    ),
    "words": ({"filter": '"READ" in operation'}, lambda p, t: p["operation"].astype(str).str.contains("READ")),
    "time": ({"time": "0.5..1.1"}, lambda p, t: t.between(500_000_000, 1_100_000_000)),
    "host": ({"hosts": "192.168.100.2"}, lambda p, t: (p["src"] == "192.168.100.2") | (p["dst"] == "192.168.100.2")),
    "no host": ({"hosts": ["10.0.0.0/8"]}, lambda p, t: p["psn"].isna()),
    "together": (
        {"filter": "psn % 2 == 0", "time": "..1.2", "hosts": ["192.168.100.0/24"]},
        lambda p, t: (p["psn"].astype("int64") % 2 == 0) & (t <= 1_200_000_000),
    ),
}
#: Columns of the tracker choose what is shown only.
SHOWN = {
    "verdict": ({"filter": 'verdict in ("resent", "late")'}, lambda p, t: p["verdict"].isin(["resent", "late"])),
    "mixed": (
        {"filter": 'role == "request" and psn % 2 == 0 or missing_before > 0', "time": "1.07.."},
        lambda p, t: (t >= 1_070_000_000) & (even_requests(p) | (p["missing_before"] > 0)),
    ),
    "stream": ({"filter": "stream == 1 and psn_ext > 5"}, lambda p, t: (p["stream"] == 1) & (p["psn_ext"] > 5)),
}  # fmt: skip
FILES = ([LOSS], [READS], [LOSS, READS, MIX])


@pytest.mark.parametrize("files", FILES, ids=len)
@pytest.mark.parametrize("name", CHOICES | SHOWN)
def test_packets_that_are_shown(name, files, paths):
    """All columns are those of the whole capture, whatever is chosen; the index counts what is shown."""
    given, holds = (CHOICES | SHOWN)[name]
    every = rd.read_packets(paths(*files))
    expected = every[holds(every, seconds(every, paths(*files))).to_numpy(bool)].reset_index(drop=True)
    chosen = rd.read_packets(paths(*files), **given)
    pd.testing.assert_frame_equal(chosen, expected, check_categorical=False, check_index_type=False)
    first = rd.read_packets(paths(*files), count=20, **given)
    pd.testing.assert_frame_equal(first, expected[:20], check_categorical=False, check_index_type=False)
    without = rd.read_packets(paths(*files), ["frame", "src", "psn"], count=20, **given)
    pd.testing.assert_frame_equal(
        without, expected[["frame", "src", "psn"]][:20], check_categorical=False, check_index_type=False
    )


def test_the_choices_can_fail(paths):
    """Each chooses some packets and leaves some out, of one capture at least."""
    every = {name: len(rd.read_packets(paths(name), ["psn"])) for name in (LOSS, READS)}
    for name, (given, _) in (CHOICES | SHOWN).items():
        numbers = {one: len(rd.read_packets(paths(one), ["psn"], **given)) for one in every}
        mixed = any(0 < numbers[one] < every[one] for one in every)
        assert mixed or name in ("host", "no host"), name


@pytest.mark.parametrize("files", FILES, ids=len)
@pytest.mark.parametrize("name", CHOICES)
def test_what_is_analysed(name, files, paths):
    """As the flows of a DataFrame from which the others were taken away ."""
    given, holds = CHOICES[name]
    every = rd.read_packets(paths(*files))
    some = every[holds(every, seconds(every, paths(*files))).to_numpy(bool)]
    result, tracked = rd.analyze(paths(*files), **given), rd.track(some)
    selection = result.capture["selection"]
    assert selection["chosen_packets"] == len(some)
    assert selection["left_out_packets"] == result.capture["roce_packets"] - len(some)
    # the other two begin minutes after the range has ended
    assert selection["limited"] == ("time" in given and len(files) > 1) == (not result.capture["complete"])
    assert selection["limited"] or result.capture["roce_packets"] == len(every)
    for table in ("streams", "episodes"):
        one, other = getattr(result, table), getattr(tracked, table)
        pd.testing.assert_frame_equal(
            one.drop(columns="ended_by", errors="ignore"), other.drop(columns="ended_by", errors="ignore")
        )
    packets = result.packets()
    assert (
        packets[["file", "frame"]].astype("int64").to_numpy().tolist()
        == some[["file", "frame"]].astype("int64").to_numpy().tolist()
    )
    pd.testing.assert_series_equal(packets["verdict"], tracked.packets()["verdict"].reset_index(drop=True))
    assert len(result.messages) == len(tracked.messages)
    if len(some):
        line = result.timeline()
        assert int(line["packets"].sum()) == len(some)


def test_a_range_of_time_is_the_whole_timeline(paths):
    """Its bins are as fine as if the capture had nothing else, and begin where it begins."""
    result = rd.analyze(paths(LOSS), time="1.06..1.07")
    line = result.timeline()
    assert line["interval_ns"].iloc[0] == 50_000  # 10 ms in some 200 bins
    assert line["time_ns"].min() >= result.capture["selection"]["from_time_ns"]
    assert list(line.columns) == list(TIMELINE)


@pytest.mark.parametrize("given", ["time", "count"])
def test_nobody_looked_after_the_end(given, paths):
    """The first RNR NAK is the last packet chosen: that the requester stays silent after it does not show."""
    [path] = paths("flt_rnr_recovers.client")
    every = rd.read_packets(path, ["time_ns", "syndrome"])
    last = int(np.flatnonzero((every["syndrome"].fillna(0).astype("int64") & 0x60 == 0x20).to_numpy())[0])
    start = rd.analyze(path).capture["first_time_ns"]
    until = f"..{(int(every['time_ns'].iloc[last]) - start) / 1e9:.9f}"
    result = rd.analyze(path, **({"time": until} if given == "time" else {"count": last + 1}))
    assert int(result.streams["rnr_naks"].sum()) == 1
    assert set(result.streams["ended_by"]) == {"nothing"}


def test_count(paths):
    every = rd.read_packets(paths(LOSS))
    result = rd.analyze(paths(LOSS), count=100)
    selection = result.capture["selection"]
    assert (selection["count"], selection["chosen_packets"], selection["limited"]) == (100, 100, True)
    assert int(result.streams["packets"].sum()) == 100
    pd.testing.assert_frame_equal(result.packets(), every[:100], check_categorical=False)
    assert sum(result.capture["icrc"].values()) == 100
    assert not result.capture["complete"]  # by its definition: read to the end
    assert {"reason": "limited", "count": 1}.items() <= result.capture["trust"]["reasons"][-1].items()
    unreached = rd.analyze(paths(LOSS), count=100_000)
    assert unreached.capture["complete"]
    assert not unreached.capture["selection"]["limited"]


def test_without_any_choice(paths):
    assert rd.analyze(paths(LOSS)).capture["selection"] is None
    assert rd.track(rd.read_packets(paths(LOSS))).capture["selection"] is None


def test_trust_says_what_was_left_out(paths):
    reasons = {one["reason"]: one for one in rd.analyze(paths(LOSS), filter="psn % 2 == 0").capture["trust"]["reasons"]}
    assert reasons["left_out_packets"]["count"] == 934
    assert reasons["left_out_packets"]["text"].startswith("934 packets left out as asked for")


# -- QPs ---------------------------------------------------------------------------------------------------------------


def test_a_qp_is_its_whole_connection(paths):
    """Both directions and the set-up, whichever end is named: here a_qp 64, b_qp 35 between two hosts."""
    whole = rd.analyze(paths(CM))
    for qp in (64, 35):
        result = rd.analyze(paths(CM), qps=qp)
        pd.testing.assert_frame_equal(result.connections, whole.connections)
        assert result.events["kind"].tolist() == ["cm_req", "cm_rep", "cm_rtu", "cm_dreq", "cm_drep"]
        shown = rd.read_packets(paths(CM), qps=[qp])
        assert shown["frame"].tolist() == result.packets()["frame"].tolist()
    nobody = rd.analyze(paths(CM), qps=36)
    assert len(nobody.packets()) == 0


def test_datagrams_name_their_source(paths):
    every = rd.read_packets(paths(CM))
    qp = 1
    some = every[(every["src_qp"] == qp).fillna(False).to_numpy(bool) | (every["dest_qp"] == qp).to_numpy(bool)]
    assert 0 < len(some) < len(every)
    assert rd.read_packets(paths(CM), qps=qp)["frame"].tolist() == some["frame"].tolist() == [1, 2, 3, 124, 125]


def test_what_is_read_once_is_chosen_by_what_it_names(samples):
    raw = gzip.decompress((samples / f"{CM}.pcap.gz").read_bytes())
    result = rd.analyze(io.BytesIO(raw), qps=35)
    assert result.streams.loc[result.streams["dest_qp"] != 1, "dest_qp"].tolist() == [35]
    some = rd.read_packets(io.BytesIO(raw), qps=35)
    assert set(some["dest_qp"].astype(int)) == {35, 1}
    assert some.loc[some["dest_qp"] == 1, "frame"].tolist() == [2, 124]  # the REP and the DREQ


def test_pipes_and_file_objects_are_chosen_from_alike(samples):
    path = samples / f"{LOSS}.pcap.gz"
    raw = gzip.decompress(path.read_bytes())
    given = {"filter": "psn % 3 == 0", "time": "1.06..1.3", "count": 200, "hosts": "192.168.100.1"}
    one, other = rd.analyze(io.BytesIO(raw), **given), rd.analyze(path, **given)
    pd.testing.assert_frame_equal(one.streams, other.streams)
    assert one.capture["selection"] == other.capture["selection"]


@pytest.mark.parametrize(
    "read", [rd.analyze, rd.read_packets, lambda path, **given: list(rd.iter_packets(path, **given))]
)
@pytest.mark.parametrize(
    "given", [{"filter": "psnn == 1"}, {"hosts": "x"}, {"qps": "5"}, {"qps": -1}, {"time": "1"}, {"count": 0}]
)
def test_wrong_choices(read, given, paths):
    with pytest.raises(rd.ArgumentError):
        read(paths(LOSS), **given)


def test_columns_of_the_tracker_choose_nothing_to_analyse(paths):
    with pytest.raises(rd.ArgumentError, match="it goes with packets"):
        rd.analyze(paths(LOSS), filter='verdict == "resent"')


def test_numpy_integers(paths):
    assert len(rd.read_packets(paths(LOSS), ["psn"], qps=np.array([48]), count=np.int64(5))) == 5


def test_a_count_with_stages_that_hold_rows_back(frames, tmp_path):
    """What the stages behind the merge hold when the count is reached comes out all the same."""
    made = [frames.v2(4, b"data", psn=number, ip={"ip_id": number & 0xFFFF}) for number in range(40_000)]
    path = tmp_path / "many.pcap"
    path.write_bytes(frames.pcap(made))
    choice = {"filter": "psn % 1000 == 0", "count": 35}
    for columns in (["frame"], ["frame", "standing"], ["frame", "verdict"]):
        assert len(rd.read_packets(path, columns, **choice)) == 35
    result = rd.analyze(path, **choice)
    assert result.streams["packets"].sum() == len(result.packets()) == len(result.messages) == 35
    assert result.timeline()["packets"].sum() == 35
