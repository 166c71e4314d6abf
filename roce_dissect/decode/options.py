"""How captures are read: what all that read them take alike, from the command line down to the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy comes with it, which help does without
    from roce_dissect.decode.selection import Selection

__all__ = ["DEFAULT_OPTIONS", "ReadOptions"]


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
