"""What all tests share."""

from __future__ import annotations

import gzip
import importlib.util
import os
import shutil
from pathlib import Path

import pytest


def _module(name, path):
    # Under --import-mode=importlib the folder of the tests is not on the import path.
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def load_form():
    """``load_form(module_name, "compiled" | "interpreted")``: see `tests/forms.py`."""
    return _module("roce_dissect_test_forms", Path(__file__).with_name("forms.py")).load


@pytest.fixture(scope="session")
def frames():
    """The module `tests/decode/frames.py`: frames by hand."""
    return _module("decode_frames", Path(__file__).parent / "decode" / "frames.py")


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


@pytest.fixture(scope="session")
def tshark():
    """The tshark that is installed."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    from roce_dissect.analysis.tshark import find_tshark

    return find_tshark()


@pytest.fixture
def fake_tshark(tmp_path, monkeypatch):
    """``fake_tshark(script)``: a shell script is the only tshark on PATH; in it ``$real`` is the true one."""

    def make(script):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        path = folder / "tshark"
        path.write_text(f"#!/bin/sh\nreal={shutil.which('tshark')}\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return path

    return make
