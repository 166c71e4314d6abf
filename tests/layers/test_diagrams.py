"""The diagrams in docs/layers.md are those of the classes' ``fields_desc``.

Run as ``python tests/layers/test_diagrams.py`` to print them anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scapy.fields import BitField

from roce_dissect.layers import (
    AETH,
    BTH,
    CNP,
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

PAGE = Path(__file__).parents[2] / "docs" / "layers.md"
HEADERS = (LRH, GRH, BTH, RDETH, DETH, XRCETH, FETH, RETH, AtomicETH, AETH, AtomicAckETH, ImmDt, IETH, CNP)
RULER = """\
 0                   1                   2                   3
 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
"""
LINE = "+" + "-+" * 32
OPEN = "+" + " " * 63 + "+"


def diagram(layer) -> str:
    """Rows of 32 bits; names that do not fit are numbered, and told below."""
    rows, cells, notes, used = [LINE], "|", [], 0
    for field in layer.fields_desc:
        if isinstance(field, (PadField, IcrcField)):
            continue
        bits = field.size if isinstance(field, BitField) else int(field.sz * 8)
        name = "reserved" if field.name.startswith("reserved") else field.name
        if bits > 32:
            rows += [f"|{name:^63}|", *[OPEN, f"|{'':63}|"] * (bits // 32 - 1), LINE]
            continue
        if len(name) > 2 * bits - 1:
            notes.append(f"{len(notes) + 1} {field.name}")
            name = str(len(notes))
        cells += f"{name:^{2 * bits - 1}}|"
        used += bits
        if used == 32:
            rows += [cells, LINE]
            cells, used = "|", 0
    assert used == 0
    return RULER + "\n".join(rows) + ("\n" + ", ".join(notes) if notes else "")


def section(layer) -> str:
    return f"**{layer.__name__}**, {layer.header_size} bytes\n\n```text\n{diagram(layer)}\n```\n"


@pytest.mark.parametrize("layer", HEADERS, ids=lambda layer: layer.__name__)
def test_the_page_shows_the_header(layer):
    assert section(layer) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("layer", HEADERS, ids=lambda layer: layer.__name__)
def test_every_row_is_of_32_bits(layer):
    rows = [line for line in diagram(layer).splitlines()[2:] if line[0] in "|+"]
    assert {len(row) for row in rows} == {65}
    assert len([row for row in rows if row[0] == "|"]) * 4 == layer.header_size


def test_every_header_is_shown():
    shown = re.findall(r"^\*\*(\w+)\*\*, \d+ bytes$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == [layer.__name__ for layer in HEADERS]


if __name__ == "__main__":
    print("\n".join(section(layer) for layer in HEADERS))
