"""``python -m roce_dissect``: the same as the ``roce-dissect`` command."""

from __future__ import annotations

import sys

from roce_dissect.cli import main

if __name__ == "__main__":
    sys.exit(main())
