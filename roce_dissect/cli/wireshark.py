"""Wireshark's own dissection of chosen frames, through pyshark, beside ours.

It is shown as it is, to look at; whole captures are another task. Where a field is one of our columns it is marked
whether the values are equal. Differences of form are no differences here: Wireshark reads the ICRC big-endian, has
times as seconds, and immediate data as bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from roce_dissect.analysis.tshark import MISSING
from roce_dissect.analysis.wireshark import FIELDS, understood
from roce_dissect.cli.safe import safe
from roce_dissect.dissect.tree import Node

__all__ = ["TheirField", "Wireshark", "same"]

_TIMEOUT_S = 120.0
_PATIENCE_S = 2.0  # for tshark to end by itself
_AT_ONCE = 200  # frames that one filter names
#: The whole key of GRE: of NVGRE, the VNI column has only a part of it.
_NOT_THE_VALUE = ("gre.key",)


def _columns_by_field() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, fields in FIELDS.items():
        for theirs in fields:
            if theirs not in _NOT_THE_VALUE:
                found.setdefault(theirs, []).append(name)
    return found


_COLUMNS = _columns_by_field()


@dataclass(frozen=True, slots=True)
class TheirField:
    """A field of Wireshark's: layer, display filter name, the line that it shows, value as text, place in the frame."""

    layer: str
    name: str
    line: str
    value: str
    at: int


class Wireshark:
    """Asks tshark for its dissection of frames.

    Parameters
    ----------
    ports : sequence of int
        UDP ports beside 4791 that it, too, is to take for RoCE.

    Raises
    ------
    click.ClickException
        pyshark or tshark is missing; from `frames`: tshark cannot read the file, or not in time.
    """

    def __init__(self, ports: Sequence[int] = ()) -> None:
        self._decode_as = {f"udp.port=={port}": "infiniband" for port in ports}
        try:
            import pyshark
            from pyshark.tshark.tshark import get_tshark_version
        except ImportError as error:
            raise click.ClickException("--tshark needs pyshark: pip install 'roce-dissect[wireshark]'") from error
        if shutil.which("tshark") is None:
            raise click.ClickException(f"--tshark: {MISSING}")
        self._open = pyshark.FileCapture
        try:
            self.version = str(get_tshark_version())
        except Exception as error:  # pyshark raises what it likes
            raise click.ClickException("--tshark: tshark does not tell its version") from error

    def frames(self, path: str, numbers: Sequence[int]) -> dict[int, list[TheirField]]:
        """Fields of each of the frames of a file, by frame number; those that tshark did not come to are not there."""
        found: dict[int, list[TheirField]] = {}
        for first in range(0, len(numbers), _AT_ONCE):
            self._read(path, sorted(numbers[first : first + _AT_ONCE]), found)
        return found

    def _read(self, path: str, numbers: Sequence[int], found: dict[int, list[TheirField]]) -> None:
        loop = asyncio.new_event_loop()
        capture = None
        error, late = "", False
        # what tshark writes may be no text at all: the tasks that read it end with an exception that nobody needs
        loop.set_exception_handler(lambda *_: None)
        try:
            capture = self._open(
                path,
                display_filter=" || ".join(f"frame.number == {number}" for number in numbers),
                decode_as=self._decode_as,
                keep_packets=False,
                eventloop=loop,
                # short SENDs look like RPC over RDMA to a heuristic; nothing behind the last frame is of interest
                custom_parameters=["--disable-heuristic", "rpcrdma_infiniband", "-c", str(numbers[-1])],
            )

            def take(packet: Any) -> None:
                found[int(packet.number)] = list(_fields(packet))

            # not `apply_on_packets`: it kills tshark at the end of its output, and may take that for a crash
            reading = capture.packets_from_tshark(take, close_tshark=False)
            loop.run_until_complete(asyncio.wait_for(reading, _TIMEOUT_S))
        except TimeoutError:
            late = True
            error = f"tshark took more than {_TIMEOUT_S:g} s"
        except Exception as failure:  # pyshark and lxml raise what they like
            error = (str(failure).splitlines() or [type(failure).__name__])[0]
        finally:
            said = _close(loop, capture)
        # a capture that breaks off ends tshark with an error, too: what it showed before is good
        reason = error if late or not said else said  # pyshark's own words say less
        if not any(number in found for number in numbers) and reason:
            raise click.ClickException(f"--tshark: {path}: {reason.removeprefix('tshark: ').rstrip('.')}")

    def lines(self, fields: Sequence[TheirField] | None, sections: Sequence[Node]) -> str:
        """Text of a frame: a line a field, with a mark where ours is equal (``=``) or not (``≠``)."""
        if fields is None:
            return f"Wireshark {self.version} shows nothing of this frame\n"
        ours = {node.column: node for section in sections for node in section.walk() if node.column}
        often = Counter(field.name for field in fields)
        lines = [f"Wireshark {self.version} says (= as above, ≠ not so)"]
        layer = ""
        for field in fields:
            if field.layer != layer:
                layer = field.layer
                lines.append(f"    {layer}")
            node = _counterpart(field, ours, often[field.name] == 1)
            mark = " " if node is None else "=" if same(field, node) else "≠"
            remark = f"    above: {node.text}" if node is not None and mark == "≠" else ""
            lines.append(f"  {mark}     {field.line}{remark}")
        return "".join(f"{safe(line)}\n" for line in lines)


def _fields(packet: Any) -> Iterable[TheirField]:
    for layer in (packet.frame_info, *packet.layers):
        for container in layer._all_fields.values():
            for field in container.fields:
                line = field.showname or field.show
                if not field.hide and line:
                    yield TheirField(layer.layer_name, field.name or "", line, field.show or "", int(field.pos or 0))


def _counterpart(field: TheirField, ours: dict[str, Node], alone: bool) -> Node | None:
    """Our node of a field: the one at the same place; without such a one, the only one that there is."""
    nodes = [ours[name] for name in _COLUMNS.get(field.name, ()) if name in ours]
    for node in nodes:
        if node.first_byte is None or node.first_byte == field.at:
            return node
    return nodes[0] if len(nodes) == 1 and alone else None


def same(field: TheirField, node: Node) -> bool:
    """Whether a field's value is that of our node."""
    try:
        return understood(node.column, field.name, field.value) == node.value
    except (ValueError, OverflowError):
        return False


def _close(loop: asyncio.AbstractEventLoop, capture: Any) -> str:
    """End tshark if it still runs, and leave nothing for the garbage collector to stumble over.

    Returns the last line that tshark wrote on its standard error when it failed, or nothing.
    """
    processes: set[Any] = getattr(capture, "_running_processes", set())
    failed = False
    for process in processes.copy():
        with contextlib.suppress(Exception):
            loop.run_until_complete(asyncio.wait_for(process.wait(), _PATIENCE_S))
        with contextlib.suppress(Exception):
            if process.returncode is None:
                process.kill()
                loop.run_until_complete(asyncio.wait_for(process.wait(), _PATIENCE_S))
        failed |= process.returncode != 0
    processes.clear()
    tasks = asyncio.all_tasks(loop)
    if tasks:  # they read tshark's standard error
        loop.run_until_complete(asyncio.wait(tasks, timeout=_PATIENCE_S))
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    last = getattr(capture, "_last_error_line", None) or ""
    return (last if last and not last.startswith("Running as user") else "tshark failed") if failed else ""
