"""Connection manager datagrams among decoded packets: ids, QPNs and starting PSNs.

They are rare, and do not fit fixed columns: a slow path reads them from the batch's bytes. What a sliced or malformed
datagram does not hold is left out; nothing here raises on a packet's content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect.spec import cm as spec
from roce_dissect.spec.headers import HAS_VNI
from roce_dissect.spec.opcodes import Opcode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CM_COLUMNS", "Message", "cm_messages"]

#: Columns that finding and reading the datagrams needs.
CM_COLUMNS = (
    "opcode",
    "dest_qp",
    "src",
    "dst",
    "offset",
    "cap_len",
    "payload_offset",
    "frame_key",
    "time_ns",
    "status",
    "version",
    "present",
    "vni",
)
_UD_SEND_ONLY = Opcode["UD_SEND_ONLY"]
#: Fields of each message that is read here, besides those of every MAD.
_FIELDS: dict[spec.CmMessage, dict[str, tuple[int, int]]] = {
    spec.CmMessage.REQ: spec.REQ_FIELDS,
    spec.CmMessage.REP: spec.REP_FIELDS,
    spec.CmMessage.REJ: spec.REJ_FIELDS,
    spec.CmMessage.DREQ: spec.DREQ_FIELDS,
    spec.CmMessage.RTU: {},
    spec.CmMessage.DREP: {},
}
#: Bytes of a MAD up to the last field of each message.
_NEEDED = {kind: max(at + size for at, size in (spec.MAD_FIELDS | fields).values()) for kind, fields in _FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Message:
    """One CM message. Fields that its kind does not have are 0.

    ``row`` is the packet's row in the batch, ``src`` and ``dst`` are host codes; ``qpn`` is the sender's (REQ, REP) or
    the receiver's (DREQ); ``mtu`` is in bytes; ``reason`` is the REJ's; ``transport`` is a `Transport`;
    ``ack_timeout`` is the exponent t of 4.096 us x 2^t (0: none; -1: cut); ``network`` is the VNI + 1 of the tunnel
    that the message came in, 0: none.
    """

    row: int
    frame_key: int
    time_ns: int
    src: int
    dst: int
    kind: spec.CmMessage
    local_id: int
    remote_id: int
    version: int
    qpn: int = 0
    starting_psn: int = 0
    mtu: int = 0
    reason: int = 0
    transport: int = 0
    ack_timeout: int = -1
    network: int = 0


def cm_messages(columns: Mapping[str, np.ndarray], rows: int, data: np.ndarray) -> list[Message]:
    """The CM messages among the first `rows` rows of decoded columns, in order.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        At least `CM_COLUMNS`.
    rows : int
        Valid rows.
    data : numpy.ndarray
        uint8, the bytes that ``offset`` counts in.
    """
    # one cheap look at all rows; nearly always it finds nothing
    to_gsi = np.flatnonzero(columns["dest_qp"][:rows] == spec.GSI_QP)
    messages = []
    for row in to_gsi.tolist():
        if columns["opcode"][row] != _UD_SEND_ONLY or columns["status"][row] != 0:
            continue
        start = int(columns["offset"][row]) + int(columns["payload_offset"][row])
        end = int(columns["offset"][row]) + int(columns["cap_len"][row])
        message = _read(columns, row, bytes(data[start : min(end, start + spec.MAD_SIZE)]))
        if message is not None:
            messages.append(message)
    return messages


def _read(columns: Mapping[str, np.ndarray], row: int, mad: bytes) -> Message | None:
    """The message in a MAD, or None where it is another class, kind, or cut."""

    def number(place: tuple[int, int]) -> int:
        at, size = place
        return int.from_bytes(mad[at : at + size], "big")

    if len(mad) < spec.MAD_HEADER_SIZE or number(spec.MAD_FIELDS["class"]) != spec.CLASS_CM:
        return None
    attribute = number(spec.MAD_FIELDS["attribute_id"])
    if attribute not in _NEEDED or len(mad) < _NEEDED[spec.CmMessage(attribute)]:
        return None
    kind = spec.CmMessage(attribute)
    more: dict[str, int] = {}
    if kind is spec.CmMessage.REQ:
        more = {
            "qpn": number(spec.REQ_FIELDS["qpn"]),
            "starting_psn": number(spec.REQ_FIELDS["starting_psn"]),
            "transport": int(spec.REQ_TRANSPORTS[number(spec.REQ_FIELDS["transport"]) >> 1 & 3]),
            "ack_timeout": number(spec.REQ_ACK_TIMEOUT) >> 3 if len(mad) > spec.REQ_ACK_TIMEOUT[0] else -1,
            "mtu": spec.PATH_MTU.get(number(spec.REQ_FIELDS["path_mtu_code"]) >> 4, 0),
        }
    elif kind is spec.CmMessage.REP:
        more = {"qpn": number(spec.REP_FIELDS["qpn"]), "starting_psn": number(spec.REP_FIELDS["starting_psn"])}
    elif kind is spec.CmMessage.REJ:
        more = {"reason": number(spec.REJ_FIELDS["reason"])}
    elif kind is spec.CmMessage.DREQ:
        more = {"qpn": number(spec.DREQ_FIELDS["remote_qpn"])}
    return Message(
        row,
        int(columns["frame_key"][row]),
        int(columns["time_ns"][row]),
        int(columns["src"][row]),
        int(columns["dst"][row]),
        kind,
        number(spec.MAD_FIELDS["local_id"]),
        number(spec.MAD_FIELDS["remote_id"]) if kind is not spec.CmMessage.REQ else 0,
        int(columns["version"][row]),
        network=int(columns["vni"][row]) + 1 if columns["present"][row] & HAS_VNI else 0,
        **more,
    )
