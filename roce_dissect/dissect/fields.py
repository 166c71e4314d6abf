"""Fields of the headers below the transport, which no layer of ours defines.

Sources: IEEE 802.3, 802.1Q; tcpdump.org link types; RFC 791, 768, 8200, 4302, 7348 (VXLAN), 8926 (GENEVE), 2784 and
2890 (GRE), 7637 (NVGRE), 3032 (MPLS), draft-foschiano-erspan, draft-smith-vxlan-group-policy.
"""

from __future__ import annotations

from roce_dissect.dissect import words
from roce_dissect.dissect.tree import Field
from roce_dissect.spec import net

__all__ = [
    "CONTROL_WORD",
    "COOKED",
    "COOKED2",
    "ERF",
    "ERF_EXTENSION",
    "ERF_PAD",
    "ERSPAN2",
    "ERSPAN3",
    "ERSPAN3_SUBHEADER",
    "ETHERNET",
    "EXTENSION",
    "FRAGMENT",
    "GENEVE",
    "GENEVE_OPTION",
    "GRE",
    "GRETAP_KEY",
    "GRE_CHECKSUM",
    "GRE_KEY",
    "GRE_SEQUENCE",
    "IPV4",
    "IPV6",
    "LOOPBACK",
    "MPLS",
    "NVGRE_KEY",
    "UDP",
    "VLAN",
    "VLAN2",
    "VXLAN",
    "loopback_family",
]  # fmt: skip

_PACKET_TYPES = {0: "to this host", 1: "broadcast", 2: "multicast", 3: "to another host", 4: "sent by this host"}
_ARPHRD = {1: "Ethernet", 772: "loopback", 824: "netlink", 778: "GRE over IP", 768: "IP in IP"}
_FAMILIES = {
    net.AF_INET: "IPv4",
    net.AF_INET6: "IPv6",
    net.AF_INET6_BSD: "IPv6",
    net.AF_INET6_FREEBSD: "IPv6",
    net.AF_INET6_DARWIN: "IPv6",
}

# -- links
ETHERNET = (
    Field("eth_dst", 48, "mac", words.mac, "eth_dst"),
    Field("eth_src", 48, "mac", words.mac, "eth_src"),
    Field("ether_type", 16, "hex", words.ether_type),
)
VLAN = (
    Field("pcp", 3, "dec", None, "pcp"),
    Field("drop_eligible", 1, "dec", words.flag("may be dropped first")),
    Field("vlan_id", 12, "dec", words.named({0: "priority tag only"}), "vlan_id"),
    Field("ether_type", 16, "hex", words.ether_type),
)
VLAN2 = (Field("pcp", 3), VLAN[1], Field("vlan2_id", 12, "dec", VLAN[2].words, "vlan2_id"), VLAN[3])
COOKED = (
    Field("packet_type", 16, "dec", words.named(_PACKET_TYPES)),
    Field("arphrd", 16, "dec", words.named(_ARPHRD)),
    Field("address_len", 16),
    Field("address", 64, "bytes"),
    Field("protocol", 16, "hex", words.ether_type),
)
COOKED2 = (
    Field("protocol", 16, "hex", words.ether_type),
    Field("reserved", 16, "hex"),
    Field("interface", 32),
    Field("arphrd", 16, "dec", words.named(_ARPHRD)),
    Field("packet_type", 8, "dec", words.named(_PACKET_TYPES)),
    Field("address_len", 8),
    Field("address", 64, "bytes"),
)
LOOPBACK = (Field("family", 32, "hex"),)
ERF = (
    Field("timestamp", 64, "bytes"),
    Field("extension", 1, "dec", words.flag("extension headers follow")),
    Field("type", 7, "dec", words.named({net.ERF_ETHERNET: "Ethernet", net.ERF_INFINIBAND: "InfiniBand"})),
    Field("flags", 8, "hex"),
    Field("record_len", 16),
    Field("losses", 16),
    Field("erf_wire_len", 16),
)
ERF_EXTENSION = (
    Field("extension", 1, "dec", words.flag("another one follows")),
    Field("type", 7),
    Field("content", 56, "bytes"),
)
ERF_PAD = (Field("offset", 8), Field("pad", 8))

# -- IP and UDP
IPV4 = (
    Field("ip_version", 4),
    Field("header_len", 4, "dec", words.words_of_four),
    Field("dscp", 6, "dec", words.dscp, "dscp"),
    Field("ecn", 2, "dec", words.ecn, "ecn"),
    Field("ip_len", 16, "dec", words.named({0: "left to the NIC's segmentation"}, "bytes, header included"), "ip_len"),
    Field("ip_id", 16, "hex+dec", None, "ip_id"),
    Field("reserved", 1),
    Field("dont_fragment", 1),
    Field("more_fragments", 1),
    Field("fragment_offset", 13),
    Field("ttl", 8, "dec", None, "ttl"),
    Field("protocol", 8, "dec", words.ip_protocol),
    Field("header_checksum", 16, "hex"),
    Field("src", 32, "ipv4", None, "src"),
    Field("dst", 32, "ipv4", None, "dst"),
)
IPV6 = (
    Field("ip_version", 4),
    Field("dscp", 6, "dec", words.dscp, "dscp"),
    Field("ecn", 2, "dec", words.ecn, "ecn"),
    Field("flow_label", 20, "hex", None, "flow_label"),
    Field("ip_len", 16, "dec", words.named({0: "a jumbo payload, or left to the NIC"}, "bytes behind this"), "ip_len"),
    Field("next_header", 8, "dec", words.ip_protocol),
    Field("ttl", 8, "dec", None, "ttl"),
    Field("src", 128, "ipv6", None, "src"),
    Field("dst", 128, "ipv6", None, "dst"),
)  # fmt: skip
#: First bytes of extension headers; that of fragments is whole.
EXTENSION = (Field("next_header", 8, "dec", words.ip_protocol), Field("header_len", 8), Field("content", 48, "bytes"))
FRAGMENT = (
    Field("next_header", 8, "dec", words.ip_protocol),
    Field("reserved", 8),
    Field("fragment_offset", 13),
    Field("reserved2", 2),
    Field("more_fragments", 1),
    Field("identification", 32, "hex"),
)
UDP = (
    Field("udp_sport", 16, "dec", None, "udp_sport"),
    Field("udp_dport", 16, "dec", words.udp_port, "udp_dport"),
    Field("udp_len", 16, "dec", words.octets, "udp_len"),
    Field("udp_checksum", 16, "hex", words.named({0: "none"})),
)

# -- tunnels
VXLAN = (
    Field("flags", 8, "hex"),
    Field("reserved", 8, "hex"),
    Field("group_policy", 16, "dec"),
    Field("vni", 24, "dec+hex", None, "vni"),
    Field("reserved2", 8, "hex"),
)
GENEVE = (
    Field("geneve_version", 2),
    Field("options_len", 6, "dec", words.words_of_four),
    Field("control", 1),
    Field("critical", 1),
    Field("reserved", 6),
    Field("protocol", 16, "hex", words.ether_type),
    Field("vni", 24, "dec+hex", None, "vni"),
    Field("reserved2", 8, "hex"),
)
GENEVE_OPTION = (
    Field("option_class", 16, "hex"),
    Field("critical", 1),
    Field("option_type", 7),
    Field("reserved", 3),
    Field("option_len", 5, "dec", words.words_of_four),
)
GRE = (
    Field("has_checksum", 1),
    Field("has_routing", 1),
    Field("has_key", 1),
    Field("has_sequence", 1),
    Field("reserved", 9),
    Field("gre_version", 3),
    Field("protocol", 16, "hex", words.ether_type),
)
GRE_CHECKSUM = (Field("gre_checksum", 16, "hex"), Field("reserved", 16, "hex"))
GRE_KEY = (Field("key", 32, "dec+hex"),)
#: The key names a virtual network where an Ethernet frame follows: all of it, or NVGRE's part.
GRETAP_KEY = (Field("vni", 32, "dec+hex", words.constant("the GRE key"), "vni"),)
NVGRE_KEY = (Field("vni", 24, "dec+hex", words.constant("VSID"), "vni"), Field("flow_id", 8))
GRE_SEQUENCE = (Field("gre_seq", 32, "dec", None, "gre_seq"),)
ERSPAN2 = (
    Field("erspan_version", 4, "dec", words.named({1: "type II"})),
    Field("original_vlan", 12),
    Field("cos", 3),
    Field("encapsulation", 2),
    Field("truncated", 1),
    Field("session", 10, "dec", None, "session"),
    Field("reserved", 12),
    Field("index", 20),
)
ERSPAN3 = (
    Field("erspan_version", 4, "dec", words.named({2: "type III"})),
    Field("original_vlan", 12),
    Field("cos", 3),
    Field("health", 2),
    Field("truncated", 1),
    Field("session", 10, "dec", None, "session"),
    Field("timestamp", 32),
    Field("security_group", 16),
    Field("pdu", 1),
    Field("frame_type", 5, "dec", words.named({0: "Ethernet", 2: "IP"})),
    Field("hardware", 6),
    Field("direction", 1, "dec", words.named({0: "ingress", 1: "egress"})),
    Field("granularity", 2),
    Field("subheader", 1, "dec", words.flag("a platform's subheader follows")),
)
ERSPAN3_SUBHEADER = (Field("platform", 6), Field("content", 58))
MPLS = (
    Field("label", 20),
    Field("traffic_class", 3),
    Field("bottom", 1, "dec", words.flag("the last label")),
    Field("ttl", 8),
)
CONTROL_WORD = (Field("control_word", 32, "hex"),)


def loopback_family(family: int) -> str:
    """Words for the family of a loopback header, in either byte order."""
    return _FAMILIES.get(family, "")
