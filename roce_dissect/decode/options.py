"""How captures are read: what all that read them take alike, from the command line down to the decoder."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:  # NumPy comes with it, which help does without
    from roce_dissect.decode.selection import Selection

__all__ = ["DEFAULT_OPTIONS", "ReadOptions", "readable_once"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Choices that hold for every reading of a capture, so that a second one sees the same packets.

    Parameters
    ----------
    ports : sequence of int
        UDP destination ports of RoCE v2 beside 4791.
    icrc : bool
        Whether to verify the ICRC of whole packets.
    selection : Selection, optional
        Which packets to choose; None: all of them.
    """

    ports: Sequence[int] = ()
    icrc: bool = True
    selection: Selection | None = None


DEFAULT_OPTIONS = ReadOptions()


def readable_once(inputs: Sequence[str | BinaryIO]) -> bool:
    """Whether one of the inputs cannot be read a second time: standard input, a file object, a pipe, a device.

    What is missing, or a directory, is none of these: reading it has errors of its own.
    """
    return any(not isinstance(one, str) or one == "-" or _is_special(one) for one in inputs)


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
