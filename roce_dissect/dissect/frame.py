"""A whole frame as a tree, in the order of the wire, and at its end what the tracker says of the packet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from roce_dissect.analysis.frame_ranges import FrameRanges
from roce_dissect.analysis.packet_frame import packet_rows
from roce_dissect.analysis.packet_sources import Captures, PacketSession
from roce_dissect.columns import packet_columns
from roce_dissect.decode.options import DEFAULT_OPTIONS, ReadOptions
from roce_dissect.dissect.lower import Descent
from roce_dissect.dissect.transport import transport_sections
from roce_dissect.dissect.tree import Node
from roce_dissect.spec.net import LINKTYPE_NAMES
from roce_dissect.terms import Tunnel
from roce_dissect.units import clock, plural

__all__ = ["dissect", "dissect_frames"]

_STATUS = {
    "cut": "its headers are not whole: the capture, or the packet's own lengths, end before",
    "malformed": "lengths that contradict each other",
    "unknown_opcode": "no such opcode",
    "unknown_version": "a transport version other than 0",
    "fragment": "the first of several IP fragments: the others have the rest",
}
#: What the tracker says: words of values, ``""`` for all others.
_TOLD: dict[str, dict[Any, str]] = {
    "role": {
        "other": "not judged",
        "request": "a request of a connection",
        "response": "an answer to requests",
        "datagram": "UD: no connection",
        "management": "to QP 0 or 1: management",
        "cnp": "congestion notification",
    },
    "standing": {
        "damaged": "its ICRC is wrong: receivers drop it, and it takes no part in the tables",
        "unproven": "its ICRC is wrong, and none of its sender was right before",
        "doubtful": "perhaps no RoCE: taken in only where it continues something",
        "doubled": "one more sighting of a packet that counts already: it takes no part in the tables",
    },
    "verdict": {
        "none": "not judged",
        "first": "the first of its stream",
        "new": "the expected PSN, or the next answer",
        "gap": "beyond the expected PSN: packets before it did not pass here",
        "late": "fills a gap: sent again after a loss before this point, or reordered",
        "resent": "was seen before: sent again",
        "copy": "the very same packet once more",
    },
    "accepted": {
        "none": "not judged",
        "accepted": "the responder took it",
        "duplicate": "the responder had it already",
        "out_of_sequence": "not the PSN that the responder expects: a NAK is due",
        "discarded": "dropped silently",
        "qp_error": "the QP is in error",
    },
    "stream": {"": "row of the streams table"},
    "psn_ext": {"": "PSN unwrapped"},
    "missing_before": {"": "PSNs that did not pass here"},
}


def dissect(row: Mapping[str, Any], *, path: str = "", start_ns: int | None = None) -> list[Node]:
    """Sections of a packet's frame.

    Every byte of the frame is in one of them, save those of fields that are told as missing. Nothing here raises on
    what a frame holds.

    Parameters
    ----------
    row : mapping
        Of `packet_rows`: a packet of `PacketSession` with `DISSECTION_COLUMNS`. What else it lacks is left out.
    path : str
        The file, to be told.
    start_ns : int, optional
        What the time is told relative to.
    """
    data: bytes = row["frame_bytes"]
    descent = Descent(data, row["link_type"], row.get("tunnels") or 0)
    sections = [_frame(row, data, descent, path, start_ns), *descent.sections]
    if descent.transport is not None:
        ethernet = any(section.name == "ethernet" for section in descent.sections)
        sections += transport_sections(data, descent.transport, ethernet, row)
    told = _tracker(row)
    return [*sections, told] if told.children else sections


def dissect_frames(
    captures: Captures, frames: str | None = None, options: ReadOptions = DEFAULT_OPTIONS
) -> Iterator[list[Node]]:
    """Sections of each RoCE packet of a capture, for notebooks.

    Parameters
    ----------
    captures : path, ``"-"``, binary file object, or sequence of paths
        As for `roce_dissect.read_packets`.
    frames : str, optional
        Which frames: ``"86-90,200"``. Default: all.
    options : ReadOptions
        How to read: further UDP ports of RoCE v2, say.
    """
    chosen = None if frames is None else FrameRanges(frames)
    session = PacketSession(
        captures,
        packet_columns(None),
        keep_going=False,
        options=options,
        shown=True,
        frames=chosen,
        with_bytes=True,
    )
    for packets in session:
        for row in packet_rows(packets):
            yield dissect(row, path=session.files[row["file"]].path, start_ns=session.first_time_ns)


def _frame(row: Mapping[str, Any], data: bytes, descent: Descent, path: str, start_ns: int | None) -> Node:
    """What the capture says of the frame, and the summary of its headers."""
    title = f"Frame {row['frame']}" if "frame" in row else "Frame"
    node = Node("frame", None, f"{title} of {path}" if path else title, "", 0, len(data))

    def tell(name: str, meaning: str = "", text: str | None = None) -> None:
        value = row.get(name)
        if value is not None:
            node.children.append(Node(name, value, str(value) if text is None else text, meaning, column=name))

    tell("file", "counted from 0")
    tell("frame")
    if row.get("time_ns") is not None:
        since = "" if start_ns is None else _since(row["time_ns"] - start_ns)
        tell("time_ns", since, clock(row["time_ns"]))
    tell("wire_len", "bytes")
    lacking = (row.get("wire_len") or 0) - len(data)
    tell("cap_len", "bytes" + (f", {lacking} are not in the capture" if lacking > 0 else ""))
    link = row["link_type"]
    node.children.append(Node("link_type", link, str(link), LINKTYPE_NAMES.get(link, "")))
    version = row.get("version")
    tell("version", "RoCE v1" if version == 1 else "RoCE v2" if version == 2 else "native InfiniBand")
    kind = descent.tunnel_kinds[-1].name.lower() if descent.tunnel_kinds else Tunnel.NONE.name.lower()
    if descent.tunnel_kinds:
        count = len(descent.tunnel_kinds)
        node.children.append(Node("tunnel", kind, kind, plural(count, "tunnel"), column="tunnel"))
    tell("status", _STATUS.get(str(row.get("status")), ""))
    return node


def _since(time_ns: int) -> str:
    whole, rest = divmod(abs(time_ns), 1_000_000_000)
    return f"{whole}.{rest:09} s {'after' if time_ns >= 0 else 'before'} the first frame"


def _tracker(row: Mapping[str, Any]) -> Node:
    node = Node("tracker", None, "In its connection")
    for name, meanings in _TOLD.items():
        value = row.get(name)
        if value is None or (name == "standing" and value == "full") or (name == "missing_before" and not value):
            continue
        text, meaning = ("none", "") if value == -1 else (str(value), meanings.get(value, meanings.get("", "")))
        node.children.append(Node(name, value, text, meaning, column=name))
    return node
