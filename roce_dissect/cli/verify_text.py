"""What `verify` prints for people: the verdict, the fields, the traps, the differences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from roce_dissect.analysis.traps import TRAPS
from roce_dissect.cli.aligned import aligned, folded
from roce_dissect.cli.safe import safe
from roce_dissect.units import count, plural

if TYPE_CHECKING:
    from roce_dissect.analysis.verification import Difference, Verification
    from roce_dissect.analysis.wireshark import Value

__all__ = ["shown", "verify_lines"]

_INDENT = "   "
#: Where lists of fields are folded, on narrower terminals earlier.
_WIDTH = 100
_ADDRESSES = frozenset({"eth_src", "eth_dst"})
#: Columns that Wireshark, too, shows in hexadecimal, and their digits.
_HEXADECIMAL = {
    "opcode": 2, "syndrome": 2, "p_key": 4, "dest_qp": 6, "src_qp": 6, "ee_context": 6, "q_key": 8, "r_key": 8,
    "inv_r_key": 8, "imm_data": 8, "icrc": 8, "va": 16, "swap_add_data": 16, "compare_data": 16, "orig_data": 16,
}  # fmt: skip


def verify_lines(result: Verification, width: int | None) -> list[str]:
    """Lines for standard output, with styles.

    Parameters
    ----------
    result : Verification
        After its files were read.
    width : int, optional
        Columns of the terminal; None: no limit.
    """
    return [
        *folded(_verdict(result), width, "", _INDENT),
        *_fields(result, width),
        *_traps(result, width),
        *_differences(result),
    ]


def _verdict(result: Verification) -> str:
    begin = "interrupted: " if result.interrupted else ""
    tool = f"tshark {result.tshark.version}"
    several = f"{len(result.files)} files, " if len(result.files) > 1 else ""
    if result.packets == 0 and result.different == 0:
        return f"{begin}{several}no packet compared: {tool} finds no RoCE, nor do we"
    skipped = sum(tally.skipped for tally in result.fields.values())
    fields = sum(1 for tally in result.fields.values() if tally.equal or tally.different)
    agreement = (
        f"{count(result.different)} differ{'s' if result.different == 1 else ''} from"
        if result.different
        else "all equal to"
    )
    traps = f"; {count(skipped)} more skipped, see the traps" if skipped else ""
    figures = f"{plural(result.packets, 'packet')}, {plural(result.values, 'value')} of {plural(fields, 'field')}"
    return f"{begin}{several}{figures}: {agreement} {tool}{traps}"


def _fields(result: Verification, width: int | None) -> Iterator[str]:
    """One line for all fields with the same figures: the ones that differ first, then the most common."""
    groups: dict[tuple[int, int, int], list[str]] = {}
    for name, tally in result.fields.items():
        groups.setdefault((tally.different, tally.equal, tally.skipped), []).append(name)
    unseen = groups.pop((0, 0, 0), [])
    ordered = sorted(groups.items(), key=lambda group: group[0], reverse=True)
    if ordered:
        yield ""
    # columns of which no field has a figure are left out
    heading = [name for place, name in enumerate(("differ", "equal", "skipped")) if any(key[place] for key in groups)]
    kept = [place for place in range(3) if any(key[place] for key in groups)]
    cells = [[count(key[place]) if key[place] else "-" for place in kept] for key, _ in ordered]
    left = aligned([*heading, ""], [[*row, ""] for row in cells], right=heading)
    indent = " " * max((len(click.unstyle(line)) for line in left), default=0) + "  "
    room = min(width or _WIDTH, _WIDTH)
    for number, line in enumerate(left):
        if number == 0:
            yield line + click.style("  fields", dim=True)
            continue
        names = ", ".join(ordered[number - 1][1])
        first, *more = textwrap.wrap(names, max(room - len(indent), 20))
        text = line.ljust(len(indent)) + first
        yield click.style(text, fg="yellow") if ordered[number - 1][0][0] else text
        yield from (indent + part for part in more)
    if ordered and unseen:
        yield from folded(f"not captured, or in no packet: {', '.join(unseen)}", room, "", _INDENT)
    if result.not_compared:
        lacking = ", ".join(f"{name} ({', '.join(fields)})" for name, fields in result.not_compared.items())
        yield from folded(f"not compared, this tshark lacks their fields: {lacking}", room, "", _INDENT)


def _traps(result: Verification, width: int | None) -> Iterator[str]:
    if result.traps:
        yield ""
        yield click.style("traps, where tshark cannot be asked:", dim=True)
    for code, tally in result.traps.items():
        where = _where(result, tally.file, f"frame {tally.frame}")
        figures = f"{plural(tally.packets, 'packet')} from {where} on, {plural(tally.values, 'value')}"
        if tally.packets == 1:
            figures = f"{where}, {plural(tally.values, 'value')}"
        yield from folded(f"{code}: {figures}. {TRAPS[code].sentence}", width, "", _INDENT)


def _differences(result: Verification) -> Iterator[str]:
    if not result.different:
        return
    yield ""
    if result.differences:
        heading = ["frame", "field", "ours", "Wireshark's"]
        yield from aligned(heading, [_difference(result, one) for one in result.differences])
    kept: dict[str, int] = {}
    for one in result.differences:
        kept[one.column] = kept.get(one.column, 0) + 1
    for name, tally in result.fields.items():
        left = tally.different - kept.get(name, 0)
        if left:
            yield f"and {count(left)} more of {name}"


def _difference(result: Verification, one: Difference) -> list[str]:
    return [
        _where(result, one.file, str(one.frame)),
        one.column,
        shown(one.column, one.ours),
        shown(one.column, one.theirs),
    ]


def _where(result: Verification, file: int, frame: str) -> str:
    """A frame, with its file where there are several."""
    return f"{safe(result.files[file].path)} {frame}" if len(result.files) > 1 else frame


def shown(column: str, value: Value) -> str:
    """A value as Wireshark shows it; ``-`` for none.

    Examples
    --------
    >>> shown("r_key", 9514), shown("eth_src", 0x02005E000001), shown("psn", None)
    ('0x0000252a', '02:00:5e:00:00:01', '-')
    """
    if column == "frame":
        return "no RoCE" if value is None else "RoCE"
    if value is None:
        return "-"
    if isinstance(value, str):
        return safe(value)
    if column in _ADDRESSES:
        return f"{value:012x}" if value >> 48 else value.to_bytes(6, "big").hex(":")
    if column in _HEXADECIMAL:
        return f"0x{value:0{_HEXADECIMAL[column]}x}"
    return str(value)
