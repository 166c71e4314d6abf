"""What to say of a filter expression that is not understood: the nearest names, Wireshark's names, the usual slips."""

from __future__ import annotations

import difflib
import re

from roce_dissect.columns import PACKETS

__all__ = ["understood", "unknown_name"]

_MOST_NAMES = 3
#: Words of the vocabularies, to tell one that stands there without quotes.
_WORDS = {term.name.lower() for column in PACKETS.values() if column.terms is not None for term in column.terms}
#: Of columns with the same name in Wireshark the first one: the outer tag, say.
_WIRESHARK = {column.wireshark: column.name for column in reversed(PACKETS.values()) if column.wireshark} | {
    "ip.src": "src",
    "ip.dst": "dst",
    "ipv6.src": "src",
    "ipv6.dst": "dst",
    "ipv6.hlim": "ttl",
}
#: What has no column of its own, or not the same numbers.
_OTHERWISE = {
    "ip.addr": '--host, or src == "10.0.0.7" or dst == "10.0.0.7"',
    "ipv6.addr": '--host, or src == "fd00::1" or dst == "fd00::1"',
    "eth.addr": "eth_src or eth_dst",
    "frame.time_relative": "--time, as in --time 1.5..2",
    "frame.time": "--time, as in --time 1.5..2",
    "infiniband": "frame > 0: every packet here is RoCE",
    "infiniband.invariant.crc": "icrc, as zlib gives it: its bytes stand in reverse in Wireshark's number",
    "infiniband.aeth.syndrome.opcode": "syndrome >> 5: 0 ACK, 1 RNR NAK, 3 NAK",
    "infiniband.aeth.syndrome.error_code": "syndrome & 0x1f",
}
_SLIPS = (
    (re.compile(r"(?<![=!<>:])=(?!=)"), "a comparison is written =="),
    (re.compile(r"\b[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:]*"), 'an IPv6 address stands in quotes, src == "fd00::1"'),
    (re.compile(r"\b(contains|matches)\b"), 'there is no contains: operations have parts, "WRITE" in operation'),
    (re.compile(r"\d\s*\.\.\s*\d"), "a range is written as 5 <= psn <= 9"),
    (re.compile(r"<>|==="), "the comparisons are ==, !=, <, <=, >, >="),
)
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


def unknown_name(name: str) -> str:
    """Of a name that is no column."""
    if name in _OTHERWISE:
        return f"{name} is said otherwise here: {_OTHERWISE[name]}"
    if name in _WIRESHARK:
        return f"{name} is called {_WIRESHARK[name]} here"
    if name.lower() in _WORDS:
        return f"there is no column {name!r:.60}: a word stands in quotes, {name.lower()!r:.60}"
    near = difflib.get_close_matches(name.rpartition(".")[2].lower(), PACKETS, _MOST_NAMES, 0.5)
    told = f"near it: {', '.join(near)}" if near else "docs/json.md lists all of them under packets"
    return f"there is no column {name!r:.60} ({told})"


def understood(text: str, python: str, error: Exception) -> str:
    """Of an expression that is no expression: where it ends to be one, or the usual slip.

    Parameters
    ----------
    text : str
        As the user wrote it.
    python : str
        As Python's grammar read it.
    error : SyntaxError or ValueError
        What Python said.
    """
    bare = _QUOTED.sub('""', text)
    for slip, told in _SLIPS:
        if slip.search(bare):
            return told
    if bare.count("(") != bare.count(")"):
        missing = ")" if bare.count("(") > bare.count(")") else "("
        return f"a {missing} is missing"
    if '"' in bare.replace('""', "") or "'" in bare:
        return "a quotation mark is missing"
    place = getattr(error, "offset", None)
    rest = python[place - 1 :].strip() if place else ""
    return f"it cannot be understood from {rest!r:.40} on" if rest else "it ends too soon, or is no comparison"
