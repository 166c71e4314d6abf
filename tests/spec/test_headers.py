"""Header bits and sizes: IBTA chapter 9."""

from __future__ import annotations

from roce_dissect.spec import headers


def test_sizes():
    sizes = {
        "RDETH": 4, "DETH": 8, "XRCETH": 4, "FETH": 4, "RETH": 16, "ATOMIC_ETH": 28, "AETH": 4, "ATOMIC_ACK_ETH": 8,
        "IMMDT": 4, "IETH": 4, "CNP": 16,
    }  # fmt: skip
    assert {getattr(headers, f"HAS_{name}"): size for name, size in sizes.items()} == headers.EXTENDED_SIZE
    assert (headers.BTH_SIZE, headers.GRH_SIZE, headers.ICRC_SIZE) == (12, 40, 4)
    assert headers.chain_size(0) == 0
    assert headers.chain_size(headers.HAS_RETH | headers.HAS_IMMDT) == 20
    assert headers.chain_size(headers.HAS_ATOMIC_ETH | headers.HAS_RDETH | headers.HAS_DETH) == 40


def test_bits_are_single_and_distinct():
    bits = [value for name, value in vars(headers).items() if name.startswith("HAS_")]
    assert all(value & (value - 1) == 0 for value in bits)
    assert len(set(bits)) == len(bits)
