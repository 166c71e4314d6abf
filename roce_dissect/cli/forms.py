"""What the commands say of the form of the kernels, compiled or interpreted."""

from __future__ import annotations

from roce_dissect.cli.common import complain

__all__ = ["form_sentence", "warn_if_slow"]


def form_sentence() -> str:
    """A few words for ``--version``."""
    from roce_dissect.analysis.forms import interpreted_kernels

    slow = interpreted_kernels()
    return f"interpreted: {', '.join(slow)}; the slow form" if slow else "compiled"


def warn_if_slow() -> None:
    """Say in one line on standard error that the slow form runs, if it does."""
    from roce_dissect.analysis.forms import interpreted_kernels

    if interpreted_kernels():
        complain("the slow form is in use (no compiled kernels): reinstall where a C compiler is available")
