"""Numbers that `records.walk` and its caller share: state, interface table, block types, limits and faults.

The names are C constants in the compiled kernel: ``tools/make_pxd.py`` writes ``records.pxd`` from this file. None may
be beyond 31 bits, the range of a C enum.
"""

from __future__ import annotations

# -- the walker's state, one int64 each
POSITION = 0  # in the buffer: where the next record or block begins
FORMAT = 1
LITTLE_ENDIAN = 2
TICK_NS = 3  # classic pcap: ns of one unit of the time's fraction
MAX_CAPTURED = 4  # classic pcap: beyond it a record is a fault
STOP = 5  # why the last call ended
VALUE = 6  # the length or number that a fault is about
NEED = 7  # bytes that the record or block at POSITION takes, 0: not known yet
INTERFACES = 8  # rows of the interface table in use
SLICED = 9  # frames of which less was captured than was on the wire
TIMED = 10  # frames that have a time
FIRST_NS = 11  # the smallest time, once TIMED is not 0
LAST_NS = 12  # the greatest time
OTHERS = 13  # records that are no packets (link type NO_PACKET)
STATE_SIZE = 16

# -- FORMAT
PCAP = 0
PCAPNG = 1

# -- the interface table, one row of int64 each (classic pcap: row 0)
LINK_TYPE = 0
SNAPLEN = 1  # 0: no limit
FRAMES = 2  # counted by the walker
TIME_KIND = 3
UNITS = 4  # TIME_DECIMAL: units a second; TIME_FINE: units a nanosecond; TIME_BINARY: bits after the point
FACTOR = 5  # TIME_PLAIN, TIME_DECIMAL: ns a unit; TIME_FINE: a second divisor
LARGEST = 6  # TIME_PLAIN: the last timestamp whose nanoseconds fit into 63 bits
OFFSET_S = 7  # seconds to be added
INTERFACE_SIZE = 8

# -- TIME_KIND: the unit of an interface's timestamps (if_tsresol, if_tsoffset)
TIME_PLAIN = 0  # 10**-9 s or a greater power of ten, no offset: one multiplication
TIME_DECIMAL = 1  # the same with an offset, or where the product does not fit
TIME_FINE = 2  # a smaller power of ten
TIME_BINARY = 3  # a power of two

# -- lengths
RECORD_HEADER = 16
MIN_BLOCK = 12
MIN_SIMPLE = 16
MIN_ENHANCED = 32  # also of the obsolete Packet Block
STANDARD_CAPTURED = 262144  # what Wireshark takes for the longest packet of a classic file
MAX_LENGTH = 67108864  # 64 MiB: no record and no block may be longer, so that memory stays bounded
MAX_INTERFACES = 65536  # of one section, for the same reason
BATCH = 16384  # records of one batch

# -- block types
BLOCK_INTERFACE = 1
BLOCK_OBSOLETE = 2
BLOCK_SIMPLE = 3
BLOCK_ENHANCED = 6
BLOCK_JOURNAL = 9
BLOCK_SYSDIG_1 = 0x204
BLOCK_SYSDIG_2 = 0x216
BLOCK_SYSDIG_3 = 0x221
BLOCK_CUSTOM = 0xBAD
BLOCK_CUSTOM_LOCAL = 0x40000BAD  # not to be copied into other files
BLOCK_SECTION = 0x0A0D0D0A

#: Link type of a record that is no packet but that Wireshark counts as a frame (custom, journal and Sysdig blocks).
NO_PACKET = 65535

# -- STOP
STOP_MORE = 0  # the batch is full or the input ends
STOP_SECTION = 1  # a Section Header Block begins at POSITION: for Python
STOP_INTERFACE = 2  # a whole Interface Description Block lies at POSITION: for Python
FAULT_CAPTURED = 3  # classic record: captured length VALUE beyond MAX_CAPTURED
FAULT_SHORT = 4  # block length VALUE is less than such a block needs
FAULT_LONG = 5  # block length VALUE is beyond MAX_LENGTH
FAULT_TRAILER = 6  # the length at a block's end is VALUE
FAULT_PACKET = 7  # captured length VALUE is more than its block holds
FAULT_INTERFACE = 8  # interface VALUE was not described
