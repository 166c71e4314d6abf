"""What choosing packets costs: ns of CPU a packet, of the evaluation alone, on batches as the decoder hands them out.

python benchmarks/filter.py
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from roce_dissect.capture.states import BATCH
from roce_dissect.decode.hosts import HostTable
from roce_dissect.decode.selection import Chooser, Selection

ROUNDS = 200
CHOICES = {
    "one comparison": Selection("dscp == 26"),
    "two comparisons": Selection("dscp == 26 and psn > 1000"),
    "two with arithmetic": Selection("dscp == 26 and psn % 2 == 0"),
    "words and a mask": Selection('icrc_status == "bad" or syndrome & 0x60 == 0x60'),
    "an address": Selection('src == "10.0.0.1"'),
    "--host": Selection(hosts=["10.0.0.0/8"]),
    "--qp": Selection(qps=[17]),
}


def main() -> None:
    """Print a line for each choice."""
    rng = np.random.default_rng(0)
    hosts = HostTable()
    codes = np.array([hosts.enter(f"10.0.{number >> 8}.{number & 255}") for number in range(1000)], np.uint32)
    columns = {name: rng.integers(0, 1 << 24, BATCH).astype(np.uint32) for name in ("psn", "dest_qp", "src_qp", "vni")}
    columns |= {name: rng.integers(0, 64, BATCH).astype(np.uint8) for name in ("dscp", "icrc_status", "syndrome")}
    columns |= {name: rng.choice(codes, BATCH) for name in ("src", "dst")}
    columns |= {name: np.arange(BATCH, dtype=np.int64) for name in ("time_ns", "frame_key")}
    columns["present"] = np.full(BATCH, 0xFFFFFFFF, np.uint32)
    for name, selection in CHOICES.items():
        chooser = Chooser(selection, hosts)
        chooser.mask(columns, BATCH)
        times = []
        for _ in range(ROUNDS):
            start = time.process_time_ns()
            chooser.mask(columns, BATCH)
            times.append((time.process_time_ns() - start) / BATCH)
        print(f"{name:22} {statistics.median(times):6.2f} ns")


if __name__ == "__main__":
    main()
