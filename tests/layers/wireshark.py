"""Packets beside tshark's reading of them.

Traps of the oracle that are met here: extended headers of FLUSH, ATOMIC WRITE and XRC are "vendor data" to tshark 4.0;
all of 0x40-0x5f is NVIDIA's DC to it; it shows AtomicETH's address and key as RETH fields, some fields twice, the ICRC
big-endian, and the pad as data; sliced packets have no ICRC, whatever it shows.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from scapy.packet import Packet, Raw
from scapy.utils import RawPcapWriter

from roce_dissect.layers import AETH, BTH, DETH, GRH, IETH, LRH, RETH, AtomicAckETH, AtomicETH, ImmDt

#: Wireshark's field: layers that may hold it, our field.
TRANSPORT: dict[str, tuple[tuple, str]] = {
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
#: Fields of the layers below, for version 1 and native InfiniBand.
ROUTING: dict[str, tuple[tuple, str]] = {
    "grh.flowlabel": ((GRH,), "flow_label"),
    "grh.paylen": ((GRH,), "pay_len"),
    "grh.hoplmt": ((GRH,), "hop_limit"),
    "lrh.vl": ((LRH,), "vl"),
    "lrh.sl": ((LRH,), "sl"),
    "lrh.lnh": ((LRH,), "lnh"),
    "lrh.dlid": ((LRH,), "dlid"),
    "lrh.pktlen": ((LRH,), "pkt_len"),
    "lrh.slid": ((LRH,), "slid"),
    "variant.crc": ((LRH,), "vcrc"),
}
#: What tshark tries on a payload; where one fails, the ICRC is lost as well (trap 6).
HEURISTICS = (
    "eth_over_ib", "fc_infiniband", "iser_infiniband", "lnet_ib", "mellanox_eoib", "nvme_rdma", "rpcrdma_infiniband",
    "sdp_infiniband", "smb_direct_infiniband", "smcr_infiniband",
)  # fmt: skip
_HEXADECIMAL = {"immdt", "ieth"}
_BIG_ENDIAN = {"invariant.crc": 4, "variant.crc": 2}
#: What tshark makes vendor data of: its extended headers and its payload are not compared.
UNKNOWN_TO_TSHARK = {0x1C, 0x1D, 0x81, *range(0x40, 0x60), *range(0xA0, 0xC0)}


def write_native(path: Path, packets: list[bytes]) -> None:
    """Write native InfiniBand as ERF records of type 21: tshark 4.0 does not read link type 247."""
    header = struct.Struct(">QBBHHH")
    with RawPcapWriter(str(path), linktype=197) as writer:
        for packet in packets:
            writer.write(header.pack(0, 21, 4, header.size + len(packet), 0, len(packet)) + packet)


def read(path: Path, fields: dict = TRANSPORT) -> dict[int, dict[str, str]]:
    """By frame number: Wireshark's fields that are present, of all frames that tshark takes for InfiniBand."""
    command = ["tshark", "-n", "-r", str(path), "-Y", "infiniband", "-T", "fields", "-E", "occurrence=f"]
    for heuristic in HEURISTICS:
        command += ["--disable-heuristic", heuristic]
    command += ["-e", "frame.number"]
    names = [*fields, "data.data"]
    for name in names:
        command += ["-e", name if name == "data.data" else f"infiniband.{name}"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for line in lines:
        number, *values = line.split("\t")
        found[int(number)] = {name: value for name, value in zip(names, values, strict=True) if value}
    return found


def both(packet: Packet, theirs: dict[str, str], sliced: bool = False, fields: dict = TRANSPORT) -> tuple[dict, dict]:
    """A packet's fields, and tshark's: all that it has, but for the traps above. They are to be equal."""
    bth, theirs = packet[BTH], dict(theirs)
    if sliced:
        assert isinstance(bth.icrc, bytes)
        theirs.pop("invariant.crc", None)
        theirs.pop("data.data", None)
    ours = {}
    for name, (holders, field) in fields.items():
        value = next((packet[holder].getfieldval(field) for holder in holders if holder in packet), None)
        if value is not None and not isinstance(value, bytes):
            ours[name] = value
    if bth.opcode in UNKNOWN_TO_TSHARK:
        known = ("bth.", "grh.", "lrh.")
        ours = {name: value for name, value in ours.items() if name.startswith(known)}
        theirs = {name: value for name, value in theirs.items() if name.startswith(known)}
    for name, size in _BIG_ENDIAN.items():
        if name in ours:
            ours[name] = int.from_bytes(ours[name].to_bytes(size, "little"), "big")
    data = theirs.pop("data.data", None)
    read = {name: int(value, 16 if name in _HEXADECIMAL else 0) for name, value in theirs.items()}
    if data is not None:
        ours["data"], read["data"] = (bytes(packet[Raw].load) + bth.pad).hex(), data
    return ours, read
