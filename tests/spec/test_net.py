"""Numbers of the layers below, against IANA's and IEEE's registries."""

from __future__ import annotations

import socket

from roce_dissect.spec import net


def test_ethertypes():
    assert (net.ETHERTYPE_IPV4, net.ETHERTYPE_ARP, net.ETHERTYPE_IPV6) == (0x0800, 0x0806, 0x86DD)
    assert (net.ETHERTYPE_VLAN, net.ETHERTYPE_QINQ, net.ETHERTYPE_QINQ_OLD) == (0x8100, 0x88A8, 0x9100)
    assert (net.ETHERTYPE_ROCE_V1, net.ETHERTYPE_LLDP, net.ETHERTYPE_MAC_CONTROL) == (0x8915, 0x88CC, 0x8808)


def test_protocols_are_the_systems():
    assert net.PROTO_TCP == socket.IPPROTO_TCP
    assert net.PROTO_UDP == socket.IPPROTO_UDP
    assert net.PROTO_ICMP == socket.IPPROTO_ICMP
    assert net.PROTO_ICMPV6 == socket.IPPROTO_ICMPV6
    assert net.PROTO_FRAGMENT == socket.IPPROTO_FRAGMENT
    assert net.PROTO_ROUTING == socket.IPPROTO_ROUTING
    assert net.PROTO_DESTINATION == socket.IPPROTO_DSTOPTS
    assert net.PROTO_HOP_BY_HOP == socket.IPPROTO_HOPOPTS
    assert net.PROTO_AUTHENTICATION == socket.IPPROTO_AH
    assert net.PROTO_IBA == 27
    assert net.PORT_ROCE_V2 == 4791


def test_ecn():
    """RFC 3168: 01 is ECT(1), 10 is ECT(0)."""
    assert (net.ECN_NOT_ECT, net.ECN_ECT1, net.ECN_ECT0, net.ECN_CE) == (0b00, 0b01, 0b10, 0b11)
