"""UDP packets from port 4791 to another: RoCE where their ICRC says so.

Both directions of a connection go *to* port 4791, but some FPGA stacks answer from it to the port that the request came
from. Nothing but the ICRC tells such a packet from any other UDP packet with that source port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from roce_dissect import layout
from roce_dissect.decode.icrc import ICRC_COLUMNS, verify_icrcs
from roce_dissect.spec.headers import HAS_UDP
from roce_dissect.spec.net import PORT_ROCE_V2
from roce_dissect.terms import IcrcStatus, Status

__all__ = ["REPLY_COLUMNS", "keep_proven"]

#: Decoded columns that `keep_proven` needs.
REPLY_COLUMNS = (*ICRC_COLUMNS, "udp_dport")


def keep_proven(
    columns: Mapping[str, np.ndarray], rows: int, data: np.ndarray, ports: Sequence[int], tallies: np.ndarray
) -> int:
    """Take out of a batch what came from port 4791 and is no RoCE.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        Decoded columns, `REPLY_COLUMNS` among them; what is kept moves up in all of them.
    rows : int
        Valid rows.
    data : numpy.ndarray
        uint8, the bytes that ``offset`` counts in.
    ports : sequence of int
        UDP destination ports of RoCE v2 beside 4791.
    tallies : numpy.ndarray
        int64, frames by kind: those taken out become UDP again.

    Returns
    -------
    int
        Rows that are left.
    """
    port = columns["udp_dport"][:rows]
    asked = np.flatnonzero((port != PORT_ROCE_V2) & ((columns["present"][:rows] & HAS_UDP) != 0))
    if len(asked) == 0:  # nearly always
        return rows
    asked = asked[~np.isin(port[asked], np.array(ports, np.int64))]
    status = np.zeros(len(asked), np.uint8)
    verify_icrcs({name: columns[name][asked] for name in ICRC_COLUMNS}, len(asked), data, status)
    proven = (status == IcrcStatus.GOOD) & (columns["status"][asked] == Status.OK)
    keep = np.ones(rows, bool)
    keep[asked[~proven]] = False
    left = int(np.count_nonzero(keep))
    if left < rows:
        for column in columns.values():
            column[:left] = column[:rows][keep]
        tallies[layout.TALLY_ROCE] -= rows - left
        tallies[layout.TALLY_UDP] += rows - left
    return left
