"""``packets``: lines for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess

import pandas as pd
import pytest

import roce_dissect as rd
from roce_dissect.cli.packet_lines import TEXT_COLUMNS, text_lines
from roce_dissect.columns import PACKETS

LOSS = "imp_loss1_write.server.pcap.gz"
MIX = ["rc_mix_ipv4_mtu1024.server.pcap.gz", "rc_mix_ipv6_mtu1024.client.pcap.gz", "rc_mix_vlan100_ipv4.client.pcap.gz",
       "ud_mix_ipv4.server.pcap.gz", "fmt_nsec_snap80.pcap.gz", "cm_rping_ipv4.client.pcap.gz"]  # fmt: skip


def test_lines_for_people(call, samples):
    lines = call("packets", samples / LOSS).out.splitlines()
    assert len(lines) == 1687
    # frame numbers, times and PSNs as tshark prints them
    assert lines[66] == (
        "     86    1.058633000   192.168.100.2 -> 192.168.100.1   RC WRITE FIRST          QP 0x30     PSN 2032686  "
        "len 1098 gap (1 missing), out of sequence"
    )
    assert lines[67].endswith("PSN 2032685  len 62   NAK PSN sequence error")
    assert lines[68].endswith("discarded")
    assert lines[65].endswith("len 1082")  # new and accepted: nothing to remark
    assert not any(line != line.rstrip() for line in lines)


def test_rnr_in_words(call, samples):
    out = call("packets", samples / "flt_rnr_recovers.client.pcap.gz", "--count", "3").out
    assert out.splitlines()[2].endswith("RNR NAK 0.64 ms, first")


@pytest.mark.parametrize("name", MIX)
def test_csv_is_what_the_python_api_gives(call, samples, name):
    table = rd.read_packets(samples / name)
    rows = list(csv.reader(io.StringIO(call("packets", samples / name, "--format", "csv").out)))
    assert rows[0] == list(PACKETS)
    expected = table.astype(object).where(table.notna(), "").map(str)
    assert rows[1:] == expected.to_numpy().tolist()


@pytest.mark.parametrize("name", MIX)
def test_jsonl_is_what_the_python_api_gives(call, samples, name):
    table = rd.read_packets(samples / name)
    lines = call("packets", samples / name, "--format", "jsonl").out.splitlines()
    expected = table.astype(object).where(table.notna(), None).to_dict("records")
    assert [json.loads(line) for line in lines] == expected


def test_csv_against_tshark(call, samples):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    fields = ["frame.number", "infiniband.bth.opcode", "infiniband.bth.psn", "ip.src", "infiniband.aeth.syndrome"]
    asked = [
        "tshark",
        "-r",
        str(samples / LOSS),
        "-Y",
        "infiniband",
        "-T",
        "fields",
        *(x for f in fields for x in ("-e", f)),
    ]
    theirs = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    names = "frame,opcode,psn,src,syndrome"
    ours = call("packets", samples / LOSS, "--format", "csv", "--columns", names).out.splitlines()
    assert ours[0] == names
    assert ours[1:] == [line.replace("\t", ",") for line in theirs]


def test_chosen_columns_in_text_are_parted_by_tabs(call, samples):
    out = call("packets", samples / LOSS, "--columns", "frame, verdict,r_key", "--count", "2").out
    assert out == "20\tfirst\t9514\n21\tnew\t\n"


def test_count_stops(call, samples):
    assert call("packets", samples / LOSS, "--count", "7").out.count("\n") == 7
    assert call("packets", samples / LOSS, "--count", "7", "--format", "csv").out.count("\n") == 8
    assert call("packets", samples / LOSS, "--count", "99999").out.count("\n") == 1687


@pytest.mark.parametrize("columns", ["frame,nonsense", "", " , "])
def test_wrong_columns(call, samples, columns):
    done = call("packets", samples / LOSS, "--columns", columns)
    assert (done.status, done.out, len(done.err)) == (2, "", 1)


def test_several_files_have_their_number_in_front(call, samples):
    lines = call("packets", samples / LOSS, samples / "flt_rnr_recovers.client.pcap.gz").out.splitlines()
    assert re.match(r"  1      10    0\.012846000 ", lines[0])  # the earlier capture
    assert re.match(r"  2 ", lines[-1])


def test_no_roce_gives_no_line(call, tmp_path):
    path = tmp_path / "nothing.pcap"
    path.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    assert (call("packets", path).status, call("packets", path).out) == (0, "")
    assert call("packets", path, "--format", "csv", "--columns", "psn").out == "psn\n"


def test_times_before_the_first_frame_and_missing_values():
    rows = {
        "frame": [1, 2], "time_ns": [5, 2_000_000_000], "src": ["10.0.0.1", None], "dst": ["10.0.0.2", None],
        "operation": ["RC SEND ONLY", None], "dest_qp": [17, None], "psn": [3, None], "wire_len": [64, 42],
        "syndrome": [None, None], "status": ["ok", "malformed"], "standing": ["full"] * 2, "verdict": ["new", "none"],
        "accepted": ["accepted", "none"], "missing_before": [0, 0],
    }  # fmt: skip
    table = pd.DataFrame(rows)[list(TEXT_COLUMNS)]
    for name in ("src", "dst", "operation", "status", "standing", "verdict", "accepted"):
        table[name] = table[name].astype("category")
    for name in ("dest_qp", "psn", "syndrome"):
        table[name] = pd.array(table[name], dtype="int64[pyarrow]")
    first, second = text_lines(table, 1_000_000_000).splitlines()
    assert first.split()[:5] == ["1", "-0.999999995", "10.0.0.1", "->", "10.0.0.2"]
    assert second.split() == [
        "2", "1.000000000", "?", "->", "?", "(no", "BTH)", "QP", "-", "PSN", "-", "len", "42", "malformed",
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["text", "csv", "jsonl"])
def test_a_column_named_twice_is_printed_once(call, samples, form):
    path = samples / "imp_loss1_write.server.pcap.gz"
    twice = call("packets", path, "--count", "3", "--format", form, "--columns", "frame,psn,frame,frame")
    assert (twice.status, twice.err) == (0, [])
    assert twice.out == call("packets", path, "--count", "3", "--format", form, "--columns", "frame,psn").out


def test_damaged_packets_are_marked(call, softroce):
    """Frame 64 has a wrong ICRC; frame 65 finds it missing."""
    told = call("packets", str(softroce / "imp_corrupt1.server.pcap.gz"), "--frame", "63-65").out.splitlines()
    assert "damaged" not in told[0]
    assert told[1].endswith("damaged")
    assert "gap (1 missing)" in told[2]


def test_frames_and_a_filter(call, samples):
    done = call("packets", str(samples / "imp_loss1_write.server.pcap.gz"), "--frame", "20", "--filter", "psn == 1")
    assert (done.status, done.out) == (0, "")
    assert [line for line in done.err if "no packet among these frames fits --filter 'psn == 1'" in line]


def test_several_filters_must_all_hold(call, samples):
    """tshark says the same of ``infiniband.bth.psn == 2032685 && (infiniband.bth.opcode == 0x11 || ...ecn == 3)``."""
    words = ["--filter", "psn == 2032685", "--filter", "opcode == 0x11 or ecn == 3", "--columns", "frame"]
    assert call("packets", str(samples / "imp_loss1_write.server.pcap.gz"), *words).out.split() == ["87", "127"]
