# Written by tools/make_pxd.py from roce_dissect.capture.states: change that, not this.
cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define roce_dissect_prefetch(address) __builtin_prefetch(address)
    #else
    #define roce_dissect_prefetch(address) ((void)(address))
    #endif
    """
    void prefetch "roce_dissect_prefetch" (const void *address) nogil

cdef enum:
    POSITION = 0
    FORMAT = 1
    LITTLE_ENDIAN = 2
    TICK_NS = 3
    MAX_CAPTURED = 4
    STOP = 5
    VALUE = 6
    NEED = 7
    INTERFACES = 8
    SLICED = 9
    TIMED = 10
    FIRST_NS = 11
    LAST_NS = 12
    OTHERS = 13
    STATE_SIZE = 16
    PCAP = 0
    PCAPNG = 1
    LINK_TYPE = 0
    SNAPLEN = 1
    FRAMES = 2
    TIME_KIND = 3
    UNITS = 4
    FACTOR = 5
    LARGEST = 6
    OFFSET_S = 7
    INTERFACE_SIZE = 8
    TIME_PLAIN = 0
    TIME_DECIMAL = 1
    TIME_FINE = 2
    TIME_BINARY = 3
    RECORD_HEADER = 16
    MIN_BLOCK = 12
    MIN_SIMPLE = 16
    MIN_ENHANCED = 32
    STANDARD_CAPTURED = 262144
    MAX_LENGTH = 67108864
    MAX_INTERFACES = 65536
    BATCH = 16384
    AHEAD = 6
    BLOCK_INTERFACE = 1
    BLOCK_OBSOLETE = 2
    BLOCK_SIMPLE = 3
    BLOCK_ENHANCED = 6
    BLOCK_JOURNAL = 9
    BLOCK_SYSDIG_1 = 516
    BLOCK_SYSDIG_2 = 534
    BLOCK_SYSDIG_3 = 545
    BLOCK_CUSTOM = 2989
    BLOCK_CUSTOM_LOCAL = 1073744813
    BLOCK_SECTION = 168627466
    NO_PACKET = 65535
    STOP_MORE = 0
    STOP_SECTION = 1
    STOP_INTERFACE = 2
    FAULT_CAPTURED = 3
    FAULT_SHORT = 4
    FAULT_LONG = 5
    FAULT_TRAILER = 6
    FAULT_PACKET = 7
    FAULT_INTERFACE = 8
