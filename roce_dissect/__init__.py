"""RoCE traffic, from packets to the cause: dissector, flow reconstruction, analysis.

>>> import roce_dissect as rd
>>> result = rd.analyze("trace.pcapng")  # doctest: +SKIP

Names are loaded when they are first used: importing this package costs no pandas, Scapy or matplotlib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_dissect._version import __version__
from roce_dissect.errors import ArgumentError, CaptureError, LiveError, NotACaptureError, RoceDissectError

if TYPE_CHECKING:
    from roce_dissect.api import Analysis, analyze, iter_packets, read_packets, track

__all__ = [
    "Analysis",
    "ArgumentError",
    "CaptureError",
    "LiveError",
    "NotACaptureError",
    "RoceDissectError",
    "__version__",
    "analyze",
    "iter_packets",
    "read_packets",
    "track",
]

_FROM_API = frozenset({"Analysis", "analyze", "iter_packets", "read_packets", "track"})


def __getattr__(name: str) -> Any:
    if name in _FROM_API:
        from roce_dissect import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
