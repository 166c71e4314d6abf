"""Captures written by hand, field by field: nothing here uses the code under test."""

from __future__ import annotations

import random
import struct

FRAME = bytes.fromhex("020000000001020000000002 0800") + bytes(range(46))

PCAP_MAGIC = {"micro": 0xA1B2C3D4, "nano": 0xA1B23C4D}


def pcap_header(order="<", unit="micro", snaplen=65535, network=1, version=(2, 4)):
    return struct.pack(order + "IHHiIII", PCAP_MAGIC[unit], *version, 0, 0, snaplen, network)


def pcap_record(seconds, fraction, data, wire=None, order="<", captured=None):
    captured = len(data) if captured is None else captured
    return struct.pack(order + "IIII", seconds, fraction, captured, len(data) if wire is None else wire) + data


def block(kind, body, order="<", length=None, trailer=None):
    body += bytes(-len(body) % 4)
    length = len(body) + 12 if length is None else length
    trailer = length if trailer is None else trailer
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", trailer)


def section(order="<", options=b"", version=(1, 0)):
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, *version, -1) + options, order)


def option(code, value, order="<"):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(link_type=1, snaplen=0, resolution=None, offset=None, order="<"):
    options = b""
    if resolution is not None:
        options += option(9, bytes([resolution]), order)
    if offset is not None:
        options += option(14, struct.pack(order + "q", offset), order)
    if options:
        options = option(2, b"eth0", order) + options + option(0, b"", order)
    return block(1, struct.pack(order + "HHI", link_type, 0, snaplen) + options, order)


def enhanced(stamp, data, wire=None, index=0, order="<", captured=None, options=b""):
    captured = len(data) if captured is None else captured
    wire = len(data) if wire is None else wire
    body = struct.pack(order + "IIIII", index, stamp >> 32, stamp & 0xFFFFFFFF, captured, wire)
    return block(6, body + data + bytes(-len(data) % 4) + options, order)


def simple(data, wire=None, order="<"):
    return block(3, struct.pack(order + "I", len(data) if wire is None else wire) + data, order)


def obsolete(stamp, data, wire=None, index=0, drops=0, order="<"):
    wire = len(data) if wire is None else wire
    body = struct.pack(order + "HHIIII", index, drops, stamp >> 32, stamp & 0xFFFFFFFF, len(data), wire)
    return block(2, body + data, order)


def small_pcap(order="<", unit="micro", frames=8):
    """Frames of 60 bytes down, the last ones sliced."""
    return pcap_header(order, unit) + b"".join(
        pcap_record(1_700_000_000 + i, 999 - i, FRAME[: 60 - 7 * i], 60, order) for i in range(frames)
    )


def small_pcapng(order="<"):
    """Two sections, three interfaces, each kind of block."""
    other = ">" if order == "<" else "<"
    return (
        section(order, option(4, b"by hand", order) + option(0, b"", order))
        + interface(1, 262144, order=order)
        + interface(113, 0, resolution=9, offset=1000, order=order)
        + enhanced(
            1_700_000_000_000_001, FRAME, order=order, options=option(2, bytes(4), order) + option(0, b"", order)
        )
        + block(0x12345, b"unknown", order)
        + enhanced(1_700_000_000_000_000_002, FRAME[:21], 60, 1, order)
        + block(5, struct.pack(order + "III", 0, 1, 2), order)
        + simple(FRAME[:40], 40, order)
        + block(4, bytes(4), order)
        + obsolete(1_700_000_000_000_003, FRAME[:33], 77, 0, 5, order)
        + block(0x0BAD, struct.pack(order + "I", 32473) + b"data", order)
        + section(other)
        + interface(1, 50, resolution=0x80 | 30, order=other)
        + simple(FRAME[:50], 60, other)
        + enhanced(1_700_000_000 << 30 | 1 << 29, FRAME[:50], 60, order=other)
    )


def mutants(seed, count):
    """Yield `count` damaged captures: bits, bytes and 32-bit numbers changed, pieces cut, doubled and moved."""
    rng = random.Random(seed)
    originals = [small_pcap(o, u) for o in "<>" for u in ("micro", "nano")] + [small_pcapng(o) for o in "<>"] * 3
    edge = [0, 1, 3, 4, 11, 12, 13, 16, 20, 28, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFC, 0xFFFFFFFF]
    edge += [262144, 262145, 64 << 20, (64 << 20) + 4]
    for _ in range(count):
        data = bytearray(rng.choice(originals))
        for _ in range(rng.choice((1, 1, 2, 3, 6))):
            at = rng.randrange(len(data)) if data else 0
            match rng.randrange(7):
                case 0:
                    data[at : at + 1] = bytes([rng.randrange(256)])
                case 1 | 2:
                    at &= ~3
                    data[at : at + 4] = rng.choice(edge).to_bytes(4, rng.choice(("little", "big")))
                case 3:
                    del data[at:]
                case 4:
                    del data[at : at + rng.randrange(1, 40)]
                case 5:
                    data[at:at] = data[at : at + rng.randrange(1, 80)]
                case 6:
                    at &= ~3
                    near = int.from_bytes(data[at : at + 4], "little") + rng.choice((-4, -1, 1, 4))
                    data[at : at + 4] = (near & 0xFFFFFFFF).to_bytes(4, "little")
            if not data:
                break
        yield bytes(data)
