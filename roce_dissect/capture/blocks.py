"""The rare blocks of pcapng, parsed in Python: Section Header and Interface Description.

Source: draft-ietf-opsawg-pcapng, sections 4.1 and 4.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from roce_dissect.capture import states

__all__ = ["BlockError", "interface_row", "section_header"]

_MAGICS = {b"\x4d\x3c\x2b\x1a": True, b"\x1a\x2b\x3c\x4d": False}

_OPT_END = 0
_OPT_TSRESOL = 9
_OPT_TSOFFSET = 14

_INT64_MAX = 2**63 - 1


class BlockError(Exception):
    """A block contradicts itself; the reader adds path and offset."""


def section_header(block: bytes | memoryview) -> tuple[bool, int] | None:
    """Read a Section Header Block.

    Parameters
    ----------
    block : bytes or memoryview
        From the block's first byte on, as far as there is.

    Returns
    -------
    tuple of (bool, int) or None
        Whether the section is little-endian, and the block's length in bytes. None: twelve bytes are needed to tell.

    Raises
    ------
    BlockError
        If it is none, or its length is absurd, or its version is not 1.
    """
    if len(block) < 12:
        return None
    little = _MAGICS.get(bytes(block[8:12]))
    if little is None:
        raise BlockError("a section header with an unknown byte-order magic")
    order = "<" if little else ">"
    (length,) = struct.unpack_from(order + "I", block, 4)
    if length < 28 or length > states.MAX_LENGTH:
        raise BlockError(f"a section header of {length} bytes")
    if length % 4:
        raise BlockError(f"a section header of {length} bytes, which is not a multiple of 4")
    if len(block) >= 16:
        major, minor = struct.unpack_from(order + "HH", block, 12)
        # 1.2 is 1.0 under a wrong number, written by some programs.
        if major != 1:
            raise BlockError(f"pcapng version {major}.{minor}, which is not known")
    if len(block) >= length:
        (trailer,) = struct.unpack_from(order + "I", block, length - 4)
        if trailer != length:
            raise BlockError(f"a section header of {length} bytes whose end says {trailer}")
    return little, length


def _options(block: bytes | memoryview, at: int, stop: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield (code, value) of the options in block[at:stop]."""
    while stop - at >= 4:
        code, length = struct.unpack_from(order + "HH", block, at)
        at += 4
        if code == _OPT_END:
            return
        if length > stop - at:
            raise BlockError(f"an option of {length} bytes where {stop - at} are left")
        yield code, bytes(block[at : at + length])
        at += (length + 3) & ~3


def interface_row(block: bytes | memoryview, little: bool) -> list[int]:
    """Read an Interface Description Block into a row of the walker's interface table.

    Parameters
    ----------
    block : bytes or memoryview
        The whole block; the walker has compared its lengths.
    little : bool
        Byte order of the section.

    Returns
    -------
    list of int
        INTERFACE_SIZE numbers, each within 64 bits.

    Raises
    ------
    BlockError
        If the block is too short, or an option does not fit.
    """
    order = "<" if little else ">"
    if len(block) < 20:
        raise BlockError(f"an interface description of {len(block)} bytes")
    link_type, _, snaplen = struct.unpack_from(order + "HHI", block, 8)
    resolution, offset = 6, 0
    for code, value in _options(block, 16, len(block) - 4, order):
        if code == _OPT_TSRESOL:
            if len(value) != 1:
                raise BlockError(f"an if_tsresol option of {len(value)} bytes")
            resolution = value[0]
        elif code == _OPT_TSOFFSET:
            if len(value) != 8:
                raise BlockError(f"an if_tsoffset option of {len(value)} bytes")
            (offset,) = struct.unpack(order + "q", value)
    row = [0] * states.INTERFACE_SIZE
    row[states.LINK_TYPE] = link_type
    row[states.SNAPLEN] = snaplen
    row[states.OFFSET_S] = offset
    exponent = resolution & 0x7F
    if resolution & 0x80:
        kind, units, factor = states.TIME_BINARY, exponent, 1
    elif exponent <= 9:
        kind = states.TIME_DECIMAL if offset else states.TIME_PLAIN
        units, factor = 10**exponent, 10 ** (9 - exponent)
    else:  # two divisors, since one above 10**18 does not fit; a timestamp is below 10**20, so 36 digits are plenty
        kind = states.TIME_FINE
        units = 10 ** min(exponent - 9, 18)
        factor = 10 ** min(max(exponent - 27, 0), 18)
    row[states.TIME_KIND] = kind
    row[states.UNITS] = units
    row[states.FACTOR] = factor
    row[states.LARGEST] = _INT64_MAX // factor
    return row
