"""Latency of complete messages by verb and size, as cells."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from roce_dissect.cli.places import frame_in_words
from roce_dissect.units import count, duration

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["LATENCY_FIGURES", "LATENCY_MEANING", "latency_rows"]

#: Headings, in order.
LATENCY_FIGURES = ("verb", "bytes up to", "messages", "least", "p50", "p90", "p99", "p99.9", "most", "of")
LATENCY_MEANING = "of complete messages, first frame to answer, as they passed here"

_PERCENTILES = {"p50_ns": 2, "p90_ns": 10, "p99_ns": 100, "p999_ns": 1000}


def latency_rows(result: Analysis, most: int) -> list[list[str]]:
    """Cells under `LATENCY_FIGURES`, by verb and size; when there are more than `most`, those with most messages.

    A percentile needs so many messages that one of them is beyond it; with fewer it stands as ``-``.
    """
    table = result.latency
    kept = table.sort_values("messages", ascending=False, kind="stable").head(most).index
    several = len(result.capture["files"]) > 1
    return [_cells(row, several) for row in table.loc[table.index.isin(kept)].to_dict("records")]


def _cells(row: dict[Hashable, Any], several: bool) -> list[str]:
    percentiles = [
        duration(int(row[name])) if row["messages"] >= least else "-" for name, least in _PERCENTILES.items()
    ]
    return [
        row["verb"],
        count(int(row["most_bytes"])),
        count(int(row["messages"])),
        duration(int(row["least_ns"])),
        *percentiles,
        duration(int(row["most_ns"])),
        f"#{row['most_connection']}, {frame_in_words(int(row['most_file']), int(row['most_frame']), several)}",
    ]
