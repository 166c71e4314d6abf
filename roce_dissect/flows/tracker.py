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

if not cython.compiled:  # compiled: the same names are C enums in states.pxd, and the class is in messages.pxd
    from roce_dissect.flows.messages import Messages
    from roce_dissect.flows.states import *


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def distance(psn: cython.longlong, reference: cython.longlong) -> cython.longlong:
    """Signed way from `reference` (unwrapped) to `psn` (24 bits or unwrapped)."""
    return ((psn - reference + 0x800000) & 0xFFFFFF) - 0x800000


@cython.final
@cython.cclass
class Tracker(Messages):
    """The rules of `docs/semantics.md` over the tables of its ancestors."""

    asked_frame: cython.longlong  # the frame that a NAK is about
    message: cython.longlong  # that the request at hand belongs to, 0: none is known

    # -- the responder -----------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def respond(self, stream: cython.Py_ssize_t, psn: cython.longlong, stop: cython.longlong) -> cython.longlong:
        """What a go-back-N responder makes of a request with PSNs psn <= x < stop: one NAK for each episode."""
        flags: cython.longlong = self.streams[stream, FLAGS]
        if flags & DEAD:
            self.streams[stream, REFUSED_PACKETS] += 1
            return ACCEPTED_QP_ERROR
        if psn == self.streams[stream, EXPECTED]:
            self.streams[stream, EXPECTED] = stop
            self.streams[stream, FLAGS] = flags & ~NAK_SENT
            return ACCEPTED_YES
        if self.streams[stream, BURST_EXPECTED] != self.streams[stream, EXPECTED]:
            self.streams[stream, BURST_EXPECTED] = self.streams[stream, EXPECTED]
            self.streams[stream, BURST_DUPLICATES] = self.streams[stream, DUPLICATE_REQUEST]
            self.streams[stream, BURST_OUT_OF_SEQ] = self.streams[stream, OUT_OF_SEQ_REQUEST]
        if psn < self.streams[stream, EXPECTED]:
            self.streams[stream, DUPLICATE_REQUEST] += 1
            return ACCEPTED_DUPLICATE
        self.streams[stream, OUT_OF_SEQ_PACKETS] += 1
        if flags & NAK_SENT:
            return ACCEPTED_DISCARDED
        self.streams[stream, FLAGS] = flags | NAK_SENT
        self.streams[stream, OUT_OF_SEQ_REQUEST] += 1
        self.streams[stream, OWED_NAKS] += 1
        return ACCEPTED_OUT_OF_SEQUENCE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def respond_unreliable(
        self, stream: cython.Py_ssize_t, psn: cython.longlong, starts: cython.bint
    ) -> cython.longlong:
        """UC: after a gap the rest of the message is lost; the next FIRST or ONLY is taken whatever its PSN."""
        if starts or (psn == self.streams[stream, EXPECTED] and self.streams[stream, FLAGS] & DROPPING == 0):
            self.streams[stream, EXPECTED] = psn + 1
            self.streams[stream, FLAGS] &= ~DROPPING
            return ACCEPTED_YES
        self.streams[stream, FLAGS] |= DROPPING
        return ACCEPTED_DISCARDED

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def find_peer(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.Py_ssize_t:
        """The stream whose requests a response with this PSN answers, plus 1: the only one that asked for it; or 0."""
        hosts: cython.longlong = self.streams[stream, KEY_HOSTS]
        source: cython.longlong = hosts >> 32
        reverse: cython.longlong = ((hosts - (source << 32)) << 32) | source
        network: cython.longlong = self.streams[stream, KEY_QP] >> NETWORK_SHIFT
        found: cython.Py_ssize_t = 0
        looked_at: cython.int = 0
        pair: cython.Py_ssize_t = self.streams[stream, PAIR]
        other: cython.Py_ssize_t = self.pairs[pair, PAIR_HEAD] - 1
        before: cython.Py_ssize_t = -1
        top: cython.longlong
        behind: cython.longlong
        while other >= 0 and looked_at < MOST_CANDIDATES:
            if self.streams[other, PEER] != 0 or self.streams[other, FLAGS] & EXPIRED:
                # never a candidate again: out of the list, so that it stays as short as what is still open
                if before >= 0:
                    self.streams[before, NEXT_IN_PAIR] = self.streams[other, NEXT_IN_PAIR]
                else:
                    self.pairs[pair, PAIR_HEAD] = self.streams[other, NEXT_IN_PAIR]
                other = self.streams[other, NEXT_IN_PAIR] - 1
                continue
            if (
                other != stream  # a host that talks to itself: both directions have the same hosts
                and self.streams[other, KEY_HOSTS] == reverse
                and self.streams[other, KEY_QP] >> NETWORK_SHIFT == network
                and self.streams[other, FLAGS] & STARTED
                and self.classes[self.streams[other, OPCODE] & 255] & UNRELIABLE == 0
            ):
                top = self.streams[other, NEXT] + self.streams[other, SLACK]
                behind = -distance(psn, top)
                if 0 < behind <= top - self.streams[other, FIRST_PSN]:
                    if found != 0:
                        return 0
                    found = other + 1
            looked_at += 1
            before = other
            other = self.streams[other, NEXT_IN_PAIR] - 1
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def link(self, one: cython.Py_ssize_t, other: cython.Py_ssize_t, evidence: cython.longlong) -> cython.int:
        """Make two streams the two directions of one connection."""
        answered: cython.longlong = self.streams[one, RESPONSE_NEXT]
        behind: cython.longlong = -distance(answered, self.streams[other, NEXT])
        if answered != 0 and not (
            -IMPOSSIBLE < behind < self.streams[other, NEXT] - self.streams[other, FIRST_PSN] + IMPOSSIBLE
        ):
            self.streams[one, RESPONSE_NEXT] = 0  # it answered another life until now
        self.streams[one, PEER] = other + 1
        self.streams[other, PEER] = one + 1
        self.streams[one, PAIRED] = evidence
        self.streams[other, PAIRED] = evidence
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def judge_response(
        self,
        stream: cython.Py_ssize_t,
        psn: cython.longlong,
        opcode: cython.int,
        refuses: cython.bint,
        payload: cython.longlong,
    ) -> cython.longlong:
        """Verdict of a response in the responder's own space; sets `extended` and `missing`.

        A NAK or RNR NAK (`refuses`) leaves its PSN to be answered yet.
        """
        kind: cython.int = cython.cast(cython.int, self.classes[opcode & 255])
        following: cython.longlong = self.streams[stream, RESPONSE_NEXT]
        peer: cython.Py_ssize_t = self.streams[stream, PEER] - 1
        ahead: cython.longlong
        verdict: cython.longlong = VERDICT_NEW
        if following == 0:
            verdict = VERDICT_FIRST
            if self.streams[stream, REQUESTS] == 0:
                self.streams[stream, OPCODE] = opcode  # the first packet may have been a CNP
            following = psn + 0x1000000
            if peer >= 0 and self.streams[peer, FLAGS] & STARTED:  # unwrapped beside the requests
                following = self.streams[peer, NEXT] + distance(psn, self.streams[peer, NEXT])
            self.streams[stream, RESPONSE_FIRST] = following + 1
        ahead = distance(psn, following)
        self.extended = following + ahead
        if ahead < 0:
            return VERDICT_RESENT
        if kind & CONTINUES and ahead > 0 and kind & READ_RESPONSE and ahead < IMPOSSIBLE:
            verdict = VERDICT_GAP
            self.missing = ahead
            self.streams[stream, RESPONSE_GAPS] += ahead
            self.emit(KIND_GAP, stream, following, ahead, 1)
            if peer >= 0 and self.streams[peer, FLAGS] & STARTED:
                self.streams[stream, IMPLIED_NAKS] += 1
                self.blame(
                    peer, BY_IMPLIED_NAK, self.streams[peer, NEXT] + distance(following, self.streams[peer, NEXT])
                )
        self.streams[stream, RESPONSE_NEXT] = self.extended + (0 if refuses else 1)
        if kind & READ_RESPONSE:
            self.streams[stream, GOODPUT_BYTES] += payload
            if peer >= 0:
                if self.streams[peer, FLAGS] & RUN_OPEN:
                    self.note_progress(peer)
                self.streams[peer, ADVANCE_TIME] = self.time
        return verdict

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def hear(
        self, stream: cython.Py_ssize_t, psn: cython.longlong, kind: cython.int, syndrome: cython.int
    ) -> cython.int:
        """Link the stream to the one it answers, and correct the model of that responder by what it says.

        A responder names its own position: an ACK the last PSN it took, a NAK the PSN it expects. `syndrome` is -1 for
        a response whose AETH was cut or that has none.
        """
        peer: cython.Py_ssize_t = self.streams[stream, PEER] - 1
        says: cython.int = (syndrome >> 5) & 3 if syndrome >= 0 else SAYS_ACK
        tries: cython.longlong
        beyond: cython.longlong
        if peer < 0:
            tries = self.streams[stream, PEER_TRIES] + 1
            self.streams[stream, PEER_TRIES] = tries
            if (says == SAYS_ACK or tries > MOST_NAK_TRIES) and tries & (tries - 1):
                return 0  # the 1st, 2nd, 4th, 8th ... response only: a one-sided capture stays cheap
            peer = self.find_peer(stream, psn) - 1
            if peer < 0:
                return 0
            self.link(stream, peer, PAIRED_BY_PSN)
        if (syndrome < 0 and kind & ACKNOWLEDGES) or self.streams[peer, FLAGS] & (STARTED | EXPIRED) != STARTED:
            return 0
        psn = self.streams[peer, EXPECTED] + distance(psn, self.streams[peer, EXPECTED])
        beyond = psn - self.streams[peer, EXPECTED]
        if says == SAYS_ACK:
            if kind & ACKNOWLEDGES:  # else READ RESPONSE MIDDLE: its FIRST has said so
                beyond += 1
                if 0 < beyond <= self.streams[peer, SLACK] and self.streams[peer, EXPECTED] == self.streams[peer, NEXT]:
                    self.streams[peer, EXPECTED] += beyond  # an answer inside a READ whose range was not known
                    self.streams[peer, NEXT] += beyond
                    self.streams[peer, SLACK] -= beyond
                elif 0 < beyond < IMPOSSIBLE:  # it has what the capture missed, so there was nothing to complain of
                    self.resume(peer, psn + 1)
        elif says == SAYS_RNR:
            self.take_back(peer, psn)
        elif says == SAYS_NAK and syndrome & 31 == SEQUENCE_NAK:
            self.hear_sequence_nak(stream, peer, psn)
        elif says == SAYS_NAK and syndrome & 31 <= LAST_FATAL:
            if self.streams[peer, BURST_EXPECTED] > psn:  # refused before the NAK was seen
                self.streams[peer, DUPLICATE_REQUEST] = self.streams[peer, BURST_DUPLICATES]
                self.streams[peer, OUT_OF_SEQ_REQUEST] = self.streams[peer, BURST_OUT_OF_SEQ]
                self.streams[peer, OWED_NAKS] = min(
                    self.streams[peer, OWED_NAKS], self.streams[peer, OUT_OF_SEQ_REQUEST]
                )
            self.streams[peer, FLAGS] |= DEAD
        if -IMPOSSIBLE < beyond < IMPOSSIBLE:
            self.take_answer(stream, peer, psn, kind, syndrome)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def hear_sequence_nak(self, stream: cython.Py_ssize_t, peer: cython.Py_ssize_t, psn: cython.longlong) -> cython.int:
        """NAK 0x60: the responder of `peer` expects `psn` (unwrapped)."""
        beyond: cython.longlong = psn - self.streams[peer, EXPECTED]
        hole: cython.longlong = self.find_hole(peer, psn)
        message: cython.longlong
        if hole != 0:
            self.asked_frame = self.holes[hole, HOLE_FRAME]
            self.asked_time = self.holes[hole, HOLE_TIME]
        message = self.message_at(peer, psn)
        if psn > self.streams[peer, ACKED] and message != 0 and psn > self.messages[message, M_PSN]:
            self.streams[stream, NEW_SEQUENCE_NAKS] += 1
        if self.streams[peer, OWED_NAKS] > 0:
            self.streams[peer, OWED_NAKS] -= 1
            if self.streams[peer, FLAGS] & NAK_SENT == 0:
                return 0  # it comes late: the model has gone on since
        elif beyond < IMPOSSIBLE:  # the responder missed what passed here
            self.streams[peer, OUT_OF_SEQ_REQUEST] += 1
        if 0 < beyond < IMPOSSIBLE:
            self.resume(peer, psn)
        if -IMPOSSIBLE < beyond < IMPOSSIBLE:
            self.streams[peer, EXPECTED] = psn
            self.streams[peer, FLAGS] |= NAK_SENT
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def take_answer(
        self,
        stream: cython.Py_ssize_t,
        peer: cython.Py_ssize_t,
        psn: cython.longlong,
        kind: cython.int,
        syndrome: cython.int,
    ) -> cython.int:
        """What an answer on `stream` for `psn` (unwrapped) means for the messages and retries of `peer`."""
        says: cython.int = (syndrome >> 5) & 3 if syndrome >= 0 else SAYS_ACK
        acked: cython.longlong = psn + 1 if says == SAYS_ACK else psn
        implied: cython.longlong = 0
        self.streams[peer, LAST_ANSWER_TIME] = self.time
        if acked > self.streams[peer, ACKED]:
            self.streams[peer, ACKED] = acked
            self.streams[peer, ACKED_TIME] = self.time
            self.excuse(peer)
            if self.streams[peer, FLAGS] & CAUSED and self.streams[peer, CAUSE_PSN] < acked:
                self.acquit(peer)  # it has what the cause was about
        elif says == SAYS_ACK and kind & (READ_RESPONSE | ASKS) == 0:
            self.streams[stream, DUPLICATE_ACKS] += 1
            if acked < self.streams[peer, ACKED]:
                self.streams[stream, ACK_REGRESSIONS] += 1
        if kind & (READ_RESPONSE | ASKS):
            implied = self.answer(peer, psn, kind, self.streams[peer, ACKED])
        elif says == SAYS_NAK and SEQUENCE_NAK < syndrome & 31 <= LAST_FATAL:
            self.acknowledge(peer, acked)
            self.asked_frame = self.refuse(peer, psn, syndrome)
        else:
            implied = self.acknowledge(peer, acked)
            if says == SAYS_RNR:
                self.asked_frame = self.meet_rnr(peer, psn)
                self.blame(peer, BY_RNR_NAK, psn)
                self.streams[peer, RNR_CODE] = syndrome & 31
            elif says == SAYS_NAK and psn >= self.streams[peer, ACKED]:
                self.blame(peer, BY_NAK, psn)
        if implied != 0:
            self.streams[stream, IMPLIED_NAKS] += 1
            self.blame(peer, BY_IMPLIED_NAK, implied)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def take_back(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.int:
        """RNR NAK: `psn` was not taken, so what followed it was out of sequence."""
        followers: cython.longlong = self.streams[stream, EXPECTED] - psn - 1
        if followers < 0 or followers >= IMPOSSIBLE:
            return 0
        self.streams[stream, EXPECTED] = psn
        if followers > 0 and self.streams[stream, FLAGS] & NAK_SENT == 0:  # set: that episode began at `psn` already
            self.streams[stream, OUT_OF_SEQ_REQUEST] += 1
            self.streams[stream, OWED_NAKS] += 1
            self.streams[stream, FLAGS] |= NAK_SENT
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def resume(self, stream: cython.Py_ssize_t, expected: cython.longlong) -> cython.int:
        """The responder is further than the model: the capture missed packets. Takes back NAKs that were never seen."""
        following: cython.longlong = self.streams[stream, NEXT]
        unseen: cython.longlong = self.forget_holes(stream, expected)
        if expected > following:
            unseen += expected - max(following, self.streams[stream, EXPECTED])
        self.streams[stream, EXPECTED] = expected
        self.streams[stream, FLAGS] &= ~NAK_SENT
        self.streams[stream, OUT_OF_SEQ_REQUEST] -= self.streams[stream, OWED_NAKS]
        self.streams[stream, OWED_NAKS] = 0
        if unseen > 0:
            self.streams[stream, UNSEEN_PACKETS] += unseen
            self.emit(KIND_UNSEEN, stream, expected - 1, unseen, 0)
        return 0

    # -- requests ----------------------------------------------------------------------------------------------------

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
        ahead: cython.longlong = distance(psn, self.streams[stream, NEXT])
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
        self.message = 0
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
        ahead = distance(psn, self.streams[stream, NEXT])
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
            if self.streams[stream, HOLE] != 0 and self.fill_hole(stream, psn, psn + span):
                verdict = VERDICT_LATE
        if ahead >= 0:
            self.close_episode(stream, True)
            if ahead == 0 and self.streams[stream, FLAGS] & CAUSED and self.streams[stream, CAUSE_PSN] == psn:
                # the first sight of what a NAK asked for: it was lost before this point, and so was all behind it
                self.add_to_episode(stream, psn, psn + span, True, payload, 0, False)
                self.note_progress(stream)
                self.acquit(stream)
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
            sent_time = self.repeat(stream, psn, psn + span, kind, verdict == VERDICT_LATE, volume)
            if verdict == VERDICT_LATE and kind & UNRELIABLE == 0:
                self.message = self.streams[stream, CURSOR]
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

    # -- connection management: the caller has read the messages -------------------------------------------------------

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
        va: cython.const[cython.longlong][::1],
        r_key: cython.const[cython.uint][::1],
        imm_data: cython.const[cython.uint][::1],
        inv_r_key: cython.const[cython.uint][::1],
        bad_icrc: cython.const[cython.uchar][::1],
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

        `bad_icrc` may be empty; so may `va` to `inv_r_key`, and the six ``out`` columns, all together. Returns where it
        stopped: `stop`, or less when events and ended messages must be drained first.
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
        qp: cython.longlong
        fingerprint: cython.longlong
        copy: cython.bint
        refuses: cython.bint
        has_bad: cython.bint = bad_icrc.shape[0] > 0
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
            or (
                has_keys
                and (
                    va.shape[0] < stop or r_key.shape[0] < stop or imm_data.shape[0] < stop or inv_r_key.shape[0] < stop
                )
            )
            or (has_bad and bad_icrc.shape[0] < stop)
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
                self.frame = frame_key[packet]
                self.time = max(-most_time, min(time_ns[packet], most_time))
                self.extended = -1
                self.missing = 0
                judged = 0
                role = ROLE_OTHER
                stream = -1
                if present[packet] & HAS_BTH == 0 or status[packet] > 1 or kind == 0 or (has_bad and bad_icrc[packet]):
                    self.counts[FOREIGN] += 1  # no trustworthy BTH, or an opcode without a meaning
                else:
                    source = 0
                    if kind & DATAGRAM and present[packet] & HAS_DETH:
                        source = cython.cast(cython.longlong, src_qp[packet]) + 1
                    number = psn[packet]
                    qp = dest_qp[packet]
                    if present[packet] & HAS_VNI:
                        qp |= (cython.cast(cython.longlong, vni[packet]) + 1) << NETWORK_SHIFT
                    if src[packet] != 0 and dst[packet] != 0:  # 0: one of the hosts that found no room
                        stream = self.find_stream(
                            (cython.cast(cython.longlong, src[packet]) << 32) | dst[packet],
                            qp,
                            source,
                            True,
                        )
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
                    if stream < 0:
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
                        if present[packet] & HAS_IPV4:
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
                        if self.message != 0:
                            if present[packet] & HAS_RETH:
                                self.messages[self.message, M_DMA_LEN] = dma_len[packet]
                                self.messages[self.message, M_FLAGS] |= M_HAS_LENGTH
                            if has_keys and present[packet] & (HAS_RETH | HAS_ATOMIC_ETH | HAS_IMMDT | HAS_IETH):
                                self.note_keys(
                                    present[packet],
                                    va[packet],
                                    r_key[packet],
                                    imm_data[packet],
                                    inv_r_key[packet],
                                )
                            if kind & UNRELIABLE:
                                self.settle_unreliable(stream, kind)
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
                            if has_keys and self.message != 0:
                                self.note_keys(
                                    present[packet],
                                    va[packet],
                                    r_key[packet],
                                    imm_data[packet],
                                    inv_r_key[packet],
                                )
                            self.settle_unreliable(stream, kind)
                    elif kind & CONGESTION:
                        role = ROLE_CNP
                        self.streams[stream, CNPS] += 1
                        self.add_mark(stream, CNP_RUN, KIND_CNP)
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
    def note_answer(
        self, stream: cython.Py_ssize_t, psn: cython.longlong, kind: cython.int, syndrome: cython.int
    ) -> cython.int:
        """Count an AETH by what it says, name NAKs as events, and let the model hear it."""
        says: cython.int = (syndrome >> 5) & 3
        event: cython.Py_ssize_t = self.counts[EVENTS_USED]
        if says == SAYS_ACK:
            self.streams[stream, ACKS] += 1
            if syndrome & 31 == 0:
                self.streams[stream, STARVING_ACKS] += 1
            return self.hear(stream, psn, kind, syndrome)
        if says == SAYS_RNR:
            self.streams[stream, RNR_NAKS] += 1
            self.emit(KIND_RNR_NAK, stream, psn, 1, syndrome)
        elif says == SAYS_NAK:
            self.streams[stream, NAKS] += 1
            if syndrome & 31 == SEQUENCE_NAK:
                self.streams[stream, SEQUENCE_NAKS] += 1
            elif syndrome & 31 == ACCESS_NAK:
                self.streams[stream, ACCESS_NAKS] += 1
            self.emit(KIND_NAK, stream, psn, 1, syndrome)
        self.asked_frame = 0
        self.hear(stream, psn, kind, syndrome)
        if self.asked_frame != 0 and self.counts[EVENTS_USED] > event:
            self.events[event, EVENT_CAUSE_FRAME] = self.asked_frame
            self.events[event, EVENT_CAUSE_TIME] = self.asked_time
        return 0

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
