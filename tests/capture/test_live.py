"""Live capture: with stand-ins for the tools, with tcpdump as judge of the filter, and on a veth pair."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from roce_dissect.capture import live, open_capture
from roce_dissect.capture.live import ROCE_FILTER, ROCE_FILTER_COOKED, LiveSource
from roce_dissect.errors import LiveError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """``stand_in(name, body)``: a Python script as the only tool of that name; `capture` in it is a small pcap."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(live, "_SBIN", ())

    def write(name, body):
        path = folder / name
        header = "d4c3b2a1020004000000000000000000ffff000001000000"
        record = "0100000002000000040000000400000061626364"
        path.write_text(
            f"#!{sys.executable}\nimport os, signal, sys, time\n"
            f"header, record = bytes.fromhex('{header}'), bytes.fromhex('{record}')\n"
            "def put(data): os.write(1, data)\n"
            "def say(text): os.write(2, text.encode())\n" + textwrap.dedent(body)
        )
        path.chmod(0o755)
        return path

    return write


RUNNING = """
    def end(number, frame):
        put(record)
        say({words!r})
        sys.exit(0)
    signal.signal(signal.SIGINT, end)
    put(header + record)
    time.sleep(60)
"""
DUMPCAP_WORDS = (
    "Capturing on 'eth0'\nFile: -\nPackets captured: 2\n"
    "Packets received/dropped on interface 'eth0': 2/7 (pcap:5/dumpcap:2/flushed:0/ps_ifdrop:0) (22.2%)\n"
)
TCPDUMP_WORDS = (
    "tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n"
    "2 packets captured\n9 packets received by filter\n7 packets dropped by kernel\n1 packet dropped by interface\n"
)


@pytest.mark.parametrize(
    ("name", "words", "dropped"), [("dumpcap", DUMPCAP_WORDS, 7), ("tcpdump", TCPDUMP_WORDS, 8), ("tcpdump", "", None)]
)
def test_stop_delivers_what_is_under_way(stand_in, name, words, dropped):
    stand_in(name, RUNNING.format(words=words))
    with LiveSource("eth0") as source, open_capture(source, poll_s=0.1) as capture:
        assert (source.tool, capture.path, source.dropped) == (name, "eth0", None)
        assert next(capture).count == 1
        assert next(capture).count == 0
        source.stop()
        assert source.dropped == dropped
        assert [records.count for records in capture] == [1]
        assert not capture.truncated
        source.stop()  # does no harm


def test_arguments(stand_in, tmp_path):
    for name in ("tcpdump", "dumpcap"):
        stand_in(name, f"open({str(tmp_path / name)!r}, 'w').write('\\0'.join(sys.argv[1:]))\nput(header)")
    for name in ("dumpcap", "tcpdump"):  # dumpcap first
        with LiveSource("eth0; touch x", snaplen=128) as source:
            assert source.tool == name
        arguments = (tmp_path / name).read_text().split("\0")
        assert arguments[arguments.index("-i") + 1] == "eth0; touch x"  # one argument, whatever it holds
        assert arguments[arguments.index("-s") + 1] == "128"
        assert ROCE_FILTER in arguments
        assert arguments[arguments.index("-w") + 1] == "-"
        (tmp_path / "bin" / name).unlink()


def test_neither_tool(stand_in):
    with pytest.raises(
        LiveError, match=r"neither dumpcap nor tcpdump is installed: sudo apt install .* sudo dnf install"
    ):
        LiveSource("eth0")


@pytest.mark.parametrize("name", ["", "-", "-w/tmp/x", "--help", "eth0\n", "a\x00b"])
def test_names_that_are_refused(name, stand_in):
    stand_in("dumpcap", "put(header)")
    with pytest.raises(LiveError, match="is not the name of an interface"):
        LiveSource(name)


NO_RIGHTS = {
    "dumpcap": 'dumpcap: You do not have permission to capture on device "eth0".\n(socket: Operation not permitted)\n',
    "tcpdump": "tcpdump: eth0: You don't have permission to perform this capture on that device\n(socket: ...)\n",
}
NO_DEVICE = {
    "dumpcap": "Capturing on 'eth0'\ndumpcap: There is no device named \"eth0\".\n(No such device exists)\n",
    "tcpdump": "tcpdump: eth0: No such device exists\n(SIOCGIFHWADDR: No such device)\n",
}


@pytest.mark.parametrize("name", ["dumpcap", "tcpdump"])
def test_words_for_what_goes_wrong(stand_in, name):
    for words, pattern in (
        (NO_RIGHTS[name], rf"not permitted to capture on 'eth0'.*sudo setcap .*\$\(command -v {name}\)"),
        (NO_DEVICE[name], r"there is no interface 'eth0' \(there are: .*lo"),
        (f"{name}: eth0: That device is not up\n", "sudo ip link set dev eth0 up"),
        (f"{name}: the disk is on fire\n", f"{name} on 'eth0' ended early: the disk is on fire"),
        ("", "ended early: it exited with status 1"),
    ):
        stand_in(name, f"say({words!r})\nsys.exit(1)")
        with pytest.raises(LiveError, match=pattern):
            LiveSource("eth0")


def test_the_second_tool_is_tried(stand_in):
    stand_in("dumpcap", f"say({NO_RIGHTS['dumpcap']!r})\nsys.exit(1)")
    stand_in("tcpdump", "put(header + record)")
    with LiveSource("eth0") as source:
        assert source.tool == "tcpdump"
    stand_in("tcpdump", f"say({NO_DEVICE['tcpdump']!r})\nsys.exit(1)")
    with pytest.raises(LiveError, match="dumpcap is not permitted"):  # the words of the preferred one
        LiveSource("eth0")


def test_program_that_cannot_be_started(stand_in, tmp_path):
    path = stand_in("dumpcap", "")
    path.write_text("#!/does/not/exist\n")
    with pytest.raises(LiveError, match="ended early: No such file"):
        LiveSource("eth0")


def test_filter_that_the_link_type_refuses(stand_in):
    stand_in(
        "tcpdump",
        """
        if "vlan" in sys.argv[-1]:
            say("tcpdump: no VLAN support for Linux cooked v2\\n")
            sys.exit(1)
        put(header + record)
        """,
    )
    with LiveSource("any") as source, open_capture(source) as capture:
        assert [records.count for records in capture] == [1]
    with pytest.raises(LiveError, match="ended early: no VLAN support"):  # the caller's own filter is not replaced
        LiveSource("any", filter="vlan 5")


def test_tool_that_ends_unasked(stand_in):
    for body, pattern in (
        (
            "say('dumpcap: The network adapter \"eth0\" is no longer attached; the capture has stopped.')",
            "no longer attached",
        ),
        ("os.kill(os.getpid(), 9)", "it exited with status -9"),
    ):
        stand_in("dumpcap", f"put(header + record)\n{body}")
        with LiveSource("eth0") as source, open_capture(source) as capture:
            assert next(capture).count == 1  # what came before is delivered
            with pytest.raises(LiveError, match=pattern):
                next(capture)
    stand_in("dumpcap", "put(header + record)\nsay('Packets captured: 1')")  # a quiet end is none
    with LiveSource("eth0") as source, open_capture(source) as capture:
        assert [records.count for records in capture] == [1]


def test_tool_that_ignores_the_signal_is_killed(stand_in):
    stand_in("dumpcap", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nput(header)\ntime.sleep(60)")
    source = LiveSource("eth0")
    started = time.monotonic()
    source.stop(grace_s=0.2)
    assert time.monotonic() - started < 10
    assert source._child.returncode == -signal.SIGKILL
    source.close()


def test_tool_with_a_full_pipe_is_stopped(stand_in):
    stand_in(
        "dumpcap",
        """
        going = True
        def end(number, frame):
            global going
            going = False
        signal.signal(signal.SIGINT, end)
        put(header)
        while going:
            data = memoryview(record * 10_000)
            while data:
                data = data[os.write(1, data):]
        """,
    )
    with LiveSource("eth0") as source, open_capture(source) as capture:
        frames = next(capture).count
        time.sleep(0.2)  # the pipe fills
        source.stop()
        assert source._child.returncode == 0
        frames += sum(records.count for records in capture)
        assert frames % 10_000 == 0
        assert not capture.truncated


# -- the filter


def frame(*, tags=(), ether_type=0x0800, extension=None, port=4791):
    """An Ethernet frame with tags, UDP over IPv4 or IPv6, or RoCE v1."""
    data = bytes(12)
    for tag in tags:
        data += tag.to_bytes(2, "big") + b"\x00\x64"
    data += ether_type.to_bytes(2, "big")
    udp = b"\xc0\x00" + port.to_bytes(2, "big") + b"\x00\x20\x00\x00" + bytes(24)
    if ether_type == 0x0800:
        data += bytes.fromhex("4500003400014000401100000a0000010a000002") + udp
    elif ether_type == 0x86DD:
        header = b"" if extension is None else bytes([17, 0]) + bytes(6)
        following = 17 if extension is None else extension
        data += b"\x60\x00\x00\x00" + (len(header) + 32).to_bytes(2, "big") + bytes([following, 64]) + bytes(32)
        data += header + udp
    else:
        data += bytes(60)
    return data


TAGS = [(), (0x8100,), (0x88A8, 0x8100), (0x8100, 0x8100)]
ROCE = [
    *(frame(tags=tags, ether_type=kind) for tags in TAGS for kind in (0x0800, 0x86DD, 0x8915)),
    *(frame(tags=tags, ether_type=0x86DD, extension=number) for tags in TAGS for number in (0, 43, 60)),
]
OTHER = [
    *(frame(tags=tags, ether_type=kind, port=4790) for tags in TAGS for kind in (0x0800, 0x86DD)),
    *(frame(tags=tags, ether_type=0x0806) for tags in TAGS),
]


def counted(tool, path, *arguments):
    """Frames that tcpdump lets pass."""
    data = tool("tcpdump", "-r", path, "-w", "-", "--", *arguments)
    return data, len(list_of(data))


def list_of(pcap):
    frames, at = [], 24
    while at < len(pcap):
        size = int.from_bytes(pcap[at + 8 : at + 12], "little")
        frames.append(pcap[at + 16 : at + 16 + size])
        at += 16 + size
    return frames


def test_filter_on_made_frames(tool, build, tmp_path):
    path = tmp_path / "frames.pcap"
    path.write_bytes(build.pcap_header() + b"".join(build.pcap_record(1, 0, data) for data in ROCE + OTHER))
    data, _ = counted(tool, path, ROCE_FILTER)
    assert list_of(data) == ROCE


def test_filter_of_cooked_link_types(tool, build, tmp_path):
    path = tmp_path / "frames.pcap"
    cooked = [bytes(14) + data[12:] for data in ROCE + OTHER]
    path.write_bytes(build.pcap_header(network=113) + b"".join(build.pcap_record(1, 0, data) for data in cooked))
    data, _ = counted(tool, path, ROCE_FILTER_COOKED)
    assert not set(cooked[: len(ROCE)]) - set(list_of(data))


@pytest.mark.parametrize(
    "name",
    [
        "encap_qinq.client",
        "encap_qinq.server",
        "rc_mix_vlan100_ipv4.client",
        "rc_mix_vlan100_ipv6.server",
        "imp_loss1_write.server",
    ],
)
def test_filter_on_real_captures(tool, softroce, name, tmp_path):
    path = tmp_path / "capture.pcap"
    path.write_bytes(tool("gzip", "-dc", softroce / f"{name}.pcap.gz"))
    expected = tool("tshark", "-r", path, "-Y", "udp.dstport == 4791 or eth.type == 0x8915 or vlan.etype == 0x8915")
    assert counted(tool, path, ROCE_FILTER)[1] == len(expected.splitlines()) > 0


# -- on a real interface


def in_namespace(script, *arguments):
    """Run a shell script in a network namespace of its own with a veth pair v0, v1; returns its output."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs root, unshare and ip")
    setup = "ip link set lo up && ip link add v0 type veth peer name v1 && "
    setup += "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 && ip link set v0 up && ip link set v1 up"
    if subprocess.run(["unshare", "-n", "sh", "-c", setup], capture_output=True, check=False).returncode != 0:
        pytest.skip("no network namespace with a veth pair here")
    command = ["unshare", "-n", "sh", "-c", f'{setup} && exec "$@"', "sh", sys.executable, "-c", script]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


REPLAY = """
import socket, sys, threading, time
sys.path.insert(0, "")
from roce_dissect.capture import live, open_capture
path, tool = sys.argv[1:3]
live.TOOLS = (tool,)
frames = []
with open_capture(path) as capture:
    for r in capture:
        frames += [r.data[o : o + n].tobytes() for o, n in zip(r.offset, r.cap_len)]

def send():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind(("v0", 0))
        for frame in frames:
            out.send(frame)

with live.LiveSource("v1") as source, open_capture(source, poll_s=0.1) as capture:
    threading.Timer(0.2, send).start()
    end = time.monotonic() + 1.8  # tcpdump holds packets back for up to a second
    found = []
    for r in capture:
        found += [r.data[o : o + n].tobytes() for o, n in zip(r.offset, r.cap_len)]
        if time.monotonic() > end:
            source.stop()
    extra = [f.hex() for f in found if frames.index(f) >= int(sys.argv[3])]
    print(len(found), len(set(found) - set(frames)), source.dropped, *extra)
"""


@pytest.mark.namespace
@pytest.mark.parametrize("name", ["dumpcap", "tcpdump"])
def test_replay_through_a_veth_pair(tool, build, tmp_path, name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    path = tmp_path / "frames.pcap"
    frames = ROCE + OTHER
    path.write_bytes(
        build.pcap_header() + b"".join(build.pcap_record(1, 0, f + i.to_bytes(4, "big")) for i, f in enumerate(frames))
    )
    assert in_namespace(REPLAY, path, name, len(ROCE)).split() == [str(len(ROCE)), "0", "0"]


@pytest.mark.namespace
@pytest.mark.parametrize("name", ["dumpcap", "tcpdump"])
def test_words_of_the_real_tools(tool, name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    script = """
import os, sys
sys.path.insert(0, "")
from roce_dissect.capture import live
live.TOOLS = (sys.argv[1],)

def say(interface):
    try:
        live.LiveSource(interface).close()
        print("no error")
    except live.LiveError as error:
        print(error)

say("nope")
os.system("ip link set v1 down")
say("v1")
say("lo")
os.setresgid(65534, 65534, 65534)
os.setgroups([])
os.setresuid(65534, 65534, 65534)
say("lo")
"""
    lines = in_namespace(script, name).splitlines()
    assert lines[0].startswith("there is no interface 'nope' (there are: lo, v")
    assert "interface 'v1' is down" in lines[1]
    assert lines[2] == "no error"
    path = shutil.which(name)
    if (
        not stat.S_IMODE(os.stat(path).st_mode) & 0o001
    ):  # only some group may run it: then it is as if it were not there
        assert "is installed" in lines[3]
    else:
        assert f"{name} is not permitted to capture on 'lo'" in lines[3]
