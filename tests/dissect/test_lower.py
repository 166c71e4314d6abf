"""Headers below the transport, by hand-made frames; that their values are the kernel's is for `test_frame.py`."""

from __future__ import annotations

import struct

import pytest

from roce_dissect.dissect.frame import dissect


def names(frame, rows, **more):
    [row] = rows(frame, **more)
    return [section.name for section in dissect(row)]


def told(section):
    return {node.name: (node.value, node.meaning) for node in section.children}


def test_plain_frames(frames, rows):
    assert names(frames.v2(psn=5), rows)[:5] == ["frame", "ethernet", "ipv4", "udp", "bth"]
    assert names(frames.v1(psn=5), rows)[:4] == ["frame", "ethernet", "grh", "bth"]
    assert names(frames.v2_ipv6(psn=5), rows)[:5] == ["frame", "ethernet", "ipv6", "udp", "bth"]


def test_tags(frames, rows, sections):
    frame = frames.v2(tags=((0x88A8, 0x7003), (0x8100, 0x0064)))
    assert names(frame, rows)[:5] == ["frame", "ethernet", "vlan", "vlan2", "ipv4"]
    found = sections(frame)
    assert told(found["ethernet"])["ether_type"] == (0x88A8, "service VLAN tag (802.1ad)")
    vlan = found["vlan"]
    assert [(node.name, node.value, node.first_byte, node.bits) for node in vlan.children] == [
        ("pcp", 3, 14, (7, 5)), ("drop_eligible", 1, 14, (4, 4)), ("vlan_id", 3, 14, (11, 0)),
        ("ether_type", 0x8100, 16, None),
    ]  # fmt: skip
    assert found["vlan2"].find("vlan2_id").value == 100


def test_ipv4(frames, sections):
    frame = bytearray(frames.v2(ip={"tos": 0x6B, "options": b"\x94\x04\x00\x00\x01\x44\x03\x09"}))
    header = sections(bytes(frame))["ipv4"]
    found = told(header)
    assert found["header_len"] == (7, "28 bytes")
    assert found["dscp"] == (26, "AF31")
    assert found["ecn"] == (3, "CE: congestion experienced")
    assert found["protocol"] == (17, "UDP")
    assert found["header_checksum"][1].startswith("bad, 0x")
    right = int(found["header_checksum"][1].split()[1], 16)
    frame[24:26] = right.to_bytes(2, "big")
    assert told(sections(bytes(frame))["ipv4"])["header_checksum"] == (right, "good")
    options = [(node.text, node.meaning, node.first_byte) for node in header.children if node.name == "option"]
    assert options == [
        ("94 04 00 00", "router alert", 34), ("01", "no operation", 38), ("44 03 09", "timestamp", 39),
    ]  # fmt: skip
    assert header.size == 28


@pytest.mark.parametrize("options", [b"\x94\x09\x00\x00", b"\x94\x00\x00\x00", b"\x01\x01\x01\x94", b"\x94\x01\0\0"])
def test_options_whose_length_does_not_fit(frames, sections, options):
    nodes = [node for node in sections(frames.v2(ip={"options": options}))["ipv4"].children if node.name == "option"]
    assert nodes[-1].meaning == "option 148 whose length does not fit"
    assert b"".join(bytes.fromhex(node.value) for node in nodes) == options


def test_ipv6_extension_headers(frames, rows, sections):
    udp = frames.udp(frames.packet(4, b"abc"))
    hop = bytes([44, 1]) + bytes(range(14))
    fragment = bytes([51, 0, 0, 0, 0, 0, 0, 9])
    authentication = bytes([17, 1]) + bytes(10)
    frame = frames.ethernet(frames.ipv6(hop + fragment + authentication + udp, following=0), 0x86DD)
    assert names(frame, rows)[2:6] == ["ipv6", "extension", "fragment", "extension"]
    [row] = rows(frame)
    tree = dissect(row)
    assert [(one.text, one.first_byte, one.size) for one in tree[3:6]] == [
        ("Hop-by-hop options", 54, 16), ("Fragment header", 70, 8), ("Authentication header", 78, 12),
    ]  # fmt: skip
    assert told(tree[3])["next_header"] == (44, "fragment header")
    assert told(tree[3])["header_len"] == (1, "16 bytes")
    assert told(tree[4])["identification"] == (9, "")


def test_vxlan(frames, rows, sections):
    protocol, body = frames.TUNNELS["vxlan_group_policy"][0](frames.v2(psn=9))
    frame = frames.outer_ethernet(frames.outer(body, protocol))
    assert names(frame, rows)[1:8] == ["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp"]
    found = sections(frame)
    assert found["vxlan"].find("vni").value == 0xFFFFFF
    [row] = rows(frame)
    tree = dissect(row)
    assert [section.text for section in tree[1:8]] == [
        "Ethernet", "Outer IPv4", "Outer UDP", "VXLAN", "Ethernet", "IPv4", "UDP",
    ]  # fmt: skip
    assert tree[2].find("outer_src").value == "10.9.9.2"
    assert tree[2].find("ttl").column == ""  # the column is of the inner one
    assert tree[6].find("ttl").column == "ttl"
    assert tree[0].find("tunnel").value == "vxlan"
    assert tree[0].find("tunnel").meaning == "1 tunnel"


def test_geneve_options(frames, sections):
    protocol, body = frames.TUNNELS["geneve_options"][0](frames.v2(psn=9))
    options = [one for one in sections(frames.outer_ethernet(frames.outer(body, protocol)))["geneve"].children
               if one.name == "option"]  # fmt: skip
    assert len(options) == 3
    assert options[1].find("option_class").value == 0x0102
    assert options[1].find("critical").value == 1
    assert options[1].find("content").value == "00000001"
    assert options[1].first_byte == options[0].first_byte + 8


@pytest.mark.parametrize(
    ("name", "section", "field", "value"),
    [
        ("gre_all", "gre", "key", 77), ("gre_all", "gre", "gre_seq", 8), ("gretap_key", "gre", "vni", 77),
        ("nvgre", "gre", "vni", 0x123456), ("nvgre", "gre", "flow_id", 0x78), ("erspan2", "erspan", "session", 1023),
        ("erspan3_sub", "erspan", "platform", 0), ("mpls_in_ip", "mpls", "label", 17),
    ],
)  # fmt: skip
def test_tunnels(frames, rows, name, section, field, value):
    protocol, body = frames.TUNNELS[name][0](frames.v2(psn=9))
    [row] = rows(frames.outer_ethernet(frames.outer(body, protocol)))
    found = [one for one in dissect(row) if one.name == section]
    assert found[-1].find(field).value == value


def test_links(frames, rows):
    ether_type, body = frames.network(frames.v2(psn=9))
    assert names(body, rows, link_type=101)[1:3] == ["ipv4", "udp"]
    assert names(frames.cooked2(body, ether_type), rows, link_type=276)[1:3] == ["cooked", "ipv4"]
    [row] = rows(struct.pack("<I", 2) + body, link_type=0)
    loopback = dissect(row)[1]
    assert (loopback.name, loopback.children[0].meaning) == ("loopback", "IPv4")
    native = frames.native(frames.packet(4, b"abcd"))
    assert names(native, rows, link_type=247)[1:3] == ["lrh", "bth"]
    record = frames.erf(native, extensions=2)
    assert names(record, rows, link_type=197)[1:6] == ["erf", "erf_extension", "erf_extension", "lrh", "bth"]
    assert names(frames.erf(frames.v2(), kind=2), rows, link_type=197)[1:4] == [
        "erf", "erf_ethernet", "ethernet",
    ]  # fmt: skip


def test_lengths_that_disagree(frames, sections):
    for length in (40, 56):  # 52 would be right
        frame = frames.ethernet(frames.ipv4(frames.udp(frames.packet(4, b"abc")), length=length), 0x0800)
        assert sections(frame)["bth"].find("lengths").meaning == "UDP's length is not IP's"
    frame = frames.ethernet(frames.ipv4(frames.udp(frames.packet(4, b"abc"), length=20)), 0x0800)
    assert sections(frame)["no_bth"].meaning == "the lengths leave no room for a BTH and an ICRC"
    frame = frames.ethernet(frames.grh(frames.packet(4), following=17), 0x8915)
    assert sections(frame)["no_bth"].meaning == "the GRH names no BTH"


def test_another_port(frames, rows):
    """A port of RoCE that the user named, even one of a tunnel."""
    from roce_dissect.decode.options import ReadOptions

    frame = frames.ethernet(frames.ipv4(frames.udp(frames.packet(4, b"abc", psn=3), dport=4789)), 0x0800)
    [row] = rows(frame, options=ReadOptions((4789,)))
    assert [section.name for section in dissect(row)][3:5] == ["udp", "bth"]


def test_source_ports_mean_nothing(frames, rows):
    for port in (53, 69, 4789, 6081):
        assert "bth" in names(frames.v2(sport=port), rows)


def test_answers_from_the_port(rows):
    """Some FPGA stacks answer from 4791 to the port that the request came from; a good ICRC proves it."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    from roce_dissect.layers import AETH, BTH

    answer = BTH(opcode="RC ACKNOWLEDGE", dest_qp=5, psn=9) / AETH(syndrome=0x1F, msn=1)
    frame = bytes(Ether(src="02:00:00:00:00:01") / IP(dst="192.0.2.1") / UDP(sport=4791, dport=0xC001) / answer)
    assert names(frame, rows)[3:6] == ["udp", "bth", "aeth"]
