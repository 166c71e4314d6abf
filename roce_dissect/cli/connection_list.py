"""The table of `roce-dissect connections`: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_dissect.analysis.filters import connection_filter
from roce_dissect.cli.aligned import table_lines
from roce_dissect.cli.choice import nothing_fits
from roce_dissect.cli.connection_rows import WEAK_PAIRING, connection_faults, end_text
from roce_dissect.cli.event_table import records
from roce_dissect.cli.event_words import trigger_words
from roce_dissect.cli.places import frames_in_words
from roce_dissect.terms import Trigger
from roce_dissect.units import count, duration, size

if TYPE_CHECKING:
    import pandas as pd

    from roce_dissect.api import Analysis

__all__ = ["episode_counts", "list_lines", "place_of"]

_HEADING = (
    "#", "a", "b", "type", "frames", "end", "packets", "messages", "data a>b", "data b>a", "missing", "went back",
    "NAK/RNR", "CNP/CE", "stall", "idle", "near", "paired by", "notes",
)  # fmt: skip
_RIGHT = ("#", "packets", "messages", "data a>b", "data b>a", "missing", "NAK/RNR", "CNP/CE", "stall", "idle")
#: Cells that stand on the first line of a paragraph: number, ends, type.
_LEAD = 4

#: How a connection ended, in a word.
_END_WORDS = {
    "nothing": "open",
    "teardown": "closed",
    "nak": "NAK",
    "retries": "gave up",
    "rnr_retries": "gave up (RNR)",
    "new_life": "QP reused",
}
_NONE = "-"
#: So few connections get their display filters at once.
_FEW = 5


def list_lines(result: Analysis, table: pd.DataFrame, width: int | None) -> list[str]:
    """Lines for some rows of the connections table, in their order, and one for those that are not among them.

    Parameters
    ----------
    result : Analysis
    table : pandas.DataFrame
        Rows of ``result.connections``.
    width : int, optional
        Columns of the terminal; None: no limit.
    """
    if len(result.connections) == 0:
        return [nothing_fits("connection", result.capture)]
    faults = connection_faults(result)
    counts = episode_counts(result)
    several = len(result.capture["files"]) > 1
    chosen = records(table)
    rows = [_cells(record, faults.get(record["connection"], []), counts, several) for record in chosen]
    lines = table_lines(_HEADING, rows, right=_RIGHT, lead=_LEAD, width=width)
    more = len(result.connections) - len(table)
    lines += [f"{count(more)} more"] if more else []
    if len(chosen) <= _FEW:
        lines += [f"Wireshark, #{one['connection']}: {connection_filter(one)}" for one in chosen if _packets(one)]
    return lines


def episode_counts(result: Analysis) -> dict[int, dict[str, int]]:
    """Episodes of each stream by trigger, in the order of `roce_dissect.terms.Trigger`, unknown ones last."""
    found: dict[int, dict[str, int]] = {}
    sizes = result.episodes.groupby(["stream", "trigger"]).size()
    for trigger in (*(one for one in Trigger if one), Trigger.UNKNOWN):
        name = trigger.name.lower()
        for (stream, given), number in sizes.items():
            if given == name:
                found.setdefault(int(stream), {})[name] = int(number)
    return found


def _cells(record: dict[str, Any], faults: list[str], counts: dict[int, dict[str, int]], several: bool) -> list[str]:
    def both(name: str) -> int:
        return int(record[f"a_to_b_{name}"]) + int(record[f"b_to_a_{name}"])

    ended, complete = both("messages"), both("complete_messages")
    return [
        f"#{record['connection']}",
        end_text(record, "a"),
        end_text(record, "b"),
        record["transport"],
        frames_in_words([place_of(record)], several).removeprefix("frames ").removeprefix("frame "),
        "refused" if "refused" in faults else _END_WORDS[record["ended_by"]],
        count(both("packets")),
        _NONE if not ended else count(ended) if ended == complete else f"{count(complete)} of {count(ended)}",
        _amount(record["a_to_b_goodput_bytes"]),
        _amount(record["b_to_a_goodput_bytes"]),
        _number(both("missing_packets") + both("response_gaps")),
        _causes(record, counts),
        _pair(both("naks"), both("rnr_naks")),
        _pair(both("cnps"), both("ce_packets")),
        _time(record["stall_ns"]),
        _ways(_time(record["a_to_b_idle_ns"]), _time(record["b_to_a_idle_ns"])),
        record["vantage"].removeprefix("near_") if record["vantage"] != "unknown" else _NONE,
        WEAK_PAIRING.get(record["paired_by"], _NONE) if both("packets") else _NONE,
        ", ".join(_notes(record, faults)),
    ]


def _packets(record: dict[str, Any]) -> int:
    return int(record["a_to_b_packets"]) + int(record["b_to_a_packets"])


def place_of(record: dict[str, Any]) -> tuple[int, int, int, int]:
    """First and last frame of a connection."""
    return record["first_file"], record["first_frame"], record["last_file"], record["last_frame"]


def _causes(record: dict[str, Any], counts: dict[int, dict[str, int]]) -> str:
    """``8 NAK, 1 timeout`` of both directions together."""
    sums: dict[str, int] = {}
    for way in ("a_to_b", "b_to_a"):
        for trigger, number in counts.get(record[f"{way}_stream"], {}).items():
            sums[trigger] = sums.get(trigger, 0) + number
    return ", ".join(f"{count(number)} {trigger_words(trigger)}" for trigger, number in sums.items()) or _NONE


def _notes(record: dict[str, Any], faults: list[str]) -> list[str]:
    notes = [fault for fault in faults if fault not in ("ended by NAK", "refused")]  # they stand under "end"
    packets = [int(record[f"{way}_packets"]) for way in ("a_to_b", "b_to_a")]
    if sum(packets) == 0 and "refused" not in faults:
        notes.append("CM only")
    elif record["transport"] == "RC" and sum(packets) and min(packets) == 0:
        notes.append("one direction only")
    if record.get("vni") is not None:
        notes.append(f"VNI {int(record['vni'])}")
    if int(record["life"]) > 1:
        notes.append(f"life {record['life']}")
    return notes


def _number(value: int) -> str:
    return count(value) if value else _NONE


def _amount(octets: int) -> str:
    return size(octets) if octets else _NONE


def _time(time_ns: int) -> str:
    return duration(time_ns) if time_ns else _NONE


def _pair(one: int, other: int) -> str:
    return f"{count(one)}/{count(other)}" if one or other else _NONE


def _ways(one: str, other: str) -> str:
    """One figure for each direction; the only one where the other has nothing."""
    if other == _NONE:
        return one
    return f"{one} / {other}"
