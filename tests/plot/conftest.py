"""Fixtures of the pictures' tests: no display, samples from ``pcaps/``, packets made by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest

import roce_dissect as rd

mpl.use("Agg")

SAMPLES = Path(__file__).parents[2] / "pcaps"
A, B = "192.0.2.1", "192.0.2.2"
WRITE_MIDDLE, READ_REQUEST, READ_ONLY, ACKNOWLEDGE, CNP = 0x07, 0x0C, 0x10, 0x11, 0x81


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Pictures of one test are not left to the next."""
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="session")
def sample() -> Callable[[str], rd.Analysis]:
    """``sample("imp_loss1_write.server")``: the analysis of a sample capture, made once."""
    known: dict[str, rd.Analysis] = {}

    def analysis(name: str) -> rd.Analysis:
        if name not in known:
            known[name] = rd.analyze(SAMPLES / f"{name}.pcap.gz")
        return known[name]

    return analysis


@pytest.fixture
def captures() -> Path:
    """Folder of real captures, named by the environment variable ``ROCE_DISSECT_CAPTURES``."""
    folder = os.environ.get("ROCE_DISSECT_CAPTURES")
    if not folder:
        pytest.skip("ROCE_DISSECT_CAPTURES does not name a folder of captures")
    path = Path(folder)
    return path / "softroce" if (path / "softroce").is_dir() else path


@pytest.fixture
def made() -> Callable[..., rd.Analysis]:
    """``made((time_us, "A", opcode, psn, {...}), ...)``: packets between A (QP 18) and B (QP 17), tracked."""

    def analysis(*packets: tuple) -> rd.Analysis:
        rows = []
        for number, (time_us, source, opcode, psn, *more) in enumerate(packets, 1):
            row = {
                "frame": number,
                "time_ns": 1_700_000_000_000_000_000 + int(time_us * 1000),
                "src": A if source == "A" else B,
                "dst": B if source == "A" else A,
                "dest_qp": 17 if source == "A" else 18,
                "opcode": opcode,
                "psn": psn,
                "payload_len": 1024 if opcode in (WRITE_MIDDLE, READ_ONLY) else 0,
                "syndrome": 0x1F if opcode in (READ_ONLY, ACKNOWLEDGE) else None,
                "ip_id": number & 0xFFFF,
                "ecn": 0,
            }
            rows.append(row | (more[0] if more else {}))
        frame = pd.DataFrame(rows)
        frame["syndrome"] = frame["syndrome"].astype("UInt8")
        return rd.track(frame)

    return analysis
