"""What is gathered for a sequence picture, against counts from outside."""

from __future__ import annotations

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect.plot.spaces import CIRCLE, Space, gather

WRITE_MIDDLE, READ_REQUEST, READ_ONLY, ACKNOWLEDGE, CNP = 0x07, 0x0C, 0x10, 0x11, 0x81


def _space(analysis, connection: int = 1) -> Space:
    return gather(analysis, analysis.connections.iloc[connection - 1])[0]


# tshark -T fields -e infiniband.bth.psn: requests, and how many different PSNs they have.
REQUESTS = {
    "imp_loss1_write.server": (1486, 960),
    "imp_loss1_write.client": (1497, 960),
    "flt_rnr_recovers.client": (110, 10),
    "flt_bad_rkey_write.server": (9, 9),
    "ecn_red_ce.server": (640, 640),
    "imp_loss3_uc.server": (390, 390),
}


@pytest.mark.parametrize(("name", "requests", "different"), [(name, *counts) for name, counts in REQUESTS.items()])
def test_a_psn_that_comes_again_is_resent_and_each_other_one_is_not(sample, name, requests, different):
    space = _space(sample(name))
    assert space.requests_count == requests
    assert space.count("new") + space.count("late") == different
    assert space.count("resent") == requests - different


def test_copies_are_those_with_the_same_identification_and_icrc(sample):
    # 61 frames doubled by netem, one of them 6 ms behind its twin, which is beyond the limit of 1 ms.
    space = _space(sample("imp_dup5.server"))
    assert space.count("copy") == 60
    assert space.count("new") == 960
    assert space.requests_count == 1675


# tshark: AETH syndromes by kind.
SYNDROMES = {
    "imp_loss1_write.server": {0x60: 10},
    "imp_loss5_readreq.server": {0x60: 4},
    "flt_rnr_recovers.client": {0x60: 50, 0x2C: 50},
    "flt_bad_rkey_write.server": {0x62: 1},
    "ecn_red_ce.server": {},
}


@pytest.mark.parametrize(("name", "counts"), SYNDROMES.items())
def test_naks_are_those_of_the_aeth(sample, name, counts):
    space = _space(sample(name))
    assert dict(space.syndromes) == counts
    assert space.count("nak") == counts.get(0x60, 0)
    assert space.count("fatal_nak") == counts.get(0x62, 0)
    assert space.count("rnr_nak") == counts.get(0x2C, 0)


def test_read_responses_lie_in_the_space_of_the_requests(sample):
    space = _space(sample("imp_loss5_readreq.server"))
    assert space.count("response") + space.count("response_resent") == 1849  # tshark: opcodes 13 to 16
    asked = space.clouds["new"].points()[1]
    answered = space.clouds["response"].points()[1] + space.response_shift
    assert answered.min() >= asked.min()
    assert answered.max() <= asked.max() + 4  # 4096 bytes at a path MTU of 1024


def test_uc_gaps_say_which_psns_are_missing(sample, captures):
    space = _space(sample("imp_loss3_uc.server"))
    _, starts, sizes = space.clouds["gap"].points()
    missing = {
        int(psn) % CIRCLE for start, size in zip(starts, sizes, strict=True) for psn in range(start, start + size)
    }
    # what the sender's side has and this one lacks: the frames that netem dropped
    sent = rd.read_packets(captures / "imp_loss3_uc.client.pcap.gz", ["psn", "role"])
    seen = rd.read_packets(captures / "imp_loss3_uc.server.pcap.gz", ["psn", "role"])
    dropped = set(sent["psn"][sent["role"] == "request"]) - set(seen["psn"][seen["role"] == "request"])
    assert missing == dropped
    assert len(dropped) == space.missing == 10


def test_ce_marks_are_those_of_the_ip_header(sample):
    assert _space(sample("ecn_red_ce.server")).count("ce") == 139  # tshark: ip.dsfield.ecn == 3


def test_psns_go_on_beyond_the_wrap(sample):
    new = _space(sample("rc_psn_wrap.client")).clouds["new"].points()[1]
    assert (np.diff(new) > 0).all()
    assert new[0] % CIRCLE > new[-1] % CIRCLE


def test_both_ends_of_a_connection_have_a_space_of_their_own(sample):
    analysis = sample("cm_rping_ipv4.client")
    more, less = gather(analysis, analysis.connections.iloc[0])
    assert (more.requests, more.responses) == (less.responses, less.requests)
    assert more.requests_count + less.requests_count == int(
        analysis.connections["a_to_b_requests"].iloc[0] + analysis.connections["b_to_a_requests"].iloc[0]
    )
    assert more.payload_bytes >= less.payload_bytes
    # rping: every message is answered by one packet, an ACK or a READ response
    assert [space.acked.count for space in (more, less)] == [40, 20]


def test_the_ack_line_takes_a_nak_for_all_before_it_and_a_middle_response_for_itself(made):
    analysis = made(
        (0, "A", WRITE_MIDDLE, 10),
        (1, "A", WRITE_MIDDLE, 11),
        (2, "A", WRITE_MIDDLE, 12),
        (3, "B", ACKNOWLEDGE, 10),
        (4, "B", ACKNOWLEDGE, 12, {"syndrome": 0x60}),
        (5, "A", WRITE_MIDDLE, 12),
        (6, "B", ACKNOWLEDGE, 12),
    )
    space = _space(analysis)
    assert (space.acked.points()[1] % CIRCLE).tolist() == [10, 11, 12, 12]


def test_an_acknowledge_without_aeth_acknowledges_nothing(made):
    analysis = made(
        (0, "A", WRITE_MIDDLE, 10), (1, "A", WRITE_MIDDLE, 11), (2, "B", ACKNOWLEDGE, 10),
        (3, "B", ACKNOWLEDGE, 11, {"syndrome": None}),
    )  # fmt: skip
    assert (_space(analysis).acked.points()[1] % CIRCLE).tolist() == [10, 10]


def test_responses_seen_before_any_request_come_to_lie_beside_them(made):
    # The stream of responses unwraps by itself (PSN 2 becomes 2^24 + 2), the requests begin before the wrap.
    analysis = made(
        (0, "B", ACKNOWLEDGE, 2), (1, "A", WRITE_MIDDLE, 0xFFFFFF), (2, "A", WRITE_MIDDLE, 0), (3, "B", ACKNOWLEDGE, 0),
        (4, "A", WRITE_MIDDLE, 1), (5, "B", ACKNOWLEDGE, 1),
    )  # fmt: skip
    for space in gather(analysis, analysis.connections.iloc[0]):
        if space.count("new") and space.acked.count:
            new, acked = space.clouds["new"].points()[1], space.acked.points()[1] + space.response_shift
            assert abs(new.mean() - acked.mean()) < 1000


def test_cnps_against_the_only_data_are_told_whichever_way_they_go(made):
    analysis = made(
        (0, "A", WRITE_MIDDLE, 10), (1, "B", ACKNOWLEDGE, 10), (2, "B", CNP, 0), (3, "A", CNP, 0),
        (4, "A", WRITE_MIDDLE, 11),
    )  # fmt: skip
    assert _space(analysis).count("cnp") == 2


def test_thinning_plain_requests_keeps_every_rare_mark(made):
    n = 30_000
    packets = []
    for psn in range(n):
        packets.append((psn, "A", WRITE_MIDDLE, psn))
        if psn in (5_000, 20_000):
            packets.append((psn + 0.5, "A", WRITE_MIDDLE, psn - 10))
    analysis = made(*packets)
    space = gather(analysis, analysis.connections.iloc[0], keep=2_000)[0]
    assert space.count("new") == n
    assert space.clouds["new"].points().shape[1] <= 2_000
    assert sorted((space.clouds["resent"].points()[1] % CIRCLE).tolist()) == [4_990, 19_990]
