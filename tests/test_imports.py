"""The architecture, read from the import statements: a module imports only lower ranks, and little at start-up."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import roce_dissect as rd

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "roce_dissect"

#: Rank of each module or folder of the package; `layers` stands aside.
RANKS = {
    "_version": 0,
    "errors": 0,
    "spec": 0,
    "terms": 0,
    "units": 0,
    "layout": 1,
    "columns": 1,
    "capture": 2,
    "decode": 3,
    "flows": 4,
    "analysis": 5,
    "synth": 5,
    "compare": 5,
    "check": 5,
    "rules": 6,
    "dissect": 6,
    "api": 7,
    "storage": 7,
    "distributed": 7,
    "plot": 8,
    "report": 8,
    "cli": 8,
    "live": 8,
    "doctor": 8,
    "__main__": 9,
}
SIDE = "layers"
#: What the layers may import: they define headers and know nothing of captures.
SIDE_MAY = {"spec", "errors"}

#: Imports of a higher rank, each within a function or for type checkers only: (module, imported folder).
EXCEPTIONS = {
    ("api", "plot"),  # Analysis.plot
    ("__init__", "api"),  # names are loaded when they are first used
}

#: Third-party packages that a rank may import at module level.
THIRD_PARTY = {
    0: set(),
    1: {"numpy"},
    2: {"numpy", "cython", "zstandard"},
    3: {"numpy", "cython", "isal"},
    4: {"numpy", "pandas", "pyarrow", "cython"},
    5: {"numpy", "pandas", "pyarrow"},
    6: {"numpy", "pandas"},
    7: {"numpy", "pandas", "pyarrow"},
    8: {"numpy", "pandas", "pyarrow", "click", "rich"},
    9: set(),
}
#: Too slow for start-up: only within functions, wherever.
LATE_ONLY = {"matplotlib", "plotly", "jinja2", "scapy", "dask", "IPython"}
#: Modules that are themselves only loaded within functions, and may import what is slow.
LATE_MODULES = {"plot", "report", "dissect"}


#: Modules without ``__all__``, by name.
WITHOUT_ALL = {
    "roce_dissect.__main__",  # nothing is imported from it
    # constants: all of them are for the kernels, which take them by a star import
    "roce_dissect.layout",
    "roce_dissect.capture.states",
    "roce_dissect.flows.states",
    "roce_dissect.spec.headers",
    "roce_dissect.spec.net",
    # kernels: others know them as modules, in either form
    "roce_dissect.decode.kernel",
    "roce_dissect.flows.episodes",
    "roce_dissect.flows.ledger",
    "roce_dissect.flows.messages",
    "roce_dissect.flows.responder",
    "roce_dissect.flows.tracker",
}


class Imports(ast.NodeVisitor):
    """(imported name, line, whether at module level for real) of a file."""

    def __init__(self, tree):
        self.found = []
        self.depth = 0
        self.visit(tree)

    def visit_FunctionDef(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_If(self, node):
        for_types = ast.unparse(node.test).endswith("TYPE_CHECKING")
        self.depth += for_types
        self.generic_visit(node)
        self.depth -= for_types

    def visit_Import(self, node):
        self.found += [(alias.name, node.lineno, self.depth == 0) for alias in node.names]

    def visit_ImportFrom(self, node):
        assert node.level == 0, f"line {node.lineno}: a relative import"
        if node.module == "roce_dissect":
            self.found += [(f"roce_dissect.{alias.name}", node.lineno, self.depth == 0) for alias in node.names]
        else:
            self.found.append((node.module, node.lineno, self.depth == 0))


def sources():
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def part(path):
    """Folder or module of the package that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def rank(name):
    return 99 if name == "__init__" else RANKS[name]


def imports_of(path):
    return Imports(ast.parse(path.read_text(encoding="utf-8"))).found


def test_every_module_has_a_rank():
    assert {part(path) for path in sources()} <= {*RANKS, SIDE, "__init__"}


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_only_lower_ranks(path):
    me = part(path)
    for name, line, at_module_level in imports_of(path):
        if not name.startswith("roce_dissect"):
            continue
        other = name.split(".")[1] if "." in name else "__init__"
        where = f"{path.name}:{line} imports {name}"
        if other == me:
            continue
        if me == SIDE:
            assert other in SIDE_MAY, where
        elif (me, other) in EXCEPTIONS:
            assert not at_module_level, where
        elif other == SIDE:
            # the layers load Scapy: late only, and not below the slow path of decoding
            assert not at_module_level or me in LATE_MODULES, where
            assert rank(me) >= RANKS["decode"], where
        elif other == "__init__" or other not in RANKS:
            assert rank(me) > RANKS["api"], where  # names of the public face
        elif rank(me) == rank(other):
            # siblings of one rank, such as cli and plot
            assert rank(me) in (0, 1) or rank(me) >= RANKS["plot"], where
        else:
            assert rank(other) < rank(me), where


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_third_party(path):
    me = part(path)
    for name, line, at_module_level in imports_of(path):
        top = name.split(".")[0]
        if top in sys.stdlib_module_names or top in ("roce_dissect", "__future__"):
            continue
        where = f"{path.name}:{line} imports {name}"
        if me == SIDE:
            assert top == "scapy", where
        elif top in LATE_ONLY:
            assert not at_module_level or me in LATE_MODULES, where
        elif at_module_level:
            assert top in THIRD_PARTY[0 if me == "__init__" else RANKS[me]], where


def test_exceptions_are_in_use():
    """An exception that nothing needs any more must go."""
    used = set()
    for path in sources():
        for name, _, _ in imports_of(path):
            if name.startswith("roce_dissect."):
                used.add((part(path), name.split(".")[1]))
    assert used >= EXCEPTIONS


def module_of(path):
    return ".".join(("roce_dissect", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@cache
def imported_names():
    """Module -> names that other modules of the package take from it."""
    modules = {module_of(path) for path in sources()}
    found = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in modules and node.module != module_of(path):
                names = {alias.name for alias in node.names if f"{node.module}.{alias.name}" not in modules}
                found.setdefault(node.module, set()).update(names - {"*"})
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_all_is_exact(path):
    """Each name of ``__all__`` exists, once; and what another module imports is in it."""
    name, tree = module_of(path), ast.parse(path.read_text(encoding="utf-8"))
    holds_nothing = all(isinstance(node, ast.Expr) for node in tree.body)  # a package's docstring
    if name in WITHOUT_ALL or holds_nothing:
        assert not any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__" for node in tree.body)
        return
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [one for one in module.__all__ if not hasattr(module, one)] == []
    assert sorted(imported_names().get(name, set()) - set(module.__all__)) == []


def test_public_face():
    public = [
        "Analysis", "ArgumentError", "CaptureError", "LiveError", "NotACaptureError", "RoceDissectError", "__version__",
        "analyze", "iter_packets", "read_packets", "track",
    ]  # fmt: skip
    assert sorted(rd.__all__) == sorted(public)
    assert dir(rd) == sorted(public)
    for name in public:
        assert getattr(rd, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = rd.no_such_name


def loaded_by(*arguments):
    """Top-level modules that a fresh interpreter has loaded after it ran."""
    code = "import sys, atexit; atexit.register(lambda: print('LOADED', *{m.split('.')[0] for m in sys.modules}))\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "\n".join(arguments)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


SLOW = {"pandas", "scapy", "matplotlib", "pyarrow", "numpy", "IPython"}


def test_import_is_cheap():
    assert not loaded_by("import roce_dissect") & SLOW
    assert loaded_by("import roce_dissect", "roce_dissect.analyze") >= {"pandas", "numpy"}


def test_help_is_cheap():
    run = "import runpy; sys.argv = ['roce-dissect', '--help']; runpy.run_module('roce_dissect', run_name='__main__')"
    assert not loaded_by(run) & {"pandas", "scapy", "matplotlib"}


def test_analysis_needs_no_scapy_and_no_matplotlib(samples):
    """CM datagrams are read without the Scapy layers, and no picture is drawn that nobody asked for."""
    path = str(samples / "cm_rping_ipv4.client.pcap.gz")
    loaded = loaded_by("import roce_dissect", f"roce_dissect.analyze({path!r})")
    assert not loaded & {"scapy", "matplotlib"}


def test_pxd_files_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "tools/make_pxd.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_python_holds_the_sources():
    """Each kernel's source is beside its compiled form, so that the interpreted form is always at hand."""
    for kernel in ("capture/records", "decode/kernel", "flows/tracker"):
        assert (PACKAGE / f"{kernel}.py").is_file()
        assert (PACKAGE / f"{kernel}.pxd").is_file()
