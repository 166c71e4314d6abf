"""How things look: one mark for one meaning, in every picture.

Colours are those of Okabe and Ito (2008), which people with any of the common colour vision deficiencies can tell
apart, and two dark ones of Tol's. Each mark also has a shape of its own, so that a black-and-white print can be read.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DIRECTIONS", "MARKS", "QUIET", "Mark", "dress", "new_axes", "say", "set_title"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Look of one meaning.

    Parameters
    ----------
    label : str
        Word in the legend.
    color : str
        Colour of the line or face.
    marker : str or int
        Matplotlib marker; empty for what is drawn as a line.
    size : float
        Marker size in points.
    edge : str, optional
        Colour of the rim; default `color`.
    hollow : bool
        Only the rim is drawn.
    """

    label: str
    color: str
    marker: str | int = ""
    size: float = 4.0
    edge: str | None = None
    hollow: bool = False

    def _edge_width(self) -> float:
        if self.marker in (_TIP_UP, _TIP_DOWN):
            return 0.7
        return 1.0 if self.marker in ("x", "|") or self.edge or self.hollow else 0.0

    def marker_style(self) -> dict[str, Any]:
        """Keyword arguments for ``Axes.plot`` that draw points and no line between them."""
        return {
            "linestyle": "none",
            "marker": self.marker,
            "markersize": self.size,
            "color": self.color,
            "markerfacecolor": "none" if self.hollow else self.color,
            "markeredgecolor": self.edge or self.color,
            "markeredgewidth": self._edge_width(),
        }


_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
_YELLOW, _BLUE, _VERMILION, _PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
_INDIGO, _WINE = "#332288", "#882255"

#: Triangles whose tip is the place, so that a NAK and an RNR NAK of one PSN, and the request itself, can all be seen.
_TIP_UP, _TIP_DOWN = 6, 7

#: Colour of what is background: the ACK line, notes, frames.
QUIET = "#6B6B6B"

#: Every mark by its name, in the order of legends and of drawing: later ones lie on top.
MARKS: dict[str, Mark] = {
    "stall": Mark("stall of the requests", "#E8E8E8"),
    "ack": Mark("acknowledged up to", QUIET),
    "new": Mark("new request", _BLUE, "o", 3.0),
    "response": Mark("READ response", _SKY, "o", 3.0),
    "resent": Mark("resent", _VERMILION, "x", 4.0),
    "response_resent": Mark("READ response again", _ORANGE, "x", 4.0),
    "late": Mark("late", _GREEN, "^", 6.0, _BLACK),
    "copy": Mark("copy", _PURPLE, "D", 5.0, hollow=True),
    "gap": Mark("gap", _BLACK, "o", 6.0, hollow=True),
    "response_gap": Mark("gap in READ responses", _INDIGO, "s", 6.0, hollow=True),
    "nak": Mark("NAK", _ORANGE, _TIP_DOWN, 8.0, _BLACK),
    "fatal_nak": Mark("fatal NAK", _BLACK, "X", 9.0, _BLACK),
    "rnr_nak": Mark("RNR NAK", _YELLOW, _TIP_UP, 8.0, _BLACK),
    "ce": Mark("CE", _WINE, "|", 7.0),
    "cnp": Mark("CNP", _INDIGO, "|", 7.0),
}

#: Colour, line style and filling of directions or hosts in a rate picture, in order.
DIRECTIONS: tuple[tuple[str, str], ...] = (
    (_BLUE, "-"),
    (_ORANGE, "--"),
    (_GREEN, "-."),
    (_PURPLE, ":"),
    (_SKY, "-"),
    (_VERMILION, "--"),
    (QUIET, ":"),
)


def new_axes(panels: int = 1, width: float = 9.0, height: float = 5.0) -> list[Axes]:
    """Axes of a new figure, one above the other, with a common time axis; registered with pyplot so that a notebook
    shows them. Sizes are in inches, `height` that of one panel."""
    import matplotlib.pyplot as plt

    total = height if panels == 1 else height * 0.75 * panels
    _, grid = plt.subplots(panels, 1, sharex=True, squeeze=False, figsize=(width, total), layout="constrained")
    return list(grid[:, 0])


def dress(ax: Axes) -> None:
    """Quiet frame and grid, so that the data are what is seen."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(QUIET)
    ax.grid(True, color="#DDDDDD", linewidth=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(color=QUIET, labelsize=8)


def say(ax: Axes, text: str) -> None:
    """Put a sentence where a picture would be."""
    words = textwrap.fill(text, 60)
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color=QUIET, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color("#DDDDDD")


def set_title(ax: Axes, heading: str, figures: str = "") -> None:
    """A heading, and below it a smaller line with figures; either may be empty."""
    if not heading:
        ax.set_title(figures, loc="left", fontsize=8.5, color="#333333")
        return
    ax.set_title(heading, loc="left", fontsize=10, fontweight="bold", pad=22 if figures else 8)
    if figures:
        ax.annotate(
            figures, (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points", fontsize=8.5, va="bottom",
            color="#333333",
        )  # fmt: skip
