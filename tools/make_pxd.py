"""Write the kernels' .pxd files: the constants of a Python module as C enums, and the classes that others are built on.

A kernel in Cython's pure-Python mode takes its constants from a module when it is interpreted
(``from ... import *``), and from the .pxd beside it when it is compiled: a module-level Python constant would be an
object there. A class that a class of another kernel inherits from needs its fields and C methods declared in a .pxd, as
its source annotates them. ``tests`` run this with ``--check``.

Run as ``python tools/make_pxd.py [--check] [KERNEL.pxd ...]``.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent

PREFETCH = """\
cdef extern from *:
    \"\"\"
    #if defined(__GNUC__) || defined(__clang__)
    #define roce_dissect_prefetch(address) __builtin_prefetch(address)
    #else
    #define roce_dissect_prefetch(address) ((void)(address))
    #endif
    \"\"\"
    void prefetch "roce_dissect_prefetch" (const void *address) nogil
"""

#: .pxd <- (constants module, text before the enum).
KERNELS = {
    "roce_dissect/capture/records.pxd": ("roce_dissect.capture.states", ""),
    "roce_dissect/decode/kernel.pxd": ("roce_dissect.layout", PREFETCH),
    "roce_dissect/flows/states.pxd": ("roce_dissect.flows.states", ""),
}
#: .pxd of a class that other kernels build on <- its module.
CLASSES = {
    "roce_dissect/flows/ledger.pxd": "roce_dissect.flows.ledger",
    "roce_dissect/flows/episodes.pxd": "roce_dissect.flows.episodes",
    "roce_dissect/flows/messages.pxd": "roce_dissect.flows.messages",
    "roce_dissect/flows/responder.pxd": "roce_dissect.flows.responder",
}
#: Cython's types as C spells them.
C_TYPES = {
    "longlong": "long long",
    "ulonglong": "unsigned long long",
    "uint": "unsigned int",
    "int": "int",
    "bint": "bint",
    "Py_ssize_t": "Py_ssize_t",
}


def constants(module: ModuleType) -> dict[str, int]:
    """Return the integers of `module` that are written in capitals, its star imports included, as they were defined.

    Raises
    ------
    ValueError
        If one does not fit into a C enum.
    """
    found = {}
    for name, value in vars(module).items():
        if name.startswith("_") or not name.isupper() or isinstance(value, bool) or not isinstance(value, int):
            continue
        if not -(2**31) <= value < 2**31:
            raise ValueError(f"{module.__name__}.{name} = {value} does not fit into a C enum")
        found[name] = int(value)
    return found


def pxd_text(module_name: str, extra: str) -> str:
    """Return the .pxd of one constants module."""
    names = constants(importlib.import_module(module_name))
    lines = [f"# Written by tools/make_pxd.py from {module_name}: change that, not this."]
    if extra:
        lines += [extra.rstrip(), ""]
    lines.append("cdef enum:")
    lines += [f"    {name} = {value}" for name, value in names.items()]
    return "\n".join(lines) + "\n"


def c_type(annotation: ast.expr) -> str:
    """The C type of an annotation such as ``cython.const[cython.uint][::1]``."""
    if isinstance(annotation, ast.Attribute):
        return C_TYPES[annotation.attr]
    if isinstance(annotation, ast.Subscript):
        if ast.unparse(annotation.value) == "cython.const":
            return f"const {c_type(annotation.slice)}"
        return f"{c_type(annotation.value)}[{ast.unparse(annotation.slice).strip('()')}]"
    raise ValueError(f"no C type for {ast.unparse(annotation)}")


def c_method(function: ast.FunctionDef) -> str | None:
    """The declaration of a method that is a C function; None for others."""
    decorators = {ast.unparse(one).partition("(")[0]: one for one in function.decorator_list}
    if "cython.cfunc" not in decorators:
        return None
    raised = decorators["cython.exceptval"]
    assert isinstance(raised, ast.Call)
    given = [f"{c_type(one.annotation)} {one.arg}" for one in function.args.args[1:] if one.annotation is not None]
    assert function.returns is not None
    arguments = ", ".join(["self", *given])
    error = f"except {ast.unparse(raised.args[0])}" if raised.args else "noexcept"
    return f"cdef {c_type(function.returns)} {function.name}({arguments}) {error} nogil"


def class_text(module_name: str) -> str:
    """Return the .pxd of the one extension class of a module."""
    tree = ast.parse((ROOT / module_name.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8"))
    [found] = [one for one in tree.body if isinstance(one, ast.ClassDef)]
    lines = [f"# Written by tools/make_pxd.py from {module_name}: change that, not this."]
    bases = [ast.unparse(base) for base in found.bases]
    lines += [f"from roce_dissect.flows.{base.lower()} cimport {base}" for base in bases]
    lines += ["from roce_dissect.flows.states cimport *", ""]
    lines.append(f"cdef class {found.name}({bases[0]}):" if bases else f"cdef class {found.name}:")
    for part in found.body:
        if isinstance(part, ast.AnnAssign):
            lines.append(f"    cdef {c_type(part.annotation)} {ast.unparse(part.target)}")
        elif isinstance(part, ast.FunctionDef) and (declared := c_method(part)):
            lines.append(f"    {declared}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or only compare them; returns the exit status."""
    known = [*KERNELS, *CLASSES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a file is not up to date")
    parser.add_argument("pxd", nargs="*", help=f"which (default: all whose module exists): {', '.join(known)}")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    stale = 0
    for name in options.pxd or known:
        if name not in known:
            parser.error(f"{name} is none of {', '.join(known)}")
        module_name, extra = KERNELS.get(name, (CLASSES.get(name, ""), ""))
        if not options.pxd and not (ROOT / module_name.replace(".", "/")).with_suffix(".py").exists():
            continue
        path = ROOT / name
        text = pxd_text(module_name, extra) if name in KERNELS else class_text(module_name)
        if path.exists() and path.read_text() == text:
            continue
        if options.check:
            print(f"{name} is not up to date: run python tools/make_pxd.py", file=sys.stderr)
            stale = 1
        else:
            path.write_text(text)
            print(f"wrote {name}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
