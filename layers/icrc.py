"""ICRC, the invariant CRC: the one place that computes it, and what it says of a packet.

It is the CRC-32 of Ethernet and zlib over the packet from its network header to the end of the pad, where all bits that
the way may change are taken as ones. Eight bytes of ones go before it: they stand for the LRH of InfiniBand, which RoCE
has not. Without a GRH, native InfiniBand covers its LRH (all but VL) in their place.

Source: IBTA Vol. 1, 7.8.1, and annexes A16 and A17; Linux ``rxe_icrc.c``. Measured on real RoCE v2 over IPv4 and IPv6,
v1, CNPs of ConnectX, and native InfiniBand.
"""

from __future__ import annotations

import zlib
from enum import Enum
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet

from roce_dissect.layers.header import Header
from roce_dissect.spec.headers import ICRC_SIZE

__all__ = ["CrcVerdict", "expected_icrc", "icrc_of", "icrc_verdict"]

_BEFORE = b"\xff" * 8  # in the place of the LRH
#: Bits taken as ones: traffic class, TTL, header checksum; traffic class, flow label, hop limit; UDP checksum.
_MASK_IPV4 = bytes.fromhex("00ff 0000 0000 0000 ff 00 ffff")
_MASK_IPV6 = bytes.fromhex("0fffffff 0000 00 ff")
_MASK_UDP = bytes.fromhex("0000 0000 0000 ffff")
_MASK_BTH = bytes.fromhex("0000 0000 ff")  # FECN, BECN and the reserved bits beside them


class CrcVerdict(Enum):
    """What a CRC says of its packet. Only `GOOD` is true."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "cannot tell"

    def __bool__(self) -> bool:
        return self is CrcVerdict.GOOD

    @classmethod
    def of(cls, fits: bool) -> CrcVerdict:
        """`GOOD` or `BAD`."""
        return cls.GOOD if fits else cls.BAD


def icrc_of(carrier: Packet | None, covered: bytes) -> int:
    """ICRC of a packet.

    Parameters
    ----------
    carrier : Packet or None
        Layer below the BTH (UDP with its IP header, GRH or LRH). It need not be built yet: automatic lengths are taken
        as they will be.
    covered : bytes
        From the BTH to the end of the pad.

    Returns
    -------
    int
        As zlib.crc32 gives it; it stands little-endian on the wire. 0 where the layers below are none of these, as for
        a BTH alone: there is nothing to compute it from.

    Examples
    --------
    The sample packet of IBTA Vol. 1, 7.8.1, whose ICRC is given there as 96 25 b7 5a:

    >>> from roce_dissect.layers import LRH
    >>> covered = "0a20248700 87b1b3000dec2a 01710a1c015d400238f27a050000000e bb884d85fd5cfba4728bc0690ed40000"
    >>> hex(icrc_of(LRH(vl=7, sl=1, dlid=0x375C, slid=0x17D2), bytes.fromhex(covered)))
    '0x5ab72596'
    """
    before = _before(carrier, len(covered) + ICRC_SIZE)
    return 0 if before is None else zlib.crc32(_masked(covered, _MASK_BTH), zlib.crc32(before))


def expected_icrc(bth: Any) -> int | None:
    """ICRC that a packet should have; None where its own is not whole, or the layers below do not say.

    Parameters
    ----------
    bth : BTH
        With its payload, and with the layers below it.
    """
    if not isinstance(bth.icrc, int) or _network(bth.underlayer) is None:
        return None
    return icrc_of(bth.underlayer, bth.do_build()[:-ICRC_SIZE])


def icrc_verdict(bth: Any) -> CrcVerdict:
    """What the ICRC says of a packet: `roce_dissect.layers.verify_icrc`, which says more."""
    expected = expected_icrc(bth)
    if expected is None:
        return CrcVerdict.UNKNOWN
    verdict = CrcVerdict.of(expected == bth.icrc)
    return verdict if verdict or _plain(bth.underlayer) else CrcVerdict.UNKNOWN


def _network(carrier: Packet | None) -> Packet | None:
    """Lowest layer that the ICRC covers: IP of a UDP datagram, GRH or LRH."""
    if isinstance(carrier, UDP):
        below = carrier.underlayer
        while below is not None and not isinstance(below, (IP, IPv6)):
            below = below.underlayer  # extension headers
        return below
    return carrier if isinstance(carrier, Header) and carrier.icrc_mask else None


def _plain(carrier: Packet) -> bool:
    """Whether nothing but the bare headers lies below the BTH."""
    if not isinstance(carrier, UDP):
        return True
    below = carrier.underlayer
    return isinstance(below, IPv6) or (isinstance(below, IP) and not below.options)


def _before(carrier: Packet | None, behind: int) -> bytes | None:
    """What the ICRC covers before the BTH, masked; `behind` bytes follow, ICRC included."""
    network = _network(carrier)
    if network is None:
        return None
    covered = b""
    layer: Any = carrier
    while True:
        header, mask = _header(layer, behind + len(covered))
        covered = _masked(header, mask) + covered
        if layer is network:
            break
        layer = layer.underlayer
    # The LRH stands where the ones would. Below a GRH it is masked whole, so that the ones stand for it too.
    in_their_place = isinstance(network, Header) and network.header_size == len(_BEFORE)
    return covered if in_their_place else _BEFORE + covered


def _header(layer: Any, behind: int) -> tuple[bytes, bytes]:
    """Bytes of a layer below the BTH with its automatic lengths filled in, and the bits of it that count as ones."""
    header = layer.self_build()
    if isinstance(layer, Header):
        return layer.with_length(header, behind), layer.icrc_mask
    if isinstance(layer, UDP):
        return _with_length(header, 4, layer.len, len(header) + behind), _MASK_UDP
    if isinstance(layer, IPv6):
        return _with_length(header, 4, layer.plen, behind), _MASK_IPV6
    if isinstance(layer, IP):
        header += bytes(-len(header) % 4)  # options
        if layer.ihl is None:
            header = bytes([header[0] & 0xF0 | len(header) // 4]) + header[1:]
        return _with_length(header, 2, layer.len, len(header) + behind), _MASK_IPV4
    return layer.post_build(header, bytes(behind))[:-behind], b""


def _with_length(header: bytes, at: int, given: int | None, length: int) -> bytes:
    """Header with its 16-bit length, unless that was given."""
    return header if given is not None else header[:at] + (length & 0xFFFF).to_bytes(2, "big") + header[at + 2 :]


def _masked(data: bytes, mask: bytes) -> bytes:
    """Bytes with the bits of `mask` set to one."""
    return bytes(byte | ones for byte, ones in zip(data, mask, strict=False)) + data[len(mask) :]
