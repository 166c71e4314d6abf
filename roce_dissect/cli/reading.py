"""What the commands that analyse whole captures share: reading with a bar and Ctrl-C, status, which connection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from roce_dissect.cli.common import INTERRUPTED, POLL_S, Interrupt, report_files
from roce_dissect.decode.options import DEFAULT_OPTIONS, ReadOptions
from roce_dissect.errors import ArgumentError

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = [
    "connections_to_choose",
    "end_status",
    "holds_something",
    "known_connection",
    "read_captures",
    "readable_once",
]

_MOST_LISTED = 5


def read_captures(
    files: Sequence[str], interrupt: Interrupt, *, messages: bool = False, options: ReadOptions = DEFAULT_OPTIONS
) -> Analysis:
    """Analyse captures to their end, or up to Ctrl-C, with a bar on standard error.

    Parameters
    ----------
    files : sequence of str
        As the user gave them.
    interrupt : Interrupt
        Entered by the caller; its ``wanted`` says whether Ctrl-C ended it.
    messages : bool
        Keep the rows of messages.
    options : ReadOptions
        How to read.
    """
    from roce_dissect.api import Session
    from roce_dissect.cli.progress import ReadingBar

    with ReadingBar() as bar:

        def progress(done: int, total: int | None) -> None:
            bar(done, total)
            interrupt.look()

        session = Session(
            list(files), keep_going=True, progress=progress, poll_s=POLL_S, messages=messages, options=options
        )
        try:
            for _ in interrupt.through(session):
                pass
        except KeyboardInterrupt:
            interrupt.wanted = True
        session.interrupted = interrupt.wanted
        return session.analysis()


def holds_something(result: Analysis) -> bool:
    """Whether anything could be read; else there is nothing to say beside the errors."""
    return any(one["error"] is None or one["frames"] for one in result.capture["files"])


def end_status(result: Analysis) -> int:
    """One line on standard error for each input that could not be read to its end, and the exit status."""
    status = report_files(result.capture["files"])
    return INTERRUPTED if result.capture["interrupted"] else status


def readable_once(files: Sequence[str]) -> bool:
    """Whether one of the inputs cannot be read a second time: standard input, a pipe."""
    return any(file == "-" or (os.path.exists(file) and not os.path.isfile(file)) for file in files)


def known_connection(result: Analysis, number: int | None) -> bool:
    """Whether a connection that was asked for is there; None is.

    Raises
    ------
    ArgumentError
        It is not, and no file that could not be read explains that.
    """
    if number is None or number in set(result.connections["connection"].tolist()):
        return True
    if any(one["error"] is not None for one in result.capture["files"]) and len(result.connections) == 0:
        return False
    raise ArgumentError(f"there is no connection {number}{connections_to_choose(result)}")


def connections_to_choose(result: Analysis) -> str:
    """The connections that matter most, for an error message."""
    from roce_dissect.cli.connection_rows import connection_rows

    if len(result.connections) == 0:
        return ": the capture has none"
    rows = connection_rows(result, _MOST_LISTED)
    listed = "; ".join(f"{row.number}: {row.ends[0]} - {row.ends[1]}" for row in rows)
    more = len(result.connections) - len(rows)
    return f" (most affected first: {listed}{f'; {more} more' if more else ''})"
