"""Tables as CSV and JSON lines: what is missing, what needs quotes."""

from __future__ import annotations

import json

import pandas as pd

from roce_dissect.cli.table_lines import csv_lines, heading_line, json_lines, tab_lines

TABLE = pd.DataFrame(
    {
        "name": pd.array(["one", "two"], dtype="str"),
        "kind": pd.Series(["a", "b"]).astype("category"),
        "number": pd.array([1, None], dtype="int64[pyarrow]"),
        "large": pd.array([2**64 - 1, 0], dtype="uint64[pyarrow]"),
        "there": pd.array([True, False], dtype="bool[pyarrow]"),
    }
)


def test_csv():
    assert heading_line(["a", "b"]) == "a,b\n"
    assert csv_lines(TABLE) == "one,a,1,18446744073709551615,true\ntwo,b,,0,false\n"
    assert tab_lines(TABLE[["name", "number"]]) == "one\t1\ntwo\t\n"


def test_json():
    assert [json.loads(line) for line in json_lines(TABLE).splitlines()] == [
        {"name": "one", "kind": "a", "number": 1, "large": 2**64 - 1, "there": True},
        {"name": "two", "kind": "b", "number": None, "large": 0, "there": False},
    ]


def test_nothing():
    assert csv_lines(TABLE.iloc[:0]) == ""
    assert json_lines(TABLE.iloc[:0]) == ""
