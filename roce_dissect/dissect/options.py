"""Options of IPv4 and GENEVE: named where they have a name, in bytes otherwise.

Sources: RFC 791, 2113; IANA's registry of IP options; RFC 8926.
"""

from __future__ import annotations

from roce_dissect.dissect import fields as layout
from roce_dissect.dissect.tree import Node, plain_bytes, read_header

__all__ = ["geneve_options", "ipv4_options"]

_IPV4_SIZE = 20
_END, _NO_OPERATION = 0, 1
_OPTIONS = {
    7: "record route",
    68: "timestamp",
    130: "security",
    131: "loose source route",
    134: "commercial security",
    136: "stream id",
    137: "strict source route",
    148: "router alert",
}


def ipv4_options(header: bytes, base: int) -> list[Node]:
    """Nodes of the options of an IPv4 header (all of its bytes that were captured) which begins at `base`."""
    nodes = []
    at = _IPV4_SIZE
    while at < len(header):
        kind = header[at]
        if kind == _END:
            nodes.append(plain_bytes("option", header[at:], base + at, "end of the options"))
            break
        size = 1 if kind == _NO_OPERATION else header[at + 1] if at + 1 < len(header) else 0
        if size < 1 or (size < 2 and kind != _NO_OPERATION) or size > len(header) - at:
            nodes.append(plain_bytes("option", header[at:], base + at, f"option {kind} whose length does not fit"))
            break
        name = "no operation" if kind == _NO_OPERATION else _OPTIONS.get(kind, f"option {kind}")
        nodes.append(plain_bytes("option", header[at : at + size], base + at, name))
        at += size
    return nodes


def geneve_options(options: bytes, base: int) -> list[Node]:
    """Nodes of the options of a GENEVE header, which begin at `base`."""
    nodes = []
    at = 0
    while at < len(options):
        section = read_header(options, at, len(options), "option", "option", layout.GENEVE_OPTION)
        size = 4 + section.values.get("option_len", 0) * 4
        if not section.whole or size > len(options) - at:
            nodes.append(plain_bytes("option", options[at:], base + at, "an option whose length does not fit"))
            break
        for child in section.node.children:
            child.first_byte = base + (child.first_byte or 0)
        section.node.first_byte, section.node.size = base + at, size
        section.node.children.append(plain_bytes("content", options[at + 4 : at + size], base + at + 4))
        nodes.append(section.node)
        at += size
    return nodes
