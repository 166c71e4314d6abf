"""Rows of cells as lines of text: aligned where they fit, else a paragraph a row, so that no figure is ever cut."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence

import click

__all__ = ["NO_BREAK", "aligned", "folded", "output_width", "paragraphs", "table_lines", "with_filter", "written"]

#: A blank at which no line is folded.
NO_BREAK = "\u00a0"
_INDENT = "   "


def output_width() -> int | None:
    """Columns of the terminal that standard output is; None for a pipe or a file, where nothing is folded."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def aligned(heading: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """Lines of a table: the heading, then the rows; two blanks between columns, none at the ends of lines.

    Parameters
    ----------
    heading : sequence of str
        Name of each column; all empty: no line for them.
    rows : sequence of sequences of str
    right : collection of str
        Names of the columns that stand at the right.
    """
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    parts = [f"{{:{'>' if name in right else '<'}{width}}}" for name, width in zip(heading, widths, strict=True)]
    form = "  ".join(parts)
    lines = [form.format(*row).rstrip() for row in rows]
    return [click.style(form.format(*heading).rstrip(), dim=True), *lines] if any(heading) else lines


def paragraphs(heading: Sequence[str], rows: Sequence[Sequence[str]], lead: int, width: int) -> list[str]:
    """For narrow terminals: the first `lead` cells of a row, and below them the others with their names."""
    lines: list[str] = []
    for row in rows:
        lines += folded("  ".join(cell for cell in row[:lead] if cell), width, "", _INDENT)
        others = [
            f"{name} {cell}" if name else cell
            for name, cell in zip(heading[lead:], row[lead:], strict=True)
            if cell not in ("", "-")
        ]
        lines += folded(", ".join(others), width, _INDENT, _INDENT)
    return lines


def table_lines(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    lead: int,
    width: int | None,
) -> list[str]:
    """The table without its empty columns, if it fits the width; else paragraphs."""
    kept = [
        index for index, name in enumerate(heading) if index < lead or any(row[index] not in ("", "-") for row in rows)
    ]
    names = [heading[index] for index in kept]
    cells = [[row[index] for index in kept] for row in rows]
    lines = aligned(names, cells, right)
    if width is None or max(len(click.unstyle(line)) for line in lines) <= width:
        return lines
    return paragraphs(names, cells, lead, width)


def folded(text: str, width: int | None, first: str, rest: str) -> list[str]:
    """Text as lines, the first and the others with an indent of their own.

    Parameters
    ----------
    text : str
    width : int or None
        Columns of the terminal; None: no limit.
    first, rest : str
        The indents.
    """
    if width is None:
        return [first + text]
    return textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def written(lines: Sequence[str]) -> str:
    """Lines as one text for standard output, without styles where that is no terminal."""
    text = "".join(line + "\n" for line in lines)
    return text if sys.stdout.isatty() else click.unstyle(text)


def with_filter(line: str, narrow: str, text: str, width: int | None) -> list[str]:
    """A line with a display filter at its end; on a narrow terminal folded, the filter below in one piece.

    Parameters
    ----------
    line : str
        As it stands where there is room.
    narrow : str
        What is folded where there is none; `NO_BREAK` keeps words together.
    text : str
        The filter; empty: none.
    width : int, optional
        Columns of the terminal; None: no limit.
    """
    whole = f"{line}  [{text}]" if text else line
    if width is None or len(whole) <= width:
        return [whole]
    lines = [part.replace(NO_BREAK, " ") for part in folded(narrow.strip(), width, "", _INDENT)]
    return [*lines, f"{_INDENT}[{text}]"] if text else lines
