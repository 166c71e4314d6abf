"""Print the rxe counters of every Soft-RoCE capture, the kernel's beside ours.

Each host's counters are compared at its own capture point. What packets cannot give has its reason in the last column;
`tests/flows/kernels.py` holds the reasons, and the tests hold us to them.

Run as ``python tools/kernel_table.py [--all] [CAPTURES]``; without CAPTURES, ``ROCE_DISSECT_CAPTURES`` says where.
The exit status is 1 if a counter differs for no known reason.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent


def kernels() -> ModuleType:
    """Return `tests/flows/kernels.py` as a module."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "flows")]
    return importlib.import_module("kernels")


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(description="The kernels' rxe counters beside ours, for every Soft-RoCE capture.")
    parser.add_argument("--all", action="store_true", help="also what is 0 at both")
    parser.add_argument("captures", nargs="?", help="folder of the captures (default: ROCE_DISSECT_CAPTURES)")
    options = parser.parse_args(arguments)
    shared = kernels()
    folder = shared.captures(options.captures)
    if folder is None:
        parser.error("no CAPTURES given, and ROCE_DISSECT_CAPTURES is not set")
    if not (folder / "truth.json").is_file():
        parser.error(f"{folder} holds no truth.json")

    line = "{:<26} {:<7} {:<23} {:>7} {:>7}  {}"
    print(line.format("set", "host", "counter", "kernel", "ours", ""))
    equal = reasons = unknown = zero = 0
    for row in shared.rows(folder):
        if not (row.kernel or row.ours):
            zero += 1
            if not options.all:
                continue
        else:
            equal += row.equal
            reasons += not row.equal and bool(row.reason)
            unknown += not row.equal and not row.reason
        remark = "equal" if row.equal else row.reason or "NO REASON KNOWN"
        print(line.format(row.name, row.host, row.counter, row.kernel, row.ours, remark))
    unexplained = f", {unknown} of them for no known reason" if unknown else ""
    print(f"{equal} equal, {reasons + unknown} not, with reasons{unexplained} ({zero} more are 0 at both)")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
