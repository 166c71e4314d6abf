"""Messages as lines of text, and what closes them: how many there are, their latencies, a filter."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from roce_dissect.analysis.filters import frames_filter
from roce_dissect.cli.aligned import NO_BREAK, output_width, table_lines, with_filter, written
from roce_dissect.cli.choice import nothing_fits
from roce_dissect.cli.event_table import records
from roce_dissect.cli.latency_rows import LATENCY_FIGURES, LATENCY_MEANING, latency_rows
from roce_dissect.cli.places import frame_in_words, frames_in_words, spans_of
from roce_dissect.cli.safe import safe
from roce_dissect.spec.aeth import syndrome_name
from roce_dissect.units import count, duration, plural, size

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.api import Analysis

__all__ = ["message_filter", "message_lines", "print_messages"]

#: Cells are at least so wide, so that the pieces of a long table stand in line.
_WIDTHS = (12, 2, 3, 12, 13, 14, 11, 21, 7, 7)
_AT_THE_RIGHT = (0, 8, 9)
#: A filter for all lines names at most so many ranges of frames.
_MOST_SPANS = 60
_LATENCY_ROWS = 40


def print_messages(
    result: Analysis,
    pieces: Iterator[pd.DataFrame],
    found: dict[str, int],
    most: int,
    filters: bool,
    own: Sequence[tuple[str, object]] = (),
) -> None:
    """Print at most so many lines, and the closing ones, on standard output.

    Parameters
    ----------
    result : Analysis
    pieces : iterator of DataFrame
        Rows of `roce_dissect.columns.MESSAGES`.
    found : dict of str to int
        How many there are of each status; filled in while `pieces` are taken.
    most : int
    filters : bool
        A display filter at the end of each line, instead of one at the end.
    own : sequence of (str, object)
        Options of the command's own that chose messages, to be told where none fits.
    """
    width = output_width()
    shown: list[dict[str, Any]] = []
    for piece in pieces:
        rows = records(piece.iloc[: most - len(shown)])
        sys.stdout.write(written(message_lines(result, rows, filters, width)))
        sys.stdout.flush()
        shown += rows
    lines = [_sum(found, len(shown)) if any(found.values()) else nothing_fits("message", result.capture, own)]
    if shown and not filters:
        lines += _common_filters(result, shown)
    if len(result.latency):
        lines += ["", f"Latency in the whole capture ({LATENCY_MEANING})"]
        rows_of_latency = latency_rows(result, _LATENCY_ROWS)
        right = LATENCY_FIGURES[1:-1]
        lines += table_lines(LATENCY_FIGURES, rows_of_latency, right=right, lead=2, width=width)
    sys.stdout.write(written(lines))


def message_lines(result: Analysis, rows: list[dict[str, Any]], filters: bool, width: int | None) -> list[str]:
    """One line for each message, in aligned cells; folded with an indent where the terminal is narrow."""
    several = len(result.capture["files"]) > 1
    start = result.capture["first_time_ns"] or 0
    ways = _ways(result)
    lines = []
    for row in rows:
        cells = _cells(row, ways.get(row["stream"], ""), start, several)
        aligned = [
            f"{cell:{'>' if number in _AT_THE_RIGHT else ''}{least}}"
            for number, (cell, least) in enumerate(zip(cells, _WIDTHS, strict=False))
        ]
        line = "  ".join([*aligned, cells[-1]]).rstrip()
        narrow = "  ".join([*(cell.replace(" ", NO_BREAK) for cell in cells[:-1] if cell), cells[-1]])
        lines += with_filter(line, narrow, message_filter(result, row) if filters else "", width)
    return lines


def message_filter(result: Analysis, row: dict[str, Any]) -> str:
    """A display filter for the frames of a message and its answer, in the file of its first frame."""
    spans = [(first, last) for file, first, last in _spans(result, row) if file == row["file"]]
    qps = sorted({qp for qp in _qps(result, row["stream"]) if qp is not None})
    named = f" && infiniband.bth.destqp in {{{', '.join(map(hex, qps))}}}" if qps else ""
    return frames_filter(spans) + named


def _qps(result: Analysis, stream: int) -> list[int | None]:
    """QPs of both directions: between the frames of a message there are those of others."""
    [row] = records(result.streams.loc[[stream], ["dest_qp", "src_qp"]])
    return [row["dest_qp"], row["src_qp"]]


def _spans(result: Analysis, row: dict[str, Any]) -> list[tuple[int, int, int]]:
    lengths = [one["frames"] for one in result.capture["files"]]
    spans = spans_of((row["file"], row["frame"], row["last_file"], row["last_frame"]), lengths)
    if row["answer_frame"] is not None:
        file, frame = row["answer_file"], row["answer_frame"]
        first = (row["answer_first_file"], row["answer_first_frame"]) if row["answer_first_frame"] else (file, frame)
        spans += spans_of((*first, file, frame), lengths)
    return spans


def _common_filters(result: Analysis, rows: list[dict[str, Any]]) -> list[str]:
    """One filter for each file, unless there are too many frames to paste."""
    by_file: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        for file, first, last in _spans(result, row):
            by_file.setdefault(file, []).append((first, last))
    files = [one["path"] for one in result.capture["files"]]
    lines = []
    for file, spans in sorted(by_file.items()):
        where = f" in {safe(files[file])}" if len(files) > 1 else ""
        text = frames_filter(spans)
        if text.count(",") < _MOST_SPANS:
            lines.append(f"Wireshark, these messages{where}: {text}")
    return lines


def _ways(result: Analysis) -> dict[int, str]:
    ways: dict[int, str] = {}
    for name, words in (("a_to_b_stream", "a>b"), ("b_to_a_stream", "b>a")):
        ways |= dict.fromkeys(result.connections[name].tolist(), words)
    ways.pop(-1, None)
    return ways


def _sum(found: dict[str, int], shown: int) -> str:
    """``103 messages: 97 complete, 1 refused, 5 flushed; 63 more``."""
    number = sum(found.values())
    listed = ", ".join(f"{count(found[status])} {status.replace('_', ' ')}" for status in found)
    more = f"; {count(number - shown)} more than are shown" if number > shown else ""
    return f"{plural(number, 'message')}: {listed}{more}"


def _cells(row: dict[str, Any], way: str, start_ns: int, several: bool) -> list[str]:
    answer = row["answer_frame"]
    span = f"-{row['last_psn']}" if row["last_psn"] != row["psn"] else ""
    return [
        f"+{(row['time_ns'] - start_ns) / 1e9:.6f}",
        f"#{row['connection']}" if row["connection"] else "",
        way,
        row["verb"],
        row["status"],
        frames_in_words([(row["file"], row["frame"], row["last_file"], row["last_frame"])], several),
        f"answer {frame_in_words(row['answer_file'], answer, several).removeprefix('frame ')}" if answer else "",
        f"PSN {row['psn']}{span}",
        size(row["bytes"]) if row["bytes"] is not None else "? B",  # a READ whose RETH was cut off
        duration(row["latency_ns"]) if row["latency_ns"] is not None else "-",
        ", ".join(_remarks(row)),
    ]


def _remarks(row: dict[str, Any]) -> Iterator[str]:
    if row["syndrome"] is not None:
        yield syndrome_name(row["syndrome"])
    if row["resends"]:
        yield f"{plural(row['resends'], 'packet')} sent again"
    if row["rnr_naks"]:
        yield plural(row["rnr_naks"], "RNR NAK")
    if not row["whole"]:
        yield "not all of it seen"
    if row["va"] is not None:
        yield f"address {row['va']:#x}, key {row['r_key']:#x}"
    if row["imm_data"] is not None:
        yield f"immediate {row['imm_data']:#x}"
    if row["inv_r_key"] is not None:
        yield f"invalidates key {row['inv_r_key']:#x}"
