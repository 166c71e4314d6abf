"""What a sequence picture shows, gathered from the packets of one connection.

A connection has two PSN spaces: A's requests with B's answers, and B's requests with A's (``docs/semantics.md``). READ
responses are data of the responder, and they carry PSNs of the *requester's* space: that is where they are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from roce_dissect.plot.points import KEEP, Cloud, Staircase, column, packet_pieces
from roce_dissect.spec.aeth import FATAL_NAKS, SyndromeKind, syndrome_kind
from roce_dissect.spec.net import ECN_CE
from roce_dissect.spec.opcodes import RC_READ_RESPONSES
from roce_dissect.terms import ADVANCING, Role, Verdict

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["CIRCLE", "PacketColumns", "Space", "gather"]

_COLUMNS = (
    "time_ns", "stream", "role", "psn_ext", "verdict", "missing_before", "opcode", "syndrome", "payload_len", "ecn",
)  # fmt: skip
_NO_SYNDROME = -1
#: PSNs of the whole 24-bit circle.
CIRCLE = 1 << 24


@dataclass(slots=True)
class PacketColumns:
    """One piece of packets, each column an int64 array."""

    time_ns: np.ndarray
    stream: np.ndarray
    role: np.ndarray
    psn_ext: np.ndarray
    verdict: np.ndarray
    missing_before: np.ndarray
    opcode: np.ndarray
    syndrome: np.ndarray
    payload_len: np.ndarray
    ecn: np.ndarray

    @classmethod
    def of(cls, frame: pd.DataFrame) -> PacketColumns:
        """Columns of a DataFrame of packets; what it lacks is absent."""
        return cls(*(column(frame, name, _NO_SYNDROME if name == "syndrome" else 0) for name in _COLUMNS))

    @property
    def is_read_response(self) -> np.ndarray:
        """READ RESPONSE FIRST, MIDDLE, LAST or ONLY of RC."""
        return np.isin(self.opcode, RC_READ_RESPONSES)


@dataclass(slots=True)
class Space:
    """One PSN space: the requests of one stream, and the responses of the other.

    Parameters
    ----------
    requests, responses : int
        Rows of the streams table, -1 where there is none.
    cnp_streams : tuple of int
        Streams whose CNPs are told here.

    Attributes
    ----------
    clouds : dict of str to Cloud
        Points by the name of their mark. Of ``gap`` and ``response_gap`` the size is the number of PSNs that did not
        pass, and the PSN the first of them.
    acked : Staircase
        The highest PSN acknowledged: by an ACK or a READ or atomic response; a NAK acknowledges what lies before it.
    syndromes : Counter
        How often each NAK and RNR NAK syndrome occurs.
    payload_bytes : int
        Payload of requests and READ responses, resent ones too.
    """

    requests: int
    responses: int
    cnp_streams: tuple[int, ...] = ()
    keep: int = KEEP
    clouds: dict[str, Cloud] = field(default_factory=dict)
    acked: Staircase = field(init=False)
    syndromes: Counter[int] = field(default_factory=Counter)
    missing: int = 0
    payload_bytes: int = 0
    _first_request: int | None = None
    _first_response: int | None = None

    def __post_init__(self) -> None:
        self.acked = Staircase(self.keep)

    @property
    def empty(self) -> bool:
        """Whether nothing in it has a place among the PSNs."""
        return self.acked.count == 0 and all(name in ("ce", "cnp") for name in self.clouds)

    @property
    def requests_count(self) -> int:
        """Requests of any verdict."""
        return sum(self.count(name) for name in ("new", "resent", "late", "copy"))

    def count(self, name: str) -> int:
        """Points of a mark that were added, kept or not."""
        return self.clouds[name].count if name in self.clouds else 0

    def syndromes_of(self, name: str) -> list[int]:
        """Syndromes seen that the mark ``nak``, ``fatal_nak`` or ``rnr_nak`` stands for."""
        return sorted(syndrome for syndrome in self.syndromes if _mark_of(syndrome) == name)

    @property
    def response_shift(self) -> int:
        """What to add to the PSNs of responses so that they lie beside the requests: a multiple of 2^24.

        Responses that were seen before their requests were unwrapped by themselves, and may be full circles away.
        """
        if self._first_request is None or self._first_response is None:
            return 0
        return round((self._first_request - self._first_response) / CIRCLE) * CIRCLE

    def add(self, packets: PacketColumns) -> None:
        """Take in one piece of packets."""
        placed = packets.psn_ext >= 0
        mine = (packets.stream == self.requests) & (packets.role == Role.REQUEST) & placed
        theirs = (packets.stream == self.responses) & (packets.role == Role.RESPONSE) & placed
        self._add_requests(packets, mine)
        self._add_responses(packets, theirs)
        self._put("ce", packets, (mine | theirs) & (packets.ecn == ECN_CE))
        self._put("cnp", packets, np.isin(packets.stream, self.cnp_streams) & (packets.role == Role.CNP))
        data = mine | (theirs & packets.is_read_response)
        self.payload_bytes += int(packets.payload_len[data].sum())

    def _add_requests(self, packets: PacketColumns, mine: np.ndarray) -> None:
        if self._first_request is None and mine.any():
            self._first_request = int(packets.psn_ext[mine][0])
        verdict = packets.verdict
        self._put("new", packets, mine & np.isin(verdict, ADVANCING))
        self._put("resent", packets, mine & (verdict == Verdict.RESENT))
        self._put("late", packets, mine & (verdict == Verdict.LATE))
        self._put("copy", packets, mine & (verdict == Verdict.COPY))
        self._put_gaps("gap", packets, mine & (verdict == Verdict.GAP))

    def _add_responses(self, packets: PacketColumns, theirs: np.ndarray) -> None:
        if not theirs.any():
            return
        if self._first_response is None:
            self._first_response = int(packets.psn_ext[theirs][0])
        reads = theirs & packets.is_read_response
        self._put("response", packets, reads & np.isin(packets.verdict, ADVANCING))
        self._put("response_resent", packets, reads & (packets.verdict == Verdict.RESENT))
        self._put_gaps("response_gap", packets, reads & (packets.verdict == Verdict.GAP))
        told = packets.syndrome != _NO_SYNDROME
        kind = packets.syndrome >> 5 & 3
        refused = theirs & told & ((kind == SyndromeKind.NAK) | (kind == SyndromeKind.RNR_NAK))
        if refused.any():
            self.syndromes.update((packets.syndrome[refused] & 127).tolist())  # bit 7 is reserved
            for name in ("nak", "fatal_nak", "rnr_nak"):
                self._put(name, packets, refused & np.isin(packets.syndrome & 127, self.syndromes_of(name)))
        # An ACKNOWLEDGE whose AETH was cut off confirms nothing; a READ RESPONSE MIDDLE never has one and does.
        says = theirs & ((told & (kind != SyndromeKind.RESERVED)) | packets.is_read_response)
        self.acked.add(packets.time_ns[says], packets.psn_ext[says] - refused[says])

    def _put(self, name: str, packets: PacketColumns, where: np.ndarray) -> None:
        if where.any():
            cloud = self.clouds.setdefault(name, Cloud(self.keep))
            cloud.add(packets.time_ns[where], packets.psn_ext[where])

    def _put_gaps(self, name: str, packets: PacketColumns, where: np.ndarray) -> None:
        if where.any():
            cloud, missing = self.clouds.setdefault(name, Cloud(self.keep)), packets.missing_before[where]
            cloud.add(packets.time_ns[where], packets.psn_ext[where] - missing, missing)
            self.missing += int(missing.sum()) if name == "gap" else 0


def _mark_of(syndrome: int) -> str:
    """Mark of a NAK's or RNR NAK's syndrome."""
    if syndrome_kind(syndrome) is SyndromeKind.RNR_NAK:
        return "rnr_nak"
    return "fatal_nak" if syndrome & 31 in FATAL_NAKS else "nak"


def gather(analysis: Analysis, connection: pd.Series, keep: int = KEEP) -> list[Space]:
    """Both PSN spaces of a connection that are not empty, the one with more payload first.

    Parameters
    ----------
    analysis : Analysis
        Its capture is read once more, piece by piece, in bounded memory.
    connection : pandas.Series
        A row of the connections table.
    keep : int
        Points kept of each kind whatever happens: see `roce_dissect.plot.points`.
    """
    a_to_b, b_to_a = int(connection["a_to_b_stream"]), int(connection["b_to_a_stream"])
    one, other = Space(a_to_b, b_to_a, (b_to_a,), keep), Space(b_to_a, a_to_b, (a_to_b,), keep)
    ways = ("a_to_b", "b_to_a")
    if not all(connection[f"{way}_requests"] for way in ways):  # one space only: whatever CNPs there are concern it
        one.cnp_streams = other.cnp_streams = (a_to_b, b_to_a)
    for packets in _pieces(analysis, int(connection["connection"])):
        one.add(packets)
        other.add(packets)
    spaces = [space for space in (one, other) if not space.empty]
    return sorted(spaces, key=lambda space: (space.payload_bytes, space.requests_count), reverse=True)


def _pieces(analysis: Analysis, connection: int) -> Iterator[PacketColumns]:
    return (PacketColumns.of(frame) for frame in packet_pieces(analysis, connection, _COLUMNS))
