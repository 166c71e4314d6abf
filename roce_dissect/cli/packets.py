"""``roce-dissect packets``: one line per RoCE packet, or each one's frame in full."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from roce_dissect.cli.common import FINE, INTERRUPTED, POLL_S, Interrupt, complain, report_files
from roce_dissect.cli.options import reading_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from roce_dissect.analysis.packet_sources import PacketSession
    from roce_dissect.cli.wireshark import Wireshark
    from roce_dissect.decode.options import ReadOptions

__all__ = ["command"]


@click.command("packets")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["text", "csv", "jsonl"]), default="text", show_default=True)
@click.option("--columns", metavar="NAME,...", help="Columns to print, in this order; in text form, separated by tabs.")
@click.option(
    "--frame",
    "frames",
    metavar="N,N-M,...",
    help="Only these frames, by Wireshark's numbers: 5,86-90,1000- say.",
)
@click.option("-V", "--dissect", "full", is_flag=True, help="Print each frame in full, as a tree: text or jsonl.")
@click.option("--hex", "dump", is_flag=True, help="As -V, and the bytes of each frame.")
@click.option(
    "--tshark",
    "beside",
    is_flag=True,
    help="As -V, with --frame or --packets: and what Wireshark says of the same frames (needs pyshark and tshark).",
)
@reading_options
def command(
    files: tuple[str, ...],
    form: str,
    columns: str | None,
    frames: str | None,
    full: bool,
    dump: bool,
    beside: bool,
    options: ReadOptions,
) -> int:
    """Print one line per RoCE packet, with verdicts; or whole frames, field by field.

    In text form: frame, time since the first frame, addresses, operation, QP, PSN, length, and what is remarkable:
    syndrome, verdict unless it is new, what the responder made of it (as far as this
    point of the capture tells) unless it accepted it. csv and jsonl have all
    columns that docs/json.md lists, opcode as a number and operation as its name.

    Verdicts are those of the whole capture: --filter and its kin choose what is printed, and --filter may name verdict
    and the like, too.

    With -V: every field from the link header to the end of the frame with its name, value, meaning and place in the
    frame (byte 0 is the first one; bit 0 is the least significant one), then what the packet is on its connection.
    """
    from roce_dissect.analysis.frame_ranges import FrameRanges
    from roce_dissect.analysis.packet_sources import PacketSession
    from roce_dissect.cli.forms import warn_if_slow
    from roce_dissect.cli.packet_lines import TEXT_COLUMNS
    from roce_dissect.columns import packet_columns

    names = None if columns is None else tuple(name.strip() for name in columns.split(",") if name.strip())
    if names == ():
        raise click.UsageError("--columns names no column")
    full = full or dump or beside
    if full:
        _demand_tree(form, columns, dump or beside)
    chosen = None if frames is None else FrameRanges(frames)
    counted = options.selection is not None and options.selection.count is not None
    wireshark = _wireshark(files, chosen is not None or counted, options) if beside else None
    if names is None and form == "text" and not full:
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
            frames=chosen,
            with_bytes=full,
            shown=True,
        )
        if form == "csv":
            click.echo(",".join(column.name for column in wanted))
        try:
            for packets in interrupt.through(session):
                printed += len(packets)
                if full:
                    for text in _trees(packets, session, form, dump, wireshark):
                        sys.stdout.write(text)
                        if interrupt.wanted:  # a batch may hold thousands of them
                            break
                else:
                    sys.stdout.write(_text(packets, form, columns is not None, session.first_time_ns or 0))
                sys.stdout.flush()
        except KeyboardInterrupt:
            interrupt.wanted = True
    status = report_files(asdict(one) for one in session.files)
    choice = "" if options.selection is None else str(options.selection)
    if printed == 0 and (choice or chosen is not None) and status == FINE and not interrupt.wanted:
        among = "" if chosen is None else " among these frames"
        complain(f"no packet{among} fits {choice}" if choice else f"there is no RoCE packet{among}")
    return INTERRUPTED if interrupt.wanted else status


def _demand_tree(form: str, columns: str | None, only_text: bool) -> None:
    """Refuse what does not go with whole frames."""
    if columns is not None:
        raise click.UsageError("--columns does not go with -V, which prints every field")
    if form == "csv":
        raise click.UsageError("-V prints a tree: it goes with --format text or jsonl")
    if only_text and form != "text":
        raise click.UsageError("--hex and --tshark go with --format text only")


def _wireshark(files: tuple[str, ...], few: bool, options: ReadOptions) -> Wireshark:
    from roce_dissect.cli.reading import readable_once
    from roce_dissect.cli.wireshark import Wireshark

    if readable_once(files):
        raise click.UsageError("--tshark reads the capture once more: give a file, not standard input or a pipe")
    if not few:
        raise click.UsageError("--tshark is for a few frames: choose them with --frame or --packets")
    return Wireshark(options.ports)


def _trees(
    packets: pd.DataFrame, session: PacketSession, form: str, dump: bool, wireshark: Wireshark | None
) -> Iterator[str]:
    from roce_dissect.cli.dissection import dissected

    paths = [one.path for one in session.files]
    as_json = form == "jsonl"
    return dissected(packets, paths, session.first_time_ns, as_json=as_json, dump=dump, wireshark=wireshark)


def _text(packets: pd.DataFrame, form: str, chosen: bool, start_ns: int) -> str:
    from roce_dissect.cli import packet_lines, table_lines

    if packets.empty:
        return ""
    if form == "csv":
        return table_lines.csv_lines(packets)
    if form == "jsonl":
        return table_lines.json_lines(packets)
    return table_lines.tab_lines(packets) if chosen else packet_lines.text_lines(packets, start_ns)
