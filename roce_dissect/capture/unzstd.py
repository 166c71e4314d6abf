"""Zstandard, several frames too, decompressed in bounded memory.

The blocks of a frame are told apart here and handed to the decompressor one by one. So its output is at most 128 KiB a
time however far the data expands, an error costs only the block that holds it, and data that ends early is noticed,
which the library's own stream reader takes for a normal end.

Source: RFC 8878, sections 3.1.1 (frames, blocks) and 3.1.2 (skippable frames).
"""

from __future__ import annotations

from typing import Any

from roce_dissect.capture.source import RawSource
from roce_dissect.errors import CaptureError

__all__ = ["ZstdSource"]

_INPUT_BYTES = 1 << 18  # more than the longest unit: 3 + 128 KiB
_LONGEST_BLOCK = 1 << 17
_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50  # to 0x184D2A5F

_RAW, _RLE, _COMPRESSED = 0, 1, 2

# What comes next in the compressed data.
_FRAME, _BLOCK, _CHECKSUM = range(3)


class ZstdSource:
    """Decompressed bytes of a zstd file; see `roce_dissect.capture.source.Source`."""

    compression: str | None = "zstd"

    def __init__(self, raw: RawSource) -> None:
        self.path = raw.path
        self.size = raw.size
        self._raw = raw
        self._input = bytearray(_INPUT_BYTES)
        self._at = 0
        self._end = 0
        self._skip = 0  # bytes of a skippable frame still to come
        self._next = _FRAME
        self._checksum = False
        self._frame: Any = None
        self._any = False
        self._output: memoryview | bytes = b""
        self._delivered = 0
        self._fault: str | None = None

    @property
    def position(self) -> int:
        """Bytes of the compressed file read so far."""
        return self._raw.position

    def readinto(self, view: memoryview, poll_s: float | None = None) -> int | None:
        """See `Source.readinto`. An error comes after all blocks before the one that holds it."""
        filled = 0
        while filled < len(view):
            if self._output:
                count = min(len(self._output), len(view) - filled)
                view[filled : filled + count] = self._output[:count]
                self._output = self._output[count:]
                filled += count
                continue
            unit = self._unit()
            if unit is not None:
                self._decompress(unit)
            elif self._fault or (filled and self.size is None):
                break  # a pipe: what is there is delivered before more is waited for
            else:
                more = self._more(poll_s)
                if more is None:
                    return None
                if more == 0:
                    break
        self._delivered += filled
        if self._fault and not filled:
            raise CaptureError(self.path, self._fault, self._delivered)
        return filled

    def _more(self, poll_s: float | None) -> int | None:
        """Read more compressed bytes behind those that are left."""
        left = self._end - self._at
        self._input[:left] = self._input[self._at : self._end]
        self._at, self._end = 0, left
        try:
            count = self._raw.readinto(memoryview(self._input)[left:], poll_s)
        except CaptureError as error:
            self._fault = error.reason
            return 0
        if count:
            self._end += count
        elif count == 0 and (left or self._skip or self._next != _FRAME):
            self._fault = "compressed data ends early (zstd)"
        return count

    def _unit(self) -> memoryview | None:
        """Return the next frame header, block or checksum if it is there as a whole, and step over it."""
        while not self._fault:
            left = self._end - self._at
            if self._skip:
                step = min(self._skip, left)
                self._skip -= step
                self._at += step
                if self._skip:
                    return None
                continue
            if self._next == _FRAME:
                length = self._frame_header(left)
            elif self._next == _BLOCK:
                length = self._block(left)
            else:
                length = 4
            if self._skip:
                continue
            if not length or length > left:
                return None
            if self._next == _FRAME:
                self._next = _BLOCK
            elif self._next == _BLOCK:
                if self._input[self._at] & 1:
                    self._next = _CHECKSUM if self._checksum else _FRAME
            else:
                self._next = _FRAME
            unit = memoryview(self._input)[self._at : self._at + length]
            self._at += length
            return unit
        return None

    def _frame_header(self, left: int) -> int:
        """Return the length of a frame's header, 0 when more is needed or a skippable frame was met."""
        if left < 8:  # the shortest frame has 9 bytes, a skippable one 8
            return 0
        data, at = self._input, self._at
        magic = int.from_bytes(data[at : at + 4], "little")
        if magic & ~0xF == _SKIPPABLE:
            self._skip = 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            return 0
        if magic != _MAGIC:
            self._fault = "data after the end of the zstd data" if self._any else "zstd data is corrupt"
            return 0
        flags = data[at + 4]
        single = flags >> 5 & 1
        size_field = (1 if single else 0, 2, 4, 8)[flags >> 6]
        self._checksum = bool(flags & 4)
        return 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + size_field

    def _block(self, left: int) -> int:
        """Return a block's length with its header, 0 when more is needed."""
        if left < 3:
            return 0
        header = int.from_bytes(self._input[self._at : self._at + 3], "little")
        kind, size = header >> 1 & 3, header >> 3
        if kind > _COMPRESSED or size > _LONGEST_BLOCK:
            self._fault = "zstd data is corrupt (block header)"
            return 0
        return 3 + (1 if kind == _RLE else size)

    def _decompress(self, unit: memoryview) -> None:
        import zstandard

        try:
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._output = memoryview(self._frame.decompress(unit))
        except zstandard.ZstdError as error:
            self._fault = f"zstd data is corrupt ({str(error).rpartition(': ')[2]})"
            return
        if self._next == _FRAME:
            self._frame = None
            self._any = True

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
