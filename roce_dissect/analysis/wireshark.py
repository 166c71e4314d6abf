"""Our columns in Wireshark's terms: which of its fields hold the same value, and what its printed values mean.

tshark prints a field once for each header that has it, from the outside in: an IPv4 packet in a VXLAN tunnel has two
``ip.src``. Which of them is ours follows from ``frame.protocols``, the list of headers in the same order.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from functools import lru_cache

from roce_dissect.columns import PACKETS

__all__ = [
    "CONTROL_FIELDS",
    "FIELDS",
    "IDENTIFYING_FIELDS",
    "Row",
    "Value",
    "comparable",
    "is_tunnelled",
    "layers_of",
    "understood",
    "values_of",
]

#: A value on either side: addresses are text, all else integers; None: the packet has none.
Value = int | str | None

_BY_NETWORK = {
    "src": {"ip": "ip.src", "ipv6": "ipv6.src", "infiniband": "infiniband.grh.sgid", "": "infiniband.lrh.slid"},
    "dst": {"ip": "ip.dst", "ipv6": "ipv6.dst", "infiniband": "infiniband.grh.dgid", "": "infiniband.lrh.dlid"},
    "dscp": {"ip": "ip.dsfield.dscp", "ipv6": "ipv6.tclass.dscp", "infiniband": "infiniband.grh.tclass"},
    "ecn": {"ip": "ip.dsfield.ecn", "ipv6": "ipv6.tclass.ecn", "infiniband": "infiniband.grh.tclass"},
    "ttl": {"ip": "ip.ttl", "ipv6": "ipv6.hlim", "infiniband": "infiniband.grh.hoplmt"},
    "ip_id": {"ip": "ip.id"},
    "flow_label": {"ipv6": "ipv6.flow", "infiniband": "infiniband.grh.flowlabel"},
    "ip_len": {"ip": "ip.len", "ipv6": "ipv6.plen", "infiniband": "infiniband.grh.paylen"},
}
_OUTER = {
    "outer_src": {"ip": "ip.src", "ipv6": "ipv6.src"},
    "outer_dst": {"ip": "ip.dst", "ipv6": "ipv6.dst"},
}
_TAGS = {
    "vlan_id": (0, {"vlan": "vlan.id", "ieee8021ad": "ieee8021ad.id"}),
    "pcp": (0, {"vlan": "vlan.priority", "ieee8021ad": "ieee8021ad.priority"}),
    "vlan2_id": (1, {"vlan": "vlan.id", "ieee8021ad": "ieee8021ad.id"}),
}
_VNI = {"vxlan": "vxlan.vni", "geneve": "geneve.vni", "gre": "gre.key"}

#: Column -> Wireshark's fields that may hold it.
FIELDS: dict[str, tuple[str, ...]] = {
    column.name: (column.wireshark,) for column in PACKETS.values() if column.wireshark
}
FIELDS |= {name: tuple(fields.values()) for name, fields in {**_BY_NETWORK, **_OUTER}.items()}
FIELDS |= {name: tuple(fields.values()) for name, (_, fields) in _TAGS.items()}
FIELDS["vni"] = tuple(_VNI.values())

#: Fields without which nothing can be compared.
IDENTIFYING_FIELDS = ("frame.number", "frame.protocols", "infiniband.bth.opcode")
_GRE = ("gre.proto", "gre.flags.checksum", "gre.flags.key", "gre.flags.sequence_number")
#: Fields that no column is compared with, but that say what the row is about.
CONTROL_FIELDS = (*IDENTIFYING_FIELDS, *_GRE, "udp.length", "ip.flags.mf", "ipv6.fraghdr.more", "infiniband.grh.sgid")

#: What stands in ``frame.protocols`` for a tunnel other than IP in IP.
_TUNNEL_LAYERS = frozenset({"vxlan", "geneve", "gre", "mpls"})
_NETWORKS = ("ip", "ipv6")
_TRANSPARENT_BRIDGING = 0x6558
_ADDRESSES = frozenset({"src", "dst", "outer_src", "outer_dst"})
_COLON_BYTES = frozenset({"eth_src", "eth_dst", "imm_data", "inv_r_key"})

#: tshark's row of a frame: field -> what it printed, several values with ``|`` between, empty for none.
Row = Mapping[str, str]


def comparable(known: frozenset[str]) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Columns that a tshark with these fields can be asked about, and the others.

    Parameters
    ----------
    known : frozenset of str
        All fields of this tshark.

    Returns
    -------
    (dict, dict)
        Column -> its fields; column -> those of its fields that this tshark lacks. A column of which one form is
        missing (of IPv4, IPv6 and GRH, say) cannot be judged by the others.
    """
    missing = {name: tuple(field for field in fields if field not in known) for name, fields in FIELDS.items()}
    return (
        {name: fields for name, fields in FIELDS.items() if not missing[name]},
        {name: fields for name, fields in missing.items() if fields},
    )


@lru_cache(maxsize=1024)  # what a hostile capture holds must not grow it without end
def layers_of(protocols: str) -> tuple[str, ...]:
    """The headers of ``frame.protocols`` from the outside in, up to and with InfiniBand: no payload's."""
    layers = tuple(protocols.split(":"))
    return layers[: layers.index("infiniband") + 1] if "infiniband" in layers else layers


def is_tunnelled(layers: Sequence[str]) -> bool:
    """Whether tshark found a packet within a packet."""
    return any(layer in _TUNNEL_LAYERS for layer in layers) or sum(layer in _NETWORKS for layer in layers) > 1


def values_of(names: tuple[str, ...], row: Row) -> list[Value]:
    """tshark's values of our columns.

    Parameters
    ----------
    names : tuple of str
        Columns of `FIELDS`.
    row : Row
        What tshark printed of the frame; fields that were not asked for are missing.

    Returns
    -------
    list of (int, str or None)
        One for each column, in our terms: ICRC as zlib gives it, addresses as `ipaddress` prints them, IPv4-mapped ones
        as IPv4. What cannot be understood is returned as it was printed.
    """
    places = _places(names, row["frame.protocols"], bool(row.get("infiniband.grh.sgid")))
    return [_value(name, field, place, row) for name, field, place in places]


def _value(name: str, field: str, place: int, row: Row) -> Value:
    text = row.get(field, "")
    try:
        if name == "vni":
            return _network_identifier(row) if field else None
        if not text:
            return None
        if "|" in text:
            text = _nth(row, field, place)
        elif place > 0:
            return None
        return understood(name, field, text) if text else None
    except (ValueError, OverflowError):
        return text


@lru_cache(maxsize=1024)
def _places(names: tuple[str, ...], protocols: str, has_gid_header: bool) -> tuple[tuple[str, str, int], ...]:
    """(Column, field, which of its values) of a packet with these headers."""
    layers = layers_of(protocols)
    return tuple((name, *_place(name, layers, has_gid_header)) for name in names)


def _place(name: str, layers: Sequence[str], has_gid_header: bool) -> tuple[str, int]:
    """The field that holds a column in a packet with these headers, and which of its values; no field: ``("", 0)``."""
    if name in _TAGS:
        return _tag(*_TAGS[name], layers)
    networks = [layer for layer in layers if layer in _NETWORKS]
    if name in _OUTER:
        # with a GRH inside, each IP header belongs to a tunnel
        if len(networks) <= (not has_gid_header):
            return "", 0
        return _OUTER[name][networks[0]], 0
    if name in _BY_NETWORK:
        network = "infiniband" if has_gid_header else networks[-1] if networks else ""
        return _BY_NETWORK[name].get(network, ""), 0 if has_gid_header else max(networks.count(network) - 1, 0)
    if name == "vni":
        return next((_VNI[layer] for layer in reversed(layers) if layer in _VNI), ""), 0
    field = FIELDS[name][0]
    header = field.partition(".")[0]
    if header in ("gre", "erspan"):  # not each of these headers has the field
        return field, -1
    if header == "udp" and layers[-1] == "infiniband" and layers[-2:] != ("udp", "infiniband"):
        return "", 0  # it is the tunnel's: within is RoCE v1
    return field, max(layers.count(header) - 1, 0)


def _tag(number: int, fields: Mapping[str, str], layers: Sequence[str]) -> tuple[str, int]:
    """The tag with this number, from the outside in, of the innermost Ethernet header."""
    start = max((at for at, layer in enumerate(layers) if layer == "eth"), default=0)
    tags = [at for at, layer in enumerate(layers) if layer in fields and at >= start]
    if number >= len(tags):
        return "", 0
    layer = layers[tags[number]]
    return fields[layer], layers[: tags[number]].count(layer)


def _network_identifier(row: Row) -> Value:
    """VNI, VSID or key of the innermost tunnel that has one."""
    found: Value = None
    seen = dict.fromkeys(_VNI, 0)
    keys = 0
    for layer in layers_of(row["frame.protocols"]):
        if layer not in _VNI:
            continue
        number = seen[layer]
        seen[layer] += 1
        if layer != "gre":
            text = _nth(row, _VNI[layer], number)
            found = int(text, 0) if text else found
            continue
        if not _flag(row, "gre.flags.key", number):
            continue
        key = int(_nth(row, "gre.key", keys), 0)
        keys += 1
        if int(_nth(row, "gre.proto", number), 0) == _TRANSPARENT_BRIDGING:
            # RFC 7637: a 24-bit VSID and a flow id, and no other option of GRE
            plain = not (_flag(row, "gre.flags.checksum", number) or _flag(row, "gre.flags.sequence_number", number))
            found = key >> 8 if plain and key >> 20 else key
    return found


def _nth(row: Row, field: str, number: int) -> str:
    values = row.get(field, "").split("|")
    return values[number] if number < len(values) else ""


def _flag(row: Row, field: str, number: int) -> bool:
    return _nth(row, field, number) in ("1", "True")


def understood(name: str, field: str, text: str) -> int | str:
    """A printed value in our terms.

    Parameters
    ----------
    name : str
        The column.
    field : str
        Wireshark's field, one of `FIELDS` of the column.
    text : str
        What tshark printed: one value.

    Raises
    ------
    ValueError, OverflowError
        It cannot be understood.
    """
    if name in _ADDRESSES:
        return f"LID {int(text, 0)}" if field in ("infiniband.lrh.slid", "infiniband.lrh.dlid") else _address(text)
    if name in _COLON_BYTES:
        return int(text.replace(":", ""), 16)
    if name == "time_ns":
        seconds, _, fraction = text.partition(".")
        return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
    if text in ("True", "False"):
        return int(text == "True")
    value = int(text, 0)
    if field == "infiniband.grh.tclass":
        return value >> 2 if name == "dscp" else value & 3
    if name == "icrc":  # shown as the wire's bytes read big-endian
        return int.from_bytes(value.to_bytes(4, "big"), "little")
    return value


@lru_cache(maxsize=65536)
def _address(text: str) -> str:
    address = ipaddress.ip_address(text)
    return str(getattr(address, "ipv4_mapped", None) or address)
