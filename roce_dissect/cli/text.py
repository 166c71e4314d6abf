"""The report of `analyze` and `live` as text: tables by rich, for a terminal of any width or a pipe.

Cells are `Text`, never str: rich would read markup into a str, and an emoji into the ``:100:`` of an address.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from roce_dissect.analysis.filters import MARK_FILTERS, connection_filter, frames_filter
from roce_dissect.cli.aligned import paragraphs
from roce_dissect.cli.connection_rows import FIGURES, ConnectionRow, connection_rows
from roce_dissect.cli.happenings import Happening, happenings
from roce_dissect.cli.headline import Totals, capture_lines, headline, totals
from roce_dissect.cli.latency_rows import LATENCY_FIGURES, LATENCY_MEANING, latency_rows
from roce_dissect.cli.safe import safe
from roce_dissect.units import count

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["make_console", "print_report", "report", "write"]

#: Columns of a pipe: nothing is cut or folded there.
_ENDLESS = 100_000
#: A capture without trouble gets filters for its connections only if they are that few.
_FEW = 5


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave a closed pipe to `roce_dissect.cli.common.run` (rich would exit with status 1)."""
        raise  # what rich handles while it calls this


def make_console(file: IO[str] | None = None) -> Console:
    """A console for standard output: the terminal's width, or no limit where it is none."""
    file = sys.stdout if file is None else file
    console = _Console(file=file, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console = _Console(
            file=file, markup=False, highlight=False, emoji=False, width=_ENDLESS, no_color=True, force_terminal=False
        )
    return console


def write(console: Console, part: RenderableType, to_copy: Sequence[Text] = ()) -> None:
    """Print; on a pipe without the blanks that fill up table cells.

    `to_copy` are lines that only the terminal itself may break: what is copied from there is one line.
    """
    with console.capture() as captured:
        console.print(part)
        for line in to_copy:
            console.print(line, soft_wrap=True)
    text = captured.get()
    if not console.is_terminal:
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    console.file.write(text)
    console.file.flush()


def print_report(result: Analysis, *, top: int, events: int, filters: bool = True) -> None:
    """Print all of it on standard output.

    Parameters
    ----------
    result : Analysis
    top, events : int
        Most connections, hosts and events to show.
    filters : bool
        Whether to print Wireshark filters, too.
    """
    console = make_console()
    rows = connection_rows(result, top)
    lines, of_all = happenings(result, events)
    to_copy = list(_filters(result, rows, lines)) if filters else []
    if to_copy:
        to_copy = [Text(), _title("Wireshark", "display filters to paste"), *to_copy]
    write(console, _report(result, rows, lines, of_all, top, console.width), to_copy)


def report(result: Analysis, *, top: int, events: int, width: int) -> Group:
    """The tables for a screen of `width` columns, with at most `top` connections and hosts, and so many events."""
    lines, of_all = happenings(result, events)
    return _report(result, connection_rows(result, top), lines, of_all, top, width)


def _report(
    result: Analysis, rows: list[ConnectionRow], lines: list[Happening], of_all: int, top: int, width: int
) -> Group:
    sums = totals(result)
    parts: list[RenderableType] = [_capture(result, sums), Text(), _headline(result, sums)]
    if rows:
        more = len(result.connections) - len(rows)
        parts += [Text(), _title("Connections", _shown(len(rows), more)), _connections(rows, width)]
    if lines:
        parts += [Text(), _title("Events", _shown(len(lines), of_all - len(lines), "the most telling ones"))]
        parts += [_events(lines, result.capture["first_time_ns"] or 0)]
    if len(result.latency) and top:
        sizes = latency_rows(result, top)
        remark = _shown(len(sizes), len(result.latency) - len(sizes), "the most frequent ones")
        parts += [Text(), _title("Latency", remark or LATENCY_MEANING), _latency(sizes, width)]
    if result.capture["roce_packets"] and len(result.counters) and top:
        remark = _shown(min(top, len(result.counters)), len(result.counters) - top)
        parts += [Text(), _title("Hosts", remark or "counters as this capture point shows them"), _hosts(result, top)]
    return Group(*parts)


def _shown(shown: int, more: int, which: str = "") -> str:
    if more <= 0:
        return ""
    return f"{count(shown)} of {count(shown + more)}{', ' + which if which else ''}; {count(more)} more"


def _title(word: str, remark: str) -> Text:
    text = Text(word, style="bold")
    return text.append(f" ({remark})", style="not bold dim") if remark else text


def _capture(result: Analysis, sums: Totals) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in capture_lines(result, sums):
        grid.add_row(label, Text(text, style="yellow" if label == "note" else ""))
    return grid


def _headline(result: Analysis, sums: Totals) -> Text:
    text = headline(result, sums)
    style = "bold red" if text.startswith("Trouble") else "bold green" if text.startswith("Healthy") else "bold"
    return Text(text, style=style)


# -- connections -------------------------------------------------------------------------------------------------------


def _connections(rows: list[ConnectionRow], width: int) -> RenderableType:
    """The widest of three forms that fits: ends side by side; one below the other; and without empty columns."""
    empty = {index for index in range(len(FIGURES)) if all(row.figures[index] == "-" for row in rows)}
    rare = {FIGURES.index("copies"), FIGURES.index("new data b>a")} & empty
    for stacked, left_out in ((False, rare), (False, empty), (True, empty)):
        needed = _needed_width(rows, stacked, left_out)
        if needed <= width:
            return _connection_table(rows, stacked, left_out)
    return _connection_list(rows)


def _needed_width(rows: list[ConnectionRow], stacked: bool, left_out: set[int]) -> int:
    console = Console(width=_ENDLESS, file=None)
    return console.measure(_connection_table(rows, stacked, left_out)).maximum


def _connection_table(rows: list[ConnectionRow], stacked: bool, left_out: set[int]) -> Table:
    table = _plain_table()
    table.add_column("#", justify="right", no_wrap=True)
    for heading in ("a, b",) if stacked else ("a", "b"):
        table.add_column(heading, no_wrap=True)
    table.add_column("type", no_wrap=True)
    shown = [index for index in range(len(FIGURES)) if index not in left_out]
    for index in shown:
        table.add_column(FIGURES[index], justify="right", no_wrap=True)
    with_notes = any(row.notes for row in rows)
    sick = any(row.troubled for row in rows)
    if with_notes:
        table.add_column("notes", no_wrap=True)
    for row in rows:
        ends = ["\n".join(row.ends)] if stacked else list(row.ends)
        cells = [str(row.number), *ends, row.transport, *(row.figures[index] for index in shown)]
        cells += [row.notes] if with_notes else []
        table.add_row(*map(Text, cells), style="dim" if sick and not row.troubled else "")
    return table


def _connection_list(rows: list[ConnectionRow]) -> Group:
    """For narrow terminals: one paragraph each, so that no number is ever cut."""
    parts: list[RenderableType] = []
    for row in rows:
        parts.append(Text(f"#{row.number} {row.transport}  {row.ends[0]} - {row.ends[1]}", overflow="fold"))
        figures = [f"{name} {value}" for name, value in zip(FIGURES, row.figures, strict=True) if value != "-"]
        parts.append(Padding(Text(", ".join([*figures, *([row.notes] if row.notes else [])])), (0, 0, 0, 3)))
    return Group(*parts)


def _plain_table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", collapse_padding=False)


# -- events, hosts, filters --------------------------------------------------------------------------------------------


def _events(lines: list[Happening], start_ns: int) -> Table:
    table = _plain_table()
    table.add_column("time (s)", justify="right", no_wrap=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("way", no_wrap=True)
    table.add_column("what", overflow="fold")
    for one in lines:
        number = str(one.connection) if one.connection else ""
        cells = (f"+{(one.time_ns - start_ns) / 1e9:.6f}", number, one.direction, one.text)
        table.add_row(*map(Text, cells))
    return table


def _latency(rows: list[list[str]], width: int) -> RenderableType:
    """A table where it fits; else a paragraph for each verb and size."""
    table = _latency_table(rows)
    if Console(width=_ENDLESS, file=None).measure(table).maximum <= width:
        return table
    return Group(*(Text(line) for line in paragraphs(LATENCY_FIGURES, rows, 1, width)))


def _latency_table(rows: list[list[str]]) -> Table:
    table = _plain_table()
    for number, heading in enumerate(LATENCY_FIGURES):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _hosts(result: Analysis, top: int) -> Table:
    """Counters under the kernel's names; zeros are left out."""
    counters = result.counters
    trouble = counters.drop(columns=["sent_pkts", "rcvd_pkts"]).sum(axis=1)
    order = trouble.sort_values(ascending=False, kind="stable").index[:top]
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for address in order:
        values = [f"{name} {value}" for name, value in counters.loc[address].items() if value]
        table.add_row(Text(str(address)), Text(", ".join(values) or "no packets"))
    return table


def _filters(result: Analysis, rows: list[ConnectionRow], lines: list[Happening]) -> Iterator[Text]:
    """A line for each connection that suffered, or for each of a few; and one for the events of each file."""
    troubled = [row for row in rows if row.troubled]
    for row in troubled or (rows if len(rows) <= _FEW else []):
        text = connection_filter(row.record)
        if text and row.figures[0] != "-":
            yield _to_copy(f"connection {row.number}", text)
    spans: dict[int, list[tuple[int, int]]] = {}
    for one in lines:
        if one.kind not in MARK_FILTERS:
            for file, first, last in one.spans:
                spans.setdefault(file, []).append((first, last))
    files = [one["path"] for one in result.capture["files"]]
    for file, frames in sorted(spans.items()):
        where = f" in {safe(files[file])}" if len(files) > 1 else ""
        yield _to_copy(f"the events above{where}", frames_filter(frames))
    for kind, (label, text) in MARK_FILTERS.items():
        if any(one.kind == kind for one in lines):
            yield _to_copy(label, text)


def _to_copy(label: str, text: str) -> Text:
    line = Text(f"{label}: ", style="dim")
    return line.append(text, style="not dim")
