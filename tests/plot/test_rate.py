"""Rate pictures: the staircases hold the goodput, the rows below the counts."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import StepPatch

from roce_dissect.errors import ArgumentError
from roce_dissect.plot.rate import COUNTS_LABEL

WRITE_MIDDLE, READ_REQUEST, READ_ONLY, ACKNOWLEDGE, CNP = 0x07, 0x0C, 0x10, 0x11, 0x81
BITS = {"b/s": 1.0, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9}
SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def _bytes(ax, patch: StepPatch) -> float:
    """Area under a staircase: what the picture claims was moved."""
    rate_unit = BITS[ax.get_ylabel().split("(")[1].split(",")[0]]
    lower = next((one for one in ax.figure.axes if one.get_label() == COUNTS_LABEL), ax)
    time_unit = SECONDS[lower.get_xlabel().rsplit("(", 1)[1].rstrip(")")]
    values, edges, _ = patch.get_data()
    return float((values * np.diff(edges)).sum()) * rate_unit * time_unit / 8


def _lines(ax) -> list[StepPatch]:
    return [patch for patch in ax.patches if isinstance(patch, StepPatch) and not patch.get_fill()]


@pytest.mark.parametrize(
    "name", ["imp_loss1_write.server", "imp_loss5_readreq.server", "rc_psn_wrap.client", "cm_rping_ipv4.client"]
)
def test_the_area_under_each_line_is_its_goodput(sample, name):
    analysis = sample(name)
    row = analysis.connections.iloc[0]
    ax = analysis.plot.rate(1)
    wanted = [int(row[f"{way}_goodput_bytes"]) for way in ("a_to_b", "b_to_a")]
    assert [_bytes(ax, line) for line in _lines(ax)] == pytest.approx([amount for amount in wanted if amount])


def test_a_whole_capture_has_a_line_for_each_host_that_sent_payload(sample):
    analysis = sample("rc_psn_wrap.client")
    ax = analysis.plot.rate()
    by_host = analysis.streams.groupby("src")["goodput_bytes"].sum().sort_values(ascending=False)
    assert [_bytes(ax, line) for line in _lines(ax)] == pytest.approx([int(n) for n in by_host if n])
    assert [line.get_label().split(" (")[0] for line in _lines(ax)] == [f"from {host}" for host in by_host.index]
    assert ax.get_title(loc="left") == "Whole capture: 1 connection, 2 streams"


def test_hosts_beyond_the_lines_are_one_line(made):
    hosts = [f"198.51.100.{n}" for n in range(1, 11)]
    packets = [(n, "A", WRITE_MIDDLE, n, {"src": host, "payload_len": 100 * n}) for n, host in enumerate(hosts, 1)]
    ax = made(*packets).plot.rate()
    labels = [line.get_label() for line in _lines(ax)]
    assert len(labels) == 7
    assert labels[0] == "from 198.51.100.10 (1 kB)"
    assert labels[-1] == "from 4 other hosts (1 kB)"  # 100 + 200 + 300 + 400


def test_rows_below_hold_the_counts(sample):
    ax = sample("imp_loss1_write.server").plot.rate(1)
    lower = next(one for one in ax.figure.axes if one.get_label() == COUNTS_LABEL)
    assert [text.get_text() for text in lower.get_yticklabels()] == ["NAK (10)", "gap (9)", "late (9)", "resent (526)"]
    naks = next(patch for patch in lower.patches if patch.get_label() == "nak")
    values, edges, _ = naks.get_data()
    assert int((values > 0).sum()) == 10  # never two in one bin here, and a single one can be seen
    assert edges[0] == 0
    assert lower.get_xlim() == ax.get_xlim()


def test_nothing_disturbed_means_no_rows(sample):
    ax = sample("rc_psn_wrap.client").plot.rate(1)
    assert [one.get_label() for one in ax.figure.axes].count(COUNTS_LABEL) == 0
    assert ax.get_xlabel().startswith("time since 2026-11-29 12:52:13.007049 UTC")


def test_the_axis_names_unit_and_bin(sample):
    assert sample("imp_loss1_write.server").plot.rate(bin_ns=10_000_000).get_ylabel() == "goodput (Mb/s, per 10 ms)"
    assert sample("flt_rnr_recovers.client").plot.rate(bin_ns=1_000_000_000).get_ylabel() == "goodput (kb/s, per 1 s)"


def test_given_axes_are_used_and_share_their_place_with_the_counts(sample):
    figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(12, 5))
    assert sample("imp_loss1_write.server").plot.rate(1, ax=right) is right
    assert not left.has_data()
    figure.canvas.draw()
    counts = next(one for one in figure.axes if one.get_label() == COUNTS_LABEL)
    assert counts.get_position().y1 < right.get_position().y0
    assert counts.get_position().x0 > left.get_position().x1


def test_axes_without_a_grid_give_way_too(sample):
    figure = plt.figure()
    ax = figure.add_axes((0.1, 0.2, 0.8, 0.7))
    sample("imp_loss1_write.server").plot.rate(1, ax=ax)
    counts = next(one for one in figure.axes if one.get_label() == COUNTS_LABEL)
    assert counts.get_position().y0 == pytest.approx(0.2)
    assert counts.get_position().y1 < ax.get_position().y0


def test_no_packets_get_a_sentence(sample):
    ax = sample("cm_refused.client").plot.rate(1)
    assert "there is no rate" in ax.texts[-1].get_text()
    assert ax.get_title(loc="left").startswith("Connection 1")


def test_packets_without_payload_get_a_sentence(made):
    ax = made((0, "A", READ_REQUEST, 5), (10, "A", READ_REQUEST, 6)).plot.rate(1)
    assert any(text.get_text() == "no new payload" for text in ax.texts)


def test_one_packet_is_a_picture(made):
    ax = made((0, "A", WRITE_MIDDLE, 5)).plot.rate()
    ax.figure.canvas.draw()
    assert _bytes(ax, _lines(ax)[0]) == pytest.approx(1024)


def test_no_connection_at_all_gets_a_sentence_and_another_than_there_are_an_error(made, sample):
    assert made((0, "A", 0x64, 1)).plot.rate(3).texts
    with pytest.raises(ArgumentError, match="no connection 9"):
        sample("imp_loss1_write.server").plot.rate(9)
