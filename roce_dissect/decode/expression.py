"""Filter expressions: text that chooses packets by their columns, such as ``dscp == 26 and syndrome & 0x60 == 0x60``.

`docs/filters.md` describes the language. The text is read with Python's own grammar, and of that only what stands here
is taken: comparisons of columns with constants and with each other, arithmetic, and the three words that join them.
Nothing of it is ever executed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect.columns import MADE_FROM, PACKETS, TRACKED
from roce_dissect.decode import named_values
from roce_dissect.decode.named_values import NAMED, Named, named_truth
from roce_dissect.decode.operands import (
    Batch,
    Number,
    Truth,
    arithmetic,
    both,
    column_number,
    compare,
    constant,
    either,
    negated,
    presence_of,
)
from roce_dissect.decode.suggestions import understood, unknown_name
from roce_dissect.errors import ArgumentError

if TYPE_CHECKING:
    from roce_dissect.decode.hosts import HostTable

__all__ = ["Expression"]

_MOST_CHARACTERS = 10_000

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_REFUSED: dict[type[ast.AST], str] = {
    ast.Call: "functions cannot be called",
    ast.Subscript: "there is nothing to index",
    ast.IfExp: "there is no if: use and, or, not",
    ast.Lambda: "there are no functions",
    ast.JoinedStr: "there are no f-strings",
    ast.NamedExpr: "nothing can be assigned: a comparison is written ==",
    ast.Starred: "there is nothing to unpack",
    ast.Dict: "there are no dicts: several values stand in parentheses, (1, 2)",
}
_LISTS = (ast.Tuple, ast.List, ast.Set)

_PARTS = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"|(?P<mac>\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b)"
    r"|(?P<ip>(?<![\w.])\d+\.\d+\.\d+\.\d+(?:/\d+)?(?![\w.]))"
    r"|(?P<word>&&|\|\||!(?!=))"
    r"|(?P<comment>\#)",
)
_WORDS = {"&&": " and ", "||": " or ", "!": " not "}

_Value = Number | Truth | Named | str


class Expression:
    """A filter expression, checked and ready to be evaluated.

    Parameters
    ----------
    text : str
        The expression.

    Attributes
    ----------
    text : str
        As it was given.
    columns : tuple of str
        Decoded columns that it needs.
    tracked : tuple of str
        Columns of `roce_dissect.columns.TRACKED` that it names.

    Raises
    ------
    ArgumentError
        It cannot be understood: one line says what is wrong with it.

    Examples
    --------
    >>> Expression("dscp == 26 and psn % 2 == 0").columns
    ('present', 'dscp', 'psn')
    >>> Expression("dcsp == 26")
    Traceback (most recent call last):
    roce_dissect.errors.ArgumentError: filter: there is no column 'dcsp' (near it: dscp)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._named: dict[str, None] = {}
        try:
            # deep trees end in a RecursionError or a MemoryError, in Python's parser or here
            value = self._truth_of(_tree(text).body)
        except ArgumentError as error:
            raise ArgumentError(f"filter: {error}") from None
        except (RecursionError, MemoryError):
            raise ArgumentError("filter: it is nested too deeply") from None
        self._truth = value
        self.tracked = tuple(name for name in self._named if name in TRACKED)
        self.columns = tuple(
            dict.fromkeys(["present", *(MADE_FROM.get(name, name) for name in self._named if name not in TRACKED)])
        )

    def evaluate(self, columns: Mapping[str, np.ndarray], rows: int, hosts: HostTable) -> np.ndarray:
        """Which of the first `rows` packets it holds for, bool[rows].

        Parameters
        ----------
        columns : mapping of str to numpy.ndarray
            At least `Expression.columns`, and `Expression.tracked`.
        rows : int
            Valid rows.
        hosts : HostTable
            What codes of addresses refer to.
        """
        return self._truth.evaluate(Batch(columns, rows, hosts))

    # -- from the tree to operands -------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> _Value:
        if isinstance(node, ast.Name):
            return self._column(node.id)
        if isinstance(node, ast.Constant):
            return _literal(node.value)
        if isinstance(node, ast.BoolOp):
            parts = [self._truth_of(one) for one in node.values]
            return both(parts) if isinstance(node.op, ast.And) else either(parts)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Attribute):
            raise ArgumentError(unknown_name(ast.unparse(node)))
        if isinstance(node, _LISTS):
            raise ArgumentError("several values can stand only on the right of in and not in")
        raise ArgumentError(_REFUSED.get(type(node), f"{ast.unparse(node)!r:.60} has no meaning here"))

    def _column(self, name: str) -> Number | Named:
        column = PACKETS.get(name)
        if column is None:
            raise ArgumentError(unknown_name(name))
        self._named[name] = None
        return Named(column) if column.name in NAMED or column.terms is not None else column_number(column)

    def _truth_of(self, node: ast.expr) -> Truth:
        value = self._value(node)
        if not isinstance(value, Truth):
            raise ArgumentError(_no_truth(value, node))
        return value

    def _number_of(self, node: ast.expr, word: str) -> Number:
        value = self._value(node)
        if not isinstance(value, Number):
            raise ArgumentError(f"{word} takes integers, and {ast.unparse(node)!r:.60} is none")
        return value

    def _unary(self, node: ast.UnaryOp) -> Number | Truth:
        if isinstance(node.op, ast.Not):
            return negated(self._truth_of(node.operand))
        if isinstance(node.op, ast.Invert):
            value = self._value(node.operand)
            if isinstance(value, Truth):  # as pandas writes it
                return negated(value)
            return arithmetic("^", self._number_of(node.operand, "~"), constant(-1))
        if isinstance(node.op, ast.USub):
            return arithmetic("-", constant(0), self._number_of(node.operand, "-"))
        return self._number_of(node.operand, "+")

    def _binary(self, node: ast.BinOp) -> Number | Truth:
        word = _ARITHMETIC.get(type(node.op))
        if word is None:
            told = (
                "/ gives fractions: // divides integers"
                if isinstance(node.op, ast.Div)
                else "there is no such operator"
            )
            raise ArgumentError(f"{told}, in {ast.unparse(node)!r:.60}")
        if word in "&|":
            left, right = self._value(node.left), self._value(node.right)
            if isinstance(left, Truth) and isinstance(right, Truth):  # as pandas writes it
                return both([left, right]) if word == "&" else either([left, right])
            if isinstance(left, Truth) or isinstance(right, Truth):
                told = f"{word} binds more tightly than comparisons"
                raise ArgumentError(f"{told}: put those in {ast.unparse(node)!r:.60} into parentheses")
        return arithmetic(word, self._number_of(node.left, word), self._number_of(node.right, word))

    def _comparison(self, node: ast.Compare) -> Truth:
        operands = [node.left, *node.comparators]
        if any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.BitAnd | ast.BitOr) for one in operands[1:-1]):
            # "dscp == 26 & ecn == 3" means dscp == (26 & ecn) == 3, which nobody wants
            raise ArgumentError("& and | bind more tightly than comparisons: join those with and, or")
        parts = [
            self._pair(_COMPARISONS[type(op)], left, right)
            for op, left, right in zip(node.ops, operands, operands[1:], strict=False)
        ]
        return parts[0] if len(parts) == 1 else both(parts)

    def _pair(self, word: str, left: ast.expr, right: ast.expr) -> Truth:
        """One comparison of a chain."""
        if word in ("is", "is not"):
            return self._missing(word, left, right)
        if word in ("in", "not in"):
            truth = self._membership(left, right)
            return negated(truth) if word == "not in" else truth
        a, b = self._value(left), self._value(right)
        if isinstance(a, str) and isinstance(b, Named | Number):  # "10.0.0.1" == src
            a, b, left, right = b, a, right, left
            word = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(word, word)
        if isinstance(a, Named):
            return named_truth(a, word, b, ast.unparse(right))
        if isinstance(a, Number) and isinstance(b, Number):
            return compare(word, a, b)
        if isinstance(a, Number) and isinstance(b, str):
            return compare(word, a, constant(self._mac(left, b)))
        raise ArgumentError(f"{ast.unparse(left)!r:.60} cannot be compared with {ast.unparse(right)!r:.60}")

    def _membership(self, left: ast.expr, right: ast.expr) -> Truth:
        """``column in (value, ...)``; ``"part" in operation``; ``src in "10.0.0.0/8"``."""
        if isinstance(right, _LISTS):
            if not right.elts:
                raise ArgumentError("an empty list holds nothing")
            a = self._value(left)
            if isinstance(a, Named):
                return named_values.any_of(a, [(self._value(one), ast.unparse(one)) for one in right.elts])
            return either([self._pair("==", left, one) for one in right.elts])
        a, b = self._value(left), self._value(right)
        if isinstance(a, str) and isinstance(b, Named):
            return named_values.part_of(a, b)
        if isinstance(a, Named) and isinstance(b, str):
            return named_truth(a, "==", b, ast.unparse(right))
        raise ArgumentError(f"in takes several values in parentheses on its right: {ast.unparse(left):.60} in (1, 2)")

    def _missing(self, word: str, left: ast.expr, right: ast.expr) -> Truth:
        """``column is None``, ``column is not None``."""
        if not (isinstance(left, ast.Name) and isinstance(right, ast.Constant) and right.value is None):
            raise ArgumentError(f"{word} goes with None only, for what a packet lacks: vlan_id {word} None")
        self._column(left.id)
        presence = tuple(presence_of(PACKETS[left.id]))

        def there(batch: Batch) -> np.ndarray:
            return batch.there(presence[0]).copy() if presence else np.ones(batch.rows, bool)

        return Truth(there) if word == "is not" else negated(Truth(there))

    def _mac(self, column: ast.expr, text: str) -> int:
        """A MAC address as the integer that its column holds."""
        if not (isinstance(column, ast.Name) and column.id in ("eth_src", "eth_dst")):
            raise ArgumentError(f"{ast.unparse(column)!r:.60} holds integers: {text!r:.60} is none")
        digits = re.fullmatch(r"([0-9A-Fa-f]{2})[:-]?" * 5 + "([0-9A-Fa-f]{2})", text.strip())
        if digits is None:
            raise ArgumentError(f"{text!r:.60} is no MAC address (00:11:22:33:44:55)")
        return int("".join(digits.groups()), 16)


def _tree(text: str) -> ast.Expression:
    """The expression in Python's grammar, with Wireshark's words and bare addresses taken for Python's."""
    if len(text) > _MOST_CHARACTERS:
        raise ArgumentError(f"{len(text):,} characters: {_MOST_CHARACTERS:,} at most")
    if not text.strip():
        raise ArgumentError("the expression is empty")
    python = _PARTS.sub(_in_python, text).replace("\n", " ").replace("\r", " ").strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of Python's own style: 1in x
            return ast.parse(python, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(understood(text, python, error)) from None


def _in_python(match: re.Match[str]) -> str:
    if match["comment"]:  # to Python all behind it is a comment, and would silently not count
        raise ArgumentError("a # has no meaning in an expression")
    if match["word"]:
        return _WORDS[match["word"]]
    if match["text"]:
        return match["text"]
    return f'"{match[0]}"'


def _literal(value: object) -> Number | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise ArgumentError(f"{value} is no value of a column: flags are 1 and 0")
    if isinstance(value, int):
        return constant(value)
    if value is None:
        raise ArgumentError("None goes with is and is not only: vlan_id is None")
    raise ArgumentError(f"{value!r:.60} is neither an integer nor text")


def _no_truth(value: _Value, node: ast.expr) -> str:
    """What to write instead of a value that stands where true or false is wanted."""
    told = f"{ast.unparse(node)!r:.60} alone is neither true nor false: compare it"
    if not isinstance(node, ast.Name):
        return told
    compared = f"{node.id} == {named_values.example(value.column)}" if isinstance(value, Named) else f"{node.id} == 1"
    return f"{told} ({compared}), or ask whether a packet has it ({node.id} is not None)"
