"""Tunnels: what came in one is decoded as if it had come alone, beside the tunnel's own columns.

The frames are built by hand (`frames.py`) and wrapped there; tshark judges the same ones in `test_against_tshark.py`.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from roce_dissect import layout
from roce_dissect.spec import headers as bit
from roce_dissect.terms import Status, Tunnel

#: Columns that tell of the tunnel, or of the frame as a whole.
OWN = {
    "tunnel", "tunnels", "vni", "session", "gre_seq", "outer_src", "outer_dst", "wire_len", "cap_len", "present",
    "payload_offset", "network_offset", "offset", "src", "dst",
}  # fmt: skip
MARKS = bit.HAS_TUNNEL | bit.HAS_OUTER_IP | bit.HAS_VNI | bit.HAS_SESSION | bit.HAS_GRE_SEQ
#: Tunnel of each name in `frames.TUNNELS`.
KINDS = {
    "vxlan": Tunnel.VXLAN, "vxlan_group_policy": Tunnel.VXLAN, "geneve": Tunnel.GENEVE,
    "geneve_options": Tunnel.GENEVE, "geneve_ip": Tunnel.GENEVE, "gre": Tunnel.GRE, "gre_all": Tunnel.GRE,
    "gretap": Tunnel.GRETAP, "gretap_key": Tunnel.GRETAP, "gretap_key_sequence": Tunnel.GRETAP, "nvgre": Tunnel.NVGRE,
    "erspan1": Tunnel.ERSPAN1, "erspan2": Tunnel.ERSPAN2, "erspan3": Tunnel.ERSPAN3, "erspan3_sub": Tunnel.ERSPAN3,
    "erspan3_ip": Tunnel.ERSPAN3, "ipip": Tunnel.IPIP, "mpls_in_ip": Tunnel.MPLS, "mpls_in_gre": Tunnel.MPLS,
}  # fmt: skip


def inner_frames(frames, tagged=True):
    """Frames with all kinds of headers."""
    rng = random.Random(4789)
    tags = ((0x8100, 0x6064),) if tagged else ()
    return [
        frames.v2(0x0A, b"x" * 21, frames.values_of(0x0A, rng), tags, {"tos": 0x69}, psn=5, icrc=0xA1B2C3D4),
        frames.v2(0x12, b"", frames.values_of(0x12, rng), psn=6, sport=0),
        frames.v2_ipv6(0x64, b"y" * 256, frames.values_of(0x64, rng), tags, {"tclass": 0x6B, "flow": 0xABCDE}),
        frames.v2_ipv6(0x13, b"", frames.values_of(0x13, rng), psn=7),
    ]  # fmt: skip


def addresses(decoder, row, *names):
    return [decoder.hosts.texts()[row[name]] for name in names]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", KINDS)
def test_as_if_it_had_come_alone(decode, frames, name, version):
    wrap, vni, session, sequence = frames.TUNNELS[name]
    for frame in inner_frames(frames, tagged=name not in frames.WITHOUT_ETHERNET):
        [alone], decoder = decode(frame)
        ends = addresses(decoder, alone, "src", "dst")
        protocol, body = wrap(frame)
        whole = frames.outer_ethernet(frames.outer(body, protocol, version), version)
        [row], decoder = decode(whole)
        assert {key: row[key] for key in row if key not in OWN} == {key: alone[key] for key in row if key not in OWN}
        assert addresses(decoder, row, "src", "dst") == ends
        outer = ["10.9.9.2", "10.9.9.1"] if version == 4 else ["2001:db8::a2", "2001:db8::b1"]
        assert addresses(decoder, row, "outer_src", "outer_dst") == outer
        assert row["tunnel"] == KINDS[name]
        assert row["tunnels"] == (2 if name == "mpls_in_gre" else 1)
        marks = bit.HAS_TUNNEL | bit.HAS_OUTER_IP
        for value, column, mark in (
            (vni, "vni", bit.HAS_VNI), (session, "session", bit.HAS_SESSION), (sequence, "gre_seq", bit.HAS_GRE_SEQ),
        ):  # fmt: skip
            assert row[column] == (value or 0)
            marks |= mark * (value is not None)
        assert row["present"] & MARKS == marks
        assert row["present"] & ~MARKS == alone["present"]
        assert row["payload_offset"] - alone["payload_offset"] == len(whole) - len(frame)


def test_version_1_within_vxlan(decode, frames):
    frame = frames.v1(4, b"abc", psn=9, tags=((0x8100, 5),))
    [alone], _ = decode(frame)
    protocol, body = frames.TUNNELS["vxlan"][0](frame)
    [row], _ = decode(frames.outer_ethernet(frames.outer(body, protocol)))
    assert (row["version"], row["psn"], row["vlan_id"], row["status"]) == (1, 9, 5, Status.OK)
    assert row["present"] & ~MARKS == alone["present"]


def test_outer_tags_belong_to_what_has_no_ethernet_of_its_own(decode, frames):
    tags = ((0x88A8, 7), (0x8100, 0x6008))
    for name in KINDS:
        protocol, body = frames.TUNNELS[name][0](frames.v2(4))
        [row], _ = decode(frames.outer_ethernet(frames.outer(body, protocol), tags=tags))
        expected = (7, 8) if name in frames.WITHOUT_ETHERNET else (0, 0)
        assert (row["vlan_id"], row["vlan2_id"]) == expected
        assert bool(row["present"] & bit.HAS_VLAN2) == (name in frames.WITHOUT_ETHERNET)


@pytest.mark.parametrize("labels", [(16,), (16, 17, 18), tuple(range(16))])
@pytest.mark.parametrize("ether_type", [0x8847, 0x8848])
def test_mpls(decode, frames, labels, ether_type):
    """IP by its version; an Ethernet frame with or without a control word (MAC addresses may begin with 0)."""
    frame = frames.v2(4, b"abc", psn=3)
    for body in (frames.network(frame)[1], bytes(4) + frame, frame):
        [row], _ = decode(frames.ethernet(frames.mpls(body, labels), ether_type))
        assert (row["psn"], row["tunnel"], row["tunnels"], row["status"]) == (3, Tunnel.MPLS, 1, Status.OK)
        assert row["present"] & MARKS == bit.HAS_TUNNEL
        assert row["outer_src"] == row["outer_dst"] == 0


@pytest.mark.parametrize("first", ["02", "1c"])
@pytest.mark.parametrize("control", [b"", bytes(4), bytes.fromhex("00000001")])
def test_tagged_frame_in_mpls(decode, frames, control, first):
    """Behind a tag stands what a control word would have moved the Ethertype to: which of them it is shows in MACs."""
    frame = bytes.fromhex(first) + frames.v2(4, b"abc", psn=3, tags=((0x88A8, 7), (0x8100, 0x6008)))[1:]
    [alone], _ = decode(frame)
    [row], _ = decode(frames.ethernet(frames.mpls(control + frame), 0x8847))
    assert {key: row[key] for key in row if key not in OWN} == {key: alone[key] for key in row if key not in OWN}
    assert row["present"] & ~MARKS == alone["present"]


def test_too_many_labels(decode, frames):
    rows, decoder = decode(frames.ethernet(frames.mpls(frames.network(frames.v2(4))[1], range(17)), 0x8847))
    assert rows == []
    assert decoder.tallies[layout.TALLY_TUNNEL] == 1


@pytest.mark.parametrize("name", ["vxlan", "gretap", "ipip", "geneve_options", "erspan2"])
def test_nested_to_the_stated_depth(decode, frames, name):
    """The VNI of the innermost tunnel that has one; the outermost addresses; one tunnel more is only counted."""
    frame = frames.v2(4, psn=11)
    for depth in range(1, layout.MOST_TUNNELS + 3):
        protocol, body = frames.TUNNELS[name][0](frame)
        version = 6 if depth == 1 else 4
        frame = frames.outer_ethernet(frames.outer(body, protocol, version), version)
        rows, decoder = decode(frame)
        if depth > layout.MOST_TUNNELS:
            assert rows == []
            assert np.flatnonzero(decoder.tallies).tolist() == [layout.TALLY_TUNNEL]
            continue
        assert (rows[0]["psn"], rows[0]["tunnels"], rows[0]["tunnel"]) == (11, depth, KINDS[name])
        assert addresses(decoder, rows[0], "outer_src") == ["2001:db8::a2" if depth == 1 else "10.9.9.2"]


def test_a_mirror_of_an_overlay_keeps_both(decode, frames):
    """VXLAN within ERSPAN II: VNI and session, the overlay's as the innermost tunnel."""
    protocol, body = frames.TUNNELS["vxlan"][0](frames.v2(4))
    mirrored = frames.outer_ethernet(frames.outer(body, protocol))
    protocol, body = frames.TUNNELS["erspan2"][0](mirrored)
    [row], _ = decode(frames.outer_ethernet(frames.outer(body, protocol, 6), 6))
    assert (row["tunnel"], row["tunnels"], row["vni"], row["session"], row["gre_seq"]) == (
        Tunnel.VXLAN, 2, 4242, 1023, 99,
    )  # fmt: skip


def test_what_is_no_tunnel_or_not_known(decode, frames):
    inner = frames.v2(4)
    cases = {
        layout.TALLY_UDP: [(17, frames.vxlan(inner, flags=0))],
        layout.TALLY_TUNNEL: [
            (17, frames.geneve(inner, version=1)),
            (47, frames.gre(inner, 0x880B, flags=1)),  # PPTP
            (47, frames.gre(inner, 0x0800, flags=0x4000)),  # source routes
            (47, frames.gre(frames.erspan2(inner, version=2), 0x88BE, sequence=1)),
            (47, frames.gre(frames.erspan2(inner), 0x22EB, sequence=1)),
            (47, frames.gre(frames.erspan3(inner, kind=1), 0x22EB, sequence=1)),
        ],
        layout.TALLY_ETHERNET: [
            (47, frames.gre(inner, 0x9998)),
            (17, frames.vxlan(frames.ethernet(bytes(46), 0x9998))),
        ],
        layout.TALLY_ARP: [(17, frames.vxlan(frames.ethernet(bytes(28), 0x0806)))],
        layout.TALLY_TCP: [(4, frames.ipv4(bytes(20), protocol=6))],
        layout.TALLY_FRAGMENT: [(4, frames.ipv4(bytes(20), fragment=0x2001))],
    }  # fmt: skip
    for tally, given in cases.items():
        for protocol, body in given:
            rows, decoder = decode(frames.outer_ethernet(frames.outer(body, protocol)))
            assert rows == []
            assert np.flatnonzero(decoder.tallies).tolist() == [tally], (protocol, body.hex())


@pytest.mark.parametrize("name", KINDS)
def test_cut_at_every_length(decode, frames, name):
    """What is before the RoCE headers is told as cut; from there on a row tells it. Nothing raises."""
    protocol, body = frames.TUNNELS[name][0](frames.v2(4, b"", psn=1))
    whole = frames.outer_ethernet(frames.outer(body, protocol))
    known = len(whole) - 24  # UDP with its destination port, BTH, ICRC: the port is known four bytes in
    for length in range(len(whole)):
        rows, decoder = decode(whole[:length])
        assert len(rows) == (length >= known + 4), length
        if not rows:
            assert np.flatnonzero(decoder.tallies).tolist() == [layout.TALLY_CUT], length


def test_rows_that_follow_are_clean(decode, frames):
    """Whatever a tunnel left in a row is gone with the next frame, a frame of another protocol in between or not."""
    tunnelled = []
    for name in KINDS:
        protocol, body = frames.TUNNELS[name][0](frames.v2(4))
        tunnelled.append(frames.outer_ethernet(frames.outer(body, protocol)))
    no_row = frames.outer_ethernet(frames.outer(frames.vxlan(frames.ethernet(bytes(28), 0x0806)), 17))
    plain = frames.v2(4)
    for frame in tunnelled:
        rows, _ = decode(frame)
        rows, _ = decode(no_row, plain)
        assert rows[0]["present"] & MARKS == 0
        assert all(rows[0][key] == 0 for key in ("tunnel", "tunnels", "vni", "session", "gre_seq", "outer_src"))
