"""``roce-dissect plot``: pictures of a connection or of the whole capture, saved to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from roce_dissect.cli.common import FINE, report_files
from roce_dissect.cli.options import reading_options
from roce_dissect.cli.reading import connections_to_choose, known_connection
from roce_dissect.errors import ArgumentError

if TYPE_CHECKING:
    from roce_dissect.api import Analysis
    from roce_dissect.decode.options import ReadOptions

__all__ = ["command"]

#: What matplotlib can write without further packages.
FORMATS = ("png", "pdf", "svg", "jpg", "webp")
#: Those that consist of pixels, and how many: webp ends at 16,383 a side, and memory before that.
_PIXELS = ("png", "jpg", "webp")
_MOST_A_SIDE = 16_000
_MOST_PIXELS = 100_000_000


class _Size(click.ParamType):
    name = "WxH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Width and height in inches."""
        if isinstance(value, tuple):
            return value
        try:
            width, height = (float(part) for part in str(value).lower().split("x"))
        except ValueError:
            self.fail(f"{value!r} is not of the form 10x6 (inches)", param, ctx)
        if not (0.5 <= width <= 200 and 0.5 <= height <= 200):
            self.fail("width and height go from 0.5 to 200 inches", param, ctx)
        return width, height


@click.command("plot")
@click.argument("kind", type=click.Choice(["sequence", "rate"]), metavar="sequence|rate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", required=True, metavar="PICTURE", help=f"Format by suffix: {', '.join(FORMATS)}.")
@click.option("--connection", type=click.IntRange(1), metavar="N", help="Number in the table of analyze.")
@click.option("--size", type=_Size(), default=None, help="Inches, such as 10x6.")
@click.option("--dpi", type=click.IntRange(20, 1200), default=150, show_default=True)
@reading_options
def command(
    kind: str,
    files: tuple[str, ...],
    output: str,
    connection: int | None,
    size: tuple[float, float] | None,
    dpi: int,
    options: ReadOptions,
) -> int:
    """Draw a connection's PSNs over time (sequence), or goodput over time (rate), of a capture.

    A picture reads the capture twice, so standard input will not do.
    """
    suffix = Path(output).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise ArgumentError(f"{output}: the picture's suffix must be one of {', '.join(FORMATS)}")
    if size is not None and suffix in _PIXELS:
        _check_pixels(*size, dpi)
    if "-" in files or any(Path(file).is_fifo() for file in files):
        raise ArgumentError("a picture reads the capture twice: give a file, not a pipe")
    from roce_dissect.cli.forms import warn_if_slow

    warn_if_slow()
    import matplotlib as mpl

    from roce_dissect.api import Session

    mpl.use("Agg")
    session = Session(list(files), keep_going=True, options=options)
    for _ in session:
        pass
    result = session.analysis()
    status = report_files(result.capture["files"])
    try:
        axes = _draw(result, kind, connection)
    except ArgumentError as error:
        if status != FINE and result.capture["roce_packets"] == 0:  # said already why there is nothing to draw
            return status
        raise error from None
    if size is not None:
        axes.figure.set_size_inches(*size)
    axes.figure.savefig(output, dpi=dpi)
    return status


def _check_pixels(width: float, height: float, dpi: int) -> None:
    """Refuse a picture that would be too large to make or to look at, before anything is read."""
    across, down = round(width * dpi), round(height * dpi)
    if max(across, down) > _MOST_A_SIDE or across * down > _MOST_PIXELS:
        raise ArgumentError(
            f"{width:g}x{height:g} inches at {dpi} dpi are {across:,} x {down:,} pixels: at most {_MOST_A_SIDE:,} a "
            f"side and {_MOST_PIXELS // 1_000_000} million in all; a smaller --size or --dpi, or a pdf or svg, will do"
        )


def _draw(result: Analysis, kind: str, connection: int | None) -> Any:
    from roce_dissect.analysis.trust import chosen_packets

    if chosen_packets(result.capture) == 0 and (kind == "rate" or result.capture["roce_packets"]):
        what = "packet fits what was asked for" if result.capture["roce_packets"] else "RoCE in this capture"
        raise ArgumentError(f"no {what}: there is nothing to draw")
    known_connection(result, connection)
    if kind == "rate":
        return result.plot.rate(connection=connection)
    if connection is None:
        connection = _only_connection(result)
    return result.plot.sequence(connection=connection)


def _only_connection(result: Analysis) -> int:
    if len(result.connections) == 1:
        return int(result.connections["connection"].iloc[0])
    if len(result.connections) == 0:
        raise ArgumentError("no connection in this capture: there is no sequence to draw")
    raise ArgumentError(f"which connection? --connection N{connections_to_choose(result)}")
