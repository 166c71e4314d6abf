"""The worked examples of docs/semantics.md, word for word, through both forms of the tracker.

The document is the specification: a difference here is an error of the code, or of the document.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from roce_dissect.flows.tables import build_tables

PAGE = Path(__file__).parents[2] / "docs" / "semantics.md"
TRACES = dict(re.findall(r"^```trace ([\w-]+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S))


class Example:
    """One ``trace`` block: packets, and what the page says of them."""

    def __init__(self, text, build):
        self.packets, self.verdicts, self.accepted, self.missing = [], [], [], []
        self.counters: dict[str, int] = {}
        self.events: list[str] | None = None
        self.episodes: list[str] | None = None
        self.messages: list[str] | None = None
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word == "counters":
                self.counters = {name: int(value) for name, value in (part.split("=") for part in rest.split())}
            elif word == "events":
                self.events = rest.split()
            elif word in ("episodes", "messages"):
                setattr(self, word, [part.strip() for part in rest.split("|")])
            elif line:
                self._packet(line, build)

    def _packet(self, line, build):
        left, said = line.split("|")
        number, ms, side, operation, psn, *details = left.split()
        names = {"pay": "payload_len", "len": "dma_len", "syndrome": "syndrome", "id": "ip_id"}
        more = {}
        for detail in details:
            name, _, value = detail.partition("=")
            if name != "ack":  # the AckReq bit, which nothing here depends on
                more[names[name]] = int(value, 0)
        ends = {"A": (build.A, build.B), "B": (build.B, build.A)}[side]
        more["frame_key"] = int(number)
        self.packets.append(build.packet(operation, int(psn), float(ms), *ends, **more))
        verdict, accepted, *rest = said.split()
        self.verdicts.append(verdict)
        self.accepted.append(accepted.replace("-", "none"))
        self.missing.append(int(rest[0].removeprefix("missing=")) if rest else 0)


def episode_text(row):
    """An episode as the page writes it: trigger, frames, recovery, figures; ``?``: not known, ``-``: none."""
    frames = f"{row.frame}" if row.frame == row.last_frame else f"{row.frame}-{row.last_frame}"
    arrived = "?" if pd.isna(row.arrived_packets) else row.arrived_packets
    cause = "-" if pd.isna(row.trigger_frame) else row.trigger_frame
    return (
        f"{row.trigger}@{frames} {row.recovery} packets={row.packets} late={row.late_packets} arrived={arrived} "
        f"retry={row.retry} cause={cause}"
    )


def message_text(row):
    """A message as the page writes it: verb, PSNs, status, and what is not 0."""
    more = [f"{name}={value}" for name, value in (("resends", row.resends), ("rnr", row.rnr_naks)) if value]
    return " ".join([f"{row.verb}:{row.psn}-{row.last_psn} {row.status}", *more])


def test_page_has_its_examples():
    assert len(TRACES) >= 20
    assert PAGE.read_text(encoding="utf-8").count("```trace") == len(TRACES)


@pytest.mark.parametrize("name", TRACES)
def test_example(name, build, track):
    example = Example(TRACES[name], build)
    assert [one["frame_key"] for one in example.packets] == list(range(1, len(example.packets) + 1))
    result = track(example.packets)
    assert result.verdicts == example.verdicts
    assert result.accepted == example.accepted
    assert result.missing == example.missing
    if example.events is not None:
        assert result.events == example.events
    if example.episodes is not None:
        assert [episode_text(row) for row in result.episodes.itertuples()] == example.episodes
    if example.messages is not None:
        assert [message_text(row) for row in result.message_frame.itertuples()] == example.messages
    responder = build_tables(result.flows, build.ADDRESSES).counters.loc["10.0.0.2"]
    assert {counter: int(responder[counter]) for counter in example.counters} == example.counters


@pytest.mark.parametrize("name", TRACES)
def test_example_packet_by_packet(name, build, tracker):
    """The same, fed one packet at a time: nothing may depend on what comes later."""
    example = Example(TRACES[name], build)
    columns = build.columns(example.packets)
    flows, verdicts, accepted = build.FlowTable(tracker), [], []
    for row in range(len(example.packets)):
        out = build.Verdicts.empty(2)
        flows.feed({key: values[row : row + 1] for key, values in columns.items()}, 1, (), out)
        verdicts.append(int(out.verdict[0]))
        accepted.append(int(out.accepted[0]))
    together = build.Tracked(columns, tracker)
    assert verdicts == together.out.verdict[: together.rows].tolist()
    assert accepted == together.out.accepted[: together.rows].tolist()


@pytest.mark.parametrize("name", TRACES)
def test_psn_ext_unwraps(name, build, track):
    """`psn_ext` begins at the first PSN plus 2**24 and keeps the wire's 24 bits."""
    example = Example(TRACES[name], build)
    result = track(example.packets)
    extended = result.out.psn_ext[: result.rows].tolist()
    wire = [one["psn"] for one in example.packets]
    assert [value & 0xFFFFFF for value in extended] == wire
    assert extended[0] == wire[0] + (1 << 24)
    if name == "lost-ack":  # ff ff ff, then 0: the only example that wraps
        assert extended[3] == extended[0] + 1
