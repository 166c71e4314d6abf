"""``roce-dissect messages``: one line per message, which is one verb."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from roce_dissect.cli.common import (
    FILTERS_OPTION,
    INTERRUPTED,
    LINES_FORMAT_OPTION,
    Interrupt,
    demand_text,
)
from roce_dissect.cli.options import reading_options
from roce_dissect.cli.reading import end_status, holds_something, known_connection, read_captures, readable_once
from roce_dissect.terms import MessageStatus, Verb

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.api import Analysis
    from roce_dissect.decode.options import ReadOptions

__all__ = ["command"]

#: Lines of text where nothing else is asked for: what a person reads.
_TEXT_LINES = 40


@dataclass
class _Selection:
    """Which messages are wanted, and how many of each status there were."""

    verbs: tuple[str, ...]
    statuses: tuple[str, ...]
    connection: int | None = None
    found: dict[str, int] = field(default_factory=dict)

    @property
    def options(self) -> list[tuple[str, object]]:
        """As options of the command line."""
        one: list[tuple[str, object]] = [] if self.connection is None else [("--connection", self.connection)]
        return [*one, *(("--verb", verb) for verb in self.verbs), *(("--status", status) for status in self.statuses)]

    def of(self, pieces: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The wanted rows of each piece, counted."""
        for piece in pieces:
            if self.verbs:
                piece = piece[piece["verb"].isin(self.verbs)]
            if self.statuses:
                piece = piece[piece["status"].isin(self.statuses)]
            for status, number in piece["status"].value_counts().items():
                self.found[str(status)] = self.found.get(str(status), 0) + int(number)
            yield piece


@click.command("messages")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--connection", type=click.IntRange(1), metavar="N", help="Only those of one connection.")
@click.option(
    "--verb", "verbs", multiple=True, type=click.Choice([verb.name.lower() for verb in Verb]), help="May be repeated."
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([status.name.lower() for status in MessageStatus]),
    help="May be repeated.",
)
@click.option("--slowest", type=click.IntRange(1), metavar="N", help="The N with the longest latency, longest first.")
@click.option(
    "--count", "most", type=click.IntRange(1), metavar="N", help=f"At most N; default: {_TEXT_LINES} as text, else all."
)
@FILTERS_OPTION
@LINES_FORMAT_OPTION
@reading_options(counts_rows=True)
def command(
    files: tuple[str, ...],
    connection: int | None,
    verbs: tuple[str, ...],
    statuses: tuple[str, ...],
    slowest: int | None,
    most: int | None,
    filters: bool,
    form: str,
    options: ReadOptions,
) -> int:
    """Print one line per message (verb), with status and latency, in the order in which they ended.

    In text form: time since the first frame, connection, direction, verb, status, frames of its requests and of the
    answer that ended it, PSNs, bytes, latency from the first frame to that answer, and what is remarkable: the NAK,
    resends, RNR NAKs; remote address and key, immediate data. The latencies by verb and size stand at the end. csv and
    jsonl have the columns of docs/json.md. Files are read twice, standard input once.
    """
    demand_text(filters, form)
    if slowest is not None and most is not None:
        raise click.UsageError("--slowest and --count exclude each other")
    from roce_dissect.cli.forms import warn_if_slow

    warn_if_slow()
    with Interrupt() as interrupt:
        result = read_captures(files, interrupt, messages=readable_once(files), options=options)
        status = end_status(result)
        if not holds_something(result) or not known_connection(result, connection):
            return status
        selection = _Selection(verbs, statuses, connection)
        pieces: Iterator[pd.DataFrame] = iter(())
        if not interrupt.wanted or readable_once(files):  # else reading them would begin anew
            pieces = selection.of(_until_wanted(result, connection, interrupt))
        _print(result, pieces, selection, slowest, most, filters, form)
    return INTERRUPTED if interrupt.wanted else status


def _until_wanted(result: Analysis, connection: int | None, interrupt: Interrupt) -> Iterator[pd.DataFrame]:
    """The messages, until Ctrl-C is pressed in the second reading."""
    before = interrupt.wanted
    for piece in result.iter_messages(connection):
        yield piece
        if interrupt.wanted and not before:
            return


def _print(
    result: Analysis,
    pieces: Iterator[pd.DataFrame],
    selection: _Selection,
    slowest: int | None,
    most: int | None,
    filters: bool,
    form: str,
) -> None:
    if slowest is not None:
        pieces = iter([_slowest(pieces, slowest)])
    if form == "text":
        from roce_dissect.cli.message_text import print_messages

        shown = slowest or most or _TEXT_LINES
        print_messages(result, pieces, selection.found, shown, filters, selection.options)
        return
    from roce_dissect.cli.table_lines import csv_lines, heading_line, json_lines
    from roce_dissect.columns import MESSAGES

    if form == "csv":
        sys.stdout.write(heading_line(list(MESSAGES)))
    left = most
    for piece in pieces:
        piece = piece if left is None else piece.iloc[:left]
        sys.stdout.write(csv_lines(piece) if form == "csv" else json_lines(piece) if len(piece) else "")
        sys.stdout.flush()
        if left is not None:
            left -= len(piece)
            if left == 0:
                return


def _slowest(pieces: Iterator[pd.DataFrame], most: int) -> pd.DataFrame:
    """The rows with the longest latency, in constant memory; rows without one are none of them."""
    import numpy as np
    import pandas as pd

    from roce_dissect.columns import MESSAGES

    kept = pd.DataFrame(columns=list(MESSAGES))
    for piece in pieces:
        piece = piece[piece["latency_ns"].notna()]
        if len(piece):
            both = pd.concat([kept, piece], ignore_index=True) if len(kept) else piece
            order = np.argsort(-both["latency_ns"].to_numpy(np.int64), kind="stable")[:most]
            kept = both.iloc[order]
    return kept
