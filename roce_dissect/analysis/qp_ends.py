"""Which packets come from a QP: a first reading of the capture pairs the streams, for a second one that chooses.

A BTH names only the QP that a packet goes to. Where a packet comes from shows when the whole capture has been seen: by
the connection manager's messages, or by answers that fit the requests.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from roce_dissect.analysis.records import table_records
from roce_dissect.decode.blocks import Blocks
from roce_dissect.decode.options import ReadOptions
from roce_dissect.decode.selection import Ends, Way
from roce_dissect.flows.flow_table import FLOW_COLUMNS, FlowTable
from roce_dissect.flows.tables import build_tables

__all__ = ["with_ends"]


def with_ends(
    inputs: Sequence[str | BinaryIO],
    options: ReadOptions,
    progress: Callable[[int, int | None], None] | None = None,
) -> ReadOptions:
    """The options with a selection that knows where packets from its QPs go to.

    The capture is read once for that, if the selection names QPs, nobody has looked yet, and it can be read twice;
    otherwise the options stay as they are, and packets are chosen by the QPs that they name themselves. What cannot be
    read is passed over: the reading that comes says so.

    Parameters
    ----------
    inputs : sequence of path, ``-`` or binary file object
        The captures.
    options : ReadOptions
        How to read.
    progress : callable, optional
        Called with (bytes read, bytes in all or None) after each batch.
    """
    selection = options.selection
    if selection is None or not selection.qps or selection.ends is not None or not _readable_twice(inputs):
        return options
    flows = FlowTable()
    blocks = Blocks(
        inputs, FLOW_COLUMNS, keep_going=True, progress=progress, options=dataclasses.replace(options, selection=None)
    )
    for block in blocks:
        flows.feed(block.columns, block.rows, block.messages)
    flows.finish()
    streams = build_tables(flows, blocks.hosts.texts()).streams
    ends = Ends(_ways_from(streams, selection.qps), _set_up_frames(flows, selection.qps))
    return dataclasses.replace(options, selection=dataclasses.replace(selection, ends=ends))


def _readable_twice(inputs: Sequence[str | BinaryIO]) -> bool:
    return all(isinstance(one, str) and os.path.isfile(one) for one in inputs)


def _ways_from(streams: pd.DataFrame, qps: Sequence[int]) -> tuple[Way, ...]:
    """Streams that come from one of the QPs, as `Ends.ways`."""
    from_qps = streams["src_qp"].isin(list(qps)).to_numpy(bool)
    some = streams[from_qps & (streams["transport"] != "UD").to_numpy(bool)]  # a datagram names its source itself
    rows: list[dict[str, Any]] = table_records(some[list(Way._fields)])
    return tuple(Way(**row | {"vni": -1 if row["vni"] is None else row["vni"]}) for row in rows)


def _set_up_frames(flows: FlowTable, qps: Sequence[int]) -> tuple[int, ...]:
    """Frames of the CM exchanges that made a connection of one of the QPs."""
    exchanges = flows.handshakes.exchanges
    of_qps = np.array([bool({one.a_qp, one.b_qp} & {*qps}) for one in exchanges] + [False])  # -1 picks the last one
    return tuple(frame for _, number, frame, _, _ in flows.handshakes.events if of_qps[number])
