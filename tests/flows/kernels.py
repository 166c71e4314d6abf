"""The Soft-RoCE captures beside the counters of the kernels that sent and received them.

One home for what `test_kernel_counters.py` and ``tools/kernel_table.py`` share: which address is which host, which
frames the kernels threw away, and where packets cannot say what a kernel counted.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import roce_dissect as rd

#: What is compared.
COUNTERS = (
    "duplicate_request",
    "out_of_seq_request",
    "rcvd_seq_err",
    "rcvd_rnr_err",
    "send_rnr_err",
    "retry_exceeded_err",
    "retry_rnr_exceeded_err",
    "sent_pkts",
    "rcvd_pkts",
)

HOSTS = ("server", "client")

_BEFORE = "the kernel counted before the capture began, and after it had ended"
_GOING_BACK = "rxe drops, uncounted, a NAK that comes when it has gone back and not yet sent the oldest message again"

#: (set, host, counter) -> why packets at that host do not give what its kernel counted.
REASONS = {
    ("big_write_8qp_loss01", "client", "rcvd_pkts"): "perftest ends at the first error, and the last 82 responses came "
    "to QPs that were gone; no RoCE packet says so",
    ("flt_rnr_retry_exceeded", "client", "rcvd_pkts"): "the last NAK came behind the RNR NAK that was one too many: "
    "the QP was in error",
    ("flt_wrong_dqpn", "server", "rcvd_pkts"): "no such QP: rxe drops all eight uncounted",
    ("cm_riostream", "server", "rcvd_pkts"): "the last WRITE came when the server had closed the QP: no answer, and "
    "the DREQ 8 ms later",
    ("cm_mckey", "server", "rcvd_pkts"): "ten datagrams to a multicast group: they stand under the group's address",
    ("cm_mckey", "client", "rcvd_pkts"): "its own ten datagrams to a multicast group, looped back within the host",
    ("imp_loss1_write", "client", "rcvd_seq_err"): _GOING_BACK,
    ("imp_loss5_ipv6", "client", "rcvd_seq_err"): _GOING_BACK,
    ("imp_lossw_middle10", "client", "rcvd_seq_err"): _GOING_BACK,
    ("imp_reorder", "client", "rcvd_seq_err"): _GOING_BACK,
    **{("midstream_capture_start", host, f"{way}_pkts"): _BEFORE for host in HOSTS for way in ("sent", "rcvd")},
    ("midstream_capture_start", "server", "duplicate_request"): _BEFORE,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One counter of one host: what its kernel counted, and what the packets at that host give."""

    name: str
    host: str
    counter: str
    kernel: int
    ours: int

    @property
    def equal(self) -> bool:
        """Whether both are the same."""
        return self.ours == self.kernel

    @property
    def reason(self) -> str:
        """Why they may differ, empty: no reason is known."""
        return REASONS.get((self.name, self.host, self.counter), "")


def captures(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Folder of the captures: `given` or ``ROCE_DISSECT_CAPTURES``, or ``softroce`` in it; None where neither is."""
    folder = given or os.environ.get("ROCE_DISSECT_CAPTURES")
    if not folder:
        return None
    path = Path(folder)
    return path / "softroce" if (path / "softroce").is_dir() else path


@cache
def truth(folder: Path) -> dict[str, dict[str, Any]]:
    """``truth.json``: by set, the counters of both hosts."""
    return json.loads((folder / "truth.json").read_text())


def host_of(address: str) -> str | None:
    """``server`` (its addresses end in 1, link-local ones too), ``client`` (in 2), or None: a group's."""
    ip = ipaddress.ip_address(address)
    return None if ip.is_multicast else {1: "server", 2: "client"}.get(int(ip) & 0xFF)


@cache
def analysis(folder: Path, name: str, side: str) -> rd.Analysis | None:
    """Set `name` as captured at `side`; None: no file."""
    path = folder / f"{name}.{side}.pcap.gz"
    if not path.exists():
        return None
    return rd.analyze(path)


def counted(result: rd.Analysis, host: str) -> dict[str, int]:
    """Counters of all addresses of `host`, as the packets give them."""
    rows = [address for address in result.counters.index if host_of(address) == host]
    return {name: int(result.counters.loc[rows, name].sum()) for name in result.counters.columns}


def rows(folder: Path) -> Iterator[Row]:
    """Yield each counter of each host that has a capture of its own, set by set.

    A counter that stayed 0 is not in ``truth.json``.
    """
    for name, run in truth(folder).items():
        for host in HOSTS:
            result = analysis(folder, name, host) if host in run else None
            if result is None:
                continue
            ours = counted(result, host)
            for counter in COUNTERS:
                yield Row(name, host, counter, run[host].get(counter, 0), ours.get(counter, 0))
