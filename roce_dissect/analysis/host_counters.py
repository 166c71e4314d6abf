"""Counters that a host keeps, read from what it prints: ``ethtool -S``, ``rdma statistic`` as text or JSON, sysfs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NoReturn

from roce_dissect.errors import ArgumentError

__all__ = ["read_counters"]

#: The longest text of an adapter with some hundred queues has 300 kB.
_MOST_BYTES = 4 << 20
_MOST_FILES = 10_000
_LARGEST = (1 << 64) - 1
_EXCERPT = 60
#: Files beside the counters that count nothing.
_SETTINGS = frozenset({"lifespan"})
#: Words of `rdma statistic qp show` and `mr show`.
_OF_OBJECTS = frozenset({"cntn", "lqpn", "mrn"})

_NUMBER = re.compile(r"[0-9]{1,20}")
_SYSFS = re.compile(r"infiniband/([^/]+)/ports/([0-9]+)/(?:hw_)?counters/?$")
_SECTION = re.compile(r"==> (.+) <==")  # as tail and head print it
_JSON = re.compile(r"\[?\s*\{|\[\s*\]")


def read_counters(path: str | os.PathLike[str], device: str | None = None) -> dict[str, int]:
    """Counters of one device.

    Parameters
    ----------
    path : path
        A text as ``ethtool -S``, ``rdma statistic show`` (also with ``-p`` or ``-j``), ``grep .`` or ``tail -n +1``
        of sysfs files print it, or several of them one after the other; or a ``hw_counters`` directory. A pipe will do.
    device : str, optional
        Which device, such as ``mlx5_0/1`` (port 1), where the text holds several.

    Returns
    -------
    dict of str to int
        In the order of the text, under the names of the text; 0 to 2^64 - 1. What counts nothing is left out.

    Raises
    ------
    ArgumentError
        The file cannot be read, is none of these texts, holds two values of a counter, several devices or not the one
        that is asked for; the message is one line.
    """
    found = _Found(os.fspath(path))
    try:
        if os.path.isdir(path):
            _read_directory(found)
        else:
            with open(path, "rb") as file:
                _read_text(found, file.read(_MOST_BYTES + 1))
    except OSError as error:
        found.fail(f"cannot be read: {error.strerror or error}")
    return found.chosen(device)


class _Found:
    """What a file holds: device -> name -> value. Device ``""`` is the one that the text does not name."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.devices: dict[str, dict[str, int]] = {}

    def fail(self, reason: str) -> NoReturn:
        raise ArgumentError(f"{self.path}: {reason}")

    def enter(self, device: str, place: str) -> dict[str, int]:
        """Counters of a device so far."""
        if not device.isprintable():
            self.fail(f"{place} names no device: {device[:_EXCERPT]!r}")
        return self.devices.setdefault(device, {})

    def add(self, device: str, name: str, value: str, place: str, shown: str = "") -> None:
        """Take a counter in; `place` and `shown` are for the message: where it stands, and what stands there."""
        if value.startswith("N/A") or name in _SETTINGS:  # sysfs: N/A (no PMA)
            return
        if not name or not name.isprintable() or not _NUMBER.fullmatch(value):
            self.fail(f"{place} is no counter: {(shown or f'{name} {value}')[:_EXCERPT]!r}")
        number = int(value)
        if number > _LARGEST:
            self.fail(f"{place}: a number of more than 64 bits: {value}")
        self._once(name, self.enter(device, place).setdefault(name, number), number, f"{place}: ")

    def add_pairs(self, device: str, words: list[str], place: str) -> None:
        """Take in words that are name, value, name, value."""
        if len(words) % 2:
            self.fail(f"{place} is no list of counters: {' '.join(words)[:_EXCERPT]!r}")
        for name, value in zip(words[::2], words[1::2], strict=True):
            self.add(device, name, value, place)

    def chosen(self, device: str | None) -> dict[str, int]:
        """The counters of one device, with those of no named one where that is clear."""
        named = sorted(name for name in self.devices if name)
        shown = ", ".join(name[:_EXCERPT] for name in named[:8]) + (", ..." if len(named) > 8 else "")
        if device is not None and device not in named:
            self.fail(f"no counters of {device!r} in it" + (f" (there are: {shown})" if named else ""))
        if device is None and len(named) > 1:
            self.fail(f"counters of {len(named)} devices ({shown}); say which, as in {self.path}#{named[0][:_EXCERPT]}")
        if not any(self.devices.values()):
            self.fail("no counters in it")
        wanted = device if device is not None else named[0] if named else ""
        one, unnamed = self.devices.get(wanted, {}), self.devices.get("", {}) if len(named) <= 1 else {}
        for name in one.keys() & unnamed.keys():
            self._once(name, one[name], unnamed[name])
        return unnamed | one

    def _once(self, name: str, known: int, number: int, place: str = "") -> None:
        if known != number:
            self.fail(f"{place}two values of {name[:_EXCERPT]!r}, {known} and {number}; a file holds one snapshot")


def _read_directory(found: _Found) -> None:
    """One file for each counter, as in sysfs or a copy of it."""
    folder = Path(found.path).resolve()
    device, _ = _place(f"{folder}/")
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, _MOST_FILES + 1) if entry.is_file())
    if len(names) > _MOST_FILES:
        found.fail(f"more than {_MOST_FILES} files: not a directory of counters")
    for name in names:
        with open(folder / name, "rb") as file:
            value = file.read(_EXCERPT).decode("utf-8", "replace").strip()
        found.add(device, name, value, f"file {name!r}", value)


def _read_text(found: _Found, content: bytes) -> None:
    if len(content) > _MOST_BYTES:
        found.fail(f"longer than {_MOST_BYTES >> 20} MiB: not a text of counters")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        found.fail("not a text of counters")
    if "\0" in text:
        found.fail("not a text of counters")
    if _JSON.match(text.lstrip()):
        _read_json(found, text)
    else:
        _read_lines(found, text.split("\n"))


def _read_lines(found: _Found, lines: Iterable[str]) -> None:
    device = ""
    section: tuple[str, str] | None = None
    for number, raw in enumerate(lines, 1):
        line, place = raw.strip(), f"line {number}"
        words = line.split()
        if not words:
            continue
        if heading := _SECTION.fullmatch(line):
            section = _place(heading[1])
        elif section is not None:
            found.add(*section, line, place)
            section = None
        elif _OF_OBJECTS.intersection(words) or line.startswith("LQPN:"):
            found.fail(f"{place}: counters of single QPs or MRs; wanted are those of the device: rdma statistic show")
        elif words[0] == "link" and len(words) > 1:
            device = words[1]
            found.enter(device, place)
            found.add_pairs(device, words[2:], place)
        elif line == "NIC statistics:":
            device = ""
        elif ":" in line:
            name, _, value = line.rpartition(":")
            found.add(*_place(name), value.strip(), place, line)
        elif device:  # rdma -p: a line for each
            found.add_pairs(device, words, place)
        else:
            found.fail(f"{place} is no counter: {line[:_EXCERPT]!r}")


def _read_json(found: _Found, text: str) -> None:
    strange = "JSON, but not that of rdma -j statistic"
    try:
        entries = json.loads(text, object_pairs_hook=tuple)  # pairs: a name may stand there twice
    except (ValueError, RecursionError):
        found.fail("JSON that cannot be read")
    for entry in [entries] if isinstance(entries, tuple) else entries:
        if not isinstance(entry, tuple):
            found.fail(strange)
        keys = dict(entry)
        if _OF_OBJECTS & keys.keys():
            found.fail("counters of single QPs or MRs; wanted are those of the device: rdma -j statistic show")
        if not isinstance(keys.get("ifname"), str):
            found.fail(strange)
        device = f"{keys['ifname']}/{keys['port']}" if "port" in keys else keys["ifname"]
        place = repr(device[:_EXCERPT])
        found.enter(device, place)
        for name, value in entry:
            if name not in ("ifindex", "ifname", "port"):
                found.add(device, name, str(value) if type(value) is int else "", place, f"{name} {value}")


def _place(path: str) -> tuple[str, str]:
    """Device and name of a counter from the path of its file; no device where the path does not tell."""
    folder, _, name = path.rpartition("/")
    match = _SYSFS.search(folder)
    return (f"{match[1]}/{match[2]}" if match else "", name)
