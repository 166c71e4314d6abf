"""The transport packet in words: payload, pad, CRCs, what is behind it, and what is missing."""

from __future__ import annotations

import struct
import zlib

import pytest

from roce_dissect.dissect.frame import dissect, dissect_frames
from roce_dissect.layers import LRH, verify_icrc


def told(section, name):
    node = section.find(name)
    return node.text, node.meaning


def test_payload_and_pad(frames, sections):
    found = sections(frames.v2(4, b"hello RDMA\x1b[2J..", psn=1))
    payload = found["payload"]
    assert told(payload, "payload_len") == ("16", "bytes")
    assert told(payload, "data") == (b"hello RDMA\x1b[2J..".hex(" "), "hello RDMA.[2J..")
    assert "pad" not in found
    found = sections(frames.v2(4, b"x" * 101, psn=1))
    assert told(found["pad"], "pad") == ("00 00 00", "zeros")
    lines = [node for node in found["payload"].children if node.name == "data"]
    assert [node.first_byte for node in lines] == [54, 70, 86, 102]
    assert told(found["payload"], "more") == ("37 bytes", "not shown")
    assert sections(frames.v2(4, b"x", psn=1))["payload"].find("payload_len").meaning == "byte"


def test_sliced(frames, rows):
    frame = frames.v2(0x0A, b"x" * 100, psn=1)
    for length, payload, icrc in ((80, "bytes, 10 of them captured", 0), (len(frame) - 1, "bytes", 3)):
        [row] = rows(frame[:length], wire=[len(frame)])
        tree = {section.name: section for section in dissect(row)}
        assert told(tree["frame"], "cap_len")[1] == f"bytes, {len(frame) - length} are not in the capture"
        assert told(tree["payload"], "payload_len") == ("100", payload)
        assert told(tree["icrc"], "missing") == ("icrc", f"{icrc} of 4 bytes captured")
        assert told(tree["icrc"], "icrc_status") == ("sliced", "not all of the bytes that it covers were captured")


def test_a_cut_header(frames, rows):
    frame = frames.v2(0x0A, b"x" * 100, psn=1)
    [row] = rows(frame[:66], wire=[len(frame)])
    reth = next(section for section in dissect(row) if section.name == "reth")
    assert told(reth, "missing") == ("dma_len", "12 of 16 bytes captured")
    assert [node.name for node in reth.children] == ["va", "r_key", "missing"]
    # the packet's own length ends it: UDP's length leaves 8 bytes
    body = frames.bth(0x0A) + bytes(12)
    [row] = rows(frames.ethernet(frames.ipv4(frames.udp(body)), 0x0800))
    tree = {section.name: section for section in dissect(row)}
    assert told(tree["reth"], "missing") == ("r_key, dma_len", "8 of 16 bytes left by the packet's own length")
    assert tree["payload"].find("payload_len").value == 0


def test_lengths_without_room_for_the_pad(frames, sections):
    found = sections(frames.v2(4, b"", pad_count=3))
    assert told(found["payload"], "payload_len") == (
        "0", "bytes: headers and pad take 3 more than the length fields leave",
    )  # fmt: skip


def test_icrc(samples, rows):
    """Real packets have the right one; with a bit turned, the right one is told."""
    first = next(dissect_frames(samples / "rc_mix_ipv6_mtu1024.client.pcap.gz"))
    assert [node.text for node in first if node.name == "icrc"] == ["ICRC"]
    from roce_dissect.analysis.packet_sources import PacketSession
    from roce_dissect.columns import packet_columns

    for name in ("rc_mix_ipv6_mtu1024.client.pcap.gz", "rc_mix_vlan100_ipv4.client.pcap.gz"):
        session = PacketSession(str(samples / name), packet_columns(None), keep_going=False, with_bytes=True)
        original = next(iter(session))["frame_bytes"].tolist()[:20]
        right = [int.from_bytes(frame[-4:], "little") for frame in original]
        good = rows(*original)
        changed = rows(*original, *(frame[:-1] + bytes([frame[-1] ^ 1]) for frame in original))[20:]
        assert [row["icrc_status"] for row in good] == ["good"] * 20
        for row, value in zip(changed, right, strict=True):
            icrc = {section.name: section for section in dissect(row)}["icrc"]
            assert told(icrc, "icrc_status") == ("bad", f"bad; {value:#010x} would be right")


def test_a_placeholder(frames, rows):
    found = rows(*[frames.v2(4, b"abcd", psn=psn, icrc=0) for psn in range(3)])
    for row in found:
        status = {section.name: section for section in dissect(row)}["icrc"].find("icrc_status")
        assert status.value == row["icrc_status"] == "placeholder"
        assert status.meaning.startswith("a placeholder: this sender computes none; 0x")


def test_native(frames, sections):
    """Right CRCs of a packet that the Scapy layers built."""
    from roce_dissect.layers import BTH

    packet = LRH(bytes(LRH(dlid=5, slid=6, vl=3) / BTH(psn=7) / b"abcd"))
    assert verify_icrc(packet)
    found = sections(bytes(packet), link_type=247)
    assert told(found["vcrc"], "vcrc")[1] == "good"
    assert told(found["icrc"], "icrc_status") == ("good", "")
    broken = bytes(packet)[:-1] + bytes([bytes(packet)[-1] ^ 0x80])
    right = int.from_bytes(bytes(packet)[-2:], "little")
    assert told(sections(broken, link_type=247)["vcrc"], "vcrc")[1] == f"bad; {right:#06x} would be right"
    assert told(sections(bytes(packet)[:-1], link_type=247)["vcrc"], "missing") == ("vcrc", "1 of 2 bytes captured")
    assert found["lrh"].find("pkt_len").meaning == "28 bytes"


def test_what_is_behind(frames, sections):
    frame = frames.v2(0x11, b"")
    found = sections(frame + bytes(4))
    assert told(found["trailer"], "padding") == ("00 00 00 00", "zeros: Ethernet padding")
    padded = frame + bytes(2)
    with_fcs = padded + struct.pack("<I", zlib.crc32(padded))
    trailer = sections(with_fcs)["trailer"]
    assert told(trailer, "padding")[0] == "00 00"
    assert told(trailer, "fcs")[1] == "the frame's own CRC, good"
    assert trailer.find("fcs").first_byte == len(padded)
    assert told(sections(frame + b"\1\2\3\4\5")["trailer"], "bytes") == ("01 02 03 04 05", "")


def test_flush_of_rxe(softroce):
    path = softroce / "k612_flush_atomic_write.client.pcap.gz"
    found = [
        section.find("icrc_status").meaning
        for tree in dissect_frames(path)
        if any(section.meaning == "RC FLUSH" for section in tree)
        for section in tree
        if section.name == "icrc"
    ]
    assert found
    assert all(one.endswith("it is what Linux rxe 6.12 computes for FLUSH") for one in found)


@pytest.mark.parametrize(
    ("opcode", "section", "field", "text", "meaning"),
    [
        (0x11, "aeth", "syndrome", "0x62", "NAK remote access error"),
        (0x05, "immdt", "imm_data", "0x68690000", '1751711744 as a number, as text "hi"'),
        (0x0A, "reth", "dma_len", "4096", "bytes, the whole message's"),
        (0x64, "deth", "q_key", "0x80010000", "GSI's"),
        (0x1C, "feth", "feth", "0x00000013", ""),
        (0x1C, "feth", "selectivity", "1", "the whole memory region"),
        (0x1C, "feth", "placement", "0x3", "global visibility and persistence"),
        (0x13, "atomiceth", "compare_data", "0xffffffffffffffff (18446744073709551615)", "compared with what is there"),
    ],
)  # fmt: skip
def test_words_of_headers(frames, sections, opcode, section, field, text, meaning):
    values = dict.fromkeys(frames.values_of_names(opcode), 0)
    values |= {
        "syndrome": 0x62, "imm_data": 0x68690000, "dma_len": 4096, "q_key": 0x80010000, "feth": 0x13,
        "compare_data": (1 << 64) - 1,
    }  # fmt: skip
    assert told(sections(frames.v2(opcode, b"", values))[section], field) == (text, meaning)


def fragments(frames, version=4):
    """A first fragment of a packet of 200 bytes of payload, and where it ends in the frame: 64 bytes of it."""
    whole = frames.udp(frames.packet(0x0A, b"x" * 200, psn=1))
    part = whole[: 8 + 12 + 16 + 64]
    if version == 4:
        return frames.ethernet(frames.ipv4(part, fragment=0x2000), 0x0800)
    header = bytes([17, 0, 0, 1]) + bytes(4)
    return frames.ethernet(frames.ipv6(header + part, following=44), 0x86DD)


@pytest.mark.parametrize("version", [4, 6])
def test_a_first_fragment(frames, rows, version):
    frame = fragments(frames, version)
    for behind in (b"", bytes(6)):
        [row] = rows(frame + behind)
        assert row["status"] == "fragment"
        tree = {section.name: section for section in dissect(row)}
        assert told(tree["frame"], "status")[1] == "the first of several IP fragments: the others have the rest"
        assert told(tree["payload"], "payload_len") == ("200", "bytes, 64 of them in this first fragment")
        assert told(tree["icrc"], "missing") == ("icrc", "0 of 4 bytes in this first fragment")
        assert ("trailer" in tree) == bool(behind)
        if behind:
            assert tree["trailer"].first_byte == len(frame)
    [row] = rows(frame[:-10], wire=[len(frame)])
    payload = next(section for section in dissect(row) if section.name == "payload")
    assert told(payload, "payload_len")[1] == "bytes, 54 of them captured"
