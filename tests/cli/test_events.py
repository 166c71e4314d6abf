"""``events``: everything that happened, one line each."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess

import pytest

import roce_dissect as rd
from roce_dissect.cli.event_table import EPISODE_FIGURES, events_with_episodes
from roce_dissect.columns import EVENTS

LOSS = "imp_loss1_write.server.pcap.gz"
CM = "cm_rping_ipv4.client.pcap.gz"
RNR = "flt_rnr_recovers.client.pcap.gz"


def test_in_time_order_with_cause_and_cost(call, samples):
    done = call("events", samples / LOSS)
    assert (done.status, done.err) == (0, [])
    lines = done.out.splitlines()
    assert len(lines) == len(rd.analyze(samples / LOSS).events)
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)
    # tshark: NAK in 87, answered from 126 on; 2.02 ms lie between
    assert re.search(
        r"^ +\+1\.061017  #1   a>b  resend   frames 126-162: went back to PSN 2032685 after the NAK in frame 87, "
        r"2\.02 ms later: 34 packets \(34\.8 kB\) sent again, .*; 3\.81 ms without progress$",
        done.out,
        re.MULTILINE,
    )


def test_a_set_up_is_told_step_by_step(call, samples):
    lines = call("events", samples / CM).out.splitlines()
    assert [line.split()[2] for line in lines] == ["cm_req", "cm_rep", "cm_rtu", "cm_dreq", "cm_drep"]
    assert lines[0].endswith("frame 1: CM REQ, communication id 0x374e5afc")  # tshark: infiniband.mad.data


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        (["--kind", "nak"], {"nak"}),
        (["--kind", "nak", "--kind", "gap"], {"nak", "gap"}),
        (["--trigger", "nak"], {"resend"}),
        (["--kind", "resend", "--trigger", "nak"], {"resend"}),
    ],
)
def test_selection(call, samples, options, kinds):
    text = call("events", samples / LOSS, *options, "--format", "jsonl").out
    events = [json.loads(line) for line in text.splitlines()]
    assert {event["kind"] for event in events} == kinds
    if "--trigger" in options:
        assert {event["trigger"] for event in events} == {options[-1]}


def test_count_says_how_many_more(call, samples):
    done = call("events", samples / LOSS, "--count", "3")
    assert re.fullmatch(r"\d+ more", done.out.splitlines()[3])


def test_nothing_is_said(call, samples):
    done = call("events", samples / "rc_psn_wrap.client.pcap.gz")
    assert (done.status, done.out) == (0, "no event in this capture\n")
    done = call("events", samples / LOSS, "--kind", "ce", "--connection", "1", "--host", "192.168.100.1")
    assert (done.status, done.out) == (0, "no event fits --connection 1 --kind ce --host 192.168.100.1\n")
    assert call("events", samples / "rc_psn_wrap.client.pcap.gz", "--format", "jsonl").out == ""


@pytest.mark.parametrize("name", [LOSS, CM, RNR, "imp_loss5_readreq.server.pcap.gz"])
def test_figures_of_episodes_are_those_of_their_events(samples, name):
    result = rd.analyze(samples / name)
    table = events_with_episodes(result)
    resends = table[table["kind"] == "resend"].reset_index(drop=True)
    assert (resends["frame"] == result.episodes["frame"]).all()
    assert (resends["stream"] == result.episodes["stream"]).all()
    assert (resends["count"] == result.episodes["packets"]).all()
    assert table.loc[table["kind"] != "resend", list(EPISODE_FIGURES)].isna().all(axis=None)


@pytest.mark.parametrize("name", [LOSS, CM, RNR])
def test_csv_and_jsonl(call, samples, name):
    table = events_with_episodes(rd.analyze(samples / name))
    rows = list(csv.reader(io.StringIO(call("events", samples / name, "--format", "csv").out)))
    assert rows[0] == [*EVENTS, *EPISODE_FIGURES]
    assert rows[1:] == table.astype(object).where(table.notna(), "").map(str).to_numpy().tolist()
    lines = call("events", samples / name, "--format", "jsonl").out.splitlines()
    plain = table.astype(object).where(table.notna(), None).to_dict("records")
    assert [json.loads(line) for line in lines] == plain


def test_filters_name_the_cause_too(call, samples, plain):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = plain(samples / LOSS)
    line = next(line for line in call("events", path, "--filters").out.splitlines() if "frames 126-162" in line)
    text = re.search(r"\[(.*)\]$", line)[1]
    assert text == "frame.number in {87, 126..162}"
    done = subprocess.run(
        ["tshark", "-r", str(path), "-Y", text, "-T", "fields", "-e", "frame.number"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(done.stdout.split()) == 38


@pytest.mark.parametrize(
    "options",
    [
        ["--filters", "--format", "csv"],
        ["--kind", "thunder"],
        ["--trigger", "boredom"],
        ["--kind", "nak", "--trigger", "nak"],
        ["--connection", "7"],
    ],
)
def test_wrong_options_are_one_line(call, samples, options):
    done = call("events", samples / LOSS, *options)
    assert (done.status, done.out, len(done.err)) == (2, "", 1)
