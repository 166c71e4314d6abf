"""``roce-dissect analyze``: what happened in a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from roce_dissect.cli.common import UNREADABLE, Interrupt, complain
from roce_dissect.cli.options import reading_options
from roce_dissect.cli.reading import end_status, holds_something, read_captures

if TYPE_CHECKING:
    from roce_dissect.api import Analysis
    from roce_dissect.decode.options import ReadOptions

__all__ = ["command", "print_analysis"]


@click.command("analyze")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="json: see docs/json.md.")
@click.option(
    "--top", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many connections and hosts."
)
@click.option("--events", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many events.")
@click.option(
    "--counters",
    multiple=True,
    metavar="[ADDRESS=]FILE",
    help="A host's own counters to hold against the capture: what ethtool -S, rdma statistic or sysfs print; twice for "
    "a host: before, after. See docs/counters.md.",
)
@reading_options
def command(
    files: tuple[str, ...], form: str, top: int, events: int, counters: tuple[str, ...], options: ReadOptions
) -> int:
    """Say what happened in a capture, with the frames that prove it.

    Several FILEs are one capture in time order, as mergecap would join them; - is standard input. The connections with
    most stall come first. --top and --events are for the text; json always holds everything.
    """
    from roce_dissect.cli.counters import compare_hosts, print_comparison, read_hosts
    from roce_dissect.cli.forms import warn_if_slow

    hosts = read_hosts(counters)
    warn_if_slow()
    with Interrupt() as interrupt:
        result = read_captures(files, interrupt, options=options)
    complaints = compare_hosts(result, hosts) if holds_something(result) else []
    if form == "json" or holds_something(result):
        print_analysis(result, form, top, events)
        if form == "text":
            print_comparison(result, hosts)
    status = end_status(result)
    for complaint in complaints:
        complain(complaint)
        status = max(status, UNREADABLE)  # interrupted stays interrupted
    return status


def print_analysis(result: Analysis, form: str, top: int, events: int, filters: bool = True) -> None:
    """Print an analysis as text, with or without Wireshark filters, or as JSON."""
    if form == "json":
        import json

        # one line: json's encoder in C has no indented form, and jq and editors do that better
        click.echo(json.dumps(result.to_dict(), allow_nan=False))
        return
    from roce_dissect.cli.text import print_report

    print_report(result, top=top, events=events, filters=filters)
