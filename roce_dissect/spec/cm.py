"""Management datagrams of the connection manager: attribute ids, and where the ids, QPNs and PSNs stand.

Only what pairing needs. Offsets count from the beginning of the MAD (24 bytes of header, then the message).
Source: IBTA Vol. 1, 12.6 and 13.4; Linux ``ibta_vol1_c12.h``.
"""

from __future__ import annotations

from enum import IntEnum

from roce_dissect.spec.opcodes import Transport

__all__ = [
    "CLASS_CM",
    "DREQ_FIELDS",
    "GSI_QP",
    "MAD_FIELDS",
    "MAD_HEADER_SIZE",
    "MAD_SIZE",
    "PATH_MTU",
    "REJ_FIELDS",
    "REP_FIELDS",
    "REQ_ACK_TIMEOUT",
    "REQ_FIELDS",
    "REQ_TRANSPORTS",
    "TIMEOUT_UNIT_NS",
    "CmMessage",
    "RejectReason",
    "reject_reason_name",
]

#: QP of the general services interface: management datagrams go there.
GSI_QP = 1
#: Management class of the connection manager.
CLASS_CM = 7
MAD_SIZE = 256
MAD_HEADER_SIZE = 24


class CmMessage(IntEnum):
    """Attribute ids."""

    REQ = 0x10
    MRA = 0x11
    REJ = 0x12
    REP = 0x13
    RTU = 0x14
    DREQ = 0x15
    DREP = 0x16
    SIDR_REQ = 0x17
    SIDR_REP = 0x18
    LAP = 0x19
    APR = 0x1A


#: Field: (byte from the beginning of the MAD, bytes). Bits within a byte are the reader's business.
MAD_FIELDS = {
    "class": (1, 1),
    "attribute_id": (16, 2),
    "local_id": (24, 4),
    "remote_id": (28, 4),
}
REQ_FIELDS = {
    "qpn": (24 + 32, 3),
    "starting_psn": (24 + 44, 3),
    "transport": (24 + 43, 1),
    "path_mtu_code": (24 + 50, 1),  # high four bits
}
#: Local ACK timeout of the REQ's primary path: high five bits. It stands far behind the rest.
REQ_ACK_TIMEOUT = (24 + 95, 1)
#: Unit of it, in ns: 4.096 us x 2^t (IBTA 9.7.6.1.3).
TIMEOUT_UNIT_NS = 4096
#: In bits 2 and 1 of the REQ's transport byte; 3 is told apart by an extended type, of which XRC is the only one.
REQ_TRANSPORTS = (Transport.RC, Transport.UC, Transport.RD, Transport.XRC)
REP_FIELDS = {"qpn": (24 + 12, 3), "starting_psn": (24 + 20, 3)}
REJ_FIELDS = {"reason": (24 + 10, 2)}
DREQ_FIELDS = {"remote_qpn": (24 + 8, 3)}

#: Path MTU in bytes by code.
PATH_MTU = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}


class RejectReason(IntEnum):
    """Why a REQ or REP was refused (Linux ``ib_cm.h``)."""

    NO_QP = 1
    NO_EEC = 2
    NO_RESOURCES = 3
    TIMEOUT = 4
    UNSUPPORTED_REQUEST = 5
    INVALID_COMM_ID = 6
    INVALID_COMM_INSTANCE = 7
    INVALID_SERVICE_ID = 8
    INVALID_TRANSPORT_TYPE = 9
    STALE_CONNECTION = 10
    RDC_DOES_NOT_EXIST = 11
    INVALID_PRIMARY_GID = 12
    INVALID_PRIMARY_LID = 13
    INVALID_PRIMARY_SL = 14
    INVALID_PRIMARY_TRAFFIC_CLASS = 15
    INVALID_PRIMARY_HOP_LIMIT = 16
    INVALID_PRIMARY_RATE = 17
    INVALID_ALTERNATE_GID = 18
    INVALID_ALTERNATE_LID = 19
    INVALID_ALTERNATE_SL = 20
    INVALID_ALTERNATE_TRAFFIC_CLASS = 21
    INVALID_ALTERNATE_HOP_LIMIT = 22
    INVALID_ALTERNATE_RATE = 23
    PORT_AND_CM_REDIRECT = 24
    PORT_REDIRECT = 25
    INVALID_PATH_MTU = 26
    INSUFFICIENT_RESPONDER_RESOURCES = 27
    CONSUMER_DEFINED = 28
    INVALID_RNR_RETRY = 29
    DUPLICATE_LOCAL_COMM_ID = 30
    INVALID_CLASS_VERSION = 31
    INVALID_FLOW_LABEL = 32
    INVALID_ALTERNATE_FLOW_LABEL = 33
    VENDOR_OPTION_NOT_SUPPORTED = 35


def reject_reason_name(reason: int) -> str:
    """A reason in words: ``invalid service id``; ``reason 99`` where it has no name."""
    try:
        return RejectReason(reason).name.lower().replace("_", " ")
    except ValueError:
        return f"reason {reason}"
