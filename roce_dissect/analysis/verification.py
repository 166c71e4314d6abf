"""Our decoding against Wireshark's: the two readings of a capture in step, frame by frame and column by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from roce_dissect.analysis.packet_frame import packet_rows
from roce_dissect.analysis.packet_sources import PacketSession
from roce_dissect.analysis.traps import NEEDED, TRAPS, trap_of_frame, trap_of_row, trap_of_value
from roce_dissect.analysis.tshark import Tshark
from roce_dissect.analysis.tshark_feed import feed_for
from roce_dissect.analysis.wireshark import FIELDS, Row, Value, comparable, layers_of, values_of
from roce_dissect.columns import PACKETS
from roce_dissect.decode.options import DEFAULT_OPTIONS, ReadOptions
from roce_dissect.errors import CaptureError, WiresharkError

__all__ = ["Difference", "FieldTally", "FileResult", "TrapTally", "Verification"]

#: Rows of tshark between two steps.
_STEP = 4096

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that no trap explains. For the column ``frame`` the frame's number, or None where it is no RoCE."""

    file: int
    frame: int
    column: str
    ours: Value
    theirs: Value


@dataclass(slots=True)
class FieldTally:
    """Of one column: values that are equal on both sides, that a trap explains, and that differ."""

    equal: int = 0
    skipped: int = 0
    different: int = 0


@dataclass(slots=True)
class TrapTally:
    """Where a trap was met: frames, values, and the first frame."""

    file: int
    frame: int
    packets: int = 0
    values: int = 0


@dataclass(slots=True)
class FileResult:
    """One file: what was compared, and why no more."""

    path: str
    index: int
    packets: int = 0
    values: int = 0
    different: int = 0
    complete: bool = False
    error: str | None = None
    error_offset: int | None = None
    tshark_error: str | None = None


@dataclass(slots=True)
class _Reading:
    """A file under way."""

    result: FileResult
    session: PacketSession
    ended: bool = False  # our reading has come to its end

    def holds(self, frame: int) -> bool:
        """Whether our reading has got, or will get, as far as this frame."""
        summary = self.session.files[0]
        return not self.ended or summary.complete or frame <= summary.frames


class Verification:
    """Comparing captures with what tshark makes of them; to be fed file by file.

    Memory does not grow with the captures on our side; tshark keeps some 80 bytes of every frame, and more
    of every connection.

    Parameters
    ----------
    tshark : Tshark
        As `find_tshark` gives it.
    options : ReadOptions
        How to read.
    most : int
        Differences to keep for each column; all are counted.
    progress : callable, optional
        Called with (bytes read, bytes in all or None) now and then.
    poll_s : float, optional
        Make a step when tshark printed nothing for so many seconds.

    Attributes
    ----------
    interrupted : bool
        To be set by whoever stops reading before the end.
    files : list of FileResult
    fields : dict of str to FieldTally
        Columns that this tshark can be asked about.
    not_compared : dict of str to tuple of str
        Columns that it cannot be asked about, with the fields that it lacks.
    traps : dict of str to TrapTally
        Those that were met.
    differences : list of Difference
        At most `most` for each column, in the order of the frames.
    """

    def __init__(
        self,
        tshark: Tshark,
        *,
        options: ReadOptions = DEFAULT_OPTIONS,
        most: int = 10,
        progress: Progress | None = None,
        poll_s: float | None = None,
    ) -> None:
        self.interrupted = False
        self.tshark = tshark
        self.files: list[FileResult] = []
        compared, self.not_compared = comparable(tshark.fields)
        self.fields = {name: FieldTally() for name in compared}
        self.traps: dict[str, TrapTally] = {}
        self.differences: list[Difference] = []
        self._names = tuple(self.fields)
        self._options = options
        self._most = most
        self._progress = progress
        self._poll_s = poll_s
        self._columns = [PACKETS[name] for name in dict.fromkeys((*NEEDED, *self.fields))]

    # -- what is known so far

    @property
    def packets(self) -> int:
        """Frames that were compared."""
        return sum(one.packets for one in self.files)

    @property
    def values(self) -> int:
        """Values that were compared, without those that a trap explains."""
        return sum(tally.equal + tally.different for tally in self.fields.values())

    @property
    def different(self) -> int:
        """Values that differ, kept or not."""
        return sum(tally.different for tally in self.fields.values())

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, as ``docs/json.md`` specifies."""
        return {
            "schema": 1,
            "tshark": self.tshark.version,
            "interrupted": self.interrupted,
            "files": [asdict(one) for one in self.files],
            "packets": self.packets,
            "values": self.values,
            "different": self.different,
            "fields": [
                {"field": name, "wireshark": list(FIELDS[name]), **asdict(tally)} for name, tally in self.fields.items()
            ],
            "not_compared": [{"field": name, "missing": list(lacks)} for name, lacks in self.not_compared.items()],
            "traps": [
                {
                    "trap": code,
                    **asdict(tally),
                    "sentence": TRAPS[code].sentence,
                    "seen_with": list(TRAPS[code].seen_with),
                }
                for code, tally in self.traps.items()
            ],
            "differences": [asdict(one) for one in self.differences],
        }

    # -- comparing

    def read(self, path: str) -> Iterator[int]:
        """Compare a file; an iterator of steps, each of which yields the frames of the file compared so far.

        Whatever is wrong with the file, or with tshark, is in its `FileResult` afterwards.

        Raises
        ------
        WiresharkError
            tshark cannot be run.
        """
        result = FileResult(path, len(self.files))
        self.files.append(result)
        try:
            feed = feed_for(path, self.tshark.reads_zstd)
        except CaptureError as error:
            result.error, result.error_offset = error.reason, error.offset
            return
        yield from self._in_step(result, feed)

    def _in_step(self, result: FileResult, feed: Iterator[bytes] | None) -> Iterator[int]:
        session = PacketSession(  # tshark, too, takes the frames as they stand
            [result.path],
            self._columns,
            keep_going=True,
            progress=self._progress,
            options=self._options,
            as_filed=True,
        )
        reading = _Reading(result, session)
        chosen = self._options.selection is not None
        with self.tshark.rows(result.path, ports=self._options.ports, feed=feed, poll_s=self._poll_s) as rows:
            packets = (packet for block in session for packet in packet_rows(block))
            ours = next(packets, None)
            for number, row in enumerate(rows, 1):
                if row is not None:
                    frame = _number(row)
                    while ours is not None and _frame(ours) < frame:
                        self._only_ours(result, ours)
                        ours = next(packets, None)
                    reading.ended = ours is None
                    if ours is not None and _frame(ours) == frame:
                        self._compare(result, ours, row)
                        ours = next(packets, None)
                    elif chosen:  # a frame that was not asked for; behind the last one there is nothing to hear
                        if ours is None:
                            break
                    elif reading.holds(frame):
                        self._only_theirs(result, frame, row)
                if row is None or number % _STEP == 0:
                    yield result.packets
        summary = session.files[0]
        while ours is not None and rows.error is None:
            self._only_ours(result, ours)
            ours = next(packets, None)
        result.error, result.error_offset = summary.error, summary.error_offset
        # that a capture ends within a record is normal for us, and a fault for tshark; so is where a broken one breaks
        both_ended = ours is None and (summary.truncated or summary.error is not None)
        if rows.error is not None and not both_ended:
            result.tshark_error = rows.error
        result.complete = summary.complete and result.tshark_error is None
        yield result.packets

    def _compare(self, result: FileResult, ours: Mapping[str, Value], row: Row) -> None:
        result.packets += 1
        met: Counter[str] = Counter()
        for (name, tally), theirs in zip(self.fields.items(), values_of(self._names, row), strict=True):
            mine = ours[name]
            if mine == theirs:
                if mine is not None:
                    tally.equal += 1
                    result.values += 1
                continue
            code = trap_of_value(name, ours, row)
            if code is not None:
                tally.skipped += 1
                met[code] += 1
            else:
                result.values += 1
                self._differs(result, _frame(ours), name, mine, theirs)
        for code, values in met.items():
            self._met(result, _frame(ours), code, values)

    def _only_ours(self, result: FileResult, ours: Mapping[str, Value]) -> None:
        """A frame that tshark does not call RoCE."""
        self._lone(result, _frame(ours), trap_of_frame(ours), _frame(ours), None)

    def _only_theirs(self, result: FileResult, frame: int, row: Row) -> None:
        """A frame that we do not call RoCE. A row may be there for its port alone: then neither of the two does."""
        if "infiniband" in layers_of(row["frame.protocols"]):
            self._lone(result, frame, trap_of_row(row, frozenset(self._options.ports)), None, frame)

    def _lone(self, result: FileResult, frame: int, code: str | None, ours: Value, theirs: Value) -> None:
        if code is None:
            result.values += 1
            self._differs(result, frame, "frame", ours, theirs)
        else:
            self.fields["frame"].skipped += 1
            self._met(result, frame, code, 1)

    def _met(self, result: FileResult, frame: int, code: str, values: int) -> None:
        tally = self.traps.setdefault(code, TrapTally(result.index, frame))
        tally.packets += 1
        tally.values += values

    def _differs(self, result: FileResult, frame: int, name: str, ours: Value, theirs: Value) -> None:
        tally = self.fields[name]
        tally.different += 1
        result.different += 1
        if tally.different <= self._most:
            self.differences.append(Difference(result.index, frame, name, ours, theirs))


def _number(row: Row) -> int:
    try:
        return int(row["frame.number"])
    except ValueError as error:
        raise WiresharkError("what tshark prints is no table of fields") from error


def _frame(ours: Mapping[str, Value]) -> int:
    number = ours["frame"]
    assert isinstance(number, int)
    return number
