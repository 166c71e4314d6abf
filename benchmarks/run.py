"""The figures of docs/performance.md: ``python benchmarks/run.py [--packets 1e7] [--runs 3]``.

CPU time (user and system) of whole processes, as the operating system accounts it; ratios come from runs in turn.
tshark is timed on a tenth of the packets and scaled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / "pcaps" / "imp_loss1_write.server.pcap.gz"
FIELDS = (
    "frame.time_epoch", "frame.len", "ip.src", "ip.dst", "ip.dsfield.ecn", "udp.srcport",
    "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.a",
    "infiniband.aeth.syndrome", "infiniband.aeth.msn",
    "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen",
)  # fmt: skip


def cost(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak resident MiB of a command that must succeed."""
    with Path(os.devnull).open("w") as nothing:
        process = subprocess.Popen(command, stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def median(runs: int, *commands: list[str]) -> list[tuple[float, float]]:
    """Median CPU and greatest RSS of each command, run in turn after one warm-up."""
    for command in commands:
        cost(command)
    taken = [[cost(command) for command in commands] for _ in range(runs)]
    return [
        (statistics.median(run[i][0] for run in taken), max(run[i][1] for run in taken)) for i in range(len(commands))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    analyze = [sys.executable, "-m", "roce_dissect", "analyze"]
    with tempfile.TemporaryDirectory() as folder:
        long, short = Path(folder) / "long.pcap", Path(folder) / "short.pcap"
        part = options.packets // 10
        for count, path in ((options.packets, long), (part, short)):
            subprocess.run([sys.executable, HERE / "generate.py", str(count), path], check=True)
        fields = [word for field in FIELDS for word in ("-e", field)]
        ours, theirs = median(
            options.runs, [*analyze, str(long)], ["tshark", "-n", "-r", str(short), "-T", "fields", *fields]
        )
        tshark = theirs[0] * options.packets / part
        print(f"analyze, {options.packets} sliced packets: {ours[0]:.2f} s CPU, {ours[1]:.0f} MiB RSS")
        print(
            f"tshark -T fields, {len(FIELDS)} fields, scaled from {part}: {tshark:.1f} s CPU, "
            f"{tshark / ours[0]:.0f} times as much"
        )
        _, tenth = cost([*analyze, str(short)])
        print(f"analyze, {part} packets: {tenth:.0f} MiB RSS")
    help_, small = median(options.runs, [*analyze[:-1], "--help"], [*analyze, str(SAMPLE)])
    print(f"--help: {help_[0] * 1e3:.0f} ms CPU")
    print(f"analyze of a small capture: {small[0] * 1e3:.0f} ms CPU, {small[1]:.0f} MiB RSS")


if __name__ == "__main__":
    main()
