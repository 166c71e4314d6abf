"""GRH: the global route header of RoCE v1 and of InfiniBand between subnets, laid out as an IPv6 header.

Source: IBTA Vol. 1, 8.3, and annex A16 (RoCE).
"""

from __future__ import annotations

from socket import AF_INET6
from typing import Any, ClassVar

from scapy.fields import BitField, ByteField, IP6Field, ShortField, XBitField, XByteField
from scapy.packet import Packet
from scapy.pton_ntop import inet_pton
from scapy.utils import strxor

from roce_dissect.layers.bth import BTH
from roce_dissect.layers.header import Header
from roce_dissect.spec.headers import GRH_SIZE
from roce_dissect.spec.net import PROTO_IBA

__all__ = ["GRH"]


class GRH(Header):
    """Global route header.

    The traffic class is shown as the two fields that Ethernet fabrics make of it, DSCP and ECN. ``pay_len`` counts from
    the BTH to the end of the ICRC; None is filled in when the packet is built.
    """

    name = "GRH"
    header_size = GRH_SIZE
    icrc_mask = bytes.fromhex("0fffffff 0000 00 ff")  # traffic class, flow label, hop limit
    fields_desc: ClassVar[list[Any]] = [
        BitField("ip_ver", 6, 4),
        BitField("dscp", 0, 6),
        BitField("ecn", 0, 2),
        XBitField("flow_label", 0, 20),
        ShortField("pay_len", None),
        XByteField("nxt_hdr", PROTO_IBA),
        ByteField("hop_limit", 64),
        IP6Field("sgid", "::"),
        IP6Field("dgid", "::"),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return BTH if self.nxt_hdr == PROTO_IBA else super().guess_payload_class(payload)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        # Ethernet padding, FCS and trailers lie behind what PayLen counts; they are no part of the transport packet.
        # Behind an LRH nothing of the kind is left: that header has a length of its own, and its word counts.
        end = len(s) if isinstance(self.underlayer, Header) else self.pay_len
        return s[:end], s[end:]

    def with_length(self, header: bytes, behind: int) -> bytes:
        return header if self.pay_len is not None else header[:4] + behind.to_bytes(2, "big") + header[6:]

    def transport_length(self) -> int | None:
        below = self.underlayer
        if isinstance(below, Header):  # LRH
            length = below.transport_length()
            return None if length is None else length - GRH_SIZE
        return self.pay_len

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        return self.with_length(pkt, len(pay)) + pay

    def hashret(self) -> bytes:
        return strxor(inet_pton(AF_INET6, self.sgid), inet_pton(AF_INET6, self.dgid)) + self.payload.hashret()

    def answers(self, other: Packet) -> bool:
        return (
            isinstance(other, GRH)
            and (self.sgid, self.dgid) == (other.dgid, other.sgid)
            and bool(self.payload.answers(other.payload))
        )

    def mysummary(self) -> str:
        return self.sprintf("GRH %GRH.sgid% > %GRH.dgid%")
