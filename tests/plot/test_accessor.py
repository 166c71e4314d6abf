"""``result.plot``: lazy, silent, and without traces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from matplotlib.axes import Axes

ROOT = Path(__file__).parents[2]


def _run(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MPLBACKEND")}
    paths = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True, check=True
    )


def test_pictures_are_axes(sample):
    plot = sample("imp_loss1_write.server").plot
    assert isinstance(plot.sequence(), Axes)
    assert isinstance(plot.rate(), Axes)


def test_matplotlib_is_loaded_with_the_first_picture_only(tmp_path):
    code = f"""
import sys, roce_dissect as rd
result = rd.analyze({str(ROOT / "pcaps" / "imp_loss1_write.server.pcap.gz")!r})
plot = result.plot
assert "matplotlib" not in sys.modules
plot.sequence()
assert "matplotlib" in sys.modules
"""
    _run(code, tmp_path)


def test_without_a_display_nothing_is_printed_and_no_file_appears(tmp_path):
    code = f"""
import roce_dissect as rd
result = rd.analyze({str(ROOT / "pcaps" / "imp_loss1_write.server.pcap.gz")!r})
result.plot.sequence(1).figure.canvas.draw()
result.plot.rate().figure.canvas.draw()
"""
    finished = _run(code, tmp_path)
    assert (finished.stdout, finished.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []
