"""The tracker's rows as the tables that `roce_dissect.columns` promises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from roce_dissect.columns import (
    CONNECTIONS,
    COUNTERS,
    HOSTS,
    LATENCY,
    PER_DIRECTION,
    STREAMS,
)
from roce_dissect.flows import states
from roce_dissect.flows.dataframes import known, place_columns, table_frame, term_names
from roce_dissect.flows.endings import ended_by, never_matched, timeout_estimates, vantages
from roce_dissect.flows.event_tables import episode_frame, event_frame, settled_events, trigger_counts
from roce_dissect.flows.flow_table import FlowTable
from roce_dissect.flows.handshake import Exchange
from roce_dissect.flows.latency import latency_columns
from roce_dissect.flows.pairing import pair_streams
from roce_dissect.spec.opcodes import Transport
from roce_dissect.terms import CONFIDENCE, EndedBy, PairedBy, Vantage, Verb

__all__ = ["Tables", "build_tables"]

#: Stream columns that are one word of the tracker's row as it stands.
_WORD = {
    "packets": states.PACKETS,
    "bytes": states.BYTES,
    "payload_bytes": states.PAYLOAD_BYTES,
    "goodput_bytes": states.GOODPUT_BYTES,
    "first_time_ns": states.FIRST_TIME,
    "last_time_ns": states.LAST_TIME,
    "requests": states.REQUESTS,
    "responses": states.RESPONSES,
    "gaps": states.GAPS,
    "missing_packets": states.MISSING,
    "late_packets": states.LATE_PACKETS,
    "resent_packets": states.RESENT_PACKETS,
    "copies": states.COPIES,
    "episodes": states.EPISODES,
    "timeouts": states.TIMEOUTS,
    "most_retries": states.MOST_RETRIES,
    "stall_ns": states.STALL,
    "unseen_packets": states.UNSEEN_PACKETS,
    "response_gaps": states.RESPONSE_GAPS,
    "acks": states.ACKS,
    "duplicate_acks": states.DUPLICATE_ACKS,
    "ack_regressions": states.ACK_REGRESSIONS,
    "changed_requests": states.CHANGED_REQUESTS,
    "coalesced_acks": states.COALESCED_ACKS,
    "replayed_responses": states.REPLAYED_RESPONSES,
    "zero_credit_acks": states.ZERO_CREDIT_ACKS,
    "implied_naks": states.IMPLIED_NAKS,
    "naks": states.NAKS,
    "rnr_naks": states.RNR_NAKS,
    "cnps": states.CNPS,
    "ce_packets": states.CE_PACKETS,
    "duplicate_request": states.DUPLICATE_REQUEST,
    "out_of_seq_request": states.OUT_OF_SEQ_REQUEST,
    "messages": states.MESSAGES_ENDED,
    "complete_messages": states.MESSAGES_COMPLETE,
    "life": states.LIFE,
}


#: The same, known only where the responder was heard: else nothing tells when a message was no longer outstanding.
_HEARD_WORD = {
    "most_messages": states.MOST_MESSAGES,
    "most_reads": states.MOST_READS,
    "most_packets": states.MOST_PACKETS,
    "busy_ns": states.BUSY_TIME,
    "idle_ns": states.IDLE_TIME,
}


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables of an analysis, as DataFrames with the columns of `roce_dissect.columns`."""

    streams: pd.DataFrame
    connections: pd.DataFrame
    events: pd.DataFrame
    episodes: pd.DataFrame
    latency: pd.DataFrame
    hosts: pd.DataFrame
    counters: pd.DataFrame


def build_tables(flows: FlowTable, addresses: list[str], end_time_ns: int | None = None) -> Tables:
    """Tables of what the flow table holds now.

    Parameters
    ----------
    flows : FlowTable
        It may go on being fed afterwards.
    addresses : list of str
        Printed address of each host code.
    end_time_ns : int, optional
        Time of the capture's last frame; default: of the last packet of any stream.
    """
    rows = flows.streams
    if end_time_ns is None:
        end_time_ns = int(rows[:, states.LAST_TIME].max()) if len(rows) else 0
    partner, evidence = pair_streams(rows)
    mismatch = never_matched(rows, partner)
    if mismatch.any():  # to their responder, even the first passage of each packet was a duplicate
        rows = rows.copy()
        rows[mismatch, states.DUPLICATE_REQUEST] = rows[mismatch, states.REQUESTS]
        rows[mismatch, states.OUT_OF_SEQ_REQUEST] = 0
    ends = _connection_ends(rows, partner, flows.handshakes.exchanges)
    of_stream = np.zeros(len(rows), np.int64)
    for way in ("ab", "ba"):
        named = ends[way] >= 0
        of_stream[ends[way][named]] = np.flatnonzero(named) + 1
    texts = np.array(addresses, object)
    ended = ended_by(rows, end_time_ns)
    streams = _stream_columns(rows, partner, evidence, ended, of_stream, texts) | {"psn_mismatch": mismatch}
    confirmed = np.asarray(streams["confirmed"])
    events = settled_events(flows.events, confirmed)
    triggers = trigger_counts(events, len(rows))
    # of a stream that nobody was heard to answer, only what is settled counts; the tracker's word may hold more
    streams["timeouts"] = np.where(confirmed, rows[:, states.TIMEOUTS], triggers["timeouts"])
    # a network that reorders makes waits too short
    orderly = (triggers["reorderings"] == 0) & (rows[:, states.COPIES] == 0)
    streams["timeout_estimate"] = timeout_estimates(rows, orderly)
    of_exchange = {int(number): row + 1 for row, number in enumerate(ends["exchange"]) if number >= 0}
    cm = np.array([list(one) for one in flows.handshakes.events], np.int64).reshape(-1, 5)
    vantage = vantages(rows, ends["ab"], ends["ba"], orderly)
    return Tables(
        table_frame(STREAMS, streams),
        table_frame(CONNECTIONS, _connection_columns(streams, ends, evidence, ended, vantage, texts)),
        event_frame(events, of_stream, cm, of_exchange),
        episode_frame(events, of_stream),
        _latency(flows, of_stream),
        table_frame(HOSTS, _host_columns(rows, texts)),
        _counters(rows, flows.damaged, confirmed, ended, texts),
    )


def _latency(flows: FlowTable, of_stream: np.ndarray) -> pd.DataFrame:
    columns = latency_columns(flows.latency)
    stream = columns.pop("stream")
    return table_frame(
        LATENCY,
        columns
        | {
            "verb": term_names(Verb, columns["verb"]),
            "most_connection": of_stream[stream] if len(of_stream) else stream,
            **place_columns("most", columns.pop("key")),
        },
    )


# -- streams -------------------------------------------------------------------------------------------------------


def _stream_columns(
    rows: np.ndarray,
    partner: np.ndarray,
    evidence: np.ndarray,
    ended: np.ndarray,
    of_stream: np.ndarray,
    texts: np.ndarray,
) -> dict[str, np.ndarray | pa.Array]:
    source, destination = rows[:, states.KEY_HOSTS] >> 32, rows[:, states.KEY_HOSTS] & 0xFFFFFFFF
    dest_qp = rows[:, states.KEY_QP] & 0xFFFFFF
    src_qp = np.where(rows[:, states.KEY_SOURCE] > 0, rows[:, states.KEY_SOURCE] - 1, -1)
    paired = partner >= 0
    src_qp[paired] = dest_qp[partner[paired]]
    answered = np.zeros(len(rows), bool)
    # what was cut before its AETH says nothing
    said = rows[:, states.ACKS] + rows[:, states.NAKS] + rows[:, states.RNR_NAKS]
    answered[paired] = said[partner[paired]] > 0
    mtu = np.where(rows[:, states.CM_MTU] > 0, rows[:, states.CM_MTU], rows[:, states.MTU])
    seen, version = rows[:, states.PACKETS] > 0, rows[:, states.VERSION]
    columns: dict[str, np.ndarray | pa.Array] = {name: rows[:, word] for name, word in _WORD.items()}
    columns |= {name: known(rows[:, word], answered) for name, word in _HEARD_WORD.items()}
    told = rows[:, states.CM_TIMEOUT]
    columns |= {
        "ended_by": term_names(EndedBy, ended),
        "ack_timeout": known(told - 1, told > 0),
        "timeout_samples": rows[:, states.TIMEOUT_SAMPLES],
        "msn_messages": _completed_by_msn(rows, partner),
        "least_answer_ns": _if_any(rows[:, states.LEAST_ANSWER]),
        "least_reaction_ns": _if_any(rows[:, states.LEAST_REACTION]),
        "stream": np.arange(len(rows)),
        "src": texts[source] if len(rows) else source.astype(object),
        "dst": texts[destination] if len(rows) else source.astype(object),
        "vni": _vni(rows[:, states.KEY_QP] >> states.NETWORK_SHIFT),
        "dest_qp": dest_qp,
        "src_qp": pa.array(src_qp, mask=src_qp < 0),
        "transport": _transport_names(rows[:, states.OPCODE]),
        "version": pa.array(version, mask=~seen),
        "udp_sport": pa.array(rows[:, states.SPORT], mask=version != 2),
        "mtu": pa.array(mtu, mask=mtu == 0),
        "connection": of_stream,
        "paired_by": term_names(PairedBy, evidence),
        "confirmed": answered,
        "qp_error": (rows[:, states.FLAGS] & states.DEAD) != 0,
        **place_columns("first", rows[:, states.FIRST_FRAME]),
        **place_columns("last", rows[:, states.LAST_FRAME]),
    }
    return columns


def _completed_by_msn(rows: np.ndarray, partner: np.ndarray) -> pa.Array:
    """Messages between the MSN of the first and of the latest answer to each stream."""
    other = rows[np.maximum(partner, 0)]
    first = other[:, states.MSN_FIRST]
    return known((other[:, states.MSN_LAST] - first + 1) & 0xFFFFFF, (partner >= 0) & (first > 0))


def _vni(network: np.ndarray) -> pa.Array:
    """VNIs of networks, which count from 1; 0 is none."""
    return known(network - 1, network > 0)


def _if_any(values: np.ndarray) -> pa.Array:
    return known(values, values > 0)


def _transport_names(opcodes: np.ndarray) -> np.ndarray:
    table = np.array(["other"] * 8, object)
    for transport in Transport:
        table[transport >> 5] = transport.name
    return table[(opcodes & 0xE0) >> 5]


# -- connections ---------------------------------------------------------------------------------------------------


def _connection_ends(rows: np.ndarray, partner: np.ndarray, exchanges: list[Exchange]) -> dict[str, np.ndarray]:
    """Streams, hosts and QPs of each connection, in the order of their first frames; -1 is unknown.

    End ``a`` sent the first frame, or the REQ where the CM set the connection up.
    """
    index = np.arange(len(rows))
    connected = (rows[:, states.OPCODE] & 0xE0) != Transport.UD
    # one packet, with nothing that makes it RoCE but its looks
    connected &= (rows[:, states.BEGAN_UNPROVEN] == 0) | (rows[:, states.PACKETS] > 1) | (partner >= 0)
    first_key, first_time = rows[:, states.FIRST_FRAME], rows[:, states.FIRST_TIME]
    last_key, last_time = rows[:, states.LAST_FRAME], rows[:, states.LAST_TIME]
    # streams are numbered as they were first seen, in time order also over several files (keys are not)
    ab = index[connected & ((partner < 0) | (index < partner))]
    ba = partner[ab]
    hosts = rows[ab, states.KEY_HOSTS]
    back = np.where(ba >= 0, ba, ab)
    ends_at = np.where(last_time[ab] >= last_time[back], ab, back)
    table = {
        "ab": ab,
        "ba": ba,
        "a": hosts >> 32,
        "b": hosts & 0xFFFFFFFF,
        "a_qp": np.where(ba >= 0, rows[back, states.KEY_QP] & 0xFFFFFF, -1),
        "b_qp": rows[ab, states.KEY_QP] & 0xFFFFFF,
        "network": rows[ab, states.KEY_QP] >> states.NETWORK_SHIFT,
        "first_key": first_key[ab],
        "first_time": first_time[ab],
        "last_key": last_key[ends_at],
        "last_time": last_time[ends_at],
        "exchange": np.full(len(ab), -1, np.int64),
        "version": np.maximum(rows[ab, states.VERSION], rows[back, states.VERSION]),
        "transport": np.full(len(ab), -1, np.int64),  # as the REQ told
    }
    table = _add_exchanges(table, exchanges)
    order = np.lexsort((table["first_key"], table["first_time"]))
    return {name: values[order] for name, values in table.items()}


def _add_exchanges(table: dict[str, np.ndarray], exchanges: list[Exchange]) -> dict[str, np.ndarray]:
    """CM exchanges: those with streams turn their connection so that ``a`` sent the REQ; the others are rows alone."""
    if not exchanges:
        return table
    where = {int(stream): number for way in ("ab", "ba") for number, stream in enumerate(table[way]) if stream >= 0}
    alone = []
    for number, exchange in enumerate(exchanges):
        row = where.get(exchange.a_to_b, -1) if exchange.a_to_b >= 0 else -1
        if row < 0:
            alone.append((number, exchange))
            continue
        table["exchange"][row] = number
        table["version"][row] = max(table["version"][row], exchange.version)
        table["transport"][row] = exchange.transport
        if table["ab"][row] != exchange.a_to_b:
            for one, other in (("ab", "ba"), ("a", "b"), ("a_qp", "b_qp")):
                table[one][row], table[other][row] = table[other][row], table[one][row]
        table["first_key"][row], table["first_time"][row] = exchange.frame_key, exchange.time_ns  # the REQ comes first
        if exchange.last_time_ns > table["last_time"][row]:
            table["last_key"][row], table["last_time"][row] = exchange.last_frame_key, exchange.last_time_ns
    rows = {
        "ab": [-1] * len(alone),
        "ba": [-1] * len(alone),
        "a": [one.a for _, one in alone],
        "b": [one.b for _, one in alone],
        "a_qp": [one.a_qp for _, one in alone],
        "b_qp": [one.b_qp for _, one in alone],
        "network": [one.network for _, one in alone],
        "first_key": [one.frame_key for _, one in alone],
        "first_time": [one.time_ns for _, one in alone],
        "last_key": [one.last_frame_key for _, one in alone],
        "last_time": [one.last_time_ns for _, one in alone],
        "exchange": [number for number, _ in alone],
        "version": [one.version for _, one in alone],
        "transport": [one.transport for _, one in alone],
    }
    return {name: np.concatenate([table[name], np.array(values, np.int64)]) for name, values in rows.items()}


def _connection_columns(
    streams: dict[str, np.ndarray | pa.Array],
    ends: dict[str, np.ndarray],
    evidence: np.ndarray,
    ended: np.ndarray,
    vantage: np.ndarray,
    texts: np.ndarray,
) -> dict[str, np.ndarray | pa.Array]:
    ways = {"a_to_b": ends["ab"], "b_to_a": ends["ba"]}
    count = len(ends["ab"])
    with_stream = {way: np.where(stream >= 0, stream, 0) for way, stream in ways.items()}

    def figure(name: str, way: str) -> np.ndarray:
        values = streams[name]
        if len(values) == 0:
            return np.zeros(count, np.int64)
        return np.where(ways[way] >= 0, np.asarray(values)[with_stream[way]], 0)

    def heard_figure(name: str, way: str) -> pa.Array:
        values = pa.array(streams[name])
        there = np.zeros(count, bool)
        number = np.zeros(count, np.int64)
        if len(values):
            there = np.asarray(values.is_valid())[with_stream[way]] & (ways[way] >= 0)
            number = np.asarray(values.fill_null(0))[with_stream[way]]
        return known(number, there)

    either = np.where(ways["a_to_b"] >= 0, ways["a_to_b"], ways["b_to_a"])
    alone = either < 0
    by = np.where(alone, PairedBy.CM, evidence[np.where(alone, 0, either)] if len(evidence) else PairedBy.CM)
    transports = [_text(streams["transport"], ways[way]) for way in ways]
    transport = np.where((transports[0] == "") | (transports[0] == "CNP"), transports[1], transports[0])
    transport = np.where(transport == "", transports[0], transport)
    told = ends["transport"]
    transport = np.where(told >= 0, _transport_names(np.maximum(told, 0)), transport)
    columns: dict[str, np.ndarray | pa.Array] = {
        "connection": np.arange(1, count + 1),
        "version": ends["version"],
        "transport": transport,
        "vni": _vni(ends["network"]),
        "a_address": texts[ends["a"]],
        "b_address": texts[ends["b"]],
        "a_qp": pa.array(ends["a_qp"], mask=ends["a_qp"] < 0),
        "b_qp": pa.array(ends["b_qp"], mask=ends["b_qp"] < 0),
        "life": np.maximum(np.maximum(figure("life", "a_to_b"), figure("life", "b_to_a")), 1),
        "paired_by": term_names(PairedBy, by),
        "confidence": np.array([CONFIDENCE[PairedBy(value)] for value in by.tolist()], np.float64),
        "ended_by": term_names(EndedBy, _end_of_connection(ways, ended)),
        "vantage": term_names(Vantage, vantage),
        **place_columns("first", ends["first_key"]),
        **place_columns("last", ends["last_key"]),
        "first_time_ns": ends["first_time"],
        "last_time_ns": ends["last_time"],
        "stall_ns": figure("stall_ns", "a_to_b") + figure("stall_ns", "b_to_a"),
        "resent_packets": figure("resent_packets", "a_to_b") + figure("resent_packets", "b_to_a"),
        "a_to_b_stream": ways["a_to_b"],
        "b_to_a_stream": ways["b_to_a"],
    }
    for way in ways:
        for column in PER_DIRECTION:
            take = heard_figure if column.name in _HEARD_WORD else figure
            columns[f"{way}_{column.name}"] = take(column.name, way)
    return columns


#: What to say of a connection whose directions ended differently: the first of these.
_GRAVEST = (EndedBy.NAK, EndedBy.RNR_RETRIES, EndedBy.RETRIES, EndedBy.TEARDOWN, EndedBy.NEW_LIFE)


def _end_of_connection(ways: dict[str, np.ndarray], ended: np.ndarray) -> np.ndarray:
    """The gravest end of the two directions."""
    chosen = [np.where(stream >= 0, ended[stream] if len(ended) else 0, 0) for stream in ways.values()]
    conditions = [(chosen[0] == end) | (chosen[1] == end) for end in _GRAVEST]
    return np.select(conditions, list(_GRAVEST), EndedBy.NOTHING)


def _text(values: np.ndarray | pa.Array, rows: np.ndarray) -> np.ndarray:
    """Text of chosen rows, empty where the row is -1."""
    if len(values) == 0:
        return np.full(len(rows), "", object)
    return np.where(rows >= 0, np.asarray(values)[np.where(rows >= 0, rows, 0)], "")


# -- hosts and counters --------------------------------------------------------------------------------------------


def _host_columns(rows: np.ndarray, texts: np.ndarray) -> dict[str, np.ndarray]:
    source, destination = rows[:, states.KEY_HOSTS] >> 32, rows[:, states.KEY_HOSTS] & 0xFFFFFFFF
    used = np.union1d(source, destination).astype(np.int64)
    addressed = np.unique(np.stack([destination, rows[:, states.KEY_QP]], axis=1), axis=0)[:, 0]
    return {
        "host": used,
        "address": texts[used],
        "sent_packets": _sum(source, rows[:, states.PACKETS], len(texts))[used],
        "received_packets": _sum(destination, rows[:, states.PACKETS], len(texts))[used],
        "qps": _sum(addressed, np.ones(len(addressed), np.int64), len(texts))[used],
    }


def _sum(host: np.ndarray, values: np.ndarray, hosts: int) -> np.ndarray:
    """Sum per host code, exact (bincount's weights would pass through floats)."""
    sums = np.zeros(hosts, np.int64)
    np.add.at(sums, host, values)
    return sums


def _counters(
    rows: np.ndarray, damaged: dict[tuple[int, int], int], sure: np.ndarray, ended: np.ndarray, texts: np.ndarray
) -> pd.DataFrame:
    """Counters per host address. What a model says of a responder that was never heard is left out."""
    ways = np.array(list(damaged), np.int64).reshape(-1, 2)
    wrong = np.array(list(damaged.values()), np.int64)
    source, destination = rows[:, states.KEY_HOSTS] >> 32, rows[:, states.KEY_HOSTS] & 0xFFFFFFFF
    used = np.union1d(np.union1d(source, destination), ways).astype(np.int64)
    sent = (np.concatenate([source, ways[:, 0]]), np.concatenate([rows[:, states.PACKETS], wrong]))
    places = {
        "sent_pkts": sent,
        "rcvd_pkts": (destination, rows[:, states.PACKETS] - rows[:, states.REFUSED_PACKETS]),
        "duplicate_request": (destination, np.where(sure, rows[:, states.DUPLICATE_REQUEST], 0)),
        "out_of_seq_request": (destination, np.where(sure, rows[:, states.OUT_OF_SEQ_REQUEST], 0)),
        "rcvd_rnr_err": (destination, rows[:, states.RNR_NAKS]),
        "send_rnr_err": (source, rows[:, states.RNR_NAKS]),
        "rcvd_seq_err": (destination, rows[:, states.NEW_SEQUENCE_NAKS]),
        "retry_exceeded_err": (source, ended == EndedBy.RETRIES),
        "retry_rnr_exceeded_err": (source, ended == EndedBy.RNR_RETRIES),
        "out_of_sequence": (destination, np.where(sure, rows[:, states.OUT_OF_SEQ_PACKETS], 0)),
        "packet_seq_err": (destination, rows[:, states.SEQUENCE_NAKS]),
        "implied_nak_seq_err": (destination, rows[:, states.IMPLIED_NAKS]),
        "local_ack_timeout_err": (source, np.where(sure, rows[:, states.TIMEOUTS], 0)),
        "req_remote_access_errors": (destination, rows[:, states.ACCESS_NAKS]),
        "rnr_nak_retry_err": (destination, rows[:, states.RNR_NAKS]),
        "out_of_buffer": (source, rows[:, states.RNR_NAKS]),
        "np_cnp_sent": (source, rows[:, states.CNPS]),
        "rp_cnp_handled": (destination, rows[:, states.CNPS]),
        "np_ecn_marked_roce_packets": (destination, rows[:, states.CE_PACKETS]),
        "rx_icrc_encapsulated": (ways[:, 1], wrong),
    }
    table = table_frame(COUNTERS, {name: _sum(*place, len(texts))[used] for name, place in places.items()})
    table.index = pd.Index(texts[used], name="address")
    return table
