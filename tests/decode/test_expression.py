"""Filter expressions against plain Python over the rows of `read_packets`, and what is said of wrong ones."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import roce_dissect as rd
from roce_dissect.columns import PACKETS, TRACKED
from roce_dissect.decode.blocks import Blocks
from roce_dissect.decode.expression import Expression
from roce_dissect.errors import ArgumentError

FILES = ("ud_mix_ipv4.server", "rc_mix_vlan100_ipv4.client", "imp_loss5_readreq.server", "rc_mix_ipv6_mtu1024.client",
         "cm_rping_ipv4.client", "flt_rnr_recovers.client", "fmt_nsec_snap80")  # fmt: skip
DECODED = [name for name in PACKETS if name not in (*TRACKED, "file", "frame", "operation")]
EVERY = 61  # rows that the oracle looks at, one in so many


class Packets:
    """Rows of several captures as dicts of plain values, and the decoder's columns of the same rows."""

    def __init__(self, paths):
        names = [name for name in PACKETS if name not in TRACKED]
        frame = rd.read_packets(paths, columns=names)
        blocks = Blocks(paths, DECODED)
        taken = [
            {name: block.columns[name][: block.rows].copy() for name in (*DECODED, "frame_key")} for block in blocks
        ]
        columns = {name: np.concatenate([one[name] for one in taken]) for name in taken[0]}
        some = np.arange(0, len(frame), EVERY)
        plain = frame.iloc[some].astype(object)
        self.rows = plain.where(plain.notna(), None).to_dict("records")
        self.columns = {name: column[some] for name, column in columns.items()}
        self.hosts = blocks.hosts

    def chosen(self, text):
        """What the expression says of each row."""
        return Expression(text).evaluate(self.columns, len(self.rows), self.hosts).tolist()


@pytest.fixture(scope="module")
def packets(samples):
    return Packets([str(samples / f"{name}.pcap.gz") for name in FILES])


# -- the oracle: (text, function of a row), made together --------------------------------------------------------------

INTEGERS = ("psn", "dest_qp", "dscp", "ecn", "wire_len", "udp_sport", "syndrome", "msn", "va", "dma_len", "src_qp",
            "vlan_id", "frame", "file", "time_ns", "opcode", "ack_req", "r_key", "flow_label", "eth_src")  # fmt: skip
WORDS = ("status", "icrc_status", "standing", "tunnel", "operation", "src", "dst")
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
              "^": operator.xor, "//": operator.floordiv, "%": operator.mod}  # fmt: skip


def column(name):
    return name, lambda row: row[name]


def number(value, form):
    return form.format(value) if value >= 0 else str(value), lambda row: value


def calculation(word, left, right):
    def value(row):
        a, b = left[1](row), right[1](row)
        return None if a is None or b is None or (word in "//%" and b == 0) else ARITHMETIC[word](a, b)

    return f"({left[0]} {word} {right[0]})", value


def comparison(first, rest):
    def value(row):
        operands = [first[1](row), *(one[1](row) for _, one in rest)]
        return all(
            a is not None and b is not None and COMPARISONS[word](a, b)
            for (word, _), a, b in zip(rest, operands, operands[1:], strict=False)
        )

    return " ".join([first[0], *(f"{word} {one[0]}" for word, one in rest)]), value


def membership(left, values, negative):
    def value(row):
        a = left[1](row)
        return (a is not None and a in [one[1](row) for one in values]) != negative

    listed = ", ".join(one[0] for one in values) + ","
    return f"{left[0]} {'not in' if negative else 'in'} ({listed})", value


def missing(name, negative):
    return f"{name} is {'not ' if negative else ''}None", lambda row: (row[name] is None) != negative


extremes = st.sampled_from([0x60, 0xFFFFFF, 1 << 32, (1 << 63) - 1, (1 << 64) - 1, -(1 << 63)])
constants = st.builds(number, st.integers(-20, 300) | extremes, st.sampled_from(["{}", "{:#x}"]))
numbers = st.recursive(
    st.sampled_from(INTEGERS).map(column) | constants,
    lambda inner: st.builds(calculation, st.sampled_from(sorted(ARITHMETIC)), inner, inner),
    max_leaves=3,
)
#: Operands of a chain: & and | in its middle are refused.
chained = st.sampled_from(INTEGERS).map(column) | constants


def truths(rows):
    """Expressions whose constants are values that rows have, most of them."""
    known = {name: sorted({row[name] for row in rows} - {None}) for name in (*INTEGERS, *WORDS)}

    def like(name):
        return st.sampled_from(known[name]).map(lambda value: number(value, "{}"))

    def word(name):
        return st.sampled_from(known[name]).map(lambda value: (f'"{value}"', lambda row: value))

    words = st.sampled_from(sorted(COMPARISONS))
    equal = st.sampled_from(["==", "!="])

    def compared(name, values, signs, most):
        rest = st.lists(st.tuples(signs, values(name)), min_size=1, max_size=most)
        return st.builds(comparison, st.just(column(name)), rest)

    def listed(name, values):
        return st.builds(
            membership, st.just(column(name)), st.lists(values(name), min_size=1, max_size=3), st.booleans()
        )

    leaves = st.one_of(
        st.builds(comparison, numbers, st.lists(st.tuples(words, chained), min_size=1, max_size=2)),
        st.sampled_from(INTEGERS).flatmap(lambda name: compared(name, like, words, 2)),
        st.sampled_from(INTEGERS).flatmap(lambda name: listed(name, like)),
        st.sampled_from(WORDS).flatmap(lambda name: compared(name, word, equal, 1)),
        st.sampled_from(WORDS).flatmap(lambda name: listed(name, word)),
        st.builds(missing, st.sampled_from(INTEGERS + WORDS), st.booleans()),
        st.just(("src == dst", lambda row: row["src"] is not None and row["src"] == row["dst"])),
        st.just(("src != dst", lambda row: row["src"] is not None and row["src"] != row["dst"])),
    )

    def joined(inner):
        ands = st.builds(lambda w, a, b: (f"({a[0]}) {w} ({b[0]})", lambda row: a[1](row) and b[1](row)),
                         st.sampled_from(["and", "&&", "&"]), inner, inner)  # fmt: skip
        ors = st.builds(lambda w, a, b: (f"({a[0]}) {w} ({b[0]})", lambda row: a[1](row) or b[1](row)),
                        st.sampled_from(["or", "||", "|"]), inner, inner)  # fmt: skip
        nots = st.builds(
            lambda w, a: (f"{w}({a[0]})", lambda row: not a[1](row)), st.sampled_from(["not ", "!", "~"]), inner
        )
        return ands | ors | nots

    return st.recursive(leaves, joined, max_leaves=5)


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_against_python(data, packets):
    text, value = data.draw(truths(packets.rows))
    try:
        chosen = packets.chosen(text)
    except ArgumentError as error:
        assume(not str(error).endswith(("may lead beyond 64 bits", "more than 64 bits", "a division by 0")))
        raise
    assert chosen == [bool(value(row)) for row in packets.rows]


# -- by hand -----------------------------------------------------------------------------------------------------------

CASES = {
    # & binds more tightly than ==, as in Python and unlike in C
    "syndrome & 0x60 == 0x60": lambda row: row["syndrome"] is not None and row["syndrome"] & 0x60 == 0x60,
    "not psn % 2 == 0": lambda row: row["psn"] % 2 != 0,
    "ecn == 2 or ecn == 1 and dscp == 0": lambda row: row["ecn"] == 2 or (row["ecn"] == 1 and row["dscp"] == 0),
    "!(vlan_id == 100)": lambda row: row["vlan_id"] != 100,  # also where there is none, as in Wireshark
    "vlan_id != 7": lambda row: row["vlan_id"] is not None and row["vlan_id"] != 7,
    "src == 192.168.100.2": lambda row: row["src"] == "192.168.100.2",
    "'192.168.100.2' == src": lambda row: row["src"] == "192.168.100.2",
    'src == "::ffff:192.168.100.2"': lambda row: row["src"] == "192.168.100.2",
    'src in "192.168.100.0/30"': lambda row: row["src"] in ("192.168.100.1", "192.168.100.2"),
    'src in ("192.168.100.2/32", "fd00::/8")': lambda row: row["src"] == "192.168.100.2" or row["src"].startswith("fd"),
    'src == "::/0"': lambda row: ":" in row["src"],
    '"READ" in operation': lambda row: "READ" in row["operation"],
    'operation == "rc_write_only"': lambda row: row["operation"] == "RC WRITE ONLY",
    'operation not in ("CNP", "RC ACKNOWLEDGE")': lambda row: row["operation"] not in ("CNP", "RC ACKNOWLEDGE"),
    'icrc_status == "SLICED"': lambda row: row["icrc_status"] == "sliced",
    "1000 <= wire_len < 1100 and psn\n% 3 == 0": lambda row: 1000 <= row["wire_len"] < 1100 and row["psn"] % 3 == 0,
    "psn in {1, 2}": lambda row: False,
    "va & 0xfff == 0 and va >> 12 != 5": lambda row: row["va"] is not None and row["va"] % 4096 == 0,
    "va & -4096 == va": lambda row: row["va"] is not None and row["va"] % 4096 == 0,
    "wire_len % pad_count == 0": lambda row: row["pad_count"] != 0 and row["wire_len"] % row["pad_count"] == 0,
    "dscp == 300": lambda row: False,
    "dscp != 300": lambda row: True,
    "dscp < -1 or -psn > 0": lambda row: False,
    "~psn < 0": lambda row: True,
    "1 == 1 and 2 > 1": lambda row: True,
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_cases(text, packets):
    assert packets.chosen(text) == [bool(CASES[text](row)) for row in packets.rows]


def test_the_cases_can_fail(packets):
    """Most of them hold for some packets and not for others."""
    mixed = [text for text in CASES if 0 < sum(packets.chosen(text)) < len(packets.rows)]
    assert len(mixed) > len(CASES) / 2


@pytest.mark.parametrize("form", [":", "-", ""])
def test_mac_addresses(form, packets):
    known = packets.rows[0]["eth_src"]
    text = form.join(f"{known:012x}"[i : i + 2] for i in range(0, 12, 2))
    quoted = text if form else f'"{text}"'
    assert packets.chosen(f"eth_src == {quoted}") == [row["eth_src"] == known for row in packets.rows]
    assert packets.chosen(f"eth_src in ({quoted}, 5)") == [row["eth_src"] == known for row in packets.rows]


def test_every_word_of_every_vocabulary():
    for name, one in PACKETS.items():
        for term in one.terms or ():
            codes = {name: np.arange(256, dtype=np.uint8), "present": np.full(256, 0xFFFFFFFF, np.uint32)}
            chosen = Expression(f'{name} == "{term.name.lower()}"').evaluate(codes, 256, None)
            assert np.flatnonzero(chosen).tolist() == [int(term)]


def test_hosts_that_come_later(packets):
    """An address that is not known yet matches nothing; once it is, it does."""
    from roce_dissect.decode.hosts import HostTable

    hosts = HostTable(16)
    expression = Expression('src == "10.0.0.7"')
    columns = {"src": np.array([1, 2, 3], np.uint32), "present": np.full(3, 0xFFFFFFFF, np.uint32)}
    hosts.enter("10.0.0.1")
    assert expression.evaluate(columns, 1, hosts).tolist() == [False]
    hosts.enter("10.0.0.7")
    assert expression.evaluate(columns, 2, hosts).tolist() == [False, True]
    hosts.enter("10.0.0.8")
    assert expression.evaluate(columns, 3, hosts).tolist() == [False, True, False]
    other = HostTable(16)  # another capture, where the same code is another host
    other.enter("10.0.0.7")
    assert expression.evaluate(columns, 1, other).tolist() == [True]


def test_columns_that_it_needs():
    one = Expression('file == 0 and frame < 9 and operation == "CNP" and verdict == "new" and psn in (1, 2)')
    assert set(one.columns) == {"present", "frame_key", "opcode", "psn"}
    assert one.tracked == ("verdict",)


def test_what_the_document_shows():
    """Every expression of docs/filters.md is one."""
    document = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")
    shown = re.findall(r"--filter '([^']+)'", document)
    shown += re.findall(r"^    ((?!roce-dissect).+)$", document, re.MULTILINE)
    assert len(shown) > 18
    for text in shown:
        assert set(Expression(text).columns) > {"present"} or Expression(text).tracked


WRONG = {
    "": "empty",
    "dcsp == 26": "no column 'dcsp' (near it: dscp",
    "xyzzy == 26": "no column 'xyzzy'",
    "ip.src == 10.0.0.1": "ip.src is called src here",
    "infiniband.bth.psn == 1": "is called psn here",
    "os.system == 1": "no column 'os.system'",
    "verdict == resent": "stands in quotes, 'resent'",
    'verdict == "resnt"': "never 'resnt' (near it: resent",
    'icrc_status == "xyzzy"': "there are: none, good, bad",
    "icrc_status == 2": "compared with text in quotes: none, good",
    "src == 5": 'in quotes ("10.0.0.1"); 5 is a number',
    'src == "10.0.0"': "neither an IP address nor a network",
    'src < "10.0.0.1"': "src has no order",
    "src == operation": "cannot be compared",
    "src == fe80::1": "an IPv6 address stands in quotes",
    'psn == "seven"': "'psn' holds integers",
    'eth_src == "00:11"': "no MAC address",
    "psn = 5": "written ==",
    "psn == 5 # acks": "a # has no meaning",
    "psn <> 5": "the comparisons are",
    "psn": "'psn' alone is neither true nor false",
    "standing": 'standing == "',
    "not psn": "'psn' alone",
    "psn + 1": "neither true nor false",
    "psn == 5 and": "ends too soon",
    "(psn == 5": "a ) is missing",
    "psn == 5)": "a ( is missing",
    'src == "10.0.0.1': "a quotation mark is missing",
    "psn == 5 ecn": "cannot be understood from 'ecn' on",
    "psn == 1.5": "1.5 is neither an integer nor text",
    "psn == True": "flags are 1 and 0",
    "psn == None": "None goes with is",
    "psn is 5": "goes with None only",
    "psn / 2 == 1": "// divides integers",
    "psn ** 2 == 1": "no such operator",
    "psn % 0 == 1": "a division by 0",
    "psn << ecn == 1": "a constant from 0 to 63",
    "va + dma_len > 5": "beyond 64 bits",
    "psn == 0x1ffffffffffffffff": "more than 64 bits",
    "psn in 5": "several values in parentheses",
    "psn in ()": "an empty list",
    "psn == (1, 2)": "only on the right of in",
    "dscp == 26 & ecn == 3": "bind more tightly",
    "dscp == 26 | (ecn == 3)": "binds more tightly",
    "__import__('os')": "functions cannot be called",
    "psn[0] == 1": "nothing to index",
    "(lambda: 1) == 1": "no functions",
    "psn if ecn else 2": "there is no if",
    "(psn := 5) == 5": "nothing can be assigned",
    "f'{psn}' == 1": "no f-strings",
    'operation contains "WRITE"': '"WRITE" in operation',
    '"xyzzy" in operation': "no operation has 'xyzzy'",
    '"new" in verdict': "only operation has parts",
    "psn\0 == 5": "cannot be understood|ends too soon",
    "x" * 20_000: "20,000 characters",
    "not " * 2000 + "psn == 1": "nested too deeply|cannot be understood",
    "(" * 900 + "psn == 1" + ")" * 900: "nested too deeply|cannot be understood",
    "psn" + " + 1" * 2400 + " == 1": "nested too deeply",
    "psn == " + "9" * 5000: "cannot be understood|more than 64 bits|ends too soon",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:30].replace("\0", "NUL"))
def test_wrong_ones(text):
    with pytest.raises(ArgumentError) as caught:
        Expression(text)
    told = str(caught.value)
    assert told.startswith("filter: ")
    assert any(part in told for part in WRONG[text].split("|")), told
    assert "\n" not in told
    assert len(told) < 300


TOKENS = (
    "psn", "==", "5", "and", "(", ")", "in", "not", '"a"', "src", "&", "is", "None", "!", "&&", "<", "-", "operation",
)  # fmt: skip


@given(st.text(max_size=30) | st.lists(st.sampled_from(TOKENS), max_size=8).map(" ".join))
@settings(max_examples=500, deadline=None)
def test_any_text_is_taken_or_refused_in_one_line(text):
    told = "filter: "
    try:
        Expression(text)
    except ArgumentError as error:
        told = str(error)
    assert told.startswith("filter: ")
    assert "\n" not in told
