"""Tables as lines of CSV or JSON: whole columns at a time, by Arrow, without an object per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["csv_lines", "heading_line", "joined", "json_lines", "strings", "tab_lines"]


def heading_line(names: Sequence[str]) -> str:
    """The first line of a CSV table."""
    return ",".join(names) + "\n"


def csv_lines(table: pd.DataFrame) -> str:
    """Lines of values with commas between; a missing value is empty.

    No value ever needs quotes: numbers, addresses and names of fixed vocabularies.
    """
    return _lines([strings(table[name]).fill_null("") for name in table.columns], ",")


def tab_lines(table: pd.DataFrame) -> str:
    """The same with tabs."""
    return _lines([strings(table[name]).fill_null("") for name in table.columns], "\t")


def json_lines(table: pd.DataFrame) -> str:
    """One JSON object a line; a missing value is null."""
    parts: list[Any] = []
    for position, name in enumerate(table.columns):
        values = strings(table[name])
        if isinstance(table[name].dtype, (pd.CategoricalDtype, pd.StringDtype)):
            values = pc.binary_join_element_wise('"', values, '"', "")
        parts += [f'{"{" if position == 0 else ", "}"{name}": ', values.fill_null("null")]
    return _lines([*parts, "}"], "")


def strings(values: pd.Series) -> pa.Array:
    """A column as text; what is missing stays null."""
    array = pa.array(values)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return pc.cast(array, pa.string())


def joined(lines: pa.Array) -> str:
    """All lines as one text that ends with a line break."""
    if len(lines) == 0:
        return ""
    one = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    text: str = pc.binary_join(one, "\n")[0].as_py()
    return text + "\n"


def _lines(columns: list[Any], separator: str) -> str:
    return joined(pc.binary_join_element_wise(*columns, separator))
