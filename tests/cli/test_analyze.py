"""``analyze``: what a reader is told, in text and in JSON."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

import roce_dissect as rd
from roce_dissect import columns
from roce_dissect.analysis import trust

DOCS = Path(__file__).parents[2] / "docs"

#: Samples that the lab calls healthy.
HEALTHY = [
    "rc_mix_ipv4_mtu1024.server", "rc_mix_ipv6_mtu1024.client", "rc_mix_vlan100_ipv4.client",
    "cm_rping_ipv4.client", "rc_psn_wrap.client", "rc_psn_wrap_read.server", "fmt_nsec_snap80", "ecn_red_ce.server",
]  # fmt: skip
SICK = [
    "imp_loss1_write.server", "imp_loss1_write.client", "imp_loss5_readreq.server", "imp_dup5.server",
    "imp_ackloss20.server", "imp_loss3_uc.server", "flt_rnr_recovers.client", "flt_bad_rkey_write.server",
    "cm_refused.client",
]  # fmt: skip


def sample(folder, name):
    [path] = folder.glob(f"{name}.pcap*")
    return path


# -- text --------------------------------------------------------------------------------------------------------------


def test_loss_is_told_with_its_frames(call, samples):
    text = call("analyze", sample(samples, "imp_loss1_write.server"), "--events", "100").out
    # frame numbers as tshark shows them; the kernel's counters are those of pcaps/kernel_counters.json
    assert "frame 86: gap before it: PSN 2032685 had not passed here" in text
    assert "frame 87: NAK PSN sequence error, expects PSN 2032685" in text
    # tshark: the NAK of frame 87 asks for 2032685; frames 126 to 162 carry 2032685 to 2032718, of 1,024 bytes each
    assert (
        "frames 126-162: went back to PSN 2032685 after the NAK in frame 87, 2.02 ms later: 34 packets (34.8 kB) "
        "sent again, 1 of them not seen here before, the receiver had taken none of them; 3.81 ms without progress"
        in text
    )
    assert re.search(r"192\.168\.100\.1 .*duplicate_request 131, out_of_seq_request 10", text)
    assert "1,728, of which 1,687 RoCE; also 41 TCP" in text
    assert re.search(
        r"^1  192\.168\.100\.2:0x30  192\.168\.100\.1:0x30  RC +1,687 +983 kB +9/9 +526/9 +10/0 ", text, re.MULTILINE
    )
    [told] = [line for line in text.splitlines() if line.startswith("Trouble")]
    assert told.startswith(
        "Trouble on 1 of 1 connections: 9 packets missing in sequence (9 came later), senders went back 10 times (8 "
    )
    assert told.endswith(" 526 packets sent again and 95.9 ms without progress.")
    assert "frame.number in {86..87, 126..183," in text


def test_repeated_naks_are_one_line(call, samples):
    text = call("analyze", sample(samples, "flt_rnr_recovers.client")).out
    assert "50 times RNR NAK (no receive posted) for PSN 10928774, wait 0.64 ms" in text
    assert "50 times NAK PSN sequence error, expects PSN 10928774" in text
    assert re.search(
        r"frames 14 to 213: went back to PSN 10928774 50 times after RNR NAKs, 4\.66 ms to 7\.38 ms later: 100 packets",
        text,
    )
    assert "senders went back 50 times (after RNR NAKs), 100 packets sent again and 400 ms without progress." in text


def test_fatal_nak(call, samples):
    """tshark: frame 17 answers PSN 15703448, the WRITE FIRST of frame 16."""
    text = call("analyze", sample(samples, "flt_bad_rkey_write.server")).out
    line = "frame 17: NAK remote access error for PSN 15703448, the request in frame 16: the QP is in error"
    assert line in text
    assert "the events above: frame.number in {16..17}" in text
    assert "ended by NAK" in text
    assert "1 QP ended by a NAK" in text


def test_refused_connections(call, samples):
    text = call("analyze", sample(samples, "cm_refused.client")).out
    assert "Trouble on 4 of 4 connections: 4 connection attempts refused." in text
    assert "frame 2: connection refused by CM REJ: invalid service id (reason 8)" in text
    assert "192.168.100.1:?" in text


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_reads_as_healthy(call, samples, name):
    text = call("analyze", sample(samples, name)).out
    assert re.search(r"^Healthy: 1 connection, nothing missing, sent again or refused", text, re.MULTILINE)
    assert "Trouble" not in text


def test_uc_never_reads_as_healthy(call, samples):
    """Nobody answers over UC: what is lost behind the capture point cannot show."""
    text = call("analyze", sample(samples, "uc_mix_ipv4.client")).out
    assert "No problem visible: 1 connection, nothing missing, sent again or refused." in text
    assert "Requests of 1 connection get no answer here (UC, or one direction only)" in text
    assert "Healthy" not in text
    assert "Trouble" not in text


def test_a_doubled_capture_is_told(call, samples, plain, tmp_path):
    """Every frame twice, 5 ms apart, as from two capture points: said so, and each one counts once."""
    whole = plain(sample(samples, "rc_mix_ipv4_mtu1024.server")).read_bytes()
    late = bytearray(whole)
    at = 24
    while at < len(late):
        seconds, micros, captured = (int.from_bytes(late[at + n : at + n + 4], "little") for n in (0, 4, 8))
        seconds, micros = divmod(seconds * 10**6 + micros + 5000, 10**6)
        late[at : at + 8] = seconds.to_bytes(4, "little") + micros.to_bytes(4, "little")
        at += 16 + captured
    (tmp_path / "late.pcap").write_bytes(late)
    text = call("analyze", plain(sample(samples, "rc_mix_ipv4_mtu1024.server")), str(tmp_path / "late.pcap")).out
    assert "Healthy: 1 connection, nothing missing, sent again or refused." in text
    assert (
        "nearly each packet is here 2 times (the copies differ in the file): of 58 packets an earlier sighting counts"
        in text
    )


@pytest.mark.parametrize("name", SICK)
def test_trouble_reads_as_trouble(call, samples, name):
    text = call("analyze", sample(samples, name)).out
    assert re.search(r"^Trouble on [1-4] of [1-4] connections: ", text, re.MULTILINE)
    assert "Healthy" not in text


def test_datagrams_alone_are_not_called_healthy(call, samples):
    text = call("analyze", sample(samples, "ud_mix_ipv4.server")).out
    assert "No problem visible: 9 UD datagrams, which carry no sequence that could show a loss." in text


def test_congestion_marks_are_named(call, samples):
    text = call("analyze", sample(samples, "ecn_red_ce.server")).out
    assert "139 packets marked CE (congestion)" in text  # tshark: ip.dsfield.ecn == 3


def test_limits_say_how_many_more(call, samples):
    path = sample(samples, "imp_loss1_write.server")
    text = call("analyze", path, "--events", "4").out
    assert "Events (4 of 29, the most telling ones; 25 more)" in text
    assert len(re.findall(r"^\s*\+\d", text, re.MULTILINE)) == 4
    text = call("analyze", sample(samples, "cm_refused.client"), "--top", "1").out
    assert "Connections (1 of 4; 3 more)" in text


def test_what_cannot_be_shown_whole_shows_every_kind(call, samples):
    text = call("analyze", sample(samples, "imp_loss1_write.server"), "--events", "6").out
    times = [float(time) for time in re.findall(r"^\s*\+(\d+\.\d+)", text, re.MULTILINE)]
    assert times == sorted(times)
    assert "gap before it:" in text
    assert "sent again" in text


def test_several_files_name_their_file(call, samples):
    paths = [sample(samples, "imp_loss1_write.server"), sample(samples, "flt_rnr_recovers.client")]
    text = call("analyze", *paths).out
    assert re.search(r"^file 1 .*flt_rnr", text, re.MULTILINE)  # captured first
    assert re.search(r"file 2 frame 86: gap before it", text)
    assert re.search(r"the events above in .*imp_loss1_write.*: frame.number in \{86", text)


def test_a_run_over_two_files(call, samples, plain, tmp_path):
    whole = plain(sample(samples, "imp_loss1_write.server")).read_bytes()
    end = 24
    for _ in range(150):  # in the middle of the run of frames 126 to 183
        end += 16 + int.from_bytes(whole[end + 8 : end + 12], "little")
    (tmp_path / "a.pcap").write_bytes(whole[:end])
    (tmp_path / "b.pcap").write_bytes(whole[:24] + whole[end:])
    text = call("analyze", tmp_path / "a.pcap", tmp_path / "b.pcap").out
    assert "file 1 frame 126 to file 2 frame 12: went back to PSN 2032685 after the NAK in file 1 frame 87" in text
    assert re.search(r"the events above in \S*a.pcap: frame.number in \{86..87, 126..150\}", text)
    assert re.search(r"the events above in \S*b.pcap: frame.number in \{1..33,", text)


def test_a_pipe_cuts_nothing(call, samples, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = call("analyze", sample(samples, "rc_mix_ipv6_mtu1024.client")).out
    row = next(line for line in text.splitlines() if line.startswith("1  ["))
    assert re.match(r"1  \[fd00:100::2\]:0x\w+  \[fd00:100::1\]:0x\w+  RC ", row)
    assert not any(line != line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
@pytest.mark.parametrize("name", ["imp_loss1_write.server", "rc_mix_ipv6_mtu1024.client", "cm_refused.client"])
def test_no_width_cuts_an_address_or_a_number(samples, name, width):
    import io

    from rich.console import Console

    from roce_dissect.cli.text import report

    result = rd.analyze(sample(samples, name))
    console = Console(file=io.StringIO(), width=width)
    console.print(report(result, top=20, events=20, width=width))
    lines = console.file.getvalue().splitlines()
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= width
    joined = "".join(line.strip() for line in lines)
    for row in result.connections.astype(object).to_dict("records"):
        assert row["a_address"] in joined
        assert row["b_address"] in joined


# -- no RoCE -----------------------------------------------------------------------------------------------------------


def ethernet_capture(*frames, link_type=1):
    header = bytes.fromhex("d4c3b2a1020004000000000000000000ffff0000") + link_type.to_bytes(4, "little")
    records = (bytes(8) + 2 * len(frame).to_bytes(4, "little") + frame for frame in frames)
    return header + b"".join(records)


ARP = bytes.fromhex("ffffffffffff0200000000010806000108000604000102000000000a0a000001") + bytes(14)


@pytest.mark.parametrize(
    ("capture", "sentence"),
    [
        (ethernet_capture(ARP, ARP), "No RoCE in this capture: it holds 2 frames of Ethernet: 2 ARP."),
        (ethernet_capture(), "No RoCE in this capture: it holds no frames at all."),
        (
            ethernet_capture(ARP, link_type=147),
            "No RoCE in this capture: it holds 1 frame of user 0, which is not decoded.",
        ),
    ],
    ids=["arp", "nothing", "another link type"],
)
def test_no_roce_says_what_there_is(call, tmp_path, capture, sentence):
    path = tmp_path / "other.pcap"
    path.write_bytes(capture)
    done = call("analyze", path)
    assert (done.status, done.err) == (0, [])
    assert sentence in done.out


def test_port_4791_that_is_no_roce(call, softroce):
    done = call("analyze", softroce / "neg_udp4791_not_roce.client.pcap.gz")
    assert done.status == 0
    assert "No RoCE in this capture: 48 frames on its UDP port (4791) or Ethertype, but none holds" in done.out


# -- JSON --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((DOCS / "analysis.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", HEALTHY + SICK + ["ud_mix_ipv4.server", "fmt_dumpcap"])
def test_json_of_the_samples_fits_the_schema(call, samples, validator, name):
    done = call("analyze", "--format", "json", sample(samples, name))
    assert done.status == 0
    assert done.out.count("\n") == 1
    validator.validate(json.loads(done.out))


def test_json_is_the_dictionary_of_the_python_api(call, samples):
    path = sample(samples, "imp_loss1_write.server")
    assert json.loads(call("analyze", "--format", "json", path).out) == rd.analyze(str(path)).to_dict()


def test_json_of_everything_in_the_lab_fits_the_schema(softroce, validator):
    for path in sorted(softroce.glob("*.pcap*")):
        validator.validate(json.loads(json.dumps(rd.analyze(path).to_dict(), allow_nan=False)))


def test_json_counts_are_those_of_tshark(call, samples):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = sample(samples, "cm_rping_ipv4.client")
    fields = ["tshark", "-r", str(path), "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "ip.src"]
    lines = subprocess.run(fields, capture_output=True, text=True, check=True).stdout.splitlines()
    told = json.loads(call("analyze", "--format", "json", path).out)
    assert told["capture"]["packets"] == len(lines)
    assert told["capture"]["roce_packets"] == sum(not line.startswith("\t") for line in lines)
    sent = {host["address"]: host["sent_packets"] for host in told["hosts"]}
    assert sent == {address: sum(line.endswith("\t" + address) for line in lines) for address in sent}


def document_keys(title):
    """Keys of the tables in one section of docs/json.md, in order."""
    section = (DOCS / "json.md").read_text().partition(f"\n## {title}")[2].partition("\n## ")[0]
    assert section, title
    return re.findall(r"^\| `(\w+)` \| (?:text|integer|number|boolean)\b", section, re.MULTILINE)


@pytest.fixture(scope="module")
def schema():
    return json.loads((DOCS / "analysis.schema.json").read_text())


@pytest.mark.parametrize("name", ["hosts", "streams", "events", "episodes", "latency"])
def test_schema_and_document_name_every_column(schema, name):
    table = list(getattr(columns, name.upper()))
    assert list(schema["properties"][name]["items"]["properties"]) == table
    assert document_keys(f"`{name}[]`") == table


def test_schema_and_document_name_every_counter(schema):
    counters = schema["properties"]["counters"]["additionalProperties"]["properties"]
    assert list(counters) == document_keys("`counters`") == list(columns.COUNTERS)


def test_schema_and_document_name_every_column_of_connections(schema):
    way = list(schema["$defs"]["way"]["properties"])
    assert way == ["stream", *(column.name for column in columns.PER_DIRECTION)]
    named = list(schema["$defs"]["connection"]["properties"])
    keys = [name for name in named if name not in ("id", "a", "b", "a_to_b", "b_to_a", "filter")]
    ends = {f"{end}_{key}" for end in "ab" for key in schema["$defs"]["end"]["properties"]}
    ways = {f"{one}_{key}" for one in ("a_to_b", "b_to_a") for key in way}
    assert {"connection", *keys} | ends | ways == set(columns.CONNECTIONS)
    assert document_keys("`connections[]`") == keys + way


def test_schema_and_document_name_every_key_of_the_capture(schema):
    capture = schema["properties"]["capture"]["properties"]
    document = (DOCS / "json.md").read_text()
    section = document.partition("\n## `capture`")[2].partition("\n## ")[0]
    for name in (*capture, *capture["files"]["items"]["properties"]):
        assert f"`{name}`" in section, name


@pytest.mark.parametrize("table", ["packets", "messages"])
def test_document_lists_the_columns_of_tables_in_order(table):
    assert document_keys(f"`{table} --format csv`") == list(getattr(columns, table.upper()))


@pytest.mark.parametrize("table", ["streams", "events", "episodes", "latency", "messages"])
def test_document_says_what_can_be_missing(softroce, table):
    """What is missing anywhere in the lab is "or null", what is never missing there is not."""
    title = f"`{table} --format csv`" if table == "messages" else f"`{table}[]`"
    section = (DOCS / "json.md").read_text().partition(f"\n## {title}")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)` \| [a-z]+ or null", section, re.MULTILINE))
    missing = set()
    for path in softroce.glob("*.pcap*"):
        frame = getattr(rd.analyze(path), table)
        missing |= {name for name in frame.columns if frame[name].isna().any()}
    assert told == missing


def test_document_names_the_columns_that_other_commands_print(call, samples):
    path = sample(samples, "imp_loss1_write.server")
    names = {
        command: call(command, "--format", "csv", path).out.partition("\n")[0].split(",")
        for command in ("messages", "events", "connections")
    }
    assert names["messages"] == document_keys("`messages --format csv`")
    section = (DOCS / "json.md").read_text().partition("\n## `events --format csv`")[2].partition("\n## ")[0]
    assert names["events"] == list(columns.EVENTS) + re.findall(r"`(\w+)`", section.partition("missing:")[2])
    assert set(names["connections"]) == set(columns.CONNECTIONS)
    told = json.loads(call("connections", "--format", "json", path).out)
    assert told == json.loads(call("analyze", "--format", "json", path).out)["connections"]


def test_schema_and_document_name_the_reasons_for_trust(schema):
    """All reasons that there are, by the source: none is printed that the document does not name."""
    source = (DOCS.parent / "roce_dissect" / "analysis" / "trust.py").read_text()
    reasons = re.findall(r'_Reason\("(\w+)"', source)
    section = (DOCS / "json.md").read_text().partition("\n### `capture.trust`")[2].partition("\n## ")[0]
    assert len(reasons) > 10
    assert [reason for reason in reasons if f"`{reason}`" not in section] == []
    levels = schema["properties"]["capture"]["properties"]["trust"]["properties"]["level"]["enum"]
    assert levels == list(trust.LEVELS)
    assert all(f"`{level}`" in section for level in levels)


def test_a_gap_that_damage_made_says_so(call, softroce):
    text = call("analyze", "--events", "1000", str(softroce / "imp_corrupt1.server.pcap.gz")).out
    assert "frame 64: PSN 11728509 damaged on the way (wrong ICRC): its receiver drops it" in text
    assert "frame 65: gap before it: PSN 11728509 came damaged" in text
