"""Where packets of a QP go to, from a first reading: against the connections of the whole capture."""

from __future__ import annotations

import io

import pytest

import roce_dissect as rd
from roce_dissect.analysis.qp_ends import with_ends
from roce_dissect.decode.options import ReadOptions
from roce_dissect.decode.selection import Ends, Selection

CM = "cm_rping_ipv4.client.pcap.gz"


def test_ways_and_frames(samples):
    """tshark: frame 2 (REP) names QP 0x23, frame 1 (REQ) 0x40; the first packet to 0x40 is frame 5."""
    found = with_ends([str(samples / CM)], ReadOptions(selection=Selection(qps=[35]))).selection.ends
    [way] = found.ways
    assert way[:4] == ("192.168.100.1", "192.168.100.2", -1, 64)
    assert (way.first_time_ns, way.last_time_ns) == (1795956791090969000, 1795956791191530000)
    assert found.frames == (1, 2, 3, 124, 125)


def test_when_nobody_looks(samples):
    """Without QPs, when it is known, and where it cannot be read twice, the options stay the same object."""
    path = str(samples / CM)
    for options in (
        ReadOptions(),
        ReadOptions(selection=Selection("psn > 5")),
        ReadOptions(selection=Selection(qps=[35], ends=Ends())),
    ):
        assert with_ends([path], options) is options
    options = ReadOptions(selection=Selection(qps=[35]))
    for once in ("-", io.BytesIO(b""), "/dev/null", str(samples)):
        assert with_ends([once], options) is options
    assert with_ends([path], options) is not options


def test_progress_and_what_cannot_be_read(samples, tmp_path):
    """It is passed over; the reading that comes says so."""
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"nothing of the kind")
    calls = []
    options = ReadOptions(selection=Selection(qps=[35]))
    ends = with_ends([str(broken), str(samples / CM)], options, lambda *given: calls.append(given)).selection.ends
    assert len(ends.ways) == 1
    assert calls
    with pytest.raises(rd.CaptureError):
        rd.analyze([str(broken), str(samples / CM)], qps=35)
    kept = rd.analyze([str(broken), str(samples / CM)], qps=35, errors="keep")
    assert len(kept.connections) == 1
    assert [one["error"] is None for one in kept.capture["files"]] == [False, True]


def test_every_qp_of_a_busy_capture(softroce):
    """Choosing any QP gives its connections as the whole capture has them, and no packet of others."""
    path = softroce / "big_write_8qp_loss01.client.pcap.gz"
    whole = rd.analyze(path)
    figures = ["a_address", "a_qp", "b_address", "b_qp", "a_to_b_packets", "b_to_a_packets", "a_to_b_resent_packets"]
    for qp in sorted(set(whole.connections["b_qp"].dropna().astype(int)))[:3]:
        some = rd.analyze(path, qps=qp).connections
        of_qp = (whole.connections["a_qp"] == qp) | (whole.connections["b_qp"] == qp)
        expected = whole.connections[of_qp.fillna(False).to_numpy(bool)]
        assert 0 < len(expected) < len(whole.connections)
        assert some[figures].to_numpy().tolist() == expected[figures].to_numpy().tolist()
