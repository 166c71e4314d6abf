"""AETH: what an acknowledgement says.

Source: IBTA Vol. 1, 9.3.5 and 9.7.5.1; the meaning of the syndrome is `roce_dissect.spec.aeth`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import BitField, XByteField
from scapy.packet import Packet

from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.spec.aeth import CREDITS, NO_CREDIT_LIMIT, RNR_WAIT_NS, SyndromeKind, syndrome_kind, syndrome_name
from roce_dissect.spec.headers import HAS_AETH

__all__ = ["AETH"]

_CODE = 0b11111  # of a syndrome; the bits above it tell the kind


class _SyndromeField(XByteField):
    """A byte that prints with its meaning."""

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        number = super().i2repr(pkt, x)
        return f"{number} ({_in_words(x)})" if isinstance(x, int) else number


class AETH(ExtendedHeader):
    """ACK extended transport header (IBTA 9.3.5).

    Examples
    --------
    >>> AETH(syndrome=0x2E)
    <AETH  syndrome=0x2e (RNR NAK 1.28 ms) |>
    >>> AETH(syndrome=0x2E).rnr_wait_ns
    1280000
    >>> AETH(syndrome=0x05).credits
    6
    """

    name = "AETH"
    presence = HAS_AETH
    fields_desc: ClassVar[list[Any]] = [
        _SyndromeField("syndrome", NO_CREDIT_LIMIT),
        BitField("msn", 0, 24),
    ]

    @property
    def kind(self) -> SyndromeKind:
        """ACK, NAK, RNR NAK or reserved."""
        return syndrome_kind(self.syndrome)

    @property
    def code(self) -> int:
        """Low five bits of the syndrome: credit code, RNR timer code or NAK code, by `kind`."""
        return self.syndrome & _CODE

    @property
    def credits(self) -> int | None:
        """Receive credits in messages that an ACK tells; None where it tells no limit, or is none."""
        return CREDITS[self.code] if self.kind is SyndromeKind.ACK and self.code != NO_CREDIT_LIMIT else None

    @property
    def rnr_wait_ns(self) -> int | None:
        """Nanoseconds that an RNR NAK asks the requester to wait; None for any other kind."""
        return RNR_WAIT_NS[self.code] if self.kind is SyndromeKind.RNR_NAK else None

    def mysummary(self) -> Any:
        return f"AETH {_in_words(self.syndrome)} msn={self.msn}", self.summary_needs()


def _in_words(syndrome: int) -> str:
    """Meaning of a syndrome, an ACK's credits included."""
    name = syndrome_name(syndrome)
    if syndrome_kind(syndrome) is not SyndromeKind.ACK:
        return name
    code = syndrome & _CODE
    return f"{name}, no credit limit" if code == NO_CREDIT_LIMIT else f"{name}, {CREDITS[code]} credits"
