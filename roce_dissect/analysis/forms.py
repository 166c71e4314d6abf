"""Which form of the kernels is in use, compiled or interpreted."""

from __future__ import annotations

from roce_dissect.capture import records
from roce_dissect.decode import kernel
from roce_dissect.flows import episodes, ledger, messages, responder, tracker

__all__ = ["interpreted_kernels"]

_KERNELS = {
    "records": records,
    "kernel": kernel,
    "ledger": ledger,
    "episodes": episodes,
    "messages": messages,
    "responder": responder,
    "tracker": tracker,
}


def interpreted_kernels() -> list[str]:
    """Names of the kernels that run interpreted; none in an ordinary installation."""
    return [name for name, module in _KERNELS.items() if not module.COMPILED]
