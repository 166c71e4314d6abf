"""Arrays as DataFrames with exactly the columns that `roce_dissect.columns` promises."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from roce_dissect.columns import FILE_SHIFT, FRAME_MASK, Column
from roce_dissect.terms import names

__all__ = ["Values", "known", "place_columns", "table_frame", "term_names"]

Values: TypeAlias = np.ndarray | pa.Array


def table_frame(table: Mapping[str, Column], values: Mapping[str, Values]) -> pd.DataFrame:
    """A DataFrame with exactly the promised columns; absent values are missing, and integers stay integers."""
    return pd.DataFrame({name: _array(column, values[name]) for name, column in table.items()})


def known(values: np.ndarray, there: np.ndarray) -> pa.Array:
    """Values that are missing where `there` is false."""
    return pa.array(np.ascontiguousarray(values), mask=~np.asarray(there, bool))


def place_columns(name: str, keys: np.ndarray, there: np.ndarray | None = None) -> dict[str, Values]:
    """``<name>_file`` and ``<name>_frame`` of frame keys; without a name just ``file`` and ``frame``."""
    prefix = f"{name}_" if name else ""
    file, frame = keys >> FILE_SHIFT, keys & FRAME_MASK
    if there is None:
        return {f"{prefix}file": file, f"{prefix}frame": frame}
    return {f"{prefix}file": known(file, there), f"{prefix}frame": known(frame, there)}


def term_names(vocabulary: type[IntEnum], values: np.ndarray) -> np.ndarray:
    """Names of coded values; values without one are empty texts."""
    words = names(vocabulary)
    table = np.array([words.get(value, "") for value in range(max(words) + 2)], object)
    if len(values) == 0:
        return np.zeros(0, object)
    return table[np.where((values >= 0) & (values <= max(words)), values, max(words) + 1)]


def _array(column: Column, values: Values) -> pd.api.extensions.ExtensionArray:
    if column.dtype in ("str", "address") or column.terms is not None:
        return pd.array(np.asarray(values, object), dtype="str")
    if isinstance(values, pa.Array):
        return pd.arrays.ArrowExtensionArray(values.cast(pa.from_numpy_dtype(np.dtype(column.dtype))))
    return pd.arrays.ArrowExtensionArray(pa.array(np.ascontiguousarray(values).astype(column.dtype)))
