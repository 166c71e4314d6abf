"""A tree as text."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess

import pytest

from roce_dissect.cli.tree_lines import hex_dump, tree_lines
from roce_dissect.dissect.frame import dissect_frames
from roce_dissect.dissect.tree import Node


def test_lines():
    tree = [
        Node("top", None, "Top", "of all", 10, 4, children=[
            Node("psn", 5, "5 (0x5)", "", 10, 3),
            Node("bit", 1, "1", "set", 13, 1, (7, 7)),
            Node("bits", 1, "1", "", 13, 1, (6, 4)),
            Node("reserved", 0, "0", "", 13, 1, (3, 0)),
            Node("reserved7", 1, "1", "", 13, 1, (3, 0)),
            Node("reserved", "0000", "00 00", "", 13, 2),
            Node("far", None, "none", "nowhere"),
            Node("inner", None, "Inner", children=[Node("x", "y", "y")]),
        ]),
    ]  # fmt: skip
    assert tree_lines(tree).splitlines() == [
        "Top: of all".ljust(98) + "bytes 10-13",
        "    psn                     5 (0x5)".ljust(98) + "bytes 10-12",
        "    bit                     1                       set".ljust(98) + "byte 13 bit 7",
        "    bits                    1".ljust(98) + "byte 13 bits 6-4",
        "    reserved7               1".ljust(98) + "byte 13 bits 3-0",
        "    far                     none                    nowhere",
        "    Inner",
        "        x                       y",
    ]  # fmt: skip


def test_a_section_without_fields():
    assert tree_lines([Node("no_bth", None, "No BTH", "no room", 4, 0)]) == "No BTH: no room\n"


def test_nothing_runs_together():
    tree = [Node("t", None, "T", children=[Node("n" * 40, 1, "v" * 40, "m" * 80, 0, 1)])]
    assert tree_lines(tree).splitlines()[1].split() == ["n" * 40, "v" * 40, "m" * 80, "byte", "0"]


def test_a_terminal_is_safe():
    tree = [Node("t", None, "\x1b[2J", "a\nb", children=[Node("x\x07", "", "\x9b1m", "\u202e")])]
    text = tree_lines(tree)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.splitlines()[0] == "\\x1b[2J: a\\x0ab"


def test_hex_dump():
    lines = hex_dump(bytes(range(0x30, 0x44))).splitlines()
    assert lines == [
        "       0  30 31 32 33 34 35 36 37  38 39 3a 3b 3c 3d 3e 3f  0123456789:;<=>?",
        "      16  40 41 42 43                                       @ABC",
    ]
    assert hex_dump(b"") == ""
    assert hex_dump(b"\x1b\xff\n").splitlines()[0].endswith("  ...")


def test_hex_dump_is_tsharks(samples):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = samples / "cm_refused.client.pcap.gz"
    theirs = subprocess.run(["tshark", "-r", path, "-x", "-Y", "frame.number==1"], capture_output=True, check=True)
    theirs = re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", theirs.stdout.decode(), re.MULTILINE)
    data = gzip.decompress(path.read_bytes())
    frame = data[40 : 40 + int.from_bytes(data[32:36], "little")]
    ours = [line[10:58] for line in hex_dump(frame).splitlines()]
    assert [line.split() for line in ours] == [line.split() for line in theirs]


def test_widths_fit_real_frames(samples):
    """Values of real frames stay in their columns: no line of a header pushes its place away."""
    places = set()
    for number, tree in zip(range(40), dissect_frames(samples / "imp_loss1_write.server.pcap.gz"), strict=False):
        for line in tree_lines(tree).splitlines():
            found = re.search(r"  (bytes? \d+\S*)", line)
            if found and line.startswith("    ") and "messages that the responder" not in line:
                places.add(found.start(1))
        assert number < 40
    assert len(places) == 1
