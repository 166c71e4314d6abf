"""``verify``: the verdict in words and in the exit status, and whatever a user can do to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roce_dissect.cli.verify_text import shown

DOCS = Path(__file__).parents[2] / "docs"
VLAN = "rc_mix_vlan100_ipv4.client.pcap.gz"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
#: A tshark to which one host's address is another.
LIAR = '"$real" "$@" | sed "s/192\\.168\\.101\\.2/192.168.101.3/g"'


@needs_tshark
def test_all_equal(call, samples, tshark):
    done = call("verify", samples / VLAN)
    assert (done.status, done.err) == (0, [])
    lines = done.out.splitlines()
    assert re.fullmatch(
        rf"58 packets, 1,\d\d\d values of 37 fields: all equal to tshark {re.escape(tshark.version)}", lines[0]
    )
    assert lines[2] == "equal  fields"
    assert lines[3].startswith("   58  frame, time_ns, wire_len")
    assert all(len(line) <= 100 for line in lines)
    assert "skipped" not in done.out
    assert "not captured, or in no packet: vlan2_id, vni" in done.out


@needs_tshark
def test_the_figures_are_in_the_page(call, samples, tshark):
    """docs/verify.md shows what is printed; its last line is shortened there."""
    page = (DOCS / "verify.md").read_text(encoding="utf-8")
    printed = call("verify", samples / VLAN).out.replace(tshark.version, "4.0.17").splitlines()
    for line in printed[
        : next(n for n, line in enumerate(printed) if line.startswith("not captured, or in no packet"))
    ]:
        assert f"    {line}\n" in page if line else True


@needs_tshark
def test_differences(call, samples, fake_tshark):
    fake_tshark('case "$1" in --version|-G) exec "$real" "$@";; esac\n' + LIAR)
    done = call("verify", samples / VLAN, "--differences", "2")
    assert (done.status, done.err) == (1, [])
    lines = done.out.splitlines()
    assert re.match(r"58 packets, .* of 37 fields: 58 differ from tshark ", lines[0])
    assert lines[2].split() == ["differ", "equal", "fields"]
    # 32 packets come from the address, 26 go to it
    assert ["32", "26", "src"] in [line.split() for line in lines]
    assert ["26", "32", "dst"] in [line.split() for line in lines]
    table = [line.split() for line in lines[lines.index("") + 1 :]]
    assert ["frame", "field", "ours", "Wireshark's"] in table
    assert sum(line[-2:] == ["192.168.101.2", "192.168.101.3"] for line in table) == 4
    assert lines[-2:] == ["and 30 more of src", "and 24 more of dst"]


@needs_tshark
def test_no_difference_is_shown_and_all_are_counted(call, samples, fake_tshark):
    fake_tshark('case "$1" in --version|-G) exec "$real" "$@";; esac\n' + LIAR)
    done = call("verify", samples / VLAN, "--differences", "0")
    assert done.status == 1
    assert "192.168" not in done.out
    assert done.out.endswith("\nand 32 more of src\nand 26 more of dst\n")


@needs_tshark
def test_a_file_that_cannot_be_read_outweighs_differences(call, samples, fake_tshark, tmp_path):
    fake_tshark('case "$1" in --version|-G) exec "$real" "$@";; esac\n' + LIAR)
    done = call("verify", samples / VLAN, tmp_path / "missing")
    assert (done.status, len(done.err)) == (2, 1)
    assert "58 differ from" in done.out.splitlines()[0]


@needs_tshark
def test_traps_in_the_lab(call, softroce, tshark):
    """A capture of what is no RoCE at all on port 4791: everything that tshark gets wrong is named."""
    path = softroce / "neg_udp4791_not_roce.client.pcap.gz"
    if not path.exists():
        pytest.skip("the capture is not there")
    done = call("verify", path)
    assert (done.status, done.err) == (0, [])
    assert "skipped, see the traps" in done.out.splitlines()[0]
    traps = re.findall(r"^(\w+): (?:\d+ packets from )?frame \d+(?: on)?, [\d,]+ values?\. ", done.out, re.MULTILINE)
    assert set(traps) == {"unknown_opcode", "dc_opcodes", "flush", "short_datagram", "icrc_as_header"}


@needs_tshark
def test_several_files_are_told_apart(call, samples, frames, tmp_path):
    path = tmp_path / "cnp.pcap"
    path.write_bytes(frames.pcap([frames.v2(4, b"data"), frames.v2(0x81)]))
    done = call("verify", samples / VLAN, path)
    assert done.status == 0
    assert done.out.startswith("2 files, 60 packets, ")
    assert f"unknown_opcode: {path} frame 2, 1 value. tshark does not know" in done.out


@needs_tshark
def test_no_roce(call, frames, tmp_path):
    path = tmp_path / "none.pcap"
    path.write_bytes(frames.pcap([frames.ethernet(bytes(60), 0x0806)]))
    done = call("verify", path)
    assert (done.status, done.err) == (0, [])
    assert re.match(r"no packet compared: tshark [\d.]+ finds no RoCE, nor do we\n", done.out)


@needs_tshark
def test_a_further_port(call, frames, tmp_path):
    path = tmp_path / "port.pcap"
    odd = frames.ethernet(frames.ipv4(frames.udp(frames.packet(4, b"data"), dport=4792)), 0x0800)
    path.write_bytes(frames.pcap([odd]))
    assert call("verify", path).out.startswith("no packet compared")
    done = call("verify", path, "--port", "4792")
    assert (done.status, done.out.partition(",")[0]) == (0, "1 packet")


def test_no_tshark(call, samples, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("verify", samples / VLAN)
    assert (done.status, done.out) == (2, "")
    [line] = done.err
    assert line.startswith("roce-dissect: tshark is not installed: apt install tshark")


@needs_tshark
@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo 'TShark (Wireshark) 2.2.6'", "tshark 2.2.6 is too old"),
        ("echo '\033[2Jbad' >&2; exit 1", "tshark --version failed: \\x1b[2Jbad"),
    ],
)
def test_a_tshark_that_will_not_do(call, samples, fake_tshark, script, complaint):
    fake_tshark(script)
    done = call("verify", samples / VLAN)
    assert (done.status, done.out) == (2, "")
    [line] = done.err
    assert complaint in line


@needs_tshark
def test_a_tshark_that_breaks_off(call, samples, fake_tshark):
    script = (
        'case "$1" in --version|-G) exec "$real" "$@";; esac\n"$real" "$@" | head -n 5; echo "tshark: gone" >&2; exit 1'
    )
    fake_tshark(script)
    done = call("verify", samples / VLAN)
    assert done.status == 2
    assert done.out.startswith("5 packets, ")
    [line] = done.err
    assert re.search(r"client\.pcap\.gz: tshark [\d.]+ broke off: gone$", line)


@needs_tshark
@pytest.mark.parametrize(
    ("content", "reason"), [(b"this is text", "is not a capture"), (b"", "is empty"), (None, "cannot be opened")]
)
def test_files_that_cannot_be_read(call, tmp_path, samples, content, reason):
    path = tmp_path / "x.pcap"
    if content is not None:
        path.write_bytes(content)
    done = call("verify", path)
    assert (done.status, done.out) == (2, "")
    [line] = done.err
    assert line.startswith(f"roce-dissect: {path}: {reason}")
    both = call("verify", path, samples / VLAN)  # the other one is compared all the same
    assert (both.status, both.err) == (2, done.err)
    assert both.out.startswith("2 files, 58 packets, ")


@pytest.mark.parametrize("kind", ["standard input", "pipe"])
def test_what_can_be_read_only_once(call, tmp_path, kind):
    path = "-"
    if kind == "pipe":
        path = tmp_path / "fifo"
        os.mkfifo(path)
    done = call("verify", path)
    assert (done.status, done.out) == (2, "")
    assert done.err == [
        "roce-dissect: verify and tshark both read the capture: give a file, not a pipe or standard input"
    ]


@needs_tshark
def test_columns_of_the_tracker_are_refused(call, samples):
    done = call("verify", samples / VLAN, "--filter", 'verdict == "new"')
    assert (done.status, done.out, len(done.err)) == (2, "", 1)
    assert done.err[0].startswith("roce-dissect: filter: verdict is known only when the flows have been followed")


def test_hostile_names_and_values(call, samples, tmp_path, fake_tshark):
    path = tmp_path / "a\x1b[2J.pcap"
    path.write_bytes((samples / VLAN).read_bytes())
    fake_tshark(
        'case "$1" in --version|-G) exec "$real" "$@";; esac\n'
        '"$real" "$@" | sed "s/192\\.168\\.101\\.2/$(printf \'\\033[31m\')/g"'
    )
    done = call("verify", path, path)
    assert done.status == 1
    assert "\\x1b[31m" in done.out
    assert all(line.isprintable() for line in done.out.splitlines())


@needs_tshark
def test_json(call, samples, frames, tmp_path):
    path = tmp_path / "cnp.pcap"
    path.write_bytes(frames.pcap([frames.v2(0x81)]))
    done = call("verify", "--format", "json", samples / VLAN, path, tmp_path / "missing")
    assert done.status == 2
    told = json.loads(done.out)
    assert (told["packets"], told["different"], told["interrupted"]) == (59, 0, False)
    assert [one["error"] for one in told["files"]] == [None, None, "cannot be opened: No such file or directory"]
    section = (DOCS / "json.md").read_text(encoding="utf-8").partition("\n## `verify --format json`")[2]
    named = set(re.findall(r"`(\w+)`", section))
    keys = {*told, *told["files"][0], *told["fields"][0], *told["traps"][0]} | {"missing", "column", "ours", "theirs"}
    assert keys - named == set()


@needs_tshark
def test_json_of_differences(call, samples, fake_tshark):
    fake_tshark(
        'case "$1" in --version|-G) exec "$real" "$@";; esac\n"$real" "$@" | sed "/^20\\t/s/\\t65535\\t/\\t65534\\t/; '
        + LIAR.partition('sed "')[2]
    )
    done = call("verify", "--format", "json", "--differences", "1", samples / VLAN)
    assert done.status == 1
    told = json.loads(done.out)
    assert told["different"] == 59
    kept = {one["column"]: one for one in told["differences"]}
    assert set(kept) == {"src", "dst", "p_key"}
    assert kept["p_key"] == {"file": 0, "frame": 20, "column": "p_key", "ours": 0xFFFF, "theirs": 0xFFFE}
    assert (kept["src"]["ours"], kept["src"]["theirs"]) == ("192.168.101.2", "192.168.101.3")


@needs_tshark
@pytest.mark.parametrize("form", ["text", "json"])
def test_full_disk_and_closed_pipe(samples, form):
    command = [sys.executable, "-m", "roce_dissect", "verify", "--format", form, str(samples / VLAN)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "roce-dissect: cannot write the output: No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@needs_tshark
def test_ctrl_c_prints_what_was_compared(samples, fake_tshark, tmp_path):
    fake_tshark(
        'case "$1" in --version|-G) exec "$real" "$@";; esac\n'
        f'"$real" "$@" | head -n 7; echo $$ > {tmp_path}/pid; exec sleep 60'
    )
    command = [sys.executable, "-m", "roce_dissect", "verify", str(samples / VLAN), "not read any more"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to tshark, too, if it were in the group
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert out.startswith("interrupted: 7 packets, ")
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("opcode", 4, "0x04"), ("r_key", 9514, "0x0000252a"), ("eth_src", 0x02005E000001, "02:00:5e:00:00:01"),
        ("eth_src", 1 << 50, "4000000000000"), ("psn", 7, "7"), ("psn", None, "-"), ("src", "10.0.0.1", "10.0.0.1"),
        ("frame", 9, "RoCE"), ("frame", None, "no RoCE"), ("src", "\x1b[2J", "\\x1b[2J"),
        ("va", 1, "0x0000000000000001"),
    ],
)  # fmt: skip
def test_values(column, value, text):
    assert shown(column, value) == text


@needs_tshark
def test_a_narrow_terminal(call, frames, tmp_path, monkeypatch):
    path = tmp_path / "cnp.pcap"
    path.write_bytes(frames.pcap([frames.v2(0x81)]))
    monkeypatch.setattr("roce_dissect.cli.aligned.output_width", lambda: 60)
    lines = call("verify", path).out.splitlines()
    assert max(map(len, lines)) <= 60
