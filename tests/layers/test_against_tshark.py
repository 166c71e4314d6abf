"""Every field of every RoCE packet of real captures, beside tshark's reading of it; and each frame built again."""

from __future__ import annotations

import gzip

import pytest
from scapy.config import conf
from scapy.utils import RawPcapReader

from roce_dissect.layers import BTH

CAPTURES = [
    "cm_refused.client",
    "cm_rping_ipv6.server",
    "cm_rping_vlan.client",
    "cm_udaddy.client",
    "ecn_netem_ce.server",
    "encap_qinq.client",
    "encap_vxlan.server",
    "flt_bad_rkey_write.client",
    "flt_rnr_recovers.server",
    "fmt_any_sll1",
    "fmt_snap64",
    "fmt_snap96",
    "fmt_snap128",
    "imp_loss3_uc.client",
    "k612_flush_atomic_write.client",
    "rc_mix_ipv4_mtu1024.client",
    "rc_mix_ipv4_mtu4096.server",
    "rc_mix_ipv6_linklocal.client",
    "rc_psn_wrap.client",
    "rc_send_inv.client",
    "ud_mix_ipv4.client",
    "ulp_nfs_rdma.client",
    "ulp_nvmeof.client",
]

ETHER_IP_UDP = 14 + 20 + 8


@pytest.fixture
def capture(captures, request, tmp_path):
    """Uncompressed capture, and its frames with the class of its link type."""
    source = captures / f"{request.param}.pcap.gz"
    if not source.exists():
        pytest.skip(f"{source.name} is not there")
    path = tmp_path / "capture.pcap"
    path.write_bytes(gzip.decompress(source.read_bytes()))
    with RawPcapReader(str(path)) as reader:
        return path, conf.l2types[reader.linktype], [(frame, meta.wirelen) for frame, meta in reader]


@pytest.mark.parametrize("capture", CAPTURES, indirect=True)
def test_every_field(capture, wireshark):
    path, link, frames = capture
    theirs = wireshark.read(path)
    assert theirs
    for number, (frame, wire_length) in enumerate(frames, 1):
        packet = link(frame)
        assert bytes(packet) == frame, number
        assert (BTH in packet) == (number in theirs), number
        if BTH in packet:
            ours, read = wireshark.both(packet, theirs[number], sliced=len(frame) < wire_length)
            assert ours == read, number


@pytest.mark.parametrize("capture", ["rc_mix_ipv4_mtu1024.client"], indirect=True)
def test_every_frame_cut_at_every_length(capture):
    _, link, frames = capture
    for frame, _ in [pair for pair in frames if len(pair[0]) < 200][:30]:
        whole = link(frame)
        for size in range(14, len(frame)):  # Scapy's own Ether raises on less than its header
            # Scapy's own layers raise when they are cut, and fall back to Raw: only ours are under test here.
            conf.debug_dissector = BTH in whole and size >= ETHER_IP_UDP
            packet = link(frame[:size])
            assert bytes(packet) == frame[:size]
            assert (BTH in packet) == (size >= ETHER_IP_UDP + BTH.header_size and BTH in whole)
            if BTH in packet:
                assert isinstance(packet[BTH].icrc, bytes)
                assert bytes(packet[BTH])[:12] == bytes(whole[BTH])[:12]
