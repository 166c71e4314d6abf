"""BTH opcodes: names, transports, and the extended headers that follow each.

The one table of the project: the Scapy layers, the kernel and the tracker all take theirs from here.

Source: IBTA Vol. 1, table 38 and annexes A14 (XRC), A17 (CNP), A19 (FLUSH, ATOMIC WRITE); Linux ``ib_pack.h`` and
``rxe_opcode.c``. FLUSH and ATOMIC WRITE of RD and XRC are left out: no source gives their headers beyond doubt.
"""

from __future__ import annotations

from enum import IntEnum

from roce_dissect.spec.headers import (
    HAS_AETH,
    HAS_ATOMIC_ACK_ETH,
    HAS_ATOMIC_ETH,
    HAS_CNP,
    HAS_DETH,
    HAS_FETH,
    HAS_IETH,
    HAS_IMMDT,
    HAS_RDETH,
    HAS_RETH,
    HAS_XRCETH,
)

__all__ = [
    "HEADERS",
    "OPERATIONS",
    "RC_READ_RESPONSES",
    "RESPONSES",
    "Opcode",
    "Transport",
    "operation_name",
]


class Transport(IntEnum):
    """Bits 7 to 5 of the opcode; `CNP` is RoCE's own use of a single code, 0x81."""

    RC = 0x00
    UC = 0x20
    RD = 0x40
    UD = 0x60
    CNP = 0x80
    XRC = 0xA0


#: Operations by the low five bits of the opcode, with the headers they have in RC.
OPERATIONS: dict[int, tuple[str, int]] = {
    0x00: ("SEND_FIRST", 0),
    0x01: ("SEND_MIDDLE", 0),
    0x02: ("SEND_LAST", 0),
    0x03: ("SEND_LAST_IMM", HAS_IMMDT),
    0x04: ("SEND_ONLY", 0),
    0x05: ("SEND_ONLY_IMM", HAS_IMMDT),
    0x06: ("WRITE_FIRST", HAS_RETH),
    0x07: ("WRITE_MIDDLE", 0),
    0x08: ("WRITE_LAST", 0),
    0x09: ("WRITE_LAST_IMM", HAS_IMMDT),
    0x0A: ("WRITE_ONLY", HAS_RETH),
    0x0B: ("WRITE_ONLY_IMM", HAS_RETH | HAS_IMMDT),
    0x0C: ("READ_REQUEST", HAS_RETH),
    0x0D: ("READ_RESPONSE_FIRST", HAS_AETH),
    0x0E: ("READ_RESPONSE_MIDDLE", 0),
    0x0F: ("READ_RESPONSE_LAST", HAS_AETH),
    0x10: ("READ_RESPONSE_ONLY", HAS_AETH),
    0x11: ("ACKNOWLEDGE", HAS_AETH),
    0x12: ("ATOMIC_ACKNOWLEDGE", HAS_AETH | HAS_ATOMIC_ACK_ETH),
    0x13: ("COMPARE_SWAP", HAS_ATOMIC_ETH),
    0x14: ("FETCH_ADD", HAS_ATOMIC_ETH),
    0x15: ("RESYNC", 0),
    0x16: ("SEND_LAST_INV", HAS_IETH),
    0x17: ("SEND_ONLY_INV", HAS_IETH),
    0x1C: ("FLUSH", HAS_FETH | HAS_RETH),
    0x1D: ("ATOMIC_WRITE", HAS_RETH),
}

#: Operations that answer a request.
RESPONSES = frozenset(range(0x0D, 0x13))
_SENDS_AND_WRITES = frozenset(range(0x0C))
_WITH_READ_AND_ATOMIC = _SENDS_AND_WRITES | {0x0C, 0x13, 0x14} | RESPONSES
#: Operations of each transport.
_CODES: dict[Transport, frozenset[int]] = {
    Transport.RC: _WITH_READ_AND_ATOMIC | {0x16, 0x17, 0x1C, 0x1D},
    Transport.UC: _SENDS_AND_WRITES,
    Transport.RD: _WITH_READ_AND_ATOMIC | {0x15},
    Transport.UD: frozenset({0x04, 0x05}),
    Transport.XRC: _WITH_READ_AND_ATOMIC | {0x16, 0x17},
}


def _headers(transport: Transport, code: int) -> int:
    """Extended headers of an operation in a transport."""
    chain = OPERATIONS[code][1]
    if transport is Transport.RD:
        return chain | HAS_RDETH | (0 if code in RESPONSES else HAS_DETH)
    if transport is Transport.UD:
        return chain | HAS_DETH
    if transport is Transport.XRC:
        return chain | (0 if code in RESPONSES else HAS_XRCETH)
    return chain


_CNP = 0x81
_NAMES = {
    transport | code: f"{transport.name}_{OPERATIONS[code][0]}"
    for transport, codes in _CODES.items()
    for code in sorted(codes)
}
_NAMES[_CNP] = "CNP"

#: Every opcode that has a name: ``Opcode.RC_SEND_FIRST`` ... ``Opcode.CNP``.
Opcode = IntEnum("Opcode", {name: value for value, name in sorted(_NAMES.items())})  # type: ignore[misc]

#: Opcodes of RC that carry data of a READ.
RC_READ_RESPONSES = tuple(value for value, name in _NAMES.items() if name.startswith("RC_READ_RESPONSE"))

#: Extended headers of each named opcode, as bits of `roce_dissect.spec.headers`.
HEADERS: dict[int, int] = {
    value: HAS_CNP if value == _CNP else _headers(Transport(value & 0xE0), value & 0x1F) for value in _NAMES
}


def operation_name(opcode: int) -> str:
    """Name of an opcode as this project prints it: ``RC WRITE FIRST``; ``opcode 0xc7`` where none exists."""
    name = _NAMES.get(opcode)
    return f"opcode {opcode:#04x}" if name is None else name.replace("_", " ")
