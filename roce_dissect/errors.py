"""What can go wrong, as one tree.

::

    RoceDissectError            everything this package raises on purpose
    ├── CaptureError            a file or stream cannot be read (on): path, byte offset, reason
    │   └── NotACaptureError    its first bytes are not those of a capture
    ├── LiveError               a live capture cannot be started, with the command that mends it
    ├── WiresharkError          tshark is missing, too old, or broke off
    └── ArgumentError           an argument that cannot be used (also a ValueError)

A *packet* never raises: what is wrong with it is in its ``status`` column.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ArgumentError", "CaptureError", "LiveError", "NotACaptureError", "RoceDissectError", "WiresharkError"]


class RoceDissectError(Exception):
    """Base of all errors that this package raises on purpose."""


class CaptureError(RoceDissectError):
    """A capture cannot be read, or not to its end. What was read before stays valid.

    Parameters
    ----------
    path : str
        The file as the caller named it; ``-`` is standard input.
    reason : str
        What is wrong, without a full stop at the end.
    offset : int, optional
        Bytes from the beginning of the (decompressed) capture to where reading stopped.

    Attributes
    ----------
    analysis : roce_dissect.Analysis or None
        What `roce_dissect.analyze` had made of the capture until then.
    """

    def __init__(self, path: str, reason: str, offset: int | None = None) -> None:
        super().__init__(path, reason, offset)
        self.path = path
        self.reason = reason
        self.offset = offset
        self.analysis: Any = None

    def __str__(self) -> str:
        place = "" if self.offset is None else f" (at byte {self.offset})"
        return f"{self.path}: {self.reason}{place}"


class NotACaptureError(CaptureError):
    """The first bytes are those of no known capture format."""


class LiveError(RoceDissectError):
    """A live capture cannot be started or broke off."""


class WiresharkError(RoceDissectError):
    """Wireshark's tshark is missing, too old, or did not do what it was asked."""


class ArgumentError(RoceDissectError, ValueError):
    """An argument that cannot be used."""
