"""What is said of names that are no columns."""

from __future__ import annotations

import pytest

from roce_dissect.decode.suggestions import unknown_name


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("vlan.id", "vlan.id is called vlan_id here"),
        ("ip.src", "ip.src is called src here"),
        ("infiniband.bth.psn", "infiniband.bth.psn is called psn here"),
        ("ip.addr", "--host"),
        ("frame.time_relative", "--time 1.5..2"),
        ("infiniband.invariant.crc", "in reverse"),
        ("damaged", "a word stands in quotes, 'damaged'"),
        ("pns", "near it: psn"),
    ],
)
def test_of_a_name(name, told):
    assert told in unknown_name(name)
