"""Which of tshark's values is ours, and what it means: rows written by hand, as tshark prints them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from roce_dissect.analysis.wireshark import CONTROL_FIELDS, FIELDS, comparable, is_tunnelled, layers_of, values_of
from roce_dissect.columns import PACKETS

PLAIN = "eth:ethertype:ip:udp:infiniband"
VXLAN = "eth:ethertype:ip:udp:vxlan:eth:ethertype:ip:udp:infiniband"


def value(name, protocols=PLAIN, **fields):
    """tshark's value of one column; fields with ``__`` for the dot."""
    row = {"frame.protocols": protocols} | {field.replace("__", "."): text for field, text in fields.items()}
    return values_of((name,), row)[0]


def test_fields_are_wiresharks():
    """Wireshark itself knows each field by this name."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    listed = subprocess.run(["tshark", "-G", "fields"], capture_output=True, text=True, check=True).stdout
    known = {line.split("\t")[2] for line in listed.splitlines() if line.startswith("F\t")}
    assert {field for fields in FIELDS.values() for field in fields} | set(CONTROL_FIELDS) <= known


def test_every_column_that_names_a_field_is_compared():
    assert set(FIELDS) == {column.name for column in PACKETS.values() if column.wireshark}


def test_a_field_that_is_missing():
    known = frozenset(field for fields in FIELDS.values() for field in fields) - {"ipv6.hlim", "infiniband.bth.psn"}
    compared, lacking = comparable(known)
    assert lacking == {"ttl": ("ipv6.hlim",), "psn": ("infiniband.bth.psn",)}
    assert set(compared) == set(FIELDS) - {"ttl", "psn"}


@pytest.mark.parametrize(
    ("protocols", "layers", "tunnelled"),
    [
        (PLAIN, 5, False),
        ("eth:ethertype:ip:udp:infiniband:ethertype:ip:udp:dns", 5, False),  # a payload's headers are not the packet's
        (VXLAN, 10, True),
        ("eth:ethertype:ip:ipv6:udp:infiniband", 6, True),
        ("eth:ethertype:mpls:ip:udp:infiniband", 6, True),
        ("eth:ethertype:ip:udp:tftp", 5, False),
    ],
)
def test_layers(protocols, layers, tunnelled):
    assert layers_of(protocols) == tuple(protocols.split(":"))[:layers]
    assert is_tunnelled(layers_of(protocols)) is tunnelled


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("psn", {"infiniband__bth__psn": "16777215"}, 0xFFFFFF),
        ("dest_qp", {"infiniband__bth__destqp": "0x00000030"}, 0x30),
        ("se", {"infiniband__bth__se": "1"}, 1),
        ("se", {"infiniband__bth__se": "True"}, 1),
        ("se", {"infiniband__bth__se": "False"}, 0),
        ("imm_data", {"infiniband__immdt": "ca:fe:00:01"}, 0xCAFE0001),
        ("imm_data", {"infiniband__immdt": "cafe0001"}, 0xCAFE0001),
        ("eth_src", {"eth__src": "02:00:5e:00:00:01"}, 0x02005E000001),
        ("time_ns", {"frame__time_epoch": "1700000000.000000001"}, 1_700_000_000_000_000_001),
        ("time_ns", {"frame__time_epoch": "1700000000.5"}, 1_700_000_000_500_000_000),
        ("icrc", {"infiniband__invariant__crc": "0x04030201"}, 0x01020304),
        ("src", {"ip__src": "192.168.100.2"}, "192.168.100.2"),
        ("psn", {}, None),
        ("psn", {"infiniband__bth__psn": "nonsense"}, "nonsense"),
        ("src", {"ip__src": "nonsense"}, "nonsense"),
        ("icrc", {"infiniband__invariant__crc": "0x104030201"}, "0x104030201"),
    ],
)
def test_values(name, fields, expected):
    assert value(name, **fields) == expected


def test_of_two_packets_the_inner_one_counts():
    fields = {"ip__src": "10.9.9.2|192.168.100.2", "ip__ttl": "1|64", "udp__srcport": "53249|50424", "ip__id": "9|1",
              "eth__src": "02:00:00:00:00:01|02:00:00:00:00:02"}  # fmt: skip
    assert value("src", VXLAN, **fields) == "192.168.100.2"
    assert value("outer_src", VXLAN, **fields) == "10.9.9.2"
    assert value("ttl", VXLAN, **fields) == 64
    assert value("udp_sport", VXLAN, **fields) == 50424
    assert value("ip_id", VXLAN, **fields) == 1
    assert value("eth_src", VXLAN, **fields) == 0x020000000002
    assert value("outer_src", PLAIN, ip__src="192.168.100.2") is None


def test_of_two_versions_the_inner_one_counts():
    protocols = "eth:ethertype:ipv6:ip:udp:infiniband"
    fields = {"ip__src": "192.168.100.2", "ipv6__src": "2001:db8::a2", "ipv6__flow": "0x00001", "ip__ttl": "64",
              "ipv6__hlim": "1"}  # fmt: skip
    assert value("src", protocols, **fields) == "192.168.100.2"
    assert value("outer_src", protocols, **fields) == "2001:db8::a2"
    assert value("ttl", protocols, **fields) == 64
    assert value("flow_label", protocols, **fields) is None  # the outer header's


def test_a_payload_that_looks_like_ip_does_not_count():
    protocols = f"{PLAIN}:ethertype:ip:udp:dns"
    assert value("src", protocols, ip__src="192.168.100.2|1.2.3.4") == "192.168.100.2"
    assert value("udp_sport", protocols, udp__srcport="50000|53") == 50000
    assert value("outer_src", protocols, ip__src="192.168.100.2|1.2.3.4") is None


def test_gid_header():
    fields = {"infiniband__grh__sgid": "::ffff:192.168.100.2", "infiniband__grh__tclass": "0x6b",
              "infiniband__grh__hoplmt": "3"}  # fmt: skip
    v1 = "eth:ethertype:infiniband"
    assert value("src", v1, **fields) == "192.168.100.2"
    assert value("dscp", v1, **fields) == 26
    assert value("ecn", v1, **fields) == 3
    assert value("ttl", v1, **fields) == 3
    assert value("udp_sport", v1, **fields) is None
    tunnel = {"ip__src": "10.9.9.2", "ip__ttl": "1", "udp__srcport": "53249"} | fields
    inside = "eth:ethertype:ip:udp:vxlan:eth:ethertype:infiniband"
    assert value("src", inside, **tunnel) == "192.168.100.2"
    assert value("outer_src", inside, **tunnel) == "10.9.9.2"
    assert value("udp_sport", inside, **tunnel) is None  # it is the tunnel's


def test_local_identifiers():
    """Native InfiniBand without GRH."""
    fields = {"infiniband__lrh__slid": "18", "infiniband__lrh__dlid": "0x0034"}
    assert value("src", "erf:infiniband", **fields) == "LID 18"
    assert value("dst", "erf:infiniband", **fields) == "LID 52"
    assert value("slid", "erf:infiniband", **fields) == 18
    gid = fields | {"infiniband__grh__sgid": "fd00::1"}
    assert value("src", "erf:infiniband", **gid) == "fd00::1"
    assert value("ttl", "erf:infiniband", **fields) is None


@pytest.mark.parametrize(
    ("protocols", "fields", "expected"),
    [
        ("eth:ethertype:vlan:ethertype:ip:udp:infiniband", {"vlan__id": "5", "vlan__priority": "3"}, (5, 3, None)),
        (
            "eth:ethertype:ieee8021ad:ethertype:vlan:ethertype:ip:udp:infiniband",
            {"vlan__id": "7", "vlan__priority": "1", "ieee8021ad__id": "6", "ieee8021ad__priority": "2"},
            (6, 2, 7),
        ),
        (
            "eth:ethertype:vlan:ethertype:vlan:ethertype:ip:udp:infiniband",
            {"vlan__id": "8|9", "vlan__priority": "4|5"},
            (8, 4, 9),
        ),
        (  # the outer frame's tag is not the packet's
            "eth:ethertype:vlan:ethertype:ip:gre:eth:ethertype:vlan:ethertype:ip:udp:infiniband",
            {"vlan__id": "77|5", "vlan__priority": "0|3"},
            (5, 3, None),
        ),
        (
            "eth:ethertype:vlan:ethertype:ip:gre:eth:ethertype:ip:udp:infiniband",
            {"vlan__id": "77", "vlan__priority": "0"},
            (None, None, None),
        ),
        (PLAIN, {}, (None, None, None)),
    ],
)
def test_tags(protocols, fields, expected):
    assert tuple(value(name, protocols, **fields) for name in ("vlan_id", "pcp", "vlan2_id")) == expected


GRE = "eth:ethertype:ip:gre:eth:ethertype:ip:udp:infiniband"


@pytest.mark.parametrize(
    ("protocols", "fields", "expected"),
    [
        (VXLAN, {"vxlan__vni": "4242"}, 4242),
        (PLAIN, {}, None),
        (GRE, {"gre__proto": "0x6558", "gre__flags__key": "1", "gre__key": "0x0000004d"}, 77),
        (GRE, {"gre__proto": "0x6558", "gre__flags__key": "1", "gre__key": "0x12345678"}, 0x123456),  # NVGRE
        (
            GRE,
            {"gre__proto": "0x6558", "gre__flags__key": "1", "gre__key": "0x12345678",
             "gre__flags__sequence_number": "1"},
            0x12345678,
        ),
        (
            GRE,
            {"gre__proto": "0x6558", "gre__flags__key": "True", "gre__key": "0x12345678",
             "gre__flags__checksum": "True"},
            0x12345678,
        ),
        (GRE, {"gre__proto": "0x0800", "gre__flags__key": "1", "gre__key": "0x0000004d"}, None),
        (GRE, {"gre__proto": "0x6558", "gre__flags__key": "0"}, None),
        (  # the inner tunnel has none
            "eth:ethertype:ip:udp:vxlan:eth:ethertype:ip:gre:ip:udp:infiniband",
            {"vxlan__vni": "99", "gre__proto": "0x0800", "gre__flags__key": "1", "gre__key": "0x0000004d"},
            99,
        ),
        (  # of two GRE headers the inner one has a key
            "eth:ethertype:ip:gre:eth:ethertype:ip:gre:eth:ethertype:ip:udp:infiniband",
            {"gre__proto": "0x6558|0x6558", "gre__flags__key": "0|1", "gre__key": "0x00000005"},
            5,
        ),
        ("eth:ethertype:ip:udp:geneve:eth:ethertype:ip:udp:infiniband", {"geneve__vni": "0x000005"}, 5),
    ],
)  # fmt: skip
def test_network_identifier(protocols, fields, expected):
    assert value("vni", protocols, **fields) == expected


def test_a_value_that_is_not_there():
    """A header that was cut off shows fewer values than there are headers."""
    assert value("ttl", VXLAN, ip__ttl="1") is None
    assert value("vni", VXLAN) is None
