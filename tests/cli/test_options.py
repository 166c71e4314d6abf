"""The options that choose packets: every command with every one of them, and the same packets everywhere."""

from __future__ import annotations

import gzip
import json

import pytest

import roce_dissect as rd

LOSS = "imp_loss1_write.server.pcap.gz"
READS = "imp_loss5_readreq.server.pcap.gz"
CM = "cm_rping_ipv4.client.pcap.gz"
COMMANDS = {
    "packets": ["packets", "--format", "jsonl"],
    "analyze": ["analyze", "--format", "json"],
    "connections": ["connections", "--format", "json"],
    "messages": ["messages", "--format", "jsonl"],
    "events": ["events", "--format", "jsonl"],
}
OPTIONS = {
    "--filter": (["--filter", "psn % 3 == 0 && !(dscp == 26)"], {"filter": "psn % 3 == 0 and dscp != 26"}),
    "--time": (["--time", "1.06..1.2"], {"time": "1.06..1.2"}),
    "--host": (["--host", "10.0.0.1", "--host", "192.168.100.0/30"], {"hosts": ["192.168.100.1", "192.168.100.2"]}),
    "--qp": (["--qp", "0x30"], {"qps": 48}),
    "--packets": (["--packets", "500"], {"count": 500}),
    "all": (
        ["--filter", "dest_qp > 0", "--time", "1..", "--host", "192.168.100.1", "--qp", "48", "--packets", "300"],
        {"filter": "dest_qp > 0", "time": "1..", "hosts": "192.168.100.1", "qps": [48], "count": 300},
    ),
    "nothing": (["--filter", "psn == 1"], {"filter": "psn == 1"}),
}


def plain(table):
    return table.astype(object).where(table.notna(), None).to_dict("records")


@pytest.mark.parametrize("option", OPTIONS)
def test_verify_compares_what_was_chosen(call, samples, tshark, option):
    """No frame that was left out is a difference."""
    words, given = OPTIONS[option]
    done = call("verify", "--format", "json", str(samples / LOSS), *words)
    (told,) = map(json.loads, done.out.splitlines())
    assert (done.status, told["differences"]) == (0, [])
    assert told["packets"] == len(rd.read_packets(samples / LOSS, ["frame"], **given))


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("files", [(CM,), (LOSS, READS)], ids=len)
def test_every_command_with_every_option(call, samples, files, option):
    paths = [str(samples / name) for name in files]
    words, given = OPTIONS[option]
    result = rd.analyze(paths, **given)
    expected = {
        "packets": plain(rd.read_packets(paths, **given)),
        "analyze": result.to_dict(),
        "messages": plain(result.messages),
    }
    for name, command in COMMANDS.items():
        done = call(*command, *paths, *words)
        assert done.status == 0
        assert len(done.err) == (name == "packets" and not expected["packets"]), done.err
        told = [json.loads(line) for line in done.out.splitlines()]
        told = told[0] if command[-1] == "json" else told
        if name == "analyze":
            for one in (told, expected[name]):  # the choice in other words
                one["capture"]["selection"] |= dict.fromkeys(("filter", "hosts"))
        if name == "connections":
            assert [one["id"] for one in told] == result.connections["connection"].tolist()
            for way in ("a_to_b", "b_to_a"):
                assert [one[way]["packets"] for one in told] == result.connections[f"{way}_packets"].tolist()
        elif name == "events":
            assert [(one["file"], one["frame"]) for one in told] == list(
                zip(result.events["file"], result.events["frame"], strict=True)
            )
        else:
            assert told == expected[name]


@pytest.mark.parametrize(
    ("kind", "option"), [("sequence", "all"), *(("rate", option) for option in OPTIONS if option != "nothing")]
)
def test_pictures(call, samples, tmp_path, kind, option, monkeypatch):
    """The picture is drawn of an analysis with the same choice."""
    from roce_dissect.plot.accessor import PlotAccessor

    seen = []
    original = getattr(PlotAccessor, kind)
    monkeypatch.setattr(PlotAccessor, kind, lambda self, **more: (seen.append(self), original(self, **more))[1])
    words, given = OPTIONS[option]
    done = call("plot", kind, samples / LOSS, "-o", tmp_path / "x.png", "--dpi", "30", *words)
    assert (done.status, done.err) == (0, [])
    expected = rd.analyze(samples / LOSS, **given)
    assert (
        seen[0]._analysis.capture["selection"]["chosen_packets"] == expected.capture["selection"]["chosen_packets"] > 0
    )


def test_no_picture_of_nothing(call, samples, tmp_path):
    for kind in ("sequence", "rate"):
        done = call("plot", kind, samples / LOSS, "-o", tmp_path / "x.png", "--host", "10.0.0.1")
        assert (done.status, done.err) == (
            2,
            ["roce-dissect: no packet fits what was asked for: there is nothing to draw"],
        )


def test_pipes(command, samples):
    """What is chosen is the same from a pipe, save for what comes from a QP: that is said."""
    raw = gzip.decompress((samples / LOSS).read_bytes())
    for option in ("--filter", "--time", "--host", "--packets"):
        words, _ = OPTIONS[option]
        piped, read = (
            command(*COMMANDS["messages"], one, *words, stdin=raw if one == "-" else None)
            for one in ("-", samples / LOSS)
        )
        assert (piped.status, piped.out, piped.err) == (0, read.out, []), option
    raw = gzip.decompress((samples / CM).read_bytes())
    done = command("packets", "-", "--qp", "35", "--columns", "dest_qp", stdin=raw)
    assert (done.status, set(done.out.split())) == (0, {"35", "1"})
    assert done.err == [
        "roce-dissect: --qp: a pipe is read only once: packets from the QP that do not name it are left out"
    ]


# -- what is said ------------------------------------------------------------------------------------------------------


def lines_of(call, samples, *words, name=LOSS):
    done = call("analyze", samples / name, *words)
    assert (done.status, done.err) == (0, [])
    return done.out.splitlines()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--filter", "psn % 2 == 0"], "chosen   --filter 'psn % 2 == 0': 753 of 1,687 RoCE packets"),
        (["--host", "10.0.0.1"], "chosen   --host 10.0.0.1: 0 of 1,687 RoCE packets"),
        (["--packets", "100"], "chosen   the first 100 packets; reading stopped behind them"),
        (["--count", "1"], "chosen   the first 1 packet; reading stopped behind them"),
        (["--packets", "9999"], "chosen   all: 1,687 of 1,687 RoCE packets"),
        (
            ["--time", "1.06..", "--qp", "48", "--count", "5"],
            "chosen   --time 1.06.. --qp 0x30: the first 5 packets; reading stopped behind them",
        ),
    ],
)
def test_the_header_says_what_was_chosen(call, samples, words, line):
    assert line in lines_of(call, samples, *words)


def test_the_header_says_nothing_without_a_choice(call, samples):
    assert not any(line.startswith("chosen") for line in lines_of(call, samples))


def test_gaps_of_the_filter_s_own(call, samples):
    text = "\n".join(lines_of(call, samples, "--filter", "psn % 2 == 0"))
    assert "What --filter left out counts as missing here." in text
    assert "934 packets left out as asked for: gaps and missing answers may come of that alone" in text
    for words in (["--filter", "psn >= 0"], ["--time", "1.06.."], []):
        assert "counts as missing" not in "\n".join(lines_of(call, samples, *words))


def test_nothing_fits(call, samples):
    """One clear line on standard output where a capture without RoCE has one; status 0."""
    choice = ["--filter", "dscp == 63"]
    assert "No packet chosen: none of 1,687 RoCE packets fits --filter 'dscp == 63'." in lines_of(
        call, samples, *choice
    )
    for command in ("connections", "events", "messages"):
        done = call(command, samples / LOSS, *choice)
        line = f"no {command.removesuffix('s')} fits --filter 'dscp == 63'\n"
        assert (done.status, done.out, done.err) == (0, line, [])
    done = call("packets", samples / LOSS, *choice)
    assert (done.status, done.out, done.err) == (0, "", ["roce-dissect: no packet fits --filter 'dscp == 63'"])


def test_control_characters_go_to_no_terminal(call, samples):
    done = call("analyze", samples / LOSS, "--filter", "dscp == 63 or\n src ==\t1.2.3.4")
    assert "fits --filter 'dscp == 63 or src == 1.2.3.4'" in done.out
    for wrong in ("src == '\x1b[31mred'", "psn == 1 # \x1b[31m", "\x1b[31m == 1"):
        done = call("analyze", samples / LOSS, "--filter", wrong)
        assert done.status == 2
        assert "\x1b" not in "".join(done.err)


# -- counts ------------------------------------------------------------------------------------------------------------


def test_count_of_rows_stays_what_it_is(call, samples):
    """Where a command lists rows, --count is about them, and --packets about packets."""
    done = call("messages", samples / LOSS, "--count", "3", "--format", "jsonl")
    assert len(done.out.splitlines()) == 3
    both = call("messages", samples / LOSS, "--count", "3", "--packets", "200", "--format", "jsonl").out.splitlines()
    every = rd.analyze(samples / LOSS, count=200).messages
    assert [json.loads(line)["frame"] for line in both] == every["frame"].tolist()[:3]


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--filter", "psnn == 1"], "filter: there is no column 'psnn' (near it: psn"),
        (["--filter", "psn = 1"], "filter: a comparison is written =="),
        (["--host", "10.0.0"], "host: '10.0.0' is neither an IP address nor a network"),
        (["--time", "yesterday"], "time: 'yesterday'"),
        (["--time", "2..1"], "time: '2..1' ends before it begins"),
        (["--qp", "x"], "'x' is no QP number"),
        (["--qp", "0x1000000"], "qp: 16777216 is not from 0 to 0xffffff"),
        (["--packets", "0"], "Invalid value for '--packets'"),
    ],
)
@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_choices_are_one_line(call, samples, name, words, told):
    done = call(name, samples / LOSS, *words)
    assert (done.status, done.out, len(done.err)) == (2, "", 1)
    assert told in done.err[0]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "packets"])
def test_columns_of_the_tracker_go_with_packets_only(call, samples, name):
    done = call(name, samples / LOSS, "--filter", 'verdict == "resent"')
    assert (done.status, done.out, len(done.err)) == (2, "", 1)
    assert "verdict is known only when the flows have been followed" in done.err[0]
    assert call("packets", samples / LOSS, "--filter", 'verdict == "resent"').out.count("\n") == 657
