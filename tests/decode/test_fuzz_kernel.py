"""Mutated frames through both forms of the kernel: every column, presence, status, tallies and hosts equal.

In the interpreted form a read past the end of the buffer is an IndexError, so that equal results without an exception
also say that the compiled form stayed within its buffer. Fixed seeds: the same cases every time.
"""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from roce_dissect import layout
from roce_dissect.columns import PACKETS
from roce_dissect.decode.decoder import INTERNAL, Decoder
from roce_dissect.spec import headers as bit
from roce_dissect.terms import Status

NAMES = (*(name for name, column in PACKETS.items() if column.field is not None), *INTERNAL)


@pytest.fixture(scope="module")
def both(load_form):
    """Decoders of the two forms."""
    return [
        Decoder(NAMES, kernel=load_form("roce_dissect.decode.kernel", form)) for form in ("compiled", "interpreted")
    ]


def compare(both, batch):
    """Decode with both forms, compare all that comes out; returns rows of the columns."""
    rows = [decoder.decode(batch) for decoder in both]
    assert rows[0] == rows[1]
    for name in NAMES:
        one, other = (decoder.columns[name][: rows[0]] for decoder in both)
        assert (one == other).all(), name
    assert (both[0].tallies == both[1].tallies).all()
    assert both[0].hosts.texts() == both[1].hosts.texts()
    columns = both[0].columns
    count = rows[0]
    assert (columns["payload_offset"][:count] <= columns["cap_len"][:count]).all()
    assert (columns["status"][:count] <= max(Status)).all()
    return count


def random_frame(frames, rng):
    """A frame of any opcode in any encapsulation."""
    opcode = rng.choice(sorted(frames.CHAINS)) if rng.random() < 0.9 else rng.randrange(256)
    payload = rng.randbytes(rng.choice((0, 0, 1, 3, 4, 17, 64)))
    if opcode in frames.CHAINS:
        body = frames.packet(opcode, payload, frames.values_of(opcode, rng), psn=rng.getrandbits(24))
    else:
        body = frames.bth(opcode, rng.getrandbits(24)) + payload
    tags = tuple(
        (rng.choice((0x8100, 0x88A8, 0x9100)), rng.getrandbits(16)) for _ in range(rng.choice((0, 0, 0, 1, 2, 3)))
    )
    sport = rng.getrandbits(16)
    match rng.randrange(4):
        case 0:
            options = rng.randbytes(rng.choice((0, 0, 4, 12, 40)))
            more = rng.choice((0, 0x4000, 0x4000, 0x4000, 0x2000))
            body = frames.udp(body, sport)
            body = frames.ipv4(body, options=options, src=rng.randbytes(4), tos=rng.getrandbits(8), fragment=more)
            return frames.ethernet(body, 0x0800, tags)
        case 1:
            return frames.ethernet(frames.grh(body, src=rng.randbytes(16), tclass=rng.getrandbits(8)), 0x8915, tags)
        case _:
            chain, following = b"", 17
            for _ in range(rng.choice((0, 0, 1, 2, 4))):
                kind = rng.choice((0, 43, 44, 51, 60))
                size = rng.choice((0, 1, 2, 4))
                length = {44: 8, 51: (size + 2) * 4}.get(kind, (size + 1) * 8)
                offset = rng.choice((0, 1, 8, 9)) if rng.random() < 0.2 else 0
                extra = struct.pack(">HI", offset, 7) if kind == 44 else rng.randbytes(length - 2)
                chain = bytes([following, size]) + extra + chain
                following = kind
            body = frames.ipv6(chain + frames.udp(body, sport), following=following, src=rng.randbytes(16))
            return frames.ethernet(body, 0x86DD, tags)


def in_tunnels(frames, frame, rng):
    """A frame in one to six tunnels, the outermost with or without tags."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4, 5, 6))):
        tags = ((0x8100, rng.getrandbits(16)),) if rng.random() < 0.1 else ()
        name = rng.choice((*frames.TUNNELS, "mpls", "pseudowire"))
        if name in ("mpls", "pseudowire"):
            labels = [rng.getrandbits(20) for _ in range(rng.choice((1, 1, 2, 3, 15, 16, 17)))]
            body = frames.network(frame)[1] if name == "mpls" else bytes(4 * rng.getrandbits(1)) + frame
            frame = frames.ethernet(frames.mpls(body, labels), rng.choice((0x8847, 0x8848)), tags)
            continue
        if name == "ipip" and frames.network(frame)[0] not in (0x0800, 0x86DD):
            name = "erspan2"
        protocol, body = frames.TUNNELS[name][0](frame)
        version = rng.choice((4, 6))
        frame = frames.outer_ethernet(frames.outer(body, protocol, version), version, tags)
    return frame


def linked(frames, frame, rng):
    """The same frame with another link type, or none that is known."""
    link_type = rng.choice((0, 12, 14, 101, 108, 113, 147, 197, 228, 229, 247, 276))
    ether_type, body = frames.network(frame) if len(frame) > 30 and rng.random() < 0.9 else (0x0800, frame)
    match link_type:
        case 0 | 108:
            return link_type, struct.pack(rng.choice("<>") + "I", rng.choice((2, 10, 24, 28, 30, 7))) + body
        case 113:
            return link_type, frames.cooked(body, ether_type, rng.choice((1, 772, 824)))
        case 276:
            return link_type, frames.cooked2(body, ether_type, rng.choice((1, 772, 824)))
        case 197 | 247:
            opcode = rng.choice(sorted(frames.CHAINS))
            gid_header = rng.choice((None, {"src": rng.randbytes(16)}))
            packet = frames.packet(opcode, rng.randbytes(rng.randrange(30)), frames.values_of(opcode, rng))
            made = frames.native(packet, gid_header, slid=rng.getrandbits(16))
            if link_type == 197:
                made = frames.erf(*rng.choice(((made, 21), (frame, 2), (frame, 1))), rng.choice((0, 0, 1, 3, 15, 17)))
            return link_type, made
    return link_type, body


def damage(frame, rng):
    """Bits, bytes and lengths changed; now and then cut or padded."""
    data = bytearray(frame)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
        at = rng.randrange(min(len(data), 90))
        match rng.randrange(4):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.choice((0, 1, 0x0F, 0x40, 0x45, 0x4F, 0x60, 0x7F, 0x80, 0xFF))
            case 2:
                data[at : at + 2] = struct.pack(">H", rng.choice((0, 7, 8, 23, 24, 25, 0x7FFF, 0x8000, 0xFFFF)))
            case 3:
                near = int.from_bytes(data[at : at + 2], "big") + rng.choice((-4, -1, 1, 4, 8))
                data[at : at + 2] = (near & 0xFFFF).to_bytes(2, "big")
    if rng.random() < 0.3:
        del data[rng.randrange(len(data) + 1) :]
    elif rng.random() < 0.2:
        data += rng.randbytes(rng.randrange(30))
    return bytes(data)


def test_mutated_frames_in_batches(both, frames, records):
    """9000 frames, 1 to 200 in a batch: what stood in a row before must not show."""
    rng = random.Random(17)
    given = [damage(random_frame(frames, rng), rng) for _ in range(9000)]
    at = rows = present = 0
    statuses = np.zeros(len(Status), np.int64)
    while at < len(given):
        size = rng.choice((1, 2, 7, 60, 200))
        batch = given[at : at + size]
        at += size
        count = compare(both, records(batch, wire=[len(frame) + rng.randrange(3) for frame in batch]))
        rows += count
        present |= int(np.bitwise_or.reduce(both[0].columns["present"][:count], initial=0))
        statuses += np.bincount(both[0].columns["status"][:count], minlength=len(Status))
    # the cases reach what they are meant to reach
    assert rows > 4000
    assert (statuses > 20).all()
    everything = 0xFFFF & sum(bit.EXTENDED_SIZE) | 0x1FF0000
    assert present == everything
    reached = np.flatnonzero(both[0].tallies)
    assert {layout.TALLY_ROCE, layout.TALLY_CUT, layout.TALLY_FRAGMENT, layout.TALLY_MALFORMED} <= set(reached.tolist())


def test_links_and_tunnels_in_batches(both, frames, records):
    """The same with tunnels, and with other link types: each frame of a batch has its own."""
    rng = random.Random(22)
    before = both[0].tallies.copy()
    at = rows = present = 0
    given = []
    for _ in range(6000):
        frame = random_frame(frames, rng)
        link_type = 1
        if rng.random() < 0.7:
            frame = in_tunnels(frames, frame, rng)
        if rng.random() < 0.5:
            link_type, frame = linked(frames, frame, rng)
        given.append((link_type, damage(frame, rng)))
    while at < len(given):
        size = rng.choice((1, 2, 7, 60, 200))
        batch = given[at : at + size]
        at += size
        made = records([frame for _, frame in batch])
        made.link_type[:] = [link_type for link_type, _ in batch]
        count = compare(both, made)
        rows += count
        present |= int(np.bitwise_or.reduce(both[0].columns["present"][:count], initial=0))
    assert rows > 2000
    assert present & 0x7E000000 == 0x7E000000
    assert ((both[0].tallies - before)[[layout.TALLY_TUNNEL, layout.TALLY_LINK, layout.TALLY_MALFORMED]] > 20).all()


def test_tunnels_alone_at_every_length(both, frames, records):
    """Damaged frames in tunnels or of other link types, each cut at every length, in a buffer that ends with it."""
    rng = random.Random(23)
    for number in range(120):
        link_type, frame = 1, in_tunnels(frames, random_frame(frames, rng), rng)
        if number % 2:
            link_type, frame = linked(frames, rng.choice((frame, random_frame(frames, rng))), rng)
        frame = damage(frame, rng)[:400]
        for cut in range(len(frame) + 1):
            compare(both, records([frame[:cut]], wire=[len(frame)], link_type=link_type))


def test_alone_at_every_length(both, frames, records):
    """Damaged frames, each cut at every length, in a buffer of its own that ends with it."""
    rng = random.Random(18)
    for _ in range(60):
        frame = damage(random_frame(frames, rng), rng)
        for cut in range(len(frame) + 1):
            compare(both, records([frame[:cut]], wire=[len(frame)]))


def test_pure_noise(both, frames, records):
    """Bytes without meaning behind the Ethertypes that lead to RoCE."""
    rng = random.Random(19)
    for _ in range(40):
        batch = []
        for _ in range(50):
            ether_type = rng.choice((0x0800, 0x86DD, 0x8915, 0x8100, 0x88A8))
            start = {0x0800: b"\x45", 0x86DD: b"\x60", 0x8915: b"\x60"}.get(ether_type, b"")
            batch.append(frames.ethernet(start + rng.randbytes(rng.randrange(120)), ether_type))
        compare(both, records(batch))


def test_records_that_overlap(both, frames, records):
    """Offsets anywhere in the buffer, also outside: nothing is read there, and both forms say the same."""
    rng = np.random.default_rng(20)
    python = random.Random(20)
    batch = records([random_frame(frames, python) for _ in range(100)])
    size = len(batch.data)
    for _ in range(20):
        batch.offset[:] = rng.integers(-20, size + 20, 100)
        batch.cap_len[:] = rng.integers(-5, 200, 100)
        compare(both, batch)


@pytest.mark.parametrize("capacity", [1024, 101])
def test_many_hosts(load_form, frames, records, capacity):
    """Codes stay in both forms; what finds no room is code 0."""
    rng = random.Random(21)
    given = [frames.v2_ipv6(4, ip={"src": rng.randbytes(16), "dst": rng.randbytes(16)}) for _ in range(400)]
    from roce_dissect.decode.hosts import HostTable

    texts = []
    for form in ("compiled", "interpreted"):
        table = HostTable(capacity=capacity)
        decoder = Decoder(("src", "dst"), table, load_form("roce_dissect.decode.kernel", form))
        codes = []
        for start in range(0, 400, 40):
            rows = decoder.decode(records(given[start : start + 40]))
            codes += decoder.columns["src"][:rows].tolist() + decoder.columns["dst"][:rows].tolist()
        again = decoder.decode(records(given[:40]))
        assert decoder.columns["src"][:again].tolist() == codes[:40]
        known = [code for code in codes if code]
        assert len(codes) == 800
        assert len(set(known)) == len(known) == min(800, capacity - 1)
        texts.append(table.texts())
    assert texts[0] == texts[1]
