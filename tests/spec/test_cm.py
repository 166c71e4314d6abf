"""CM attribute ids, field places and reject reasons, against IBTA 12.6 and Linux ib_cm.h."""

from __future__ import annotations

import pytest

from roce_dissect.spec import cm


def test_attribute_ids():
    names = ["REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"]
    assert [message.name for message in sorted(cm.CmMessage)] == names
    assert sorted(cm.CmMessage) == list(range(0x10, 0x1B))


def test_places():
    """Offsets behind the MAD header of 24 bytes."""
    assert {name: (at - 24, size) for name, (at, size) in cm.REQ_FIELDS.items()} == {
        "qpn": (32, 3), "transport": (43, 1), "starting_psn": (44, 3), "path_mtu_code": (50, 1),
    }  # fmt: skip
    assert {name: (at - 24, size) for name, (at, size) in cm.REP_FIELDS.items()} == {
        "qpn": (12, 3), "starting_psn": (20, 3),
    }  # fmt: skip
    assert cm.REJ_FIELDS == {"reason": (34, 2)}
    assert cm.DREQ_FIELDS == {"remote_qpn": (32, 3)}
    assert cm.PATH_MTU == {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (1, "no qp"),
        (4, "timeout"),
        (8, "invalid service id"),
        (10, "stale connection"),
        (26, "invalid path mtu"),
        (28, "consumer defined"),
        (33, "invalid alternate flow label"),
        (35, "vendor option not supported"),
        (0, "reason 0"),
        (34, "reason 34"),
        (65535, "reason 65535"),
    ],
)
def test_reject_reasons(reason, words):
    assert cm.reject_reason_name(reason) == words
