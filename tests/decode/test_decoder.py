"""The decoder: a choice of columns, batches, several files."""

from __future__ import annotations

import numpy as np
import pytest

from roce_dissect.capture.states import BATCH
from roce_dissect.columns import PACKETS, TRACKED
from roce_dissect.decode.decoder import Decoder
from roce_dissect.errors import ArgumentError


def test_projection(kernel, frames, records):
    """Any choice of columns in any order gives the values that all columns together give."""
    rng = np.random.default_rng(7)
    given = records([frames.v2(opcode, b"xy", psn=n) for n, opcode in enumerate(sorted(frames.CHAINS))])
    names = [name for name, column in PACKETS.items() if column.field is not None and name not in ("icrc", "present")]
    everything = Decoder(tuple(names), kernel=kernel)
    rows = everything.decode(given)
    for _ in range(10):
        chosen = tuple(rng.permutation(names)[: int(rng.integers(1, 8))].tolist())
        decoder = Decoder(chosen, kernel=kernel)
        assert decoder.decode(given) == rows
        assert set(decoder.columns) == set(chosen)
        for name in chosen:
            assert (decoder.columns[name][:rows] == everything.columns[name][:rows]).all(), name


def test_dtypes():
    names = tuple(name for name, column in PACKETS.items() if column.field is not None)
    columns = Decoder(names).columns
    for name in names:
        expected = "uint32" if PACKETS[name].dtype == "address" else PACKETS[name].dtype
        assert columns[name].dtype == np.dtype(expected), name
        assert len(columns[name]) == BATCH


@pytest.mark.parametrize("name", ["file", "frame", "operation", "nonsense", *TRACKED])
def test_columns_that_no_kernel_fills(name):
    with pytest.raises(ArgumentError, match=name):
        Decoder(("psn", name))


def test_frame_key_names_file_and_frame(frames, records):
    decoder = Decoder(("frame_key",))
    rows = decoder.decode(records([frames.v2(4)] * 3, first_frame=1000), file=5)
    keys = decoder.columns["frame_key"][:rows].tolist()
    assert [(key >> 40, key & (1 << 40) - 1) for key in keys] == [(5, 1000), (5, 1001), (5, 1002)]


def test_batch_of_any_size(frames, records):
    decoder = Decoder(("psn",))
    assert decoder.decode(records([])) == 0
    assert decoder.decode(records([frames.v2(4)] * BATCH)) == BATCH
    with pytest.raises(ArgumentError, match=str(BATCH + 1)):
        decoder.decode(records([b""] * (BATCH + 1)))
