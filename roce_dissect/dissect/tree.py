"""Nodes of a dissection, and how the fields of a header become nodes.

The tree is made of plain values, so that text, JSON, a report or a notebook can show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

from roce_dissect.decode.hosts import address_text

__all__ = ["Field", "Node", "Section", "fields_size", "plain_bytes", "read_header"]

_SHOWN_HEX = 16  # bytes of a field that is only bytes
_FEW = 4


@dataclass(slots=True)
class Node:
    """A field, or a header with its fields.

    Attributes
    ----------
    name : str
        The packet table's column where there is one of that value, else a name in its style.
    value : int, str or None
        As the packet table has it: IP addresses as text, MAC addresses as numbers; bytes are hexadecimal digits. None:
        nothing but `children`, or what is not there.
    text : str
        The value as people want to read it, in its usual base; a section's title.
    meaning : str
        What the value means, in words.
    first_byte : int or None
        Place in the frame, from 0; None for what is no part of it.
    size : int
        Bytes that it occupies, wholly or in part.
    bits : tuple of (int, int) or None
        Most and least significant bit, in those bytes as one big-endian number; None for all of them.
    column : str
        The column of `roce_dissect.columns.PACKETS` that has this very value for this packet, or empty. Of several
        headers of a kind (tunnels) it is one that the columns tell of.
    children : list of Node
    """

    name: str
    value: int | str | None = None
    text: str = ""
    meaning: str = ""
    first_byte: int | None = None
    size: int = 0
    bits: tuple[int, int] | None = None
    column: str = ""
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, name: str) -> Node | None:
        """The first node of that name below this one."""
        return next((node for child in self.children for node in child.walk() if node.name == name), None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the fields that say something."""
        made: dict[str, Any] = {"name": self.name}
        if self.value is not None:
            made["value"] = self.value
        for key in ("text", "meaning", "column"):
            if getattr(self, key):
                made[key] = getattr(self, key)
        if self.first_byte is not None:
            made |= {"first_byte": self.first_byte, "bytes": self.size}
        if self.bits is not None:
            made["bits"] = list(self.bits)
        if self.children:
            made["children"] = [child.as_dict() for child in self.children]
        return made


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a header.

    Attributes
    ----------
    name : str
    bits : int
        Its width. Fields follow each other without a gap.
    base : str
        How to print it: ``dec``, ``hex``, ``dec+hex``, ``hex+dec``, ``mac``, ``ipv4``, ``ipv6`` (a GID, too),
        ``bytes``.
    words : callable, optional
        What a value means.
    column : str
        Column of the packet table with the same value.
    """

    name: str
    bits: int
    base: str = "dec"
    words: Callable[[int], str] | None = None
    column: str = ""


@dataclass(slots=True)
class Section:
    """What `read_header` found.

    Attributes
    ----------
    node : Node
        The header.
    values : dict of str to int
        Of the fields that are there.
    whole : bool
        Whether all of it is there.
    end : int
        Where it ends in the frame.
    """

    node: Node
    values: dict[str, int]
    whole: bool
    end: int


def fields_size(fields: Sequence[Field]) -> int:
    """Bytes of a header."""
    return sum(one.bits for one in fields) // 8


def read_header(
    data: bytes, at: int, end: int, name: str, title: str, fields: Sequence[Field], cut_by: str = "captured"
) -> Section:
    """A header whose first byte is `at`; nothing from `end` on belongs to it.

    What is not whole is not shown: a last child ``missing`` tells how many bytes there are, and which fields lack.

    Parameters
    ----------
    data : bytes
        The frame.
    at, end : int
        Where the header begins; the first byte that cannot be part of it. Both may lie behind the frame.
    name, title : str
        Of the section.
    fields : sequence of Field
        Bits that are a multiple of 8 in all.
    cut_by : str
        What is said of bytes before `end`: ``captured``, or that the packet's lengths leave no more.
    """
    have = max(min(end, len(data)) - at, 0)
    size = fields_size(fields)
    node = Node(name, None, title, "", at, min(size, have))
    values: dict[str, int] = {}
    missing = []
    bit = 0
    for one in fields:
        first, last = bit // 8, (bit + one.bits - 1) // 8
        bit += one.bits
        if last >= have:
            missing += [] if one.name.startswith("reserved") else [one.name]
            continue
        octets = last - first + 1
        low = (last + 1) * 8 - bit
        whole = int.from_bytes(data[at + first : at + first + octets], "big")
        value = whole >> low & (1 << one.bits) - 1
        values[one.name] = value
        aligned = low == 0 and one.bits == octets * 8
        node.children.append(
            Node(
                one.name,
                _plain(value, one),
                _text(value, one),
                one.words(value) if one.words is not None else "",
                at + first,
                octets,
                None if aligned else (low + one.bits - 1, low),
                one.column if have >= size else "",
            )
        )
    if have < size:
        meaning = f"{have} of {size} bytes {cut_by}"
        node.children.append(Node("missing", None, ", ".join(missing), meaning, at + have, 0))
    return Section(node, values, have >= size, at + size)


def plain_bytes(name: str, data: bytes, at: int, meaning: str = "") -> Node:
    """A field that is only bytes, all of them from `at` on in the frame."""
    return Node(name, data.hex(), _hexadecimal(data), meaning, at, len(data))


def _hexadecimal(data: bytes) -> str:
    if len(data) > _FEW and not any(data):
        return f"{len(data)} zeros"
    if not data:
        return "none"
    return data[:_SHOWN_HEX].hex(" ") + (" ..." if len(data) > _SHOWN_HEX else "")


def _plain(value: int, one: Field) -> int | str:
    if one.base == "ipv4":
        return str(IPv4Address(value))
    if one.base == "ipv6":
        return address_text(value >> 64, value & (1 << 64) - 1)
    if one.base == "bytes":
        return value.to_bytes(one.bits // 8, "big").hex()
    return value


def _text(value: int, one: Field) -> str:
    digits = f"{value:#0{2 + (one.bits + 3) // 4}x}"
    if one.base == "hex":
        return digits
    if one.base == "dec+hex":
        return f"{value} ({value:#x})"
    if one.base == "hex+dec":
        return f"{value:#x} ({value})"
    if one.base == "mac":
        return value.to_bytes(6, "big").hex(":")
    if one.base == "bytes":
        return _hexadecimal(value.to_bytes(one.bits // 8, "big"))
    return str(_plain(value, one))
