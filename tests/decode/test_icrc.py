"""The ICRC of whole packets against the Scapy layers, the lab's own check of its captures, and flipped bits."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect.decode.decoder import Decoder
from roce_dissect.decode.icrc import ICRC_COLUMNS, bth_offsets, verify_icrcs
from roce_dissect.layers import BTH, GRH, LRH, RETH
from roce_dissect.terms import IcrcStatus

scapy_all = pytest.importorskip("scapy.all")
Dot1Q, Ether, IP, IPv6, Raw, UDP = (getattr(scapy_all, n) for n in ("Dot1Q", "Ether", "IP", "IPv6", "Raw", "UDP"))

PACKET = BTH(opcode=6, psn=5, dest_qp=17, becn=1) / RETH(va=1, r_key=2, dma_len=3) / Raw(b"some payload!")
#: Frames by what they show: (link type, frame). The layers compute the ICRC.
FRAMES = {
    "v2 over IPv4": (1, Ether() / IP(tos=3, ttl=9) / UDP(sport=0, dport=4791) / PACKET),
    "v2 over IPv4, checksums": (1, Ether() / IP(chksum=0xABCD) / UDP(sport=1, dport=4791, chksum=0x1234) / PACKET),
    "v2 over IPv6": (1, Ether() / IPv6(tc=0xFF, fl=0xFFFFF, hlim=1) / UDP(sport=5, dport=4791) / PACKET),
    "v2, a tag": (1, Ether() / Dot1Q(vlan=5) / IP() / UDP(sport=5, dport=4791) / PACKET),
    "v1": (1, Ether() / GRH(sgid="fe80::1", dgid="fe80::2", hop_limit=3, dscp=9, ecn=1) / PACKET),
    "v2 without Ethernet": (101, IP() / UDP(sport=5, dport=4791) / PACKET),
    "native": (247, LRH(vl=3, sl=2) / PACKET),
    "native with GRH": (247, LRH(vl=3, sl=2) / GRH(sgid="fe80::1", dgid="fe80::2") / PACKET),
}


def statuses(records, frames, link_type=1, **options):
    """`IcrcStatus` of each frame, and which of them are odd."""
    decoder = Decoder(ICRC_COLUMNS)
    batch = records(frames, link_type=link_type, **options)
    rows = decoder.decode(batch)
    assert rows == len(frames)
    out = np.full(rows, 99, np.uint8)
    whole, odd = verify_icrcs(decoder.columns, rows, batch.data, out)
    assert np.isin(out[whole], (IcrcStatus.GOOD, IcrcStatus.BAD)).all()
    assert len(odd) == len(whole)
    return [IcrcStatus(value).name.lower() for value in out.tolist()], whole[odd].tolist()


@pytest.mark.parametrize("name", FRAMES)
def test_what_the_layers_built_is_good(records, name):
    link_type, frame = FRAMES[name]
    assert statuses(records, [bytes(frame)] * 3, link_type) == (["good"] * 3, [])


@pytest.mark.parametrize("name", FRAMES)
def test_each_bit_counts_but_for_those_that_the_way_may_change(records, name):
    """One flipped bit each: bad, unless IBTA says that it may change. Lengths are left alone: they move the ICRC."""
    link_type, frame = FRAMES[name]
    raw = bytes(frame)
    bth = raw.index(bytes(PACKET[BTH])[:4])
    free, skipped = {8 * (bth + 4) + bit for bit in range(8)}, set()
    if IP in frame:
        ip = bth - 28
        free |= {8 * (ip + at) + bit for at in (1, 8, 10, 11, 26, 27) for bit in range(8)}
        skipped |= {8 * (ip + at) + bit for at in (0, 2, 3, 6, 7, 9, 22, 23, 24, 25) for bit in range(8)}
    elif IPv6 in frame or GRH in frame:
        ip = bth - (48 if IPv6 in frame else 40)
        free |= {8 * (ip + at) + bit for at in (1, 2, 3, 7) for bit in range(8)} | {8 * ip + bit for bit in range(4, 8)}
        skipped |= {8 * ip + bit for bit in range(4)}  # the version
        skipped |= {8 * (ip + at) + bit for at in (4, 5, 6) for bit in range(8)}
        if IPv6 in frame:
            free |= {8 * (bth - 2 + at) + bit for at in (0, 1) for bit in range(8)}
            skipped |= {8 * (bth - 6 + at) + bit for at in range(4) for bit in range(8)}
    if LRH in frame:
        lrh = bth - (48 if GRH in frame else 8)
        free |= {8 * lrh + bit for bit in range(4)}
        skipped |= {8 * lrh + bit for bit in range(4, 8)} | {8 * (lrh + 1) + bit for bit in range(4, 8)}
        skipped |= {8 * (lrh + at) + bit for at in (4, 5) for bit in range(8)}
        if GRH in frame:
            free |= {8 * lrh + bit for bit in range(64)} - skipped
    first = 8 * (
        bth - 28 if IP in frame else bth - 48 if IPv6 in frame or (GRH in frame and LRH in frame) else bth - 40
    )
    if LRH in frame and GRH not in frame:
        first = 8 * (bth - 8)
    skipped |= {8 * bth + bit for bit in range(8)}  # the opcode: other headers
    skipped |= {8 * (bth + 1) + bit for bit in range(2, 8)}  # PadCnt, TVer
    last = 8 * (bth + 12 + 16 + 13 + 3 + 4)
    bits = [bit for bit in range(first, last) if bit not in skipped]
    flipped = [raw[: b // 8] + bytes([raw[b // 8] ^ 0x80 >> b % 8]) + raw[b // 8 + 1 :] for b in bits]
    found, odd = statuses(records, flipped, link_type)
    assert dict(zip(bits, found, strict=True)) == {bit: "good" if bit in free else "bad" for bit in bits}
    assert odd == []


@pytest.mark.parametrize("name", FRAMES)
def test_cut_anywhere_it_is_sliced(records, name):
    link_type, frame = FRAMES[name]
    raw = bytes(frame)
    bth = raw.index(bytes(PACKET[BTH])[:4])
    end = bth + 12 + 16 + 13 + 3 + 4
    cut = [raw[:size] for size in range(bth + 12, end)]
    assert statuses(records, cut, link_type)[0] == ["sliced"] * len(cut)
    assert statuses(records, [raw[:end], raw[:end] + bytes(23)], link_type)[0] == ["good"] * 2


def test_options_and_extension_headers_are_good_or_not_told(records):
    """No rule says which of their bits count: right by the plain rule is right, wrong by it says nothing."""
    frame = bytes(Ether() / IP(options=[scapy_all.IPOption_NOP()] * 4) / UDP(sport=5, dport=4791) / PACKET)
    wrong = frame[:-1] + bytes([frame[-1] ^ 1])
    found = [statuses(records, [one])[0][0] for one in (frame, wrong)]
    assert found == ["good", "none"]


def test_bytes_are_put_back(records, samples):
    """The masks are laid into the reader's buffer: afterwards it is what it was."""
    raw = bytes(FRAMES["v2 over IPv4"][1])
    decoder = Decoder(ICRC_COLUMNS)
    batch = records([raw] * 3)
    batch.data = batch.data.copy()
    rows = decoder.decode(batch)
    before = batch.data.copy()
    verify_icrcs(decoder.columns, rows, batch.data, np.zeros(rows, np.uint8))
    assert (batch.data == before).all()


def test_where_the_bth_begins(records, frames):
    rng = random.Random(1)
    made = [frames.v2(opcode, b"abcd", frames.values_of(opcode, rng)) for opcode in sorted(frames.CHAINS)]
    decoder = Decoder(ICRC_COLUMNS)
    rows = decoder.decode(records(made))
    assert bth_offsets(decoder.columns, slice(0, rows)).tolist() == [42] * len(made)


def test_lengths_that_contradict_each_other(records, frames):
    """Whatever they say, no byte outside of the packet's own is read."""
    rng = random.Random(2)
    made = []
    for build in (frames.v2, frames.v2_ipv6, frames.v1):
        plain = build(10, b"payload!", frames.values_of(10, rng))
        for _ in range(300):
            raw = bytearray(plain)
            for _ in range(rng.randrange(1, 5)):
                raw[rng.randrange(14, len(raw))] = rng.getrandbits(8)
            made.append(bytes(raw))
    decoder = Decoder(ICRC_COLUMNS)
    for one in made:  # each alone, so that a read past its end is one past the buffer
        rows = decoder.decode(records([one]))
        if rows:
            verify_icrcs(decoder.columns, rows, records([one]).data, np.zeros(rows, np.uint8))


def test_the_labs_own_check(softroce):
    """``truth.json`` lists the frames with a bad ICRC of each file, by another program.

    It counts packets with an opcode that it knows; ours may find more among what is no RoCE.
    """
    truth = json.loads((softroce / "truth.json").read_text())
    compared = 0
    for name, run in truth.items():
        for file, facts in run.get("files", {}).items():
            path = softroce / file
            if not Path(path).exists() or facts.get("icrc_bad_frames") is None:  # it reads no pcapng
                continue
            packets = rd.read_packets(path, ["frame", "icrc_status"])
            bad = packets.loc[packets["icrc_status"] == "bad", "frame"].tolist()
            assert bad == facts["icrc_bad_frames"], (name, file)
            compared += 1
    assert compared > 80


def test_the_flush_of_rxe_612(softroce):
    capture = rd.analyze(softroce / "k612_flush_atomic_write.client.pcap.gz").capture
    assert capture["icrc"] == {"none": 0, "good": 30, "bad": 4, "sliced": 0, "placeholder": 0}
    assert (capture["odd_flushes"], capture["damaged_packets"]) == (4, 0)


def test_a_first_fragment_has_none(records, frames):
    """The last fragment has it."""
    raw = frames.ethernet(frames.ipv4(frames.udp(frames.packet(4, b"data")), fragment=0x2000), 0x0800)
    assert statuses(records, [raw])[0] == ["none"]
