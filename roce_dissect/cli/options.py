"""The options of all commands that read captures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from roce_dissect.cli.common import complain
from roce_dissect.cli.reading import readable_once
from roce_dissect.decode.options import ReadOptions

__all__ = ["reading_options"]


class _Qp(click.ParamType):
    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """A QP number, decimal or hexadecimal."""
        try:
            return value if isinstance(value, int) else int(value, 0)
        except ValueError:
            self.fail(f"{value!r} is no QP number (17, 0x11)", param, ctx)


_PORT = click.option(
    "--port",
    "ports",
    multiple=True,
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="A UDP destination port of RoCE v2 beside 4791; once for each.",
)
_NO_ICRC = click.option("--no-icrc", is_flag=True, help="Do not verify the ICRC of whole packets.")
_FILTER = click.option(
    "--filter",
    "expressions",
    multiple=True,
    metavar="EXPRESSION",
    help="Only packets that it holds for, such as 'dscp == 26 and psn % 2 == 0': columns of packets, docs/filters.md. "
    "All of several must hold.",
)
_TIME = click.option(
    "--time",
    "time_range",
    metavar="FROM..TO",
    help="Only packets from FROM to TO, of which one may be missing: seconds since the first frame (1.5..2), times of "
    "its day (13:05:03..), or with a date; UTC.",
)
_HOST = click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="ADDRESS[/PREFIX]",
    help="Only packets from or to this host or network; once for each. 'LID 5': of native InfiniBand.",
)
_QP = click.option(
    "--qp",
    "qps",
    multiple=True,
    type=_Qp(),
    metavar="N",
    help="Only packets to this QP or from it, decimal or 0x...; once for each. Where packets come from takes a reading "
    "of its own: from a pipe, only those that name the QP.",
)
_PACKETS = "Stop after N packets (of those chosen)."


def reading_options(command: Callable[..., int] | None = None, *, counts_rows: bool = False) -> Callable[..., Any]:
    """Add them to a command, which gets them as one argument, ``options: ReadOptions``.

    Parameters
    ----------
    command : callable
        Its parameter ``files`` holds the captures.
    counts_rows : bool
        The command's own ``--count`` is about what it lists; else it is another word for ``--packets``.
    """
    if command is None:
        return functools.partial(reading_options, counts_rows=counts_rows)
    words = ("--packets",) if counts_rows else ("--packets", "--count")

    @_FILTER
    @_TIME
    @_HOST
    @_QP
    @click.option(*words, "most_packets", type=click.IntRange(1), metavar="N", help=_PACKETS)
    @_PORT
    @_NO_ICRC
    @functools.wraps(command)
    def with_options(
        *args: Any,
        files: Sequence[str],
        expressions: tuple[str, ...],
        time_range: str | None,
        hosts: tuple[str, ...],
        qps: tuple[int, ...],
        most_packets: int | None,
        ports: tuple[int, ...],
        no_icrc: bool,
        **more: Any,
    ) -> int:
        from roce_dissect.decode.selection import Selection

        expression = " and ".join(f"({one})" for one in expressions) if len(expressions) > 1 else "".join(expressions)
        selection = Selection(expression if expressions else None, hosts, qps, time_range, most_packets)
        if qps and readable_once(files):
            complain("--qp: a pipe is read only once: packets from the QP that do not name it are left out")
        options = ReadOptions(ports, not no_icrc, selection if selection else None)
        return command(*args, files=files, options=options, **more)

    return with_options
