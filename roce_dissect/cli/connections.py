"""``roce-dissect connections``: all connections, or everything about one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from roce_dissect.cli.common import Interrupt
from roce_dissect.cli.options import reading_options
from roce_dissect.cli.reading import end_status, holds_something, known_connection, read_captures

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.api import Analysis
    from roce_dissect.decode.options import ReadOptions

__all__ = ["command"]

#: What to sort by: columns of the connections table; of figures per direction, the sum. Most comes first, save for
#: numbers and times.
SORTS = {
    "stall": ("stall_ns", "resent_packets"),
    "resent": ("resent_packets", "stall_ns"),
    "episodes": ("episodes", "stall_ns"),
    "packets": ("packets",),
    "bytes": ("bytes",),
    "data": ("goodput_bytes",),
    "messages": ("messages",),
    "idle": ("idle_ns",),
    "first": ("connection",),
    "last": ("last_time_ns",),
}
_ASCENDING = ("first", "last")


@click.command("connections")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="stall",
    show_default=True,
    help="What most of comes first; first, last: in the order of the first or last frames.",
)
@click.option("--count", "most", type=click.IntRange(1), metavar="N", help="At most N connections; default: all.")
@click.option("--connection", type=click.IntRange(1), metavar="N", help="Everything about one.")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@reading_options(counts_rows=True)
def command(
    files: tuple[str, ...], sort: str, most: int | None, connection: int | None, form: str, options: ReadOptions
) -> int:
    """List all connections, or tell everything about one.

    One line each: how it ended within the capture (open: it did not), what it carried, how often its senders went back
    and why, time without progress (stall) and time with nothing to do (idle), and which end the capture point is near.
    json and csv have the connections of docs/json.md; csv has their figures as a_to_b_... and b_to_a_....
    """
    from roce_dissect.cli.forms import warn_if_slow

    warn_if_slow()
    with Interrupt() as interrupt:
        result = read_captures(files, interrupt, options=options)
    if holds_something(result) and known_connection(result, connection):
        table = _chosen(result, sort, most, connection)
        sys.stdout.write(_text(result, table, connection) if form == "text" else _other(table, form))
    return end_status(result)


def _chosen(result: Analysis, sort: str, most: int | None, connection: int | None) -> pd.DataFrame:
    table = result.connections
    if connection is not None:
        return table[table["connection"] == connection]
    keys = {
        str(number): table[name]
        if name in table
        else table[f"a_to_b_{name}"].fillna(0) + table[f"b_to_a_{name}"].fillna(0)
        for number, name in enumerate(SORTS[sort])
    }
    ordered = table[[]].assign(**keys).sort_values(list(keys), ascending=sort in _ASCENDING, kind="stable")
    chosen = ordered.index if most is None else ordered.index[:most]
    return table.loc[chosen]


def _other(table: pd.DataFrame, form: str) -> str:
    if form == "csv":
        from roce_dissect.cli.table_lines import csv_lines, heading_line

        return heading_line(list(table.columns)) + csv_lines(table)
    import json

    from roce_dissect.analysis.records import connection_records

    return json.dumps(connection_records(table), allow_nan=False) + "\n"


def _text(result: Analysis, table: pd.DataFrame, connection: int | None) -> str:
    from roce_dissect.cli.aligned import output_width

    width = output_width()
    if connection is not None:
        from roce_dissect.cli.connection_detail import detail_lines

        lines = detail_lines(result, connection, width)
    else:
        from roce_dissect.cli.connection_list import list_lines

        lines = list_lines(result, table, width)
    from roce_dissect.cli.aligned import written

    return written(lines)
