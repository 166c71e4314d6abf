"""CNP: the congestion notification packet's 16 reserved bytes.

Source: IBTA annex A17, 17.9.3 (RoCEv2 congestion management). A CNP's BTH names the QP of the sender to be slowed; no
field names a source QP.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import StrFixedLenField

from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.spec.headers import EXTENDED_SIZE, HAS_CNP

__all__ = ["CNP"]


class CNP(ExtendedHeader):
    """Reserved bytes of a CNP. Laid upon a BTH it sets opcode 0x81 and BECN."""

    name = "CNP"
    presence = HAS_CNP
    fields_desc: ClassVar[list[Any]] = [
        StrFixedLenField("reserved", bytes(EXTENDED_SIZE[HAS_CNP]), EXTENDED_SIZE[HAS_CNP]),
    ]
