"""Which packets of a capture are chosen: by an expression, by hosts, QPs and time, and how many of them.

A `Selection` says what the user wants; it is checked when it is made, before anything is read. A `Chooser` applies it
to one reading of a capture: it knows when the capture began, and how many packets it has let through.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from roce_dissect.decode.addresses import HostSet, parse_network
from roce_dissect.decode.expression import Expression
from roce_dissect.decode.time_range import TimeRange, parse_time_range
from roce_dissect.errors import ArgumentError
from roce_dissect.spec.headers import HAS_BTH, HAS_DETH, HAS_VNI

if TYPE_CHECKING:
    from roce_dissect.decode.cm import Message
    from roce_dissect.decode.hosts import HostTable

__all__ = ["Chooser", "Ends", "Selection", "Way", "options_text"]

_MOST_QP = (1 << 24) - 1
_OF_A_WAY = ("src", "dst", "dest_qp", "time_ns", "present", "vni")
#: A file is read no further when so many frames in a row lie behind the wanted time by more than so long: capturing
#: hosts write frames of several queues out of order, but not by a second.
_FRAMES_BEHIND, _BEHIND_NS = 1000, 1_000_000_000


class Way(NamedTuple):
    """Where packets of a stream go to: addresses, VNI (-1: none) and QP, between two times in ns."""

    src: str
    dst: str
    vni: int
    dest_qp: int
    first_time_ns: int
    last_time_ns: int


@dataclass(frozen=True, slots=True)
class Ends:
    """What a first reading found out about the QPs of a selection: a BTH names only the destination's.

    Attributes
    ----------
    ways : tuple of Way
        Of the streams that come from one of the QPs.
    frames : tuple of int
        Keys of the frames that set their connections up and took them down.
    """

    ways: tuple[Way, ...] = ()
    frames: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which packets are chosen: those that everything given here holds for.

    Parameters
    ----------
    filter : str, optional
        Expression over columns of packets: `docs/filters.md`.
    hosts : str or sequence of str
        Addresses or networks, of which a packet's source or destination must lie in one.
    qps : sequence of int
        QPs, of which a packet must go to one or come from one.
    time : str, optional
        ``FROM..TO``.
    count : int, optional
        Only the first so many packets of those that all else holds for.
    ends : Ends, optional
        Where packets from the QPs go to; None: nobody has looked yet.

    Raises
    ------
    ArgumentError
        One of them cannot be understood; it begins with the parameter's name.
    """

    filter: str | None = None
    hosts: Sequence[str] = ()
    qps: Sequence[int] = ()
    time: str | None = None
    count: int | None = None
    ends: Ends | None = None
    expression: Expression | None = field(init=False, repr=False, compare=False)
    time_range: TimeRange | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__  # frozen: what was given is brought into one form, once
        put(self, "hosts", (self.hosts,) if isinstance(self.hosts, str) else _listed(self.hosts, "host"))
        put(self, "qps", _listed(self.qps, "qp"))
        for text in self.hosts:
            parse_network(_text(text, "host"), "host")
        for qp in self.qps:
            _demand_integer(qp, "qp", 0, _MOST_QP)
        if self.count is not None:
            _demand_integer(self.count, "count", 1, None)
        put(self, "qps", tuple(map(int, self.qps)))
        put(self, "expression", None if self.filter is None else Expression(_text(self.filter, "filter")))
        put(self, "time_range", None if self.time is None else parse_time_range(_text(self.time, "time")))

    def __bool__(self) -> bool:
        """Whether it leaves any packet out."""
        return not (self.filter is self.time is self.count is None) or bool(self.hosts or self.qps)

    def __str__(self) -> str:
        """As options of the command line, without the count."""
        return options_text(self.filter, self.hosts, self.qps, self.time)

    @property
    def columns(self) -> tuple[str, ...]:
        """Decoded columns that choosing needs."""
        needed: list[str] = []
        if self.expression is not None:
            needed += self.expression.columns
        if self.hosts:
            needed += ["src", "dst"]
        if self.qps:
            needed += [*_OF_A_WAY, "src_qp", "frame_key"]
        return tuple(dict.fromkeys((*needed, "time_ns")))

    @property
    def tracked(self) -> tuple[str, ...]:
        """Columns of the tracker that the expression names."""
        return () if self.expression is None else self.expression.tracked

    def demand_decoded(self) -> None:
        """Refuse columns of the tracker where the selection decides which packets it gets.

        Raises
        ------
        ArgumentError
            The expression names one.
        """
        if self.tracked:
            raise ArgumentError(
                f"filter: {self.tracked[0]} is known only when the flows have been followed, and this filter chooses "
                "what they are made of: it goes with packets (in Python: read_packets, iter_packets)"
            )


class Chooser:
    """Applies a selection to one reading of a capture.

    Parameters
    ----------
    selection : Selection
    hosts : HostTable
        What codes of addresses refer to.

    Attributes
    ----------
    chosen, left_out : int
        Packets that were chosen, and that were looked at and not chosen.
    from_ns, to_ns : int or None
        Bounds of time, since the epoch, once the capture has begun.
    limited : bool
        Reading ended before the capture did.
    last_ns : int or None
        Greatest time of a chosen packet.
    """

    def __init__(self, selection: Selection, hosts: HostTable) -> None:
        self.selection = selection
        self.chosen = self.left_out = 0
        self.from_ns: int | None = None
        self.to_ns: int | None = None
        self.limited = False
        self.last_ns: int | None = None
        self._hosts = hosts
        self._begun = False
        self._behind: dict[int, int] = {}  # frames in a row, by file
        self._named_hosts = HostSet(parse_network(text, "host") for text in selection.hosts)
        ends = selection.ends or Ends()
        self._ways = [
            (way, HostSet([parse_network(way.src, "src")]), HostSet([parse_network(way.dst, "dst")]))
            for way in ends.ways
        ]
        self._way_qps = np.unique(np.array([way.dest_qp for way in ends.ways], np.uint32))
        self._frames = np.array(sorted(ends.frames), np.int64)

    # -- what need not be read -----------------------------------------------------------------------------------------

    def begin(self, first_time_ns: int | None) -> None:
        """The capture begins at this time; only the first call counts."""
        if self._begun or first_time_ns is None:
            return
        self._begun = True
        if self.selection.time_range is not None:
            self.from_ns, self.to_ns = self.selection.time_range.bounds(first_time_ns)

    @property
    def full(self) -> bool:
        """Whether as many packets are chosen as were asked for."""
        return self.selection.count is not None and self.chosen >= self.selection.count

    def is_behind(self, first_time_ns: int | None) -> bool:
        """Whether a file that begins at this time holds nothing that is wanted."""
        return self.to_ns is not None and first_time_ns is not None and first_time_ns > self.to_ns + _BEHIND_NS

    def has_passed(self, file: int, times: np.ndarray) -> bool:
        """Whether a file need not be read on, after a batch with these times of its frames, int64."""
        if self.to_ns is None or len(times) == 0:
            return False
        before = np.flatnonzero(times <= self.to_ns + _BEHIND_NS)
        run = len(times) - 1 - int(before[-1]) if len(before) else self._behind.get(file, 0) + len(times)
        self._behind[file] = run
        return run >= _FRAMES_BEHIND

    # -- which packets -------------------------------------------------------------------------------------------------

    def mask(self, columns: Mapping[str, np.ndarray], rows: int, messages: Iterable[Message] = ()) -> np.ndarray | None:
        """Which of the first `rows` packets are chosen, whatever the count; None: all of them.

        Parameters
        ----------
        columns : mapping of str to numpy.ndarray
            At least `Selection.columns`, and `Selection.tracked`.
        rows : int
            Valid rows.
        messages : iterable of Message
            The CM messages among them.

        Returns
        -------
        numpy.ndarray or None
            bool[rows].
        """
        parts = []
        times = columns["time_ns"][:rows]
        if self.from_ns is not None and rows and times.min() < self.from_ns:
            parts.append(times >= self.from_ns)
        if self.to_ns is not None and rows and times.max() > self.to_ns:
            parts.append(times <= self.to_ns)
        if self.selection.hosts:
            ends = (self._named_hosts.of(columns[name][:rows], self._hosts) for name in ("src", "dst"))
            parts.append(np.logical_or(*ends))
        if self.selection.qps:
            parts.append(self._of_qps(columns, rows, messages))
        if self.selection.expression is not None:
            parts.append(self.selection.expression.evaluate(columns, rows, self._hosts))
        if not parts:
            return None
        mask = parts[0]
        for part in parts[1:]:
            mask &= part
        return None if mask.all() else mask

    def _of_qps(self, columns: Mapping[str, np.ndarray], rows: int, messages: Iterable[Message]) -> np.ndarray:
        """Packets that go to one of the QPs or come from one, as far as they or an earlier reading tell."""
        dest_qp, present = columns["dest_qp"][:rows], columns["present"][:rows]
        src_qp = columns["src_qp"][:rows]
        has_bth, has_deth = (present & np.uint32(HAS_BTH)) != 0, (present & np.uint32(HAS_DETH)) != 0
        mask = np.zeros(rows, bool)
        for qp in self.selection.qps:
            mask |= has_bth & (dest_qp == qp) | has_deth & (src_qp == qp)
        for message in messages:
            mask[message.row] |= message.qpn in self.selection.qps
        if len(self._frames):
            mask |= np.isin(columns["frame_key"][:rows], self._frames)
        if self._ways:
            others = np.flatnonzero(~mask & has_bth & np.isin(dest_qp, self._way_qps))
            mask[others] = self._on_their_ways({name: columns[name][others] for name in _OF_A_WAY})
        return mask

    def _on_their_ways(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Packets from one of the QPs, by where they go to."""
        mask = np.zeros(len(columns["src"]), bool)
        times = columns["time_ns"]
        vni = np.where(columns["present"] & np.uint32(HAS_VNI), columns["vni"].astype(np.int64), -1)
        for way, source, destination in self._ways:
            some = (columns["dest_qp"] == way.dest_qp) & (vni == way.vni)
            some &= (times >= way.first_time_ns) & (times <= way.last_time_ns)
            if some.any():
                some &= source.of(columns["src"], self._hosts) & destination.of(columns["dst"], self._hosts)
                mask |= some
        return mask

    # -- choosing ------------------------------------------------------------------------------------------------------

    def choose(
        self, columns: dict[str, np.ndarray], rows: int, messages: list[Message]
    ) -> tuple[dict[str, np.ndarray], int, list[Message]]:
        """Decoded packets without those that are not chosen, whatever the count.

        Returns
        -------
        columns : dict of str to numpy.ndarray
            Those given where all packets are chosen, else copies of the chosen ones.
        rows : int
            Valid rows.
        messages : list of Message
            The CM messages among them.
        """
        mask = self.mask(columns, rows, messages) if rows else None
        if mask is None:
            return columns, rows, messages
        kept = np.flatnonzero(mask)
        self.left_out += rows - len(kept)
        place = np.cumsum(mask) - 1
        messages = [dataclasses.replace(one, row=int(place[one.row])) for one in messages if mask[one.row]]
        return {name: column[kept] for name, column in columns.items()}, len(kept), messages

    def admit(self, times: np.ndarray) -> int:
        """How many of the next chosen packets, with these times, the count leaves room for; they are counted."""
        rows = len(times)
        if self.selection.count is not None:
            rows = min(rows, self.selection.count - self.chosen)
        self.chosen += rows
        if rows:
            latest = int(times[:rows].max())
            self.last_ns = latest if self.last_ns is None else max(self.last_ns, latest)
        self.limited |= self.full
        return rows

    def end_ns(self, last_time_ns: int | None) -> int | None:
        """When observation ended, in a capture whose last frame that was read has the time `last_time_ns`."""
        if last_time_ns is None:
            return None
        if self.full:
            return self.last_ns
        return last_time_ns if self.to_ns is None else min(last_time_ns, self.to_ns)

    def summary(self) -> dict[str, Any]:
        """What was chosen, as ``capture["selection"]`` has it (`docs/json.md`)."""
        selection = self.selection
        return {
            "filter": selection.filter,
            "hosts": list(selection.hosts),
            "qps": list(selection.qps),
            "time": selection.time,
            "count": selection.count,
            "from_time_ns": self.from_ns,
            "to_time_ns": self.to_ns,
            "chosen_packets": self.chosen,
            "left_out_packets": self.left_out,
            "limited": self.limited,
        }


def options_text(filter: str | None, hosts: Iterable[str], qps: Iterable[int], time: str | None) -> str:
    """A choice as options of the command line: ``--filter 'dscp == 26' --host 10.0.0.1``."""
    parts = [("--filter", filter)] if filter is not None else []
    parts += [("--time", time)] if time is not None else []
    parts += [("--host", host) for host in hosts] + [("--qp", f"{qp:#x}") for qp in qps]
    return " ".join(f"{name} {shlex.quote(' '.join(str(value).split()))}" for name, value in parts)


def _listed(values: Any, what: str) -> tuple[Any, ...]:
    try:
        return tuple(values)
    except TypeError:
        raise ArgumentError(f"{what}: {values!r:.60} is not a sequence") from None


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"{what}: {value!r:.60} is not text")
    return value


def _demand_integer(value: Any, what: str, least: int, most: int | None) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise ArgumentError(f"{what}: {value!r:.60} is not an integer")
    if value < least or (most is not None and value > most):
        bounds = f"from {least} to {most:#x}" if most is not None else f"at least {least}"
        raise ArgumentError(f"{what}: {int(value)} is not {bounds}")
