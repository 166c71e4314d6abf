"""Scapy layers for RoCE v1, v2 and native InfiniBand: the definition of every header in this project.

>>> from roce_dissect.layers import BTH, RETH
>>> from scapy.layers.inet import IP, UDP
>>> read = BTH(opcode="RC READ REQUEST", dest_qp=0x11, psn=7) / RETH(va=0x1000, r_key=0x203, dma_len=64)
>>> packet = IP(dst="192.0.2.2") / UDP() / read
>>> packet[UDP].dport
4791

Importing this package binds the layers to Ethertype 0x8915 and UDP port 4791 (`roce_dissect.layers.bindings`);
importing ``roce_dissect`` alone binds nothing.
"""

from __future__ import annotations

# The folder lies at the top of the repository and is reached through the link roce_dissect/layers. From the top,
# ``import layers`` would find it too, as a second set of classes with a second set of bindings.
if __name__ != "roce_dissect.layers":
    raise ImportError(f"these Scapy layers are imported as roce_dissect.layers, not as {__name__}")

from roce_dissect.layers.aeth import AETH
from roce_dissect.layers.bindings import bind
from roce_dissect.layers.bth import BTH, verify_icrc
from roce_dissect.layers.cnp import CNP, cnp
from roce_dissect.layers.convert import (
    add_vlan,
    add_vxlan,
    strip_vlan,
    strip_vxlan,
    to_ipv4,
    to_ipv6,
    to_v1,
    to_v2,
)
from roce_dissect.layers.craft import carrier, roce
from roce_dissect.layers.extended import DETH, FETH, IETH, RDETH, RETH, XRCETH, AtomicAckETH, AtomicETH, ImmDt
from roce_dissect.layers.grh import GRH
from roce_dissect.layers.header import CutHeader
from roce_dissect.layers.icrc import CrcVerdict
from roce_dissect.layers.lrh import LRH
from roce_dissect.layers.replies import ack, atomic_response, nak, rdma_read_response, rnr_nak
from roce_dissect.layers.requests import (
    compare_swap,
    fetch_add,
    rdma_atomic_write,
    rdma_flush,
    rdma_read,
    rdma_send,
    rdma_write,
)

# None of these is a name of scapy.all: star imports of both, in either order, hide nothing.
__all__ = [
    "AETH",
    "BTH",
    "CNP",
    "DETH",
    "FETH",
    "GRH",
    "IETH",
    "LRH",
    "RDETH",
    "RETH",
    "XRCETH",
    "AtomicAckETH",
    "AtomicETH",
    "CrcVerdict",
    "CutHeader",
    "ImmDt",
    "ack",
    "add_vlan",
    "add_vxlan",
    "atomic_response",
    "carrier",
    "cnp",
    "compare_swap",
    "fetch_add",
    "nak",
    "rdma_atomic_write",
    "rdma_flush",
    "rdma_read",
    "rdma_read_response",
    "rdma_send",
    "rdma_write",
    "rnr_nak",
    "roce",
    "strip_vlan",
    "strip_vxlan",
    "to_ipv4",
    "to_ipv6",
    "to_v1",
    "to_v2",
    "verify_icrc",
]

bind()
