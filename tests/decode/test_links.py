"""Link types other than Ethernet: the same packet behind another link header."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect import layout
from roce_dissect.spec import headers as bit
from roce_dissect.terms import Status

#: Columns that tell of the link, or of the frame as a whole.
OWN = {
    "eth_src", "eth_dst", "vlan_id", "pcp", "vlan2_id", "wire_len", "cap_len", "present", "payload_offset", "offset",
    "slid", "dlid", "vl", "sl", "network_offset",
}  # fmt: skip
LINK = bit.HAS_ETH | bit.HAS_VLAN | bit.HAS_VLAN2


def packets(frames):
    rng = random.Random(113)
    return [
        frames.v2(0x0A, b"x" * 21, frames.values_of(0x0A, rng), ip={"options": b"\1" * 8, "tos": 0x69}, psn=5),
        frames.v2_ipv6(0x11, b"", frames.values_of(0x11, rng), ip={"tclass": 0x6B, "flow": 0xABCDE}, sport=0),
    ]


def same(row, alone):
    assert {key: row[key] for key in row if key not in OWN} == {key: alone[key] for key in row if key not in OWN}
    assert row["present"] & ~LINK == alone["present"] & ~LINK


@pytest.mark.parametrize("link_type", [101, 12, 14, 0, 108, 113, 276, 228])
def test_ip(decode, frames, link_type):
    for number, frame in enumerate(packets(frames)):
        ether_type, body = frames.network(frame)
        [alone], _ = decode(frame)
        if link_type == 228:
            link_type += number
        families = (2,) if ether_type == 0x0800 else (10, 24, 28, 30)
        given = {
            0: [struct.pack(order + "I", family) + body for family in families for order in "<>"],
            108: [struct.pack(">I", family) + body for family in families],
            113: [frames.cooked(body, ether_type), frames.cooked(body, ether_type, arphrd=772)],
            276: [frames.cooked2(body, ether_type)],
        }.get(link_type, [body])
        for one in given:
            [row], decoder = decode(one, link_type=link_type)
            same(row, alone)
            assert row["present"] & LINK == 0
            for length in range(len(one)):
                rows, decoder = decode(one[:length], link_type=link_type)
                if not rows:
                    assert decoder.tallies[layout.TALLY_CUT] == 1


@pytest.mark.parametrize(("link_type", "build"), [(113, "cooked"), (276, "cooked2")])
def test_cooked_with_tags_and_version_1(decode, frames, link_type, build):
    frame = frames.v1(4, b"abc", psn=8)
    body = struct.pack(">HH", 0x6064, 0x8915) + frames.network(frame)[1]
    [row], _ = decode(getattr(frames, build)(body, 0x8100), link_type=link_type)
    assert (row["vlan_id"], row["pcp"], row["version"], row["psn"]) == (100, 3, 1, 8)
    rows, decoder = decode(getattr(frames, build)(bytes(40), 0x0800, arphrd=824), link_type=link_type)
    assert rows == []
    assert decoder.tallies[layout.TALLY_LINK] == 1


def test_unknown_family(decode, frames):
    for link_type in (0, 108):
        rows, decoder = decode(struct.pack("<I", 7) + frames.network(frames.v2(4))[1], link_type=link_type)
        assert rows == []
        assert decoder.tallies[layout.TALLY_LINK] == 1


@pytest.mark.parametrize("with_grh", [False, True])
@pytest.mark.parametrize("wrap", ["", "erf", "erf_extensions"])
def test_native(decode, frames, with_grh, wrap):
    rng = random.Random(247)
    values = frames.values_of(0x0A, rng)
    body = frames.packet(0x0A, b"x" * 21, values, psn=0xABCDEF, icrc=0x01020304)
    gid_header = {"tclass": 0x6B, "flow": 0xABCDE, "hops": 7} if with_grh else None
    frame = frames.native(body, gid_header)
    link_type = 247
    if wrap:
        frame, link_type = frames.erf(frame, extensions=2 * (wrap == "erf_extensions")), 197
    [row], decoder = decode(frame, link_type=link_type)
    assert (row["version"], row["status"], row["psn"], row["payload_len"]) == (0, Status.OK, 0xABCDEF, 21)
    assert (row["vl"], row["sl"], row["slid"], row["dlid"]) == (1, 3, 0x12, 0x34)
    assert row["icrc"] == 0x01020304
    assert all(row[key] == value for key, value in values.items())
    assert row["present"] == bit.HAS_LRH | bit.HAS_GRH * with_grh | bit.HAS_BTH | bit.HAS_RETH | bit.HAS_ICRC
    if with_grh:
        assert (row["dscp"], row["ecn"], row["ttl"], row["flow_label"]) == (0x1A, 3, 7, 0xABCDE)
        assert decoder.hosts.texts()[row["src"]] == "fd00:100::2"
    else:
        assert [decoder.hosts.texts()[row[name]] for name in ("src", "dst")] == ["LID 18", "LID 52"]
    for length in range(len(frame)):
        decode(frame[:length], link_type=link_type)


def test_native_lengths_that_lie(decode, frames):
    body = frames.packet(4, b"data")
    for length, gid_header, status in (
        (5, None, Status.MALFORMED), (8, None, Status.OK), (2047, None, Status.OK), (18, {}, Status.MALFORMED),
        (17, {}, Status.OK),
    ):  # fmt: skip
        [row], _ = decode(frames.native(body, gid_header, length=length), link_type=247)
        assert row["status"] == status, length
    rows, decoder = decode(b"\x01" + frames.native(body)[1:], b"\0\0" + frames.native(body)[2:], link_type=247)
    assert rows == []
    assert np.flatnonzero(decoder.tallies).tolist() == [layout.TALLY_MALFORMED, layout.TALLY_LINK]


def test_erf_ethernet(decode, frames):
    frame = frames.v2(4, b"abc", tags=((0x8100, 5),))
    [alone], _ = decode(frame)
    [row], _ = decode(frames.erf(frame, 2), link_type=197)
    same(row, alone)
    assert row["vlan_id"] == 5
    rows, decoder = decode(frames.erf(frame, 1), link_type=197)
    assert rows == []
    assert decoder.tallies[layout.TALLY_LINK] == 1


@pytest.mark.parametrize("link_type", [0, 1, 12, 14, 101, 108, 113, 197, 228, 229, 247, 276])
def test_empty_frame_at_the_end_of_the_buffer(decode, frames, link_type):
    """Not even its first byte is there to be read."""
    _, decoder = decode(frames.network(frames.v2(4))[1], b"", link_type=link_type)
    assert decoder.tallies[layout.TALLY_CUT] >= 1


def test_a_connection_between_lids(frames, tmp_path):
    """From capture to tables and back, and the filter for Wireshark."""
    made = []
    for psn in range(5):
        made.append(frames.native(frames.packet(4, b"data", psn=psn, dest_qp=17, ack_req=1), slid=5, dlid=6))
        made.append(frames.native(frames.packet(0x11, b"", {"syndrome": 0x1F, "msn": psn + 1}, psn=psn, dest_qp=18),
                                  slid=6, dlid=5))  # fmt: skip
    path = tmp_path / "native.pcap"
    path.write_bytes(frames.pcap(made, link_type=247))
    result = rd.analyze(path)
    (connection,) = result.to_dict()["connections"]
    assert (connection["version"], connection["a"], connection["b"]) == (
        0, {"address": "LID 5", "qp": 18}, {"address": "LID 6", "qp": 17},
    )  # fmt: skip
    assert (connection["a_to_b"]["requests"], connection["b_to_a"]["acks"]) == (5, 5)
    assert connection["filter"] == (
        "(infiniband.lrh.dlid == 6 && infiniband.bth.destqp == 0x11) || "
        "(infiniband.lrh.dlid == 5 && infiniband.bth.destqp == 0x12)"
    )
    again = rd.track(rd.read_packets(path))
    assert again.to_dict()["connections"] == result.to_dict()["connections"]
