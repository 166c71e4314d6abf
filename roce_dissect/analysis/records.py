"""Tables as plain Python values, ready for ``json.dumps``: the form that `docs/json.md` specifies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from roce_dissect.analysis.filters import connection_filter

__all__ = ["connection_records", "counter_records", "table_records"]


def table_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts of plain Python values; missing ones are None."""
    columns = {}
    for name in table.columns:
        values = table[name]
        plain = values.astype(object).where(values.notna(), None).tolist()
        columns[name] = [value.item() if isinstance(value, np.generic) else value for value in plain]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def connection_records(connections: pd.DataFrame) -> list[dict[str, Any]]:
    """Connections with their ends and directions nested, as people expect them in JSON, and a filter for Wireshark."""
    return [_nested(record) | {"filter": connection_filter(record)} for record in table_records(connections)]


def counter_records(counters: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Counters by host address, then by name."""
    return {
        address: dict(zip(counters.columns, map(int, values), strict=True))
        for address, values in zip(counters.index, counters.to_numpy(), strict=True)
    }


def _nested(record: dict[str, Any]) -> dict[str, Any]:
    record = dict(record)
    nested: dict[str, Any] = {"id": record.pop("connection")}
    ends = {end: {key: record.pop(f"{end}_{key}") for key in ("address", "qp")} for end in ("a", "b")}
    ways: dict[str, dict[str, Any]] = {}
    for way in ("a_to_b", "b_to_a"):
        keys = [key for key in record if key.startswith(way + "_")]
        ways[way] = {key.removeprefix(way + "_"): record.pop(key) for key in keys}
    return nested | record | ends | ways
