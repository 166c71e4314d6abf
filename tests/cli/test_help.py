"""``--help`` and ``--version``: quick, and true."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import roce_dissect
from roce_dissect.analysis.forms import interpreted_kernels

NAMES = ("analyze", "connections", "messages", "events", "packets")
HEAVY = ("pandas", "numpy", "scapy", "matplotlib", "pyarrow", "rich")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], *([name, "--help"] for name in (*NAMES, "verify"))])
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys; from roce_dissect.cli import main; status = main(sys.argv[1:]);"
        f"print('LOADED', [name for name in {HEAVY} if name in sys.modules], status)"
    )
    folder = Path(roce_dissect.__path__[0]).parent
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[-1] == "LOADED [] 0", done.stdout + done.stderr


def test_help_lists_every_command_with_its_own_first_line(call):
    listed = call("--help").out
    for name in (*NAMES, "verify", "plot", "live"):
        assert name in listed
        assert call(name, "--help").status == 0


CHOOSING = ("--filter", "--time", "--host", "--qp", "--packets")


@pytest.mark.parametrize("name", [*NAMES, "plot"])
def test_every_command_that_reads_captures_can_choose(call, name):
    """In its help and in the document; --count is another word for --packets where it means nothing else."""
    text = call(name, "--help").out
    document = (Path(roce_dissect.__path__[0]).parent / "docs" / "filters.md").read_text(encoding="utf-8")
    for option in CHOOSING:
        assert f"\n  {option}" in text, option
        assert f"| `{option} " in document, option
    assert ("--packets, --count" in text) == (name not in ("connections", "messages", "events"))
    assert len(re.findall(r"--count\b", text)) == 1


def test_version_names_the_form(call):
    version = call("--version")
    assert version.status == 0
    assert version.out.startswith(f"roce-dissect {roce_dissect.__version__} (")
    assert ("compiled)" in version.out) == (not interpreted_kernels())


def test_no_command_shows_help_and_fails(command):
    nothing = command()
    assert nothing.status == 2
    assert any("analyze" in line for line in nothing.err)


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], ["--frobnicate"], ["analyze"], ["analyze", "--format", "yaml", "x"]]
)
def test_wrong_arguments_are_one_line(command, arguments):
    wrong = command(*arguments)
    assert wrong.status == 2
    assert len(wrong.err) == 1
    assert wrong.err[0].startswith("roce-dissect: ")
    assert wrong.out == ""


@pytest.fixture
def interpreted_copy(tmp_path):
    """A copy of the package without its compiled kernels."""
    folder = Path(roce_dissect.__path__[0])
    target = tmp_path / "copy"
    shutil.copytree(
        folder, target / "roce_dissect", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "layers")
    )
    return target


def test_the_slow_form_says_so(interpreted_copy, samples):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "roce_dissect", *arguments], capture_output=True, text=True, cwd=interpreted_copy
        )

    capture = str(samples / "cm_refused.client.pcap.gz")
    assert "the slow form" in run("--version").stdout
    for command in NAMES:
        done = run(command, capture)
        assert done.returncode == 0, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "the slow form is in use" in done.stderr
