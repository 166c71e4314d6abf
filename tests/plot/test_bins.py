"""Goodput and counts per bin: exact sums, whatever the width."""

from __future__ import annotations

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect.errors import ArgumentError
from roce_dissect.plot.bins import bin_packets

WRITE_MIDDLE, READ_REQUEST, READ_ONLY, ACKNOWLEDGE, CNP = 0x07, 0x0C, 0x10, 0x11, 0x81
SAMPLES = [
    "imp_loss1_write.server", "imp_loss5_readreq.server", "imp_dup5.server", "imp_loss3_uc.server",
    "ud_mix_ipv4.server", "cm_rping_ipv4.client", "flt_rnr_recovers.client", "rc_psn_wrap.client",
    "rc_mix_ipv6_mtu1024.client", "rc_psn_wrap_read.server",
]  # fmt: skip


def _each_stream(analysis: rd.Analysis) -> list[list[int]]:
    return [[int(stream)] for stream in analysis.streams["stream"]]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("bin_ns", [None, 1_000_000, 10**12])
def test_bins_add_up_to_the_goodput_of_every_stream(sample, name, bin_ns):
    analysis = sample(name)
    bins = bin_packets(analysis, _each_stream(analysis), bin_ns=bin_ns)
    assert bins.goodput.sum(axis=1).tolist() == analysis.streams["goodput_bytes"].tolist()
    assert bins.outside == 0


def test_bins_add_up_for_every_capture_of_the_lab(captures):
    checked = 0
    for path in sorted(captures.glob("*.pcap*.*")):
        analysis = rd.analyze(path)
        bins = bin_packets(analysis, _each_stream(analysis))
        if bins is not None:
            assert bins.goodput.sum(axis=1).tolist() == analysis.streams["goodput_bytes"].tolist(), path.name
            checked += 1
    assert checked > 50


def test_goodput_is_what_the_application_moved(sample):
    # ib_write_bw -s 16384 -n 60, whatever was lost and sent again
    for name in ("imp_loss1_write.server", "imp_loss1_write.client", "imp_dup5.server"):
        bins = bin_packets(sample(name), _each_stream(sample(name)))
        assert int(bins.goodput.sum()) == 60 * 16384


# tshark, as in test_spaces.
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("imp_loss1_write.server", {"resent": 526, "late": 9, "gap": 9, "nak": 10}),
        ("flt_rnr_recovers.client", {"resent": 100, "nak": 50, "rnr_nak": 50}),
        ("flt_bad_rkey_write.server", {"nak": 1}),
        ("ecn_red_ce.server", {"ce": 139}),
        ("rc_psn_wrap.client", {}),
    ],
)
def test_counts_are_those_of_the_packets(sample, name, counts):
    analysis = sample(name)
    bins = bin_packets(analysis, _each_stream(analysis), connection=1)
    assert {mark: int(values.sum()) for mark, values in bins.counts.items()} == counts


def test_a_packet_counts_in_the_bin_of_its_time(made):
    analysis = made(
        (0, "A", WRITE_MIDDLE, 10), (9.999, "A", WRITE_MIDDLE, 11), (10, "A", WRITE_MIDDLE, 12),
        (25, "A", WRITE_MIDDLE, 12), (29, "B", ACKNOWLEDGE, 12), (31, "B", CNP, 0),
    )  # fmt: skip
    bins = bin_packets(analysis, [[0], [1]], bin_ns=10_000)
    assert bins.goodput.tolist() == [[2048, 1024, 0, 0], [0, 0, 0, 0]]
    assert bins.counts["resent"].tolist() == [0, 0, 1, 0]
    assert bins.counts["cnp"].tolist() == [0, 0, 0, 1]
    assert bins.edges_ns.tolist() == [0, 10_000, 20_000, 30_000, 40_000]
    assert bins.span_ns == 31_000


def test_times_that_jump_back_are_counted_at_the_edge_and_said(made):
    analysis = made((100, "A", WRITE_MIDDLE, 10), (60, "A", WRITE_MIDDLE, 11), (200, "A", WRITE_MIDDLE, 12))
    bins = bin_packets(analysis, [[0]], bin_ns=10_000)
    assert bins.goodput[0].tolist() == [2048, *[0] * 9, 1024]
    assert bins.outside == 1


def test_streams_of_no_group_are_left_out(made):
    analysis = made((0, "A", WRITE_MIDDLE, 10), (1, "B", WRITE_MIDDLE, 99), (2, "B", CNP, 0))
    bins = bin_packets(analysis, [[0]])
    assert int(bins.goodput.sum()) == 1024
    assert bins.counts == {}


@pytest.mark.parametrize("bin_ns", [0, -5])
def test_a_bin_has_a_width(sample, bin_ns):
    with pytest.raises(ArgumentError, match="bin width"):
        bin_packets(sample("imp_loss1_write.server"), [[0]], bin_ns=bin_ns)


def test_absurdly_many_bins_are_refused(sample):
    with pytest.raises(ArgumentError, match="bins of 1 ns: there would be 21"):
        bin_packets(sample("imp_loss1_write.server"), [[0]], bin_ns=1)


def test_streams_without_packets_have_no_bins(sample):
    assert bin_packets(sample("imp_loss1_write.server"), []) is None
    assert bin_packets(sample("imp_loss1_write.server"), [[]]) is None
    assert isinstance(bin_packets(sample("imp_loss1_write.server"), [[1]]).goodput, np.ndarray)
