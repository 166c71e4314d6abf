"""The invariant CRC: the one place that computes it."""

from __future__ import annotations

from scapy.packet import Packet

__all__ = ["icrc_of"]


def icrc_of(carrier: Packet | None, covered: bytes) -> int:
    """ICRC of a packet that is being built.

    Not computed yet: the result is always 0. Give ``BTH(icrc=...)`` where the value matters.

    Parameters
    ----------
    carrier : Packet or None
        Layer below the BTH (UDP with its IP header, or GRH), not built yet: its automatic fields may be None.
    covered : bytes
        From the BTH to the end of the pad.

    Returns
    -------
    int
        As zlib.crc32 gives it; it stands little-endian on the wire.
    """
    del carrier, covered
    return 0
