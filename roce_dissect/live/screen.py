"""The live screen: a line about the capture, and below it the tables of `analyze`, as many rows as fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["Screen"]

#: Lines besides the rows of the tables: the status, the capture's summary, headings, blank lines.
_OTHER_LINES = 14


class Screen:
    """Shows an analysis on a terminal and leaves it as it was; a context manager.

    Parameters
    ----------
    console : rich.console.Console
        The terminal.
    title : str
        What is watched, harmless for a terminal.
    render : callable
        ``render(analysis, rows, width)`` gives the tables with at most so many rows each.
    """

    def __init__(self, console: Console, title: str, render: Callable[[Analysis, int, int], RenderableType]) -> None:
        self._console = console
        self._title = title
        self._render = render
        self._started = time.monotonic()
        self._last = (self._started, 0)
        self._live = Live(self._waiting(), console=console, screen=True, auto_refresh=False, vertical_overflow="crop")

    def _waiting(self) -> RenderableType:
        return Text(f"{self._title}: waiting for packets; Ctrl-C ends the capture", style="bold")

    def show(self, result: Analysis) -> None:
        """Build the screen anew."""
        now, packets = time.monotonic(), result.capture["roce_packets"]
        passed = max(now - self._last[0], 1e-3)
        rate = (packets - self._last[1]) / passed
        self._last = (now, packets)
        status = Text(self._title, style="bold")
        status.append(
            f"   {now - self._started:,.0f} s   {packets:,} RoCE packets   {rate:,.0f}/s   Ctrl-C ends",
            style="not bold",
        )
        rows = max((self._console.height - _OTHER_LINES) // 2, 1)
        if packets == 0:
            self._live.update(self._waiting(), refresh=True)
            return
        tables = self._render(result, rows, self._console.width)
        self._live.update(Group(status, Text(), tables), refresh=True)

    def __enter__(self) -> Screen:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()
