"""CNP: the congestion notification packet's 16 reserved bytes.

Source: IBTA annex A17, 17.9.3 (RoCEv2 congestion management). A CNP's BTH names the QP of the sender to be slowed; no
field names a source QP.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import StrFixedLenField
from scapy.packet import Packet

from roce_dissect.layers.bth import BTH
from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.spec.headers import EXTENDED_SIZE, HAS_CNP

__all__ = ["CNP", "cnp"]


class CNP(ExtendedHeader):
    """Reserved bytes of a CNP. Laid upon a BTH it sets opcode 0x81 and BECN."""

    name = "CNP"
    presence = HAS_CNP
    fields_desc: ClassVar[list[Any]] = [
        StrFixedLenField("reserved", bytes(EXTENDED_SIZE[HAS_CNP]), EXTENDED_SIZE[HAS_CNP]),
    ]


def cnp(carrier: Packet | None = None, *, dest_qp: int, **fields: Any) -> Packet:
    """Make a congestion notification packet.

    Parameters
    ----------
    carrier : Packet, optional
        Layers below the BTH, from the receiver of the marked packet to its sender.
    dest_qp : int
        QP of the sender that shall slow down.
    **fields
        Other fields of the BTH. Opcode 0x81, BECN 1 and PSN 0 are set (IBTA A17.9.3).

    Examples
    --------
    >>> cnp(dest_qp=0x11).summary()
    'BTH CNP dest_qp=0x11 psn=0 becn / CNP'
    """
    notification = BTH(dest_qp=dest_qp, **fields) / CNP()
    return notification if carrier is None else carrier / notification
