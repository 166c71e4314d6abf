"""The flow tables against the kernels that sent and received the packets.

The Soft-RoCE captures come with the rxe counters of both hosts (``truth.json``), with the frames that the path lost
(found by comparing the captures of both ends), and with a verdict on the whole (``expected.json``). The tracker sees
packets only; what it makes of them has to be what the kernels counted.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import roce_dissect as rd

#: What the responder counted, and what packets at the responder show.
COUNTERS = ("duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err")

EXACT = (
    "imp_loss1_write",
    "imp_loss1_send",
    "imp_dup5",
    "imp_ackloss20",
    "imp_loss5_readreq",
    "flt_rnr_recovers",
    "flt_bad_rkey_write",
    "rc_psn_wrap",
    "rc_psn_wrap_read",
)

#: Hosts whose counters the packets cannot give.
NOT_EXACT = {
    ("flt_psn_mismatch", "server"): "the responder expects a PSN that is never on the wire, so that to it even the "
    "first passage of each packet is a duplicate",
    ("midstream_capture_start", "server"): "the kernel counted before the capture began",
}

#: rxe of Linux 6.12 computes a wrong ICRC for FLUSH at both ends, and takes it (known of rxe).
ICRC_AGREED = {"k612_flush_atomic_write"}

#: Healthy captures with resends all the same, by the kernels' own counters: rxe's responder had a duplicate.
RESENDS_BY_KERNEL = {"ecn_ect1", "rc_send_lat", "rc_write_lat", "midstream_capture_start"}
#: Files under a healthy heading that are no record of a healthy run, with the evidence.
NOT_HEALTHY = {
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
def truth(softroce):
    return json.loads((softroce / "truth.json").read_text())


@pytest.fixture(scope="session")
def expected(softroce):
    return json.loads((softroce / "expected.json").read_text())


@pytest.fixture(scope="session")
def analysis(softroce, truth):
    """``analysis(name, side)``: an Analysis, without the frames whose ICRC the lab found bad; None: no such file."""

    @cache
    def run(name, side):
        path = softroce / f"{name}.{side}.pcap.gz"
        if not path.exists():
            return None
        bad = truth[name].get("files", {}).get(path.name, {}).get("icrc_bad_frames")
        if bad and name not in ICRC_AGREED:
            packets = rd.read_packets(path)
            return rd.track(packets, bad_icrc=packets["frame"].isin(bad))
        return rd.analyze(path)

    return run


def counted(result, host):
    """Counters of the server (addresses ending in 1) or the client (2), as a dict."""
    last = {"server": "1", "client": "2"}[host]
    rows = [address for address in result.counters.index if address.endswith((f".{last}", f":{last}"))]
    return {name: int(result.counters.loc[rows, name].sum()) for name in result.counters.columns}


def told(run, host):
    """What the kernel counted; a counter that stayed 0 is not in the file."""
    return {name: run[host].get(name, 0) for name in COUNTERS}


def only(counters):
    return {name: counters[name] for name in COUNTERS}


@pytest.mark.parametrize("name", EXACT)
def test_receiver_counts_what_its_kernel_counted(name, truth, analysis):
    result = analysis(name, "server")
    for host in ("server", "client"):
        assert only(counted(result, host)) == told(truth[name], host)


def test_all_receivers(truth, analysis):
    """No fewer hosts are exact than the prototype's 18 of those that have any figures."""
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


def test_why_psn_mismatch_is_not_exact(truth, analysis):
    """The kernel counts all eight packets; ours less one for each PSN, since it must take the first passage as new."""
    run = truth["flt_psn_mismatch"]
    assert run["server"]["duplicate_request"] == run["server"]["rcvd_pkts"] == 8
    result = analysis("flt_psn_mismatch", "server")
    requests = result.packets(columns=["role", "psn", "verdict"]).query("role == 'request'")
    assert counted(result, "server")["duplicate_request"] == 8 - requests["psn"].nunique()


def test_why_midstream_is_not_exact(truth, analysis):
    run, result = truth["midstream_capture_start"], analysis("midstream_capture_start", "server")
    assert counted(result, "server")["rcvd_pkts"] < run["server"]["rcvd_pkts"]
    assert counted(result, "server")["duplicate_request"] < run["server"]["duplicate_request"]


def test_icrc_bad_frames_take_no_part(truth, softroce, analysis):
    """To the receiver's kernel a frame with a bad ICRC never came; believed, it hides the loss."""
    run = truth["imp_corrupt1"]
    assert only(counted(analysis("imp_corrupt1", "server"), "server")) == told(run, "server")
    believed = rd.analyze(softroce / "imp_corrupt1.server.pcap.gz")
    assert only(counted(believed, "server")) != told(run, "server")
    bad = len(run["files"]["imp_corrupt1.server.pcap.gz"]["icrc_bad_frames"])
    assert counted(believed, "server")["rcvd_pkts"] == run["server"]["rcvd_pkts"] + bad
    assert counted(analysis("imp_corrupt1", "server"), "server")["rcvd_pkts"] == run["server"]["rcvd_pkts"]


@pytest.mark.parametrize("side", ["server", "client"])
def test_packets_sent(side, truth, analysis):
    """At the sender's own capture point the kernel's sent_pkts is the number of packets."""
    skipped = {
        "encap_vxlan": "tunnels are not decoded yet",
        "rc_mix_ipv6_linklocal": "its addresses do not tell server from client by their last digit",
        "midstream_capture_start": "the kernel counted before the capture began",
    }
    checked = 0
    for name, run in truth.items():
        result = analysis(name, side)
        if result is None or side not in run or name in skipped:
            continue
        assert counted(result, side)["sent_pkts"] == run[side].get("sent_pkts", 0), name
        checked += 1
    assert checked >= 50


@pytest.mark.parametrize("side", ["server", "client"])
def test_packets_received(side, truth, analysis):
    """The kernel's rcvd_pkts, where the kernel takes all that comes.

    It counts no packet that met a QP in error or none, nor a UD multicast under the host's address.
    """
    may_be_more = {
        "big_write_8qp_loss01": "a QP in error",
        "cm_riostream": "the last one came to a QP that was gone",
        "flt_bad_rkey_write": "a QP in error",
        "flt_rnr_retry_exceeded": "a QP in error",
        "flt_wrong_dqpn": "no such QP",
        "imp_reorder": "a QP in error",
    }
    elsewhere = {"encap_vxlan", "rc_mix_ipv6_linklocal", "midstream_capture_start", "cm_mckey"}
    for name, run in truth.items():
        result = analysis(name, side)
        if result is None or side not in run or name in elsewhere:
            continue
        ours, kernel = counted(result, side)["rcvd_pkts"], run[side].get("rcvd_pkts", 0)
        assert ours >= kernel if name in may_be_more else ours == kernel, name


@pytest.mark.parametrize("name", ["imp_loss1_write", "imp_loss1_send", "imp_loss5_ipv6", "imp_lossw_middle10"])
def test_sender_sees_the_same_episodes(name, truth, analysis):
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
    """Why its resends mean nothing: each request has its twin, and nothing but the doubling is found."""
    result = rd.analyze(softroce / "fmtd_merged_both_hosts_clean.pcap.gz")
    packets = result.packets(columns=["src", "dest_qp", "ip_id", "psn", "icrc", "role", "verdict"])
    assert (packets.groupby(["src", "dest_qp", "ip_id", "psn", "icrc"], observed=True).size() == 2).all()
    requests = packets[packets["role"] == "request"]
    again = requests["verdict"].isin(["resent", "copy"])
    assert 2 * int(again.sum()) == len(requests)
    assert int(result.streams["gaps"].sum()) == 0


def test_split_capture_is_part_of_a_lossy_run(softroce, truth):
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
def test_sample_gives_the_kernels_counters(file, samples):
    """Each sample with the counters of the host at which it was captured; of both, where the path lost nothing."""
    kernels = json.loads((samples / "kernel_counters.json").read_text())
    name, side, _ = file.split(".", 2)
    result = rd.analyze(samples / file)
    for address, kernel in kernels[name].items():
        own = address.endswith({"server": ("0.1", ":1"), "client": ("0.2", ":2")}[side])
        if not own and name.startswith("imp_"):
            continue
        for counter in (*COUNTERS, *(["sent_pkts"] if own else [])):
            assert int(result.counters.loc[address, counter]) == kernel.get(counter, 0), (address, counter)
