"""``roce-dissect packets``: one line per RoCE packet."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from roce_dissect.cli.common import FINE, INTERRUPTED, POLL_S, Interrupt, complain, report_files
from roce_dissect.cli.options import reading_options

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.decode.options import ReadOptions

__all__ = ["command"]


@click.command("packets")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["text", "csv", "jsonl"]), default="text", show_default=True)
@click.option("--columns", metavar="NAME,...", help="Columns to print, in this order; in text form, separated by tabs.")
@reading_options
def command(files: tuple[str, ...], form: str, columns: str | None, options: ReadOptions) -> int:
    """Print one line per RoCE packet, with verdicts.

    In text form: frame, time since the first frame, addresses, operation, QP, PSN, length, and what is remarkable:
    syndrome, verdict unless it is new, what the responder made of it (as far as this
    point of the capture tells) unless it accepted it. csv and jsonl have all
    columns that docs/json.md lists, opcode as a number and operation as its name.

    Verdicts are those of the whole capture: --filter and its kin choose what is printed, and --filter may name verdict
    and the like, too.
    """
    from roce_dissect.analysis.packet_sources import PacketSession
    from roce_dissect.cli.forms import warn_if_slow
    from roce_dissect.cli.packet_lines import TEXT_COLUMNS
    from roce_dissect.columns import packet_columns

    names = None if columns is None else tuple(name.strip() for name in columns.split(",") if name.strip())
    if names == ():
        raise click.UsageError("--columns names no column")
    if names is None and form == "text":
        names = (*(("file",) if len(files) > 1 else ()), *TEXT_COLUMNS)
    wanted = packet_columns(names)
    printed = 0
    warn_if_slow()
    with Interrupt() as interrupt:
        session = PacketSession(
            list(files),
            wanted,
            keep_going=True,
            progress=lambda *_: interrupt.look(),
            poll_s=POLL_S,
            options=options,
            shown=True,
        )
        if form == "csv":
            click.echo(",".join(column.name for column in wanted))
        try:
            for packets in interrupt.through(session):
                printed += len(packets)
                sys.stdout.write(_text(packets, form, columns is not None, session.first_time_ns or 0))
                sys.stdout.flush()
        except KeyboardInterrupt:
            interrupt.wanted = True
    status = report_files(asdict(one) for one in session.files)
    choice = "" if options.selection is None else str(options.selection)
    if printed == 0 and choice and status == FINE and not interrupt.wanted:
        complain(f"no packet fits {choice}")
    return INTERRUPTED if interrupt.wanted else status


def _text(packets: pd.DataFrame, form: str, chosen: bool, start_ns: int) -> str:
    from roce_dissect.cli import packet_lines, table_lines

    if packets.empty:
        return ""
    if form == "csv":
        return table_lines.csv_lines(packets)
    if form == "jsonl":
        return table_lines.json_lines(packets)
    return table_lines.tab_lines(packets) if chosen else packet_lines.text_lines(packets, start_ns)
