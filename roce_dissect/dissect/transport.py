"""The transport packet: BTH and extended headers, payload, pad, ICRC, VCRC, and what lies behind it in the frame."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from roce_dissect.decode.icrc import expected_icrc
from roce_dissect.dissect.layer_fields import layer_fields
from roce_dissect.dissect.lower import Transport
from roce_dissect.dissect.mad import management_datagram
from roce_dissect.dissect.tree import Node, plain_bytes, read_header
from roce_dissect.dissect.words import octets, printable
from roce_dissect.layers import BTH, FETH
from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.layers.vcrc import vcrc_of
from roce_dissect.spec.cm import GSI_QP
from roce_dissect.spec.headers import BTH_SIZE, HAS_GRH, HAS_IPV4, HAS_IPV6, HAS_LRH, ICRC_SIZE, chain_size
from roce_dissect.spec.opcodes import HEADERS, Opcode, operation_name

__all__ = ["transport_sections"]

_SHOWN = 64  # bytes of a payload
_IN_A_LINE = 16
_VCRC_SIZE, _FCS_SIZE = 2, 4
_UD_SEND_ONLY = int(Opcode["UD_SEND_ONLY"])
_FLUSH = int(Opcode["RC_FLUSH"])
_SHORTENED = "left by the packet's own length"
#: What an ICRC's verdict means, by its word.
_ICRC_MEANINGS = {
    "none": "not verified",
    "good": "good",
    "bad": "bad",
    "sliced": "not all of the bytes that it covers were captured",
    "placeholder": "a placeholder: this sender computes none",
}


def transport_sections(data: bytes, where: Transport, ethernet: bool, row: Mapping[str, Any]) -> list[Node]:
    """Sections from the BTH to the end of the frame.

    Parameters
    ----------
    data : bytes
        The frame.
    where : Transport
        Its place.
    ethernet : bool
        Whether the frame may end in an FCS of Ethernet.
    row : mapping
        ``icrc_status`` of the packet, or nothing.
    """
    if not where.room:
        reason = where.doubt or "the lengths leave no room for a BTH and an ICRC"
        node = Node("no_bth", None, "No BTH", reason, where.bth, max(len(data) - where.bth, 0))
        if node.size:
            node.children.append(plain_bytes("bytes", data[where.bth :], where.bth))
        return [node]
    frame, behind = data, where.end
    present = "captured"
    if where.fragment_end is not None:  # what lies behind the fragment, and the ICRC anyhow, is in other ones
        data = frame[: max(min(where.fragment_end, where.end - 1), where.bth)]
        behind = len(data)
        present = "in this first fragment" if len(data) < len(frame) or where.fragment_end == len(frame) else present
    bth = read_header(data, where.bth, len(data), "bth", "BTH", layer_fields(BTH), present)
    bth.node.children += [Node("lengths", None, "in doubt", where.doubt)] if where.doubt else []
    sections = [bth.node]
    if not bth.whole:
        return sections + _trailer(frame, behind, ethernet)
    opcode, pad = bth.values["opcode"], bth.values["pad_count"]
    bth.node.meaning = operation_name(opcode)
    headers, at, whole = _extended(data, where.bth + BTH_SIZE, where.end - ICRC_SIZE, opcode, present)
    sections += headers
    payload_len = where.end - ICRC_SIZE - pad - where.bth - BTH_SIZE - chain_size(HEADERS.get(opcode, 0))
    to_management = opcode == _UD_SEND_ONLY and bth.values["dest_qp"] <= GSI_QP
    sections.append(_payload(data, at if whole else None, payload_len, not to_management, present))
    if whole:
        if to_management:
            sections += management_datagram(data, at, min(at + max(payload_len, 0), len(data)))
        sections += _pad(data[: where.end - ICRC_SIZE], at + max(payload_len, 0), pad)
    sections.append(_icrc(data, where, opcode, row, present))
    if where.lrh is not None:
        sections.append(_vcrc(data, where))
        behind += _VCRC_SIZE
    return sections + _trailer(frame, behind, ethernet)


def _extended(data: bytes, at: int, limit: int, opcode: int, present: str) -> tuple[list[Node], int, bool]:
    """Extended headers from `at` on; none of their bytes lies behind `limit`. Where they end; whether all are whole."""
    chain = HEADERS.get(opcode, 0)
    sections: list[Node] = []
    for presence, layer in sorted(ExtendedHeader.by_presence.items()):
        if not chain & presence:
            continue
        cut_by = present if len(data) < min(at + layer.header_size, limit) else _SHORTENED
        section = read_header(data, at, limit, layer.__name__.lower(), layer.__name__, layer_fields(layer), cut_by)
        sections.append(section.node)
        if not section.whole:
            return sections, at, False
        if layer is FETH:
            number = int.from_bytes(data[at : section.end], "big")
            section.node.children.insert(0, Node("feth", number, f"{number:#010x}", "", at, 4, None, "feth"))
        at = section.end
    return sections, at, True


def _payload(data: bytes, at: int | None, length: int, shown: bool, present: str) -> Node:
    """The payload; `length` is negative where the lengths contradict the headers, `at` None where those are cut."""
    there = b"" if at is None else data[at : at + max(length, 0)]
    node = Node("payload", None, "Payload", "", at, len(there))
    at = at or 0
    meaning = octets(max(length, 0))
    if length < 0:
        meaning = f"bytes: headers and pad take {-length} more than the length fields leave"
    elif len(there) < length:
        meaning = f"bytes, {len(there)} of them {present}"
    node.children.append(Node("payload_len", max(length, 0), str(max(length, 0)), meaning, column="payload_len"))
    for first in range(0, min(len(there), _SHOWN) if shown else 0, _IN_A_LINE):
        line = there[first : min(first + _IN_A_LINE, _SHOWN)]
        node.children.append(plain_bytes("data", line, at + first, printable(line)))
    if shown and len(there) > _SHOWN:
        node.children.append(
            Node("more", None, f"{len(there) - _SHOWN} bytes", "not shown", at + _SHOWN, len(there) - _SHOWN)
        )
    return node


def _pad(covered: bytes, at: int, count: int) -> list[Node]:
    """The pad: what lies between payload and ICRC of the bytes `covered` by that."""
    there = covered[at:]
    if not there:
        return []
    meaning = "zeros" if not any(there) else "not zeros"
    if len(there) < count:
        meaning += f"; {len(there)} of {count} bytes"
    return [Node("pad", None, "Pad", "", at, len(there), children=[plain_bytes("pad", there, at, meaning)])]


def _icrc(data: bytes, where: Transport, opcode: int, row: Mapping[str, Any], present: str) -> Node:
    at = where.end - ICRC_SIZE
    there = data[at : where.end]
    node = Node("icrc", None, "ICRC", "", min(at, len(data)), len(there))
    verdict = str(row.get("icrc_status", "none"))
    if len(there) == ICRC_SIZE:
        value = int.from_bytes(there, "little")
        shown = Node("icrc", value, f"{value:#010x}", "least significant byte first", at, ICRC_SIZE, None, "icrc")
        node.children.append(shown)
    else:
        node.children.append(Node("missing", None, "icrc", f"{len(there)} of {ICRC_SIZE} bytes {present}"))
    meaning = _ICRC_MEANINGS.get(verdict, "")
    if verdict in ("bad", "placeholder"):
        right = expected_icrc(data, where.network, where.bth, at, _kind(data, where))
        meaning += f"; {right:#010x} would be right"
        if opcode == _FLUSH and zlib.crc32(data[where.bth : at], right) == int.from_bytes(there, "little"):
            meaning += "; it is what Linux rxe 6.12 computes for FLUSH"
    node.children.append(
        Node("icrc_status", verdict, verdict, meaning if meaning != verdict else "", column="icrc_status")
    )
    return node


def _kind(data: bytes, where: Transport) -> int:
    """Presence bit of the header that the ICRC begins with."""
    if where.version == 2:
        return HAS_IPV4 if data[where.network] >> 4 == 4 else HAS_IPV6
    return HAS_LRH if where.network == where.lrh else HAS_GRH


def _vcrc(data: bytes, where: Transport) -> Node:
    there = data[where.end : where.end + _VCRC_SIZE]
    node = Node("vcrc", None, "VCRC", "", min(where.end, len(data)), len(there))
    if len(there) < _VCRC_SIZE:
        node.children.append(Node("missing", None, "vcrc", f"{len(there)} of {_VCRC_SIZE} bytes captured"))
        return node
    value = int.from_bytes(there, "little")
    right = vcrc_of(data[where.lrh : where.end])
    meaning = "good" if value == right else f"bad; {right:#06x} would be right"
    node.children.append(Node("vcrc", value, f"{value:#06x}", meaning, where.end, _VCRC_SIZE))
    return node


def _trailer(data: bytes, at: int, ethernet: bool) -> list[Node]:
    """What lies in the frame behind the packet."""
    there = data[at:]
    if not there:
        return []
    node = Node("trailer", None, "Trailer", "no part of the packet", at, len(there))
    fcs = there[-_FCS_SIZE:]
    if ethernet and len(fcs) == _FCS_SIZE and zlib.crc32(data[:-_FCS_SIZE]) == int.from_bytes(fcs, "little"):
        there = there[:-_FCS_SIZE]
        node.children.append(plain_bytes("fcs", fcs, len(data) - _FCS_SIZE, "the frame's own CRC, good"))
    if there:
        meaning = "zeros: Ethernet padding" if ethernet and not any(there) else ""
        node.children.insert(0, plain_bytes("padding" if meaning else "bytes", there, at, meaning))
    return [node]
