"""Frames in words, and as spans for filters."""

from __future__ import annotations

import pytest

from roce_dissect.cli.places import frame_in_words, frames_in_words, spans_of


@pytest.mark.parametrize(
    ("places", "several", "words"),
    [
        ([(0, 7, 0, 7)], False, "frame 7"),
        ([(1, 7, 1, 7)], True, "file 2 frame 7"),
        ([(0, 7, 0, 9)], False, "frames 7-9"),
        ([(1, 7, 1, 9)], True, "file 2 frames 7-9"),
        ([(0, 7, 0, 9), (0, 20, 0, 22)], False, "frames 7 to 22"),
        ([(0, 7, 1, 2)], True, "file 1 frame 7 to file 2 frame 2"),
    ],
)
def test_frames_in_words(places, several, words):
    assert frames_in_words(places, several) == words


def test_frame_in_words():
    assert (frame_in_words(0, 5, False), frame_in_words(2, 5, True)) == ("frame 5", "file 3 frame 5")


@pytest.mark.parametrize(
    ("place", "spans"),
    [
        ((0, 7, 0, 9), [(0, 7, 9)]),
        ((0, 7, 2, 3), [(0, 7, 10), (1, 1, 20), (2, 1, 3)]),
        ((1, 7, 0, 3), [(1, 7, 7), (0, 3, 3)]),  # files whose times overlap
    ],
)
def test_spans_by_file(place, spans):
    assert spans_of(place, [10, 20, 30]) == spans
