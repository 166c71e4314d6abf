"""The public face: `analyze`, `read_packets`, `iter_packets`, `track`, `Analysis`."""

from __future__ import annotations

import gc
import gzip
import io
import itertools
import json
import shutil
import struct
import subprocess

import numpy as np
import pandas as pd
import pytest
import zstandard

import roce_dissect as rd
from roce_dissect.capture import reader
from roce_dissect.columns import (
    CONNECTIONS,
    COUNTERS,
    EPISODES,
    EVENTS,
    HOSTS,
    LATENCY,
    MESSAGES,
    PACKETS,
    STREAMS,
    TRACKED,
)

LOSS = "imp_loss1_write.server.pcap.gz"
MIX = "rc_mix_ipv4_mtu1024.server.pcap.gz"
CM = "cm_rping_ipv4.client.pcap.gz"

TABLES = ("streams", "connections", "events", "episodes", "latency", "hosts", "counters")


def same(one, other, *, but=()):
    """Two frames hold the same values; categories may stand in another order."""
    assert list(one.columns) == list(other.columns)
    assert len(one) == len(other)
    for name in one.columns:
        if name in but:
            continue
        left, right = (side[name].astype(object).where(side[name].notna(), None).tolist() for side in (one, other))
        assert left == right, name


#: Columns that tell files.
FILES = ("file", "first_file", "last_file", "trigger_file", "cause_file", "most_file")
#: And columns that tell frames.
PLACES = (*FILES, "frame", "first_frame", "last_frame", "trigger_frame", "cause_frame", "most_frame")


def same_analysis(one, other, *, but=FILES):
    for table in TABLES:
        same(getattr(one, table), getattr(other, table), but=but)


def records(data):
    """(time in ns, frame) of a classic little-endian pcap file."""
    nano = data[:4] == b"\x4d\x3c\xb2\xa1"
    at, found = 24, []
    while at < len(data):
        seconds, fraction, captured, _ = struct.unpack_from("<IIII", data, at)
        found.append((seconds * 10**9 + fraction * (1 if nano else 1000), data[at : at + 16 + captured]))
        at += 16 + captured
    return found


def rewritten(data, chosen):
    return data[:24] + b"".join(raw for _, raw in chosen)


# -- DataFrames ----------------------------------------------------------------------------------------------------


def test_packet_dtypes(samples):
    """All columns, in order; integers of their own width; what is absent is missing, and no integer becomes a float."""
    packets = rd.read_packets(samples / MIX)
    assert list(packets.columns) == list(PACKETS)
    for name, column in PACKETS.items():
        dtype = packets[name].dtype
        if column.dtype in ("str", "address") or column.terms is not None:
            assert isinstance(dtype, pd.CategoricalDtype), name
        else:
            assert isinstance(dtype, pd.ArrowDtype), name
            assert dtype.numpy_dtype == np.dtype(column.dtype), name
    assert packets.index.equals(pd.RangeIndex(58))
    writes = packets[packets["operation"] == "RC WRITE ONLY"]
    assert writes["va"].notna().all()
    acks = packets[packets["operation"] == "RC ACKNOWLEDGE"]
    assert acks[["va", "r_key", "dma_len", "imm_data", "vlan_id", "flow_label"]].isna().all(axis=None)
    assert acks["syndrome"].notna().all()
    assert set(packets["src"].astype(str)) == {"192.168.100.1", "192.168.100.2"}


def test_64_bit_addresses_stay_integers():
    """The highest addresses survive, beside missing ones: a float would round them."""
    top = 0xFFFFFFFFFFFFFFFD
    bth = struct.pack(">BBHII", 0x0C, 0x40, 0xFFFF, 17, 5)
    reth = struct.pack(">QII", top, 1, 2)

    def frame(opcode, extended):
        body = bytes([opcode]) + bth[1:] + extended + bytes(4)
        udp = struct.pack(">HHHH", 50000, 4791, len(body) + 8, 0) + body
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, len(udp) + 20, 1, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2")
        return bytes(12) + b"\x08\x00" + ip + udp

    frames = [frame(0x0C, reth), frame(0x04, b"")]
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    data += b"".join(struct.pack("<IIII", 1, 0, len(one), len(one)) + one for one in frames)
    packets = rd.read_packets(io.BytesIO(data))
    assert packets["va"].tolist() == [top, pd.NA]
    assert packets["dma_len"].tolist() == [2, pd.NA]
    assert int(packets["va"].iloc[0]) == top


def test_columns_are_those_asked_for(samples):
    chosen = ["psn", "verdict", "frame", "src"]
    packets = rd.read_packets(samples / MIX, chosen)
    assert list(packets.columns) == chosen
    same(packets, rd.read_packets(samples / MIX)[chosen])
    with pytest.raises(rd.ArgumentError, match=r"no such column: nonsense"):
        rd.read_packets(samples / MIX, ["psn", "nonsense"])


def test_tables_keep_the_contract(samples):
    """Each table has exactly its columns, for a full capture, one without RoCE, and one without frames."""
    nothing = gzip.decompress((samples / MIX).read_bytes())[:24]
    for given in (samples / LOSS, samples / CM, io.BytesIO(nothing)):
        result = rd.analyze(given)
        for name, table in (
            ("streams", STREAMS),
            ("connections", CONNECTIONS),
            ("events", EVENTS),
            ("episodes", EPISODES),
            ("latency", LATENCY),
            ("hosts", HOSTS),
            ("counters", COUNTERS),
        ):
            frame = getattr(result, name)
            assert list(frame.columns) == list(table)
            for column in table.values():
                dtype = frame[column.name].dtype
                if column.dtype in ("str", "address") or column.terms is not None:
                    assert dtype == "str", column.name
                else:
                    assert dtype.numpy_dtype == np.dtype(column.dtype), column.name


def test_no_roce(samples):
    data = gzip.decompress((samples / MIX).read_bytes())
    others = [(time, raw) for time, raw in records(data) if raw[16 + 36 : 16 + 38] != b"\x12\xb7"]
    assert 0 < len(others) < 30
    given = rewritten(data, others)
    result = rd.analyze(io.BytesIO(given))
    assert result.capture["roce_packets"] == 0
    assert result.capture["packets"] == len(others) == sum(result.capture["other_packets"].values())
    assert all(len(getattr(result, table)) == 0 for table in TABLES)
    packets = rd.read_packets(io.BytesIO(given))
    assert len(packets) == 0
    assert list(packets.columns) == list(PACKETS)
    assert {name: str(dtype) for name, dtype in packets.dtypes.items() if name != "src"}["va"] == "uint64[pyarrow]"


# -- one capture, many forms -----------------------------------------------------------------------------------------


def test_every_form_of_input(samples, tmp_path):
    """Path as text and Path, gzip, zstd, plain, pcapng, file object: the same packets and the same analysis."""
    data = gzip.decompress((samples / LOSS).read_bytes())
    plain = tmp_path / "plain.pcap"
    plain.write_bytes(data)
    zst = tmp_path / "a.pcap.zst"
    zst.write_bytes(zstandard.ZstdCompressor().compress(data))
    expected = rd.analyze(samples / LOSS)
    packets = rd.read_packets(samples / LOSS)
    forms = [str(samples / LOSS), plain, zst, io.BytesIO(data), [plain]]
    if shutil.which("editcap"):
        ng = tmp_path / "a.pcapng"
        subprocess.run(["editcap", "-F", "pcapng", plain, ng], check=True)
        forms.append(ng)
    for form in forms:
        same_analysis(rd.analyze(form), expected)
        if isinstance(form, io.BytesIO):
            form.seek(0)
        same(rd.read_packets(form), packets)


def test_chunks_do_not_matter(samples, monkeypatch):
    """Batches of a few kilobytes instead of four megabytes: verdicts, events, figures are the same."""
    expected = rd.analyze(samples / LOSS)
    packets = rd.read_packets(samples / LOSS)
    pieces = list(rd.iter_packets(samples / LOSS))
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 14)
    small = list(rd.iter_packets(samples / LOSS))
    assert len(small) > 20 * len(pieces)
    assert [index for piece in small for index in piece.index] == list(range(len(packets)))
    same_analysis(rd.analyze(samples / LOSS), expected)
    same(rd.read_packets(samples / LOSS), packets)


def test_pieces_share_their_addresses_until_there_are_more(samples, monkeypatch):
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 14)
    pieces = list(rd.iter_packets(samples / LOSS, ["src"]))
    known = [piece["src"].cat.categories for piece in pieces]
    for former, index in itertools.pairwise(known):
        assert (index is former) == (len(index) == len(former))
    assert len(set(map(id, known))) < len(pieces) / 4


# -- several files ---------------------------------------------------------------------------------------------------


def split(data, tmp_path, parts, name="part"):
    """A capture in files of equal numbers of frames."""
    found = records(data)
    size = -(-len(found) // parts)
    paths = []
    for number in range(parts):
        path = tmp_path / f"{name}{number}.pcap"
        path.write_bytes(rewritten(data, found[number * size : (number + 1) * size]))
        paths.append(path)
    return paths


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (3, 2, 1, 0)])
def test_rotated_files_in_any_order(samples, tmp_path, order):
    """Parts of a capture are one capture in time order, however they are named; a frame's number is its file's."""
    data = gzip.decompress((samples / LOSS).read_bytes())
    paths = split(data, tmp_path, 4)
    given = [paths[number] for number in order]
    whole, packets = rd.analyze(samples / LOSS), rd.read_packets(samples / LOSS)
    together = rd.read_packets(given)
    same(together, packets, but=("file", "frame"))
    size = -(-len(records(data)) // 4)
    assert (together["file"].astype("int64") * size + together["frame"]).tolist() == packets["frame"].tolist()
    result = rd.analyze(given)
    same(result.counters, whole.counters)
    for table in ("streams", "events", "episodes", "latency"):
        same(getattr(result, table), getattr(whole, table), but=PLACES)
    assert [one["path"] for one in result.capture["files"]] == [str(path) for path in paths]
    assert result.capture["packets"] == whole.capture["packets"]
    assert result.capture["first_time_ns"] == whole.capture["first_time_ns"]
    assert result.capture["last_time_ns"] == whole.capture["last_time_ns"]


@pytest.mark.parametrize("buffer", [1 << 13, 1 << 22])
def test_files_that_overlap_in_time(samples, tmp_path, buffer, monkeypatch):
    """Frames dealt out to three files: put together again in time order, whatever the size of the batches."""
    monkeypatch.setattr(reader, "_BUFFER_BYTES", buffer)
    data = gzip.decompress((samples / LOSS).read_bytes())
    found = records(data)
    paths = []
    for number in range(3):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(rewritten(data, found[number::3]))
        paths.append(path)
    packets = rd.read_packets(samples / LOSS)
    together = rd.read_packets(paths[::-1])
    # frames of the same microsecond may change places
    assert together["time_ns"].tolist() == packets["time_ns"].tolist()
    key = ["time_ns", "src", "dest_qp", "psn", "ip_id"]
    again, original = (frame[key].astype(str).sort_values(key).to_numpy().tolist() for frame in (together, packets))
    assert again == original


def test_merged_as_mergecap_does(softroce, tmp_path):
    """Client's and server's capture of one run together: the packets of mergecap's file, in its order."""
    if shutil.which("mergecap") is None:
        pytest.skip("mergecap is not installed")
    paths = [softroce / f"rc_mix_ipv4_mtu1024.{side}.pcap.gz" for side in ("client", "server")]
    merged = tmp_path / "merged.pcap"
    subprocess.run(["mergecap", "-F", "pcap", "-w", merged, *paths], check=True)
    expected = rd.read_packets(merged)
    ours = rd.read_packets(paths)
    same(ours, expected, but=("file", "frame"))
    assert set(ours["file"]) == {0, 1}
    same(rd.analyze(paths).counters, rd.analyze(merged).counters)


def test_split_captures_and_the_whole(softroce):
    """The lab's own split files against the capture that they were cut from."""
    parts = sorted(softroce.glob("fmtd_split_*.pcap.gz"), reverse=True)
    whole = softroce / "imp_loss1_write.client.pcap.gz"
    same(rd.read_packets(parts), rd.read_packets(whole), but=("file", "frame"))
    same(rd.analyze(parts).counters, rd.analyze(whole).counters)


# -- errors ----------------------------------------------------------------------------------------------------------


def broken(samples):
    """A capture with a length that cannot be in its middle; its frames before the fault."""
    data = bytearray(gzip.decompress((samples / MIX).read_bytes()))
    found = records(bytes(data))
    at = 24 + sum(len(raw) for _, raw in found[:40])
    data[at + 8 : at + 12] = b"\xff\xff\xff\xff"
    return bytes(data), 40, at


def test_raise_keeps_what_was_analysed(samples, tmp_path):
    data, frames, at = broken(samples)
    path = tmp_path / "broken.pcap"
    path.write_bytes(data)
    with pytest.raises(rd.CaptureError) as caught:
        rd.analyze(path)
    assert caught.value.path == str(path)
    assert caught.value.offset == at
    assert str(path) in str(caught.value)
    result = caught.value.analysis
    assert result.capture["packets"] == frames
    assert not result.capture["complete"]
    before = rewritten(data, records(gzip.decompress((samples / MIX).read_bytes()))[:frames])
    same_analysis(result, rd.analyze(io.BytesIO(before)))


def test_keep_goes_on(samples, tmp_path):
    data, frames, at = broken(samples)
    bad = tmp_path / "broken.pcap"
    bad.write_bytes(data)
    missing, folder = tmp_path / "none.pcap", tmp_path / "folder"
    folder.mkdir()
    text = tmp_path / "text.pcap"
    text.write_text("no capture at all\n" * 10)
    result = rd.analyze([bad, missing, folder, text, samples / CM], errors="keep")
    files = {one["path"]: one for one in result.capture["files"]}
    assert files[str(bad)]["frames"] == frames
    assert files[str(bad)]["error_offset"] == at
    for path in (missing, folder, text):
        assert files[str(path)]["error"]
        assert not files[str(path)]["complete"]
    assert files[str(samples / CM)]["complete"]
    assert not result.capture["complete"]
    alone = rd.analyze(samples / CM)
    assert result.capture["packets"] == frames + alone.capture["packets"]


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "empty"])
def test_what_cannot_be_read(kind, tmp_path):
    path = tmp_path / "x.pcap"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text("hello, no capture\n" * (kind == "text"))
    for call in (rd.analyze, rd.read_packets, lambda given: list(rd.iter_packets(given))):
        with pytest.raises(rd.CaptureError, match=str(path)):
            call(path)


def test_arguments(samples):
    with pytest.raises(rd.ArgumentError, match="errors"):
        rd.analyze(samples / MIX, errors="ignore")
    with pytest.raises(rd.ArgumentError, match="no capture"):
        rd.analyze([])
    with pytest.raises(rd.ArgumentError, match="alone"):
        rd.analyze(["-", samples / MIX])
    for call in (rd.analyze, rd.iter_packets, rd.read_packets):
        for captures in (None, 123, 1.5, b"x.pcap", object()):
            with pytest.raises(rd.ArgumentError, match="is neither a path nor a binary file object"):
                call(captures)
    with pytest.raises(ValueError, match="no such column"):  # also a ValueError, as users expect
        rd.read_packets(samples / MIX, ["x"])


def test_progress(samples, tmp_path):
    seen = []
    path = tmp_path / "a.pcap"
    path.write_bytes(gzip.decompress((samples / LOSS).read_bytes()))
    rd.analyze(path, progress=lambda done, total: seen.append((done, total)))
    size = path.stat().st_size
    assert seen[-1] == (size, size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


# -- Analysis --------------------------------------------------------------------------------------------------------


def test_packets_of_a_connection(samples):
    """Exactly the packets of its two streams, in order, with the verdicts that the whole capture gives."""
    result = rd.analyze(samples / CM)
    everything = result.packets()
    assert len(everything) == result.capture["roce_packets"]
    for connection in result.connections.itertuples():
        streams = {connection.a_to_b_stream, connection.b_to_a_stream} - {-1}
        chosen = result.packets(connection.connection)
        expected = everything[everything["stream"].isin(streams)]
        same(chosen, expected)
        assert len(chosen) == connection.a_to_b_packets + connection.b_to_a_packets
        assert sum(len(piece) for piece in result.iter_packets(connection.connection)) == len(chosen)
    with pytest.raises(rd.ArgumentError, match="no connection 99"):
        result.packets(99)
    assert list(result.packets(1, ["psn", "verdict"]).columns) == ["psn", "verdict"]


def test_to_dict_is_plain_json(samples):
    result = rd.analyze([samples / CM, samples / LOSS])
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert told["schema"] == 1
    assert len(told["connections"]) == len(result.connections)
    first = told["connections"][0]
    assert {"id", "a", "b", "a_to_b", "b_to_a", "paired_by", "confidence"} <= set(first)
    assert told["counters"]["192.168.100.1"]["out_of_seq_request"] == 10
    assert told["findings"] == []
    assert told["capture"]["roce_packets"] == result.capture["roce_packets"]


def test_repr_says_what_it_is(samples):
    assert repr(rd.analyze(samples / MIX)).startswith("<Analysis: 74 frames, 58 RoCE, 1 connections")


# -- messages --------------------------------------------------------------------------------------------------------


def test_messages(samples):
    """The figures of the streams, message by message; read once, kept, and as many as the pieces hold."""
    result = rd.analyze(samples / LOSS)
    messages = result.messages
    assert list(messages.columns) == list(MESSAGES)
    assert messages.index.equals(pd.RangeIndex(len(messages)))
    assert result.messages is messages
    count = messages.groupby("stream").size()
    complete = messages[messages["status"] == "complete"].groupby("stream").size()
    for stream in result.streams.itertuples():
        assert count.get(stream.stream, 0) == stream.messages
        assert complete.get(stream.stream, 0) == stream.complete_messages
    assert len(messages) > 0
    same(pd.concat(result.iter_messages(), ignore_index=True), messages)


def test_messages_of_a_connection(samples):
    result = rd.analyze([samples / CM, samples / LOSS])
    everything = result.messages
    assert everything["connection"].nunique() > 1
    for number in result.connections["connection"]:
        pieces = list(result.iter_messages(number))
        chosen = everything[everything["connection"] == number]
        assert sum(map(len, pieces)) == len(chosen)
        if pieces:
            same(pd.concat(pieces), chosen)
    with pytest.raises(rd.ArgumentError, match="no connection 99"):
        result.iter_messages(99)


@pytest.mark.parametrize("name", [LOSS, CM, "rc_mix_ipv6_mtu1024.client.pcap.gz", "ud_mix_ipv4.server.pcap.gz"])
def test_messages_that_were_kept_are_those_that_are_read_again(name, samples):
    kept = rd.analyze(samples / name, messages=True)
    same(kept.messages, rd.analyze(samples / name).messages)
    for number in kept.connections["connection"]:
        one, other = ([*result.iter_messages(number)] for result in (kept, rd.analyze(samples / name)))
        assert sum(map(len, one)) == sum(map(len, other))
        if one:
            same(pd.concat(one), pd.concat(other))


def test_messages_that_were_kept_need_no_file(samples, tmp_path):
    path = tmp_path / "gone.pcap.gz"
    shutil.copy(samples / MIX, path)
    kept, again = rd.analyze(path, messages=True), rd.analyze(path)
    path.unlink()
    assert len(kept.messages) > 0
    with pytest.raises(rd.CaptureError, match=str(path)):
        _ = again.messages


def test_chunks_do_not_matter_to_messages(samples, monkeypatch):
    expected = rd.analyze(samples / LOSS).messages
    monkeypatch.setattr(reader, "_BUFFER_BYTES", 1 << 14)
    result = rd.analyze(samples / LOSS)
    assert len(list(result.iter_messages())) > 5
    same(result.messages, expected)
    same(rd.analyze(samples / LOSS, messages=True).messages, expected)


def test_messages_of_what_can_be_read_only_once(samples, monkeypatch):
    """Standard input, a file object: only what was kept."""
    data = gzip.decompress((samples / MIX).read_bytes())
    expected = rd.analyze(samples / MIX).messages
    for given in ("-", io.BytesIO(data)):
        for keep in (False, True):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
            if not isinstance(given, str):
                given.seek(0)
            result = rd.analyze(given, messages=keep)
            if keep:
                same(result.messages, expected)
                continue
            with pytest.raises(rd.ArgumentError, match="only once"):
                _ = result.messages
            with pytest.raises(rd.ArgumentError, match="only once"):
                result.iter_messages()


def test_messages_of_several_files(samples, tmp_path):
    """As of one: a message that begins in one file and is answered in the next."""
    data = gzip.decompress((samples / LOSS).read_bytes())
    paths = split(data, tmp_path, 4)
    places = [f"{name}{what}" for name in ("", "last_", "answer_", "answer_first_") for what in ("file", "frame")]
    whole, result = rd.analyze(samples / LOSS).messages, rd.analyze(paths).messages
    same(result, whole, but=places)
    assert (result["file"] != result["answer_file"]).any()
    size = -(-len(records(data)) // 4)
    for name in ("", "last_", "answer_"):
        total = result[f"{name}file"].astype("Int64") * size + result[f"{name}frame"].astype("Int64")
        assert total.tolist() == whole[f"{name}frame"].tolist()


def test_messages_of_nothing(samples):
    """No frame, no RoCE, no packet: no message, and all columns in their dtypes."""
    data = gzip.decompress((samples / MIX).read_bytes())
    others = [(time, raw) for time, raw in records(data) if raw[16 + 36 : 16 + 38] != b"\x12\xb7"]
    full = rd.analyze(samples / MIX).messages
    results = [rd.analyze(io.BytesIO(given), messages=True) for given in (data[:24], rewritten(data, others))]
    for result in (*results, rd.track(rd.read_packets(samples / MIX).head(0))):
        assert len(result.messages) == 0
        assert result.messages.dtypes.equals(full.dtypes)
        assert list(result.iter_messages()) == []


def test_messages_of_a_file_that_has_grown(samples, tmp_path):
    """It is read once more: streams that came since belong to no connection of this analysis."""
    path = tmp_path / "growing.pcap"
    path.write_bytes(gzip.decompress((samples / MIX).read_bytes()))
    result = rd.analyze(path)
    with path.open("ab") as file:
        file.write(gzip.decompress((samples / LOSS).read_bytes())[24:])
    assert set(result.messages["connection"]) == {0, 1}


# -- track -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [LOSS, MIX, "rc_mix_ipv6_mtu1024.client.pcap.gz", "imp_loss3_uc.server.pcap.gz"])
def test_track_equals_analyze(name, samples):
    """Where no CM took part, the packets alone give the same streams, connections, events and counters."""
    result = rd.analyze(samples / name)
    packets = rd.read_packets(samples / name)
    tracked = rd.track(packets)
    same_analysis(tracked, result, but=())
    same(tracked.packets(), packets)
    bare = packets.drop(columns=list(TRACKED))
    same(rd.track(bare).packets()[list(TRACKED)], packets[list(TRACKED)])
    same(tracked.messages, result.messages)


KEYS = ["va", "r_key", "imm_data", "inv_r_key"]


def test_track_of_keys(samples):
    """Addresses and keys of messages come from the DataFrame's columns, whatever its index."""
    packets = rd.read_packets(samples / MIX)
    packets.index = packets.index[::-1]
    messages = rd.track(packets).messages
    assert messages[["va", "r_key", "imm_data"]].notna().any().all()
    writes = packets[packets["operation"].isin(["RC WRITE ONLY", "RC WRITE FIRST"])].set_index("frame")
    messages = messages[messages["verb"].isin(["write", "write_imm"])].set_index("frame")
    assert len(messages) > 0
    for name in ("va", "r_key", "dma_len"):
        assert messages[name].tolist() == writes.loc[messages.index, name].tolist()


@pytest.mark.parametrize("dropped", [KEYS, [*KEYS, "present"]])
def test_track_without_keys(samples, dropped):
    """Columns that the DataFrame lacks are missing in its messages, and all else is as with them."""
    packets = rd.read_packets(samples / MIX)
    without = rd.track(packets.drop(columns=dropped)).messages
    same(without, rd.track(packets).messages, but=KEYS)
    assert without[KEYS].isna().all(axis=None)


def test_track_of_a_choice(samples):
    """A filtered DataFrame is a capture of its own: with one direction only, nobody confirms anything."""
    packets = rd.read_packets(samples / LOSS)
    forth = packets[packets["src"] == "192.168.100.2"]
    result = rd.track(forth)
    assert len(result.streams) == 1
    assert not result.streams["confirmed"].any()
    assert int(result.counters["duplicate_request"].sum()) == 0
    assert result.packets().index.equals(forth.index)


def test_track_by_hand():
    """The columns that it needs, nothing else, as plain Python lists."""
    frame = pd.DataFrame(
        {
            "time_ns": [1000, 2000, 3000, 4000],
            "src": ["10.0.0.1"] * 4,
            "dst": ["10.0.0.2"] * 4,
            "dest_qp": [17] * 4,
            "psn": [0xFFFFFF, 0, 2, 1],
            "opcode": [4] * 4,
        }
    )
    result = rd.track(frame)
    assert result.packets()["verdict"].tolist() == ["first", "new", "gap", "late"]
    assert result.events["kind"].tolist() == ["gap", "resend"]
    assert result.events["frame"].tolist() == [3, 4]
    damaged = rd.track(frame, bad_icrc=[False, False, True, False]).packets()
    assert damaged["verdict"].tolist() == ["first", "new", "none", "new"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="psn"), "lacks psn"),
        (lambda frame: frame.assign(psn="x"), "psn"),
        (lambda frame: frame.assign(psn=-1), "psn"),
        (lambda frame: frame.assign(opcode=256), "opcode"),
        (lambda frame: frame.assign(src="no address"), "no address"),
        (lambda frame: frame.assign(psn=1.5), "psn"),
        (lambda frame: frame.assign(psn=float("inf")), "psn"),
        (lambda frame: frame.assign(psn=1 << 24), "'psn' .* 16777215"),
        (lambda frame: frame.assign(dest_qp=1 << 24), "'dest_qp' .* 16777215"),
        (lambda frame: frame.assign(psn=1 << 70), "psn"),
        (lambda frame: frame.assign(psn=[[1]]), "psn"),
        (lambda frame: frame.assign(frame=-1), "'frame'"),
        (lambda frame: frame.assign(frame=1 << 40), "'frame'"),
        (lambda frame: frame.assign(file=-1), "'file'"),
        (lambda frame: frame.assign(file=1 << 16), "'file'"),
        (lambda frame: frame.assign(src=167772161), "'src' .* text"),
        (lambda frame: frame.assign(src=b"\n\0\0\1"), "'src' .* text"),
        (lambda frame: frame.assign(dst=[["10.0.0.1"]]), "'dst' .* text"),
        (lambda frame: frame.assign(dst="10.0.0"), "'dst'.*'10.0.0'"),
        (lambda frame: frame.assign(dst=1.5), "'dst' .* text"),
        (lambda frame: frame.assign(status="wonderful"), "'status' .*wonderful"),
        (lambda frame: frame.assign(status=[["ok"]]), "'status'"),
        (lambda frame: pd.concat([frame, frame["psn"]], axis=1), "more than one psn"),
        (lambda frame: frame["psn"], "must be a DataFrame, not Series"),
        (lambda frame: frame.to_dict(), "must be a DataFrame, not dict"),
        (lambda _: None, "must be a DataFrame, not NoneType"),
    ],
)
def test_track_refuses(change, message):
    frame = pd.DataFrame(
        {"time_ns": [1], "src": ["10.0.0.1"], "dst": ["10.0.0.2"], "dest_qp": [17], "psn": [1], "opcode": [4]}
    )
    with pytest.raises(rd.ArgumentError, match=message):
        rd.track(change(frame))


def test_track_takes_what_read_packets_gives(samples):
    """Rows without addresses or without a BTH (version 1, cut within its GRH; a UDP length of 8) take no part."""
    cut = bytes(12) + b"\x89\x15\x60" + bytes(20)
    udp = struct.pack(">HHHH", 50000, 4791, 8, 0)
    short = bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, 28, 1, 0, 64, 17, 0) + bytes(8) + udp
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    data += b"".join(struct.pack("<IIII", 1, 0, len(frame), 90) + frame for frame in (cut, short))
    packets = rd.read_packets(io.BytesIO(data))
    assert packets["status"].tolist() == ["cut", "malformed"]
    needed = ["time_ns", "src", "dst", "dest_qp", "psn", "opcode"]
    for given in (packets, packets.drop(columns="present"), packets[needed]):
        result = rd.track(given)
        assert result.packets(columns=["verdict"])["verdict"].tolist() == ["none", "none"]
        assert len(result.streams) == 0
        assert result.capture["foreign_packets"] == 2


def test_track_with_a_wrong_number_of_flags(samples):
    packets = rd.read_packets(samples / MIX)
    with pytest.raises(rd.ArgumentError, match="bad_icrc"):
        rd.track(packets, bad_icrc=[True])


@pytest.mark.parametrize(
    "flags",
    [
        [[True], [False]],
        np.zeros((2, 2), bool),
        [[True], [True, False]],
        True,
        {},
        pd.Series([True, pd.NA], dtype="boolean"),
        pd.Series([True, pd.NA], dtype="bool[pyarrow]"),
        [True, None],
        [0.0, float("nan")],
        ["yes", "no"],
        [[], {}],
    ],
    ids=str,
)
def test_track_refuses_flags(samples, flags):
    with pytest.raises(rd.ArgumentError, match="bad_icrc"):
        rd.track(rd.read_packets(samples / MIX).head(2), bad_icrc=flags)


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]", "object", "uint8", "float64"])
def test_track_takes_flags_of_any_kind(samples, dtype):
    packets = rd.read_packets(samples / MIX).head(2)
    made = rd.track(packets, bad_icrc=pd.Series([True, False], dtype="bool").astype(dtype)).packets()
    assert (made["verdict"] == "none").tolist() == [True, False]


@pytest.mark.parametrize("missing", [None, pd.NA, float("nan")])
@pytest.mark.parametrize("dtype", ["object", "str"])
def test_track_without_any_address(samples, missing, dtype):
    """As with a GRH that was cut: the packets take no part."""
    packets = rd.read_packets(samples / MIX).head(2)
    result = rd.track(packets.assign(src=pd.Series([missing] * 2, dtype=dtype)))
    assert (len(result.streams), result.capture["untracked_packets"]) == (0, 2)
    assert result.packets()["verdict"].tolist() == ["none", "none"]


def test_track_takes_words_or_their_numbers(samples):
    packets = rd.read_packets(samples / MIX)
    expected = rd.track(packets).packets()["verdict"]
    for dtype in ("object", "str"):
        assert rd.track(packets.assign(status=packets["status"].astype(dtype))).packets()["verdict"].equals(expected)
    numbers = packets["status"].cat.codes
    for dtype in ("int64", "object"):
        assert rd.track(packets.assign(status=numbers.astype(dtype))).packets()["verdict"].equals(expected)


def test_track_of_an_index_that_repeats(samples):
    """Labels say nothing about rows: there is one row for each that was given, under its own label."""
    once = rd.read_packets(samples / MIX).head(50)
    given = pd.concat([once, once])
    made = rd.track(given).packets()
    assert made.index.equals(given.index)
    assert made["frame"].tolist() == given["frame"].tolist()
    positions = rd.track(given.reset_index(drop=True)).packets()
    assert made.reset_index(drop=True).equals(positions)
    assert set(made["verdict"].iloc[50:]) != set(made["verdict"].iloc[:50])


def test_track_nothing(samples):
    result = rd.track(rd.read_packets(samples / MIX).iloc[:0])
    assert all(len(getattr(result, table)) == 0 for table in TABLES)
    assert len(result.packets()) == 0


@pytest.mark.parametrize("what", ["analyze", "messages", "packets", "qp"])
def test_nothing_is_left_for_the_collector(samples, what):
    """A cycle would keep many megabytes of tables until the garbage collector comes by."""
    path = samples / MIX

    def work():
        if what == "analyze":
            rd.analyze(path)
        elif what == "messages":
            len(rd.analyze(path).messages)
        elif what == "packets":
            rd.read_packets(path, ["psn", "verdict"], filter="verdict == 'new'")
        else:
            rd.analyze(path, qps=0x11)

    work()  # what is imported and cached by the first call
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        work()
        gc.collect()
        kept = [type(one).__name__ for one in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {"Blocks", "Decoder", "FlowTable", "Judge", "HostTable", "ndarray"} & set(kept), kept
