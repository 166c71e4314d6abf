"""The ICRC of whole packets, a batch at a time.

It is the CRC-32 of zlib over the packet from its IP header or GRH to the end of the pad, where all bits that the way
may change are taken as ones. Eight bytes of ones go before it: they stand for the LRH of InfiniBand, which RoCE lacks,
and which counts as ones beside a GRH, too. Without a GRH, native InfiniBand covers its LRH (all but VL) in their place.

Source: IBTA Vol. 1, 7.8.1, annexes A16 and A17; Linux ``rxe_icrc.c``. `roce_dissect.layers.verify_icrc` says the same
of a Scapy packet, from its layers; here NumPy masks the bytes of all packets of a batch at once, in the reader's
buffer, a library makes one CRC of each packet, and the bytes are put back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from isal.isal_zlib import crc32

from roce_dissect.spec.headers import (
    BTH_SIZE,
    EXTENDED_SIZE,
    GRH_SIZE,
    HAS_BTH,
    HAS_GRH,
    HAS_ICRC,
    HAS_IPV4,
    HAS_IPV6,
    HAS_LRH,
    ICRC_SIZE,
    LRH_SIZE,
)
from roce_dissect.spec.opcodes import Opcode
from roce_dissect.terms import IcrcStatus, Status

__all__ = ["ICRC_COLUMNS", "bth_offsets", "expected_icrc", "verify_icrcs"]

#: Decoded columns that `verify_icrcs` needs.
ICRC_COLUMNS = (
    "present", "status", "opcode", "payload_offset", "payload_len", "pad_count", "ip_len", "udp_len", "icrc",
    "offset", "network_offset",
)  # fmt: skip

_ONES = crc32(b"\xff" * LRH_SIZE)  # CRC of the bytes that go before
_EXTENDED_BITS = (1 << 11) - 1
_IPV4_SIZE, _IPV6_SIZE, _UDP_SIZE = 20, 40, 8
_FLUSH = int(Opcode["RC_FLUSH"])

#: Bytes of a header that count as ones: traffic class, TTL, checksum; traffic class and flow label, hop limit; checksum
#: of UDP; FECN, BECN and the reserved bits beside them.
_IN_IPV4 = (1, 8, 10, 11)
_IN_IPV6 = (1, 2, 3, 7)  # and the lower half of byte 0
_IN_UDP = (6, 7)
_IN_BTH = (4,)


def _extended_sizes() -> np.ndarray:
    """Bytes of extended headers by their presence bits, int64[2048]."""
    bits = np.arange(_EXTENDED_BITS + 1)
    return sum((np.where(bits & bit, size, 0) for bit, size in EXTENDED_SIZE.items()), np.zeros(len(bits), np.int64))


_SIZES = _extended_sizes()


def bth_offsets(columns: Mapping[str, np.ndarray], rows: slice | np.ndarray) -> np.ndarray:
    """Where the BTH of packets that have one begins in their frames, int64."""
    sizes = _SIZES[columns["present"][rows] & _EXTENDED_BITS]
    return columns["payload_offset"][rows].astype(np.int64) - BTH_SIZE - sizes


def verify_icrcs(
    columns: Mapping[str, np.ndarray], rows: int, data: np.ndarray, out: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the ICRC says of each of the first `rows` packets.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        At least `ICRC_COLUMNS`.
    rows : int
        Valid rows.
    data : numpy.ndarray
        uint8, the bytes that ``offset`` counts in. They are written to, and restored.
    out : numpy.ndarray
        uint8, at least `rows` long: filled with `IcrcStatus`, ``PLACEHOLDER`` not among them.

    Returns
    -------
    whole : numpy.ndarray
        int64, the rows that are good or bad.
    odd : numpy.ndarray
        bool, as long: the ICRC is the one that Linux rxe 6.12 computes for FLUSH. It runs once more over the packet
        from the BTH on, unmasked; measured on every FLUSH of a capture of two such hosts, who accept it.
    """
    present = columns["present"][:rows]
    # an order of first things first: what has no BTH, or lengths that say nothing of where the ICRC is
    out[:rows] = np.where(present & HAS_ICRC, IcrcStatus.GOOD, IcrcStatus.SLICED)
    out[:rows][((present & HAS_BTH) == 0) | (columns["status"][:rows] == Status.FRAGMENT)] = IcrcStatus.NONE
    whole = np.flatnonzero(out[:rows] == IcrcStatus.GOOD)
    if len(whole) == 0:
        return whole, np.zeros(0, bool)
    present = present[whole]
    start = columns["offset"][whole]
    bth = start + bth_offsets(columns, whole)
    network = start + columns["network_offset"][whole].astype(np.int64)
    udp = (present & (HAS_IPV4 | HAS_IPV6)) != 0
    v4 = (present & HAS_IPV4) != 0
    v6 = (present & (HAS_IPV6 | HAS_GRH)) != 0
    local = ~(v4 | v6)  # native InfiniBand without a GRH
    end = np.where(udp, bth - _UDP_SIZE + columns["udp_len"][whole], network + GRH_SIZE + columns["ip_len"][whole])
    if local.any():
        rest = columns["payload_len"][whole].astype(np.int64) + columns["pad_count"][whole] + ICRC_SIZE
        end = np.where(local, start + columns["payload_offset"][whole] + rest, end)
    end -= ICRC_SIZE
    # options and extension headers: no rule says which of their bits count
    bare = np.where(udp, bth - network == _UDP_SIZE + np.where(v4, _IPV4_SIZE, _IPV6_SIZE), True)
    # what contradicts itself: bounds are not taken on trust
    sound = (network >= start) & (bth >= network) & (end >= bth + BTH_SIZE) & (end + ICRC_SIZE <= len(data))
    sound &= ~local | ((columns["status"][whole] == Status.OK) & (present & HAS_LRH != 0))
    out[whole[~sound]] = IcrcStatus.NONE
    if not sound.all():
        whole, present, bth, network, end = (each[sound] for each in (whole, present, bth, network, end))
        udp, v4, v6, local, bare = (each[sound] for each in (udp, v4, v6, local, bare))
    found = _crcs(data, network, bth, end, udp, v4, v6, local)
    fits = found == columns["icrc"][whole]
    out[whole[~fits]] = np.where(bare[~fits], IcrcStatus.BAD, IcrcStatus.NONE)
    odd = np.zeros(len(whole), bool)
    for row in np.flatnonzero(~fits & (columns["opcode"][whole] == _FLUSH)).tolist():
        again = crc32(memoryview(data)[bth[row] : end[row]], int(found[row]))
        odd[row] = again == columns["icrc"][whole[row]]
    judged = fits | bare
    return whole[judged], odd[judged]


def expected_icrc(frame: bytes, network: int, bth: int, end: int, kind: int) -> int:
    """ICRC that one packet should have, as zlib gives it.

    Parameters
    ----------
    frame : bytes
        All that the ICRC covers must be in it.
    network, bth, end : int
        Where its IP header, GRH or LRH begins, its BTH, and its ICRC.
    kind : int
        Of the header at `network`: `HAS_IPV4`, `HAS_IPV6`, `HAS_GRH`, or `HAS_LRH` for one without a GRH.
    """
    data = np.frombuffer(bytearray(frame), np.uint8)
    places = (np.array([at], np.int64) for at in (network, bth, end))
    flags = (kind in (HAS_IPV4, HAS_IPV6), kind == HAS_IPV4, kind in (HAS_IPV6, HAS_GRH), kind == HAS_LRH)
    return int(_crcs(data, *places, *(np.array([one]) for one in flags))[0])


def _crcs(
    data: np.ndarray,
    network: np.ndarray,
    bth: np.ndarray,
    end: np.ndarray,
    udp: np.ndarray,
    v4: np.ndarray,
    v6: np.ndarray,
    local: np.ndarray,
) -> np.ndarray:
    """ICRCs of packets from `network` to `end`, uint32, as zlib gives them."""
    ones = [_places(bth, _IN_BTH), _places(network[v4], _IN_IPV4), _places(network[v6], _IN_IPV6)]
    ones.append(_places(bth[udp] - _UDP_SIZE, _IN_UDP))
    places = np.concatenate([*ones, network[v6], network[local]])
    masks = np.full(len(places), 0xFF, np.uint8)
    halves = len(places) - np.count_nonzero(v6) - np.count_nonzero(local)
    masks[halves : halves + np.count_nonzero(v6)] = 0x0F
    masks[halves + np.count_nonzero(v6) :] = 0xF0
    if not data.flags.writeable:  # no reader of this project hands that over; a caller might
        data = data.copy()
    saved = data[places]
    try:
        data[places] = saved | masks
        view = memoryview(data)
        spans = zip(network.tolist(), end.tolist(), strict=True)
        if not local.any():
            return np.array([crc32(view[first:last], _ONES) for first, last in spans], np.uint32)
        before = np.where(local, 0, _ONES).tolist()
        return np.array([crc32(view[a:b], c) for (a, b), c in zip(spans, before, strict=True)], np.uint32)
    finally:
        data[places] = saved


def _places(first: np.ndarray, offsets: tuple[int, ...]) -> np.ndarray:
    """Each of the bytes at `offsets` from each of `first`."""
    return (first[:, None] + np.array(offsets, np.int64)).ravel()
