"""Which packet answers which: what Scapy's `sr` and `sr1` ask.

Source: IBTA Vol. 1, 9.7.5 (acknowledgements of RC, RD and XRC).
"""

from __future__ import annotations

from typing import Any

from scapy.packet import Packet

from roce_dissect.spec.aeth import NakCode, SyndromeKind
from roce_dissect.spec.opcodes import HEADERS, RESPONSES, Opcode, Transport

__all__ = ["answers"]

_TRANSPORT, _OPERATION = 0xE0, 0x1F
_PSNS = 1 << 24
_AHEAD = 1 << 23  # a PSN less than this ahead is later, else earlier
_SMALLEST_MTU = 64  # that was ever seen, on FPGAs
_WITH_ACKNOWLEDGEMENT = {Transport.RC, Transport.RD, Transport.XRC}


def _operation(name: str) -> int:
    return int(Opcode[f"RC_{name}"]) & _OPERATION


_ACKNOWLEDGE = _operation("ACKNOWLEDGE")
_READ = _operation("READ_REQUEST")
_ATOMICS = {_operation("COMPARE_SWAP"), _operation("FETCH_ADD")}
#: Requests by the operation of their response, but the plain acknowledgement.
_ANSWERED_BY = {
    **{_operation(f"READ_RESPONSE_{part}"): {_READ} for part in ("FIRST", "MIDDLE", "LAST")},
    # FLUSH and ATOMIC WRITE are answered as a READ of no bytes is (annex A19)
    _operation("READ_RESPONSE_ONLY"): {_READ, _operation("FLUSH"), _operation("ATOMIC_WRITE")},
    _operation("ATOMIC_ACKNOWLEDGE"): _ATOMICS,
}


def answers(reply: Any, request: Packet) -> bool:
    """Whether `reply` answers `request`; both are BTHs with what lies above them.

    * READ and atomic responses answer their requests, by PSN; the responses to a READ carry the PSNs of its range.
    * An ACK answers the SEND or WRITE whose PSN it carries. An earlier one only if that asked (``ack_req``): an ACK is
      for all before it as well.
    * A NAK or RNR NAK answers the request whose PSN it carries, a NAK PSN sequence error any later one: it carries the
      PSN that was expected instead.
    * UD has no acknowledgements: a datagram back between the same two QPs answers.
    * The QPs of a connection stand in no packet together, so that they are not compared, but for UD.
    """
    if not isinstance(request, type(reply)):
        return False
    asked: Any = request
    transport = asked.opcode & _TRANSPORT
    if reply.opcode & _TRANSPORT != transport or asked.opcode not in HEADERS or reply.opcode not in HEADERS:
        return False
    if transport == Transport.UD:
        ends = (reply.dest_qp, getattr(reply.payload, "src_qp", None))
        return ends == (getattr(asked.payload, "src_qp", None), asked.dest_qp)
    operation = asked.opcode & _OPERATION
    if transport not in _WITH_ACKNOWLEDGEMENT or operation in RESPONSES:
        return False
    ahead = (reply.psn - asked.psn) % _PSNS  # of the request's own PSN
    if reply.opcode & _OPERATION == _ACKNOWLEDGE:
        return _acknowledges(reply, asked, operation, ahead)
    return operation in _ANSWERED_BY.get(reply.opcode & _OPERATION, ()) and ahead < _range(asked, operation)


def _acknowledges(reply: Any, asked: Any, operation: int, ahead: int) -> bool:
    """Whether a plain acknowledgement, positive or negative, answers a request."""
    aeth = _layer_with("syndrome", reply)
    if aeth is None:  # cut
        return False
    if aeth.kind is SyndromeKind.ACK:
        if operation == _READ or operation in _ATOMICS:
            return False
        return ahead == 0 or (bool(asked.ack_req) and ahead < _AHEAD)
    if aeth.kind is SyndromeKind.NAK and aeth.code == NakCode.PSN_SEQUENCE_ERROR:
        return (-ahead) % _PSNS < _AHEAD or ahead < _range(asked, operation)
    return ahead < _range(asked, operation)


def _range(asked: Any, operation: int) -> int:
    """PSNs that a request takes at most."""
    reth = _layer_with("dma_len", asked) if operation == _READ else None
    return 1 if reth is None else max(1, -(-reth.dma_len // _SMALLEST_MTU))


def _layer_with(field: str, bth: Any) -> Any:
    """Extended header that has a field; None where it was cut off."""
    layer = bth.payload
    while layer and not any(known.name == field for known in layer.fields_desc):
        layer = layer.payload
    return layer or None
