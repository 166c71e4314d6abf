"""What verifying ICRCs costs: ``python benchmarks/icrc.py [--packets 2e4] [--runs 15]``.

CPU time of `verify_icrcs` alone, over one batch that was decoded before: whole RC WRITE MIDDLEs of RoCE v2 over IPv4
with random payloads and right ICRCs. Then that of `Judge.judge`, which calls it and judges the standing: of whole
packets, and of the same ones sliced at 128 bytes, where there is no ICRC to verify.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import struct
import time
import zlib

import numpy as np

from roce_dissect.capture.reader import Records
from roce_dissect.capture.states import BATCH
from roce_dissect.decode.decoder import Decoder
from roce_dissect.decode.icrc import verify_icrcs
from roce_dissect.decode.standing import STANDING_COLUMNS, Judge
from roce_dissect.terms import IcrcStatus

SLICE = 128


def frame(payload: bytes, psn: int) -> bytes:
    """An Ethernet frame with its ICRC."""
    size = 12 + len(payload) + 4
    ip = struct.pack(">BBHHHBBHII", 0x45, 0x68, 28 + size, psn & 0xFFFF, 0x4000, 64, 17, 0, 0x0A000001, 0x0A000002)
    udp = struct.pack(">HHHH", 0xC123, 4791, 8 + size, 0)
    bth = struct.pack(">BBHII", 7, 0x40, 0xFFFF, 17, psn)
    masked = bytearray(b"\xff" * 8 + ip + udp + bth)
    for at in (9, 16, 18, 19, 34, 35, 40):
        masked[at] = 0xFF
    crc = zlib.crc32(payload, zlib.crc32(masked))
    return bytes(12) + b"\x08\x00" + ip + udp + bth + payload + crc.to_bytes(4, "little")


def batch(frames: list[bytes]) -> Records:
    """Frames as the reader hands them over."""
    sizes = np.array([len(one) for one in frames], np.int64)
    count = len(frames)
    return Records(
        np.frombuffer(bytearray(b"".join(frames)), np.uint8),
        count,
        np.cumsum(sizes) - sizes,
        sizes,
        sizes.copy(),
        np.arange(count, dtype=np.int64),
        np.ones(count, np.uint16),
        1,
    )


def median_cost(work, runs: int) -> float:
    """CPU seconds."""
    taken = []
    for _ in range(runs + 1):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=lambda text: int(float(text)), default=8_000)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    count = min(options.packets, BATCH)
    rng = np.random.default_rng(4791)
    decoder = Decoder(STANDING_COLUMNS)
    out = np.zeros(count, np.uint8)
    for payload in (0, 64, 256, 1024, 4096):
        records = batch([frame(rng.bytes(payload), psn) for psn in range(count)])
        rows = decoder.decode(records)
        cost = median_cost(lambda: verify_icrcs(decoder.columns, rows, records.data, out), options.runs)  # noqa: B023
        if rows != count or (out != IcrcStatus.GOOD).any():
            raise SystemExit("a packet of the benchmark is not good")
        covered = 20 + 8 + 12 + payload
        judge = Judge(True, len(decoder.hosts.words), BATCH)
        whole = median_cost(lambda: judge.judge(decoder.columns, rows, records.data), options.runs)  # noqa: B023
        print(
            f"payload {payload:4}: {cost / count * 1e9:4.0f} ns a packet, {covered * count / cost / 1e9:5.2f} GB/s; "
            f"judged {whole / count * 1e9:4.0f} ns"
        )
    sliced = dataclasses.replace(records, cap_len=np.full(count, SLICE, np.int64))
    rows = decoder.decode(sliced)
    judge = Judge(True, len(decoder.hosts.words), BATCH)
    cost = median_cost(lambda: judge.judge(decoder.columns, rows, sliced.data), options.runs)
    print(f"sliced at {SLICE}: judged {cost / count * 1e9:.1f} ns a packet")


if __name__ == "__main__":
    main()
