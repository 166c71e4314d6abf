"""Captures made to do harm: each is a status, or one line with path and byte offset, in bounded time and memory.

What single lengths and damaged blocks do is tested beside the reader (`tests/capture/`), and frames beside the kernel
(`tests/decode/`): here whole files go through the command.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import os
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

import roce_dissect as rd
from roce_dissect.capture.reader import open_capture
from roce_dissect.capture.states import BATCH, MAX_INTERFACES
from roce_dissect.cli import main


def _module(folder, name):
    path = Path(__file__).parent / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"hostile_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _module("capture", "builders")
frames = _module("decode", "frames")

#: Of a process that analyses: its tables are mapped at full size, and take memory only as they are used.
ADDRESS_SPACE = 4 << 30
#: KiB beyond what a capture of one frame takes: the reader's buffer, up to 64 MiB for one record, and its copy.
EXTRA_KIB = 110 << 10
#: The widest zstd window that is taken is 128 MiB, and takes as much.
EXTRA_WINDOW_KIB = 140 << 10
GUARD_S = 120


@pytest.fixture
def analyze(tmp_path, capsys):
    """``analyze(data)``: the command over a file of these bytes, in this process."""

    def run(data):
        path = tmp_path / "hostile"
        path.write_bytes(data)
        status = main(["analyze", "--format", "json", str(path)])
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines() if "the slow form is in use" not in line]
        return SimpleNamespace(status=status, lines=lines, capture=json.loads(out)["capture"], path=path)

    return run


def pcapng(*blocks):
    return build.section() + b"".join(blocks)


# -- frames: none of them is an error


def in_tunnels(size, wrap):
    """A frame in ever more tunnels, up to `size` bytes."""
    frame = frames.v2(4)
    while len(frame) < size:
        frame = wrap(frame)
    return frame


def vxlan(frame):
    return frames.outer_ethernet(frames.outer(frames.vxlan(frame), 17))


def gretap(frame):
    return frames.outer_ethernet(frames.outer(frames.gre(frame, 0x6558), 47))


def ipip(frame):
    return frames.outer_ethernet(frames.outer(frames.network(frame)[1], 4))


def geneve(options):
    """GENEVE whose options are these bytes, whatever their own lengths say."""
    return frames.outer_ethernet(frames.outer(frames.geneve(frames.v2(4), options=options), 17))


def ipv6_chain(kind, length, count):
    """`count` extension headers of one kind, each with this length byte, then UDP."""
    head = bytes([kind, length]) + bytes(6)
    last = bytes([17, length]) + bytes(6)
    body = head * (count - 1) + last + frames.udp(frames.packet(4))
    return frames.ethernet(frames.ipv6(body, following=kind, length=min(len(body), 0xFFFF)), 0x86DD)


#: Name -> (frame, whether it is a RoCE packet all the same).
FRAMES = {
    "vxlan_without_end": (in_tunnels(60_000, vxlan), False),
    "gretap_without_end": (in_tunnels(60_000, gretap), False),
    "ipip_without_end": (in_tunnels(60_000, ipip), False),
    "labels_without_end": (frames.ethernet(struct.pack(">I", 16 << 12) * 15_000, 0x8847), False),
    "tags_without_end": (frames.MACS + struct.pack(">HH", 0x8100, 1) * 15_000, False),
    "ipv4_header_of_length_zero": (frames.ethernet(b"\x40" + frames.ipv4(frames.udp(bytes(40)))[1:], 0x0800), False),
    "ipv4_option_of_length_zero": (frames.v2(4, ip={"options": b"\x44\x00\x00\x00"}), True),
    "hop_by_hop_of_length_zero": (ipv6_chain(0, 0, 8_000), True),
    "destination_options_that_repeat": (ipv6_chain(60, 0, 8_000), True),
    "authentication_of_length_zero": (ipv6_chain(51, 0, 1), True),
    "extension_beyond_the_end": (ipv6_chain(60, 255, 1), False),
    "geneve_option_of_length_zero": (geneve(bytes.fromhex("01028000") * 15), True),
    "geneve_options_beyond_the_end": (
        frames.outer_ethernet(frames.outer(frames.udp(b"\x3f" + bytes(7), 1, 6081), 17)),
        False,
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames(analyze, name):
    frame, is_roce = FRAMES[name]
    result = analyze(frames.pcap([frame, frames.v2(4)]))
    assert (result.status, result.lines) == (0, [])
    assert (result.capture["packets"], result.capture["roce_packets"]) == (2, 1 + is_roce)


# -- blocks


def many_options(length, count):
    """An interface with `count` options that carry nothing, and no end of options."""
    return build.block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HH", 2, length) * count)


#: Name -> (capture, words of the error, its byte offset); None: no error.
BLOCKS = {
    "options_of_length_zero": (pcapng(many_options(0, 16_000), build.enhanced(1, frames.v2(4))), None, None),
    "option_longer_than_its_block": (pcapng(many_options(0xFFFF, 1)), "an option of 65535 bytes", 28),
    "resolution_of_length_zero": (
        pcapng(build.block(1, struct.pack("<HHI", 1, 0, 0) + build.option(9, b""))),
        "an if_tsresol option of 0 bytes",
        28,
    ),
    "interface_of_length_zero": (pcapng(struct.pack("<II", 1, 0) + bytes(40)), "a block of 0 bytes", 28),
    "interface_of_length_three": (pcapng(struct.pack("<II", 1, 3) + bytes(40)), "a block of 3 bytes", 28),
    "interface_without_end": (pcapng(struct.pack("<II", 1, 0xFFFFFFFF) + bytes(40)), "a block of 4294967295 bytes", 28),
    "interface_of_another_section": (
        pcapng(build.interface(), build.section(">"), build.enhanced(1, frames.v2(4), order=">")),
        "a packet of interface 0, which is not described",
        28 + 20 + 28,
    ),
    "one_interface_too_many": (
        pcapng(build.interface() * (MAX_INTERFACES + 1)),
        f"more than {MAX_INTERFACES} interfaces in one section",
        28 + 20 * MAX_INTERFACES,
    ),
    "compressed_twice": (
        gzip.compress(gzip.compress(build.small_pcap())),
        "is not a capture (compressed with gzip again)",
        0,
    ),
    "rubbish_behind_a_member": (
        gzip.compress(build.pcap_header()) + gzip.compress(build.pcap_record(1, 2, bytes(60))) + b"rubbish",
        "data after the end of the gzip data",
        24 + 76,
    ),
    "window_beyond_all_memory": (
        b"\x28\xb5\x2f\xfd\x00\xff" + bytes.fromhex("010000"),
        "zstd data is corrupt",
        0,
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(analyze, name):
    data, words, offset = BLOCKS[name]
    result = analyze(data)
    if words is None:
        assert (result.status, result.lines, result.capture["packets"]) == (0, [], 1)
        return
    assert result.status == 2
    [line] = result.lines
    assert line.startswith(f"roce-dissect: {result.path}: {words}")
    assert line.endswith(f"(at byte {offset})")


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [0, 9, 10, 30, 127, 0x80, 0x80 | 63, 0x80 | 64, 0x80 | 127])
@pytest.mark.parametrize("offset", [0, 2**63 - 1, -(2**63), -(2**62)])
def test_times_beyond_64_bits(analyze, order, resolution, offset):
    """They are saturated, and whatever is told of them (a span, a rate, a latency) is told without a fault."""
    data = build.section(order) + build.interface(resolution=resolution, offset=offset, order=order)
    for number, stamp in enumerate((0, 2**64 - 1, 1, 2**63)):
        data += build.enhanced(stamp, frames.v2(4, b"abcd", psn=number), order=order)
        data += build.enhanced(
            stamp, frames.v2(0x11, psn=number, ip={"src": frames.IP_B, "dst": frames.IP_A}), order=order
        )
    result = analyze(data)
    assert (result.status, result.lines) == (0, [])
    assert result.capture["roce_packets"] == 8


def test_first_and_last_time_there_is(analyze):
    """From the smallest to the greatest number of nanoseconds: the span between them has 65 bits."""
    data = pcapng(build.interface(resolution=9, offset=-(2**63)), build.interface(resolution=9, offset=2**63 - 1))
    for index in (0, 1, 0):
        data += build.enhanced(7, frames.v2(4, b"abcd", psn=index), index=index)
    result = analyze(data)
    assert (result.status, result.lines, result.capture["roce_packets"]) == (0, [], 3)


# -- compressed data


def test_gzip_cut_anywhere(samples):
    """Whatever is left of it is read; the fault has its place in the decompressed bytes."""
    whole = gzip.decompress((samples / "cm_refused.client.pcap.gz").read_bytes())
    first = gzip.compress(whole[:200], mtime=0)
    data = first + gzip.compress(whole[200:], mtime=0)
    most = 0
    for cut in range(4, len(data)):  # of fewer bytes nobody can say that they are gzip
        found, error = 0, None
        try:
            with open_capture(io.BytesIO(data[:cut])) as capture:
                for records in capture:
                    found += records.count
        except rd.CaptureError as caught:
            error = caught
        if cut == len(first):  # between two members: as a capture that is still being written
            assert (error, capture.truncated) == (None, True)
        else:
            assert "compressed data ends early" in error.reason or "the file header is cut" in error.reason
            assert 0 <= error.offset <= len(whole)
        assert found >= most
        most = found
    assert most == 8


def gzip_of_zeros(start, size):
    packer = zlib.compressobj(9, wbits=31)
    return (
        packer.compress(start) + b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    )


def zstd_of_zeros(start, size, window=0x58):
    """`start` in a frame of its own; then one of run-length blocks, 4 bytes for each 128 KiB."""
    block = ((1 << 17) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    frame = bytes((0x28, 0xB5, 0x2F, 0xFD, 0x00, window)) + block * (size >> 17) + b"\x03\0\0\0"
    return zstandard.compress(start) + frame


def in_own_process(path):
    """(status, lines on standard error, peak memory in KiB) of the command."""
    process = subprocess.Popen(
        [sys.executable, "-m", "roce_dissect", "analyze", str(path)],
        cwd=Path(rd.__path__[0]).parent,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # each thread reserves address space
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: (
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
            resource.setrlimit(resource.RLIMIT_CPU, (GUARD_S, GUARD_S)),
        ),
    )
    err = process.stderr.read().decode()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, [line for line in err.splitlines() if "the slow form" not in line], usage.ru_maxrss


@pytest.fixture(scope="module")
def least_kib(tmp_path_factory):
    """Peak memory of the command over one frame."""
    path = tmp_path_factory.mktemp("least") / "small.pcap"
    path.write_bytes(frames.pcap([frames.v2(4)]))
    status, lines, peak = in_own_process(path)
    assert (status, lines) == (0, [])
    return peak


#: Name -> (bytes, exit status). 128 MiB or more from some 4 to 130 KB.
BOMBS = {
    "gzip_records": (lambda: gzip_of_zeros(build.pcap_header(), 1 << 27), 0),
    "zstd_records": (lambda: zstd_of_zeros(build.pcap_header(), 1 << 27), 0),
    "zstd_widest_window": (lambda: zstd_of_zeros(build.pcap_header(), 1 << 28, window=0x88), 0),
    "gzip_blocks": (lambda: gzip_of_zeros(pcapng(), 1 << 27), 2),
    "zstd_one_record": (lambda: zstd_of_zeros(pcapng() + struct.pack("<II", 0x777, 64 << 20), 1 << 27), 2),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(tmp_path, load_form, least_kib, name):
    load_form("roce_dissect.capture.records", "compiled")  # it is a matter of minutes otherwise
    make, wanted = BOMBS[name]
    path = tmp_path / name
    path.write_bytes(make())
    status, lines, peak = in_own_process(path)
    assert status == wanted
    assert len(lines) == (wanted == 2)
    assert all(line.startswith(f"roce-dissect: {path}: ") and "(at byte " in line for line in lines)
    assert peak - least_kib < (EXTRA_WINDOW_KIB if "window" in name else EXTRA_KIB)


# -- many of something


@pytest.mark.parametrize("order", "<>")
def test_an_interface_before_each_frame(order):
    """They are read in whole batches: a batch for each would go through all interfaces once more."""
    count = 20_000
    data = build.section(order) + b"".join(
        build.interface(number & 0xFF, order=order) + build.enhanced(number, b"abcd", index=number, order=order)
        for number in range(count)
    )
    with open_capture(io.BytesIO(data)) as capture:
        batches = [records.count for records in capture]
    assert batches == [BATCH, count - BATCH]
    assert sum(capture.link_types.values()) == count
    assert capture.link_types[7] == len(range(7, count, 256))


def test_a_section_before_each_frame():
    """In turn of each byte order, each with a link type of its own."""
    count = 20_000
    data = b"".join(
        build.section(order) + build.interface(number, order=order) + build.enhanced(number, b"abcd", order=order)
        for number in range(count)
        for order in "<>"[number & 1]
    )
    with open_capture(io.BytesIO(data)) as capture:
        batches = [records.count for records in capture]
    assert batches == [BATCH, count - BATCH]
    assert capture.link_types == dict.fromkeys(range(count), 1)


def test_frames_of_a_link_type_that_stands_for_no_packet():
    """65535 is ours for records that are no packets; an interface that claims it has frames as well."""
    custom = build.block(0xBAD, bytes(4))
    data = pcapng(build.interface(65535), build.enhanced(1, b"abcd"), custom, build.section(), build.interface(65535))
    data += build.enhanced(1, b"abcd") + custom
    with open_capture(io.BytesIO(data)) as capture:
        assert sum(records.count for records in capture) == 4
    assert capture.link_types == {65535: 4}
