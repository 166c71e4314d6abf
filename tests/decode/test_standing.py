"""Which packets take part in the flow tables: damaged ones do not, doubtful ones only where they fit."""

from __future__ import annotations

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect.columns import JUDGED
from roce_dissect.decode.decoder import Decoder
from roce_dissect.decode.standing import STANDING_COLUMNS, Judge, Judgements
from roce_dissect.layers import AETH, BTH
from roce_dissect.terms import IcrcStatus, Standing

scapy_all = pytest.importorskip("scapy.all")
Ether, IP, Raw, UDP = (getattr(scapy_all, name) for name in ("Ether", "IP", "Raw", "UDP"))


def frame(psn=0, src="10.0.0.1", icrc=None, dst="10.0.0.2", payload=b"data", opcode=4, **fields):
    """A SEND ONLY of RC; the layers compute the ICRC unless one is given."""
    bth = BTH(opcode=opcode, psn=psn, **({"dest_qp": 17} | fields))
    if icrc is not None:
        bth.icrc = icrc
    packet = Ether() / IP(src=src, dst=dst) / UDP(sport=50000, dport=4791) / bth
    if opcode == 0x11:
        packet /= AETH(syndrome=fields.get("syndrome", 0x1F))
    return bytes(packet / Raw(payload) if payload else packet)


def judged(records, *batches, verify=True):
    """(icrc_status, standing) of each packet, over several batches, and the counts."""
    decoder = Decoder(STANDING_COLUMNS)
    judge, judgements = Judge(verify, len(decoder.hosts.words), 64), Judgements()
    found = []
    for batch in batches:
        given = records(batch)
        rows = decoder.decode(given)
        judge.judge(decoder.columns, rows, given.data)
        judgements.count(judge.columns, rows)
        found += [
            (IcrcStatus(icrc).name.lower(), Standing(standing).name.lower())
            for icrc, standing in zip(*(judge.columns[name][:rows] for name in JUDGED), strict=True)
        ]
    return found, judgements


GOOD, DAMAGED, UNPROVEN = ("good", "full"), ("bad", "damaged"), ("bad", "unproven")
MADE_UP = ("placeholder", "full")


@pytest.mark.parametrize("cut", range(6))
def test_wrong_icrcs_by_what_their_sender_showed_before(records, cut):
    """Where the batches are cut changes nothing."""
    given = [frame(0, icrc=1), frame(1), frame(2, icrc=2), frame(2, "10.0.0.3", icrc=3), frame(3, icrc=1), frame(4)]
    found, counts = judged(records, given[:cut], given[cut:])
    assert found == [UNPROVEN, GOOD, DAMAGED, UNPROVEN, DAMAGED, GOOD]
    assert (counts.damaged, counts.icrcs.tolist()) == (2, [0, 2, 4, 0, 0])


@pytest.mark.parametrize("cut", range(5))
def test_the_same_number_instead_of_an_icrc(records, cut):
    """The first could be anything; from the second on it is made up. Another host's own does not matter."""
    given = [frame(0, icrc=7), frame(0, "10.0.0.3", icrc=8), frame(1, icrc=7), frame(2, "10.0.0.3", icrc=9)]
    given.append(frame(3, icrc=7))
    found, counts = judged(records, given[:cut], given[cut:])
    assert found == [UNPROVEN, UNPROVEN, MADE_UP, UNPROVEN, MADE_UP]
    assert counts.icrcs[IcrcStatus.PLACEHOLDER] == 2


def test_zero_is_no_icrc(records):
    found, _ = judged(records, [frame(0, icrc=0), frame(1), frame(2, icrc=0)])
    assert found == [MADE_UP, GOOD, MADE_UP]


def test_nothing_is_verified_where_nobody_wants_it(records):
    found, counts = judged(records, [frame(0, icrc=1), frame(1)], verify=False)
    assert found == [("none", "full")] * 2
    assert counts.icrcs.tolist() == [2, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "fields",
    [
        {"reserved6": 1}, {"reserved7": 1}, {"p_key": 0x8000}, {"p_key": 0}, {"dest_qp": 0}, {"dest_qp": 1},
        {"dest_qp": 0xFFFFFF}, {"opcode": 0, "payload": b"x" * 100}, {"opcode": 0, "payload": b"x" * 32},
        {"opcode": 1, "payload": b"x" * 255},
    ],
    ids=str,
)  # fmt: skip
def test_what_speaks_against_roce(records, fields):
    """Of a packet whose ICRC nobody can verify; a right ICRC outweighs all of it."""
    raw = frame(**fields)
    assert judged(records, [raw], verify=False)[0] == [("none", "doubtful")]
    assert judged(records, [raw])[0] == [GOOD]
    assert judged(records, [raw[:60]])[0] == [("sliced", "doubtful")]


def test_what_does_not(records):
    plain = [
        frame(opcode=0, payload=b"x" * 64), frame(opcode=1, payload=b"x" * 4096), frame(opcode=2, payload=b"x" * 3),
        frame(p_key=0x7FFF), frame(dest_qp=2), frame(opcode=0x11, payload=b"more", dest_qp=5),
    ]  # fmt: skip
    assert judged(records, plain, verify=False)[0] == [("none", "full")] * len(plain)


def test_damaged_packets_reach_neither_tracker_nor_connection_manager(softroce):
    """Its kernel dropped 14 packets; each of them was sent again."""
    result = rd.analyze(softroce / "imp_corrupt1.server.pcap.gz")
    assert result.capture["damaged_packets"] == 14
    packets = result.packets()
    damaged = packets[packets["standing"] == "damaged"]
    assert len(damaged) == 14
    assert set(damaged["verdict"]) == {"none"}
    assert set(damaged["stream"]) == {-1}
    unverified = rd.analyze(softroce / "imp_corrupt1.server.pcap.gz", icrc=False)
    assert unverified.capture["damaged_packets"] == 0
    assert unverified.capture["icrc"]["none"] == 2251


@pytest.mark.parametrize("snap", [None, 64, 80, 128])
@pytest.mark.parametrize("side", ["client", "server"])
def test_what_is_no_roce_makes_no_connections(softroce, frames, tmp_path, side, snap):
    import gzip

    raw = gzip.decompress((softroce / f"neg_udp4791_not_roce.{side}.pcap.gz").read_bytes())
    path = tmp_path / "capture.pcap"
    path.write_bytes(raw if snap is None else frames.sliced(raw, snap))
    result = rd.analyze(path)
    assert result.capture["roce_packets"] == 48
    assert result.capture["foreign_packets"] == 48
    assert len(result.connections) == len(result.streams) == len(result.events) == 0


@pytest.mark.parametrize("icrc", [True, False])
def test_random_bytes_make_none_either(tmp_path, frames, icrc):
    """Of 100,000, whole and unverified."""
    rng = np.random.default_rng(4791)
    made = []
    for number in range(100_000):
        size = int(rng.integers(16, 90))
        made.append(frames.ethernet(frames.ipv4(frames.udp(rng.bytes(size)), ip_id=number & 0xFFFF), 0x0800))
    path = tmp_path / "random.pcap"
    path.write_bytes(frames.pcap(made))
    result = rd.analyze(path, icrc=icrc)
    assert result.capture["roce_packets"] == 100_000
    assert len(result.connections) <= (0 if icrc else 3)
