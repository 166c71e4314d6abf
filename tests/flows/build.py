"""Packet columns by hand: the arrays that the decoder would hand to the tracker."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roce_dissect.columns import PACKETS
from roce_dissect.flows import states
from roce_dissect.flows.flow_table import FLOW_COLUMNS, KEY_COLUMNS, FlowTable, Verdicts
from roce_dissect.flows.message_table import message_frame
from roce_dissect.flows.tables import build_tables
from roce_dissect.spec import headers
from roce_dissect.spec.opcodes import Opcode
from roce_dissect.terms import Accepted, EventKind, Verdict, names

A, B = 1, 2  # host codes; the table's row 0 is reserved
ADDRESSES = ["(none)", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]

DTYPES = {
    name: np.dtype("int64" if name == "frame_key" else PACKETS[name].dtype.replace("address", "uint32"))
    for name in FLOW_COLUMNS + KEY_COLUMNS
}

#: Presence bits by what IBTA says of the operation, without the table under test.
_RETH = ("WRITE_FIRST", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST")
_ATOMIC_ETH = ("COMPARE_SWAP", "FETCH_ADD")
_AETH = ("ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE", "READ_RESPONSE_FIRST", "READ_RESPONSE_LAST", "READ_RESPONSE_ONLY")


def opcode_of(operation: str) -> int:
    """``SEND_ONLY`` is RC's; ``UC_SEND_ONLY``, ``UD_SEND_ONLY``, ``CNP`` as they stand; a number as it stands."""
    if operation.startswith("0x"):
        return int(operation, 16)
    if operation == "CNP" or operation.startswith(("RC_", "UC_", "UD_", "RD_", "XRC_")):
        return int(Opcode[operation])
    return int(Opcode["RC_" + operation])


def packet(operation: str, psn: int, ms: float, src: int = A, dst: int = B, **more: int) -> dict[str, int]:
    """One packet as a dict of column values; `more` overrides any of them."""
    opcode = opcode_of(operation)
    bare = operation.removeprefix("RC_").removeprefix("UC_")
    present = headers.HAS_ETH | headers.HAS_IPV4 | headers.HAS_UDP | headers.HAS_BTH | headers.HAS_ICRC
    if bare in _RETH:
        present |= headers.HAS_RETH
    if bare in _ATOMIC_ETH:
        present |= headers.HAS_ATOMIC_ETH
    if bare.endswith("_IMM"):
        present |= headers.HAS_IMMDT
    if bare.endswith("_INV"):
        present |= headers.HAS_IETH
    if bare in _AETH:
        present |= headers.HAS_AETH
    if operation.startswith("UD_"):
        present |= headers.HAS_DETH
    values = dict.fromkeys(FLOW_COLUMNS + KEY_COLUMNS, 0) | {
        "time_ns": 1_700_000_000_000_000_000 + round(ms * 1e6),
        "src": src,
        "dst": dst,
        "dest_qp": 17 if dst == B else 18,
        "psn": psn,
        "opcode": opcode,
        "syndrome": 0x1F if present & headers.HAS_AETH else 0,
        "version": 2,
        "present": present,
        "udp_sport": 50000,
    }
    values |= more
    values.setdefault("wire_len", 0)
    if values["wire_len"] == 0:
        values["wire_len"] = 58 + values["payload_len"]
    return values


def columns(packets: list[dict[str, int]]) -> dict[str, np.ndarray]:
    """The tracker's columns; frames, identifications and ICRCs count up where a packet does not say them."""
    identification: dict[tuple[int, int], int] = {}
    rows = []
    for number, one in enumerate(packets, start=1):
        one = dict(one)
        one["frame_key"] = one["frame_key"] or number
        way = (one["src"], one["dst"])
        if one["ip_id"] == 0:
            identification[way] = identification.get(way, 0) + 1
            one["ip_id"] = identification[way]
        one["icrc"] = one["icrc"] or (one["ip_id"] * 2654435761 + one["psn"]) & 0xFFFFFFFF
        rows.append(one)
    return {name: np.array([row[name] for row in rows], dtype) for name, dtype in DTYPES.items()}


class Tracked:
    """What the tracker made of packets: the flow table, and the tracker's columns as words."""

    def __init__(self, packets, tracker=None, messages=(), finish=True, **options):
        ended: list[np.ndarray] = []
        self.flows = FlowTable(tracker, on_messages=lambda rows: ended.append(rows.copy()), **options)
        self.columns = packets if isinstance(packets, dict) else columns(packets)
        self.rows = len(self.columns["psn"])
        self.out = Verdicts.empty(max(self.rows, 2))
        self.flows.feed(self.columns, self.rows, messages, self.out)
        if finish:
            self.flows.finish()
        self.message_rows = np.concatenate([np.zeros((0, states.MESSAGE_WORDS), np.int64), *ended])

    @property
    def verdicts(self) -> list[str]:
        words = names(Verdict)
        return [words[v] for v in self.out.verdict[: self.rows].tolist()]

    @property
    def accepted(self) -> list[str]:
        words = names(Accepted)
        return [words[v] for v in self.out.accepted[: self.rows].tolist()]

    @property
    def missing(self) -> list[int]:
        return self.out.missing_before[: self.rows].tolist()

    @property
    def stream(self) -> list[int]:
        return self.out.stream[: self.rows].tolist()

    @property
    def events(self) -> list[str]:
        """``kind@frame`` or ``kind@first-last``, in the order of their first frames."""
        words = names(EventKind)
        rows = sorted((row[2], row[0], row[3]) for row in self.flows.events.tolist())
        return [f"{words[k]}@{first}" if first == last else f"{words[k]}@{first}-{last}" for first, k, last in rows]

    @property
    def episodes(self) -> pd.DataFrame:
        """The table of episodes, causes settled."""
        return build_tables(self.flows, ADDRESSES).episodes

    @property
    def message_frame(self) -> pd.DataFrame:
        """The table of messages, in the order of their PSNs."""
        rows = self.message_rows[np.lexsort((self.message_rows[:, states.M_PSN], self.message_rows[:, 0]))]
        return message_frame(rows, np.zeros(len(self.flows.streams), np.int64))

    def word(self, word: int, stream: int | None = None) -> int:
        """A word of a stream's row, or its sum over all streams."""
        values = self.flows.streams[:, word]
        return int(values.sum() if stream is None else values[stream])
