"""``messages``: one line per verb, in all forms."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess

import pytest

import roce_dissect as rd
from roce_dissect.columns import MESSAGES

REFUSED = "flt_bad_rkey_write.server.pcap.gz"
READS = "imp_loss5_readreq.server.pcap.gz"
MIX = "rc_mix_ipv4_mtu1024.server.pcap.gz"
LOSS = "imp_loss1_write.server.pcap.gz"


def lines_of(text):
    return [line for line in text.splitlines() if re.match(r" *\+\d", line)]


def test_what_became_of_each(call, samples):
    """tshark: frame 17 refuses the WRITE of frames 16 to 20 with syndrome 0x62; 21 and 22 come behind it."""
    done = call("messages", samples / REFUSED)
    assert (done.status, done.err) == (0, [])
    lines = lines_of(done.out)
    assert len(lines) == 6
    words = lines[3].split()
    assert words[1:7] == ["#1", "a>b", "write", "refused", "frames", "16-20"]
    assert "answer 17    PSN 15703448-15703451" in lines[3]
    assert lines[3].endswith("NAK remote access error, address 0x7efd27386000, key 0x5a4a3e")
    assert [line.split()[4] for line in lines[4:]] == ["flushed", "flushed"]
    assert "6 messages: 3 complete, 1 refused, 2 flushed" in done.out.splitlines()
    assert "Wireshark, these messages: frame.number in {10..22}" in done.out.splitlines()
    assert "Latency in the whole capture (of complete messages" in done.out


def test_immediate_data_and_atomics(call, samples):
    lines = lines_of(call("messages", samples / MIX).out)
    # tshark: infiniband.immdt of frame 16
    assert next(line for line in lines if "frames 15-16" in line).endswith("immediate 0xcafe0000")
    assert [line.split()[3] for line in lines].count("compare_swap") == 2


def test_reads_answer_with_responses(call, samples):
    line = next(line for line in lines_of(call("messages", samples / MIX).out) if "frame 33 " in line)
    assert "answer 38" in line
    assert "5 kB" in line


def test_slowest_come_first(call, samples):
    text = call("messages", samples / READS, "--slowest", "3", "--format", "jsonl").out
    found = [json.loads(line)["latency_ns"] for line in text.splitlines()]
    every = rd.analyze(samples / READS).messages["latency_ns"].dropna().astype(int)
    assert found == sorted(every, reverse=True)[:3]


def test_slowest_of_nothing(call, samples):
    done = call("messages", samples / "uc_mix_ipv4.client.pcap.gz", "--slowest", "3")
    assert done.status == 0
    assert lines_of(done.out) == []
    assert "12 messages: 12 sent; 12 more than are shown" in done.out


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (["--status", "refused"], 1),
        (["--status", "refused", "--status", "flushed"], 3),
        (["--verb", "read"], 0),
        (["--verb", "write", "--status", "complete"], 3),
        (["--connection", "1"], 6),
    ],
)
def test_selection(call, samples, options, number):
    done = call("messages", samples / REFUSED, *options)
    assert len(lines_of(done.out)) == number
    assert (f"no message fits {' '.join(options)}\n" in done.out) == (number == 0)


def test_text_shows_what_a_person_reads_and_says_how_many_more(call, samples):
    done = call("messages", samples / READS)
    assert len(lines_of(done.out)) == 40
    assert "100 messages: 100 complete; 60 more than are shown" in done.out
    assert len(lines_of(call("messages", samples / READS, "--count", "70").out)) == 70


@pytest.mark.parametrize("name", [REFUSED, READS, MIX, LOSS, "ud_mix_ipv4.server.pcap.gz"])
def test_csv_and_jsonl_are_the_python_table(call, samples, name):
    table = rd.analyze(samples / name).messages
    rows = list(csv.reader(io.StringIO(call("messages", samples / name, "--format", "csv").out)))
    assert rows[0] == list(MESSAGES)
    whole = list(MESSAGES).index("whole")
    expected = table.astype(object).where(table.notna(), "").map(str).to_numpy().tolist()
    assert [[*row[:whole], row[whole].capitalize(), *row[whole + 1 :]] for row in rows[1:]] == expected
    lines = call("messages", samples / name, "--format", "jsonl").out.splitlines()
    plain = table.astype(object).where(table.notna(), None).to_dict("records")
    assert [json.loads(line) for line in lines] == plain


def test_csv_stops_at_the_count(call, samples):
    assert call("messages", samples / READS, "--format", "csv", "--count", "7").out.count("\n") == 8


def test_standard_input_gives_the_same(command, samples):
    content = (samples / LOSS).read_bytes()
    for form in ("csv", "jsonl", "text"):
        piped = command("messages", "-", "--format", form, stdin=content)
        assert (piped.status, piped.err) == (0, [])
        assert piped.out == command("messages", samples / LOSS, "--format", form).out


def test_filters_are_what_tshark_takes(call, samples, plain):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = plain(samples / REFUSED)
    [line] = lines_of(call("messages", path, "--status", "refused", "--filters").out)
    text = re.search(r"\[(.*)\]$", line)[1]
    assert text == "frame.number in {16..20} && infiniband.bth.destqp in {0x1b}"
    done = subprocess.run(
        ["tshark", "-r", str(path), "-Y", text, "-T", "fields", "-e", "frame.number"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["16", "17", "18", "19", "20"]


def test_a_filter_without_the_other_qp(call, samples):
    """Over UC nobody answers, so that the sender's QP is never named."""
    lines = lines_of(call("messages", samples / "uc_mix_ipv4.client.pcap.gz", "--filters").out)
    assert len(lines) == 12
    assert re.search(r"\[frame\.number in \{11\} && infiniband\.bth\.destqp in \{0x\w+\}\]$", lines[0])


def test_a_size_that_is_not_known(call, softroce):
    """64 bytes of each frame: the RETH of a READ is cut off."""
    lines = lines_of(call("messages", softroce / "fmt_snap64.pcap.gz", "--verb", "read").out)
    assert lines
    assert all("  ? B  " in line for line in lines)


@pytest.mark.parametrize(
    "options",
    [
        ["--filters", "--format", "csv"],
        ["--slowest", "3", "--count", "2"],
        ["--verb", "shout"],
        ["--status", "fine"],
        ["--connection", "7"],
        ["--connection", "0"],
        ["--count", "0"],
    ],
)
def test_wrong_options_are_one_line(call, samples, options):
    done = call("messages", samples / REFUSED, *options)
    assert (done.status, done.out, len(done.err)) == (2, "", 1)


def test_several_files_name_their_file(call, samples):
    lines = lines_of(call("messages", samples / REFUSED, samples / MIX, "--count", "100").out)
    assert any("file 2 frames 15-16" in line or "file 1 frames 15-16" in line for line in lines)


@pytest.mark.parametrize("width", [40, 80])
def test_narrow_terminals_fold_with_an_indent(samples, width):
    from roce_dissect.cli.event_table import records
    from roce_dissect.cli.message_text import message_lines

    result = rd.analyze(samples / REFUSED)
    lines = message_lines(result, records(result.messages), False, width)
    assert max(map(len, lines)) <= width
    assert len([line for line in lines if line.startswith("+")]) == 6
