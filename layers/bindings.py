"""Where RoCE begins: Ethertype 0x8915 (v1), UDP destination port 4791 (v2), link type 247 (native InfiniBand).

Scapy takes the first of a layer's bindings that fits, and its own for UDP ask for a *source* port as well: 53, 69, 123,
4789 and some thirty more would hide RoCE packets, whose source port is mere entropy. Ours therefore stand first in the
list, before those and before what `scapy.contrib.roce` binds, whenever that module is loaded. Nothing is removed:
bindings of other ports, and the classes of that module, work as before.

Source: IBTA annexes A16 and A17.
"""

from __future__ import annotations

import sys
from typing import Any

import scapy.layers
import scapy.layers.inet6  # binds IPv6, so that v2 over IPv6 is found
import scapy.layers.vxlan  # binds VXLAN, so that RoCE in it is found
from scapy.config import conf
from scapy.layers.inet import UDP
from scapy.layers.l2 import CookedLinux, Ether
from scapy.packet import Packet, bind_top_down

from roce_dissect.layers.bth import BTH
from roce_dissect.layers.cnp import CNP
from roce_dissect.layers.grh import GRH
from roce_dissect.layers.lrh import LRH
from roce_dissect.spec.net import ETHERTYPE_ROCE_V1, PORT_ROCE_V2
from roce_dissect.spec.opcodes import Opcode

__all__ = ["SOURCE_PORT", "bind"]

#: Source port of crafted packets: the first of those that NICs use (rdma-core's ``rdma_flow_label_to_udp_sport``).
#: Scapy's own default, 53, would make other tools read DNS.
SOURCE_PORT = 0xC000
_LINKTYPE_INFINIBAND = 247
_PACKAGE = "roce_dissect.layers"
_SCAPY_NAME = "roce_dissect"  # in scapy.layers


def bind() -> None:
    """Bind the layers. Called once, by the import of `roce_dissect.layers`."""
    _first(UDP, BTH, dport=PORT_ROCE_V2)
    bind_top_down(UDP, BTH, dport=PORT_ROCE_V2, sport=SOURCE_PORT)
    # VLAN tags have the bindings of Ether, and CookedLinuxV2 those of CookedLinux.
    for link, field in ((Ether, "type"), (CookedLinux, "proto")):
        _first(link, GRH, **{field: ETHERTYPE_ROCE_V1})
        bind_top_down(link, GRH, **{field: ETHERTYPE_ROCE_V1})
    bind_top_down(BTH, CNP, opcode=int(Opcode["CNP"]), becn=1)
    bind_top_down(LRH, BTH, lnh=2)
    bind_top_down(LRH, GRH, lnh=3)
    conf.l2types.register(_LINKTYPE_INFINIBAND, LRH)
    _answer_across_ports()
    _list_among_scapys_layers()


def _first(lower: type[Packet], upper: type[Packet], **fields: Any) -> None:
    """Bind for dissection, before all other bindings of the lower layer."""
    lower.payload_guess = [(fields, upper), *lower.payload_guess]


def _answer_across_ports() -> None:
    """Let RoCE answer RoCE whatever the source ports.

    Scapy's UDP takes only what comes back to the source port for an answer. Both ends of RoCE send *to* 4791, so that
    `sr` would never see one.
    """
    scapys = UDP.answers

    def answers(self: Any, other: Any) -> Any:
        if isinstance(other, UDP) and self.dport == other.dport == PORT_ROCE_V2:
            return self.payload.answers(other.payload)
        return scapys(self, other)

    UDP.answers = answers  # type: ignore[method-assign]


def _list_among_scapys_layers() -> None:
    """Make ``load_layer("roce_dissect")`` and ``explore("roce_dissect")`` work.

    Scapy lists layers by their modules' names, and fails to list any (`conf.layers.layers`, the menu of `explore`) once
    one of them is outside of its own package. So ours are listed under a name in it.
    """
    name = f"scapy.layers.{_SCAPY_NAME}"
    package = sys.modules[_PACKAGE]
    sys.modules[name] = package
    setattr(scapy.layers, _SCAPY_NAME, package)
    ours = [module for module in conf.layers.ldict if module.startswith(_PACKAGE)]
    conf.layers.ldict[name] = [layer for module in ours for layer in conf.layers.ldict.pop(module)]
