"""Decoded packets as a pandas DataFrame: what is absent is missing, and integers stay integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from roce_dissect.columns import FILE_SHIFT, FRAME_MASK, MADE_FROM, PACKETS, TRACKED, Column
from roce_dissect.spec.opcodes import operation_name
from roce_dissect.terms import names

__all__ = ["kernel_columns", "packet_frame", "packet_rows", "text_index"]


def kernel_columns(wanted: Sequence[Column]) -> tuple[str, ...]:
    """Columns that the decoder must deliver so that `packet_frame` can build the wanted ones."""
    needed = ["frame_key", "present"]
    needed += [MADE_FROM.get(column.name, column.name) for column in wanted if column.name not in TRACKED]
    return tuple(dict.fromkeys(needed))


def text_index(texts: Sequence[str]) -> pd.Index:
    """Texts as the categories of a column: addresses by host code, words by their numbers."""
    return pd.Index(texts, dtype="str")


def packet_frame(
    wanted: Sequence[Column],
    columns: Mapping[str, np.ndarray],
    rows: np.ndarray | slice,
    addresses: pd.Index,
    first_index: int = 0,
) -> pd.DataFrame:
    """A DataFrame of the wanted columns of chosen rows.

    Parameters
    ----------
    wanted : sequence of Column
        Columns of `PACKETS`, in order.
    columns : mapping of str to numpy.ndarray
        At least `kernel_columns(wanted)`, and those of `TRACKED` that are wanted.
    rows : slice or numpy.ndarray
        Which rows.
    addresses : pandas.Index
        Printed address of each host code, as `text_index` makes it. It serves many calls: what pandas learns of it,
        such as that no address comes twice, is kept in it.
    first_index : int
        Index of the first row.

    Returns
    -------
    pandas.DataFrame
        Arrow-backed integers; text, addresses and coded columns are categorical.
    """
    present = columns["present"][rows]
    series = {column.name: _values(column, columns, rows, present, addresses) for column in wanted}
    return pd.DataFrame(series, index=pd.RangeIndex(first_index, first_index + len(present)))


def packet_rows(packets: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Packets as plain Python values; None where one is missing."""
    names = list(packets.columns)
    lists = [packets[name].astype(object).where(packets[name].notna(), None).tolist() for name in names]
    for values in zip(*lists, strict=True):
        yield dict(zip(names, values, strict=True))


def _values(
    column: Column,
    columns: Mapping[str, np.ndarray],
    rows: np.ndarray | slice,
    present: np.ndarray,
    addresses: pd.Index,
) -> object:
    values = columns[MADE_FROM.get(column.name, column.name)][rows]
    absent = _absent(column, present)
    if column.name == "file":
        values = values >> FILE_SHIFT
    elif column.name == "frame":
        values = values & FRAME_MASK
    elif column.name == "operation":
        return _categories(values, _operations(), absent)
    if column.dtype == "address":
        return _categories(values, addresses, absent)
    if column.terms is not None:
        return _categories(values, _vocabulary(column.name), absent)
    return pd.arrays.ArrowExtensionArray(pa.array(values.astype(column.dtype), mask=absent))


def _absent(column: Column, present: np.ndarray) -> np.ndarray | None:
    """Where the column has no value; None where it always has one."""
    if column.needs:
        return (present & np.uint32(column.needs)) != column.needs
    if column.any_of:
        return (present & np.uint32(column.any_of)) == 0
    return None


def _categories(codes: np.ndarray, categories: pd.Index, absent: np.ndarray | None) -> pd.Categorical:
    codes = codes.astype(np.int32)
    if absent is not None:
        codes[absent] = -1
    return pd.Categorical.from_codes(codes, categories)


@lru_cache(maxsize=1)
def _operations() -> pd.Index:
    return text_index([operation_name(opcode) for opcode in range(256)])


@lru_cache(maxsize=16)
def _vocabulary(name: str) -> pd.Index:
    terms = PACKETS[name].terms
    if terms is None:
        raise TypeError(f"{name} is not a coded column")
    return text_index(list(names(terms).values()))
