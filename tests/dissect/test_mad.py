"""Management datagrams: tshark's fields of real ones, and the specification's bytes of what it does not decode."""

from __future__ import annotations

import shutil
import struct
import subprocess
import xml.etree.ElementTree as ET
from ipaddress import ip_address

import pytest

from roce_dissect.dissect.frame import dissect, dissect_frames
from roce_dissect.dissect.mad import service_id
from roce_dissect.spec.cm import CmMessage

#: tshark's name behind ``infiniband.cm.<message>.`` -> ours. Its flow labels and rates are wrong (trap 16).
THEIRS = {
    "localcommid": "local_comm_id", "remotecommid": "remote_comm_id", "localcaguid": "ca_guid", "localqkey": "q_key",
    "localqpn": "qpn", "responderres": "responder_resources", "respres": "responder_resources", "localeecn": "eecn",
    "initdepth": "initiator_depth", "remoteeecn": "remote_eecn", "remoteresptout": "remote_response_timeout",
    "transpsvctype": "transport", "e2eflowctrl": "end_to_end_flow_control", "startpsn": "starting_psn",
    "localresptout": "local_response_timeout", "retrcount": "retry_count", "pkey": "p_key", "pppmtu": "path_mtu",
    "rdcexist": "rdc_exists", "rnrretrcount": "rnr_retry_count", "maxcmretr": "max_cm_retries", "srq": "srq",
    "ext_transport": "extended_transport", "prim_locallid": "primary_local_lid", "prim_remotelid": "primary_remote_lid",
    "prim_localgid": "primary_local_gid", "prim_remotegid": "primary_remote_gid",
    "prim_localgid_ipv4": "primary_local_gid", "prim_remotegid_ipv4": "primary_remote_gid",
    "prim_tfcclass": "primary_traffic_class", "prim_hoplim": "primary_hop_limit", "prim_sl": "primary_sl",
    "prim_subnetlocal": "primary_subnet_local", "prim_localacktout": "primary_ack_timeout",
    "alt_locallid": "alternate_local_lid", "alt_remotelid": "alternate_remote_lid",
    "alt_tfcclass": "alternate_traffic_class", "alt_hoplim": "alternate_hop_limit", "alt_sl": "alternate_sl",
    "alt_subnetlocal": "alternate_subnet_local", "alt_localacktout": "alternate_ack_timeout",
    "ip_cm.majv": "major_version", "ip_cm.minv": "minor_version", "ip_cm.ipv": "ip_version",
    "ip_cm.sport": "source_port", "ip_cm.sip4": "source_address", "ip_cm.dip4": "destination_address",
    "ip_cm.sip6": "source_address", "ip_cm.dip6": "destination_address",
    "tgtackdelay": "target_ack_delay", "failoveracc": "failover_accepted", "msgrej": "message_rejected",
    "rejinfolen": "info_length", "reason": "reason", "remoteqpneecn": "remote_qpn",
}  # fmt: skip


def tshark_says(path):
    """Frame -> {our name: value} of each CM message."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    asked = ["tshark", "-r", str(path), "-Y", "infiniband.mad.mgmtclass == 7", "-T", "pdml"]
    root = ET.fromstring(subprocess.run(asked, capture_output=True, check=True).stdout)
    for packet in root:
        number = next(int(one.get("show")) for one in packet.iter("field") if one.get("name") == "frame.number")
        found = {}
        for one in packet.iter("field"):
            parts = one.get("name", "").split(".", 3)
            if parts[:2] == ["infiniband", "cm"] and parts[3:] and parts[3] in THEIRS:
                found[THEIRS[parts[3]]] = one.get("show")
        yield number, found


@pytest.mark.parametrize("name", ["cm_rping_ipv4.client.pcap.gz", "cm_refused.client.pcap.gz"])
def test_against_tshark(samples, name):
    ours = {tree[0].find("frame").value: tree for tree in dissect_frames(samples / name)}
    compared = 0
    for number, fields in tshark_says(samples / name):
        nodes = {node.name: node for section in ours[number] if section.name in ("cm", "ip_cm")
                 for node in section.walk()}  # fmt: skip
        assert fields
        for field, text in fields.items():
            value = nodes[field].value
            if isinstance(value, str):
                assert ip_address(value) == ip_address(text), field
            else:
                assert value == int(text, 0), field
            compared += 1
    assert compared > (55 if "rping" in name else 15)


def test_flow_label_of_a_request(samples):
    """tshark shows another one; this one gives the data's UDP source port, by the rule of rdma-core."""
    tree = next(dissect_frames(samples / "cm_rping_ipv4.client.pcap.gz"))
    found = {section.name: section for section in tree}
    port = found["ip_cm"].find("source_port").value
    service = found["cm"].find("service_id")
    assert service.meaning == "TCP port 7174"
    assert found["cm"].find("primary_flow_label").value == (port * 31 + 7174) % (1 << 20)


def mad(kind, body, attribute=None, management_class=7):
    head = struct.pack(">BBBBHHQHHI", 1, management_class, 2, 3, 0, 0, 0x0102030405060708, attribute or kind, 0, 0)
    return head + body + bytes(232 - len(body))


@pytest.fixture
def sent(frames, sections):
    """``sent(payload)``: sections of a packet to QP 1 that carries it."""

    def make(payload, **more):
        values = {"q_key": 0x80010000, "src_qp": 1}
        return sections(frames.v2(0x64, payload, values, dest_qp=1), **more)

    return make


#: Message -> (bytes behind the MAD's header, {field: (value, meaning)}), by the tables of IBTA 12.6 to 12.11.
MESSAGES = {
    CmMessage.MRA: (
        struct.pack(">IIBB", 1, 2, 1 << 6, 20 << 3),
        {"message_mraed": (1, "REP"), "service_timeout": (20, "4.295 s (4.096 µs x 2^20)")},
    ),
    CmMessage.REJ: (
        struct.pack(">IIBBHQ", 0, 2, 0, 8 << 1, 4, 0x1122334455667788),
        {
            "reason": (4, "timeout"), "message_rejected": (0, "REQ"),
            "info": ("1122334455667788", "CA GUID of the REQ's sender"),
        },
    ),
    CmMessage.DREQ: (
        struct.pack(">III", 1, 2, 0x11 << 8),
        {"remote_qpn": (0x11, "the receiver's QP"), "local_comm_id": (1, "of the sender")},
    ),
    CmMessage.SIDR_REP: (
        struct.pack(">IBBHIQI", 7, 3, 0, 0, 0x22 << 8, 0x0000000001111C06, 0x01234567),
        {
            "sidr_status": (3, "no QP"), "qpn": (0x22, "the sender's QP"), "q_key": (0x01234567, ""),
            "service_id": (0x0000000001111C06, "UDP port 7174"),
        },
    ),
    CmMessage.LAP: (
        bytes(12)
        + struct.pack(">I", 0x33 << 8 | 20 << 3)
        + bytes(40)
        + struct.pack(">IBBBB", 0x12345 << 12 | 7, 64, 3, 0x10, 14 << 3),
        {
            "qpn": (0x33, "the sender's QP"), "flow_label": (0x12345, ""), "traffic_class": (7, ""),
            "hop_limit": (64, ""), "rate": (3, "10 Gb/s"), "sl": (1, ""),
            "ack_timeout": (14, "67.11 ms (4.096 µs x 2^14)"),
        },
    ),
    CmMessage.APR: (struct.pack(">IIBB", 1, 2, 0, 5), {"ap_status": (5, ""), "info_length": (0, "bytes")}),
    CmMessage.RTU: (struct.pack(">II", 1, 2), {"remote_comm_id": (2, "of the receiver")}),
}  # fmt: skip


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages(sent, kind):
    body, expected = MESSAGES[kind]
    found = sent(mad(kind, body))
    assert found["mad"].find("attribute_id").meaning == kind.name
    assert found["mad"].find("class").meaning == "connection manager"
    assert found["cm"].text == f"CM {kind.name}"
    for name, (value, meaning) in expected.items():
        node = found["cm"].find(name)
        assert (node.value, node.meaning) == (value, meaning), name


def test_ip_cm_over_ipv6(sent):
    body = struct.pack(">IIQ", 9, 0xFFFF0000, 0x0000000001061144)  # TCP port 4420
    header = struct.pack(">BBH", 0, 6 << 4, 40000) + bytes.fromhex(
        "fd00" + "00" * 13 + "01" + "fd00" + "00" * 13 + "02"
    )
    found = sent(mad(CmMessage.SIDR_REQ, body + header + b"hello"))
    assert found["cm"].find("service_id").meaning == "TCP port 4420 (NVMe/RDMA)"
    assert found["ip_cm"].find("source_address").value == "fd00::1"
    assert found["ip_cm"].find("destination_address").value == "fd00::2"
    private = found["ip_cm"].find("private_data")
    assert private.meaning == "180 bytes"
    assert bytes.fromhex(private.value).rstrip(b"\0") == b"hello"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0x0000000001061144, "TCP port 4420 (NVMe/RDMA)"),
        (0x0000000001064E51, "TCP port 20049 (NFS/RDMA)"),
        (0x00000000013F0001, "IB port 1"),
        (0x0000000001990001, ""),
        (0x0000000000010CBC, "SDP port 3260"),
        (0x0000000000020001, "IPoIB port 1"),
        (0x0200000000000001, "assigned by the CM"),
        (0x1000000000000001, ""),
    ],
)
def test_service_ids(value, words):
    assert service_id(value) == words


def test_other_classes(sent):
    found = sent(mad(0x11, b"\1\2\3", management_class=3))
    assert found["mad"].find("class").meaning == "subnet administration"
    assert "cm" not in found
    assert found["mad"].find("data").size == 232
    assert "cm" not in sent(mad(0x99, b""))  # no such message


def test_cut(frames, rows):
    """A sliced REQ: what is there is shown, and named what is not."""
    body = struct.pack(">IIQ", 0x77, 0, 0x0000000001064853) + bytes(60)
    frame = frames.v2(0x64, mad(CmMessage.REQ, body), {"q_key": 0x80010000, "src_qp": 1}, dest_qp=1)
    [row] = rows(frame[:150], wire=[len(frame)])
    found = {section.name: section for section in dissect(row)}
    assert found["cm"].find("service_id").meaning == "TCP port 18515 (perftest)"
    missing = found["cm"].find("missing")
    assert missing.meaning == "64 of 140 bytes captured"
    assert missing.text.startswith("primary_local_gid, primary_remote_gid, primary_flow_label, primary_rate")
    [row] = rows(frame[:90], wire=[len(frame)])
    assert "qpn" in {s.name: s for s in dissect(row)}["cm"].find("missing").text


def test_qp_0(frames, sections):
    found = sections(frames.v2(0x64, mad(0x11, b"", management_class=0x81), {"q_key": 0, "src_qp": 0}, dest_qp=0))
    assert found["mad"].find("class").meaning == "subnet management, by directed route"
    assert "mad" not in sections(frames.v2(0x64, mad(0x10, b""), {"q_key": 0, "src_qp": 0}, dest_qp=2))
