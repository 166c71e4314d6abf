"""The fixed vocabulary of the tables: status, role, verdict and the like.

Values are small integers in the kernels and their names, in lower case, in tables that people read.
`docs/semantics.md` says what each one means.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "ADVANCING",
    "CONFIDENCE",
    "Accepted",
    "EventKind",
    "PairedBy",
    "Role",
    "Status",
    "Verdict",
    "names",
]


class Status(IntEnum):
    """How far a packet could be decoded."""

    OK = 0
    CUT = 1  # the capture (or the packet's own lengths) ends within its headers
    MALFORMED = 2  # lengths that contradict each other
    UNKNOWN_OPCODE = 3
    UNKNOWN_VERSION = 4  # BTH transport version other than 0


class Role(IntEnum):
    """What a packet is on its connection."""

    OTHER = 0
    REQUEST = 1
    RESPONSE = 2
    DATAGRAM = 3
    MANAGEMENT = 4
    CNP = 5


class Verdict(IntEnum):
    """What a packet is to the capture point."""

    NONE = 0  # not judged
    FIRST = 1
    NEW = 2
    GAP = 3
    LATE = 4
    RESENT = 5
    COPY = 6


#: Verdicts of what goes beyond all that was seen before.
ADVANCING = (Verdict.FIRST, Verdict.NEW, Verdict.GAP)


class Accepted(IntEnum):
    """What the responder made of a request."""

    NONE = 0  # not judged
    ACCEPTED = 1
    DUPLICATE = 2
    OUT_OF_SEQUENCE = 3  # a NAK is due
    DISCARDED = 4  # silently
    QP_ERROR = 5  # the QP is in error


class EventKind(IntEnum):
    """Rows of the events table."""

    GAP = 0
    RESEND = 1
    NAK = 2
    RNR_NAK = 3
    CNP = 4
    CE = 5
    UNSEEN = 6
    NEW_LIFE = 7
    CM_REQ = 16
    CM_REP = 17
    CM_RTU = 18
    CM_REJ = 19
    CM_DREQ = 20
    CM_DREP = 21


class PairedBy(IntEnum):
    """Evidence that two streams are one connection, weakest first."""

    NONE = 0
    UDP_SPORT = 1
    ONLY = 2
    PSN = 3
    CM = 4


#: How sure a pairing is, by its evidence.
CONFIDENCE = {PairedBy.NONE: 0.0, PairedBy.UDP_SPORT: 0.5, PairedBy.ONLY: 0.6, PairedBy.PSN: 0.9, PairedBy.CM: 1.0}


def names(terms: type[IntEnum]) -> dict[int, str]:
    """Value to printed name of a vocabulary."""
    return {int(term): term.name.lower() for term in terms}
