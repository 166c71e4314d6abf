"""Networks against Python's `ipaddress`."""

from __future__ import annotations

import ipaddress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_dissect.decode.addresses import HostSet, parse_network
from roce_dissect.decode.hosts import HostTable
from roce_dissect.errors import ArgumentError

addresses = st.ip_addresses() | st.ip_addresses(v=4).map(lambda one: ipaddress.ip_address(f"::ffff:{one}"))


def as_host(address):
    """An address as the tables have it: IPv4 where it is mapped."""
    return getattr(address, "ipv4_mapped", None) or address


@given(st.lists(addresses, min_size=1, max_size=8), st.data())
def test_against_ipaddress(hosts, data):
    table = HostTable(32)
    codes = np.array([table.enter(str(one)) for one in hosts])
    near = data.draw(st.sampled_from(hosts) | addresses)
    prefix = data.draw(st.integers(0, near.max_prefixlen))
    network = ipaddress.ip_network((near, prefix), strict=False)
    if near.version == 6 and near.ipv4_mapped is not None and prefix >= 96:
        network = ipaddress.ip_network((near.ipv4_mapped, prefix - 96), strict=False)
    inside = HostSet([parse_network(f"{near}/{prefix}", "host")]).of(codes, table)
    expected = [as_host(one).version == network.version and as_host(one) in network for one in hosts]
    assert inside.tolist() == expected


def test_any_of_several_and_the_reserved_row():
    table = HostTable(8)
    codes = np.array([0, table.enter("10.0.0.1"), table.enter("fd00::1"), table.enter("10.0.1.1")])
    some = HostSet([parse_network("10.0.0.0/24", "host"), parse_network("fd00::1", "host")])
    assert some.of(codes, table).tolist() == [False, True, True, False]
    every = HostSet([parse_network("0.0.0.0/0", "host"), parse_network("::/0", "host")])
    assert every.of(codes, table).tolist() == [False, True, True, True]  # 0 stands for hosts that are not known
    assert HostSet([]).of(codes, table).tolist() == [False] * 4


def test_lids():
    """Hosts of native InfiniBand: no network holds them."""
    table = HostTable(8)
    codes = np.array([table.enter("LID 5"), table.enter("LID 6"), table.enter("fd00::1")])
    for text in ("LID 5", " LID 5 "):
        assert HostSet([parse_network(text, "host")]).of(codes, table).tolist() == [True, False, False]
    assert HostSet([parse_network("::/0", "host")]).of(codes, table).tolist() == [False, False, True]


@pytest.mark.parametrize(
    "text", ["LID x", "", "10.0.0", "10.0.0.1/33", "fd00::1/129", "host", "10.0.0.1-9", "fe80::1%eth0x/64/2"]
)
def test_wrong_ones(text):
    with pytest.raises(ArgumentError, match=r"^host: "):
        parse_network(text, "host")
