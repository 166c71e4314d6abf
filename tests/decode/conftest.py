"""What the tests of decode/ share: batches of frames, and a decoder for a few of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from roce_dissect.capture.reader import Records
from roce_dissect.columns import PACKETS
from roce_dissect.decode.decoder import INTERNAL, Decoder


@pytest.fixture(scope="session")
def mirrors():
    """The module `mirrors`."""
    spec = importlib.util.spec_from_file_location("decode_mirrors", Path(__file__).with_name("mirrors.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: All columns that the kernel fills.
COLUMNS = (*(name for name, column in PACKETS.items() if column.field is not None), *INTERNAL)


@pytest.fixture(scope="session")
def records():
    """``records(frames, wire=None, link_type=1)``: a batch with each frame in its place, nothing behind the last."""

    def make(given, wire=None, link_type=1, first_frame=1):
        lengths = np.array([len(frame) for frame in given], np.int64)
        offsets = np.zeros(len(given), np.int64)
        offsets[1:] = np.cumsum(lengths)[:-1]
        data = np.frombuffer(b"".join(given) or b"\0", np.uint8)
        count = len(given)
        return Records(
            data,
            count,
            offsets,
            lengths,
            lengths.copy() if wire is None else np.array(wire, np.int64),
            np.arange(count, dtype=np.int64) * 1000 + 1_700_000_000_000_000_000,
            np.full(count, link_type, np.uint16),
            first_frame,
        )

    return make


@pytest.fixture(scope="session", params=["compiled", "interpreted"])
def kernel(request, load_form):
    """Each form of the kernel that there is."""
    return load_form("roce_dissect.decode.kernel", request.param)


@pytest.fixture(scope="session")
def decode(kernel, records):
    """``decode(*frames)``: rows as dicts of plain integers, and the decoder, in each form of the kernel."""
    shared = {}

    def run(*given, names=COLUMNS, **options):
        if names not in shared:
            shared[names] = Decoder(names, kernel=kernel)
        decoder = shared[names]
        decoder.tallies[:] = 0
        rows = decoder.decode(records(given, **options))
        found = [{name: int(decoder.columns[name][row]) for name in names} for row in range(rows)]
        return found, decoder

    return run
