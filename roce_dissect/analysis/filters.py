"""Wireshark display filters to paste: for a connection, for frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from roce_dissect.spec.net import ECN_CE
from roce_dissect.spec.opcodes import Opcode

__all__ = ["MARK_FILTERS", "connection_filter", "frames_filter"]

#: Runs of marks: their packets are better found by what they carry than by frame numbers, with others between them.
MARK_FILTERS = {
    "ce": ("packets marked CE", f"ip.dsfield.ecn == {ECN_CE} || ipv6.tclass.ecn == {ECN_CE}"),
    "cnp": ("CNPs", f"infiniband.bth.opcode == {int(Opcode['CNP']):#x}"),
}


def connection_filter(row: dict[str, Any]) -> str:
    """A filter that passes the packets of one row of the connections table.

    A BTH names the destination's QP only, so each direction is its destination and that QP. Management datagrams of the
    connection's set-up are not among them.
    """
    ways = []
    for end in ("b", "a"):
        qp = row[f"{end}_qp"]
        if qp is not None:
            ways.append(f"{_destination(row, end)} && infiniband.bth.destqp == {int(qp):#x}")
    return ways[0] if len(ways) == 1 else " || ".join(f"({way})" for way in ways)


def _destination(row: dict[str, Any], end: str) -> str:
    address = str(row[f"{end}_address"])
    if address.startswith("LID "):
        return f"infiniband.lrh.dlid == {address.removeprefix('LID ')}"
    if row["version"] in (0, 1):  # a GID in the GRH; an IPv4 address stands there in its mapped form
        return f"infiniband.grh.dgid == {address if ':' in address else '::ffff:' + address}"
    return f"{'ipv6' if ':' in address else 'ip'}.dst == {address}"


def frames_filter(frames: Iterable[tuple[int, int]]) -> str:
    """A filter that passes ranges of frames, first and last each: ``frame.number in {86..87, 126..183}``."""
    merged: list[list[int]] = []
    for first, last in sorted(frames):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return f"frame.number in {{{', '.join(str(a) if a == b else f'{a}..{b}' for a, b in merged)}}}"
