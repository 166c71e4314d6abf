"""``live``: from a pipe, and what can go wrong with an interface."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading

import pytest

from roce_dissect.cli import main

LOSS = "imp_loss1_write.server.pcap.gz"


def without_paths(text):
    told = json.loads(text)
    for one in told["capture"]["files"]:
        one["path"] = ""
    return told


def test_a_pipe_gives_what_the_file_gives(start, samples, capsys):
    content = (samples / LOSS).read_bytes()
    process = start("live", "-", "--format", "json", stdin=subprocess.PIPE)
    out, _ = process.communicate(content, timeout=60)
    assert process.returncode == 0
    assert main(["analyze", "--format", "json", str(samples / LOSS)]) == 0
    assert without_paths(out) == without_paths(capsys.readouterr().out)


def test_a_pipe_that_dribbles(start, samples, plain):
    content = plain(samples / "flt_rnr_recovers.client.pcap.gz").read_bytes()
    process = start("live", "-", "--format", "json", stdin=subprocess.PIPE)

    def feed():
        for position in range(0, len(content), 997):
            process.stdin.write(content[position : position + 997])
            process.stdin.flush()
        process.stdin.close()

    feeder = threading.Thread(target=feed)
    feeder.start()
    out = process.stdout.read()
    feeder.join()
    assert process.wait(60) == 0
    assert json.loads(out)["capture"]["roce_packets"] == 220  # tshark


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_pipe_that_stays_open(start, wait_until_idle, samples, number):
    reading, writing = os.pipe()
    process = start("live", "-", "--packets", "999999", stdin=reading)
    os.close(reading)
    content = (samples / LOSS).read_bytes()
    os.write(writing, content)
    wait_until_idle(process)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    os.close(writing)
    assert process.returncode == 0
    assert b"1,728, of which 1,687 RoCE" in out


def test_seconds_end_a_silent_pipe(start):
    reading, writing = os.pipe()
    os.write(writing, bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    process = start("live", "-", "--seconds", "0.5", stdin=reading)
    out, _ = process.communicate(timeout=60)
    os.close(reading)
    os.close(writing)
    assert process.returncode == 0
    assert b"No RoCE in this capture" in out


def one_line(process):
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    [line] = [line for line in err.decode().splitlines() if "the slow form" not in line]
    return line


@pytest.mark.parametrize("content", [b"", b"this is no capture, but text\n"])
def test_no_report_beside_the_error_of_a_pipe_without_a_capture(start, content):
    out, err = start("live", "-", stdin=subprocess.PIPE).communicate(content, timeout=60)
    assert out == b""
    [line] = [line for line in err.decode().splitlines() if "the slow form" not in line]
    assert line.startswith("roce-dissect: -: is ")
    out, _ = start("live", "-", "--format", "json", stdin=subprocess.PIPE).communicate(content, timeout=60)
    assert json.loads(out)["capture"]["files"][0]["error_offset"] == 0


def test_a_pipe_that_is_no_capture(start):
    process = start("live", "-", stdin=subprocess.PIPE)
    process.stdin.write(b"tcpdump: eth0: You don't have permission\n")
    process.stdin.close()
    process.stdin = None
    assert one_line(process).startswith("roce-dissect: -: is not a capture")


def test_no_such_interface(start):
    from roce_dissect.capture.live import find_tools

    if not find_tools():
        pytest.skip("neither dumpcap nor tcpdump is installed")
    line = one_line(start("live", "nosuch0", "--seconds", "1"))
    if os.geteuid() == 0:
        assert line.startswith("roce-dissect: there is no interface 'nosuch0' (there are: ")


@pytest.mark.parametrize("interface", ["eth0\x1b[2J", "a b\n"])
def test_hostile_interface_names(start, interface):
    line = one_line(start("live", interface, "--seconds", "1"))
    assert line.isprintable()


def tool(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_missing_rights_come_with_the_command_that_grants_them(monkeypatch, tmp_path, capsys):
    # the words of dumpcap 4.0 and of tcpdump 4.99 without rights
    tool(
        tmp_path, "dumpcap",
        "echo \"dumpcap: The capture session could not be initiated on capture device \\\"eth0\\\" "
        "(You don't have permission to capture on that device).\" >&2; exit 1",
    )  # fmt: skip
    tool(
        tmp_path, "tcpdump",
        "echo \"tcpdump: eth0: You don't have permission to perform this capture on that device\" >&2; exit 1",
    )  # fmt: skip
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert main(["live", "eth0", "--seconds", "1"]) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if "the slow form" not in line]
    assert "sudo setcap cap_net_raw,cap_net_admin=eip" in line


def test_no_tool(monkeypatch, capsys):
    monkeypatch.setattr("roce_dissect.capture.live.find_tools", list)
    assert main(["live", "eth0"]) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if "the slow form" not in line]
    assert "neither dumpcap nor tcpdump is installed" in line


def test_a_tool_that_dies_leaves_what_it_delivered(monkeypatch, tmp_path, samples, plain, capsys):
    capture = plain(samples / LOSS)
    tool(tmp_path, "dumpcap", f"cat {capture}; echo 'dumpcap: the network went away' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert main(["live", "eth0", "--once"]) == 2
    out, err = capsys.readouterr()
    assert "1,728, of which 1,687 RoCE" in out
    assert "the network went away" in err.splitlines()[-1]
