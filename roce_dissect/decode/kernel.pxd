# Written by tools/make_pxd.py from roce_dissect.layout: change that, not this.
cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define roce_dissect_prefetch(address) __builtin_prefetch(address)
    #else
    #define roce_dissect_prefetch(address) ((void)(address))
    #endif
    """
    void prefetch "roce_dissect_prefetch" (const void *address) nogil

cdef enum:
    HAS_RDETH = 1
    HAS_DETH = 2
    HAS_XRCETH = 4
    HAS_FETH = 8
    HAS_RETH = 16
    HAS_ATOMIC_ETH = 32
    HAS_AETH = 64
    HAS_ATOMIC_ACK_ETH = 128
    HAS_IMMDT = 256
    HAS_IETH = 512
    HAS_CNP = 1024
    HAS_ETH = 65536
    HAS_VLAN = 131072
    HAS_VLAN2 = 262144
    HAS_IPV4 = 524288
    HAS_IPV6 = 1048576
    HAS_GRH = 2097152
    HAS_UDP = 4194304
    HAS_BTH = 8388608
    HAS_ICRC = 16777216
    BTH_SIZE = 12
    GRH_SIZE = 40
    ICRC_SIZE = 4
    LINKTYPE_ETHERNET = 1
    ETHERTYPE_IPV4 = 2048
    ETHERTYPE_ARP = 2054
    ETHERTYPE_VLAN = 33024
    ETHERTYPE_IPV6 = 34525
    ETHERTYPE_MAC_CONTROL = 34824
    ETHERTYPE_QINQ = 34984
    ETHERTYPE_LLDP = 35020
    ETHERTYPE_ROCE_V1 = 35093
    ETHERTYPE_QINQ_OLD = 37120
    PROTO_HOP_BY_HOP = 0
    PROTO_ICMP = 1
    PROTO_TCP = 6
    PROTO_UDP = 17
    PROTO_IBA = 27
    PROTO_ROUTING = 43
    PROTO_FRAGMENT = 44
    PROTO_AUTHENTICATION = 51
    PROTO_ICMPV6 = 58
    PROTO_DESTINATION = 60
    PORT_ROCE_V2 = 4791
    ECN_NOT_ECT = 0
    ECN_ECT1 = 1
    ECN_ECT0 = 2
    ECN_CE = 3
    TIME = 0
    FRAME = 1
    LENGTHS = 2
    STATE = 3
    PAYLOAD = 4
    OFFSET = 5
    HOSTS = 6
    ETH = 7
    VLAN = 9
    NET = 10
    CHECK = 11
    UDP = 12
    BTH = 13
    RETH = 15
    ACK = 17
    COMMON = 18
    DETH = 18
    KEYS = 19
    ATOMIC = 20
    ATOMIC_ACK = 22
    RDETH = 23
    WORDS = 24
    RARE = 687
    UNKNOWN_OPCODE = 32768
    STATUS_OK = 0
    STATUS_CUT = 1
    STATUS_MALFORMED = 2
    STATUS_UNKNOWN_OPCODE = 3
    STATUS_UNKNOWN_VERSION = 4
    TALLY_ROCE = 0
    TALLY_CUT = 1
    TALLY_FRAGMENT = 2
    TALLY_MALFORMED = 3
    TALLY_LINK = 4
    TALLY_ARP = 5
    TALLY_MAC_CONTROL = 6
    TALLY_LLDP = 7
    TALLY_TCP = 8
    TALLY_UDP = 9
    TALLY_ICMP = 10
    TALLY_IP = 11
    TALLY_ETHERNET = 12
    TALLIES = 16
