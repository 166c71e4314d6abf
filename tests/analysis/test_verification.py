"""Comparing in step: equal, different, seen by one only; files and tsharks that break off; fields that are missing."""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
import struct
import subprocess

import pytest
import zstandard

from roce_dissect.analysis.tshark import find_tshark
from roce_dissect.analysis.verification import Difference, Verification
from roce_dissect.analysis.wireshark import FIELDS
from roce_dissect.decode.options import ReadOptions
from roce_dissect.decode.selection import Selection
from roce_dissect.errors import WiresharkError

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

VLAN = "rc_mix_vlan100_ipv4.client.pcap.gz"


def verified(tshark, *paths, **options):
    verification = Verification(tshark, **options)
    for path in paths:
        for _ in verification.read(str(path)):
            pass
    return verification


def faked(tshark, fake_tshark, script):
    """The installed tshark's knowledge, and a script in its place."""
    return dataclasses.replace(tshark, path=str(fake_tshark(script)))


def shown(path, *names):
    """What tshark prints of these fields, line by line, without any of our code."""
    asked = [part for name in names for part in ("-e", name)]
    command = ["tshark", "-n", "-r", path, "-T", "fields", *asked]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def shown_frames(path):
    """Numbers of the frames that tshark calls RoCE."""
    lines = (line.split("\t") for line in shown(path, "frame.number", "infiniband.bth.psn"))
    return [int(number) for number, psn in lines if psn]


def test_equal(tshark, samples):
    result = verified(tshark, samples / VLAN)
    assert (result.different, result.differences, result.traps, result.not_compared) == (0, [], {}, {})
    # how many values there are is tshark's own word
    pairs = {"psn": "bth.psn", "dest_qp": "bth.destqp", "msn": "aeth.msn", "dma_len": "reth.dmalen", "frame": "bth.psn"}
    for name, field in pairs.items():
        there = sum(line != "" for line in shown(samples / VLAN, f"infiniband.{field}"))
        assert there
        assert result.fields[name].equal == there, name
    assert result.fields["vlan2_id"].equal == 0
    assert result.packets == 58
    assert result.values == sum(tally.equal for tally in result.fields.values())
    [file] = result.files
    assert (file.packets, file.values, file.different, file.complete) == (58, result.values, 0, True)


def test_a_value_that_differs(tshark, samples, fake_tshark):
    """One PSN of tshark's is changed on its way to us: that one is told, with its frame."""
    lines = (line.split("\t") for line in shown(samples / VLAN, "frame.number", "infiniband.bth.psn"))
    psns = {int(frame): int(psn) for frame, psn in lines if psn}
    frame = list(psns)[20]
    liar = faked(tshark, fake_tshark, f'"$real" "$@" | sed "/^{frame}\\t/s/\\t{psns[frame]}\\t/\\t7\\t/"')
    result = verified(liar, samples / VLAN)
    assert result.differences == [Difference(0, frame, "psn", psns[frame], 7)]
    assert (result.different, result.fields["psn"].different, result.fields["psn"].equal) == (1, 1, 57)
    assert (result.files[0].different, result.packets) == (1, 58)


def test_a_value_of_ours_that_differs(tshark, samples, monkeypatch):
    """The comparison reads our decoder, not a copy: with another field table in its place, each TTL is wrong."""
    from roce_dissect.columns import PACKETS

    word, shift, mask = PACKETS["ttl"].field
    monkeypatch.setitem(PACKETS, "ttl", dataclasses.replace(PACKETS["ttl"], field=(word, shift, mask >> 1)))
    monkeypatch.setitem(PACKETS, "ttl", dataclasses.replace(PACKETS["ttl"], field=(word, shift + 1, mask)))
    result = verified(tshark, samples / VLAN, most=3)
    assert (result.different, result.fields["ttl"].different) == (58, 58)
    assert [(one.column, one.ours, one.theirs) for one in result.differences] == [("ttl", 32, 64)] * 3


@pytest.mark.parametrize("most", [0, 1, 5, 1000])
def test_differences_are_bounded_and_counted(tshark, samples, fake_tshark, most):
    liar = faked(tshark, fake_tshark, '"$real" "$@" | sed "s/192\\.168\\.1[0-9]*\\./192.168.7./g"')
    result = verified(liar, samples / VLAN, most=most)
    assert (result.fields["src"].different, result.fields["dst"].different) == (58, 58)
    assert result.different == 116
    assert len(result.differences) == 2 * min(most, 58)


def test_a_frame_that_only_we_see(tshark, samples, fake_tshark):
    frames = shown_frames(samples / VLAN)[::10]
    gone = "; ".join(f"/^{frame}\\t/d" for frame in (frames[0], frames[3], frames[-1]))
    result = verified(faked(tshark, fake_tshark, f'"$real" "$@" | sed "{gone}"'), samples / VLAN)
    assert result.differences == [
        Difference(0, frame, "frame", frame, None) for frame in sorted({frames[0], frames[3], frames[-1]})
    ]


@pytest.mark.parametrize("place", ["first", "between", "last"])
def test_a_frame_that_only_tshark_sees(tshark, samples, fake_tshark, place):
    """A frame that is ARP to us, and RoCE to this tshark."""
    roce = shown_frames(samples / VLAN)
    everything = range(1, roce[-1] + 20)
    others = [frame for frame in everything if frame not in roce]
    number = {"first": others[0], "between": next(one for one in others if one > roce[0]), "last": roce[-1] + 19}[place]
    script = f""""$real" "$@" | awk -F'\\t' -v OFS='\\t' -v n={number} '
        function extra() {{ line = $0; $1 = n; print; $0 = line; done = 1 }}
        !done && $1 > n {{ extra() }} {{ print }} END {{ if (!done) extra() }}' """
    result = verified(faked(tshark, fake_tshark, script), samples / VLAN)
    assert result.differences == [Difference(0, number, "frame", None, number)]
    assert result.packets == 58


@pytest.mark.parametrize("snap", [38, 41, 42, 44, 45, 46, 50, 57, 58, 61, 62, 74, 100])
def test_sliced_anywhere(tshark, samples, frames, tmp_path, snap):
    path = tmp_path / "sliced.pcap"
    path.write_bytes(frames.sliced(gzip.decompress((samples / VLAN).read_bytes()), snap))
    result = verified(tshark, path)
    assert result.differences == []
    # the UDP header is in bytes 38 to 45 of a frame with a tag
    assert set(result.traps) == ({"cut_udp"} if 42 <= snap <= 45 else set())
    assert result.packets == (58 if snap >= 42 else 0)


@pytest.mark.parametrize("snap", [None, 60])
def test_native_infiniband(tshark, frames, tmp_path, snap):
    """tshark does not know the link type: it gets ERF records instead, of the same times, lengths and numbers."""
    made = [frames.native(frames.packet(4, bytes(40), psn=psn), {"tclass": 0x6B} if psn % 2 else None, slid=psn)
            for psn in range(20)]  # fmt: skip
    path = tmp_path / "native.pcap"
    path.write_bytes(frames.pcap([frame[:snap] for frame in made], link_type=247, wire=[*map(len, made)], nano=True))
    result = verified(tshark, path)
    assert (result.differences, result.traps, result.files[0].tshark_error) == ([], {}, None)
    for name in ("frame", "time_ns", "wire_len", "cap_len", "slid", "psn"):
        assert result.fields[name].equal == 20, name
    assert result.fields["flow_label"].equal == 10


@pytest.mark.parametrize("reads_zstd", [True, False])
def test_zstd(tshark, samples, plain, tmp_path, reads_zstd):
    path = tmp_path / "capture.zst"
    path.write_bytes(zstandard.compress(plain(samples / VLAN).read_bytes()))
    result = verified(dataclasses.replace(tshark, reads_zstd=reads_zstd), path)
    assert (result.packets, result.different, result.files[0].tshark_error) == (58, 0, None)


def test_several_files(tshark, samples, tmp_path, frames):
    other = tmp_path / "other.pcap"
    other.write_bytes(frames.pcap([frames.v2(0x81, b"")]))
    result = verified(tshark, samples / VLAN, tmp_path / "missing", other)
    assert [(one.index, one.packets, one.error) for one in result.files] == [
        (0, 58, None), (1, 0, "cannot be opened: No such file or directory"), (2, 1, None),
    ]  # fmt: skip
    assert result.packets == 59
    assert (result.traps["unknown_opcode"].file, result.traps["unknown_opcode"].frame) == (2, 1)


def test_a_field_that_this_tshark_lacks(tshark, samples):
    older = dataclasses.replace(tshark, fields=tshark.fields - {"infiniband.reth.va", "ipv6.hlim"})
    result = verified(older, samples / VLAN)
    assert result.not_compared == {"va": ("infiniband.reth.va",), "ttl": ("ipv6.hlim",)}
    assert set(result.fields) == set(FIELDS) - {"va", "ttl"}
    assert (result.packets, result.different) == (58, 0)


def broken_off(plain, samples, tmp_path, frames=30):
    content = bytearray(plain(samples / VLAN).read_bytes())
    offset = 24
    for _ in range(frames):
        offset += 16 + struct.unpack_from("<I", content, offset + 8)[0]
    struct.pack_into("<I", content, offset + 8, 0x7FFFFFFF)
    path = tmp_path / "broken.pcap"
    path.write_bytes(content)
    return path, offset


def test_a_broken_file(tshark, samples, plain, tmp_path):
    """What is before the fault is compared; the fault is told once, by us."""
    path, offset = broken_off(plain, samples, tmp_path)
    result = verified(tshark, path)
    [file] = result.files
    assert (file.error, file.error_offset) == ("a record of 2147483647 captured bytes", offset)
    assert (file.tshark_error, file.complete, result.different) == (None, False, 0)
    assert result.packets == sum(frame <= 30 for frame in shown_frames(samples / VLAN)) > 0


def test_an_unfinished_last_record(tshark, samples, plain, tmp_path):
    path = tmp_path / "growing.pcap"
    path.write_bytes(plain(samples / VLAN).read_bytes()[:-10])
    result = verified(tshark, path)
    [file] = result.files
    assert (file.error, file.tshark_error, file.complete, result.different) == (None, None, True, 0)
    assert result.packets >= 50


def test_what_tshark_sees_behind_the_fault_of_a_broken_file(tshark, samples, plain, tmp_path, fake_tshark):
    """A tshark that reads on, here in the whole file: what we did not get to is no difference."""
    path, _ = broken_off(plain, samples, tmp_path)
    whole = plain(samples / VLAN)
    other = f'for a; do shift; [ "$a" = "{path}" ] && a="{whole}"; set -- "$@" "$a"; done; exec "$real" "$@"'
    result = verified(faked(tshark, fake_tshark, other), path)
    assert (result.different, result.files[0].tshark_error) == (0, None)
    assert result.packets == sum(frame <= 30 for frame in shown_frames(samples / VLAN))


@pytest.mark.parametrize(("cut", "error"), [(10, None), (None, "cut short")])
def test_a_complaint_at_the_end(tshark, samples, plain, tmp_path, fake_tshark, cut, error):
    """That the last record is unfinished is normal, whatever tshark thinks of it; of a whole file it is a fault."""
    path = tmp_path / "growing.pcap"
    path.write_bytes(plain(samples / VLAN).read_bytes()[: None if cut is None else -cut])
    result = verified(faked(tshark, fake_tshark, '"$real" "$@"; echo "tshark: cut short" >&2; exit 2'), path)
    assert (result.files[0].tshark_error, result.files[0].complete) == (error, error is None)
    assert result.different == 0


def test_a_tshark_that_breaks_off(tshark, samples, fake_tshark):
    """What it did not get to is no difference."""
    script = '"$real" "$@" | head -n 20; echo "tshark: out of memory" >&2; exit 1'
    result = verified(faked(tshark, fake_tshark, script), samples / VLAN)
    [file] = result.files
    assert (file.tshark_error, file.error, file.complete) == ("out of memory", None, False)
    assert (result.packets, result.different) == (20, 0)


def test_a_tshark_that_breaks_off_at_a_broken_file_before_the_fault(tshark, samples, plain, tmp_path, fake_tshark):
    path, _ = broken_off(plain, samples, tmp_path)
    result = verified(faked(tshark, fake_tshark, '"$real" "$@" 2> /dev/null | head -n 3; exit 1'), path)
    assert result.files[0].tshark_error == "exit status 1"


def test_no_roce(tshark, frames, tmp_path):
    path = tmp_path / "none.pcap"
    path.write_bytes(frames.pcap([frames.ethernet(bytes(60), 0x0806)]))
    result = verified(tshark, path)
    assert (result.packets, result.values, result.files[0].complete) == (0, 0, True)


def test_neither_calls_it_roce(tshark, samples, fake_tshark):
    """tshark lists what goes to port 4791, whatever it is to it."""
    roce = shown_frames(samples / VLAN)
    other = next(frame for frame in range(1, 1000) if frame not in roce)
    script = f""""$real" "$@" | awk -F'\\t' -v OFS='\\t' 'NR == 1 {{ line = $0; $1 = {other}; $2 = "eth:ip:udp"; \
        if ({other} < {roce[0]}) print; $0 = line }} {{ print }}' """
    assert other < roce[0]
    result = verified(faked(tshark, fake_tshark, script), samples / VLAN)
    assert (result.different, result.traps, result.packets) == (0, {}, 58)


def test_steps(tshark, samples, fake_tshark):
    """While tshark is silent there are steps, so that Ctrl-C is heard."""
    slow = faked(tshark, fake_tshark, 'sleep 0.5; exec "$real" "$@"')
    verification = Verification(slow, poll_s=0.02)
    steps = list(verification.read(str(samples / VLAN)))
    assert steps[0] == 0
    assert len(steps) > 5
    assert steps[-1] == 58


def test_leaving_off_ends_tshark(tshark, samples, fake_tshark, tmp_path):
    slow = faked(tshark, fake_tshark, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    steps = Verification(slow, poll_s=0.2).read(str(samples / VLAN))
    next(steps)
    steps.close()
    pid = (tmp_path / "pid").read_text().strip()
    with pytest.raises(FileNotFoundError):
        open(f"/proc/{pid}/status").close()


def test_as_json(tshark, samples, frames, tmp_path):
    path = tmp_path / "cnp.pcap"
    path.write_bytes(frames.pcap([frames.v2(0x81, b"")]))
    told = json.loads(json.dumps(verified(tshark, samples / VLAN, path).to_dict(), allow_nan=False))
    assert (told["schema"], told["tshark"], told["packets"], told["different"]) == (1, tshark.version, 59, 0)
    assert [one["path"] for one in told["files"]] == [str(samples / VLAN), str(path)]
    fields = {one["field"]: one for one in told["fields"]}
    assert fields["psn"] == {
        "field": "psn",
        "wireshark": ["infiniband.bth.psn"],
        "equal": 59,
        "skipped": 0,
        "different": 0,
    }
    [trap] = told["traps"]
    assert (trap["trap"], trap["file"], trap["frame"], trap["packets"], trap["values"]) == (
        "unknown_opcode",
        1,
        1,
        1,
        1,
    )
    assert trap["sentence"].startswith("tshark does not know")
    assert told["differences"] == []


def test_a_tshark_that_prints_something_else(fake_tshark, samples):
    fields = """n=$(printf '%s\\n' "$@" | grep -c '^-e$'); printf 'x\\t%.0s' $(seq 2 $n); echo y"""
    fake_tshark(f'case "$*" in *" -r "*) {fields}; exit 0;; *) exec "$real" "$@";; esac')
    verification = Verification(find_tshark())
    with pytest.raises(WiresharkError, match="no table of fields"):
        list(verification.read(str(samples / "cm_refused.client.pcap.gz")))


def test_frames_out_of_time_order_with_a_choice(tshark, samples, tmp_path):
    """A column that is judged over all packets must not put them in another order than tshark's."""
    raw = gzip.decompress((samples / VLAN).read_bytes())
    records, at = [], 24
    while at < len(raw):
        size = 16 + struct.unpack_from("<I", raw, at + 8)[0]
        records.append(raw[at : at + size])
        at += size
    roce = [number for number, record in enumerate(records) if record[16 + 40 : 16 + 42] == b"\x12\xb7"]
    one = next(number for number in roce if number + 1 in roce)
    records[one], records[one + 1] = records[one + 1], records[one]
    raw = raw[:24] + b"".join(records)
    path = tmp_path / "swapped.pcap"
    path.write_bytes(raw)
    chosen = verified(tshark, path, options=ReadOptions(selection=Selection("standing == 'full'")))
    assert chosen.different == 0
    assert chosen.files[0].packets == verified(tshark, path).files[0].packets == 58
