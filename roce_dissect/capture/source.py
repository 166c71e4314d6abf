"""Bytes of a capture: from a file, a pipe, standard input or any binary file object; gzip and zstd are recognised.

Files are read into reusable buffers and not mapped: a mapped file that another process truncates (a rotating capture, a
file server that gives up) ends this process with SIGBUS, which no ``except`` can catch.

A pipe is read with what is there; nothing waits for a full buffer.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import stat
import sys
import time
from typing import Any, BinaryIO, Protocol, cast

from roce_dissect.capture.formats import SNIFF_BYTES, compression_of
from roce_dissect.errors import ArgumentError, CaptureError

__all__ = ["RawSource", "Source", "open_source"]

_PIPE_BYTES = 1 << 20
_NAP_S = 0.01


class Source(Protocol):
    """What `roce_dissect.capture.reader` reads from."""

    path: str
    #: ``"gzip"``, ``"zstd"`` or None.
    compression: str | None
    #: Bytes of the underlying file; None where that cannot be known.
    size: int | None

    @property
    def position(self) -> int:
        """Bytes of the underlying file read so far."""

    def readinto(self, view: memoryview, poll_s: float | None = None) -> int | None:
        """Fill `view` from its beginning with what is there; returns the bytes, 0 at the end, None at a timeout."""

    def close(self) -> None:
        """Close what was opened here."""


class RawSource:
    """Bytes as they lie in the file.

    Parameters
    ----------
    file : binary file object
        With ``readinto`` or ``read``.
    path : str
        For messages.
    owned : bool
        Whether `close` closes `file`.
    """

    compression: str | None = None

    def __init__(self, file: Any, path: str, *, owned: bool = True) -> None:
        self.path = path
        self.position = 0
        self.size: int | None = None
        self._file = file
        self._owned = owned
        self._head = b""
        self._fd: int | None = None
        # readinto of a buffered reader waits until the buffer is full; readinto1 returns what one read gives.
        self._readinto = getattr(file, "readinto1", None) or getattr(file, "readinto", None)
        self._look_at_descriptor()

    def _look_at_descriptor(self) -> None:
        """Learn size and kind, where there is a descriptor at all."""
        try:
            self._fd = self._file.fileno()
            status = os.fstat(self._fd)
        except (AttributeError, OSError, io.UnsupportedOperation):
            self._fd = None
            if isinstance(self._file, io.BytesIO):
                self.size = self._file.getbuffer().nbytes
            return
        if stat.S_ISREG(status.st_mode):
            self.size = status.st_size
        elif stat.S_ISFIFO(status.st_mode):
            _widen(self._fd)

    def sniff(self) -> bytes:
        """Return the first bytes (SNIFF_BYTES where there are as many at once, at least 4) without consuming them."""
        buffer = memoryview(bytearray(SNIFF_BYTES))
        while len(self._head) < 4:
            count = self._read(buffer)
            if not count:
                break
            self._head += buffer[:count]
        return self._head

    def readinto(self, view: memoryview, poll_s: float | None = None) -> int | None:
        """See `Source.readinto`."""
        if self._head:
            count = min(len(self._head), len(view))
            view[:count] = self._head[:count]
            self._head = self._head[count:]
            self.position += count
            if self.size is not None and count < len(view):  # a file, where nothing has to be waited for
                with contextlib.suppress(CaptureError):  # comes again with the next call
                    more = self._read(view[count:])
                    self.position += more
                    count += more
            return count
        if poll_s is not None and self._waits and not self._wait(poll_s):
            return None
        count = self._read(view)
        self.position += count
        return count

    @property
    def _waits(self) -> bool:
        """Whether there is a descriptor to wait for; a regular file always has what it has."""
        return self._fd is not None and self.size is None

    def _wait(self, seconds: float | None) -> bool:
        """Wait until something came, or the end; with None without limit. Returns whether it did."""
        # not select, which takes no descriptor above 1023
        poll = select.poll()
        poll.register(cast(int, self._fd), select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))

    def _read(self, view: memoryview) -> int:
        try:
            while True:
                if self._readinto is not None:
                    count = self._readinto(view)
                else:
                    piece = self._file.read(len(view))
                    count = None if piece is None else len(piece)
                    if count:
                        view[:count] = piece
                if count is not None:
                    return count
                if self._waits:  # a descriptor that does not block
                    self._wait(None)
                else:
                    time.sleep(_NAP_S)
        except OSError as error:
            raise CaptureError(self.path, f"cannot be read: {error.strerror or error}", self.position) from error

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._owned:
            self._file.close()


def _widen(descriptor: int) -> None:
    """Let a pipe hold more, so that its writer waits less; no harm where that is refused."""
    try:
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        pass


def _standard_input() -> tuple[Any, bool]:
    """Return a binary form of sys.stdin without read-ahead where it is a real file."""
    if sys.stdin is None:
        raise CaptureError("-", "standard input is closed")
    stream = getattr(sys.stdin, "buffer", sys.stdin)
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        return stream.raw, False
    return stream, False


def open_source(path_or_file: str | os.PathLike[str] | BinaryIO) -> Source:
    """Open a capture's bytes, decompressed.

    Parameters
    ----------
    path_or_file : str, path or binary file object
        ``"-"`` is standard input. A file object is not closed.

    Returns
    -------
    Source

    Raises
    ------
    CaptureError
        If it cannot be opened, is a directory, or is empty.
    ArgumentError
        If it is something else, such as a file opened as text.
    """
    file: Any
    owned = False
    if path_or_file == "-":
        path = "-"
        file, owned = _standard_input()
    elif isinstance(path_or_file, (str, os.PathLike)):
        path = os.fsdecode(path_or_file)
        try:
            file, owned = open(path, "rb", buffering=0), True  # noqa: SIM115  (closed by Source.close)
        except OSError as error:
            raise CaptureError(path, f"cannot be opened: {error.strerror or error}") from error
        except ValueError as error:  # a name with a zero byte
            raise CaptureError(path, f"cannot be opened: {error}") from error
    else:
        file = path_or_file
        if isinstance(file, io.TextIOBase) or not any(
            hasattr(file, name) for name in ("readinto1", "readinto", "read")
        ):
            raise ArgumentError(f"{file!r} is neither a path nor a binary file object")
        name = getattr(file, "name", None)
        path = name if isinstance(name, str) else "<stream>"
    raw = RawSource(file, path, owned=owned)
    try:
        head = raw.sniff()
        if not head:
            raise CaptureError(path, "is empty", 0)
        compression = compression_of(head)
        if compression == "gzip":
            from roce_dissect.capture.gunzip import GzipSource

            return GzipSource(raw)
        if compression == "zstd":
            from roce_dissect.capture.unzstd import ZstdSource

            return ZstdSource(raw)
    except BaseException:
        raw.close()
        raise
    return raw
