"""Captures that tshark cannot read itself, as bytes that it can read on its standard input."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

from roce_dissect.capture.reader import NO_PACKET, open_capture
from roce_dissect.capture.source import open_source
from roce_dissect.errors import CaptureError
from roce_dissect.spec.net import ERF_INFINIBAND, LINKTYPE_ERF, LINKTYPE_ETHERNET, LINKTYPE_INFINIBAND

__all__ = ["feed_for", "infiniband_as_erf"]

_LOOKED_AT = 10_000
_PIECE_BYTES = 1 << 18
_ERF_VARYING_LENGTH = 4
_NANOSECONDS = 9


def feed_for(path: str, reads_zstd: bool) -> Iterator[bytes] | None:
    """The bytes of a capture that tshark cannot read by itself; None where it can.

    Parameters
    ----------
    path : str
        The capture.
    reads_zstd : bool
        Whether this tshark was built with zstd; gzip every one reads.

    Raises
    ------
    CaptureError
        The capture cannot be opened, or is none.
    """
    with open_capture(path) as capture:
        with contextlib.suppress(CaptureError):  # comes again when it is read to its end
            # interfaces of pcapng may be described late, but hardly ever later
            while capture.frames < _LOOKED_AT and next(capture, None) is not None:
                pass
        if LINKTYPE_INFINIBAND in capture.link_types:
            return infiniband_as_erf(path)
        return _decompressed(path) if capture.compression == "zstd" and not reads_zstd else None


def _decompressed(path: str) -> Iterator[bytes]:
    source = open_source(path)
    try:
        buffer = bytearray(_PIECE_BYTES)
        while count := source.readinto(memoryview(buffer)):
            yield bytes(buffer[:count])
    finally:
        source.close()


def infiniband_as_erf(path: str) -> Iterator[bytes]:
    """A capture as pcapng in which each frame of link type 247 (native InfiniBand) is an ERF record.

    Wireshark knows InfiniBand's headers but not this link type. The frames' bytes, numbers, times and lengths stay the
    same, and frames of other link types what they are.
    """
    yield struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    interfaces: dict[int, int] = {}
    with open_capture(path) as capture:
        for records in capture:
            pieces = []
            for number in range(records.count):
                link_type = int(records.link_type[number])
                start, captured = int(records.offset[number]), int(records.cap_len[number])
                wire, time_ns = int(records.wire_len[number]), int(records.time_ns[number])
                frame = records.data[start : start + captured].tobytes()
                if link_type == LINKTYPE_INFINIBAND:
                    link_type, frame = LINKTYPE_ERF, _erf_header(time_ns, captured, wire) + frame
                    wire += 16
                elif link_type == NO_PACKET:
                    link_type = LINKTYPE_ETHERNET  # no bytes: it only has to be counted
                if link_type not in interfaces:
                    interfaces[link_type] = len(interfaces)
                    pieces.append(_interface(link_type))
                pieces.append(_packet(interfaces[link_type], time_ns, frame, wire))
            yield b"".join(pieces)


def _erf_header(time_ns: int, captured: int, wire: int) -> bytes:
    """Endace's extensible record format: time as 32.32 bits little-endian, all else big-endian."""
    seconds, rest = divmod(time_ns, 10**9)
    fraction = -(-(rest << 32) // 10**9)  # rounded up, so that it comes back as the same nanosecond
    head = struct.pack("<II", fraction & 0xFFFFFFFF, seconds & 0xFFFFFFFF)
    sizes = (min(16 + captured, 0xFFFF), 0, min(wire, 0xFFFF))
    return head + struct.pack(">BBHHH", ERF_INFINIBAND, _ERF_VARYING_LENGTH, *sizes)


def _interface(link_type: int) -> bytes:
    resolution = struct.pack("<HHBxxxHH", 9, 1, _NANOSECONDS, 0, 0)
    length = 20 + len(resolution)
    return struct.pack("<IIHHI", 1, length, link_type, 0, 0) + resolution + struct.pack("<I", length)


def _packet(interface: int, time_ns: int, frame: bytes, wire: int) -> bytes:
    padded = frame + bytes(-len(frame) % 4)
    length = 32 + len(padded)
    time = time_ns & 0xFFFFFFFFFFFFFFFF
    head = struct.pack("<IIIIIII", 6, length, interface, time >> 32, time & 0xFFFFFFFF, len(frame), wire)
    return head + padded + struct.pack("<I", length)
