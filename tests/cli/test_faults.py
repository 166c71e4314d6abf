"""What can go wrong ends in one line on standard error, a status, and all that was analysed before."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

#: The commands that analyse whole captures, in their forms.
NEW = [
    ["connections"], ["connections", "--format", "json"], ["messages"], ["messages", "--format", "csv"], ["events"],
    ["events", "--format", "jsonl"],
]  # fmt: skip
PNG_SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)


def files():
    """Name -> bytes of what is no capture, or a broken one; and the byte at which reading stops."""
    return {
        "empty": (b"", 0),
        "text": (b"this is a text file\nof two lines\n", 0),
        "cut_header": (bytes.fromhex("d4c3b2a1 0200 0400 0000"), 10),
        "absurd_block": (PNG_SECTION + struct.pack("<II", 6, 0xFFFFFFF0) + bytes(64), 28),
        "absurd_section": (struct.pack("<IIIHHqI", 0x0A0D0D0A, 0xFFFFFFFC, 0x1A2B3C4D, 1, 0, -1, 28), 0),
        "tiny_block": (PNG_SECTION + struct.pack("<III", 6, 4, 0) + bytes(64), 28),
        "wrapping_packet": (
            PNG_SECTION
            + struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20)
            + struct.pack("<IIIIIIII", 6, 64, 0, 0, 0, 0xFFFFFFE0, 0xFFFFFFE0, 0)
            + bytes(28)
            + struct.pack("<I", 64),
            48,
        ),
        "absurd_record": (
            bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
            + struct.pack("<IIII", 0, 0, 0xFFFFFFFF, 0xFFFFFFFF),
            24,
        ),
    }


@pytest.mark.parametrize("name", files())
@pytest.mark.parametrize(
    "arguments",
    [["analyze"], ["analyze", "--format", "json"], ["packets"], ["packets", "--format", "csv"], *NEW],
)
def test_broken_files(command, tmp_path, name, arguments):
    content, offset = files()[name]
    (tmp_path / name).write_bytes(content)
    done = command(*arguments, name)
    assert done.status == 2
    [line] = done.err
    assert line.startswith(f"roce-dissect: {name}: ")
    assert line.endswith(f"(at byte {offset})")
    if arguments == ["analyze", "--format", "json"]:
        told = json.loads(done.out)["capture"]
        assert told["complete"] is False
        assert told["files"][0]["error_offset"] == offset


@pytest.mark.parametrize(
    ("path", "reason"),
    [("missing.pcap", "No such file or directory"), (".", "Is a directory")],
)
@pytest.mark.parametrize("arguments", [["analyze"], ["packets"], ["plot", "rate", "-o", "x.png"], *NEW])
def test_files_that_cannot_be_opened(command, path, reason, arguments):
    done = command(*arguments, path)
    assert done.status == 2
    assert done.err == [f"roce-dissect: {path}: cannot be opened: {reason}"]


def broken_off(plain, samples, tmp_path, frames=500):
    """A capture whose record `frames` + 1 has an absurd length; and where it begins."""
    content = bytearray(plain(samples / "imp_loss1_write.server.pcap.gz").read_bytes())
    offset = 24
    for _ in range(frames):
        offset += 16 + struct.unpack_from("<I", content, offset + 8)[0]
    struct.pack_into("<I", content, offset + 8, 0x7FFFFFFF)
    path = tmp_path / "broken.pcap"
    path.write_bytes(content)
    return path, offset


def test_what_was_read_before_the_fault_is_told(command, samples, plain, tmp_path):
    path, offset = broken_off(plain, samples, tmp_path)
    text = command("analyze", path.name)
    assert text.status == 2
    assert text.err == [f"roce-dissect: broken.pcap: a record of 2147483647 captured bytes (at byte {offset})"]
    assert "500, of which 480 RoCE" in text.out
    assert "frame 87: NAK PSN sequence error" in text.out
    told = json.loads(command("analyze", "--format", "json", path.name).out)
    assert told["capture"]["complete"] is False
    assert told["capture"]["files"][0]["error_offset"] == offset
    assert told["capture"]["roce_packets"] == 480
    packets = command("packets", path.name)
    assert (packets.status, len(packets.err), packets.out.count("\n")) == (2, 1, 480)


def test_each_file_has_its_line_and_the_others_are_read(command, samples, plain, tmp_path):
    path, offset = broken_off(plain, samples, tmp_path)
    good = samples / "flt_rnr_recovers.client.pcap.gz"
    for arguments in (["analyze"], ["packets"]):
        done = command(*arguments, path.name, "nope.pcap", good)
        assert done.status == 2
        assert sorted(done.err) == [
            f"roce-dissect: broken.pcap: a record of 2147483647 captured bytes (at byte {offset})",
            "roce-dissect: nope.pcap: cannot be opened: No such file or directory",
        ]
    assert done.out.count("\n") == 480 + 220


def test_an_unfinished_last_record_is_normal(command, samples, plain, tmp_path):
    content = plain(samples / "imp_loss1_write.server.pcap.gz").read_bytes()
    (tmp_path / "growing.pcap").write_bytes(content[:-100])
    done = command("analyze", "growing.pcap")
    assert (done.status, done.err) == (0, [])
    assert "growing.pcap: the last record is unfinished" in done.out


def test_standard_input(command, samples):
    content = (samples / "imp_loss1_write.server.pcap.gz").read_bytes()
    done = command("analyze", "-", stdin=content)
    assert (done.status, done.err) == (0, [])
    assert "1,728, of which 1,687 RoCE" in done.out
    assert command("packets", "-", stdin=content).out.count("\n") == 1687


def test_standard_input_goes_alone(command, samples):
    done = command("analyze", "-", samples / "imp_loss1_write.server.pcap.gz", stdin=b"")
    assert done.status == 2
    assert len(done.err) == 1


@pytest.mark.parametrize("name", ["connections", "messages", "events"])
def test_what_was_read_before_the_fault_is_listed(command, samples, plain, tmp_path, name):
    path, offset = broken_off(plain, samples, tmp_path)
    done = command(name, path.name)
    assert done.status == 2
    assert done.err == [f"roce-dissect: broken.pcap: a record of 2147483647 captured bytes (at byte {offset})"]
    assert {"connections": "#1  ", "messages": "frames 20-35", "events": "frame 87: NAK"}[name] in done.out


@pytest.mark.parametrize("name", ["connections", "messages", "events"])
def test_hostile_names_of_several_files(command, samples, tmp_path, name):
    for number in (1, 2):
        (tmp_path / f"a\x1b[2J{number}.pcap").write_bytes((samples / "cm_rping_ipv4.client.pcap.gz").read_bytes())
    done = command(name, "a\x1b[2J1.pcap", "a\x1b[2J2.pcap")
    assert (done.status, done.err) == (0, [])
    assert all(line.isprintable() for line in done.out.split("\n"))


@pytest.mark.parametrize("arguments", [["analyze"], ["packets"], ["plot", "rate", "-o", "x.png"]])
def test_a_fifo_among_several_files(command, samples, tmp_path, arguments):
    os.mkfifo(tmp_path / "fifo")
    done = command(*arguments, "fifo", samples / "imp_loss1_write.server.pcap.gz")
    assert (done.status, done.out, len(done.err)) == (2, "", 1)


@pytest.mark.parametrize("asked", ["analyze", "connections", "messages", "events"])
@pytest.mark.parametrize("name", ["a\x1b[2J\x1b]0;owned\x07.pcap", "right\u202epcap.exe", "new\nline", "\x9b31m"])
def test_hostile_names_do_not_reach_the_terminal(command, samples, tmp_path, name, asked):
    (tmp_path / name).write_bytes((samples / "cm_refused.client.pcap.gz").read_bytes())
    (tmp_path / f"{name}2").write_bytes(b"no capture")
    for arguments, complaints in (([name], 0), ([f"{name}2"], 1), ([name, f"{name}2"], 1), ([f"--{name}"], 1)):
        done = command(asked, *arguments)
        assert len(done.err) == complaints
        for line in (*done.out.split("\n"), *done.err):
            assert line.isprintable(), line


def test_names_that_are_no_utf8(command, samples, tmp_path):
    name = b"caf\xe9.pcap"
    with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
        file.write((samples / "cm_refused.client.pcap.gz").read_bytes())
    done = command("analyze", os.fsdecode(name))
    assert (done.status, done.err) == (0, [])
    assert "caf\\xe9.pcap" in done.out


def test_an_encoding_without_the_characters(command, samples, tmp_path):
    (tmp_path / "日本.pcap").write_bytes((samples / "cm_refused.client.pcap.gz").read_bytes())
    done = command("analyze", "日本.pcap", PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert (done.status, done.err) == (0, [])
    assert "\\u65e5\\u672c.pcap" in done.out


@pytest.mark.parametrize(
    "arguments",
    [["analyze"], ["analyze", "--format", "json"], ["packets"], ["packets", "--format", "jsonl"], *NEW],
)
def test_a_full_disk_is_one_line(samples, arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "roce_dissect", *arguments, str(samples / "imp_dup5.server.pcap.gz")],
            stdout=full, stderr=subprocess.PIPE, text=True, env=_environment(),
        )  # fmt: skip
    assert done.returncode == 2
    assert _lines(done.stderr) == ["roce-dissect: cannot write the output: No space left on device"]


@pytest.mark.parametrize(
    "arguments",
    [["analyze"], ["analyze", "--format", "json"], ["packets"], ["packets", "--format", "jsonl"], *NEW],
)
def test_a_closed_pipe_ends_quietly(samples, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "roce_dissect", *arguments, str(samples / "imp_dup5.server.pcap.gz")],
        stdout=writing, stderr=subprocess.PIPE, text=True, env=_environment(),
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, _lines(done.stderr)) == (0, [])


#: Arguments, and the status whatever becomes of the streams.
STREAM_CASES = [
    (["analyze", "{loss}"], 0),
    (["analyze", "--format", "json", "{loss}"], 0),
    (["packets", "{loss}"], 0),
    (["packets", "--format", "csv", "{loss}"], 0),
    (["connections", "{loss}"], 0),
    (["messages", "{loss}", "--filters"], 0),
    (["messages", "{loss}", "--format", "jsonl"], 0),
    (["events", "{loss}"], 0),
    (["plot", "rate", "{loss}", "-o", "x.png"], 0),
    (["--version"], 0),
    (["analyze", "--help"], 0),
    (["analyze", "missing.pcap"], 2),
    (["nonsense"], 2),
    (["packets", "--columns", "nonsense", "{loss}"], 2),
    ([], 2),
]


@pytest.mark.parametrize(("arguments", "status"), STREAM_CASES)
@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_streams_that_are_closed_or_full(samples, tmp_path, arguments, status, redirection):
    loss = str(samples / "imp_loss1_write.server.pcap.gz")
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m roce_dissect "$@" {redirection}', sys.executable]
        + [argument.format(loss=loss) for argument in arguments],
        capture_output=True, text=True, env=_environment(), cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    if redirection == ">&-" and arguments:
        assert len(_lines(done.stderr)) == (status != 0)


@pytest.mark.parametrize("form", ["text", "json"])
def test_ctrl_c_prints_what_was_read(samples, form):
    content = (samples / "imp_loss1_write.server.pcap.gz").read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-m", "roce_dissect", "analyze", "-", "--format", form],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(),
    )  # fmt: skip
    process.stdin.write(content)
    process.stdin.flush()
    _wait_until_idle(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)  # closes standard input only after the process has ended reading
    assert process.returncode == 130, err
    assert _lines(err.decode()) == []
    if form == "json":
        told = json.loads(out)["capture"]
        assert (told["interrupted"], told["complete"], told["roce_packets"]) == (True, False, 1687)
    else:
        assert "interrupted: this is what was read up to then" in out.decode()
        assert re.search(r"1,728, of which 1,687 RoCE", out.decode())


def _environment():
    import roce_dissect

    return os.environ | {"PYTHONPATH": os.path.dirname(roce_dissect.__path__[0])}


def _lines(text):
    return [line for line in text.splitlines() if "the slow form is in use" not in line]


def _wait_until_idle(pid):
    """Wait until the process has spent CPU time (it has started and read) and then none for a while."""
    spent, since, deadline = -1, time.monotonic(), time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        now = int(fields[11]) + int(fields[12])
        if now != spent:
            spent, since = now, time.monotonic()
        elif spent > 20 and time.monotonic() - since > 1.0:
            return
        time.sleep(0.05)
    raise AssertionError("the process never came to rest")
