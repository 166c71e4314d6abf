"""The vocabulary, and its C constants."""

from __future__ import annotations

from pathlib import Path

import pytest

from roce_dissect import layout, terms
from roce_dissect.flows import states
from roce_dissect.terms import (
    Accepted,
    EndedBy,
    EventKind,
    MessageStatus,
    PairedBy,
    Role,
    Status,
    Trigger,
    Verdict,
    names,
)

PAGE = (Path(__file__).parents[1] / "docs" / "semantics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("prefix", "vocabulary", "module"),
    [
        ("VERDICT_", Verdict, states),
        ("ROLE_", Role, states),
        ("KIND_", EventKind, states),
        ("PAIRED_BY_", PairedBy, states),
        ("STATUS_", Status, layout),
    ],
)
def test_constants_of_the_kernels(prefix, vocabulary, module):
    constants = {name.removeprefix(prefix): value for name, value in vars(module).items() if name.startswith(prefix)}
    assert constants
    assert {name: int(vocabulary[name]) for name in constants} == constants


def test_accepted_constants():
    words = {"YES": "ACCEPTED", "DUPLICATE": "DUPLICATE", "OUT_OF_SEQUENCE": "OUT_OF_SEQUENCE"}
    words |= {"DISCARDED": "DISCARDED", "QP_ERROR": "QP_ERROR"}
    for name, word in words.items():
        assert getattr(states, f"ACCEPTED_{name}") == Accepted[word]


def test_names():
    assert names(Verdict) == {0: "none", 1: "first", 2: "new", 3: "gap", 4: "late", 5: "resent", 6: "copy"}
    for vocabulary in (Accepted, EventKind, PairedBy, Role, Status, Verdict):
        assert min(names(vocabulary)) == 0


@pytest.mark.parametrize("vocabulary", [Verdict, Accepted, Role, Trigger, MessageStatus, EndedBy])
def test_every_word_is_explained(vocabulary):
    """docs/semantics.md has each word that a user meets, as code."""
    missing = [word for word in names(vocabulary).values() if f"`{word}`" not in PAGE and word != "none"]
    assert missing == []


def test_confidence():
    assert set(terms.CONFIDENCE) == set(PairedBy)
    assert [terms.CONFIDENCE[by] for by in sorted(PairedBy)] == sorted(terms.CONFIDENCE.values())
    for by in PairedBy:
        if by is not PairedBy.NONE:
            row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{by.name.lower()}` |"))
            assert float(row.strip("| ").rpartition("|")[2]) == terms.CONFIDENCE[by]
