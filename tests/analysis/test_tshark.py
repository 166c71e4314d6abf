"""tshark as a process: found or not, too old, failing, slow; and the rows that it prints."""

from __future__ import annotations

import shutil
import time

import pytest

from roce_dissect.analysis.tshark import OLDEST, Tshark, find_tshark
from roce_dissect.errors import WiresharkError

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


@pytest.fixture
def about(fake_tshark):
    """``about(version_line, fields, status=0)``: a tshark that says so of itself."""

    def make(version, fields=("frame.number", "frame.protocols", "infiniband.bth.opcode"), status=0):
        listed = "".join(f"F\\tName\\t{field}\\tFT_UINT32\\n" for field in fields)
        return fake_tshark(
            f"""case "$1" in
--version) echo '{version}';;
-G) printf 'P\\tA protocol\\tframe.protocols\\n{listed}'; echo broken >&2; exit {status};;
esac"""
        )

    return make


def rows_of(tshark, path, **options):
    with tshark.rows(str(path), **options) as rows:
        return list(rows), rows.error


def test_the_one_that_is_installed():
    tshark = find_tshark()
    assert tshark.path == shutil.which("tshark")
    assert tuple(map(int, tshark.version.split(".")[:2])) >= OLDEST
    assert {"frame.number", "infiniband.bth.psn"} <= tshark.fields
    assert not any("\t" in name or " " in name for name in tshark.fields)


def test_none_is_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WiresharkError, match=r"apt install tshark .*dnf install wireshark-cli"):
        find_tshark()


@pytest.mark.parametrize(
    ("line", "version"),
    [("TShark (Wireshark) 4.4.5 (Git v4.4.5)", "4.4.5"), ("TShark 3.0 (v3)", "3.0"), ("TShark 10.1.2", "10.1.2")],
)
def test_versions(about, line, version):
    path = about(line)
    tshark = find_tshark()
    assert (tshark.version, tshark.path, tshark.reads_zstd) == (version, str(path), False)
    assert tshark.fields == {"frame.number", "frame.protocols", "infiniband.bth.opcode"}


@pytest.mark.parametrize(
    ("line", "options", "complaint"),
    [
        ("TShark 2.6.20", {}, "tshark 2.6.20 is too old: 3.0 or later is needed"),
        ("TShark of tomorrow", {}, "names no version: TShark of tomorrow"),
        ("TShark 4.4.5", {"fields": ["frame.number", "frame.protocols"]}, "has no field infiniband.bth.opcode"),
        ("TShark 4.4.5", {"status": 3}, "tshark -G fields failed: broken"),
    ],
)
def test_one_that_will_not_do(about, line, options, complaint):
    about(line, **options)
    with pytest.raises(WiresharkError, match=complaint):
        find_tshark()


def test_one_that_cannot_be_run(fake_tshark):
    path = fake_tshark("")
    path.write_bytes(b"\x7fELF nonsense")
    with pytest.raises(WiresharkError, match="cannot be run"):
        find_tshark()
    with pytest.raises(WiresharkError, match="cannot be run"):
        Tshark(str(path), "4.0", frozenset()).rows("x.pcap")


def test_rows(samples):
    rows, error = rows_of(find_tshark(), samples / "rc_mix_vlan100_ipv4.client.pcap.gz")
    assert (len(rows), error) == (58, None)
    assert all(row["frame.protocols"].endswith("udp:infiniband:data") or "data" not in row for row in rows)
    assert {row["vlan.id"] for row in rows} == {"100"}


def test_ports(frames, tmp_path):
    path = tmp_path / "ports.pcap"
    odd = frames.ethernet(frames.ipv4(frames.udp(frames.packet(4, b"data"), dport=4792)), 0x0800)
    path.write_bytes(frames.pcap([odd, frames.v2(4, b"data")]))
    tshark = find_tshark()
    assert [row["frame.number"] for row in rows_of(tshark, path)[0]] == ["2"]
    rows, _ = rows_of(tshark, path, ports=[4792])
    assert [(row["frame.number"], row["infiniband.bth.opcode"]) for row in rows] == [("1", "4"), ("2", "4")]


def test_payloads_are_not_guessed_at(frames, tmp_path):
    """A short SEND passes for RPC over RDMA, and one that begins with an Ethertype for IP: neither is looked into."""
    path = tmp_path / "payload.pcap"
    looks_like_ip = bytes.fromhex("08000000") + frames.ipv4(frames.udp(b"hello"))
    path.write_bytes(frames.pcap([frames.v2(4, b"data"), frames.v2(4, looks_like_ip)]))
    rows, _ = rows_of(find_tshark(), path)
    assert {row["frame.protocols"] for row in rows} == {"eth:ethertype:ip:udp:infiniband:data"}
    assert {row["infiniband.invariant.crc"] for row in rows} == {"0x04030201"}


def test_the_users_preferences_have_no_say(frames, tmp_path, monkeypatch):
    path = tmp_path / "frames.pcap"
    path.write_bytes(frames.pcap([frames.v2(4, b"data")]))
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "disabled_protos").write_text("infiniband\n")
    monkeypatch.setenv("WIRESHARK_CONFIG_DIR", str(tmp_path / "profile"))
    assert rows_of(find_tshark(), path)[0][0]["infiniband.bth.opcode"] == "4"


def test_bytes_for_standard_input(samples, plain):
    content = plain(samples / "rc_mix_vlan100_ipv4.client.pcap.gz").read_bytes()
    pieces = (content[start : start + 1000] for start in range(0, len(content), 1000))
    rows, error = rows_of(find_tshark(), "no such file", feed=pieces)
    assert (len(rows), error) == (58, None)


def test_bytes_that_break_off(samples, plain):
    """Whoever reads the capture as well tells of its fault; here it is only the end."""

    def broken():
        yield plain(samples / "rc_mix_vlan100_ipv4.client.pcap.gz").read_bytes()[:3000]
        raise OSError("the disk has gone")

    rows, _ = rows_of(find_tshark(), "no such file", feed=broken())
    assert 0 < len(rows) < 58


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("echo 'Running as user \"root\"' >&2; echo 'tshark: The file is odd.' >&2; exit 2", "The file is odd"),
        ("exit 5", "exit status 5"),
        ("kill -9 $$", "it was ended by signal 9"),
        ("printf '\\033[2J\\n' >&2; exit 1", "\x1b[2J"),  # made harmless by whoever prints it
        ("exit 0", None),
    ],
)
def test_why_it_broke_off(fake_tshark, script, error):
    tshark = Tshark(str(fake_tshark(script)), "4.0", frozenset({"frame.number"}))
    assert rows_of(tshark, "x.pcap") == ([], error)


def test_lines_in_pieces_and_lines_that_are_none(fake_tshark):
    script = "printf '1\\t'; sleep 0.2; printf 'eth\\n2\\tip\\nnonsense\\n3\\tip'"
    tshark = Tshark(str(fake_tshark(script)), "4.0", frozenset({"frame.number", "frame.protocols"}))
    rows, _ = rows_of(tshark, "x.pcap")
    assert [tuple(row.values()) for row in rows] == [("1", "eth"), ("2", "ip")]


def test_waiting_and_closing(fake_tshark):
    """While nothing comes there are steps, and closing ends the process."""
    tshark = Tshark(str(fake_tshark("exec sleep 60")), "4.0", frozenset({"frame.number"}))
    started = time.monotonic()
    with tshark.rows("x.pcap", poll_s=0.01) as rows:
        assert next(iter(rows)) is None
        process = rows._process
    assert process.returncode == -9
    assert time.monotonic() - started < 30
