"""The same addresses and QPs in two VNIs are two networks: as many streams, each as it would be alone.

The captures are samples of `pcaps/`, each frame of them wrapped into VXLAN by hand, once for each VNI.
"""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import roce_dissect as rd

#: Columns that say where a row stands, not what it holds.
PLACES = {
    "stream", "connection", "vni", "first_frame", "last_frame", "bytes", "a_to_b_stream", "b_to_a_stream",
    "a_to_b_bytes", "b_to_a_bytes", "first_time_ns", "last_time_ns",
}  # fmt: skip
#: Connection management in IPv4 and IPv6, losses, datagrams.
SAMPLES = ("cm_rping_ipv4.client", "rc_mix_ipv6_mtu1024.client", "imp_loss5_readreq.server", "ud_mix_ipv4.server")


@pytest.fixture(scope="module")
def frames():
    spec = importlib.util.spec_from_file_location("decode_frames", Path(__file__).parents[1] / "decode" / "frames.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrapped(frames, source, vnis):
    """Each frame once for each VNI (None: as it is), at the same time."""
    records = frames.records(source)
    out = [source[:24]]
    for seconds, fraction, wire, frame in records:
        for vni in vnis:
            one = frame
            if vni is not None:
                one = frames.outer_ethernet(frames.outer(frames.vxlan(frame, vni), 17))
            length = wire + len(one) - len(frame)
            head = b"".join(value.to_bytes(4, "little") for value in (seconds, fraction, len(one), length))
            out.append(head + one)
    return b"".join(out)


def plain(frame):
    """A table's rows without their places, in a fixed order."""
    kept = frame[[name for name in frame.columns if name not in PLACES]]
    return sorted(tuple(str(value) for value in row) for row in kept.itertuples(index=False))


@pytest.mark.parametrize("vnis", [(5, 6), (None, 5), (0, None, 0xFFFFFF)])
@pytest.mark.parametrize("name", SAMPLES)
def test_each_network_as_if_it_were_alone(samples, frames, tmp_path, name, vnis):
    source = gzip.decompress((samples / f"{name}.pcap.gz").read_bytes())
    path = tmp_path / "capture.pcap"
    path.write_bytes(source)
    alone = rd.analyze(path)
    assert alone.streams["vni"].isna().all()
    path.write_bytes(wrapped(frames, source, vnis))
    together = rd.analyze(path)
    assert len(together.connections) == len(vnis) * len(alone.connections)
    for vni in vnis:
        for table in ("streams", "connections"):
            rows = getattr(together, table)
            rows = rows[rows["vni"].isna() if vni is None else rows["vni"] == vni]
            assert plain(rows) == plain(getattr(alone, table)), (vni, table)
    kinds = alone.events["kind"].value_counts().to_dict()
    assert together.events["kind"].value_counts().to_dict() == {
        kind: number * len(vnis) for kind, number in kinds.items()
    }
    assert together.hosts["qps"].sum() == len(vnis) * alone.hosts["qps"].sum()


def test_track_takes_the_vni_from_a_dataframe(samples, frames, tmp_path):
    source = gzip.decompress((samples / "rc_mix_ipv4_mtu1024.server.pcap.gz").read_bytes())
    path = tmp_path / "capture.pcap"
    path.write_bytes(wrapped(frames, source, (5, 6, None)))
    packets = rd.read_packets(path)
    for given in (packets, packets.drop(columns=["present"])):
        result = rd.track(given)
        assert sorted(result.connections["vni"].dropna().tolist()) == [5, 6]
        assert len(result.connections) == 3
    merged = rd.track(packets.drop(columns=["vni"]))
    assert len(merged.streams) == 2
    assert merged.streams["vni"].isna().all()
    assert np.array_equal(np.unique(packets["tunnel"]), ["none", "vxlan"])
