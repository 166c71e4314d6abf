"""Units of axes, widths of bins, and the names of a connection in titles."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

__all__ = ["bin_width_ns", "connection_heading", "ends", "rate", "rate_unit", "time_unit"]

_TIMES = (
    (3_600_000_000_000, "h"),
    (60_000_000_000, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "µs"),
    (1, "ns"),
)
_RATES = ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s"))


def time_unit(span_ns: int) -> tuple[int, str]:
    """Nanoseconds in a unit that gives an axis over `span_ns` numbers from about 2 to a few thousand, and its name.

    Examples
    --------
    >>> time_unit(5_400_000_000), time_unit(160_000_000)
    ((1000000000, 's'), (1000000, 'ms'))
    """
    for unit_ns, name in _TIMES:
        # Minutes and hours are no decimal units, so they wait until seconds become hard to read.
        least = 10 if unit_ns > 1_000_000_000 else 2
        if span_ns >= least * unit_ns:
            return unit_ns, name
    return _TIMES[-1]


def rate_unit(bits_per_second: float) -> tuple[float, str]:
    """Bits per second in a unit that suits a rate, and its name: decimal, as link speeds are."""
    for unit, name in _RATES:
        if bits_per_second >= unit:
            return unit, name
    return _RATES[-1]


def rate(bits_per_second: float) -> str:
    """A rate with three digits: ``48.5 Mb/s``."""
    unit, name = rate_unit(bits_per_second)
    return f"{bits_per_second / unit:.3g} {name}"


def bin_width_ns(span_ns: int, packets: int) -> int:
    """A round bin width (1, 2 or 5 times a power of ten, at least 1 µs) for a rate over `span_ns`.

    Some 150 bins at most, and fewer where packets are few: bins of one or two packets would show the clock of the
    capture, not the rate of a transfer.

    Examples
    --------
    >>> bin_width_ns(1_000_000_000, 100_000)
    10000000
    """
    bins = min(max(packets // 4, 20), 150)
    wanted = max(span_ns / bins, 1000.0)
    power = 10 ** math.floor(math.log10(wanted))
    return next(int(step * power) for step in (1, 2, 5, 10) if step * power >= wanted * (1 - 1e-9))


def ends(connection: pd.Series[Any]) -> tuple[str, str]:
    """Both ends of a row of the connections table: ``192.168.100.2 QP 48``."""

    def end(name: str) -> str:
        number = connection[f"{name}_qp"]
        return f"{connection[f'{name}_address']} QP {'?' if pd.isna(number) else f'{int(number):#x}'}"

    return end("a"), end("b")


def connection_heading(connection: pd.Series[Any]) -> str:
    """Name of a connection for a title."""
    a, b = ends(connection)
    life = "" if int(connection["life"]) <= 1 else f", life {int(connection['life'])}"
    return f"Connection {int(connection['connection'])}: {a} \N{LEFT RIGHT ARROW} {b} ({connection['transport']}{life})"
