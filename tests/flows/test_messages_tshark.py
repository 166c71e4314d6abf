"""The messages of healthy captures against a count of our own on tshark's fields: opcodes, PSNs, DMA lengths, times.

What FIRST or ONLY begins, LAST or ONLY ends. A READ is answered by the LAST or ONLY response that is for it, an atomic
by its acknowledge, all else by the first ACK or response for its last PSN or a later one: where nothing is lost, that
is enough. tshark's payload heuristic is switched off (trap 6).
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

import pandas as pd
import pytest

import roce_dissect as rd

TSHARK = shutil.which("tshark")
pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")

#: Healthy captures -> messages that there must be at least, lest nothing is compared with nothing.
CAPTURES = {
    "rc_mix_ipv4_mtu1024.server": 15,
    "rc_mix_ipv6_mtu1024.client": 15,
    "rc_mix_vlan100_ipv4.client": 15,
    "rc_psn_wrap.client": 20,
    "rc_psn_wrap_read.server": 2,
    "cm_rping_ipv4.client": 60,
    "fmt_dumpcap": 15,
    "uc_mix_ipv4.client": 8,
    "ud_mix_ipv4.server": 5,
}
#: Further ones, of the environment.
OF_THE_LAB = {
    "cm_rping_ipv6.server": 60,
    "rc_mix_ipv4_mtu4096.client": 15,
    "rc_mix_vlan100_ipv6.server": 15,
    "rc_read_bw_65536_mtu4096.client": 20,
    "rc_atomic_bw_faa.client": 100,
    "rc_write_bw_bidir.client": 20,
    "rc_write_bw_65536_mtu1024.client": 20,
    "rc_send_bw_16384_mtu1024.client": 20,
    "ulp_nfs_rdma.server": 20,
    "ulp_ucx_am_rc.client": 20,
    "imp_delay20ms.client": 20,
}
#: More than 16 messages under way before the first answer.
MANY_AT_FIRST = {
    "rc_send_bw_64_mtu1024.client": 100,
    "rc_send_bw_inline.client": 100,
    "rc_atomic_bw_cas.client": 100,
    "rc_write_bw_vlan.client": 20,
    "mixed_roce_tcp_icmp.client": 80,
}

FIELDS = (
    "frame.number", "frame.time_epoch", "ip.src", "ipv6.src", "udp.length", "infiniband.bth.opcode",
    "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.padcnt", "infiniband.aeth.syndrome",
    "infiniband.reth.dmalen", "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.immdt",
)  # fmt: skip

#: The low five bits of opcodes (IBTA 9.2.1): verb that is known by them, begins, ends, bytes of extended headers.
REQUESTS = {
    0x00: ("send", True, False, 0),
    0x01: ("send", False, False, 0),
    0x02: ("send", False, True, 0),
    0x03: ("send_imm", False, True, 4),
    0x04: ("send", True, True, 0),
    0x05: ("send_imm", True, True, 4),
    0x06: ("write", True, False, 16),
    0x07: ("write", False, False, 0),
    0x08: ("write", False, True, 0),
    0x09: ("write_imm", False, True, 4),
    0x0A: ("write", True, True, 16),
    0x0B: ("write_imm", True, True, 20),
    0x0C: ("read", True, True, 16),
    0x13: ("compare_swap", True, True, 28),
    0x14: ("fetch_add", True, True, 28),
    0x16: ("send_inv", False, True, 4),
    0x17: ("send_inv", True, True, 4),
}
LAST_RESPONSES = (0x0F, 0x10)
ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE = 0x11, 0x12
RC, UC, UD = 0, 1, 3
#: UDP header, BTH and ICRC; a datagram has a DETH more.
AROUND, DETH = 8 + 12 + 4, 8


@dataclass
class Message:
    """One message, counted here."""

    verb: str
    frame: int
    time: int
    psn: int
    last_psn: int
    last_frame: int
    bytes: int
    dma_len: int | None
    va: int | None
    r_key: int | None
    imm_data: int | None
    answer_frame: int | None = None
    latency: int | None = None


def frames_of(path):
    """tshark's RoCE frames as dicts; a field that is not there is an empty text."""
    command = [TSHARK, "--disable-heuristic", "rpcrdma_infiniband", "-n", "-r", str(path), "-Y", "infiniband.bth"]
    command += ["-T", "fields", "-E", "occurrence=f"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]


def number(text):
    return int(text, 0) if text else None


def nanoseconds(text):
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))


def counted(path):
    """Messages by (source, destination QP), of RC, UC and UD, without management datagrams."""
    found: dict[tuple[str, int], list[Message]] = {}
    for one in frames_of(path):
        opcode, qp, psn = (number(one[f"infiniband.bth.{name}"]) for name in ("opcode", "destqp", "psn"))
        transport, operation = opcode >> 5, opcode & 0x1F
        source = one["ip.src"] or one["ipv6.src"]
        frame, time = int(one["frame.number"]), nanoseconds(one["frame.time_epoch"])
        if transport not in (RC, UC, UD) or (transport == UD and qp in (0, 1)):
            continue
        if operation not in REQUESTS:
            # two hosts, and one RC connection: what goes to the other host answers what comes from it
            [(_, messages)] = [(key, some) for key, some in found.items() if key[0] != source]
            answer(messages, operation, psn, number(one["infiniband.aeth.syndrome"]), frame, time)
            continue
        verb, begins, ends, extended = REQUESTS[operation]
        messages = found.setdefault((source, qp), [])
        size = int(one["udp.length"]) - AROUND - extended - number(one["infiniband.bth.padcnt"])
        size -= DETH if transport == UD else 0
        reth = [number(one[f"infiniband.reth.{name}"]) for name in ("dmalen", "va", "r_key")]
        if verb in ("compare_swap", "fetch_add"):  # of the AtomicETH, which has fields of its own to tshark
            size, reth = 8, [None, *reth[1:]]
        immediate = int(one["infiniband.immdt"].replace(":", ""), 16) if one["infiniband.immdt"] else None
        if begins:
            messages.append(Message(verb, frame, time, psn, psn, frame, size, *reth, immediate))
            if verb == "read":
                messages[-1].bytes = messages[-1].dma_len
            continue
        message = messages[-1]
        message.last_psn, message.last_frame, message.imm_data = psn, frame, immediate
        message.bytes += size
        if ends:
            message.verb = verb
    return found


def answer(messages, operation, psn, syndrome, frame, time):
    """End what an answer for `psn` is for."""
    assert syndrome is None or syndrome & 0x60 == 0  # healthy: no NAK
    for message in messages:
        if message.answer_frame is not None:
            continue
        if (psn - message.last_psn) & 0xFFFFFF >= 1 << 23:
            return  # it is for an earlier one
        if message.verb == "read":
            if operation not in LAST_RESPONSES:
                return
            message.last_psn = psn
        elif message.verb in ("compare_swap", "fetch_add") and operation != ATOMIC_ACKNOWLEDGE:
            return
        message.answer_frame, message.latency = frame, time - message.time
        if message.verb in ("read", "compare_swap", "fetch_add"):
            return  # for this one alone


def check(path, least):
    """Ours and theirs: number of each verb, bytes, keys, frames, latency, stream by stream."""
    result = rd.analyze(path)
    theirs = counted(path)
    streams = result.streams.set_index("stream")
    messages = result.messages.sort_values("frame")
    ours = {
        (streams["src"][number], int(streams["dest_qp"][number])): some for number, some in messages.groupby("stream")
    }
    assert set(ours) == {key for key, some in theirs.items() if some}
    for key, some in ours.items():
        other = theirs[key]
        verbs = pd.Series([one.verb for one in other])
        assert some["verb"].value_counts().to_dict() == verbs.value_counts().to_dict()
        for column, field in {
            "verb": "verb", "frame": "frame", "last_frame": "last_frame", "psn": "psn", "last_psn": "last_psn",
            "bytes": "bytes", "answer_frame": "answer_frame", "latency_ns": "latency", "dma_len": "dma_len",
            "imm_data": "imm_data", "time_ns": "time",
        }.items():  # fmt: skip
            told = [None if value is pd.NA else value for value in some[column].tolist()]
            assert told == [getattr(one, field) for one in other], column
        assert some["whole"].all()
        with_reth = some["dma_len"].notna().to_numpy()
        for column in ("va", "r_key"):
            told = some[column][with_reth].tolist()
            assert told == [getattr(one, column) for one in other if one.dma_len is not None], column
        # of a WRITE, the DMA length is what its packets carry
        written = some[some["verb"].isin(["write", "write_imm"])]
        assert written["bytes"].tolist() == written["dma_len"].tolist()
    assert sum(map(len, theirs.values())) >= least


@pytest.mark.parametrize("name", CAPTURES)
def test_messages_of_the_samples_are_those_of_tshark(samples, name):
    [path] = samples.glob(f"{name}.pcap*")
    check(path, CAPTURES[name])


@pytest.mark.parametrize("name", OF_THE_LAB)
def test_messages_of_the_lab_are_those_of_tshark(softroce, name):
    check(softroce / f"{name}.pcap.gz", OF_THE_LAB[name])


@pytest.mark.parametrize("name", MANY_AT_FIRST)
def test_messages_before_the_first_answer_are_those_of_tshark(softroce, name):
    """The client's capture: a full send queue passes before the first ACK comes back."""
    check(softroce / f"{name}.pcap.gz", MANY_AT_FIRST[name])
