"""Extended transport headers, but the AETH (`roce_dissect.layers.aeth`).

Source: IBTA Vol. 1, 9.3, and annexes A14 (XRCETH) and A19 (FETH); sizes and bits as in Linux ``rxe_hdr.h``. Names are
those of `roce_dissect.columns.PACKETS`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import BitEnumField, BitField, ByteField, FlagsField, IntField, XBitField, XIntField, XLongField

from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.spec.headers import (
    HAS_ATOMIC_ACK_ETH,
    HAS_ATOMIC_ETH,
    HAS_DETH,
    HAS_FETH,
    HAS_IETH,
    HAS_IMMDT,
    HAS_RDETH,
    HAS_RETH,
    HAS_XRCETH,
)

__all__ = ["DETH", "FETH", "IETH", "RDETH", "RETH", "XRCETH", "AtomicAckETH", "AtomicETH", "ImmDt"]


class RDETH(ExtendedHeader):
    """Reliable datagram extended transport header (IBTA 9.3.1): the end-to-end context of RD requests and responses."""

    name = "RDETH"
    presence = HAS_RDETH
    fields_desc: ClassVar[list[Any]] = [
        ByteField("reserved", 0),
        XBitField("ee_context", 0, 24),
    ]


class XRCETH(ExtendedHeader):
    """XRC extended transport header (IBTA annex A14): the shared receive queue that an XRC request is for."""

    name = "XRCETH"
    presence = HAS_XRCETH
    fields_desc: ClassVar[list[Any]] = [
        ByteField("reserved", 0),
        XBitField("xrc_srq", 0, 24),
    ]


class DETH(ExtendedHeader):
    """Datagram extended transport header (IBTA 9.3.2): queue key and source QP."""

    name = "DETH"
    presence = HAS_DETH
    fields_desc: ClassVar[list[Any]] = [
        XIntField("q_key", 0),
        ByteField("reserved", 0),
        XBitField("src_qp", 0, 24),
    ]


class FETH(ExtendedHeader):
    """FLUSH extended transport header (IBTA annex A19): what is to be made visible or persistent, and how far.

    Selectivity 1 covers the whole memory region: the RETH's address and length are then ignored.
    """

    name = "FETH"
    presence = HAS_FETH
    fields_desc: ClassVar[list[Any]] = [
        BitField("reserved", 0, 26),
        BitEnumField("selectivity", 0, 2, {0: "range", 1: "memory region"}),
        FlagsField("placement", 0, 4, ["global_visibility", "persistence", "reserved2", "reserved3"]),
    ]


class RETH(ExtendedHeader):
    """RDMA extended transport header (IBTA 9.3.3): the remote memory of a WRITE, READ or FLUSH."""

    name = "RETH"
    presence = HAS_RETH
    fields_desc: ClassVar[list[Any]] = [
        XLongField("va", 0),
        XIntField("r_key", 0),
        IntField("dma_len", 0),
    ]


class AtomicETH(ExtendedHeader):
    """Atomic extended transport header (IBTA 9.3.4): address and operands of COMPARE SWAP and FETCH ADD."""

    name = "AtomicETH"
    presence = HAS_ATOMIC_ETH
    fields_desc: ClassVar[list[Any]] = [
        XLongField("va", 0),
        XIntField("r_key", 0),
        XLongField("swap_add_data", 0),
        XLongField("compare_data", 0),
    ]


class AtomicAckETH(ExtendedHeader):
    """Atomic acknowledge extended transport header (IBTA 9.3.5.3): the value that the memory held before."""

    name = "AtomicAckETH"
    presence = HAS_ATOMIC_ACK_ETH
    fields_desc: ClassVar[list[Any]] = [XLongField("orig_data", 0)]


class ImmDt(ExtendedHeader):
    """Immediate data (IBTA 9.3.6)."""

    name = "ImmDt"
    presence = HAS_IMMDT
    fields_desc: ClassVar[list[Any]] = [XIntField("imm_data", 0)]


class IETH(ExtendedHeader):
    """Invalidate extended transport header (IBTA 9.3.7): the remote key that a SEND invalidates."""

    name = "IETH"
    presence = HAS_IETH
    fields_desc: ClassVar[list[Any]] = [XIntField("inv_r_key", 0)]
