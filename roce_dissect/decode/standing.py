"""What part each packet takes in the flow tables, by its ICRC and by what its fields allow.

A packet whose ICRC is wrong is dropped by its receiver, without a NAK: counted in the tables it would turn the story of
its connection. But a wrong ICRC says this only where the sender makes right ones. And what came to UDP port 4791 need
not be RoCE at all: what its fields speak against must fit to something before it is taken in.

Every judgement depends on the packet and on earlier ones only, so that the size of the batches changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from roce_dissect.columns import JUDGED
from roce_dissect.decode.icrc import ICRC_COLUMNS, verify_icrcs
from roce_dissect.spec.bth import MULTICAST_QP, PARTITION_BITS
from roce_dissect.spec.headers import HAS_AETH, HAS_BTH
from roce_dissect.spec.opcodes import HEADERS, OPERATIONS, Transport
from roce_dissect.terms import IcrcStatus, Standing

__all__ = ["STANDING_COLUMNS", "Judge", "Judgements"]

#: Decoded columns that a `Judge` needs.
STANDING_COLUMNS = tuple(
    dict.fromkeys((*ICRC_COLUMNS, "src", "dest_qp", "p_key", "syndrome", "reserved_by_fecn", "reserved_by_ack"))
)

#: The least path MTU that was seen, of FPGA stacks; the greatest of IBTA is 4096.
_LEAST_MTU = 64
_LAST_SPECIAL_QP = 1  # 0: subnet management, 1: the GSI
_SYNDROME_RESERVED = 0x80


def _class_table() -> tuple[np.ndarray, np.ndarray]:
    """bool[256] each: operations that carry exactly one path MTU; those of connected QPs."""
    full, connected = np.zeros(256, bool), np.zeros(256, bool)
    for opcode in HEADERS:
        operation = OPERATIONS.get(opcode & 0x1F, ("", 0))[0]
        full[opcode] = operation.endswith(("_FIRST", "_MIDDLE"))
        connected[opcode] = opcode & 0xE0 not in (Transport.UD, Transport.CNP)
    return full, connected


_FULL, _CONNECTED = _class_table()


@dataclass(slots=True)
class Judgements:
    """How many packets were judged how.

    Attributes
    ----------
    icrcs : numpy.ndarray
        int64[len(IcrcStatus)], packets by what their ICRC says.
    odd_flushes : int
        Of the bad ones, FLUSHes with the ICRC of Linux rxe 6.12.
    damaged : int
        Packets that take no part.
    """

    icrcs: np.ndarray = field(default_factory=lambda: np.zeros(len(IcrcStatus), np.int64))
    odd_flushes: int = 0
    damaged: int = 0

    def count(self, columns: Mapping[str, np.ndarray], rows: int) -> None:
        """Add the first `rows` packets, whose columns are `Judge.columns`."""
        self.icrcs += np.bincount(columns["icrc_status"][:rows], minlength=len(self.icrcs))
        self.odd_flushes += int(np.count_nonzero(columns["odd_flush"][:rows]))
        self.damaged += int(np.count_nonzero(columns["standing"][:rows] == Standing.DAMAGED))


class Judge:
    """Keeps what is known of each sender's ICRCs.

    Parameters
    ----------
    verify : bool
        Whether to verify ICRCs.
    hosts : int
        Rows of the hosts table.
    length : int
        Packets of a batch, at most.

    Attributes
    ----------
    columns : dict of str to numpy.ndarray
        ``icrc_status``, ``standing``: uint8; ``odd_flush``, bool: FLUSHes with the ICRC of Linux rxe 6.12. All of the
        latest batch.
    """

    def __init__(self, verify: bool, hosts: int, length: int) -> None:
        self.columns = {name: np.zeros(length, np.uint8) for name in JUDGED} | {"odd_flush": np.zeros(length, bool)}
        self._verify = verify
        self._right = np.zeros(hosts, bool)  # hosts of which a right ICRC was seen
        self._wrong = np.zeros(hosts, np.int64)  # the last wrong ICRC of each host, and 1 << 32; 0: none

    def judge(self, columns: dict[str, np.ndarray], rows: int, data: np.ndarray) -> None:
        """Fill `columns` for the first `rows` decoded packets.

        Parameters
        ----------
        columns : mapping of str to numpy.ndarray
            At least `STANDING_COLUMNS`.
        rows : int
            Valid rows.
        data : numpy.ndarray
            uint8, the bytes that ``offset`` counts in.
        """
        status, standing = (self.columns[name][:rows] for name in JUDGED)
        standing[:] = Standing.FULL
        self.columns["odd_flush"][:rows] = False
        if self._verify:
            whole, odd = verify_icrcs(columns, rows, data, status)
            if len(whole):
                self._judge_whole(columns, whole, odd)
        else:
            status[:] = IcrcStatus.NONE
        told_by_fields = (status != IcrcStatus.GOOD) & (standing != Standing.DAMAGED)
        if told_by_fields.any():
            standing[told_by_fields & _doubtful(columns, rows)] = Standing.DOUBTFUL

    def _judge_whole(self, columns: dict[str, np.ndarray], whole: np.ndarray, odd: np.ndarray) -> None:
        """Wrong ICRCs: of a sender that makes right ones, of one that makes none, of something else."""
        status, standing = (self.columns[name] for name in JUDGED)
        source = columns["src"][whole]
        good = status[whole] == IcrcStatus.GOOD
        if not good.all():
            first_good = np.full(len(self._right), len(whole) + 1, np.int64)
            np.minimum.at(first_good, source[good], np.flatnonzero(good))
            wrong = np.flatnonzero(~good)
            trusted = self._right[source[wrong]] | (first_good[source[wrong]] < wrong)
            made_up = self._made_up(source[wrong], columns["icrc"][whole[wrong]], ~trusted)
            status[whole[wrong[made_up]]] = IcrcStatus.PLACEHOLDER
            bad = ~made_up & ~odd[wrong]
            standing[whole[wrong[bad & trusted]]] = Standing.DAMAGED
            standing[whole[wrong[bad & ~trusted]]] = Standing.UNPROVEN
            self.columns["odd_flush"][whole[wrong]] = odd[wrong] & ~made_up
        self._right[source[good]] = True
        self._right[0] = False  # 0 stands for many hosts

    def _made_up(self, source: np.ndarray, icrc: np.ndarray, untrusted: np.ndarray) -> np.ndarray:
        """Which of the wrong ICRCs are 0, or the same as the one before of a sender that never had a right one."""
        values = icrc.astype(np.int64) | 1 << 32
        order = np.argsort(source, kind="stable")
        by_source = source[order]
        first = np.ones(len(order), bool)
        first[1:] = by_source[1:] != by_source[:-1]
        before = np.empty(len(order), np.int64)
        before[1:] = values[order][:-1]
        before[first] = self._wrong[by_source[first]]
        same = np.empty(len(order), bool)
        same[order] = before == values[order]
        last = np.append(first[1:], True)
        self._wrong[by_source[last]] = values[order[last]]
        made_up: np.ndarray = (icrc == 0) | (same & untrusted)
        return made_up


def _doubtful(columns: dict[str, np.ndarray], rows: int) -> np.ndarray:
    """Of the first `rows` packets those in which something speaks against RoCE, where no ICRC speaks for it.

    Reserved bits that are set, an invalid P_Key, a QP that the transport cannot have, a FIRST or MIDDLE packet that no
    path MTU allows. Of random bytes three in a million pass this, version and opcode.
    """
    opcode, qp = columns["opcode"][:rows], columns["dest_qp"][:rows]
    payload, present = columns["payload_len"][:rows], columns["present"][:rows]
    doubtful = (columns["reserved_by_fecn"][:rows] | columns["reserved_by_ack"][:rows]) != 0
    doubtful |= (columns["p_key"][:rows] & PARTITION_BITS) == 0
    doubtful |= _CONNECTED[opcode] & ((qp <= _LAST_SPECIAL_QP) | (qp == MULTICAST_QP))
    odd_size = (payload & (payload - np.uint32(1))) != 0
    odd_size |= (payload < _LEAST_MTU) | (columns["pad_count"][:rows] != 0)
    doubtful |= _FULL[opcode] & odd_size
    doubtful |= ((present & HAS_AETH) != 0) & (columns["syndrome"][:rows] >= _SYNDROME_RESERVED)
    return doubtful & ((present & HAS_BTH) != 0)
