"""Each trap, met on frames by hand that provoke it, and only there; and that a trap excuses nothing else."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from roce_dissect.analysis.traps import NEEDED, TRAPS, trap_of_frame, trap_of_row, trap_of_value
from roce_dissect.analysis.verification import Verification
from roce_dissect.columns import PACKETS


def _of_opcode(opcode):
    def make(frames):
        values = frames.values_of(opcode, random.Random(opcode))
        return frames.pcap([frames.v2(opcode, b"" if opcode == 0x81 else b"data", values)])

    return make


def _datagram(frames, packet, **udp):
    return frames.pcap([frames.ethernet(frames.ipv4(frames.udp(packet, **udp)), 0x0800)])


def _fragment(frames):
    whole = frames.udp(frames.packet(4, b"x" * 64))
    first = frames.ethernet(frames.ipv4(whole[:64], fragment=0x2000), 0x0800)
    return frames.pcap([first, frames.ethernet(frames.ipv4(whole[64:], fragment=8), 0x0800)])


def _icmp_quote(frames):
    quoted = frames.v2(4, b"data")[14:]
    return frames.pcap([frames.ethernet(frames.ipv4(b"\3\3" + bytes(6) + quoted, protocol=1), 0x0800)])


def _erspan_ip(frames):
    protocol, body = frames.TUNNELS["erspan3_ip"][0](frames.v2(4, b"data"))
    return frames.pcap([frames.outer_ethernet(frames.outer(body, protocol))])


def _contradicting(frames):
    """UDP says less than the headers of this opcode need."""
    packet = frames.packet(0x13, values=dict.fromkeys(frames.values_of_names(0x13), 5))
    return _datagram(frames, packet, length=len(packet) + 8 - 20)


def _length_zero(frames):
    body = frames.udp(frames.packet(4, b"data"))
    return frames.pcap([frames.ethernet(frames.ipv4(body, length=0), 0x0800)])


def _cut_udp(frames):
    frame = frames.v2(4, b"data")
    return frames.pcap([frame[:40]], wire=[len(frame)])


def _without_time(frames):
    """A simple packet block, which has no time."""
    frame = frames.v2(4, b"data")
    padded = frame + bytes(-len(frame) % 4)
    length = struct.pack("<I", 16 + len(padded))
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    interface = struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20)
    return section + interface + struct.pack("<I", 3) + length + struct.pack("<I", len(frame)) + padded + length


#: Trap -> what meets it: a function of the module `frames` giving a capture, and the columns that it spoils.
MET = {
    "lower_port": (lambda frames: frames.pcap([frames.v2(4, b"data", sport=69)]), "opcode psn icrc"),
    "unknown_opcode": (_of_opcode(0x81), "icrc"),
    "dc_opcodes": (_of_opcode(0x44), "ee_context q_key src_qp"),
    "flush": (_of_opcode(0x1C), "va r_key dma_len icrc"),
    "xrc": (_of_opcode(0xA6), "va r_key dma_len"),
    "short_datagram": (lambda frames: _datagram(frames, frames.bth() + b"\0\0"), "opcode psn"),
    "icrc_as_header": (lambda frames: _datagram(frames, frames.bth(0x11) + b"\1\2\3\4"), "syndrome msn icrc"),
    "source_port": (lambda frames: _datagram(frames, frames.packet(4, b"data"), sport=4791, dport=50000), "frame"),
    "icmp_quote": (_icmp_quote, "frame"),
    "fragment": (_fragment, "icrc"),
    "short_frame": (lambda frames: frames.pcap([frames.v2(4, bytes(200))[:120]]), "icrc"),
    "management": (lambda frames: frames.pcap([frames.v2(4, b"x" * 300, dest_qp=1)]), "icrc"),
    "contradicting_lengths": (_contradicting, "icrc"),
    "ip_length_zero": (_length_zero, "ip_len"),
    "cut_udp": (_cut_udp, "udp_sport udp_dport"),
    "erspan_ip": (_erspan_ip, "frame"),
    "time_limits": (_without_time, "time_ns"),
    "erf_record": (
        lambda frames: frames.pcap([frames.erf(frames.native(frames.packet(4, b"data")))], link_type=197),
        "time_ns wire_len cap_len",
    ),
}


def test_each_trap_is_provoked_here():
    assert list(MET) == list(TRAPS)


@pytest.mark.parametrize("code", TRAPS)
def test_sentences(code):
    trap = TRAPS[code]
    assert trap.code == code
    assert trap.sentence[0].isupper() or trap.sentence.startswith("tshark")
    assert trap.sentence.endswith(".")
    assert trap.seen_with


def test_each_trap_is_explained_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
    assert [code for code in TRAPS if f"| `{code}` |" not in page] == []


@pytest.mark.parametrize("code", MET)
def test_met(code, frames, tshark, tmp_path):
    make, columns = MET[code]
    path = tmp_path / "trap.pcap"
    path.write_bytes(make(frames))
    verification = Verification(tshark)
    for _ in verification.read(str(path)):
        pass
    assert verification.differences == []
    tally = verification.traps.pop(code)
    if code == "xrc":  # XRC's opcodes are unknown, too
        assert verification.traps.pop("unknown_opcode").values == 1
    assert not verification.traps
    assert (tally.packets, tally.frame) == (1, 1)
    skipped = {name: tally.skipped for name, tally in verification.fields.items() if tally.skipped}
    assert set(columns.split()) <= set(skipped)
    assert sum(skipped.values()) == tally.values + (code == "xrc")


PLAIN = {
    "status": "ok", "wire_len": 82, "tunnel": "none", "ip_len": 60, "udp_sport": 50000, "udp_dport": 4791,
    "udp_len": 40, "opcode": 4, "dest_qp": 17, "pad_count": 0, "payload_len": 16, "payload_offset": 54,
}  # fmt: skip
ROW = {"frame.protocols": "eth:ethertype:ip:udp:infiniband", "infiniband.bth.opcode": "4", "udp.length": "40",
       "udp.dstport": "4791", "ip.flags.mf": "0", "frame.time_epoch": "1.000000000"}  # fmt: skip


def test_an_ordinary_packet_has_no_excuse():
    assert set(PLAIN) == set(NEEDED)
    ours = dict.fromkeys(PACKETS) | PLAIN
    assert {trap_of_value(name, ours, ROW) for name in PACKETS} == {None}
    assert trap_of_frame(ours) is None
    assert trap_of_row(ROW) is None


@pytest.mark.parametrize(
    ("name", "change", "row"),
    [
        ("psn", {}, {"infiniband.bth.opcode": "129"}),  # only what is behind the BTH of an unknown opcode
        ("syndrome", {}, {"infiniband.bth.opcode": "129"}),
        ("psn", {"dest_qp": 1}, {}),
        ("opcode", {"udp_sport": 50000}, {"frame.protocols": "eth:ethertype:ip:udp:data", "infiniband.bth.opcode": ""}),
        ("src", {"udp_sport": 69}, {"frame.protocols": "eth:ethertype:ip:udp:tftp", "infiniband.bth.opcode": ""}),
        ("time_ns", {"udp_sport": 69}, {"frame.protocols": "eth:ethertype:ip:udp:tftp", "infiniband.bth.opcode": ""}),
        ("ip_len", {"ip_len": 59}, {}),
        ("udp_len", {"status": "cut"}, {}),
        ("src", {"status": "malformed"}, {}),
        ("psn", {}, {"ip.flags.mf": "1"}),
        ("icrc", {"wire_len": 74}, {}),  # exactly room for it
    ],
)
def test_a_trap_excuses_nothing_else(name, change, row):
    ours = dict.fromkeys(PACKETS) | PLAIN | change
    assert trap_of_value(name, ours, ROW | row) is None


def test_one_byte_too_short_is_a_trap():
    assert trap_of_value("icrc", dict.fromkeys(PACKETS) | PLAIN | {"wire_len": 73}, ROW) == "short_frame"


def test_a_time_that_does_not_fit():
    row = ROW | {"frame.time_epoch": "9223372036854.775813000"}
    assert trap_of_value("time_ns", {**PLAIN, "time_ns": (1 << 63) - 1}, row) == "time_limits"
    assert trap_of_value("time_ns", {**PLAIN, "time_ns": (1 << 63) - 2}, row) is None


@pytest.mark.parametrize("protocol", ["icmp", "icmpv6"])
def test_errors_quote(protocol):
    assert trap_of_row(ROW | {"frame.protocols": f"eth:ethertype:ip:{protocol}:ip:udp:infiniband"}) == "icmp_quote"


@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [(69, 4791, "lower_port"), (50000, 4791, None), (4791, 53, "lower_port"), (4791, 4791, None)],
)
def test_lower_ports(source, destination, code):
    """Of a packet that is no InfiniBand to tshark."""
    row = ROW | {"frame.protocols": "eth:ethertype:ip:udp:other", "infiniband.bth.opcode": ""}
    ours = dict.fromkeys(PACKETS) | PLAIN | {"udp_sport": source, "udp_dport": destination}
    assert trap_of_value("psn", ours, row) == code


def test_what_is_sent_to_a_further_port():
    row = ROW | {"udp.dstport": "4792"}
    assert trap_of_row(row) == "source_port"
    assert trap_of_row(row, frozenset({4792})) is None
