# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""PSN tracker: packets in order -> verdicts, state per stream, sparse events.

One source, two forms: compiled by Cython, or interpreted as it stands. A plain next request costs one look-up and a few
additions; everything else goes to small functions. The rules are those of `docs/semantics.md`; this file only says how.

PSNs are unwrapped: 24 bits on the wire become integers that never wrap, beginning at 2**24 so that differences stay
positive. All integers are signed 64-bit. Where C would wrap and Python would not (the hash), the source masks.
"""

from __future__ import annotations

import cython

COMPILED = cython.compiled

if not cython.compiled:  # compiled: the same names are C enums in states.pxd, and the class is in responder.pxd
    from roce_dissect.flows.responder import Responder
    from roce_dissect.flows.states import *


@cython.final
@cython.cclass
class Tracker(Responder):
    """The rules of `docs/semantics.md` over the tables of its ancestors."""

    # -- requests -----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def learn_mtu(self, stream: cython.Py_ssize_t, payload: cython.longlong) -> cython.int:
        """FIRST and MIDDLE packets carry one path MTU."""
        pair: cython.Py_ssize_t = self.streams[stream, PAIR]
        if payload >= LEAST_MTU:
            self.streams[stream, MTU] = payload
            if payload > self.pairs[pair, PAIR_MTU]:
                self.pairs[pair, PAIR_MTU] = payload
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def read_mtu(self, stream: cython.Py_ssize_t) -> cython.longlong:
        """MTU for a READ's range: the CM's, of the stream, of its peer (the responses), of the host pair; 0: none."""
        mtu: cython.longlong = self.streams[stream, CM_MTU]
        if mtu == 0:
            mtu = self.streams[stream, MTU]
        if mtu == 0 and self.streams[stream, PEER] != 0:
            mtu = self.streams[self.streams[stream, PEER] - 1, MTU]
        if mtu == 0:
            mtu = self.pairs[self.streams[stream, PAIR], PAIR_MTU]
        return mtu

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def note_identification(
        self, stream: cython.Py_ssize_t, identification: cython.longlong, psn: cython.longlong
    ) -> cython.int:
        """Set `order`: whether a request was sent after (1) or before (-1) the latest one, by its IPv4 identification.

        0: nothing tells. Only where a host counts its identifications up, as plain requests have shown.
        """
        step: cython.longlong = (identification - self.streams[stream, LAST_ID]) & 0xFFFF
        if psn == self.streams[stream, NEXT] & 0xFFFFFF:
            if 0 < step < ID_STEP:
                self.streams[stream, ID_STEPS] += 1
            else:
                self.streams[stream, ID_BREAKS] += 1
            self.streams[stream, LAST_ID] = identification
        elif self.streams[stream, ID_STEPS] > ORDERLY * (self.streams[stream, ID_BREAKS] + 1):
            self.order = -1
            if 0 < step < 0x8000:
                self.order = 1
                self.streams[stream, LAST_ID] = identification
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def is_copy(self, stream: cython.Py_ssize_t, psn: cython.longlong, fingerprint: cython.longlong) -> cython.bint:
        """Whether the very same packet passed within the window; counts it as a twin anyhow, and remembers it."""
        key: cython.longlong = (cython.cast(cython.longlong, stream) << 24) + psn + 1
        at: cython.Py_ssize_t = (psn + stream * 61) & (self.recent.shape[0] - 1)
        same: cython.bint = False
        if (
            self.recent[at, RECENT_KEY] == key
            and self.recent[at, RECENT_PRINT] == fingerprint
            and self.streams[stream, ID_VARIES] != 0
        ):
            self.counts[TWINS] += 1
            same = 0 <= self.time - self.recent[at, RECENT_TIME] <= COPY_WINDOW_NS
        self.recent[at, RECENT_KEY] = key
        self.recent[at, RECENT_PRINT] = fingerprint
        self.recent[at, RECENT_TIME] = self.time
        return same

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2, check=False)
    def new_life(self, old: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A new stream in place of `old`, -1 where there is no room. Its peer's life ends with it."""
        last: cython.Py_ssize_t = self.slots.shape[0] - 1
        qp: cython.longlong = self.streams[old, KEY_QP]
        source: cython.longlong = self.streams[old, KEY_SOURCE]
        slot: cython.Py_ssize_t = self.slot_of(self.streams[old, KEY_HOSTS], qp, source) & last
        stream: cython.Py_ssize_t
        peer: cython.Py_ssize_t = self.streams[old, PEER] - 1
        if self.counts[STREAMS_USED] >= self.streams.shape[0]:
            return -1
        while self.slots[slot] != old + 1:
            slot = (slot + 1) & last
        self.close_episode(old, False)
        self.end_all(old)
        stream = self.enter_stream(self.streams[old, KEY_HOSTS], qp, source, slot, self.streams[old, LIFE] + 1)
        self.streams[old, FLAGS] |= EXPIRED
        self.forget_holes(old, self.streams[old, NEXT])
        if peer >= 0:
            self.streams[peer, FLAGS] |= EXPIRED
        return stream

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2, check=False)
    def next_life_if_due(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.Py_ssize_t:
        """The stream itself, or a new life where this request cannot belong to it; -1 where that found no room."""
        ahead: cython.longlong = self.distance(psn, self.streams[stream, NEXT])
        fits: cython.bint
        if self.streams[stream, FLAGS] & STARTED == 0 or 0 <= ahead <= self.streams[stream, SLACK]:
            return stream
        fits = ahead < IMPOSSIBLE and (
            ahead > -IMPOSSIBLE or self.streams[stream, NEXT] + ahead >= self.streams[stream, READ_PSN] > 0
        )
        if self.streams[stream, FLAGS] & CLOSED:
            fits = fits and ahead < 0 and self.streams[stream, NEXT] + ahead >= self.streams[stream, FIRST_PSN]
        if fits:
            return stream
        return self.new_life(stream)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def judge(
        self,
        stream: cython.Py_ssize_t,
        psn: cython.longlong,
        span: cython.longlong,
        slack: cython.longlong,
        opcode: cython.int,
        copy: cython.bint,
        payload: cython.longlong,
        volume: cython.longlong,
    ) -> cython.longlong:
        """A request that is not plainly next. Returns verdict | accepted << 8; sets `extended`, `missing`, `message`.

        `volume` is what the message counts: the payload, or what a READ asks for.
        """
        kind: cython.int = cython.cast(cython.int, self.classes[opcode & 255])
        verdict: cython.longlong = VERDICT_NEW
        accepted: cython.longlong
        ahead: cython.longlong
        before: cython.longlong = self.streams[stream, SLACK]
        sent_time: cython.longlong
        self.hole_time = 0
        if self.streams[stream, FLAGS] & STARTED == 0:
            self.streams[stream, FLAGS] |= STARTED
            self.streams[stream, OPCODE] = opcode  # the first packet may have been a CNP
            psn += 0x1000000
            self.streams[stream, FIRST_PSN] = psn
            self.streams[stream, EXPECTED] = psn
            self.streams[stream, NEXT] = psn
            self.streams[stream, ACKED] = psn
            verdict = VERDICT_FIRST
        elif self.streams[stream, FLAGS] & ANNOUNCED:
            verdict = VERDICT_FIRST
        self.streams[stream, FLAGS] &= ~ANNOUNCED
        ahead = self.distance(psn, self.streams[stream, NEXT])
        psn = self.streams[stream, NEXT] + ahead
        self.extended = psn
        if 0 < ahead <= before:  # inside what the last READ may have taken
            if self.streams[stream, EXPECTED] == self.streams[stream, NEXT]:
                self.streams[stream, EXPECTED] = psn
        elif ahead > 0:
            verdict = VERDICT_GAP
            self.missing = ahead - before
            self.streams[stream, GAPS] += 1
            self.streams[stream, MISSING] += self.missing
        elif ahead < 0:
            verdict = VERDICT_COPY if copy else VERDICT_RESENT
            # a READ of unknown range may fill more of it
            if self.streams[stream, HOLE] != 0 and self.fill_hole(stream, psn, psn + span + slack):
                verdict = VERDICT_LATE
        if ahead >= 0:
            self.close_episode(stream, True)
            if ahead == 0 and self.streams[stream, FLAGS] & CAUSED and self.streams[stream, CAUSE_PSN] == psn:
                # the first sight of what a NAK asked for: it was lost before this point, and so was all behind it
                self.add_to_episode(stream, psn, psn + span, True, payload, 0, False)
                self.note_progress(stream)
                self.clear_cause(stream)
            if verdict == VERDICT_GAP:
                self.emit(KIND_GAP, stream, psn - self.missing, self.missing, 0)
                self.open_hole(stream, max(psn - self.missing, min(self.streams[stream, EXPECTED], psn)), psn)
            if span > 1:
                self.streams[stream, READ_PSN] = psn
            self.streams[stream, NEXT] = psn + span
            self.streams[stream, SLACK] = slack
            self.streams[stream, ADVANCE_TIME] = self.time
            self.message = self.follow(stream, psn, psn + span, kind, slack, volume)
        elif verdict == VERDICT_COPY:
            self.streams[stream, COPIES] += 1
        else:
            if verdict == VERDICT_LATE:
                self.streams[stream, LATE_PACKETS] += 1
            else:
                self.streams[stream, RESENT_PACKETS] += 1
            sent_time = self.repeat(stream, psn, psn + span, kind, slack, verdict == VERDICT_LATE, volume)
            self.add_to_episode(stream, psn, psn + span, verdict == VERDICT_LATE, payload, sent_time, kind & ASKS != 0)
        if kind & UNRELIABLE:
            accepted = self.respond_unreliable(stream, psn, kind & STARTS != 0)
        else:
            accepted = self.respond(stream, psn, psn + span)
            if (
                self.streams[stream, NEXT] - self.streams[stream, EXPECTED] > PATIENCE
                and accepted == ACCEPTED_DISCARDED
                and ahead >= 0
            ):
                self.resume(stream, self.streams[stream, NEXT])
        if accepted == ACCEPTED_DUPLICATE and ahead < 0 and verdict != VERDICT_COPY:
            self.streams[stream, RUN_ARRIVED] += 1
        if accepted != ACCEPTED_QP_ERROR and (ahead >= 0 or verdict == VERDICT_LATE):
            self.streams[stream, GOODPUT_BYTES] += payload
        return verdict | accepted << 8

    # -- connection management: the caller has read the messages ------------------------------------------------------

    def announce(
        self,
        frame: cython.longlong,
        time: cython.longlong,
        hosts: cython.longlong,
        qp: cython.longlong,
        psn: cython.longlong,
        mtu: cython.longlong,
        timeout: cython.longlong,
    ):
        """A handshake told a stream, its first PSN, path MTU (0: not told) and local ACK timeout. `qp` is a KEY_QP.

        Returns the stream, -1: no room.
        """
        stream: cython.Py_ssize_t
        if not self.has_room():
            raise ValueError("no room for events")
        self.frame = frame
        self.time = time
        stream = self.find_stream(hosts, qp, 0, True)
        if stream < 0:
            return -1
        if self.streams[stream, PACKETS] > 0 or self.streams[stream, FLAGS] != 0:
            stream = self.new_life(stream)
            if stream < 0:
                return -1
            self.emit(KIND_NEW_LIFE, stream, psn, 0, self.streams[stream, LIFE])
        psn += 0x1000000
        self.streams[stream, FIRST_PSN] = psn
        self.streams[stream, EXPECTED] = psn
        self.streams[stream, NEXT] = psn
        self.streams[stream, ACKED] = psn
        self.streams[stream, CM_MTU] = mtu
        self.streams[stream, CM_TIMEOUT] = timeout + 1
        self.streams[stream, FLAGS] = STARTED | ANNOUNCED
        return stream

    def unite(self, one: cython.Py_ssize_t, other: cython.Py_ssize_t):
        """A handshake told that two streams are one connection."""
        used: cython.Py_ssize_t = self.counts[STREAMS_USED]
        if not (0 <= one < used and 0 <= other < used) or one == other:
            raise ValueError("no such streams")
        self.link(one, other, PAIRED_BY_CM)

    def close(self, hosts: cython.longlong, qp: cython.longlong):
        """A teardown named a stream by its KEY_QP. Returns it, -1 where it is not known."""
        stream: cython.Py_ssize_t = self.find_stream(hosts, qp, 0, False)
        if stream >= 0:
            self.streams[stream, FLAGS] |= CLOSED
        return stream

    # -- packets ------------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def note_damage(self, hosts: cython.longlong, qp: cython.longlong, psn: cython.longlong) -> cython.int:
        """A damaged packet takes no part, but the stream that it names, if there is one, has an event of it."""
        stream: cython.Py_ssize_t = self.find_stream(hosts, qp, 0, False)
        if stream >= 0:
            self.emit(KIND_DAMAGED, stream, psn, 1, 0)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def fits(
        self, hosts: cython.longlong, qp: cython.longlong, source: cython.longlong, psn: cython.longlong
    ) -> cython.bint:
        """Whether a doubtful packet continues an earlier one of the same key; remembers it for the next.

        The memory is that of recent requests, where its keys are negative. It may forget: then one more must come.
        """
        key: cython.longlong = self.slot_of(hosts, qp, source)
        at: cython.Py_ssize_t = key & (self.recent.shape[0] - 1)
        ahead: cython.longlong = (psn - self.recent[at, RECENT_PRINT]) & 0xFFFFFF
        known: cython.bint = self.recent[at, RECENT_KEY] == -1 - key
        self.recent[at, RECENT_KEY] = -1 - key
        self.recent[at, RECENT_PRINT] = psn
        return known and 0 < ahead <= FITTING

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def has_room(self) -> cython.bint:
        """Whether whatever a packet can cause finds room among the events and the messages that ended."""
        return (
            self.counts[EVENTS_USED] + MOST_EVENTS <= self.events.shape[0]
            and self.counts[ENDED_USED] + MOST_ENDS <= self.ended.shape[0]
        )

    def finish(self, first: cython.Py_ssize_t = 0):
        """Emit the episodes and messages that are still open, from stream `first` on.

        Returns the stream to go on with once the events were drained, or the number of streams when all is done.
        """
        stream: cython.Py_ssize_t = first
        if first < 0:
            raise ValueError("no such stream")
        while stream < self.counts[STREAMS_USED]:
            if not self.has_room():
                return stream
            self.close_episode(stream, False)
            self.close_marks(stream, CNP_RUN, KIND_CNP)
            self.close_marks(stream, CE_RUN, KIND_CE)
            self.end_all(stream)
            stream += 1
        return stream

    def track(
        self,
        frame_key: cython.const[cython.longlong][::1],
        time_ns: cython.const[cython.longlong][::1],
        src: cython.const[cython.uint][::1],
        dst: cython.const[cython.uint][::1],
        dest_qp: cython.const[cython.uint][::1],
        src_qp: cython.const[cython.uint][::1],
        psn: cython.const[cython.uint][::1],
        opcode: cython.const[cython.uchar][::1],
        syndrome: cython.const[cython.uchar][::1],
        payload_len: cython.const[cython.uint][::1],
        dma_len: cython.const[cython.uint][::1],
        wire_len: cython.const[cython.uint][::1],
        present: cython.const[cython.uint][::1],
        status: cython.const[cython.uchar][::1],
        version: cython.const[cython.uchar][::1],
        ecn: cython.const[cython.uchar][::1],
        ip_id: cython.const[cython.ushort][::1],
        icrc: cython.const[cython.uint][::1],
        udp_sport: cython.const[cython.ushort][::1],
        msn: cython.const[cython.uint][::1],
        vni: cython.const[cython.uint][::1],
        standing: cython.const[cython.uchar][::1],
        va: cython.const[cython.longlong][::1],
        r_key: cython.const[cython.uint][::1],
        imm_data: cython.const[cython.uint][::1],
        inv_r_key: cython.const[cython.uint][::1],
        start: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
        out_stream: cython.int[::1],
        out_role: cython.uchar[::1],
        out_psn_ext: cython.longlong[::1],
        out_verdict: cython.uchar[::1],
        out_accepted: cython.uchar[::1],
        out_missing: cython.uint[::1],
    ):
        """Track packets start <= i < stop, in order.

        `va` to `inv_r_key` may be empty, all together, and so may the six ``out`` columns. Returns where it stopped:
        `stop`, or less when events and ended messages must be drained first.
        """
        packet: cython.Py_ssize_t = start
        stream: cython.Py_ssize_t
        fresh: cython.Py_ssize_t
        kind: cython.int
        role: cython.int
        span: cython.longlong
        slack: cython.longlong
        mtu: cython.longlong
        number: cython.longlong
        payload: cython.longlong
        most_time: cython.longlong = 0x3FFFFFFFFFFFFFFF  # so that the difference of two times stays in range
        judged: cython.longlong
        volume: cython.longlong
        source: cython.longlong
        hosts: cython.longlong
        qp: cython.longlong
        fingerprint: cython.longlong
        copy: cython.bint
        refuses: cython.bint
        doubted: cython.bint
        has_out: cython.bint = out_stream.shape[0] > 1
        has_keys: cython.bint = va.shape[0] > 0
        if (
            start < 0
            or stop > psn.shape[0]
            or frame_key.shape[0] < stop
            or time_ns.shape[0] < stop
            or src.shape[0] < stop
            or dst.shape[0] < stop
            or dest_qp.shape[0] < stop
            or src_qp.shape[0] < stop
            or opcode.shape[0] < stop
            or syndrome.shape[0] < stop
            or payload_len.shape[0] < stop
            or dma_len.shape[0] < stop
            or wire_len.shape[0] < stop
            or present.shape[0] < stop
            or status.shape[0] < stop
            or version.shape[0] < stop
            or ecn.shape[0] < stop
            or ip_id.shape[0] < stop
            or icrc.shape[0] < stop
            or udp_sport.shape[0] < stop
            or msn.shape[0] < stop
            or vni.shape[0] < stop
            or standing.shape[0] < stop
            or (
                has_keys
                and (
                    va.shape[0] < stop or r_key.shape[0] < stop or imm_data.shape[0] < stop or inv_r_key.shape[0] < stop
                )
            )
        ):
            raise ValueError("columns shorter than the packets asked for")
        if has_out and (
            out_stream.shape[0] < stop
            or out_role.shape[0] < stop
            or out_psn_ext.shape[0] < stop
            or out_verdict.shape[0] < stop
            or out_accepted.shape[0] < stop
            or out_missing.shape[0] < stop
        ):
            raise ValueError("out columns shorter than the packets asked for")
        with cython.nogil:
            while packet < stop and self.has_room():
                kind = cython.cast(cython.int, self.classes[opcode[packet]])
                self.transport = opcode[packet] & 0xE0
                self.frame = frame_key[packet]
                self.time = max(-most_time, min(time_ns[packet], most_time))
                if self.time == 0:
                    self.time = 1  # in the books 0 is no time
                self.extended = -1
                self.missing = 0
                self.message = 0
                judged = 0
                role = ROLE_OTHER
                stream = -1
                number = psn[packet]
                hosts = (cython.cast(cython.longlong, src[packet]) << 32) | dst[packet]
                qp = dest_qp[packet]
                if present[packet] & HAS_VNI:
                    qp |= (cython.cast(cython.longlong, vni[packet]) + 1) << NETWORK_SHIFT
                if standing[packet] > STANDING_DOUBTFUL:
                    if standing[packet] == STANDING_DAMAGED:
                        self.note_damage(hosts, qp, number)
                elif (
                    present[packet] & HAS_BTH == 0
                    or (status[packet] > STATUS_CUT and status[packet] != STATUS_FRAGMENT)
                    or kind == 0
                ):
                    self.counts[FOREIGN] += 1  # no trustworthy BTH, or an opcode without a meaning
                else:
                    source = 0
                    doubted = False
                    if kind & DATAGRAM and present[packet] & HAS_DETH:
                        source = cython.cast(cython.longlong, src_qp[packet]) + 1
                    if src[packet] != 0 and dst[packet] != 0:  # 0: one of the hosts that found no room
                        stream = self.find_stream(hosts, qp, source, standing[packet] != STANDING_DOUBTFUL)
                        if stream < 0 and standing[packet] == STANDING_DOUBTFUL:
                            doubted = not self.fits(hosts, qp, source, number)
                            if not doubted:
                                stream = self.find_stream(hosts, qp, source, True)
                    if stream >= 0 and self.streams[stream, FLAGS] & EXPIRED:
                        stream = self.new_life(stream)
                    if (
                        kind & REQUEST
                        and stream >= 0
                        and (
                            self.streams[stream, FLAGS] != STARTED
                            or (number - self.streams[stream, NEXT]) & 0xFFFFFF != 0
                        )
                    ):
                        fresh = self.next_life_if_due(stream, number)
                        if fresh != stream and fresh >= 0:
                            self.emit(KIND_NEW_LIFE, fresh, number, 0, self.streams[fresh, LIFE])
                        stream = fresh
                    if doubted:
                        self.counts[FOREIGN] += 1
                    elif stream < 0:
                        self.counts[UNTRACKED] += 1
                if stream >= 0:
                    payload = payload_len[packet]
                    if kind & REQUEST:
                        role = ROLE_REQUEST
                    if self.streams[stream, PACKETS] == 0:
                        self.streams[stream, FIRST_FRAME] = self.frame
                        self.streams[stream, FIRST_TIME] = self.time
                        self.streams[stream, OPCODE] = opcode[packet]
                        self.streams[stream, VERSION] = version[packet]
                        self.streams[stream, SPORT] = udp_sport[packet]
                        self.streams[stream, ID_FIRST] = ip_id[packet]
                        self.streams[stream, BEGAN_UNPROVEN] = standing[packet] == STANDING_UNPROVEN
                    self.streams[stream, PACKETS] += 1
                    self.streams[stream, BYTES] += wire_len[packet]
                    self.streams[stream, PAYLOAD_BYTES] += payload
                    self.streams[stream, LAST_FRAME] = self.frame
                    self.streams[stream, LAST_TIME] = self.time
                    if ip_id[packet] != self.streams[stream, ID_FIRST]:
                        self.streams[stream, ID_VARIES] = 1
                    if ecn[packet] == ECN_CE:
                        self.streams[stream, CE_PACKETS] += 1
                        self.add_mark(stream, CE_RUN, KIND_CE)
                    if kind & FULL and payload != self.streams[stream, MTU]:
                        self.learn_mtu(stream, payload)
                    if kind & REQUEST:
                        self.streams[stream, REQUESTS] += 1
                        span = 1
                        slack = 0
                        volume = payload
                        if kind & ASKS:
                            volume = 8  # of an atomic
                        if kind & READ:
                            volume = 0
                            if present[packet] & HAS_RETH:
                                volume = dma_len[packet]
                            if present[packet] & HAS_RETH == 0:
                                slack = UNKNOWN_LENGTH_SLACK
                            elif dma_len[packet] > LEAST_MTU:
                                mtu = self.read_mtu(stream)
                                if mtu > 0:
                                    span = (cython.cast(cython.longlong, dma_len[packet]) + mtu - 1) // mtu
                                else:
                                    slack = (
                                        cython.cast(cython.longlong, dma_len[packet]) + LEAST_MTU - 1
                                    ) // LEAST_MTU - 1
                        copy = False
                        self.order = 0
                        if present[packet] & HAS_IPV4:
                            self.note_identification(stream, ip_id[packet], number)
                            fingerprint = cython.cast(cython.longlong, ip_id[packet]) << 32
                            if present[packet] & HAS_ICRC:
                                fingerprint |= icrc[packet]
                            copy = self.is_copy(stream, number, fingerprint)
                        if (
                            self.streams[stream, FLAGS] == STARTED
                            and self.streams[stream, NEXT] == self.streams[stream, EXPECTED]
                            and (number - self.streams[stream, NEXT]) & 0xFFFFFF == 0
                        ):
                            self.extended = self.streams[stream, NEXT]
                            if span > 1:
                                self.streams[stream, READ_PSN] = self.extended
                            self.streams[stream, NEXT] += span
                            self.streams[stream, EXPECTED] += span
                            self.streams[stream, SLACK] = slack
                            self.streams[stream, ADVANCE_TIME] = self.time
                            self.streams[stream, GOODPUT_BYTES] += payload
                            self.message = self.follow(stream, self.extended, self.extended + span, kind, slack, volume)
                            judged = VERDICT_NEW | ACCEPTED_YES << 8
                        else:
                            judged = self.judge(stream, number, span, slack, opcode[packet], copy, payload, volume)
                        self.streams[stream, REQUEST_TIME] = self.time
                        number = self.streams[stream, NEXT] - self.streams[stream, ACKED]
                        if number > self.streams[stream, MOST_PACKETS]:
                            self.streams[stream, MOST_PACKETS] = number
                    elif kind & RESPONSE:
                        role = ROLE_RESPONSE
                        self.streams[stream, RESPONSES] += 1
                        refuses = False
                        if kind & ACKNOWLEDGES and present[packet] & HAS_AETH:
                            refuses = (syndrome[packet] >> 5) & 1 != 0  # RNR NAK and NAK: bit 5 is set
                            if self.streams[stream, MSN_FIRST] == 0:
                                self.streams[stream, MSN_FIRST] = cython.cast(cython.longlong, msn[packet]) + 1
                                self.streams[stream, MSN_LAST] = msn[packet]
                            elif (msn[packet] - self.streams[stream, MSN_LAST]) & 0xFFFFFF < 0x800000:
                                self.streams[stream, MSN_LAST] = msn[packet]
                            self.note_answer(stream, number, kind, syndrome[packet])
                        else:
                            if kind & ACKNOWLEDGES:
                                self.counts[CUT_ANSWERS] += 1
                            self.hear(stream, number, kind, -1)
                        judged = self.judge_response(stream, number, opcode[packet], refuses, payload)
                    elif kind & DATAGRAM:
                        role = ROLE_MANAGEMENT
                        if dest_qp[packet] > 1:
                            role = ROLE_DATAGRAM
                            self.streams[stream, GOODPUT_BYTES] += payload
                            self.message = self.follow(stream, number, number + 1, kind, 0, payload)
                    elif kind & CONGESTION:
                        role = ROLE_CNP
                        self.streams[stream, CNPS] += 1
                        self.add_mark(stream, CNP_RUN, KIND_CNP)
                    if self.message != 0:
                        if present[packet] & HAS_RETH:
                            self.messages[self.message, M_DMA_LEN] = dma_len[packet]
                            self.messages[self.message, M_FLAGS] |= M_HAS_LENGTH
                        if has_keys and present[packet] & (HAS_RETH | HAS_ATOMIC_ETH | HAS_IMMDT | HAS_IETH):
                            self.note_keys(
                                present[packet], va[packet], r_key[packet], imm_data[packet], inv_r_key[packet]
                            )
                        if kind & UNRELIABLE:
                            self.settle_unreliable(stream, kind)
                if has_out:
                    out_stream[packet] = stream
                    out_role[packet] = role
                    out_psn_ext[packet] = self.extended
                    out_verdict[packet] = judged & 255
                    out_accepted[packet] = judged >> 8
                    out_missing[packet] = self.missing
                packet += 1
        return packet

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def note_keys(
        self,
        present: cython.uint,
        va: cython.longlong,
        r_key: cython.longlong,
        imm_data: cython.longlong,
        inv_r_key: cython.longlong,
    ) -> cython.int:
        """Keys, addresses and immediates of the packet at hand belong to `message`."""
        if present & (HAS_RETH | HAS_ATOMIC_ETH):
            self.messages[self.message, M_VA] = va
            self.messages[self.message, M_R_KEY] = r_key
            self.messages[self.message, M_FLAGS] |= M_HAS_RETH
        if present & HAS_IMMDT:
            self.messages[self.message, M_IMM] = imm_data
            self.messages[self.message, M_FLAGS] |= M_HAS_IMM
        elif present & HAS_IETH:
            self.messages[self.message, M_IMM] = inv_r_key
            self.messages[self.message, M_FLAGS] |= M_HAS_INV
        return 0
