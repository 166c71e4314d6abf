"""CM exchanges: which REQ belongs to which REP, and what the two of them tell about streams.

REQ and REP name the QPs and starting PSNs of both directions: packets to the REP's QP start at the REP's PSN, packets
to the REQ's QP at the REQ's (measured on real exchanges, both ways).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roce_dissect.spec.cm import CmMessage
from roce_dissect.terms import EventKind

if TYPE_CHECKING:
    from roce_dissect.decode.cm import Message
    from roce_dissect.flows.flow_table import FlowTable

__all__ = ["Exchange", "Handshakes"]

#: Exchanges kept; a capture with more is a storm, and the first ones tell its story.
MOST_EXCHANGES = 100_000
#: CM messages kept as events.
MOST_CM_EVENTS = 200_000

_EVENT = {
    CmMessage.REQ: EventKind.CM_REQ,
    CmMessage.REP: EventKind.CM_REP,
    CmMessage.RTU: EventKind.CM_RTU,
    CmMessage.REJ: EventKind.CM_REJ,
    CmMessage.DREQ: EventKind.CM_DREQ,
    CmMessage.DREP: EventKind.CM_DREP,
}


@dataclass(slots=True)
class Exchange:
    """One attempt to connect: ``a`` sent the REQ, ``b`` is its destination (host codes), ``network`` the VNI + 1."""

    frame_key: int
    time_ns: int
    a: int
    b: int
    a_id: int
    a_qp: int
    a_psn: int
    mtu: int
    version: int
    transport: int
    ack_timeout: int
    b_id: int = 0
    b_qp: int = -1
    a_to_b: int = -1
    b_to_a: int = -1
    last_frame_key: int = 0
    last_time_ns: int = 0
    closed: bool = False
    network: int = 0


@dataclass(slots=True)
class Handshakes:
    """All exchanges seen so far.

    Attributes
    ----------
    exchanges : list of Exchange
    events : list of tuple
        (kind, exchange or -1, frame key, time in ns, value), in order.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    events: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    left_out: int = 0
    _by_request: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    _by_reply: dict[tuple[int, int, int, int], int] = field(default_factory=dict)

    def see(self, message: Message, flows: FlowTable) -> None:
        """Take in the next message; tell the flow table what it means for streams."""
        if message.kind is CmMessage.REQ:
            number = self._request(message)
        else:
            number = self._find(message)
            if number >= 0:
                exchange = self.exchanges[number]
                exchange.last_frame_key, exchange.last_time_ns = message.frame_key, message.time_ns
                if message.kind is CmMessage.REP:
                    self._reply(number, message, flows)
        if message.kind in (CmMessage.DREQ, CmMessage.DREP):
            self._teardown(number, message, flows)
        value = message.reason if message.kind is CmMessage.REJ else message.local_id
        if len(self.events) < MOST_CM_EVENTS:
            self.events.append((int(_EVENT[message.kind]), number, message.frame_key, message.time_ns, value))
        else:
            self.left_out += 1

    def _teardown(self, number: int, message: Message, flows: FlowTable) -> None:
        """DREQ or DREP: both directions end. Of an exchange that is not known only the DREQ names a QP."""
        exchange = self.exchanges[number] if number >= 0 else None
        if exchange is not None and exchange.b_qp >= 0:
            if not exchange.closed:  # a repeated one may come when the QPs have their next life
                flows.close(exchange.a, exchange.b, exchange.b_qp, exchange.network)
                flows.close(exchange.b, exchange.a, exchange.a_qp, exchange.network)
                exchange.closed = True
        elif message.kind is CmMessage.DREQ:
            flows.close(message.src, message.dst, message.qpn, message.network)

    def _request(self, message: Message) -> int:
        """Enter a REQ; a repeated one belongs to the exchange that it repeats."""
        key = (message.network, message.src, message.dst, message.local_id)
        number = self._by_request.get(key, -1)
        if number >= 0:
            known = self.exchanges[number]
            if (known.a_qp, known.a_psn) == (message.qpn, message.starting_psn):
                known.last_frame_key, known.last_time_ns = message.frame_key, message.time_ns
                return number
        if len(self.exchanges) >= MOST_EXCHANGES:
            self.left_out += 1
            return -1
        self.exchanges.append(
            Exchange(
                message.frame_key,
                message.time_ns,
                message.src,
                message.dst,
                message.local_id,
                message.qpn,
                message.starting_psn,
                message.mtu,
                message.version,
                message.transport,
                message.ack_timeout,
                last_frame_key=message.frame_key,
                last_time_ns=message.time_ns,
                network=message.network,
            )
        )
        self._by_request[key] = len(self.exchanges) - 1
        return len(self.exchanges) - 1

    def _find(self, message: Message) -> int:
        """Exchange that a message other than a REQ belongs to, by the id of either end; -1 where it is not known."""
        forth = (message.network, message.src, message.dst)
        back = (message.network, message.dst, message.src)
        for table, key in (
            (self._by_request, (*back, message.remote_id)),  # from b: the remote id is a's
            (self._by_request, (*forth, message.local_id)),  # from a
            (self._by_reply, (*back, message.remote_id)),
            (self._by_reply, (*forth, message.local_id)),
        ):
            number = table.get(key, -1)
            if number >= 0:
                return number
        return -1

    def _reply(self, number: int, message: Message, flows: FlowTable) -> None:
        """A REP: both QPs and both starting PSNs are known now. Repeated, it says nothing new."""
        exchange = self.exchanges[number]
        if exchange.b_qp >= 0 or message.src != exchange.b:
            return
        exchange.b_id, exchange.b_qp = message.local_id, message.qpn
        self._by_reply[message.network, message.src, message.dst, message.local_id] = number
        exchange.a_to_b, exchange.b_to_a = flows.announce(
            message,
            exchange.a,
            exchange.b,
            (message.qpn, message.starting_psn),
            (exchange.a_qp, exchange.a_psn),
            exchange.mtu,
            exchange.ack_timeout,
        )
