"""Ranges of capture time: ``1.5..2`` in seconds since the first frame, ``13:05:03..13:05:04``, or with a date."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from roce_dissect.errors import ArgumentError

__all__ = ["TimeRange", "parse_time_range"]

_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND
_MOST = 1 << 62  # beyond any time of a capture, and far from the end of 64 bits

_SECONDS = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(\.\d+)?)?")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ Tt](\S+?))?\s*([Zz]|UTC|GMT|[+-]\d\d:?\d\d)?")
_FORM = "a range of time is FROM..TO: 1.5..2 (seconds since the first frame), 13:05:03..13:05:04, 2026-11-29 13:05:03.."


@dataclass(frozen=True, slots=True)
class _Moment:
    """A point in time: `ns` since the epoch, since the first frame, or since midnight of the first frame's day."""

    ns: int
    since: str  # "epoch", "start", "midnight"

    def absolute(self, start_ns: int) -> int:
        """Nanoseconds since the epoch, in a capture that begins at `start_ns`."""
        origin = {"epoch": 0, "start": start_ns, "midnight": start_ns // _DAY * _DAY}[self.since]
        return max(-_MOST, min(origin + self.ns, _MOST))


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From one moment to another, both inclusive; None: without end.

    Attributes
    ----------
    text : str
        As it was given.
    """

    text: str
    begin: _Moment | None
    end: _Moment | None

    def bounds(self, start_ns: int) -> tuple[int | None, int | None]:
        """Both ends in ns since the epoch, for a capture whose first frame has the time `start_ns`."""
        first = None if self.begin is None else self.begin.absolute(start_ns)
        last = None if self.end is None else self.end.absolute(start_ns)
        return first, last


def parse_time_range(text: str) -> TimeRange:
    """The range that a text names.

    Parameters
    ----------
    text : str
        ``FROM..TO``, of which one may be missing.

    Raises
    ------
    ArgumentError
        It is no range, or ends before it begins.
    """
    first, dots, last = text.partition("..")
    if not dots or not (first.strip() or last.strip()):
        raise ArgumentError(f"time: {text!r:.60}: {_FORM}")
    begin, end = _moment(first.strip(), text), _moment(last.strip(), text)
    if begin is not None and end is not None and begin.since == end.since and end.ns < begin.ns:
        raise ArgumentError(f"time: {text!r:.60} ends before it begins")
    return TimeRange(text, begin, end)


def _moment(text: str, whole: str) -> _Moment | None:
    if not text:
        return None
    if _SECONDS.fullmatch(text):
        return _Moment(_nanoseconds(text), "start")
    try:
        clock = _CLOCK.fullmatch(text)
        if clock is not None:
            return _Moment(_of_day(clock), "midnight")
        date = _DATE.fullmatch(text)
        if date is not None:
            return _Moment(_of_date(date), "epoch")
    except ValueError:
        pass
    raise ArgumentError(f"time: {text!r:.60} is no time, in {whole!r:.80}: {_FORM}")


def _nanoseconds(seconds: str) -> int:
    """Exactly, not by way of a float; more than nine digits behind the point are cut."""
    return int(Decimal(seconds) * _SECOND)


def _of_day(clock: re.Match[str]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in clock.group(1, 2, 3))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(clock[0])
    return ((hours * 60 + minutes) * 60 + seconds) * _SECOND + _nanoseconds(clock[4] or "0")


def _of_date(date: re.Match[str]) -> int:
    """A date, perhaps with a time of day and a time zone; UTC where it names none."""
    ns = 0
    if date[4]:
        clock = _CLOCK.fullmatch(date[4])
        if clock is None:
            raise ValueError(date[4])
        ns = _of_day(clock)
    zone = date[5] or "Z"
    offset = timedelta()
    if zone[0] in "+-":
        offset = timedelta(hours=int(zone[:3]), minutes=int(zone[0] + zone[-2:]))
    midnight = datetime(*map(int, date.group(1, 2, 3)), tzinfo=timezone(offset))  # type: ignore[misc, arg-type]
    return int((midnight - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * _SECOND + ns
