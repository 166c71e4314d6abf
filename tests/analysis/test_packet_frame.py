"""Decoded packets as a DataFrame."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roce_dissect.analysis.packet_frame import kernel_columns, packet_frame, text_index
from roce_dissect.columns import packet_columns
from roce_dissect.spec import headers
from roce_dissect.terms import Verdict

ADDRESSES = text_index(["(none)", "10.0.0.1", "fe80::1"])


def frame(names, rows=slice(0, 3), **more):
    given = {
        "frame_key": np.array([5 << 40 | 7, 1, (1 << 40) - 1], np.int64),
        "present": np.array([headers.HAS_BTH | headers.HAS_RETH | headers.HAS_IPV4, headers.HAS_BTH, 0], np.uint32),
        "psn": np.array([1, 2, 3], np.uint32),
        "va": np.array([(1 << 64) - 1, 9, 9], np.uint64),
        "opcode": np.array([0x0A, 0xC7, 0], np.uint8),
        "src": np.array([2, 1, 0], np.uint32),
        "verdict": np.array([Verdict.COPY, Verdict.NONE, Verdict.GAP], np.uint8),
    } | more
    return packet_frame(packet_columns(names), given, rows, ADDRESSES, first_index=10)


def test_absent_is_missing():
    made = frame(["psn", "va"])
    assert made["psn"].tolist() == [1, 2, pd.NA]
    assert made["va"].tolist() == [(1 << 64) - 1, pd.NA, pd.NA]
    assert str(made["va"].dtype) == "uint64[pyarrow]"


def test_either_header_is_enough():
    """The virtual address is that of the RETH or of the AtomicETH."""
    present = np.array([headers.HAS_ATOMIC_ETH, headers.HAS_RETH, headers.HAS_AETH], np.uint32)
    assert frame(["va"], present=present)["va"].isna().tolist() == [False, False, True]


def test_file_and_frame_of_the_key():
    made = frame(["file", "frame"])
    assert made["file"].tolist() == [5, 0, 0]
    assert made["frame"].tolist() == [7, 1, (1 << 40) - 1]


def test_words():
    made = frame(["operation", "src", "verdict"])
    assert made["operation"].tolist()[:2] == ["RC WRITE ONLY", "opcode 0xc7"]
    assert made["src"].isna().tolist() == [False, True, True]  # by the presence of IP or GRH
    assert made["src"].iloc[0] == "fe80::1"
    assert made["verdict"].tolist() == ["copy", "none", "gap"]
    assert len(made["operation"].cat.categories) == 256


def test_rows_and_index():
    made = frame(["psn"], rows=np.array([0, 1]))
    assert made["psn"].tolist() == [1, 2]
    assert made.index.tolist() == [10, 11]


def test_what_the_decoder_must_deliver():
    assert kernel_columns(packet_columns(["frame", "file", "operation", "verdict", "psn"])) == (
        "frame_key", "present", "opcode", "psn",
    )  # fmt: skip


def test_categories_are_made_once():
    """Pieces share the objects: making the categories of many hosts anew for each piece would take most of the time."""
    one, other = frame(["operation", "src", "verdict"]), frame(["operation", "src", "verdict"])
    assert one["src"].cat.categories is ADDRESSES
    for name in one:
        assert one[name].cat.categories is other[name].cat.categories
