"""Figures as people read them, on screens and in pictures: three digits and a unit."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["clock", "count", "duration", "plural", "size"]


def count(number: int) -> str:
    """A number with its thousands apart: ``1,687``."""
    return f"{number:,}"


def plural(number: int, noun: str, many: str | None = None) -> str:
    """A number with its noun: ``1 packet``, ``1,687 packets``."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def duration(time_ns: int) -> str:
    """A time in the unit that suits it: ``850 ns``, ``6.19 ms``, ``1.52 s``, ``3 min 20 s``; ``0 s`` for none."""
    if time_ns == 0:
        return "0 s"
    for unit, in_ns in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)):
        value = time_ns / in_ns
        if abs(value) < (999.5 if unit != "s" else 119.5):
            return f"{value:.3g} {unit}"
    seconds = round(time_ns / 1_000_000_000)
    if seconds < 7200:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def size(octets: int) -> str:
    """Bytes in decimal units: ``64 B``, ``983 kB``, ``1.52 MB``."""
    value = float(octets)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            return f"{value:.3g} {unit}" if abs(value) < 999.5 else f"{value:,.0f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def clock(time_ns: int) -> str:
    """A point in time: ``2026-11-29 13:05:03.269948 UTC``; nanoseconds where there are some.

    Any signed 64-bit number of nanoseconds has a date (1677 to 2262).
    """
    seconds, rest = divmod(time_ns, 1_000_000_000)
    day = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{day}.{rest:09d} UTC" if rest % 1000 else f"{day}.{rest // 1000:06d} UTC"
