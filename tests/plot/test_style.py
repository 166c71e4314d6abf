"""Marks that can be told apart, by colour and without."""

from __future__ import annotations

import matplotlib.colors as colors
import pytest

from roce_dissect.plot.style import MARKS, dress, new_axes, say, set_title


def test_no_two_marks_look_alike_even_without_colour():
    drawn = {name: mark for name, mark in MARKS.items() if mark.marker != ""}
    by_colour = {(mark.marker, mark.color) for mark in drawn.values()}
    assert len(by_colour) == len(drawn)
    # Dots, crosses and bars come in pairs (requests and READ responses, CE and CNP): those differ in lightness.
    for shape in {mark.marker for mark in drawn.values()}:
        pair = [_lightness(mark.color) for mark in drawn.values() if mark.marker == shape and not mark.hollow]
        assert len(pair) <= 2
        assert len(pair) < 2 or abs(pair[0] - pair[1]) > 0.05


@pytest.mark.parametrize("name", [name for name, mark in MARKS.items() if mark.marker != ""])
def test_every_mark_stands_out_from_white_paper(name):
    mark = MARKS[name]
    assert _lightness(mark.edge or mark.color) < 0.72


def test_every_mark_draws_points_and_no_line():
    ax = new_axes()[0]
    for mark in MARKS.values():
        if mark.marker != "":
            line = ax.plot([0, 1], [0, 1], **mark.marker_style())[0]
            assert line.get_linestyle() == "None"


def test_panels_share_their_time_axis():
    upper, lower = new_axes(2)
    dress(upper)
    lower.set_xlim(3, 4)
    assert upper.get_xlim() == (3, 4)


def test_a_sentence_in_place_of_a_picture():
    ax = new_axes()[0]
    say(ax, "nothing " * 20)
    assert ax.texts[0].get_text().count("\n") >= 2
    assert len(ax.get_xticks()) == 0


def test_a_title_without_heading_is_the_figures():
    ax = new_axes()[0]
    set_title(ax, "", "12 requests")
    assert ax.get_title(loc="left") == "12 requests"
    set_title(ax, "Connection 1", "12 requests")
    assert ax.get_title(loc="left") == "Connection 1"
    assert ax.texts[-1].get_text() == "12 requests"


def _lightness(color: str) -> float:
    red, green, blue = colors.to_rgb(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
