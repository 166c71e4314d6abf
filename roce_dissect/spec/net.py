"""Numbers of the layers below: link types, Ethertypes, protocols and ports.

Source: IANA registries; IEEE 802.1Q, 802.3; IBTA annexes A16 (RoCE) and A17 (RoCEv2); tcpdump.org link types; RFC 2784,
2890 (GRE), 7637 (NVGRE), 7348 (VXLAN), 8926 (GENEVE), 3032 (MPLS), draft-foschiano-erspan.
"""

from __future__ import annotations

# -- link types of pcap and pcapng
LINKTYPE_NULL = 0  # BSD loopback, address family in the capturing host's byte order
LINKTYPE_ETHERNET = 1
LINKTYPE_RAW_BSD = 12  # raw IP as some systems number it
LINKTYPE_RAW_OPENBSD = 14
LINKTYPE_RAW = 101
LINKTYPE_LOOP = 108  # BSD loopback in network byte order
LINKTYPE_COOKED = 113
LINKTYPE_ERF = 197
LINKTYPE_IPV4 = 228
LINKTYPE_IPV6 = 229
LINKTYPE_INFINIBAND = 247
LINKTYPE_COOKED2 = 276
LINKTYPE_NAMES = {
    0: "BSD loopback",
    1: "Ethernet",
    12: "raw IP",
    14: "raw IP",
    101: "raw IP",
    108: "BSD loopback",
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
ETHERTYPE_MPLS = 0x8847
ETHERTYPE_MPLS_MULTICAST = 0x8848
ETHERTYPE_ERSPAN = 0x88BE  # GRE protocol type of ERSPAN I and II
ETHERTYPE_ERSPAN3 = 0x22EB
ETHERTYPE_TEB = 0x6558  # transparent Ethernet bridging: an Ethernet frame follows
ETHERTYPE_ROCE_V1 = 0x8915
ETHERTYPE_QINQ_OLD = 0x9100  # before 802.1ad

# -- IP protocols and IPv6 extension headers
PROTO_HOP_BY_HOP = 0
PROTO_ICMP = 1
PROTO_IPIP = 4
PROTO_TCP = 6
PROTO_UDP = 17
PROTO_IPV6 = 41
PROTO_IBA = 0x1B  # next header of a GRH: BTH
PROTO_ROUTING = 43
PROTO_FRAGMENT = 44
PROTO_GRE = 47
PROTO_AUTHENTICATION = 51
PROTO_ICMPV6 = 58
PROTO_DESTINATION = 60
PROTO_MPLS = 137

#: UDP destination port of RoCE v2, in both directions.
PORT_ROCE_V2 = 4791
#: UDP destination ports of tunnels.
PORT_VXLAN = 4789
PORT_GENEVE = 6081

# -- address families of a loopback header: IPv4, and IPv6 of Linux, NetBSD and OpenBSD, FreeBSD, macOS
AF_INET = 2
AF_INET6 = 10
AF_INET6_BSD = 24
AF_INET6_FREEBSD = 28
AF_INET6_DARWIN = 30

#: ARPHRD of a cooked capture whose protocol is no Ethertype.
ARPHRD_NETLINK = 824

# -- ERF record types
ERF_ETHERNET = 2
ERF_INFINIBAND = 21

# -- ECN, the low two bits of the traffic class
ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE = 0, 1, 2, 3
