"""What the tests of capture/ share: hand-written captures, and a capture read to its end."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from roce_dissect.capture.reader import Capture
from roce_dissect.capture.source import RawSource
from roce_dissect.errors import CaptureError


@pytest.fixture(scope="session")
def build():
    """The module `builders`."""
    spec = importlib.util.spec_from_file_location("capture_builders", Path(__file__).with_name("builders.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Result:
    """Everything that a capture gave: rows (time, wire_len, link_type, bytes), the error, the capture itself."""

    def __init__(self, capture):
        self.capture = capture
        self.rows = []
        self.error = None
        try:
            for records in capture:
                assert records.first_frame == len(self.rows) + 1
                for i in range(records.count):
                    start, size = int(records.offset[i]), int(records.cap_len[i])
                    assert 0 <= start <= start + size <= len(records.data)
                    data = records.data[start : start + size].tobytes()
                    self.rows.append(
                        (int(records.time_ns[i]), int(records.wire_len[i]), int(records.link_type[i]), data)
                    )
        except CaptureError as error:
            self.error = error
        assert capture.frames == len(self.rows)

    def summary(self):
        c = self.capture
        return (
            self.rows,
            str(self.error),
            (c.format, c.frames, c.sliced_frames, c.first_time_ns, c.last_time_ns, c.link_types, c.offset, c.truncated),
        )


class Dribble(io.RawIOBase):
    """A file object that gives at most `size` bytes a read."""

    def __init__(self, data, size):
        self.stream = io.BytesIO(data)
        self.size = size

    def readinto(self, buffer):
        piece = self.stream.read(min(self.size, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.fixture(scope="session")
def read(load_form):
    """``read(data, form=None, piece=None)``: a Result; a CaptureError of the header is raised."""

    def read_all(data, form=None, piece=None):
        file = io.BytesIO(data) if piece is None else Dribble(data, piece)
        options = {}
        if form is not None:
            kernel = load_form("roce_dissect.capture.records", form)
            options = {"walk": kernel.walk, "compiled": kernel.COMPILED}
        return Result(Capture(RawSource(file, "test"), **options))

    return read_all


@pytest.fixture(params=["compiled", "interpreted"])
def form(request, load_form):
    """Each form of the walker that there is."""
    load_form("roce_dissect.capture.records", request.param)
    return request.param


@pytest.fixture(scope="session")
def tool():
    """``tool(name, *arguments)``: runs an outside program, returns its output; skips where it is absent."""

    def run(name, *arguments, stdin=None, check=True):
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed")
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, input=stdin, check=False)
        if check:
            assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def frames_by_tshark(tool):
    """``frames_by_tshark(path)``: rows (number, captured, wire, time in ns or None) as tshark reads them."""

    def run(path, check=True):
        fields = ["frame.number", "frame.cap_len", "frame.len", "frame.time_epoch"]
        options = [part for field in fields for part in ("-e", field)]
        text = tool("tshark", "-r", path, "-T", "fields", *options, check=check).decode()
        rows = []
        for line in text.splitlines():
            number, captured, wire, time = line.split("\t")
            seconds, _, fraction = time.partition(".")
            time_ns = int(seconds + fraction.ljust(9, "0")) if time else None
            rows.append((int(number), int(captured), int(wire), time_ns))
        return rows

    return run


@pytest.fixture(scope="session")
def softroce():
    """Folder of the Soft-RoCE captures."""
    folder = os.environ.get("ROCE_DISSECT_CAPTURES")
    if not folder:
        pytest.skip("ROCE_DISSECT_CAPTURES is not set")
    path = Path(folder)
    return path / "softroce" if (path / "softroce").is_dir() else path
