"""Units of axes, widths of bins, names of connections."""

from __future__ import annotations

import pandas as pd
import pytest

from roce_dissect.plot import units


@pytest.mark.parametrize(
    ("span_ns", "name"),
    [(0, "ns"), (900, "ns"), (2_500, "µs"), (160_000_000, "ms"), (5_400_000_000, "s"), (400 * 10**9, "s"),
     (1200 * 10**9, "min"), (40 * 3600 * 10**9, "h")],
)  # fmt: skip
def test_time_axis_has_readable_numbers(span_ns, name):
    assert units.time_unit(span_ns)[1] == name


@pytest.mark.parametrize(
    ("bits", "text"),
    [(0, "0 b/s"), (999, "999 b/s"), (48_500_000, "48.5 Mb/s"), (1e9, "1 Gb/s"), (3.972e11, "397 Gb/s")],
)
def test_rates_are_decimal(bits, text):
    assert units.rate(bits) == text


@pytest.mark.parametrize("span_ns", [0, 1, 999, 53_000_000, 217_000_000, 10**10, 10**15])
@pytest.mark.parametrize("packets", [1, 100, 10_000, 10**7])
def test_bins_are_round_at_least_a_microsecond_and_not_too_many(span_ns, packets):
    width = units.bin_width_ns(span_ns, packets)
    assert str(width).rstrip("0") in ("1", "2", "5")
    assert width >= 1000
    assert span_ns / width <= 150


def test_a_connection_is_named_by_its_ends():
    row = {"connection": 3, "transport": "RC", "life": 2, "a_address": "fd00::1", "a_qp": pd.NA, "b_address": "fd00::2"}
    assert (
        units.connection_heading(pd.Series(row | {"b_qp": 17}))
        == "Connection 3: fd00::1 QP ? ↔ fd00::2 QP 0x11 (RC, life 2)"
    )
