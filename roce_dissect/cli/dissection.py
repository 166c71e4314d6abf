"""``packets -V``: whole frames as trees, as text or as JSON, and what Wireshark says of the same frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from roce_dissect.analysis.packet_frame import packet_rows
from roce_dissect.cli.tree_lines import hex_dump, tree_lines
from roce_dissect.dissect.frame import dissect

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.cli.wireshark import Wireshark

__all__ = ["dissected"]


def dissected(
    packets: pd.DataFrame,
    paths: Sequence[str],
    start_ns: int | None,
    *,
    as_json: bool = False,
    dump: bool = False,
    wireshark: Wireshark | None = None,
) -> Iterator[str]:
    """Text of packets, one after the other: a tree with an empty line behind it, or an object on a line.

    Parameters
    ----------
    packets : pandas.DataFrame
        Of a `PacketSession` with bytes.
    paths : sequence of str
        Of the files, by their index.
    start_ns : int or None
        What times are told relative to.
    as_json : bool
        One JSON object a line instead.
    dump : bool
        The bytes in hexadecimal below each tree.
    wireshark : Wireshark, optional
        Its dissection below each tree.
    """
    theirs = {} if wireshark is None else _asked(packets, paths, wireshark)
    for row in packet_rows(packets):
        sections = dissect(row, path=paths[row["file"]], start_ns=start_ns)
        if as_json:
            yield _json_line(row, sections)
            continue
        text = tree_lines(sections)
        if dump:
            text += "Bytes\n" + hex_dump(row["frame_bytes"])
        if wireshark is not None:
            text += wireshark.lines(theirs.get((row["file"], row["frame"])), sections)
        yield text + "\n"


def _json_line(row: dict[str, Any], sections: Sequence[Any]) -> str:
    made = {"file": row["file"], "frame": row["frame"], "sections": [section.as_dict() for section in sections]}
    return json.dumps(made, ensure_ascii=True, separators=(",", ":")) + "\n"


def _asked(packets: pd.DataFrame, paths: Sequence[str], wireshark: Wireshark) -> dict[tuple[int, int], Any]:
    """(file, frame) -> what Wireshark says, of all packets; each file is read once."""
    found = {}
    for file, of_file in packets.groupby("file"):
        index = int(file)
        for frame, layers in wireshark.frames(paths[index], of_file["frame"].astype(int).tolist()).items():
            found[index, frame] = layers
    return found
