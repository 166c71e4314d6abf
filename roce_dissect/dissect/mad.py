"""Management datagrams: the header of all of them, and every field of the connection manager's messages.

Sources: IBTA Vol. 1, 12.6 to 12.11, 13.4 and annex A11; Linux ``ib_cm.h``, ``ib_verbs.h`` (rates), ``rdma_cm.h``.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address

from roce_dissect.dissect import words
from roce_dissect.dissect.tree import Field, Node, Section, plain_bytes, read_header
from roce_dissect.spec.cm import CLASS_CM, MAD_HEADER_SIZE, PATH_MTU, CmMessage, RejectReason, reject_reason_name
from roce_dissect.spec.cm_layout import CM_LAYOUTS, IP_CM_LAYOUT, MAD_LAYOUT, CmField

__all__ = ["management_datagram", "service_id"]

_CLASSES = {
    0x01: "subnet management, by LIDs",
    0x03: "subnet administration",
    0x04: "performance",
    0x05: "baseboard management",
    0x06: "device management",
    0x07: "connection manager",
    0x08: "SNMP tunnelling",
    0x21: "congestion control",
    0x81: "subnet management, by directed route",
}
_METHODS = {1: "Get", 2: "Set", 3: "Send", 5: "Trap", 6: "Report", 7: "TrapRepress", 0x12: "GetTable"}
_MESSAGES = {
    CmMessage.REQ: "asks for a connection",
    CmMessage.MRA: "message received: its answer will take longer",
    CmMessage.REJ: "refuses the connection",
    CmMessage.REP: "grants the connection",
    CmMessage.RTU: "ready to use: the connection is up",
    CmMessage.DREQ: "asks to take the connection down",
    CmMessage.DREP: "the connection is down",
    CmMessage.SIDR_REQ: "asks for the QP of a datagram service",
    CmMessage.SIDR_REP: "answers with the QP of a datagram service",
    CmMessage.LAP: "proposes an alternate path",
    CmMessage.APR: "answers to an alternate path",
}
_SIDR_STATUS = {0: "valid", 1: "not supported", 2: "rejected", 3: "no QP", 4: "redirected", 5: "version not supported"}
#: Gb/s by code.
_RATES = {
    2: 2.5, 3: 10, 4: 30, 5: 5, 6: 20, 7: 40, 8: 60, 9: 80, 10: 120, 11: 14, 12: 56, 13: 112, 14: 168, 15: 25, 16: 100,
    17: 200, 18: 300, 19: 28, 20: 50, 21: 400, 22: 600, 23: 800,
}  # fmt: skip
_PORT_SPACES = {0x06: "TCP port", 0x11: "UDP port", 0x3F: "IB port"}
_SERVICES = {445: "SMB Direct", 3260: "iSER", 4420: "NVMe/RDMA", 18515: "perftest", 20049: "NFS/RDMA"}
_IP_CM = 0x0000000001  # the upper five bytes of a service id of the IP CM service
_IP_CM_SIZE = 36
_NO_END = 7  # of the RNR retry count


def service_id(value: int) -> str:
    """What a service id stands for: ``TCP port 4420 (NVMe/RDMA)``."""
    port = value & 0xFFFF
    space = _PORT_SPACES.get(value >> 16 & 0xFF)
    if value >> 24 == _IP_CM and space is not None:
        return f"{space} {port}" + (f" ({_SERVICES[port]})" if port in _SERVICES else "")
    if value >> 16 == 1:
        return f"SDP port {port}"
    if value >> 16 == 2:
        return f"IPoIB port {port}"
    return "assigned by the CM" if value >> 56 == 2 else ""


def _path_mtu(code: int) -> str:
    return f"{PATH_MTU[code]} bytes" if code in PATH_MTU else "no such path MTU"


def _rate(code: int) -> str:
    return f"{_RATES[code]:g} Gb/s" if code in _RATES else ""


def _reason(value: int) -> str:
    known = value in list(RejectReason)
    text = reject_reason_name(value)
    more = {
        RejectReason.INVALID_SERVICE_ID: ": nobody listens there",
        RejectReason.CONSUMER_DEFINED: ": the application refused",
    }
    return text + more.get(RejectReason(value), "") if known else "a reason without a name"


#: Base and words of fields, by name.
_MEANINGS: dict[str, tuple[str, Callable[[int], str] | None]] = {
    "class": ("hex", words.named(_CLASSES)),
    "response": ("dec", words.flag("a response")),
    "method": ("dec", words.named(_METHODS)),
    "mad_status": ("hex", None),
    "class_specific": ("hex", None),
    "transaction_id": ("hex", None),
    "attribute_id": ("hex", None),
    "attribute_modifier": ("hex", None),
    "local_comm_id": ("hex", words.constant("of the sender")),
    "remote_comm_id": ("hex", words.constant("of the receiver")),
    "request_id": ("hex", None),
    "service_id": ("hex", service_id),
    "ca_guid": ("hex", words.constant("of the sender's channel adapter")),
    "q_key": ("hex", None),
    "qpn": ("hex+dec", words.constant("the sender's QP")),
    "remote_qpn": ("hex+dec", words.constant("the receiver's QP")),
    "responder_resources": ("dec", words.constant("READs and atomics that the sender answers at once")),
    "initiator_depth": ("dec", words.constant("READs and atomics that the sender has outstanding at once")),
    "eecn": ("hex", None),
    "remote_eecn": ("hex", None),
    "ece_vendor_id": ("hex", None),
    "ece_vendor_id_high": ("hex", None),
    "ece_vendor_id_middle": ("hex", None),
    "ece_vendor_id_low": ("hex", None),
    "remote_response_timeout": ("dec", words.exponential),
    "local_response_timeout": ("dec", words.exponential),
    "service_timeout": ("dec", words.exponential),
    "target_ack_delay": ("dec", words.exponential),
    "primary_ack_timeout": ("dec", words.ack_timeout),
    "alternate_ack_timeout": ("dec", words.ack_timeout),
    "ack_timeout": ("dec", words.ack_timeout),
    "transport": ("dec", words.named({0: "RC", 1: "UC", 2: "RD", 3: "by the extended transport"})),
    "extended_transport": ("dec", words.named({1: "XRC"})),
    "end_to_end_flow_control": ("dec", words.flag("supported")),
    "starting_psn": ("dec+hex", words.constant("with which the receiver starts sending")),
    "retry_count": ("dec", words.constant("retries after a timeout or a NAK")),
    "rnr_retry_count": ("dec", words.named({_NO_END: "retries without end"}, "retries after an RNR NAK")),
    "p_key": ("hex", words.p_key),
    "path_mtu": ("dec", _path_mtu),
    "srq": ("dec", words.flag("the sender has a shared receive queue")),
    "message_rejected": ("dec", words.named({0: "REQ", 1: "REP", 2: "no message"})),
    "message_mraed": ("dec", words.named({0: "REQ", 1: "REP", 2: "LAP"})),
    "reason": ("dec", _reason),
    "info_length": ("dec", words.octets),
    "sidr_status": ("dec", words.named(_SIDR_STATUS)),
    "rate": ("dec", _rate),
    "primary_rate": ("dec", _rate),
    "alternate_rate": ("dec", _rate),
}  # fmt: skip
_HEXADECIMAL_ENDS = ("_lid", "_label", "_class", "_modifier")


def _field(one: CmField) -> Field:
    base, meaning = _MEANINGS.get(one.name, ("", None))
    if not base:
        if one.bits == 128:
            base = "ipv6"
        elif one.bits > 64:
            base = "bytes"
        else:
            base = "hex" if one.name.endswith(_HEXADECIMAL_ENDS) else "dec"
    if one.name.endswith("_lid"):
        meaning = words.lid
    return Field(one.name, one.bits, base, meaning)


def management_datagram(data: bytes, at: int, end: int) -> list[Node]:
    """Sections of the management datagram in ``data[at:end]``; what is not there is told as missing.

    Parameters
    ----------
    data : bytes
        The frame.
    at, end : int
        The payload of the packet, as far as it was captured.
    """
    mad = read_header(data, at, end, "mad", "Management datagram", tuple(map(_field, MAD_LAYOUT)))
    sections = [mad.node]
    if not mad.whole or mad.values["class"] != CLASS_CM:
        if mad.whole and end > mad.end:
            mad.node.children.append(plain_bytes("data", data[mad.end : end], mad.end))
        return sections
    attribute = mad.values["attribute_id"]
    if attribute not in list(CmMessage):
        return sections
    kind = CmMessage(attribute)
    for node in mad.node.children:
        if node.name == "attribute_id":
            node.meaning = kind.name
    *layout, private = CM_LAYOUTS[kind]
    cm = read_header(data, mad.end, end, "cm", f"CM {kind.name}", tuple(map(_field, layout)))
    cm.node.meaning = _MESSAGES[kind]
    sections.append(cm.node)
    _mend_info(cm, data)
    if not cm.whole:
        return sections
    at, last = cm.end, min(at + MAD_HEADER_SIZE + _message_size(kind), end)
    if kind in (CmMessage.REQ, CmMessage.SIDR_REQ) and cm.values["service_id"] >> 24 == _IP_CM:
        sections.append(_ip_cm(data, at, last))
        at += _IP_CM_SIZE
    if at < last:
        lacking = cm.end + private.bits // 8 - last
        meaning = f"{last - at} bytes" + (f", {lacking} more were not captured" if lacking else "")
        sections[-1].children.append(plain_bytes("private_data", data[at:last], at, meaning))
    return sections


def _message_size(kind: CmMessage) -> int:
    return sum(one.bits for one in CM_LAYOUTS[kind]) // 8


def _mend_info(cm: Section, data: bytes) -> None:
    """Of the additional information of a REJ and the like, only as many bytes as it has."""
    node = next((node for node in cm.node.children if node.name == "info"), None)
    if node is None or node.first_byte is None:
        return
    length = min(cm.values["info_length"], node.size)
    meaning = "CA GUID of the REQ's sender" if cm.values.get("reason") == RejectReason.TIMEOUT and length == 8 else ""
    mended = plain_bytes("info", data[node.first_byte : node.first_byte + length], node.first_byte, meaning)
    cm.node.children[cm.node.children.index(node)] = mended


def _ip_cm(data: bytes, at: int, end: int) -> Node:
    section = read_header(data, at, end, "ip_cm", "IP CM addresses", tuple(map(_field, IP_CM_LAYOUT)))
    if section.values.get("ip_version") == 4:
        for node in section.node.children:
            if node.name.endswith("_address"):
                address = section.values[node.name] & 0xFFFFFFFF
                node.value = node.text = str(IPv4Address(address))
    return section.node
