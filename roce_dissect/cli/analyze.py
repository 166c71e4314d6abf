"""``roce-dissect analyze``: what happened in a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from roce_dissect.cli.common import INTERRUPTED, POLL_S, Interrupt, report_files

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["command", "holds_something", "print_analysis"]


@click.command("analyze")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="json: see docs/json.md.")
@click.option(
    "--top", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many connections and hosts."
)
@click.option("--events", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many events.")
def command(files: tuple[str, ...], form: str, top: int, events: int) -> int:
    """Say what happened in a capture, with the frames that prove it.

    Several FILEs are one capture in time order, as mergecap would join them; - is standard input. The connections with
    most stall come first. --top and --events are for the text; json always holds everything.
    """
    from roce_dissect.api import Session
    from roce_dissect.cli.forms import warn_if_slow
    from roce_dissect.cli.progress import ReadingBar

    warn_if_slow()
    with Interrupt() as interrupt, ReadingBar() as bar:

        def progress(done: int, total: int | None) -> None:
            bar(done, total)
            interrupt.look()

        session = Session(list(files), keep_going=True, progress=progress, poll_s=POLL_S)
        try:
            for _ in interrupt.through(session):
                pass
        except KeyboardInterrupt:
            interrupt.wanted = True
        session.interrupted = interrupt.wanted
        result = session.analysis()
    if form == "json" or holds_something(result):
        print_analysis(result, form, top, events)
    status = report_files(result.capture["files"])
    return INTERRUPTED if session.interrupted else status


def holds_something(result: Analysis) -> bool:
    """Whether anything could be read; else there is nothing to say beside the errors."""
    return any(one["error"] is None or one["frames"] for one in result.capture["files"])


def print_analysis(result: Analysis, form: str, top: int, events: int, filters: bool = True) -> None:
    """Print an analysis as text, with or without Wireshark filters, or as JSON."""
    if form == "json":
        import json

        # one line: json's encoder in C has no indented form, and jq and editors do that better
        click.echo(json.dumps(result.to_dict(), allow_nan=False))
        return
    from roce_dissect.cli.text import print_report

    print_report(result, top=top, events=events, filters=filters)
