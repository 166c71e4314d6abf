"""The kernel's field table is the Scapy layers': (word, shift, mask) derived from ``fields_desc`` equals `PACKETS`.

`roce_dissect.layout` says in which word of the row the bytes of each header stand; `PLACES` is that page as data. All
else, the position and width of every field, comes from the Scapy classes.
"""

from __future__ import annotations

import pytest
from scapy.fields import BitField
from scapy.layers.inet import UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

import roce_dissect.layers as layers
from roce_dissect import layout as row
from roce_dissect.columns import PACKETS
from roce_dissect.layers import (
    AETH,
    BTH,
    DETH,
    FETH,
    GRH,
    IETH,
    LRH,
    RDETH,
    RETH,
    XRCETH,
    AtomicAckETH,
    AtomicETH,
    ImmDt,
)
from roce_dissect.layers.trailer import IcrcField, PadField

#: Class: bit of the header where a piece begins, bits of it, word that holds it, shift of the piece's last bit there.
#: A field belongs to the first piece that holds it whole.
PLACES: dict[type[Packet], list[tuple[int, int, int, int]]] = {
    Ether: [(0, 64, row.ETH, 0), (48, 64, row.ETH + 1, 0)],
    Dot1Q: [(0, 16, row.VLAN, 0)],
    LRH: [(0, 64, row.LRH, 0)],
    UDP: [(0, 64, row.UDP, 0)],
    GRH: [(4, 8, row.NET, 56), (56, 8, row.NET, 48), (12, 20, row.NET, 0), (32, 16, row.CHECK, 32)],
    BTH: [(0, 64, row.BTH, 0), (32, 64, row.BTH + 1, 0)],
    RETH: [(0, 64, row.RETH, 0), (64, 64, row.RETH + 1, 0)],
    AtomicETH: [
        (0, 64, row.RETH, 0), (64, 32, row.RETH + 1, 32), (96, 64, row.ATOMIC, 0), (160, 64, row.ATOMIC + 1, 0),
    ],
    AETH: [(0, 32, row.ACK, 32)],
    ImmDt: [(0, 32, row.ACK, 0)],
    DETH: [(0, 64, row.DETH, 0)],
    IETH: [(0, 32, row.KEYS, 0)],
    AtomicAckETH: [(0, 64, row.ATOMIC_ACK, 0)],
    FETH: [(0, 32, row.RDETH, 0)],
    RDETH: [(0, 32, row.RDETH, 32)],
    XRCETH: [(0, 32, row.KEYS, 32)],
}  # fmt: skip

#: Columns whose Scapy field has another name: Scapy's own layers, and what GRH shares with IPv4 and IPv6.
OTHER_NAMES = {
    (Ether, "dst"): "eth_dst",
    (Ether, "src"): "eth_src",
    (Dot1Q, "vlan"): "vlan_id",
    (Dot1Q, "prio"): "pcp",
    (UDP, "sport"): "udp_sport",
    (UDP, "dport"): "udp_dport",
    (UDP, "len"): "udp_len",
    (GRH, "hop_limit"): "ttl",
    (GRH, "pay_len"): "ip_len",
}

#: Fields without a column of their own.
NO_COLUMN = {
    (Ether, "type"),
    (Dot1Q, "dei"),
    (Dot1Q, "type"),
    (UDP, "chksum"),
    (LRH, "lver"),
    (LRH, "reserved2"),
    (LRH, "lnh"),
    (LRH, "reserved5"),
    (LRH, "pkt_len"),
    (GRH, "ip_ver"),
    (GRH, "nxt_hdr"),
    (GRH, "sgid"),  # columns src and dst are codes into the hosts table
    (GRH, "dgid"),
    (BTH, "reserved6"),
    (BTH, "reserved7"),
    (DETH, "reserved"),
    (RDETH, "reserved"),
    (XRCETH, "reserved"),
    (FETH, "reserved"),  # column feth is the whole header
    (FETH, "selectivity"),
    (FETH, "placement"),
}

#: Columns with a place in the row that are no header's field.
NO_FIELD = {
    "time_ns", "wire_len", "cap_len", "status", "present", "version", "src", "dst", "payload_len", "payload_offset",
    "ip_id",  # of Scapy's IPv4, whose word the kernel puts together from several bytes
    "vlan2_id",  # the same field of a second tag
    "feth",
    "icrc",  # behind the payload
    "tunnel", "tunnels", "vni", "session", "gre_seq", "outer_src", "outer_dst",  # of headers that are no RoCE
}  # fmt: skip


def bits_of(field) -> int:
    return field.size if isinstance(field, BitField) else int(field.sz * 8)


def fields_of(layer):
    """Fields of the header itself: (name, first bit, bits)."""
    at = 0
    for field in layer.fields_desc:
        if not isinstance(field, (PadField, IcrcField)):
            yield field.name, at, bits_of(field)
            at += bits_of(field)


def place(layer, at, bits):
    """(word, shift, mask) of bits of a header."""
    for begin, size, word, shift in PLACES[layer]:
        if begin <= at and at + bits <= begin + size:
            return word, shift + begin + size - at - bits, (1 << bits) - 1
    raise AssertionError(f"{layer.__name__} bit {at} is nowhere in the row")


CASES = [
    (layer, name, at, bits) for layer in PLACES for name, at, bits in fields_of(layer) if (layer, name) not in NO_COLUMN
]


@pytest.mark.parametrize(("layer", "name", "at", "bits"), CASES, ids=[f"{c[0].__name__}.{c[1]}" for c in CASES])
def test_column_is_the_field(layer, name, at, bits):
    column = OTHER_NAMES.get((layer, name), name)
    assert PACKETS[column].field == place(layer, at, bits)
    numpy_bits = int(PACKETS[column].dtype.removeprefix("uint"))
    assert bits <= numpy_bits


def test_every_column_is_accounted_for():
    named = {OTHER_NAMES.get((layer, name), name) for layer, name, _, _ in CASES}
    with_place = {name for name, column in PACKETS.items() if column.field is not None}
    assert with_place == named | NO_FIELD
    assert not named & NO_FIELD


def test_feth_is_the_whole_header():
    assert PACKETS["feth"].field == place(FETH, 0, 32)


def test_second_tag():
    word, shift, mask = PACKETS["vlan_id"].field
    assert PACKETS["vlan2_id"].field == (word, shift + 16, mask)


def test_every_header_is_placed():
    classes = {value for value in vars(layers).values() if isinstance(value, type) and issubclass(value, Packet)}
    # CNP: reserved bytes only
    assert classes - {layers.CutHeader, layers.CNP} <= set(PLACES)
