"""Packets as lines of text for people: whole columns at a time, by Arrow, without an object per packet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roce_dissect.cli.table_lines import joined, strings
from roce_dissect.spec.aeth import syndrome_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TEXT_COLUMNS", "text_lines"]

#: Columns that `text_lines` needs.
TEXT_COLUMNS = (
    "frame", "time_ns", "src", "dst", "operation", "dest_qp", "psn", "wire_len", "syndrome", "status", "standing",
    "verdict", "accepted", "missing_before",
)  # fmt: skip

#: What the responder made of a request is worth a word unless it just took it.
_TAKEN = ("none", "accepted")


def text_lines(packets: pd.DataFrame, start_ns: int) -> str:
    """One line a packet for people.

    Parameters
    ----------
    packets : pandas.DataFrame
        With `TEXT_COLUMNS`, and ``file`` when the lines are to name it.
    start_ns : int
        What times are printed relative to.
    """
    ways = pc.binary_join_element_wise(
        pc.utf8_lpad(strings(packets["src"]).fill_null("?"), 15),
        pc.utf8_rpad(strings(packets["dst"]).fill_null("?"), 15),
        " -> ",
    )
    columns: list[Any] = [
        pc.utf8_lpad(strings(packets["frame"]), 7),
        _seconds(packets["time_ns"].to_numpy(np.int64) - start_ns),
        ways,
        pc.utf8_rpad(strings(packets["operation"]).fill_null("(no BTH)"), 23),
        pc.binary_join_element_wise("QP ", pc.utf8_rpad(_hexadecimal(packets["dest_qp"]), 8), ""),
        pc.binary_join_element_wise("PSN ", pc.utf8_rpad(strings(packets["psn"]).fill_null("-"), 8), ""),
        pc.binary_join_element_wise("len ", pc.utf8_rpad(strings(packets["wire_len"]), 4), ""),
        _remarks(packets),
    ]
    if "file" in packets.columns:
        number = pa.array(packets["file"].to_numpy(np.int64) + 1)
        columns.insert(0, pc.utf8_lpad(pc.cast(number, pa.string()), 3))
    lines = pc.binary_join_element_wise(*columns, " ")
    return joined(pc.utf8_rtrim_whitespace(lines))


# -- columns -----------------------------------------------------------------------------------------------------------


def _seconds(time_ns: np.ndarray) -> pa.Array:
    """Nanoseconds as seconds with nine digits, ``   1.058997000``."""
    size = np.abs(time_ns)
    whole = pc.cast(pa.array(size // 1_000_000_000), pa.string())
    rest = pc.utf8_lpad(pc.cast(pa.array(size % 1_000_000_000), pa.string()), 9, padding="0")
    sign = pc.if_else(pa.array(time_ns < 0), _text("-"), _text(""))
    return pc.utf8_lpad(pc.binary_join_element_wise(sign, whole, ".", rest, ""), 14)


def _hexadecimal(values: pd.Series) -> pa.Array:
    """Few different numbers in many rows."""
    coded = pc.dictionary_encode(pa.array(values.array))
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    words = pa.array([f"{value:#x}" for value in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices).fill_null("-")


def _remarks(packets: pd.DataFrame) -> pa.Array:
    """Syndrome in words, status where not ``ok``, standing where not ``full``, verdict where not ``new``, what the
    responder made of it where not ``accepted``."""
    status = _unless(packets["status"], ("ok",))
    standing = _unless(packets["standing"], ("full",))
    verdict = _unless(packets["verdict"], ("none", "new"))
    missing = packets["missing_before"].to_numpy(np.int64)
    gap = pc.if_else(
        pa.array(missing > 0),
        pc.binary_join_element_wise(_text(" ("), pc.cast(pa.array(missing), pa.string()), " missing)", ""),
        _text(""),
    )
    verdict = pc.binary_join_element_wise(verdict, gap, "")
    accepted = pc.replace_substring(_unless(packets["accepted"], _TAKEN), "_", " ")
    parts = [_syndromes(packets["syndrome"]), status, standing, verdict, accepted]
    led = [pc.if_else(pc.equal(part, ""), _text(""), pc.binary_join_element_wise(", ", part, "")) for part in parts]
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*led, ""), 2)


def _unless(values: pd.Series, plain: tuple[str, ...]) -> pa.Array:
    """Names of a vocabulary, empty where there is nothing to say."""
    names = ["" if name in plain else str(name) for name in values.cat.categories]
    codes = values.cat.codes.to_numpy()
    return pa.array(names, pa.string()).take(pa.array(np.where(codes < 0, 0, codes)))


def _syndromes(values: pd.Series) -> pa.Array:
    words = pa.array([syndrome_name(syndrome) for syndrome in range(256)], pa.string())
    array = pa.array(values.array)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return words.take(array).fill_null("")


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.string())
