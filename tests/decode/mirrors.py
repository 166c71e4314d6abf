"""Captures made into doubled ones, byte by byte: what a second capture point would have written of the same frames."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

import roce_dissect as rd


def read_pcap(path):
    """[(time in ns, length on the wire, bytes)] of an Ethernet capture in the classic format."""
    data = Path(path).read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    unit = 1 if data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1000
    records, at = [], 24
    while at + 16 <= len(data):
        seconds, part, captured, length = struct.unpack_from(order + "4I", data, at)
        records.append((seconds * 10**9 + part * unit, length, data[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return records


def write_pcap(path, records, link_type=1):
    """Write records as a nanosecond capture, in the order in which they stand."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link_type)]
    for time, length, frame in records:
        parts.append(struct.pack("<4I", *divmod(time, 10**9), len(frame), length) + frame)
    Path(path).write_bytes(b"".join(parts))
    return str(path)


def merged(*captures):
    """Records of several capture points in order of time; of equal times the earlier point first."""
    return sorted((record for capture in captures for record in capture), key=lambda record: record[0])


def later(records, delay_ns, jitter_ns=0, seed=1):
    """What a point further on sees."""
    waits = np.random.default_rng(seed).integers(0, jitter_ns + 1, len(records))
    return [(time + delay_ns + int(wait), *rest) for (time, *rest), wait in zip(records, waits, strict=True)]


def lossy(records, share, seed=2):
    """Without some of the frames."""
    kept = np.random.default_rng(seed).random(len(records)) >= share
    return [record for record, keep in zip(records, kept, strict=True) if keep]


def sliced(records, snap):
    return [(time, length, frame[:snap]) for time, length, frame in records]


def changed(records, change):
    """With each frame changed: what it gets longer, it gets longer on the wire."""
    return [(time, length + len(change(frame)) - len(frame), change(frame)) for time, length, frame in records]


def tagged(frame):
    """With a VLAN tag."""
    return frame[:12] + b"\x81\x00\x60\x64" + frame[12:]


def routed(frame):
    """Behind a router: other MAC addresses, TTL or hop limit one less, the IPv4 checksum mended (RFC 1624)."""
    out = bytearray(frame)
    out[:12] = bytes.fromhex("0a00000000010a0000000002")
    if out[12:14] == b"\x08\x00" and len(out) > 25:
        out[22] -= 1
        total = (out[24] << 8 | out[25]) + 0x100
        total = (total & 0xFFFF) + (total >> 16)
        out[24:26] = total.to_bytes(2, "big")
    elif out[12:14] == b"\x86\xdd" and len(out) > 21:
        out[21] -= 1
    return bytes(out)


def bridged(frame):
    """Behind something that rewrites MAC addresses."""
    return bytes.fromhex("0a00000000010a0000000002") + frame[12:]


def mirrored(frame):
    """In ERSPAN II over GRE, as a switch sends it to an analyser."""
    erspan = bytes.fromhex("1064000000000000")
    gre = bytes.fromhex("100088be00000000")
    inner = gre + erspan + frame
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(inner), 1, 0, 64, 47, 0, bytes([10, 9, 0, 1]), bytes([10, 9, 0, 2])
    )
    return bytes(12) + b"\x08\x00" + ip + inner


def tables(result):
    """Table name -> its columns but those that name frames, which a doubled capture numbers anew."""
    return {
        name: table.drop(columns=[column for column in table.columns if column.endswith("frame")])
        for name, table in (
            ("streams", result.streams), ("connections", result.connections), ("events", result.events),
            ("episodes", result.episodes), ("latency", result.latency), ("counters", result.counters),
            ("hosts", result.hosts), ("messages", result.messages),
        )
    }  # fmt: skip


def differences(one, other):
    """Where two analyses differ, in columns that do not name frames: {table: [columns]}."""
    found = {}
    for name, table in tables(one).items():
        there = tables(other)[name]
        if len(table) != len(there):
            found[name] = [f"{len(table)} and {len(there)} rows"]
            continue
        columns = [column for column in table.columns if not table[column].equals(there[column])]
        if columns:
            found[name] = columns
    return found


def analyzed(path):
    return rd.analyze(path, messages=True)
