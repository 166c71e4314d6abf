"""Every field of every RoCE packet of real captures, beside tshark's reading of it; and each frame built again.

Traps of the oracle that are met here: extended headers of FLUSH and ATOMIC WRITE are "vendor data" to tshark 4.0; it
shows AtomicETH's address and key as RETH fields, some fields twice, the ICRC big-endian, and the pad as data; sliced
packets have no ICRC, whatever it shows.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess

import pytest
from scapy.config import conf
from scapy.packet import Raw
from scapy.utils import RawPcapReader

from roce_dissect.layers import AETH, BTH, DETH, GRH, IETH, RETH, AtomicAckETH, AtomicETH, ImmDt

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

#: Wireshark's field: layers that may hold it, our field.
FIELDS: dict[str, tuple[tuple, str]] = {
    "bth.opcode": ((BTH,), "opcode"),
    "bth.se": ((BTH,), "se"),
    "bth.m": ((BTH,), "mig_req"),
    "bth.padcnt": ((BTH,), "pad_count"),
    "bth.tver": ((BTH,), "tver"),
    "bth.p_key": ((BTH,), "p_key"),
    "bth.destqp": ((BTH,), "dest_qp"),
    "bth.a": ((BTH,), "ack_req"),
    "bth.psn": ((BTH,), "psn"),
    "reth.va": ((RETH, AtomicETH), "va"),
    "reth.r_key": ((RETH, AtomicETH), "r_key"),
    "reth.dmalen": ((RETH,), "dma_len"),
    "aeth.syndrome": ((AETH,), "syndrome"),
    "aeth.msn": ((AETH,), "msn"),
    "immdt": ((ImmDt,), "imm_data"),
    "ieth": ((IETH,), "inv_r_key"),
    "deth.q_key": ((DETH,), "q_key"),
    "deth.srcqp": ((DETH,), "src_qp"),
    "atomiceth.swapdt": ((AtomicETH,), "swap_add_data"),
    "atomiceth.cmpdt": ((AtomicETH,), "compare_data"),
    "atomicacketh.origremdt": ((AtomicAckETH,), "orig_data"),
    "invariant.crc": ((BTH,), "icrc"),
}
HEXADECIMAL = {"immdt", "ieth"}
UNKNOWN_TO_TSHARK = {0x1C, 0x1D}
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


def read_by_tshark(path):
    """By frame number: Wireshark's fields that are present."""
    command = ["tshark", "-n", "-r", str(path), "--disable-heuristic", "rpcrdma_infiniband", "-Y", "infiniband",
               "-T", "fields", "-E", "occurrence=f", "-e", "frame.number"]  # fmt: skip
    names = [*FIELDS, "data.data"]
    for name in names:
        command += ["-e", name if name == "data.data" else f"infiniband.{name}"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        number, *values = line.split("\t")
        yield int(number), {name: value for name, value in zip(names, values, strict=True) if value}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("capture", CAPTURES, indirect=True)
def test_every_field(capture):
    path, link, frames = capture
    theirs = dict(read_by_tshark(path))
    assert theirs
    for number, (frame, wire_length) in enumerate(frames, 1):
        packet = link(frame)
        assert bytes(packet) == frame, number
        assert (BTH in packet) == (number in theirs), number
        if BTH not in packet:
            continue
        bth, expected = packet[BTH], theirs[number]
        if len(frame) < wire_length:
            assert isinstance(bth.icrc, bytes), number
            expected.pop("invariant.crc", None)
            expected.pop("data.data", None)
        ours = {}
        for name, (holders, field) in FIELDS.items():
            value = next((packet[holder].getfieldval(field) for holder in holders if holder in packet), None)
            if value is not None and not isinstance(value, bytes):
                ours[name] = value
        if bth.opcode in UNKNOWN_TO_TSHARK:
            ours = {name: value for name, value in ours.items() if name.startswith("bth.")}
        if "invariant.crc" in ours:
            ours["invariant.crc"] = int.from_bytes(ours["invariant.crc"].to_bytes(4, "little"), "big")
        data = expected.pop("data.data", None)
        if data is not None:
            assert (bytes(packet[Raw].load) + bth.pad).hex() == data, number
        read = {name: int(value, 16 if name in HEXADECIMAL else 0) for name, value in expected.items()}
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


@pytest.mark.parametrize("capture", ["rc_mix_ipv4_mtu1024.client", "encap_qinq.client"], indirect=True)
def test_as_v1(capture):
    """The same transport packets behind a GRH, in frames with a trailer: only what is below the BTH changes."""
    _, link, frames = capture
    for frame, _ in frames:
        packet = link(frame)
        if BTH not in packet:
            continue
        transport = bytes(packet[BTH])
        v1 = bytes(GRH(sgid="fe80::1", dgid="fe80::2")) + transport
        again = GRH(v1[:4] + len(transport).to_bytes(2, "big") + v1[6:] + b"trailer")
        assert again[BTH].fields == packet[BTH].fields
        assert bytes(again).endswith(transport + b"trailer")
