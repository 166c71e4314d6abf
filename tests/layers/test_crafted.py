"""Whole packets: requests, replies, carriers; what tshark makes of them."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

from roce_dissect.errors import ArgumentError
from roce_dissect.layers import (
    AETH,
    BTH,
    CNP,
    DETH,
    FETH,
    GRH,
    IETH,
    RDETH,
    RETH,
    XRCETH,
    AtomicAckETH,
    AtomicETH,
    CrcVerdict,
    ImmDt,
    ack,
    atomic_response,
    carrier,
    cnp,
    compare_swap,
    fetch_add,
    nak,
    rdma_atomic_write,
    rdma_flush,
    rdma_read,
    rdma_read_response,
    rdma_send,
    rdma_write,
    rnr_nak,
    roce,
    verify_icrc,
)
from roce_dissect.spec.aeth import CREDITS, RNR_WAIT_NS, NakCode
from roce_dissect.spec.opcodes import operation_name

THERE = carrier("192.0.2.1", "192.0.2.2")


def operations(packets):
    return [operation_name(packet[BTH].opcode) for packet in packets]


@pytest.mark.parametrize(
    ("size", "mtu", "parts", "sizes"),
    [
        (0, 1024, ["ONLY"], [0]),
        (1, 1024, ["ONLY"], [1]),
        (1024, 1024, ["ONLY"], [1024]),
        (1025, 1024, ["FIRST", "LAST"], [1024, 1]),
        (2048, 1024, ["FIRST", "LAST"], [1024, 1024]),
        (2049, 1024, ["FIRST", "MIDDLE", "LAST"], [1024, 1024, 1]),
        (300, 64, ["FIRST", "MIDDLE", "MIDDLE", "MIDDLE", "LAST"], [64, 64, 64, 64, 44]),
    ],
)
@pytest.mark.parametrize(("make", "name"), [(rdma_write, "RC WRITE"), (rdma_send, "RC SEND")], ids=["write", "send"])
def test_message_is_cut_at_the_path_mtu(make, name, size, mtu, parts, sizes):
    data = bytes(index % 251 for index in range(size))
    packets = make(THERE, data, dest_qp=0x11, psn=0xFFFFFE, mtu=mtu)
    assert all(packet[BTH].psn <= 0xFFFFFF for packet in packets)
    packets = [Ether(bytes(packet)) for packet in packets]
    assert operations(packets) == [f"{name} {part}" for part in parts]
    assert [len(packet[Raw].load) if Raw in packet else 0 for packet in packets] == sizes
    assert b"".join(packet[Raw].load for packet in packets if Raw in packet) == data
    assert [packet[BTH].psn for packet in packets] == [(0xFFFFFE + n) & 0xFFFFFF for n in range(len(parts))]
    assert [packet[BTH].ack_req for packet in packets] == [0] * (len(parts) - 1) + [1]
    assert [packet[BTH].pad_count for packet in packets] == [-n % 4 for n in sizes]
    assert all(verify_icrc(packet) for packet in packets)


def test_reth_is_in_the_first_packet_only():
    packets = rdma_write(THERE, 3000, dest_qp=1, va=0x1000, r_key=0x203)
    assert [RETH in packet for packet in packets] == [True, False, False]
    assert (packets[0][RETH].va, packets[0][RETH].r_key, packets[0][RETH].dma_len) == (0x1000, 0x203, 3000)


@pytest.mark.parametrize("asked", [0, 1])
def test_given_fields_are_those_of_all_packets(asked):
    packets = rdma_write(None, 3000, dest_qp=1, ack_req=asked, mig_req=1, p_key=0x8001)
    assert [(packet.ack_req, packet.mig_req, packet.p_key) for packet in packets] == [(asked, 1, 0x8001)] * 3


@pytest.mark.parametrize("size", [8, 2000])
def test_immediate_data_and_invalidation_are_in_the_last(size):
    writes = rdma_write(THERE, size, dest_qp=1, imm_data=7)
    sends = rdma_send(THERE, size, dest_qp=1, imm_data=7)
    invalidating = rdma_send(THERE, size, dest_qp=1, inv_r_key=9)
    for packets, layer in ((writes, ImmDt), (sends, ImmDt), (invalidating, IETH)):
        assert [layer in packet for packet in packets] == [False] * (len(packets) - 1) + [True]
    assert (writes[-1][ImmDt].imm_data, invalidating[-1][IETH].inv_r_key) == (7, 9)


def test_other_transports():
    assert operations(rdma_write(None, 2000, dest_qp=1, transport="UC")) == ["UC WRITE FIRST", "UC WRITE LAST"]
    assert not any(packet.ack_req for packet in rdma_write(None, 2000, dest_qp=1, transport="UC"))
    (datagram,) = rdma_send(None, 8, dest_qp=1, transport="UD", q_key=0x80010000, src_qp=1)
    assert (datagram[DETH].q_key, datagram[DETH].src_qp) == (0x80010000, 1)
    xrc = rdma_send(None, 2000, dest_qp=1, transport="XRC", xrc_srq=5)
    assert [packet[XRCETH].xrc_srq for packet in xrc] == [5, 5]
    rd = rdma_write(None, 8, dest_qp=1, transport="RD", ee_context=3, src_qp=4)
    assert [type(layer) for layer in (rd[0].payload, rd[0].payload.payload, rd[0][RETH])] == [RDETH, DETH, RETH]


def test_read_and_its_responses():
    request = Ether(bytes(rdma_read(THERE, 2500, dest_qp=0x11, psn=0xFFFFFF, va=0x1000, r_key=0x203)))
    assert request[RETH].dma_len == 2500
    responses = [Ether(bytes(packet)) for packet in rdma_read_response(request, dest_qp=0x12, msn=3)]
    assert operations(responses) == [f"RC READ RESPONSE {part}" for part in ("FIRST", "MIDDLE", "LAST")]
    assert [packet[BTH].psn for packet in responses] == [0xFFFFFF, 0, 1]
    assert [packet[AETH].msn if AETH in packet else None for packet in responses] == [3, None, 3]
    assert sum(len(packet[Raw].load) for packet in responses) == 2500
    for packet in responses:
        assert (packet.src, packet.dst) == (request.dst, request.src)
        assert (packet[IP].src, packet[IP].dst) == ("192.0.2.2", "192.0.2.1")
        assert packet[BTH].dest_qp == 0x12
        assert verify_icrc(packet)
        assert bytes(packet[UDP])[4:6] == len(bytes(packet[UDP])).to_bytes(2, "big")


def test_atomics():
    request = compare_swap(THERE, dest_qp=0x11, psn=5, va=0x1000, r_key=2, compare=3, swap=4)
    assert (request[AtomicETH].compare_data, request[AtomicETH].swap_add_data) == (3, 4)
    response = atomic_response(request, 41, dest_qp=0x12)
    assert (response[BTH].psn, response[AtomicAckETH].orig_data) == (5, 41)
    assert fetch_add(None, dest_qp=1, va=8, r_key=2, add=7)[AtomicETH].swap_add_data == 7


def test_memory_placement_extensions():
    request = rdma_flush(THERE, 4096, dest_qp=1, va=8, r_key=2, psn=9, persistence=True, whole_region=True)
    assert (request[FETH].placement, request[FETH].selectivity, request[RETH].dma_len) == (3, 1, 4096)
    (answer,) = rdma_read_response(request, dest_qp=2)
    assert (operation_name(answer[BTH].opcode), answer[BTH].psn, Raw in answer) == ("RC READ RESPONSE ONLY", 9, False)
    assert rdma_atomic_write(None, b"12345678", dest_qp=1, va=8, r_key=2)[RETH].dma_len == 8
    with pytest.raises(ArgumentError, match="8 bytes, not 4"):
        rdma_atomic_write(None, b"1234", dest_qp=1, va=8, r_key=2)


@pytest.mark.parametrize("code", NakCode)
def test_nak_by_name(code):
    (request,) = rdma_send(THERE, 8, dest_qp=0x11, psn=5)
    for name in (code.name, code.name.lower().replace("_", " "), code):
        reply = nak(request, name, dest_qp=0x12, psn=3, msn=7)
        assert (reply[AETH].syndrome, reply[AETH].msn, reply[BTH].psn) == (0x60 | code, 7, 3)


@pytest.mark.parametrize("code", range(32))
def test_rnr_nak_by_time_and_ack_with_credits(code):
    (request,) = rdma_send(None, 8, dest_qp=0x11, psn=5)
    assert rnr_nak(request, RNR_WAIT_NS[code] / 1e6, dest_qp=0x12)[AETH].syndrome == 0x20 | code
    credits = CREDITS[code] if code < 31 else None
    assert ack(request, dest_qp=0x12, credits=credits)[AETH].syndrome == code


def test_replies_go_back_over_any_carrier():
    back = ack(rdma_send(carrier("192.0.2.1", "192.0.2.2", version=1, vlan_id=7), 8, dest_qp=1)[0], dest_qp=2)
    assert (back[GRH].sgid, back[GRH].dgid, back[Dot1Q].vlan) == ("::ffff:192.0.2.2", "::ffff:192.0.2.1", 7)
    back = ack(Ether(bytes(rdma_send(carrier("fe80::1", "fe80::2"), 8, dest_qp=1)[0])), dest_qp=2)
    assert (back[IPv6].src, back[IPv6].dst) == ("fe80::2", "fe80::1")
    assert verify_icrc(Ether(bytes(back))) is CrcVerdict.GOOD
    xrc = rdma_send(None, 8, dest_qp=1, transport="XRC")[0]
    assert operation_name(ack(xrc, dest_qp=2).opcode) == "XRC ACKNOWLEDGE"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: carrier("192.0.2.1", "fe80::1"), "two families"),
        (lambda: carrier("192.0.2.1", "192.0.2.2", version=3), "version 3"),
        (lambda: roce(None, "RC SEND ONLY", va=1), "no header of RC SEND ONLY has a field 'va'"),
        (lambda: rdma_send(None, 8, dest_qp=1, imm_data=1, inv_r_key=1), "not both"),
        (lambda: rdma_send(None, 2000, dest_qp=1, transport="UD"), "2000 bytes are more than the path MTU of 1024"),
        (lambda: rdma_write(None, 8, dest_qp=1, mtu=0), "path MTU 0"),
        (lambda: rdma_write(None, 8, dest_qp=1, mtu=66), "path MTU 66"),
        (lambda: nak(BTH(), "no reason", dest_qp=1), "no NAK is called 'no reason'.*remote access error"),
        (lambda: rnr_nak(BTH(), 0.65, dest_qp=1), r"no code says 0.65 ms \(next to it: 0.64 and 0.96\)"),
        (lambda: rnr_nak(BTH(), 0, dest_qp=1), r"next to it: 0.01\)"),
        (lambda: roce(None, "RC DANCE"), "there is no RC DANCE"),
        (lambda: rdma_send(None, 8, dest_qp=1, inv_r_key=1, transport="UC"), "there is no UC SEND ONLY INV"),
        (lambda: rdma_read(None, 8, dest_qp=1, transport="UC"), "there is no UC READ REQUEST"),
        (lambda: ack(BTH(opcode="UD SEND ONLY"), dest_qp=1), "there is no UD ACKNOWLEDGE"),
        (lambda: ack(BTH(opcode=0xC7), dest_qp=1), "opcode 0xc7 is of no transport"),
        (lambda: ack(BTH(), dest_qp=1, credits=5), r"5 credits \(next to it: 4 and 6\)"),
    ],
)
def test_what_cannot_be_is_said(wrong, message):
    with pytest.raises(ArgumentError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("packet", "line"),
    # first what tshark 4.0.17 prints in its Info column
    [
        # 192.0.2.1 192.0.2.2 RC RDMA Write Only QP=0x000011
        (lambda: rdma_write(THERE, 64, dest_qp=0x11, psn=7, va=0x1000, r_key=0x203)[0],
         "Ether / IP / UDP 192.0.2.1:49152 > 192.0.2.2:4791 / BTH RC WRITE ONLY dest_qp=0x11 psn=7 ack_req / "
         "RETH va=0x1000 r_key=0x203 dma_len=64 / Raw"),
        # RC Acknowledge QP=0x000012
        (lambda: nak(rdma_send(THERE, 8, dest_qp=0x11, psn=7)[0], "remote access error", dest_qp=0x12, msn=3),
         "Ether / IP / UDP 192.0.2.2:49152 > 192.0.2.1:4791 / BTH RC ACKNOWLEDGE dest_qp=0x12 psn=7 / "
         "AETH NAK remote access error msn=3"),
        # UD Send Only QP=0x000001
        (lambda: rdma_send(carrier("fe80::1", "fe80::2", version=1), 8, dest_qp=1, transport="UD", src_qp=1)[0],
         "Ether / GRH fe80::1 > fe80::2 / BTH UD SEND ONLY dest_qp=0x1 psn=0 / DETH q_key=0x0 src_qp=0x1 / Raw"),
        # Unknown Opcode QP=0x000011 (trap 2)
        (lambda: cnp(THERE, dest_qp=0x11),
         "Ether / IP / UDP 192.0.2.1:49152 > 192.0.2.2:4791 / BTH CNP dest_qp=0x11 psn=0 becn / CNP"),
    ],
    ids=["write", "nak", "ud", "cnp"],
)  # fmt: skip
def test_summary(packet, line):
    assert packet().summary() == line


def test_cnp():
    packet = Ether(bytes(cnp(THERE, dest_qp=0x11, mig_req=1)))
    bth = packet[BTH]
    assert (bth.opcode, bth.becn, bth.fecn, bth.psn, bth.dest_qp, bth.mig_req) == (0x81, 1, 0, 0, 0x11, 1)
    assert packet[CNP].reserved == bytes(16)
    assert verify_icrc(packet) is CrcVerdict.GOOD


CARRIERS = [
    carrier("192.0.2.1", "192.0.2.2", vlan_id=100, pcp=3, dscp=26, ecn=2, ttl=7),
    carrier("2001:db8::1", "2001:db8::2", flow_label=0x12345),
    carrier("192.0.2.1", "192.0.2.2", version=1, dscp=26, ecn=2),
]


@pytest.mark.parametrize("there", CARRIERS, ids=["v2 IPv4 VLAN", "v2 IPv6", "v1"])
def test_tshark_reads_every_helper(there, wireshark, tmp_path):
    packets = [
        *rdma_write(there, 3000, dest_qp=0x11, psn=7, va=0x1000, r_key=0x203, imm_data=5),
        *rdma_send(there, 3000, dest_qp=0x11, psn=7, inv_r_key=9),
        *rdma_send(there, 300, dest_qp=0x11, psn=7, transport="UD", q_key=3, src_qp=4),
        rdma_read(there, 3000, dest_qp=0x11, psn=7, va=0x1000, r_key=0x203),
        compare_swap(there, dest_qp=0x11, psn=7, va=0x1000, r_key=2, compare=3, swap=4),
        fetch_add(there, dest_qp=0x11, psn=7, va=0x1000, r_key=2, add=4),
    ]
    packets += rdma_read_response(packets[-3], dest_qp=0x12)
    packets += [atomic_response(packets[5], 1, dest_qp=0x12), ack(packets[0], dest_qp=0x12)]
    packets += [nak(packets[0], "invalid request", dest_qp=0x12), rnr_nak(packets[0], 0.64, dest_qp=0x12)]
    path = tmp_path / "crafted.pcap"
    wrpcap(str(path), packets)
    fields = wireshark.TRANSPORT | wireshark.ROUTING
    theirs = wireshark.read(path, fields)
    assert sorted(theirs) == list(range(1, len(packets) + 1))
    for number, packet in enumerate(packets, 1):
        ours, read = wireshark.both(Ether(bytes(packet)), theirs[number], fields=fields)
        assert ours == read, number
