"""The tracker with its tables: decoded packets in, streams and events kept, in bounded memory.

The tables are allocated at their full size at once: the system hands out their pages only as they are touched, so
that a small capture stays small, and nothing ever has to grow.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect.capture.states import BATCH
from roce_dissect.flows import states
from roce_dissect.flows import tracker as default_tracker
from roce_dissect.flows.handshake import Handshakes
from roce_dissect.spec.headers import HAS_AETH
from roce_dissect.spec.opcodes import HEADERS, OPERATIONS, RESPONSES, Transport
from roce_dissect.terms import Standing, Verb

if TYPE_CHECKING:
    from roce_dissect.decode.cm import Message

__all__ = ["FLOW_COLUMNS", "KEY_COLUMNS", "FlowTable", "Verdicts", "class_table"]

#: Columns of decoded packets that the tracker reads, in the order of its arguments.
FLOW_COLUMNS = (
    "frame_key",
    "time_ns",
    "src",
    "dst",
    "dest_qp",
    "src_qp",
    "psn",
    "opcode",
    "syndrome",
    "payload_len",
    "dma_len",
    "wire_len",
    "present",
    "status",
    "version",
    "ecn",
    "ip_id",
    "icrc",
    "udp_sport",
    "msn",
    "vni",
    "standing",
)
#: Further ones, of which only rows of messages tell: keys, addresses, immediates. They may be missing.
KEY_COLUMNS = ("va", "r_key", "imm_data", "inv_r_key")

#: Streams kept; packets of further ones are counted as untracked.
MAX_STREAMS = 1 << 18
#: Open gaps kept over all streams.
MAX_HOLES = 1 << 19
#: Events kept; further ones are counted. Counters of streams stay exact.
MAX_EVENTS = 500_000
#: Messages under way over all streams; further ones are counted as not followed.
MAX_MESSAGES = 1 << 18
#: Slots for the fingerprints of recent requests.
RECENT = 1 << 13
#: Rows of the tracker's event buffer: enough for a whole batch.
EVENT_ROWS = BATCH * states.MOST_EVENTS
#: Rows of its buffer for messages that ended.
ENDED_ROWS = BATCH + states.MOST_ENDS

#: Takes rows of messages that ended: int64[n, MESSAGE_WORDS], valid during the call only.
MessageSink = Callable[[np.ndarray], None]


def class_table() -> np.ndarray:
    """What each of the 256 opcodes is to the tracker, uint32; 0: nothing that belongs to a stream."""
    table = np.zeros(256, np.uint32)
    for opcode, chain in HEADERS.items():
        transport, code = opcode & 0xE0, opcode & 0x1F
        if transport == Transport.CNP:
            table[opcode] = states.CONGESTION
        elif transport == Transport.RD:
            table[opcode] = states.COUNTED  # its PSNs belong to end-to-end contexts: not judged
        else:
            kind = _class(code, chain)
            if transport == Transport.UC:
                kind |= states.UNRELIABLE
            elif transport == Transport.UD:
                kind = kind & ~states.REQUEST | states.UNRELIABLE | states.DATAGRAM
            table[opcode] = kind
    return table


#: Verb of an operation, by the beginning and, if it has one, the end of its name.
_VERBS = {
    ("SEND", "IMM"): Verb.SEND_IMM,
    ("SEND", "INV"): Verb.SEND_INV,
    ("SEND", ""): Verb.SEND,
    ("WRITE", "IMM"): Verb.WRITE_IMM,
    ("WRITE", ""): Verb.WRITE,
    ("READ_REQUEST", ""): Verb.READ,
    ("COMPARE_SWAP", ""): Verb.COMPARE_SWAP,
    ("FETCH_ADD", ""): Verb.FETCH_ADD,
    ("FLUSH", ""): Verb.FLUSH,
    ("ATOMIC_WRITE", ""): Verb.ATOMIC_WRITE,
}
#: Verbs that only a response with their data answers.
_ASKING = (Verb.READ, Verb.COMPARE_SWAP, Verb.FETCH_ADD)


def _class(code: int, chain: int) -> int:
    """Class of an operation and its verb, from its name."""
    name = OPERATIONS[code][0]
    kind = states.RESPONSE if code in RESPONSES else states.REQUEST
    if name == "READ_REQUEST":
        kind |= states.READ
    if name.startswith("READ_RESPONSE"):
        kind |= states.READ_RESPONSE
    if name == "ATOMIC_ACKNOWLEDGE":
        kind |= states.ASKS
    if chain & HAS_AETH:
        kind |= states.ACKNOWLEDGES
    if name.endswith(("_FIRST", "_MIDDLE")):
        kind |= states.FULL
    else:
        kind |= states.ENDS
    kind |= states.CONTINUES if "_MIDDLE" in name or "_LAST" in name else states.STARTS
    if code not in RESPONSES:
        verb = next((verb for (start, end), verb in _VERBS.items() if name.startswith(start) and name.endswith(end)), 0)
        kind |= verb << states.VERB_SHIFT
        if verb in _ASKING:
            kind |= states.ASKS
    return int(kind)


@dataclass(slots=True)
class Verdicts:
    """The tracker's columns of the latest batch, each of the batch's full length."""

    stream: np.ndarray
    role: np.ndarray
    psn_ext: np.ndarray
    verdict: np.ndarray
    accepted: np.ndarray
    missing_before: np.ndarray

    @classmethod
    def empty(cls, length: int) -> Verdicts:
        """Columns for batches of at most `length` packets; length 1 asks the tracker for none."""
        return cls(
            np.empty(length, np.int32),
            np.empty(length, np.uint8),
            np.empty(length, np.int64),
            np.empty(length, np.uint8),
            np.empty(length, np.uint8),
            np.empty(length, np.uint32),
        )

    def arrays(self) -> tuple[np.ndarray, ...]:
        return (self.stream, self.role, self.psn_ext, self.verdict, self.accepted, self.missing_before)


class FlowTable:
    """Feeds packets to the tracker and keeps what it says.

    Parameters
    ----------
    tracker : module, optional
        Another form of `roce_dissect.flows.tracker`, for tests.
    max_streams : int
        Room for streams.
    on_messages : callable, optional
        Called with the rows of messages that ended, int64[n, MESSAGE_WORDS]; they are valid during the call only.

    Attributes
    ----------
    handshakes : Handshakes
        The CM exchanges.
    latency : numpy.ndarray
        int64[LATENCY_GROUPS, LATENCY_WORDS]: how long complete messages took, in buckets.
    events_left_out : int
        Events beyond `MAX_EVENTS`.
    damaged : dict
        Codes of source and destination: packets between them with a wrong ICRC, which are in no stream.
    """

    def __init__(
        self,
        tracker: ModuleType | None = None,
        max_streams: int = MAX_STREAMS,
        on_messages: MessageSink | None = None,
    ) -> None:
        tracker = default_tracker if tracker is None else tracker
        self.handshakes = Handshakes()
        self.latency = np.zeros((states.LATENCY_GROUPS, states.LATENCY_WORDS), np.int64)
        self.events_left_out = 0
        self.damaged: dict[tuple[int, int], int] = {}
        self._interpreted = not tracker.COMPILED
        self._streams = np.zeros((max_streams, states.STREAM_WORDS), np.int64)
        self._pairs = np.zeros((max_streams * 2, states.PAIR_WORDS), np.int64)
        self._holes = np.zeros((MAX_HOLES, states.HOLE_WORDS), np.int64)
        self._events = np.zeros((EVENT_ROWS, states.EVENT_WORDS), np.int64)
        self._counts = np.zeros(states.COUNTS, np.int64)
        self._counts[states.HOLES_USED] = 1
        self._counts[states.MESSAGES_USED] = 1
        self._ended = np.zeros((ENDED_ROWS, states.MESSAGE_WORDS), np.int64)
        self._on_messages = on_messages
        self._kept: list[np.ndarray] = []
        self._kept_rows = 0
        self._nothing = Verdicts.empty(1)
        self._no_keys: list[np.ndarray] = [np.zeros(0, np.int64), *(np.zeros(0, np.uint32) for _ in KEY_COLUMNS[1:])]
        self._tracker = tracker.Tracker(
            np.zeros(max_streams * 2, np.int32),
            class_table(),
            self._streams,
            self._pairs,
            self._holes,
            np.zeros((RECENT, states.RECENT_WORDS), np.int64),
            self._events,
            self._counts,
            secrets.randbits(64),
            np.zeros((MAX_MESSAGES, states.MESSAGE_WORDS), np.int64),
            self._ended,
            self.latency,
        )

    # -- what came of it -------------------------------------------------------------------------------------------

    @property
    def streams(self) -> np.ndarray:
        """int64[streams, STREAM_WORDS]: the tracker's rows, words as in `roce_dissect.flows.states`."""
        return self._streams[: int(self._counts[states.STREAMS_USED])]

    @property
    def events(self) -> np.ndarray:
        """int64[events, EVENT_WORDS], in the order in which they ended."""
        if len(self._kept) > 1:
            self._kept = [np.concatenate(self._kept)]
        return self._kept[0] if self._kept else np.zeros((0, states.EVENT_WORDS), np.int64)

    @property
    def untracked(self) -> int:
        """Packets whose stream found no room."""
        return int(self._counts[states.UNTRACKED])

    @property
    def foreign(self) -> int:
        """Packets without a trustworthy BTH, with an opcode that means nothing, or doubtful ones that fit nowhere."""
        return int(self._counts[states.FOREIGN])

    @property
    def twins(self) -> int:
        """Requests that are in the capture twice, with the same identification and ICRC, however far apart."""
        return int(self._counts[states.TWINS])

    @property
    def cut_answers(self) -> int:
        """Responses whose AETH was cut off: whether they were ACK or NAK is not known."""
        return int(self._counts[states.CUT_ANSWERS])

    @property
    def unfollowed(self) -> int:
        """Messages for which the table had no room."""
        return int(self._counts[states.UNFOLLOWED])

    # -- packets ---------------------------------------------------------------------------------------------------

    def feed(
        self,
        columns: Mapping[str, np.ndarray],
        rows: int,
        messages: Sequence[Message] = (),
        verdicts: Verdicts | None = None,
    ) -> None:
        """Track the first `rows` rows of decoded columns, in order.

        Parameters
        ----------
        columns : mapping of str to numpy.ndarray
            `FLOW_COLUMNS`, and all of `KEY_COLUMNS` or none, C-contiguous, in the dtypes of `roce_dissect.columns`.
        rows : int
            Valid rows.
        messages : sequence of Message
            The CM messages among them, in order.
        verdicts : Verdicts, optional
            Where to write the tracker's columns.
        """
        arrays = [self._hand(columns[name]) for name in FLOW_COLUMNS]
        keys: Sequence[np.ndarray] = self._no_keys
        if "va" in columns:  # as signed integers: the tracker only carries the address
            keys = [columns["va"].view(np.int64), *(columns[name] for name in KEY_COLUMNS[1:])]
        arrays.extend(self._hand(array) for array in keys)
        out = [self._hand(array) for array in (self._nothing if verdicts is None else verdicts).arrays()]
        self._count_damaged(columns, rows)
        start = 0
        for message in messages:
            start = self._track(arrays, out, start, message.row + 1)
            self.handshakes.see(message, self)
        self._track(arrays, out, start, rows)

    def _count_damaged(self, columns: Mapping[str, np.ndarray], rows: int) -> None:
        found = np.flatnonzero(columns["standing"][:rows] == Standing.DAMAGED)
        for way in zip(columns["src"][found].tolist(), columns["dst"][found].tolist(), strict=True):
            self.damaged[way] = self.damaged.get(way, 0) + 1

    def finish(self) -> None:
        """No more packets: emit the episodes and messages that are still open."""
        done = 0
        while True:
            done = self._tracker.finish(done)
            self._drain()
            if done >= len(self.streams):
                return

    def announce(
        self, message: Message, a: int, b: int, to_b: tuple[int, int], to_a: tuple[int, int], mtu: int, timeout: int
    ) -> tuple[int, int]:
        """A handshake between hosts `a` and `b` told QP and first PSN of both directions. Returns the two streams.

        They are in the network of the message.
        """
        self._drain()
        network = message.network << states.NETWORK_SHIFT
        pair = [
            self._tracker.announce(
                message.frame_key, message.time_ns, source << 32 | destination, network | qp, psn, mtu, timeout
            )
            for source, destination, (qp, psn) in ((a, b, to_b), (b, a, to_a))
        ]
        if min(pair) >= 0 and pair[0] != pair[1]:
            self._tracker.unite(*pair)
        return pair[0], pair[1]

    def close(self, source: int, destination: int, qp: int, network: int = 0) -> None:
        """A teardown named the stream from `source` to `qp` at `destination`; its other direction ends as well.

        `network` is its VNI + 1, 0: none.
        """
        stream = self._tracker.close(source << 32 | destination, network << states.NETWORK_SHIFT | qp)
        peer = int(self.streams[stream, states.PEER]) - 1 if stream >= 0 else -1
        if peer >= 0:
            self._streams[peer, states.FLAGS] |= states.CLOSED

    def _track(self, arrays: list, out: list, start: int, stop: int) -> int:
        while start < stop:
            start = self._tracker.track(*arrays, start, stop, *out)
            self._drain()
        return start

    def _drain(self) -> None:
        """Keep the tracker's new events, as far as there is room, hand on the messages, and empty its buffers."""
        ended = int(self._counts[states.ENDED_USED])
        if ended:
            if self._on_messages is not None:
                self._on_messages(self._ended[:ended])
            self._counts[states.ENDED_USED] = 0
        rows = int(self._counts[states.EVENTS_USED])
        if rows == 0:
            return
        kept = min(rows, MAX_EVENTS - self._kept_rows)
        if kept > 0:
            self._kept.append(self._events[:kept].copy())
            self._kept_rows += kept
        self.events_left_out += rows - kept
        self._counts[states.EVENTS_USED] = 0

    def _hand(self, array: np.ndarray) -> np.ndarray | memoryview:
        """Interpreted, NumPy's scalars would wrap and overflow; a memoryview gives Python's integers."""
        if self._interpreted:
            return memoryview(array)
        return array
