"""Fields of the RoCE headers, taken from the Scapy layers that define them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from scapy.fields import (
    IP6Field,
    StrFixedLenField,
    XBitField,
    XByteField,
    XIntField,
    XLongField,
    XShortField,
)

from roce_dissect.columns import PACKETS
from roce_dissect.dissect import words
from roce_dissect.dissect.tree import Field
from roce_dissect.layers.trailer import IcrcField, PadField
from roce_dissect.spec.net import PROTO_IBA
from roce_dissect.spec.opcodes import Transport, operation_name

__all__ = ["layer_fields"]

#: What the packet table calls fields of GRH and LRH, which it has for other headers, too.
_COLUMNS = {
    ("GRH", "pay_len"): "ip_len",
    ("GRH", "hop_limit"): "ttl",
    ("GRH", "sgid"): "src",
    ("GRH", "dgid"): "dst",
}
_HEXADECIMAL = (XBitField, XByteField, XIntField, XLongField, XShortField)
_TRANSPORTS = {
    Transport.RC: "reliable connection",
    Transport.UC: "unreliable connection",
    Transport.RD: "reliable datagram",
    Transport.UD: "unreliable datagram",
    Transport.CNP: "congestion notification",
    Transport.XRC: "extended reliable connection",
}


def _opcode(value: int) -> str:
    transport = _TRANSPORTS.get(Transport(value & 0xE0), "") if value & 0xE0 in list(Transport) else "vendor's own"
    name = operation_name(value)
    return f"{transport}, unknown operation {value & 31:#04x}" if name.startswith("opcode") else f"{name} ({transport})"


_SELECTIVITY = {0: "the range that the RETH tells", 1: "the whole memory region"}
_PLACEMENT = {0: "", 1: "global visibility", 2: "persistence", 3: "global visibility and persistence"}
_KEY = "key of the responder's memory"
#: Base (empty: as the layer prints it) and words of fields.
_MEANINGS: dict[tuple[str, str], tuple[str, Callable[[int], str] | None]] = {
    ("BTH", "opcode"): ("hex", _opcode),
    ("BTH", "se"): ("", words.flag("solicited event: wakes the receiver")),
    ("BTH", "mig_req"): ("", words.named({1: "path migration: migrated", 0: "path migration: armed, or none"})),
    ("BTH", "pad_count"): ("", words.octets),
    ("BTH", "tver"): ("", words.named({0: ""}, "unknown version of the transport header")),
    ("BTH", "p_key"): ("", words.p_key),
    ("BTH", "fecn"): ("", words.flag("congestion was met on the way here")),
    ("BTH", "becn"): ("", words.flag("asks the receiver of this packet to slow down")),
    ("BTH", "dest_qp"): ("hex+dec", words.qp),
    ("BTH", "ack_req"): ("", words.flag("an acknowledgement is asked for")),
    ("BTH", "psn"): ("dec+hex", None),
    ("RETH", "va"): ("", words.constant("address in the responder's memory")),
    ("RETH", "r_key"): ("", words.constant(_KEY)),
    ("RETH", "dma_len"): ("", words.constant("bytes, the whole message's")),
    ("AtomicETH", "va"): ("", words.constant("address in the responder's memory")),
    ("AtomicETH", "r_key"): ("", words.constant(_KEY)),
    ("AtomicETH", "swap_add_data"): ("hex+dec", words.constant("swapped in, or added")),
    ("AtomicETH", "compare_data"): ("hex+dec", words.constant("compared with what is there")),
    ("AtomicAckETH", "orig_data"): ("hex+dec", words.constant("what the memory held before")),
    ("AETH", "syndrome"): ("", words.syndrome),
    ("AETH", "msn"): ("dec+hex", words.constant("messages that the responder has completed, modulo 2^24")),
    ("ImmDt", "imm_data"): ("", words.immediate),
    ("IETH", "inv_r_key"): ("", words.constant("key to be invalidated")),
    ("DETH", "q_key"): ("", words.named({0x80010000: "GSI's", 0x01234567: "RDMA-CM's"})),
    ("DETH", "src_qp"): ("hex+dec", words.qp),
    ("RDETH", "ee_context"): ("hex+dec", None),
    ("XRCETH", "xrc_srq"): ("hex+dec", words.constant("shared receive queue that it is for")),
    ("FETH", "selectivity"): ("", words.named(_SELECTIVITY, "reserved")),
    ("FETH", "placement"): ("hex", words.named(_PLACEMENT, "reserved bits")),
    ("GRH", "dscp"): ("", words.dscp),
    ("GRH", "ecn"): ("", words.ecn),
    ("GRH", "pay_len"): ("", words.constant("bytes from the BTH to the end of the ICRC")),
    ("GRH", "nxt_hdr"): ("", words.named({PROTO_IBA: "BTH"}, "no BTH")),
    ("LRH", "lnh"): ("", words.named({0: "raw", 1: "IPv6", 2: "BTH", 3: "GRH"})),
    ("LRH", "dlid"): ("", words.lid),
    ("LRH", "slid"): ("", words.lid),
    ("LRH", "pkt_len"): ("", words.words_of_four),
}  # fmt: skip


@cache
def layer_fields(layer: type[Any]) -> tuple[Field, ...]:
    """Fields of a layer's header; what it keeps of the end of the packet (pad, ICRC, VCRC) is none."""
    return tuple(_field(layer.__name__, one) for one in layer.fields_desc if not isinstance(one, PadField | IcrcField))


def _field(layer: str, one: Any) -> Field:
    bits = getattr(one, "size", None) or int(one.sz) * 8  # fields of bits have a size of their own, in bits
    name = _COLUMNS.get((layer, one.name), one.name)
    base, meaning = _MEANINGS.get((layer, one.name), ("", None))
    if not base:
        base = _base(one)
    return Field(name, bits, base, meaning, name if name in PACKETS else "")


def _base(one: Any) -> str:
    if isinstance(one, IP6Field):
        return "ipv6"
    if isinstance(one, StrFixedLenField):
        return "bytes"
    return "hex" if isinstance(one, _HEXADECIMAL) else "dec"
