"""What was asked for, as options of the command line, and what is said where nothing fits it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from roce_dissect.cli.safe import safe
from roce_dissect.decode.selection import options_text

__all__ = ["nothing_fits", "packet_choice"]


def packet_choice(capture: dict[str, Any]) -> str:
    """What chose packets, without their number: ``--filter 'dscp == 26' --host 10.0.0.1``; empty: nothing did."""
    chosen = capture["selection"]
    if chosen is None:
        return ""
    return safe(options_text(chosen["filter"], chosen["hosts"], chosen["qps"], chosen["time"]))


def nothing_fits(what: str, capture: dict[str, Any], own: Iterable[tuple[str, object]] = ()) -> str:
    """One sentence where a table has no row.

    Parameters
    ----------
    what : str
        What a row is: ``connection``.
    capture : dict
        ``capture`` of an analysis.
    own : iterable of (str, object)
        Options of the command's own with their values, which chose rows.

    Examples
    --------
    >>> nothing_fits("event", {"selection": None}, [("--kind", "nak")])
    'no event fits --kind nak'
    """
    parts = [f"{name} {value}" for name, value in own]
    selection = capture["selection"]
    if selection is not None:
        parts += [text] if (text := packet_choice(capture)) else []
        parts += [f"--packets {selection['count']}"] if selection["count"] is not None else []
    return f"no {what} fits {' '.join(parts)}" if parts else f"no {what} in this capture"
