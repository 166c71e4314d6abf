"""Every table's columns: the contract between the stages, and with the user.

`PACKETS` also is the kernel's field table: a `Column` with a ``field`` is (word, shift, mask) of the row that
`roce_dissect.layout` describes. A test derives the same table from the Scapy layers' ``fields_desc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from roce_dissect import layout as row
from roce_dissect.errors import ArgumentError
from roce_dissect.terms import (
    Accepted,
    EndedBy,
    EventKind,
    IcrcStatus,
    MessageStatus,
    PairedBy,
    Recovery,
    Role,
    Standing,
    Status,
    Trigger,
    Tunnel,
    Vantage,
    Verb,
    Verdict,
)

__all__ = [
    "CONNECTIONS", "COUNTERS", "EPISODES", "EVENTS", "FILE_SHIFT", "FRAME_MASK", "HOSTS", "JUDGED", "LATENCY", "MADE_FROM",
    "MESSAGES", "PACKETS", "PER_DIRECTION", "STREAMS", "TIMELINE", "TRACKED", "Column", "packet_columns",
]  # fmt: skip

#: A frame's key is ``file << FILE_SHIFT | frame``: one integer names a frame among several files, in order.
FILE_SHIFT = 40
FRAME_MASK = (1 << FILE_SHIFT) - 1

U1, U2, U3, U4, U6, U8 = (1 << 8 * n for n in (1, 2, 3, 4, 6, 8))


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        The specification's word in snake case.
    dtype : str
        NumPy dtype of the values where they are present; ``str`` for text, ``address`` for codes into the hosts table
        that print as addresses.
    meaning : str
        One line for people, with the unit.
    unit : str
        ``ns``, ``bytes``, ``packets`` ... or empty.
    wireshark : str
        Display filter field of the same value, or empty.
    field : tuple of (int, int, int), optional
        Word, shift and mask in the kernel's row.
    needs : int
        Presence bits: the value is missing unless all of them are set.
    any_of : int
        Presence bits of which one is enough.
    terms : type of IntEnum, optional
        Vocabulary of a coded column.
    """

    name: str
    dtype: str
    meaning: str
    unit: str = ""
    wireshark: str = ""
    field: tuple[int, int, int] | None = None
    needs: int = 0
    any_of: int = 0
    terms: type[IntEnum] | None = None


def _table(*columns: Column) -> dict[str, Column]:
    return {column.name: column for column in columns}


_IP = row.HAS_IPV4 | row.HAS_IPV6 | row.HAS_GRH
_HIGH = 32  # shift of what stands in the upper half of a word

#: One row per RoCE frame.
PACKETS = _table(
    Column("file", "uint16", "index of the file, from 0"),
    Column("frame", "int64", "frame number in its file, from 1", "", "frame.number"),
    Column("time_ns", "int64", "capture time since the epoch, UTC", "ns", "frame.time_epoch", (row.TIME, 0, U8 - 1)),
    Column("wire_len", "uint32", "frame length on the wire", "bytes", "frame.len", (row.LENGTHS, 0, U4 - 1)),
    Column("cap_len", "uint32", "frame length in the capture", "bytes", "frame.cap_len", (row.LENGTHS, _HIGH, U4 - 1)),
    Column("status", "uint8", "how far the packet could be decoded", "", "", (row.STATE, 0, 255), terms=Status),
    Column("present", "uint32", "bit mask of the headers that were found", "", "", (row.STATE, _HIGH, U4 - 1)),
    Column("version", "uint8", "RoCE version, 1 or 2; 0: native InfiniBand", "", "", (row.STATE, 8, 255)),
    Column("eth_dst", "uint64", "destination MAC address", "", "eth.dst", (row.ETH, 16, U6 - 1), row.HAS_ETH),
    Column("eth_src", "uint64", "source MAC address", "", "eth.src", (row.ETH + 1, 16, U6 - 1), row.HAS_ETH),
    Column("vlan_id", "uint16", "VLAN of the first tag", "", "vlan.id", (row.VLAN, 0, 4095), row.HAS_VLAN),
    Column("pcp", "uint8", "priority of the first tag", "", "vlan.priority", (row.VLAN, 13, 7), row.HAS_VLAN),
    Column("vlan2_id", "uint16", "VLAN of the second tag", "", "vlan.id", (row.VLAN, 16, 4095), row.HAS_VLAN2),
    Column("tunnel", "uint8", "innermost tunnel that the packet came in", "", "", (row.TUNNEL, 0, 255), terms=Tunnel),
    Column("tunnels", "uint8", "how many tunnels it came in", "", "", (row.TUNNEL, 8, 255)),
    Column("vni", "uint32", "VNI of VXLAN or GENEVE, VSID of NVGRE, key of gretap: the innermost", "", "vxlan.vni", (row.TUNNEL, _HIGH, U4 - 1), row.HAS_VNI),
    Column("session", "uint16", "ERSPAN session", "", "erspan.spanid", (row.TUNNEL, 16, U2 - 1), row.HAS_SESSION),
    Column("gre_seq", "uint32", "sequence number of GRE or ERSPAN", "", "gre.sequence_number", (row.GRE_SEQ, 0, U4 - 1), row.HAS_GRE_SEQ),
    Column("outer_src", "address", "source of the outermost IP header", "", "ip.src", (row.OUTER, _HIGH, U4 - 1), row.HAS_OUTER_IP),
    Column("outer_dst", "address", "destination of the outermost IP header", "", "ip.dst", (row.OUTER, 0, U4 - 1), row.HAS_OUTER_IP),
    Column("slid", "uint16", "source LID of native InfiniBand", "", "infiniband.lrh.slid", (row.LRH, 0, U2 - 1), row.HAS_LRH),
    Column("dlid", "uint16", "destination LID", "", "infiniband.lrh.dlid", (row.LRH, _HIGH, U2 - 1), row.HAS_LRH),
    Column("vl", "uint8", "virtual lane", "", "infiniband.lrh.vl", (row.LRH, 60, 15), row.HAS_LRH),
    Column("sl", "uint8", "service level", "", "infiniband.lrh.sl", (row.LRH, 52, 15), row.HAS_LRH),
    Column("src", "address", "source: IP address, GID or LID", "", "ip.src", (row.HOSTS, _HIGH, U4 - 1), any_of=_IP | row.HAS_LRH),
    Column("dst", "address", "destination: IP address, GID or LID", "", "ip.dst", (row.HOSTS, 0, U4 - 1), any_of=_IP | row.HAS_LRH),
    Column("dscp", "uint8", "DSCP", "", "ip.dsfield.dscp", (row.NET, 58, 63), any_of=_IP),
    Column("ecn", "uint8", "ECN: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE", "", "ip.dsfield.ecn", (row.NET, 56, 3), any_of=_IP),
    Column("ttl", "uint8", "TTL or hop limit", "", "ip.ttl", (row.NET, 48, 255), any_of=_IP),
    Column("ip_id", "uint16", "IPv4 identification", "", "ip.id", (row.NET, _HIGH, U2 - 1), row.HAS_IPV4),
    Column(
        "flow_label", "uint32", "flow label of IPv6 or GRH", "", "ipv6.flow", (row.NET, 0, 0xFFFFF),
        any_of=row.HAS_IPV6 | row.HAS_GRH,
    ),
    Column("ip_len", "uint16", "IPv4 total, or IPv6 or GRH payload length", "bytes", "ip.len", (row.CHECK, _HIGH, U2 - 1), any_of=_IP),
    Column("udp_sport", "uint16", "UDP source port", "", "udp.srcport", (row.UDP, 48, U2 - 1), row.HAS_UDP),
    Column("udp_dport", "uint16", "UDP destination port", "", "udp.dstport", (row.UDP, 32, U2 - 1), row.HAS_UDP),
    Column("udp_len", "uint16", "UDP length", "bytes", "udp.length", (row.UDP, 16, U2 - 1), row.HAS_UDP),
    Column("opcode", "uint8", "BTH opcode", "", "infiniband.bth.opcode", (row.BTH, 56, 255), row.HAS_BTH),
    Column("operation", "str", "name of the opcode", needs=row.HAS_BTH),
    Column("se", "uint8", "solicited event", "", "infiniband.bth.se", (row.BTH, 55, 1), row.HAS_BTH),
    Column("mig_req", "uint8", "migration request", "", "infiniband.bth.m", (row.BTH, 54, 1), row.HAS_BTH),
    Column("pad_count", "uint8", "pad behind the payload", "bytes", "infiniband.bth.padcnt", (row.BTH, 52, 3), row.HAS_BTH),
    Column("tver", "uint8", "transport header version", "", "infiniband.bth.tver", (row.BTH, 48, 15), row.HAS_BTH),
    Column("p_key", "uint16", "partition key", "", "infiniband.bth.p_key", (row.BTH, 32, U2 - 1), row.HAS_BTH),
    Column("fecn", "uint8", "forward congestion notification", "", "", (row.BTH, 31, 1), row.HAS_BTH),
    Column("becn", "uint8", "backward congestion notification", "", "", (row.BTH, 30, 1), row.HAS_BTH),
    Column("dest_qp", "uint32", "destination QP", "", "infiniband.bth.destqp", (row.BTH, 0, U3 - 1), row.HAS_BTH),
    Column("ack_req", "uint8", "acknowledge request", "", "infiniband.bth.a", (row.BTH + 1, 31, 1), row.HAS_BTH),
    Column("psn", "uint32", "packet sequence number", "", "infiniband.bth.psn", (row.BTH + 1, 0, U3 - 1), row.HAS_BTH),
    Column(
        "va", "uint64", "virtual address of RETH or AtomicETH", "", "infiniband.reth.va", (row.RETH, 0, U8 - 1),
        any_of=row.HAS_RETH | row.HAS_ATOMIC_ETH,
    ),
    Column(
        "r_key", "uint32", "remote key of RETH or AtomicETH", "", "infiniband.reth.r_key", (row.RETH + 1, _HIGH, U4 - 1),
        any_of=row.HAS_RETH | row.HAS_ATOMIC_ETH,
    ),
    Column("dma_len", "uint32", "DMA length of RETH", "bytes", "infiniband.reth.dmalen", (row.RETH + 1, 0, U4 - 1), row.HAS_RETH),
    Column("syndrome", "uint8", "AETH syndrome", "", "infiniband.aeth.syndrome", (row.ACK, 56, 255), row.HAS_AETH),
    Column("msn", "uint32", "message sequence number of AETH", "", "infiniband.aeth.msn", (row.ACK, _HIGH, U3 - 1), row.HAS_AETH),
    Column("imm_data", "uint32", "immediate data", "", "infiniband.immdt", (row.ACK, 0, U4 - 1), row.HAS_IMMDT),
    Column("inv_r_key", "uint32", "remote key to invalidate (IETH)", "", "infiniband.ieth", (row.KEYS, 0, U4 - 1), row.HAS_IETH),
    Column("q_key", "uint32", "queue key of DETH", "", "infiniband.deth.q_key", (row.DETH, _HIGH, U4 - 1), row.HAS_DETH),
    Column("src_qp", "uint32", "source QP of DETH", "", "infiniband.deth.srcqp", (row.DETH, 0, U3 - 1), row.HAS_DETH),
    Column(
        "swap_add_data", "uint64", "swap or add operand of AtomicETH", "", "infiniband.atomiceth.swapdt",
        (row.ATOMIC, 0, U8 - 1), row.HAS_ATOMIC_ETH,
    ),
    Column(
        "compare_data", "uint64", "compare operand of AtomicETH", "", "infiniband.atomiceth.cmpdt",
        (row.ATOMIC + 1, 0, U8 - 1), row.HAS_ATOMIC_ETH,
    ),
    Column(
        "orig_data", "uint64", "original value of AtomicAckETH", "", "infiniband.atomicacketh.origremdt",
        (row.ATOMIC_ACK, 0, U8 - 1), row.HAS_ATOMIC_ACK_ETH,
    ),
    Column("xrc_srq", "uint32", "shared receive queue of XRCETH", "", "", (row.KEYS, _HIGH, U3 - 1), row.HAS_XRCETH),
    Column("ee_context", "uint32", "end-to-end context of RDETH", "", "infiniband.rdeth.eecnxt", (row.RDETH, _HIGH, U3 - 1), row.HAS_RDETH),
    Column("feth", "uint32", "FETH as a number", "", "", (row.RDETH, 0, U4 - 1), row.HAS_FETH),
    Column("payload_len", "uint32", "payload by the length fields, without pad and ICRC", "bytes", "", (row.PAYLOAD, _HIGH, U4 - 1), row.HAS_BTH),
    Column("payload_offset", "uint32", "where decoding stopped: the payload's first byte in the frame", "bytes", "", (row.PAYLOAD, 0, U4 - 1)),
    Column("icrc", "uint32", "ICRC as zlib.crc32 gives it (little-endian on the wire)", "", "infiniband.invariant.crc", (row.CHECK, 0, U4 - 1), row.HAS_ICRC),
    # -- from looking at whole packets
    Column("icrc_status", "uint8", "what the ICRC says", terms=IcrcStatus),
    Column("standing", "uint8", "what part the packet takes in the flow tables", terms=Standing),
    # -- from the tracker
    Column("stream", "int32", "row of the streams table, -1: none"),
    Column("role", "uint8", "what the packet is on its connection", terms=Role),
    Column("psn_ext", "int64", "PSN unwrapped to 64 bits, -1: none"),
    Column("verdict", "uint8", "what the packet is to the capture point", terms=Verdict),
    Column("accepted", "uint8", "what the responder made of it", terms=Accepted),
    Column("missing_before", "uint32", "PSNs before it that did not pass here", "packets"),
)  # fmt: skip

#: Columns of `PACKETS` that are made of a decoded one of another name.
MADE_FROM = {"file": "frame_key", "frame": "frame_key", "operation": "opcode"}
#: Columns of `PACKETS` that are judged over whole packets, between decoding and tracking.
JUDGED = ("icrc_status", "standing")
#: Columns of `PACKETS` that the tracker fills in.
TRACKED = ("stream", "role", "psn_ext", "verdict", "accepted", "missing_before")

_FIGURES = (
    Column("packets", "int64", "packets of any role", "packets"),
    Column("bytes", "int64", "frames on the wire", "bytes"),
    Column("payload_bytes", "int64", "payload of all packets, resent ones too", "bytes"),
    Column("goodput_bytes", "int64", "payload that was new to the capture point and met no QP in error", "bytes"),
    Column("first_file", "uint16", "file of the first packet"),
    Column("first_frame", "int64", "frame of the first packet"),
    Column("first_time_ns", "int64", "time of the first packet", "ns"),
    Column("last_file", "uint16", "file of the last packet"),
    Column("last_frame", "int64", "frame of the last packet"),
    Column("last_time_ns", "int64", "time of the last packet", "ns"),
    Column("requests", "int64", "requests", "packets"),
    Column("responses", "int64", "responses", "packets"),
    Column("gaps", "int64", "requests with verdict gap", "packets"),
    Column("missing_packets", "int64", "PSNs that those gaps left open", "packets"),
    Column("late_packets", "int64", "requests with verdict late", "packets"),
    Column("resent_packets", "int64", "requests with verdict resent", "packets"),
    Column("copies", "int64", "requests with verdict copy", "packets"),
    Column(
        "changed_requests", "int64", "requests sent again as another operation: the sender numbered anew", "packets"
    ),
    Column("episodes", "int64", "episodes: acts of going back, or of late delivery"),
    Column("timeouts", "int64", "episodes that a timeout triggered"),
    Column("most_retries", "int64", "episodes in a row from the same PSN without progress, at most"),
    Column("stall_ns", "int64", "time without progress in those episodes", "ns"),
    Column("unseen_packets", "int64", "PSNs that the responder has and the capture lacks", "packets"),
    Column("response_gaps", "int64", "READ responses that did not pass here", "packets"),
    Column("acks", "int64", "ACKs", "packets"),
    Column("duplicate_acks", "int64", "ACKs that acknowledged nothing new", "packets"),
    Column("ack_regressions", "int64", "of these, ACKs for a lower PSN than an earlier answer", "packets"),
    Column("coalesced_acks", "int64", "ACKs that ended more than one message", "packets"),
    Column("replayed_responses", "int64", "READ responses and atomic acknowledges that came again", "packets"),
    Column("zero_credit_acks", "int64", "ACKs that grant no credit for a further message", "packets"),
    Column("implied_naks", "int64", "answers beyond an unanswered READ or atomic", "packets"),
    Column("naks", "int64", "NAKs of any code", "packets"),
    Column("rnr_naks", "int64", "RNR NAKs", "packets"),
    Column("cnps", "int64", "congestion notification packets", "packets"),
    Column("ce_packets", "int64", "packets marked CE", "packets"),
    Column("duplicate_request", "int64", "requests that the responder had already", "packets"),
    Column("out_of_seq_request", "int64", "episodes out of sequence at the responder"),
    Column("messages", "int64", "messages that ended, complete or not"),
    Column("complete_messages", "int64", "of these, the ones answered in full"),
    Column("most_messages", "int64", "messages (or parts of them, with a hole between) outstanding at once, at most"),
    Column("most_reads", "int64", "READs and atomics outstanding at once, at most"),
    Column("most_packets", "int64", "PSNs sent and not acknowledged at once, at most", "packets"),
    Column("busy_ns", "int64", "time with something outstanding", "ns"),
    Column("idle_ns", "int64", "time between its messages with nothing outstanding: the application's", "ns"),
)

#: One row per direction.
STREAMS = _table(
    Column("stream", "int32", "row number, from 0"),
    Column("src", "address", "source"),
    Column("dst", "address", "destination"),
    Column("vni", "uint32", "VNI or VSID of the tunnel that it came in, missing without"),
    Column("dest_qp", "uint32", "destination QP"),
    Column("src_qp", "uint32", "source QP: of the DETH, or the paired stream's destination QP"),
    Column("life", "int32", "which use of the QP number, from 1"),
    Column("version", "uint8", "RoCE version"),
    Column("transport", "str", "RC, UC, UD, CNP ..."),
    Column("udp_sport", "uint16", "UDP source port of the first packet, missing for RoCE v1"),
    Column("mtu", "uint32", "path MTU, from the CM or from payloads, missing where neither told it", "bytes"),
    Column("connection", "int32", "row of the connections table, 0: none"),
    Column("paired_by", "str", "evidence for the pairing", terms=PairedBy),
    Column("confirmed", "bool", "the responder answered, so the model of it counts"),
    Column("psn_mismatch", "bool", "the responder never expected any of its PSNs"),
    Column("qp_error", "bool", "a NAK ended the QP"),
    Column("ended_by", "str", "what ended it within the capture", terms=EndedBy),
    Column("ack_timeout", "uint8", "local ACK timeout t, 4.096 us x 2^t, as the REQ told, missing without it"),
    Column("timeout_estimate", "uint8", "the same, estimated from retries, missing without any"),
    Column("timeout_samples", "int64", "retries that the estimate rests on"),
    Column(
        "msn_messages",
        "int64",
        "messages that the responder completed between its first and last answer, by their MSN, missing without any",
    ),
    Column(
        "least_answer_ns", "int64", "from a message's last packet to its answer, at least, missing without any", "ns"
    ),
    Column("least_reaction_ns", "int64", "from a NAK to the requester's reaction, at least, missing without any", "ns"),
    *_FIGURES,
)

_ENDS = ("a", "b")
_BOTH_WAYS = ("a_to_b", "b_to_a")
#: Figures of each direction that the connections table repeats.
PER_DIRECTION = tuple(column for column in _FIGURES if not column.name.startswith(("first_", "last_")))

#: Two streams that belong together, one alone, or a CM exchange alone. ``a`` is the end that was seen sending first.
CONNECTIONS = _table(
    Column("connection", "int32", "number, from 1, in the order of their first frames"),
    Column("version", "uint8", "RoCE version"),
    Column("transport", "str", "RC, UC, RD or XRC; CNP where nothing else was seen"),
    Column("vni", "uint32", "VNI or VSID of the tunnel that it came in, missing without"),
    *(Column(f"{end}_address", "address", f"address of end {end}") for end in _ENDS),
    *(Column(f"{end}_qp", "uint32", f"QP of end {end}, missing where it was never named") for end in _ENDS),
    Column("life", "int32", "which use of the QP numbers, from 1"),
    Column("paired_by", "str", "evidence for the pairing", terms=PairedBy),
    Column("confidence", "float64", "how sure the pairing is, 0 to 1"),
    Column("ended_by", "str", "what ended it within the capture", terms=EndedBy),
    Column("vantage", "str", "where the capture point lies, from the timing of answers", terms=Vantage),
    Column("first_file", "uint16", "file of the first frame"),
    Column("first_frame", "int64", "first frame"),
    Column("last_file", "uint16", "file of the last frame"),
    Column("last_frame", "int64", "last frame"),
    Column("first_time_ns", "int64", "time of the first packet", "ns"),
    Column("last_time_ns", "int64", "time of the last packet", "ns"),
    Column("stall_ns", "int64", "stall of both directions", "ns"),
    Column("resent_packets", "int64", "resent packets of both directions", "packets"),
    Column("a_to_b_stream", "int32", "stream from a to b, -1: none"),
    Column("b_to_a_stream", "int32", "stream from b to a, -1: none"),
    *(
        Column(f"{way}_{column.name}", column.dtype, f"{column.meaning}, {way.replace('_', ' ')}", column.unit)
        for way in _BOTH_WAYS
        for column in PER_DIRECTION
    ),
)

#: One row per thing that happened.
EVENTS = _table(
    Column("kind", "uint8", "what happened", terms=EventKind),
    Column("connection", "int32", "row of the connections table, 0: none"),
    Column("stream", "int32", "stream of the frame, -1: none"),
    Column("file", "uint16", "file of the first frame"),
    Column("frame", "int64", "first frame", "", "frame.number"),
    Column("last_file", "uint16", "file of the last frame"),
    Column("last_frame", "int64", "last frame of an episode or a run of marks"),
    Column("time_ns", "int64", "time of the first frame", "ns"),
    Column("duration_ns", "int64", "from the first to the last frame", "ns"),
    Column("psn", "int64", "PSN it is about, -1: none", "", "infiniband.bth.psn"),
    Column("count", "int64", "packets or PSNs: missing, resent, marked, unseen", "packets"),
    Column("stall_ns", "int64", "resend: time since the last progress", "ns"),
    Column("value", "int64", "NAK: syndrome; resend: how many were late; CM: local communication id; REJ: reason"),
    Column("trigger", "str", "resend: its cause; empty for all else", terms=Trigger),
    Column("cause_file", "uint16", "file of the frame that led to it, missing where none is known"),
    Column(
        "cause_frame",
        "int64",
        "frame that led to it: NAK: what it answers; resend: its trigger, missing where none is known",
    ),
    Column("cause_ns", "int64", "time since that frame, missing where none is known", "ns"),
)

#: One row per episode: an act of going back and sending again, or of late delivery.
EPISODES = _table(
    Column("episode", "int64", "number, from 1, in the order of their first frames"),
    Column("connection", "int32", "row of the connections table, 0: none"),
    Column("stream", "int32", "stream of the requests"),
    Column("trigger", "str", "its cause", terms=Trigger),
    Column("trigger_file", "uint16", "file of the frame that triggered it, missing where no frame did"),
    Column("trigger_frame", "int64", "frame that triggered it, missing where no frame did", "", "frame.number"),
    Column("file", "uint16", "file of its first frame"),
    Column("frame", "int64", "first frame", "", "frame.number"),
    Column("last_file", "uint16", "file of its last frame"),
    Column("last_frame", "int64", "last frame", "", "frame.number"),
    Column("time_ns", "int64", "time of the first frame", "ns"),
    Column("duration_ns", "int64", "from the first to the last frame", "ns"),
    Column("psn", "int64", "PSN of the first frame", "", "infiniband.bth.psn"),
    Column("packets", "int64", "requests that did not advance the stream", "packets"),
    Column("bytes", "int64", "their payload", "bytes"),
    Column("late_packets", "int64", "of these, seen here for the first time", "packets"),
    Column(
        "arrived_packets", "int64", "of these, what the responder had already, missing where nothing tells", "packets"
    ),
    Column("recovery", "str", "what was sent again", terms=Recovery),
    Column("retry", "int64", "which one in a row from the same PSN without progress, from 1; 0: reordering"),
    Column(
        "wait_ns",
        "int64",
        "since the first frame's message was sent last, or, not known, since the stream's previous request",
        "ns",
    ),
    Column(
        "reaction_ns",
        "int64",
        "from the triggering frame to the first frame, missing where no frame triggered it",
        "ns",
    ),
    Column("stall_ns", "int64", "time without progress up to the last frame", "ns"),
    Column(
        "drew_nak", "bool", "reordering: the responder answered it with a NAK, as go-back-N does; missing for all else"
    ),
    Column("extent_packets", "int64", "PSNs by which the first frame came too late", "packets"),
    Column("extent_ns", "int64", "time since the gap that it fills, missing where it fills none", "ns"),
)

#: One row per verb.
MESSAGES = _table(
    Column("connection", "int32", "row of the connections table, 0: none"),
    Column("stream", "int32", "stream of its requests"),
    Column("verb", "str", "what it does", terms=Verb),
    Column("status", "str", "complete, or why not", terms=MessageStatus),
    Column(
        "whole",
        "bool",
        "its first and its last packet passed here, and all between, and they are no more than its DMA length",
    ),
    Column("file", "uint16", "file of its first frame"),
    Column("frame", "int64", "first frame", "", "frame.number"),
    Column("last_file", "uint16", "file of its last request frame"),
    Column("last_frame", "int64", "last request frame that passed for the first time", "", "frame.number"),
    Column("psn", "uint32", "first PSN", "", "infiniband.bth.psn"),
    Column("last_psn", "uint32", "last PSN, of a READ that of its last response", "", "infiniband.bth.psn"),
    Column("packets", "int64", "request packets, each counted once", "packets"),
    Column(
        "bytes",
        "int64",
        "payload of these; of a READ what it asks for, missing where that was cut; of an atomic 8",
        "bytes",
    ),
    Column("dma_len", "uint32", "DMA length of the RETH, missing without one", "bytes", "infiniband.reth.dmalen"),
    Column("time_ns", "int64", "time of the first frame", "ns"),
    Column("last_time_ns", "int64", "time of the last request frame", "ns"),
    Column("answer_first_file", "uint16", "READ: file of the first response, missing without one"),
    Column("answer_first_frame", "int64", "READ: first response, missing without one", "", "frame.number"),
    Column("answer_first_time_ns", "int64", "READ: time of the first response, missing without one", "ns"),
    Column("answer_file", "uint16", "file of the answer that ended it, missing without one"),
    Column(
        "answer_frame",
        "int64",
        "answer that ended it: ACK, last response, or NAK; missing without one",
        "",
        "frame.number",
    ),
    Column("answer_time_ns", "int64", "time of that answer, missing without one", "ns"),
    Column("latency_ns", "int64", "from the first frame to that answer, missing without one", "ns"),
    Column("answer_packets", "int64", "READ: responses, each counted once", "packets"),
    Column("resends", "int64", "of its packets, sent again before it ended", "packets"),
    Column("rnr_naks", "int64", "RNR NAKs it met", "packets"),
    Column("syndrome", "uint8", "of the NAK that ended it, missing without one", "", "infiniband.aeth.syndrome"),
    Column("va", "uint64", "virtual address, missing without RETH or AtomicETH", "", "infiniband.reth.va"),
    Column("r_key", "uint32", "remote key, missing without RETH or AtomicETH", "", "infiniband.reth.r_key"),
    Column("imm_data", "uint32", "immediate data, missing without", "", "infiniband.immdt"),
    Column("inv_r_key", "uint32", "remote key to invalidate, missing without", "", "infiniband.ieth"),
)

#: One row per stream and time bin in which something passed or was outstanding.
TIMELINE = _table(
    Column("connection", "int32", "row of the connections table, 0: none"),
    Column("stream", "int32", "row of the streams table"),
    Column("time_ns", "int64", "beginning of the bin", "ns"),
    Column("interval_ns", "int64", "width of the bin", "ns"),
    Column("packets", "int64", "packets of any role", "packets"),
    Column("bytes", "int64", "frames on the wire", "bytes"),
    Column("goodput_bytes", "int64", "payload that was new to the capture point", "bytes"),
    Column("resent_packets", "int64", "requests with verdict resent", "packets"),
    Column("late_packets", "int64", "requests with verdict late", "packets"),
    Column("naks", "int64", "NAKs of any code", "packets"),
    Column("rnr_naks", "int64", "RNR NAKs", "packets"),
    Column("cnps", "int64", "congestion notification packets", "packets"),
    Column("ce_packets", "int64", "packets marked CE", "packets"),
    Column("most_messages", "int64", "messages outstanding at once, at most"),
    Column("most_reads", "int64", "READs and atomics outstanding at once, at most"),
    Column("most_packets", "int64", "PSNs of outstanding messages at once, at most", "packets"),
)

#: One row per verb and size class: latency of complete messages.
LATENCY = _table(
    Column("verb", "str", "what they do", terms=Verb),
    Column(
        "most_bytes",
        "int64",
        "size class: at most so many bytes, and more than half of it (1: none or one); a power of two",
        "bytes",
    ),
    Column("messages", "int64", "complete messages, first and last packet seen, whose size and latency are known"),
    Column("least_ns", "int64", "shortest latency", "ns"),
    Column("p50_ns", "int64", "median, within 2 %", "ns"),
    Column("p90_ns", "int64", "90th percentile, within 2 %", "ns"),
    Column("p99_ns", "int64", "99th percentile, within 2 %", "ns"),
    Column("p999_ns", "int64", "99.9th percentile, within 2 %", "ns"),
    Column("most_ns", "int64", "longest latency", "ns"),
    Column("most_connection", "int32", "connection of the longest"),
    Column("most_file", "uint16", "file of the longest"),
    Column("most_frame", "int64", "first frame of the longest", "", "frame.number"),
)

HOSTS = _table(
    Column("host", "int32", "code of the host, from 1"),
    Column("address", "str", "IP address, GID or LID"),
    Column("sent_packets", "int64", "RoCE packets it sent", "packets"),
    Column("received_packets", "int64", "RoCE packets it received", "packets"),
    Column("qps", "int32", "its QPs that received packets"),
)

#: Counter names of Linux rxe, then of mlx5, that packets alone can rebuild.
COUNTERS = _table(
    Column("sent_pkts", "int64", "RoCE packets sent", "packets"),
    Column(
        "rcvd_pkts", "int64", "RoCE packets received, save damaged ones and those that met a QP in error", "packets"
    ),
    Column("duplicate_request", "int64", "requests that it had already", "packets"),
    Column("out_of_seq_request", "int64", "episodes of requests out of sequence"),
    Column("rcvd_rnr_err", "int64", "RNR NAKs received", "packets"),
    Column("send_rnr_err", "int64", "RNR NAKs sent", "packets"),
    Column("rcvd_seq_err", "int64", "NAKs 0x60 received that acknowledged a part of their message (rxe)", "packets"),
    Column("retry_exceeded_err", "int64", "QPs that gave up after their last retry"),
    Column("retry_rnr_exceeded_err", "int64", "QPs that gave up after their last RNR retry"),
    Column("out_of_sequence", "int64", "requests beyond the expected PSN (mlx5)", "packets"),
    Column("packet_seq_err", "int64", "NAKs 0x60 received", "packets"),
    Column("implied_nak_seq_err", "int64", "answers received beyond an unanswered READ or atomic", "packets"),
    Column("local_ack_timeout_err", "int64", "timeouts that made it send again"),
    Column("req_remote_access_errors", "int64", "NAKs 0x62 received", "packets"),
    Column("rnr_nak_retry_err", "int64", "RNR NAKs received (mlx5)", "packets"),
    Column("out_of_buffer", "int64", "requests that found no receive (mlx5): RNR NAKs sent", "packets"),
    Column("np_cnp_sent", "int64", "CNPs sent", "packets"),
    Column("rp_cnp_handled", "int64", "CNPs received", "packets"),
    Column("np_ecn_marked_roce_packets", "int64", "packets received with CE", "packets"),
    Column("rx_icrc_encapsulated", "int64", "packets received with a wrong ICRC", "packets"),
)


def packet_columns(names: Sequence[str] | None = None) -> list[Column]:
    """Columns of `PACKETS` by name, in the order asked for, each once, where it is first named; all of them for None.

    Raises
    ------
    ArgumentError
        A name that does not exist; the message lists what does.
    """
    if names is None:
        return list(PACKETS.values())
    unknown = [name for name in dict.fromkeys(names) if name not in PACKETS]
    if unknown:
        raise ArgumentError(f"no such column: {', '.join(unknown)} (there are: {', '.join(PACKETS)})")
    return [PACKETS[name] for name in dict.fromkeys(names)]
