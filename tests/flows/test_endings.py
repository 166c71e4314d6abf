"""How streams end, timeouts, and the vantage: by hand, and on the lab's captures, whose place is known."""

from __future__ import annotations

import json

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect.flows import states
from roce_dissect.flows.endings import ended_by, never_matched, timeout_estimates, vantages
from roce_dissect.flows.tables import build_tables
from roce_dissect.terms import EndedBy


def ends(result, end_ms):
    """What ended each stream, the capture going on to `end_ms`."""
    words = ended_by(result.flows.streams, 1_700_000_000_000_000_000 + round(end_ms * 1e6))
    return [EndedBy(word).name.lower() for word in words]


def asked(p, *times):
    """A SEND that was answered, then one that is sent at each of the times."""
    return [p("SEND_ONLY", 9, 0), p("ACKNOWLEDGE", 9, 0.1, "B"), *[p("SEND_ONLY", 10, ms) for ms in times]]


def test_retries_exhausted(p, track):
    """Sent three times, 60 ms apart; 121 ms later nothing has come."""
    result = track(asked(p, 1, 61, 121))
    assert ends(result, 242)[0] == "retries"
    assert ends(result, 240)[0] == "nothing"  # another retry may be due
    assert ends(track(asked(p, 1, 61)), 9999)[0] == "nothing"  # one is no row


def test_answered_at_last(p, track):
    result = track([*asked(p, 1, 61, 121), p("ACKNOWLEDGE", 10, 122, "B")])
    assert ends(result, 9999)[0] == "nothing"


def test_answered_without_progress(p, track):
    """A duplicate ACK: the responder lives, so that silence means something else."""
    result = track([*asked(p, 1, 61, 121), p("ACKNOWLEDGE", 9, 122, "B")])
    assert ends(result, 9999)[0] == "nothing"


def test_rnr_retries(p, track):
    """Timer code 14 is 1.28 ms: silence of three times as long."""
    packets = [*asked(p, 1), p("ACKNOWLEDGE", 10, 2, "B", syndrome=0x2E), p("ACKNOWLEDGE", 10, 2, "B", syndrome=0x60)]
    assert ends(track(packets), 2 + 3 * 1.28)[0] == "rnr_retries"
    assert ends(track(packets), 2 + 1.5 * 1.28)[0] == "nothing"
    assert ends(track([*packets, p("SEND_ONLY", 10, 4)]), 99)[0] == "nothing"


def test_nak_teardown_and_new_life(p, track):
    packets = [*asked(p, 1), p("ACKNOWLEDGE", 10, 2, "B", syndrome=0x63)]
    assert ends(track(packets), 3)[0] == "nak"
    result = track([*asked(p, 1), p("SEND_ONLY", 5_000_000, 9)])
    assert ends(result, 10)[0] == "new_life"
    flows = track(asked(p, 1)).flows
    flows.close(1, 2, 17)
    assert EndedBy(int(ended_by(flows.streams, 0)[0])) is EndedBy.TEARDOWN


def test_connection_tells_the_gravest(p, build, track):
    packets = [*asked(p, 1), p("ACKNOWLEDGE", 10, 2, "B", syndrome=0x63)]
    tables = build_tables(track(packets).flows, build.ADDRESSES)
    assert tables.connections["ended_by"].tolist() == ["nak"]


def test_psn_mismatch(p, build, track):
    """Every answer names a PSN that was never sent; to such a responder all requests are duplicates."""
    packets = []
    for ms, psn in ((0, 256), (68, 256), (136, 256)):
        packets += [p("SEND_ONLY", psn, ms), p("ACKNOWLEDGE", 0x10000, ms + 0.1, "B")]
    tables = build_tables(track(packets).flows, build.ADDRESSES)
    assert tables.streams["psn_mismatch"].tolist() == [True, False]
    assert tables.counters.loc["10.0.0.2", "duplicate_request"] == 3
    plain = build_tables(track(asked(p, 1, 61, 121)).flows, build.ADDRESSES)
    assert not plain.streams["psn_mismatch"].any()


def test_nothing():
    none = np.zeros((0, states.STREAM_WORDS), np.int64)
    index = np.zeros(0, np.int64)
    no = np.zeros(0, bool)
    assert len(ended_by(none, 0)) == len(timeout_estimates(none, no)) == len(never_matched(none, index)) == 0
    assert len(vantages(none, index, index, no)) == 0


@pytest.mark.parametrize(("wait_us", "exponent"), [(4.2, 0), (67_109, 14), (66_000, 14), (64_000, 13), (4_294, 10)])
def test_timeout_estimate(wait_us, exponent):
    rows = np.zeros((1, states.STREAM_WORDS), np.int64)
    rows[0, states.TIMEOUT_LEAST] = wait_us * 1000
    assert timeout_estimates(rows, np.ones(1, bool)).to_pylist() == [exponent]
    assert timeout_estimates(rows, np.zeros(1, bool)).to_pylist() == [None]  # reordered: waits look too short


#: Sets with retries in a row: the local ACK timeout with which the lab set its QPs up (truth.txt, ``timeout=``).
TIMEOUTS = {
    "flt_blackout3s_recovers": 18,
    "flt_blackout_retry7_infinite": 14,
    "flt_wrong_dqpn": 14,
    "flt_psn_mismatch": 14,
}


@pytest.mark.parametrize("name", TIMEOUTS)
def test_timeouts_of_the_lab(name, softroce):
    streams = rd.analyze(softroce / f"{name}.client.pcap.gz").streams
    assert streams["timeout_estimate"].dropna().tolist() == [TIMEOUTS[name]]


def test_vantage_is_never_wrong(softroce):
    """Each capture was taken at the host that its name tells: the other end is never said to be near."""
    told, other = 0, []
    for name, run in json.loads((softroce / "truth.json").read_text()).items():
        for side, last in (("server", "1"), ("client", "2")):
            path = softroce / f"{name}.{side}.pcap.gz"
            if not path.exists() or side not in run:
                continue
            for row in rd.analyze(path).connections.itertuples():
                near = {"near_a": row.a_address, "near_b": row.b_address}.get(row.vantage)
                told += near is not None
                if near is not None and not near.endswith((f".{last}", f":{last}")):
                    other.append((path.name, row.connection))
    assert other == []
    assert told >= 40


GAVE_UP = {"flt_psn_mismatch": "retries", "flt_wrong_dqpn": "retries", "flt_rnr_retry_exceeded": "rnr_retries"}


def test_who_gave_up(softroce):
    """Only the three sets whose truth file has a completion with status 12 or 13 end so, at the client."""
    found = {}
    for path in sorted(softroce.glob("*.client.pcap.gz")):
        for end in rd.analyze(path).connections["ended_by"]:
            if end.endswith("retries"):
                found[path.name.partition(".")[0]] = end
    assert found == GAVE_UP
