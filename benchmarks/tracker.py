"""What following the flows costs: ``python benchmarks/tracker.py [--packets 1e6] [--runs 7]``.

CPU time of `FlowTable.feed` alone, over columns that were decoded before: 128 and 10,000 streams, healthy and with
loss. Run it from two checkouts in turn to compare them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from roce_dissect.decode.blocks import Blocks
from roce_dissect.flows.flow_table import FLOW_COLUMNS, FlowTable

HERE = Path(__file__).resolve().parent
#: Name: QP pairs, and the share of messages (of eight packets) that lose one.
CASES = {
    "128 streams, healthy": (64, 0.0),
    "128 streams, 5 % of packets lost": (64, 0.4),
    "10,000 streams, healthy": (5000, 0.0),
    "10,000 streams, 5 % of packets lost": (5000, 0.4),
}


def cost(blocks: list) -> float:
    """CPU seconds of tracking all packets once."""
    flows = FlowTable()
    started = time.process_time()
    for columns, rows in blocks:
        flows.feed(columns, rows)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, (pairs, loss) in CASES.items():
            path = Path(folder) / "capture.pcap"
            made = [str(options.packets), str(path), "--pairs", str(pairs), "--loss", str(loss)]
            subprocess.run([sys.executable, HERE / "generate.py", *made], check=True)
            blocks = [
                ({key: values[: block.rows].copy() for key, values in block.columns.items()}, block.rows)
                for block in Blocks([str(path)], FLOW_COLUMNS, keep_going=False)
            ]
            packets = sum(rows for _, rows in blocks)
            cost(blocks)
            taken = statistics.median(cost(blocks) for _ in range(options.runs))
            print(f"{name}: {taken / packets * 1e9:.1f} ns a packet")


if __name__ == "__main__":
    main()
