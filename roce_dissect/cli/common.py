"""What all commands share: errors as one line and an exit status, Ctrl-C, a closed pipe."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from roce_dissect.cli.safe import safe
from roce_dissect.errors import CaptureError, RoceDissectError

__all__ = [
    "FILTERS_OPTION",
    "FINE",
    "INTERRUPTED",
    "LINES_FORMAT_OPTION",
    "POLL_S",
    "PROGRAM",
    "UNREADABLE",
    "Interrupt",
    "OutputClosedError",
    "complain",
    "demand_text",
    "report_files",
    "run",
]

PROGRAM = "roce-dissect"

#: Exit statuses. 1 is reserved for findings.
FINE = 0
UNREADABLE = 2
INTERRUPTED = 128 + signal.SIGINT

#: How long to wait for a pipe before looking at signals.
POLL_S = 0.2

#: Of the commands that print one line for each of many rows.
FILTERS_OPTION = click.option("--filters", is_flag=True, help="A Wireshark display filter at the end of each line.")
LINES_FORMAT_OPTION = click.option(
    "--format", "form", type=click.Choice(["text", "jsonl", "csv"]), default="text", show_default=True
)

_PATIENCE = 16  # batches of records without a step


def demand_text(filters: bool, form: str) -> None:
    """Refuse ``--filters`` with a form for programs, which has the frames' numbers in columns."""
    if filters and form != "text":
        raise click.UsageError("--filters goes with --format text only")


def complain(text: str) -> None:
    """One line on standard error; where that cannot be written to, the status has to say it."""
    try:
        click.echo(f"{PROGRAM}: {safe(text)}", err=True)
    except OSError:
        _drop(sys.stderr)


def report_files(files: Iterable[dict[str, Any]]) -> int:
    """One line on standard error for every input that could not be read to its end; returns the exit status.

    `files` are as in ``capture["files"]``.
    """
    status = FINE
    for record in files:
        if record["error"] is not None:
            complain(str(CaptureError(record["path"], record["error"], record["error_offset"])))
            status = UNREADABLE
    return status


class OutputClosedError(Exception):
    """The reader of standard output has gone, as `head` does."""


class Interrupt:
    """Ctrl-C as a wish: work goes on to the next point where everything read so far is in the tables.

    Used as a context manager. Before the first step, when nothing is known yet, and at the second Ctrl-C,
    KeyboardInterrupt is raised at once.

    Parameters
    ----------
    *signals : int
        Which signals; SIGINT by default.

    Attributes
    ----------
    wanted : bool
        Whether Ctrl-C was pressed.
    """

    def __init__(self, *signals: int) -> None:
        self.wanted = False
        self._started = False
        self._waits = 0
        self._signals = signals or (signal.SIGINT,)
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        with contextlib.suppress(ValueError):  # not in the main thread: Ctrl-C does not come here
            for number in self._signals:
                self._former[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    def _take(self, _number: int, _frame: object) -> None:
        if self.wanted or not self._started:
            self.wanted = True
            raise KeyboardInterrupt
        self.wanted = True

    def through(self, steps: Iterable[Any]) -> Iterator[Any]:
        """Hand on steps after each of which the tables are whole, until Ctrl-C is pressed.

        Steps with a method ``stop`` are told so, and come to their own end: what was read is still handed out.
        """
        stop = getattr(steps, "stop", None)
        for step in steps:
            self._started = True
            self._waits = 0
            yield step
            if self.wanted:
                if stop is None:
                    return
                stop()

    def step(self) -> bool:
        """To be called after a step, where the tables are whole: returns whether to end."""
        self._started = True
        return self.wanted

    def look(self) -> None:
        """For work that may go on for long without a step, such as a file that holds no RoCE: end it after all."""
        self._started = True
        self._waits += self.wanted
        if self._waits > _PATIENCE:
            raise KeyboardInterrupt


def run(group: click.Command, arguments: Sequence[str] | None) -> int:
    """Run a command; whatever a user can cause ends in one line on standard error and a status."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a file name that the terminal's encoding lacks must not end in a traceback
            reconfigure(errors="backslashreplace")
    try:
        status = group.main(args=arguments, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and later
            try:
                error.show()
            except OSError:
                _drop(sys.stderr)
            return UNREADABLE
        where = error.ctx.command_path if error.ctx is not None else PROGRAM
        complain(f"{error.format_message().rstrip('.')} (see {where} --help)")
        return UNREADABLE
    except click.ClickException as error:
        complain(error.format_message())
        return UNREADABLE
    except RoceDissectError as error:
        complain(str(error))
        return UNREADABLE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (OutputClosedError, BrokenPipeError):
        _drop(sys.stdout)
        return FINE
    except OSError as error:
        complain(f"{error.filename or 'cannot write the output'}: {error.strerror or error}")
        _drop(sys.stdout)
        return UNREADABLE
    return status if isinstance(status, int) else FINE


def _open_closed_streams() -> None:
    """Let what is written to a stream that was closed before the start (``>&-``) go nowhere."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (for the process's life)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _drop(stream: Any) -> None:
    """Let what is still buffered for a stream go nowhere, so that the interpreter's last flush is quiet."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
