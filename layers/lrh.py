"""LRH: the local route header of native InfiniBand, and the VCRC that ends its packets.

Source: IBTA Vol. 1, 7.7 (LRH) and 7.8.2 (VCRC).
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from scapy.fields import BitEnumField, BitField, XShortField
from scapy.packet import Packet

from roce_dissect.layers.bth import BTH
from roce_dissect.layers.grh import GRH
from roce_dissect.layers.header import Header
from roce_dissect.layers.icrc import CrcVerdict
from roce_dissect.layers.trailer import VcrcField
from roce_dissect.layers.vcrc import vcrc_of

__all__ = ["LRH"]

_SIZE = 8
_WORD = 4  # bytes that one unit of the packet length counts
_VCRC_SIZE = 2
_LENGTH_MASK = (1 << 11) - 1
_BTH_NEXT, _GRH_NEXT = 2, 3


class LRH(Header):
    """Local route header.

    ``pkt_len`` counts words of four bytes from this header to the end of the ICRC; None is filled in when the packet is
    built. ``vcrc`` None is computed; a value that was given or captured stays. In a sliced packet it is the bytes
    that were captured of it, ``b""`` for none.

    Examples
    --------
    >>> from roce_dissect.layers import BTH
    >>> packet = LRH(bytes(LRH(dlid=5, slid=6) / BTH() / b"abcd"))
    >>> packet.pkt_len, packet.lnh, packet.verify_vcrc().name, packet[BTH].verify_icrc().name
    (7, 2, 'GOOD', 'GOOD')
    """

    name = "LRH"
    header_size = _SIZE
    icrc_mask = b"\xf0"  # VL, which changes from link to link
    fields_desc: ClassVar[list[Any]] = [
        BitField("vl", 0, 4),
        BitField("lver", 0, 4),
        BitField("sl", 0, 4),
        BitField("reserved2", 0, 2),
        BitEnumField("lnh", _BTH_NEXT, 2, {0: "raw", 1: "IPv6", _BTH_NEXT: "BTH", _GRH_NEXT: "GRH"}),
        XShortField("dlid", 0),
        BitField("reserved5", 0, 5),
        BitField("pkt_len", None, 11),
        XShortField("slid", 0),
        VcrcField("vcrc"),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        known = {_BTH_NEXT: BTH, _GRH_NEXT: GRH}
        return known.get(self.lnh) or super().guess_payload_class(payload)

    def with_length(self, header: bytes, behind: int) -> bytes:
        if self.pkt_len is not None:
            return header
        words = (_SIZE + behind) // _WORD & _LENGTH_MASK
        return header[:4] + struct.pack(">H", struct.unpack_from(">H", header, 4)[0] | words) + header[6:]

    def transport_length(self) -> int | None:
        return None if self.pkt_len is None else self.pkt_len * _WORD - _SIZE

    def post_dissect(self, s: bytes) -> bytes:
        end = self._end()
        self.fields["vcrc"] = self.get_field("vcrc").m2i(self, s[end : end + _VCRC_SIZE])
        self.raw_packet_cache = None  # as in BTH: with it, post_build would not put the VCRC back
        return s[:end] + s[end + _VCRC_SIZE :]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        end = self._end()
        return s[:end], s[end:]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        packet = self.with_length(pkt, len(pay)) + pay
        vcrc = vcrc_of(packet) if self.vcrc is None else self.vcrc
        return packet + self.get_field("vcrc").i2m(self, vcrc)

    def verify_vcrc(self) -> CrcVerdict:
        """Tell whether the VCRC fits the packet; `CrcVerdict.UNKNOWN` where it was not captured or not built yet."""
        if not isinstance(self.vcrc, int):
            return CrcVerdict.UNKNOWN
        return CrcVerdict.of(vcrc_of(self.do_build()[:-_VCRC_SIZE]) == self.vcrc)

    def hashret(self) -> bytes:
        return struct.pack(">H", self.dlid ^ self.slid) + self.payload.hashret()

    def answers(self, other: Packet) -> bool:
        return (
            isinstance(other, LRH)
            and (self.dlid, self.slid) == (other.slid, other.dlid)
            and bool(self.payload.answers(other.payload))
        )

    def mysummary(self) -> str:
        return f"LRH lid {self.slid:#06x} > {self.dlid:#06x}"

    def _end(self) -> int:
        """End of the ICRC, counted from the end of this header."""
        return max(self.transport_length() or 0, 0)
