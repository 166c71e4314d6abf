"""What all RoCE headers share: a fixed size, a cut form, the next header by the BTH's opcode, a line of summary."""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import StrField
from scapy.layers.inet import UDP
from scapy.packet import Packet

from roce_dissect.spec.headers import EXTENDED_SIZE
from roce_dissect.spec.opcodes import HEADERS

__all__ = ["CutHeader", "ExtendedHeader", "Header", "next_header"]


class CutHeader(Packet):
    """The first bytes of a header of which not all are there.

    The capture was sliced inside it, or a length field ends the packet inside it. A class of its own, since a `Raw`
    would pass for payload.
    """

    name = "cut header"
    fields_desc: ClassVar[list[Any]] = [StrField("load", b"")]


class Header(Packet):
    """A header of fixed size. Fewer bytes than that dissect as `CutHeader`, so that no prefix of a packet raises."""

    #: Bytes of the header.
    header_size: ClassVar[int] = 0
    #: Bits that the ICRC takes as ones (IBTA 7.8.1), those that the way changes; of the headers below a BTH.
    icrc_mask: ClassVar[bytes] = b""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Scapy looks for the hook in the class's own dictionary: an inherited one would be passed over.
        setattr(cls, "dispatch_hook", classmethod(_whole_or_cut))  # noqa: B010  (mypy knows no such attribute)

    def with_length(self, header: bytes, behind: int) -> bytes:
        """Fill in the header's length field, where it has one that was left to be computed.

        Parameters
        ----------
        header : bytes
            Of this layer, built from its fields.
        behind : int
            Bytes from its end to the end of the ICRC.
        """
        return header

    def transport_length(self) -> int | None:
        """Bytes from the end of this header to the end of the ICRC, as a length field says; None where none does."""
        return None

    def summary_needs(self) -> list[type[Packet]]:
        """Classes of the layers below that shall say more than their names when this one is summed up.

        Scapy lets only the uppermost layer speak, unless it asks for others: QPs and addresses are in those.
        """
        needs: list[type[Packet]] = []
        below: Any = self.underlayer
        while isinstance(below, Header):
            needs.append(type(below))
            below = below.underlayer
        return [*needs, UDP] if isinstance(below, UDP) else needs


def _whole_or_cut(cls: type[Header], _pkt: Any = None, *_args: Any, **_fields: Any) -> type[Packet]:
    """Class that dissects these bytes."""
    cut = isinstance(_pkt, (bytes, bytearray)) and 0 < len(_pkt) < cls.header_size
    return CutHeader if cut else cls


class ExtendedHeader(Header):
    """An extended transport header.

    What follows is a matter of the BTH's opcode alone, so each header asks the BTH below it: `bind_layers` sees only
    the fields of the header directly below.
    """

    #: Its bit in `roce_dissect.spec.opcodes.HEADERS`.
    presence: ClassVar[int] = 0
    #: Extended headers by their bits.
    by_presence: ClassVar[dict[int, type[ExtendedHeader]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "presence" in cls.__dict__:
            cls.header_size = EXTENDED_SIZE[cls.presence]
            ExtendedHeader.by_presence[cls.presence] = cls

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        bth = self.underlayer
        while isinstance(bth, ExtendedHeader):
            bth = bth.underlayer
        opcode = getattr(bth, "opcode", None)  # dissected alone, there is no BTH to ask
        following = None if opcode is None else next_header(opcode, behind=self.presence)
        return following or super().guess_payload_class(payload)

    def mysummary(self) -> Any:
        shown = (f"{field.name}={field.i2repr(self, self.getfieldval(field.name))}" for field in self.fields_desc
                 if not field.name.startswith("reserved"))  # fmt: skip
        return " ".join([type(self).__name__, *shown]), self.summary_needs()


def next_header(opcode: int, behind: int = 0) -> type[Packet] | None:
    """Class of the extended header that an opcode puts behind another one.

    Parameters
    ----------
    opcode : int
        Of the BTH.
    behind : int
        Presence bit of the header before it; 0 for the BTH itself.

    Returns
    -------
    type of Packet or None
        None when the chain ends here or the opcode has no name: payload follows, and `bind_layers` may bind upper
        layers to the last header.
    """
    # Bits stand in the order of the headers (roce_dissect.spec.headers): what remains above `behind` comes later.
    later = HEADERS.get(opcode, 0) & ~((behind << 1) - 1 if behind else 0)
    if not later:
        return None
    return ExtendedHeader.by_presence[later & -later]
