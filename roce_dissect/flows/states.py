"""Numbers shared by the tracker's two forms and by the tables built on its output.

The names are C constants in the compiled tracker: ``tools/make_pxd.py`` writes ``states.pxd`` from this file.
What the words mean to a user stands in `docs/semantics.md` and `roce_dissect.columns`.
"""

from __future__ import annotations

from roce_dissect.spec.aeth import FATAL_NAKS, NakCode, SyndromeKind
from roce_dissect.spec.headers import (  # noqa: F401
    HAS_AETH,
    HAS_ATOMIC_ETH,
    HAS_BTH,
    HAS_DETH,
    HAS_ICRC,
    HAS_IETH,
    HAS_IMMDT,
    HAS_IPV4,
    HAS_RETH,
    HAS_VNI,
)
from roce_dissect.spec.net import ECN_CE  # noqa: F401
from roce_dissect.terms import (
    Accepted,
    EventKind,
    MessageStatus,
    PairedBy,
    Recovery,
    Role,
    Standing,
    Status,
    Trigger,
    Verb,
    Verdict,
)

# -- what an opcode is to the tracker (class table, uint32[256]); the verb stands above
COUNTED = 1  # belongs to a stream, but is not judged
REQUEST = 2
READ = 4  # READ REQUEST
RESPONSE = 8
READ_RESPONSE = 16
ACKNOWLEDGES = 32  # carries an AETH
FULL = 64  # FIRST or MIDDLE: its payload is the path MTU
STARTS = 128  # FIRST or ONLY
CONTINUES = 256  # MIDDLE or LAST
UNRELIABLE = 512  # UC
DATAGRAM = 1024
CONGESTION = 2048  # CNP
ENDS = 4096  # LAST or ONLY, or a request of one packet
ASKS = 8192  # READ or atomic: only its own response answers it
VERB_SHIFT = 16

NETWORK_SHIFT = 24  # of the VNI in KEY_QP

# -- a stream: one row of 64-bit integers; the first ones are what a plain request touches
KEY_HOSTS = 0  # source << 32 | destination
KEY_QP = 1  # (VNI + 1, 0: none) << 24 | destination QP
KEY_SOURCE = 2  # UD: source QP + 1
NEXT = 3  # PSN after the highest request seen here, unwrapped
EXPECTED = 4  # PSN that the responder expects, unwrapped
FLAGS = 5
PACKETS = 6
MTU = 7  # path MTU learned from payloads, 0: not seen
LAST_TIME = 8
LAST_FRAME = 9
BYTES = 10
PAYLOAD_BYTES = 11
GOODPUT_BYTES = 12
ADVANCE_TIME = 13  # of the last progress: a request that advanced NEXT, or a new READ response to this stream
SLACK = 14  # PSNs that the last READ may have taken beyond the ones in NEXT
REQUESTS = 15
HEAD = 16  # its oldest message that has not ended, 0: none
TAIL = 17  # its newest
OUTSTANDING = 18  # messages between the two
REQUEST_TIME = 19  # of the latest request
PEER = 20  # stream + 1 of the other direction, 0: not known
ACKED = 21  # PSN after the highest one that was acknowledged, unwrapped
RESPONSES = 22
RESPONSE_NEXT = 23  # PSN after the highest one answered, unwrapped; 0: no response yet
RESPONSE_FIRST = 24  # PSN after the one of the first response, unwrapped
ID_FIRST = 25  # IPv4 identification of the first packet
LAST_ID = 26  # of the latest request, by the order of identifications
ID_STEPS = 27  # plain requests whose identification was a little higher than the one before
ID_BREAKS = 28  # and those whose was not
ID_VARIES = 29
ACKS = 30
READS = 31  # of the messages outstanding, those that ask for data
MOST_MESSAGES = 32  # outstanding at once
MOST_READS = 33
MOST_PACKETS = 34
MESSAGES_ENDED = 35
MESSAGES_COMPLETE = 36
BUSY_SINCE = 37  # time when something became outstanding
BUSY_TIME = 38
IDLE_SINCE = 39  # time when nothing was outstanding any more, 0: not yet
IDLE_TIME = 40
LEAST_ANSWER = 41  # shortest time from a message's last packet to its answer, 0: none
ANSWER_DELAY = 42  # that of the message that ended last
QUICK_REACTIONS = 43  # next messages that came three times as soon after an answer as that had after its message
SLOW_REACTIONS = 44
CURSOR = 45  # message in which the latest repeated request was found, 0: none
FIRST_PSN = 46
HOLE = 47  # head of the list of PSN ranges not seen, 0: none
HOLE_COUNT = 48
PAIR = 49  # host pair
NEXT_IN_PAIR = 50  # stream + 1, 0: last
NAK_TRIES = 51
PEER_TRIES = 52
FIRST_TIME = 53
FIRST_FRAME = 54
LIFE = 55
VERSION = 56
OPCODE = 57  # of the first packet: tells the transport
SPORT = 58
CM_MTU = 59
CM_TIMEOUT = 60  # local ACK timeout + 1 as the REQ told, 0: not told
GAPS = 61
MISSING = 62
LATE_PACKETS = 63
RESENT_PACKETS = 64
COPIES = 65
EPISODES = 66
TIMEOUTS = 67
MOST_RETRIES = 68
STALL = 69
UNSEEN_PACKETS = 70
RESPONSE_GAPS = 71
DUPLICATE_ACKS = 72
ACK_REGRESSIONS = 73
CHANGED_REQUESTS = 74  # sent again as another operation than before
COALESCED_ACKS = 75  # that ended more than one message
REPLAYED_RESPONSES = 76
ZERO_CREDIT_ACKS = 77
IMPLIED_NAKS = 78
NAKS = 79
SEQUENCE_NAKS = 80  # NAK 0x60
NEW_SEQUENCE_NAKS = 81  # of these, the ones that acknowledged a part of their message
ACCESS_NAKS = 82  # NAK 0x62
RNR_NAKS = 83
MSN_FIRST = 84  # of the first answer, + 1; 0: none
MSN_LAST = 85
CNPS = 86
CE_PACKETS = 87
DUPLICATE_REQUEST = 88
OUT_OF_SEQ_REQUEST = 89
OUT_OF_SEQ_PACKETS = 90
REFUSED_PACKETS = 91  # requests that met a QP in error
OWED_NAKS = 92  # NAKs that the model sent and the capture has not shown yet
BURST_EXPECTED = 93  # EXPECTED, and the two counters, when the present run of
BURST_DUPLICATES = 94  # unaccepted packets began: a fatal NAK takes them back
BURST_OUT_OF_SEQ = 95
ACKED_TIME = 96  # when ACKED moved last
LEAST_REACTION = 97  # shortest time from a NAK to the first request that it caused, 0: none
RNR_CODE = 98  # timer code of the latest RNR NAK
REACTIONS = 99  # how many of them
LAST_ANSWER_TIME = 100
CAUSE = 101  # terms.Trigger of a NAK that waits for the requester to go back, 0: none
CAUSE_PSN = 102
CAUSE_TIME = 103
CAUSE_FRAME = 104
CAUSE_USED = 105  # an episode of first sights only has taken it: perhaps mere reordering
RETRY = 106  # episodes in a row without progress
RETRY_ACKED = 107  # ACKED when the latest episode opened
ERROR_NEXT = 108  # NEXT when a NAK put the QP into error
RETRY_WAIT = 109  # wait of the latest episode
TIMEOUT_LEAST = 110  # shortest wait from one resend of a packet to the next, 0: none
TIMEOUT_SAMPLES = 111
LAST_RUN_PSN = 112  # where the latest episode began
LAST_TRIGGER = 113  # of the latest episode
RUN_FRAME = 114  # the open episode: requests that do not advance
RUN_TIME = 115
RUN_LAST_FRAME = 116
RUN_LAST_TIME = 117
RUN_COUNT = 118
RUN_LATE = 119
RUN_PSN = 120
RUN_STOP = 121  # after the highest PSN in it
RUN_LATEST = 122  # PSN of its latest packet
RUN_BYTES = 123
RUN_ARRIVED = 124
RUN_SILENT = 125  # nothing of it had been answered when it began
RUN_TRIGGER = 126
RUN_CAUSE_FRAME = 127
RUN_CAUSE_TIME = 128
RUN_WAIT = 129
RUN_EXTENT = 130
RUN_HOLE_TIME = 131
RUN_STALL = 132  # of the open episode, up to the last READ response that was progress
CNP_RUN = 133  # five words: frame, time, last frame, last time, count
CE_RUN = 138  # the same
PAIRED = 143  # evidence of PEER, as terms.PairedBy
READ_PSN = 144  # of the last READ with a range of more than one, unwrapped; 0: none
BEGAN_UNPROVEN = 145  # whether its first packet had a wrong ICRC, as had all of its sender up to then
STREAM_WORDS = 146

# -- flags of a stream
STARTED = 1  # a request was seen, or the CM told the first PSN
NAK_SENT = 2  # the model's responder waits for EXPECTED in silence
DEAD = 4  # a NAK put the QP into error
DROPPING = 8  # UC: the rest of the message is lost
RUN_OPEN = 16
ANNOUNCED = 32  # the CM told the first PSN, no request yet
CLOSED = 64  # the CM tore the connection down
EXPIRED = 128  # the other direction began a new life: so does this one with its next packet
CAUSED = 256  # CAUSE waits

# -- a host pair (smaller code first); the table is its own hash
PAIR_HOSTS = 0
PAIR_MTU = 1
PAIR_HEAD = 2  # of the list of its streams that have no peer yet
PAIR_WORDS = 3

# -- a hole: PSNs start <= psn < stop; link: next lower hole of the stream (or next free one), 0: last
HOLE_START = 0
HOLE_STOP = 1
HOLE_LINK = 2
HOLE_TIME = 3  # of the request behind it, which showed it
HOLE_FRAME = 4
HOLE_WORDS = 5
MOST_HOLES = 512  # of one stream; beyond, the older half is forgotten

# -- the last requests with their fingerprints, direct mapped
RECENT_KEY = 0
RECENT_PRINT = 1
RECENT_TIME = 2
RECENT_WORDS = 3
COPY_WINDOW_NS = 1_000_000
#: How far beyond an earlier one of its key a doubtful packet may be to continue it: a READ of 16 MB, MTU 1024.
FITTING = 1 << 14

# -- an event: one row of 64-bit integers (kinds: terms.EventKind)
EVENT_KIND = 0
EVENT_STREAM = 1
EVENT_FRAME = 2
EVENT_LAST_FRAME = 3
EVENT_TIME = 4
EVENT_LAST_TIME = 5
EVENT_PSN = 6
EVENT_COUNT = 7
EVENT_STALL = 8
EVENT_VALUE = 9
EVENT_CAUSE_FRAME = 10  # 0: none is known
EVENT_CAUSE_TIME = 11
EVENT_TRIGGER = 12  # the rest: of episodes
EVENT_BYTES = 13
EVENT_ARRIVED = 14  # -1: nothing tells
EVENT_RECOVERY = 15
EVENT_RETRY = 16
EVENT_WAIT = 17
EVENT_EXTENT = 18
EVENT_HOLE_TIME = 19  # 0: it fills no gap
EVENT_WORDS = 20
MOST_EVENTS = 8  # that one packet can cause

# -- a message: one row of 64-bit integers, of those under way and of those that ended
M_STREAM = 0
M_PSN = 1  # first one seen of it, unwrapped
M_STOP = 2  # after its last one
M_FLAGS = 3
M_VERB = 4
M_STATUS = 5
M_FRAME = 6
M_TIME = 7
M_LAST_FRAME = 8
M_LAST_TIME = 9
M_PACKETS = 10
M_BYTES = 11
M_LINK = 12  # the stream's next message, 0: none
M_SENT_TIME = 13  # when any of its packets was sent last
M_RESENDS = 14
M_RNRS = 15
M_IMPLIED = 16  # answers beyond it
M_ANSWER_FIRST_FRAME = 17
M_ANSWER_FIRST_TIME = 18
M_ANSWER_FRAME = 19
M_ANSWER_TIME = 20
M_ANSWER_PACKETS = 21
M_ANSWERED = 22  # READ: PSN of the first response that is still missing
M_AHEAD = 23  # READ: bit i: the response i behind that one was seen
M_SYNDROME = 24  # of the NAK that ended it + 1, 0: none
M_VA = 25
M_R_KEY = 26
M_DMA_LEN = 27
M_IMM = 28  # ImmDt, or the key of IETH
MESSAGE_WORDS = 29

# -- latency of complete messages: a row for each verb and size class
MANTISSA_BITS = 5
BUCKETS = 1152  # of latency: 64 for the first values, then 32 for each doubling, up to 2**40 ns
SIZES = 34  # classes of size: up to 2**0, 2**1 ... 2**33 bytes
LATENCY_COUNT = BUCKETS
LATENCY_LEAST = BUCKETS + 1
LATENCY_MOST = BUCKETS + 2
LATENCY_STREAM = BUCKETS + 3  # of the longest, and the frame in which it began
LATENCY_FRAME = BUCKETS + 4
LATENCY_WORDS = BUCKETS + 5
LATENCY_GROUPS = (int(max(Verb)) + 1) * SIZES

# -- flags of a message
M_STARTED = 1  # its first packet was seen
M_ENDED = 2  # its last one
M_ASKS = 4  # only its own response answers it
M_OPEN_RANGE = 8  # READ: how many PSNs it takes is not known yet
M_DONE = 16  # answered in full; an older one is not yet
M_HOLED = 32  # the capture lacks a part of it
M_HAS_RETH = 64  # VA, R_Key (and DMA length, where RETH) were read
M_HAS_IMM = 128
M_HAS_INV = 256
M_HAS_LENGTH = 512

# -- terms.Verb, terms.MessageStatus, terms.Trigger and terms.Recovery as C constants
VERB_READ = int(Verb.READ)
ENDED_COMPLETE = int(MessageStatus.COMPLETE)
ENDED_SENT = int(MessageStatus.SENT)
ENDED_REFUSED = int(MessageStatus.REFUSED)
ENDED_FLUSHED = int(MessageStatus.FLUSHED)
ENDED_LOST = int(MessageStatus.LOST)
ENDED_UNANSWERED = int(MessageStatus.UNANSWERED)
ENDED_UNFINISHED = int(MessageStatus.UNFINISHED)
ENDED_ANSWER_UNSEEN = int(MessageStatus.ANSWER_UNSEEN)
BY_UNKNOWN = int(Trigger.UNKNOWN)
BY_NAK = int(Trigger.NAK)
BY_IMPLIED_NAK = int(Trigger.IMPLIED_NAK)
BY_RNR_NAK = int(Trigger.RNR_NAK)
BY_TIMEOUT = int(Trigger.TIMEOUT)
BY_SPURIOUS = int(Trigger.SPURIOUS)
BY_REORDERING = int(Trigger.REORDERING)
RECOVERS_NOTHING = int(Recovery.NONE)
GOES_BACK_N = int(Recovery.GO_BACK_N)
SELECTIVE = int(Recovery.SELECTIVE)

# -- kinds of events: terms.EventKind as C constants
KIND_GAP = int(EventKind.GAP)
KIND_RESEND = int(EventKind.RESEND)
KIND_NAK = int(EventKind.NAK)
KIND_RNR_NAK = int(EventKind.RNR_NAK)
KIND_CNP = int(EventKind.CNP)
KIND_CE = int(EventKind.CE)
KIND_UNSEEN = int(EventKind.UNSEEN)
KIND_NEW_LIFE = int(EventKind.NEW_LIFE)
KIND_DAMAGED = int(EventKind.DAMAGED)

# -- terms.Verdict, terms.Accepted, terms.Role and terms.PairedBy as C constants
VERDICT_FIRST = int(Verdict.FIRST)
VERDICT_NEW = int(Verdict.NEW)
VERDICT_GAP = int(Verdict.GAP)
VERDICT_LATE = int(Verdict.LATE)
VERDICT_RESENT = int(Verdict.RESENT)
VERDICT_COPY = int(Verdict.COPY)
STATUS_CUT = int(Status.CUT)
STATUS_FRAGMENT = int(Status.FRAGMENT)
STANDING_UNPROVEN = int(Standing.UNPROVEN)
STANDING_DOUBTFUL = int(Standing.DOUBTFUL)
STANDING_DAMAGED = int(Standing.DAMAGED)
ACCEPTED_YES = int(Accepted.ACCEPTED)
ACCEPTED_DUPLICATE = int(Accepted.DUPLICATE)
ACCEPTED_OUT_OF_SEQUENCE = int(Accepted.OUT_OF_SEQUENCE)
ACCEPTED_DISCARDED = int(Accepted.DISCARDED)
ACCEPTED_QP_ERROR = int(Accepted.QP_ERROR)
ROLE_OTHER = int(Role.OTHER)
ROLE_REQUEST = int(Role.REQUEST)
ROLE_RESPONSE = int(Role.RESPONSE)
ROLE_DATAGRAM = int(Role.DATAGRAM)
ROLE_MANAGEMENT = int(Role.MANAGEMENT)
ROLE_CNP = int(Role.CNP)
PAIRED_BY_PSN = int(PairedBy.PSN)
PAIRED_BY_CM = int(PairedBy.CM)

# -- what an AETH says: spec.aeth as C constants
SAYS_ACK = int(SyndromeKind.ACK)
SAYS_RNR = int(SyndromeKind.RNR_NAK)
SAYS_NAK = int(SyndromeKind.NAK)
SEQUENCE_NAK = int(NakCode.PSN_SEQUENCE_ERROR)
ACCESS_NAK = int(NakCode.REMOTE_ACCESS_ERROR)
LAST_FATAL = int(max(FATAL_NAKS))  # codes from SEQUENCE_NAK + 1 up to this one end the QP

# -- limits, and the reasons for them in docs/semantics.md
LEAST_MTU = 64  # bytes; some FPGA stacks use less than IBTA's 256
PATIENCE = 16384  # PSNs a sender may run on after a gap before the gap is the capture's
MOST_BEFORE = 4096  # PSNs before the first request of a capture that a NAK may ask for
IMPOSSIBLE = 1 << 18  # PSNs in one step that no sender makes: another life
UNKNOWN_LENGTH_SLACK = 1 << 16  # PSNs that a READ of unknown length may take
MOST_CANDIDATES = 4096  # streams looked at for one response
MOST_NAK_TRIES = 64  # NAKs that look for the stream they answer, each; later ones as rarely as ACKs
RUN_BREAK_NS = 100_000_000  # between CNPs or CE marks of two runs
MOST_OUTSTANDING = 4096  # messages of a stream
MOST_UNHEARD = 16  # of one that nobody was heard to answer, when the table is half full
MOST_ENDS = 2 * MOST_OUTSTANDING + 2  # messages that one packet can end
IMPLIED_PATIENCE = 16  # answers beyond a READ that is not asked for again: its own answer passed elsewhere
LEAST_TIMEOUT_NS = 100_000  # silence below this is no timeout
ID_STEP = 0x1000  # identifications that a host may give to others between two requests of a stream
ORDERLY = 16  # so many times as many steps as breaks: a later transmission has a higher identification
FEW_ANSWERS = 16  # complete messages from which on their shortest delay is believed

# -- how many rows of each table are used, and what was left out
STREAMS_USED = 0
HOLES_USED = 1
HOLE_FREE = 2
EVENTS_USED = 3
UNTRACKED = 4  # packets whose stream found no room
FOREIGN = 5  # packets without a trustworthy BTH
TWINS = 6  # requests that are in the capture twice, bit for bit
CUT_ANSWERS = 7  # responses whose AETH was cut off: ACK or NAK is not known
MESSAGES_USED = 8  # rows of the table of messages under way; row 0 is the end of every list
MESSAGE_FREE = 9
ENDED_USED = 10
UNFOLLOWED = 11  # messages for which the table had no room
COUNTS = 12
