"""BTH: the base transport header, which begins every RoCE packet and owns its end.

Source: IBTA Vol. 1, 9.2; FECN and BECN: annex A17. Names are those of `roce_dissect.columns.PACKETS`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import BitField, ByteEnumField, XBitField, XShortField
from scapy.layers.inet import UDP
from scapy.packet import Packet

from roce_dissect.layers.answers import answers
from roce_dissect.layers.header import Header, next_header
from roce_dissect.layers.icrc import CrcVerdict, icrc_of, icrc_verdict
from roce_dissect.layers.trailer import IcrcField, PadField, trailer_span
from roce_dissect.spec.headers import BTH_SIZE, chain_size
from roce_dissect.spec.opcodes import HEADERS, Opcode, operation_name

__all__ = ["BTH", "verify_icrc"]

_UDP_SIZE = 8
_PAD_SHIFT = 4  # of PadCnt in byte 1
_TRANSPORT = 0xE0  # of the opcode


class _OpcodeField(ByteEnumField):
    """Opcode by number, by `Opcode`, or by name: ``RC WRITE FIRST`` or ``RC_WRITE_FIRST``."""

    def any2i_one(self, pkt: Packet | None, x: Any) -> Any:
        return super().any2i_one(pkt, x.replace("_", " ") if isinstance(x, str) else x)


class BTH(Header):
    """Base transport header, with the pad and the ICRC that lie behind the payload.

    ``pad_count`` None is computed from the payload, ``pad`` None is zeros, ``icrc`` None is computed
    (`roce_dissect.layers.icrc`); values that are given, or were captured, stay as they are. ``icrc`` is the number that
    zlib.crc32 gives; in a sliced packet it is the bytes that were captured of it, ``b""`` for none.

    The packet ends where the length of UDP, GRH or LRH says. A BTH dissected without a layer
    below is taken for whole, its last four bytes for the ICRC.

    Examples
    --------
    >>> bth = BTH(bytes.fromhex("0420ffff0000001180000007 6869 0000 78563412"))
    >>> hex(bth.icrc), bth.pad, bth.payload.load
    ('0x12345678', b'\\x00\\x00', b'hi')
    """

    name = "BTH"
    header_size = BTH_SIZE
    fields_desc: ClassVar[list[Any]] = [
        _OpcodeField("opcode", int(Opcode["RC_SEND_ONLY"]), {code: operation_name(code) for code in HEADERS}),
        BitField("se", 0, 1),
        BitField("mig_req", 0, 1),
        BitField("pad_count", None, 2),
        BitField("tver", 0, 4),
        XShortField("p_key", 0xFFFF),
        BitField("fecn", 0, 1),
        BitField("becn", 0, 1),
        BitField("reserved6", 0, 6),
        XBitField("dest_qp", 0, 24),
        BitField("ack_req", 0, 1),
        BitField("reserved7", 0, 7),
        BitField("psn", 0, 24),
        PadField("pad"),
        IcrcField("icrc"),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return next_header(self.opcode) or super().guess_payload_class(payload)

    def post_dissect(self, s: bytes) -> bytes:
        chain = chain_size(HEADERS.get(self.opcode, 0))
        pad, icrc = trailer_span(len(s), self.transport_length(), chain, self.pad_count)
        self.fields["pad"] = s[pad:icrc]
        self.fields["icrc"] = self.get_field("icrc").m2i(self, s[icrc:])
        # With its cached bytes a layer skips post_build, which puts the trailer back. Every bit of the header is a
        # field, so it builds to the same bytes without them.
        self.raw_packet_cache = None
        return s[:pad]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        pad, icrc = self.pad, self.icrc
        pad_count = self.pad_count
        if pad_count is None:
            # Extended headers are multiples of four bytes: only the payload counts.
            pad_count = len(pad) & 3 if pad is not None else -len(pay) & 3
            pkt = pkt[:1] + bytes([pkt[1] | pad_count << _PAD_SHIFT]) + pkt[2:]
        covered = pkt + pay + (bytes(pad_count) if pad is None else pad)
        if icrc is None:
            icrc = icrc_of(self.underlayer, covered)
        return covered + self.get_field("icrc").i2m(self, icrc)

    def verify_icrc(self) -> CrcVerdict:
        """Tell whether the ICRC fits the packet: see `verify_icrc`."""
        return icrc_verdict(self)

    def hashret(self) -> bytes:
        # Of request and reply only the transport is surely the same: the QPs differ, and the PSN may.
        return bytes([self.opcode & _TRANSPORT])

    def answers(self, other: Packet) -> bool:
        return answers(self, other)

    def transport_length(self) -> int | None:
        below = self.underlayer
        if isinstance(below, UDP):
            length = None if below.len is None else below.len - _UDP_SIZE
        else:
            length = below.transport_length() if isinstance(below, Header) else None
        return None if length is None else length - BTH_SIZE

    def mysummary(self) -> Any:
        flags = "".join(f" {name}" for name in ("se", "ack_req", "fecn", "becn") if self.getfieldval(name))
        text = f"BTH {operation_name(self.opcode)} dest_qp={self.dest_qp:#x} psn={self.psn}{flags}"
        return text, self.summary_needs()


def verify_icrc(packet: Packet) -> CrcVerdict:
    """Tell whether the ICRC of a packet fits what it covers.

    `CrcVerdict.UNKNOWN` where that cannot be told: no BTH, a sliced packet (the ICRC, or part of it, was not captured),
    lengths without room for an ICRC, a BTH without the layers below, a packet whose ICRC is not built yet. IPv4 options
    and IPv6 extension headers, of which no source says how they count, are unknown too unless the ICRC fits.

    Parameters
    ----------
    packet : Packet
        That holds a BTH, dissected from a capture or built. Fields that were changed after dissection count as changed.

    Examples
    --------
    >>> from scapy.layers.inet import IP
    >>> packet = IP(bytes(IP(src="192.0.2.1", dst="192.0.2.2") / UDP() / BTH() / b"abc"))
    >>> verify_icrc(packet)
    <CrcVerdict.GOOD: 'good'>
    >>> packet.ttl -= 1  # a router: not covered
    >>> verify_icrc(packet).name
    'GOOD'
    >>> packet[BTH].psn += 1
    >>> verify_icrc(packet).name
    'BAD'
    """
    bth = packet.getlayer(BTH)
    return CrcVerdict.UNKNOWN if bth is None else bth.verify_icrc()
