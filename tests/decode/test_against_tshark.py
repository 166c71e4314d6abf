"""Every packet, every field of BTH, extended headers, IP, UDP, Ethernet, VLAN and GRH: equal to tshark's reading.

Where tshark is known to err, the exception is named with its number in the project's list of traps:

1. It chooses a dissector by the *lower* port first: a source port below 4791 may hide RoCE.
2. CNPs (opcode 0x81) are "unknown" to it: their 16 bytes and ICRC are "vendor data".
3. 0x40 to 0x5f are always taken for NVIDIA DC: the headers of RD are shifted.
4. FETH is off by one bit (4.4) or unknown (4.0), with it what follows in FLUSH; 4.0 lacks ATOMIC WRITE, too.
5. Sliced packets: "malformed", and what it shows as ICRC is none.
6. Payload heuristics: switched off here.
7. The ICRC is shown big-endian.
16. No extended header of XRC is decoded.
"""

from __future__ import annotations

import gzip
import ipaddress
import os
import random
import shutil
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import roce_dissect as rd
from roce_dissect.columns import PACKETS

TSHARK = shutil.which("tshark")
pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")

#: Our column -> tshark's fields, the first that has a value counts.
FIELDS = {column.name: [column.wireshark] for column in PACKETS.values() if column.wireshark}
FIELDS |= {
    "vlan_id": ["ieee8021ad.id", "vlan.id"],
    "vlan2_id": ["ieee8021ad.id", "vlan.id"],
    "pcp": ["ieee8021ad.priority", "vlan.priority"],
    "src": ["ip.src", "ipv6.src", "infiniband.grh.sgid"],
    "dst": ["ip.dst", "ipv6.dst", "infiniband.grh.dgid"],
    "dscp": ["ip.dsfield.dscp", "ipv6.tclass.dscp", "infiniband.grh.tclass"],
    "ecn": ["ip.dsfield.ecn", "ipv6.tclass.ecn", "infiniband.grh.tclass"],
    "ttl": ["ip.ttl", "ipv6.hlim", "infiniband.grh.hoplmt"],
    "flow_label": ["ipv6.flow", "infiniband.grh.flowlabel"],
    "ip_len": ["ip.len", "ipv6.plen", "infiniband.grh.paylen"],
}
#: Fields that tshark prints as bare hexadecimal bytes.
BYTES = {"imm_data", "inv_r_key"}
FIELDS |= {
    "vni": ["vxlan.vni", "geneve.vni", "gre.key"],
    "outer_src": ["ip.src", "ipv6.src"],
    "outer_dst": ["ip.dst", "ipv6.dst"],
}
#: Fields of the innermost packet, and those of which tshark shows one for each IP header.
INNERMOST = {"ip": "ip.", "ipv6": "ipv6.", "infiniband": "infiniband.grh."}
TUNNELS = {"vxlan", "geneve", "gre", "mpls"}
NAMES = sorted({name for fields in FIELDS.values() for name in fields} | {"frame.protocols", "gre.proto"})
OURS = ["status", "payload_len", "tunnel", *FIELDS]
ROCE = "(udp.dstport == 4791 || eth.type == 0x8915 || vlan.etype == 0x8915) && !icmp && !icmpv6"


def captures():
    """Samples of the project, and the captures of the environment."""
    paths = sorted((Path(__file__).parents[2] / "pcaps").glob("*.pcap*"))
    folder = os.environ.get("ROCE_DISSECT_CAPTURES")
    if folder:
        known = {path.name for path in paths}
        paths += sorted(path for path in Path(folder).rglob("*.pcap*") if path.name not in known)
    return paths


def by_tshark(path, names=NAMES, display_filter=ROCE):
    """tshark's RoCE frames: frame number -> {field: list of printed values}."""
    command = [TSHARK, "--disable-heuristic", "rpcrdma_infiniband", "-n", "-r", str(path), "-Y", display_filter]
    command += ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=|"]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {}
    for line in done.stdout.decode().splitlines():
        values = dict(zip(names, line.split("\t"), strict=True))
        rows[int(values["frame.number"])] = {name: value.split("|") for name, value in values.items() if value}
    return rows


def number(text, name):
    """A printed value as an integer."""
    if name in BYTES:
        return int(text.replace(":", ""), 16)
    if name in ("eth_src", "eth_dst"):
        return int(text.replace(":", ""), 16)
    if name == "time_ns":
        seconds, _, fraction = text.partition(".")
        return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 0)


def theirs(row, name):
    """tshark's value of our column, None where it has none."""
    if name in ("vlan_id", "vlan2_id", "pcp"):  # of each tag from the outside in
        values = [value for field in FIELDS[name] for value in row.get(field, [])]
        place = int(name == "vlan2_id")
        return int(values[place]) if len(values) > place else None
    layers = row["frame.protocols"][0].split(":")
    networks = [layer for layer in layers if layer in ("ip", "ipv6")]
    tunnelled = bool(TUNNELS & set(layers)) or len(networks) > 1
    if name.startswith("outer_") and not (tunnelled and networks):
        return None
    fields = FIELDS[name]
    if tunnelled and name in NETWORK:
        network = "infiniband" if "infiniband.grh.sgid" in row else networks[-1]
        if name.startswith("outer_"):
            network = networks[0]
        fields = [field for field in fields if field.startswith(INNERMOST[network])]
    if name == "vni":  # the innermost tunnel that has one
        fields = [f"{layer}.{'key' if layer == 'gre' else 'vni'}" for layer in reversed(layers) if layer in TUNNELS]
    field, values = next(((field, row[field]) for field in fields if field in row), (None, None))
    if values is None:
        return None
    text = values[-1 if tunnelled and not name.startswith("outer_") else 0]
    if name in ("src", "dst", "outer_src", "outer_dst"):
        address = ipaddress.ip_address(text)
        return str(getattr(address, "ipv4_mapped", None) or address)
    value = number(text, name)
    if field == "gre.key":
        if int(row["gre.proto"][-1], 0) != 0x6558:
            return None
        return value >> 8 if value >> 20 and "gre.sequence_number" not in row else value
    if field == "infiniband.grh.tclass":
        return value >> 2 if name == "dscp" else value & 3
    if name == "icrc":  # trap 7
        return int.from_bytes(value.to_bytes(4, "big"), "little")
    return value


#: Columns that each IP header has.
NETWORK = {"src", "dst", "dscp", "ecn", "ttl", "ip_id", "flow_label", "ip_len", "outer_src", "outer_dst"}
#: Columns of the extended headers.
EXTENDED = {
    "va", "r_key", "dma_len", "syndrome", "msn", "imm_data", "inv_r_key", "q_key", "src_qp", "swap_add_data",
    "compare_data", "orig_data", "ee_context",
}  # fmt: skip


#: Opcodes that tshark 4.0 names, RD left out.
NAMED = {*range(0x15), 0x16, 0x17, *range(0x20, 0x2C), 0x64, 0x65}
INFINIBAND = {name for name in FIELDS if FIELDS[name][0].startswith("infiniband.")}


def trap(name, ours, row):
    """Why tshark cannot be asked about this column of this packet: a trap's number or a word; None: it can."""
    if name in ("vni", "outer_src", "outer_dst") and ours["tunnel"] == "none" and ours["udp_sport"] in (4789, 6081):
        return 1
    if name not in INFINIBAND:
        return None
    if "infiniband.bth.opcode" not in row:
        return 1 if ours["udp_sport"] < 4791 else None
    opcode = int(row["infiniband.bth.opcode"][0])
    udp_length = int(row["udp.length"][0]) if "udp.length" in row else 1 << 16
    if ours["opcode"] is None:
        return "no room for BTH and ICRC" if ours["status"] == "malformed" and udp_length < 8 + 12 + 4 else None
    if 0x40 <= opcode <= 0x5F and name in EXTENDED | {"icrc"}:
        return 3
    if opcode in (0x1C, 0x1D) and name in EXTENDED | {"icrc"}:
        return 4
    if 0xA0 <= opcode <= 0xBF and name in EXTENDED:
        return 16
    if opcode not in NAMED and name == "icrc":
        return 2
    if name in EXTENDED and ours[name] is None and ours["payload_len"] == 0 and udp_length == 8 + 12 + 4:
        return "an extended header read from the ICRC's bytes"
    return None


@pytest.fixture(scope="module")
def ahead(request):
    """tshark reads the captures of this run on two threads while they are compared: path -> future."""
    paths = [item.callspec.params["path"] for item in request.session.items if item.originalname == "test_capture"]
    with ThreadPoolExecutor(2) as pool:
        yield {path: pool.submit(by_tshark, path) for path in paths}


def compare(path, rows=None):
    """(frame, column, ours, tshark's) of all that differs; traps met; packets compared."""
    packets = rd.read_packets(path, OURS)
    rows = by_tshark(path) if rows is None else rows
    assert packets["frame"].tolist() == list(rows)
    plain = {name: packets[name].astype(object).where(packets[name].notna(), None).tolist() for name in OURS}
    found, traps = [], set()
    for index, (frame, row) in enumerate(rows.items()):
        ours = {name: plain[name][index] for name in OURS}
        for name in FIELDS:
            other = theirs(row, name)
            if ours[name] != other:
                reason = trap(name, ours, row)
                if reason is None:
                    found.append((frame, name, ours[name], other))
                traps.add(reason)
    return found, traps - {None}, len(rows)


#: Captures that meet a trap.
TRAPS = {
    "k612_flush_atomic_write": {4},
    "neg_udp4791_not_roce": {2, 3, 4, "no room for BTH and ICRC", "an extended header read from the ICRC's bytes"},
}


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.name)
def test_capture(path, ahead):
    found, traps, packets = compare(path, ahead.pop(path).result())
    assert not found
    assert traps == TRAPS.get(path.name.partition(".")[0], set())
    assert packets or path.name.startswith("neg_siw")


@pytest.mark.parametrize("snap", [64, 80, 96, 128])
@pytest.mark.parametrize(
    "name",
    ["rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client", "rc_mix_vlan100_ipv4.client", "ud_mix_ipv4.server"],
)
def test_sliced(name, snap, samples, frames, tmp_path):
    path = tmp_path / "sliced.pcap"
    path.write_bytes(frames.sliced(gzip.decompress((samples / f"{name}.pcap.gz").read_bytes()), snap))
    found, traps, packets = compare(path)
    assert not found
    assert not traps
    assert packets


@pytest.mark.parametrize("form", ["pcapng", "nsecpcap"])
def test_other_formats(form, samples, tmp_path):
    editcap = shutil.which("editcap")
    if editcap is None:
        pytest.skip("editcap is not installed")
    path = tmp_path / "capture"
    subprocess.run([editcap, "-F", form, samples / "rc_mix_vlan100_ipv4.client.pcap.gz", path], check=True)
    found, traps, packets = compare(path)
    assert (found, traps) == ([], set())
    assert packets == 58
    path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
    assert compare(path.with_suffix(".gz")) == ([], set(), packets)


@pytest.mark.parametrize(
    "name", ["rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client", "uc_mix_ipv4.client", "ud_mix_ipv4.server"]
)
def test_version_1(name, samples, frames, tmp_path):
    """No RoCE v1 capture at hand: version 2 made into version 1, frame by frame, and tshark as the judge."""
    source = frames.records(gzip.decompress((samples / f"{name}.pcap.gz").read_bytes()))
    roce = [frame for *_, frame in source if frame[36:38] == b"\x12\xb7" or frame[56:58] == b"\x12\xb7"]
    path = tmp_path / "v1.pcap"
    path.write_bytes(frames.pcap([frames.v1_from_v2(frame) for frame in roce]))
    found, traps, packets = compare(path)
    assert (found, traps) == ([], set())
    assert packets == len(roce) >= 9
    assert set(rd.read_packets(path, ["version"])["version"]) == {1}


def test_every_opcode_every_encapsulation(frames, tmp_path):
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
    found, traps, packets = compare(path)
    assert not found
    assert traps == {2, 3, 4, 16}
    assert packets == len(made)


#: Tunnels that this tshark does not take apart as we do: a row of them would say nothing.
UNLIKE_TSHARK = {
    "erspan3_sub": "4.0 shows no payload behind a subheader of platform 0",
    "erspan3_ip": "4.0 shows no payload of frame type 2",
    "mpls_in_ip": "4.0 knows no MPLS behind IP protocol 137",
}


@pytest.mark.parametrize("outer", [4, 6])
def test_every_tunnel(outer, frames, samples, tmp_path):
    """Real frames of an IPv4, an IPv6 and a tagged capture, wrapped into each tunnel, and into two."""
    made = []
    for sample in ("rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client", "rc_mix_vlan100_ipv4.client"):
        source = frames.records(gzip.decompress((samples / f"{sample}.pcap.gz").read_bytes()))
        real = [frame for *_, frame in source if b"\x12\xb7" in (frame[36:38], frame[40:42], frame[56:58])][-20:]
        assert len(real) == 20
        for number, frame in enumerate(real):
            for name, (wrap, *_) in frames.TUNNELS.items():
                if name in UNLIKE_TSHARK:
                    continue
                protocol, body = wrap(frame)
                once = frames.outer_ethernet(frames.outer(body, protocol, outer), outer)
                made.append(once)
                if number == 0 and name not in frames.WITHOUT_ETHERNET:
                    made.append(frames.outer_ethernet(frames.outer(frames.vxlan(once, 99), 17)))
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(frames.pcap(made))
    found, traps, packets = compare(path)
    assert not found
    assert not traps
    assert packets == len(made)


@pytest.mark.parametrize("link_type", [0, 12, 14, 101, 108, 113, 197, 228, 229, 276])
def test_every_link_type(link_type, frames, samples, tmp_path):
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
    found, traps, packets = compare(path, by_tshark(path, display_filter="infiniband"))
    of_the_record = ("time_ns", "wire_len", "cap_len") if link_type == 197 else ()
    assert not [one for one in found if one[1] not in of_the_record]
    assert not traps
    assert packets == len(made) >= 50


def test_source_port_of_another_protocol(frames, tmp_path):
    """Trap 1: from source port 69 tshark sees TFTP; we see RoCE, whatever the source port."""
    path = tmp_path / "ports.pcap"
    ports = [0, 69, 53, 123, 4789, 4791, 49152]
    path.write_bytes(frames.pcap([frames.v2(4, b"data", sport=port, psn=port) for port in ports]))
    packets = rd.read_packets(path, ["udp_sport", "opcode", "psn", "status"])
    assert packets["udp_sport"].tolist() == packets["psn"].tolist() == ports
    assert set(packets["opcode"]) == {4}
    assert set(packets["status"]) == {"ok"}
    found, traps, _ = compare(path)
    assert not found
    assert 1 in traps
