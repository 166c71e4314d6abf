"""The decoding kernel: frames laid down byte by byte, values from the specification, both forms.

`test_against_tshark.py` compares whole captures; here stand the edges: cuts, lengths that lie, what is no RoCE.
"""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from roce_dissect import layout
from roce_dissect.capture.reader import Records
from roce_dissect.decode.decoder import Decoder, chain_table, size_table
from roce_dissect.spec import headers as bit
from roce_dissect.terms import Status

NETWORK = bit.HAS_ETH | bit.HAS_IPV4 | bit.HAS_UDP | bit.HAS_BTH

#: Presence bit and size of each extended header, from the specification (the builder's names).
BITS = {
    "reth": (bit.HAS_RETH, 16),
    "aeth": (bit.HAS_AETH, 4),
    "atomic": (bit.HAS_ATOMIC_ETH, 28),
    "atomic_ack": (bit.HAS_ATOMIC_ACK_ETH, 8),
    "imm": (bit.HAS_IMMDT, 4),
    "ieth": (bit.HAS_IETH, 4),
    "deth": (bit.HAS_DETH, 8),
    "rdeth": (bit.HAS_RDETH, 4),
    "xrceth": (bit.HAS_XRCETH, 4),
    "feth": (bit.HAS_FETH, 4),
    "cnp": (bit.HAS_CNP, 16),
}


# -- one real packet, every byte of it -----------------------------------------------------------------------------

#: RDMA WRITE FIRST with a made-up DSCP and VLAN, each byte written out.
WRITE_FIRST = bytes.fromhex(
    "02005e000001 02005e000002 8100 6064 0800"  # Ethernet, PCP 3, VLAN 100
    "46 6a 0040 1234 4000 3f 11 0000 c0a86402 c0a86401 01010101"  # 24 bytes of IPv4: DSCP 26, ECT(0), TTL 63
    "c123 12b7 0028 0000"  # UDP length 40
    "06 c1 ffff c0000011 80abcdef"  # WRITE FIRST, SE, MigReq, version 1, FECN, BECN, QP 17, AckReq
    "0001020304050607 08090a0b 00001000"  # RETH
    "04030201"  # ICRC, little-endian
)


def test_byte_for_byte(decode):
    frame = bytearray(WRITE_FIRST)
    bth = frame.index(bytes.fromhex("06c1ffff"))
    frame[bth + 1] = 0xC0  # transport version 0
    [row], _ = decode(bytes(frame))
    expected = {
        "eth_dst": 0x02005E000001, "eth_src": 0x02005E000002, "vlan_id": 100, "pcp": 3, "dscp": 26, "ecn": 2,
        "ttl": 63, "ip_id": 0x1234, "ip_len": 64, "udp_sport": 0xC123, "udp_dport": 4791, "udp_len": 40,
        "opcode": 6, "se": 1, "mig_req": 1, "pad_count": 0, "tver": 0, "p_key": 0xFFFF, "fecn": 1, "becn": 1,
        "dest_qp": 17, "ack_req": 1, "psn": 0xABCDEF, "va": 0x0001020304050607, "r_key": 0x08090A0B, "dma_len": 4096,
        "icrc": 0x01020304, "payload_len": 0, "payload_offset": len(frame) - 4, "version": 2, "status": Status.OK,
        "wire_len": len(frame), "cap_len": len(frame), "time_ns": 1_700_000_000_000_000_000, "frame_key": 1,
        "present": NETWORK | bit.HAS_VLAN | bit.HAS_RETH | bit.HAS_ICRC,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    # the fields of absent headers hold nothing of other packets
    for name in ("vlan2_id", "syndrome", "msn", "imm_data", "inv_r_key", "q_key", "src_qp", "flow_label", "feth"):
        assert row[name] == 0


def test_unknown_transport_version(decode):
    [row], _ = decode(WRITE_FIRST)
    assert row["status"] == Status.UNKNOWN_VERSION
    assert (row["tver"], row["opcode"], row["psn"]) == (1, 6, 0xABCDEF)


# -- every opcode --------------------------------------------------------------------------------------------------


def test_every_opcode(decode, frames):
    """All fields of all opcodes that exist; the others are rows with a status."""
    rng = random.Random(1)
    for opcode in range(256):
        if opcode not in frames.CHAINS:
            body = frames.bth(opcode, 77) + b"what may follow" + bytes(4)
            [row], _ = decode(frames.ethernet(frames.ipv4(frames.udp(body)), 0x0800))
            assert (row["status"], row["opcode"], row["psn"]) == (Status.UNKNOWN_OPCODE, opcode, 77)
            assert row["present"] == NETWORK | bit.HAS_ICRC
            assert row["payload_offset"] == 14 + 20 + 8 + 12
            continue
        for build in (frames.v2, frames.v2_ipv6, frames.v1):
            values = frames.values_of(opcode, rng)
            payload = rng.randbytes(rng.choice((0, 1, 2, 3, 4, 64)))
            frame = build(opcode, payload, values, psn=rng.getrandbits(24), icrc=0xA1B2C3D4)
            [row], _ = decode(frame)
            assert {name: row[name] for name in values} == values, hex(opcode)
            assert row["status"] == Status.OK
            assert row["payload_len"] == len(payload)
            start = row["payload_offset"]
            assert frame[start : start + len(payload)] == payload
            assert len(frame) - start == len(payload) + -len(payload) % 4 + 4
            assert row["icrc"] == 0xA1B2C3D4
            chain = 0
            for header in frames.CHAINS[opcode]:
                chain |= BITS[header][0]
            assert row["present"] & 0xFFFF == chain


def test_tables_agree_with_the_specification(frames):
    chains, sizes = chain_table(), size_table()
    for opcode in range(256):
        if opcode not in frames.CHAINS:
            assert chains[opcode] == layout.UNKNOWN_OPCODE
            continue
        assert chains[opcode] == sum(BITS[header][0] for header in frames.CHAINS[opcode])
        assert sizes[opcode] == sum(BITS[header][1] for header in frames.CHAINS[opcode])


def test_rows_do_not_leak(decode, frames):
    """A packet without a header after one with it, in the same row of the block and in the same batch."""
    rng = random.Random(2)
    rich = [frames.v2(opcode, b"", frames.values_of(opcode, rng)) for opcode in sorted(frames.CHAINS)]
    bare = frames.v2(0x01, b"x" * 8, psn=5)
    tagged = frames.v2(0x13, b"", frames.values_of(0x13, rng), tags=((0x88A8, 0x1FFF), (0x8100, 0xEFFF)))
    alone, _ = decode(bare)
    decode(*[tagged] * 300)
    decode(*rich)
    again, _ = decode(*[bare] * 300)
    for row in again:
        changing = {"frame_key", "time_ns", "offset"}
        assert {name: row[name] for name in row if name not in changing} == {
            name: alone[0][name] for name in row if name not in changing
        }


# -- cuts ----------------------------------------------------------------------------------------------------------


def expected_presence(frames, opcode, base, cut, first):
    """Extended headers that lie whole before `cut`; `first` is where they begin."""
    present, at = base, first
    for header in frames.CHAINS[opcode]:
        at += BITS[header][1]
        if at <= cut:
            present |= BITS[header][0]
        else:
            break
    return present


def test_cut_at_every_length(decode, frames):
    """Each frame in a buffer of its own that ends where the capture does: what lies whole is there, and no more."""
    rng = random.Random(3)
    for opcode in sorted(frames.CHAINS):
        values = frames.values_of(opcode, rng)
        for build, ip, size in ((frames.v2, bit.HAS_IPV4, 20), (frames.v1, bit.HAS_GRH, 40)):
            frame = build(opcode, b"abcdef", values)
            udp = 8 if build is frames.v2 else 0
            bth = 14 + size + udp
            extended = bth + 12
            whole = extended + sum(BITS[header][1] for header in frames.CHAINS[opcode])
            base = bit.HAS_ETH | ip | (bit.HAS_UDP if udp else 0)
            for cut in range(len(frame) + 1):
                rows, decoder = decode(frame[:cut], wire=[len(frame)])
                # enough to tell that it is RoCE: UDP's destination port, or version 1's Ethertype
                if cut < (14 + 20 + 4 if udp else 14):
                    assert rows == []
                    assert decoder.tallies[layout.TALLY_CUT] == 1
                    continue
                [row] = rows
                assert row["wire_len"] == len(frame)
                assert row["cap_len"] == cut
                assert row["status"] == (Status.OK if cut >= whole else Status.CUT), (hex(opcode), cut)
                assert row["payload_offset"] <= cut
                present = row["present"]
                assert bool(present & bit.HAS_BTH) == (cut >= extended)
                assert bool(present & bit.HAS_UDP) == (udp > 0 and cut >= bth)
                assert bool(present & bit.HAS_GRH) == (udp == 0 and cut >= bth)
                assert row["payload_offset"] <= min(cut, whole)
                assert bool(present & bit.HAS_ICRC) == (cut == len(frame))
                if cut >= extended:
                    expected = expected_presence(frames, opcode, base | bit.HAS_BTH, cut, extended)
                    assert present & ~bit.HAS_ICRC == expected, (hex(opcode), cut)
                    assert row["payload_len"] == 6  # by the length fields, whatever was captured
                if cut >= whole:
                    assert row["payload_offset"] == whole
                    assert {name: row[name] for name in values} == values


def test_cut_anywhere_in_a_batch(decode, frames):
    """The same rows, whether a frame stands alone or behind others: offsets count from the frame's own first byte."""
    rng = random.Random(31)
    made = [frames.v2(opcode, b"ab", frames.values_of(opcode, rng)) for opcode in sorted(frames.CHAINS)]
    given = [frame[: rng.randrange(38, len(frame) + 1)] for frame in made for _ in range(8)]
    together, _ = decode(*given, wire=[1500] * len(given))
    for frame, row in zip(given, together, strict=True):
        [alone], _ = decode(frame, wire=[1500])
        for name in ("status", "present", "payload_offset", "payload_len", "psn", "va", "icrc", "cap_len"):
            assert row[name] == alone[name]


@pytest.mark.parametrize("size", [4, 20, 40])
def test_cut_ipv4_options(decode, frames, size):
    """Nothing is known before the port; options that were cut are none of UDP's bytes."""
    frame = frames.v2(4, b"data", ip={"options": b"\x12\xb7" * (size // 2)})
    for cut in range(len(frame)):
        rows, decoder = decode(frame[:cut], wire=[len(frame)])
        assert bool(rows) == (cut >= 14 + 20 + size + 4)
        assert int(decoder.tallies[layout.TALLY_CUT]) == (not rows)


def test_cut_ipv6_extension_headers(decode, frames):
    body = frames.udp(frames.packet(4, b"data", psn=9))
    chain = bytes.fromhex("3c000104000000002b000104000000002c02" + "00" * 22 + "1100000000000007")
    frame = frames.ethernet(frames.ipv6(chain + body, following=0), 0x86DD)
    [row], _ = decode(frame)
    assert (row["psn"], row["status"]) == (9, Status.OK)
    for cut in range(len(frame)):
        rows, _ = decode(frame[:cut], wire=[len(frame)])
        assert bool(rows) == (cut >= 14 + 40 + len(chain) + 4)


def test_nothing_is_read_behind_the_frame(kernel, frames):
    """The same cut frame with other bytes behind it in the batch: not a bit may differ."""
    rng = random.Random(4)
    decoder = Decoder(("present", "status", "payload_offset", "payload_len", "va", "icrc"), kernel=kernel)
    for opcode in sorted(frames.CHAINS):
        frame = frames.v2(opcode, b"abc", frames.values_of(opcode, rng))
        for cut in range(len(frame)):
            outcomes = []
            for behind in (b"\x00" * 64, b"\xff" * 64, frame[cut:] + bytes(64)):
                records = Records(
                    np.frombuffer(frame[:cut] + behind, np.uint8), 1, np.zeros(1, np.int64), np.array([cut]),
                    np.array([len(frame)]), np.zeros(1, np.int64), np.ones(1, np.uint16), 1,
                )  # fmt: skip
                rows = decoder.decode(records)
                outcomes.append([rows, *(int(column[0]) for column in decoder.columns.values())])
            assert outcomes[0] == outcomes[1] == outcomes[2]


# -- lengths that lie ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("udp_length", "status"), [(0, Status.MALFORMED), (7, Status.MALFORMED), (23, Status.MALFORMED), (24, Status.OK)]
)
def test_udp_length(decode, frames, udp_length, status):
    """UDP holds at least BTH and ICRC. SEND MIDDLE has no further header, so that 24 bytes are a whole packet."""
    body = frames.bth(1) + b"payload payload" + bytes(4)
    [row], _ = decode(frames.ethernet(frames.ipv4(frames.udp(body, length=udp_length), length=20 + udp_length), 0x0800))
    assert row["status"] == status
    assert bool(row["present"] & bit.HAS_BTH) == (status == Status.OK)
    assert row["payload_len"] == 0


@pytest.mark.parametrize("short", [0, 1, 15, 16, 17])
def test_extended_header_behind_the_length(decode, frames, short):
    """A UDP length that ends within the RETH: what lies behind it, the ICRC too, is not read as header."""
    values = {"va": 1 << 60, "r_key": 5, "dma_len": 6}
    body = frames.packet(0x0C, b"", values)
    length = 8 + len(body) - short
    [row], _ = decode(frames.ethernet(frames.ipv4(frames.udp(body, length=length)), 0x0800))
    whole = short == 0
    assert bool(row["present"] & bit.HAS_RETH) == whole
    assert row["status"] == (Status.OK if whole else Status.MALFORMED)
    assert (row["va"], row["r_key"]) == ((1 << 60, 5) if whole else (0, 0))


def test_frame_longer_than_its_packet(decode, frames):
    """Ethernet padding, FCS and trailers follow the packet: payload and ICRC end where the lengths say."""
    frame = frames.v2(4, b"1234", icrc=7)
    [row], _ = decode(frame + b"\xee" * 20)
    assert (row["payload_len"], row["icrc"]) == (4, 7)
    [row], _ = decode(frames.v1(4, b"1234", icrc=7) + b"\xee" * 20)
    assert (row["payload_len"], row["icrc"]) == (4, 7)


def test_pad_larger_than_the_payload(decode, frames):
    """PadCnt 3 and nothing to pad: the lengths contradict each other."""
    [row], _ = decode(frames.v2(4, b"", pad_count=3))
    assert (row["status"], row["payload_len"]) == (Status.MALFORMED, 0)


@pytest.mark.parametrize(
    ("ip_length", "status"),
    [(60_020, Status.OK), (60_019, Status.MALFORMED), (52, Status.MALFORMED), (0, Status.OK)],
)
def test_udp_length_against_the_ip_length(decode, frames, ip_length, status):
    """UDP says 60,000 bytes. As of a sliced packet when IP agrees, or leaves it open (0); else one of them lies."""
    body = frames.packet(4, b"1234")
    [row], _ = decode(frames.ethernet(frames.ipv4(frames.udp(body, length=60_000), length=ip_length), 0x0800))
    assert row["status"] == status
    assert row["psn"] == 0
    assert row["payload_len"] == 60_000 - 8 - 12 - 4
    assert not row["present"] & bit.HAS_ICRC
    assert row["icrc"] == 0


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, Status.OK), ({"length": 15}, Status.MALFORMED), ({"following": 17}, Status.MALFORMED)],
)
def test_grh(decode, frames, change, status):
    frame = frames.v1(1, b"12345678", ip={"tclass": 0x6B, "flow": 0xABCDE, "hops": 9} | change, psn=3)
    [row], _ = decode(frame)
    assert row["status"] == status
    assert (row["version"], row["dscp"], row["ecn"], row["ttl"], row["flow_label"]) == (1, 26, 3, 9, 0xABCDE)
    assert row["present"] & (bit.HAS_GRH | bit.HAS_UDP | bit.HAS_IPV4 | bit.HAS_IPV6) == bit.HAS_GRH
    assert row["ip_len"] == change.get("length", 12 + 8 + 4)
    assert (row["vlan_id"], row["udp_sport"], row["ip_id"]) == (0, 0, 0)


def test_grh_of_another_version(decode, frames):
    frame = bytearray(frames.v1(1, b"12345678"))
    frame[14] = 0x40
    [row], _ = decode(bytes(frame))
    assert row["status"] == Status.MALFORMED
    assert not row["present"] & bit.HAS_BTH


# -- encapsulation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tpid", [0x8100, 0x88A8, 0x9100])
def test_two_tags(decode, frames, tpid):
    [row], _ = decode(frames.v2(4, psn=1, tags=((tpid, 0xE001), (0x8100, 0x2FFE))))
    assert (row["vlan_id"], row["pcp"], row["vlan2_id"]) == (1, 7, 0xFFE)
    assert row["present"] & (bit.HAS_VLAN | bit.HAS_VLAN2) == bit.HAS_VLAN | bit.HAS_VLAN2


def test_three_tags_are_not_followed(decode, frames):
    rows, decoder = decode(frames.v2(4, tags=((0x8100, 1), (0x8100, 2), (0x8100, 3))))
    assert rows == []
    assert decoder.tallies[layout.TALLY_ETHERNET] == 1


@pytest.mark.parametrize("size", range(0, 44, 4))
def test_ipv4_options(decode, frames, size):
    [row], _ = decode(frames.v2(4, b"abcd", ip={"options": b"\x01" * size}, psn=8))
    assert (row["psn"], row["payload_len"], row["payload_offset"]) == (8, 4, 14 + 20 + size + 8 + 12)


@pytest.mark.parametrize(
    ("first", "chain"),
    [
        (0, bytes.fromhex("1100010400000000")),  # hop-by-hop, 8 bytes
        (43, bytes.fromhex("1101") + bytes(14)),  # routing, 16 bytes
        (44, bytes.fromhex("1100000000000007")),  # fragment, offset 0
        (51, bytes.fromhex("1104") + bytes(22)),  # authentication counts in units of 4
        (60, bytes.fromhex("3c000104000000001100010400000000")),
    ],
)
def test_ipv6_extension_headers(decode, frames, first, chain):
    body = chain + frames.udp(frames.packet(4, b"abcd", psn=8))
    [row], _ = decode(frames.ethernet(frames.ipv6(body, following=first), 0x86DD))
    assert (row["psn"], row["status"], row["payload_len"]) == (8, Status.OK, 4)


def test_mapped_gid_is_the_ipv4_host(decode, frames):
    """A RoCE v1 GID ::ffff:a.b.c.d and the IPv4 address are one host; another GID is none of them."""
    mapped = bytes(10) + b"\xff\xff"
    v1 = frames.v1(4, ip={"src": mapped + frames.IP_A, "dst": mapped + frames.IP_B})
    rows, decoder = decode(frames.v2(4), v1, frames.v2_ipv6(4))
    assert (rows[0]["src"], rows[0]["dst"]) == (rows[1]["src"], rows[1]["dst"])
    texts = decoder.hosts.texts()
    assert [texts[rows[0][end]] for end in ("src", "dst")] == ["192.168.100.2", "192.168.100.1"]
    assert [texts[rows[2][end]] for end in ("src", "dst")] == ["fd00:100::2", "fd00:100::1"]


@pytest.mark.parametrize("sport", [0, 53, 69, 4791, 65535])
def test_only_the_destination_port_matters(decode, frames, sport):
    [row], _ = decode(frames.v2(4, sport=sport))
    assert row["udp_sport"] == sport
    answer = frames.ethernet(frames.ipv4(frames.udp(frames.packet(4), sport=4791, dport=4790)), 0x0800)
    rows, decoder = decode(answer)
    assert rows == []
    assert decoder.tallies[layout.TALLY_UDP] == 1


def test_what_is_no_roce_is_tallied(decode, frames):
    tcp = frames.ipv4(bytes(40), protocol=6)
    kinds = {
        layout.TALLY_TCP: [frames.ethernet(tcp, 0x0800), frames.ethernet(frames.ipv6(bytes(20), following=6), 0x86DD)],
        layout.TALLY_ICMP: [
            frames.ethernet(frames.ipv4(bytes(8), protocol=1), 0x0800),
            frames.ethernet(frames.ipv6(bytes(8), following=58), 0x86DD),
        ],
        layout.TALLY_IP: [
            frames.ethernet(frames.ipv4(bytes(8), protocol=89), 0x0800),
            frames.ethernet(frames.ipv6(bytes(8), following=59), 0x86DD),
        ],
        layout.TALLY_ARP: [frames.ethernet(bytes(28), 0x0806)],
        layout.TALLY_LLDP: [frames.ethernet(bytes(28), 0x88CC)],
        layout.TALLY_MAC_CONTROL: [frames.ethernet(bytes(46), 0x8808)],
        layout.TALLY_ETHERNET: [frames.ethernet(bytes(46), 0x88F7), frames.ethernet(bytes(46), 46)],
        layout.TALLY_FRAGMENT: [
            frames.v2(4, ip={"fragment": 0x2001}),
            frames.ethernet(
                frames.ipv6(bytes.fromhex("1100000900000007") + frames.udp(frames.packet(4)), following=44), 0x86DD
            ),
        ],
        layout.TALLY_MALFORMED: [
            frames.ethernet(b"\x55" + frames.ipv4(b"")[1:], 0x0800),
            frames.ethernet(b"\x44" + frames.ipv4(b"")[1:], 0x0800),
            frames.ethernet(b"\x40" + frames.ipv6(bytes(8))[1:], 0x86DD),
        ],
        layout.TALLY_CUT: [b"", b"\x02" * 13, frames.v2(4)[:33], frames.v2(4, tags=((0x8100, 1),))[:17]],
    }
    for tally, given in kinds.items():
        for frame in given:
            rows, decoder = decode(frame)
            assert rows == []
            assert np.flatnonzero(decoder.tallies).tolist() == [tally], frame.hex()
    given = [frame for frames_of_kind in kinds.values() for frame in frames_of_kind] + [frames.v2(4, psn=6)]
    rows, decoder = decode(*given)
    assert [row["psn"] for row in rows] == [6]
    assert rows[0]["frame_key"] == len(given)  # all frames count, as in Wireshark
    assert int(decoder.tallies.sum()) == len(given)


def test_first_fragment_is_decoded(decode, frames):
    """The first fragment has the headers: more fragments, offset 0. `test_oddities.py` has more of them."""
    [row], _ = decode(frames.v2(4, psn=6, ip={"fragment": 0x2000}))
    assert (row["psn"], row["status"]) == (6, Status.FRAGMENT)


def test_other_link_type(decode, frames):
    rows, decoder = decode(frames.v2(4), link_type=147)
    assert rows == []
    assert decoder.tallies[layout.TALLY_LINK] == 1


# -- the batch -----------------------------------------------------------------------------------------------------


def test_presence_whatever_was_asked(decode, frames):
    """The ICRC is loaded where it was asked for; that it was captured is told either way."""
    [row], _ = decode(frames.v2(4, icrc=9), names=("present", "psn"))
    assert row["present"] & bit.HAS_ICRC
    [row], _ = decode(frames.v2(4, icrc=9), names=("present", "icrc"))
    assert row["present"] & bit.HAS_ICRC
    assert row["icrc"] == 9


def test_block_edges(decode, frames):
    """Rows beyond the kernel's block of 128, with frames that are none among them."""
    given = [frames.v2(4, psn=number) if number % 3 else b"no frame" for number in range(1000)]
    rows, _ = decode(*given)
    assert [row["psn"] for row in rows] == [number for number in range(1000) if number % 3]
    assert [row["frame_key"] for row in rows] == [number + 1 for number in range(1000) if number % 3]


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 10), (0, -1), (0, 1000), (5, 60), (1 << 62, 1), (1, (1 << 63) - 1)]
)
def test_records_outside_of_the_buffer(kernel, frames, offset, length):
    """No reader hands these over; the kernel reads nothing all the same."""
    frame = frames.v2(4)
    records = Records(
        np.frombuffer(frame, np.uint8), 1, np.array([offset]), np.array([length]), np.array([60]),
        np.zeros(1, np.int64), np.ones(1, np.uint16), 1,
    )  # fmt: skip
    decoder = Decoder(("psn",), kernel=kernel)
    assert decoder.decode(records) == 0
    assert decoder.tallies[layout.TALLY_CUT] == 1


def test_wrong_tables_are_refused(kernel, frames, records):
    def tables(**change):
        given = {
            "words": np.zeros((4, layout.WORDS), np.uint64), "chains": chain_table(), "sizes": size_table(),
            "slots": np.zeros(8, np.int32), "hosts": np.zeros((4, 2), np.uint64), "used": np.ones(1, np.int64),
            "tallies": np.zeros(layout.TALLIES, np.int64), "seed": 1,
        } | change  # fmt: skip
        return kernel.Kernel(*given.values())

    tables()
    for change in (
        {"words": np.zeros((4, layout.WORDS - 1), np.uint64)},
        {"chains": chain_table()[:255].copy()},
        {"sizes": size_table()[:255].copy()},
        {"slots": np.zeros(12, np.int32)},
        {"slots": np.zeros(4, np.int32)},
        {"hosts": np.zeros((4, 3), np.uint64)},
        {"used": np.zeros(1, np.int64)},
        {"used": np.full(1, 5, np.int64)},
        {"tallies": np.zeros(layout.TALLIES - 1, np.int64)},
    ):
        with pytest.raises(ValueError, match=r"shape|power of two|row 0|wrong"):
            tables(**change)


def test_wrong_columns_are_refused(kernel, frames, records):
    hand = np.asarray if kernel.COMPILED else memoryview
    batch = records([frames.v2(4)] * 3)
    parts = (batch.data, batch.offset, batch.cap_len, batch.wire_len, batch.time_ns, batch.link_type)
    arrays = [hand(part) for part in parts]
    one = Decoder(("psn",), kernel=kernel)._kernel

    def run(fields, rows=3, width=None, lines=1, short=None):
        outputs = []
        for size, field in zip((1, 2, 4, 8), fields, strict=True):
            table = np.array([field] * (lines if size == width else 1), np.uint64)
            outputs += [hand(table), hand(np.zeros((1, rows - (size == width and lines == 1)), f"u{size}"))]
        given = [part if number != short else part[:2] for number, part in enumerate(arrays)]
        return one.decode(*given, 1, False, *outputs)

    plain = [(0, 0, 1)] * 4
    assert run(plain) == 3
    for place in range(4):
        for field in ((layout.WORDS, 0, 1), (0, 64, 1), (0, 0, 1, 0)):
            with pytest.raises(ValueError, match="field"):
                run([*plain[:place], field, *plain[place + 1 :]])
    for width in (1, 2, 4, 8):
        with pytest.raises(ValueError, match="shorter than the batch"):
            run(plain, width=width)
        with pytest.raises(ValueError, match="fewer columns than fields"):
            run(plain, width=width, lines=2)
    for short in range(2, 6):
        with pytest.raises(ValueError, match="different lengths"):
            run(plain, short=short)


def test_host_table_full(kernel, frames, records):
    """No room for more hosts: code 0 for the rest, those that are known stay known."""
    hosts = np.zeros((3, 2), np.uint64)
    used = np.ones(1, np.int64)
    tallies = np.zeros(layout.TALLIES, np.int64)
    scratch = np.zeros((4, layout.WORDS), np.uint64)
    one = kernel.Kernel(scratch, chain_table(), size_table(), np.zeros(4, np.int32), hosts, used, tallies, 1)
    hand = np.asarray if kernel.COMPILED else memoryview
    given = [frames.v2(4, ip={"src": bytes([10, 0, 0, n])}) for n in (1, 2, 1, 3)]
    batch = records(given)
    source = np.zeros((1, 4), np.uint32)
    nothing = [hand(np.zeros((1, 3), np.uint64)) for _ in range(3)]
    one.decode(
        *[hand(part) for part in (batch.data, batch.offset, batch.cap_len, batch.wire_len, batch.time_ns)],
        hand(batch.link_type), 1, False,
        nothing[0], hand(np.zeros((1, 4), np.uint8)), nothing[1], hand(np.zeros((1, 4), np.uint16)),
        hand(np.array([(layout.HOSTS, 32, 0xFFFFFFFF)], np.uint64)), hand(source),
        nothing[2], hand(np.zeros((1, 4), np.uint64)),
    )  # fmt: skip
    assert source[0].tolist() == [1, 0, 1, 0]
    assert used[0] == 3


def test_struct_size():
    """The hand-written frame is as long as its own lengths say."""
    assert struct.unpack_from(">H", WRITE_FIRST, 20)[0] == len(WRITE_FIRST) - 18
