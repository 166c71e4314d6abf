"""What a filter expression is made of: numbers, truths, addresses and words, over the columns of a batch of packets.

Every operand is checked when it is made, and evaluated on whole columns. A number knows its bounds, so that nothing
ever overflows: what may leave 64 bits is refused before a packet is read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from roce_dissect.columns import FILE_SHIFT, FRAME_MASK, Column
from roce_dissect.errors import ArgumentError

if TYPE_CHECKING:
    from roce_dissect.decode.hosts import HostTable

__all__ = [
    "Batch",
    "Number",
    "Truth",
    "arithmetic",
    "both",
    "column_number",
    "compare",
    "constant",
    "either",
    "masked",
    "negated",
    "presence_of",
    "where_there",
]

#: (needs, any of) of a column: presence bits as in `roce_dissect.columns.Column`.
Presence = tuple[int, int]
_Condition = Callable[["Batch"], np.ndarray]

_INT64 = (-(1 << 63), (1 << 63) - 1)
_UINT64 = (0, (1 << 64) - 1)
#: Times are taken to lie within, as the tracker does, so that differences of them stay in range.
_MOST_TIME = 1 << 62
_BOUNDS = {"time_ns": (-_MOST_TIME, _MOST_TIME), "psn_ext": (-1, _MOST_TIME), "frame": (0, FRAME_MASK)}

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


class Batch:
    """Packets that an expression is evaluated on: the first `rows` rows of decoded columns, and their hosts."""

    def __init__(self, columns: Mapping[str, np.ndarray], rows: int, hosts: HostTable) -> None:
        self._columns = columns
        self.rows = rows
        self.hosts = hosts
        self._there: dict[Presence, np.ndarray] = {}

    def values(self, name: str) -> np.ndarray:
        """A column that the decoder or the tracker filled."""
        return self._columns[name][: self.rows]

    def there(self, presence: Presence) -> np.ndarray:
        """Which packets have the headers, bool; not to be written to."""
        found = self._there.get(presence)
        if found is None:
            needs, any_of = (np.uint32(bits) for bits in presence)
            present = self.values("present")
            found = (present & needs) == needs if needs else (present & any_of) != 0
            self._there[presence] = found
        return found


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false of each packet; `evaluate` gives an array of its own."""

    evaluate: Callable[[Batch], np.ndarray]


@dataclass(frozen=True, slots=True)
class Number:
    """An integer of each packet, within bounds, where the packet has what it is made from.

    Attributes
    ----------
    low, high : int
        Bounds; equal for a constant.
    evaluate : callable
        Values of a batch: int64, uint64, or a column's own type. Not to be written to.
    presence : frozenset of (int, int)
        What a packet must have, or the value is missing.
    conditions : tuple of callable
        Further ones: divisors that are not 0.
    """

    low: int
    high: int
    evaluate: Callable[[Batch], np.ndarray]
    presence: frozenset[Presence] = field(default_factory=frozenset)
    conditions: tuple[_Condition, ...] = ()

    @property
    def is_constant(self) -> bool:
        return self.low == self.high and not self.presence and not self.conditions


def constant(value: int) -> Number:
    """A number of the expression's own.

    Raises
    ------
    ArgumentError
        It has more than 64 bits.
    """
    if not _INT64[0] <= value <= _UINT64[1]:
        raise ArgumentError("a number of more than 64 bits")
    dtype = np.int64 if value <= _INT64[1] else np.uint64
    return Number(value, value, lambda batch: np.full(batch.rows, value, dtype))


def presence_of(column: Column) -> frozenset[Presence]:
    """What a packet must have so that a column has a value."""
    if column.needs or column.any_of:
        return frozenset([(column.needs, 0 if column.needs else column.any_of)])
    return frozenset()


def column_number(column: Column) -> Number:
    """A column of integers."""
    name = column.name
    limits = np.iinfo(column.dtype)
    low, high = _BOUNDS.get(name, (int(limits.min), int(limits.max)))
    if column.field is not None and name not in _BOUNDS:
        low, high = 0, column.field[2]
    derived: dict[str, Callable[[Batch], np.ndarray]] = {
        "file": lambda batch: batch.values("frame_key") >> FILE_SHIFT,
        "frame": lambda batch: batch.values("frame_key") & FRAME_MASK,
    }
    evaluate = derived.get(name, lambda batch: batch.values(name))
    return Number(low, high, evaluate, presence_of(column))


# -- truths ------------------------------------------------------------------------------------------------------------


def both(parts: list[Truth]) -> Truth:
    """All of them."""

    def evaluate(batch: Batch) -> np.ndarray:
        result = parts[0].evaluate(batch)
        for part in parts[1:]:
            result &= part.evaluate(batch)
        return result

    return Truth(evaluate)


def either(parts: list[Truth]) -> Truth:
    """Any of them."""

    def evaluate(batch: Batch) -> np.ndarray:
        result = parts[0].evaluate(batch)
        for part in parts[1:]:
            result |= part.evaluate(batch)
        return result

    return Truth(evaluate)


def negated(part: Truth) -> Truth:
    """Not: also true where a comparison was false because a value is missing."""
    return Truth(lambda batch: ~part.evaluate(batch))


def masked(
    evaluate: Callable[[Batch], np.ndarray],
    presence: frozenset[Presence],
    conditions: tuple[_Condition, ...] = (),
) -> Truth:
    """A truth that is false where a packet lacks something. The array that `evaluate` gives is written to.

    Parameters
    ----------
    evaluate : callable
        The truth of a batch where nothing lacks.
    presence : frozenset of (int, int)
        What a packet must have.
    conditions : tuple of callable
        What must hold besides.
    """
    if not presence and not conditions:
        return Truth(evaluate)

    def where_there(batch: Batch) -> np.ndarray:
        result = evaluate(batch)
        for bits in presence:
            result &= batch.there(bits)
        for condition in conditions:
            result &= condition(batch)
        return result

    return Truth(where_there)


def where_there(evaluate: Callable[[Batch], np.ndarray], *numbers: Number) -> Truth:
    """A truth about numbers; false where one of them is missing. The array that `evaluate` gives is written to."""
    presence = frozenset[Presence]().union(*(number.presence for number in numbers))
    return masked(evaluate, presence, tuple(one for number in numbers for one in number.conditions))


def compare(word: str, left: Number, right: Number) -> Truth:
    """A comparison of numbers; `word` is one of ``== != < <= > >=``."""
    relation = _COMPARISONS[word]
    if left.high < right.low or left.low > right.high:  # settled by the bounds, and perhaps beyond the column's type
        told = bool(relation(left.low, right.low))
        return where_there(lambda batch: np.full(batch.rows, told), left, right)
    if right.is_constant and not left.is_constant:
        # in the type that the left side has: its bounds hold the constant, and so does its type
        return where_there(lambda batch: relation(values := left.evaluate(batch), values.dtype.type(right.low)), left)
    if left.is_constant and not right.is_constant:
        return where_there(
            lambda batch: relation((values := right.evaluate(batch)).dtype.type(left.low), values), right
        )
    # NumPy 2 compares signed with unsigned integers by their values
    return where_there(lambda batch: relation(left.evaluate(batch), right.evaluate(batch)), left, right)


# -- arithmetic --------------------------------------------------------------------------------------------------------


def arithmetic(word: str, left: Number, right: Number) -> Number:
    """A number made of two.

    Raises
    ------
    ArgumentError
        A division by 0, a shift by anything but a constant from 0 to 63, or what may leave 64 bits.
    """
    if word in ("<<", ">>") and not (right.is_constant and 0 <= right.low <= 63):
        raise ArgumentError(f"{word} takes a constant from 0 to 63 on its right")
    divides = word in ("//", "%")
    if divides and right.is_constant and right.low == 0:
        raise ArgumentError("a division by 0")
    if left.is_constant and right.is_constant:
        return constant(_OPERATIONS[word](left.low, right.low))
    if word == "&":  # of a number that is not negative, a negative constant leaves the same bits as its unsigned form
        left, right = _unsigned(left, right), _unsigned(right, left)
    low, high = _bounds(word, left, right)
    least, most = min(low, left.low, right.low), max(high, left.high, right.high)
    if least >= _INT64[0] and most <= _INT64[1]:
        dtype: type[np.signedinteger | np.unsignedinteger] = np.int64
    elif least >= 0 and most <= _UINT64[1]:
        dtype = np.uint64
    else:
        raise ArgumentError(f"{word} may lead beyond 64 bits")
    operation = _OPERATIONS[word]
    conditions = left.conditions + right.conditions
    if divides and right.low <= 0 <= right.high:
        conditions += (lambda batch: right.evaluate(batch) != 0,)

    def evaluate(batch: Batch) -> np.ndarray:
        a = left.evaluate(batch).astype(dtype)
        b = dtype(right.low) if right.is_constant else right.evaluate(batch).astype(dtype)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 where the divisor is 0: missing, by its condition
            return np.asarray(operation(a, b))

    return Number(low, high, evaluate, left.presence | right.presence, conditions)


def _unsigned(one: Number, other: Number) -> Number:
    return constant(one.low & _UINT64[1]) if one.is_constant and one.low < 0 <= other.low else one


def _bounds(word: str, left: Number, right: Number) -> tuple[int, int]:
    """Least and greatest value of an operation."""
    if word == "+":
        return left.low + right.low, left.high + right.high
    if word == "-":
        return left.low - right.high, left.high - right.low
    if word in ("*", "<<", ">>"):
        found = [_OPERATIONS[word](a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        return min(found), max(found)
    positive = left.low >= 0 and right.low >= 0
    if word == "//":
        size = max(abs(left.low), abs(left.high))
        return (0, left.high) if positive else (-size, size)
    if word == "%":
        # the sign is the divisor's
        return min(right.low + 1, 0), max(right.high - 1, 0)
    if word == "&" and (left.low >= 0 or right.low >= 0):
        return 0, min(one.high for one in (left, right) if one.low >= 0)
    bits = max(one.high.bit_length() for one in (left, right))
    if positive:
        return 0, (1 << bits) - 1
    bits = max(bits, *(one.low.bit_length() for one in (left, right)))
    return -(1 << bits), (1 << bits) - 1
