"""Latency as cells: percentiles only where there are messages beyond them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import roce_dissect as rd
from roce_dissect.cli.latency_rows import LATENCY_FIGURES, latency_rows


@pytest.fixture(scope="module")
def result(samples):
    return rd.analyze(samples / "imp_loss1_write.server.pcap.gz")


def test_sixty_messages_have_a_median_and_no_99th_percentile(result):
    [row] = latency_rows(result, 10)
    cells = dict(zip(LATENCY_FIGURES, row, strict=True))
    assert (cells["verb"], cells["bytes up to"], cells["messages"]) == ("write", "16,384", "60")
    assert (cells["p99"], cells["p99.9"]) == ("-", "-")
    assert cells["of"] == "#1, frame 1203"


def test_the_most_frequent_ones_in_the_order_of_verb_and_size(samples):
    result = rd.analyze(samples / "rc_mix_ipv4_mtu1024.server.pcap.gz")
    assert len(latency_rows(result, 3)) == 3
    every = latency_rows(result, 100)
    assert every == [row for row in every if row[0] in set(result.latency["verb"])]
    assert len(every) == len(result.latency)


def test_several_files_name_theirs(samples):
    result = rd.analyze([samples / "imp_loss1_write.server.pcap.gz", samples / "flt_rnr_recovers.client.pcap.gz"])
    assert all(", file " in row[-1] for row in latency_rows(result, 10))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_width_cuts_the_section(result, width):
    from roce_dissect.cli.text import report

    console = Console(file=io.StringIO(), width=width)
    console.print(report(result, top=20, events=0, width=width))
    text = console.file.getvalue()
    assert "Latency" in text
    assert "26.8 ms" in text
    assert "…" not in text
