"""Texts of counters, in every form in which a host prints them. The numbers are a real host's (rxe, Linux 6.1)."""

from __future__ import annotations

import json
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_dissect.analysis.host_counters import read_counters
from roce_dissect.errors import ArgumentError

#: The server of the capture imp_loss1_write before the run, in the kernel's order.
RXE = {
    "sent_pkts": 8128, "rcvd_pkts": 8499, "duplicate_request": 1412, "out_of_seq_request": 203, "rcvd_rnr_err": 0,
    "send_rnr_err": 167, "rcvd_seq_err": 0, "ack_deferred": 0, "retry_exceeded_err": 0, "retry_rnr_exceeded_err": 0,
    "completer_retry_err": 10, "send_err": 0, "link_downed": 0, "rdma_sends": 193, "rdma_recvs": 753,
}  # fmt: skip
OTHER = dict.fromkeys(RXE, 7)
FOLDER = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


def rdma(counters, device="rxe0/1"):
    return f"link {device} " + "".join(f"{name} {value} " for name, value in counters.items()) + "\n"


def rdma_pretty(counters):
    return "link rxe0/1 \n" + "".join(f"    {name} {value} \n" for name, value in counters.items())


def rdma_json(*devices):
    return json.dumps(
        [{"ifindex": index, "ifname": f"rxe{index}", "port": 1, **counters} for index, counters in enumerate(devices)]
    )


def ethtool(counters):
    return "NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, value in counters.items())


def grep(counters, folder=FOLDER):
    return "".join(f"{folder}/{name}:{value}\n" for name, value in counters.items()) + f"{folder}/lifespan:10\n"


def tail(counters, folder=FOLDER):
    return "\n".join(f"==> {folder}/{name} <==\n{value}\n" for name, value in counters.items())


FORMS = {
    "rdma": rdma(RXE),
    "rdma -p": rdma_pretty(RXE),
    "rdma -j": rdma_json(RXE),
    "rdma -jp": json.dumps([{"ifindex": 0, "ifname": "rxe0", "port": 1, **RXE}], indent=4),
    "ethtool": ethtool(RXE),
    "grep": grep(RXE),
    "grep in the folder": "".join(f"{name}:{value}\n" for name, value in RXE.items()),
    "grep of a resolved link": grep(RXE, "/sys/devices/pci0000:00/0000:00:04.0/infiniband/rxe0/ports/1/hw_counters"),
    "tail": tail(RXE),
    "tail in the folder": "\n".join(f"==> {name} <==\n{value}\n" for name, value in RXE.items()),
    "from Windows": "\ufeff" + ethtool(RXE).replace("\n", "\r\n"),
    "twice the same": rdma(RXE) + rdma(RXE),
}


@pytest.fixture
def read(tmp_path):
    def run(content, device=None):
        path = tmp_path / "counters.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_counters(path, device)

    return run


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(read, form):
    assert read(FORMS[form]) == RXE
    assert list(read(FORMS[form])) == list(RXE)


@pytest.mark.parametrize("form", ["rdma", "rdma -p", "rdma -j", "grep", "tail"])
def test_the_device_may_be_named(read, form):
    assert read(FORMS[form], "rxe0/1") == RXE
    with pytest.raises(ArgumentError, match=r"no counters of 'rxe1/1' in it \(there are: rxe0/1\)$"):
        read(FORMS[form], "rxe1/1")


@pytest.mark.parametrize(
    "text",
    [
        rdma(RXE, "rxe0/1") + rdma(OTHER, "rxe1/1"),
        rdma_json(RXE, OTHER),
        grep(RXE) + grep(OTHER, FOLDER.replace("rxe0", "rxe1")),
        tail(RXE) + "\n" + tail(OTHER, FOLDER.replace("rxe0", "rxe1")),
    ],
    ids=["rdma", "rdma -j", "grep", "tail"],
)
def test_several_devices_are_not_added_up(read, text):
    with pytest.raises(
        ArgumentError, match=r"counters of 2 devices \(rxe0/1, rxe1/1\); say which, as in \S*counters.txt#rxe0/1$"
    ):
        read(text)
    assert read(text, "rxe0/1") == RXE
    assert read(text, "rxe1/1") == OTHER


def test_texts_of_one_device_one_after_the_other(read):
    ethernet = {"rx_packets": 1508, "[0]: rx_ucast_packets": 3}  # the second as bnxt_en names them
    assert read(ethtool(ethernet) + rdma(RXE)) == ethernet | RXE
    assert read(rdma(RXE) + ethtool(ethernet)) == ethernet | RXE
    with pytest.raises(ArgumentError, match="two values of 'rdma_sends', 193 and 194; a file holds one snapshot"):
        read(rdma(RXE) + ethtool({"rdma_sends": 194}))


def test_what_names_no_device_goes_with_none_of_several(read):
    assert read(ethtool({"rx_packets": 1508}) + rdma(RXE) + rdma(OTHER, "rxe1/1"), "rxe1/1") == OTHER


def test_a_directory(tmp_path):
    folder = tmp_path / "hw_counters"
    folder.mkdir()
    for name, value in (RXE | {"lifespan": 10}).items():
        (folder / name).write_text(f"{value}\n")
    (folder / "power").mkdir()
    assert read_counters(folder) == RXE
    (folder / "notes").write_text("see the ticket\n")
    with pytest.raises(ArgumentError, match=r"file 'notes' is no counter: 'see the ticket'$"):
        read_counters(folder)


def test_a_directory_of_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr("roce_dissect.analysis.host_counters._MOST_FILES", 3)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("1")
    assert read_counters(tmp_path) == {"a": 1, "b": 1, "c": 1}
    (tmp_path / "d").write_text("1")
    with pytest.raises(ArgumentError, match="more than 3 files: not a directory of counters"):
        read_counters(tmp_path)


def test_a_directory_tells_its_device(tmp_path):
    folder = tmp_path / "infiniband" / "rxe0" / "ports" / "1" / "hw_counters"
    folder.mkdir(parents=True)
    (folder / "sent_pkts").write_text("9\n")
    assert read_counters(folder, "rxe0/1") == {"sent_pkts": 9}
    with pytest.raises(ArgumentError, match="no counters of 'rxe1/1'"):
        read_counters(folder, "rxe1/1")


def test_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(rdma(RXE),))
    writer.start()
    assert read_counters(path) == RXE
    writer.join()


def test_what_counts_nothing_is_left_out(read):
    folder = FOLDER.replace("hw_", "")
    assert read(f"{folder}/VL15_dropped:N/A (no PMA)\n{folder}/port_rcv_packets:7\n") == {"port_rcv_packets": 7}


def test_the_largest_number(read):
    assert read(f"sent_pkts: {2**64 - 1}\n") == {"sent_pkts": 2**64 - 1}


QP_TEXT = "link mlx5_2/1 cntn 5 pid 31609 comm client.1 rx_write_requests 0\n    LQPN: <178>\n"
QP_JSON = '[{"ifindex":2,"ifname":"mlx5_2","port":1,"cntn":5,"qp-type":"RC","rx_write_requests":0,"lqpn":[178]}]'
BAD = {
    "empty": ("", "no counters in it"),
    "blank": ("\n \n", "no counters in it"),
    "no values": ("link rxe0/1\n", "no counters in it"),
    "no devices": ("[]", "no counters in it"),
    "binary": (b"\x7fELF\x02\x01\x01\x00\x00", "not a text of counters"),
    "no UTF-8": (b"sent_pkts: 1\n\xff\xfe", "not a text of counters"),
    "huge": (b"a: 1\n" * (1 << 20), "longer than 4 MiB: not a text of counters"),
    "letter": ("Dear Sirs,\n", "line 1 is no counter: 'Dear Sirs,'"),
    "passwd": ("root:x:0:0:root:/root:/bin/sh\n", "line 1 is no counter: 'root:x:0:0:root:/root:/bin/sh'"),
    "message": ("sent_pkts: 1\ngrep: x: Invalid argument\n", "line 2 is no counter: 'grep: x: Invalid argument'"),
    "negative": ("sent_pkts: -1\n", "line 1 is no counter: 'sent_pkts: -1'"),
    "fraction": ("sent_pkts: 1.5\n", "line 1 is no counter: 'sent_pkts: 1.5'"),
    "other digits": ("sent_pkts: ٣\n", "line 1 is no counter: 'sent_pkts: ٣'"),
    "too large": (f"sent_pkts: {2**64}\n", f"line 1: a number of more than 64 bits: {2**64}"),
    "absurd": ("sent_pkts: " + "9" * 5000, "line 1 is no counter: 'sent_pkts: " + "9" * 49 + "'"),
    "escape": ("\x1b[2Jsent: 1\n", r"line 1 is no counter: '\x1b[2Jsent: 1'"),
    "override": ("sent\u202e_pkts: 1\n", r"line 1 is no counter: 'sent\u202e_pkts: 1'"),
    "no name": (": 1\n", "line 1 is no counter: ': 1'"),
    "odd": ("link rxe0/1 sent_pkts\n", "line 1 is no list of counters: 'sent_pkts'"),
    "mode": ("link mlx5_2/1 mode qp auto off \n", "line 1 is no counter: 'mode qp'"),
    "two snapshots": (
        rdma(RXE) + rdma(RXE | {"duplicate_request": 1543}),
        "line 2: two values of 'duplicate_request', 1412 and 1543; a file holds one snapshot",
    ),
    "two in JSON": (
        '[{"ifname":"rxe0","port":1,"sent_pkts":1,"sent_pkts":2}]',
        "'rxe0/1': two values of 'sent_pkts', 1 and 2; a file holds one snapshot",
    ),
    "QPs": (QP_TEXT, "line 1: counters of single QPs or MRs; wanted are those of the device: rdma statistic show"),
    "MRs": (
        "dev rxe0 mrn 4 page_faults 0 \n",
        "line 1: counters of single QPs or MRs; wanted are those of the device: rdma statistic show",
    ),
    "QPs in JSON": (
        QP_JSON,
        "counters of single QPs or MRs; wanted are those of the device: rdma -j statistic show",
    ),
    "broken JSON": ('[{"ifname":', "JSON that cannot be read"),
    "deep JSON": ('[{"a":' + "[" * 200_000, "JSON that cannot be read"),
    "other JSON": ('{"schema": 1}', "JSON, but not that of rdma -j statistic"),
    "list": ('[{"ifname":"rxe0"}, 5]', "JSON, but not that of rdma -j statistic"),
    "text in JSON": (
        '[{"ifname":"rxe0","sent_pkts":"\\u001b[2J"}]',
        r"'rxe0' is no counter: 'sent_pkts \x1b[2J'",
    ),
    "digits as text": ('[{"ifname":"rxe0","sent_pkts":"5"}]', "'rxe0' is no counter: 'sent_pkts 5'"),
    "strange device": ("link rxe\x1b0/1 sent_pkts 5\n", r"line 1 names no device: 'rxe\x1b0/1'"),
    "strange device in JSON": ('[{"ifname":"a\\nb","sent_pkts":5}]', r"'a\nb' names no device: 'a\nb'"),
    "true in JSON": ('[{"ifname":"rxe0","sent_pkts":true}]', "'rxe0' is no counter: 'sent_pkts True'"),
    "large in JSON": (
        '[{"ifname":"rxe0","sent_pkts":18446744073709551616}]',
        "'rxe0': a number of more than 64 bits: 18446744073709551616",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_such_text_is_one_line(read, tmp_path, name):
    content, reason = BAD[name]
    with pytest.raises(ArgumentError) as caught:
        read(content)
    assert str(caught.value) == f"{tmp_path / 'counters.txt'}: {reason}"


@pytest.mark.parametrize(
    ("path", "reason"), [("missing", "cannot be read: No such file or directory"), (".", "no counters in it")]
)
def test_what_cannot_be_read(tmp_path, path, reason):
    with pytest.raises(ArgumentError, match=f": {reason}$"):
        read_counters(tmp_path / path)


def test_an_endless_file():
    with pytest.raises(ArgumentError, match="longer than 4 MiB"):
        read_counters("/dev/zero")


PIECES = st.sampled_from([*FORMS.values(), QP_TEXT, "==> x <==", "link ", ":", "1", "\n", "[{", "}]", '"ifname"', "\0"])


@settings(max_examples=300, deadline=None)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200), st.lists(PIECES, max_size=6).map("".join)))
def test_anything_ends_well(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "anything"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    try:
        counters = read_counters(path)
    except ArgumentError as error:
        counters = None
        lines = str(error).splitlines()
    if counters is None:
        assert len(lines) == 1
    else:
        assert counters
        assert all(name.isprintable() and 0 <= value < 2**64 for name, value in counters.items())
