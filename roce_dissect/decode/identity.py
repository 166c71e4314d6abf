"""What makes a packet the same packet when it is seen a second time, and in what its sightings differ.

On its way a packet changes its link header, its TTL, its congestion marks, and what it travels in; all else stays, and
so does the ICRC, which covers all else. The network of a VNI stays, too: the packet in its VXLAN and the same one
without it belong to two networks, whose streams are told apart all the way through.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roce_dissect.columns import FILE_SHIFT
from roce_dissect.spec.headers import HAS_VLAN, HAS_VLAN2

__all__ = ["DOUBLES_COLUMNS", "SIGHTING_COLUMNS", "WAYS", "fingerprints", "way_fingerprints", "way_words"]

#: What every sighting of a packet has alike, however little of it was captured.
_ADDRESSED = (
    "src", "dst", "ip_id", "ip_len", "udp_sport", "version", "vni", "opcode", "dest_qp", "psn", "p_key", "pad_count",
)  # fmt: skip
#: What it has alike where as much of it was captured.
_WHOLE = ("payload_len", "dma_len", "syndrome", "msn", "src_qp", "icrc")

#: In what sightings of one packet may differ, in the words of the capture summary, and the columns that tell it.
WAYS: dict[str, tuple[str, ...]] = {
    "file": ("frame_key",),
    "mac_addresses": ("eth_dst", "eth_src"),
    "vlan_tags": ("present", "vlan_id", "vlan2_id"),
    "tunnel": ("tunnel", "outer_src", "outer_dst", "session"),
    "ttl": ("ttl",),
}
#: Bits of a column that count, where not all do.
_SHIFTS = {"frame_key": FILE_SHIFT}
_MASKS = {"present": HAS_VLAN | HAS_VLAN2}

#: Columns that are needed only to tell ways apart.
SIGHTING_COLUMNS = (
    "eth_dst", "eth_src", "vlan_id", "vlan2_id", "tunnel", "outer_src", "outer_dst", "session", "ttl",
)  # fmt: skip
#: Columns that recognising doubled captures needs.
DOUBLES_COLUMNS = ("frame_key", "time_ns", "present", "cap_len", "wire_len", *_ADDRESSED, *_WHOLE, *SIGHTING_COLUMNS)

# odd constants of the 64-bit finalizer of MurmurHash3 (public domain): every bit of a word reaches every bit
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(33)


def fingerprints(columns: Mapping[str, np.ndarray], rows: np.ndarray, whole: bool) -> np.ndarray:
    """64 bits for each packet, alike for all its sightings.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        At least `DOUBLES_COLUMNS`.
    rows : numpy.ndarray
        Integers, shape (n,): which rows.
    whole : bool
        Whether all sightings show as much of the packet: extended headers and ICRC count as well.

    Returns
    -------
    numpy.ndarray
        uint64, shape (n,).
    """
    names = _ADDRESSED + (_WHOLE if whole else ())
    return _mixed([columns[name][rows] for name in names], rows.shape)


def way_words(columns: Mapping[str, np.ndarray], rows: np.ndarray, way: str) -> np.ndarray:
    """uint64, shape of `rows`: alike for sightings that do not differ in this way, one of `WAYS`."""
    words = []
    for name in WAYS[way]:
        values = columns[name][rows]
        if name in _SHIFTS:
            values = values >> _SHIFTS[name]
        words.append(values & values.dtype.type(_MASKS[name]) if name in _MASKS else values)
    return words[0].astype(np.uint64) if len(words) == 1 else _mixed(words, words[0].shape)


def way_fingerprints(columns: Mapping[str, np.ndarray], rows: np.ndarray, ways: tuple[str, ...]) -> np.ndarray:
    """uint64, shape of `rows`: alike for sightings that differ in none of these ways."""
    return _mixed([way_words(columns, rows, way) for way in ways], rows.shape)


def _mixed(words: list[np.ndarray], shape: int | tuple[int, ...]) -> np.ndarray:
    """One 64-bit number from several words each."""
    mixed = np.zeros(shape, np.uint64)
    for word in words:
        mixed ^= word.astype(np.uint64)
        mixed *= _FIRST
        mixed ^= mixed >> _HALF
        mixed *= _SECOND
        mixed ^= mixed >> _HALF
    return mixed
