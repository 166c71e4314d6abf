"""Which form of the kernels is in use, compiled or interpreted."""

from __future__ import annotations

from roce_dissect.cli.common import complain

__all__ = ["form_sentence", "interpreted_kernels", "warn_if_slow"]


def interpreted_kernels() -> list[str]:
    """Names of the kernels that run interpreted; none in an ordinary installation."""
    from roce_dissect.capture import records
    from roce_dissect.decode import kernel
    from roce_dissect.flows import ledger, tracker

    modules = {"records": records, "kernel": kernel, "ledger": ledger, "tracker": tracker}
    return [name for name, module in modules.items() if not module.COMPILED]


def form_sentence() -> str:
    """A few words for ``--version``."""
    slow = interpreted_kernels()
    return f"interpreted: {', '.join(slow)}; the slow form" if slow else "compiled"


def warn_if_slow() -> None:
    """Say in one line on standard error that the slow form runs, if it does."""
    if interpreted_kernels():
        complain("the slow form is in use (no compiled kernels): install again where there is a C compiler")
