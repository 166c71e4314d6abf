"""``roce-dissect verify``: our decoding against Wireshark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from roce_dissect.cli.common import (
    FINE,
    INTERRUPTED,
    POLL_S,
    UNREADABLE,
    Interrupt,
    complain,
    report_files,
)
from roce_dissect.cli.options import reading_options
from roce_dissect.cli.reading import readable_once
from roce_dissect.errors import ArgumentError, CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_dissect.analysis.verification import Verification
    from roce_dissect.decode.options import ReadOptions

__all__ = ["DIFFERENT", "command"]

#: Exit status: a value that no trap explains.
DIFFERENT = 1


@click.command("verify")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="json: see docs/json.md.")
@click.option(
    "--differences",
    "most",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="N",
    help="Show at most N differences of each field; all are counted.",
)
@reading_options
def command(files: tuple[str, ...], form: str, most: int, options: ReadOptions) -> int:
    """Compare the decoding with Wireshark's, field by field.

    Runs tshark on each FILE and holds every value that it shows of a RoCE packet against ours. What tshark is known to
    get wrong is skipped, counted and named, see docs/verify.md; what is left are true differences, each with its frame.

    Exit status: 0 all values are equal, 1 some differ, 2 a file or tshark could not be used.
    """
    if readable_once(files):
        raise ArgumentError("verify and tshark both read the capture: give a file, not a pipe or standard input")
    if options.selection is not None:
        options.selection.demand_decoded()
    from roce_dissect.analysis.tshark import find_tshark
    from roce_dissect.cli.forms import warn_if_slow

    tshark = find_tshark()
    warn_if_slow()
    from roce_dissect.analysis.verification import Verification
    from roce_dissect.cli.progress import ReadingBar

    with Interrupt() as interrupt, ReadingBar() as bar:
        result = Verification(tshark, options=options, most=most, progress=bar, poll_s=POLL_S)
        try:
            _read(result, files, interrupt)
        except KeyboardInterrupt:
            interrupt.wanted = True
        result.interrupted = interrupt.wanted
    _print(result, form)
    status = _report(result)
    if interrupt.wanted:
        return INTERRUPTED
    return status if status != FINE or not result.different else DIFFERENT


def _read(result: Verification, files: Sequence[str], interrupt: Interrupt) -> None:
    for file in files:
        for _ in interrupt.through(result.read(file)):
            pass
        if interrupt.wanted:
            return


def _print(result: Verification, form: str) -> None:
    if form == "json":
        import json

        click.echo(json.dumps(result.to_dict(), allow_nan=False))
    elif result.packets or any(one.error is None and one.tshark_error is None for one in result.files):
        from roce_dissect.cli.aligned import output_width, written
        from roce_dissect.cli.verify_text import verify_lines

        click.echo(written(verify_lines(result, output_width())), nl=False)


def _report(result: Verification) -> int:
    """One line on standard error for each file that could not be compared to its end; returns the exit status."""
    status = report_files(
        {"path": one.path, "error": one.error, "error_offset": one.error_offset} for one in result.files
    )
    for one in result.files:
        if one.tshark_error is not None:
            complain(str(CaptureError(one.path, f"tshark {result.tshark.version} broke off: {one.tshark_error}")))
            status = UNREADABLE
    return status
