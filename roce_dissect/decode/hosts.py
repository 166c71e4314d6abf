"""The hosts table: addresses to small codes and back.

An address is 128 bits in two words; an IPv4 address is its IPv4-mapped form, so that a GID ``::ffff:a.b.c.d`` and
``a.b.c.d`` are one host. The kernel enters new addresses; this side owns the tables and prints them.
"""

from __future__ import annotations

import ipaddress
import secrets

import numpy as np

from roce_dissect.errors import ArgumentError
from roce_dissect.layout import LID_BLOCK

__all__ = ["MAX_HOSTS", "HostTable", "address_text", "address_words"]

#: Rows of the table, the reserved one included. A capture with more hosts is an attack or a scan: code 0 stands for the
#: rest. Both tables are allocated at once, and cost memory only as far as they are used.
MAX_HOSTS = 1 << 18
_MAPPED = 0xFFFF << 32
_LID = LID_BLOCK << 32
#: What code 0 prints as.
OVERFLOW_TEXT = "(too many hosts)"


def address_text(high: int, low: int) -> str:
    """Text of an address given as two 64-bit words; an IPv4-mapped one as IPv4, that of a LID as ``LID 5``."""
    if high == 0 and low >> 32 == 0xFFFF:
        return str(ipaddress.IPv4Address(low & 0xFFFFFFFF))
    if high == 0 and low & ~0xFFFF == _LID:
        return f"LID {low & 0xFFFF}"
    return str(ipaddress.IPv6Address(high << 64 | low))


def address_words(text: str) -> tuple[int, int]:
    """The two 64-bit words of an address as `address_text` prints it.

    Raises
    ------
    ArgumentError
        The text is no address.
    """
    lid = text.removeprefix("LID ")
    if lid != text and lid.isdecimal() and lid.isascii() and int(lid) < 1 << 16:
        return 0, _LID | int(lid)
    try:
        value = int(ipaddress.ip_address(text))
    except ValueError as error:
        raise ArgumentError(f"{text!r} is not an IP address") from error
    return (value >> 64, value & (1 << 64) - 1) if ":" in text else (0, value | _MAPPED)


class HostTable:
    """Addresses in the order in which they were first seen.

    Attributes
    ----------
    words : numpy.ndarray
        uint64[capacity, 2], the addresses; row 0 is reserved.
    slots : numpy.ndarray
        int32[power of two], hash slots; only the kernel reads them.
    used : numpy.ndarray
        int64[1], rows in use.
    seed : int
        64 random bits for the kernel's hash.
    """

    def __init__(self, capacity: int = MAX_HOSTS) -> None:
        self.words = np.zeros((capacity, 2), np.uint64)
        self.slots = np.zeros(1 << (2 * capacity - 1).bit_length(), np.int32)
        self.used = np.ones(1, np.int64)
        self.seed = secrets.randbits(64)
        self._texts: list[str] = [OVERFLOW_TEXT]
        self._entered: dict[str, int] = {}
        self._rows: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return int(self.used[0])

    def texts(self) -> list[str]:
        """Printed address of every row so far; the list is the table's own and grows."""
        for high, low in self.words[len(self._texts) : len(self)].tolist():
            self._texts.append(address_text(high, low))
        return self._texts

    def enter(self, address: str) -> int:
        """Row of an address given as text, entered if it is new. Only for tables that no kernel fills.

        Raises
        ------
        ArgumentError
            The text is no address.
        """
        row = self._entered.get(address)
        if row is None:
            words = address_words(address)
            row = self._rows.setdefault(words, len(self))
            if row == len(self):
                if row == len(self.words):
                    del self._rows[words]
                    return 0
                self.words[row] = words
                self.used[0] += 1
            self._entered[address] = row
        return row
