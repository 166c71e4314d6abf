"""Headers of a RoCE packet: one bit each, and their sizes.

The bits serve twice: an opcode's chain of extended headers (`roce_dissect.spec.opcodes`) and a decoded packet's
presence mask (column ``present``). They are plain integers, since the kernels use them as C constants.

Source: IBTA Vol. 1, chapter 9; sizes as in Linux ``rxe_hdr.h``.
"""

from __future__ import annotations

# -- extended headers, in the order in which they follow the BTH
HAS_RDETH = 1 << 0
HAS_DETH = 1 << 1
HAS_XRCETH = 1 << 2
HAS_FETH = 1 << 3
HAS_RETH = 1 << 4
HAS_ATOMIC_ETH = 1 << 5
HAS_AETH = 1 << 6
HAS_ATOMIC_ACK_ETH = 1 << 7
HAS_IMMDT = 1 << 8
HAS_IETH = 1 << 9
HAS_CNP = 1 << 10  # the 16 reserved bytes of a CNP

# -- what lies before and behind them
HAS_ETH = 1 << 16
HAS_VLAN = 1 << 17
HAS_VLAN2 = 1 << 18  # the second tag (QinQ)
HAS_IPV4 = 1 << 19
HAS_IPV6 = 1 << 20
HAS_GRH = 1 << 21
HAS_UDP = 1 << 22
HAS_BTH = 1 << 23
HAS_ICRC = 1 << 24  # its four bytes were captured
HAS_TUNNEL = 1 << 25  # the packet came within another; what follows is of the tunnels
HAS_OUTER_IP = 1 << 26  # one of them had an IP header
HAS_VNI = 1 << 27  # VXLAN, GENEVE or NVGRE
HAS_SESSION = 1 << 28  # ERSPAN II or III
HAS_GRE_SEQ = 1 << 29
HAS_LRH = 1 << 30  # native InfiniBand

#: Bytes of each extended header.
EXTENDED_SIZE = {
    HAS_RDETH: 4,
    HAS_DETH: 8,
    HAS_XRCETH: 4,
    HAS_FETH: 4,
    HAS_RETH: 16,
    HAS_ATOMIC_ETH: 28,
    HAS_AETH: 4,
    HAS_ATOMIC_ACK_ETH: 8,
    HAS_IMMDT: 4,
    HAS_IETH: 4,
    HAS_CNP: 16,
}
BTH_SIZE = 12
GRH_SIZE = 40
LRH_SIZE = 8
ICRC_SIZE = 4


def chain_size(chain: int) -> int:
    """Bytes of all extended headers of a chain."""
    return sum(size for bit, size in EXTENDED_SIZE.items() if chain & bit)
