"""The same packets over other carriers: real v2 captures as v1 beside tshark, round trips of made ones."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Padding, Raw
from scapy.utils import RawPcapReader, wrpcap
from strategies import carriers, frames

from roce_dissect.errors import ArgumentError
from roce_dissect.layers import (
    BTH,
    GRH,
    LRH,
    CrcVerdict,
    add_vlan,
    add_vxlan,
    carrier,
    rdma_send,
    strip_vlan,
    strip_vxlan,
    to_ipv4,
    to_ipv6,
    to_v1,
    to_v2,
    verify_icrc,
)

SETTINGS = settings(
    max_examples=50, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
ENTROPY = st.integers(0xC000, 0xFFFF)


def transport(packet) -> bytes:
    """BTH to the end of the pad."""
    return packet[BTH].do_build()[:-4]


def read(path, link=None):
    """Frames of a capture, with their numbers and lengths on the wire."""
    with RawPcapReader(str(path)) as reader:
        for number, (frame, meta) in enumerate(reader, 1):
            yield number, conf.l2types[reader.linktype](frame), meta.wirelen


@SETTINGS
@given(frames(carriers(("ipv4",), ENTROPY)))
def test_there_and_back_is_the_same(packet):
    packet = Ether(bytes(packet))
    packet[UDP].chksum = packet[IP].id = 0
    packet[IP].flags = "DF"
    del packet[IP].chksum, packet[BTH].icrc
    packet = Ether(bytes(packet))
    v1 = to_v1(packet)
    assert verify_icrc(v1) is CrcVerdict.GOOD
    assert transport(v1) == transport(packet)
    assert (v1[GRH].dscp << 2 | v1[GRH].ecn, v1[GRH].hop_limit) == (packet[IP].tos, packet[IP].ttl)
    assert v1[GRH].sgid == f"::ffff:{packet[IP].src}"
    assert bytes(to_v2(v1)) == bytes(packet)
    v6 = to_ipv6(packet)
    assert verify_icrc(v6) is CrcVerdict.GOOD
    assert (v6[IPv6].tc, v6[IPv6].hlim, v6[UDP].sport) == (packet[IP].tos, packet[IP].ttl, packet[UDP].sport)
    assert bytes(to_ipv4(v6)) == bytes(packet)


@SETTINGS
@given(frames())
def test_every_packet_becomes_every_version(packet):
    for made in (to_v1(packet), to_v2(packet), to_ipv6(packet), to_ipv4(packet, src="192.0.2.1", dst="192.0.2.2")):
        assert verify_icrc(made) is CrcVerdict.GOOD
        assert transport(made) == transport(Ether(bytes(packet)))
        assert bytes(Ether(bytes(made))) == bytes(made)
    made = add_vxlan(packet, 4242, "198.51.100.1", "198.51.100.2", vlan_id=9)
    assert verify_icrc(made) is CrcVerdict.GOOD
    assert (made[VXLAN].vni, made[IP].len) == (4242, len(bytes(made)) - 18)
    assert bytes(strip_vxlan(made)) == bytes(packet)
    tagged = add_vlan(packet, 77, pcp=5)
    assert (tagged[Dot1Q].vlan, tagged[Dot1Q].prio, verify_icrc(tagged)) == (77, 5, CrcVerdict.GOOD)
    assert bytes(strip_vlan(tagged)) == bytes(strip_vlan(packet))
    assert verify_icrc(strip_vlan(packet)) is CrcVerdict.GOOD


def test_converted_within_a_tunnel():
    inner = rdma_send(carrier("192.0.2.1", "192.0.2.2"), 100, dest_qp=1)[0]
    tunnel = add_vxlan(inner, 7, "2001:db8::1", "2001:db8::2")
    made = to_v1(tunnel)
    assert made[VXLAN].payload[GRH].pay_len == 12 + 100 + 4
    assert made[IPv6].plen == len(bytes(made)) - 54
    assert bytes(strip_vxlan(made)) == bytes(to_v1(inner))


def test_a_wrong_icrc_stays_wrong_by_the_same_bits():
    packet = Ether(bytes(rdma_send(carrier("192.0.2.1", "192.0.2.2"), 8, dest_qp=1)[0]))
    packet[BTH].icrc ^= 0x00400000
    made = to_v1(packet)
    assert verify_icrc(made) is CrcVerdict.BAD
    made[BTH].icrc ^= 0x00400000
    assert verify_icrc(made) is CrcVerdict.GOOD


@pytest.mark.parametrize("checksum", [0, None])
def test_the_udp_checksum_stays_what_it_was(checksum):
    packet = rdma_send(carrier("192.0.2.1", "192.0.2.2"), 8, dest_qp=1)[0]
    packet[UDP].chksum = checksum
    made = to_ipv6(packet)
    if checksum is None:  # computed, and right
        again = Ether(bytes(made))
        del again[UDP].chksum
        assert bytes(again) == bytes(made)
    else:
        assert made[UDP].chksum == 0


def test_sliced_packets_stay_sliced():
    whole = Ether(bytes(rdma_send(carrier("192.0.2.1", "192.0.2.2"), 500, dest_qp=1)[0]))
    sliced = Ether(bytes(whole)[:100])
    made = to_v1(sliced)
    assert made[GRH].pay_len == to_v1(whole)[GRH].pay_len
    assert made[BTH].icrc == b""
    assert bytes(made) == bytes(to_v1(whole))[: len(made)]
    assert len(made[Raw].load) == len(sliced[Raw].load)
    tunnel = add_vxlan(sliced, 1, "198.51.100.1", "198.51.100.2")
    assert bytes(tunnel) == bytes(add_vxlan(whole, 1, "198.51.100.1", "198.51.100.2"))[: len(tunnel)]


def test_frame_padding_is_left_out():
    packet = Ether(bytes(rdma_send(carrier("192.0.2.1", "192.0.2.2"), 0, dest_qp=1)[0]) + bytes(10))
    assert packet[Padding].load == bytes(10)
    assert Padding not in to_v1(packet)


def test_the_flow_label_becomes_a_source_port_as_rdma_core_makes_it():
    v1 = carrier("192.0.2.1", "192.0.2.2", version=1, flow_label=0x12345) / BTH()
    assert to_v2(v1)[UDP].sport == 0xE341  # 0xC000 | (0x12345 & 0x3fff) ^ (0x12345 >> 14)
    assert to_v2(v1, udp_sport=7)[UDP].sport == 7


def test_v2_keeps_its_ip_version():
    packet = carrier("::ffff:192.0.2.1", "::ffff:192.0.2.2") / BTH()
    assert IPv6 in to_v2(packet)
    assert IP in to_v2(to_v1(packet))
    assert IPv6 in to_v2(carrier("fe80::1", "fe80::2", version=1) / BTH())


def test_without_a_link_layer():
    packet = IP(src="192.0.2.1", dst="192.0.2.2") / UDP() / BTH() / b"abcd"
    assert type(to_v1(packet)) is GRH
    assert verify_icrc(to_v1(packet)) is CrcVerdict.GOOD


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: to_v1(Ether() / IP(dst="192.0.2.1") / UDP(sport=1, dport=2)), "no BTH"),
        (lambda: to_v1(LRH() / BTH()), "no UDP and no GRH"),
        (lambda: to_v2(LRH() / GRH() / BTH()), "LRH carries no IP"),
        (lambda: to_ipv4(IPv6(src="fe80::1", dst="fe80::2") / UDP() / BTH()), "fe80::1 stands for no IPv4 address"),
        (lambda: add_vlan(GRH() / BTH(), 1), "an Ethernet frame is needed"),
        (lambda: add_vlan(carrier("192.0.2.1", "192.0.2.2") / BTH(), 4096), "VLAN 4096"),
        (lambda: add_vlan(carrier("192.0.2.1", "192.0.2.2") / BTH(), 1, pcp=8), "priority 8"),
        (lambda: strip_vxlan(Ether() / GRH() / BTH()), "no VXLAN"),
    ],
)
def test_what_cannot_be_is_said(wrong, message):
    with pytest.raises(ArgumentError, match=message):
        wrong()


RUNS = [
    "cm_rping_ipv6.client",
    "cm_rping_vlan.server",
    "encap_qinq.server",
    "flt_rnr_recovers.client",
    "fmt_snap96",
    "k612_flush_atomic_write.server",
    "rc_mix_ipv4_mtu1024.server",
    "rc_mix_ipv6_linklocal.client",
    "ud_mix_ipv4.server",
    "ulp_nvmeof.client",
]


@pytest.mark.parametrize("run", RUNS)
def test_real_captures_as_v1_beside_tshark(run, captures, wireshark, tmp_path):
    """tshark reads the same in the v1 frames as in the v2 frames they were made from."""
    source = captures / f"{run}.pcap.gz"
    if not source.exists():
        pytest.skip(f"{source.name} is not there")
    before = tmp_path / "v2.pcap"
    before.write_bytes(gzip.decompress(source.read_bytes()))
    theirs = wireshark.read(before)
    numbers, made = [], []
    for number, packet, _ in read(before):
        if BTH in packet:
            numbers.append(number)
            made.append(to_v1(packet))
            assert verify_icrc(made[-1]) is verify_icrc(packet), number
    after = tmp_path / "v1.pcap"
    wrpcap(str(after), made)
    fields = wireshark.TRANSPORT | wireshark.ROUTING
    as_v1 = wireshark.read(after, fields)
    for index, (number, packet) in enumerate(zip(numbers, made, strict=True), 1):
        sliced = isinstance(packet[BTH].icrc, bytes)
        ours, read_again = wireshark.both(packet, as_v1[index], sliced=sliced, fields=fields)
        assert ours == read_again, number
        same = {name: value for name, value in as_v1[index].items() if name in theirs[number]}
        unlike = {"invariant.crc"} | ({"data.data"} if sliced else set())
        assert {name: value for name, value in theirs[number].items() if name not in unlike} == {
            name: value for name, value in same.items() if name not in unlike
        }, number


def test_the_corrupted_frames_of_a_capture_stay_corrupted(captures):
    source = captures / "imp_corrupt1.server.pcap.gz"
    if not source.exists():
        pytest.skip(f"{source.name} is not there")
    bad = [
        number
        for number, packet, _ in read(source)
        if number < 350 and BTH in packet and verify_icrc(to_v1(packet)) is CrcVerdict.BAD
    ]
    assert bad == [64, 184, 334]
