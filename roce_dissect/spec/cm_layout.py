"""Every field of a management datagram's header and of the connection manager's messages, in order.

`roce_dissect.spec.cm` has the few that pairing reads, by their offsets; a test holds the two together.

Source: IBTA Vol. 1, 12.6 and 13.4, annex A11 (IP addressing); Linux ``ibta_vol1_c12.h``. In reserved bytes of REQ, REP
and SIDR_REP, Linux carries the vendor id of ECE (enhanced connection establishment).
"""

from __future__ import annotations

from typing import NamedTuple

from roce_dissect.spec.cm import CmMessage

__all__ = ["CM_LAYOUTS", "IP_CM_LAYOUT", "MAD_LAYOUT", "CmField"]


class CmField(NamedTuple):
    """A field: its name and width in bits; the first one of a byte takes its most significant bits."""

    name: str
    bits: int


def _layout(text: str) -> tuple[CmField, ...]:
    parts = (part.split(":") for part in text.split())
    return tuple(CmField(name, int(bits)) for name, bits in parts)


MAD_LAYOUT = _layout(
    "base_version:8 class:8 class_version:8 response:1 method:7 mad_status:16 class_specific:16 transaction_id:64"
    " attribute_id:16 reserved:16 attribute_modifier:32"
)

_IDS = "local_comm_id:32 remote_comm_id:32 "


def _path(prefix: str, last: str) -> str:
    return (
        f"{prefix}_local_lid:16 {prefix}_remote_lid:16 {prefix}_local_gid:128 {prefix}_remote_gid:128"
        f" {prefix}_flow_label:20 reserved:6 {prefix}_rate:6 {prefix}_traffic_class:8 {prefix}_hop_limit:8"
        f" {prefix}_sl:4 {prefix}_subnet_local:1 reserved:3 {prefix}_ack_timeout:5 {last} "
    )


#: Fields behind the MAD's header, the private data at their end included.
CM_LAYOUTS: dict[CmMessage, tuple[CmField, ...]] = {
    CmMessage.REQ: _layout(
        "local_comm_id:32 reserved:8 ece_vendor_id:24 service_id:64 ca_guid:64 reserved:32 q_key:32 qpn:24"
        " responder_resources:8 eecn:24 initiator_depth:8 remote_eecn:24 remote_response_timeout:5 transport:2"
        " end_to_end_flow_control:1 starting_psn:24 local_response_timeout:5 retry_count:3 p_key:16 path_mtu:4"
        " rdc_exists:1 rnr_retry_count:3 max_cm_retries:4 srq:1 extended_transport:3 "
        + _path("primary", "reserved:3")
        + _path("alternate", "sap_supported:1 reserved:2")
        + "private_data:736"
    ),
    CmMessage.MRA: _layout(
        _IDS + "message_mraed:2 reserved:6 service_timeout:5 reserved:3 private_data:1776"
    ),
    CmMessage.REJ: _layout(
        _IDS + "message_rejected:2 reserved:6 info_length:7 reserved:1 reason:16 info:576 private_data:1184"
    ),
    CmMessage.REP: _layout(
        _IDS + "q_key:32 qpn:24 ece_vendor_id_high:8 eecn:24 ece_vendor_id_middle:8 starting_psn:24 ece_vendor_id_low:8"
        " responder_resources:8 initiator_depth:8 target_ack_delay:5 failover_accepted:2 end_to_end_flow_control:1"
        " rnr_retry_count:3 srq:1 reserved:4 ca_guid:64 private_data:1568"
    ),
    CmMessage.RTU: _layout(_IDS + "private_data:1792"),
    CmMessage.DREQ: _layout(_IDS + "remote_qpn:24 reserved:8 private_data:1760"),
    CmMessage.DREP: _layout(_IDS + "private_data:1792"),
    CmMessage.SIDR_REQ: _layout("request_id:32 p_key:16 reserved:16 service_id:64 private_data:1728"),
    CmMessage.SIDR_REP: _layout(
        "request_id:32 sidr_status:8 info_length:8 ece_vendor_id_high:16 qpn:24 ece_vendor_id_low:8 service_id:64"
        " q_key:32 info:576 private_data:1088"
    ),
    CmMessage.LAP: _layout(
        _IDS + "reserved:32 qpn:24 remote_response_timeout:5 reserved:3 reserved:32 local_lid:16 remote_lid:16"
        " local_gid:128 remote_gid:128 flow_label:20 reserved:4 traffic_class:8 hop_limit:8 reserved:2 rate:6 sl:4"
        " subnet_local:1 reserved:3 ack_timeout:5 reserved:3 private_data:1344"
    ),
    CmMessage.APR: _layout(_IDS + "info_length:8 ap_status:8 reserved:16 info:576 private_data:1184"),
}  # fmt: skip

#: What the IP CM service puts before the private data of REQ and SIDR_REQ.
IP_CM_LAYOUT = _layout(
    "major_version:4 minor_version:4 ip_version:4 reserved:4 source_port:16 source_address:128 destination_address:128"
)
