"""``connections``: the list, and everything about one."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

import roce_dissect as rd
from roce_dissect.columns import CONNECTIONS

LOSS = "imp_loss1_write.server.pcap.gz"
CM = "cm_rping_ipv4.client.pcap.gz"
REFUSED = "cm_refused.client.pcap.gz"


def test_one_line_for_each(call, samples):
    done = call("connections", samples / LOSS)
    assert (done.status, done.err) == (0, [])
    heading, row, wireshark = done.out.splitlines()
    assert heading.split()[:4] == ["#", "a", "b", "type"]
    # 8 of the 10 episodes answer a NAK; figures as in analyze
    assert row.startswith(
        "#1  192.168.100.2:0x30  192.168.100.1:0x30  RC    20-1707  open    1,687        60    983 kB"
    )
    assert "8 NAK, 1 spurious, 1 cause unknown" in row
    assert "95.9 ms" in row
    assert wireshark.startswith("Wireshark, #1: (ip.dst == 192.168.100.1 && infiniband.bth.destqp == 0x30) || ")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (CM, ["closed", "76.2 ms / 92.1 ms"]),
        ("flt_bad_rkey_write.server.pcap.gz", ["NAK", "3 of 6"]),
        (REFUSED, ["refused"]),
        ("uc_mix_ipv4.client.pcap.gz", ["UC", "open"]),
    ],
)
def test_how_it_ended_and_what_it_carried(call, samples, name, words):
    row = call("connections", samples / name).out.splitlines()[1]
    assert [word for word in words if word not in row] == []


def test_gave_up(call, softroce):
    """truth: retry_cnt 3, then the completion fails with status 12."""
    row = call("connections", softroce / "flt_wrong_dqpn.client.pcap.gz").out.splitlines()[1]
    assert "gave up after 3 retries" in row
    assert "one direction only" in row
    detail = call("connections", softroce / "flt_wrong_dqpn.client.pcap.gz", "--connection", "1").out
    assert re.search(r"^ended +gave up after 3 retries: nothing acknowledged the last one$", detail, re.MULTILINE)
    assert re.search(r"^timeout, as its retries tell +67\.1 ms \(t = 14\), 2 samples", detail, re.MULTILINE)
    assert re.search(r"^duplicates to the receiver +not known", detail, re.MULTILINE)


def test_ends_that_do_not_agree(call, softroce):
    path = softroce / "flt_psn_mismatch.server.pcap.gz"
    assert "its ends do not agree on the PSN" in call("connections", path).out
    assert "1 connection whose ends do not agree on the PSN" in call("analyze", path).out


def test_everything_about_one(call, samples):
    text = call("connections", samples / CM, "--connection", "1").out
    for line in (
        r"connection +#1, RC, RoCE v2",
        r"a +192\.168\.100\.2:0x40",
        r"seen +frames 1-125, 270 ms from 2026-11-29 12:53:10\.942164 UTC",
        r"set-up +REQ frame 1, REP frame 2, RTU frame 3, DREQ frame 124, DREP frame 125",
        r"ended +closed by the connection manager \(DREQ, DREP\)",
        r"paired by +the connection manager's REQ and REP named both QPs \(confidence 1\)",
        r"requests / responses +20 / 40 +40 / 20",
        r"timeout, as its REQ told +2\.15 s \(t = 19\) +2\.15 s \(t = 19\)",  # tshark: local ACK timeout 0x13
        r"Wireshark +\(ip\.dst == 192\.168\.100\.1 && .*",
    ):
        assert re.search(f"^{line}$", text, re.MULTILINE), line


def test_a_refused_one_is_found_by_its_frames(call, samples):
    text = call("connections", samples / REFUSED, "--connection", "1").out
    assert re.search(r"^ended +never begun: refused$", text, re.MULTILINE)
    assert re.search(r"^set-up +REQ frame 1, REJ frame 2$", text, re.MULTILINE)
    assert re.search(r"^Wireshark +frame\.number in \{1\.\.2\}$", text, re.MULTILINE)


@pytest.mark.parametrize("key", ["stall", "resent", "episodes", "packets", "bytes", "data", "messages", "idle", "last"])
def test_sort(call, softroce, key):
    path = softroce / "big_write_8qp_loss01.server.pcap.gz"
    rows = json.loads(call("connections", path, "--sort", key, "--format", "json").out)

    def both(row, name):
        return (row["a_to_b"][name] or 0) + (row["b_to_a"][name] or 0)

    names = {"episodes": "episodes", "packets": "packets", "bytes": "bytes", "data": "goodput_bytes",
             "messages": "messages", "idle": "idle_ns"}  # fmt: skip
    direct = {"stall": "stall_ns", "resent": "resent_packets", "last": "last_time_ns"}
    values = [row[direct[key]] if key in direct else both(row, names[key]) for row in rows]
    assert len(values) == 8
    assert values == sorted(values, reverse=key != "last")


def test_count_says_how_many_more(call, samples):
    done = call("connections", samples / REFUSED, "--count", "1", "--sort", "first")
    assert done.out.splitlines()[1:] == [done.out.splitlines()[1], "3 more"]


def test_csv_and_json_are_the_python_tables(call, samples):
    table = rd.analyze(samples / REFUSED).connections
    rows = list(csv.reader(io.StringIO(call("connections", samples / REFUSED, "--format", "csv").out)))
    assert rows[0] == list(CONNECTIONS)
    expected = table.astype({"confidence": int}).astype(object).where(table.notna(), "")  # 1 is written as 1
    assert rows[1:] == expected.map(str).to_numpy().tolist()
    told = json.loads(call("connections", samples / REFUSED, "--format", "json", "--sort", "first").out)
    assert told == rd.analyze(samples / REFUSED).to_dict()["connections"]


def test_an_unknown_number_lists_what_there_is(call, samples):
    done = call("connections", samples / REFUSED, "--connection", "9")
    assert (done.status, done.out) == (2, "")
    [line] = done.err
    assert line.startswith("roce-dissect: there is no connection 9 (most affected first: 1: 192.168.100.2:0x8c - ")


def test_no_connection(call, samples):
    done = call("connections", samples / "ud_mix_ipv4.server.pcap.gz")
    assert (done.status, done.out) == (0, "no connection in this capture\n")
    done = call("connections", samples / "ud_mix_ipv4.server.pcap.gz", "--connection", "1")
    assert (done.status, done.err) == (2, ["roce-dissect: there is no connection 1: the capture has none"])


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("name", [LOSS, CM, "rc_mix_ipv6_mtu1024.client.pcap.gz"])
def test_no_width_is_exceeded_and_nothing_is_cut(samples, name, width):
    import click

    from roce_dissect.cli.connection_list import list_lines

    result = rd.analyze(samples / name)
    lines = [click.unstyle(line) for line in list_lines(result, result.connections, width)]
    kept = [line for line in lines if not line.startswith("Wireshark")]
    assert max(map(len, kept)) <= width
    for address in result.hosts["address"]:
        assert str(address) in "".join(line.strip() for line in kept)


def test_from_standard_input(command, samples):
    content = (samples / CM).read_bytes()
    done = command("connections", "-", stdin=content)
    assert (done.status, done.err) == (0, [])
    assert "closed" in done.out
