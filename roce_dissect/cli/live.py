"""``roce-dissect live``: the tables of `analyze` for an interface, refreshed."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Any, cast

import click

from roce_dissect.cli.analyze import print_analysis
from roce_dissect.cli.common import FINE, POLL_S, UNREADABLE, Interrupt, complain, report_files
from roce_dissect.cli.reading import holds_something
from roce_dissect.cli.safe import safe
from roce_dissect.errors import LiveError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roce_dissect.api import Analysis
    from roce_dissect.capture.live import LiveSource

__all__ = ["command"]

_TERMINAL_EVENTS = 10


@click.command("live")
@click.argument("interface")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="S", help="Stop after this many seconds.")
@click.option("--packets", type=click.IntRange(1), metavar="N", help="Stop after at least N RoCE packets.")
@click.option(
    "--refresh",
    type=click.FloatRange(0.1),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between refreshes.",
)
@click.option("--once", is_flag=True, help="No screen, only the final analysis.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the final analysis."
)
@click.option(
    "--top", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many connections and hosts."
)
@click.option("--events", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many events.")
@click.option(
    "--snaplen", type=click.IntRange(64), metavar="BYTES", help="How much of each frame to keep; default: all."
)
def command(
    interface: str,
    seconds: float | None,
    packets: int | None,
    refresh: float,
    once: bool,
    form: str,
    top: int,
    events: int,
    snaplen: int | None,
) -> int:
    """Watch INTERFACE: the tables of analyze, refreshed on a terminal, and the final analysis at the end.

    Starts dumpcap or tcpdump with a RoCE filter, whichever is installed and may capture. With - as INTERFACE a capture
    is read from standard input: ssh HOST tcpdump -U -w - ... | roce-dissect live -. Ctrl-C ends the capture.
    """
    from roce_dissect.api import Session
    from roce_dissect.cli.forms import warn_if_slow
    from roce_dissect.cli.text import make_console
    from roce_dissect.live.watch import Watch

    warn_if_slow()
    status = FINE
    with contextlib.ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt(signal.SIGINT, signal.SIGTERM))
        source = None if interface == "-" else stack.enter_context(_open(interface, snaplen))
        session = Session(cast(Any, "-" if source is None else source), keep_going=True, poll_s=POLL_S)
        watch = Watch(interrupt.step, seconds, packets, refresh, stop=None if source is None else source.stop)
        console = make_console()
        try:
            with contextlib.ExitStack() as screen:
                if console.is_terminal and not once:
                    from roce_dissect.live.screen import Screen

                    title = "standard input" if source is None else f"{safe(interface)} by {source.tool}"
                    watch.show = screen.enter_context(Screen(console, title, _tables)).show
                elif source is not None:
                    complain(f"capturing on {interface} with {source.tool}; Ctrl-C ends it")
                watch.run(session)  # whatever ends it: that is how a live capture ends
        except LiveError as error:  # the tool ended unasked for: what it delivered is shown
            complain(str(error))
            status = UNREADABLE
        except KeyboardInterrupt:
            session.interrupted = True
        result = session.analysis()
    if form == "json" or holds_something(result):
        print_analysis(result, form, top, events, filters=source is None)  # frame numbers of no file help nobody
    if source is not None and source.dropped:
        complain(f"{source.tool} lost {source.dropped:,} frames: counts are too low by up to that many")
    return max(status, report_files(result.capture["files"]))


def _open(interface: str, snaplen: int | None) -> LiveSource:
    from roce_dissect.capture.live import LiveSource

    return LiveSource(interface, snaplen=snaplen)


def _tables(result: Analysis, rows: int, width: int) -> RenderableType:
    from roce_dissect.cli.text import report

    return report(result, top=rows, events=min(rows, _TERMINAL_EVENTS), width=width)
