"""One capture from its bytes to the tracker's tables, in either form of the kernels: what is fuzzed.

Used by `engine.py`, where the kernels are built with sanitizers, and by the tests that replay what it found. Tables
and buffers are so small that a capture of a few hundred bytes crosses their ends, and each frame lies apart from the
others: a read that leaves its frame is a read of bytes that belong to nobody.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import io
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from forms import load

from roce_dissect import layout
from roce_dissect.capture import reader, states
from roce_dissect.capture.reader import Capture, Records
from roce_dissect.capture.source import open_source
from roce_dissect.columns import PACKETS
from roce_dissect.decode import decoder
from roce_dissect.decode.cm import cm_messages
from roce_dissect.decode.decoder import INTERNAL, Decoder
from roce_dissect.decode.hosts import HostTable
from roce_dissect.decode.replies import keep_proven
from roce_dissect.decode.standing import Judge, Judgements
from roce_dissect.errors import CaptureError
from roce_dissect.flows import flow_table
from roce_dissect.flows.flow_table import FlowTable, Verdicts
from roce_dissect.flows.states import (
    LATENCY_COUNT,
    LATENCY_GROUPS,
    LATENCY_WORDS,
    MESSAGE_WORDS,
    MOST_ENDS,
    MOST_EVENTS,
)
from roce_dissect.terms import Status

#: Every column that the kernel fills.
NAMES = (*(name for name, column in PACKETS.items() if column.field is not None), *INTERNAL)

BATCH = 8
_STREAMS = 8
_HOSTS = 13
_LEAST = 1024  # NumPy keeps smaller blocks for its next array, with the poison that is left in them
_GAP = 8  # bytes of AddressSanitizer's shadow unit


class _Arrays:
    """NumPy for `flow_table`, but its two tables that cannot be small are made once.

    A fresh mapping of five megabytes for each capture, with the sanitizer's shadow, would cost more than all the rest.
    """

    latency = np.zeros((LATENCY_GROUPS, LATENCY_WORDS), np.int64)
    ended = np.zeros((MOST_ENDS + 3, MESSAGE_WORDS), np.int64)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any, dtype: Any) -> np.ndarray:
        if shape == self.latency.shape:
            self.latency[self.latency[:, LATENCY_COUNT] != 0] = 0
            return self.latency
        return self.ended if shape == self.ended.shape else np.zeros(shape, dtype)


def _same_seed(bits: int) -> int:
    """For the hashes. A function and no mock, which would keep a note of each call."""
    return 0x5EED


@contextlib.contextmanager
def small_tables() -> Iterator[None]:
    """Buffers and tables of a few rows each, and the same seeds of all hashes every time."""
    with (
        mock.patch.multiple(reader, _BUFFER_BYTES=500),
        mock.patch.multiple(states, BATCH=BATCH),
        mock.patch.multiple(decoder, BATCH=BATCH, BLOCK=3),
        mock.patch.multiple(decoder, chain_table=functools.cache(decoder.chain_table)),
        mock.patch.multiple(decoder, size_table=functools.cache(decoder.size_table)),
        mock.patch.multiple(flow_table, class_table=functools.cache(flow_table.class_table)),
        mock.patch.multiple(flow_table, np=_Arrays()),
        mock.patch.multiple(flow_table, MAX_HOLES=16, RECENT=16, MAX_EVENTS=30, MAX_MESSAGES=16),
        mock.patch.multiple(flow_table, EVENT_ROWS=2 * MOST_EVENTS, ENDED_ROWS=len(_Arrays.ended)),
        mock.patch("secrets.randbits", _same_seed),
    ):
        yield


def _poison() -> Any:
    """AddressSanitizer's function that forbids a stretch of memory; without the sanitizer, nothing."""
    try:
        function = ctypes.CDLL(None).__asan_poison_memory_region
    except AttributeError:
        return lambda address, size: None
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    function.restype = None
    return function


poison = _poison()


def apart(records: Records) -> Records:
    """The same batch with its frames in a new buffer, poisoned bytes between them."""
    count = records.count
    starts = np.zeros(count, np.int64)
    at = _GAP
    for record, length in enumerate(records.cap_len.tolist()):
        starts[record] = at
        at += (length + 2 * _GAP - 1) // _GAP * _GAP  # at least one byte between
    data = np.full(max(at, _LEAST), 0xA5, np.uint8)
    behind = 0
    for start, old, length in zip(starts.tolist(), records.offset.tolist(), records.cap_len.tolist(), strict=True):
        assert 0 <= old <= old + length <= len(records.data), "a record outside of the buffer"
        data[start : start + length] = records.data[old : old + length]
        poison(data.ctypes.data + behind, start - behind)
        behind = start + length
    poison(data.ctypes.data + behind, len(data) - behind)
    return dataclasses.replace(records, data=data, offset=starts)


class Harness:
    """The kernels in one form, with what stands around them.

    Parameters
    ----------
    form : str
        ``"compiled"`` or ``"interpreted"``.
    """

    def __init__(self, form: str) -> None:
        self._records = load("roce_dissect.capture.records", form)
        self._kernel = load("roce_dissect.decode.kernel", form)
        self._tracker = load("roce_dissect.flows.tracker", form)

    def _walk(self, data: Any, end: int, *arrays: Any) -> int:
        """The walker over a buffer that ends where its bytes in use end."""
        exact = np.array(data[:end])
        return int(self._records.walk(exact if self._records.COMPILED else memoryview(exact), end, *arrays))

    def run(self, data: bytes, keep: bool = False) -> dict[str, Any]:
        """Take a capture to its end. Returns what came of it, all of it with `keep`.

        No exception leaves it but of what is wrong with the toolkit.
        """
        kept: dict[str, Any] = {}
        try:
            capture = Capture(open_source(io.BytesIO(data)), walk=self._walk, compiled=self._records.COMPILED)
        except CaptureError as error:
            return {"refused": str(error)}
        decoding = Decoder(NAMES, HostTable(_HOSTS), self._kernel, replies=True)
        judge, judgements = Judge(True, _HOSTS, BATCH), Judgements()
        decoding.columns |= judge.columns
        ended: list[bytes] = []
        flows = FlowTable(self._tracker, _STREAMS, (lambda rows: ended.append(rows.tobytes())) if keep else None)
        verdicts = Verdicts.empty(BATCH)
        pieces: list[bytes] = []
        reached: set[tuple[str, int]] = set()
        packets = 0
        try:
            for read in capture:
                records = apart(read)
                columns = decoding.columns
                rows = keep_proven(columns, decoding.decode(records), records.data, (), decoding.tallies)
                judge.judge(columns, rows, records.data)
                judgements.count(columns, rows)
                packets += rows
                messages = cm_messages(columns, rows, records.data) if rows else []
                flows.feed(columns, rows, messages, verdicts)
                _check(records, columns, rows)
                if keep:
                    _check_bytes(read, records)
                    for name in ("tunnel", "tunnels", "version", "status", "opcode"):
                        reached |= {(name, value) for value in columns[name][:rows].tolist()}
                    pieces += [
                        b"".join(getattr(records, name).tobytes() for name in ("cap_len", "wire_len", "time_ns")),
                        records.link_type.tobytes(),
                        b"".join(column[:rows].tobytes() for column in columns.values()),
                        b"".join(array[:rows].tobytes() for array in verdicts.arrays()),
                    ]
        except CaptureError as error:
            kept = {"error": str(error), "offset": error.offset}
        assert kept.get("offset", 0) is not None
        flows.finish()
        capture.close()
        streams, events = flows.streams, flows.events
        assert int(decoding.tallies.sum()) == capture.frames
        assert int(decoding.tallies[layout.TALLY_ROCE]) == packets
        assert sum(capture.link_types.values()) == capture.frames
        assert len(streams) <= _STREAMS
        if not keep:
            return kept
        return kept | {
            "frames": (capture.frames, capture.sliced_frames, capture.offset, capture.truncated, capture.format),
            "times": (capture.first_time_ns, capture.last_time_ns),
            "link types": capture.link_types,
            "packets": pieces,
            "tallies": decoding.tallies.tolist(),
            "reached": reached
            | {("link type", kind) for kind in capture.link_types}
            | {("tally", kind) for kind in np.flatnonzero(decoding.tallies).tolist()},
            "hosts": decoding.hosts.texts(),
            "icrcs": judgements.icrcs.tolist(),
            "streams": streams.tobytes(),
            "events": events.tobytes(),
            "messages": ended,
            "latency": flows.latency[flows.latency[:, LATENCY_COUNT] != 0].tobytes(),
            "counts": (flows.foreign, flows.untracked, flows.events_left_out, flows.unfollowed, flows.twins),
        }


def _check(records: Records, columns: dict[str, np.ndarray], rows: int) -> None:
    """What holds of any packet."""
    assert rows <= records.count
    if rows:
        assert (columns["payload_offset"][:rows] <= columns["cap_len"][:rows]).all()
        assert (columns["network_offset"][:rows] <= columns["payload_offset"][:rows]).all()
        assert columns["status"][:rows].max() <= max(Status)


def _check_bytes(read: Records, moved: Records) -> None:
    """Whoever masks bits for an ICRC puts them back."""
    for old, new, length in zip(read.offset.tolist(), moved.offset.tolist(), read.cap_len.tolist(), strict=True):
        assert (read.data[old : old + length] == moved.data[new : new + length]).all(), "a frame was changed"


def compare(compiled: dict[str, Any], interpreted: dict[str, Any]) -> None:
    """Fail where two forms do not say the same of a capture; both with ``keep=True``."""
    assert compiled.keys() == interpreted.keys()
    for name, value in compiled.items():
        assert value == interpreted[name], f"the forms differ in {name}"
