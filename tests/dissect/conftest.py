"""What the tests of dissect/ share: frames by hand, and their packets as rows with bytes."""

from __future__ import annotations

import importlib.util
import io
import struct
from pathlib import Path

import pytest

from roce_dissect.analysis.packet_frame import packet_rows
from roce_dissect.analysis.packet_sources import PacketSession
from roce_dissect.columns import packet_columns
from roce_dissect.dissect.frame import dissect


@pytest.fixture(scope="session")
def frames():
    """The module of frames by hand, `tests/decode/frames.py`."""
    path = Path(__file__).parents[1] / "decode" / "frames.py"
    spec = importlib.util.spec_from_file_location("dissect_frames", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def rows():
    """``rows(*frames, link_type=1, wire=None)``: rows of the RoCE packets among frames, as from a capture."""

    def read(*frames, link_type=1, wire=None, **more):
        capture = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link_type)
        lengths = wire or [len(frame) for frame in frames]
        pieces = [capture]
        for number, (frame, length) in enumerate(zip(frames, lengths, strict=True)):
            pieces += [struct.pack("<IIII", 1_700_000_000, number, len(frame), length), frame]
        source = io.BytesIO(b"".join(pieces))
        session = PacketSession(source, packet_columns(None), keep_going=False, with_bytes=True, **more)
        return [row for packets in session for row in packet_rows(packets)]

    return read


@pytest.fixture(scope="session")
def sections(rows):
    """``sections(frame)``: the sections of one frame by name, the last of several of a name."""

    def read(frame, **more):
        [row] = rows(frame, **more)
        return {section.name: section for section in dissect(row)}

    return read
