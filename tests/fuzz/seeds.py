"""Small captures to begin with: every format, link type, tunnel and opcode, and pieces of the sample captures."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import builders
import frames
import zstandard

from roce_dissect.spec import net

SAMPLES = Path(__file__).parents[2] / "pcaps"

#: Frames taken from two places of each sample, and their bytes: CM datagrams whole, else headers.
_FIRST = 4
_LONG, _SHORT = 350, 90


def plain() -> Iterator[tuple[str, bytes]]:
    """Nothing but Ethernet with UDP that is no RoCE: from here a fuzzer has to find everything by itself."""
    yield "plain.pcap", frames.pcap([frames.ethernet(frames.ipv4(frames.udp(bytes(60), dport=53)), 0x0800)])
    yield (
        "plain.pcapng",
        (
            builders.section()
            + builders.interface()
            + builders.enhanced(10**15, frames.ethernet(frames.ipv4(frames.udp(bytes(60), dport=53)), 0x0800))
        ),
    )


def words() -> str:
    """libFuzzer's dictionary: the numbers by which headers lead to other headers, in both byte orders."""
    numbers = {
        value.to_bytes(size, order)
        for size, start in ((2, "ETHERTYPE"), (2, "PORT"), (1, "PROTO"), (4, "LINKTYPE"), (2, "LINKTYPE"))
        for name, value in vars(net).items()
        if name.startswith(start) and isinstance(value, int)
        for order in ("big", "little")
    }
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in number) + '"\n' for number in sorted(numbers))


def all_seeds() -> Iterator[tuple[str, bytes]]:
    """Yield (name, capture); the same ones every time."""
    rng = random.Random(1)
    yield from plain()
    for order in "<>":
        yield f"blocks{'<>'.index(order)}.pcapng", builders.small_pcapng(order)
        for unit in ("micro", "nano"):
            yield f"records_{unit}{'<>'.index(order)}.pcap", builders.small_pcap(order, unit)
    yield "whole.pcap.gz", gzip.compress(builders.small_pcap() + bytes(600), mtime=0)
    yield "whole.pcapng.zst", zstandard.ZstdCompressor(write_checksum=True).compress(builders.small_pcapng())
    for resolution, offset in ((0x80 | 30, None), (0x80 | 127, -5), (12, 1), (40, None), (0, 2**40)):
        yield (
            f"resolution{resolution}.pcapng",
            builders.section() + builders.interface(1, 0, resolution, offset) + builders.enhanced(2**63, frames.v2()),
        )
    opcodes = sorted(frames.CHAINS)
    for first in range(0, len(opcodes), 8):
        some = [frames.v2(code, b"12345678", frames.values_of(code, rng), psn=first) for code in opcodes[first:][:8]]
        yield f"opcodes{first}.pcap", frames.pcap(some)
    inner = frames.v2(0x0A, b"abcd", frames.values_of(0x0A, rng))
    for name, (wrap, *_) in frames.TUNNELS.items():
        protocol, body = wrap(inner)
        version = rng.choice((4, 6))
        yield f"{name}.pcap", frames.pcap([frames.outer_ethernet(frames.outer(body, protocol, version), version)])
    yield "mpls.pcap", frames.pcap([frames.ethernet(frames.mpls(inner[14:], (16, 17)), 0x8847)])
    yield "tags.pcap", frames.pcap([frames.v1(4, tags=((0x88A8, 7), (0x8100, 5))), frames.v2_ipv6(0x11)])
    ether_type, network = frames.network(inner)
    for link_type, frame in {
        0: struct.pack("<I", 2) + network,
        12: network,
        113: frames.cooked(network, ether_type),
        276: frames.cooked2(network, ether_type),
        247: frames.native(frames.packet(4)),
        197: frames.erf(frames.native(frames.packet(4), {}), extensions=2),
        228: network,
    }.items():
        yield f"link{link_type}.pcap", frames.pcap([frame, frame[:30]], link_type=link_type)
    yield from samples()


def samples() -> Iterator[tuple[str, bytes]]:
    """The first RoCE frames of each sample in classic pcap, cut short so that a mutation meets a header."""
    for path in sorted(SAMPLES.glob("*.pcap.gz")):
        data = gzip.decompress(path.read_bytes())
        found = [record for record in frames.records(data) if b"\x12\xb7" in record[3][34:62]]  # to port 4791
        # some of the beginning, and some from where what the sample is about goes on
        chosen = found[:_FIRST] + found[len(found) // 2 :][:_FIRST]
        out = [data[:24]]
        for seconds, fraction, wire, frame in chosen:
            frame = frame[: _LONG if len(out) < 3 else _SHORT]
            out.append(struct.pack("<IIII", seconds, fraction, len(frame), wire) + frame)
        yield path.name.removesuffix(".gz"), b"".join(out)
