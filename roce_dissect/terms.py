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
    "EndedBy",
    "EventKind",
    "IcrcStatus",
    "MessageStatus",
    "PairedBy",
    "Recovery",
    "Role",
    "Standing",
    "Status",
    "Trigger",
    "Tunnel",
    "Vantage",
    "Verb",
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
    FRAGMENT = 5  # the first of several IP fragments: what lies in the others is missing, the ICRC always


class IcrcStatus(IntEnum):
    """What the ICRC says of a packet."""

    NONE = 0  # not verified: switched off, a fragment, or the packet's lengths do not tell where it is
    GOOD = 1
    BAD = 2
    SLICED = 3  # not all of the bytes that it covers were captured
    PLACEHOLDER = 4  # 0, or the same wrong number again and again: the sender computes none


class Standing(IntEnum):
    """What part a packet takes in the flow tables."""

    FULL = 0
    UNPROVEN = 1  # its ICRC is wrong, and no right one came before: taken in, but alone it makes no connection
    DOUBTFUL = 2  # perhaps no RoCE: taken in only where it continues something
    DAMAGED = 3  # its ICRC is wrong, those of its sender are right otherwise: receivers drop it, and so do the tables
    DOUBLED = 4  # one more sighting of a packet, in a capture that holds nearly every one more than once


class Tunnel(IntEnum):
    """What a packet travelled in."""

    NONE = 0
    VXLAN = 1
    GENEVE = 2
    GRE = 3  # an IP packet in GRE
    GRETAP = 4  # an Ethernet frame in GRE
    NVGRE = 5
    ERSPAN1 = 6
    ERSPAN2 = 7
    ERSPAN3 = 8
    IPIP = 9  # IPv4 or IPv6 in IPv4 or IPv6
    MPLS = 10


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
    DAMAGED = 8  # a packet with a wrong ICRC
    CM_REQ = 16
    CM_REP = 17
    CM_RTU = 18
    CM_REJ = 19
    CM_DREQ = 20
    CM_DREP = 21


class Trigger(IntEnum):
    """Why requests that do not advance the stream came: the cause of an episode."""

    UNKNOWN = 0  # nothing in the capture tells
    NAK = 1  # PSN sequence error
    IMPLIED_NAK = 2  # an answer beyond an unanswered READ or atomic
    RNR_NAK = 3
    TIMEOUT = 4
    ADAPTIVE_TIMEOUT = 5  # one of a row whose spacing grows
    SPURIOUS = 6  # the answer was on its way
    REORDERING = 7  # nobody went back: the network delivered late


class Recovery(IntEnum):
    """What an episode sent again."""

    NONE = 0  # nothing: reordering
    GO_BACK_N = 1  # all from the first PSN on
    SELECTIVE = 2  # single packets only


class Verb(IntEnum):
    """What a message does."""

    SEND = 1
    SEND_IMM = 2
    SEND_INV = 3
    WRITE = 4
    WRITE_IMM = 5
    READ = 6
    COMPARE_SWAP = 7
    FETCH_ADD = 8
    FLUSH = 9
    ATOMIC_WRITE = 10


class MessageStatus(IntEnum):
    """How a message ended, as far as the capture tells."""

    COMPLETE = 1  # answered in full
    SENT = 2  # UC and UD: all of it passed; nothing ever answers
    REFUSED = 3  # a NAK put the QP into error because of it
    FLUSHED = 4  # behind a refused one: the QP was in error
    LOST = 5  # UC: a part is missing, and nobody sends again
    UNANSWERED = 6  # no answer up to the end of the capture, or of the QP's life
    UNFINISHED = 7  # its last packet never passed
    ANSWER_UNSEEN = 8  # the requester went on as if answered; the capture lacks the answer


class EndedBy(IntEnum):
    """What ended a stream within the capture."""

    NOTHING = 0  # it was in use when the capture ended
    TEARDOWN = 1  # the CM's DREQ or DREP
    NAK = 2  # a NAK put the QP into error
    RETRIES = 3  # no answer to the last retry
    RNR_RETRIES = 4  # the last answer was an RNR NAK, and nothing came after it
    NEW_LIFE = 5  # the QP number was used anew


class Vantage(IntEnum):
    """Where on the path the capture point lies, seen from a connection's ends."""

    UNKNOWN = 0
    NEAR_A = 1
    NEAR_B = 2


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
