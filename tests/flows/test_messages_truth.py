"""The messages table against vtool, which printed the end of every work request (``*.truth.txt`` of the captures).

vtool asked its QP, at the end, which PSN would have been next (``sq_psn``). The PSNs of all completed work requests add
up to it in every set: each one reached the wire, the flushed ones too, so that each one has its message.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import roce_dissect as rd


def _beside(name):
    spec = importlib.util.spec_from_file_location(f"flows_{name}", Path(__file__).with_name(f"{name}.py"))
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


vtool = _beside("vtool")

SETS = (
    "app_idle_gap", "ecn_ect1", "ecn_netem_ce", "ecn_netem_notect", "encap_qinq", "encap_vxlan", "flt_bad_addr_write",
    "flt_bad_rkey_write", "flt_blackout3s_recovers", "flt_blackout_retry7_infinite", "flt_psn_mismatch",
    "flt_qp_noaccess_read", "flt_rnr_recovers", "flt_rnr_retry_exceeded", "flt_ro_mr_write", "flt_send_too_long",
    "flt_unaligned_atomic", "flt_wrong_dqpn", "fmt", "imp_ackloss20", "imp_delay20ms", "imp_loss3_uc", "k612_bad_rkey",
    "k612_flush_atomic_write", "k612_mix_ipv4", "rc_mix_ipv4_mtu1024", "rc_mix_ipv4_mtu4096", "rc_mix_ipv6_linklocal",
    "rc_mix_ipv6_mtu1024", "rc_mix_vlan100_ipv4", "rc_mix_vlan100_ipv6", "rc_psn_wrap", "rc_psn_wrap_read",
    "rc_psn_zero", "rc_send_inv", "uc_mix_ipv4", "ud_mix_ipv4",
)  # fmt: skip

#: What is captured under another name than SET.SIDE.pcap.gz.
FILES = {("fmt", "client"): "fmt_usec.pcap.gz", ("fmt", "server"): None}
POINTS = [(name, side) for name in SETS for side in ("client", "server") if FILES.get((name, side), "") is not None]

#: Sets whose server did not complete a receive for each message that arrived whole, and why.
FEWER_RECEIVES = {
    "rc_send_inv": "the key to invalidate was none: the server acknowledged the SEND and failed its receive",
    "imp_loss3_uc": "after the third lost packet the server's kernel took no further message (rq_psn stands still)",
}

#: The set of vtool612, which prints no receives.
NO_RECEIVES = "k612_flush_atomic_write"

VERBS = {"cas": "compare_swap", "faa": "fetch_add"}
#: Without RETH.
NO_RETH = ("send", "send_imm", "send_inv", "compare_swap", "fetch_add")
#: Completion status -> message status, syndrome of the NAK.
REFUSED = {
    vtool.REMOTE_INVALID: ("refused", 0x61),
    vtool.REMOTE_ACCESS: ("refused", 0x62),
    vtool.REMOTE_OPERATION: ("refused", 0x63),
}
PSNS = 1 << 24


@dataclass(frozen=True)
class Wanted:
    """What one completed work request says of its message."""

    verb: str
    status: str
    bytes: int
    psn: int
    last_psn: int
    dma_len: int | None
    syndrome: int | None
    rnr: bool

    @property
    def psns(self) -> set[int]:
        """All its PSNs."""
        return {(self.psn + step) % PSNS for step in range((self.last_psn - self.psn) % PSNS + 1)}


@cache
def _runs(folder, name):
    client, server = vtool.runs(folder / f"{name}.truth.txt")
    assert client.is_client
    assert not server.is_client
    return client, server


def wanted(client):
    """The messages of the client's work requests, in the order in which they were posted."""
    result = []
    psn, broken = client.local.psn, None
    for number, completion in enumerate(sorted(client.completions, key=lambda one: one.id)):
        verb = VERBS.get(completion.verb, completion.verb)
        length = completion.length
        if length is None and client.posted:
            length = client.posted[number].length
        length = 0 if length is None else length  # a FLUSH of the whole region
        carried = {"flush": 0}.get(verb, length)
        packets = max(1, -(-carried // client.mtu))
        status, syndrome = REFUSED.get(completion.status, ("", None))
        if completion.status == 0:
            status = "complete" if client.transport == "RC" else "sent"
        elif completion.status in (vtool.RETRIES, vtool.RNR_RETRIES):
            status = "unanswered"
        elif completion.status == vtool.FLUSHED:
            status = "flushed" if broken == "refused" else "unanswered"
        broken = broken or (status if completion.status else None)
        result.append(
            Wanted(
                verb,
                status,
                carried,
                psn % PSNS,
                (psn + packets - 1) % PSNS,
                None if verb in NO_RETH else length,
                syndrome,
                completion.status == vtool.RNR_RETRIES,
            )
        )
        psn += packets
    return result, psn % PSNS


@pytest.fixture(scope="session")
def seen(softroce):
    """``seen(name, side)``: an Analysis of what passed that capture point."""

    @cache
    def run(name, side):
        return rd.analyze(softroce / FILES.get((name, side), f"{name}.{side}.pcap.gz"))

    return run


def requests(result, run):
    """Messages that `run` asked for, by PSN: where the path lost one, its frames come later."""
    streams = result.streams
    ends = (streams["src"] == run.local.address) & (streams["dst"] == run.remote.address)
    ours = streams[ends & (streams["dest_qp"] == run.dest_qp)]
    messages = result.messages[result.messages["stream"].isin(ours["stream"])]
    return messages.sort_values("psn", key=lambda psn: (psn.astype("int64") - run.local.psn) % PSNS)


def optional(value):
    """A table's value as an int, None where it is missing."""
    return None if pd.isna(value) else int(value)


def lost_psns(softroce, name, side, seen):
    """PSNs that the path lost between the client and `side`, by comparing the captures of both ends; UC only."""
    if side == "client":
        return set()
    path = json.loads((softroce / "truth.json").read_text())[name]["path"]["client->server"]
    sent = seen(name, "client").packets(columns=["frame", "psn"])
    return set(sent[sent["frame"].isin(path["lost_frames_in_sender_file"])]["psn"].tolist())


@pytest.mark.parametrize("name", SETS)
def test_all_work_requests_reached_the_wire(name, softroce):
    """The truth files agree with themselves: count, ids, command line, and the PSN that would have been next."""
    client, server = _runs(softroce, name)
    assert [one.id for one in client.completions] == list(range(len(client.completions)))
    if client.done:
        assert client.done["posted"] == client.done["completed"] == len(client.completions)
        assert client.done["outstanding"] == 0
        errors = sum(one.status != 0 for one in client.completions)
        assert client.done["errors"] == errors + len(client.not_posted)
        assert server.done["receives"] == sum(one.status == 0 for one in server.completions)
    if client.posted is not None:
        asked = [(one.verb, one.length) for one in client.posted]
        told = [(one.verb, one.length) for one in client.completions]
        assert [verb for verb, _ in asked] == [verb for verb, _ in told]
        assert all(known in (None, size) for (_, size), (_, known) in zip(asked, told, strict=True))
    messages, next_psn = wanted(client)
    assert messages
    if client.sq_psn is not None:
        assert client.sq_psn == next_psn
    assert server.sq_psn in (None, server.local.psn)  # the server asked for nothing


def test_all_sets_are_here(softroce):
    """No other truth file is vtool's."""
    files = [path for path in softroce.glob("*.truth.txt") if "vtool" in path.read_text()]
    assert {path.name.removesuffix(".truth.txt") for path in files} == set(SETS)


@pytest.mark.parametrize(("name", "side"), POINTS)
def test_messages_are_the_completed_work_requests(name, side, softroce, seen):
    client, _ = _runs(softroce, name)
    result = seen(name, side)
    messages = requests(result, client)
    expected, _ = wanted(client)
    lost = lost_psns(softroce, name, side, seen) if client.transport == "UC" else set()
    if lost:
        incomplete = [one for one in expected if one.psns & lost]
        expected = [one for one in expected if not one.psns & lost]
        cut = messages[messages["status"].isin(["lost", "unfinished"])]
        messages = messages[~messages.index.isin(cut.index)]
        # each of them shows as one message with a part missing
        assert 0 < len(incomplete) == len(cut)
        for row, one in zip(cut.itertuples(), incomplete, strict=True):
            assert not row.whole
            assert row.packets == len(one.psns - lost)
            assert row.psn in one.psns
            if one.last_psn not in lost:
                assert (row.verb, row.status) == (one.verb, "lost")
    assert messages["verb"].tolist() == [one.verb for one in expected]
    assert messages["status"].tolist() == [one.status for one in expected]
    assert messages["bytes"].tolist() == [one.bytes for one in expected]
    assert messages["psn"].tolist() == [one.psn for one in expected]
    assert messages["last_psn"].tolist() == [one.last_psn for one in expected]
    assert [optional(value) for value in messages["syndrome"]] == [one.syndrome for one in expected]
    assert [optional(value) for value in messages["dma_len"]] == [one.dma_len for one in expected]
    assert messages["whole"].all()
    for row, one in zip(messages.itertuples(), expected, strict=True):
        if one.rnr:
            assert row.rnr_naks > 0
        answered = one.status in ("complete", "refused")
        assert (optional(row.answer_frame) is not None) == answered, row
        assert (optional(row.latency_ns) is not None) == answered, row
        if one.verb == "read" and one.status == "complete":
            assert row.answer_packets == len(one.psns)
    assert messages["connection"].nunique() == 1


@pytest.mark.parametrize(("name", "side"), POINTS)
def test_the_server_asks_for_nothing(name, side, softroce, seen):
    _, server = _runs(softroce, name)
    assert requests(seen(name, side), server).empty


@pytest.mark.parametrize(("name", "side"), [point for point in POINTS if point[0] != NO_RECEIVES])
def test_receives_are_the_messages_that_consume_one(name, side, softroce, seen):
    """Bytes and immediate data as the server's receive completions tell them, in order."""
    client, server = _runs(softroce, name)
    messages = requests(seen(name, side), client)
    taken = messages[
        messages["verb"].isin(["send", "send_imm", "send_inv", "write_imm"])
        & messages["status"].isin(["complete", "sent"])
    ]
    passed = [(int(row.bytes), optional(row.imm_data)) for row in taken.itertuples()]
    header = 40 if client.transport == "UD" else 0
    received = [(one.length - header, one.imm) for one in server.completions if one.status == 0]
    if name in FEWER_RECEIVES:
        assert len(received) < len(passed)
        rest = iter(passed)
        assert all(one in rest for one in received)  # in order, some left out
    else:
        assert received == passed
    immediate = messages[messages["verb"].isin(["send_imm", "write_imm"])]
    assert immediate["imm_data"].notna().all()
    assert messages[~messages.index.isin(immediate.index)]["imm_data"].isna().all()


@pytest.mark.parametrize("name", ["flt_rnr_recovers", "flt_rnr_retry_exceeded"])
def test_rnr_naks_are_the_kernels(name, softroce, seen):
    """Each RNR NAK that the client's kernel counted met one message."""
    client, _ = _runs(softroce, name)
    messages = requests(seen(name, "client"), client)
    kernel = json.loads((softroce / "truth.json").read_text())[name]["client"]["rcvd_rnr_err"]
    assert messages["rnr_naks"].sum() == kernel > 0
