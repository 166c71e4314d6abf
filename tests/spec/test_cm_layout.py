"""All fields of the CM's messages: places as IBTA 12.6 and Linux's ibta_vol1_c12.h give them."""

from __future__ import annotations

import pytest

from roce_dissect.spec import cm
from roce_dissect.spec.cm import CmMessage
from roce_dissect.spec.cm_layout import CM_LAYOUTS, IP_CM_LAYOUT, MAD_LAYOUT

#: Field: byte behind the MAD's header, bit from the most significant one, width.
PLACES = {
    CmMessage.REQ: {
        "local_comm_id": (0, 0, 32), "service_id": (8, 0, 64), "ca_guid": (16, 0, 64), "q_key": (28, 0, 32),
        "qpn": (32, 0, 24), "responder_resources": (35, 0, 8), "initiator_depth": (39, 0, 8),
        "remote_response_timeout": (43, 0, 5), "transport": (43, 5, 2), "end_to_end_flow_control": (43, 7, 1),
        "starting_psn": (44, 0, 24), "local_response_timeout": (47, 0, 5), "retry_count": (47, 5, 3),
        "p_key": (48, 0, 16), "path_mtu": (50, 0, 4), "rdc_exists": (50, 4, 1), "rnr_retry_count": (50, 5, 3),
        "max_cm_retries": (51, 0, 4), "srq": (51, 4, 1), "extended_transport": (51, 5, 3),
        "primary_local_lid": (52, 0, 16), "primary_local_gid": (56, 0, 128), "primary_remote_gid": (72, 0, 128),
        "primary_flow_label": (88, 0, 20), "primary_rate": (91, 2, 6), "primary_traffic_class": (92, 0, 8),
        "primary_hop_limit": (93, 0, 8), "primary_sl": (94, 0, 4), "primary_subnet_local": (94, 4, 1),
        "primary_ack_timeout": (95, 0, 5), "alternate_local_lid": (96, 0, 16), "alternate_subnet_local": (138, 4, 1),
        "alternate_ack_timeout": (139, 0, 5), "sap_supported": (139, 5, 1), "private_data": (140, 0, 92 * 8),
    },
    CmMessage.MRA: {"remote_comm_id": (4, 0, 32), "message_mraed": (8, 0, 2), "service_timeout": (9, 0, 5),
                    "private_data": (10, 0, 222 * 8)},
    CmMessage.REJ: {"message_rejected": (8, 0, 2), "info_length": (9, 0, 7), "reason": (10, 0, 16),
                    "info": (12, 0, 72 * 8), "private_data": (84, 0, 148 * 8)},
    CmMessage.REP: {
        "q_key": (8, 0, 32), "qpn": (12, 0, 24), "eecn": (16, 0, 24), "starting_psn": (20, 0, 24),
        "responder_resources": (24, 0, 8), "initiator_depth": (25, 0, 8), "target_ack_delay": (26, 0, 5),
        "failover_accepted": (26, 5, 2), "end_to_end_flow_control": (26, 7, 1), "rnr_retry_count": (27, 0, 3),
        "srq": (27, 3, 1), "ca_guid": (28, 0, 64), "private_data": (36, 0, 196 * 8),
    },
    CmMessage.RTU: {"private_data": (8, 0, 224 * 8)},
    CmMessage.DREQ: {"remote_qpn": (8, 0, 24), "private_data": (12, 0, 220 * 8)},
    CmMessage.DREP: {"private_data": (8, 0, 224 * 8)},
    CmMessage.SIDR_REQ: {"p_key": (4, 0, 16), "service_id": (8, 0, 64), "private_data": (16, 0, 216 * 8)},
    CmMessage.SIDR_REP: {"sidr_status": (4, 0, 8), "info_length": (5, 0, 8), "qpn": (8, 0, 24),
                         "service_id": (12, 0, 64), "q_key": (20, 0, 32), "info": (24, 0, 72 * 8),
                         "private_data": (96, 0, 136 * 8)},
    CmMessage.LAP: {
        "qpn": (12, 0, 24), "remote_response_timeout": (15, 0, 5), "local_lid": (20, 0, 16), "local_gid": (24, 0, 128),
        "remote_gid": (40, 0, 128), "flow_label": (56, 0, 20), "traffic_class": (59, 0, 8), "hop_limit": (60, 0, 8),
        "ack_timeout": (63, 0, 5), "private_data": (64, 0, 168 * 8),
    },
    CmMessage.APR: {"info_length": (8, 0, 8), "ap_status": (9, 0, 8), "info": (12, 0, 72 * 8),
                    "private_data": (84, 0, 148 * 8)},
}  # fmt: skip


def places(layout):
    found, bit = {}, 0
    for field in layout:
        found[field.name] = (bit // 8, bit % 8, field.bits)
        bit += field.bits
    return found


@pytest.mark.parametrize("kind", CmMessage)
def test_places(kind):
    found = places(CM_LAYOUTS[kind])
    assert {name: found[name] for name in PLACES[kind]} == PLACES[kind]
    assert sum(field.bits for field in CM_LAYOUTS[kind]) == 8 * (cm.MAD_SIZE - cm.MAD_HEADER_SIZE)


@pytest.mark.parametrize("kind", CmMessage)
def test_names_are_told_apart(kind):
    names = [field.name for field in CM_LAYOUTS[kind] if field.name != "reserved"]
    assert len(set(names)) == len(names)


def test_the_few_that_pairing_reads():
    """`spec.cm` has its own offsets, from the beginning of the MAD."""
    renamed = {"local_id": "local_comm_id", "remote_id": "remote_comm_id", "path_mtu_code": "path_mtu"}
    header = places(MAD_LAYOUT)
    for kind, fields in (
        (CmMessage.REQ, cm.REQ_FIELDS), (CmMessage.REP, cm.REP_FIELDS), (CmMessage.REJ, cm.REJ_FIELDS),
        (CmMessage.DREQ, cm.DREQ_FIELDS), (CmMessage.RTU, cm.MAD_FIELDS),
    ):  # fmt: skip
        body = places(CM_LAYOUTS[kind])
        for name, (at, size) in fields.items():
            name = renamed.get(name, name)
            byte, _, bits = header[name] if name in header else (body[name][0] + cm.MAD_HEADER_SIZE, *body[name][1:])
            assert (byte, -(-bits // 8)) == (at, size), name
    assert places(CM_LAYOUTS[CmMessage.REQ])["primary_ack_timeout"][0] + 24 == cm.REQ_ACK_TIMEOUT[0]


def test_headers():
    assert sum(field.bits for field in MAD_LAYOUT) == 8 * cm.MAD_HEADER_SIZE
    found = places(IP_CM_LAYOUT)
    assert found["source_port"] == (2, 0, 16)
    assert found["source_address"] == (4, 0, 128)
    assert found["destination_address"] == (20, 0, 128)
    assert sum(field.bits for field in IP_CM_LAYOUT) == 36 * 8
