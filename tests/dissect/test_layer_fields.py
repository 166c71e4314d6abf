"""The layers' fields as a dissection shows them."""

from __future__ import annotations

import pytest

from roce_dissect.columns import PACKETS
from roce_dissect.dissect.layer_fields import layer_fields
from roce_dissect.dissect.tree import fields_size
from roce_dissect.layers import BTH, GRH, LRH
from roce_dissect.layers.header import ExtendedHeader

LAYERS = [BTH, GRH, LRH, *ExtendedHeader.by_presence.values()]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_sizes(layer):
    assert fields_size(layer_fields(layer)) == layer.header_size


def test_columns_are_columns():
    named = {one.column for layer in LAYERS for one in layer_fields(layer) if one.column}
    assert named <= set(PACKETS)
    # the transport's columns, all of them
    transport = {name for name, column in PACKETS.items() if "infiniband.bth" in column.wireshark}
    assert transport - {"opcode"} < named


def words(layer, name):
    return next(one.words for one in layer_fields(layer) if one.name == name)


def test_words():
    opcode = words(BTH, "opcode")
    assert opcode(0x06) == "RC WRITE FIRST (reliable connection)"
    assert opcode(0x81) == "CNP (congestion notification)"
    assert opcode(0x3F) == "unreliable connection, unknown operation 0x1f"
    assert opcode(0xC1) == "vendor's own, unknown operation 0x01"
    assert {opcode(value) for value in range(256)}  # none raises
    assert words(BTH, "p_key")(0x8001) == "full member of partition 0x1"
    assert words(LRH, "pkt_len")(12) == "48 bytes"
