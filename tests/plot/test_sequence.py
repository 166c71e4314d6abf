"""Sequence pictures: what the artists hold, what the legend says, and the cases with little to show."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from roce_dissect.errors import ArgumentError
from roce_dissect.plot.sequence import draw_sequence, psn_ticks
from roce_dissect.plot.spaces import CIRCLE

WRITE_MIDDLE, READ_REQUEST, READ_ONLY, ACKNOWLEDGE, CNP = 0x07, 0x0C, 0x10, 0x11, 0x81


def _drawn(ax) -> dict[str, str]:
    """Legend: word -> whole text."""
    return {text.get_text().split(" (")[0]: text.get_text() for text in ax.get_legend().get_texts()}


def _points(ax, marker) -> np.ndarray:
    """Places of all lines with a marker: shape (2, n)."""
    lines = [line for line in ax.get_lines() if line.get_marker() == marker and line.get_transform() == ax.transData]
    return np.concatenate([np.asarray(line.get_data(), float) for line in lines], axis=1)


# tshark: requests whose PSN had been seen before, NAKs, RNR NAKs.
@pytest.mark.parametrize(
    ("name", "resent", "naks", "rnr_naks"),
    [
        ("imp_loss1_write.server", 526, 10, 0),
        ("imp_loss1_write.client", 537, 10, 0),
        ("flt_rnr_recovers.client", 100, 50, 50),
    ],
)
def test_marks_are_as_many_as_the_packets(sample, name, resent, naks, rnr_naks):
    ax = sample(name).plot.sequence()
    assert _points(ax, "x").shape[1] == resent
    assert _points(ax, 7).shape[1] == naks
    if rnr_naks:
        assert _points(ax, 6).shape[1] == rnr_naks
    legend = _drawn(ax)
    assert legend["resent"] == f"resent ({resent})"
    assert legend["NAK PSN sequence error"] == f"NAK PSN sequence error ({naks})"
    assert ("RNR NAK 0.64 ms" in legend) == bool(rnr_naks)


def test_places_are_times_and_psns_of_the_packets(sample):
    analysis = sample("imp_loss1_write.client")
    packets = analysis.packets(1, ["time_ns", "psn", "verdict", "role"])
    resent = packets[(packets["verdict"] == "resent") & (packets["role"] == "request")]
    ax = analysis.plot.sequence()
    x, y = _points(ax, "x")
    since = resent["time_ns"].to_numpy(np.int64) - int(packets["time_ns"].min())
    assert "(ms)" in ax.get_xlabel()
    np.testing.assert_allclose(x, since / 1e6)
    assert (y % CIRCLE).astype(int).tolist() == resent["psn"].tolist()


def test_the_legend_lists_only_what_occurs(sample):
    assert list(_drawn(sample("ecn_red_ce.server").plot.sequence())) == ["acknowledged up to", "new request", "CE"]
    assert list(_drawn(sample("imp_loss3_uc.server").plot.sequence())) == ["gap", "new request"]


def test_the_ack_line_is_a_staircase(sample):
    ax = sample("imp_loss1_write.server").plot.sequence()
    line = next(line for line in ax.get_lines() if line.get_drawstyle() == "steps-post")
    assert (np.diff(line.get_ydata()) >= 0).all()


def test_the_stall_shaded_is_the_stall_of_the_table(sample):
    analysis = sample("imp_loss1_write.server")
    ax = analysis.plot.sequence()
    spans = [path.get_extents().width for path in ax.collections[0].get_paths()]
    assert sum(spans) == pytest.approx(int(analysis.connections["stall_ns"].iloc[0]) / 1e6)


def test_title_and_axes_say_what_they_show(sample):
    ax = sample("imp_loss1_write.server").plot.sequence()
    assert ax.get_title(loc="left") == "Connection 1: 192.168.100.2 QP 0x30 ↔ 192.168.100.1 QP 0x30 (RC)"
    assert "1,486 requests of 192.168.100.2 QP 0x30, stalled for 95.9 ms in 10 resend episodes" in [
        t.get_text() for t in ax.texts
    ]
    assert ax.get_xlabel() == "time since 2026-11-29 13:05:04.324531 UTC (ms)"
    assert ax.get_ylabel() == "PSN"


def test_ticks_are_psns_of_the_wire_across_the_wrap(sample):
    ax = sample("rc_psn_wrap.client").plot.sequence()
    ax.figure.canvas.draw()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert "0" in labels
    assert any(int(label) > CIRCLE - 100 for label in labels)
    assert any(text.get_text() == "PSN wraps to 0" for text in ax.texts)


def test_ticks_follow_a_zoom(sample):
    ax = sample("imp_loss1_write.server").plot.sequence()
    ax.set_ylim(CIRCLE + 2_032_695.5, CIRCLE + 2_032_704.5)
    ax.figure.canvas.draw()
    assert [int(text.get_text()) for text in ax.get_yticklabels()] == list(range(2_032_696, 2_032_705))


def test_relative_psns_count_from_the_first(sample):
    ax = sample("rc_psn_wrap.client").plot.sequence(relative=True)
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_yticklabels()][:2] == ["0", "10"]


@pytest.mark.parametrize(
    ("low", "high", "start", "ticks"),
    [
        (0, 0, None, [0]),
        (7, 9, None, [7, 8, 9]),
        (95, 905, None, [200, 400, 600, 800]),
        (3, 43, 12, [7, 12, 17, 22, 27, 32, 37, 42]),  # 12 and whole steps from it
        (CIRCLE // 2, 40 * CIRCLE, None, [n * CIRCLE for n in range(1, 41, 5)]),
        (CIRCLE - 12, CIRCLE + 28, None, [CIRCLE - 11, CIRCLE - 6, CIRCLE, *range(CIRCLE + 5, CIRCLE + 26, 5)]),
    ],
)
def test_ticks_are_round(low, high, start, ticks):
    assert psn_ticks(low, high, start) == ticks


def test_requests_of_both_ends_get_a_panel_each_with_one_time_axis(sample):
    ax = sample("cm_rping_ipv4.client").plot.sequence()
    upper, lower = ax.figure.axes
    assert ax is upper
    assert upper.get_xlim() == lower.get_xlim()
    assert "40 requests of 192.168.100.1 QP 0x23, 10 READ responses of 192.168.100.2 QP 0x40" in [
        t.get_text() for t in upper.texts
    ]
    assert lower.get_title(loc="left") == "20 requests of 192.168.100.2 QP 0x40"


def test_given_axes_are_used_and_returned_and_the_other_direction_is_named(sample):
    figure, (left, right) = plt.subplots(1, 2)
    assert sample("cm_rping_ipv4.client").plot.sequence(ax=right) is right
    assert not left.has_data()
    assert len(figure.axes) == 2
    assert any("other direction sent requests, too" in text.get_text() for text in right.texts)


def test_a_connection_known_from_its_handshake_alone_gets_a_sentence(sample):
    ax = sample("cm_refused.client").plot.sequence()
    assert "only its CM messages were captured" in ax.texts[0].get_text().replace("\n", " ")


def test_a_capture_without_connections_gets_a_sentence(made):
    ax = made((0, "A", 0x64, 1)).plot.sequence(5)
    assert "No connection in this capture" in ax.texts[0].get_text().replace("\n", " ")


def test_a_connection_of_cnps_alone_gets_a_sentence(made):
    ax = made((0, "B", CNP, 0)).plot.sequence()
    assert "no request or response" in ax.texts[0].get_text().replace("\n", " ")


def test_one_packet_is_a_picture(made):
    ax = made((0, "A", WRITE_MIDDLE, 5)).plot.sequence()
    ax.figure.canvas.draw()
    assert ax.get_ylim()[0] < CIRCLE + 5 < ax.get_ylim()[1]
    assert any("no answer was captured" in text.get_text() for text in ax.texts)


def test_another_connection_than_there_are_is_an_error(sample):
    with pytest.raises(ArgumentError, match="no connection 7: the capture has 1"):
        sample("imp_loss1_write.server").plot.sequence(7)


def test_the_legend_says_how_many_are_drawn_where_not_all_are(sample):
    ax = draw_sequence(sample("imp_loss1_write.server"), keep=100)
    legend = _drawn(ax)
    assert legend["resent"].startswith("resent (526; ")
    assert legend["late"] == "late (9)"
    assert _points(ax, "x").shape[1] <= 100


def test_long_gaps_are_drawn_over_all_that_is_missing(made):
    ax = made((0, "A", WRITE_MIDDLE, 10), (1, "A", WRITE_MIDDLE, 15)).plot.sequence()
    (segments,) = [c for c in ax.collections if hasattr(c, "get_segments")]
    assert (segments.get_segments()[0][:, 1] % CIRCLE).tolist() == [11, 14]
    assert _drawn(ax)["gap"] == "gap (1: 4 PSNs had not passed here)"


def test_cnps_lie_on_the_time_axis_since_they_have_no_psn(made):
    ax = made((0, "A", WRITE_MIDDLE, 10), (1, "B", ACKNOWLEDGE, 10), (2, "B", CNP, 0)).plot.sequence()
    rug = next(line for line in ax.get_lines() if line.get_marker() == "|")
    assert rug.get_transform() != ax.transData
    assert _drawn(ax)["CNP"] == "CNP (1)"
