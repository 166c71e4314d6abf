"""The tracker with its tables: decoded packets in, streams and events kept, in bounded memory.

The tables are allocated at their full size at once: the system hands out their pages only as they are touched, so
that a small capture stays small, and nothing ever has to grow.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
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

if TYPE_CHECKING:
    from roce_dissect.decode.cm import Message

__all__ = ["FLOW_COLUMNS", "FlowTable", "Verdicts", "class_table"]

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
)

#: Streams kept; packets of further ones are counted as untracked.
MAX_STREAMS = 1 << 18
#: Open gaps kept over all streams.
MAX_HOLES = 1 << 19
#: Events kept; further ones are counted. Counters of streams stay exact.
MAX_EVENTS = 500_000
#: Slots for the fingerprints of recent requests.
RECENT = 1 << 13
#: Rows of the tracker's event buffer: enough for a whole batch.
EVENT_ROWS = BATCH * states.MOST_EVENTS


def class_table() -> np.ndarray:
    """What each of the 256 opcodes is to the tracker, uint16; 0: nothing that belongs to a stream."""
    table = np.zeros(256, np.uint16)
    for opcode, chain in HEADERS.items():
        transport, code = opcode & 0xE0, opcode & 0x1F
        if transport == Transport.CNP:
            table[opcode] = states.CONGESTION
        elif transport == Transport.UD:
            table[opcode] = states.DATAGRAM
        elif transport in (Transport.RC, Transport.UC):
            table[opcode] = _class(code, chain) | (states.UNRELIABLE if transport == Transport.UC else 0)
        else:
            table[opcode] = states.COUNTED  # RD and XRC are not judged yet
    return table


def _class(code: int, chain: int) -> int:
    """Class of an RC or UC operation, from its name."""
    name = OPERATIONS[code][0]
    kind = states.RESPONSE if code in RESPONSES else states.REQUEST
    if name == "READ_REQUEST":
        kind |= states.READ
    if name.startswith("READ_RESPONSE"):
        kind |= states.READ_RESPONSE
    if chain & HAS_AETH:
        kind |= states.ACKNOWLEDGES
    if name.endswith(("_FIRST", "_MIDDLE")):
        kind |= states.FULL
    if "_MIDDLE" in name or "_LAST" in name:
        return kind | states.CONTINUES
    return kind | states.STARTS


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

    Attributes
    ----------
    handshakes : Handshakes
        The CM exchanges.
    events_left_out : int
        Events beyond `MAX_EVENTS`.
    """

    def __init__(self, tracker: ModuleType | None = None, max_streams: int = MAX_STREAMS) -> None:
        tracker = default_tracker if tracker is None else tracker
        self.handshakes = Handshakes()
        self.events_left_out = 0
        self._interpreted = not tracker.COMPILED
        self._streams = np.zeros((max_streams, states.STREAM_WORDS), np.int64)
        self._pairs = np.zeros((max_streams * 2, states.PAIR_WORDS), np.int64)
        self._holes = np.zeros((MAX_HOLES, states.HOLE_WORDS), np.int64)
        self._events = np.zeros((EVENT_ROWS, states.EVENT_WORDS), np.int64)
        self._counts = np.zeros(states.COUNTS, np.int64)
        self._counts[states.HOLES_USED] = 1
        self._kept: list[np.ndarray] = []
        self._kept_rows = 0
        self._nothing = Verdicts.empty(1)
        self._no_bad = np.zeros(0, np.uint8)
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
        """Packets without a trustworthy BTH, or with an opcode that means nothing."""
        return int(self._counts[states.FOREIGN])

    @property
    def twins(self) -> int:
        """Requests that are in the capture twice, with the same identification and ICRC, however far apart."""
        return int(self._counts[states.TWINS])

    @property
    def cut_answers(self) -> int:
        """Responses whose AETH was cut off: whether they were ACK or NAK is not known."""
        return int(self._counts[states.CUT_ANSWERS])

    # -- packets ---------------------------------------------------------------------------------------------------

    def feed(
        self,
        columns: Mapping[str, np.ndarray],
        rows: int,
        messages: Sequence[Message] = (),
        verdicts: Verdicts | None = None,
        bad_icrc: np.ndarray | None = None,
    ) -> None:
        """Track the first `rows` rows of decoded columns, in order.

        Parameters
        ----------
        columns : mapping of str to numpy.ndarray
            `FLOW_COLUMNS`, C-contiguous, in the dtypes of `roce_dissect.columns`.
        rows : int
            Valid rows.
        messages : sequence of Message
            The CM messages among them, in order.
        verdicts : Verdicts, optional
            Where to write the tracker's columns.
        bad_icrc : numpy.ndarray, optional
            uint8, nonzero for packets that are damaged.
        """
        arrays = [self._hand(columns[name]) for name in FLOW_COLUMNS]
        arrays.append(self._hand(self._no_bad if bad_icrc is None else bad_icrc))
        out = [self._hand(array) for array in (self._nothing if verdicts is None else verdicts).arrays()]
        start = 0
        for message in messages:
            start = self._track(arrays, out, start, message.row + 1)
            self.handshakes.see(message, self)
        self._track(arrays, out, start, rows)

    def finish(self) -> None:
        """No more packets: emit the runs that are still open."""
        done = 0
        while True:
            done = self._tracker.finish(done)
            self._drain()
            if done >= len(self.streams):
                return

    def announce(
        self, message: Message, a: int, b: int, to_b: tuple[int, int], to_a: tuple[int, int], mtu: int
    ) -> tuple[int, int]:
        """A handshake between hosts `a` and `b` told QP and first PSN of both directions. Returns the two streams."""
        self._drain()
        pair = [
            self._tracker.announce(message.frame_key, message.time_ns, source << 32 | destination, qp, psn, mtu)
            for source, destination, (qp, psn) in ((a, b, to_b), (b, a, to_a))
        ]
        if min(pair) >= 0 and pair[0] != pair[1]:
            self._tracker.join(*pair)
        return pair[0], pair[1]

    def close(self, source: int, destination: int, qp: int) -> None:
        """A teardown named the stream from `source` to `qp` at `destination`; its other direction ends as well."""
        stream = self._tracker.close(source << 32 | destination, qp)
        peer = int(self.streams[stream, states.PEER]) - 1 if stream >= 0 else -1
        if peer >= 0:
            self._streams[peer, states.FLAGS] |= states.CLOSED

    def _track(self, arrays: list, out: list, start: int, stop: int) -> int:
        while start < stop:
            start = self._tracker.track(*arrays, start, stop, *out)
            self._drain()
        return start

    def _drain(self) -> None:
        """Keep the tracker's new events, as far as there is room, and empty its buffer."""
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
