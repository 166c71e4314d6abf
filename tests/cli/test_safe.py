"""Nothing from outside acts on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_dissect.cli.safe import safe


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("trace 1.pcap", "trace 1.pcap"),
        ("naïve-日本.pcap", "naïve-日本.pcap"),
        ("a\x1b[2J\x1b]0;x\x07b", "a\\x1b[2J\\x1b]0;x\\x07b"),
        ("two\nlines\r\t", "two\\x0alines\\x0d\\x09"),
        ("c1 \x9b31m", "c1 \\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066\u200b\u2028", "\\u2066\\u200b\\u2028"),
        (b"not utf-8 \xff".decode(errors="surrogateescape"), "not utf-8 \\xff"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_does_not_print_is_escaped(text, printed):
    assert safe(text) == printed


@given(st.text())
def test_the_result_is_printable(text):
    assert safe(text).isprintable()
