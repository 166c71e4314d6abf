"""Kernels' counters beside what packets give: they agree where they should, and a difference says what it means."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import roce_dissect as rd
from roce_dissect.analysis.counter_comparison import (
    COMPARISON,
    COUNTERPARTS,
    compare_counters,
    counter_growth,
    incomparable_counters,
)
from roce_dissect.columns import COUNTERS

PCAPS = Path(__file__).parents[2] / "pcaps"
DOCS = Path(__file__).parents[2] / "docs"
KERNELS = json.loads((PCAPS / "kernel_counters.json").read_text())
A, B = "192.168.100.1", "192.168.100.2"
#: All that rxe counts; what stayed 0 is not in the file.
RXE = (
    "sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err",
)  # fmt: skip


@cache
def wire(name):
    return rd.analyze(next(PCAPS.glob(f"{name}.pcap*"))).counters


def kernel(run, address):
    return dict.fromkeys(RXE, 0) | KERNELS[run][address]


def table(counters, **host):
    """Comparison of made-up wire counters of A with `host`, by counter."""
    frame = pd.DataFrame(counters, index=pd.Index([A], name="address"))
    return compare_counters(frame, host, [A]).set_index("counter")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("imp_loss1_write.server", A), ("imp_loss1_write.client", B), ("imp_dup5.server", A),
        ("imp_ackloss20.server", A), ("imp_loss5_readreq.server", A), ("flt_rnr_recovers.client", B),
        ("rc_psn_wrap.client", B), ("ecn_red_ce.server", A),
    ],
)  # fmt: skip
def test_the_host_of_the_capture_agrees(name, address):
    """Values of the kernel, from pcaps/kernel_counters.json."""
    compared = compare_counters(wire(name), kernel(name.partition(".")[0], address), [address]).set_index("counter")
    assert set(RXE) <= set(compared.index)
    assert compared.loc[list(RXE), "agrees"].all()
    assert (compared.loc[list(RXE), "difference"] == 0).all()
    assert (compared.loc[list(RXE), "remark"] == "").all()


def test_loss_before_the_capture_point():
    """Of 1,497 packets the path lost 11 (netem's own count, in the lab's notes)."""
    compared = compare_counters(wire("imp_loss1_write.server"), kernel("imp_loss1_write", B), [B]).set_index("counter")
    sent = compared.loc["sent_pkts"]
    assert (sent["host"], sent["wire"], sent["difference"], sent["agrees"]) == (1497, 1486, 11, False)
    assert sent["remark"].startswith("sent and not captured: lost before the capture point, ")
    assert compared.loc["rcvd_pkts", "agrees"]


def test_loss_behind_the_capture_point():
    compared = compare_counters(wire("imp_loss1_write.client"), kernel("imp_loss1_write", A), [A]).set_index("counter")
    received = compared.loc["rcvd_pkts"]
    assert (received["host"], received["wire"], received["difference"]) == (1486, 1497, -11)
    assert received["remark"].startswith("captured and not received: lost behind the capture point, ")


@pytest.mark.parametrize("counter", ["duplicate_request", "out_of_seq_request"])
@pytest.mark.parametrize("change", [1, -1])
def test_a_changed_number_disagrees(counter, change):
    host = kernel("imp_loss1_write", A)
    host[counter] += change
    compared = compare_counters(wire("imp_loss1_write.server"), host, [A]).set_index("counter")
    assert compared.index[~compared["agrees"]].tolist() == [counter]
    assert compared.loc[counter, "difference"] == change
    assert compared.loc[counter, "remark"] != ""


def test_what_packets_do_not_give():
    host = kernel("imp_loss1_write", B) | {"rx_packets": 220, "sent_pkts": 2**63}
    rest = incomparable_counters(wire("imp_loss1_write.server"), host)
    assert {"completer_retry_err": 10, "rx_packets": 220, "sent_pkts": 2**63}.items() <= rest.items()
    compared = compare_counters(wire("imp_loss1_write.server"), host, [B])
    assert sorted([*rest, *compared["counter"]]) == sorted(host)


def test_names_of_mlx5():
    compared = table(
        {"sent_pkts": 5, "rcvd_pkts": 6, "rnr_nak_retry_err": 2, "np_cnp_sent": 3},
        tx_vport_rdma_unicast_packets=5,
        rx_vport_rdma_unicast_packets=7,
        rnr_nak_retry_err=2,
        cc_tx_cnp_pkts=3,
        roce_slow_restart=4,
    )
    assert dict(compared["wire_counter"]) == {
        "tx_vport_rdma_unicast_packets": "sent_pkts",
        "rx_vport_rdma_unicast_packets": "rcvd_pkts",
        "rnr_nak_retry_err": "rnr_nak_retry_err",
        "cc_tx_cnp_pkts": "np_cnp_sent",
    }
    assert compared.index[~compared["agrees"]].tolist() == ["rx_vport_rdma_unicast_packets"]


@pytest.mark.parametrize(("host", "agrees"), [(1, False), (2, True), (3, True)])
def test_out_of_buffer_has_at_least_what_the_wire_has(host, agrees):
    row = table({"out_of_buffer": 2}, out_of_buffer=host).loc["out_of_buffer"]
    assert row["agrees"] == agrees
    assert (row["remark"] == "") == (host == 2)


def test_several_addresses_are_one_host():
    both = wire("imp_loss1_write.server")
    assert compare_counters(both, {"sent_pkts": 1687}, [A, B])["difference"].tolist() == [0]
    assert compare_counters(both, {"sent_pkts": 201}, [A, "fd00::1"])["difference"].tolist() == [0]


def test_an_address_that_is_not_there():
    with pytest.raises(
        rd.ArgumentError, match=r"^no packets of 10\.0\.0\.9 in the capture \(there are: 192\.168\.100\.2, 192"
    ):
        compare_counters(wire("imp_loss1_write.server"), {"sent_pkts": 1}, ["10.0.0.9"])


def test_growth():
    """What the lab noted of the server before and after the run; its difference is the lab's, too."""
    before = {"duplicate_request": 1412, "out_of_seq_request": 203, "rcvd_pkts": 8499, "sent_pkts": 8128, "level": 9}
    after = {"duplicate_request": 1543, "out_of_seq_request": 213, "rcvd_pkts": 9985, "sent_pkts": 8329, "level": 7}
    assert counter_growth(before, after | {"new": 1}) == KERNELS["imp_loss1_write"][A] | {"level": -2}
    with pytest.raises(rd.ArgumentError, match="duplicate_request fell from 1543 to 1412: give the earlier snapshot"):
        counter_growth(after, before)


def test_columns():
    for compared in (
        compare_counters(wire("imp_loss1_write.server"), {}, ()),
        compare_counters(wire("imp_loss1_write.server"), {"sent_pkts": 2**63 - 1}, [A]),
    ):
        assert {name: str(compared[name].dtype) for name in compared} == {
            name: column.dtype for name, column in COMPARISON.items()
        }


def test_document_names_every_counter():
    document = (DOCS / "counters.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)`", document))
    assert [name for name in COUNTERPARTS if name not in told] == []
    keys = (
        (DOCS / "json.md").read_text(encoding="utf-8").partition("## `counter_comparison[]`")[2].partition("\n## ")[0]
    )
    assert re.findall(r"^\| `(\w+)` \|", keys, re.MULTILINE) == list(COMPARISON)
    schema = json.loads((DOCS / "analysis.schema.json").read_text())["properties"]["counter_comparison"]
    assert list(schema["items"]["properties"]) == list(COMPARISON)


def test_every_counter_that_packets_give_has_a_name_at_the_host():
    assert set(COUNTERS) <= {counterpart.wire for counterpart in COUNTERPARTS.values()}
