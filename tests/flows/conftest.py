"""What the tests of flows/ share: packets by hand, the tracker's forms, the Soft-RoCE captures."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def build():
    """The module `build`: packet columns by hand."""
    spec = importlib.util.spec_from_file_location("flows_build", Path(__file__).with_name("build.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["compiled", "interpreted"])
def tracker(request, load_form):
    """Each form of the tracker that there is."""
    return load_form("roce_dissect.flows.tracker", request.param)


@pytest.fixture
def track(build, tracker):
    """``track(packets, **options)``: a `Tracked`, in each form of the tracker."""

    def run(packets, **options):
        return build.Tracked(packets, tracker, **options)

    return run
