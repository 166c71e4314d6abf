"""Fixtures of the layers' tests."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from scapy.config import conf


def _load(name: str, path: Path) -> ModuleType:
    """Load a module that is no test. Under --import-mode=importlib no folder of the tests is on the import path."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# Decorators need strategies when a test module is imported, so that a fixture would come too late.
for shared in ("strategies", "expected"):
    if shared not in sys.modules:
        _load(shared, Path(__file__).parents[1] / f"{shared}.py")


@pytest.fixture(scope="session")
def wireshark() -> ModuleType:
    """`tests/layers/wireshark.py`: packets beside tshark's reading of them."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    name = "roce_dissect_test_wireshark"
    return sys.modules.get(name) or _load(name, Path(__file__).with_name("wireshark.py"))


@pytest.fixture
def captures() -> Path:
    """Folder of real captures, named by the environment variable ``ROCE_DISSECT_CAPTURES``."""
    folder = os.environ.get("ROCE_DISSECT_CAPTURES")
    if not folder:
        pytest.skip("ROCE_DISSECT_CAPTURES does not name a folder of captures")
    path = Path(folder)
    return path / "softroce" if (path / "softroce").is_dir() else path


@pytest.fixture
def samples() -> Path:
    """Folder of the sample captures in the repository."""
    return Path(__file__).parents[2] / "pcaps"


@pytest.fixture(autouse=True)
def errors_are_raised() -> Iterator[None]:
    """Scapy hides an exception in a layer behind a `Raw`: here it shall be seen."""
    before, conf.debug_dissector = conf.debug_dissector, True
    yield
    conf.debug_dissector = before
