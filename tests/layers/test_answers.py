"""Which packet answers which; `sr` with sockets, and between two network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from scapy.config import conf
from scapy.layers.dns import DNS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.sendrecv import sndrcv
from scapy.supersocket import SuperSocket

from roce_dissect.layers import (
    BTH,
    DETH,
    GRH,
    LRH,
    ack,
    atomic_response,
    carrier,
    cnp,
    compare_swap,
    nak,
    rdma_flush,
    rdma_read,
    rdma_read_response,
    rdma_send,
    rdma_write,
    rnr_nak,
)

ROOT = Path(__file__).resolve().parents[2]
THERE = carrier("192.0.2.1", "192.0.2.2")
SEND = rdma_send(THERE, 8, dest_qp=0x11, psn=5)[0]
READ = rdma_read(THERE, 5000, dest_qp=0x11, psn=0xFFFFFF)
ATOMIC = compare_swap(THERE, dest_qp=0x11, psn=5, va=0, r_key=0, compare=0, swap=0)
SILENT = rdma_send(THERE, 8, dest_qp=0x11, psn=5, ack_req=0)[0]
FLUSH = rdma_flush(THERE, 8, dest_qp=0x11, psn=5, va=0, r_key=0)
BACK = {"dest_qp": 0x12}

YES = {
    "an ACK": (ack(SEND, **BACK), SEND),
    "a later ACK of one that asked": (ack(SEND, psn=9, **BACK), SEND),
    "the ACK of one that did not ask": (ack(SILENT, **BACK), SILENT),
    "a NAK": (nak(SEND, "remote access error", **BACK), SEND),
    "a NAK with the PSN expected instead": (nak(SEND, "PSN sequence error", psn=0xFFFFFF, **BACK), SEND),
    "an RNR NAK": (rnr_nak(SEND, 0.64, **BACK), SEND),
    "the first response": (rdma_read_response(READ, **BACK)[0], READ),
    "the last response": (rdma_read_response(READ, **BACK)[-1], READ),
    "a NAK within a READ": (nak(READ, "remote operational error", psn=1, **BACK), READ),
    "an atomic response": (atomic_response(ATOMIC, 1, **BACK), ATOMIC),
    "the answer to a FLUSH": (rdma_read_response(FLUSH, **BACK)[0], FLUSH),
}
NO = {
    "an earlier ACK": (ack(SEND, psn=4, **BACK), SEND),
    "a later ACK of one that did not ask": (ack(SILENT, psn=6, **BACK), SILENT),
    "an ACK of a READ": (ack(READ, **BACK), READ),
    "an ACK of an atomic": (ack(ATOMIC, **BACK), ATOMIC),
    "another NAK": (nak(SEND, "remote access error", psn=6, **BACK), SEND),
    "a NAK sequence error before": (nak(SEND, "PSN sequence error", psn=6, **BACK), SEND),
    "a response before the READ": (rdma_read_response(READ, psn=0xFFFFFE, **BACK)[0], READ),
    "a response behind the READ": (rdma_read_response(READ, psn=79, **BACK)[0], READ),
    "a READ response to an atomic": (rdma_read_response(READ, psn=5, **BACK)[0], ATOMIC),
    "a request": (rdma_send(THERE, 8, dest_qp=0x12, psn=5)[0], SEND),
    "a CNP": (cnp(carrier("192.0.2.2", "192.0.2.1"), **BACK), SEND),
    "another transport": (ack(rdma_send(THERE, 8, dest_qp=1, psn=5, transport="XRC")[0], **BACK), SEND),
    "from elsewhere": (ack(rdma_send(carrier("192.0.2.3", "192.0.2.4"), 8, dest_qp=1, psn=5)[0], **BACK), SEND),
    "UC": (ack(SEND, **BACK), rdma_send(THERE, 8, dest_qp=1, psn=5, transport="UC")[0]),
}


@pytest.mark.parametrize("what", YES)
def test_answers(what):
    reply, request = (Ether(bytes(packet)) for packet in YES[what])
    assert reply.answers(request)
    assert reply.hashret() == request.hashret()
    assert not request.answers(reply)


@pytest.mark.parametrize("what", NO)
def test_answers_not(what):
    reply, request = (Ether(bytes(packet)) for packet in NO[what])
    assert not reply.answers(request)


@pytest.mark.parametrize(
    "there",
    [
        carrier("fe80::1", "fe80::2"),
        carrier("192.0.2.1", "192.0.2.2", vlan_id=5),
        carrier("192.0.2.1", "192.0.2.2", version=1),
        carrier("192.0.2.1", "192.0.2.2", udp_sport=0xC123),
        LRH(dlid=1, slid=2),
        LRH(dlid=1, slid=2) / GRH(sgid="fe80::1", dgid="fe80::2"),
        None,
    ],
    ids=["IPv6", "VLAN", "v1", "other port", "native", "native global", "alone"],
)
def test_over_any_carrier(there):
    (request,) = rdma_send(there, 8, dest_qp=0x11, psn=5)
    reply = ack(request, **BACK)
    again = type(request)(bytes(reply)), type(request)(bytes(request))
    for answer, asked in ((reply, request), again):
        assert answer.answers(asked)
        assert answer.hashret() == asked.hashret()


def test_other_ends_do_not_answer():
    for there, elsewhere in (
        (GRH(sgid="fe80::1", dgid="fe80::2"), GRH(sgid="fe80::3", dgid="fe80::1")),
        (LRH(slid=1, dlid=2), LRH(slid=3, dlid=1)),
    ):
        (request,) = rdma_send(there, 8, dest_qp=0x11, psn=5)
        reply = ack(request, **BACK)
        assert reply.answers(request)
        assert not (elsewhere / reply[BTH].copy()).answers(request)
        assert not reply.answers(request[BTH])


def test_any_source_port_may_answer_and_other_ports_are_scapys():
    reply = ack(SEND, **BACK)
    reply[UDP].sport = 0xDEAD
    assert reply.answers(SEND)
    dns = IP(src="192.0.2.2", dst="192.0.2.1") / UDP(sport=53, dport=1000) / DNS(qr=1)
    asked = IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=1000, dport=53) / DNS()
    assert dns.answers(asked)
    asked[UDP].sport = 1001
    assert not dns.answers(asked)


def test_datagrams():
    def datagram(source, destination, from_qp, to_qp):
        there = carrier(source, destination)
        return rdma_send(there, 8, dest_qp=to_qp, transport="UD", q_key=7, src_qp=from_qp)[0]

    asked = datagram("192.0.2.1", "192.0.2.2", 2, 1)
    assert datagram("192.0.2.2", "192.0.2.1", 1, 2).answers(asked)
    assert not datagram("192.0.2.2", "192.0.2.1", 1, 3).answers(asked)
    assert not (BTH(opcode="UD SEND ONLY") / DETH(src_qp=1)).answers(BTH(opcode="RC SEND ONLY"))


def test_a_cut_acknowledgement_answers_nothing():
    reply = Ether(bytes(ack(SEND, **BACK))[:54])
    assert not reply.answers(Ether(bytes(SEND)))


class Responder(SuperSocket):
    """A socket whose other end acknowledges what asks for it and answers READs."""

    def __init__(self):
        self.ins = self.outs = open(os.devnull, "rb")  # noqa: SIM115  (Scapy closes it)
        self.waiting = []

    def send(self, packet):
        request = Ether(bytes(packet))
        if request[BTH].opcode == READ_REQUEST:
            self.waiting += rdma_read_response(request, **BACK)
        elif request[BTH].ack_req:
            self.waiting.append(ack(request, **BACK))
        return len(packet)

    def recv(self, x=65535, **kwargs):
        return Ether(bytes(self.waiting.pop(0))) if self.waiting else None

    @staticmethod
    def select(sockets, remain=None):
        ready = [one for one in sockets if getattr(one, "waiting", None)]
        if not ready:
            time.sleep(min(0.01, remain or 0.01))
        return ready


READ_REQUEST = 0x0C


def test_sr_over_a_socket():
    requests = rdma_write(THERE, 3000, dest_qp=0x11, psn=7)
    answered, unanswered = sndrcv(Responder(), requests, timeout=1, verbose=0)
    assert [(query[BTH].psn, answer[BTH].psn) for query, answer in answered] == [(9, 9)]
    assert [packet[BTH].psn for packet in unanswered] == [7, 8]
    answered, _ = sndrcv(Responder(), [READ], timeout=1, multi=True, verbose=0)
    assert [answer[BTH].psn for _, answer in answered] == [0xFFFFFF, 0, 1, 2, 3]


NAMESPACE = """
import socket, sys
from scapy.all import IP, UDP, conf, sendp, sniff, sr1
from roce_dissect.layers import *
conf.verb = 0
if sys.argv[1] == "responder":
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # else the kernel says that the port is unreachable
    listener.bind(("", 4791))
    def reply(packet):
        if BTH in packet and packet[IP].dst == "198.51.100.2":
            sendp(nak(packet, "invalid request", dest_qp=0x12), iface="r1")
            return True
    sniff(iface="r1", stop_filter=reply, store=False, timeout=20, started_callback=lambda: print("ready", flush=True))
else:
    (asked,) = rdma_send(IP(dst="198.51.100.2") / UDP(sport=0xC123), b"hello", dest_qp=0x11, psn=7)
    answer = sr1(asked, iface="r0", timeout=10)
    print(answer[AETH].code, answer[BTH].psn, hex(answer[BTH].dest_qp), verify_icrc(answer).name)
"""


@pytest.mark.namespace
def test_sr1_between_two_namespaces(tmp_path):
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip(8)")
    one, two = (f"rdl-{uuid.uuid4().hex[:6]}-{end}" for end in "ab")
    script = tmp_path / "ends.py"
    script.write_text(NAMESPACE)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def ip(*words):
        return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)

    if ip("netns", "add", one).returncode:
        pytest.skip("no network namespaces here")
    try:
        ip("netns", "add", two)
        made = ip("-n", one, "link", "add", "r0", "type", "veth", "peer", "name", "r1", "netns", two)
        if made.returncode:
            pytest.skip("no veth here")
        for name, device, address in ((one, "r0", "198.51.100.1/24"), (two, "r1", "198.51.100.2/24")):
            ip("-n", name, "addr", "add", address, "dev", device)
            ip("-n", name, "link", "set", device, "up")
            ip("-n", name, "link", "set", "lo", "up")
        inside = ["ip", "netns", "exec"]
        responder = subprocess.Popen(
            [*inside, two, sys.executable, str(script), "responder"], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert responder.stdout.readline() == "ready\n"
            asked = subprocess.run(
                [*inside, one, sys.executable, str(script), "requester"],
                env=environment, capture_output=True, text=True, timeout=40, check=False,
            )  # fmt: skip
        finally:
            responder.kill()
            responder.wait()
    finally:
        ip("netns", "del", one)
        ip("netns", "del", two)
    assert asked.stdout == "1 7 0x12 GOOD\n", asked.stderr


def test_scapys_settings_are_left_alone():
    assert conf.checkIPsrc
    assert conf.checkIPaddr
