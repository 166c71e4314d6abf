"""Gzip, several members too, decompressed in bounded memory.

Source: RFC 1952; padding zeros after the last member are accepted, as gzip does.
"""

from __future__ import annotations

import zlib
from typing import Any

from roce_dissect.capture.source import RawSource
from roce_dissect.errors import CaptureError

__all__ = ["GzipSource"]

_INPUT_BYTES = 1 << 16  # zlib hands back the rest of its input as a copy: keep that short


class GzipSource:
    """Decompressed bytes of a gzip file; see `roce_dissect.capture.source.Source`."""

    compression: str | None = "gzip"

    def __init__(self, raw: RawSource) -> None:
        self.path = raw.path
        self.size = raw.size
        self._raw = raw
        self._input = memoryview(bytearray(_INPUT_BYTES))
        self._pending: memoryview | bytes = b""
        self._member: Any = None  # None: between two members
        self._any = False  # whether a member has ended
        self._full = False  # whether zlib may hold output for which there was no room
        self._delivered = 0
        self._fault: str | None = None

    @property
    def position(self) -> int:
        """Bytes of the compressed file read so far."""
        return self._raw.position

    def readinto(self, view: memoryview, poll_s: float | None = None) -> int | None:
        """See `Source.readinto`. An error comes after all bytes that were decompressed before it."""
        filled = 0
        while filled < len(view) and not self._fault:
            if not self._pending and not self._full:
                if filled and self.size is None:  # a pipe: what is there is delivered before more is waited for
                    break
                try:
                    count = self._raw.readinto(self._input, poll_s)
                except CaptureError as error:
                    self._fault = error.reason
                    break
                if count is None:
                    return None
                if count == 0:
                    if self._member is not None:
                        self._fault = "compressed data ends early (gzip)"
                    break
                self._pending = self._input[:count]
            if self._member is None:
                if self._any:  # padding
                    self._pending = bytes(self._pending).lstrip(b"\x00")
                    if not self._pending:
                        continue
                self._member = zlib.decompressobj(wbits=31)
            output = self._decompress(len(view) - filled)
            view[filled : filled + len(output)] = output
            filled += len(output)
        self._delivered += filled
        if self._fault and not filled:
            raise CaptureError(self.path, self._fault, self._delivered)
        return filled

    def _decompress(self, room: int) -> bytes:
        before = self._member.copy()
        try:
            output = self._member.decompress(self._pending, room)
        except zlib.error as error:
            reason = str(error).rpartition(": ")[2]  # without zlib's call and number
            if self._any and reason == "incorrect header check":
                self._fault = "data after the end of the gzip data"
            else:
                self._fault = f"gzip data is corrupt ({reason})"
            self._full = False
            return self._salvage(before, room)
        self._full = len(output) == room
        if self._member.eof:
            self._pending = self._member.unused_data
            self._member = None
            self._any = True
            self._full = False
        else:
            self._pending = self._member.unconsumed_tail
        return output

    def _salvage(self, member: Any, room: int) -> bytes:
        """Return what comes before the fault: zlib drops the output of the call that fails, so give it less input."""
        output = b""
        good, bad = 0, len(self._pending)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                output = member.copy().decompress(self._pending[:middle], room)
                good = middle
            except zlib.error:
                bad = middle
        return output

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
