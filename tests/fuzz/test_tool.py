"""``tools/fuzz.py`` around the engine: what it keeps, what it reports, what it asks for."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "fuzz.py"
LOG = """INFO: seed corpus: files: 73
#137	INITED cov: 1242 ft: 3153 corp: 63/34Kb exec/s: 0 rss: 118Mb
#140	NEW    cov: 1243 ft: 3160 corp: 64/34Kb lim: 1562 exec/s: 70 rss: 118Mb L: 9/10 MS: 1 CMP-
#150	REDUCE cov: 1243 ft: 3160 corp: 64/33Kb lim: 1562 exec/s: 75 rss: 118Mb L: 8/10 MS: 1 EraseBytes-
#200	DONE   cov: 1250 ft: 3200 corp: 70/35Kb lim: 1562 exec/s: 100 rss: 118Mb
"""


@pytest.fixture
def tool(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("fuzz_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "FOUND", tmp_path / "found")
    module.FOUND.mkdir()
    return module


def test_what_is_kept(tool, tmp_path, capsys):
    """Named by how it failed and by its content; a slow input is none that failed."""
    for name in ("crash-1", "crash-2", "slow-unit-3", "corpus_entry"):
        (tmp_path / name).write_bytes(name[:5].encode())
    kinds = [("crash", "crash-1"), ("crash", "crash-2"), ("slow", "slow-unit-3"), ("raised", "corpus_entry")]
    tool.keep([(kind, tmp_path / name) for kind, name in kinds])
    kept = sorted(path.name for path in tool.FOUND.iterdir())
    assert [name.partition("-")[0] for name in kept] == ["crash", "raised"]  # the crashes are the same input
    assert all(len(name.partition("-")[2]) == 12 for name in kept)
    assert capsys.readouterr().out.count("kept: found/") == 3


def test_growth_is_reported(tool, tmp_path, capsys):
    log = tmp_path / "worker.log"
    log.write_text(LOG)
    tool.report(log, fine=True)
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[0].split()) == "137 captures: 1242 edges, 3153 features, 63 kept, 0 a second"
    assert lines[-1].split()[0] == "200"
    tool.report(log, fine=False)
    assert "INFO: seed corpus" in capsys.readouterr().out


def test_what_is_missing_is_named(tool, monkeypatch):
    monkeypatch.setattr(tool.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install clang"):
        tool.build()
    monkeypatch.setattr(tool.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install 'atheris"):
        tool.runtime()
