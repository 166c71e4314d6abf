"""ACK extended transport header (AETH): what its syndrome byte says.

Source: IBTA Vol. 1, 9.7.5.1.1 and tables 44 to 46; values checked against Linux ``rxe_hdr.h`` and on real captures.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "CREDITS",
    "FATAL_NAKS",
    "NO_CREDIT_LIMIT",
    "RNR_WAIT_NS",
    "NakCode",
    "SyndromeKind",
    "syndrome_kind",
    "syndrome_name",
]

#: Receiver-not-ready waits in nanoseconds, indexed by the five-bit timer code. Code 0 is the longest wait.
RNR_WAIT_NS: tuple[int, ...] = tuple(
    10_000 * n
    for n in (
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
        256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
    )
)  # fmt: skip

#: Receive credits by the five-bit credit code of an ACK; code 31 means that no limit is told.
CREDITS: tuple[int, ...] = (
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096,
    6_144, 8_192, 12_288, 16_384, 24_576, 32_768,
)  # fmt: skip
NO_CREDIT_LIMIT = 31


class SyndromeKind(IntEnum):
    """Bits 6 and 5 of the syndrome."""

    ACK = 0b00
    RNR_NAK = 0b01
    RESERVED = 0b10
    NAK = 0b11


class NakCode(IntEnum):
    """Low five bits of a NAK; 5 to 31 have no name."""

    PSN_SEQUENCE_ERROR = 0
    INVALID_REQUEST = 1
    REMOTE_ACCESS_ERROR = 2
    REMOTE_OPERATIONAL_ERROR = 3
    INVALID_RD_REQUEST = 4


#: NAKs after which the queue pair is in error: nothing more is expected on it.
FATAL_NAKS = frozenset({NakCode.INVALID_REQUEST, NakCode.REMOTE_ACCESS_ERROR, NakCode.REMOTE_OPERATIONAL_ERROR})


def syndrome_kind(syndrome: int) -> SyndromeKind:
    """Kind of acknowledgement that a syndrome byte (0 to 255) announces; bit 7 is reserved and ignored."""
    return SyndromeKind(syndrome >> 5 & 0b11)


def syndrome_name(syndrome: int) -> str:
    """A syndrome in words: ``ACK``, ``NAK remote access error``, ``RNR NAK 0.64 ms``, ``NAK code 9``."""
    kind, code = syndrome_kind(syndrome), syndrome & 31
    if kind is SyndromeKind.ACK:
        return "ACK"
    if kind is SyndromeKind.RNR_NAK:
        return f"RNR NAK {RNR_WAIT_NS[code] / 1e6:g} ms"
    if kind is SyndromeKind.RESERVED:
        return f"reserved syndrome {syndrome:#04x}"
    names = {int(member): member.name for member in NakCode}
    if code not in names:
        return f"NAK code {code}"
    return "NAK " + names[code].lower().replace("_", " ").replace("psn", "PSN").replace("rd", "RD")
