"""``packets --tshark``: Wireshark's dissection below ours, or one line that says why not."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys

import pytest

from roce_dissect.cli.wireshark import TheirField, Wireshark, same
from roce_dissect.dissect.tree import Node

NAME = "imp_loss1_write.server.pcap.gz"


@pytest.fixture
def wireshark():
    pytest.importorskip("pyshark")
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")


@pytest.mark.usefixtures("wireshark")
def test_below_each_frame(call, samples):
    done = call("packets", samples / NAME, "--tshark", "--frame", "86-87")
    assert (done.status, done.err) == (0, [])
    version = subprocess.run(["tshark", "-v"], capture_output=True, text=True, check=True).stdout.split()[2]
    assert done.out.count(f"Wireshark {version} says (= as above, ≠ not so)\n") == 2
    # the ICRC is equal although tshark shows its bytes in the other order
    for line in ("  =     Packet Sequence Number: 2032685\n", "  =     Invariant CRC: 0x7892dc00\n",
                 "  =     Frame Number: 87\n", "  =     Source Address: 192.168.100.1\n"):  # fmt: skip
        assert line in done.out
    assert "  ≠" not in done.out.replace("(= as above, ≠ not so)", "")
    before, after = done.out.split("Frame 87 of")
    assert "Frame Number: 86" in before
    assert "Frame Number: 87" in after


@pytest.mark.usefixtures("wireshark")
@pytest.mark.parametrize("name", ["rc_mix_vlan100_ipv4.client.pcap.gz", "rc_mix_ipv6_mtu1024.client.pcap.gz"])
def test_all_fields_of_all_operations_are_equal(call, samples, name):
    done = call("packets", samples / name, "--tshark", "--count", "60")
    marks = [line[2] for line in done.out.splitlines() if line[:2] == "  " and line[3:8] == "     "]
    assert marks.count("≠") == 0
    assert marks.count("=") > 1000
    assert "IMMDT" in done.out


@pytest.mark.usefixtures("wireshark")
def test_several_files_and_no_process_left(call, samples):
    done = call("packets", samples / NAME, samples / "imp_loss1_write.client.pcap.gz", "--tshark", "--frame", "86")
    assert (done.status, done.err) == (0, [])
    assert done.out.count("Frame Number: 86") == 2
    children = subprocess.run(["ps", "-o", "comm=", "--ppid", str(os.getpid())], capture_output=True)
    assert b"tshark" not in children.stdout


@pytest.mark.usefixtures("wireshark")
def test_differences_are_marked():
    field = TheirField("infiniband", "infiniband.bth.psn", "Packet Sequence Number: 8", "8", 51)
    node = Node("psn", 7, "7 (0x7)", "", 51, 3, None, "psn")
    shown = Wireshark().lines([field], [node])
    assert shown.splitlines()[1:] == ["    infiniband", "  ≠     Packet Sequence Number: 8    above: 7 (0x7)"]


@pytest.mark.usefixtures("wireshark")
def test_a_file_that_tshark_cannot_read(call, samples, tmp_path, monkeypatch):
    tool = tmp_path / "tshark"
    tool.write_text(
        "#!/bin/sh\n"
        '[ "$1" = -v ] && echo "TShark (Wireshark) 9.8.7 (made up)." && exit\n'
        "echo 'tshark: The file \"x\" is bad.' >&2; exit 2\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = call("packets", samples / NAME, "--tshark", "--frame", "86")
    assert done.status == 2
    assert done.err == [f'roce-dissect: --tshark: {samples / NAME}: The file "x" is bad']


@pytest.mark.usefixtures("wireshark")
def test_a_tshark_that_hangs(call, samples, tmp_path, monkeypatch):
    tool = tmp_path / "tshark"
    tool.write_text('#!/bin/sh\n[ "$1" = -v ] && echo "TShark (Wireshark) 9.8.7 (made up)." && exit\nexec sleep 1000\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("roce_dissect.cli.wireshark._TIMEOUT_S", 0.5)
    monkeypatch.setattr("roce_dissect.cli.wireshark._PATIENCE_S", 0.2)
    done = call("packets", samples / NAME, "--tshark", "--frame", "86")
    assert done.err == [f"roce-dissect: --tshark: {samples / NAME}: tshark took more than 0.5 s"]
    assert done.status == 2


def test_without_pyshark(call, samples, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyshark", None)
    done = call("packets", samples / NAME, "--tshark", "--frame", "86")
    assert (done.status, done.out) == (2, "")
    assert done.err == ["roce-dissect: --tshark needs pyshark: pip install 'roce-dissect[wireshark]'"]


def test_without_tshark(call, samples, monkeypatch, tmp_path):
    pytest.importorskip("pyshark")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("packets", samples / NAME, "--tshark", "--frame", "86")
    assert (done.status, done.out) == (2, "")
    assert len(done.err) == 1
    assert done.err[0].startswith(
        "roce-dissect: --tshark: tshark is not installed: apt install tshark (Debian, Ubuntu)"
    )


def test_standard_input_is_refused(call):
    done = call("packets", "-", "--tshark", "--frame", "86")
    assert done.status == 2
    assert done.err == [
        "roce-dissect: --tshark reads the capture once more: give a file, not standard input or a pipe"
        " (see roce-dissect packets --help)"
    ]


@pytest.mark.parametrize(
    ("column", "name", "theirs", "ours", "equal"),
    [
        ("psn", "infiniband.bth.psn", "2032685", 2032685, True),
        ("psn", "infiniband.bth.psn", "2032685", 2032686, False),
        ("dest_qp", "infiniband.bth.destqp", "0x000030", 0x30, True),
        ("p_key", "infiniband.bth.p_key", "65535", 0xFFFF, True),
        ("se", "infiniband.bth.se", "True", 1, True),
        ("se", "infiniband.bth.se", "False", 1, False),
        ("icrc", "infiniband.invariant.crc", "0x7892dc00", 0x00DC9278, True),
        ("icrc", "infiniband.invariant.crc", "0x7892dc00", 0x7892DC00, False),
        ("imm_data", "infiniband.immdt", "cafe0000", 0xCAFE0000, True),
        ("imm_data", "infiniband.immdt", "ca:fe:00:01", 0xCAFE0001, True),
        ("time_ns", "frame.time_epoch", "1795957504.328945001", 1795957504328945001, True),
        ("time_ns", "frame.time_epoch", "1795957504.328945001", 1795957504328945000, False),
        ("eth_src", "eth.src", "02:00:5e:00:00:01", 0x02005E000001, True),
        ("src", "ip.src", "10.0.0.1", "10.0.0.1", True),
        ("src", "infiniband.grh.sgid", "::ffff:10.0.0.1", "10.0.0.1", True),
        ("src", "ipv6.src", "fd00:1:0:0:0:0:0:2", "fd00:1::2", True),
        ("src", "ip.src", "10.0.0.2", "10.0.0.1", False),
        ("ttl", "ip.ttl", "nonsense", 64, False),
        ("src", "ip.src", "nonsense", "10.0.0.1", False),
    ],
)
def test_same(column, name, theirs, ours, equal):
    assert same(TheirField("x", name, "", theirs, 0), Node("y", ours, column=column)) is equal


def test_which_of_several():
    """Tunnels: outer and inner headers have fields of the same name; the place tells."""
    made = object.__new__(Wireshark)
    made.version = "9.9.9"
    outer = Node("outer_src", "10.9.9.2", "10.9.9.2", "", 26, 4, None, "outer_src")
    inner = Node("src", "10.0.0.1", "10.0.0.1", "", 76, 4, None, "src")
    fields = [
        TheirField("ip", "ip.src", "Source: 10.9.9.2", "10.9.9.2", 26),
        TheirField("ip", "ip.src", "Source: 10.0.0.1", "10.0.0.1", 76),
        TheirField("ip", "ip.src", "Source: 9.9.9.9", "9.9.9.9", 99),
        TheirField("x\x1b[2J", "x", "evil \x1b[2J", "", 0),
    ]
    lines = made.lines(fields, [outer, inner]).splitlines()[2:]
    assert lines == [
        "  =     Source: 10.9.9.2", "  =     Source: 10.0.0.1", "        Source: 9.9.9.9", "    x\\x1b[2J",
        "        evil \\x1b[2J",
    ]  # fmt: skip
    assert made.lines(None, []) == "Wireshark 9.9.9 shows nothing of this frame\n"


@pytest.mark.usefixtures("wireshark")
def test_another_port(call, samples, tmp_path):
    """RoCE on a port that the user named: tshark is told, too."""
    data = gzip.decompress((samples / "cm_refused.client.pcap.gz").read_bytes()).replace(b"\x12\xb7", b"\x12\xb8")
    path = tmp_path / "other_port.pcap"
    path.write_bytes(data)
    out = call("packets", path, "--port", "4792", "--tshark", "--frame", "1").out
    assert "  =     Destination Queue Pair: 0x000001" in out
    assert "  =     Destination Port: 4792" in out
