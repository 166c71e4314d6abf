"""Rows as aligned lines, or as paragraphs where they do not fit."""

from __future__ import annotations

import click
import pytest

from roce_dissect.cli.aligned import NO_BREAK, aligned, output_width, paragraphs, table_lines, with_filter, written

HEADING = ("#", "name", "size")
ROWS = [["1", "short", "10 kB"], ["12", "rather long", "-"]]


def plain(lines):
    return [click.unstyle(line) for line in lines]


def test_columns_stand_in_line_and_nothing_trails():
    assert plain(aligned(HEADING, ROWS, right=("#", "size"))) == [
        " #  name          size",
        " 1  short        10 kB",
        "12  rather long      -",
    ]
    assert plain(aligned(HEADING, ROWS))[2] == "12  rather long  -"


def test_a_narrow_terminal_gets_paragraphs_without_what_is_not_there():
    lines = paragraphs(HEADING, ROWS, 2, 30)
    assert lines == ["1  short", "   size 10 kB", "12  rather long"]


@pytest.mark.parametrize(("width", "first"), [(None, " #  name"), (22, " #  name"), (21, "1  short")])
def test_the_form_that_fits_is_taken(width, first):
    assert plain(table_lines(HEADING, ROWS, right=("#", "size"), lead=2, width=width))[0].startswith(first)


def test_empty_columns_are_left_out():
    rows = [[*row, "-"] for row in ROWS]
    assert "more" not in "".join(table_lines((*HEADING, "more"), rows, lead=2, width=None))


def test_a_word_longer_than_the_terminal_is_not_cut():
    lines = paragraphs(HEADING, [["1", "x" * 50, "10 kB"]], 2, 20)
    assert "x" * 50 in lines[0] + lines[1]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["when what  [frame.number in {1..2}]"]),
        (40, ["when what  [frame.number in {1..2}]"]),
        (20, ["when 1 kB", "   [frame.number in {1..2}]"]),
    ],
)
def test_a_filter_stays_in_one_piece(width, lines):
    assert with_filter("when what", f"when 1{NO_BREAK}kB", "frame.number in {1..2}", width) == lines


def test_a_pipe_has_no_width_and_no_styles(capsys):
    assert output_width() is None
    assert written(aligned(HEADING, ROWS)).splitlines()[0] == "#   name         size"
