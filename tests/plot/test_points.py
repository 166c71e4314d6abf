"""Thinning and reading: bounded, and true to what a screen can show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roce_dissect.errors import CaptureError
from roce_dissect.plot.points import Cloud, Staircase, column, packet_pieces


def test_a_cloud_below_its_limit_keeps_every_point_in_order():
    cloud = Cloud(keep=100)
    for start in range(0, 100, 10):
        cloud.add(np.arange(start, start + 10), np.arange(start, start + 10) * 7, np.full(10, start))
    times, psns, sizes = cloud.points()
    assert times.tolist() == list(range(100))
    assert psns.tolist() == [7 * time for time in times]
    assert sizes.tolist() == [time // 10 * 10 for time in times]


@pytest.mark.parametrize("pieces", [1, 37])
def test_a_cloud_beyond_its_limit_is_bounded_counts_all_and_still_covers_the_picture(pieces):
    rng = np.random.default_rng(1)
    cloud, n = Cloud(keep=2000), 200_000
    times, psns = np.sort(rng.integers(0, 10**15, n)), rng.integers(0, 1 << 30, n)
    for part in np.array_split(np.arange(n), pieces):
        cloud.add(times[part], psns[part])
    kept = cloud.points()
    assert cloud.count == n
    assert 500 < kept.shape[1] <= 2000
    assert set(kept[0].tolist()) <= set(times.tolist())  # points that were there, none made up
    # each sixteenth of the picture still has its points
    histogram, _, _ = np.histogram2d(kept[0], kept[1], bins=4, range=[[0, 10**15], [0, 1 << 30]])
    assert histogram.min() > 0


def test_a_lonely_point_far_from_a_crowd_survives_thinning():
    cloud = Cloud(keep=1000)
    cloud.add(np.array([5]), np.array([10**9]))
    for start in range(0, 100_000, 1000):
        cloud.add(np.arange(start, start + 1000) * 1000, np.arange(start, start + 1000))
    assert 10**9 in cloud.points()[1]


def test_a_cloud_of_one_instant_and_one_psn_thins_to_one_point():
    cloud = Cloud(keep=10)
    cloud.add(np.full(1000, 7), np.full(1000, 9))
    assert cloud.points().tolist() == [[7], [9], [0]]


def test_a_staircase_rises_only_and_ends_where_the_last_value_was_told():
    stairs = Staircase()
    stairs.add(np.array([1, 2, 3]), np.array([10, 12, 11]))
    stairs.add(np.array([4, 5, 6]), np.array([12, 15, 9]))
    assert stairs.points().tolist() == [[1, 2, 5, 6], [10, 12, 15, 15]]
    assert stairs.count == 6


def test_a_staircase_of_many_rises_is_bounded_and_keeps_both_ends():
    stairs, n = Staircase(keep=500), 100_000
    for part in np.array_split(np.arange(n), 50):
        stairs.add(part * 1000, part)
    times, values = stairs.points()
    assert len(times) <= 4 * 500 + 2001
    assert (times[0], values[0], values[-1]) == (0, 0, n - 1)
    assert (np.diff(values) >= 0).all()


def test_nothing_added_is_no_point():
    assert Cloud().points().shape == (3, 0)
    assert Staircase().points().shape == (2, 0)


def test_columns_are_integers_whatever_the_dataframe_holds():
    frame = pd.DataFrame(
        {
            "syndrome": pd.array([0x60, None], "uint8[pyarrow]"),
            "verdict": pd.Categorical(["late", None], categories=["none", "late"]),
            "psn": [1, 2],
        }
    )
    assert column(frame, "syndrome", -1).tolist() == [0x60, -1]
    assert column(frame, "verdict").tolist() == [4, 0]
    assert column(frame, "psn").tolist() == [1, 2]
    assert column(frame, "ecn", 7).tolist() == [7, 7]


class _Breaking:
    def __init__(self, complete: bool) -> None:
        self.capture = {"complete": complete}

    def iter_packets(self, connection, columns):
        yield pd.DataFrame({"psn": [1]})
        raise CaptureError("x.pcap", "breaks off", 99)


def test_a_capture_that_is_known_to_break_off_ends_quietly_and_another_raises():
    assert len(list(packet_pieces(_Breaking(complete=False), None, ["psn"]))) == 1
    with pytest.raises(CaptureError):
        list(packet_pieces(_Breaking(complete=True), None, ["psn"]))
