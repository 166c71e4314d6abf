"""The modules beside the tests of this folder, and the builders of frames and captures that they use."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

_FOLDERS = [Path(__file__).parent, *(Path(__file__).parents[1] / name for name in ("", "capture", "decode"))]
_NAMES = ("forms", "builders", "frames", "harness", "seeds", "mutator")


@pytest.fixture(scope="session")
def fuzz():
    """``fuzz.harness`` and the others. The import path is as before then: other folders have names of their own."""
    sys.path[:0] = map(str, _FOLDERS)
    before = {name: sys.modules.pop(name, None) for name in _NAMES}
    try:
        modules = {name: importlib.import_module(name) for name in _NAMES}
    finally:
        del sys.path[: len(_FOLDERS)]
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
    return type("Modules", (), modules)


@pytest.fixture(scope="session")
def both(fuzz):
    """The harness with the compiled kernels, and with the interpreted ones."""
    return [fuzz.harness.Harness(form) for form in ("compiled", "interpreted")]


@pytest.fixture
def agree(fuzz, both):
    """``agree(capture)``: what came of it, the same in both forms."""
    with fuzz.harness.small_tables():

        def run(data):
            outcomes = [one.run(data, keep=True) for one in both]
            fuzz.harness.compare(*outcomes)
            return outcomes[0]

        yield run
