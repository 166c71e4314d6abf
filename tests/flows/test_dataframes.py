"""Arrays as DataFrames: names, dtypes, missing values, and integers that stay what they are."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from roce_dissect import terms
from roce_dissect.columns import Column
from roce_dissect.flows.dataframes import known, place_columns, table_frame, term_names

TOP = (1 << 64) - 1


class Fruit(IntEnum):
    """A vocabulary with a hole."""

    APPLE = 1
    BLOOD_ORANGE = 4


TABLE = {
    column.name: column
    for column in (
        Column("small", "uint8", "a byte"),
        Column("large", "uint64", "all 64 bits"),
        Column("text", "str", "words"),
        Column("fruit", "str", "coded", terms=Fruit),
        Column("flag", "bool", "true or false"),
        Column("share", "float64", "a fraction"),
    )
}


def values(rows):
    """Some values of each column."""
    return {
        "share": np.linspace(0, 1, rows),
        "flag": np.arange(rows) % 2 == 0,
        "fruit": term_names(Fruit, np.full(rows, 4)),
        "text": np.array(["word"] * rows, object),
        "large": np.full(rows, TOP, np.uint64),
        "small": np.arange(rows),
    }


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_columns_are_the_promised_ones(rows):
    """Their order and dtypes are the table's, whatever was given, and also without any row."""
    frame = table_frame(TABLE, values(rows))
    assert list(frame.columns) == list(TABLE)
    assert len(frame) == rows
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "small": "uint8[pyarrow]",
        "large": "uint64[pyarrow]",
        "text": "str",
        "fruit": "str",
        "flag": "bool[pyarrow]",
        "share": "double[pyarrow]",
    }
    assert frame["large"].tolist() == [TOP] * rows


def test_what_is_not_promised_is_left_out_and_what_is_promised_must_be_there():
    given = values(2)
    assert "more" not in table_frame(TABLE, given | {"more": np.zeros(2)}).columns
    del given["small"]
    with pytest.raises(KeyError, match="small"):
        table_frame(TABLE, given)


def test_missing_values_are_missing_and_the_others_whole():
    large = np.array([TOP, 7, TOP - 1], np.uint64)
    frame = table_frame(TABLE, values(3) | {"large": known(large, np.array([True, False, True]))})
    assert frame["large"].tolist() == [TOP, pd.NA, TOP - 1]
    assert str(frame["large"].dtype) == "uint64[pyarrow]"
    assert frame["large"].isna().tolist() == [False, True, False]


def test_a_missing_value_may_not_fit_its_column():
    """What a row holds where nothing is known is no value: -1 or anything else. A known one has to fit."""
    given = np.array([-1, 255, 1 << 40])
    frame = table_frame(TABLE, values(3) | {"small": known(given, given == 255)})
    assert frame["small"].tolist() == [pd.NA, 255, pd.NA]
    with pytest.raises(pa.ArrowInvalid):
        table_frame(TABLE, values(3) | {"small": known(given, given > 0)})


def test_known_takes_flags_of_any_kind_and_columns_of_a_table():
    """A column of a two-dimensional array is not contiguous; flags come as integers, too."""
    rows = np.arange(12).reshape(4, 3)
    assert known(rows[:, 1], rows[:, 0] & 1).to_pylist() == [None, 4, None, 10]
    assert known(rows[:0, 1], rows[:0, 0] > 0).to_pylist() == []


def test_places():
    """The key of a frame is its file above 40 bits of frame number (docs/json.md counts both)."""
    keys = np.array([7, (3 << 40) + 9, (0xFFFF << 40) + (1 << 40) - 1])
    plain = place_columns("", keys)
    assert {name: column.tolist() for name, column in plain.items()} == {
        "file": [0, 3, 0xFFFF],
        "frame": [7, 9, (1 << 40) - 1],
    }
    some = place_columns("answer", keys, np.array([False, True, True]))
    assert {name: column.to_pylist() for name, column in some.items()} == {
        "answer_file": [None, 3, 0xFFFF],
        "answer_frame": [None, 9, (1 << 40) - 1],
    }


def test_names_of_codes():
    """Numbers that are no word are empty: below, between and beyond them."""
    assert term_names(Fruit, np.array([1, 4, 0, 2, 5, -1, -9, 1 << 40])).tolist() == [
        "apple", "blood_orange", "", "", "", "", "", ""
    ]  # fmt: skip
    assert term_names(Fruit, np.zeros(0, np.int64)).tolist() == []
    assert term_names(Fruit, np.array([4], np.uint8)).tolist() == ["blood_orange"]


VOCABULARIES = ("EndedBy", "EventKind", "MessageStatus", "PairedBy", "Recovery", "Trigger", "Vantage", "Verb")


@pytest.mark.parametrize("name", VOCABULARIES)
def test_all_words_of_the_vocabularies(name):
    vocabulary = getattr(terms, name)
    numbers = np.array([int(term) for term in vocabulary])
    assert term_names(vocabulary, numbers).tolist() == [term.name.lower() for term in vocabulary]
