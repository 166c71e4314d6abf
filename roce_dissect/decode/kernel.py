# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Frames -> rows of header words -> the requested columns. One pass, no object per packet.

One source, two forms: compiled by Cython, or interpreted as it stands (some 600 times slower, same results). In the
interpreted form every read past the end of the buffer is an IndexError. What makes it safe compiled as well: every
length is checked by subtraction in signed sizes before it is used, and no index can be negative.

The walker (`decode_frame` and below) loads each header that is present into the words of a row, as
`roce_dissect.layout` says; `extract` then fills each requested column from one (word, shift, mask). Frames that are no
RoCE leave no row, only a tally.
"""

from __future__ import annotations

import cython

COMPILED = cython.compiled

if not cython.compiled:  # compiled: the same names are C enums in kernel.pxd, so that they are constants
    from roce_dissect.layout import *

    def piece(data, at, size):
        """data[at:at + size], all of it: a slice alone would be cut silently, a negative index counts from the end."""
        if at < 0 or size > len(data) - at:
            raise IndexError(f"bytes {at} to {at + size} of {len(data)}")
        return data[at : at + size]


# The only pointers of this module are in these functions: of bytes indexed in the memoryview gcc makes one load each,
# of bytes behind one pointer a single load and a byte swap.


@cython.cfunc
@cython.inline
@cython.nogil
def load16(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.uint:
    """Big-endian load."""
    if not cython.compiled:
        return int.from_bytes(piece(data, at, 2), "big")
    byte: cython.pointer(cython.const[cython.uchar]) = cython.address(data[at])
    return (cython.cast(cython.uint, byte[0]) << 8) | byte[1]


@cython.cfunc
@cython.inline
@cython.nogil
def load32(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.ulonglong:
    """Big-endian load."""
    if not cython.compiled:
        return int.from_bytes(piece(data, at, 4), "big")
    byte: cython.pointer(cython.const[cython.uchar]) = cython.address(data[at])
    return (
        (cython.cast(cython.ulonglong, byte[0]) << 24)
        | (cython.cast(cython.ulonglong, byte[1]) << 16)
        | (cython.cast(cython.ulonglong, byte[2]) << 8)
        | byte[3]
    )


@cython.cfunc
@cython.inline
@cython.nogil
def load32le(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.ulonglong:
    """Little-endian load, for the ICRC."""
    if not cython.compiled:
        return int.from_bytes(piece(data, at, 4), "little")
    byte: cython.pointer(cython.const[cython.uchar]) = cython.address(data[at])
    return (
        (cython.cast(cython.ulonglong, byte[3]) << 24)
        | (cython.cast(cython.ulonglong, byte[2]) << 16)
        | (cython.cast(cython.ulonglong, byte[1]) << 8)
        | byte[0]
    )


@cython.cfunc
@cython.inline
@cython.nogil
def load64(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.ulonglong:
    """Big-endian load."""
    if not cython.compiled:
        return int.from_bytes(piece(data, at, 8), "big")
    byte: cython.pointer(cython.const[cython.uchar]) = cython.address(data[at])
    return (
        (cython.cast(cython.ulonglong, byte[0]) << 56)
        | (cython.cast(cython.ulonglong, byte[1]) << 48)
        | (cython.cast(cython.ulonglong, byte[2]) << 40)
        | (cython.cast(cython.ulonglong, byte[3]) << 32)
        | (cython.cast(cython.ulonglong, byte[4]) << 24)
        | (cython.cast(cython.ulonglong, byte[5]) << 16)
        | (cython.cast(cython.ulonglong, byte[6]) << 8)
        | byte[7]
    )


# -- headers, innermost first ----------------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def finish(
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    status: cython.ulonglong,
    offset: cython.Py_ssize_t,
    words: cython.ulonglong[:, ::1],
) -> cython.int:
    """Record what was decoded, where it stopped and why."""
    words[row, STATE] |= (presence << 32) | status
    words[row, PAYLOAD] |= cython.cast(cython.ulonglong, offset)
    return TALLY_ROCE


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_rare(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    chain: cython.ulonglong,
    words: cython.ulonglong[:, ::1],
) -> cython.Py_ssize_t:
    """Extended headers before the RETH that few packets carry. Returns the next offset, or ~offset of one cut."""
    if chain & HAS_RDETH:
        if stop - at < 4:
            return ~at
        words[row, RDETH] = load32(data, at) << 32
        at += 4
    if chain & HAS_DETH:
        if stop - at < 8:
            return ~at
        words[row, DETH] = load64(data, at)
        at += 8
    if chain & HAS_XRCETH:
        if stop - at < 4:
            return ~at
        words[row, KEYS] = load32(data, at) << 32
        at += 4
    if chain & HAS_FETH:
        if stop - at < 4:
            return ~at
        words[row, RDETH] |= load32(data, at)
        at += 4
    if chain & HAS_ATOMIC_ETH:
        if stop - at < 28:
            return ~at
        words[row, RETH] = load64(data, at)
        words[row, RETH + 1] = load32(data, at + 8) << 32
        words[row, ATOMIC] = load64(data, at + 12)
        words[row, ATOMIC + 1] = load64(data, at + 20)
        at += 28
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def rare_before(chain: cython.ulonglong, bytes_read: cython.Py_ssize_t) -> cython.ulonglong:
    """Presence bits of the rare headers of a chain that lie whole within `bytes_read`."""
    presence: cython.ulonglong = 0
    if chain & HAS_RDETH and bytes_read >= 4:
        presence |= HAS_RDETH
        bytes_read -= 4
    if chain & HAS_DETH and bytes_read >= 8:
        presence |= HAS_DETH
        bytes_read -= 8
    if chain & HAS_XRCETH and bytes_read >= 4:
        presence |= HAS_XRCETH
        bytes_read -= 4
    if chain & HAS_FETH and bytes_read >= 4:
        presence |= HAS_FETH
        bytes_read -= 4
    return presence


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_bth(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    wire_end: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    status: cython.ulonglong,
    want_icrc: cython.bint,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
    sizes: cython.const[cython.uchar][::1],
) -> cython.int:
    """BTH and its extended headers; `wire_end` is where the ICRC ends, `status` what the lengths below said so far."""
    chain: cython.ulonglong
    payload: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    stop: cython.Py_ssize_t = captured
    if wire_end - 4 < stop:
        stop = wire_end - 4  # extended headers end before the ICRC
    if stop - at < 12:
        return finish(row, presence, STATUS_CUT, at - start, words)
    words[row, BTH] = load64(data, at)
    words[row, BTH + 1] = load64(data, at + 4)
    presence |= HAS_BTH
    if wire_end <= captured:
        presence |= HAS_ICRC
        if want_icrc:  # the only bytes far behind the headers: a cache line that not everybody needs
            words[row, CHECK] |= load32le(data, wire_end - 4)
    chain = chains[data[at]]
    payload = wire_end - 4 - ((data[at + 1] >> 4) & 3) - (at + 12) - sizes[data[at]]
    if status == STATUS_MALFORMED:
        pass
    elif data[at + 1] & 15:
        status = STATUS_UNKNOWN_VERSION
    elif chain & UNKNOWN_OPCODE:
        status = STATUS_UNKNOWN_OPCODE
    elif payload < 0:
        status = STATUS_MALFORMED
    if payload > 0:
        words[row, PAYLOAD] = cython.cast(cython.ulonglong, payload) << 32
    at += 12
    if chain == 0 or chain & UNKNOWN_OPCODE:
        return finish(row, presence, status, at - start, words)
    if chain & RARE:
        begin = at
        at = decode_rare(data, at, stop, row, chain, words)
        if at < 0:
            presence |= rare_before(chain, ~at - begin)
            return finish(row, presence, cut_status(status), ~at - start, words)
        presence |= chain & (HAS_RDETH | HAS_DETH | HAS_XRCETH | HAS_FETH | HAS_ATOMIC_ETH)
    if chain & HAS_RETH:
        if stop - at < 16:
            return finish(row, presence, cut_status(status), at - start, words)
        words[row, RETH] = load64(data, at)
        words[row, RETH + 1] = load64(data, at + 8)
        presence |= HAS_RETH
        at += 16
    if chain & HAS_AETH:
        if stop - at < 4:
            return finish(row, presence, cut_status(status), at - start, words)
        words[row, ACK] = load32(data, at) << 32
        presence |= HAS_AETH
        at += 4
    if chain & HAS_ATOMIC_ACK_ETH:
        if stop - at < 8:
            return finish(row, presence, cut_status(status), at - start, words)
        words[row, ATOMIC_ACK] = load64(data, at)
        presence |= HAS_ATOMIC_ACK_ETH
        at += 8
    if chain & HAS_IMMDT:
        if stop - at < 4:
            return finish(row, presence, cut_status(status), at - start, words)
        words[row, ACK] |= load32(data, at)
        presence |= HAS_IMMDT
        at += 4
    if chain & HAS_IETH:
        if stop - at < 4:
            return finish(row, presence, cut_status(status), at - start, words)
        words[row, KEYS] |= load32(data, at)
        presence |= HAS_IETH
        at += 4
    if chain & HAS_CNP:
        if stop - at < 16:
            return finish(row, presence, cut_status(status), at - start, words)
        presence |= HAS_CNP
        at += 16
    return finish(row, presence, status, at - start, words)


# -- tunnels: whoever meets one writes where it begins into the row, and `open_tunnel` takes it from there


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def lead(
    at: cython.Py_ssize_t,
    by: cython.ulonglong,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    words: cython.ulonglong[:, ::1],
) -> cython.int:
    """A tunnel's header begins at `at` (perhaps behind what was captured); `by` is one of ``LEADS_*``."""
    words[row, PAYLOAD] = cython.cast(cython.ulonglong, at)
    words[row, OFFSET] = by
    words[row, LENGTHS] = presence & (HAS_ETH | HAS_VLAN | HAS_VLAN2)
    return TALLY_MORE


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_protocol(
    at: cython.Py_ssize_t,
    protocol: cython.uint,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    words: cython.ulonglong[:, ::1],
) -> cython.int:
    """An IP protocol other than UDP; what it carries begins at `at`."""
    if protocol == PROTO_TCP:
        return TALLY_TCP
    if protocol == PROTO_ICMP or protocol == PROTO_ICMPV6:
        return TALLY_ICMP
    if protocol == PROTO_GRE:
        return lead(at, LEADS_GRE, row, presence, words)
    if protocol == PROTO_IPIP:
        return lead(at, LEADS_IPV4, row, presence, words)
    if protocol == PROTO_IPV6:
        return lead(at, LEADS_IPV6, row, presence, words)
    if protocol == PROTO_MPLS:
        return lead(at, LEADS_MPLS_IN_IP, row, presence, words)
    return TALLY_IP


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_port(
    at: cython.Py_ssize_t,
    port: cython.uint,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
) -> cython.int:
    """A UDP destination port other than 4791; the header begins at `at`. TALLY_ROCE: RoCE by the caller's wish."""
    further: cython.Py_ssize_t
    for further in range(PORTS, PORTS + MOST_PORTS):
        if chains[further] == port and port != 0:
            return TALLY_ROCE
    if port == PORT_VXLAN:
        return lead(at + 8, LEADS_VXLAN, row, presence, words)
    if port == PORT_GENEVE:
        return lead(at + 8, LEADS_GENEVE, row, presence, words)
    return TALLY_UDP


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_udp(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    ip_end: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    want_icrc: cython.bint,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
    sizes: cython.const[cython.uchar][::1],
) -> cython.int:
    """UDP; only destination port 4791 goes further, whatever the source port.

    `ip_end` is where the IP packet ends, 0 if its header leaves that open, ~end of a first fragment.
    """
    wire_end: cython.Py_ssize_t
    tally: cython.int
    status: cython.ulonglong = STATUS_OK
    if captured - at < 4:
        return TALLY_CUT
    if load16(data, at + 2) != PORT_ROCE_V2:
        tally = decode_port(at, load16(data, at + 2), row, presence, words, chains)
        if tally == TALLY_UDP and chains[REPLIES] != 0 and load16(data, at) == PORT_ROCE_V2 and captured - at >= 24:
            tally = TALLY_ROCE  # some FPGA stacks answer from 4791 to the port that the request came from
        if tally != TALLY_ROCE:
            return tally
    words[row, STATE] |= 2 << 8
    if captured - at < 8:
        return finish(row, presence, STATUS_CUT, at - start, words)
    words[row, UDP] = load64(data, at)
    presence |= HAS_UDP
    wire_end = at + load16(data, at + 4)
    if wire_end - at < 24:  # UDP, BTH, ICRC
        return finish(row, presence, STATUS_MALFORMED, at + 8 - start, words)
    if wire_end != ip_end:
        if ip_end > 0:
            status = STATUS_MALFORMED  # UDP and IP disagree: which of them lies is not known
        elif ip_end < 0:  # UDP's length is that of the whole; what lies behind the fragment is no part of it
            status = STATUS_FRAGMENT
            captured = min(captured, ~ip_end, wire_end - 1)  # nor is the ICRC: the last fragment has it
    return decode_bth(data, start, at + 8, captured, wire_end, row, presence, status, want_icrc, words, chains, sizes)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_ipv4(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    want_icrc: cython.bint,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
    sizes: cython.const[cython.uchar][::1],
) -> cython.int:
    """IPv4 with or without options."""
    header: cython.Py_ssize_t
    ip_end: cython.Py_ssize_t
    first: cython.ulonglong
    tally: cython.int
    if captured - at < 20:
        return TALLY_CUT
    header = (data[at] & 15) * 4
    if data[at] >> 4 != 4 or header < 20:
        return TALLY_MALFORMED
    ip_end = at + load16(data, at + 2)
    if load16(data, at + 6) & 0x3FFF:
        if load16(data, at + 6) & 0x1FFF:
            return TALLY_FRAGMENT
        ip_end = ~ip_end  # more fragments follow
    if data[at + 9] != PROTO_UDP:
        words[row, HOSTS] = at
        return decode_protocol(at + header, data[at + 9], row, presence, words)
    if captured - at < header:
        return TALLY_CUT
    first = load64(data, at)
    words[row, NET] = (
        ((first >> 48) & 255) << 56 | cython.cast(cython.ulonglong, data[at + 8]) << 48 | ((first >> 16) & 0xFFFF) << 32
    )
    words[row, CHECK] = ((first >> 32) & 0xFFFF) << 32
    if ip_end == at:  # left to the NIC's segmentation: UDP's length is all there is
        ip_end = 0
    tally = decode_udp(
        data, start, at + header, captured, ip_end, row, presence | HAS_IPV4, want_icrc, words, chains, sizes
    )
    words[row, HOSTS] = at
    return tally


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_ipv6(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    want_icrc: cython.bint,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
    sizes: cython.const[cython.uchar][::1],
) -> cython.int:
    """IPv6 with extension headers, or a GRH (the caller has set HAS_GRH), which has the same form.

    With HAS_LRH it is native InfiniBand: a GRH if HAS_GRH is set, too, else BTH at once.
    """
    status: cython.ulonglong = STATUS_OK
    base: cython.Py_ssize_t = at
    header: cython.Py_ssize_t
    following: cython.uint
    wire_end: cython.Py_ssize_t
    ip_end: cython.Py_ssize_t
    more: cython.Py_ssize_t = 0  # ~0 in a first fragment
    first: cython.ulonglong
    tally: cython.int = TALLY_ROCE
    if presence & (HAS_GRH | HAS_LRH):
        if presence & HAS_LRH == 0:
            words[row, STATE] |= 1 << 8
        elif presence & HAS_GRH == 0:
            wire_end = at - 8 + (load16(data, at - 4) & 0x7FF) * 4
            if wire_end - at < 16:  # BTH, ICRC
                return finish(row, presence, STATUS_MALFORMED, at - start, words)
            words[row, HOSTS] = at - 8
            return decode_bth(
                data, start, at, captured, wire_end, row, presence, status, want_icrc, words, chains, sizes
            )
        if captured - at < 40:
            return finish(row, presence & ~cython.cast(cython.ulonglong, HAS_GRH), STATUS_CUT, at - start, words)
    else:
        if captured - at < 40:
            return TALLY_CUT
        if data[at] >> 4 != 6:
            return TALLY_MALFORMED
    first = load64(data, at)
    following = data[at + 6]
    words[row, NET] = ((first >> 52) & 255) << 56 | (first & 255) << 48 | ((first >> 32) & 0xFFFFF)
    words[row, CHECK] = ((first >> 16) & 0xFFFF) << 32
    at += 40
    if presence & HAS_GRH:
        wire_end = at + load16(data, base + 4)
        if data[base] >> 4 != 6 or following != PROTO_IBA or wire_end - at < 16:  # BTH, ICRC
            finish(row, presence, STATUS_MALFORMED, at - start, words)
        else:
            if presence & HAS_LRH and wire_end - base != (load16(data, base - 4) & 0x7FF) * 4 - 8:
                status = STATUS_MALFORMED  # LRH and GRH disagree
            decode_bth(data, start, at, captured, wire_end, row, presence, status, want_icrc, words, chains, sizes)
    else:
        while following != PROTO_UDP:
            if (
                following != PROTO_HOP_BY_HOP
                and following != PROTO_ROUTING
                and following != PROTO_FRAGMENT
                and following != PROTO_AUTHENTICATION
                and following != PROTO_DESTINATION
            ):
                words[row, HOSTS] = base
                return decode_protocol(at, following, row, presence, words)
            if captured - at < 8:
                return TALLY_CUT
            if following == PROTO_AUTHENTICATION:
                header = (data[at + 1] + 2) * 4
            elif following == PROTO_FRAGMENT:
                header = 8
                if load16(data, at + 2) & 0xFFF8:
                    return TALLY_FRAGMENT
                if load16(data, at + 2) & 1:
                    more = -1
            else:
                header = (data[at + 1] + 1) * 8
            if captured - at < header:
                return TALLY_CUT
            following = data[at]
            at += header
        ip_end = base + 40 + load16(data, base + 4)
        if ip_end == base + 40:  # a jumbo payload, or left to the NIC's segmentation
            ip_end = 0
        ip_end ^= more
        tally = decode_udp(data, start, at, captured, ip_end, row, presence | HAS_IPV6, want_icrc, words, chains, sizes)
    words[row, HOSTS] = base
    return tally


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_type(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    ether_type: cython.uint,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    want_icrc: cython.bint,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
    sizes: cython.const[cython.uchar][::1],
) -> cython.int:
    """What an Ethertype says that begins at `at`. Returns the tally; TALLY_ROCE: a row; TALLY_MORE: a tunnel."""
    if ether_type == ETHERTYPE_IPV4:
        return decode_ipv4(data, start, at, captured, row, presence, want_icrc, words, chains, sizes)
    if ether_type == ETHERTYPE_IPV6:
        return decode_ipv6(data, start, at, captured, row, presence, want_icrc, words, chains, sizes)
    if ether_type == ETHERTYPE_ROCE_V1:
        return decode_ipv6(data, start, at, captured, row, presence | HAS_GRH, want_icrc, words, chains, sizes)
    if ether_type == ETHERTYPE_MPLS or ether_type == ETHERTYPE_MPLS_MULTICAST:
        return lead(at, LEADS_MPLS, row, presence, words)
    if ether_type == ETHERTYPE_ARP:
        return TALLY_ARP
    if ether_type == ETHERTYPE_MAC_CONTROL:
        return TALLY_MAC_CONTROL
    if ether_type == ETHERTYPE_LLDP:
        return TALLY_LLDP
    return TALLY_ETHERNET


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_tagged(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    ether_type: cython.uint,
    row: cython.Py_ssize_t,
    presence: cython.ulonglong,
    want_icrc: cython.bint,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
    sizes: cython.const[cython.uchar][::1],
) -> cython.int:
    """Up to two VLAN tags, then what the Ethertype says."""
    tags: cython.ulonglong = 0
    while (
        ether_type == ETHERTYPE_VLAN or ether_type == ETHERTYPE_QINQ or ether_type == ETHERTYPE_QINQ_OLD
    ) and not presence & HAS_VLAN2:
        if captured - at < 4:
            return TALLY_CUT
        if presence & HAS_VLAN:
            presence |= HAS_VLAN2
            tags |= cython.cast(cython.ulonglong, load16(data, at)) << 16
        else:
            presence |= HAS_VLAN
            tags = load16(data, at)
        ether_type = load16(data, at + 2)
        at += 4
    words[row, VLAN] |= tags
    return decode_type(data, start, at, captured, ether_type, row, presence, want_icrc, words, chains, sizes)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def decode_frame(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    link_type: cython.uint,
    row: cython.Py_ssize_t,
    want_icrc: cython.bint,
    words: cython.ulonglong[:, ::1],
    chains: cython.const[cython.ushort][::1],
    sizes: cython.const[cython.uchar][::1],
) -> cython.int:
    """A frame; what it carries; what that carries, as long as there are tunnels. One turn for a plain frame.

    The columns of Ethernet and tags are those of the innermost Ethernet header, those of IP of the innermost packet.
    """
    at: cython.Py_ssize_t = start
    presence: cython.ulonglong = 0
    following: cython.int = ETHERTYPE_TEB
    tally: cython.int
    if link_type != LINKTYPE_ETHERNET:
        following = open_link(data, start, captured, link_type, row, words)
        if following < 0:
            return ~following
        at = words[row, PAYLOAD]
        presence = words[row, LENGTHS]
        words[row, PAYLOAD] = 0
    while True:
        if following == ETHERTYPE_TEB:
            if captured - at < 14:
                return TALLY_CUT
            words[row, ETH] = load64(data, at)
            words[row, ETH + 1] = load64(data, at + 6)
            words[row, VLAN] = 0
            presence = HAS_ETH
            following = load16(data, at + 12)
            at += 14
        tally = decode_tagged(data, start, at, captured, following, row, presence, want_icrc, words, chains, sizes)
        if tally != TALLY_MORE:
            return tally
        following = open_tunnel(data, captured, row, words)
        if following < 0:
            return ~following
        at = words[row, PAYLOAD]
        presence = words[row, LENGTHS]
        words[row, PAYLOAD] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-100, check=False)
def open_tunnel(
    data: cython.const[cython.uchar][::1],
    captured: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    words: cython.ulonglong[:, ::1],
) -> cython.int:
    """The header of the tunnel that the row says begins at PAYLOAD.

    Returns the Ethertype of what it carries, which begins where PAYLOAD says then; or ~tally of a frame that ends here.
    """
    at: cython.Py_ssize_t = words[row, PAYLOAD]
    by: cython.ulonglong = words[row, OFFSET]
    header: cython.Py_ssize_t
    marks: cython.ulonglong = HAS_TUNNEL
    kind: cython.ulonglong
    depth: cython.ulonglong = (words[row, TUNNEL] >> 8) & 255
    session: cython.ulonglong = (words[row, TUNNEL] >> 16) & 0xFFFF
    vni: cython.ulonglong = words[row, TUNNEL] >> 32
    key: cython.ulonglong
    flags: cython.uint
    following: cython.int = ETHERTYPE_TEB
    labels: cython.int
    if depth == MOST_TUNNELS:
        return ~TALLY_TUNNEL
    depth += 1
    if by != LEADS_MPLS and (words[row, STATE] >> 32) & HAS_OUTER_IP == 0:
        words[row, OUTER] = words[row, HOSTS]
        marks |= HAS_OUTER_IP
    words[row, HOSTS] = 0
    words[row, NET] = 0
    words[row, CHECK] = 0
    if by == LEADS_VXLAN:
        if captured - at < 8:
            return ~TALLY_CUT
        if data[at] & 8 == 0:
            return ~TALLY_UDP  # without a VNI it is none (RFC 7348)
        kind = TUNNEL_VXLAN
        vni = load32(data, at + 4) >> 8
        marks |= HAS_VNI
        at += 8
    elif by == LEADS_GENEVE:
        if captured - at < 8:
            return ~TALLY_CUT
        if data[at] >> 6 != 0:
            return ~TALLY_TUNNEL
        kind = TUNNEL_GENEVE
        vni = load32(data, at + 4) >> 8
        marks |= HAS_VNI
        following = load16(data, at + 2)
        header = 8 + (data[at] & 63) * 4
        if captured - at < header:
            return ~TALLY_CUT
        at += header
    elif by == LEADS_GRE:
        if captured - at < 4:
            return ~TALLY_CUT
        flags = load16(data, at)
        following = load16(data, at + 2)
        if flags & 0x4007:
            return ~TALLY_TUNNEL  # source routes (RFC 1701), or PPTP's version 1
        header = 4 + ((flags >> 15) + ((flags >> 13) & 1) + ((flags >> 12) & 1)) * 4
        if captured - at < header:
            return ~TALLY_CUT
        if flags & 0x1000:
            words[row, GRE_SEQ] = load32(data, at + header - 4)
            marks |= HAS_GRE_SEQ
        kind = TUNNEL_GRE
        if following == ETHERTYPE_TEB:
            kind = TUNNEL_GRETAP
            if flags & 0x2000:
                key = load32(data, at + 4 + (flags >> 15) * 4)
                marks |= HAS_VNI
                vni = key
                if flags & 0x9000 == 0 and key >> 20 != 0:  # RFC 7637: no other flag, and VSIDs from 0x1000 on
                    kind = TUNNEL_NVGRE
                    vni = key >> 8
        elif following == ETHERTYPE_ERSPAN or following == ETHERTYPE_ERSPAN3:
            at += header
            if following == ETHERTYPE_ERSPAN and flags & 0x1000 == 0:
                kind = TUNNEL_ERSPAN1  # no header of its own
                header = 0
                following = ETHERTYPE_TEB
            elif following == ETHERTYPE_ERSPAN:
                kind = TUNNEL_ERSPAN2
                header = 8
                if captured - at < 8:
                    return ~TALLY_CUT
                if data[at] >> 4 != 1:
                    return ~TALLY_TUNNEL
                following = ETHERTYPE_TEB
            else:
                kind = TUNNEL_ERSPAN3
                header = 12
                if captured - at < 12:
                    return ~TALLY_CUT
                if data[at] >> 4 != 2:
                    return ~TALLY_TUNNEL
                flags = load16(data, at + 10)
                if flags & 1:
                    header = 20
                if captured - at < header:
                    return ~TALLY_CUT
                if (flags >> 10) & 31 == 0:
                    following = ETHERTYPE_TEB
                elif (flags >> 10) & 31 != 2:
                    return ~TALLY_TUNNEL
                elif captured - at < header + 1:
                    return ~TALLY_CUT
                else:
                    following = ETHERTYPE_IPV6 if data[at + header] >> 4 == 6 else ETHERTYPE_IPV4
            if kind != TUNNEL_ERSPAN1:
                session = load16(data, at + 2) & 1023
                marks |= HAS_SESSION
        at += header
    elif by == LEADS_IPV4:
        kind = TUNNEL_IPIP
        following = ETHERTYPE_IPV4
    elif by == LEADS_IPV6:
        kind = TUNNEL_IPIP
        following = ETHERTYPE_IPV6
    else:
        kind = TUNNEL_MPLS
        labels = 1
        if captured - at < 4:
            return ~TALLY_CUT
        while data[at + 2] & 1 == 0:
            if labels == MOST_LABELS:
                return ~TALLY_TUNNEL
            labels += 1
            at += 4
            if captured - at < 4:
                return ~TALLY_CUT
        at += 4
        following = type_behind_labels(data, at, captured)
        if following == 0:
            return ~TALLY_CUT
        if following == 1:  # an Ethernet frame behind a control word (RFC 4448)
            following = ETHERTYPE_TEB
            at += 4
    words[row, TUNNEL] = vni << 32 | session << 16 | depth << 8 | kind
    words[row, STATE] |= marks << 32
    words[row, PAYLOAD] = cython.cast(cython.ulonglong, at)
    return following


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def type_behind_labels(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, captured: cython.Py_ssize_t
) -> cython.int:
    """What an MPLS stack carries, by its first bits (RFC 4928): an Ethertype; 1: a control word first; 0: cut."""
    nibble: cython.int
    if captured - at < 1:
        return 0
    nibble = data[at] >> 4
    if nibble == 4:
        return ETHERTYPE_IPV4
    if nibble == 6:
        return ETHERTYPE_IPV6
    if nibble != 0:
        return ETHERTYPE_TEB
    if captured - at < 18:
        return 0
    # Many a MAC address begins with 0, too: the Ethertype decides. In a tagged frame one stands at both places; there
    # the control word is the one that is 0, as it is where nobody counts the frames.
    if leads_on(load16(data, at + 16)) and (load32(data, at) == 0 or not leads_on(load16(data, at + 12))):
        return 1
    return ETHERTYPE_TEB


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def leads_on(ether_type: cython.uint) -> cython.int:
    """Whether an Ethertype is one behind which RoCE may be."""
    return (
        ether_type == ETHERTYPE_IPV4
        or ether_type == ETHERTYPE_IPV6
        or ether_type == ETHERTYPE_ROCE_V1
        or ether_type == ETHERTYPE_VLAN
        or ether_type == ETHERTYPE_QINQ
        or ether_type == ETHERTYPE_QINQ_OLD
    )


# -- link types other than Ethernet ------------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(-100, check=False)
def open_native(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    words: cython.ulonglong[:, ::1],
) -> cython.int:
    """LRH of native InfiniBand: `decode_ipv6` takes what follows. Returns as `open_link`."""
    marks: cython.ulonglong = HAS_LRH
    if captured - at < 8:
        return ~TALLY_CUT
    if data[at] & 15:
        return ~TALLY_MALFORMED
    if data[at + 1] & 2 == 0:
        return ~TALLY_LINK  # raw: no BTH
    words[row, LRH] = load64(data, at)
    words[row, STATE] |= marks << 32
    words[row, LENGTHS] = marks | (HAS_GRH if data[at + 1] & 1 else 0)
    words[row, PAYLOAD] = cython.cast(cython.ulonglong, at + 8)
    return ETHERTYPE_IPV6


@cython.cfunc
@cython.nogil
@cython.exceptval(-100, check=False)
def open_link(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    captured: cython.Py_ssize_t,
    link_type: cython.uint,
    row: cython.Py_ssize_t,
    words: cython.ulonglong[:, ::1],
) -> cython.int:
    """The link header of any type but Ethernet.

    Returns the Ethertype of what it carries, which begins where the row's PAYLOAD says, with the presence bits in
    LENGTHS; or ~tally of a frame that ends here.
    """
    at: cython.Py_ssize_t = start
    family: cython.ulonglong
    more: cython.int
    records: cython.int = 0
    if link_type == LINKTYPE_RAW or link_type == LINKTYPE_RAW_BSD or link_type == LINKTYPE_RAW_OPENBSD:
        if captured - at < 1:
            return ~TALLY_CUT
        family = AF_INET6 if data[at] >> 4 == 6 else AF_INET
    elif link_type == LINKTYPE_IPV4:
        family = AF_INET
    elif link_type == LINKTYPE_IPV6:
        family = AF_INET6
    elif link_type == LINKTYPE_NULL or link_type == LINKTYPE_LOOP:
        if captured - at < 4:
            return ~TALLY_CUT
        family = load32(data, at)
        if family > 0xFFFF:  # the byte order is that of the host that captured
            family = load32le(data, at)
        at += 4
        if family == AF_INET6_BSD or family == AF_INET6_FREEBSD or family == AF_INET6_DARWIN:
            family = AF_INET6
        if family != AF_INET and family != AF_INET6:
            return ~TALLY_LINK
    elif link_type == LINKTYPE_COOKED or link_type == LINKTYPE_COOKED2:
        if captured - at < (16 if link_type == LINKTYPE_COOKED else 20):
            return ~TALLY_CUT
        if link_type == LINKTYPE_COOKED:
            if load16(data, at + 2) == ARPHRD_NETLINK:
                return ~TALLY_LINK
            more = load16(data, at + 14)
            at += 16
        else:
            if load16(data, at + 8) == ARPHRD_NETLINK:
                return ~TALLY_LINK
            more = load16(data, at)
            at += 20
        words[row, PAYLOAD] = cython.cast(cython.ulonglong, at)
        return more
    elif link_type == LINKTYPE_INFINIBAND:
        return open_native(data, at, captured, row, words)
    elif link_type == LINKTYPE_ERF:
        if captured - at < 16:
            return ~TALLY_CUT
        more = data[at + 8]
        at += 16
        while more & 128:  # extension headers
            if captured - at < 8 or records == 16:
                return ~TALLY_CUT
            more = more & 127 | data[at] & 128
            records += 1
            at += 8
        if more == ERF_INFINIBAND:
            return open_native(data, at, captured, row, words)
        if more != ERF_ETHERNET:
            return ~TALLY_LINK
        words[row, PAYLOAD] = cython.cast(cython.ulonglong, at + 2)
        return ETHERTYPE_TEB
    else:
        return ~TALLY_LINK
    words[row, PAYLOAD] = cython.cast(cython.ulonglong, at)
    return ETHERTYPE_IPV6 if family == AF_INET6 else ETHERTYPE_IPV4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def clear_row(
    row: cython.Py_ssize_t,
    words: cython.ulonglong[:, ::1],
) -> cython.int:
    """Zero what an earlier packet left: the common words always, the rare ones where it had used them."""
    word: cython.Py_ssize_t
    if (words[row, STATE] >> 32) & RARE:
        for word in range(COMMON, WORDS):
            words[row, word] = 0
    for word in range(COMMON):
        words[row, word] = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cut_status(status: cython.ulonglong) -> cython.ulonglong:
    """A cut header is told only of a packet that was in order so far: other troubles weigh more."""
    return STATUS_CUT if status == STATUS_OK else status


Column = cython.fused_type(cython.uchar, cython.ushort, cython.uint, cython.ulonglong)


@cython.cfunc
@cython.nogil
def extract(
    words: cython.ulonglong[:, ::1],
    rows: cython.Py_ssize_t,
    fields: cython.const[cython.ulonglong][:, ::1],
    columns: Column[:, ::1],
    first: cython.Py_ssize_t,
) -> cython.int:
    """columns[k, first:first + rows] = (word >> shift) & mask for each field k."""
    field: cython.Py_ssize_t
    row: cython.Py_ssize_t
    word: cython.Py_ssize_t
    shift: cython.int
    mask: cython.ulonglong
    for field in range(fields.shape[0]):
        word = fields[field, 0]
        shift = fields[field, 1]
        mask = fields[field, 2]
        for row in range(rows):
            columns[field, first + row] = (words[row, word] >> shift) & mask
    return 0


@cython.cfunc
def check_fields(fields: cython.const[cython.ulonglong][:, ::1]) -> cython.int:
    """Words that exist, shifts below 64."""
    field: cython.Py_ssize_t
    for field in range(fields.shape[0]):
        if fields[field, 0] >= WORDS or fields[field, 1] > 63:
            raise ValueError("a field outside of the row")
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mix(word: cython.ulonglong) -> cython.ulonglong:
    """Every bit of the result depends on every bit of the word (the finaliser of splitmix64)."""
    low64: cython.ulonglong = 0xFFFFFFFFFFFFFFFF  # Python does not wrap; the mask costs C nothing
    one: cython.ulonglong = 0xBF58476D1CE4E5B9  # typed: as an operand, a literal above 2**31 is an object
    other: cython.ulonglong = 0x94D049BB133111EB
    word = (word ^ (word >> 30)) * one & low64
    word = (word ^ (word >> 27)) * other & low64
    return word ^ (word >> 31)


@cython.final
@cython.cclass
class Kernel:
    """The walker, with the tables it works on; all of them are the caller's NumPy arrays.

    Parameters
    ----------
    words : uint64[block, WORDS]
        Scratch rows; a block that stays in the first-level cache (128 rows) is fastest.
    chains : uint16[CHAINS]
        Extended headers of each opcode as presence bits, or UNKNOWN_OPCODE. Behind them the UDP ports of RoCE v2 beside
        4791, 0: none; then whether packets from 4791 are wanted.
    sizes : uint8[256]
        Bytes of those headers.
    slots : int32[power of two]
        Hash slots of the host table: row + 1, 0 is free.
    hosts : uint64[n, 2]
        Addresses as 128 bits, an IPv4 address as ::ffff:a.b.c.d. Row 0 stands for "no room for more".
    used : int64[1]
        Rows of `hosts` in use.
    tallies : int64[TALLIES]
        Frames by kind, added to.
    seed : int
        64 random bits for the hash: without them nobody can make addresses that collide.
    """

    words: cython.ulonglong[:, ::1]
    chains: cython.const[cython.ushort][::1]
    sizes: cython.const[cython.uchar][::1]
    slots: cython.int[::1]
    hosts: cython.ulonglong[:, ::1]
    used: cython.longlong[::1]
    tallies: cython.longlong[::1]
    seed: cython.ulonglong

    def __init__(self, words, chains, sizes, slots, hosts, used, tallies, seed):
        self.seed = seed
        self.words = memoryview(words)
        self.chains = memoryview(chains)
        self.sizes = memoryview(sizes)
        self.slots = memoryview(slots)
        self.hosts = memoryview(hosts)
        self.used = memoryview(used)
        self.tallies = memoryview(tallies)
        if (
            self.words.shape[1] != WORDS
            or self.words.shape[0] < 1
            or self.chains.shape[0] != CHAINS
            or self.sizes.shape[0] != 256
            or self.used.shape[0] < 1
            or self.tallies.shape[0] < TALLIES
        ):
            raise ValueError("a table has the wrong shape")
        if self.slots.shape[0] & (self.slots.shape[0] - 1) or self.slots.shape[0] <= self.hosts.shape[0]:
            raise ValueError("slots: a power of two, more than there are hosts")
        if self.hosts.shape[1] != 2 or self.used[0] < 1 or self.used[0] > self.hosts.shape[0]:
            raise ValueError("hosts: two words a row, row 0 in use")

    # -- hosts -----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def find_host(self, high: cython.ulonglong, low: cython.ulonglong) -> cython.longlong:
        """Row of an address, entered if it is new; 0 when there is no room."""
        last: cython.Py_ssize_t = self.slots.shape[0] - 1
        slot: cython.Py_ssize_t = mix(mix(low ^ self.seed) ^ high) & last
        host: cython.Py_ssize_t
        while self.slots[slot] != 0:
            host = self.slots[slot] - 1
            if self.hosts[host, 1] == low and self.hosts[host, 0] == high:
                return host
            slot = (slot + 1) & last
        host = self.used[0]
        if host >= self.hosts.shape[0]:
            return 0
        self.used[0] = host + 1
        self.hosts[host, 0] = high
        self.hosts[host, 1] = low
        self.slots[slot] = host + 1
        return host

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def enter_hosts(
        self,
        data: cython.const[cython.uchar][::1],
        row: cython.Py_ssize_t,
        words: cython.ulonglong[:, ::1],
    ) -> cython.int:
        """Replace the offset of the network header in a row by the codes of its hosts: addresses, GIDs, else LIDs."""
        at: cython.Py_ssize_t = words[row, HOSTS]
        presence: cython.ulonglong = words[row, STATE] >> 32
        mapped: cython.ulonglong = 0xFFFF00000000
        local: cython.ulonglong = cython.cast(cython.ulonglong, LID_BLOCK) << 32
        source: cython.longlong = 0
        destination: cython.longlong = 0
        if presence & HAS_IPV4:
            source = self.find_host(0, load32(data, at + 12) | mapped)
            destination = self.find_host(0, load32(data, at + 16) | mapped)
        elif presence & (HAS_IPV6 | HAS_GRH):
            source = self.find_host(load64(data, at + 8), load64(data, at + 16))
            destination = self.find_host(load64(data, at + 24), load64(data, at + 32))
        elif presence & HAS_LRH:
            source = self.find_host(0, words[row, LRH] & 0xFFFF | local)
            destination = self.find_host(0, (words[row, LRH] >> 32) & 0xFFFF | local)
        words[row, HOSTS] = cython.cast(cython.ulonglong, source) << 32 | cython.cast(cython.ulonglong, destination)
        if presence & HAS_OUTER_IP:
            self.enter_outer(data, row, words)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def enter_outer(
        self,
        data: cython.const[cython.uchar][::1],
        row: cython.Py_ssize_t,
        words: cython.ulonglong[:, ::1],
    ) -> cython.int:
        """The same for the outermost IP header of a packet that came in tunnels."""
        at: cython.Py_ssize_t = words[row, OUTER]
        mapped: cython.ulonglong = 0xFFFF00000000
        source: cython.longlong
        destination: cython.longlong
        if data[at] >> 4 == 4:
            source = self.find_host(0, load32(data, at + 12) | mapped)
            destination = self.find_host(0, load32(data, at + 16) | mapped)
        else:
            source = self.find_host(load64(data, at + 8), load64(data, at + 16))
            destination = self.find_host(load64(data, at + 24), load64(data, at + 32))
        words[row, OUTER] = cython.cast(cython.ulonglong, source) << 32 | cython.cast(cython.ulonglong, destination)
        return 0

    def decode(
        self,
        data: cython.const[cython.uchar][::1],
        offset: cython.const[cython.longlong][::1],
        cap_len: cython.const[cython.longlong][::1],
        wire_len: cython.const[cython.longlong][::1],
        time_ns: cython.const[cython.longlong][::1],
        link_type: cython.const[cython.ushort][::1],
        first_frame: cython.longlong,
        want_icrc: cython.bint,
        fields1: cython.const[cython.ulonglong][:, ::1],
        columns1: cython.uchar[:, ::1],
        fields2: cython.const[cython.ulonglong][:, ::1],
        columns2: cython.ushort[:, ::1],
        fields4: cython.const[cython.ulonglong][:, ::1],
        columns4: cython.uint[:, ::1],
        fields8: cython.const[cython.ulonglong][:, ::1],
        columns8: cython.ulonglong[:, ::1],
    ):
        """Decode all records of a batch; fill the columns (one matrix per width, one line per field) with RoCE rows.

        The columns hold at least as many rows as there are records. Returns the number of rows.
        """
        records: cython.Py_ssize_t = offset.shape[0]
        record: cython.Py_ssize_t = 0
        done: cython.Py_ssize_t = 0
        rows: cython.Py_ssize_t
        ahead: cython.Py_ssize_t
        network: cython.Py_ssize_t
        start: cython.Py_ssize_t
        captured: cython.Py_ssize_t
        tally: cython.int
        words: cython.ulonglong[:, ::1] = self.words
        chains: cython.const[cython.ushort][::1] = self.chains
        sizes: cython.const[cython.uchar][::1] = self.sizes
        block: cython.Py_ssize_t = words.shape[0]
        size: cython.Py_ssize_t = data.shape[0]
        low64: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
        low32: cython.ulonglong = 0xFFFFFFFF
        if (
            cap_len.shape[0] < records
            or wire_len.shape[0] < records
            or time_ns.shape[0] < records
            or link_type.shape[0] < records
        ):
            raise ValueError("record arrays of different lengths")
        if (
            columns1.shape[1] < records
            or columns2.shape[1] < records
            or columns4.shape[1] < records
            or columns8.shape[1] < records
        ):
            raise ValueError("columns shorter than the batch")
        if (
            columns1.shape[0] < fields1.shape[0]
            or columns2.shape[0] < fields2.shape[0]
            or columns4.shape[0] < fields4.shape[0]
            or columns8.shape[0] < fields8.shape[0]
            or fields1.shape[1] != 3
            or fields2.shape[1] != 3
            or fields4.shape[1] != 3
            or fields8.shape[1] != 3
        ):
            raise ValueError("fewer columns than fields, or fields that are not (word, shift, mask)")
        check_fields(fields1)
        check_fields(fields2)
        check_fields(fields4)
        check_fields(fields8)
        with cython.nogil:
            while record < records:
                rows = 0
                while record < records and rows < block:
                    start = offset[record]
                    captured = cap_len[record]
                    if cython.compiled and record + 6 < records:
                        ahead = offset[record + 6]
                        if ahead >= 0 and ahead + 128 <= size:
                            prefetch(cython.address(data[ahead]))
                            prefetch(cython.address(data[ahead + 64]))
                    if start < 0 or captured < 0 or start > size or captured > size - start:
                        tally = TALLY_CUT  # no reader hands this over; a caller might
                    else:
                        clear_row(rows, words)
                        tally = decode_frame(
                            data, start, start + captured, link_type[record], rows, want_icrc, words, chains, sizes
                        )
                    self.tallies[tally] += 1
                    if tally == TALLY_ROCE:
                        network = words[rows, HOSTS]
                        network = network - start if network > start else 0
                        if network > MOST_NETWORK:
                            network = MOST_NETWORK
                        self.enter_hosts(data, rows, words)
                        words[rows, TIME] = time_ns[record] & low64
                        words[rows, FRAME] = (first_frame + record) & low64
                        words[rows, LENGTHS] = (cap_len[record] & low32) << 32 | (wire_len[record] & low32)
                        words[rows, OFFSET] = cython.cast(cython.ulonglong, network) << NETWORK | start
                        rows += 1
                    record += 1
                extract(words, rows, fields1, columns1, done)
                extract(words, rows, fields2, columns2, done)
                extract(words, rows, fields4, columns4, done)
                extract(words, rows, fields8, columns8, done)
                done += rows
        return done
