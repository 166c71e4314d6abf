"""Replies: ACK, NAK, RNR NAK, READ and atomic responses, as whole packets.

Each takes the request that it answers, and goes the other way with its PSN. The QP of the requester must be given: no
request of a connection tells it. All other fields can be given by name, the PSN too.

Source: IBTA Vol. 1, 9.7.5 (replies) and 9.7.5.2.8 (RNR NAK); annex A19 (what answers FLUSH and ATOMIC WRITE).
"""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from roce_dissect.errors import ArgumentError
from roce_dissect.layers.bth import BTH
from roce_dissect.layers.craft import message, roce
from roce_dissect.layers.extended import RETH
from roce_dissect.layers.grh import GRH
from roce_dissect.layers.lrh import LRH
from roce_dissect.spec.aeth import CREDITS, NO_CREDIT_LIMIT, RNR_WAIT_NS, NakCode, SyndromeKind
from roce_dissect.spec.opcodes import Opcode, Transport

__all__ = ["ack", "atomic_response", "nak", "rdma_read_response", "rnr_nak"]

_KIND_SHIFT = 5  # of the kind in a syndrome
_NS_PER_MS = 1_000_000
_TRANSPORT, _OPERATION = 0xE0, 0x1F
_READ = int(Opcode["RC_READ_REQUEST"]) & _OPERATION
#: Fields of the layers below the BTH that change places on the way back.
_ENDS: dict[type[Packet], tuple[str, str]] = {
    Ether: ("src", "dst"),
    IP: ("src", "dst"),
    IPv6: ("src", "dst"),
    GRH: ("sgid", "dgid"),
    LRH: ("slid", "dlid"),
}


def ack(request: Packet, *, dest_qp: int, msn: int = 1, credits: int | None = None, **fields: Any) -> Packet:
    """Positive acknowledgement.

    Parameters
    ----------
    request : Packet
        Whose PSN is acknowledged, with all before it.
    dest_qp : int
        QP of the requester.
    msn : int
        Messages that the responder has completed.
    credits : int, optional
        Receive credits in messages, a value of `roce_dissect.spec.aeth.CREDITS`; None tells no limit.

    Raises
    ------
    ArgumentError
        Credits without a code.

    Examples
    --------
    >>> request = roce(None, "RC SEND ONLY", b"hello", dest_qp=0x11, psn=7)
    >>> ack(request, dest_qp=0x12, credits=64).summary()
    'BTH RC ACKNOWLEDGE dest_qp=0x12 psn=7 / AETH ACK, 64 credits msn=1'
    """
    code = NO_CREDIT_LIMIT if credits is None else _code_of(credits, CREDITS, "credits")
    return _acknowledge(request, SyndromeKind.ACK, code, dest_qp, msn, fields)


def nak(request: Packet, reason: NakCode | str, *, dest_qp: int, msn: int = 0, **fields: Any) -> Packet:
    """Negative acknowledgement by name.

    Parameters
    ----------
    request : Packet
        Whose PSN it carries. A NAK PSN sequence error carries the PSN that was expected: give it as ``psn=``.
    reason : NakCode or str
        ``"PSN sequence error"``, ``"invalid request"``, ``"remote access error"``, ``"remote operational error"`` or
        ``"invalid RD request"``.
    dest_qp : int
        QP of the requester.
    msn : int
        Messages that the responder has completed.

    Raises
    ------
    ArgumentError
        Another name.

    Examples
    --------
    >>> request = roce(None, "RC SEND ONLY", b"hello", dest_qp=0x11, psn=7)
    >>> nak(request, "PSN sequence error", dest_qp=0x12, psn=5).summary()
    'BTH RC ACKNOWLEDGE dest_qp=0x12 psn=5 / AETH NAK PSN sequence error msn=0'
    """
    if isinstance(reason, str):
        name = reason.strip().upper().replace(" ", "_")
        if name not in NakCode.__members__:
            known = ", ".join(member.replace("_", " ").lower() for member in NakCode.__members__)
            raise ArgumentError(f"no NAK is called {reason!r} (there are: {known})")
        reason = NakCode[name]
    return _acknowledge(request, SyndromeKind.NAK, int(reason), dest_qp, msn, fields)


def rnr_nak(request: Packet, wait_ms: float, *, dest_qp: int, msn: int = 0, **fields: Any) -> Packet:
    """Receiver-not-ready NAK by the time that it asks the requester to wait.

    Parameters
    ----------
    request : Packet
        That found no receive buffer.
    wait_ms : float
        Milliseconds, one of the 32 values of IBTA table 45: 0.01, 0.02 ... 491.52, 655.36.
    dest_qp : int
        QP of the requester.
    msn : int
        Messages that the responder has completed.

    Raises
    ------
    ArgumentError
        A time without a code; the message names those next to it.

    Examples
    --------
    >>> request = roce(None, "RC SEND ONLY", b"hello", dest_qp=0x11, psn=7)
    >>> rnr_nak(request, 0.64, dest_qp=0x12).summary()
    'BTH RC ACKNOWLEDGE dest_qp=0x12 psn=7 / AETH RNR NAK 0.64 ms msn=0'
    """
    times = tuple(wait / _NS_PER_MS for wait in RNR_WAIT_NS)
    return _acknowledge(request, SyndromeKind.RNR_NAK, _code_of(wait_ms, times, "ms"), dest_qp, msn, fields)


def atomic_response(request: Packet, orig_data: int, *, dest_qp: int, msn: int = 1, **fields: Any) -> Packet:
    """Response to COMPARE SWAP or FETCH ADD: what the memory held before.

    Examples
    --------
    >>> request = roce(None, "RC FETCH ADD", dest_qp=0x11, psn=7, swap_add_data=1)
    >>> atomic_response(request, 41, dest_qp=0x12).summary()
    'BTH RC ATOMIC ACKNOWLEDGE dest_qp=0x12 psn=7 / AETH ACK, no credit limit msn=1 / AtomicAckETH orig_data=0x29'
    """
    given = {"dest_qp": dest_qp, "psn": request[BTH].psn, "msn": msn, "orig_data": orig_data} | fields
    return roce(_way_back(request), f"{_transport(request)} ATOMIC ACKNOWLEDGE", **given)


def rdma_read_response(
    request: Packet, data: bytes | int | None = None, *, dest_qp: int, mtu: int = 1024, msn: int = 1, **fields: Any
) -> list[Packet]:
    """Responses to a READ, FLUSH or ATOMIC WRITE.

    Parameters
    ----------
    request : Packet
        Their PSNs begin with its PSN.
    data : bytes or int, optional
        Payload, or how many zero bytes; None: as many as a READ asked for, none for a FLUSH or ATOMIC WRITE.
    dest_qp : int
        QP of the requester, which its request does not tell.
    mtu : int
        Path MTU in bytes.
    msn : int
        Message sequence number of the AETHs, the same in the first and the last.
    **fields
        Other fields, of all packets.

    Examples
    --------
    >>> request = roce(None, "RC READ REQUEST", dest_qp=0x11, psn=7, va=0x1000, r_key=0x203, dma_len=2500)
    >>> for response in rdma_read_response(request, dest_qp=0x12):
    ...     print(response.summary())
    BTH RC READ RESPONSE FIRST dest_qp=0x12 psn=7 / AETH ACK, no credit limit msn=1 / Raw
    BTH RC READ RESPONSE MIDDLE dest_qp=0x12 psn=8 / Raw
    BTH RC READ RESPONSE LAST dest_qp=0x12 psn=9 / AETH ACK, no credit limit msn=1 / Raw
    """
    bth = request[BTH]
    if data is None:
        data = bth[RETH].dma_len if bth.opcode & _OPERATION == _READ else 0
    acknowledged = {"syndrome": fields.pop("syndrome", NO_CREDIT_LIMIT), "msn": msn}
    given = {"dest_qp": dest_qp, "psn": bth.psn} | fields
    operation = f"{_transport(request)} READ RESPONSE"
    return message(_way_back(request), operation, data, mtu, first=acknowledged, last=acknowledged, **given)


def _acknowledge(
    request: Packet, kind: SyndromeKind, code: int, dest_qp: int, msn: int, fields: dict[str, Any]
) -> Packet:
    given = {"dest_qp": dest_qp, "psn": request[BTH].psn, "syndrome": kind << _KIND_SHIFT | code, "msn": msn} | fields
    return roce(_way_back(request), f"{_transport(request)} ACKNOWLEDGE", **given)


def _transport(request: Packet) -> str:
    """Transport of a request, by name."""
    number = request[BTH].opcode & _TRANSPORT
    names = {int(transport): transport.name for transport in Transport}
    if number not in names:
        raise ArgumentError(f"opcode {request[BTH].opcode:#04x} is of no transport that replies")
    return names[number]


def _way_back(request: Packet) -> Packet | None:
    """Layers below the BTH with their ends exchanged; None where there are none.

    UDP's ports stay: both directions go to port 4791, and NICs often use one source port for both.
    """
    bth = request[BTH]
    if bth.underlayer is None:
        return None
    back = request.copy()
    back[BTH].underlayer.remove_payload()
    layer: Any = back
    while layer:
        if type(layer) in _ENDS:
            one, other = _ENDS[type(layer)]
            values = layer.getfieldval(one), layer.getfieldval(other)
            setattr(layer, one, values[1])
            setattr(layer, other, values[0])
        for automatic in ("len", "plen", "pay_len", "pkt_len", "chksum", "vcrc"):
            if automatic in layer.fields:  # of a captured request: its lengths and checksums are not the reply's
                delattr(layer, automatic)
        layer = layer.payload
    return back


def _code_of(value: float, table: tuple[float, ...], unit: str) -> int:
    """Code of a value."""
    if value in table:
        return table.index(value)
    ordered = sorted(table)
    below = max((known for known in ordered if known < value), default=None)
    above = min((known for known in ordered if known > value), default=None)
    near = " and ".join(f"{known:g}" for known in (below, above) if known is not None)
    raise ArgumentError(f"no code says {value:g} {unit} (next to it: {near})")
