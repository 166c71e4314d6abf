"""The flow tables against what else is known of the Soft-RoCE captures.

They come with the rxe counters of both hosts (``truth.json``), with the frames that the path lost (found by comparing
the captures of both ends), and with a verdict on the whole (``expected.json``). Each host's counters at its own capture
point are compared by `test_kernel_counters.py`; here is what a capture tells of the *other* host, which losses are
where, and what healthy captures must not show.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import roce_dissect as rd

#: What the responder counted, and what packets at the responder show.
COUNTERS = ("duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err")

#: Hosts whose counters the server's capture cannot give.
NOT_EXACT = {("midstream_capture_start", "server"): "the kernel counted before the capture began"}

#: Healthy captures with resends all the same, by the kernels' own counters: rxe's responder had a duplicate.
RESENDS_BY_KERNEL = {"ecn_ect1", "rc_send_lat", "rc_write_lat", "midstream_capture_start"}
#: Files under a healthy heading that are no record of a healthy run, with the evidence.
NOT_HEALTHY = {
    "fmt_any_sll1.pcap.gz": "captured on any interface: each of the 58 packets is there three times",
    "fmtd_merged_both_hosts_clean.pcap.gz": "both ends' captures merged: every frame is there twice",
    "fmtd_split_00000_20261129130503.pcap.gz": "parts of imp_loss1_write, a lossy run",
    "fmtd_split_00001_20261129130504.pcap.gz": "parts of imp_loss1_write, a lossy run",
    "fmtd_split_00002_20261129130504.pcap.gz": "parts of imp_loss1_write, a lossy run",
    "fmtd_split_00003_20261129130504.pcap.gz": "parts of imp_loss1_write, a lossy run",
    "fmtd_split_00004_20261129130504.pcap.gz": "parts of imp_loss1_write, a lossy run",
}

TROUBLE = ["gaps", "missing_packets", "resent_packets", "late_packets", "copies", "response_gaps", "unseen_packets"]

#: Runs whose losses all were followed by a later request, so that each shows as a gap (IPv4: which frame was lost is
#: certain, since a resent one has another identification).
LOSSES = (
    "big_write_8qp_loss01",
    "ecn_netem_notect",
    "imp_loss1_send",
    "imp_loss1_write",
    "imp_loss3_uc",
    "imp_lossw_middle10",
)


@pytest.fixture(scope="session")
def truth(kernels, softroce):
    return kernels.truth(softroce)


@pytest.fixture(scope="session")
def expected(softroce):
    return json.loads((softroce / "expected.json").read_text())


@pytest.fixture(scope="session")
def analysis(kernels, softroce):
    """``analysis(name, side)``: an Analysis, without the frames whose ICRC the lab found bad; None: no such file."""
    return lambda name, side: kernels.analysis(softroce, name, side)


@pytest.fixture(scope="session")
def counted(kernels):
    """``counted(result, host)``: counters of the server or the client, as a dict."""
    return kernels.counted


def told(run, host):
    """What the kernel counted; a counter that stayed 0 is not in the file."""
    return {name: run[host].get(name, 0) for name in COUNTERS}


def only(counters):
    return {name: counters[name] for name in COUNTERS}


def test_all_receivers(truth, analysis, counted):
    """The server's capture tells the counters of both hosts, of all that have any."""
    exact, others = set(), set()
    for name, run in truth.items():
        result = analysis(name, "server")
        if result is None or "server" not in run:
            continue
        for host in ("server", "client"):
            ours, kernel = only(counted(result, host)), told(run, host)
            if any(ours.values()) or any(kernel.values()):
                (exact if ours == kernel else others).add((name, host))
    assert others == set(NOT_EXACT)
    assert len(exact) >= 22


def test_why_midstream_is_not_exact(truth, analysis, counted):
    run, result = truth["midstream_capture_start"], analysis("midstream_capture_start", "server")
    assert counted(result, "server")["rcvd_pkts"] < run["server"]["rcvd_pkts"]
    assert counted(result, "server")["duplicate_request"] < run["server"]["duplicate_request"]


def test_icrc_bad_frames_are_not_to_be_believed(truth, softroce, counted):
    """To the receiver's kernel a frame with a bad ICRC never came; believed, it hides the loss."""
    run = truth["imp_corrupt1"]
    believed = rd.analyze(softroce / "imp_corrupt1.server.pcap.gz", icrc=False)
    assert only(counted(believed, "server")) != told(run, "server")
    bad = len(run["files"]["imp_corrupt1.server.pcap.gz"]["icrc_bad_frames"])
    assert counted(believed, "server")["rcvd_pkts"] == run["server"]["rcvd_pkts"] + bad


@pytest.mark.parametrize("name", ["imp_loss1_write", "imp_loss1_send", "imp_loss5_ipv6", "imp_lossw_middle10"])
def test_sender_sees_the_same_episodes(name, truth, analysis, counted):
    """Loss behind the capture point: only the NAKs tell, and they tell the receiver's number of episodes."""
    result = analysis(name, "client")
    assert counted(result, "server")["out_of_seq_request"] == truth[name]["server"]["out_of_seq_request"] > 0
    assert int(result.streams["gaps"].sum()) == 0


@pytest.mark.parametrize("name", LOSSES)
def test_gaps_are_the_frames_that_the_path_lost(name, truth, analysis):
    """PSNs missing at the receiver = PSNs of the frames lost on the path that were new, by comparing both ends."""
    frames = truth[name]["path"]["client->server"]["lost_frames_in_sender_file"]
    sent = analysis(name, "client").packets(columns=["frame", "dest_qp", "psn", "verdict", "role", "dst"])
    lost = sent[sent["frame"].isin(frames) & (sent["role"] == "request")]
    assert len(lost) == truth[name]["path"]["client->server"]["lost"]
    of_new = lost[lost["verdict"].isin(["first", "new"])]
    receiver = analysis(name, "server")
    gaps = receiver.events[(receiver.events["kind"] == "gap") & (receiver.events["value"] == 0)]
    qps = receiver.streams.set_index("stream")["dest_qp"]
    missing = [
        (int(qps[gap.stream]), gap.psn + step & 0xFFFFFF) for gap in gaps.itertuples() for step in range(gap.count)
    ]
    assert sorted(missing) == sorted(zip(of_new["dest_qp"], of_new["psn"], strict=True))
    assert int(receiver.streams["missing_packets"].sum()) == len(missing) > 0
    # and the sender's own capture, which lies before the loss, has no gap
    assert int(analysis(name, "client").streams["gaps"].sum()) == 0


def healthy_files(softroce, expected):
    for path in sorted(softroce.glob("*.pcap*")):
        name = path.name.partition(".")[0]
        name = name if name in expected else name.partition("_")[0]
        if expected.get(name, {}).get("class") == "healthy":
            yield path


def test_healthy_captures_have_no_trouble(softroce, expected):
    found, looked_at = {}, 0
    for path in healthy_files(softroce, expected):
        figures = rd.analyze(path).streams[TROUBLE].sum()
        looked_at += 1
        if figures.sum() and path.name not in NOT_HEALTHY:
            found[path.name] = {key: int(value) for key, value in figures.items() if value}
    assert looked_at > 90
    assert {name.partition(".")[0] for name in found} == RESENDS_BY_KERNEL
    midstream = found.pop("midstream_capture_start.server.pcap.gz")
    assert midstream == {"gaps": 1, "missing_packets": 3, "resent_packets": 23, "unseen_packets": 3}
    for name, figures in found.items():
        assert list(figures) == ["resent_packets"], name


def test_resends_in_healthy_captures_are_the_kernels(truth, analysis):
    """Where resends are seen in a healthy capture, the kernel that received them counted duplicates."""
    for name in RESENDS_BY_KERNEL - {"midstream_capture_start"}:
        resent = int(analysis(name, "server").streams["resent_packets"].sum())
        kernels = sum(truth[name][host].get("duplicate_request", 0) for host in ("server", "client"))
        assert resent == kernels > 0, name


def test_the_gap_of_midstream_is_the_captures(truth, analysis):
    """The server's capture lacks three packets that the client's has, and that arrived: no NAK, and an ACK beyond."""
    run = truth["midstream_capture_start"]
    assert run["server"].get("out_of_seq_request", 0) == 0
    server, client = (analysis("midstream_capture_start", side) for side in ("server", "client"))
    [gap] = server.events[server.events["kind"] == "gap"].itertuples()
    [unseen] = server.events[server.events["kind"] == "unseen"].itertuples()
    assert unseen.count == gap.count == 3
    lost = set(run["path"]["client->server"]["lost_frames_in_sender_file"])
    sent = client.packets(columns=["frame", "psn", "role", "src"])
    sent = sent[(sent["role"] == "request") & sent["psn"].between(gap.psn, gap.psn + 2)]
    assert len(sent) == 3
    assert set(sent["frame"].tolist()) <= lost


def test_merged_capture_holds_every_frame_twice(softroce):
    """Each one has its twin, which takes no part: no request is sent again, and nothing is missing."""
    result = rd.analyze(softroce / "fmtd_merged_both_hosts_clean.pcap.gz")
    packets = result.packets(columns=["src", "dest_qp", "ip_id", "psn", "icrc", "standing", "verdict"])
    assert (packets.groupby(["src", "dest_qp", "ip_id", "psn", "icrc"], observed=True).size() == 2).all()
    standings = packets.groupby(["src", "ip_id"], observed=True)["standing"].agg(lambda both: " ".join(both))
    assert (standings == "full doubled").all()
    assert not packets["verdict"].isin(["resent", "copy", "late", "gap"]).any()
    assert int(result.streams["packets"].sum()) * 2 == len(packets)


def test_split_capture_is_part_of_a_lossy_run(softroce, truth, counted):
    """All parts together give what the kernel's sender gives: the NAKs of imp_loss1_write."""
    parts = sorted(softroce.glob("fmtd_split_*.pcap.gz"))
    assert len(parts) == 5
    counters = counted(rd.analyze(parts), "client")
    naks = truth["imp_loss1_write"]["files"]["imp_loss1_write.client.pcap.gz"]["aeth"]["NAK_psn_seq_err"]
    assert counters["packet_seq_err"] == naks
    assert counters["sent_pkts"] == truth["imp_loss1_write"]["client"]["sent_pkts"]


def test_one_sided_capture_claims_nothing(softroce):
    """Only what goes to the client was captured: nobody is seen to answer, so that no responder is counted."""
    result = rd.analyze(softroce / "fmtd_one_direction_to_client.pcap.gz")
    assert not result.streams["confirmed"].any()
    assert int(result.counters["duplicate_request"].sum()) == int(result.counters["out_of_seq_request"].sum()) == 0
    assert int(result.streams["naks"].sum()) > 0


# -- the samples that come with the project ------------------------------------------------------------------------


def sample_names():
    folder = Path(__file__).parents[2] / "pcaps"
    return sorted(path.name for path in folder.glob("*.client.pcap.gz")) + sorted(
        path.name for path in folder.glob("*.server.pcap.gz")
    )


@pytest.mark.parametrize("file", sample_names())
def test_sample_gives_the_kernels_counters(file, samples, kernels, counted):
    """Each sample with all counters of the host at which it was captured; of both, where the path lost nothing."""
    told_by_kernels = json.loads((samples / "kernel_counters.json").read_text())
    name, side, _ = file.split(".", 2)
    result = rd.analyze(samples / file)
    hosts = {kernels.host_of(address): counters for address, counters in told_by_kernels[name].items()}
    assert set(hosts) == set(kernels.HOSTS)
    for host, kernel in hosts.items():
        if host != side and name.startswith("imp_"):
            continue
        ours = counted(result, host)
        for counter in kernels.COUNTERS if host == side else COUNTERS:
            if (name, host, counter) not in kernels.REASONS:
                assert ours[counter] == kernel.get(counter, 0), (host, counter)


def test_samples_counters_are_those_of_the_lab(samples, truth, kernels):
    """The file that comes with the project is an extract of the lab's."""
    told_by_kernels = json.loads((samples / "kernel_counters.json").read_text())
    assert set(told_by_kernels) == {name.split(".")[0] for name in sample_names()}
    for name, hosts in told_by_kernels.items():
        for address, counters in hosts.items():
            lab = truth[name][kernels.host_of(address)]
            assert counters == {counter: lab[counter] for counter in counters}
            assert set(kernels.COUNTERS) & set(lab) <= set(counters)


def test_senders_that_numbered_anew(softroce):
    """The two runs that end with NAK invalid request: rxe sent PSNs again as other operations. Nobody else did."""
    found = set()
    for path in sorted(softroce.glob("*.client.pcap.gz")) + sorted(softroce.glob("*.server.pcap.gz")):
        if rd.analyze(path).streams["changed_requests"].sum():
            found.add(path.name.partition(".")[0])
    assert found == {"big_write_8qp_loss01", "imp_reorder"}
