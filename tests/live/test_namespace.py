"""A capture replayed through a veth pair in a network namespace: what arrives is what was sent."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import uuid

import pytest

import roce_dissect as rd
from roce_dissect.capture.live import find_tools

pytestmark = pytest.mark.namespace

FIGURES = ("packets", "bytes", "goodput_bytes", "requests", "responses", "gaps", "missing_packets", "late_packets",
           "resent_packets", "acks", "naks", "rnr_naks", "cnps", "ce_packets")  # fmt: skip


@pytest.fixture(scope="module")
def namespace():
    """Name of a network namespace with the two ends of a cable in it, rd0 and rd1, without IPv6."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for tool in ("ip", "tcpreplay"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if not find_tools():
        pytest.skip("neither dumpcap nor tcpdump is installed")
    name = f"rd-{uuid.uuid4().hex[:8]}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
        pytest.skip("network namespaces cannot be made here")
    try:
        in_it = ["ip", "-n", name]
        cable = "link add rd0 mtu 9000 type veth peer name rd1 mtu 9000"
        subprocess.run([*in_it, *cable.split()], check=True)
        for end in ("rd0", "rd1"):
            with contextlib.suppress(OSError):  # no IPv6 here at all
                setting = f"net.ipv6.conf.{end}.disable_ipv6=1"
                subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", setting], capture_output=True)
            subprocess.run([*in_it, "link", "set", end, "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture
def watching(namespace, start):
    """``watching(options)``: a live command on rd1 that is known to capture already."""

    def run(*options):
        process = start("live", "rd1", *options, prefix=["ip", "netns", "exec", namespace])
        for line in process.stderr:
            if b"capturing on rd1" in line:
                return process
        raise AssertionError(f"it did not start: {process.stdout.read()!r}")

    return run


def replay(namespace, path):
    command = ["ip", "netns", "exec", namespace, "tcpreplay", "-q", "-p", "5000", "-i", "rd0", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "roce"),  # frames that tshark calls infiniband
    [("imp_loss1_write.server", 1687), ("flt_rnr_recovers.client", 220), ("rc_mix_ipv6_mtu1024.client", 58)],
)
def test_counts_match_what_was_sent(namespace, watching, samples, plain, name, roce):
    path = plain(samples / f"{name}.pcap.gz")
    process = watching("--format", "json", "--packets", str(roce), "--seconds", "60")
    replay(namespace, path)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["capture"]["roce_packets"] == roce
    assert told["capture"]["complete"] is True
    sent = rd.analyze(path).to_dict()
    assert told["counters"] == sent["counters"]
    assert len(told["connections"]) == len(sent["connections"])
    for ours, theirs in zip(told["connections"], sent["connections"], strict=True):
        assert (ours["a"], ours["b"], ours["paired_by"]) == (theirs["a"], theirs["b"], theirs["paired_by"])
        for way in ("a_to_b", "b_to_a"):
            assert {key: ours[way][key] for key in FIGURES} == {key: theirs[way][key] for key in FIGURES}


def test_ctrl_c_prints_the_final_analysis(namespace, watching, wait_until_idle, samples, plain):
    process = watching()
    replay(namespace, plain(samples / "imp_loss1_write.server.pcap.gz"))
    wait_until_idle(process)  # all that was sent has come through
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err == b""
    assert b"1,687, of which 1,687 RoCE" in out
    assert b"duplicate_request 131, out_of_seq_request 10" in out


def test_no_tool_is_left_behind(namespace, watching):
    process = watching("--once")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    left = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    assert left.stdout == ""
