"""What the layers put in, the kernel gets out: every column of every packet.

Known difference, by design: the kernel calls a UDP length below 24 or a GRH PayLen below 16 malformed before it looks
at the BTH; here such a BTH is dissected. Packets with automatic lengths never have one.
"""

from __future__ import annotations

import ipaddress

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from strategies import frames

from roce_dissect import layout as row
from roce_dissect.capture.reader import Records
from roce_dissect.columns import PACKETS
from roce_dissect.decode.decoder import Decoder
from roce_dissect.layers import BTH, CNP, FETH, GRH
from roce_dissect.layers.header import ExtendedHeader
from roce_dissect.terms import Status

COLUMNS = [name for name, column in PACKETS.items() if column.field is not None]
DECODER = Decoder(COLUMNS)


def records(packets) -> Records:
    """A batch as a reader would make it."""
    sizes = np.array([len(packet) for packet in packets], np.int64)
    return Records(
        data=np.frombuffer(b"".join(packets), np.uint8),
        count=len(packets),
        offset=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        cap_len=sizes,
        wire_len=sizes,
        time_ns=np.arange(len(packets), dtype=np.int64),
        link_type=np.ones(len(packets), np.uint16),
        first_frame=1,
    )


def expected(packet) -> tuple[dict[str, int], int]:
    """Columns of a packet and its presence mask, from the Scapy layers alone."""
    built = Ether(bytes(packet))
    values = {"cap_len": len(built), "wire_len": len(built), "status": int(Status.OK)}
    present = row.HAS_ETH | row.HAS_BTH | row.HAS_ICRC
    values |= {"eth_src": int(built.src.replace(":", ""), 16), "eth_dst": int(built.dst.replace(":", ""), 16)}
    inner = [built.getlayer(index) for index in range(1, 4)]
    tagged = [layer for layer in inner if isinstance(layer, (Dot1Q, Dot1AD))]
    for tag, bit, names in zip(
        tagged, (row.HAS_VLAN, row.HAS_VLAN2), (("vlan_id", "pcp"), ("vlan2_id",)), strict=False
    ):
        present |= bit
        values |= dict(zip(names, (tag.vlan, tag.prio), strict=False))
    if GRH in built:
        grh = built[GRH]
        present |= row.HAS_GRH
        values |= {"version": 1, "dscp": grh.dscp, "ecn": grh.ecn, "ttl": grh.hop_limit, "ip_len": grh.pay_len,
                   "flow_label": grh.flow_label}  # fmt: skip
    else:
        udp = built[UDP]
        present |= row.HAS_UDP
        values |= {"version": 2, "udp_sport": udp.sport, "udp_dport": 4791, "udp_len": udp.len}
        if IP in built:
            ip = built[IP]
            present |= row.HAS_IPV4
            values |= {"dscp": ip.tos >> 2, "ecn": ip.tos & 3, "ttl": ip.ttl, "ip_len": ip.len, "ip_id": ip.id}
        else:
            ip = built[IPv6]
            present |= row.HAS_IPV6
            values |= {"dscp": ip.tc >> 2, "ecn": ip.tc & 3, "ttl": ip.hlim, "ip_len": ip.plen, "flow_label": ip.fl}
    bth = built[BTH]
    layer, at = bth, len(built) - len(bytes(bth)) + BTH.header_size
    while isinstance(layer, (BTH, ExtendedHeader)):
        values |= {field: value for field, value in layer.fields.items() if field in PACKETS}
        if isinstance(layer, ExtendedHeader):
            present |= layer.presence
            at += layer.header_size
        layer = layer.payload
    if FETH in built:
        values["feth"] = int.from_bytes(built[FETH].self_build(), "big")
    payload = built[Raw].load if Raw in built else b""
    return values | {"payload_len": len(payload), "payload_offset": at}, present


def address(text: str) -> int:
    parsed = ipaddress.ip_address(text)
    return int(parsed) if parsed.version == 6 else 0xFFFF << 32 | int(parsed)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(frames(), min_size=1, max_size=8))
def test_the_kernel_reads_what_was_put_in(packets):
    assert DECODER.decode(records([bytes(packet) for packet in packets])) == len(packets)
    for index, packet in enumerate(packets):
        values, present = expected(packet)
        read = {name: int(DECODER.columns[name][index]) for name in COLUMNS}
        assert read["present"] == present
        assert {name: read[name] for name in values} == values
        # and what is not there is zero, whatever stood in the row before
        rest = set(COLUMNS) - set(values) - {"time_ns", "present", "src", "dst", "frame_key"}
        assert not {name: read[name] for name in rest if read[name]}
        ends = (packet[GRH].sgid, packet[GRH].dgid) if GRH in packet else ()
        network = packet.getlayer(IP) or packet.getlayer(IPv6)
        for name, end in zip(("src", "dst"), ends or (network.src, network.dst), strict=True):
            high, low = DECODER.hosts.words[read[name]]
            assert int(high) << 64 | int(low) == address(end)


def test_reserved_bytes_of_a_cnp_are_no_payload():
    frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / GRH() / BTH() / CNP())
    assert DECODER.decode(records([frame])) == 1
    assert DECODER.columns["payload_len"][0] == 0
    assert DECODER.columns["present"][0] & row.HAS_CNP
