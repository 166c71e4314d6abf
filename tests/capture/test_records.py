"""The record walker, in its compiled and its interpreted form."""

from __future__ import annotations

import struct
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from roce_dissect.capture import states as s
from roce_dissect.errors import CaptureError

ROOT = Path(__file__).resolve().parents[2]

FRAME_20 = bytes.fromhex("ffffffffffff020000000001 0800 4500002a0001")

# Records of 20 bytes (24 on the wire) at 0x65000000 s + 0x0a units; written out so that no packing code is trusted.
PCAP = {
    "little micro": "d4c3b2a1 0200 0400 00000000 00000000 ffff0000 01000000 00000065 0a000000 14000000 18000000",
    "big micro": "a1b2c3d4 0002 0004 00000000 00000000 0000ffff 00000001 65000000 0000000a 00000014 00000018",
    "little nano": "4d3cb2a1 0200 0400 00000000 00000000 ffff0000 01000000 00000065 0a000000 14000000 18000000",
    "big nano": "a1b23c4d 0002 0004 00000000 00000000 0000ffff 00000001 65000000 0000000a 00000014 00000018",
}


@pytest.mark.parametrize("kind", PCAP)
def test_classic_magics(read, form, kind):
    result = read(bytes.fromhex(PCAP[kind]) + FRAME_20, form)
    time = 0x65000000 * 10**9 + (10_000 if "micro" in kind else 10)
    assert result.summary() == (
        [(time, 24, 1, FRAME_20)],
        "None",
        ("pcap", 1, 1, time, time, {1: 1}, 60, False),
    )


def test_link_type_is_the_low_half_of_the_word(read, form, build):
    # FCS length 4 bytes and the flag that says so, above Linux cooked v1.
    result = read(build.pcap_header(network=0x44000071) + build.pcap_record(1, 2, b"abc"), form)
    assert result.capture.link_types == {113: 1}


# One section, one interface, one packet of four bytes at 0x0005_0000_0000_0001 us; little-endian, then big-endian.
PCAPNG_LITTLE = (
    "0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"
    "01000000 14000000 0100 0000 00000400 14000000"
    "06000000 24000000 00000000 00000500 01000000 04000000 40000000 deadbeef 24000000"
)
PCAPNG_BIG = (
    "0a0d0d0a 0000001c 1a2b3c4d 0001 0000 ffffffffffffffff 0000001c"
    "00000001 00000014 0001 0000 00040000 00000014"
    "00000006 00000024 00000000 00050000 00000001 00000004 00000040 deadbeef 00000024"
)


@pytest.mark.parametrize("text", [PCAPNG_LITTLE, PCAPNG_BIG])
def test_pcapng_byte_orders(read, form, text):
    time = 0x0005_0000_0000_0001 * 1000
    assert read(bytes.fromhex(text), form).summary() == (
        [(time, 64, 1, bytes.fromhex("deadbeef"))],
        "None",
        ("pcapng", 1, 1, time, time, {1: 1}, 84, False),
    )


@pytest.mark.parametrize("order", "<>")
def test_every_kind_of_block(read, form, build, order):
    frame = build.FRAME
    result = read(build.small_pcapng(order), form)
    assert result.error is None
    assert (
        result.rows
        == [
            (1_700_000_000_000_001_000, 60, 1, frame),
            (1_700_001_000_000_000_002, 60, 113, frame[:21]),
            (0, 40, 1, frame[:40]),  # a Simple Packet Block has no time
            (1_700_000_000_000_003_000, 77, 1, frame[:33]),
            (0, 0, s.NO_PACKET, b""),  # a custom block counts as a frame
            (0, 60, 1, frame[:50]),
            (1_700_000_000_500_000_000, 60, 1, frame[:50]),
        ]
    )
    capture = result.capture
    assert capture.link_types == {1: 5, 113: 1, s.NO_PACKET: 1}
    assert capture.sliced_frames == 4
    assert (capture.first_time_ns, capture.last_time_ns) == (1_700_000_000_000_001_000, 1_700_001_000_000_000_002)


def test_simple_block_is_cut_by_snaplen_and_by_its_block(read, form, build):
    data = build.section() + build.interface(snaplen=20) + build.simple(build.FRAME, 100)
    assert [len(row[3]) for row in read(data, form).rows] == [20]
    data = build.section() + build.interface(snaplen=0) + build.simple(build.FRAME, 100) + build.simple(b"abcde", 5)
    assert [len(row[3]) for row in read(data, form).rows] == [60, 5]
    assert read(data, form).capture.first_time_ns is None


@pytest.mark.parametrize("kind", [0xBAD, 0x40000BAD, 9, 0x204, 0x216, 0x221])
def test_blocks_that_wireshark_counts_as_frames(read, form, build, kind):
    data = build.section() + build.interface() + build.block(kind, bytes(40)) + build.enhanced(5, b"abcd")
    assert [row[2] for row in read(data, form).rows] == [s.NO_PACKET, 1]


@pytest.mark.parametrize("kind", [4, 5, 10, 0x203, 0x222, 0x80000001, 0xC0000BAD, 0xFFFFFFFF, 0])
def test_blocks_that_are_skipped(read, form, build, kind):
    data = build.section() + build.interface() + build.block(kind, bytes(40)) + build.enhanced(5, b"abcd")
    assert [row[2] for row in read(data, form).rows] == [1]


def test_length_without_its_padding(read, form, build):
    # Some writers leave the padding out of the block's length; Wireshark reads that.
    odd = build.block(6, struct.pack("<IIIII", 0, 0, 7, 3, 3) + b"abc", length=35)
    result = read(build.section() + build.interface() + odd + build.enhanced(8, b"abcd"), form)
    assert [(row[0], row[3]) for row in result.rows] == [(7000, b"abc"), (8000, b"abcd")]
    assert result.error is None


# -- time

STAMPS = [0, 1, 999, 10**9, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 10**18, 2**63 - 1, 2**63, 2**63 + 10**10, 2**64 - 1]
STAMPS += [1_700_000_000_123_456, 1_700_000_000_123_456_789, 0x123456789ABCDEF0]
RESOLUTIONS = [*range(0, 40), 63, 100, 127, *(0x80 | k for k in (0, 1, 10, 20, 29, 30, 31, 32, 33, 34, 40, 62, 63))]
RESOLUTIONS += [0x80 | k for k in (64, 65, 90, 94, 95, 96, 97, 110, 127)]


@pytest.mark.parametrize("offset", [None, 1, 1000, -1, -1_700_000_000, 10**10, -(10**10), 2**63 - 1, -(2**63)])
def test_time_is_exact_or_saturated(read, form, build, offset):
    greatest = 2**63 - 1
    for resolution in RESOLUTIONS:
        exponent = resolution & 127
        unit = Fraction(1, 2**exponent if resolution & 128 else 10**exponent)
        data = build.section() + build.interface(resolution=resolution, offset=offset)
        data += b"".join(build.enhanced(stamp, b"abcd") for stamp in STAMPS)
        times = [row[0] for row in read(data, form).rows]
        assert len(times) == len(STAMPS)
        for stamp, time in zip(STAMPS, times, strict=True):
            whole, rest = divmod(stamp * unit, 1)
            whole = min(whole, greatest) + (offset or 0)  # the sum of seconds is saturated before the offset too
            exact = whole * 10**9 + int(rest * 10**9)
            if whole > 9223372035:
                exact = greatest
            elif whole < -9223372035:
                exact = -greatest
            if offset is None and exponent <= 9 and not resolution & 128:  # the plain case reaches the last nanosecond
                exact = min(stamp * 10 ** (9 - exponent), greatest)
            assert time == exact, (resolution, stamp, offset)


def test_classic_time_at_its_ends(read, form, build):
    most = 2**32 - 1
    result = read(build.pcap_header() + build.pcap_record(most, most, b"") + build.pcap_record(0, 0, b""), form)
    assert [row[0] for row in result.rows] == [most * 10**9 + most * 1000, 0]
    assert (result.capture.first_time_ns, result.capture.last_time_ns) == (0, most * 10**9 + most * 1000)


# -- what is wrong with a file is a result


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda b: b.block(6, bytes(20), length=0), "a block of 0 bytes, less than it needs"),
        (lambda b: b.block(6, bytes(20), length=11), "a block of 11 bytes, less than it needs"),
        (lambda b: b.block(6, b"") + bytes(40), "a block of 12 bytes, less than it needs"),
        (lambda b: b.block(6, bytes(16)) + bytes(40), "a block of 28 bytes, less than it needs"),
        (lambda b: b.block(2, bytes(16)) + bytes(40), "a block of 28 bytes, less than it needs"),
        (lambda b: b.block(3, b"") + bytes(40), "a block of 12 bytes, less than it needs"),
        (lambda b: b.block(1, bytes(4)) + bytes(40), "an interface description of 16 bytes"),
        (lambda b: b.block(0x777, bytes(20), length=0xFFFFFFFC), "a block of 4294967292 bytes"),
        (lambda b: b.block(0x777, bytes(20), length=0xFFFFFFFF), "a block of 4294967295 bytes"),
        (lambda b: b.block(0x777, bytes(20), length=0x80000000), "a block of 2147483648 bytes"),
        (lambda b: b.block(0x777, bytes(20), length=0x4000004), "a block of 67108868 bytes"),
        (lambda b: b.block(0x777, bytes(20), length=29, trailer=0), "gives its length as 0, unlike"),
        (lambda b: b.block(6, bytes(24), trailer=40), "gives its length as 40, unlike"),
        (lambda b: b.enhanced(1, b"abcd", captured=5), "5 captured bytes, more than their block holds"),
        (lambda b: b.enhanced(1, b"abcd", captured=0xFFFFFFFF), "4294967295 captured bytes, more than"),
        (lambda b: b.enhanced(1, b"abcd", captured=0x80000000), "2147483648 captured bytes, more than"),
        (lambda b: b.enhanced(1, b"abcd", index=1), "a packet of interface 1, which is not described"),
        (lambda b: b.enhanced(1, b"abcd", index=0xFFFFFFFF), "a packet of interface 4294967295, which"),
        (lambda b: b.obsolete(1, b"abcd", index=0xFFFF), "a packet of interface 65535, which"),
        (lambda b: b.section() + b.simple(b"abcd"), "a packet of interface 0, which is not described"),
        (lambda b: b.section() + b.enhanced(1, b"abcd"), "a packet of interface 0, which is not described"),
        (lambda b: b.block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HH", 9, 200)), "an option of 200 bytes"),
        (lambda b: b.block(1, struct.pack("<HHI", 1, 0, 0) + b.option(9, b"\x06\x06")), "if_tsresol option of 2 bytes"),
        (lambda b: b.block(1, struct.pack("<HHI", 1, 0, 0) + b.option(14, b"1234")), "if_tsoffset option of 4 bytes"),
        (lambda b: struct.pack("<III", 0x0A0D0D0A, 28, 0x12345678) + bytes(16), "an unknown byte-order magic"),
        (lambda b: struct.pack("<III", 0x0A0D0D0A, 24, 0x1A2B3C4D) + bytes(16), "a section header of 24 bytes"),
        (lambda b: struct.pack("<III", 0x0A0D0D0A, 0xFFFFFFFC, 0x1A2B3C4D) + bytes(16), "header of 4294967292 bytes"),
        (lambda b: b.section(version=(2, 0)), "pcapng version 2.0"),
        (lambda b: b.section()[:-4] + bytes(4), "whose end says 0"),
    ],
)
def test_damaged_block(read, form, build, damage, words):
    good = build.section() + build.interface() + build.enhanced(1, b"abcd") + build.simple(b"efgh")
    bad = damage(build)
    extra = 28 if bad.startswith(build.section()) and len(bad) > 28 else 0  # the section before the packet is whole
    result = read(good + bad + bytes(64), form)
    assert [row[3] for row in result.rows] == [b"abcd", b"efgh"]  # what was before it is delivered
    assert isinstance(result.error, CaptureError)
    assert words in result.error.reason
    assert result.error.offset == len(good) + extra == result.capture.offset


@pytest.mark.parametrize("captured", [262145, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF])
@pytest.mark.parametrize("order", "<>")
def test_absurd_captured_length(read, form, build, captured, order):
    good = build.pcap_header(order) + build.pcap_record(1, 2, b"abcd", order=order)
    result = read(good + build.pcap_record(1, 2, b"abcd" * 9, captured=captured, order=order), form)
    assert [row[3] for row in result.rows] == [b"abcd"]
    assert str(result.error) == f"test: a record of {captured} captured bytes (at byte {len(good)})"


def test_longest_records(read, form, build):
    frame = bytes(262144)
    assert len(read(build.pcap_header() + build.pcap_record(1, 2, frame), form).rows) == 1
    frame = bytes(300_000)  # longer than usual, but announced
    assert len(read(build.pcap_header(snaplen=300_000) + build.pcap_record(1, 2, frame), form).rows) == 1
    assert read(build.pcap_header(snaplen=299_999) + build.pcap_record(1, 2, frame), form).error is not None
    # No snaplen lets a record take any memory.
    huge = build.pcap_record(1, 2, b"", captured=s.MAX_LENGTH + 1)
    assert read(build.pcap_header(snaplen=0xFFFFFFFF) + huge, form).error is not None


def test_too_many_interfaces(read, form, build, monkeypatch):
    monkeypatch.setattr(s, "MAX_INTERFACES", 20)
    data = build.section() + build.interface() * 20 + build.enhanced(1, b"abcd", index=19)
    assert len(read(data, form).rows) == 1
    assert "more than 20 interfaces" in str(read(data + build.interface(), form).error)


# -- pieces and cuts


def captures(build):
    return [build.small_pcap("<"), build.small_pcap(">", "nano"), build.small_pcapng("<"), build.small_pcapng(">")]


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 7, 16, 61, 100])
def test_pieces_give_the_same(read, form, build, piece):
    for data in captures(build):
        assert read(data, form, piece).summary() == read(data, form).summary()


def test_cut_at_every_length(read, form, build):
    for data in captures(build):
        whole = read(data, form)
        ends = []  # where each row's record ends, found by reading ever longer files
        for length in range(24 if data[0] != 0x0A else 56, len(data) + 1):
            result = read(data[:length], form)
            assert result.error is None
            assert result.rows == whole.rows[: len(result.rows)]
            assert result.capture.truncated == (result.capture.offset < length)
            if len(ends) < len(result.rows):
                ends.append(length)
        assert len(ends) == len(whole.rows)


def walk_alone(kernel, data, end, interfaces=1, fmt=s.PCAP, room=16):
    """One call of the walker, without the reader around it."""
    hand_over = (lambda array: array) if kernel.COMPILED else memoryview
    state = np.zeros(s.STATE_SIZE, np.int64)
    state[s.FORMAT], state[s.LITTLE_ENDIAN], state[s.TICK_NS], state[s.MAX_CAPTURED] = fmt, 1, 1000, 262144
    state[s.INTERFACES] = interfaces
    table = np.zeros((1, s.INTERFACE_SIZE), np.int64)
    table[0, s.LINK_TYPE], table[0, s.FACTOR], table[0, s.LARGEST] = 1, 1000, 10**15
    table[0, s.UNITS] = 10**6
    arrays = [np.full(room, -7, np.int64) for _ in range(4)] + [np.full(room, 777, np.uint16)]
    count = kernel.walk(
        hand_over(data), end, hand_over(state), hand_over(table), *(hand_over(array) for array in arrays)
    )
    return count, state.tolist(), table.tolist(), [array.tolist() for array in arrays]


def test_nothing_beyond_the_end_is_read(load_form, form, build):
    """The same result whatever lies behind `end`, at every end: a read past it would see other bytes."""
    kernel = load_form("roce_dissect.capture.records", form)
    pcap = build.small_pcap()[24:]
    blocks = build.enhanced(5, b"abcde") + build.simple(b"xyz") + build.obsolete(6, b"abc") + build.block(77, b"abcd")
    for data, fmt in ((pcap, s.PCAP), (blocks, s.PCAPNG)):
        for end in range(1, len(data) + 1):
            exact = walk_alone(kernel, np.frombuffer(data[:end], np.uint8), end, fmt=fmt)
            for filler in (b"\x00", b"\xff", b"\x06"):
                padded = np.frombuffer(data[:end] + filler * 200, np.uint8)
                assert walk_alone(kernel, padded, end, fmt=fmt) == exact


def test_walker_stops_at_the_length_of_its_arrays(load_form, form, build):
    kernel = load_form("roce_dissect.capture.records", form)
    data = np.frombuffer(build.small_pcap()[24:], np.uint8)
    count, state, _, arrays = walk_alone(kernel, data, len(data), room=3)
    assert count == 3
    assert state[s.POSITION] == arrays[0][2] + arrays[1][2]
    for block in (build.enhanced(5, b"abcd"), build.simple(b"abcd"), build.block(s.BLOCK_CUSTOM, bytes(8))):
        data = np.frombuffer(block * 5, np.uint8)
        count, state, _, _ = walk_alone(kernel, data, len(data), fmt=s.PCAPNG, room=3)
        assert (count, state[s.POSITION]) == (3, 3 * len(block))


def test_longest_block_is_waited_for(read, form, build):
    start = build.section() + build.interface()
    result = read(start + build.block(0x777, bytes(400), length=s.MAX_LENGTH), form)
    assert result.error is None
    assert result.capture.truncated


def test_interpreted_loads_refuse_what_is_not_there(load_form):
    """A slice would be cut silently and a negative index count from the end; the other tests rely on this."""
    kernel = load_form("roce_dissect.capture.records", "interpreted")
    assert kernel.load32(memoryview(b"abcd"), 0, True) == 0x64636261
    assert kernel.load16(memoryview(b"abcd"), 2, False) == 0x6364
    for at in (-4, -1, 1, 5):
        with pytest.raises(IndexError):
            kernel.load32(memoryview(b"abcd"), at, True)


def test_contradicting_arguments_are_refused(load_form, form):
    kernel = load_form("roce_dissect.capture.records", form)
    hand_over = (lambda array: array) if kernel.COMPILED else memoryview

    def call(size=100, end=100, state=s.STATE_SIZE, position=0, interfaces=1, columns=s.INTERFACE_SIZE, short=-1):
        numbers = np.zeros(state, np.int64)
        numbers[s.POSITION], numbers[s.INTERFACES] = position, interfaces
        arrays = [np.zeros(4 if i == short else 8, np.int64) for i in range(4)]
        arrays.append(np.zeros(4 if short == 4 else 8, np.uint16))
        table = np.zeros((1, columns), np.int64)
        everything = [hand_over(a) for a in (np.zeros(size, np.uint8), numbers, table, *arrays)]
        return kernel.walk(everything[0], end, *everything[1:])

    assert call() >= 0
    for wrong in (
        {"end": 101},
        {"position": -1},
        {"position": 101},
        {"state": s.STATE_SIZE - 1},
        {"interfaces": 2},
        {"columns": s.INTERFACE_SIZE - 1},
        *({"short": i} for i in range(1, 5)),
    ):
        with pytest.raises(ValueError, match=r"wrong shape|outside|interfaces|lengths"):
            call(**wrong)


# -- both forms


def outcome(read, data, form, piece=None):
    try:
        return read(data, form, piece).summary()
    except CaptureError as error:
        return type(error).__name__, str(error)


def test_forms_agree_on_damaged_captures(read, load_form, build):
    load_form("roce_dissect.capture.records", "compiled")
    kinds = set()
    for number, data in enumerate(build.mutants(20260, 6000)):
        compiled = outcome(read, data, "compiled")
        assert compiled == outcome(read, data, "interpreted"), number
        if number % 5 == 0:
            assert compiled == outcome(read, data, "compiled", 1 + number % 97), number
        kinds.add(str(compiled[1]).partition(" (at")[0].translate(str.maketrans("", "", "0123456789")))
    assert len(kinds) > 20  # the corpus meets most faults


def test_constants_of_the_compiled_form_are_current():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/make_pxd.py", "--check", "roce_dissect/capture/records.pxd"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
