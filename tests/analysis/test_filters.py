"""Display filters: what they look like, and what tshark makes of them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import roce_dissect as rd
from roce_dissect.analysis.filters import connection_filter, frames_filter


def connection(**changes):
    return {"version": 2, "a_address": "10.0.0.1", "b_address": "10.0.0.2", "a_qp": 17, "b_qp": 18} | changes


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            connection(),
            "(ip.dst == 10.0.0.2 && infiniband.bth.destqp == 0x12) || "
            "(ip.dst == 10.0.0.1 && infiniband.bth.destqp == 0x11)",
        ),
        (connection(a_qp=None), "ip.dst == 10.0.0.2 && infiniband.bth.destqp == 0x12"),
        (
            connection(a_address="fd00::1", b_address="fd00::2", a_qp=None),
            "ipv6.dst == fd00::2 && infiniband.bth.destqp == 0x12",
        ),
        (
            connection(version=1, a_qp=None),
            "infiniband.grh.dgid == ::ffff:10.0.0.2 && infiniband.bth.destqp == 0x12",
        ),
        (connection(a_qp=None, b_qp=None), ""),
    ],
)
def test_connection_filter(row, text):
    assert connection_filter(row) == text


def test_frames_filter_joins_neighbours():
    assert frames_filter([(126, 183), (87, 87), (86, 86), (150, 190), (200, 200)]) == (
        "frame.number in {86..87, 126..190, 200}"
    )


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize(
    "name",
    ["imp_loss1_write.server", "rc_mix_ipv6_mtu1024.client", "cm_rping_ipv4.client", "rc_mix_vlan100_ipv4.client"],
)
def test_tshark_passes_just_the_packets_of_the_connection(samples, plain, name):
    path = plain(samples / f"{name}.pcap.gz")
    table = rd.analyze(path).connections
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    assert records
    for row in records:
        done = subprocess.run(
            ["tshark", "-r", str(path), "-Y", connection_filter(row), "-T", "fields", "-e", "frame.number"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert len(done.stdout.split()) == row["a_to_b_packets"] + row["b_to_a_packets"]
