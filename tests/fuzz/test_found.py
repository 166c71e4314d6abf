"""Every input that ever failed in the fuzzer: it is read to its end, and both forms say the same of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import roce_dissect as rd

FOUND = sorted(path for path in Path(__file__).with_name("found").iterdir() if path.suffix != ".md")


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_replay(path, agree):
    data = path.read_bytes()
    outcome = agree(data)
    result = rd.analyze(io.BytesIO(data), errors="keep")
    if "refused" in outcome:
        assert not result.capture["complete"]
    else:
        assert result.capture["packets"] == outcome["frames"][0]


def test_all_of_them_are_kept():
    """A name says how it failed, and the README what that was."""
    told = Path(__file__).with_name("found").joinpath("README.md").read_text(encoding="utf-8")
    assert FOUND
    assert [path.name for path in FOUND if path.name not in told] == []
    assert {path.name.partition("-")[0] for path in FOUND} <= {"crash", "timeout", "oom", "raised"}
