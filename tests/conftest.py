"""What all tests share."""

from __future__ import annotations

import gzip
import importlib.util
import os
from pathlib import Path

import pytest


def _forms():
    # Under --import-mode=importlib the folder of the tests is not on the import path.
    spec = importlib.util.spec_from_file_location("roce_dissect_test_forms", Path(__file__).with_name("forms.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def load_form():
    """``load_form(module_name, "compiled" | "interpreted")``: see `tests/forms.py`."""
    return _forms().load


@pytest.fixture(scope="session")
def samples():
    """Folder of the sample captures that come with the project."""
    return Path(__file__).parents[1] / "pcaps"


@pytest.fixture(scope="session")
def softroce():
    """Folder of the Soft-RoCE captures, with the kernel's counters in ``truth.json``."""
    folder = os.environ.get("ROCE_DISSECT_CAPTURES")
    if not folder:
        pytest.skip("ROCE_DISSECT_CAPTURES is not set")
    path = Path(folder)
    return path / "softroce" if (path / "softroce").is_dir() else path


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """``plain(path)``: the same capture without gzip, once a session."""
    folder = tmp_path_factory.mktemp("plain")

    def unpack(path):
        target = folder / path.name.removesuffix(".gz")
        if not target.exists():
            target.write_bytes(gzip.decompress(path.read_bytes()))
        return target

    return unpack


@pytest.fixture(autouse=True)
def fixed_seed(monkeypatch):
    """The hashes' seed is random, and with it where a host pair lies in its table: here it is always the same."""
    monkeypatch.setattr("secrets.randbits", lambda bits: 0x5EED)
