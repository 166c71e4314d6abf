"""The package itself: its names, its guard, and what imports cost."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import roce_dissect.layers as layers

ROOT = Path(__file__).resolve().parents[2]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


def test_all_names_every_public_layer():
    defined = {
        name
        for name, value in vars(layers).items()
        if not name.startswith("_") and callable(value) and value.__module__.startswith("roce_dissect.layers")
    }
    assert set(layers.__all__) == defined - {"bind"}
    assert len(layers.__all__) == len(set(layers.__all__))


def test_no_name_is_scapys_too():
    import scapy.all

    assert not [name for name in layers.__all__ if hasattr(scapy.all, name)]


def test_cannot_be_loaded_a_second_time_from_the_repository_root():
    result = run("import layers")
    assert result.returncode == 1
    assert "ImportError: these Scapy layers are imported as roce_dissect.layers, not as layers" in result.stderr


def test_importing_the_package_alone_binds_nothing():
    result = run(
        "import roce_dissect, sys; assert 'scapy' not in sys.modules\n"
        "from scapy.layers.inet import UDP; from scapy.layers.l2 import Ether\n"
        "assert not [b for b in UDP.payload_guess if b[0].get('dport') == 4791]\n"
        "assert not [b for b in Ether.payload_guess if b[0].get('type') == 0x8915]\n"
    )
    assert result.returncode == 0, result.stderr


def test_docstring_example():
    result = run("import doctest, roce_dissect.layers as m; raise SystemExit(doctest.testmod(m).failed)")
    assert result.returncode == 0, result.stdout


def test_examples_of_the_documentation():
    page = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8").replace("```", "")
    examples = doctest.DocTestParser().get_doctest(page, {}, "docs/layers.md", None, 0)
    assert len(examples.examples) > 5
    assert doctest.DocTestRunner().run(examples).failed == 0
