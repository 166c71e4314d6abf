"""Counters of a host beside those that its packets give: which is which, and why the two may differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from roce_dissect.columns import Column
from roce_dissect.errors import ArgumentError

__all__ = ["COMPARISON", "COUNTERPARTS", "compare_counters", "counter_growth", "incomparable_counters"]

#: One row per counter and host.
COMPARISON = {
    column.name: column
    for column in (
        Column("address", "str", "address of the host; several are separated by commas, and stand for their sum"),
        Column("counter", "str", "the host's name of the counter"),
        Column("wire_counter", "str", "key in `counters` that it is compared with"),
        Column("host", "int64", "what the host counted"),
        Column("wire", "int64", "what the packets give"),
        Column("difference", "int64", "host less wire"),
        Column("agrees", "bool", "the two fit together"),
        Column("remark", "str", "what the difference may come from, empty without one"),
    )
}

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What packets give for a counter of a host.

    Attributes
    ----------
    wire : str
        Name in `roce_dissect.columns.COUNTERS`.
    kind : str
        Key of `_REASONS`.
    also : str
        What else the host counts there; it then has at least what the packets give.
    """

    wire: str
    kind: str
    also: str = ""


_SPAN = "or the host's span is not the capture's"
_LESS_SPAN = "or the host's span is shorter than the capture's"

#: Kind of a counter -> what it means that the host has more, and that it has less.
_REASONS = {
    "sent": (
        "sent and not captured: lost before the capture point, dropped by the capture, under another address of the "
        f"host, {_SPAN}",
        f"captured and not counted: copied on the way, {_LESS_SPAN}",
    ),
    "received": (
        f"received and not captured: dropped by the capture, under another address of the host, {_SPAN}",
        "captured and not received: lost behind the capture point, thrown away by the host (bad ICRC, no such QP, QP "
        f"in error), {_LESS_SPAN}",
    ),
    "judged": (
        "the host knew of packets that the capture lacks, nobody answers here what it judged (one direction only), "
        f"{_SPAN}",
        f"what seems so here did not seem so there: lost or thrown away behind the capture point, {_LESS_SPAN}",
    ),
    "decided": (
        f"nothing on the wire says so: it is told from what is sent again, which may be missing here, {_SPAN}",
        f"it is told from what is sent again, which may have another cause, {_LESS_SPAN}",
    ),
}

#: The host's name -> what packets give for it: Linux rxe, mlx5 (rdma, hw_counters), mlx5's ethtool -S, IB counters.
COUNTERPARTS = {
    "sent_pkts": Counterpart("sent_pkts", "sent"),
    "rcvd_pkts": Counterpart("rcvd_pkts", "received"),
    "duplicate_request": Counterpart("duplicate_request", "judged"),
    "out_of_seq_request": Counterpart("out_of_seq_request", "judged"),
    "rcvd_rnr_err": Counterpart("rcvd_rnr_err", "received"),
    "send_rnr_err": Counterpart("send_rnr_err", "sent"),
    "rcvd_seq_err": Counterpart("rcvd_seq_err", "received"),
    "retry_exceeded_err": Counterpart("retry_exceeded_err", "decided"),
    "retry_rnr_exceeded_err": Counterpart("retry_rnr_exceeded_err", "decided"),
    "out_of_sequence": Counterpart("out_of_sequence", "judged"),
    "packet_seq_err": Counterpart("packet_seq_err", "received"),
    "implied_nak_seq_err": Counterpart("implied_nak_seq_err", "received"),
    "local_ack_timeout_err": Counterpart("local_ack_timeout_err", "decided"),
    "rnr_nak_retry_err": Counterpart("rnr_nak_retry_err", "received"),
    "out_of_buffer": Counterpart(
        "out_of_buffer", "sent", also="packets without a receive that nobody answers (UD, UC)"
    ),
    "req_remote_access_errors": Counterpart("req_remote_access_errors", "received"),
    "np_cnp_sent": Counterpart("np_cnp_sent", "sent"),
    "rp_cnp_handled": Counterpart("rp_cnp_handled", "received"),
    "np_ecn_marked_roce_packets": Counterpart("np_ecn_marked_roce_packets", "received"),
    "rx_icrc_encapsulated": Counterpart("rx_icrc_encapsulated", "received"),
    "cc_tx_cnp_pkts": Counterpart("np_cnp_sent", "sent"),
    "cc_rx_cnp_pkts": Counterpart("rp_cnp_handled", "received"),
    "cc_rx_ce_pkts": Counterpart("np_ecn_marked_roce_packets", "received"),
    "tx_vport_rdma_unicast_packets": Counterpart("sent_pkts", "sent"),
    "rx_vport_rdma_unicast_packets": Counterpart("rcvd_pkts", "received"),
    "port_xmit_packets": Counterpart("sent_pkts", "sent"),
    "port_rcv_packets": Counterpart("rcvd_pkts", "received"),
}


def compare_counters(wire: pd.DataFrame, host: Mapping[str, int], addresses: Sequence[str]) -> pd.DataFrame:
    """What a host counted beside what its packets give.

    Parameters
    ----------
    wire : pandas.DataFrame
        ``Analysis.counters``: a row for each address.
    host : mapping of str to int
        As `roce_dissect.analysis.host_counters.read_counters` gives them, or the growth between two of those.
    addresses : sequence of str
        The host's addresses; what the wire gives is the sum over them.

    Returns
    -------
    pandas.DataFrame
        Columns as in `COMPARISON`, a row for each counter that can be compared, in the order of `COUNTERPARTS`.

    Raises
    ------
    ArgumentError
        None of the addresses is in `wire`.
    """
    known = [address for address in addresses if address in wire.index]
    if addresses and not known:
        there = ", ".join(map(str, wire.index[:8])) + (", ..." if len(wire) > 8 else "")
        raise ArgumentError(f"no packets of {', '.join(addresses)} in the capture (there are: {there or 'none'})")
    rows = []
    for name, counterpart in COUNTERPARTS.items():
        if name not in host or not _comparable(wire, name, host[name]):
            continue
        counted, given = host[name], int(wire.loc[known, counterpart.wire].sum())
        more, less = _REASONS[counterpart.kind]
        agrees, remark = counted == given, ""
        if counted > given:
            agrees, remark = (
                bool(counterpart.also),
                f"the host also counts {counterpart.also}" if counterpart.also else more,
            )
        elif counted < given:
            remark = less
        address = ", ".join(addresses)
        rows.append((address, name, counterpart.wire, counted, given, counted - given, agrees, remark))
    return pd.DataFrame(rows, columns=list(COMPARISON)).astype({name: one.dtype for name, one in COMPARISON.items()})


def counter_growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What was counted between two snapshots, for the counters of both.

    Raises
    ------
    ArgumentError
        One of `COUNTERPARTS` fell. Others may: the texts hold levels and settings, too.
    """
    growth = {name: value - before[name] for name, value in after.items() if name in before}
    for name, value in growth.items():
        if value < 0 and name in COUNTERPARTS:
            raise ArgumentError(
                f"{name} fell from {before[name]} to {after[name]}: give the earlier snapshot first (or the counters "
                "were reset in between, or overran)"
            )
    return growth


def incomparable_counters(wire: pd.DataFrame, host: Mapping[str, int]) -> dict[str, int]:
    """Counters of the host that no packets give."""
    return {name: value for name, value in host.items() if not _comparable(wire, name, value)}


def _comparable(wire: pd.DataFrame, name: str, value: int) -> bool:
    return name in COUNTERPARTS and COUNTERPARTS[name].wire in wire.columns and 0 <= value <= _LARGEST
