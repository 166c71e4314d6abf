"""The loop of a live capture: take in packets, show the tables now and then, end when asked to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roce_dissect.api import Analysis, Session

__all__ = ["Watch"]

#: A refresh that costs so much of the time between two is put off: packets come first.
_SHARE = 0.1


@dataclass
class Watch:
    """When to stop and when to show.

    Parameters
    ----------
    seconds, packets : optional
        Ends; the first that is reached counts.
    refresh_s : float
        Least time between two refreshes.
    show : callable, optional
        Called with the analysis so far.
    wanted : callable
        Asked after each step whether to end.
    stop : callable, optional
        Called at the end: it makes the source end, after what is still under way.
    """

    wanted: Callable[[], bool]
    seconds: float | None = None
    packets: int | None = None
    refresh_s: float = 1.0
    show: Callable[[Analysis], None] | None = None
    stop: Callable[[], None] | None = None

    def run(self, session: Session) -> bool:
        """Feed the session until the end. Returns whether the source itself came to its end."""
        started = time.monotonic()
        next_show = started
        taken = 0
        steps = iter(session)
        for rows in steps:
            taken += rows
            now = time.monotonic()
            if self._enough(now - started, taken):
                break
            if self.show is not None and now >= next_show:
                self.show(session.analysis(final=False))
                next_show = now + max(self.refresh_s, (time.monotonic() - now) / _SHARE)
        else:
            return True
        if self.stop is None:
            return False
        self.stop()
        for _ in steps:  # what the tool still had
            pass
        return True

    def _enough(self, seconds: float, packets: int) -> bool:
        return (
            self.wanted()
            or (self.seconds is not None and seconds >= self.seconds)
            or (self.packets is not None and packets >= self.packets)
        )
