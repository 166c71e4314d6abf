"""Every counter of every host that has a capture of its own, against the kernel that counted there.

What packets cannot give is named, one by one, in `kernels.REASONS`. ``tools/kernel_table.py`` prints the same rows.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from roce_dissect import columns

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def rows(kernels, softroce):
    """All rows of the comparison."""
    return list(kernels.rows(softroce))


def test_counters_exist(kernels):
    assert set(kernels.COUNTERS) <= set(columns.COUNTERS)


def test_hosts_by_address(kernels):
    """IPv4, VLAN, IPv6, link-local; a multicast group is no host, whatever it ends in."""
    for network in ("192.168.100.", "192.168.101.", "fd00:100::", "fd00:101::", "fe80::5eff:fe00:"):
        assert [kernels.host_of(f"{network}{n}") for n in (1, 2, 3)] == ["server", "client", None]
    assert kernels.host_of("239.1.2.2") is None


@pytest.mark.parametrize("host", ["server", "client"])
@pytest.mark.parametrize(
    "counter",
    [
        "duplicate_request",
        "out_of_seq_request",
        "rcvd_seq_err",
        "rcvd_rnr_err",
        "send_rnr_err",
        "retry_exceeded_err",
        "retry_rnr_exceeded_err",
        "sent_pkts",
        "rcvd_pkts",
    ],
)
def test_counter_is_the_kernels(counter, host, rows):
    """Equal in every set, or with a reason; and no reason is kept that is not needed."""
    mine = [row for row in rows if (row.counter, row.host) == (counter, host)]
    differ = {row.name: (row.kernel, row.ours) for row in mine if not row.equal and not row.reason}
    assert differ == {}
    assert {row.name for row in mine if row.equal and row.reason} == set()
    assert len(mine) >= 55


def test_every_reason_is_one_of_the_rows(kernels, rows):
    assert set(kernels.REASONS) <= {(row.name, row.host, row.counter) for row in rows}


def test_what_is_compared_is_not_nothing(kernels, rows):
    """Each counter is told by a kernel somewhere, and agrees there."""
    agreeing = {row.counter for row in rows if row.equal and row.kernel}
    assert agreeing == set(kernels.COUNTERS)


def test_the_table(rows, softroce):
    """The tool prints a line for each row that is not 0 on both sides, and says how many there are."""
    command = [sys.executable, "tools/kernel_table.py", str(softroce)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    *_, last = done.stdout.splitlines()
    some = [row for row in rows if row.kernel or row.ours]
    equal = sum(row.equal for row in some)
    assert last.startswith(f"{equal} equal, {len(some) - equal} not")
    assert last.endswith(f"({len(rows) - len(some)} more are 0 at both)")
    assert len([line for line in done.stdout.splitlines() if " equal" in line]) == equal + 1
