"""A kernel module in its compiled or in its interpreted form."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FORMS = ("compiled", "interpreted")
#: Kernels that are built on another one: both in the same form.
BUILT_ON = {
    "roce_dissect.flows.episodes": "roce_dissect.flows.ledger",
    "roce_dissect.flows.messages": "roce_dissect.flows.episodes",
    "roce_dissect.flows.responder": "roce_dissect.flows.messages",
    "roce_dissect.flows.tracker": "roce_dissect.flows.responder",
}


def load(name: str, form: str) -> ModuleType:
    """Return the module `name` in the form ``"compiled"`` or ``"interpreted"``.

    The compiled form is what a plain import gives where the extension is there; without it the test is skipped. The
    interpreted form is the .py source under another module name, whatever was built beside it.

    Parameters
    ----------
    name : str
        Such as ``"roce_dissect.capture.records"``.
    form : str
        One of `FORMS`.
    """
    if form == "compiled":
        module = importlib.import_module(name)
        if not module.COMPILED:
            pytest.skip(f"{name} is not compiled here")
        return module
    if form != "interpreted":
        raise ValueError(f"{form!r} is none of {FORMS}")
    alias = f"{name}__interpreted"
    if alias not in sys.modules:
        package, _, stem = name.rpartition(".")
        [folder] = importlib.import_module(package).__path__
        path = str(Path(folder) / f"{stem}.py")
        loader = importlib.machinery.SourceFileLoader(alias, path)
        spec = importlib.util.spec_from_file_location(alias, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[alias] = module
        base = BUILT_ON.get(name)
        if base is None:
            loader.exec_module(module)
        else:
            compiled = importlib.import_module(base)
            sys.modules[base] = load(base, form)
            try:
                loader.exec_module(module)
            finally:
                sys.modules[base] = compiled
        assert not module.COMPILED
    return sys.modules[alias]
