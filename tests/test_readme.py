"""What README promises: its Python runs, and the pages' links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
#: ``[text](target)``, the target without its fragment and title; those with a scheme lead out of the repository.
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")


def test_there_is_python_in_it():
    assert any("import roce_dissect as rd" in block for block in BLOCKS)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[0] for block in BLOCKS])
def test_python_runs(block):
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=ROOT,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_links_are_found():
    assert "docs/json.md" in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
