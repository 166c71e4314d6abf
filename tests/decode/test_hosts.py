"""The hosts table: addresses to codes and back; its Python side against the kernel's."""

from __future__ import annotations

import ipaddress
import random

import pytest

from roce_dissect.decode.hosts import HostTable, address_text, address_words
from roce_dissect.errors import ArgumentError


@pytest.mark.parametrize(
    ("high", "low", "text"),
    [
        (0, 0xFFFF_C0A8_6401, "192.168.100.1"),
        (0, 0xFFFF_0000_0000, "0.0.0.0"),
        (0xFD00_0100_0000_0000, 2, "fd00:100::2"),
        (0, 0, "::"),
        (0, 0x1_FFFF_C0A8_6401, "::1:ffff:c0a8:6401"),  # not mapped
        (1, 0xFFFF_C0A8_6401, "::1:0:ffff:c0a8:6401"),
        ((1 << 64) - 1, (1 << 64) - 1, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ],
)
def test_text(high, low, text):
    assert address_text(high, low) == text


def test_text_of_any_address():
    rng = random.Random(3)
    for _ in range(500):
        value = rng.getrandbits(rng.choice((32, 64, 128)))
        text = address_text(value >> 64, value & (1 << 64) - 1)
        address = ipaddress.ip_address(text)
        assert int(address) == value if address.version == 6 else int(address) | 0xFFFF << 32 == value


def test_entered_by_text():
    table = HostTable()
    assert table.enter("10.0.0.1") == 1
    assert table.enter("fe80::1") == 2
    assert table.enter("::ffff:10.0.0.1") == 1  # the mapped GID is the same host
    assert table.enter("fe80:0::1") == 2
    assert table.enter("10.0.0.1") == 1
    assert len(table) == 3
    assert table.texts()[1:] == ["10.0.0.1", "fe80::1"]
    for wrong in ("", "host", "10.0.0.256"):
        with pytest.raises(ArgumentError, match="is not an IP address"):
            table.enter(wrong)


def test_full():
    """Beyond the most hosts, code 0 stands for the rest."""
    table = HostTable(capacity=4)
    codes = [table.enter(f"10.0.0.{n}") for n in (1, 2, 3, 4, 5, 1)]
    assert codes == [1, 2, 3, 0, 0, 1]
    assert table.texts()[0] == "(too many hosts)"


@pytest.mark.parametrize("lid", [0, 1, 65535])
def test_a_lid_is_a_host(lid):
    """Native InfiniBand without a GRH has nothing else."""
    table = HostTable()
    row = table.enter(f"LID {lid}")
    assert table.texts()[row] == f"LID {lid}"
    assert address_text(*address_words(f"LID {lid}")) == f"LID {lid}"


@pytest.mark.parametrize("text", ["LID", "LID ", "LID -1", "LID 65536", "LID x", "LID ²", "lid 5", "LID 5 "])
def test_what_is_no_lid(text):
    with pytest.raises(ArgumentError, match="not an IP address"):
        HostTable().enter(text)
