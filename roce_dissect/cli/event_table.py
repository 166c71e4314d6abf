"""The events with the figures of the episodes among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["EPISODE_FIGURES", "events_with_episodes", "records"]

#: Columns of the episodes that stand behind those of the events; missing for what is no resend.
EPISODE_FIGURES = (
    "episode", "bytes", "late_packets", "arrived_packets", "recovery", "retry", "wait_ns", "reaction_ns",
    "extent_packets", "extent_ns",
)  # fmt: skip


def events_with_episodes(result: Analysis) -> pd.DataFrame:
    """The events in time order, with `EPISODE_FIGURES`.

    Both tables are in the order of time and frame, and each ``resend`` is an episode: the n-th is the n-th.
    """
    events = result.events
    resends = (events["kind"] == "resend").to_numpy(bool)
    position = np.where(resends, np.cumsum(resends) - 1, -1)
    figures = result.episodes[list(EPISODE_FIGURES)].reindex(position)
    figures.index = events.index
    return pd.concat([events, figures], axis=1)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table as dicts of plain values, missing ones as None."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]
