"""Mutations that know records and blocks: what is inside changes, and the lengths around it still fit.

A mutation of the bare bytes mostly breaks a length near the beginning, and nothing behind it is read any more. So most
mutations here take one frame, or one block, and leave its container in order; the others are of the bare bytes, so that
lengths lie, too.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

_ORDERS = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}
_SECTION = b"\x0a\x0d\x0d\x0a"
_ENHANCED = 6

#: (bytes, most bytes) -> mutated bytes: the engine's own mutation.
Mutate = Callable[[bytes, int], bytes]


def mutate(data: bytes, most: int, seed: int, bare: Mutate) -> bytes:
    """Return a mutation of the capture `data`, at most `most` bytes."""
    rng = random.Random(seed)
    if rng.random() < 0.15:
        return bare(data, most)
    if data[:4] in _ORDERS and len(data) >= 24:
        made = _records(data, most, rng, bare, _ORDERS[data[:4]])
    elif data[:4] == _SECTION and len(data) >= 28:
        made = _blocks(data, most, rng, bare)
    else:
        made = b""
    return made if 0 < len(made) <= most else bare(data, most)


def _records(data: bytes, most: int, rng: random.Random, bare: Mutate, order: str) -> bytes:
    """A classic pcap file with one record changed, doubled, moved or left out, or with another header."""
    header, found, at = data[:24], [], 24
    while at + 16 <= len(data):
        captured = struct.unpack_from(order + "I", data, at + 8)[0]
        frame = data[at + 16 : at + 16 + captured]
        found.append((data[at : at + 16], frame))
        at += 16 + len(frame)
    if not found or rng.random() < 0.05:
        return header[:20] + bare(header[20:], 4).ljust(4, b"\0")[:4] + data[24:]  # the link type
    chosen = rng.randrange(len(found))
    head, frame = found[chosen]
    kind = rng.random()
    if kind < 0.75:
        frame = bare(frame, max(1, most - len(data) + len(frame)))
        wire = max(len(frame), struct.unpack_from(order + "I", head, 12)[0]) if rng.random() < 0.3 else len(frame)
        found[chosen] = head[:8] + struct.pack(order + "II", len(frame), wire), frame
    elif kind < 0.8:
        found[chosen] = bare(head, 16).ljust(16, b"\0"), frame
    else:
        found = _reordered(found, chosen, rng)
    return header + b"".join(head + frame for head, frame in found)


def _reordered(found: list, chosen: int, rng: random.Random) -> list:
    """One piece doubled, moved, or left out."""
    piece = found[chosen]
    kind = rng.randrange(3)
    if kind:
        found = found[:chosen] + found[chosen + 1 :]
    if kind < 2 or not found:
        found.insert(rng.randrange(len(found) + 1), piece)
        if kind == 0 and rng.random() < 0.5:
            found.insert(rng.randrange(len(found) + 1), piece)
    return found


def _blocks(data: bytes, most: int, rng: random.Random, bare: Mutate) -> bytes:
    """A pcapng file with one block changed, doubled, moved or left out; in the byte order of its first section."""
    order = "<" if data[8:9] == b"\x4d" else ">"
    found, at = [], 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < 12 or length % 4 or length > len(data) - at:
            break
        found.append((kind, data[at + 8 : at + length - 4]))
        at += length
    rest = data[at:]  # a section in the other byte order, or what is no block
    if not found:
        return b""
    chosen = rng.randrange(len(found))
    kind, body = found[chosen]
    room = max(4, most - len(data) + len(body))
    if rng.random() < 0.2:
        found = _reordered(found, chosen, rng)
    elif kind == _ENHANCED and len(body) > 20 and rng.random() < 0.7:
        captured = min(struct.unpack_from(order + "I", body, 12)[0], len(body) - 20)
        frame = bare(body[20 : 20 + captured], room)
        lengths = struct.pack(order + "II", len(frame), len(frame))
        found[chosen] = kind, body[:12] + lengths + frame + bytes(-len(frame) % 4) + body[20 + (captured + 3 & ~3) :]
    elif rng.random() < 0.15:
        kind = int.from_bytes(bare(struct.pack("<I", kind), 4), "little")
        found[chosen] = kind, body
    else:
        found[chosen] = kind, bare(body, room)
    return b"".join(_block(order, *piece) for piece in found) + rest


def _block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length
