"""Scapy layers for RoCE v1 and v2: the definition of every header in this project.

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
from roce_dissect.layers.bth import BTH
from roce_dissect.layers.cnp import CNP
from roce_dissect.layers.extended import DETH, FETH, IETH, RETH, AtomicAckETH, AtomicETH, ImmDt
from roce_dissect.layers.grh import GRH
from roce_dissect.layers.header import CutHeader

__all__ = [
    "AETH",
    "BTH",
    "CNP",
    "DETH",
    "FETH",
    "GRH",
    "IETH",
    "RETH",
    "AtomicAckETH",
    "AtomicETH",
    "CutHeader",
    "ImmDt",
]

bind()
