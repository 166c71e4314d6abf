"""VCRC: the CRC-16 over a whole packet of native InfiniBand, link by link.

Source: IBTA Vol. 1, 7.8.2: polynomial 0x100B, least significant bit first, initial value and final exclusive or 0xFFFF.
A table of its own, since binascii has CRC-CCITT only and no dependency of this project offers another CRC-16.
"""

from __future__ import annotations

__all__ = ["vcrc_of"]

_REFLECTED = 0xD008  # 0x100B, bits in reverse
_ONES = 0xFFFF


def _table() -> tuple[int, ...]:
    """Remainder of each byte."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_REFLECTED if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_TABLE = _table()


def vcrc_of(packet: bytes) -> int:
    """VCRC of the bytes from the LRH to the end of the ICRC; it stands little-endian on the wire.

    Examples
    --------
    >>> hex(vcrc_of(b"123456789"))
    '0xa3d'
    """
    crc = _ONES
    for byte in packet:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ _ONES
