"""``analyze --counters``: what a user gives and is told. Numbers are those of the lab's hosts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

import roce_dissect as rd
from roce_dissect.cli.counters import read_hosts

DOCS = Path(__file__).parents[2] / "docs"
A, B = "192.168.100.1", "192.168.100.2"
SERVER = "imp_loss1_write.server.pcap.gz"
#: The server (A) of imp_loss1_write.
BEFORE = {"sent_pkts": 8128, "rcvd_pkts": 8499, "duplicate_request": 1412, "out_of_seq_request": 203, "rdma_recvs": 753}
AFTER = {"sent_pkts": 8329, "rcvd_pkts": 9985, "duplicate_request": 1543, "out_of_seq_request": 213, "rdma_recvs": 753}
GROWTH = {name: value - BEFORE[name] for name, value in AFTER.items()}


@pytest.fixture
def text(tmp_path, monkeypatch):
    """``text("name", counters)``: a file as rdma statistic prints it, in the working directory; returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, counters):
        Path(name).write_text(f"link rxe0/1 {' '.join(f'{key} {value}' for key, value in counters.items())} \n")
        return name

    return write


def section(out):
    return out.partition("Counters, host against wire")[2]


def test_two_snapshots_agree(call, samples, text):
    files = [text("before", BEFORE), text("after", AFTER)]
    done = call("analyze", samples / SERVER, *(f"--counters={A}={file}" for file in files))
    assert (done.status, done.err) == (0, [])
    told = section(done.out)
    assert f"{A}: after less before; all 4 counters agree\n" in told
    assert re.search(r"^ +duplicate_request +131 +131 +-$", told, re.MULTILINE)
    assert re.search(r"^ +out_of_seq_request +10 +10 +-$", told, re.MULTILINE)
    assert "not comparable: 1 counter of 0\n" in told


def test_a_disagreement_is_shown_with_what_it_may_mean(call, samples, text):
    file = text("delta", GROWTH | {"duplicate_request": 132, "sent_pkts": 199, "rdma_recvs": 5})
    told = section(call("analyze", samples / SERVER, "--counters", f"{A}={file}").out)
    assert f"{A}: delta as it is; 2 of 4 counters agree\n" in told
    assert re.search(r"^ +duplicate_request +132 +131 +\+1$", told, re.MULTILINE)
    assert "duplicate_request +1: the host knew of packets that the capture lacks" in told
    assert "sent_pkts -2: captured and not counted" in told
    assert "one file: if it counts since the driver was loaded" in told
    assert "not comparable: rdma_recvs 5" in told


def test_without_an_address_every_host_is_a_column(call, samples, text):
    told = section(call("analyze", samples / SERVER, "--counters", text("delta", GROWTH)).out)
    assert f"delta as it is, beside every host; it fits {A} best: all 4 counters agree" in told
    assert re.search(rf"^ +counter +host +{B} +{A}$", told, re.MULTILINE)
    assert re.search(r"^ +sent_pkts +201 +1,486 \(-1,285\) +201$", told, re.MULTILINE)
    assert "--counters ADDRESS=FILE" in told


def test_many_hosts_need_an_address(call, samples, text):
    captures = [samples / SERVER, *sorted(samples.glob("*ipv6*.client.pcap.gz")), *sorted(samples.glob("*vlan*"))]
    assert len(rd.analyze(list(map(str, captures))).counters) > 4
    done = call("analyze", *captures, "--counters", text("delta", GROWTH))
    assert done.status == 2
    [line] = done.err
    assert re.fullmatch(
        r"roce-dissect: --counters: the capture has \d+ hosts; say whose counters these are: ADDRESS=delta", line
    )
    assert "Trouble on" in done.out  # the analysis itself is there
    assert section(done.out) == ""


def test_both_hosts(call, samples, text):
    files = [f"--counters={A}={text('a', GROWTH)}", f"--counters={B}={text('b', {'sent_pkts': 1497})}"]
    told = section(call("analyze", samples / SERVER, *files).out)
    assert f"{A}: a as it is; all 4 counters agree" in told
    assert f"{B}: b as it is; 0 of 1 counters agree" in told
    assert "sent_pkts +11: sent and not captured: lost before the capture point" in told


def test_nothing_to_compare(call, samples, text):
    done = call("analyze", samples / SERVER, "--counters", f"{A}={text('odd', {'rx_packets': 5})}")
    assert done.status == 0
    assert f"{A}: odd as it is; it holds no counter that packets can give" in section(done.out)
    assert "not comparable: rx_packets 5" in section(done.out)


def test_many_counters_are_one_line(call, samples, text):
    file = text("many", {f"rx{index}_packets": index for index in range(1000)})
    told = section(call("analyze", samples / SERVER, "--counters", f"{A}={file}").out)
    assert "not comparable: rx1_packets 1, rx2_packets 2, " in told
    assert told.rstrip().endswith("rx12_packets 12 and 987 more; 1 counter of 0")


def test_an_unknown_address_leaves_the_rest(call, samples, text):
    file = text("delta", GROWTH)
    done = call("analyze", samples / SERVER, f"--counters=10.0.0.9={file}", f"--counters={A}={file}")
    assert done.status == 2
    assert done.err == [f"roce-dissect: --counters: no packets of 10.0.0.9 in the capture (there are: {B}, {A})"]
    assert f"{A}: delta as it is; all 4 counters agree" in section(done.out)
    assert "10.0.0.9" not in done.out


def test_an_unreadable_capture_is_one_line(call, text):
    done = call("analyze", "nope.pcap", "--counters", text("delta", GROWTH))
    assert done.status == 2
    assert done.err == ["roce-dissect: nope.pcap: cannot be opened: No such file or directory"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["nope"], "nope: cannot be read: No such file or directory"),
        ([f"{A}=delta", "delta"], "--counters: either all of them with ADDRESS=, or none"),
        ([f"{A}=delta"] * 3, f"--counters: 3 files for {A}; two at most: before and after"),
        (["delta"] * 3, "--counters: 3 files for one host; two at most: before and after"),
        (["server=delta"], "--counters server=delta: 'server' is no IP address"),
        ([f"{A}=after", f"{A}=delta"], "delta: sent_pkts fell from 8329 to 201: give the earlier snapshot first "
         "(or the counters were reset in between, or overran)"),
        (["delta#mlx5_0/1"], "delta: no counters of 'mlx5_0/1' in it (there are: rxe0/1)"),
        (["hostile"], "hostile: line 1 is no counter: '\\x1b[2J'"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_line_before_the_capture_is_read(call, samples, text, options, reason):
    text("delta", GROWTH)
    text("after", AFTER)
    Path("hostile").write_text("\x1b[2J\n")
    done = call("analyze", samples / SERVER, *(f"--counters={option}" for option in options))
    assert (done.status, done.out) == (2, "")
    assert done.err == [f"roce-dissect: {reason}"]


def test_no_name_acts_on_the_terminal(call, samples, text):
    name = text("evil\x1b[2J\u202e", GROWTH)
    done = call("analyze", samples / SERVER, "--counters", f"{A}={name}")
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert r"evil\x1b[2J\u202e as it is" in done.out


@pytest.mark.parametrize(
    ("option", "addresses"),
    [
        ("::ffff:10.0.0.1=a", ("10.0.0.1",)),
        ("FD00:0::1=a", ("fd00::1",)),
        ("[fe80::1%eth0]=a", ("fe80::1",)),
        ("10.0.0.1, fd00::1=a", ("10.0.0.1", "fd00::1")),
        ("a", ()),
        ("./x=1", ()),
        ("x=1", ()),
        ("a#1", ()),
        ("a#rxe0/1", ()),
    ],
)
def test_addresses_and_files(text, option, addresses):
    for name in ("a", "x=1", "a#1"):
        text(name, {"sent_pkts": 1})
    [host] = read_hosts([option])
    assert host.addresses == addresses
    assert host.values == {"sent_pkts": 1}


def test_json(call, samples, text):
    schema = json.loads((DOCS / "analysis.schema.json").read_text())
    plain = json.loads(call("analyze", samples / SERVER, "--format", "json").out)
    assert plain["counter_comparison"] == []
    file = text("delta", GROWTH | {"duplicate_request": 132})
    done = call("analyze", samples / SERVER, "--format", "json", "--counters", f"{A}={file}")
    told = json.loads(done.out)
    jsonschema.Draft202012Validator(schema).validate(told)
    by_name = {record["counter"]: record for record in told["counter_comparison"]}
    assert set(by_name) == {"sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request"}
    assert by_name["out_of_seq_request"] == {
        "address": A, "counter": "out_of_seq_request", "wire_counter": "out_of_seq_request", "host": 10, "wire": 10,
        "difference": 0, "agrees": True, "remark": "",
    }  # fmt: skip
    assert (by_name["duplicate_request"]["difference"], by_name["duplicate_request"]["agrees"]) == (1, False)
    assert {key: value for key, value in told.items() if key != "counter_comparison"} == {
        key: value for key, value in plain.items() if key != "counter_comparison"
    }
