# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Episodes: requests that do not advance their stream, with the cause, the cost, and the retries in a row.

An episode is one act of going back and sending again, or of late delivery. It opens with a request that does not
advance and ends with the next one that does, or when the sender goes back once more. `docs/semantics.md`, "Episodes",
has the rules.
"""

from __future__ import annotations

import cython

COMPILED = cython.compiled

if not cython.compiled:  # compiled: the same names are C enums in states.pxd, and the class is in ledger.pxd
    from roce_dissect.flows.ledger import Ledger
    from roce_dissect.flows.states import *


@cython.cclass
class Episodes(Ledger):
    """Episodes of each stream, and runs of CNPs and CE marks."""

    order: cython.int  # of the request at hand: 1 sent after the latest one, -1 before it, 0 nothing tells

    # -- causes --------------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def note_cause(self, stream: cython.Py_ssize_t, trigger: cython.longlong, psn: cython.longlong) -> cython.int:
        """The packet at hand asks the requester to go back to `psn` (unwrapped)."""
        if (
            self.streams[stream, CAUSE] != 0
            and self.streams[stream, CAUSE_PSN] == psn
            and (trigger == self.streams[stream, CAUSE] or self.streams[stream, CAUSE] == BY_RNR_NAK)
        ):
            return 0  # said again; or what followed a request that met an RNR NAK was out of sequence, naturally
        if trigger == BY_IMPLIED_NAK and self.streams[stream, CAUSE] != 0 and self.streams[stream, CAUSE_PSN] <= psn:
            return 0
        self.streams[stream, CAUSE] = trigger
        self.streams[stream, CAUSE_PSN] = psn
        self.streams[stream, CAUSE_TIME] = self.time
        self.streams[stream, CAUSE_FRAME] = self.frame
        self.streams[stream, CAUSE_USED] = 0
        self.streams[stream, FLAGS] |= CAUSED
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def clear_cause(self, stream: cython.Py_ssize_t) -> cython.int:
        """Nobody is asked to go back any more."""
        self.streams[stream, CAUSE] = 0
        self.streams[stream, FLAGS] &= ~CAUSED
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def recheck_timeout(self, stream: cython.Py_ssize_t) -> cython.int:
        """An answer came: sooner after a resend than any answer takes, it is the original's, and that was not lost."""
        since: cython.longlong = self.time - self.streams[stream, RUN_TIME]
        if (
            self.streams[stream, FLAGS] & RUN_OPEN
            and self.streams[stream, RUN_TRIGGER] == BY_TIMEOUT
            and self.streams[stream, RUN_PSN] < self.streams[stream, ACKED]
            and self.streams[stream, MESSAGES_COMPLETE] >= FEW_ANSWERS
            and 0 <= since < self.streams[stream, LEAST_ANSWER] >> 1
        ):
            self.streams[stream, RUN_TRIGGER] = BY_SPURIOUS
        return 0

    # -- episodes ------------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def add_to_episode(
        self,
        stream: cython.Py_ssize_t,
        psn: cython.longlong,
        stop: cython.longlong,
        late: cython.bint,
        payload: cython.longlong,
        sent_time: cython.longlong,
        asks: cython.bint,
    ) -> cython.int:
        """A request that does not advance: opens an episode or lengthens it.

        `sent_time` is when the packet's message was sent last, 0: not known; `asks`: a READ or atomic.
        """
        if self.streams[stream, FLAGS] & RUN_OPEN and self.goes_back(stream, psn):
            self.close_episode(stream, False)
        if self.streams[stream, FLAGS] & RUN_OPEN == 0:
            self.open_episode(stream, psn, late, sent_time, asks)
        self.streams[stream, RUN_COUNT] += 1
        self.streams[stream, RUN_LATE] += late
        self.streams[stream, RUN_BYTES] += payload
        self.streams[stream, RUN_LAST_FRAME] = self.frame
        self.streams[stream, RUN_LAST_TIME] = self.time
        self.streams[stream, RUN_PSN] = min(psn, self.streams[stream, RUN_PSN])
        self.streams[stream, RUN_LATEST] = psn
        self.streams[stream, RUN_STOP] = max(stop, self.streams[stream, RUN_STOP])
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def goes_back(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.bint:
        """Whether a request within an episode begins the next one: the sender went back once more."""
        if psn >= self.streams[stream, RUN_STOP] or self.order < 0:
            return False
        if self.order > 0:
            return psn <= self.streams[stream, RUN_LATEST]
        if psn == self.streams[stream, RUN_PSN]:
            return True
        if (
            self.streams[stream, CAUSE] != 0
            and self.streams[stream, CAUSE_PSN] <= psn <= self.streams[stream, RUN_LATEST]
        ):
            return True
        if psn > self.streams[stream, RUN_PSN] and psn != self.streams[stream, ACKED]:
            return False
        # after a silence; without one, the episode's own packets were reordered on their way
        return self.time - self.streams[stream, RUN_LAST_TIME] >= LEAST_TIMEOUT_NS

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def open_episode(
        self,
        stream: cython.Py_ssize_t,
        psn: cython.longlong,
        late: cython.bint,
        sent_time: cython.longlong,
        asks: cython.bint,
    ) -> cython.int:
        """The first request of an episode: what is its cause, as far as it can be told now?"""
        trigger: cython.longlong = BY_UNKNOWN
        wait: cython.longlong = 0
        since_answer: cython.longlong = self.time - self.streams[stream, ACKED_TIME]
        if sent_time == 0:
            sent_time = self.streams[stream, REQUEST_TIME]
        if sent_time != 0:
            wait = max(self.time - sent_time, 0)
        self.streams[stream, RUN_CAUSE_FRAME] = 0
        self.streams[stream, RUN_CAUSE_TIME] = 0
        if self.order < 0:
            trigger = BY_REORDERING  # it was sent before what has passed already: nobody went back
        elif (
            self.streams[stream, CAUSE] != 0
            and self.streams[stream, CAUSE_PSN] <= psn
            and (self.streams[stream, CAUSE_USED] == 0 or self.streams[stream, CAUSE_PSN] == psn)
        ):
            trigger = self.streams[stream, CAUSE]
            self.streams[stream, RUN_CAUSE_FRAME] = self.streams[stream, CAUSE_FRAME]
            self.streams[stream, RUN_CAUSE_TIME] = self.streams[stream, CAUSE_TIME]
            if self.streams[stream, CAUSE_USED] != 0:
                self.streams[stream, RETRY] = 0  # what seemed to be an answer to it was the original, delayed
            if late and self.order == 0:
                self.streams[stream, CAUSE_USED] = 1  # perhaps this is no answer to it, but the original, delayed
            else:
                self.clear_cause(stream)
        elif (self.streams[stream, CAUSE] == BY_NAK or self.streams[stream, CAUSE] == BY_RNR_NAK) and (
            self.time - self.streams[stream, CAUSE_TIME] >= self.streams[stream, LEAST_REACTION]
        ):
            pass  # further back than it was asked to: by that NAK, or by a timeout before that was heard
        elif self.streams[stream, PEER] != 0 and not late and psn < self.streams[stream, ACKED]:
            # its answer has passed here: either it came too late for the requester to know, or it was lost behind us
            if since_answer >= 0 and since_answer <= max(self.streams[stream, LEAST_REACTION], wait >> 3):
                if not asks:  # a READ may have been asked for anew since a response was lost behind this point
                    trigger = BY_SPURIOUS
            elif wait >= LEAST_TIMEOUT_NS:
                trigger = BY_TIMEOUT
        elif wait >= LEAST_TIMEOUT_NS and self.classes[self.streams[stream, OPCODE] & 255] & UNRELIABLE == 0:
            trigger = BY_TIMEOUT
        self.streams[stream, FLAGS] |= RUN_OPEN
        self.streams[stream, EPISODES] += 1
        if (
            self.streams[stream, RETRY] > 0
            and self.streams[stream, RETRY_ACKED] == self.streams[stream, ACKED]
            and self.streams[stream, LAST_RUN_PSN] == psn
        ):
            self.streams[stream, RETRY] += 1
        else:
            self.streams[stream, RETRY] = 1
        self.streams[stream, RETRY_ACKED] = self.streams[stream, ACKED]
        self.streams[stream, RUN_FRAME] = self.frame
        self.streams[stream, RUN_TIME] = self.time
        self.streams[stream, RUN_COUNT] = 0
        self.streams[stream, RUN_LATE] = 0
        self.streams[stream, RUN_BYTES] = 0
        self.streams[stream, RUN_ARRIVED] = 0
        self.streams[stream, RUN_SILENT] = psn >= self.streams[stream, ACKED]
        self.streams[stream, RUN_STALL] = 0
        self.streams[stream, RUN_PSN] = psn
        self.streams[stream, RUN_STOP] = psn
        self.streams[stream, RUN_TRIGGER] = trigger
        self.streams[stream, RUN_WAIT] = wait
        self.streams[stream, RUN_EXTENT] = max(self.streams[stream, NEXT] - psn, 0)
        self.streams[stream, RUN_HOLE_TIME] = self.hole_time if late else 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def note_progress(self, stream: cython.Py_ssize_t) -> cython.int:
        """The stream goes on: the open episode has cost the time from the last progress to its latest packet."""
        if self.streams[stream, ADVANCE_TIME] != 0:  # else nothing ever advanced
            self.streams[stream, RUN_STALL] = self.added_time(
                self.streams[stream, RUN_STALL],
                self.streams[stream, RUN_LAST_TIME] - self.streams[stream, ADVANCE_TIME],
            )
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def close_episode(self, stream: cython.Py_ssize_t, advances: cython.bint) -> cython.int:
        """Emit the open episode, if there is one. `advances`: because the stream goes on, not because it goes back."""
        event: cython.Py_ssize_t = self.counts[EVENTS_USED]
        stall: cython.longlong
        reaction: cython.longlong = self.streams[stream, RUN_TIME] - self.streams[stream, RUN_CAUSE_TIME]
        trigger: cython.longlong = self.streams[stream, RUN_TRIGGER]
        recovery: cython.longlong = GOES_BACK_N
        if self.streams[stream, FLAGS] & RUN_OPEN == 0:
            return 0
        self.streams[stream, FLAGS] &= ~RUN_OPEN
        self.note_progress(stream)
        stall = self.streams[stream, RUN_STALL]
        self.streams[stream, STALL] = self.added_time(self.streams[stream, STALL], stall)
        self.streams[stream, ADVANCE_TIME] = max(  # no time is counted twice
            self.streams[stream, ADVANCE_TIME], self.streams[stream, RUN_LAST_TIME]
        )
        if advances and self.streams[stream, RUN_STOP] < self.streams[stream, NEXT]:
            recovery = SELECTIVE  # it went on without sending again all that followed
        if trigger == BY_REORDERING:
            recovery = RECOVERS_NOTHING
        elif self.streams[stream, RUN_LATE] == self.streams[stream, RUN_COUNT]:
            if trigger == BY_UNKNOWN and self.streams[stream, CAUSE] == 0:  # nobody asked for it, nobody was silent
                trigger = BY_REORDERING
                recovery = RECOVERS_NOTHING
        else:
            if self.streams[stream, CAUSE_USED] != 0:
                self.clear_cause(stream)  # it was sent again in answer to the cause, beyond doubt
            if (trigger == BY_NAK or trigger == BY_IMPLIED_NAK) and reaction > 0:
                self.streams[stream, REACTIONS] += 1
                if self.streams[stream, LEAST_REACTION] == 0 or reaction < self.streams[stream, LEAST_REACTION]:
                    self.streams[stream, LEAST_REACTION] = reaction
        if trigger == BY_TIMEOUT:
            self.streams[stream, TIMEOUTS] += 1
            # a timer that began with the resend before, and not at any time
            if (
                self.streams[stream, RETRY] > 1
                and self.streams[stream, LAST_TRIGGER] == BY_TIMEOUT
                and self.streams[stream, LAST_RUN_PSN] == self.streams[stream, RUN_PSN]
                and self.streams[stream, RUN_LATE] == 0
            ):
                self.streams[stream, TIMEOUT_SAMPLES] += 1
                if self.streams[stream, TIMEOUT_LEAST] == 0 or (
                    self.streams[stream, RUN_WAIT] < self.streams[stream, TIMEOUT_LEAST]
                ):
                    self.streams[stream, TIMEOUT_LEAST] = self.streams[stream, RUN_WAIT]
        if trigger == BY_REORDERING:
            self.streams[stream, RETRY] = 0
        self.streams[stream, MOST_RETRIES] = max(self.streams[stream, MOST_RETRIES], self.streams[stream, RETRY])
        self.streams[stream, LAST_TRIGGER] = trigger
        self.streams[stream, LAST_RUN_PSN] = self.streams[stream, RUN_PSN]
        self.streams[stream, RETRY_WAIT] = self.streams[stream, RUN_WAIT]
        self.emit(
            KIND_RESEND,
            stream,
            self.streams[stream, RUN_PSN],
            self.streams[stream, RUN_COUNT],
            self.streams[stream, RUN_LATE],
        )
        self.events[event, EVENT_FRAME] = self.streams[stream, RUN_FRAME]
        self.events[event, EVENT_LAST_FRAME] = self.streams[stream, RUN_LAST_FRAME]
        self.events[event, EVENT_TIME] = self.streams[stream, RUN_TIME]
        self.events[event, EVENT_LAST_TIME] = self.streams[stream, RUN_LAST_TIME]
        self.events[event, EVENT_STALL] = stall
        self.events[event, EVENT_CAUSE_FRAME] = self.streams[stream, RUN_CAUSE_FRAME]
        self.events[event, EVENT_CAUSE_TIME] = self.streams[stream, RUN_CAUSE_TIME]
        self.events[event, EVENT_TRIGGER] = trigger
        self.events[event, EVENT_BYTES] = self.streams[stream, RUN_BYTES]
        self.events[event, EVENT_ARRIVED] = self.streams[stream, RUN_ARRIVED]
        if self.streams[stream, RUN_SILENT] and (trigger == BY_TIMEOUT or trigger == BY_UNKNOWN):
            self.events[event, EVENT_ARRIVED] = -1  # lost behind this point, or only the answer was: nothing tells
        self.events[event, EVENT_RECOVERY] = recovery
        self.events[event, EVENT_RETRY] = self.streams[stream, RETRY]
        self.events[event, EVENT_WAIT] = self.streams[stream, RUN_WAIT]
        self.events[event, EVENT_EXTENT] = self.streams[stream, RUN_EXTENT]
        self.events[event, EVENT_HOLE_TIME] = self.streams[stream, RUN_HOLE_TIME]
        return 0

    # -- marks ---------------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def add_mark(self, stream: cython.Py_ssize_t, run: cython.Py_ssize_t, kind: cython.longlong) -> cython.int:
        """A CNP or CE mark (`run`: CNP_RUN or CE_RUN): lengthens its run, or ends that and begins the next."""
        if self.streams[stream, run + 4] > 0 and self.time - self.streams[stream, run + 3] > RUN_BREAK_NS:
            self.close_marks(stream, run, kind)
        if self.streams[stream, run + 4] == 0:
            self.streams[stream, run] = self.frame
            self.streams[stream, run + 1] = self.time
        self.streams[stream, run + 2] = self.frame
        self.streams[stream, run + 3] = self.time
        self.streams[stream, run + 4] += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def close_marks(self, stream: cython.Py_ssize_t, run: cython.Py_ssize_t, kind: cython.longlong) -> cython.int:
        """Emit a run of CNPs or CE marks, if there is one."""
        event: cython.Py_ssize_t = self.counts[EVENTS_USED]
        if self.streams[stream, run + 4] == 0:
            return 0
        self.emit(kind, stream, -1, self.streams[stream, run + 4], 0)
        self.events[event, EVENT_PSN] = -1
        self.events[event, EVENT_FRAME] = self.streams[stream, run]
        self.events[event, EVENT_TIME] = self.streams[stream, run + 1]
        self.events[event, EVENT_LAST_FRAME] = self.streams[stream, run + 2]
        self.events[event, EVENT_LAST_TIME] = self.streams[stream, run + 3]
        self.streams[stream, run + 4] = 0
        return 0
