"""The capture summary: files, packet counts, times, and what else the capture holds (``capture`` in `docs/json.md`)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from roce_dissect import layout
from roce_dissect.analysis.forms import interpreted_kernels
from roce_dissect.columns import FILE_SHIFT, FRAME_MASK
from roce_dissect.decode.blocks import FileSummary
from roce_dissect.decode.doubles import Doubles
from roce_dissect.decode.ordering import Ordering
from roce_dissect.decode.standing import Judgements
from roce_dissect.flows.flow_table import FlowTable
from roce_dissect.spec.net import LINKTYPE_NAMES
from roce_dissect.terms import IcrcStatus

__all__ = ["capture_summary"]

#: What the frames were that are no RoCE.
_OTHER = {
    "tcp": layout.TALLY_TCP,
    "udp": layout.TALLY_UDP,
    "icmp": layout.TALLY_ICMP,
    "other_ip": layout.TALLY_IP,
    "arp": layout.TALLY_ARP,
    "lldp": layout.TALLY_LLDP,
    "mac_control": layout.TALLY_MAC_CONTROL,
    "other_ethernet": layout.TALLY_ETHERNET,
    "ip_fragments": layout.TALLY_FRAGMENT,
    "malformed": layout.TALLY_MALFORMED,
    "cut": layout.TALLY_CUT,
    "other_link_type": layout.TALLY_LINK,
    "other_tunnel": layout.TALLY_TUNNEL,
}


def capture_summary(
    files: list[FileSummary],
    tallies: np.ndarray,
    flows: FlowTable,
    judgements: Judgements,
    *,
    ordering: Ordering | None = None,
    doubles: Doubles | None = None,
    interrupted: bool = False,
    selection: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Summary of what was read.

    Parameters
    ----------
    files : list of FileSummary
        Empty for packets that came from no file.
    tallies : numpy.ndarray
        int64, frames by kind (``TALLY_*`` of `roce_dissect.layout`).
    flows : FlowTable
        Where they went.
    judgements : Judgements
        What their ICRCs said.
    ordering, doubles : Ordering, Doubles, optional
        What became of their order and of further sightings; default: nothing was looked at.
    interrupted : bool
        Whether reading was stopped from outside.
    selection : dict, optional
        Which packets were chosen, as `roce_dissect.decode.selection.Chooser.summary` makes it.
    """
    firsts = [one.first_time_ns for one in files if one.first_time_ns is not None]
    lasts = [one.last_time_ns for one in files if one.last_time_ns is not None]
    listed = [asdict(one) | {"link_types": _named(one.link_types)} for one in files]
    link_types: dict[str, int] = {}
    for record in listed:
        for name, frames in record["link_types"].items():
            link_types[name] = link_types.get(name, 0) + frames
    return {
        "files": listed,
        "packets": sum(one.frames for one in files),
        "roce_packets": int(tallies[layout.TALLY_ROCE]),
        "sliced_packets": sum(one.sliced_frames for one in files),
        "first_time_ns": min(firsts, default=None),
        "last_time_ns": max(lasts, default=None),
        "link_types": link_types,
        "other_packets": {name: int(tallies[tally]) for name, tally in _OTHER.items()},
        "complete": not interrupted and all(one.complete for one in files),
        "interrupted": interrupted,
        "selection": selection,
        "compiled": not interpreted_kernels(),
        "icrc": {status.name.lower(): int(judgements.icrcs[status]) for status in IcrcStatus},
        "odd_flushes": judgements.odd_flushes,
        "damaged_packets": judgements.damaged,
        **_sightings(doubles or Doubles()),
        **_order(ordering or Ordering()),
        "foreign_packets": flows.foreign,
        "untracked_packets": flows.untracked,
        "twin_packets": flows.twins,
        "cut_answers": flows.cut_answers,
        "unfollowed_messages": flows.unfollowed,
        "events_left_out": flows.events_left_out + flows.handshakes.left_out,
    }


def _sightings(doubles: Doubles) -> dict[str, Any]:
    """How often each packet is here, and what was left out for that."""
    doubling = doubles.doubling
    return {
        "copies_of_each": 1 if doubling is None else doubling.copies,
        "copies_differ_in": [] if doubling is None else list(doubling.ways),
        "doubled_packets": doubles.packets,
    }


def _order(ordering: Ordering) -> dict[str, Any]:
    """What stood behind later packets, and where time runs backwards."""
    return {
        "reordered_packets": ordering.reordered,
        "unordered_packets": ordering.unordered,
        "greatest_step_back_ns": ordering.greatest_step_ns,
        "step_back_file": ordering.step_frame_key >> FILE_SHIFT if ordering.unordered else None,
        "step_back_frame": ordering.step_frame_key & FRAME_MASK if ordering.unordered else None,
    }


def _named(link_types: dict[int, int]) -> dict[str, int]:
    return {LINKTYPE_NAMES.get(number, f"link type {number}"): frames for number, frames in link_types.items()}
