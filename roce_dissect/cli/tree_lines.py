"""A dissection as lines of text: one a field, with its place in the frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roce_dissect.cli.safe import safe
from roce_dissect.dissect.tree import Node
from roce_dissect.dissect.words import printable

__all__ = ["hex_dump", "tree_lines"]

_NAME, _VALUE, _MEANING = 24, 24, 44  # columns of text, at least
_IN_A_LINE = 16


def tree_lines(sections: Sequence[Node]) -> str:
    """Lines of a frame's sections; reserved fields that are zero are left out.

    Everything that does not print stands there as an escape.
    """
    return "".join(f"{safe(line)}\n" for section in sections for line in _lines(section, 0))


def hex_dump(data: bytes) -> str:
    """Bytes of a frame, sixteen a line, with the offsets that the lines of `tree_lines` name, in decimal."""
    lines = []
    for at in range(0, len(data), _IN_A_LINE):
        part = data[at : at + _IN_A_LINE]
        halves = f"{part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}"
        lines.append(f"  {at:>6}  {halves}  {printable(part)}\n")
    return "".join(lines)


def _lines(node: Node, depth: int) -> Iterator[str]:
    indent = "    " * depth
    if node.children or depth == 0:
        title = f"{node.text}: {node.meaning}" if node.meaning else node.text
        yield _with_place(indent + title, node)
        for child in node.children:
            if not _is_idle(child):
                yield from _lines(child, depth + 1)
        return
    yield _with_place(indent + _padded(node.name, _NAME) + _padded(node.text, _VALUE) + node.meaning, node)


def _padded(text: str, width: int) -> str:
    return f"{text:<{width - 2}}  "


def _with_place(line: str, node: Node) -> str:
    place = _place(node)
    width = 4 + _NAME + _VALUE + _MEANING
    return f"{line.rstrip():<{width}}  {place}" if place else line.rstrip()


def _is_idle(node: Node) -> bool:
    return node.name.startswith("reserved") and (node.value == 0 or set(str(node.value)) == {"0"})


def _place(node: Node) -> str:
    """``bytes 54-56``, ``byte 43 bits 5-4``; nothing for what is no part of the frame."""
    if node.first_byte is None or node.size == 0:
        return ""
    last = node.first_byte + node.size - 1
    place = f"byte {last}" if node.size == 1 else f"bytes {node.first_byte}-{last}"
    if node.bits is None:
        return place
    high, low = node.bits
    return f"{place} bit {low}" if high == low else f"{place} bits {high}-{low}"
