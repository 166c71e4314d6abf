"""Opcodes: names and headers against the specification's table, spelled out once more."""

from __future__ import annotations

import pytest

from roce_dissect.spec import headers as bit
from roce_dissect.spec.opcodes import HEADERS, RC_READ_RESPONSES, RESPONSES, Opcode, Transport, operation_name

#: (opcode, name, extended headers) from IBTA Vol. 1, table 38, and annexes A14, A17, A19.
BY_HAND = [
    (0x00, "RC_SEND_FIRST", 0),
    (0x03, "RC_SEND_LAST_IMM", bit.HAS_IMMDT),
    (0x05, "RC_SEND_ONLY_IMM", bit.HAS_IMMDT),
    (0x06, "RC_WRITE_FIRST", bit.HAS_RETH),
    (0x09, "RC_WRITE_LAST_IMM", bit.HAS_IMMDT),
    (0x0B, "RC_WRITE_ONLY_IMM", bit.HAS_RETH | bit.HAS_IMMDT),
    (0x0C, "RC_READ_REQUEST", bit.HAS_RETH),
    (0x0D, "RC_READ_RESPONSE_FIRST", bit.HAS_AETH),
    (0x0E, "RC_READ_RESPONSE_MIDDLE", 0),
    (0x0F, "RC_READ_RESPONSE_LAST", bit.HAS_AETH),
    (0x10, "RC_READ_RESPONSE_ONLY", bit.HAS_AETH),
    (0x11, "RC_ACKNOWLEDGE", bit.HAS_AETH),
    (0x12, "RC_ATOMIC_ACKNOWLEDGE", bit.HAS_AETH | bit.HAS_ATOMIC_ACK_ETH),
    (0x13, "RC_COMPARE_SWAP", bit.HAS_ATOMIC_ETH),
    (0x14, "RC_FETCH_ADD", bit.HAS_ATOMIC_ETH),
    (0x16, "RC_SEND_LAST_INV", bit.HAS_IETH),
    (0x17, "RC_SEND_ONLY_INV", bit.HAS_IETH),
    (0x1C, "RC_FLUSH", bit.HAS_FETH | bit.HAS_RETH),
    (0x1D, "RC_ATOMIC_WRITE", bit.HAS_RETH),
    (0x20, "UC_SEND_FIRST", 0),
    (0x2B, "UC_WRITE_ONLY_IMM", bit.HAS_RETH | bit.HAS_IMMDT),
    (0x44, "RD_SEND_ONLY", bit.HAS_RDETH | bit.HAS_DETH),
    (0x51, "RD_ACKNOWLEDGE", bit.HAS_RDETH | bit.HAS_AETH),
    (0x55, "RD_RESYNC", bit.HAS_RDETH | bit.HAS_DETH),
    (0x64, "UD_SEND_ONLY", bit.HAS_DETH),
    (0x65, "UD_SEND_ONLY_IMM", bit.HAS_DETH | bit.HAS_IMMDT),
    (0x81, "CNP", bit.HAS_CNP),
    (0xA6, "XRC_WRITE_FIRST", bit.HAS_XRCETH | bit.HAS_RETH),
    (0xB1, "XRC_ACKNOWLEDGE", bit.HAS_AETH),
    (0xB7, "XRC_SEND_ONLY_INV", bit.HAS_XRCETH | bit.HAS_IETH),
]


@pytest.mark.parametrize(("opcode", "name", "chain"), BY_HAND)
def test_opcode(opcode, name, chain):
    assert Opcode[name] == opcode
    assert HEADERS[opcode] == chain
    assert operation_name(opcode) == name.replace("_", " ")


def test_which_exist():
    """RC 00-14, 16, 17, 1c, 1d; UC 20-2b; RD 40-55; UD 64, 65; CNP 81; XRC a0-b4, b6, b7."""
    expected = {*range(0x15), 0x16, 0x17, 0x1C, 0x1D, *range(0x20, 0x2C), *range(0x40, 0x56), 0x64, 0x65, 0x81}
    expected |= {*range(0xA0, 0xB5), 0xB6, 0xB7}
    assert set(HEADERS) == expected == {int(opcode) for opcode in Opcode}
    assert set(range(0x0D, 0x13)) == RESPONSES
    assert set(RC_READ_RESPONSES) == {0x0D, 0x0E, 0x0F, 0x10}
    assert operation_name(0x15) == "opcode 0x15"
    assert operation_name(0xFF) == "opcode 0xff"
    assert operation_name(0) == "RC SEND FIRST"
    assert {int(one) for one in Transport} == {0, 0x20, 0x40, 0x60, 0x80, 0xA0}
