"""What decoding costs: ``python benchmarks/kernel.py [--packets 2e5] [--runs 15]``.

CPU time of `Decoder.decode` alone, over records that were read before, with the columns that the tracker and the ICRC
pass read: plain frames, and the same ones in VXLAN, in turn. Run it from two checkouts in turn to compare them.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from roce_dissect.capture.reader import Records, open_capture
from roce_dissect.columns import JUDGED
from roce_dissect.decode.decoder import Decoder
from roce_dissect.decode.replies import REPLY_COLUMNS
from roce_dissect.decode.standing import STANDING_COLUMNS
from roce_dissect.flows.flow_table import FLOW_COLUMNS

HERE = Path(__file__).resolve().parent


def owned(records: Records) -> Records:
    """A batch whose arrays the reader does not use again."""
    arrays = {field.name: getattr(records, field.name) for field in dataclasses.fields(records)}
    copies = {name: value.copy() for name, value in arrays.items() if isinstance(value, np.ndarray)}
    return dataclasses.replace(records, **copies)


def in_vxlan(records: Records) -> Records:
    """The same frames with 50 bytes before each: Ethernet, IPv4, UDP, VXLAN."""
    frames = []
    for at, size, wire in zip(records.offset, records.cap_len, records.wire_len, strict=True):
        inner = records.data[int(at) : int(at) + int(size)].tobytes()
        ip = struct.pack(">BBHHHBBHII", 0x45, 0, int(wire) + 36, 0, 0, 64, 17, 0, 0x0A090902, 0x0A090901)
        udp = struct.pack(">HHHHII", 0xD001, 4789, int(wire) + 16, 0, 8 << 24, 4242 << 8)
        frames.append(bytes(12) + b"\x08\x00" + ip + udp + inner)
    sizes = np.array([len(frame) for frame in frames], np.int64)
    return dataclasses.replace(
        records,
        data=np.frombuffer(b"".join(frames), np.uint8),
        offset=np.cumsum(sizes) - sizes,
        cap_len=sizes,
        wire_len=records.wire_len + 50,
    )


def cost(decoder: Decoder, batches: list[Records]) -> float:
    """CPU seconds of decoding all batches once."""
    started = time.process_time()
    for records in batches:
        decoder.decode(records)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=lambda text: int(float(text)), default=200_000)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "capture.pcap"
        subprocess.run([sys.executable, HERE / "generate.py", str(options.packets), path], check=True)
        with open_capture(str(path)) as capture:
            plain = [owned(records) for records in capture]
    read = (*FLOW_COLUMNS, *STANDING_COLUMNS, *REPLY_COLUMNS)
    decoder = Decoder(tuple(name for name in dict.fromkeys(read) if name not in JUDGED), replies=True)
    cases = {"plain": plain, "VXLAN": [in_vxlan(records) for records in plain]}
    packets = sum(records.count for records in plain)
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(options.runs + 1):
        for name, batches in cases.items():
            taken[name].append(cost(decoder, batches))
    for name, runs in taken.items():
        print(f"{name}: {statistics.median(runs[1:]) / packets * 1e9:.1f} ns a packet")


if __name__ == "__main__":
    main()
