"""Which packets `Blocks` hands out: each choice, over one file and several, against lists by hand."""

from __future__ import annotations

import gzip
import io
import ipaddress

import numpy as np
import pytest

from roce_dissect.capture import reader
from roce_dissect.decode.blocks import Blocks
from roce_dissect.decode.options import ReadOptions
from roce_dissect.decode.selection import Ends, Selection, Way
from roce_dissect.errors import ArgumentError
from roce_dissect.terms import IcrcStatus, Standing

BASE = 1_700_000_000_000_000_000
FRAME_MASK = (1 << 40) - 1


@pytest.fixture
def write(frames, tmp_path):
    """``write(name, [time in ms ...])``: a capture whose frames carry 1, 2, 3 ... as PSN."""

    def make(name, times, **fields):
        parts = [frames.pcap([], nano=True)]
        for number, ms in enumerate(times, start=1):
            frame = frames.v2(4, psn=number, **fields)
            parts.append(frames.pcap([frame], nano=True, first_ns=BASE + round(ms * 1e6))[24:])
        path = tmp_path / name
        path.write_bytes(b"".join(parts))
        return str(path)

    return make


def read(paths, choice, names=("psn",), **options):
    """(file, PSN, time in ms) of the chosen packets, and the Blocks."""
    blocks = Blocks(paths, list(names), options=ReadOptions(selection=choice), **options)
    rows = []
    for block in blocks:
        keys, psn, times = (block.columns[name][: block.rows] for name in ("frame_key", "psn", "time_ns"))
        assert (keys & FRAME_MASK == psn).all()  # whatever is dropped, numbers stay those of the file
        rows += list(zip((keys >> 40).tolist(), psn.tolist(), ((times - BASE) / 1e6).tolist(), strict=True))
    return rows, blocks


def everything(*files):
    """All rows in the order of a merge: by time, at equal times the earlier file first, within a file its own order."""
    rows = []
    for number, times in enumerate(files):
        reached = np.maximum.accumulate(times)
        rows += [(reached[i], number, i + 1, float(ms)) for i, ms in enumerate(times)]
    return [(number, frame, ms) for _, number, frame, ms in sorted(rows, key=lambda row: row[:3])]


RANDOM = np.random.default_rng(1)
FILES = {
    "one": [list(range(100))],
    "rotated": [list(range(50)), list(range(50, 90)), list(range(90, 140))],
    "overlapping": [list(range(0, 200, 2)), list(range(1, 200, 3)), list(range(50, 80))],
    "clock that steps back": [[*range(60), *range(30, 70)], list(range(10, 90, 2))],
    "random": [np.cumsum(RANDOM.integers(-1, 4, 200)).tolist() for _ in range(3)],
}
CHOICES = {
    "nothing left out": (Selection("psn > 0"), lambda n, psn, ms: True),
    "filter": (Selection("psn % 3 == 0"), lambda n, psn, ms: psn % 3 == 0),
    "rare": (Selection("psn == 37"), lambda n, psn, ms: psn == 37),
    "none": (Selection("psn > 100000"), lambda n, psn, ms: False),
    "file": (Selection("file == 1 and frame in (1, 2, 30)"), lambda n, psn, ms: n == 1 and psn in (1, 2, 30)),
    "time": (Selection(time="0.010..0.0605"), lambda n, psn, ms: 10 <= ms <= 60.5),
    "both": (Selection("psn % 2 == 1", time="0.020.."), lambda n, psn, ms: psn % 2 == 1 and ms >= 20),
}


@pytest.mark.parametrize("buffer", [1 << 12, 1 << 22])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", FILES)
def test_what_is_chosen(name, choice, buffer, write, monkeypatch):
    monkeypatch.setattr(reader, "_BUFFER_BYTES", buffer)
    times = FILES[name]
    order = sorted(range(len(times)), key=lambda number: times[number][0])
    paths = [write(f"{number}.pcap", times[number]) for number in order]
    start = min(min(one) for one in times)
    selection, holds = CHOICES[choice]
    rows, blocks = read(paths, selection)
    every = everything(*(times[number] for number in order))
    assert rows == [row for row in every if holds(row[0], row[1], row[2] - start)]
    chooser = blocks.chooser
    assert (chooser.chosen, chooser.left_out, chooser.limited) == (len(rows), len(every) - len(rows), False)
    assert all(one.complete for one in blocks.files)


@pytest.mark.parametrize("count", [1, 7, 49, 50, 51, 139, 140, 500])
@pytest.mark.parametrize("name", FILES)
def test_count(name, count, write, monkeypatch):
    """The first so many of the chosen ones, in the order of the merge; then reading stops."""
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 12)
    times = sorted(FILES[name], key=lambda one: one[0])
    paths = [write(f"{number}.pcap", one) for number, one in enumerate(times)]
    every = [row for row in everything(*times) if row[1] % 2]
    rows, blocks = read(paths, Selection("psn % 2 == 1", count=count))
    assert rows == every[:count]
    assert blocks.chooser.limited == (len(every) >= count)
    last = max((BASE + int(ms * 1e6) for *_, ms in rows), default=None)
    assert blocks.chooser.end_ns(BASE + 10**18) == (last if len(every) >= count else BASE + 10**18)


def test_count_leaves_the_rest_unread(write, monkeypatch):
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 12)
    paths = [write("a.pcap", range(2000)), write("b.pcap", range(5000, 5100))]
    rows, blocks = read(paths, Selection(count=10))
    first, second = blocks.files
    assert (len(rows), first.complete, second.complete) == (10, False, False)
    assert (first.error, second.error, second.frames) == (None, None, 0)
    assert first.frames < 200


def test_time_leaves_the_rest_unread(write, monkeypatch):
    """A file that begins behind the range, and the rest of one that has long passed it."""
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 12)
    paths = [write("a.pcap", range(5000)), write("b.pcap", range(5000, 5100))]
    rows, blocks = read(paths, Selection(time="..0.5"))
    assert [psn for _, psn, _ in rows] == list(range(1, 502))
    first, second = blocks.files
    assert 2500 <= first.frames < 3000  # a thousand frames more than a second behind
    assert (first.complete, second.complete, second.frames, blocks.chooser.limited) == (False, False, 0, True)
    assert blocks.chooser.end_ns(BASE + 10**18) == BASE + 500_000_000


def test_a_clock_that_jumps_ahead_ends_nothing(write, monkeypatch):
    """Single frames, or less than a second: the rest is read."""
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 12)
    times = [*range(100), *([9000] * 900), *range(100, 200), *([1500] * 3000), *range(200, 300)]
    rows, blocks = read([write("a.pcap", times)], Selection(time="..0.6"))
    assert [ms for *_, ms in rows] == list(range(300))
    assert blocks.files[0].complete
    assert not blocks.chooser.limited


def test_who_chooses_later_gets_everything(write, monkeypatch):
    """With ``choose=False`` only what lies behind the range of time may be missing."""
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 12)
    path = write("a.pcap", range(5000))
    rows, blocks = read([path], Selection("psn == 3", time="..0.5", count=1), choose=False)
    assert len(rows) == blocks.files[0].frames >= 2500
    assert "psn" in blocks.chooser.selection.columns


# -- hosts and QPs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "wanted"),
    [
        (["10.0.0.1"], {1, 2}),
        (["10.0.0.1", "10.0.9.9"], {1, 2, 5}),
        (["10.0.0.0/24"], {1, 2, 3}),
        (["::ffff:10.0.0.1"], {1, 2}),
        (["fd00::/16"], {4}),
        ("10.0.9.9", {5}),
        (["10.9.9.9"], set()),
    ],
)
def test_hosts(hosts, wanted, frames, tmp_path):
    ways = [("10.0.0.1", "10.1.0.1"), ("10.1.0.1", "10.0.0.1"), ("10.0.0.3", "10.1.0.1"), ("fd00::1", "fd01::1"),
            ("10.2.0.1", "10.0.9.9")]  # fmt: skip
    packets = []
    for number, (source, destination) in enumerate(ways, start=1):
        a, b = (ipaddress.ip_address(one).packed for one in (source, destination))
        make = frames.v2 if len(a) == 4 else frames.v2_ipv6
        packets.append(make(4, psn=number, ip={"src": a, "dst": b}))
    path = tmp_path / "a.pcap"
    path.write_bytes(frames.pcap(packets, first_ns=BASE))
    rows, _ = read([str(path)], Selection(hosts=hosts))
    assert {psn for _, psn, _ in rows} == wanted


def test_qps(frames, tmp_path):
    """What goes to a QP, and datagrams from it; with the ends known, also what else comes from it."""
    to_peer = {"ip": {"src": frames.IP_B, "dst": frames.IP_A}}
    packets = [
        frames.v2(4, psn=1, dest_qp=0x11),
        frames.v2(0x11, psn=2, dest_qp=0x22, values={"syndrome": 0, "msn": 0}, **to_peer),  # from 0x11
        frames.v2(4, psn=3, dest_qp=0x22),  # the other way: to a 0x22 of the other host
        frames.v2(0x64, psn=4, dest_qp=0x33, values={"q_key": 1, "src_qp": 0x11}),
        frames.v2(0x64, psn=5, dest_qp=0x33, values={"q_key": 1, "src_qp": 0x12}),
        frames.v2(4, psn=6, dest_qp=0x22, **to_peer),  # after the connection's last packet
    ]
    path = tmp_path / "a.pcap"
    path.write_bytes(frames.pcap(packets, nano=True, first_ns=BASE))
    rows, _ = read([str(path)], Selection(qps=[0x11]))
    assert [psn for _, psn, _ in rows] == [1, 4]
    rows, _ = read([str(path)], Selection(qps=[0x11, 0x12]))
    assert [psn for _, psn, _ in rows] == [1, 4, 5]
    times = {psn: BASE + round(ms * 1e6) for _, psn, ms in read([str(path)], None)[0]}
    ends = Ends((Way("192.168.100.1", "192.168.100.2", -1, 0x22, times[2], times[5]),), (3,))
    rows, _ = read([str(path)], Selection(qps=[0x11], ends=ends))
    assert [psn for _, psn, _ in rows] == [1, 2, 3, 4]  # 3 as the key of a frame
    elsewhere = Ends((Way("192.168.100.1", "192.168.100.2", 5, 0x22, 0, 1 << 62),))
    rows, _ = read([str(path)], Selection(qps=[0x11], ends=elsewhere))
    assert [psn for _, psn, _ in rows] == [1, 4]


# -- ICRCs -------------------------------------------------------------------------------------------------------------


def test_judgements_are_of_what_was_chosen(frames, tmp_path):
    """Counted where it was chosen, whatever left it out."""
    packets = [frames.v2(4, psn=number, payload=b"abcd" * 4) for number in range(1, 9)]
    path = tmp_path / "a.pcap"
    path.write_bytes(frames.pcap(packets, first_ns=BASE))
    for choice in (Selection("psn <= 3"), Selection(count=3), Selection("psn > 100"), None):
        rows, blocks = read([str(path)], choice, ("psn", "icrc_status", "standing"))
        assert int(blocks.judgements.icrcs.sum()) == len(rows)
    every, _ = read([str(path)], None)
    assert len(every) == 8


def test_damaged_packets_can_be_chosen(samples):
    """Of a real capture, one of whose packets is changed behind its ICRC."""
    raw = bytearray(gzip.decompress((samples / "rc_psn_wrap.client.pcap.gz").read_bytes()))
    position, changed = 24, 0
    while position < len(raw):
        size = int.from_bytes(raw[position + 8 : position + 12], "little")
        if size > 200:
            changed += 1
            if changed == 5:
                raw[position + 16 + 120] ^= 1
        position += 16 + size
    blocks = Blocks([io.BytesIO(bytes(raw))], ["psn", "icrc_status", "standing"],
                    options=ReadOptions(selection=Selection('standing == "damaged"')))  # fmt: skip
    found = [(block.rows, block.columns["icrc_status"][0], block.columns["standing"][0]) for block in blocks]
    assert found == [(1, IcrcStatus.BAD, Standing.DAMAGED)]
    assert (blocks.judgements.damaged, blocks.judgements.icrcs.tolist()) == (1, [0, 0, 1, 0, 0])
    blocks = Blocks([io.BytesIO(bytes(raw))], ["psn", "icrc_status", "standing"],
                    options=ReadOptions(selection=Selection('icrc_status == "good"')))  # fmt: skip
    rows = sum(block.rows for block in blocks)
    assert (blocks.judgements.damaged, blocks.judgements.icrcs.tolist()) == (0, [0, rows, 0, 0, 0])


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"filter": "psn"}, "filter: 'psn' alone"),
        ({"filter": 5}, "filter: 5 is not text"),
        ({"hosts": ["10.0.0"]}, "host: '10.0.0' is neither"),
        ({"hosts": [5]}, "host: 5 is not text"),
        ({"hosts": 5}, "host: 5 is not a sequence"),
        ({"qps": [1 << 24]}, "qp: 16777216 is not from 0 to 0xffffff"),
        ({"qps": [-1]}, "qp: -1 is not"),
        ({"qps": ["5"]}, "qp: '5' is not an integer"),
        ({"qps": [True]}, "qp: True is not an integer"),
        ({"count": 0}, "count: 0 is not at least 1"),
        ({"count": 1.5}, "count: 1.5 is not an integer"),
        ({"time": "5"}, "time: '5'"),
        ({"time": 5}, "time: 5 is not text"),
    ],
)
def test_wrong_ones(given, told):
    with pytest.raises(ArgumentError) as caught:
        Selection(**given)
    assert str(caught.value).startswith(told)


def test_columns_of_the_tracker():
    Selection("psn == 1").demand_decoded()
    with pytest.raises(ArgumentError, match="verdict is known only when the flows have been followed"):
        Selection('psn == 1 or verdict == "late"').demand_decoded()


def test_whether_anything_is_chosen_and_how_it_is_said():
    assert not Selection()
    for given in ({"filter": "psn > 0"}, {"hosts": "10.0.0.1"}, {"qps": [0]}, {"time": "1.."}, {"count": 1}):
        assert Selection(**given)
    one = Selection('src ==\n"10.0.0.1"', ["10.0.0.0/8"], [17], "1..2", 5)
    assert str(one) == """--filter 'src == "10.0.0.1"' --time 1..2 --host 10.0.0.0/8 --qp 0x11"""
