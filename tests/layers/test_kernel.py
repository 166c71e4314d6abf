"""What the layers put in, the kernel gets out: every column of every packet, whole and cut at every length.

The values come from `tests/expected.py`, which knows the packet as it was crafted. Tunnels and links are Scapy's own.

Known difference, by design: the kernel calls a UDP length below 24 or a GRH PayLen below 16 malformed before it looks
at the BTH; here such a BTH is dissected. Packets with automatic lengths never have one.
"""

from __future__ import annotations

import numpy as np
import pytest
from expected import COLUMNS, ENDS, Expected
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from strategies import (
    FRAME_TUNNELS,
    IP_LINKS,
    IP_TUNNELS,
    LINKS,
    SOURCE_PORTS,
    WITH_PAYLOAD,
    Captured,
    captured,
    captured_natively,
    carriers,
    frames,
    transports,
)

from roce_dissect import layout
from roce_dissect.capture.reader import Records
from roce_dissect.decode.decoder import Decoder
from roce_dissect.layers import BTH, CNP, GRH
from roce_dissect.spec.opcodes import HEADERS

NAMES = (*COLUMNS, "frame_key")
TUNNELS = [*FRAME_TUNNELS, *IP_TUNNELS]


def examples(count):
    """The same examples at every run. The first one is the simplest, all zero: a single one would show little."""
    return settings(max_examples=count, derandomize=True, database=None, deadline=None,
                    suppress_health_check=list(HealthCheck))  # fmt: skip


def records(link_types, frames, wire=None) -> Records:
    """A batch as a reader would make it."""
    sizes = np.array([len(frame) for frame in frames], np.int64)
    return Records(
        data=np.frombuffer(b"".join(frames) or b"\0", np.uint8),
        count=len(frames),
        offset=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        cap_len=sizes,
        wire_len=sizes if wire is None else np.array(wire, np.int64),
        time_ns=np.arange(len(frames), dtype=np.int64),
        link_type=np.array(link_types, np.uint16),
        first_frame=1,
    )


def rows(decoder, batch):
    """Frame number -> columns, hosts as their addresses."""
    count = decoder.decode(batch)
    columns = {name: decoder.columns[name][:count].tolist() for name in NAMES}
    for name in ENDS:
        words = decoder.hosts.words[columns[name]].tolist()
        columns[name] = [high << 64 | low for high, low in words]
    numbers = columns.pop("frame_key")
    return {number: {name: columns[name][row] for name in columns} for row, number in enumerate(numbers)}


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def form(request, load_form):
    """The kernel in each form, and how many examples it can bear."""
    return Decoder(NAMES, kernel=load_form("roce_dissect.decode.kernel", request.param)), request.param == "compiled"


@pytest.fixture(scope="module")
def decoder(load_form):
    """The compiled form."""
    return Decoder(NAMES, kernel=load_form("roce_dissect.decode.kernel", "compiled"))


def check_whole(decoder, packets):
    """All of them in one batch, so that what stood in a row before must not show either. Returns the rows."""
    wanted = [Expected(*one) for one in packets]
    found = rows(decoder, records([one.link_type for one in packets], [one.built for one in wanted]))
    assert found == {number: one.row(len(one.built)) for number, one in enumerate(wanted, 1)}
    for one, row in zip(wanted, found.values(), strict=True):
        start = row["payload_offset"]
        assert one.built[start : start + row["payload_len"]] == one.payload
    return list(found.values())


def check_cuts(decoder, one, alone=False):
    """A frame cut at every length: what is there whole is right, the rest is missing, and the status says so.

    All in one batch, so that other bytes follow; or each `alone` in a buffer that ends with it.
    """
    wanted = Expected(*one)
    size = len(wanted.built)
    cuts = [wanted.built[:length] for length in range(size + 1)]
    decoder.tallies[:] = 0
    found = {}
    if alone:
        for length, cut in enumerate(cuts):
            for row in rows(decoder, records([one.link_type], [cut], [size])).values():
                found[length] = row
    else:
        batch = records([one.link_type] * len(cuts), cuts, [size] * len(cuts))
        found = {number - 1: row for number, row in rows(decoder, batch).items()}
    assert found == {length: wanted.row(length) for length in range(wanted.known, size + 1)}
    kinds = {layout.TALLY_ROCE: len(found), layout.TALLY_CUT: size + 1 - len(found)}
    assert {kind: int(decoder.tallies[kind]) for kind in np.flatnonzero(decoder.tallies)} == kinds


ANY = captured(tunnels=None) | captured() | captured_natively()


def of_opcode(opcode):
    return transports(opcode=st.just(opcode), icrc=0xA1B2C3D4)


@pytest.mark.parametrize("opcode", sorted(HEADERS))
def test_every_opcode(decoder, opcode):
    @examples(5)
    @given(st.tuples(captured(of_opcode(opcode)), captured_natively(of_opcode(opcode))))
    def check(packets):
        check_whole(decoder, packets)

    check()


@pytest.mark.parametrize(
    ("version", "link_type"),
    [("v1", link) for link in LINKS]
    + [("ipv4", link) for link in LINKS + IP_LINKS[IP]]
    + [("ipv6", link) for link in LINKS + IP_LINKS[IPv6]],
)
def test_every_link(decoder, version, link_type):
    @examples(10)
    @given(captured(versions=(version,), link_type=link_type))
    def check(packet):
        check_whole(decoder, [packet])

    check()


@pytest.mark.parametrize("kind", TUNNELS)
def test_every_tunnel(decoder, kind):
    @examples(10)
    @given(captured(versions=("ipv4", "ipv6"), tunnels=(kind,)))
    def check(packet):
        check_whole(decoder, [packet])

    check()


@pytest.mark.parametrize(
    "kinds",
    [
        ("vxlan", "erspan2"), ("gretap", "mpls"), ("geneve_ip", "gre", "pseudowire"), ("mpls", "vxlan", "erspan3"),
        ("ipip", "erspan1", "nvgre", "geneve"), ("erspan3_ip", "mpls", "ipip", "ipip"), ("vxlan",) * 4,
    ],
    ids="-in-".join,
)  # fmt: skip
def test_tunnels_in_tunnels(decoder, kinds):
    @examples(8)
    @given(captured(versions=("ipv4", "ipv6"), tunnels=kinds))
    def check(packet):
        [row] = check_whole(decoder, [packet])
        assert row["tunnels"] in (len(kinds), len(kinds) + 1)  # MPLS in GRE is two

    check()


@pytest.mark.parametrize("port", SOURCE_PORTS)
def test_every_source_port(decoder, port):
    @examples(5)
    @given(frames(carriers(("ipv4", "ipv6"), st.just(port))))
    def check(packet):
        [row] = check_whole(decoder, [Captured(1, packet)])
        assert row["udp_sport"] == port

    check()


@pytest.mark.parametrize("size", [*range(6), 64, 4096, 9000])
def test_every_pad(decoder, size):
    payload = st.just(bytes(byte & 0xFF for byte in range(size)))

    @examples(5)
    @given(captured(transports(st.sampled_from(sorted(WITH_PAYLOAD)), payload)))
    def check(packet):
        [row] = check_whole(decoder, [packet])
        assert (row["payload_len"], row["pad_count"]) == (size, -size % 4)

    check()


@examples(50)
@given(packets=st.lists(ANY, min_size=1, max_size=4))
def test_any_packets(decoder, packets):
    check_whole(decoder, packets)


@examples(60)
@given(packet=ANY, trailer=st.binary(min_size=1, max_size=40))
def test_what_follows_a_packet_changes_nothing(decoder, packet, trailer):
    wanted = Expected(*packet)
    size = len(wanted.built) + len(trailer)
    found = rows(decoder, records([packet.link_type], [wanted.built + trailer]))
    assert found == {1: wanted.row(len(wanted.built)) | {"wire_len": size, "cap_len": size}}


@examples(120)
@given(packet=ANY)
def test_cut_at_every_length(decoder, packet):
    check_cuts(decoder, packet)


@pytest.mark.parametrize("opcode", sorted(HEADERS))
def test_every_opcode_cut_at_every_length(decoder, opcode):
    @examples(3)
    @given(st.tuples(captured(of_opcode(opcode)), captured_natively(of_opcode(opcode))))
    def check(packets):
        for packet in packets:
            check_cuts(decoder, packet)

    check()


@pytest.mark.parametrize("kind", TUNNELS)
def test_every_tunnel_cut_at_every_length(form, kind):
    decoder, fast = form

    @examples(6 if fast else 3)
    @given(captured(versions=("ipv4", "ipv6"), tunnels=(kind,)))
    def check(packet):
        check_whole(decoder, [packet])
        check_cuts(decoder, packet, alone=not fast)

    check()


@pytest.mark.parametrize("strategy", [captured(), captured_natively()], ids=["captured", "native"])
def test_without_tunnels_in_both_forms(form, strategy):
    decoder, fast = form

    @examples(20 if fast else 6)
    @given(strategy)
    def check(packet):
        check_whole(decoder, [packet])
        check_cuts(decoder, packet, alone=True)

    check()


def test_reserved_bytes_of_a_cnp_are_no_payload(decoder):
    frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / GRH() / BTH() / CNP())
    [row] = rows(decoder, records([1], [frame])).values()
    assert row["payload_len"] == 0
    assert row["present"] & layout.HAS_CNP
