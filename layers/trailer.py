"""Pad, ICRC and VCRC: fields of the BTH, and of the LRH, that lie behind the payload.

Pad and ICRC are fields of the BTH, since its PadCnt and the lengths below it say where they are; the VCRC is one of the
LRH, whose length it follows. They take no bytes of the header: `roce_dissect.layers.bth.BTH` (and
`roce_dissect.layers.lrh.LRH`) cuts them off before its payload is dissected, and puts them back behind it.
"""

from __future__ import annotations

import struct
from typing import Any

from scapy.fields import Field
from scapy.packet import Packet

from roce_dissect.spec.headers import ICRC_SIZE

__all__ = ["IcrcField", "PadField", "VcrcField", "trailer_span"]


def trailer_span(captured: int, declared: int | None, chain: int, pad_count: int) -> tuple[int, int]:
    """Where the pad and the ICRC begin, counted from the end of the BTH.

    Parameters
    ----------
    captured : int
        Bytes that were captured behind the BTH.
    declared : int or None
        Bytes behind the BTH, ICRC included, as the layer below says; None when nobody says, then all were captured.
    chain : int
        Bytes of the opcode's extended headers: no pad count, however wrong, takes from them.
    pad_count : int
        PadCnt of the BTH.

    Returns
    -------
    pad, icrc : int
        Never beyond `captured`: what was not captured is an empty slice, and the last bytes of a sliced payload stay
        payload. A declared length without room for an ICRC makes neither.

    Examples
    --------
    >>> trailer_span(captured=20, declared=20, chain=0, pad_count=3)
    (13, 16)
    >>> trailer_span(captured=15, declared=20, chain=0, pad_count=3)  # sliced inside the pad
    (13, 15)
    >>> trailer_span(captured=10, declared=20, chain=0, pad_count=3)  # sliced before it
    (10, 10)
    """
    if declared is None:
        declared = captured
    if declared < ICRC_SIZE:
        return captured, captured
    icrc = declared - ICRC_SIZE
    pad = max(icrc - pad_count, min(chain, icrc))
    return min(pad, captured), min(icrc, captured)


class _BehindPayload(Field[Any, Any]):
    """A field that neither takes bytes from the header nor adds any to it."""

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, Any]:
        return s, None

    def addfield(self, pkt: Packet, s: bytes, val: Any) -> bytes:
        return s


class PadField(_BehindPayload):
    """Pad as it was captured; None: zeros, as many as PadCnt says."""

    def __init__(self, name: str) -> None:
        super().__init__(name, None, "0s")


class IcrcField(_BehindPayload):
    """ICRC, an integer; None: computed when the packet is built.

    Bytes instead of an integer are what was captured of an ICRC that the capture has sliced: 0 to 3 of them, in wire
    order. They build as they are, so that a sliced packet stays sliced.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, None, "<I")

    def m2i(self, pkt: Packet | None, x: bytes) -> int | bytes:
        return struct.unpack(self.fmt, x)[0] if len(x) == self.sz else x

    def i2m(self, pkt: Packet | None, x: Any) -> bytes:
        return x if isinstance(x, bytes) else struct.pack(self.fmt, x)

    def i2repr(self, pkt: Packet | None, x: int | bytes | None) -> str:
        if isinstance(x, bytes):
            return f"not captured ({len(x)} of {self.sz} bytes)"
        return repr(x) if x is None else f"{x:#0{2 + 2 * self.sz}x}"


class VcrcField(IcrcField):
    """VCRC of native InfiniBand: as the ICRC, in two bytes."""

    def __init__(self, name: str) -> None:
        _BehindPayload.__init__(self, name, None, "<H")
