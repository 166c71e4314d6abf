"""What sightings of a packet have alike, and in what they differ."""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect.columns import FILE_SHIFT, PACKETS
from roce_dissect.decode.decoder import INTERNAL
from roce_dissect.decode.identity import (
    DOUBLES_COLUMNS,
    SIGHTING_COLUMNS,
    WAYS,
    fingerprints,
    way_fingerprints,
    way_words,
)
from roce_dissect.spec.headers import HAS_BTH, HAS_ETH, HAS_VLAN

ROWS = np.arange(2)
#: What a packet keeps all the way, and what is at hand of it only where enough was captured.
KEPT = [
    "src",
    "dst",
    "ip_id",
    "ip_len",
    "udp_sport",
    "version",
    "vni",
    "opcode",
    "dest_qp",
    "psn",
    "p_key",
    "pad_count",
]
DEEPER = ["payload_len", "dma_len", "syndrome", "msn", "src_qp", "icrc"]
CHANGING = {
    "eth_dst": "mac_addresses", "eth_src": "mac_addresses", "vlan_id": "vlan_tags", "vlan2_id": "vlan_tags",
    "tunnel": "tunnel", "outer_src": "tunnel", "outer_dst": "tunnel", "session": "tunnel", "ttl": "ttl",
}  # fmt: skip


def two(name=None, value=1):
    """Two sightings that differ in one column."""
    columns = {}
    for column in DOUBLES_COLUMNS:
        dtype = INTERNAL[column][1] if column in INTERNAL else PACKETS[column].dtype
        columns[column] = np.zeros(2, "uint32" if dtype == "address" else dtype)
    columns["present"][:] = HAS_BTH
    if name is not None:
        columns[name][1] |= columns[name].dtype.type(value)
    return columns


def alike(values):
    return bool(values[0] == values[1])


@pytest.mark.parametrize("name", KEPT)
def test_what_a_packet_keeps(name):
    assert not alike(fingerprints(two(name), ROWS, False))
    assert not alike(fingerprints(two(name), ROWS, True))


@pytest.mark.parametrize("name", DEEPER)
def test_what_a_slice_may_lack(name):
    assert alike(fingerprints(two(name), ROWS, False))
    assert not alike(fingerprints(two(name), ROWS, True))


@pytest.mark.parametrize("name", [*CHANGING, "time_ns", "frame_key", "wire_len", "cap_len", "present"])
def test_what_changes_on_the_way(name):
    assert alike(fingerprints(two(name), ROWS, True))
    assert alike(fingerprints(two(name), ROWS, False))


@pytest.mark.parametrize("name", CHANGING)
def test_ways(name):
    for way in WAYS:
        assert alike(way_words(two(name), ROWS, way)) == (way != CHANGING[name])
        assert alike(way_fingerprints(two(name), ROWS, (way,))) == (way != CHANGING[name])
    assert not alike(way_fingerprints(two(name), ROWS, tuple(WAYS)))


def test_the_file_counts_not_the_frame():
    assert alike(way_words(two("frame_key", 77), ROWS, "file"))
    assert not alike(way_words(two("frame_key", 1 << FILE_SHIFT), ROWS, "file"))


def test_a_tag_of_vlan_0_is_one():
    assert not alike(way_words(two("present", HAS_VLAN), ROWS, "vlan_tags"))
    assert alike(way_words(two("present", HAS_ETH), ROWS, "vlan_tags"))


def test_every_column_is_asked_for():
    assert {name for names in WAYS.values() for name in names} <= set(DOUBLES_COLUMNS)
    assert set(CHANGING) == set(SIGHTING_COLUMNS)


def test_few_fingerprints_meet():
    """Packets that follow each other differ in the last bits of two columns only."""
    count = 1 << 16
    columns = {name: np.zeros(count, values.dtype) for name, values in two().items()}
    columns["psn"], columns["ip_id"] = np.arange(count, dtype=np.uint32), np.arange(count, dtype=np.uint16)
    assert len(np.unique(fingerprints(columns, np.arange(count), True))) == count
