"""Write the kernels' .pxd files: the constants of a Python module as C enums.

A kernel in Cython's pure-Python mode takes its constants from a module when it is interpreted
(``from ... import *``), and from the .pxd beside it when it is compiled: a module-level Python constant would be an
object there. ``tests`` run this with ``--check``.

Run as ``python tools/make_pxd.py [--check] [KERNEL.pxd ...]``.
"""

from __future__ import annotations

import argparse
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


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or only compare them; returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the kernels' .pxd files from their constants modules.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a file is not up to date")
    parser.add_argument("pxd", nargs="*", help=f"which (default: all whose module exists): {', '.join(KERNELS)}")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    stale = 0
    for name in options.pxd or KERNELS:
        if name not in KERNELS:
            parser.error(f"{name} is none of {', '.join(KERNELS)}")
        module_name, extra = KERNELS[name]
        if not options.pxd and not (ROOT / module_name.replace(".", "/")).with_suffix(".py").exists():
            continue
        path = ROOT / name
        text = pxd_text(module_name, extra)
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
