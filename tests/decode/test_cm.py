"""CM datagrams: ids, QPNs and PSNs as tshark reads them, each message cut at every length, foreign MADs."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest

from roce_dissect.capture.reader import open_capture
from roce_dissect.decode.cm import CM_COLUMNS, cm_messages
from roce_dissect.decode.decoder import Decoder
from roce_dissect.spec.cm import CmMessage

#: Our field -> tshark's, for each message; `infiniband.cm.req` is the communication id itself.
TSHARK = {
    CmMessage.REQ: {
        "local_id": "req", "qpn": "req.localqpn", "starting_psn": "req.startpsn", "mtu": "req.pppmtu",
    },
    CmMessage.REP: {
        "local_id": "rep", "remote_id": "rep.remotecommid", "qpn": "rep.localqpn", "starting_psn": "rep.startpsn",
    },
    CmMessage.RTU: {"local_id": "rtu.localcommid", "remote_id": "rtu.remotecommid"},
    CmMessage.REJ: {"local_id": "rej.localcommid", "remote_id": "rej.remotecommid", "reason": "rej.reason"},
    CmMessage.DREQ: {"local_id": "dreq.localcommid", "remote_id": "dreq.remotecommid"},
    CmMessage.DREP: {"local_id": "drsp.localcommid", "remote_id": "drsp.remotecommid"},
}  # fmt: skip


@pytest.fixture
def messages_of(kernel):
    def run(path):
        decoder = Decoder(CM_COLUMNS, kernel=kernel)
        found = []
        with open_capture(path) as capture:
            for records in capture:
                found += cm_messages(decoder.columns, decoder.decode(records), records.data)
        return found

    return run


@pytest.mark.parametrize("name", ["cm_refused.client.pcap.gz", "cm_rping_ipv4.client.pcap.gz"])
def test_against_tshark(name, samples, messages_of):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    fields = ["frame.number", "infiniband.mad.attributeid"]
    fields += sorted({f"infiniband.cm.{name}" for names in TSHARK.values() for name in names.values()})
    command = ["tshark", "-n", "-r", samples / name, "-Y", "infiniband.mad.mgmtclass == 7", "-T", "fields"]
    command += [part for field in fields for part in ("-e", field)]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    rows = [dict(zip(fields, line.split("\t"), strict=True)) for line in text.splitlines()]
    ours = messages_of(samples / name)
    assert [int(row["frame.number"]) for row in rows] == [message.frame_key for message in ours]
    assert [int(row["infiniband.mad.attributeid"], 0) for row in rows] == [message.kind for message in ours]
    for row, message in zip(rows, ours, strict=True):
        for field, theirs in TSHARK[message.kind].items():
            value = int(row[f"infiniband.cm.{theirs}"], 0)
            if field == "mtu":
                value = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}[value]
            assert getattr(message, field) == value, (message, field)
    assert len(ours) >= 5


def mad(attribute, body, management_class=7, method=3):
    """A MAD of 256 bytes, field by field (IBTA 13.4.3)."""
    header = struct.pack(">BBBBHHQHHI", 1, management_class, 2, method, 0, 0, 0x1122334455667788, attribute, 0, 0)
    return header + body + bytes(232 - len(body))


def body(*fields, size=232):
    """Bytes with (offset, width, value) filled in."""
    data = bytearray(size)
    for at, width, value in fields:
        data[at : at + width] = value.to_bytes(width, "big")
    return bytes(data)


REQ = body((0, 4, 0xA1A2A3A4), (32, 3, 0xB1B2B3), (44, 3, 0xC1C2C3), (50, 1, 0x3F))
REP = body((0, 4, 0xD1D2D3D4), (4, 4, 0xA1A2A3A4), (12, 3, 0xE1E2E3), (20, 3, 0xF1F2F3))
REJ = body((0, 4, 1), (4, 4, 2), (10, 2, 28))
DREQ = body((0, 4, 3), (4, 4, 4), (8, 3, 0x123456))
RTU = body((0, 4, 5), (4, 4, 6))

#: Message, body, fields, bytes of the MAD that its fields need.
BY_HAND = [
    (CmMessage.REQ, REQ, {"local_id": 0xA1A2A3A4, "qpn": 0xB1B2B3, "starting_psn": 0xC1C2C3, "mtu": 1024}, 75),
    (
        CmMessage.REP,
        REP,
        {"local_id": 0xD1D2D3D4, "remote_id": 0xA1A2A3A4, "qpn": 0xE1E2E3, "starting_psn": 0xF1F2F3},
        47,
    ),
    (CmMessage.REJ, REJ, {"local_id": 1, "remote_id": 2, "reason": 28}, 36),
    (CmMessage.DREQ, DREQ, {"local_id": 3, "remote_id": 4, "qpn": 0x123456}, 35),
    (CmMessage.RTU, RTU, {"local_id": 5, "remote_id": 6}, 32),
    (CmMessage.DREP, RTU, {"local_id": 5, "remote_id": 6}, 32),
]


@pytest.fixture
def read(kernel, records, frames):
    def run(payload, opcode=0x64, dest_qp=1, wire=None, cut=None):
        values = {"q_key": 0x80010000, "src_qp": 1}
        frame = frames.v2(opcode, payload, values, dest_qp=dest_qp)
        decoder = Decoder(CM_COLUMNS, kernel=kernel)
        batch = records([b"no frame", frame[:cut]], wire=[8, len(frame)])
        return cm_messages(decoder.columns, decoder.decode(batch), batch.data)

    return run


@pytest.mark.parametrize(("kind", "message", "fields", "needed"), BY_HAND)
def test_by_hand(kind, message, fields, needed, read):
    [found] = read(mad(kind, message))
    assert found.kind is kind
    assert {name: getattr(found, name) for name in fields} == fields
    assert (found.row, found.frame_key, found.version) == (0, 2, 2)
    others = {"remote_id", "qpn", "starting_psn", "mtu", "reason"} - set(fields)
    assert all(getattr(found, name) == 0 for name in others)


@pytest.mark.parametrize(("kind", "message", "fields", "needed"), BY_HAND)
def test_cut_at_every_length(kind, message, fields, needed, read):
    """A message is told where all its fields were captured, and left out where not."""
    before = 14 + 20 + 8 + 12 + 8
    for cut in range(before, before + 256):
        found = read(mad(kind, message), cut=cut)
        assert bool(found) == (cut >= before + needed), cut
        if found:
            assert {name: getattr(found[0], name) for name in fields} == fields


def test_what_is_no_cm(read):
    assert read(mad(0x10, REQ, management_class=3)) == []
    assert read(mad(0x13A, REQ)) == []
    assert read(mad(CmMessage.MRA, REQ)) == []
    assert read(mad(0x10, REQ), dest_qp=2) == []
    assert read(b"\x07" * 10) == []
    assert read(b"") == []


@pytest.mark.parametrize(
    ("code", "mtu"), [(0, 0), (1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096), (6, 0), (15, 0)]
)
def test_path_mtu(code, mtu, read):
    """The high four bits of byte 50; the low ones are RDC and RNR retry."""
    [found] = read(mad(0x10, body((50, 1, code << 4 | 0x0F))))
    assert found.mtu == mtu
