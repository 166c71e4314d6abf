"""Answers *from* port 4791: RoCE where BTH and ICRC agree, UDP where not."""

from __future__ import annotations

import pytest

import roce_dissect as rd
from roce_dissect.layers import AETH, BTH

scapy_all = pytest.importorskip("scapy.all")
Ether, IP, IPv6, Raw, UDP = (getattr(scapy_all, name) for name in ("Ether", "IP", "IPv6", "Raw", "UDP"))


def request(psn):
    return bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2", id=psn) / UDP(sport=50000, dport=4791)
                 / BTH(opcode=4, psn=psn, dest_qp=17, ack_req=1) / Raw(b"data"))  # fmt: skip


def answer(psn, sport=4791, dport=50000, **fields):
    return bytes(Ether() / IP(src="10.0.0.2", dst="10.0.0.1", id=psn) / UDP(sport=sport, dport=dport)
                 / BTH(opcode=0x11, psn=psn, dest_qp=18, **fields) / AETH(syndrome=0x1F, msn=psn))  # fmt: skip


@pytest.fixture
def capture(frames, tmp_path):
    def write(*made, snap=1 << 16):
        path = tmp_path / "capture.pcap"
        path.write_bytes(frames.pcap(made, snap=snap))
        return path

    return write


def test_a_connection_with_such_answers(capture):
    path = capture(*(frame for psn in range(1, 9) for frame in (request(psn), answer(psn))))
    result = rd.analyze(path)
    assert result.capture["roce_packets"] == 16
    assert result.capture["other_packets"]["udp"] == 0
    (connection,) = result.to_dict()["connections"]
    assert (connection["a_to_b"]["requests"], connection["b_to_a"]["acks"]) == (8, 8)
    packets = rd.read_packets(path, ["frame", "udp_sport", "udp_dport", "psn", "syndrome"])
    assert packets["frame"].tolist() == list(range(1, 17))
    assert packets["udp_sport"].tolist() == [50000, 4791] * 8
    assert packets["udp_dport"].tolist() == [4791, 50000] * 8
    assert packets["psn"].tolist() == [psn for psn in range(1, 9) for _ in range(2)]


def test_the_icrc_decides(capture):
    """Wrong, sliced, not looked at: UDP, as any other that happens to come from this port."""
    wrong, other = answer(2)[:-1] + b"\0", answer(3, sport=4790)
    trailed = answer(4) + bytes(20)
    path = capture(request(1), answer(1), wrong, other, trailed, request(2))
    result = rd.analyze(path)
    assert result.capture["roce_packets"] == 4
    assert result.capture["other_packets"]["udp"] == 2
    assert rd.read_packets(path, ["frame"])["frame"].tolist() == [1, 2, 5, 6]
    assert rd.read_packets(path, ["frame"], icrc=False)["frame"].tolist() == [1, 6]
    assert rd.analyze(path, icrc=False).capture["other_packets"]["udp"] == 4
    for size in range(len(answer(1)) - 1, 14, -1):
        assert rd.read_packets(capture(answer(1)[:size]), ["frame"])["frame"].tolist() == []


def test_a_port_of_the_users_needs_no_icrc(capture):
    path = capture(answer(1)[:-1] + b"\0", answer(2)[:-1] + b"\0")
    assert len(rd.read_packets(path)) == 0
    assert rd.read_packets(path, ["psn"], ports=[50000])["psn"].tolist() == [1, 2]


def test_no_roce_beyond_doubt(capture):
    """A right ICRC, but a version or an opcode that is none: no RoCE."""
    path = capture(answer(1, tver=1), answer(2, dport=4789), answer(3, dport=6081))
    assert rd.analyze(path).capture["roce_packets"] == 0
