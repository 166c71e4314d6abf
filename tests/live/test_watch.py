"""The loop: packets first, tables now and then, an end when asked to."""

from __future__ import annotations

import pytest

from roce_dissect.live import watch as module
from roce_dissect.live.watch import Watch


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


class Session:
    """Blocks of ten packets, one every quarter of a second."""

    def __init__(self, clock, blocks, cost=0.0):
        self.clock, self.blocks, self.cost = clock, blocks, cost
        self.taken = self.built = 0
        self.stopped = False

    def __iter__(self):
        for _ in range(self.blocks):
            if self.stopped:
                break
            self.clock.now += 0.25
            self.taken += 10
            yield 10
        if self.stopped:  # what was still in the pipe
            self.taken += 3
            yield 3

    def analysis(self, final=True):
        assert not final
        self.built += 1
        self.clock.now += self.cost
        return self.built

    def stop(self):
        self.stopped = True


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    monkeypatch.setattr(module, "time", one)
    return one


def never():
    return False


def test_tables_are_built_at_the_refresh_and_not_more_often(clock):
    session, shown = Session(clock, 40), []  # ten seconds
    assert Watch(never, refresh_s=2.0, show=shown.append).run(session)
    assert shown == [1, 2, 3, 4, 5]


def test_a_costly_refresh_is_put_off(clock):
    session, shown = Session(clock, 400, cost=1.0), []
    Watch(never, refresh_s=1.0, show=shown.append).run(session)
    # a second of building every ten seconds at most: packets come first
    assert len(shown) <= clock.now // 10


def test_without_a_screen_no_table_is_built(clock):
    session = Session(clock, 40)
    Watch(never).run(session)
    assert (session.built, session.taken) == (0, 400)


@pytest.mark.parametrize(
    ("limits", "taken"), [({"seconds": 2.0}, 80), ({"packets": 35}, 40), ({"seconds": 1.0, "packets": 1000}, 40)]
)
def test_ends(clock, limits, taken):
    session = Session(clock, 40)
    assert not Watch(never, **limits).run(session)
    assert session.taken == taken


def test_what_the_tool_still_held_is_taken_in(clock):
    session = Session(clock, 40)
    assert Watch(never, packets=20, stop=session.stop).run(session)
    assert session.taken == 23


def test_ctrl_c(clock):
    session = Session(clock, 40)
    assert not Watch(lambda: session.taken >= 30).run(session)
    assert session.taken == 30
