"""Which form of the kernels is in use."""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect import layout
from roce_dissect.analysis import forms
from roce_dissect.analysis.summary import capture_summary
from roce_dissect.decode.standing import Judgements
from roce_dissect.flows.flow_table import FlowTable


@pytest.mark.parametrize("name", ["records", "kernel", "ledger", "episodes", "messages", "responder", "tracker"])
def test_one_interpreted_kernel_is_enough(monkeypatch, name):
    for other, module in forms._KERNELS.items():
        monkeypatch.setattr(module, "COMPILED", other != name)
    assert forms.interpreted_kernels() == [name]
    assert capture_summary([], np.zeros(layout.TALLIES, np.int64), FlowTable(), Judgements())["compiled"] is False


def test_all_compiled(monkeypatch):
    for module in forms._KERNELS.values():
        monkeypatch.setattr(module, "COMPILED", True)
    assert forms.interpreted_kernels() == []
    assert capture_summary([], np.zeros(layout.TALLIES, np.int64), FlowTable(), Judgements())["compiled"] is True
