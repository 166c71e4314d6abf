"""Goodput over time, with what disturbed it below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roce_dissect import units
from roce_dissect.errors import ArgumentError
from roce_dissect.plot.bins import COUNTED, Bins, bin_packets
from roce_dissect.plot.style import DIRECTIONS, MARKS, QUIET, dress, new_axes, say, set_title
from roce_dissect.plot.units import connection_heading, ends, rate, rate_unit, time_unit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from roce_dissect.api import Analysis

__all__ = ["COUNTS_LABEL", "draw_rate"]

#: Label of the axes with the counts, to find them among ``ax.figure.axes``.
COUNTS_LABEL = "counts"

#: Lines of a whole capture: the hosts that sent most, and one for the others.
_MOST_LINES = len(DIRECTIONS)
#: Height of one row of counts, as a part of that of the rate's axes, and the least height of a count in its row.
_LANE, _LEAST = 0.075, 0.15


def draw_rate(
    analysis: Analysis, connection: int | None = None, ax: Axes | None = None, *, bin_ns: int | None = None
) -> Axes:
    """Draw goodput over time; see `PlotAccessor.rate`."""
    heading, lines = _lines(analysis, connection)
    bins = bin_packets(analysis, [streams for _, streams in lines], connection, bin_ns) if lines else None
    ax = ax if ax is not None else new_axes()[0]
    if bins is None:
        set_title(ax, heading)
        say(ax, "No packet of a queue pair was captured, so there is no rate.")
        return ax
    dress(ax)
    unit_ns, unit = time_unit(int(bins.edges_ns[-1]))
    edges = bins.edges_ns / unit_ns
    _draw_goodput(ax, bins, [label for label, _ in lines], edges)
    lower = _draw_counts(ax, bins, edges) if bins.counts else ax
    lower.set_xlabel(f"time since {units.clock(bins.start_ns)} ({unit})", fontsize=9)
    margin = 0.02 * edges[-1]
    ax.set_xlim(-margin, edges[-1] + margin)
    set_title(ax, heading, _figures(bins))
    return ax


def _lines(analysis: Analysis, connection: int | None) -> tuple[str, list[tuple[str, list[int]]]]:
    """Heading, and (label, streams) of each line: directions of a connection, or sending hosts of a capture."""
    if connection is not None and len(analysis.connections):
        rows = analysis.connections[analysis.connections["connection"] == connection]
        if rows.empty:
            raise ArgumentError(f"no connection {connection}: the capture has {len(analysis.connections)}")
        row = rows.iloc[0]
        a, b = ends(row)
        ways = ((a, b, int(row["a_to_b_stream"])), (b, a, int(row["b_to_a_stream"])))
        lines = [(f"{one} \N{RIGHTWARDS ARROW} {other}", [stream]) for one, other, stream in ways if stream >= 0]
        return connection_heading(row), lines
    connections = units.plural(len(analysis.connections), "connection")
    if connection is not None:
        return f"Connection {connection} of {connections}", []
    return f"Whole capture: {connections}, {units.plural(len(analysis.streams), 'stream')}", _senders(analysis.streams)


def _senders(streams: pd.DataFrame) -> list[tuple[str, list[int]]]:
    """(label, streams) per sending host, most goodput first; hosts beyond the number of lines are one group."""
    if streams.empty:
        return []
    goodput = streams.groupby("src")["goodput_bytes"].sum().astype("int64")
    hosts = goodput.sort_values(ascending=False, kind="stable").index.tolist()
    named = hosts if len(hosts) <= _MOST_LINES else hosts[: _MOST_LINES - 1]
    lines = [(f"from {host}", streams["stream"][streams["src"] == host].astype("int64").tolist()) for host in named]
    if len(named) < len(hosts):
        rest = streams["stream"][~streams["src"].isin(named)].astype("int64").tolist()
        lines.append((f"from {len(hosts) - len(named)} other hosts", rest))
    return lines


def _draw_goodput(ax: Axes, bins: Bins, labels: list[str], edges: np.ndarray) -> None:
    """A staircase per line: a rate belongs to its whole bin, so nothing slopes from one to the next."""
    per_second = bins.goodput * (8e9 / bins.width_ns)
    scale, unit = rate_unit(float(per_second.max()))
    totals = bins.goodput.sum(axis=1)
    with_payload = np.flatnonzero(totals)
    for number, (color, style) in zip(with_payload, DIRECTIONS, strict=False):
        ax.stairs(
            per_second[number] / scale, edges, color=color, linestyle=style, linewidth=1.3,
            label=f"{labels[number]} ({units.size(int(totals[number]))})",
        )  # fmt: skip
        if len(labels) <= 2:
            ax.stairs(per_second[number] / scale, edges, color=color, fill=True, alpha=0.15, linewidth=0)
    top = float(per_second.max()) / scale
    # Room for the legend above the highest bin, so that it covers nothing.
    ax.set_ylim(0, top * (1.1 + 0.08 * len(with_payload)) if top else 1)
    ax.set_ylabel(f"goodput ({unit}, per {units.duration(bins.width_ns)})", fontsize=9)
    if top:
        ax.legend(loc="upper right", fontsize=8, frameon=False, borderaxespad=0.2)
    else:
        ax.text(0.5, 0.5, "no new payload", transform=ax.transAxes, ha="center", color=QUIET)


def _draw_counts(ax: Axes, bins: Bins, edges: np.ndarray) -> Axes:
    """A row of bars for each thing that was counted, below the rate, on the same time axis.

    Each row has its own scale: full height is the most in one bin, which stands at its right. A count is drawn with at
    least 15 % of the height, so that a single one can be seen.
    """
    names = [name for name in COUNTED if name in bins.counts]
    lower = _room_below(ax, _LANE * len(names))
    dress(lower)
    lower.grid(False, axis="y")
    labels = []
    for lane, name in enumerate(reversed(names)):
        counts = bins.counts[name]
        most = int(counts.max())
        tall = np.where(counts > 0, np.maximum(counts / most, _LEAST) * 0.85, 0)
        lower.stairs(
            tall + lane, edges, baseline=lane, fill=True, color=MARKS[name].color, edgecolor=QUIET, linewidth=0.3,
            label=name,
        )  # fmt: skip
        labels.append(f"{MARKS[name].label} ({units.count(int(counts.sum()))})")
        lower.annotate(
            f"\N{LESS-THAN OR EQUAL TO} {units.count(most)}", (1, lane + 0.42), (3, 0),
            xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=7, va="center", color=QUIET,
        )  # fmt: skip
        lower.axhline(lane, color="#DDDDDD", linewidth=0.5, zorder=0)
    lower.set_yticks([lane + 0.42 for lane in range(len(names))], labels)
    lower.tick_params(axis="y", length=0, labelsize=7.5)
    lower.set_ylim(0, len(names))
    lower.spines["left"].set_visible(False)
    ax.tick_params(axis="x", labelbottom=False)
    return lower


def _room_below(ax: Axes, part: float) -> Axes:
    """New axes in the lower part of the place of `ax`, which gives way; part 1 is half of it."""
    figure, spec = ax.figure, ax.get_subplotspec()
    if spec is not None:  # within its grid, so that layout engines know of both
        grid = spec.subgridspec(2, 1, height_ratios=(1, part), hspace=0.05)
        ax.set_subplotspec(grid[0])
        return figure.add_subplot(grid[1], sharex=ax, label=COUNTS_LABEL)
    box = ax.get_position()
    lower = box.height * part / (1 + part)
    ax.set_position((box.x0, box.y0 + lower * 1.1, box.width, box.height - lower * 1.1))
    return figure.add_axes((box.x0, box.y0, box.width, lower), sharex=ax, label=COUNTS_LABEL)


def _figures(bins: Bins) -> str:
    """One line about the whole picture."""
    total = int(bins.goodput.sum())
    text = f"{units.size(total)} of goodput"
    if total and bins.span_ns > 0:
        text += f" in {units.duration(bins.span_ns)}, {rate(total * 8e9 / bins.span_ns)} on average"
    if bins.outside:
        text += f"; {units.plural(bins.outside, 'packet')} with times outside the range, counted at the edges"
    return text
