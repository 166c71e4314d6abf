"""What values mean, in words: enumerations and units of the headers below and of the transport.

Sources: IANA registries; IBTA Vol. 1 and annexes A16, A17, A19; RFC 791, 2474, 3168, 8200.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roce_dissect.spec import net
from roce_dissect.spec.aeth import CREDITS, NO_CREDIT_LIMIT, SyndromeKind, syndrome_kind, syndrome_name
from roce_dissect.spec.bth import MULTICAST_QP, PARTITION_BITS
from roce_dissect.spec.cm import TIMEOUT_UNIT_NS

__all__ = [
    "ack_timeout",
    "constant",
    "dscp",
    "ecn",
    "ether_type",
    "exponential",
    "flag",
    "immediate",
    "ip_protocol",
    "ipv4_checksum",
    "lid",
    "mac",
    "named",
    "octets",
    "p_key",
    "printable",
    "qp",
    "syndrome",
    "udp_port",
    "words_of_four",
]

_ETHER_TYPES = {
    net.ETHERTYPE_IPV4: "IPv4",
    net.ETHERTYPE_ARP: "ARP",
    net.ETHERTYPE_VLAN: "VLAN tag",
    net.ETHERTYPE_IPV6: "IPv6",
    net.ETHERTYPE_MAC_CONTROL: "MAC control",
    net.ETHERTYPE_QINQ: "service VLAN tag (802.1ad)",
    net.ETHERTYPE_QINQ_OLD: "VLAN tag (before 802.1ad)",
    net.ETHERTYPE_LLDP: "LLDP",
    net.ETHERTYPE_MPLS: "MPLS",
    net.ETHERTYPE_MPLS_MULTICAST: "MPLS multicast",
    net.ETHERTYPE_ERSPAN: "ERSPAN I or II",
    net.ETHERTYPE_ERSPAN3: "ERSPAN III",
    net.ETHERTYPE_TEB: "Ethernet frame",
    net.ETHERTYPE_ROCE_V1: "RoCE v1",
}
_PROTOCOLS = {
    net.PROTO_HOP_BY_HOP: "hop-by-hop options",
    net.PROTO_ICMP: "ICMP",
    net.PROTO_IPIP: "IPv4",
    net.PROTO_TCP: "TCP",
    net.PROTO_UDP: "UDP",
    net.PROTO_IPV6: "IPv6",
    net.PROTO_IBA: "BTH",
    net.PROTO_ROUTING: "routing header",
    net.PROTO_FRAGMENT: "fragment header",
    net.PROTO_GRE: "GRE",
    net.PROTO_AUTHENTICATION: "authentication header",
    net.PROTO_ICMPV6: "ICMPv6",
    net.PROTO_DESTINATION: "destination options",
    net.PROTO_MPLS: "MPLS",
}
_PORTS = {net.PORT_ROCE_V2: "RoCE v2", net.PORT_VXLAN: "VXLAN", net.PORT_GENEVE: "GENEVE"}
_ECN = {
    net.ECN_NOT_ECT: "not ECT: takes no part in ECN",
    net.ECN_ECT1: "ECT(1)",
    net.ECN_ECT0: "ECT(0)",
    net.ECN_CE: "CE: congestion experienced",
}
_BROADCAST = (1 << 48) - 1


def named(names: Mapping[int, str], otherwise: str = "") -> Callable[[int], str]:
    """Words from a table."""
    return lambda value: names.get(value, otherwise)


def constant(text: str) -> Callable[[int], str]:
    """The same words for every value."""
    return lambda _: text


def flag(when_set: str, when_clear: str = "") -> Callable[[int], str]:
    """Words of a single bit."""
    return lambda value: when_set if value else when_clear


ether_type = named(_ETHER_TYPES, "an Ethertype that is not dissected")
ip_protocol = named(_PROTOCOLS, "a protocol that is not dissected")
udp_port = named(_PORTS)
ecn = named(_ECN)


def dscp(value: int) -> str:
    """Per-hop behaviour: ``CS3``, ``AF31``, ``EF``."""
    if value == 0:
        return "default (CS0)"
    if value & 7 == 0:
        return f"CS{value >> 3}"
    if value == 46:
        return "EF"
    if value == 44:
        return "VOICE-ADMIT"
    high, low = value >> 3, value & 7
    return f"AF{high}{low >> 1}" if 1 <= high <= 4 and low in (2, 4, 6) else ""


def mac(value: int) -> str:
    """Group and local bits of a MAC address."""
    if value == _BROADCAST:
        return "broadcast"
    if value >> 40 & 1:
        return "multicast"
    return "locally administered" if value >> 40 & 2 else ""


def qp(value: int) -> str:
    """Queue pairs with a task of their own."""
    return {0: "SMI: subnet management", 1: "GSI: management datagrams, the CM's too", MULTICAST_QP: "multicast"}.get(
        value, ""
    )


def p_key(value: int) -> str:
    """Membership, bit 15, and partition, the other bits (IBTA 10.9.1)."""
    partition = value & PARTITION_BITS
    member = "full member" if value >> 15 else "limited member"
    if partition == 0:
        return "invalid: partition 0"
    return f"{member} of {'the default partition' if partition == PARTITION_BITS else f'partition {partition:#x}'}"


def lid(value: int) -> str:
    """Kinds of LIDs (IBTA 4.1.3)."""
    if value == 0:
        return "none"
    if value == 0xFFFF:
        return "permissive"
    return "multicast" if value >= 0xC000 else ""


def octets(value: int) -> str:
    """Unit of a length."""
    return "byte" if value == 1 else "bytes"


def words_of_four(value: int) -> str:
    """A length that counts words of four bytes."""
    return f"{value * 4} bytes"


def syndrome(value: int) -> str:
    """A syndrome, an ACK's credits included: ``RNR NAK 0.64 ms``, ``ACK, 16 credits``."""
    text = syndrome_name(value)
    kind, code = syndrome_kind(value), value & 31
    if kind is SyndromeKind.ACK:
        text += ", no credit limit" if code == NO_CREDIT_LIMIT else f", {CREDITS[code]} credits"
    elif kind is SyndromeKind.RNR_NAK:
        text += f" (timer code {code}): no receive was ready, to be sent again after that"
    return text + (", reserved bit 7 set" if value & 0x80 else "")


def printable(data: bytes) -> str:
    """ASCII of bytes; what is none is a dot."""
    return "".join(chr(octet) if 0x20 <= octet < 0x7F else "." for octet in data)


def immediate(value: int) -> str:
    """Immediate data as decimal number, and as text if it is some."""
    data = value.to_bytes(4, "big").rstrip(b"\0")
    text = f', as text "{data.decode()}"' if data and printable(data).encode() == data else ""
    return f"{value} as a number{text}"


def ack_timeout(code: int) -> str:
    """4.096 us times 2 to the code; 0 is no timeout (IBTA 12.7)."""
    if code == 0:
        return "none: waits for ever"
    return exponential(code)


def exponential(code: int) -> str:
    """4.096 us times 2 to the code."""
    return f"{_time(TIMEOUT_UNIT_NS << code)} (4.096 µs x 2^{code})"


def _time(time_ns: int) -> str:
    for unit, in_ns in (("s", 1_000_000_000), ("ms", 1_000_000)):
        if time_ns >= in_ns:
            return f"{time_ns / in_ns:.4g} {unit}"
    return f"{time_ns / 1000:.4g} µs"


def ipv4_checksum(header: bytes) -> int:
    """What the checksum of an IPv4 header should be (RFC 791), from all of its bytes."""
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, len(header), 2) if at != 10)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
