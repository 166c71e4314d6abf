"""Where the payload ends: every cut of a packet, and lengths that contradict themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import UDP
from scapy.packet import Raw

from roce_dissect.layers import BTH
from roce_dissect.layers.trailer import trailer_span

NATURAL = st.integers(0, 200)


@settings(deadline=None)  # a busy machine is no fault
@given(captured=NATURAL, declared=st.none() | st.integers(-20, 200), chain=NATURAL, pad_count=st.integers(0, 3))
def test_slices_are_in_order_and_inside(captured, declared, chain, pad_count):
    pad, icrc = trailer_span(captured, declared, chain, pad_count)
    assert 0 <= pad <= icrc <= captured
    assert icrc - pad <= pad_count
    assert pad >= min(chain, captured, max(icrc, 0))


@pytest.mark.parametrize(
    ("captured", "declared", "chain", "pad_count", "expected"),
    [
        (12, 12, 0, 0, (8, 8)),
        (12, 12, 0, 3, (5, 8)),
        (12, None, 0, 3, (5, 8)),  # no layer below says: whole
        (11, 12, 0, 3, (5, 8)),  # three bytes of the ICRC
        (8, 12, 0, 3, (5, 8)),  # none
        (6, 12, 0, 3, (5, 6)),  # sliced inside the pad
        (3, 12, 0, 3, (3, 3)),  # sliced inside the payload: its last bytes are no ICRC
        (8, 8, 4, 3, (4, 4)),  # PadCnt without a payload: the AETH stays whole
        (6, 6, 4, 3, (2, 2)),  # the length ends the packet inside the AETH
        (3, 3, 0, 0, (3, 3)),  # no room for an ICRC
        (9, -12, 0, 0, (9, 9)),  # UDP length 8
    ],
)
def test_span(captured, declared, chain, pad_count, expected):
    assert trailer_span(captured, declared, chain, pad_count) == expected


# A real SEND ONLY of 2 bytes: tshark 4.0.17 says bth.padcnt 2, data 07020000 (trap 6: with the pad), invariant.crc
# 0x83f1efe4 (trap 7: read big-endian), udp.length 28.
SEND = bytes.fromhex("c55912b7001c0000 0420ffff0000002580dd143e 0702 0000 83f1efe4")


@pytest.mark.parametrize(
    ("size", "payload", "pad", "icrc"),
    [
        (28, "0702", "0000", 0xE4EFF183),
        (27, "0702", "0000", bytes.fromhex("83f1ef")),
        (25, "0702", "0000", bytes.fromhex("83")),
        (24, "0702", "0000", b""),
        (23, "0702", "00", b""),
        (22, "0702", "", b""),
        (21, "07", "", b""),
        (20, "", "", b""),
    ],
)
def test_sliced(size, payload, pad, icrc):
    packet = UDP(SEND[:size])
    bth = packet[BTH]
    assert (bytes(bth.payload).hex(), bth.pad.hex(), bth.icrc) == (payload, pad, icrc)
    assert bytes(packet) == SEND[:size]
    bth.psn += 1  # built anew, it stays sliced
    assert len(bytes(packet)) == size
    shown = bth.get_field("icrc").i2repr(bth, bth.icrc)
    assert shown == ("0xe4eff183" if size == 28 else f"not captured ({len(icrc)} of 4 bytes)")


def test_pickles_copies_and_shows():
    packet = UDP(SEND)
    assert bytes(packet.copy()) == SEND
    assert "icrc      = 0xe4eff183" in packet.show(dump=True)
    assert packet[Raw].load == b"\x07\x02"
