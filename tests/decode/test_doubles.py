"""Doubled captures: found where frames are there K times, never elsewhere; the flow tables are those of one of them."""

from __future__ import annotations

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect.capture import reader
from roce_dissect.decode import sample
from roce_dissect.decode.blocks import Block
from roce_dissect.decode.doubles import DOUBLES_COLUMNS, Doubles, recognise
from roce_dissect.spec.headers import HAS_BTH, HAS_IPV4
from roce_dissect.terms import Standing

US, MS = 1_000, 1_000_000
LOSSY, LONG, IPV6 = "imp_loss1_write.client", "imp_loss5_readreq.server", "rc_mix_ipv6_mtu1024.client"
SAMPLES = [LOSSY, "rc_mix_ipv4_mtu1024.server", IPV6, "cm_rping_ipv4.client", "uc_mix_ipv4.client"]


@pytest.fixture
def both(samples, tmp_path, mirrors):
    """``both(name, change, snap=None)``: the analyses of a capture, and of what `change` makes of its records."""

    def make(name, change, snap=None):
        records = mirrors.read_pcap(samples / f"{name}.pcap.gz")
        cut = (lambda given: mirrors.sliced(given, snap)) if snap else list
        one = mirrors.analyzed(mirrors.write_pcap(tmp_path / "one.pcap", cut(records)))
        other = mirrors.analyzed(mirrors.write_pcap(tmp_path / "other.pcap", cut(change(records))))
        return one, other

    return make


def told(result):
    capture = result.capture
    return capture["copies_of_each"], capture["copies_differ_in"], capture["doubled_packets"]


# -- whole captures: the single one is the oracle ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", [0, 0.05])
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(
    ("change", "ways"),
    [
        ("tagged", ["vlan_tags"]), ("routed", ["mac_addresses", "ttl"]), ("bridged", ["mac_addresses"]),
        ("mirrored", ["tunnel"]),
    ],
)  # fmt: skip
def test_two_points_that_tell(both, mirrors, name, change, ways, loss):
    """Frames that the second point lacks shift nothing."""

    def twice(records):
        second = mirrors.later(mirrors.changed(records, getattr(mirrors, change)), 5 * US, 50 * US)
        return mirrors.merged(records, mirrors.lossy(second, loss))

    one, other = both(name, twice)
    assert mirrors.differences(one, other) == {}
    further = other.capture["roce_packets"] - one.capture["roce_packets"]
    assert told(other) == (2, ways, further)
    assert one.capture["roce_packets"] * (1 - loss) * 0.8 < further <= one.capture["roce_packets"]
    assert told(one) == (1, [], 0)


@pytest.mark.parametrize(("name", "delay"), [*((name, 200 * US) for name in SAMPLES), (LOSSY, 8 * MS)])
def test_two_points_that_do_not_tell(both, mirrors, name, delay):
    one, other = both(name, lambda records: mirrors.merged(records, mirrors.later(records, delay, delay // 4)))
    assert mirrors.differences(one, other) == {}
    assert told(other) == (2, [], one.capture["roce_packets"])


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("snap", [None, 80])
def test_four_times(both, mirrors, name, snap):
    """The bridges and ports of a host; sliced, so that no ICRC tells one packet from another."""
    one, other = both(
        name, lambda records: mirrors.merged(*(mirrors.later(records, n * 2 * US) for n in range(4))), snap
    )
    assert mirrors.differences(one, other) == {}
    assert told(other) == (4, [], 3 * one.capture["roce_packets"])


def test_three_times_by_two_ways(both, mirrors):
    """Where the ways do not tell all sightings apart, their number counts."""

    def thrice(records):
        return mirrors.merged(
            records, mirrors.later(records, US), mirrors.later(mirrors.changed(records, mirrors.tagged), 3 * US)
        )

    one, other = both(LOSSY, thrice)
    assert mirrors.differences(one, other) == {}
    assert told(other) == (3, ["vlan_tags"], 2 * one.capture["roce_packets"])


@pytest.mark.parametrize("change", ["tagged", "mirrored"])
@pytest.mark.parametrize("snap", [108, 128])
def test_sliced_with_headers_of_unequal_length(both, mirrors, change, snap):
    """What is left of the packet differs: an ICRC here, none there; but for the headers that both show."""

    def twice(records):
        return mirrors.merged(records, mirrors.later(mirrors.changed(records, getattr(mirrors, change)), 5 * US))

    one, other = both("cm_rping_ipv4.client", twice, snap)
    assert mirrors.differences(one, other) == {}
    assert other.capture["doubled_packets"] == one.capture["roce_packets"]


def test_two_files_of_two_hosts(samples, tmp_path, mirrors):
    """Given as two files, the file tells; here with the second host's losses."""
    records = mirrors.read_pcap(samples / "rc_mix_ipv6_mtu1024.client.pcap.gz")
    near = mirrors.write_pcap(tmp_path / "a.pcap", records)
    far = mirrors.write_pcap(tmp_path / "b.pcap", mirrors.lossy(mirrors.later(records, 20 * MS, MS), 0.05))
    one, other = mirrors.analyzed(near), mirrors.analyzed([near, far])
    assert mirrors.differences(one, other) == {}
    assert told(other)[:2] == (2, ["file"])


def test_the_first_sighting_is_the_senders(samples, tmp_path, mirrors):
    """Frames lost between two points: the sender's side shows them, and the merged capture as well."""
    records = mirrors.read_pcap(samples / "imp_loss1_write.client.pcap.gz")
    client = records[0][2][6:12]
    outward = [record[2][6:12] == client for record in records]
    assert 0 < sum(outward) < len(records)
    sent = [record for record, out in zip(records, outward, strict=True) if out]
    received = [record for record, out in zip(records, outward, strict=True) if not out]
    near = sent + mirrors.lossy(mirrors.later(received, 300 * US), 0.03)
    far = received + mirrors.lossy(mirrors.later(sent, 300 * US), 0.03)
    one = mirrors.analyzed(mirrors.write_pcap(tmp_path / "one.pcap", records))
    other = mirrors.analyzed(mirrors.write_pcap(tmp_path / "other.pcap", mirrors.merged(near, far)))
    assert told(other)[0] == 2
    assert mirrors.differences(one, other) == {}


@pytest.mark.parametrize("buffer", [1 << 12, 1 << 22])
def test_all_readings_agree(samples, tmp_path, mirrors, monkeypatch, buffer):
    """`packets`, `messages` and `timeline` read the file once more, in whatever blocks."""
    records = mirrors.read_pcap(samples / "cm_rping_ipv4.client.pcap.gz")
    twice = mirrors.merged(records, mirrors.later(mirrors.changed(records, mirrors.tagged), 5 * US))
    path = mirrors.write_pcap(tmp_path / "twice.pcap", twice)
    kept = rd.analyze(path, messages=True)
    monkeypatch.setattr(reader, "_BUFFER_BYTES", buffer)
    result = rd.analyze(path)
    packets = result.packets()
    doubled = packets["standing"] == "doubled"
    assert int(doubled.sum()) * 2 == len(packets)
    assert (packets.loc[doubled, "stream"] == -1).all()
    assert (packets.loc[doubled, "vlan_id"] == 100).all()
    assert packets.loc[~doubled, "vlan_id"].isna().all()
    assert result.messages.equals(kept.messages)
    single = rd.analyze(mirrors.write_pcap(tmp_path / "once.pcap", records))
    for name in ("packets", "bytes"):
        assert int(result.timeline()[name].sum()) == int(single.timeline()[name].sum())


# -- what is not doubled ---------------------------------------------------------------------------------------------


def test_no_sample_is_doubled(samples):
    """Losses, resends, 5 % of frames doubled by the network, CNPs, datagrams, retries without end."""
    for path in sorted(samples.glob("*.pcap*.gz")):
        assert told(rd.analyze(path)) == (1, [], 0), path.name


def test_only_two_of_all_captures_are_doubled(softroce):
    """fmt_any_sll1: ``-i any`` on a bridge and its ports; fmtd_merged_both_hosts_clean: mergecap of two hosts."""
    found = {}
    for path in sorted(softroce.glob("*.pcap*")):
        capture = rd.analyze(path, errors="keep").capture
        if capture["copies_of_each"] > 1:
            found[path.name] = capture["copies_of_each"], capture["doubled_packets"], capture["roce_packets"]
    assert found == {"fmt_any_sll1.pcap.gz": (3, 116, 174), "fmtd_merged_both_hosts_clean.pcap.gz": (2, 58, 116)}


def test_any_is_the_capture_of_one_interface(softroce, mirrors):
    """All that depends on no clock and on no link header."""
    one, other = (mirrors.analyzed(softroce / name) for name in ("fmt_nsec.pcap.gz", "fmt_any_sll1.pcap.gz"))
    differing = {column for columns in mirrors.differences(one, other).values() for column in columns}
    assert {name for name in differing if not name.endswith(("_ns", "bytes"))} == set()


def test_half_of_the_frames_doubled_by_the_network(both, mirrors):
    """Not systematic: the doubles reach the receiver, and stay."""
    one, other = both(
        LOSSY, lambda records: mirrors.merged(records, mirrors.lossy(mirrors.later(records, 9 * US), 0.5))
    )
    assert told(other) == (1, [], 0)
    assert other.streams["packets"].sum() > one.streams["packets"].sum()


# -- the sample, by hand -----------------------------------------------------------------------------------------------


def packets(psns, times, ids=None, src=None, **more):
    """Columns of packets of host 1 to host 2, or back where `src` says 2."""
    count = len(psns)
    columns = {name: np.zeros(count, np.int64) for name in DOUBLES_COLUMNS}
    columns["psn"], columns["time_ns"] = np.array(psns), np.array(times, np.int64)
    columns["present"] = np.full(count, HAS_BTH | (HAS_IPV4 if ids is not None else 0), np.uint32)
    columns["ip_id"] = np.zeros(count, np.int64) if ids is None else np.array(ids)
    columns["src"] = np.array([1] * count if src is None else src)
    columns["dst"] = 3 - columns["src"]
    columns["standing"] = np.zeros(count, np.uint8)
    return columns | {name: np.array(values) for name, values in more.items()}


def copies(columns, whole=True):
    found = recognise(columns, len(columns["psn"]), whole)
    return 1 if found is None else found.copies


def pairs(count, spacing=MS, delay=US):
    """PSNs twice each, with their times."""
    return [psn for psn in range(count) for _ in range(2)], [
        psn * spacing + extra for psn in range(count) for extra in (0, delay)
    ]  # fmt: skip


def test_too_few_packets_may_be_chance():
    for count, expected in ((9, 1), (10, 2)):
        psns, times = pairs(count)
        assert copies(packets(psns, times, ids=psns)) == expected


@pytest.mark.parametrize(("single", "expected"), [(49, 2), (52, 1)])
def test_nearly_all_must_be_doubled(single, expected):
    """100 packets twice; of 250 frames, 50 alone are a fifth."""
    psns, times = pairs(100)
    psns += range(1000, 1000 + single)
    times += range(times[-1] + MS, times[-1] + MS * (single + 1), MS)
    assert copies(packets(psns, times, ids=psns)) == expected


def test_resends_of_all_frames_that_are_equal_bit_for_bit():
    """Over IPv6 or without identification, all sent twice: only what the answers say, too, and at once, is doubling."""
    psns, times = pairs(20, 10 * MS, 5 * MS)
    answers = [1, 2] * 20
    assert copies(packets(psns, times)) == 1  # one direction only
    assert copies(packets(psns, times, src=np.repeat(answers[:20], 2))) == 1  # after a timeout
    psns, times = pairs(20, 10 * MS, 500 * US)
    assert copies(packets(psns, times, src=np.repeat(answers[:20], 2))) == 2
    assert copies(packets(psns, times)) == 1
    assert copies(packets(psns, times, ids=[7] * 40)) == 1  # a sender that always writes the same identification
    assert copies(packets(psns, times, ids=psns)) == 2
    assert copies(packets(psns, times, ttl=[64, 63] * 20)) == 2


def test_a_request_that_is_refused_again_and_again():
    """RNR NAKs, 20 messages: each is sent four times and refused three times, then acknowledged."""
    psns, times, src, syndromes = [], [], [], []
    for psn in range(20):
        for turn in range(4):
            psns += [psn, psn]
            src += [1, 2]
            times += [psn * MS + turn * 20_000, psn * MS + turn * 20_000 + 5_000]
            syndromes += [0, 31 if turn == 3 else 0x21]
    assert copies(packets(psns, times, src=src, syndrome=syndromes)) == 1


def test_the_end_of_the_sample_lacks_further_sightings():
    """Sightings 40 ms apart, of packets 1 ms apart: the last forty packets have none yet, unless that is all."""
    psns = [*range(100), *range(60)]
    times = np.array([*(psn * MS for psn in range(100)), *(psn * MS + 40 * MS for psn in range(60))])
    order = np.argsort(times, kind="stable")
    columns = packets(np.array(psns)[order], times[order], ids=np.array(psns)[order])
    assert copies(columns, whole=False) == 2
    assert copies(columns, whole=True) == 1


def test_frames_without_bth_are_no_sightings():
    psns, times = pairs(30)
    columns = packets(psns, times, ids=psns)
    columns["present"][:] = HAS_IPV4
    assert copies(columns) == 1


def test_any_time_will_do():
    least, most = -(1 << 63), (1 << 63) - 1
    for times in ([least] * 40, [most] * 40, [least, most] * 20, [most, least] * 20):
        assert copies(packets(pairs(20)[0], times, ids=pairs(20)[0])) in (1, 2)


# -- the stage ---------------------------------------------------------------------------------------------------------


def marked(columns, sizes, live=False):
    doubles, start, found = Doubles(), 0, []

    def blocks():
        nonlocal start
        for size in sizes:
            part = {name: values[start : start + size].copy() for name, values in columns.items()}
            start += size
            yield Block(part, min(size, len(part["psn"])), [])

    for block in doubles.stream(blocks(), live):
        found += block.columns["standing"][: block.rows].tolist()
    return found, doubles


@pytest.mark.parametrize("size", [1, 7, 500])
def test_damaged_packets_stay_damaged(size):
    psns, times = pairs(30)
    columns = packets(psns, times, ids=psns)
    columns["standing"][[3, 6, 7]] = Standing.DAMAGED
    columns["standing"][[8, 9]] = Standing.DOUBTFUL
    found, doubles = marked(columns, [size] * -(-60 // size))
    expected = [Standing.FULL, Standing.DOUBLED] * 30
    expected[3] = expected[6] = expected[7] = Standing.DAMAGED
    expected[8] = Standing.DOUBTFUL
    assert found == expected
    assert doubles.packets == 28


def test_live_too_few_packets_decide_nothing():
    """What comes at first is handed out as it is; once there is enough to tell, the rest is not."""
    psns, times = pairs(40)
    found, doubles = marked(packets(psns, times, ids=psns), [6, 0, 30, 0, 44], live=True)
    assert found == [Standing.FULL] * 6 + [Standing.FULL, Standing.DOUBLED] * 37
    assert doubles.decided
    assert doubles.packets == 37


def test_doubling_that_begins_behind_the_sample_is_left(monkeypatch):
    """It is told by the twins of the tracker, as ever."""
    monkeypatch.setattr(sample, "SAMPLE", 250)
    psns, times = pairs(40)
    columns = packets([*range(1000, 1260), *psns], [*range(-260, 0), *times], ids=[*range(1000, 1260), *psns])
    found, doubles = marked(columns, [340])
    assert set(found) == {Standing.FULL}
    assert (doubles.decided, doubles.doubling) == (True, None)
