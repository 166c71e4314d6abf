"""Whatever the layers build: dissected again, built again, cut anywhere, read by tshark and by the kernel."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.layers.l2 import Ether
from scapy.packet import NoPayload, Padding, Raw
from scapy.utils import wrpcap
from strategies import carriers, frames, native_carriers, opcodes, transports, tunnelled

from roce_dissect.layers import BTH, GRH, LRH, CrcVerdict, verify_icrc

#: A fixture that is the same for all examples (it only lets Scapy's errors through) is no trouble.
EXAMPLES = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow], "deadline": None}
NATIVE = st.builds(lambda below, above: below / above, native_carriers(), transports())
ANY = frames() | tunnelled() | NATIVE


def layers_of(packet):
    while not isinstance(packet, NoPayload):
        yield packet
        packet = packet.payload


@settings(max_examples=100, **EXAMPLES)
@given(ANY)
def test_built_dissected_and_built_again(packet):
    built = bytes(packet)
    again = type(packet)(built)
    assert bytes(again) == built
    assert verify_icrc(again) is CrcVerdict.GOOD
    if isinstance(again, LRH):
        assert again.verify_vcrc() is CrcVerdict.GOOD
    for made, read in zip(layers_of(packet), layers_of(again), strict=True):
        assert type(read) is type(made)
        for field, value in made.fields.items():
            if value is not None:
                assert read.getfieldval(field) == value, (type(made), field)
    again.clear_cache()  # all layers anew from their fields, Scapy's as well
    assert bytes(again) == built


@settings(max_examples=60, **EXAMPLES)
@given(ANY, st.binary(min_size=1, max_size=20))
def test_what_follows_a_packet_is_padding(packet, trailer):
    built = bytes(packet)
    again = type(packet)(built + trailer)
    assert bytes(again) == built + trailer
    assert again[Padding].load == trailer
    assert verify_icrc(again) is CrcVerdict.GOOD
    bth = again[BTH]
    payload = packet[Raw].load if Raw in packet else b""
    assert (again[Raw].load if type(again.lastlayer().underlayer) is Raw else b"") == payload
    assert (bth.pad, bth.pad_count) == (bytes(-len(payload) % 4), -len(payload) % 4)


@settings(max_examples=15, **EXAMPLES)
@given(ANY)
def test_any_prefix_dissects(packet):
    """And builds to the same bytes. Below 14 bytes Scapy's own Ether raises: what is promised begins there."""
    built = bytes(packet)
    below = len(built) - len(bytes(type(packet)(built)[BTH]))
    for size in range(14 if isinstance(packet, Ether) else 1, len(built)):
        # Scapy's own layers raise when they are cut, and fall back to Raw: only ours are under test here.
        conf.debug_dissector = size >= below or not isinstance(packet, Ether)
        cut = type(packet)(built[:size])
        assert bytes(cut) == built[:size]
        assert verify_icrc(cut) is (CrcVerdict.GOOD if size >= len(built) - 2 and LRH in cut else CrcVerdict.UNKNOWN)
        assert cut.summary()
        assert cut.show(dump=True)


@pytest.mark.parametrize("layer", [BTH, GRH, LRH], ids=lambda layer: layer.__name__)
@settings(max_examples=100, **EXAMPLES)
@given(data=st.binary(min_size=1, max_size=90))
def test_any_bytes_dissect(layer, data):
    packet = layer(data)
    assert bytes(packet) == data
    assert isinstance(verify_icrc(packet), CrcVerdict)
    assert packet.summary()


def collected(strategy, count):
    """Packets of a strategy, the same at every run."""
    packets = []

    @settings(max_examples=count, derandomize=True, database=None, **EXAMPLES)
    @given(strategy)
    def collect(packet):
        packets.append(packet)

    collect()
    return packets


# With a lower source port tshark takes RoCE for what it knows at that port (trap 1).
LATER_PORTS = st.integers(4792, 65535)
# What goes to QP 0 or 1 is a management datagram to it, whatever the opcode, and bad ones lose their ICRC.
DATA = st.integers(2, 0xFFFFFF).flatmap(lambda qp: transports(dest_qp=qp))


@pytest.mark.parametrize("version", ["v1", "ipv4", "ipv6"])
def test_tshark_reads_the_same(version, wireshark, tmp_path):
    packets = collected(frames(carriers((version,), LATER_PORTS), DATA), 150)
    path = tmp_path / "built.pcap"
    wrpcap(str(path), packets)
    fields = wireshark.TRANSPORT | wireshark.ROUTING
    theirs = wireshark.read(path, fields)
    assert sorted(theirs) == list(range(1, len(packets) + 1))
    for number, packet in enumerate(packets, 1):
        ours, read = wireshark.both(Ether(bytes(packet)), theirs[number], fields=fields)
        assert ours == read, number


def test_tshark_reads_native_infiniband(wireshark, tmp_path):
    packets = collected(st.builds(lambda below, above: below / above, native_carriers(), DATA), 150)
    path = tmp_path / "native.pcap"
    wireshark.write_native(path, [bytes(packet) for packet in packets])
    fields = wireshark.TRANSPORT | wireshark.ROUTING
    theirs = wireshark.read(path, fields)
    assert sorted(theirs) == list(range(1, len(packets) + 1))
    for number, packet in enumerate(packets, 1):
        ours, read = wireshark.both(LRH(bytes(packet)), theirs[number], fields=fields)
        assert ours == read, number


def test_many_opcodes_are_made():
    assert len({packet.opcode for packet in collected(transports(opcodes()), 400)}) > 40
