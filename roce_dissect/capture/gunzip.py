"""Gzip, several members too, decompressed in bounded memory.

Source: RFC 1952; padding zeros after the last member are accepted, as gzip does.
"""

from __future__ import annotations

import zlib
from typing import Any

from roce_dissect.capture.source import RawSource
from roce_dissect.errors import CaptureError

__all__ = ["GzipSource"]

_INPUT_BYTES = 1 << 18


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
        self._any = False
        self._delivered = 0
        self._fault: str | None = None

    @property
    def position(self) -> int:
        """Bytes of the compressed file read so far."""
        return self._raw.position

    def readinto(self, view: memoryview, poll_s: float | None = None) -> int | None:
        """See `Source.readinto`. An error comes after all bytes that were decompressed before it."""
        while not self._fault:
            if not self._pending:
                count = self._raw.readinto(self._input, poll_s)
                if count is None:
                    return None
                if count == 0:
                    if self._member is None:
                        return 0
                    self._fault = "compressed data ends early (gzip)"
                    break
                self._pending = self._input[:count]
            if self._member is None:
                if self._any:  # padding
                    self._pending = bytes(self._pending).lstrip(b"\x00")
                    if not self._pending:
                        continue
                self._member = zlib.decompressobj(wbits=31)
            output = self._decompress(len(view))
            if output:
                count = len(output)
                view[:count] = output
                self._delivered += count
                return count
        raise CaptureError(self.path, self._fault or "", self._delivered)

    def _decompress(self, room: int) -> bytes:
        before = self._member.copy()
        try:
            output = self._member.decompress(self._pending, room)
        except zlib.error as error:
            what = (
                "data after the end of the gzip data" if self._any and not self._started() else "gzip data is corrupt"
            )
            self._fault = f"{what} ({_reason(error)})"
            return self._salvage(before, room)
        if self._member.eof:
            self._pending = self._member.unused_data
            self._member = None
            self._any = True
        else:
            self._pending = self._member.unconsumed_tail
        return output

    def _started(self) -> bool:
        return bytes(self._pending[:2]) == b"\x1f\x8b"

    def _salvage(self, member: Any, room: int) -> bytes:
        """Return what comes before the fault: zlib drops the output of the call that fails, so ask for less of it."""
        output = bytearray()
        pending: memoryview | bytes = self._pending
        step = room
        while step and len(output) < room:
            trial = member.copy()
            try:
                piece = trial.decompress(pending, min(step, room - len(output)))
            except zlib.error:
                step //= 2
                continue
            if not piece:
                break
            output += piece
            pending = trial.unconsumed_tail
            member = trial
        return bytes(output)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


def _reason(error: zlib.error) -> str:
    """Return zlib's own words without its call and number."""
    return str(error).rpartition(": ")[2]
