"""``roce-dissect events``: everything that happened, in time order, one line each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from roce_dissect.cli.common import (
    FILTERS_OPTION,
    LINES_FORMAT_OPTION,
    Interrupt,
    demand_text,
)
from roce_dissect.cli.options import reading_options
from roce_dissect.cli.reading import end_status, holds_something, known_connection, read_captures
from roce_dissect.terms import EventKind, Trigger

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.api import Analysis
    from roce_dissect.decode.options import ReadOptions

__all__ = ["command"]

#: Rows that are made into text at once.
_ROWS_AT_ONCE = 1000


@click.command("events")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--connection", type=click.IntRange(1), metavar="N", help="Only those of one connection.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([kind.name.lower() for kind in EventKind]),
    help="May be repeated.",
)
@click.option(
    "--trigger",
    "triggers",
    multiple=True,
    type=click.Choice([trigger.name.lower() for trigger in Trigger]),
    help="Only resends with this cause; may be repeated.",
)
@click.option("--count", "most", type=click.IntRange(1), metavar="N", help="At most N events; default: all.")
@FILTERS_OPTION
@LINES_FORMAT_OPTION
@reading_options(counts_rows=True)
def command(
    files: tuple[str, ...],
    connection: int | None,
    kinds: tuple[str, ...],
    triggers: tuple[str, ...],
    most: int | None,
    filters: bool,
    form: str,
    options: ReadOptions,
) -> int:
    """Print one line per event in time order: losses, resends with cause and cost, NAKs, marks, set-up.

    In text form: time since the first frame, connection, direction, kind, and what happened, beginning with its frames.
    csv and jsonl have the columns of docs/json.md: those of the events, then, for resends, figures of the episodes.
    """
    demand_text(filters, form)
    if triggers and kinds and "resend" not in kinds:
        raise click.UsageError("--trigger is about resends: leave --kind out, or add --kind resend")
    from roce_dissect.cli.forms import warn_if_slow

    warn_if_slow()
    with Interrupt() as interrupt:
        result = read_captures(files, interrupt, options=options)
    if holds_something(result) and known_connection(result, connection):
        from roce_dissect.cli.choice import nothing_fits
        from roce_dissect.cli.event_table import events_with_episodes

        chosen = _chosen(events_with_episodes(result), connection, kinds, triggers)
        shown = chosen if most is None else chosen.iloc[:most]
        for text in _text(result, shown, filters) if form == "text" else _other(shown, form):
            sys.stdout.write(text)
        if form == "text" and len(chosen) == 0:
            own: list[tuple[str, object]] = [("--connection", connection)] if connection is not None else []
            own += [("--kind", kind) for kind in kinds] + [("--trigger", trigger) for trigger in triggers]
            sys.stdout.write(nothing_fits("event", result.capture, own) + "\n")
        elif form == "text" and len(chosen) > len(shown):
            sys.stdout.write(f"{len(chosen) - len(shown):,} more\n")
    return end_status(result)


def _chosen(
    events: pd.DataFrame, connection: int | None, kinds: tuple[str, ...], triggers: tuple[str, ...]
) -> pd.DataFrame:
    if connection is not None:
        events = events[events["connection"] == connection]
    if triggers:
        return events[events["trigger"].isin(triggers)]
    return events[events["kind"].isin(kinds)] if kinds else events


def _other(events: pd.DataFrame, form: str) -> Iterator[str]:
    from roce_dissect.cli.table_lines import csv_lines, heading_line, json_lines

    if form == "csv":
        yield heading_line(list(events.columns))
    yield csv_lines(events) if form == "csv" else json_lines(events) if len(events) else ""


def _text(result: Analysis, events: pd.DataFrame, filters: bool) -> Iterator[str]:
    from roce_dissect.cli.aligned import output_width, with_filter
    from roce_dissect.cli.event_table import records
    from roce_dissect.cli.event_words import EventWords

    words, width = EventWords(result), output_width()
    start = result.capture["first_time_ns"] or 0
    lengths = [one["frames"] for one in result.capture["files"]]
    for first in range(0, len(events), _ROWS_AT_ONCE):
        for event in records(events.iloc[first : first + _ROWS_AT_ONCE]):
            line = _line(words, event, start)
            text = _filter(words, event, lengths) if filters else ""
            yield "".join(part + "\n" for part in with_filter(line, line, text, width))


def _line(words: Any, event: dict[str, Any], start_ns: int) -> str:
    number = f"#{event['connection']}" if event["connection"] else ""
    time = f"+{(event['time_ns'] - start_ns) / 1e9:.6f}"
    return f"{time:>12}  {number:3}  {words.way(event):3}  {event['kind']:7}  {words.sentence([event])}"


def _filter(words: Any, event: dict[str, Any], lengths: list[int]) -> str:
    """The frames of an event and the one that led to it, as far as they are in the same file."""
    from roce_dissect.analysis.filters import frames_filter
    from roce_dissect.cli.places import spans_of

    spans = [span for place in words.places(event) for span in spans_of(place, lengths)]
    return frames_filter((first, last) for file, first, last in spans if file == event["file"])
