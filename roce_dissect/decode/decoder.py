"""The kernel bound to a choice of columns: batches of records in, arrays of RoCE packets out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import index
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect import layout
from roce_dissect.capture.states import BATCH
from roce_dissect.columns import FILE_SHIFT, PACKETS
from roce_dissect.decode import kernel as default_kernel
from roce_dissect.decode.hosts import HostTable
from roce_dissect.errors import ArgumentError
from roce_dissect.spec.headers import chain_size
from roce_dissect.spec.opcodes import HEADERS

if TYPE_CHECKING:
    from roce_dissect.capture.reader import Records

__all__ = ["Decoder", "chain_table", "size_table"]

#: Rows that the kernel works on at a time: 28 KiB of header words, which a first-level cache holds.
BLOCK = 128

#: Fields that are no columns for users, but other stages need.
INTERNAL = {
    "frame_key": ((layout.FRAME, 0, (1 << 64) - 1), "int64"),
    "offset": ((layout.OFFSET, 0, (1 << layout.NETWORK) - 1), "int64"),
    "network_offset": ((layout.OFFSET, layout.NETWORK, layout.MOST_NETWORK), "uint32"),
    "reserved_by_fecn": ((layout.BTH, 24, 63), "uint8"),
    "reserved_by_ack": ((layout.BTH + 1, 24, 127), "uint8"),
}


def chain_table(ports: Sequence[int] = (), replies: bool = False) -> np.ndarray:
    """Extended headers of each of the 256 opcodes, uint16; `UNKNOWN_OPCODE` for none. Then further UDP ports.

    Raises
    ------
    ArgumentError
        Something that is no port, or too many of them.
    """
    try:
        numbers = [index(port) for port in ports]
    except TypeError as error:
        raise ArgumentError(f"ports must be a sequence of integers, not {ports!r:.100}") from error
    if any(not 0 < port < 1 << 16 for port in numbers):
        raise ArgumentError(f"UDP ports go from 1 to 65535: {', '.join(map(str, numbers)):.100}")
    if len(numbers) > layout.MOST_PORTS:
        raise ArgumentError(f"{len(numbers)} UDP ports beside 4791: {layout.MOST_PORTS} at most")
    table = np.zeros(layout.CHAINS, np.uint16)
    table[layout.REPLIES] = replies
    table[: layout.PORTS] = layout.UNKNOWN_OPCODE
    table[layout.PORTS : layout.PORTS + len(numbers)] = numbers
    for opcode, chain in HEADERS.items():
        table[opcode] = chain
    return table


def size_table() -> np.ndarray:
    """Bytes of the extended headers of each opcode, uint8."""
    table = np.zeros(256, np.uint8)
    for opcode, chain in HEADERS.items():
        table[opcode] = chain_size(chain)
    return table


class Decoder:
    """Decodes batches of records into the requested columns.

    Parameters
    ----------
    names : iterable of str
        Columns of `roce_dissect.columns.PACKETS` that the kernel can fill, or of `INTERNAL`. ``file``, ``frame``
        are derived from ``frame_key``; ``operation`` and the tracker's columns are not the decoder's concern.
    hosts : HostTable, optional
        Addresses known so far; several decoders may share one table, but not at the same time.
    kernel : module, optional
        Another form of `roce_dissect.decode.kernel`, for tests.
    ports : sequence of int
        UDP destination ports of RoCE v2 beside 4791.
    replies : bool
        Whether UDP packets *from* port 4791 are rows, too: whoever asks for them must see which of them are RoCE.

    Attributes
    ----------
    columns : dict of str to numpy.ndarray
        The columns of the latest batch, each of length `BATCH`; only the rows that `decode` reported are valid, and
        only until the next call.
    tallies : numpy.ndarray
        int64, frames by kind (``TALLY_*`` of `roce_dissect.layout`).
    """

    def __init__(
        self,
        names: tuple[str, ...] | list[str],
        hosts: HostTable | None = None,
        kernel: ModuleType | None = None,
        ports: Sequence[int] = (),
        replies: bool = False,
    ) -> None:
        kernel = default_kernel if kernel is None else kernel
        self.hosts = HostTable() if hosts is None else hosts
        self.tallies = np.zeros(layout.TALLIES, np.int64)
        self.columns: dict[str, np.ndarray] = {}
        self._want_icrc = "icrc" in names
        self._interpreted = not kernel.COMPILED
        self._kernel = kernel.Kernel(
            np.zeros((BLOCK, layout.WORDS), np.uint64),
            chain_table(ports, replies),
            size_table(),
            self.hosts.slots,
            self.hosts.words,
            self.hosts.used,
            self.tallies,
            self.hosts.seed,
        )
        self._outputs: list[np.ndarray | memoryview] = []
        self._deliver(names)

    def drop(self, names: Collection[str]) -> None:
        """Deliver these columns no longer, from the next batch on: each one costs time with every packet."""
        kept = [name for name in self._delivered if name not in names]
        for name in self._delivered:
            del self.columns[name]
        self._deliver(kept)

    def _deliver(self, names: Iterable[str]) -> None:
        """Set up tables and arrays of the columns to fill."""
        fields = {name: _field(name) for name in dict.fromkeys(names)}
        self._delivered = tuple(fields)
        self._outputs = []
        for size in (1, 2, 4, 8):
            chosen = {name: field for name, (field, dtype) in fields.items() if np.dtype(dtype).itemsize == size}
            # a memoryview cannot have a dimension of length 0, so that an unused width keeps one line
            table = np.array(list(chosen.values()) or [(0, 0, 0)], np.uint64).reshape(-1, 3)
            matrix = np.zeros((len(table), BATCH), f"u{size}")
            for line, name in enumerate(chosen):
                self.columns[name] = matrix[line].view(fields[name][1])
            self._outputs += [self._hand(table), self._hand(matrix)]

    def _hand(self, array: np.ndarray) -> np.ndarray | memoryview:
        """An array as the kernel wants it: interpreted, a memoryview, since NumPy's scalars wrap and overflow."""
        return memoryview(array) if self._interpreted else array

    def decode(self, records: Records, file: int = 0) -> int:
        """Decode a batch. Returns the number of RoCE packets, the rows of `columns` that are valid now."""
        if records.count == 0:
            return 0
        if records.count > BATCH:
            raise ArgumentError(f"a batch of {records.count} records, {BATCH} at most")
        return self._kernel.decode(
            self._hand(records.data),
            self._hand(records.offset),
            self._hand(records.cap_len),
            self._hand(records.wire_len),
            self._hand(records.time_ns),
            self._hand(records.link_type),
            (file << FILE_SHIFT) + records.first_frame,
            self._want_icrc,
            *self._outputs,
        )


def _field(name: str) -> tuple[tuple[int, int, int], str]:
    """(word, shift, mask) and dtype of a column that the kernel fills."""
    if name in INTERNAL:
        return INTERNAL[name]
    column = PACKETS.get(name)
    if column is None or column.field is None:
        raise ArgumentError(f"the kernel has no column {name!r}")
    return column.field, "uint32" if column.dtype == "address" else column.dtype
