"""A progress bar on standard error, where that is a terminal, and only when the work takes a while."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any

__all__ = ["ReadingBar"]

_AFTER_S = 0.4
_EVERY_S = 0.1


class ReadingBar:
    """Bytes read of all; a context manager, to be called as the ``progress`` of the Python API."""

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._next = time.monotonic() + _AFTER_S
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next = now + _EVERY_S
        if self._bar is None:
            self._bar, self._task = _start()
        self._bar.update(self._task, completed=done, total=total, refresh=True)

    def __enter__(self) -> ReadingBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _start() -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )
    bar.start()
    return bar, bar.add_task("reading", total=None)
