"""Where tshark is known to err: differences of these kinds say nothing about our decoding.

Each was looked into by hand once; `trap_of_value`, `trap_of_frame` and `trap_of_row` recognise it by the packet's own
headers, never by the value that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roce_dissect.analysis.wireshark import FIELDS, Row, Value, is_tunnelled, layers_of
from roce_dissect.columns import PACKETS
from roce_dissect.spec.headers import BTH_SIZE, EXTENDED_SIZE, ICRC_SIZE
from roce_dissect.spec.net import PORT_ROCE_V2
from roce_dissect.spec.opcodes import Opcode, Transport

__all__ = ["NEEDED", "TRAPS", "Trap", "trap_of_frame", "trap_of_row", "trap_of_value"]


@dataclass(frozen=True, slots=True)
class Trap:
    """A known error of tshark, or a thing that it does differently on purpose.

    Parameters
    ----------
    code : str
        For programs.
    sentence : str
        Why tshark cannot be asked.
    seen_with : tuple of str
        Versions of Wireshark that do it: 4.0.17 was run, of 4.4.5 a published list of known errors says so.
    """

    code: str
    sentence: str
    seen_with: tuple[str, ...]


def _table(*traps: Trap) -> dict[str, Trap]:
    return {trap.code: trap for trap in traps}


_HERE = ("4.0.17",)
_BOTH = (*_HERE, "4.4.5")

TRAPS = _table(
    Trap(
        "lower_port",
        "tshark tries the dissector of the lower port first, so the port of another protocol (69 is TFTP) hides the "
        "InfiniBand headers.",
        _BOTH,
    ),
    Trap(
        "unknown_opcode",
        "tshark does not know the opcode (CNP 0x81 is one) and calls all behind the BTH vendor data, the ICRC too.",
        _BOTH,
    ),
    Trap("dc_opcodes", "tshark takes the opcodes of RD, 0x40 to 0x5f, for NVIDIA DC and shifts their headers.", _BOTH),
    Trap("flush", "tshark does not know FLUSH and ATOMIC WRITE, or reads the FETH one bit off.", _BOTH),
    Trap("xrc", "tshark decodes no extended header of XRC.", _BOTH),
    Trap(
        "short_datagram",
        "The UDP datagram has no room for BTH and ICRC; tshark reads a BTH from it all the same.",
        _HERE,
    ),
    Trap(
        "icrc_as_header",
        "The datagram ends before the extended header that its opcode asks for; tshark reads the ICRC for the header.",
        _HERE,
    ),
    Trap("source_port", "tshark calls a packet RoCE for its source port alone; we do where its ICRC is right.", _HERE),
    Trap(
        "icmp_quote", "tshark decodes the packet that an ICMP error quotes; that one did not pass here itself.", _HERE
    ),
    Trap("fragment", "Of the first fragment of a datagram tshark takes the last four bytes for the ICRC.", _HERE),
    Trap(
        "short_frame",
        "The frame ends before the packet in it does; tshark takes the last four bytes that are there for the ICRC.",
        _HERE,
    ),
    Trap(
        "management",
        "tshark takes whatever goes to QP 0 or 1 for a management datagram of 256 bytes, the ICRC behind those.",
        _HERE,
    ),
    Trap(
        "contradicting_lengths",
        "The lengths of IP, UDP and BTH contradict each other: what such a packet holds is a matter of opinion.",
        _HERE,
    ),
    Trap(
        "ip_length_zero",
        "IP says length 0, as segmentation offload does: tshark shows IPv4's from the frame, and nothing behind IPv6.",
        _HERE,
    ),
    Trap(
        "cut_udp",
        "The capture ends within the UDP header: tshark shows the part that is there, we show a header whole or not at "
        "all.",
        _HERE,
    ),
    Trap("erspan_ip", "tshark does not decode an ERSPAN III payload without Ethernet header (frame type 2).", _HERE),
    Trap(
        "time_limits",
        "A record without time is at 0 for us, one after the year 2262 at its end: tshark shows none, or the whole.",
        _HERE,
    ),
    Trap("erf_record", "Of an ERF record tshark shows time and lengths as the ERF header has them.", _HERE),
)

#: Our columns that the conditions look at.
NEEDED = (
    "status", "wire_len", "tunnel", "ip_len", "udp_sport", "udp_dport", "udp_len", "opcode", "dest_qp", "pad_count",
    "payload_len", "payload_offset",
)  # fmt: skip

_ALL_EXTENDED = sum(EXTENDED_SIZE)  # each key is one bit
_INFINIBAND = frozenset(name for name, fields in FIELDS.items() if fields[0].startswith("infiniband."))
_EXTENDED = frozenset(name for name in FIELDS if (PACKETS[name].needs | PACKETS[name].any_of) & _ALL_EXTENDED)
_BEHIND_BTH = _EXTENDED | {"icrc"}
_LAST_TIME = (1 << 63) - 1
_OF_THE_RECORD = frozenset({"time_ns", "wire_len", "cap_len"})
#: Opcodes that tshark 4.0 names, without those of RD.
_NAMED = frozenset({*range(0x15), 0x16, 0x17, *range(0x20, 0x2C), 0x64, 0x65})
_FLUSHES = (Opcode["RC_FLUSH"], Opcode["RC_ATOMIC_WRITE"])
_UDP_HEADER = 8
_SMALLEST_UDP = _UDP_HEADER + BTH_SIZE + ICRC_SIZE


def trap_of_value(name: str, ours: Mapping[str, Value], row: Row) -> str | None:
    """Why tshark cannot be asked about this column of this packet.

    Parameters
    ----------
    name : str
        A column of which the two values differ.
    ours : mapping of str to value
        At least `NEEDED` and the column itself.
    row : Row
        tshark's row of the frame.

    Returns
    -------
    str or None
        A key of `TRAPS`; None: it can be asked, and one of the two is wrong.
    """
    layers = layers_of(row["frame.protocols"])
    if name == "time_ns" and (ours[name] == _LAST_TIME or not row.get("frame.time_epoch")):
        return "time_limits"
    if name in _OF_THE_RECORD:
        return "erf_record" if "erf" in layers else None
    if "infiniband" not in layers and _lower_port(ours):
        # another dissector had the payload; where it found a tunnel in it, the network's fields are made up, too
        made_up = ours["tunnel"] == "none" and is_tunnelled(layers)
        return "lower_port" if made_up or name in _INFINIBAND else None
    if name == "ip_len" and ours["ip_len"] == 0:
        return "ip_length_zero"
    if name.startswith("udp_") and ours["status"] == "cut" and ours["udp_len"] is None:
        return "cut_udp"
    if name not in _INFINIBAND:
        return None
    return _of_transport(name, ours, row) or ("contradicting_lengths" if ours["status"] == "malformed" else None)


def _of_transport(name: str, ours: Mapping[str, Value], row: Row) -> str | None:
    """The trap of a value behind UDP or GRH."""
    if not row.get("infiniband.bth.opcode"):
        return None
    opcode = int(row["infiniband.bth.opcode"].partition("|")[0])
    udp_lengths = row.get("udp.length", "")
    udp_length = int(udp_lengths.rpartition("|")[2]) if udp_lengths else 1 << 16
    if ours["opcode"] is None:
        return "short_datagram" if ours["status"] == "malformed" and udp_length < _SMALLEST_UDP else None
    if opcode & 0xE0 == Transport.RD and name in _BEHIND_BTH:
        return "dc_opcodes"
    if opcode in _FLUSHES and name in _BEHIND_BTH:
        return "flush"
    if opcode & 0xE0 == Transport.XRC and name in _EXTENDED:
        return "xrc"
    if name == "icrc" and opcode not in _NAMED:
        return "unknown_opcode"
    read_twice = name == "icrc" or ours[name] is None
    if name in _BEHIND_BTH and read_twice and ours["payload_len"] == 0 and udp_length == _SMALLEST_UDP:
        return "icrc_as_header"
    return _of_icrc(ours, row) if name == "icrc" else None


def _of_icrc(ours: Mapping[str, Value], row: Row) -> str | None:
    """The trap of an ICRC that tshark looks for elsewhere."""
    if _more_fragments(row):
        return "fragment"
    if ours["dest_qp"] in (0, 1):
        return "management"
    parts = [ours[part] for part in ("payload_offset", "payload_len", "pad_count", "wire_len")]
    offset, payload, pad, wire = (part if isinstance(part, int) else 0 for part in parts)
    return "short_frame" if offset + payload + pad + ICRC_SIZE > wire else None


def _more_fragments(row: Row) -> bool:
    """Whether the innermost IP header, or any of IPv6, says that more of the datagram follows."""
    flags = (row.get(name, "").rpartition("|")[2] for name in ("ip.flags.mf", "ipv6.fraghdr.more"))
    return any(flag in ("1", "True") for flag in flags)


def _lower_port(ours: Mapping[str, Value]) -> bool:
    source, destination = ours["udp_sport"], ours["udp_dport"]
    if not isinstance(source, int) or not isinstance(destination, int):
        return False
    return source < destination or destination < source == PORT_ROCE_V2


def trap_of_frame(ours: Mapping[str, Value]) -> str | None:
    """Why tshark has no row for a frame that we call RoCE: a key of `TRAPS`, or None.

    Parameters
    ----------
    ours : mapping of str to value
        At least `NEEDED`.
    """
    if ours["tunnel"] == "erspan3":
        return "erspan_ip"
    if ours["ip_len"] == 0:
        return "ip_length_zero"
    return "contradicting_lengths" if ours["status"] == "malformed" else None


def trap_of_row(row: Row, ports: frozenset[int] = frozenset()) -> str | None:
    """Why tshark calls a frame RoCE that we do not: a key of `TRAPS`, or None.

    Parameters
    ----------
    row : Row
        tshark's row of the frame.
    ports : frozenset of int
        UDP destination ports of RoCE v2 beside 4791.
    """
    layers = layers_of(row["frame.protocols"])
    if "icmp" in layers or "icmpv6" in layers:
        return "icmp_quote"
    destination = row.get("udp.dstport", "").split("|")[-1]
    if destination and int(destination) not in ports | {PORT_ROCE_V2}:
        return "source_port"
    return None
