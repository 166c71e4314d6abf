"""Fixtures of the layers' tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.config import conf


@pytest.fixture
def captures() -> Path:
    """Folder of real captures, named by the environment variable ``ROCE_DISSECT_CAPTURES``."""
    folder = os.environ.get("ROCE_DISSECT_CAPTURES")
    if not folder:
        pytest.skip("ROCE_DISSECT_CAPTURES does not name a folder of captures")
    path = Path(folder)
    return path / "softroce" if (path / "softroce").is_dir() else path


@pytest.fixture(autouse=True)
def errors_are_raised() -> Iterator[None]:
    """Scapy hides an exception in a layer behind a `Raw`: here it shall be seen."""
    before, conf.debug_dissector = conf.debug_dissector, True
    yield
    conf.debug_dissector = before
