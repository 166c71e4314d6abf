"""Starting the live command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import roce_dissect


@pytest.fixture
def start():
    """``start("live", ..., prefix=[...])``: a running process with pipes; killed at the end if it still runs."""
    started = []

    def run(*arguments, prefix=(), stdin=subprocess.DEVNULL, **more):
        environment = os.environ | {"PYTHONPATH": str(Path(roce_dissect.__path__[0]).parent)} | more
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "roce_dissect", *map(os.fspath, arguments)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def wait_until_idle():
    """``wait_until_idle(process)``: until it has started, and then used next to no CPU time for a second."""

    def wait(process):
        spent, since, deadline = -1, time.monotonic(), time.monotonic() + 60
        while time.monotonic() < deadline:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            now = int(fields[11]) + int(fields[12])
            if now > spent + 2:  # polling costs a little
                spent, since = now, time.monotonic()
            elif spent > 20 and time.monotonic() - since > 1.0:
                return
            time.sleep(0.05)
        raise AssertionError("the process never came to rest")

    return wait
