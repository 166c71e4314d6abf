"""A frame as a tree: every value is the kernel's, every byte has its place, and nothing raises."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from roce_dissect.analysis.packet_frame import packet_rows
from roce_dissect.analysis.packet_sources import PacketSession
from roce_dissect.cli.tree_lines import tree_lines
from roce_dissect.columns import PACKETS, packet_columns
from roce_dissect.decode.options import ReadOptions
from roce_dissect.decode.selection import Selection
from roce_dissect.dissect.frame import _STATUS, _TOLD, dissect, dissect_frames
from roce_dissect.dissect.transport import _ICRC_MEANINGS
from roce_dissect.spec.headers import HAS_BTH
from roce_dissect.terms import Accepted, IcrcStatus, Role, Standing, Status, Verdict

NAMES = sorted(path.name for path in (Path(__file__).parents[2] / "pcaps").glob("*.pcap*"))

#: Columns that are no fields: they stand in the tree in other ways, which `agree` looks at.
NO_FIELDS = {"present", "operation", "payload_offset", "tunnels"}
#: What is only told where it says something.
UNTOLD = {"tunnel": "none", "standing": "full", "missing_before": 0}


def columns_of(tree):
    """Column -> node; no column twice."""
    found = {}
    for section in tree:
        for node in section.walk():
            if node.column:
                assert node.column not in found
                found[node.column] = node
    return found


def agree(row, tree):
    """Each column of the kernel is in the tree with the same value, and none that the kernel lacks."""
    found = columns_of(tree)
    bth = next((section for section in tree if section.name == "bth"), None)
    whole = bool(row["present"] & HAS_BTH)
    untold = UNTOLD if whole else UNTOLD | {"icrc_status": "none"}
    for name in PACKETS:
        if name not in NO_FIELDS and not (name in untold and row[name] == untold[name]):
            assert (name, found[name].value if name in found else None) == (name, row[name])
    assert set(found) <= set(PACKETS) - NO_FIELDS
    assert (bth is not None and not cut(bth)) == whole
    if whole:
        assert bth.meaning == row["operation"]
        payload = next(section for section in tree if section.name == "payload")
        if not any(cut(section) for section in tree if section.name != "icrc") and row["payload_len"]:
            assert payload.first_byte == row["payload_offset"]


def cut(section):
    return any(child.name == "missing" for child in section.children)


def in_order(row, tree):
    """Nodes lie within their sections, sections one behind the other, and what they hold are the frame's bytes."""
    data = row["frame_bytes"]
    at = 0
    for section in tree[1:]:
        if section.first_byte is None:
            continue
        nested = section.name in ("mad", "cm", "ip_cm")  # within the payload
        assert nested or section.first_byte >= at, section.name
        end = section.first_byte + section.size
        assert end <= len(data)
        at = max(at, end)
        for node in section.walk():
            if node.first_byte is not None and node.size:
                last = node.first_byte + node.size
                assert last <= len(data)
                if isinstance(node.value, int) and node.name not in ("icrc", "vcrc", "feth") and not node.children:
                    high, low = node.bits or (node.size * 8 - 1, 0)
                    number = int.from_bytes(data[node.first_byte : last], "big")
                    assert node.value == number >> low & (1 << high - low + 1) - 1, node.name


def judge(row):
    tree = dissect(row)
    agree(row, tree)
    in_order(row, tree)
    return tree


@pytest.mark.parametrize("name", NAMES)
def test_all_columns_of_all_samples(samples, name):
    count = 0
    for packets in PacketSession(str(samples / name), packet_columns(None), keep_going=False, with_bytes=True):
        for row in packet_rows(packets):
            judge(row)
            count += 1
    assert count


def test_real_captures(softroce):
    paths = sorted(softroce.glob("*.pcap.gz"))
    assert paths
    for path in paths:
        for number, tree in zip(range(150), dissect_frames(path), strict=False):
            assert tree[0].text.startswith(f"Frame {tree[0].find('frame').value} of "), number


@pytest.mark.parametrize("form", ["v1", "v2", "v2_ipv6"])
def test_every_opcode(frames, rows, form):
    rng = random.Random(4791)
    build = getattr(frames, form)
    made = [
        build(opcode, rng.randbytes(rng.choice((0, 1, 5, 64, 200))), frames.values_of(opcode, rng), psn=opcode << 8)
        for opcode in frames.CHAINS
    ]
    made.append(build(4, b"abc", tver=3))
    found = rows(*made)
    assert len(found) == len(made)
    for row in found:
        judge(row)


def tunnelled(frames):
    """(frame, link type) of tunnels, tags and other link types, all of the kernel's tests."""
    rng = random.Random(1)
    plain = [
        frames.v2(0x0A, b"x" * 21, frames.values_of(0x0A, rng), ((0x8100, 0x6064),), {"tos": 0x69}, psn=5),
        frames.v2_ipv6(0x64, b"y" * 300, frames.values_of(0x64, rng), ((0x88A8, 3), (0x8100, 5)), psn=6),
        frames.v1(0x12, b"", frames.values_of(0x12, rng)),
        frames.v2(4, b"abc", ip={"options": b"\1\x94\4\0\0\7\3\4"}),
        frames.v2(0x0A, b"abc" * 30, ip={"fragment": 0x2000, "length": 100}),
        frames.v2(0x0A, b"abc" * 30, ip={"fragment": 0x2000, "length": 0}),
        frames.v2(0x0A, b"abc" * 30, ip={"length": 0}),
        frames.ethernet(
            frames.ipv6(bytes([17, 0, 0, 1, 0, 0, 0, 5]) + frames.udp(frames.packet(4, b"abc" * 9))[:40], following=44),
            0x86DD,
        ),
    ]
    yield from ((frame, 1) for frame in plain)
    for name, (wrap, *_) in frames.TUNNELS.items():
        for inner in (frames.v2(0x06, b"z" * 64, frames.values_of(0x06, rng)), frames.v2_ipv6(0x13)):
            protocol, body = wrap(inner)
            for version in (4, 6):
                yield frames.outer_ethernet(frames.outer(body, protocol, version), version), 1
        if name not in frames.WITHOUT_ETHERNET:
            protocol, body = wrap(frames.v1(psn=1))  # tags outside, none inside
            yield frames.outer_ethernet(frames.outer(body, protocol), tags=((0x8100, 9), (0x8100, 8))), 1
            protocol, body = wrap(plain[1])
            again, body = frames.TUNNELS["gre"][0](frames.outer_ethernet(frames.outer(body, protocol)))
            yield frames.outer_ethernet(frames.outer(body, again)), 1
    for inner in plain[:2]:  # tagged frames: an Ethertype stands where one would behind a control word
        for word in (b"", bytes(4), b"\0\0\0\7"):
            yield frames.outer_ethernet(frames.outer(frames.mpls(word + inner), 137)), 1
    ether_type, body = frames.network(frames.v2(0x11, b"", frames.values_of(0x11, rng)))
    yield from ((body, link) for link in (101, 12, 14, 228))
    yield from ((struct.pack(order, 2) + body, 0) for order in ("<I", ">I"))
    packet = frames.packet(0x0A, b"abcd", frames.values_of(0x0A, rng))
    for native in (frames.native(packet), frames.native(packet, {"tclass": 0x6B})):
        yield native, 247
        yield frames.erf(native, extensions=2), 197
    yield frames.erf(plain[0], kind=2), 197
    yield from ((frames.cooked(body, ether_type), 113), (frames.cooked2(body, ether_type), 276))


def by_link(pairs):
    """Link type -> frames: one reading for many."""
    found = {}
    for frame, link_type in pairs:
        found.setdefault(link_type, []).append(frame)
    return found


def test_tunnels_and_links(frames, rows):
    for link_type, given in by_link(tunnelled(frames)).items():
        found = rows(*given, link_type=link_type)
        assert len(found) == len(given)
        for row in found:
            networks = [section for section in judge(row) if section.name in ("ipv4", "ipv6", "grh", "lrh")]
            assert len(networks) >= 1 + (row["outer_src"] is not None)


def test_every_byte_has_its_place(frames, rows):
    """Sections cover a whole frame: nothing is passed over."""
    for link_type, given in by_link(tunnelled(frames)).items():
        for row in rows(*(frame + b"\0" * 6 for frame in given), link_type=link_type):
            covered = np.zeros(len(row["frame_bytes"]), bool)
            for section in dissect(row)[1:]:
                if section.first_byte is not None:
                    covered[section.first_byte : section.first_byte + section.size] = True
            assert covered.all()


def all_cut(rows, given, lengths, **more):
    """Rows of each frame, cut at each of ``lengths(frame)``."""
    cuts = [(frame[:length], len(frame)) for frame in given for length in lengths(frame)]
    return rows(*(frame for frame, _ in cuts), wire=[length for _, length in cuts], **more)


def test_cut_anywhere(frames, rows):
    """Every prefix of every kind of frame: what is there is shown, what lacks is named, nothing is made up."""
    for link_type, given in by_link(tunnelled(frames)).items():
        for row in all_cut(rows, given, lambda frame: range(len(frame)), link_type=link_type):
            tree = judge(row)
            if row["status"] == "cut":
                assert any(cut(section) for section in tree)


def test_samples_cut_anywhere(samples, rows):
    for path in sorted(samples.glob("*.pcap*")):
        packets = next(iter(PacketSession(str(path), packet_columns(None), keep_going=False, with_bytes=True)))
        kinds = packets.drop_duplicates(["opcode", "payload_len"])["frame_bytes"].tolist()[:8]
        for row in all_cut(rows, kinds, lambda frame: (*range(34, 100), len(frame) - 4, len(frame) - 1)):
            judge(row)


def test_random_bytes_behind_the_port(frames, rows):
    rng = random.Random(0x4791)
    made = []
    for _ in range(3000):
        body = bytearray(rng.randbytes(rng.randrange(0, 330)))
        if len(body) > 8 and rng.random() < 0.5:
            body[:8] = bytes([0x64, 0, 255, 255, 0, 0, 0, 1])  # UD SEND ONLY to QP 1
        if len(body) > 40 and rng.random() < 0.5:
            body[20:24], body[36:38] = b"\1\7\2\3", bytes([0, rng.randrange(0x10, 0x1C)])  # the CM
        length = len(body) + 8 + rng.choice((0, 0, 0, rng.randrange(-20, 20)))
        frame = frames.ethernet(frames.ipv4(frames.udp(bytes(body), length=max(length, 0))), 0x0800)
        made.append(frame[: rng.randrange(40, len(frame) + 1)] if rng.random() < 0.3 else frame)
    found = rows(*made)
    assert len(found) > 2900
    for row in found:
        assert all(line.isprintable() for line in tree_lines(judge(row)).split("\n"))


def test_flipped_bytes(frames, rows):
    """Frames of all kinds with some bytes changed: the kernel and the tree go the same way."""
    rng = random.Random(7)
    for link_type, given in by_link(tunnelled(frames)).items():
        changed = []
        for frame in given * 20:
            one = bytearray(frame)
            for _ in range(rng.randrange(1, 4)):
                one[rng.randrange(len(one))] = rng.randrange(256)
            changed.append(bytes(one))
        for row in rows(*changed, link_type=link_type):
            judge(row)


def test_another_port_and_a_choice(samples, tmp_path):
    data = gzip.decompress((samples / "cm_refused.client.pcap.gz").read_bytes()).replace(b"\x12\xb7", b"\x12\xb8")
    path = tmp_path / "other_port.pcap"
    path.write_bytes(data)
    assert list(dissect_frames(path)) == []
    ports = ReadOptions(ports=[0x12B8])
    assert len(list(dissect_frames(path, "1-2", ports))) == 2
    chosen = ReadOptions(ports=[0x12B8], selection=Selection(filter="frame == 2"))
    assert [tree[0].find("frame").value for tree in dissect_frames(path, options=chosen)] == [2]


@pytest.mark.parametrize(
    ("explained", "vocabulary", "untold"),
    [
        (_STATUS, Status, {"ok"}),
        (_ICRC_MEANINGS, IcrcStatus, set()),
        (_TOLD["role"], Role, set()),
        (_TOLD["standing"], Standing, {"full"}),
        (_TOLD["verdict"], Verdict, set()),
        (_TOLD["accepted"], Accepted, set()),
    ],
    ids=["status", "icrc_status", "role", "standing", "verdict", "accepted"],
)
def test_every_word_is_explained(explained, vocabulary, untold):
    assert set(explained) == {term.name.lower() for term in vocabulary} - untold
