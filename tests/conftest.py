"""What all tests share."""

from __future__ import annotations

import importlib.util
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
