"""Further UDP ports of RoCE v2, by the caller's wish: `Decoder`, `read_packets`, `analyze`, ``--port``."""

from __future__ import annotations

import numpy as np
import pytest

import roce_dissect as rd
from roce_dissect import layout
from roce_dissect.cli import main
from roce_dissect.decode.decoder import Decoder
from roce_dissect.errors import ArgumentError


def to_port(frames, port, version=4, psn=5):
    body = frames.udp(frames.packet(4, b"data", psn=psn), dport=port)
    if version == 4:
        return frames.ethernet(frames.ipv4(body), 0x0800)
    return frames.ethernet(frames.ipv6(body), 0x86DD)


@pytest.mark.parametrize("version", [4, 6])
def test_each_of_them_beside_4791(kernel, frames, records, version):
    ports = [1, 4789, 6081, 65535, *range(5000, 5012)]
    assert len(ports) == layout.MOST_PORTS
    decoder = Decoder(("udp_dport", "psn", "status", "version"), kernel=kernel, ports=ports)
    given = [to_port(frames, port, version) for port in (*ports, 4791, 4790, 0)]
    assert decoder.decode(records(given)) == len(ports) + 1
    assert decoder.columns["udp_dport"][: len(ports) + 1].tolist() == [*ports, 4791]
    assert decoder.columns["status"][: len(ports) + 1].tolist() == [0] * (len(ports) + 1)
    assert np.flatnonzero(decoder.tallies).tolist() == [layout.TALLY_ROCE, layout.TALLY_UDP]


def test_within_a_tunnel(kernel, frames, records):
    decoder = Decoder(("udp_dport", "tunnel"), kernel=kernel, ports=[5000])
    frame = frames.outer_ethernet(frames.outer(frames.vxlan(to_port(frames, 5000)), 17))
    assert decoder.decode(records([frame])) == 1
    assert (decoder.columns["udp_dport"][0], decoder.columns["tunnel"][0]) == (5000, 1)


@pytest.mark.parametrize("ports", [[0], [-1], [65536], ["4790"], [4790.0], 4790, None, range(1, 18)])
def test_what_are_no_ports(ports, tmp_path):
    with pytest.raises(ArgumentError, match="port"):
        Decoder(("psn",), ports=ports)


def test_all_that_reads_a_capture(frames, tmp_path, capsys):
    path = tmp_path / "ports.pcap"
    path.write_bytes(frames.pcap([to_port(frames, port, psn=psn) for psn, port in enumerate((4791, 5000, 5001))]))
    assert rd.read_packets(path, ["psn"])["psn"].tolist() == [0]
    assert rd.read_packets(path, ["psn"], ports=[5000, 5001])["psn"].tolist() == [0, 1, 2]
    assert [len(piece) for piece in rd.iter_packets(path, ["psn"], ports=np.array([5001]))] == [2]
    result = rd.analyze(path, ports=(5000, 5001))
    assert result.capture["roce_packets"] == 3
    assert result.packets()["psn"].tolist() == [0, 1, 2]  # read once more
    assert len(result.messages) == 3
    for command in ("packets", "messages", "events", "connections", "analyze"):
        printed = []
        for options in ([], ["--port", "5000", "--port", "5001"]):
            assert main([command, *options, str(path)]) == 0
            printed.append(capsys.readouterr().out)
        if command in ("packets", "messages"):
            assert [len(text.splitlines()) for text in printed][1] > len(printed[0].splitlines())
        elif command != "events":
            assert printed[0] != printed[1]
    assert main(["packets", "--port", "0", str(path)]) == 2
    assert main(["packets", *(["--port", "9"] * 17), str(path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("roce-dissect: 17 UDP ports beside 4791: 16 at most")
