"""``packets -V``: trees for people and for programs."""

from __future__ import annotations

import json

import pytest

import roce_dissect as rd

LOSS = "imp_loss1_write.server.pcap.gz"


def test_a_nak(call, samples):
    done = call("packets", samples / LOSS, "-V", "--frame", "87")
    assert (done.status, done.err) == (0, [])
    lines = done.out.splitlines()
    assert lines[0].startswith(f"Frame 87 of {samples / LOSS}")
    assert "    psn                     2032685 (0x1f042d)" in done.out
    # values and places as tshark shows them
    assert [" ".join(line.split()) for line in lines if line.startswith("    syndrome")] == [
        "syndrome 0x60 NAK PSN sequence error byte 54"
    ]
    titles = [line.split("  ")[0] for line in lines if line and not line.startswith(" ")]
    assert titles[1:] == [
        "Ethernet", "IPv4", "UDP", "BTH: RC ACKNOWLEDGE", "AETH", "Payload", "ICRC", "In its connection",
    ]  # fmt: skip
    assert " ".join(lines[3].split()) == "time_ns 2026-11-29 13:05:04.328945 UTC 1.058997000 s after the first frame"


def test_verdicts_of_the_tracker_stay_right(call, samples):
    """What was before the chosen frames is read all the same."""
    out = call("packets", samples / LOSS, "-V", "--frame", "86").out
    words = {line.split()[0]: line.split()[1] for line in out.split("In its connection")[1].splitlines() if line}
    assert (words["verdict"], words["accepted"], words["missing_before"]) == ("gap", "out_of_sequence", "1")


def test_json(call, samples):
    done = call("packets", samples / LOSS, "-V", "--format", "jsonl", "--count", "20")
    table = rd.read_packets(samples / LOSS)
    objects = [json.loads(line) for line in done.out.splitlines()]
    assert len(objects) == 20
    for row, made in enumerate(objects):
        assert set(made) == {"file", "frame", "sections"}
        assert made["frame"] == table["frame"].iloc[row]
        found = {node["column"]: node["value"] for section in made["sections"] for node in section["children"]
                 if "column" in node}  # fmt: skip
        for name in ("psn", "dest_qp", "src", "opcode", "time_ns", "verdict", "icrc", "eth_src"):
            assert found[name] == table[name].iloc[row]
        bth = next(section for section in made["sections"] if section["name"] == "bth")
        assert (bth["first_byte"], bth["bytes"]) == (42, 12)


def test_hex(call, samples):
    out = call("packets", samples / "cm_refused.client.pcap.gz", "--hex", "--count", "1").out
    dump = out.split("Bytes\n")[1].splitlines()
    assert len(dump) == 322 // 16 + 2
    assert dump[0].startswith("       0  02 00 5e")


def test_standard_input(command, samples):
    done = command("packets", "-", "-V", "--frame", "2", stdin=(samples / "cm_refused.client.pcap.gz").read_bytes())
    assert (done.status, done.err) == (0, [])
    assert "invalid service id: nobody listens there" in done.out
    assert done.out.startswith("Frame 2 of -")


def test_several_files(call, samples):
    done = call("packets", samples / LOSS, samples / "imp_loss1_write.client.pcap.gz", "-V", "--frame", "86-87")
    assert done.out.count("\nBTH") == 4
    assert done.out.count("imp_loss1_write.client") == 2


def test_a_capture_that_breaks_off(call, samples, tmp_path):
    path = tmp_path / "broken.pcap.gz"
    path.write_bytes((samples / LOSS).read_bytes()[:20_000])
    done = call("packets", path, "-V", "--frame", "20-100000")
    assert done.status == 2
    assert done.out.startswith("Frame 20 of ")
    assert len(done.err) == 1


def test_frames_without_packets(call, samples):
    done = call("packets", samples / LOSS, "--frame", "999999")
    assert (done.status, done.out, done.err) == (0, "", ["roce-dissect: there is no RoCE packet among these frames"])


def test_lines_of_chosen_frames(call, samples):
    every = call("packets", samples / LOSS).out.splitlines()
    chosen = call("packets", samples / LOSS, "--frame", "87,86").out.splitlines()
    assert chosen == every[66:68]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-V", "--columns", "psn"], "--columns does not go with -V, which prints every field"),
        (["-V", "--format", "csv"], "-V prints a tree: it goes with --format text or jsonl"),
        (["--hex", "--format", "jsonl"], "--hex and --tshark go with --format text only"),
        (["--tshark"], "--tshark is for a few frames: choose them with --frame or --packets"),
        (["--frame", "9-5"], "frames 9-5: the range ends before it begins"),
        (["--frame", "x"], "'x' is no frame number and no range of them, such as 5 or 86-90"),
    ],
)
def test_what_does_not_go_together(call, samples, arguments, said):
    done = call("packets", samples / LOSS, *arguments)
    assert (done.status, done.out) == (2, "")
    [line] = done.err
    assert line.removeprefix("roce-dissect: ").removesuffix(" (see roce-dissect packets --help)") == said
