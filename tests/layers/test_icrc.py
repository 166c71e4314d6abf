"""The one place that computes the ICRC."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP

from roce_dissect.layers import BTH
from roce_dissect.layers.icrc import icrc_of


def test_not_computed_yet():
    assert icrc_of(None, bytes(12)) == 0


def test_asked_for_with_the_carrier_and_the_bytes_to_the_end_of_the_pad(monkeypatch):
    asked = []
    monkeypatch.setattr("roce_dissect.layers.bth.icrc_of", lambda *args: asked.append(args) or 0x01020304)
    built = bytes(IP() / UDP() / BTH() / b"abc")
    ((carrier, covered),) = asked
    assert isinstance(carrier, UDP)
    assert covered == built[28:-4]
    assert covered.endswith(b"abc\0")
    assert built.endswith(bytes.fromhex("04030201"))  # little-endian on the wire


def test_not_asked_for_a_captured_packet(monkeypatch):
    packet = UDP(bytes(UDP() / BTH(icrc=7) / b"abcd"))
    monkeypatch.setattr("roce_dissect.layers.bth.icrc_of", None)
    packet[BTH].psn += 1
    assert bytes(packet).endswith(bytes.fromhex("07000000"))
