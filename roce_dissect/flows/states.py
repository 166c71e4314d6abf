"""Numbers shared by the tracker's two forms and by the tables built on its output.

The names are C constants in the compiled tracker: ``tools/make_pxd.py`` writes ``tracker.pxd`` from this file.
What the words mean to a user stands in `docs/semantics.md` and `roce_dissect.columns`.
"""

from __future__ import annotations

from roce_dissect.spec.aeth import FATAL_NAKS, NakCode, SyndromeKind
from roce_dissect.spec.headers import HAS_AETH, HAS_BTH, HAS_DETH, HAS_ICRC, HAS_IPV4, HAS_RETH  # noqa: F401
from roce_dissect.spec.net import ECN_CE  # noqa: F401

# -- what an opcode is to the tracker (class table, uint16[256])
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

# -- a stream: one row of 64-bit integers; the first sixteen are what a plain request touches
KEY_HOSTS = 0  # source << 32 | destination
KEY_QP = 1  # VNI << 24 | destination QP
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
ID_FIRST = 16  # IPv4 identification of the first packet
ID_VARIES = 17
RESPONSES = 18
RESPONSE_NEXT = 19  # PSN after the highest one answered, unwrapped; 0: no response yet
FIRST_PSN = 20
HOLE = 21  # head of the list of PSN ranges not seen, 0: none
HOLE_COUNT = 22
PAIR = 23  # host pair
NEXT_IN_PAIR = 24  # stream + 1, 0: last
PEER = 25  # stream + 1 of the other direction, 0: not known
PEER_TRIES = 26
FIRST_TIME = 27
FIRST_FRAME = 28
LIFE = 29
VERSION = 30
OPCODE = 31  # of the first packet: tells the transport
SPORT = 32
CM_MTU = 33
GAPS = 34
MISSING = 35
LATE_PACKETS = 36
RESENT_PACKETS = 37
COPIES = 38
RUNS = 39
STALL = 40
UNSEEN_PACKETS = 41
RESPONSE_GAPS = 42
ACKS = 43
NAKS = 44
SEQUENCE_NAKS = 45  # NAK 0x60
RNR_NAKS = 46
CNPS = 47
CE_PACKETS = 48
DUPLICATE_REQUEST = 49
OUT_OF_SEQ_REQUEST = 50
OWED_NAKS = 51  # NAKs that the model sent and the capture has not shown yet
BURST_EXPECTED = 52  # EXPECTED, and the two counters, when the present run of
BURST_DUPLICATES = 53  # unaccepted packets began: a fatal NAK takes them back
BURST_OUT_OF_SEQ = 54
RUN_FRAME = 55  # the open run of requests that do not advance
RUN_TIME = 56
RUN_LAST_FRAME = 57
RUN_LAST_TIME = 58
RUN_COUNT = 59
RUN_LATE = 60
RUN_PSN = 61
RUN_STALL = 62  # of the open run, up to the last READ response that was progress
CNP_RUN = 63  # five words: frame, time, last frame, last time, count
CE_RUN = 68  # the same
PAIRED = 73  # evidence of PEER, as terms.PairedBy
READ_PSN = 74  # of the last READ with a range of more than one, unwrapped; 0: none
STREAM_WORDS = 75

# -- flags of a stream
STARTED = 1  # a request was seen, or the CM told the first PSN
NAK_SENT = 2  # the model's responder waits for EXPECTED in silence
DEAD = 4  # a NAK put the QP into error
DROPPING = 8  # UC: the rest of the message is lost
RUN_OPEN = 16
ANNOUNCED = 32  # the CM told the first PSN, no request yet
CLOSED = 64  # the CM tore the connection down
EXPIRED = 128  # the other direction began a new life: so does this one with its next packet

# -- a host pair (smaller code first); the table is its own hash
PAIR_HOSTS = 0
PAIR_MTU = 1
PAIR_HEAD = 2  # of the list of its streams that have no peer yet
PAIR_WORDS = 3

# -- a hole: PSNs start <= psn < stop; link: next lower hole of the stream (or next free one), 0: last
HOLE_START = 0
HOLE_STOP = 1
HOLE_LINK = 2
HOLE_WORDS = 3
MOST_HOLES = 512  # of one stream; beyond, the older half is forgotten

# -- the last requests with their fingerprints, direct mapped
RECENT_KEY = 0
RECENT_PRINT = 1
RECENT_TIME = 2
RECENT_WORDS = 3
COPY_WINDOW_NS = 1_000_000

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
EVENT_WORDS = 10
MOST_EVENTS = 8  # that one packet can cause

# -- kinds of events: terms.EventKind as C constants
KIND_GAP = 0
KIND_RESEND = 1
KIND_NAK = 2
KIND_RNR_NAK = 3
KIND_CNP = 4
KIND_CE = 5
KIND_UNSEEN = 6
KIND_NEW_LIFE = 7

# -- terms.Verdict, terms.Accepted, terms.Role and terms.PairedBy as C constants
VERDICT_NONE = 0
VERDICT_FIRST = 1
VERDICT_NEW = 2
VERDICT_GAP = 3
VERDICT_LATE = 4
VERDICT_RESENT = 5
VERDICT_COPY = 6
ACCEPTED_NONE = 0
ACCEPTED_YES = 1
ACCEPTED_DUPLICATE = 2
ACCEPTED_OUT_OF_SEQUENCE = 3
ACCEPTED_DISCARDED = 4
ACCEPTED_QP_ERROR = 5
ROLE_OTHER = 0
ROLE_REQUEST = 1
ROLE_RESPONSE = 2
ROLE_DATAGRAM = 3
ROLE_MANAGEMENT = 4
ROLE_CNP = 5
PAIRED_BY_PSN = 3
PAIRED_BY_CM = 4

# -- what an AETH says: spec.aeth as C constants
SAYS_ACK = int(SyndromeKind.ACK)
SAYS_RNR = int(SyndromeKind.RNR_NAK)
SAYS_NAK = int(SyndromeKind.NAK)
SEQUENCE_NAK = int(NakCode.PSN_SEQUENCE_ERROR)
LAST_FATAL = int(max(FATAL_NAKS))  # codes from SEQUENCE_NAK + 1 up to this one end the QP

# -- limits, and the reasons for them in docs/semantics.md
LEAST_MTU = 64  # bytes; some FPGA stacks use less than IBTA's 256
PATIENCE = 16384  # PSNs a sender may run on after a gap before the gap is the capture's
IMPOSSIBLE = 1 << 18  # PSNs in one step that no sender makes: another life
UNKNOWN_LENGTH_SLACK = 1 << 16  # PSNs that a READ of unknown length may take
MOST_CANDIDATES = 4096  # streams looked at for one response
MOST_NAK_TRIES = 64  # NAKs that look for the stream they answer, each; later ones as rarely as ACKs
RUN_BREAK_NS = 100_000_000  # between CNPs or CE marks of two runs

# -- how many rows of each table are used, and what was left out
STREAMS_USED = 0
HOLES_USED = 1
HOLE_FREE = 2
EVENTS_USED = 3
UNTRACKED = 4  # packets whose stream found no room
FOREIGN = 5  # packets without a trustworthy BTH
TWINS = 6  # requests that are in the capture twice, bit for bit
CUT_ANSWERS = 7  # responses whose AETH was cut off: ACK or NAK is not known
COUNTS = 8
