"""Chains of headers, and headers that are cut."""

from __future__ import annotations

import doctest
import importlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from roce_dissect.layers import (
    AETH,
    BTH,
    CNP,
    DETH,
    FETH,
    IETH,
    LRH,
    RDETH,
    RETH,
    XRCETH,
    AtomicAckETH,
    AtomicETH,
    CutHeader,
    ImmDt,
)
from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.spec.headers import EXTENDED_SIZE, HAS_RETH

# Header chains of tshark 4.0.17's "RC RDMA Write Only Immediate" and so on, for one opcode of each form; 0x1c and 0x1d,
# which it does not know, from Linux rxe_opcode.c.
CHAINS = {
    0x00: [],
    0x03: [ImmDt],
    0x06: [RETH],
    0x0B: [RETH, ImmDt],
    0x0C: [RETH],
    0x0E: [],
    0x10: [AETH],
    0x11: [AETH],
    0x12: [AETH, AtomicAckETH],
    0x13: [AtomicETH],
    0x17: [IETH],
    0x1C: [FETH, RETH],
    0x1D: [RETH],
    0x26: [RETH],
    0x2B: [RETH, ImmDt],
    # RD, from IBTA 9.3.1 and table 38: tshark takes all of 0x40-0x5f for NVIDIA's DC (trap 3)
    0x44: [RDETH, DETH],
    0x4B: [RDETH, DETH, RETH, ImmDt],
    0x4D: [RDETH, AETH],
    0x52: [RDETH, AETH, AtomicAckETH],
    0x54: [RDETH, DETH, AtomicETH],
    0x55: [RDETH, DETH],
    0x64: [DETH],
    0x65: [DETH, ImmDt],
    0x81: [CNP],
    # XRC, from IBTA annex A14: tshark decodes none of its headers (trap 16)
    0xA4: [XRCETH],
    0xAB: [XRCETH, RETH, ImmDt],
    0xAD: [AETH],
    0xB3: [XRCETH, AtomicETH],
    0xB7: [XRCETH, IETH],
    0xC7: [],
}


def layers_of(packet):
    return [type(layer) for layer in iter_layers(packet)]


def iter_layers(packet):
    while packet:
        yield packet
        packet = packet.payload


@pytest.mark.parametrize("opcode", CHAINS, ids=hex)
def test_chain_follows_the_opcode(opcode):
    body = bytes(range(64))  # more than any chain takes, so that a payload follows
    packet = BTH(bytes([opcode]) + bytes(11) + body + bytes(4))
    assert layers_of(packet) == [BTH, *CHAINS[opcode], Raw]
    assert packet[Raw].load == body[sum(layer.header_size for layer in CHAINS[opcode]) :]


def test_every_header_has_the_size_of_the_table():
    for presence, layer in ExtendedHeader.by_presence.items():
        assert len(layer()) == layer.header_size == EXTENDED_SIZE[presence]
    assert set(EXTENDED_SIZE) == set(ExtendedHeader.by_presence)


def test_a_header_alone_asks_nobody():
    reth = RETH(bytes(16) + b"rest")
    assert reth.payload == Raw(b"rest")
    assert RETH.presence == HAS_RETH


def test_cut_inside_a_header():
    # Only 10 of the RETH's 16 bytes were captured: UDP's length says that 16 + 4 more were sent.
    udp = UDP(bytes.fromhex("c00012b700280000 0c00ffff0000007a80370f62 00007fa5d6bc20000000"))
    assert layers_of(udp) == [UDP, BTH, CutHeader]
    assert udp[CutHeader].load == bytes.fromhex("00007fa5d6bc20000000")
    assert udp[BTH].icrc == b""
    assert Raw not in udp


@pytest.mark.parametrize("layer", [LRH, BTH, *ExtendedHeader.by_presence.values()], ids=lambda layer: layer.__name__)
def test_fewer_bytes_than_a_header_are_a_cut_header(layer):
    for size in range(1, layer.header_size):
        assert type(layer(bytes(size))) is CutHeader
    assert type(layer()) is layer
    assert type(layer(bytes(layer.header_size))) is layer


@settings(deadline=None)  # a busy machine is no fault
@given(opcode=st.integers(0, 255), flags=st.integers(0, 255), body=st.binary(max_size=80), length=st.integers(0, 120))
def test_any_bytes_dissect_and_build_again(opcode, flags, body, length):
    """Whatever the opcode, PadCnt and lengths, sliced or contradictory: nothing raises, no byte is lost."""
    udp = (
        bytes.fromhex("c00012b7") + length.to_bytes(2, "big") + bytes(2) + bytes([opcode, flags]) + bytes(10) + body
    )  # UDP header, BTH
    frame = bytes.fromhex("020000000002020000000001") + bytes.fromhex("86dd6000000000641140") + bytes(32) + udp
    packet = Ether(frame)
    assert bytes(packet) == frame
    packet.clear_cache()
    packet[UDP].chksum = 0
    assert bytes(packet) == frame


def test_docstrings():
    names = "header trailer bth aeth icrc lrh vcrc craft requests replies convert cnp"
    for name in names.split():
        assert doctest.testmod(importlib.import_module(f"roce_dissect.layers.{name}")).failed == 0
