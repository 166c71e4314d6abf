"""The options of all commands that read captures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from roce_dissect.decode.options import ReadOptions

__all__ = ["reading_options"]

_PORT = click.option(
    "--port",
    "ports",
    multiple=True,
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="A UDP destination port of RoCE v2 beside 4791; once for each.",
)
_NO_ICRC = click.option("--no-icrc", is_flag=True, help="Do not verify the ICRC of whole packets.")


def reading_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add them to a command, which gets them as one argument, ``options: ReadOptions``."""

    @_PORT
    @_NO_ICRC
    @functools.wraps(command)
    def with_options(*args: Any, ports: tuple[int, ...], no_icrc: bool, **more: Any) -> int:
        return command(*args, options=ReadOptions(ports, not no_icrc), **more)

    return with_options
