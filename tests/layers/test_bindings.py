"""Where RoCE begins, against Scapy's own ideas and those of scapy.contrib.roce."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scapy.layers.dns import DNS
from scapy.layers.inet import ICMP, IP, UDP, UDPerror
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import CookedLinux, Ether
from scapy.layers.vxlan import VXLAN

from roce_dissect.layers import AETH, BTH

ROOT = Path(__file__).resolve().parents[2]
ACK = bytes.fromhex("1100ffff0000007a00370eeb 1f000001 aa02e77f")  # tshark: RC Acknowledge QP=0x00007a, psn 3608299


def datagram(source: int, destination: int = 4791) -> bytes:
    return source.to_bytes(2, "big") + destination.to_bytes(2, "big") + bytes.fromhex("001c0000") + ACK


@pytest.mark.parametrize("source", [0, 53, 67, 69, 123, 161, 500, 4789, 4791, 8472, 49152, 65535])
def test_the_destination_port_decides(source):
    packet = UDP(datagram(source))
    assert (packet[BTH].dest_qp, packet[BTH].psn, packet[AETH].msn) == (0x7A, 3608299, 1)
    assert bytes(packet) == datagram(source)


def test_every_source_port_that_scapy_binds():
    for conditions, _ in UDP.payload_guess:
        if "sport" in conditions:
            assert BTH in UDP(datagram(conditions["sport"]))


@pytest.mark.parametrize("source", [4791, 1000])
def test_other_destination_ports_are_left_alone(source):
    assert BTH not in UDP(datagram(source, 1000))
    dns = bytes(UDP(sport=source, dport=53) / DNS())
    assert DNS in UDP(dns)


def test_over_ipv6_vxlan_and_cooked_captures():
    ipv6 = IPv6(src="fe80::1", dst="fe80::2") / UDP(datagram(1))
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ipv6
    assert AETH in Ether(bytes(ether))
    assert AETH in IP(bytes(IP(src="192.0.2.1", dst="192.0.2.2") / UDP() / VXLAN(vni=4242) / ether))
    assert AETH in CookedLinux(bytes(CookedLinux(proto=0x86DD) / ipv6))


def test_quoted_by_an_icmp_error():
    # A router quotes the IP header and the first bytes of what it could not deliver.
    quoted = IP(src="192.0.2.1", dst="192.0.2.2") / UDP(datagram(1))
    packet = IP(bytes(IP() / ICMP(type=3, code=1) / bytes(quoted)[:44]))
    assert packet[UDPerror].payload == packet[BTH]
    assert packet[BTH].icrc == b""


ORDERS = {
    "before": "import scapy.contrib.roce as contrib\nfrom roce_dissect.layers import BTH, AETH, GRH\n",
    "after": "from roce_dissect.layers import BTH, AETH, GRH\nimport scapy.contrib.roce as contrib\n",
    "load_contrib": (
        "from scapy.main import load_contrib\nfrom roce_dissect.layers import BTH, AETH, GRH\n"
        "load_contrib('roce')\nimport scapy.contrib.roce as contrib\n"
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_wins_against_contrib_roce_and_leaves_it_usable(order):
    code = ORDERS[order] + (
        "from scapy.layers.inet import IP, UDP\nfrom scapy.layers.l2 import Ether\n"
        f"udp = UDP(bytes.fromhex('{datagram(53).hex()}'))\n"
        "assert type(udp.payload) is BTH and type(udp.payload.payload) is AETH, udp\n"
        f"v1 = bytes(Ether() / GRH() / BTH(bytes.fromhex('{ACK.hex()}')))\n"
        "assert [type(layer) for layer in (Ether(v1).payload, Ether(v1)[BTH])] == [GRH, BTH]\n"
        # and theirs by name: building with its ICRC, dissecting, its own bindings
        "theirs = contrib.BTH(opcode='RC_ACKNOWLEDGE', dqpn=0x7a) / contrib.AETH(msn=1)\n"
        "built = bytes(IP() / UDP() / theirs)\n"
        "assert UDP(built[20:])[BTH].dest_qp == 0x7a and UDP(built[20:]).dport == 4791\n"
        "assert type(contrib.BTH(built[28:]).payload) is contrib.AETH\n"
        "assert contrib.cnp(5)[contrib.BTH].becn == 1\n"
        "assert type(contrib.GRH(bytes(40) + built[28:]).payload) is contrib.BTH\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
