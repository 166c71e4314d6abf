"""GRH: the global route header of RoCE v1, laid out as an IPv6 header.

Source: IBTA Vol. 1, 8.3, and annex A16 (RoCE).
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import BitField, ByteField, IP6Field, ShortField, XBitField, XByteField
from scapy.packet import Packet

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
        return s[: self.pay_len], s[self.pay_len :]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.pay_len is None:
            pkt = pkt[:4] + len(pay).to_bytes(2, "big") + pkt[6:]
        return pkt + pay

    def mysummary(self) -> str:
        return self.sprintf("GRH %GRH.sgid% > %GRH.dgid%")
