"""Batches of records from any capture: `open_capture`.

::

    with open_capture("trace.pcapng.zst") as capture:
        for records in capture:
            frame = records.data[records.offset[0] : records.offset[0] + records.cap_len[0]]

Memory is bounded however long the capture is: one buffer, which grows only for a record that is longer, up to 64 MiB.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from roce_dissect.capture import records as kernel
from roce_dissect.capture import states
from roce_dissect.capture.blocks import BlockError, interface_row, section_header
from roce_dissect.capture.formats import PCAP_MAGICS, PCAPNG_MAGIC, SNIFF_BYTES, looks_like
from roce_dissect.capture.source import Source, open_source
from roce_dissect.errors import CaptureError, NotACaptureError

__all__ = ["NO_PACKET", "Capture", "Records", "open_capture"]

#: Link type of a record that is no packet but counts as a frame (pcapng custom, journal and Sysdig blocks).
NO_PACKET = states.NO_PACKET

_BUFFER_BYTES = 1 << 22
_FILE_HEADER = 24  # of a classic pcap file


@dataclass(slots=True)
class Records:
    """A batch of records. The arrays are views that the next batch overwrites.

    Attributes
    ----------
    data : uint8[:]
        Bytes in which the frames lie.
    count : int
        Records in the batch, at most 16384; 0 when nothing came within the poll time.
    offset : int64[count]
        First byte of each frame in `data`.
    cap_len, wire_len : int64[count]
        Bytes captured and bytes on the wire.
    time_ns : int64[count]
        Nanoseconds since 1970-01-01 UTC; 0 where the record has no time.
    link_type : uint16[count]
        As in pcap; `NO_PACKET` for a record that is none (its `cap_len` is 0).
    first_frame : int
        Frame number of record 0, from 1 in the file as Wireshark counts.
    """

    data: np.ndarray
    count: int
    offset: np.ndarray
    cap_len: np.ndarray
    wire_len: np.ndarray
    time_ns: np.ndarray
    link_type: np.ndarray
    first_frame: int


def _same(array: np.ndarray) -> Any:
    return array


class Capture:
    """An open capture: an iterator of `Records`, and a context manager. Made by `open_capture`.

    Attributes
    ----------
    path : str
        As named by the caller; ``-`` is standard input.
    format : str
        ``"pcap"`` or ``"pcapng"``.
    compression : str or None
        ``"gzip"`` or ``"zstd"``.
    truncated : bool
        Whether the input ended within a record: normal while the capture is still being written.
    """

    def __init__(self, source: Source, poll_s: float | None = None, *, walk: Any = None, compiled: bool | None = None):
        self.path = source.path
        self.compression = source.compression
        self.size = source.size
        self.truncated = False
        self._source = source
        self._poll_s = poll_s
        self._walk = walk or kernel.walk
        # Interpreted, NumPy scalars would wrap and overflow; a memoryview gives Python integers.
        self._hand_over: Any = _same if (kernel.COMPILED if compiled is None else compiled) else memoryview
        self._buffer = np.empty(_BUFFER_BYTES, np.uint8)
        self._end = 0  # bytes of the buffer in use
        self._base = 0  # offset in the capture of the buffer's first byte
        self._ended = False  # the source has no more
        self._closed = False
        self._error: CaptureError | None = None
        self._frames = 0
        self._gone_link_types: dict[int, int] = {}  # of sections that have ended
        self._state = np.zeros(states.STATE_SIZE, np.int64)
        self._interfaces = np.zeros((8, states.INTERFACE_SIZE), np.int64)
        self._offset = np.zeros(states.BATCH, np.int64)
        self._cap_len = np.zeros(states.BATCH, np.int64)
        self._wire_len = np.zeros(states.BATCH, np.int64)
        self._time_ns = np.zeros(states.BATCH, np.int64)
        self._link_type = np.zeros(states.BATCH, np.uint16)
        self.format = self._read_header()

    # -- what is known so far

    @property
    def frames(self) -> int:
        """Frames delivered."""
        return self._frames

    @property
    def sliced_frames(self) -> int:
        """Frames of which less was captured than was on the wire."""
        return int(self._state[states.SLICED])

    @property
    def first_time_ns(self) -> int | None:
        """The smallest time, None when no frame has one."""
        return int(self._state[states.FIRST_NS]) if self._state[states.TIMED] else None

    @property
    def last_time_ns(self) -> int | None:
        """The greatest time, None when no frame has one."""
        return int(self._state[states.LAST_NS]) if self._state[states.TIMED] else None

    @property
    def link_types(self) -> dict[int, int]:
        """Link type -> frames."""
        found = dict(self._gone_link_types)
        self._add_link_types(found)
        if self._state[states.OTHERS]:
            found[NO_PACKET] = found.get(NO_PACKET, 0) + int(self._state[states.OTHERS])
        return found

    def _add_link_types(self, found: dict[int, int]) -> None:
        """Add the frames of the section's interfaces. There may be thousands: each batch asks for this."""
        rows = self._interfaces[: self._state[states.INTERFACES]]
        rows = rows[rows[:, states.FRAMES] != 0]
        kinds, inverse = np.unique(rows[:, states.LINK_TYPE], return_inverse=True)
        frames = np.zeros(len(kinds), np.int64)
        np.add.at(frames, inverse, rows[:, states.FRAMES])
        for kind, count in zip(kinds.tolist(), frames.tolist(), strict=True):
            found[kind] = found.get(kind, 0) + count

    @property
    def offset(self) -> int:
        """Bytes of the decompressed capture that were consumed."""
        return self._base + int(self._state[states.POSITION])

    @property
    def position(self) -> int:
        """Bytes of the underlying file read so far, of `size`."""
        return self._source.position

    # -- reading

    def __iter__(self) -> Capture:
        return self

    def __next__(self) -> Records:
        while not self._closed:
            if self._error is not None:
                raise self._error
            if self._end > self._state[states.POSITION]:
                count = self._find()
                if count:
                    return self._batch(count)
                if self._error is not None:
                    continue
            if self._ended:
                self.truncated = self._end > self._state[states.POSITION]
                break
            try:
                more = self._fill(int(self._state[states.NEED]), self._poll_s)
            except CaptureError as error:
                self._error = error
                continue
            if more is None:
                return self._batch(0)
        raise StopIteration

    def _batch(self, count: int) -> Records:
        first = self._frames + 1
        self._frames += count
        return Records(
            self._buffer,
            count,
            self._offset[:count],
            self._cap_len[:count],
            self._wire_len[:count],
            self._time_ns[:count],
            self._link_type[:count],
            first,
        )

    def _find(self) -> int:
        """Run the walker over what is in the buffer, and do what it leaves to Python. Returns the records found.

        Sections and interfaces do not end a batch: a capture may have one before each of its frames.
        """
        hand_over = self._hand_over
        state = self._state
        count = 0
        while count < len(self._offset):
            count += self._walk(
                hand_over(self._buffer),
                self._end,
                hand_over(state),
                hand_over(self._interfaces),
                hand_over(self._offset[count:]),
                hand_over(self._cap_len[count:]),
                hand_over(self._wire_len[count:]),
                hand_over(self._time_ns[count:]),
                hand_over(self._link_type[count:]),
            )
            stop = int(state[states.STOP])
            if stop >= states.FAULT_CAPTURED:
                self._error = self._fault(_describe(stop, int(state[states.VALUE])))
            if stop not in (states.STOP_SECTION, states.STOP_INTERFACE):
                break
            try:
                parsed = self._section() if stop == states.STOP_SECTION else self._interface()
            except BlockError as error:
                self._error = self._fault(str(error))
                break
            if not parsed:
                break
        return count

    def _section(self) -> bool:
        """Begin a new section: byte order and interfaces start anew. False: more bytes are needed."""
        state = self._state
        position = int(state[states.POSITION])
        block = self._buffer[position : self._end].data
        found = section_header(block)
        state[states.NEED] = 28 if found is None else found[1]
        if found is None or found[1] > len(block):
            return False
        self._add_link_types(self._gone_link_types)
        state[states.LITTLE_ENDIAN] = found[0]
        state[states.INTERFACES] = 0
        state[states.POSITION] += found[1]
        return True

    def _interface(self) -> bool:
        """Add a row to the interface table."""
        state = self._state
        position, length = int(state[states.POSITION]), int(state[states.NEED])
        index = int(state[states.INTERFACES])
        if index >= states.MAX_INTERFACES:
            raise BlockError(f"more than {states.MAX_INTERFACES} interfaces in one section")
        if index == len(self._interfaces):
            self._interfaces = np.concatenate([self._interfaces, np.zeros_like(self._interfaces)])
        block = self._buffer[position : position + length].data
        self._interfaces[index] = interface_row(block, bool(state[states.LITTLE_ENDIAN]))
        state[states.INTERFACES] += 1
        state[states.POSITION] += length
        return True

    def _fault(self, reason: str) -> CaptureError:
        return CaptureError(self.path, reason, self.offset)

    def _fill(self, need: int, poll_s: float | None = None) -> int | None:
        """Read more behind what is left of the buffer, which moves to the front; returns as `Source.readinto`.

        `need` is the bytes of the next record if known: the buffer grows for it, but only as its bytes arrive.
        """
        position = int(self._state[states.POSITION])
        left = self._end - position
        if left == len(self._buffer):  # position is 0: a record longer than the buffer
            grown = np.empty(min(2 * len(self._buffer), max(need, len(self._buffer) + 1)), np.uint8)
            grown[:left] = self._buffer
            self._buffer = grown
        elif position:
            self._buffer[:left] = self._buffer[position : self._end]
            self._base += position
            self._state[states.POSITION] = 0
            self._end = left
        count = self._source.readinto(self._buffer[self._end :].data, poll_s)
        if count:
            self._end += count
        elif count == 0:
            self._ended = True
        return count

    def _read_header(self) -> str:
        """Read the file header; leaves the state as the walker needs it, and returns the format."""
        self._fill_to(4)
        if self._end == 0:
            raise CaptureError(self.path, "is empty", 0)
        magic = self._buffer[:4].tobytes()
        if magic == PCAPNG_MAGIC:
            self._state[states.FORMAT] = states.PCAPNG
            self._read_section()
            return "pcapng"
        if magic in PCAP_MAGICS:
            self._read_pcap_header(*PCAP_MAGICS[magic])
            return "pcap"
        head = self._buffer[: min(self._end, SNIFF_BYTES)].tobytes()
        if any(known.startswith(head) for known in (*PCAP_MAGICS, PCAPNG_MAGIC)):
            raise CaptureError(self.path, "the file header is cut", self._end)
        kind = looks_like(head)
        raise NotACaptureError(self.path, f"is not a capture ({kind})" if kind else "is not a capture", 0)

    def _fill_to(self, wanted: int) -> None:
        """Read until so many bytes are in the buffer, or the end."""
        while self._end < wanted and not self._ended:
            self._fill(wanted)

    def _read_pcap_header(self, little: bool, tick_ns: int) -> None:
        self._fill_to(_FILE_HEADER)
        if self._end < _FILE_HEADER:
            raise CaptureError(self.path, f"the file header is cut ({self._end} of {_FILE_HEADER} bytes)", self._end)
        major, minor, _, _, snaplen, network = struct.unpack_from(
            "<HHiIII" if little else ">HHiIII", self._buffer.data, 4
        )
        if major == 543 or (major, minor) < (2, 3):  # lengths in the other order, or another record header
            raise CaptureError(self.path, f"pcap version {major}.{minor} is not supported", 4)
        state = self._state
        state[states.FORMAT] = states.PCAP
        state[states.LITTLE_ENDIAN] = little
        state[states.TICK_NS] = tick_ns
        state[states.MAX_CAPTURED] = min(max(snaplen, states.STANDARD_CAPTURED), states.MAX_LENGTH)
        state[states.INTERFACES] = 1
        self._interfaces[0, states.LINK_TYPE] = network & 0xFFFF  # above: length and presence of an FCS
        state[states.POSITION] = _FILE_HEADER

    def _read_section(self) -> None:
        self._fill_to(12)
        try:
            while not self._section():
                if self._ended:
                    raise CaptureError(self.path, "the section header is cut", self._end)
                self._fill(int(self._state[states.NEED]))
        except BlockError as error:
            raise CaptureError(self.path, str(error), 0) from error

    # -- closing

    def close(self) -> None:
        """Close the source; what is known so far stays."""
        self._closed = True
        self._source.close()

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _describe(stop: int, value: int) -> str:
    """Return a fault's words."""
    return {
        states.FAULT_CAPTURED: f"a record of {value} captured bytes",
        states.FAULT_SHORT: f"a block of {value} bytes, less than it needs",
        states.FAULT_LONG: f"a block of {value} bytes",
        states.FAULT_TRAILER: f"a block whose end gives its length as {value}, unlike its beginning",
        states.FAULT_PACKET: f"{value} captured bytes, more than their block holds",
        states.FAULT_INTERFACE: f"a packet of interface {value}, which is not described",
    }[stop]


def open_capture(
    path_or_file: str | os.PathLike[str] | BinaryIO,
    *,
    poll_s: float | None = None,
) -> Capture:
    """Open a capture (pcap or pcapng, plain, gzip or zstd) and read its header.

    Parameters
    ----------
    path_or_file : str, path or binary file object
        ``"-"`` is standard input. A file object is not closed.
    poll_s : float, optional
        For live pipes: when nothing arrives within so many seconds, an empty batch is delivered.

    Returns
    -------
    Capture
        Iterate over it for batches of records. A fault in the file is raised by the iterator as `CaptureError`, after
        all whole records before it were delivered.

    Raises
    ------
    NotACaptureError
        If its first bytes are no capture's.
    CaptureError
        If it cannot be opened, is empty, or its header is cut or contradicts itself.
    ArgumentError
        If it is neither a path nor a binary file object.

    Examples
    --------
    >>> import io
    >>> header = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")
    >>> record = bytes.fromhex("01000000 02000000 03000000 40000000 aabbcc")
    >>> with open_capture(io.BytesIO(header + record)) as capture:
    ...     [(r.count, int(r.time_ns[0]), bytes(r.data[40:43])) for r in capture], capture.sliced_frames
    ([(1, 1000002000, b'\\xaa\\xbb\\xcc')], 1)
    """
    source = open_source(path_or_file)
    try:
        return Capture(source, poll_s)
    except BaseException:
        source.close()
        raise
