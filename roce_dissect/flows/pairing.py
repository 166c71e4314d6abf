"""Which two streams are one connection: the evidence that only the whole capture gives.

The tracker has linked what the CM named and what responses proved. Here the rest is looked at, weakest evidence last;
what stays ambiguous stays unpaired. `docs/semantics.md` has the table of evidence.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from roce_dissect.flows import states
from roce_dissect.spec.opcodes import Transport
from roce_dissect.terms import PairedBy

__all__ = ["pair_streams"]

#: Responses that found no partner although they were compared: then weaker evidence is no evidence.
REFUSED_TRIES = 16


def pair_streams(streams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Partner of each stream and the evidence for it.

    Parameters
    ----------
    streams : numpy.ndarray
        int64[n, STREAM_WORDS], the tracker's rows.

    Returns
    -------
    partner : numpy.ndarray
        int64[n], row of the other direction, -1 where there is none.
    evidence : numpy.ndarray
        uint8[n], `roce_dissect.terms.PairedBy`.
    """
    partner = streams[:, states.PEER] - 1
    evidence = np.where(partner >= 0, streams[:, states.PAIRED], PairedBy.NONE).astype(np.uint8)
    # a link is mutual: a stream whose partner went on with a later life has lost it
    linked = np.flatnonzero(partner >= 0)
    broken = linked[streams[partner[linked], states.PEER] - 1 != linked]
    partner[broken], evidence[broken] = -1, PairedBy.NONE
    for by, keys in ((PairedBy.ONLY, []), (PairedBy.UDP_SPORT, ["sport"])):
        left = _open(streams, partner)
        if left.empty:
            break
        for one, other in _only_candidates(left, keys):
            partner[one], partner[other] = other, one
            evidence[one] = evidence[other] = by
    return partner, evidence


def _open(streams: np.ndarray, partner: np.ndarray) -> pd.DataFrame:
    """Streams that still look for a partner: connected transports with packets."""
    transport = streams[:, states.OPCODE] & 0xE0
    rows = np.flatnonzero((partner < 0) & (transport != Transport.UD) & (streams[:, states.PACKETS] > 0))
    chosen = streams[rows]
    source = chosen[:, states.KEY_HOSTS] >> 32
    destination = chosen[:, states.KEY_HOSTS] & 0xFFFFFFFF
    return pd.DataFrame(
        {
            "row": rows,
            "low": np.minimum(source, destination),
            "high": np.maximum(source, destination),
            "forth": source < destination,
            "network": chosen[:, states.KEY_QP] >> states.NETWORK_SHIFT,
            "sport": chosen[:, states.SPORT],
            "first": chosen[:, states.FIRST_TIME],
            "last": chosen[:, states.LAST_TIME],
            "requests": chosen[:, states.REQUESTS],
            "responses": chosen[:, states.RESPONSES],
            "transport": transport[rows],
        }
    )


def _only_candidates(left: pd.DataFrame, keys: list[str]) -> list[tuple[int, int]]:
    """Pairs of streams that are alone in their direction for (hosts, VNI, keys), overlap in time, and do not clash."""
    group = ["low", "high", "network", *keys]
    alone = left[left.groupby([*group, "forth"])["row"].transform("size") == 1]
    both = alone[alone["forth"]].merge(alone[~alone["forth"]], on=group, suffixes=("", "_back"))
    overlap = (both["first"] <= both["last_back"]) & (both["first_back"] <= both["last"])
    same = (
        (both["transport"] == both["transport_back"])
        | (both["transport"] == Transport.CNP)
        | (both["transport_back"] == Transport.CNP)
    )
    # responses were compared with the other's requests all along, and never fitted
    refused = ((both["responses"] >= REFUSED_TRIES) & (both["requests_back"] > 0)) | (
        (both["responses_back"] >= REFUSED_TRIES) & (both["requests"] > 0)
    )
    fit = both[overlap & same & ~refused]
    return list(zip(fit["row"].tolist(), fit["row_back"].tolist(), strict=True))
