"""Nodes, and how fields become nodes."""

from __future__ import annotations

import json

from roce_dissect.dissect.tree import Field, Node, fields_size, plain_bytes, read_header

HEADER = (
    Field("kind", 4),
    Field("label", 20, "hex"),
    Field("bit", 1, "dec", lambda value: "set" if value else "clear"),
    Field("rest", 7),
    Field("number", 32, "dec+hex", None, "psn"),
    Field("mac", 48, "mac"),
    Field("address", 32, "ipv4"),
    Field("gid", 128, "ipv6"),
    Field("raw", 24, "bytes"),
)
DATA = bytes.fromhex("ab cdef 85 00000010 02005e000001 c0a86401 00000000000000000000ffff0a000001 010203")


def read(data, end=99, **more):
    return read_header(b"\xff\xff" + data, 2, end, "header", "Header", HEADER, **more)


def test_values_places_and_text():
    section = read(DATA + b"more")
    assert fields_size(HEADER) == len(DATA)
    assert (section.whole, section.end, section.node.first_byte, section.node.size) == (True, 39, 2, 37)
    told = [(one.name, one.value, one.text, one.first_byte, one.size, one.bits) for one in section.node.children]
    assert told == [
        ("kind", 0xA, "10", 2, 1, (7, 4)),
        ("label", 0xBCDEF, "0xbcdef", 2, 3, (19, 0)),
        ("bit", 1, "1", 5, 1, (7, 7)),
        ("rest", 5, "5", 5, 1, (6, 0)),
        ("number", 16, "16 (0x10)", 6, 4, None),
        ("mac", 0x02005E000001, "02:00:5e:00:00:01", 10, 6, None),
        ("address", "192.168.100.1", "192.168.100.1", 16, 4, None),
        ("gid", "10.0.0.1", "10.0.0.1", 20, 16, None),
        ("raw", "010203", "01 02 03", 36, 3, None),
    ]
    assert section.node.children[2].meaning == "set"
    assert section.node.find("number").column == "psn"


def test_cut():
    for have in range(len(DATA)):
        section = read(DATA[:have])
        *shown, missing = section.node.children
        assert not section.whole
        assert all(one.first_byte + one.size <= 2 + have for one in shown)
        assert missing.meaning == f"{have} of 37 bytes captured"
        names = [one.name for one in shown] + missing.text.split(", ")
        assert names == [field.name for field in HEADER]
        assert section.node.size == have
        assert not any(one.column for one in shown)  # the kernel has no column of a header that is not whole


def test_cut_by_a_length():
    section = read(DATA, end=6, cut_by="left by a length")
    assert section.node.children[-1].meaning == "4 of 37 bytes left by a length"
    assert [one.name for one in section.node.children[:-1]] == ["kind", "label", "bit", "rest"]
    assert read(DATA, end=1).node.size == 0


def test_bytes():
    assert plain_bytes("raw", b"", 3).text == "none"
    assert plain_bytes("raw", bytes(4), 3).text == "00 00 00 00"
    assert plain_bytes("raw", bytes(5), 3).text == "5 zeros"
    long = plain_bytes("raw", bytes(range(40)), 3)
    assert long.text == bytes(range(16)).hex(" ") + " ..."
    assert bytes.fromhex(long.value) == bytes(range(40))


def test_walk_find_and_json():
    tree = Node("top", None, "Top", children=[Node("a", 1, "1", "one", 0, 1, (7, 4), "psn"), Node("b", "x", "x")])
    assert [node.name for node in tree.walk()] == ["top", "a", "b"]
    assert tree.find("b").value == "x"
    assert tree.find("top") is None
    assert json.loads(json.dumps(tree.as_dict())) == {
        "name": "top",
        "text": "Top",
        "children": [
            {
                "name": "a", "value": 1, "text": "1", "meaning": "one", "column": "psn", "first_byte": 0, "bytes": 1,
                "bits": [7, 4],
            },
            {"name": "b", "value": "x", "text": "x"},
        ],
    }  # fmt: skip
