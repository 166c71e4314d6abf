"""The notebooks run from a clean kernel, write nothing, and are committed without outputs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import roce_dissect

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.name for path in NOTEBOOKS]


def test_there_are_notebooks():
    assert NAMES == ["01_first_look.ipynb", "02_where_did_the_time_go.ipynb", "06_scapy_layers.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_is_committed_without_outputs(path):
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert notebook.nbformat == 4
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert cell.metadata == {}, cell.id
        if cell.cell_type == "code":
            assert cell.outputs == [], cell.id
            assert cell.execution_count is None, cell.id


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_cells_have_names_that_stay(path):
    identities = [cell.id for cell in nbformat.read(path, 4).cells]
    assert len(set(identities)) == len(identities)
    # Words, not the random identities that a notebook editor gives: a change shows as a change of this cell only.
    assert all(identity.replace("-", "").isalpha() for identity in identities)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_runs_from_a_clean_kernel(path, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "pcaps", tmp_path / "pcaps")
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copy(path, folder)
    before = sorted(tmp_path.rglob("*"))
    # The kernel shall use the same copy of the package as the tests, installed or not.
    package = str(Path(roce_dissect.__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(folder / path.name, 4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output for output in outputs if output.output_type == "error"] == []
    errors = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    assert errors == []  # no warnings either
    assert any("image/png" in output.get("data", {}) for output in outputs)
    shutil.rmtree(tmp_path / "ipython", ignore_errors=True)
    assert sorted(tmp_path.rglob("*")) == before
