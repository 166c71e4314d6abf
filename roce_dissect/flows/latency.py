"""Latency of complete messages by verb and size: the tracker counts in buckets, so that memory does not grow."""

from __future__ import annotations

import numpy as np

from roce_dissect.flows import states

__all__ = ["bucket_bounds", "latency_columns"]

_PERCENTILES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999}


def bucket_bounds() -> np.ndarray:
    """Shortest latency of each bucket in ns, and beyond the last: int64[BUCKETS + 1].

    The first 64 hold one value each; from there on 32 divide each doubling, so that none is wider than 1/32 of itself.
    """
    bucket = np.arange(states.BUCKETS + 1)
    octave = np.maximum((bucket >> states.MANTISSA_BITS) - 1, 0)
    return (bucket - (octave << states.MANTISSA_BITS)) << octave


def latency_columns(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the table by verb and size class, where anything was counted.

    Parameters
    ----------
    counts : numpy.ndarray
        int64[groups, LATENCY_WORDS], as the tracker fills it.

    Returns
    -------
    dict of str to numpy.ndarray
        Columns of `roce_dissect.columns.LATENCY`; of the longest the ``stream`` and the frame's ``key``.
    """
    groups = np.flatnonzero(counts[:, states.LATENCY_COUNT])
    rows = counts[groups]
    number = rows[:, states.LATENCY_COUNT]
    sums = np.cumsum(rows[:, : states.BUCKETS], axis=1)
    bounds = bucket_bounds()
    middles = (bounds[:-1] + bounds[1:] - 1) // 2
    table = {
        "verb": groups // states.SIZES,
        "most_bytes": 1 << groups % states.SIZES,
        "messages": number,
        "least_ns": rows[:, states.LATENCY_LEAST],
        "most_ns": rows[:, states.LATENCY_MOST],
        "stream": rows[:, states.LATENCY_STREAM],
        "key": rows[:, states.LATENCY_FRAME],
    }
    for name, share in _PERCENTILES.items():
        rank = np.ceil(number * share).astype(np.int64)
        bucket = np.minimum((sums < rank[:, None]).sum(axis=1), states.BUCKETS - 1)
        table[name] = np.clip(middles[bucket], table["least_ns"], table["most_ns"])
    return table
