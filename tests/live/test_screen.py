"""The screen on a terminal that is none."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import roce_dissect as rd
from roce_dissect.cli.live import _tables
from roce_dissect.live.screen import Screen


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (46, 12)])
def test_the_tables_of_analyze_in_the_size_of_the_terminal(samples, width, height):
    result = rd.analyze(samples / "imp_loss1_write.server.pcap.gz")
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)
    with Screen(console, "eth7 by dumpcap", _tables) as screen:
        waiting = console.file.getvalue()
        screen.show(result)
        shown = console.file.getvalue()[len(waiting) :]
    assert "eth7 by dumpcap: waiting for packets" in waiting.replace("\n", " ")
    assert "eth7 by dumpcap" in shown
    assert "1,687 RoCE packets" in shown
    assert "Connections" in shown or height < 20
    assert shown.count("\n") < height + 1
    assert console.file.getvalue().count("\x1b[?1049h") == console.file.getvalue().count("\x1b[?1049l") == 1


def test_the_terminal_is_left_as_it_was_after_an_error(samples):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    with pytest.raises(KeyboardInterrupt), Screen(console, "x", _tables):
        raise KeyboardInterrupt
    assert "\x1b[?1049l" in console.file.getvalue()
    assert console.file.getvalue().endswith(("\x1b[?25h", "\x1b[?1049l"))
