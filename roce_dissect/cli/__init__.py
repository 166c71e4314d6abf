"""The ``roce-dissect`` command. One file per command; each is imported only when it runs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import click

from roce_dissect.cli.common import PROGRAM, OutputClosedError, run

__all__ = ["main"]

#: Command name: short help, so that the list of commands needs none of their modules.
COMMANDS = {
    "analyze": "Say what happened in a capture, with the frames that prove it.",
    "connections": "List all connections, or tell everything about one.",
    "messages": "Print one line per message (verb), with status and latency.",
    "events": "Print one line per event: losses, resends and their causes, marks, set-up.",
    "packets": "Print one line per RoCE packet, with verdicts.",
    "verify": "Compare the decoding with Wireshark's, field by field.",
    "plot": "Draw a connection's sequence numbers, or goodput over time.",
    "live": "Watch an interface: the tables of analyze, refreshed.",
}


class _LazyGroup(click.Group):
    """A group that knows the names and short help of its commands, and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"roce_dissect.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed pipe must not reach click, which would end with status 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise OutputClosedError from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"there is no command {name!r} (there are: {', '.join(COMMANDS)})")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from roce_dissect import __version__
    from roce_dissect.cli.forms import form_sentence

    click.echo(f"{PROGRAM} {__version__} ({form_sentence()})")
    ctx.exit()


@click.group(
    cls=_LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="A FILE is pcap or pcapng, plain, gzip or zstd; - is standard input. "
    "Exit status: 0 fine, 1 verify found a difference, 2 an input could not be read to its end or the arguments are "
    "wrong, 130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version, and whether the compiled form is in use.",
)
def group() -> None:
    """RoCE captures, from packets to the cause."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the process.

    Returns
    -------
    int
        The exit status.
    """
    return run(group, arguments)
