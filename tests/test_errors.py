"""The exception tree."""

from __future__ import annotations

import pickle

import pytest

from roce_dissect import errors


def test_tree():
    """As the module's docstring draws it."""
    assert errors.CaptureError.__base__ is errors.RoceDissectError
    assert errors.NotACaptureError.__base__ is errors.CaptureError
    assert errors.LiveError.__base__ is errors.RoceDissectError
    assert errors.ArgumentError.__bases__ == (errors.RoceDissectError, ValueError)
    assert errors.RoceDissectError.__base__ is Exception
    drawn = errors.__doc__
    assert all(name in drawn for name in errors.__all__)


@pytest.mark.parametrize("kind", [errors.CaptureError, errors.NotACaptureError])
def test_capture_error(kind):
    error = kind("a.pcap", "a record of 5 bytes", 40)
    assert str(error) == "a.pcap: a record of 5 bytes (at byte 40)"
    assert (error.path, error.reason, error.offset) == ("a.pcap", "a record of 5 bytes", 40)
    assert str(kind("-", "no such file")) == "-: no such file"
    again = pickle.loads(pickle.dumps(error))  # as multiprocessing and Dask do
    assert type(again) is kind
    assert (str(again), again.offset) == (str(error), 40)
