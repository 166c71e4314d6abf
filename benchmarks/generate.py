"""Synthetic captures for the benchmarks: ``python benchmarks/generate.py PACKETS OUT.pcap [--pairs N] [--loss P]``.

RoCE v2 over IPv4, sliced at 128 bytes, nanosecond pcap: RC WRITEs of eight packets at path MTU 4096 with their ACK,
which is whole and has a right ICRC, on many QP pairs that send in turn. One message in a thousand loses a packet: NAK,
go-back-N. Now and then a CE mark. A
quarter of the pairs is VLAN-tagged. Not a model of a network: just the mix of headers and events of a long capture.
"""

from __future__ import annotations

import argparse
import struct
import zlib
from pathlib import Path

import numpy as np

SNAP = 128
MESSAGE = 8  # packets
MTU = 4096
LOSS = 0.001  # of messages
BLOCK = 1 << 16  # messages made at a time

WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, ACKNOWLEDGE = 6, 7, 8, 17
ACK, NAK = 0x1F, 0x60


def messages(count: int, loss: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Packets of `count` messages: (message, step), step 0 to 7 a request, -1 an ACK, -2 - j a NAK for packet j."""
    lost = np.where(rng.random(count) < loss, rng.integers(0, MESSAGE - 1, count), -1)
    plain = np.array([*range(MESSAGE), -1])
    steps = [
        plain if j < 0 else np.array([*(k for k in range(MESSAGE) if k != j), -2 - j, *range(j, MESSAGE), -1])
        for j in lost.tolist()
    ]
    return np.repeat(np.arange(count), [len(one) for one in steps]), np.concatenate(steps)


def frames(pair, psn, opcode, syndrome, msn, ce, number) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of 16 + SNAP bytes (record header still empty), captured and wire lengths."""
    count = len(pair)
    rows = np.zeros((count, 16 + SNAP), np.uint8)
    answer = opcode == ACKNOWLEDGE
    reth = opcode == WRITE_FIRST
    tagged = pair % 4 == 0
    payload = np.where(answer, 0, MTU)
    wire = 14 + 4 * tagged + 20 + 8 + 12 + 16 * reth + 4 * answer + payload + 4
    for vlan in (False, True):
        at = np.flatnonzero(tagged == vlan)
        part = rows[at]
        back = answer[at]
        host = pair[at] % 16
        part[:, 16:22] = (2, 0, 0, 0, 0, 1)
        part[:, 22:28] = (2, 0, 0, 0, 0, 2)
        ip = 30 + 4 * vlan
        if vlan:
            part[:, 28:32] = (0x81, 0x00, 0x60, 0x64)  # PCP 3, VLAN 100
        part[:, ip - 2] = 0x08
        part[:, ip] = 0x45
        part[:, ip + 1] = 26 << 2 | np.where(ce[at], 3, 2)
        put(part, ip + 2, wire[at] - 14 - 4 * vlan, 2)
        put(part, ip + 4, number[at], 2)
        part[:, ip + 8] = 64
        part[:, ip + 9] = 17
        for place, side in ((ip + 12, back), (ip + 16, ~back)):
            part[:, place] = 10
            part[:, place + 2] = host
            part[:, place + 3] = 1 + side
        put(part, ip + 20, 49152 + pair[at] * 131 % 16384, 2)
        put(part, ip + 22, np.full(len(at), 4791), 2)
        put(part, ip + 24, wire[at] - 34 - 4 * vlan, 2)
        bth = ip + 28
        part[:, bth] = opcode[at]
        part[:, bth + 1] = 0x40
        part[:, bth + 2 : bth + 4] = 0xFF
        put(part, bth + 5, 0x100 + 2 * pair[at] + back, 3)
        part[:, bth + 8] = np.where(opcode[at] == WRITE_LAST, 0x80, 0)
        put(part, bth + 9, psn[at], 3)
        first = reth[at]
        part[first, bth + 16 : bth + 20] = 0x7F
        put(part, bth + 20, np.where(first, pair[at] + 1, 0), 4)
        put(part, bth + 24, np.where(first, MESSAGE * MTU, 0), 4)
        part[back, bth + 12] = syndrome[at][back]
        put(part, bth + 13, np.where(back, msn[at], part[:, bth + 13].astype(np.int64) << 16), 3)
        put_icrcs(part, ip, bth + 16, back)
        rows[at] = part
    return rows, np.minimum(wire, SNAP), wire


def put_icrcs(rows: np.ndarray, ip: int, end: int, whole: np.ndarray) -> None:
    """ICRCs of the packets that are not sliced, behind their last header."""
    covered = rows[whole, ip:end]
    covered[:, [1, 8, 10, 11, 26, 27, 32]] = 0xFF
    before = zlib.crc32(b"\xff" * 8)
    icrcs = [zlib.crc32(row.tobytes(), before) for row in covered]
    rows[whole, end : end + 4] = np.array(icrcs, "<u4").view(np.uint8).reshape(-1, 4)


def put(rows: np.ndarray, at: int, values: np.ndarray, size: int) -> None:
    """Big-endian integers into columns."""
    for byte in range(size):
        rows[:, at + byte] = values >> 8 * (size - 1 - byte) & 255


def write(packets: int, out: Path, seed: int, pairs: int, loss: float) -> None:
    """Write a capture of so many packets."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 1 << 24, pairs)
    done_messages = np.zeros(pairs, np.int64)
    time_ns = 1_700_000_000_000_000_000
    written = 0
    with out.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP, 1))
        while written < packets:
            owner = rng.integers(0, pairs, BLOCK)
            message, step = messages(BLOCK, loss, rng)
            order = np.argsort(owner, kind="stable")
            rank = np.empty(BLOCK, np.int64)  # of the message among its pair's
            sizes = np.bincount(owner, minlength=pairs)
            rank[order] = np.arange(BLOCK) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            index = (done_messages[owner] + rank)[message]
            done_messages += sizes
            pair = owner[message]
            nak = step <= -2
            answer = step < 0
            base = start[pair] + index * MESSAGE
            psn = base + np.where(nak, -2 - step, np.where(answer, MESSAGE - 1, step)) & 0xFFFFFF
            opcode = np.select(
                [answer, step == 0, step == MESSAGE - 1], [ACKNOWLEDGE, WRITE_FIRST, WRITE_LAST], WRITE_MIDDLE
            )
            keep = slice(0, packets - written)
            ce = rng.random(len(step)) < 0.002
            rows, captured, wire = frames(
                pair[keep],
                psn[keep],
                opcode[keep],
                np.where(nak, NAK, ACK)[keep],
                (index + 1 & 0xFFFFFF)[keep],
                (ce & ~answer)[keep],
                (written + np.arange(len(step)) & 0xFFFF)[keep],
            )
            times = time_ns + np.cumsum(wire * 8 // 100 + rng.integers(10, 60, len(wire)))
            time_ns = int(times[-1])
            header = np.stack([times // 10**9, times % 10**9, captured, wire], axis=1).astype("<u4")
            rows[:, :16] = header.view(np.uint8)
            file.write(rows[np.arange(16 + SNAP) < (captured + 16)[:, None]].tobytes())
            written += len(wire)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packets", type=lambda text: int(float(text)))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--loss", type=float, default=LOSS, help="share of messages that lose a packet")
    options = parser.parse_args()
    write(options.packets, options.out, options.seed, options.pairs, options.loss)


if __name__ == "__main__":
    main()
