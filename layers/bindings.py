"""Where RoCE begins: Ethertype 0x8915 (v1) and UDP destination port 4791 (v2).

Scapy takes the first of a layer's bindings that fits, and its own for UDP ask for a *source* port as well: 53, 69, 123,
4789 and some thirty more would hide RoCE packets, whose source port is mere entropy. Ours therefore stand first in the
list, before those and before what `scapy.contrib.roce` binds, whenever that module is loaded. Nothing is removed or
changed: bindings of other ports, and the classes of that module, work as before.

Source: IBTA annexes A16 and A17.
"""

from __future__ import annotations

from typing import Any

import scapy.layers.inet6  # binds IPv6, so that v2 over IPv6 is found
import scapy.layers.vxlan  # noqa: F401  (binds VXLAN, so that RoCE in it is found)
from scapy.layers.inet import UDP
from scapy.layers.l2 import CookedLinux, Ether
from scapy.packet import Packet, bind_top_down

from roce_dissect.layers.bth import BTH
from roce_dissect.layers.cnp import CNP
from roce_dissect.layers.grh import GRH
from roce_dissect.spec.net import ETHERTYPE_ROCE_V1, PORT_ROCE_V2
from roce_dissect.spec.opcodes import Opcode

__all__ = ["bind"]

#: Source port of crafted packets: the first of those that NICs use (rdma-core's ``rdma_flow_label_to_udp_sport``).
#: Scapy's own default, 53, would make other tools read DNS.
_SOURCE_PORT = 0xC000


def bind() -> None:
    """Bind the layers. Called once, by the import of `roce_dissect.layers`."""
    _first(UDP, BTH, dport=PORT_ROCE_V2)
    bind_top_down(UDP, BTH, dport=PORT_ROCE_V2, sport=_SOURCE_PORT)
    # VLAN tags have the bindings of Ether, and CookedLinuxV2 those of CookedLinux.
    for link, field in ((Ether, "type"), (CookedLinux, "proto")):
        _first(link, GRH, **{field: ETHERTYPE_ROCE_V1})
        bind_top_down(link, GRH, **{field: ETHERTYPE_ROCE_V1})
    bind_top_down(BTH, CNP, opcode=int(Opcode["CNP"]), becn=1)


def _first(lower: type[Packet], upper: type[Packet], **fields: Any) -> None:
    """Bind for dissection, before all other bindings of the lower layer."""
    lower.payload_guess = [(fields, upper), *lower.payload_guess]
