"""The tables' contract: names, types, and where each packet column stands in the kernel's row."""

from __future__ import annotations

import itertools
import shutil
import subprocess

import numpy as np
import pytest

from roce_dissect import columns, layout
from roce_dissect.columns import CONNECTIONS, COUNTERS, EVENTS, HOSTS, PACKETS, STREAMS, TRACKED, packet_columns
from roce_dissect.errors import ArgumentError

TABLES = {"packets": PACKETS, "streams": STREAMS, "connections": CONNECTIONS, "events": EVENTS, "hosts": HOSTS}
TABLES["counters"] = COUNTERS


@pytest.mark.parametrize("name", TABLES)
def test_each_column_is_sound(name):
    for key, column in TABLES[name].items():
        assert key == column.name
        assert key == key.lower()
        assert column.meaning
        assert not column.meaning.removesuffix("...").endswith((".", ":"))
        if column.dtype not in ("str", "address"):
            np.dtype(column.dtype)
        if column.name.endswith("_ns"):
            assert column.unit == "ns"
        if column.name.endswith("_bytes"):
            assert column.unit == "bytes"


def test_masks_fit_their_columns():
    """A field's mask fits its dtype, its bits lie within the word, and no two fields of a word overlap by accident."""
    for column in PACKETS.values():
        if column.field is None:
            continue
        word, shift, mask = column.field
        size = np.dtype("uint32" if column.dtype == "address" else column.dtype).itemsize
        assert 0 <= word < layout.WORDS
        assert mask & (mask + 1) == 0
        assert mask < 1 << 8 * size
        assert shift + mask.bit_length() <= 64
    shared = {}
    for one, other in itertools.combinations([c for c in PACKETS.values() if c.field], 2):
        (word, shift, mask), (word2, shift2, mask2) = one.field, other.field
        if word == word2 and (mask << shift) & (mask2 << shift2):
            shared[one.name, other.name] = True
    # the second words of Ethernet and BTH repeat four bytes; nothing else stands in one place
    assert set(shared) == set()


def test_tracked_columns():
    assert set(TRACKED) == {"stream", "role", "psn_ext", "verdict", "accepted", "missing_before"}
    assert all(PACKETS[name].field is None for name in TRACKED)


def test_choice():
    assert packet_columns() == list(PACKETS.values())
    assert [column.name for column in packet_columns(["psn", "frame"])] == ["psn", "frame"]
    assert packet_columns([]) == []
    assert [column.name for column in packet_columns(["psn", "frame", "psn"])] == ["psn", "frame"]
    with pytest.raises(ArgumentError, match=r"no such column: a, b \(there are: file, frame"):
        packet_columns(["psn", "a", "b"])


def test_frame_keys_sort_as_files_and_frames():
    keys = [(file << columns.FILE_SHIFT) | frame for file in (0, 1, 65535) for frame in (1, 2, 10**9)]
    assert keys == sorted(keys)
    assert max(keys) < 1 << 63
    assert [key & columns.FRAME_MASK for key in keys[:3]] == [1, 2, 10**9]


def test_wireshark_knows_the_fields():
    """Each display filter field that the table names exists in Wireshark."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    listed = subprocess.run(["tshark", "-G", "fields"], capture_output=True, check=True).stdout.decode(errors="replace")
    known = {line.split("\t")[2] for line in listed.splitlines() if line.startswith("F\t")}
    named = {column.wireshark for table in TABLES.values() for column in table.values() if column.wireshark}
    assert named <= known
