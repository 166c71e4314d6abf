"""Every packet, every field of BTH, extended headers, IP, UDP, Ethernet, VLAN and GRH: equal to tshark's reading.

How the two are compared is `roce_dissect.analysis.verification`, which ``roce-dissect verify`` runs, too. What is
independent of it stands here: which trap of tshark is met where, and how many packets there are.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import roce_dissect as rd
from roce_dissect.analysis.verification import Verification

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def captures():
    """Samples of the project, and the captures of the environment."""
    paths = sorted((Path(__file__).parents[2] / "pcaps").glob("*.pcap*"))
    folder = os.environ.get("ROCE_DISSECT_CAPTURES")
    if folder:
        known = {path.name for path in paths}
        paths += sorted(path for path in Path(folder).rglob("*.pcap*") if path.name not in known)
    return paths


def compare(path, tshark):
    """(frame, column, ours, tshark's) of all that differs; traps met; packets compared."""
    verification = Verification(tshark, most=1 << 30)
    for _ in verification.read(str(path)):
        pass
    [result] = verification.files
    assert (result.error, result.tshark_error) == (None, None)
    found = [(one.frame, one.column, one.ours, one.theirs) for one in verification.differences]
    assert len(found) == result.different
    return found, set(verification.traps), result.packets


@pytest.fixture(scope="module")
def ahead(request, tshark):
    """The captures of this run are compared on two threads, since tshark is the slow one: path -> future."""
    paths = [item.callspec.params["path"] for item in request.session.items if item.originalname == "test_capture"]
    with ThreadPoolExecutor(2) as pool:
        yield {path: pool.submit(compare, path, tshark) for path in paths}


#: Captures that meet a trap.
TRAPS = {
    "k612_flush_atomic_write": {"flush"},
    "neg_udp4791_not_roce": {"unknown_opcode", "dc_opcodes", "flush", "short_datagram", "icrc_as_header"},
}


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.name)
def test_capture(path, ahead):
    found, traps, packets = ahead.pop(path).result()
    assert not found
    assert traps == TRAPS.get(path.name.partition(".")[0], set())
    assert packets or path.name.startswith("neg_siw")


@pytest.mark.parametrize("snap", [64, 80, 96, 128])
@pytest.mark.parametrize(
    "name",
    ["rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client", "rc_mix_vlan100_ipv4.client", "ud_mix_ipv4.server"],
)
def test_sliced(name, snap, samples, frames, tshark, tmp_path):
    path = tmp_path / "sliced.pcap"
    path.write_bytes(frames.sliced(gzip.decompress((samples / f"{name}.pcap.gz").read_bytes()), snap))
    found, traps, packets = compare(path, tshark)
    assert not found
    assert not traps
    assert packets


@pytest.mark.parametrize("form", ["pcapng", "nsecpcap"])
def test_other_formats(form, samples, tshark, tmp_path):
    editcap = shutil.which("editcap")
    if editcap is None:
        pytest.skip("editcap is not installed")
    path = tmp_path / "capture"
    subprocess.run([editcap, "-F", form, samples / "rc_mix_vlan100_ipv4.client.pcap.gz", path], check=True)
    found, traps, packets = compare(path, tshark)
    assert (found, traps) == ([], set())
    assert packets == 58
    path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
    assert compare(path.with_suffix(".gz"), tshark) == ([], set(), packets)


@pytest.mark.parametrize(
    "name", ["rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client", "uc_mix_ipv4.client", "ud_mix_ipv4.server"]
)
def test_version_1(name, samples, frames, tshark, tmp_path):
    """No RoCE v1 capture at hand: version 2 made into version 1, frame by frame, and tshark as the judge."""
    source = frames.records(gzip.decompress((samples / f"{name}.pcap.gz").read_bytes()))
    roce = [frame for *_, frame in source if frame[36:38] == b"\x12\xb7" or frame[56:58] == b"\x12\xb7"]
    path = tmp_path / "v1.pcap"
    path.write_bytes(frames.pcap([frames.v1_from_v2(frame) for frame in roce]))
    found, traps, packets = compare(path, tshark)
    assert (found, traps) == ([], set())
    assert packets == len(roce) >= 9
    assert set(rd.read_packets(path, ["version"])["version"]) == {1}


def test_every_opcode_every_encapsulation(frames, tshark, tmp_path):
    """All named opcodes with random fields: IPv4 with and without options, IPv6, GRH, no tag, a tag, two tags."""
    rng = random.Random(4791)
    made = []
    for opcode in sorted(frames.CHAINS):
        for build in (frames.v2, frames.v2_ipv6, frames.v1):
            for tags in ((), ((0x8100, 0x6064),), ((0x88A8, 0x412C), (0x8100, 0xE190))):
                ip = {
                    "options": b"\x01" * rng.choice((0, 4, 12)),
                    "tos": rng.randrange(256),
                    "ip_id": rng.randrange(65536),
                }
                if build is not frames.v2:
                    ip = {"tclass": rng.randrange(256), "flow": rng.randrange(1 << 20), "hops": rng.randrange(1, 256)}
                fields = {
                    "psn": rng.getrandbits(24), "dest_qp": rng.randrange(2, 1 << 24), "se": rng.getrandbits(1),
                    "mig_req": rng.getrandbits(1), "ack_req": rng.getrandbits(1), "p_key": rng.getrandbits(16),
                    "icrc": rng.getrandbits(32),
                }  # fmt: skip
                if build is not frames.v1:
                    fields["sport"] = rng.randrange(0xC000, 0x10000)
                empty = opcode & 0x1F in (0x0C, 0x11, 0x12, 0x13, 0x14, 0x1C) or opcode == 0x81
                payload = b"" if empty else rng.randbytes(rng.randrange(40))
                made.append(build(opcode, payload, frames.values_of(opcode, rng), tags, ip, **fields))
    path = tmp_path / "all.pcap"
    path.write_bytes(frames.pcap(made, nano=True))
    found, traps, packets = compare(path, tshark)
    assert not found
    assert traps == {"unknown_opcode", "dc_opcodes", "flush", "xrc"}
    assert packets == len(made)


@pytest.mark.parametrize("outer", [4, 6])
def test_every_tunnel(outer, frames, samples, tshark, tmp_path):
    """Real frames of an IPv4, an IPv6 and a tagged capture, wrapped into each tunnel, and into two."""
    made, unseen = [], 0
    for sample in ("rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client", "rc_mix_vlan100_ipv4.client"):
        source = frames.records(gzip.decompress((samples / f"{sample}.pcap.gz").read_bytes()))
        real = [frame for *_, frame in source if b"\x12\xb7" in (frame[36:38], frame[40:42], frame[56:58])][-20:]
        assert len(real) == 20
        for number, frame in enumerate(real):
            for name, (wrap, *_) in frames.TUNNELS.items():
                protocol, body = wrap(frame)
                once = frames.outer_ethernet(frames.outer(body, protocol, outer), outer)
                made.append(once)
                unseen += name == "erspan3_ip"
                if number == 0 and name not in frames.WITHOUT_ETHERNET:
                    made.append(frames.outer_ethernet(frames.outer(frames.vxlan(once, 99), 17)))
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(frames.pcap(made))
    found, traps, packets = compare(path, tshark)
    assert not found
    assert traps == {"erspan_ip"}
    assert packets == len(made) - unseen


@pytest.mark.parametrize("link_type", [0, 12, 14, 101, 108, 113, 197, 228, 229, 276])
def test_every_link_type(link_type, frames, samples, tshark, tmp_path):
    """Real packets behind other link headers; native InfiniBand made of them, with and without GRH.

    Of native InfiniBand tshark reads the ERF form only. There it shows time and lengths of the ERF header.
    """
    made = []
    for sample in ("rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client"):
        source = frames.records(gzip.decompress((samples / f"{sample}.pcap.gz").read_bytes()))
        for *_, frame in source:
            ether_type, body = frames.network(frame)
            header = {0x0800: 20, 0x86DD: 40}.get(ether_type, 0)
            if body[header + 2 : header + 4] != b"\x12\xb7" or link_type == (229 if header == 20 else 228):
                continue
            if link_type in (0, 108):
                family = struct.pack("<I" if link_type == 0 else ">I", 2 if header == 20 else 28)
                made.append(family + body)
            elif link_type in (113, 276):
                made.append((frames.cooked if link_type == 113 else frames.cooked2)(body, ether_type))
            elif link_type == 197:
                (udp_length,) = struct.unpack_from(">H", body, header + 4)
                packet = body[header + 8 : header + udp_length]
                native = frames.native(packet, None if len(made) % 2 else {"tclass": 0x6B, "hops": 3}, slid=len(made))
                made.append(frames.erf(native))
            else:
                made.append(body)
    path = tmp_path / "link.pcap"
    path.write_bytes(frames.pcap(made, link_type=link_type))
    found, traps, packets = compare(path, tshark)
    assert not found
    assert traps == ({"erf_record"} if link_type == 197 else set())
    assert packets == len(made) >= 50


def test_source_port_of_another_protocol(frames, tshark, tmp_path):
    """Trap 1: from source port 69 tshark sees TFTP; we see RoCE, whatever the source port."""
    path = tmp_path / "ports.pcap"
    ports = [0, 69, 53, 123, 4789, 4791, 49152]
    path.write_bytes(frames.pcap([frames.v2(4, b"data", sport=port, psn=port) for port in ports]))
    packets = rd.read_packets(path, ["udp_sport", "opcode", "psn", "status"])
    assert packets["udp_sport"].tolist() == packets["psn"].tolist() == ports
    assert set(packets["opcode"]) == {4}
    assert set(packets["status"]) == {"ok"}
    found, traps, _ = compare(path, tshark)
    assert not found
    assert traps == {"lower_port"}
