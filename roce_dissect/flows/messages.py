# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Messages under way: which packets are one verb, and which answer ends it.

Each stream keeps its messages that have not ended, oldest first, as a linked list over a common table. What ends goes
to the rows of `ended`, which the flow table drains. A message that was seen in parts only is as many entries, until
what lies between them comes late and joins them. `docs/semantics.md`, "Messages", has the rules.
"""

from __future__ import annotations

import cython

COMPILED = cython.compiled

if not cython.compiled:  # compiled: the same names are C enums in states.pxd, and the class is in episodes.pxd
    from roce_dissect.flows.episodes import Episodes
    from roce_dissect.flows.states import *


@cython.cclass
class Messages(Episodes):
    """The messages of all streams."""

    messages: cython.longlong[:, ::1]
    ended: cython.longlong[:, ::1]
    latency: cython.longlong[:, ::1]
    asked_time: cython.longlong  # when the request passed first that a NAK is about
    message: cython.longlong  # that the request at hand began, went on with or filled, 0: none

    def __init__(self, slots, classes, streams, pairs, holes, recent, events, counts, seed, messages, ended, latency):
        Episodes.__init__(self, slots, classes, streams, pairs, holes, recent, events, counts, seed)
        self.messages = memoryview(messages)
        self.ended = memoryview(ended)
        self.latency = memoryview(latency)
        self.asked_time = 0
        self.message = 0
        if (
            self.messages.shape[1] != MESSAGE_WORDS
            or self.ended.shape[1] != MESSAGE_WORDS
            or self.latency.shape[0] != LATENCY_GROUPS
            or self.latency.shape[1] != LATENCY_WORDS
        ):
            raise ValueError("a table has the wrong shape")
        if self.counts[MESSAGES_USED] < 1:
            raise ValueError("message 0 is the end of every list, so one is in use from the beginning")

    # -- the table -----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def enter(
        self,
        stream: cython.Py_ssize_t,
        before: cython.longlong,
        psn: cython.longlong,
        stop: cython.longlong,
        kind: cython.int,
        payload: cython.longlong,
    ) -> cython.longlong:
        """A new message behind `before` (0: as the oldest); 0 when there is no room."""
        message: cython.longlong = self.counts[MESSAGE_FREE]
        flags: cython.longlong = 0
        word: cython.int
        idle: cython.longlong
        if message != 0:
            self.counts[MESSAGE_FREE] = self.messages[message, M_LINK]
        elif self.counts[MESSAGES_USED] < self.messages.shape[0]:
            message = self.counts[MESSAGES_USED]
            self.counts[MESSAGES_USED] = message + 1
        else:
            self.counts[UNFOLLOWED] += 1
            return 0
        if kind & STARTS:
            flags |= M_STARTED
        if kind & ENDS:
            flags |= M_ENDED
        if kind & ASKS:
            flags |= M_ASKS
            self.streams[stream, READS] += 1
            self.streams[stream, MOST_READS] = max(self.streams[stream, MOST_READS], self.streams[stream, READS])
        for word in range(M_SENT_TIME, MESSAGE_WORDS):
            self.messages[message, word] = 0
        self.messages[message, M_STREAM] = stream
        self.messages[message, M_PSN] = psn
        self.messages[message, M_STOP] = stop
        self.messages[message, M_FLAGS] = flags
        self.messages[message, M_VERB] = kind >> VERB_SHIFT
        self.messages[message, M_FRAME] = self.frame
        self.messages[message, M_TIME] = self.time
        self.messages[message, M_LAST_FRAME] = self.frame
        self.messages[message, M_LAST_TIME] = self.time
        self.messages[message, M_SENT_TIME] = self.time
        self.messages[message, M_PACKETS] = 1
        self.messages[message, M_BYTES] = payload
        self.messages[message, M_ANSWERED] = psn
        if before != 0:
            self.messages[message, M_LINK] = self.messages[before, M_LINK]
            self.messages[before, M_LINK] = message
        else:
            self.messages[message, M_LINK] = self.streams[stream, HEAD]
            self.streams[stream, HEAD] = message
        if self.messages[message, M_LINK] == 0:
            self.streams[stream, TAIL] = message
        if self.streams[stream, OUTSTANDING] == 0:
            self.streams[stream, BUSY_SINCE] = self.time
            if self.streams[stream, IDLE_SINCE] != 0:
                idle = self.time - self.streams[stream, IDLE_SINCE]
                self.streams[stream, IDLE_TIME] = self.added_time(self.streams[stream, IDLE_TIME], idle)
                if self.streams[stream, ANSWER_DELAY] > 0 and idle >= 0:
                    if idle < self.streams[stream, ANSWER_DELAY] // 3:
                        self.streams[stream, QUICK_REACTIONS] += 1
                    else:
                        self.streams[stream, SLOW_REACTIONS] += 1
        self.streams[stream, OUTSTANDING] += 1
        if self.streams[stream, OUTSTANDING] > self.streams[stream, MOST_MESSAGES]:
            self.streams[stream, MOST_MESSAGES] = self.streams[stream, OUTSTANDING]
        return message

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def leave(self, stream: cython.Py_ssize_t, before: cython.longlong, message: cython.longlong) -> cython.int:
        """Take a message out of its stream's list and free its row."""
        link: cython.longlong = self.messages[message, M_LINK]
        if before != 0:
            self.messages[before, M_LINK] = link
        else:
            self.streams[stream, HEAD] = link
        if link == 0:
            self.streams[stream, TAIL] = before
        if self.streams[stream, CURSOR] == message:
            self.streams[stream, CURSOR] = 0
        if self.messages[message, M_FLAGS] & M_ASKS:
            self.streams[stream, READS] -= 1
        self.messages[message, M_LINK] = self.counts[MESSAGE_FREE]
        self.counts[MESSAGE_FREE] = message
        self.streams[stream, OUTSTANDING] -= 1
        if self.streams[stream, OUTSTANDING] == 0:
            self.streams[stream, BUSY_TIME] = self.added_time(
                self.streams[stream, BUSY_TIME], self.time - self.streams[stream, BUSY_SINCE]
            )
            self.streams[stream, IDLE_SINCE] = self.time
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def end_oldest(self, stream: cython.Py_ssize_t, status: cython.longlong) -> cython.int:
        """The stream's oldest message has ended: its row is complete."""
        message: cython.longlong = self.streams[stream, HEAD]
        row: cython.Py_ssize_t = self.counts[ENDED_USED]
        word: cython.int
        delay: cython.longlong
        self.messages[message, M_STATUS] = status
        for word in range(MESSAGE_WORDS):
            self.ended[row, word] = self.messages[message, word]
        self.counts[ENDED_USED] = row + 1
        self.streams[stream, MESSAGES_ENDED] += 1
        if status == ENDED_COMPLETE:
            self.streams[stream, MESSAGES_COMPLETE] += 1
            delay = self.messages[message, M_ANSWER_TIME]
            if self.messages[message, M_FLAGS] & M_ASKS:
                delay = self.messages[message, M_ANSWER_FIRST_TIME]
            delay -= self.messages[message, M_SENT_TIME]
            self.streams[stream, ANSWER_DELAY] = delay
            # what was sent again may be answered for the first time (Karn)
            if (
                delay > 0
                and self.messages[message, M_RESENDS] == 0
                and (self.streams[stream, LEAST_ANSWER] == 0 or delay < self.streams[stream, LEAST_ANSWER])
            ):
                self.streams[stream, LEAST_ANSWER] = delay
            delay = self.messages[message, M_ANSWER_TIME] - self.messages[message, M_TIME]
            if (
                delay >= 0
                and self.messages[message, M_FLAGS] & (M_STARTED | M_ENDED) == M_STARTED | M_ENDED
                and (self.messages[message, M_VERB] != VERB_READ or self.messages[message, M_FLAGS] & M_HAS_LENGTH)
            ):
                self.count_latency(message, delay)
        return self.leave(stream, 0, message)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def count_latency(self, message: cython.longlong, latency: cython.longlong) -> cython.int:
        """Count a complete message: 64 buckets for the shortest latencies, then 32 for each doubling."""
        group: cython.Py_ssize_t = self.messages[message, M_VERB] * SIZES
        rest: cython.longlong = self.messages[message, M_BYTES] - 1
        last: cython.Py_ssize_t = group + SIZES - 1
        bucket: cython.longlong = latency
        while rest > 0 and group < last:
            rest >>= 1
            group += 1
        rest = 0
        while bucket >= 64:
            bucket >>= 1
            rest += 32
        bucket = min(bucket + rest, BUCKETS - 1)
        self.latency[group, bucket] += 1
        if self.latency[group, LATENCY_COUNT] == 0 or latency < self.latency[group, LATENCY_LEAST]:
            self.latency[group, LATENCY_LEAST] = latency
        if self.latency[group, LATENCY_COUNT] == 0 or latency > self.latency[group, LATENCY_MOST]:
            self.latency[group, LATENCY_MOST] = latency
            self.latency[group, LATENCY_STREAM] = self.messages[message, M_STREAM]
            self.latency[group, LATENCY_FRAME] = self.messages[message, M_FRAME]
        self.latency[group, LATENCY_COUNT] += 1
        return 0

    # -- requests ------------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def follow(
        self,
        stream: cython.Py_ssize_t,
        psn: cython.longlong,
        stop: cython.longlong,
        kind: cython.int,
        slack: cython.longlong,
        payload: cython.longlong,
    ) -> cython.longlong:
        """A request that advances: begins a message or goes on with the newest one. Returns the message, or 0."""
        message: cython.longlong = self.streams[stream, TAIL]
        if kind & STARTS == 0 and message != 0 and self.messages[message, M_FLAGS] & M_ENDED == 0:
            if self.messages[message, M_STOP] == psn:
                self.lengthen(message, stop, kind, payload)
                if kind & ENDS and self.messages[message, M_SYNDROME] != 0:
                    return self.end_refused(stream, message)  # the rest of it was on its way
                return message
            if kind & UNRELIABLE:  # nobody will send what is missing: it is one message, and lost
                self.messages[message, M_FLAGS] |= M_HOLED
                return self.lengthen(message, stop, kind, payload)
        if kind & UNRELIABLE:
            if message != 0:
                self.end_oldest(stream, ENDED_LOST)  # the next one begins before its end was seen
        elif message != 0 and self.messages[message, M_SYNDROME] != 0:
            self.end_refused(stream, message)
        elif self.streams[stream, OUTSTANDING] >= MOST_OUTSTANDING or (
            self.streams[stream, OUTSTANDING] >= MOST_UNHEARD
            and self.streams[stream, PEER] == 0
            and self.counts[MESSAGES_USED] > self.messages.shape[0] >> 1  # room for those whose answers will come
        ):
            if self.streams[stream, FLAGS] & DEAD:
                self.end_oldest(stream, ENDED_FLUSHED)
            else:
                self.end_oldest(stream, ENDED_ANSWER_UNSEEN if self.streams[stream, PEER] != 0 else ENDED_UNANSWERED)
        message = self.enter(stream, self.streams[stream, TAIL], psn, stop, kind, payload)
        if message != 0 and slack > 0:
            self.messages[message, M_FLAGS] |= M_OPEN_RANGE
        return message

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def end_refused(self, stream: cython.Py_ssize_t, message: cython.longlong) -> cython.longlong:
        """The refused message has ended, and with it what came late before it. Returns 0."""
        while self.streams[stream, HEAD] != message:
            self.end_oldest(stream, ENDED_FLUSHED)
        self.end_oldest(stream, ENDED_REFUSED)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def lengthen(
        self, message: cython.longlong, stop: cython.longlong, kind: cython.int, payload: cython.longlong
    ) -> cython.longlong:
        """The next packet of a message."""
        self.messages[message, M_STOP] = stop
        self.messages[message, M_LAST_FRAME] = self.frame
        self.messages[message, M_LAST_TIME] = self.time
        self.messages[message, M_SENT_TIME] = self.time
        self.messages[message, M_PACKETS] += 1
        self.messages[message, M_BYTES] += payload
        if kind & ENDS:
            self.messages[message, M_FLAGS] |= M_ENDED
            self.messages[message, M_VERB] = kind >> VERB_SHIFT  # only the last packet tells of an immediate
        return message

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def settle_unreliable(self, stream: cython.Py_ssize_t, kind: cython.int) -> cython.longlong:
        """UC and UD: the last packet ends a message, for nothing ever answers it. Returns 0."""
        message: cython.longlong = self.streams[stream, HEAD]
        flags: cython.longlong
        if kind & ENDS and message != 0:
            flags = self.messages[message, M_FLAGS]
            if flags & M_HOLED or (flags & M_STARTED == 0 and self.streams[stream, MESSAGES_ENDED] > 0):
                self.end_oldest(stream, ENDED_LOST)
            else:
                self.end_oldest(stream, ENDED_SENT)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def repeat(
        self,
        stream: cython.Py_ssize_t,
        psn: cython.longlong,
        stop: cython.longlong,
        kind: cython.int,
        slack: cython.longlong,
        late: cython.bint,
        payload: cython.longlong,
    ) -> cython.longlong:
        """A request that does not advance: it belongs to a message under way, or fills a hole between two.

        Returns when its message was sent last before, 0 where that is not known; sets `message` if it fills a hole.
        """
        before: cython.longlong = self.streams[stream, CURSOR]
        message: cython.longlong
        sent_time: cython.longlong
        if before == 0 or self.messages[before, M_PSN] > psn:
            before = 0
        message = self.messages[before, M_LINK] if before != 0 else self.streams[stream, HEAD]
        while message != 0 and self.messages[message, M_PSN] <= psn:
            before = message
            message = self.messages[message, M_LINK]
        self.streams[stream, CURSOR] = before
        if before != 0 and psn < self.messages[before, M_STOP]:
            sent_time = self.messages[before, M_SENT_TIME]
            self.messages[before, M_SENT_TIME] = self.time
            self.messages[before, M_RESENDS] += 1
            if kind & (STARTS | READ) == STARTS and psn > self.messages[before, M_PSN]:
                self.streams[stream, CHANGED_REQUESTS] += 1  # it begins a message where another one goes on
            elif (
                kind & CONTINUES
                and psn == self.messages[before, M_PSN]
                and (self.messages[before, M_FLAGS] & M_STARTED)
            ):
                self.streams[stream, CHANGED_REQUESTS] += 1
            return sent_time
        if late and kind & UNRELIABLE == 0:
            if kind & STARTS == 0 and before != 0 and self.goes_on(before, psn):
                self.lengthen(before, stop, kind, payload)
            elif self.streams[stream, OUTSTANDING] < MOST_OUTSTANDING:
                before = self.enter(stream, before, psn, stop, kind, payload)
                if before != 0 and slack > 0:
                    self.messages[before, M_FLAGS] |= M_OPEN_RANGE
            else:
                self.counts[UNFOLLOWED] += 1
                return 0
            self.message = before
            if before != 0 and message != 0 and self.messages[before, M_STOP] == self.messages[message, M_PSN]:
                self.join(stream, before, message)
            self.streams[stream, CURSOR] = before
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def goes_on(self, message: cython.longlong, psn: cython.longlong) -> cython.bint:
        """Whether a message's next packet has this PSN."""
        return self.messages[message, M_STOP] == psn and self.messages[message, M_FLAGS] & (M_ENDED | M_ASKS) == 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def join(self, stream: cython.Py_ssize_t, message: cython.longlong, rest: cython.longlong) -> cython.int:
        """Make one message of two neighbours, where they can be parts of one."""
        flags: cython.longlong = self.messages[rest, M_FLAGS]
        if self.messages[message, M_FLAGS] & (M_ENDED | M_ASKS) or flags & (M_STARTED | M_ASKS):
            return 0
        if self.messages[rest, M_TIME] < self.messages[message, M_TIME]:
            self.messages[message, M_TIME] = self.messages[rest, M_TIME]
            self.messages[message, M_FRAME] = self.messages[rest, M_FRAME]
        if self.messages[rest, M_LAST_TIME] > self.messages[message, M_LAST_TIME]:
            self.messages[message, M_LAST_TIME] = self.messages[rest, M_LAST_TIME]
            self.messages[message, M_LAST_FRAME] = self.messages[rest, M_LAST_FRAME]
        self.messages[message, M_SENT_TIME] = max(self.messages[message, M_SENT_TIME], self.messages[rest, M_SENT_TIME])
        self.messages[message, M_STOP] = self.messages[rest, M_STOP]
        self.messages[message, M_PACKETS] += self.messages[rest, M_PACKETS]
        self.messages[message, M_BYTES] += self.messages[rest, M_BYTES]
        self.messages[message, M_RESENDS] += self.messages[rest, M_RESENDS]
        self.messages[message, M_RNRS] += self.messages[rest, M_RNRS]
        self.messages[message, M_FLAGS] |= flags
        self.messages[message, M_IMM] = self.messages[rest, M_IMM]
        if flags & M_ENDED:
            self.messages[message, M_VERB] = self.messages[rest, M_VERB]
        return self.leave(stream, message, rest)

    # -- answers -------------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def acknowledge(self, stream: cython.Py_ssize_t, acked: cython.longlong) -> cython.longlong:
        """The packet at hand says that all before PSN `acked` has arrived: end what that answers.

        Returns the first PSN of a READ or atomic that it passed over (an implied NAK), 0: none.
        """
        message: cython.longlong = self.streams[stream, HEAD]
        rest: cython.longlong
        while message != 0:
            if self.messages[message, M_FLAGS] & M_DONE == 0:
                if self.messages[message, M_PSN] >= acked:
                    return 0
                if self.messages[message, M_FLAGS] & M_ASKS:
                    if acked <= self.messages[message, M_STOP] or self.messages[message, M_FLAGS] & M_OPEN_RANGE:
                        return 0
                    self.messages[message, M_IMPLIED] += 1
                    if self.messages[message, M_IMPLIED] < IMPLIED_PATIENCE or self.messages[message, M_RESENDS] > 0:
                        return self.messages[message, M_ANSWERED]
                    self.end_oldest(stream, ENDED_ANSWER_UNSEEN)
                    if self.streams[stream, CAUSE] == BY_IMPLIED_NAK:
                        self.clear_cause(stream)
                    message = self.streams[stream, HEAD]
                    continue
                if self.messages[message, M_STOP] > acked:
                    return 0
                if self.messages[message, M_FLAGS] & M_ENDED == 0:
                    rest = self.messages[message, M_LINK]
                    if rest == 0 or self.messages[rest, M_PSN] >= acked:
                        return 0  # it goes on
                    if self.messages[rest, M_FLAGS] & (M_STARTED | M_ASKS) == 0:  # the capture lacks what is between
                        self.messages[message, M_FLAGS] |= M_HOLED
                        self.join(stream, message, rest)
                        continue
                self.messages[message, M_ANSWER_FRAME] = self.frame
                self.messages[message, M_ANSWER_TIME] = self.time
            self.end_oldest(stream, ENDED_COMPLETE)
            message = self.streams[stream, HEAD]
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def answer(
        self, stream: cython.Py_ssize_t, psn: cython.longlong, kind: cython.int, acked: cython.longlong
    ) -> cython.longlong:
        """A READ response or atomic acknowledge for `psn`; all before `acked` has been acknowledged so far.

        Returns the first PSN of an older READ or atomic that it passed over (an implied NAK), 0: none.
        """
        message: cython.longlong = self.streams[stream, HEAD]
        implied: cython.longlong = 0
        place: cython.longlong
        while message != 0 and self.messages[message, M_STOP] <= psn:
            if self.messages[message, M_FLAGS] & M_OPEN_RANGE and (
                self.messages[message, M_LINK] == 0 or self.messages[self.messages[message, M_LINK], M_PSN] > psn
            ):
                break  # the range is longer than was known
            message = self.messages[message, M_LINK]
        if message == 0 or self.messages[message, M_PSN] > psn:
            return 0  # of a message that ended, or that was never seen
        if self.messages[message, M_FLAGS] & M_ASKS == 0:
            return self.acknowledge(stream, psn + 1)  # FLUSH and ATOMIC WRITE
        if message != self.streams[stream, HEAD]:
            implied = self.acknowledge(stream, self.messages[message, M_PSN])
        if self.messages[message, M_STOP] <= psn:
            self.messages[message, M_STOP] = psn + 1
        place = psn - self.messages[message, M_ANSWERED]
        if place < 0 or (place < 62 and (self.messages[message, M_AHEAD] >> place) & 1):
            return implied  # replayed
        if self.messages[message, M_ANSWER_PACKETS] == 0:
            self.messages[message, M_ANSWER_FIRST_FRAME] = self.frame
            self.messages[message, M_ANSWER_FIRST_TIME] = self.time
        self.messages[message, M_ANSWER_PACKETS] += 1
        self.messages[message, M_ANSWER_FRAME] = self.frame
        self.messages[message, M_ANSWER_TIME] = self.time
        if place == 0:
            self.messages[message, M_ANSWERED] += 1
            self.messages[message, M_AHEAD] >>= 1
            while self.messages[message, M_AHEAD] & 1:
                self.messages[message, M_ANSWERED] += 1
                self.messages[message, M_AHEAD] >>= 1
        elif place < 62:
            self.messages[message, M_AHEAD] |= cython.cast(cython.longlong, 1) << place
        if kind & ENDS and self.messages[message, M_STOP] == psn + 1:
            self.messages[message, M_FLAGS] &= ~M_OPEN_RANGE
        if (
            self.messages[message, M_ANSWERED] >= self.messages[message, M_STOP]
            and self.messages[message, M_FLAGS] & M_OPEN_RANGE == 0
        ):
            self.messages[message, M_FLAGS] |= M_DONE
            if self.streams[stream, CAUSE] == BY_IMPLIED_NAK and self.streams[stream, CAUSE_PSN] <= psn:
                self.clear_cause(stream)  # what it asked for has come
            if message == self.streams[stream, HEAD]:
                self.end_oldest(stream, ENDED_COMPLETE)
                if self.streams[stream, HEAD] != 0:
                    self.acknowledge(stream, acked)  # what had to wait for it
        return implied

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def meet_rnr(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.longlong:
        """An RNR NAK for `psn`. Returns the message's frame in which that was sent, 0 where it is not known."""
        message: cython.longlong = self.message_at(stream, psn)
        if message == 0:
            return 0
        self.messages[message, M_RNRS] += 1
        self.asked_time = self.messages[message, M_TIME]
        return self.messages[message, M_FRAME]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def message_at(self, stream: cython.Py_ssize_t, psn: cython.longlong) -> cython.longlong:
        """The message under way that holds a PSN, 0: none."""
        message: cython.longlong = self.streams[stream, TAIL]
        if message != 0 and self.messages[message, M_PSN] > psn:
            message = self.streams[stream, HEAD]
            while message != 0 and self.messages[message, M_STOP] <= psn:
                message = self.messages[message, M_LINK]
        if message == 0 or not self.messages[message, M_PSN] <= psn < self.messages[message, M_STOP]:
            return 0
        return message

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def refuse(self, stream: cython.Py_ssize_t, psn: cython.longlong, syndrome: cython.int) -> cython.longlong:
        """A NAK for `psn` ends the QP, and all its messages. Returns the frame of the refused one, 0: not known."""
        message: cython.longlong = self.message_at(stream, psn)
        frame: cython.longlong = 0
        if message != 0:
            frame = self.messages[message, M_FRAME]
            self.asked_time = self.messages[message, M_TIME]
            self.messages[message, M_ANSWER_FRAME] = self.frame
            self.messages[message, M_ANSWER_TIME] = self.time
            self.messages[message, M_SYNDROME] = syndrome + 1
            while self.streams[stream, HEAD] != message:
                self.end_oldest(stream, ENDED_UNANSWERED)
            if self.messages[message, M_FLAGS] & M_ENDED == 0 and self.streams[stream, TAIL] == message:
                return frame  # its other packets are on their way
            self.end_oldest(stream, ENDED_REFUSED)
        while self.streams[stream, HEAD] != 0:
            self.end_oldest(stream, ENDED_FLUSHED)
        return frame

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def end_all(self, stream: cython.Py_ssize_t) -> cython.int:
        """The stream's life, or the capture, is over. It was busy no longer than anything was heard of it."""
        now: cython.longlong = self.time
        self.time = max(self.streams[stream, REQUEST_TIME], self.streams[stream, LAST_ANSWER_TIME])
        while self.streams[stream, HEAD] != 0:
            if self.messages[self.streams[stream, HEAD], M_SYNDROME] != 0:
                self.end_oldest(stream, ENDED_REFUSED)
            elif self.streams[stream, FLAGS] & DEAD:
                self.end_oldest(stream, ENDED_FLUSHED)
            elif self.messages[self.streams[stream, HEAD], M_FLAGS] & M_ENDED == 0:
                self.end_oldest(stream, ENDED_UNFINISHED)
            else:
                self.end_oldest(stream, ENDED_UNANSWERED)
        self.time = now
        return 0
