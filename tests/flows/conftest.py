"""What the tests of flows/ share: packets by hand, the tracker's forms, the Soft-RoCE captures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def build():
    """The module `build`: packet columns by hand."""
    spec = importlib.util.spec_from_file_location("flows_build", Path(__file__).with_name("build.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def p(build):
    """``p(operation, psn, ms, side="A", **more)``: a packet; A's requests go to QP 17, B's answers to QP 18."""

    def make(operation, psn, ms, side="A", **more):
        ends = {"A": (build.A, build.B), "B": (build.B, build.A)}[side]
        return build.packet(operation, psn % (1 << 24), ms, *ends, **more)

    return make


@pytest.fixture(scope="session")
def kernels():
    """The module `kernels`: captures beside the counters of the kernels that sent and received them."""
    spec = importlib.util.spec_from_file_location("flows_kernels", Path(__file__).with_name("kernels.py"))
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
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
