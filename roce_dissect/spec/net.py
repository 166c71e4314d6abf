"""Numbers of the layers below: link types, Ethertypes, protocols and ports.

Source: IANA registries; IEEE 802.1Q, 802.3; IBTA annexes A16 (RoCE) and A17 (RoCEv2); tcpdump.org link types.
"""

from __future__ import annotations

# -- link types of pcap and pcapng
LINKTYPE_ETHERNET = 1
LINKTYPE_NAMES = {
    0: "BSD loopback",
    1: "Ethernet",
    101: "raw IP",
    113: "Linux cooked v1",
    147: "user 0",
    197: "ERF",
    228: "raw IPv4",
    229: "raw IPv6",
    247: "InfiniBand",
    276: "Linux cooked v2",
}

# -- Ethertypes
ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
ETHERTYPE_VLAN = 0x8100
ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_MAC_CONTROL = 0x8808
ETHERTYPE_QINQ = 0x88A8
ETHERTYPE_LLDP = 0x88CC
ETHERTYPE_ROCE_V1 = 0x8915
ETHERTYPE_QINQ_OLD = 0x9100  # before 802.1ad

# -- IP protocols and IPv6 extension headers
PROTO_HOP_BY_HOP = 0
PROTO_ICMP = 1
PROTO_TCP = 6
PROTO_UDP = 17
PROTO_IBA = 0x1B  # next header of a GRH: BTH
PROTO_ROUTING = 43
PROTO_FRAGMENT = 44
PROTO_AUTHENTICATION = 51
PROTO_ICMPV6 = 58
PROTO_DESTINATION = 60

#: UDP destination port of RoCE v2, in both directions.
PORT_ROCE_V2 = 4791

# -- ECN, the low two bits of the traffic class
ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE = 0, 1, 2, 3
