"""Time against PSN: what a connection sent, what was missing, what came again, and what the responder said."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from roce_dissect import units
from roce_dissect.errors import ArgumentError
from roce_dissect.plot.points import KEEP
from roce_dissect.plot.spaces import CIRCLE, Space, gather
from roce_dissect.plot.style import MARKS, QUIET, dress, new_axes, say, set_title
from roce_dissect.plot.units import connection_heading, ends, time_unit
from roce_dissect.spec.aeth import syndrome_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from roce_dissect.api import Analysis

__all__ = ["draw_sequence", "psn_ticks"]

#: Marks on the PSN axis, in the order of drawing, and those on the time axis alone with their height above it.
_ON_PSN = ("new", "response", "resent", "response_resent", "copy", "late", "nak", "rnr_nak", "fatal_nak")
_ON_TIME = {"ce": 0.02, "cnp": 0.05}
_RESPONSES = ("response", "response_resent", "response_gap", "nak", "rnr_nak", "fatal_nak")


def draw_sequence(
    analysis: Analysis, connection: int = 1, ax: Axes | None = None, *, relative: bool = False, keep: int = KEEP
) -> Axes:
    """Draw a connection's requests and responses over time; see `PlotAccessor.sequence`."""
    row = _row(analysis, connection)
    spaces = [] if row is None else gather(analysis, row, keep)
    if row is None or not spaces:
        axes = [ax] if ax is not None else new_axes()
        say(axes[0], _nothing(analysis, row))
        return axes[0]
    carrying = [space for space in spaces if space.requests_count] or spaces[:1]
    shown = carrying if ax is None else carrying[:1]
    axes = [ax] if ax is not None else new_axes(len(shown))
    first, last = _extent(shown)
    unit_ns, unit = time_unit(last - first)
    for number, (panel, space) in enumerate(zip(axes, shown, strict=True)):
        stalls = _stalls(analysis, space)
        _draw_space(panel, space, stalls, first, unit_ns, relative)
        heading = connection_heading(row) if number == 0 else ""
        figures = _figures(space, row, len(carrying) > 1)
        if len(shown) < len(carrying):
            figures += " \N{EN DASH} the other direction sent requests, too"
        set_title(panel, heading, figures)
        panel.set_ylabel("PSN relative to the first" if relative else "PSN", fontsize=9)
    span = max(last - first, 1) / unit_ns
    axes[-1].set_xlim(-0.02 * span, 1.02 * span)
    axes[-1].set_xlabel(f"time since {units.clock(first)} ({unit})", fontsize=9)
    return axes[0]


def _row(analysis: Analysis, connection: int) -> pd.Series | None:
    """The connection's row; None where the capture has no connection at all."""
    table = analysis.connections
    if table.empty:
        return None
    rows = table[table["connection"] == connection]
    if rows.empty:
        raise ArgumentError(f"no connection {connection}: the capture has {len(table)}")
    return rows.iloc[0]


def _nothing(analysis: Analysis, row: pd.Series | None) -> str:
    if row is None:
        count = int(analysis.capture["roce_packets"])
        return f"No connection in this capture ({units.plural(count, 'RoCE packet')}): there are no PSNs to follow."
    number = int(row["connection"])
    if int(row["a_to_b_stream"]) < 0 and int(row["b_to_a_stream"]) < 0:
        return f"Connection {number}: only its CM messages were captured, no packet of its queue pairs."
    return f"Connection {number}: no request or response with a PSN was captured."


def _extent(spaces: list[Space]) -> tuple[int, int]:
    """First and last time of anything that is drawn."""
    times = [cloud.points()[0] for space in spaces for cloud in space.clouds.values()]
    times += [space.acked.points()[0] for space in spaces]
    filled = [one for one in times if len(one)]
    return min(int(one.min()) for one in filled), max(int(one.max()) for one in filled)


def _stalls(analysis: Analysis, space: Space) -> np.ndarray:
    """Shape (2, n): where each stall of the requests begins and ends, nanoseconds."""
    events = analysis.events
    runs = events[(events["kind"] == "resend") & (events["stream"] == space.requests) & (events["stall_ns"] > 0)]
    stop = (runs["time_ns"] + runs["duration_ns"]).to_numpy(np.int64)
    return np.stack([stop - runs["stall_ns"].to_numpy(np.int64), stop])


def _draw_space(ax: Axes, space: Space, stalls: np.ndarray, first: int, unit_ns: int, relative: bool) -> None:
    """One panel: everything of one PSN space."""
    shift = space.response_shift
    low, high = _psn_limits(space, shift)
    entries: list[tuple[Any, str]] = []
    dress(ax)

    def time(values: np.ndarray) -> np.ndarray:
        return (values - first) / unit_ns

    if stalls.shape[1]:
        spans = [(start, stop - start) for start, stop in zip(time(stalls[0]), time(stalls[1]), strict=True)]
        shade = ax.broken_barh(
            spans, (0, 1), transform=ax.get_xaxis_transform(), color=MARKS["stall"].color, linewidth=0, zorder=0
        )
        entries.append((shade, f"{MARKS['stall'].label} ({units.duration(int((stalls[1] - stalls[0]).sum()))})"))
    if space.acked.count:
        steps = space.acked.points()
        line = ax.step(time(steps[0]), steps[1] + shift, where="post", color=QUIET, linewidth=1.0, zorder=1.5)[0]
        entries.append((line, f"{MARKS['ack'].label} ({units.plural(space.acked.count, 'response')})"))
    for layer, name in enumerate(("gap", "response_gap")):
        if space.count(name):
            entries.append(_draw_gaps(ax, space, name, time, shift if name == "response_gap" else 0, 2.6 + layer / 10))
    for layer, name in enumerate(_ON_PSN):
        if space.count(name):
            points = space.clouds[name].points()
            place = points[1] + (shift if name in _RESPONSES else 0)
            drawn = ax.plot(time(points[0]), place, zorder=2 + layer / 20, **MARKS[name].marker_style())[0]
            entries.append((drawn, _label(space, name)))
    for name, height in _ON_TIME.items():
        if space.count(name):
            points = space.clouds[name].points()
            drawn = ax.plot(
                time(points[0]), np.full(points.shape[1], height), transform=ax.get_xaxis_transform(), zorder=3,
                **MARKS[name].marker_style(),
            )[0]  # fmt: skip
            entries.append((drawn, _label(space, name)))
    marks_below = any(space.count(name) for name in _ON_TIME)
    room = max((high - low) * 0.04, 1.0)
    ax.set_ylim(low - (2.5 if marks_below else 1) * room, high + room)
    _psn_axis(ax, space, low, high, relative)
    _legend(ax, entries)


def _draw_gaps(ax: Axes, space: Space, name: str, time: Any, shift: int, zorder: float) -> tuple[Any, str]:
    """Each gap at the moment it showed: a mark at its first PSN, and a line over all that did not pass."""
    mark, (times, starts, sizes) = MARKS[name], space.clouds[name].points()
    longer = sizes > 1
    if longer.any():
        bottom = starts[longer] + shift
        ax.vlines(
            time(times[longer]), bottom, bottom + sizes[longer] - 1, color=mark.color, linewidth=1.5, zorder=zorder
        )
    drawn = ax.plot(time(times), starts + shift, zorder=zorder, **mark.marker_style())[0]
    return drawn, _label(space, name)


def _psn_limits(space: Space, shift: int) -> tuple[int, int]:
    """Lowest and highest unwrapped PSN of what is drawn."""
    values = []
    for name, cloud in space.clouds.items():
        if name in _ON_TIME:
            continue
        points = cloud.points()
        place = points[1] + (shift if name in _RESPONSES else 0)
        values += [place, place + np.maximum(points[2] - 1, 0)]
    if space.acked.count:
        values.append(space.acked.points()[1] + shift)
    return min(int(one.min()) for one in values), max(int(one.max()) for one in values)


def _label(space: Space, name: str) -> str:
    """Legend entry: what it is, how often it occurs, and how many are drawn where that is not all."""
    count, drawn = space.count(name), space.clouds[name].points().shape[1]
    word, figures = MARKS[name].label, units.count(count)
    if name == "gap":
        figures += f": {units.plural(space.missing, 'PSN')} had not passed here"
    elif name in ("nak", "fatal_nak", "rnr_nak"):
        said = space.syndromes_of(name)
        word = syndrome_name(said[0]) if len(said) == 1 else word
    if drawn < count:
        figures += f"; {units.count(drawn)} drawn, one per place"
    return f"{word} ({figures})"


def _psn_axis(ax: Axes, space: Space, low: int, high: int, relative: bool) -> None:
    """Ticks at round numbers as Wireshark shows PSNs, also after zooming, and a line where they wrap."""
    from matplotlib.ticker import FuncFormatter, Locator

    start = int(space.clouds["new"].points()[1, 0]) if space.count("new") else low
    base = start if relative else 0

    class PsnLocator(Locator):
        """`psn_ticks` of what is in view."""

        def __call__(self) -> list[int]:
            return self.tick_values(*ax.yaxis.get_view_interval())

        def tick_values(self, vmin: float, vmax: float) -> list[int]:
            return psn_ticks(math.ceil(min(vmin, vmax)), math.floor(max(vmin, vmax)), start if relative else None)

    def name(value: float, _position: int | None = None) -> str:
        return str(round(value) - base if relative else round(value) % CIRCLE)

    ax.yaxis.set_major_locator(PsnLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(name))
    for wrap in range((low // CIRCLE + 1) * CIRCLE, high + 1, CIRCLE):
        ax.axhline(wrap - 0.5, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        ax.annotate(
            "PSN wraps to 0", (1, wrap - 0.5), (-4, 3), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", fontsize=7.5, color=QUIET,
        )  # fmt: skip


def psn_ticks(low: int, high: int, start: int | None = None) -> list[int]:
    """Unwrapped PSNs from `low` to `high` for some eight ticks that read as round numbers.

    Round as PSNs of the wire, that is within each circle of 2^24; or counted from `start`, where it is given.

    Examples
    --------
    >>> [tick % CIRCLE for tick in psn_ticks(16777196, 16777216 + 42)]
    [16777200, 0, 10, 20, 30, 40]
    """
    wanted = max((high - low) / 8, 1)
    power = 10 ** math.floor(math.log10(wanted))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted)
    if start is not None:
        return [*range(low + (start - low) % step, high + 1, step)]
    if high - low > 8 * CIRCLE:  # more circles than ticks: a 0 now and then
        stride = -(-(high - low) // (8 * CIRCLE)) * CIRCLE
        return [*range(-(-low // CIRCLE) * CIRCLE, high + 1, stride)]
    ticks: list[int] = []
    for circle in range(low // CIRCLE * CIRCLE, high + 1, CIRCLE):
        # The last tick before a wrap would collide with the 0 behind it.
        stop = min(high, circle + CIRCLE - 1 - (step // 2 if high >= circle + CIRCLE else 0))
        ticks += range(circle + -(-max(low - circle, 0) // step) * step, stop + 1, step)
    return ticks


def _figures(space: Space, row: pd.Series, both: bool) -> str:
    """One line about a panel."""
    mine_is_a = space.requests == int(row["a_to_b_stream"]) and space.requests >= 0
    if space.requests < 0:
        mine_is_a = space.responses == int(row["b_to_a_stream"])
    a, b = ends(row)
    requester, responder = (a, b) if mine_is_a else (b, a)
    parts = [units.plural(space.requests_count, "request") + f" of {requester}"]
    responses = space.count("response") + space.count("response_resent")
    if responses:
        parts.append(units.plural(responses, "READ response") + f" of {responder}")
    way = "a_to_b" if mine_is_a else "b_to_a"
    if int(row[f"{way}_stall_ns"]) > 0:
        runs = units.plural(int(row[f"{way}_episodes"]), "resend episode")
        parts.append(f"stalled for {units.duration(int(row[f'{way}_stall_ns']))} in {runs}")
    if not space.acked.count and row["transport"] in ("RC", "XRC"):
        parts.append("no answer was captured")
    return ", ".join(parts)


def _legend(ax: Axes, entries: list[tuple[Any, str]]) -> None:
    """What occurs, with counts, in the corner that the curve leaves free: PSNs rise, so it is one of two."""
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    upper_left = lower_right = 0
    for line in ax.get_lines():
        if line.get_transform() != ax.transData:
            continue
        x = (np.asarray(line.get_xdata(), float) - left) / (right - left)
        y = (np.asarray(line.get_ydata(), float) - bottom) / (top - bottom)
        upper_left += int(((x < 0.4) & (y > 0.6)).sum())
        lower_right += int(((x > 0.6) & (y < 0.4)).sum())
    handles, labels = zip(*entries, strict=True)
    legend = ax.legend(
        handles, labels, loc="upper left" if upper_left <= lower_right else "lower right", fontsize=8, frameon=True,
        framealpha=0.9, edgecolor="#DDDDDD", borderpad=0.6,
    )  # fmt: skip
    legend.set_zorder(5)
