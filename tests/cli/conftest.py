"""Running the command line, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import roce_dissect
from roce_dissect.cli import main

#: Where the package under test comes from, for a process that starts elsewhere.
ORIGIN = str(Path(roce_dissect.__path__[0]).parent)


def environment(**more):
    """Environment of a process that imports the same package, in plain terminal terms."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    return kept | {"PYTHONPATH": ORIGIN, "PYTHONDONTWRITEBYTECODE": "1"} | more


@pytest.fixture
def command(tmp_path):
    """``command("analyze", path, stdin=...)``: a process of its own; ``status``, ``out``, ``err`` (lines)."""

    def run(*arguments, stdin=None, **more):
        done = subprocess.run(
            [sys.executable, "-m", "roce_dissect", *map(os.fspath, arguments)],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=tmp_path,
            env=environment(**more),
            timeout=120,
            check=False,
        )
        err = done.stderr.decode().splitlines()
        # where the kernels are not compiled, each command says so first
        err = [line for line in err if "the slow form is in use" not in line]
        return SimpleNamespace(status=done.returncode, out=done.stdout.decode(), err=err)

    return run


@pytest.fixture
def call(capsys):
    """``call("analyze", path)``: the same in this process, which is quicker."""

    def run(*arguments):
        status = main([os.fspath(argument) for argument in arguments])
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines() if "the slow form is in use" not in line]
        return SimpleNamespace(status=status, out=out, err=lines)

    return run
