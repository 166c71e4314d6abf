"""Values of the BTH's fields that have a meaning of their own.

Source: IBTA Vol. 1, 9.2 and 10.9.1.
"""

from __future__ import annotations

__all__ = ["MULTICAST_QP", "PARTITION_BITS"]

#: Destination QP of all multicast packets.
MULTICAST_QP = 0xFFFFFF
#: Of a P_Key without its membership bit: 0 is invalid, all of them are the default partition (IBTA 10.9.1.2).
PARTITION_BITS = 0x7FFF
