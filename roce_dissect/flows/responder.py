# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The responder: a model of what it makes of each request, and what its answers say of it.

Answers travel on the stream of the other direction; which stream they answer is found by their PSNs. The rules are
those of `docs/semantics.md`, "The responder model" and "Which stream answers which".
"""

from __future__ import annotations

import cython

COMPILED = cython.compiled

if not cython.compiled:  # compiled: the same names are C enums in states.pxd, and the class is in messages.pxd
    from roce_dissect.flows.messages import Messages
    from roce_dissect.flows.states import *


@cython.cclass
class Responder(Messages):
    """Models of the responders of all streams."""

    asked_frame: cython.longlong  # the frame that a NAK is about
    transport: cython.int  # of the packet at hand: the high three bits of its opcode

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def distance(self, psn: cython.longlong, reference: cython.longlong) -> cython.longlong:
        """Signed way from `reference` (unwrapped) to `psn` (24 bits or unwrapped)."""
        return ((psn - reference + 0x800000) & 0xFFFFFF) - 0x800000

    # -- requests -----------------------------------------------------------------------------------------------------

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

    # -- who answers whom ---------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def find_peer(
        self, stream: cython.Py_ssize_t, psn: cython.longlong, before_first: cython.longlong
    ) -> cython.Py_ssize_t:
        """The stream whose requests a response with this PSN answers, plus 1: the only one that asked for it; or 0.

        It may have asked for it `before_first` PSNs before its first request here, unless the CM told where it begins.
        """
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
        reach: cython.longlong
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
                and self.streams[other, OPCODE] & 0xE0 == self.transport  # RC or XRC, as the response
            ):
                top = self.streams[other, NEXT] + self.streams[other, SLACK]
                behind = -self.distance(psn, top)
                reach = top - self.streams[other, FIRST_PSN]
                if self.streams[other, CM_TIMEOUT] == 0:
                    reach += before_first
                if 0 < behind <= reach:
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
        behind: cython.longlong = -self.distance(answered, self.streams[other, NEXT])
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
                following = self.streams[peer, NEXT] + self.distance(psn, self.streams[peer, NEXT])
            self.streams[stream, RESPONSE_FIRST] = following + 1
        ahead = self.distance(psn, following)
        self.extended = following + ahead
        if ahead < 0:
            if kind & (READ_RESPONSE | ASKS):
                self.streams[stream, REPLAYED_RESPONSES] += 1
            return VERDICT_RESENT
        if kind & CONTINUES and ahead > 0 and kind & READ_RESPONSE and ahead < IMPOSSIBLE:
            verdict = VERDICT_GAP
            self.missing = ahead
            self.streams[stream, RESPONSE_GAPS] += ahead
            self.emit(KIND_GAP, stream, following, ahead, 1)
            if peer >= 0 and self.streams[peer, FLAGS] & STARTED:
                self.streams[stream, IMPLIED_NAKS] += 1
                self.note_cause(
                    peer, BY_IMPLIED_NAK, self.streams[peer, NEXT] + self.distance(following, self.streams[peer, NEXT])
                )
        self.streams[stream, RESPONSE_NEXT] = self.extended + (0 if refuses else 1)
        if kind & READ_RESPONSE:
            self.streams[stream, GOODPUT_BYTES] += payload
            if peer >= 0:
                if self.streams[peer, FLAGS] & RUN_OPEN:
                    self.note_progress(peer)
                self.streams[peer, ADVANCE_TIME] = self.time
        return verdict

    # -- answers ------------------------------------------------------------------------------------------------------

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
                self.streams[stream, ZERO_CREDIT_ACKS] += 1
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
        sequence_nak: cython.bint
        if peer < 0:
            tries = self.streams[stream, PEER_TRIES] + 1
            self.streams[stream, PEER_TRIES] = tries
            if says != SAYS_ACK:
                self.streams[stream, NAK_TRIES] += 1
            if tries & (tries - 1) and (says == SAYS_ACK or self.streams[stream, NAK_TRIES] > MOST_NAK_TRIES):
                return 0  # the 1st, 2nd, 4th, 8th ... response only: a one-sided capture stays cheap
            sequence_nak = says == SAYS_NAK and syndrome & 31 == SEQUENCE_NAK
            peer = self.find_peer(stream, psn, MOST_BEFORE if sequence_nak else 0) - 1
            if peer < 0:
                return 0
            self.link(stream, peer, PAIRED_BY_PSN)
        if self.streams[peer, FLAGS] & (STARTED | EXPIRED) != STARTED:
            return 0
        if syndrome < 0 and kind & ACKNOWLEDGES and kind & (READ_RESPONSE | ASKS) == 0:
            return 0  # ACK or NAK: its AETH was cut
        if (
            self.streams[peer, FLAGS] & DEAD
            and says == SAYS_ACK
            and 0 <= self.distance(psn, self.streams[peer, ERROR_NEXT]) < IMPOSSIBLE
        ):  # what was sent behind the fatal NAK is answered: the QP number is in use anew, from the next packets on
            self.streams[peer, FLAGS] |= EXPIRED
            self.streams[stream, FLAGS] |= EXPIRED
            return 0
        psn = self.streams[peer, EXPECTED] + self.distance(psn, self.streams[peer, EXPECTED])
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
            self.streams[peer, ERROR_NEXT] = self.streams[peer, NEXT]
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
        elif 0 < self.streams[peer, FIRST_PSN] - psn <= MOST_BEFORE and self.streams[peer, HOLE] == 0:
            # the capture began behind the loss: what this asks for did not pass here, and nothing since was taken
            self.open_hole(peer, psn, self.streams[peer, FIRST_PSN])
            self.streams[peer, FIRST_PSN] = psn
            self.streams[peer, ACKED] = min(self.streams[peer, ACKED], psn)
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
        complete: cython.longlong = self.streams[peer, MESSAGES_COMPLETE]
        self.streams[peer, LAST_ANSWER_TIME] = self.time
        if acked > self.streams[peer, ACKED]:
            self.streams[peer, ACKED] = acked
            self.streams[peer, ACKED_TIME] = self.time
            self.recheck_timeout(peer)
            if (
                self.streams[peer, FLAGS] & CAUSED
                and self.streams[peer, CAUSE_PSN] < acked
                and self.streams[peer, CAUSE] != BY_IMPLIED_NAK
            ):
                self.clear_cause(peer)  # it has what the cause was about
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
                self.note_cause(peer, BY_RNR_NAK, psn)
                self.streams[peer, RNR_CODE] = syndrome & 31
            elif says == SAYS_NAK and psn >= self.streams[peer, ACKED]:
                self.note_cause(peer, BY_NAK, psn)
            elif self.streams[peer, MESSAGES_COMPLETE] > complete + 1:
                self.streams[stream, COALESCED_ACKS] += 1
        if implied != 0:
            self.streams[stream, IMPLIED_NAKS] += 1
            self.note_cause(peer, BY_IMPLIED_NAK, implied)
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
