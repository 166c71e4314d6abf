# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True

# mypy: ignore-errors
"""Records of classic pcap and pcapng in a byte buffer -> arrays of where each frame lies, how long it is, and when.

One source, two forms: compiled by Cython, or interpreted as it stands with the same results. The interpreted form is
given ``memoryview(array)`` for each array, so that every element is a Python int and a read past the end an IndexError.
What makes the compiled form safe: each length is checked by subtraction in signed 64 bits before it is used, no index
can be negative, and no sum or product is formed before it is known to fit.

Section and Interface Description Blocks are rare and go back to Python (`STOP_SECTION`, `STOP_INTERFACE`). `walk` keeps
its position in ``state``: input can be fed in pieces of any size.

Sources: tcpdump.org, "pcap savefile format" (pcap-savefile.5); IETF draft-ietf-opsawg-pcapng, sections 3 and 4.
"""

from __future__ import annotations

import cython

if not cython.compiled:  # compiled: the same names are C enums in records.pxd, so that they are constants
    from roce_dissect.capture.states import *

    def piece(data, at, size):
        """data[at:at + size], all of it: a slice alone is cut silently, and a negative index counts from the end."""
        if at < 0 or size > len(data) - at:
            raise IndexError(f"bytes {at} to {at + size} of {len(data)}")
        return data[at : at + size]


__all__ = ["COMPILED", "walk"]

#: Whether this is the compiled form.
COMPILED = cython.compiled


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def load16(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, little: cython.bint) -> cython.longlong:
    """Load an unsigned 16-bit number in the file's byte order."""
    if not cython.compiled:
        return int.from_bytes(piece(data, at, 2), "little" if little else "big")
    # One address: behind a pointer gcc makes a single load of the bytes, of indexed bytes it does not.
    byte: cython.pointer(cython.const[cython.uchar]) = cython.address(data[at])
    if little:
        return (cython.cast(cython.uint, byte[1]) << 8) | byte[0]
    return (cython.cast(cython.uint, byte[0]) << 8) | byte[1]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def load32(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, little: cython.bint) -> cython.longlong:
    """Load an unsigned 32-bit number in the file's byte order."""
    if not cython.compiled:
        return int.from_bytes(piece(data, at, 4), "little" if little else "big")
    byte: cython.pointer(cython.const[cython.uchar]) = cython.address(data[at])
    if little:
        return (
            (cython.cast(cython.uint, byte[3]) << 24)
            | (cython.cast(cython.uint, byte[2]) << 16)
            | (cython.cast(cython.uint, byte[1]) << 8)
            | byte[0]
        )
    return (
        (cython.cast(cython.uint, byte[0]) << 24)
        | (cython.cast(cython.uint, byte[1]) << 16)
        | (cython.cast(cython.uint, byte[2]) << 8)
        | byte[3]
    )


@cython.cfunc
@cython.nogil
def convert_time(
    interfaces: cython.longlong[:, ::1], row: cython.Py_ssize_t, stamp: cython.ulonglong
) -> cython.longlong:
    """Nanoseconds of a timestamp in the interface's unit, saturated to 64 bits: the general case."""
    kind: cython.longlong = interfaces[row, TIME_KIND]
    units: cython.ulonglong = interfaces[row, UNITS]
    factor: cython.ulonglong = interfaces[row, FACTOR]
    offset: cython.longlong = interfaces[row, OFFSET_S]
    second: cython.ulonglong = 1000000000
    last: cython.longlong = 9223372035  # the last whole second whose nanoseconds fit
    greatest: cython.longlong = 9223372036854775807
    low_half: cython.ulonglong = 4294967295
    one: cython.ulonglong = 1
    rest: cython.ulonglong
    whole: cython.longlong
    if kind == TIME_BINARY:
        # units is the number of bits after the point, up to 127. Floor of rest * 10**9 / 2**units in two halves, since
        # the product takes up to 94 bits.
        if units < 64:
            whole = cython.cast(cython.longlong, stamp >> units) if units > 0 else saturate(stamp)
            rest = stamp & ((one << units) - 1)
        else:
            whole = 0
            rest = stamp
        if units <= 32:
            rest = (rest * second) >> units
        else:
            rest = (rest >> 32) * second + (((rest & low_half) * second) >> 32)
            rest = rest >> (units - 32) if units < 96 else 0
    elif kind == TIME_FINE:
        stamp = stamp // units // factor
        whole = cython.cast(cython.longlong, stamp // second)
        rest = stamp % second
    else:
        whole = saturate(stamp // units)
        rest = (stamp % units) * factor
    if offset > last or (whole > last and offset >= 0):
        return greatest
    whole += offset  # fits: whole is not negative, and both are small unless the offset is negative
    if whole > last:
        return greatest
    if whole < -last:
        return -greatest
    return whole * 1000000000 + cython.cast(cython.longlong, rest)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def saturate(value: cython.ulonglong) -> cython.longlong:
    """As a signed number, at most 2**63 - 1."""
    greatest: cython.ulonglong = 9223372036854775807
    return cython.cast(cython.longlong, min(value, greatest))


@cython.cfunc
@cython.nogil
def note(
    state: cython.longlong[::1],
    position: cython.Py_ssize_t,
    sliced: cython.longlong,
    timed: cython.longlong,
    first: cython.longlong,
    last: cython.longlong,
) -> cython.int:
    """Add one call's tallies to the state; `first` and `last` are its times where `timed` is not 0."""
    state[POSITION] = position
    state[SLICED] += sliced
    if timed:
        if state[TIMED] == 0 or first < state[FIRST_NS]:
            state[FIRST_NS] = first
        if state[TIMED] == 0 or last > state[LAST_NS]:
            state[LAST_NS] = last
        state[TIMED] += timed
    return 0


@cython.cfunc
@cython.nogil
def walk_pcap(
    data: cython.const[cython.uchar][::1],
    end: cython.Py_ssize_t,
    state: cython.longlong[::1],
    interfaces: cython.longlong[:, ::1],
    offset: cython.longlong[::1],
    cap_len: cython.longlong[::1],
    wire_len: cython.longlong[::1],
    time_ns: cython.longlong[::1],
    link_type: cython.ushort[::1],
) -> cython.Py_ssize_t:
    """Whole records of a classic pcap file from state[POSITION] on; returns how many."""
    position: cython.Py_ssize_t = state[POSITION]
    count: cython.Py_ssize_t = 0
    room: cython.Py_ssize_t = offset.shape[0]
    captured: cython.longlong
    wire: cython.longlong
    time: cython.longlong
    little: cython.bint = state[LITTLE_ENDIAN] != 0
    tick: cython.longlong = state[TICK_NS]
    most: cython.longlong = state[MAX_CAPTURED]
    link: cython.ushort = cython.cast(cython.ushort, interfaces[0, LINK_TYPE])
    second: cython.longlong = 1000000000
    sliced: cython.longlong = 0
    first: cython.longlong = 9223372036854775807
    last: cython.longlong = -9223372036854775807
    state[NEED] = 0
    while count < room:
        if end - position < RECORD_HEADER:
            break
        captured = load32(data, position + 8, little)
        if captured > most:
            state[STOP] = FAULT_CAPTURED
            state[VALUE] = captured
            break
        if captured > end - position - RECORD_HEADER:
            state[NEED] = captured + RECORD_HEADER
            break
        wire = load32(data, position + 12, little)
        # 2**32 seconds and as many microseconds are 4.3e18 ns: fits.
        time = load32(data, position, little) * second + load32(data, position + 4, little) * tick
        first = min(first, time)
        last = max(last, time)
        sliced += captured < wire
        offset[count] = position + RECORD_HEADER
        cap_len[count] = captured
        wire_len[count] = wire
        time_ns[count] = time
        link_type[count] = link
        position += RECORD_HEADER + captured
        count += 1
    interfaces[0, FRAMES] += count
    note(state, position, sliced, count, first, last)
    return count


@cython.cfunc
@cython.nogil
def walk_pcapng(
    data: cython.const[cython.uchar][::1],
    end: cython.Py_ssize_t,
    state: cython.longlong[::1],
    interfaces: cython.longlong[:, ::1],
    offset: cython.longlong[::1],
    cap_len: cython.longlong[::1],
    wire_len: cython.longlong[::1],
    time_ns: cython.longlong[::1],
    link_type: cython.ushort[::1],
) -> cython.Py_ssize_t:
    """Packets of the whole blocks of one pcapng section from state[POSITION] on; returns how many."""
    position: cython.Py_ssize_t = state[POSITION]
    count: cython.Py_ssize_t = 0
    room: cython.Py_ssize_t = offset.shape[0]
    kind: cython.longlong
    length: cython.longlong  # as the block says
    padded: cython.longlong  # up to the next multiple of 4
    trailer: cython.longlong
    captured: cython.longlong
    wire: cython.longlong
    row: cython.longlong
    time: cython.longlong
    stamp: cython.ulonglong
    little: cython.bint = state[LITTLE_ENDIAN] != 0
    known: cython.longlong = state[INTERFACES]
    timed: cython.longlong = 0
    sliced: cython.longlong = 0
    first: cython.longlong = 9223372036854775807
    last: cython.longlong = -9223372036854775807
    state[NEED] = 0
    while count < room:
        if end - position < 8:
            break
        kind = load32(data, position, little)
        if kind == BLOCK_SECTION:
            state[STOP] = STOP_SECTION  # its length is in its own byte order
            break
        length = load32(data, position + 4, little)
        if length < MIN_BLOCK:
            state[STOP] = FAULT_SHORT
            state[VALUE] = length
            break
        if length > MAX_LENGTH:
            state[STOP] = FAULT_LONG
            state[VALUE] = length
            break
        # Some writers leave the padding out of the length; Wireshark reads those, and so does this.
        padded = (length + 3) & ~3
        if padded > end - position:
            state[NEED] = padded
            break
        trailer = load32(data, position + padded - 4, little)
        if trailer != length and trailer != padded:
            state[STOP] = FAULT_TRAILER
            state[VALUE] = trailer
            break
        if kind == BLOCK_ENHANCED or kind == BLOCK_OBSOLETE:
            if length < MIN_ENHANCED:
                state[STOP] = FAULT_SHORT
                state[VALUE] = length
                break
            row = load32(data, position + 8, little) if kind == BLOCK_ENHANCED else load16(data, position + 8, little)
            if row >= known:
                state[STOP] = FAULT_INTERFACE
                state[VALUE] = row
                break
            captured = load32(data, position + 20, little)
            if captured > padded - MIN_ENHANCED:
                state[STOP] = FAULT_PACKET
                state[VALUE] = captured
                break
            wire = load32(data, position + 24, little)
            stamp = (cython.cast(cython.ulonglong, load32(data, position + 12, little)) << 32) | cython.cast(
                cython.ulonglong, load32(data, position + 16, little)
            )
            if interfaces[row, TIME_KIND] == TIME_PLAIN and stamp <= cython.cast(
                cython.ulonglong, interfaces[row, LARGEST]
            ):
                time = cython.cast(cython.longlong, stamp) * interfaces[row, FACTOR]
            else:
                time = convert_time(interfaces, row, stamp)
            first = min(first, time)
            last = max(last, time)
            timed += 1
            offset[count] = position + 28
            time_ns[count] = time
        elif kind == BLOCK_SIMPLE:
            if length < MIN_SIMPLE:
                state[STOP] = FAULT_SHORT
                state[VALUE] = length
                break
            row = 0
            if row >= known:
                state[STOP] = FAULT_INTERFACE
                state[VALUE] = row
                break
            wire = load32(data, position + 8, little)
            captured = min(wire, padded - MIN_SIMPLE)
            if 0 < interfaces[0, SNAPLEN] < captured:
                captured = interfaces[0, SNAPLEN]
            offset[count] = position + 12
            time_ns[count] = 0
        elif kind == BLOCK_INTERFACE:
            state[STOP] = STOP_INTERFACE
            state[NEED] = padded
            break
        elif (
            kind == BLOCK_CUSTOM
            or kind == BLOCK_CUSTOM_LOCAL
            or kind == BLOCK_JOURNAL
            or kind == BLOCK_SYSDIG_1
            or kind == BLOCK_SYSDIG_2
            or kind == BLOCK_SYSDIG_3
        ):  # no packet, but a frame number
            offset[count] = position + 8
            cap_len[count] = 0
            wire_len[count] = 0
            time_ns[count] = 0
            link_type[count] = NO_PACKET
            state[OTHERS] += 1
            position += padded
            count += 1
            continue
        else:
            position += padded
            continue
        cap_len[count] = captured
        wire_len[count] = wire
        link_type[count] = cython.cast(cython.ushort, interfaces[row, LINK_TYPE])
        interfaces[row, FRAMES] += 1
        sliced += captured < wire
        position += padded
        count += 1
    note(state, position, sliced, timed, first, last)
    return count


def walk(
    data: cython.const[cython.uchar][::1],
    end: cython.Py_ssize_t,
    state: cython.longlong[::1],
    interfaces: cython.longlong[:, ::1],
    offset: cython.longlong[::1],
    cap_len: cython.longlong[::1],
    wire_len: cython.longlong[::1],
    time_ns: cython.longlong[::1],
    link_type: cython.ushort[::1],
):
    """Fill the arrays with the whole records of ``data[state[POSITION]:end]``.

    Parameters
    ----------
    data : uint8[:]
        The buffer; only its first `end` bytes are read.
    end : int
        Bytes in use.
    state : int64[STATE_SIZE]
        Position, format and tallies (see `roce_dissect.capture.states`); changed.
    interfaces : int64[:, INTERFACE_SIZE]
        One row per interface of the section; column FRAMES is changed.
    offset, cap_len, wire_len, time_ns : int64[:]
        Filled: a frame's first byte in `data`, its bytes captured and on the wire, nanoseconds since the epoch (UTC).
    link_type : uint16[:]
        Filled.

    Returns
    -------
    int
        Records written. state[STOP] says why no more: STOP_MORE (the arrays are full or the input ends within a
        record; then state[NEED] is the bytes from state[POSITION] on that it takes, if known), a block for Python, or
        a fault, about state[VALUE].

    Raises
    ------
    ValueError
        If the arrays or the state contradict each other.
    """
    count: cython.Py_ssize_t
    if state.shape[0] < STATE_SIZE or interfaces.shape[1] != INTERFACE_SIZE or interfaces.shape[0] < 1:
        raise ValueError("state or interface table of the wrong shape")
    if state[INTERFACES] > interfaces.shape[0]:
        raise ValueError("more interfaces than rows")
    if end > data.shape[0] or state[POSITION] < 0 or state[POSITION] > end:
        raise ValueError("position or end outside of the buffer")
    if (
        cap_len.shape[0] < offset.shape[0]
        or wire_len.shape[0] < offset.shape[0]
        or time_ns.shape[0] < offset.shape[0]
        or link_type.shape[0] < offset.shape[0]
    ):
        raise ValueError("arrays of different lengths")
    state[STOP] = STOP_MORE
    with cython.nogil:
        if state[FORMAT] == PCAPNG:
            count = walk_pcapng(data, end, state, interfaces, offset, cap_len, wire_len, time_ns, link_type)
        else:
            count = walk_pcap(data, end, state, interfaces, offset, cap_len, wire_len, time_ns, link_type)
    return count
