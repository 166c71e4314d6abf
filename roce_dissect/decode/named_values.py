"""Columns that print as text, in filter expressions: addresses, operations, and words of a vocabulary.

Each holds small codes. What a constant means is looked up once, as a table of all codes that it stands for, so that
packets are compared by their codes alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from roce_dissect.columns import MADE_FROM, PACKETS, Column
from roce_dissect.decode.addresses import HostSet, parse_network
from roce_dissect.decode.operands import Batch, Number, Truth, masked, negated, presence_of
from roce_dissect.errors import ArgumentError
from roce_dissect.spec.opcodes import operation_name
from roce_dissect.terms import names

__all__ = ["NAMED", "Named", "any_of", "example", "named_truth", "part_of"]

#: Columns of text that are no vocabulary.
NAMED = tuple(name for name, column in PACKETS.items() if column.dtype in ("address", "str"))
_CODES = 256  # of an opcode or a vocabulary, which are uint8
_MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class Named:
    """A column whose codes print as text."""

    column: Column

    @property
    def is_address(self) -> bool:
        return self.column.dtype == "address"

    def codes(self, batch: Batch) -> np.ndarray:
        """The codes of a batch."""
        return batch.values(MADE_FROM.get(self.column.name, self.column.name))


def example(column: Column) -> str:
    """A constant that the column can be compared with."""
    return '"10.0.0.1"' if column.dtype == "address" else f'"{_texts(column.name)[1]}"'


def named_truth(left: Named, word: str, right: Any, text: str) -> Truth:
    """``==`` or ``!=`` with a constant, or with another column of the same kind; false where a value is missing.

    Raises
    ------
    ArgumentError
        Another comparison, a text that is no value of the column, or a column of another kind.
    """
    if word not in ("==", "!="):
        raise ArgumentError(f"{left.column.name} has no order: compare it with ==, != or in")
    if isinstance(right, Named):
        truth = _equal_columns(left, right)
        return truth if word == "==" else _present(negated(truth), left.column, right.column)
    truth = any_of(left, [(right, text)])
    return truth if word == "==" else _present(negated(truth), left.column)


def any_of(left: Named, values: Sequence[tuple[Any, str]]) -> Truth:
    """Whether a column holds any of some constants, each given with its text in the expression; false where missing."""
    column = left.column
    for value, text in values:
        if not isinstance(value, str):
            quoted = ' ("10.0.0.1")' if left.is_address else f": {_listed(column)}"
            told = "a number" if isinstance(value, Number) else "no constant"
            raise ArgumentError(f"{column.name} is compared with text in quotes{quoted}; {text:.60} is {told}")
    if left.is_address:
        hosts = HostSet(parse_network(value, column.name) for value, _ in values)
        return _present(Truth(lambda batch: hosts.of(left.codes(batch), batch.hosts)), column)
    table = np.zeros(_CODES, bool)
    for value, _ in values:
        table[_code(column, value)] = True
    return _in_table(left, table)


def part_of(text: str, right: Named) -> Truth:
    """``"WRITE" in operation``: whether the text is a part of what the column prints."""
    if right.column.name != "operation":
        raise ArgumentError(f"only operation has parts: {right.column.name} is compared with ==, != or in")
    wanted = _spelled(text)
    table = np.array([wanted in name for name in _texts("operation")])
    if not table.any():
        raise ArgumentError(f"no operation has {text!r:.60} in its name")
    return _in_table(right, table)


def _in_table(left: Named, table: np.ndarray) -> Truth:
    [*codes] = np.flatnonzero(table).tolist()
    if len(codes) == 1:  # comparing is faster than looking up
        only = np.uint8(codes[0])
        return _present(Truth(lambda batch: left.codes(batch) == only), left.column)
    return _present(Truth(lambda batch: table[left.codes(batch)]), left.column)


def _equal_columns(left: Named, right: Named) -> Truth:
    alike = (left.is_address and right.is_address) or left.column.terms is right.column.terms is not None
    if not alike and left.column.name != right.column.name:
        raise ArgumentError(f"{left.column.name} cannot be compared with {right.column.name}")
    return _present(Truth(lambda batch: left.codes(batch) == right.codes(batch)), left.column, right.column)


def _present(truth: Truth, *columns: Column) -> Truth:
    """A truth that is false where one of the columns has no value."""
    return masked(truth.evaluate, frozenset().union(*map(presence_of, columns)))


# -- words and their codes ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _texts(name: str) -> list[str]:
    """What each code of a column prints as; the codes of vocabularies have no holes."""
    terms = PACKETS[name].terms
    if terms is None:
        return [operation_name(opcode) for opcode in range(_CODES)]
    return list(names(terms).values())


def _code(column: Column, text: str) -> int:
    """The code of a word.

    Raises
    ------
    ArgumentError
        The column has no such word.
    """
    texts = _texts(column.name)
    wanted = _spelled(text) if column.name == "operation" else text.strip().lower().replace(" ", "_")
    if wanted in texts:
        return texts.index(wanted)
    near = difflib.get_close_matches(wanted, texts, 3, 0.5)
    told = f"near it: {', '.join(near)}" if near else f"there are: {_listed(column)}"
    raise ArgumentError(f"{column.name} is never {text!r:.60} ({told})")


def _spelled(text: str) -> str:
    """An operation's name as it is printed: ``RC WRITE ONLY``."""
    text = text.strip()
    return text.lower() if text.lower().startswith("opcode ") else text.upper().replace("_", " ")


def _listed(column: Column) -> str:
    texts = _texts(column.name)
    return ", ".join(texts[:_MOST_LISTED]) + (" ..." if len(texts) > _MOST_LISTED else "")
