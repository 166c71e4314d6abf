"""``analyze --counters``: what hosts counted, held against the capture."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from roce_dissect.analysis.counter_comparison import compare_counters, counter_growth, incomparable_counters
from roce_dissect.analysis.host_counters import read_counters
from roce_dissect.cli.safe import safe
from roce_dissect.cli.text import make_console, write
from roce_dissect.errors import ArgumentError
from roce_dissect.units import count, plural

if TYPE_CHECKING:
    from roce_dissect.api import Analysis

__all__ = ["HostCounters", "compare_hosts", "print_comparison", "read_hosts"]

#: Without an address, the counters are held against every host of a capture that has no more.
_MOST_HOSTS = 4
_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class HostCounters:
    """Counters of one host.

    Attributes
    ----------
    addresses : tuple of str
        The host's addresses; none: not told.
    files : tuple of str
        One, or the earlier and the later.
    values : dict of str to int
        Those of the one file, or the growth from the earlier to the later.
    """

    addresses: tuple[str, ...]
    files: tuple[str, ...]
    values: dict[str, int]


def read_hosts(options: Sequence[str]) -> list[HostCounters]:
    """Read the files of ``[ADDRESS[,ADDRESS...]=]FILE[#DEVICE]``; two for the same addresses are one host's.

    Raises
    ------
    ArgumentError
        A file is none of counters, or the options do not go together.
    """
    files: dict[tuple[str, ...], list[str]] = {}
    for option in options:
        addresses, file = _parsed(option)
        files.setdefault(addresses, []).append(file)
    if () in files and len(files) > 1:
        raise ArgumentError("--counters: either all of them with ADDRESS=, or none")
    return [_read_host(addresses, listed) for addresses, listed in files.items()]


def _read_host(addresses: tuple[str, ...], files: list[str]) -> HostCounters:
    if len(files) > 2:
        whose = ", ".join(addresses) or "one host"
        raise ArgumentError(f"--counters: {len(files)} files for {whose}; two at most: before and after")
    read = [_read(file) for file in files]
    values = read[0]
    if len(read) == 2:
        try:
            values = counter_growth(*read)
        except ArgumentError as error:
            raise ArgumentError(f"{files[1]}: {error}") from error
    return HostCounters(addresses, tuple(files), values)


def _read(file: str) -> dict[str, int]:
    path, mark, device = file.rpartition("#")
    if mark and not os.path.exists(file):
        return read_counters(path, device)
    return read_counters(file)


def _parsed(option: str) -> tuple[tuple[str, ...], str]:
    before, sign, file = option.partition("=")
    if not sign or "/" in before:
        return (), option
    try:
        return tuple(sorted({_address(one.strip()) for one in before.split(",")})), file
    except ValueError:
        if os.path.exists(option):
            return (), option
        raise ArgumentError(f"--counters {option}: {before!r} is no IP address") from None


def _address(text: str) -> str:
    """An address as the tables print it: without a zone, and IPv4 where it is mapped."""
    address = ipaddress.ip_address(text.strip("[]"))
    if isinstance(address, ipaddress.IPv6Address):
        return str(address.ipv4_mapped or ipaddress.IPv6Address(int(address)))
    return str(address)


def compare_hosts(result: Analysis, hosts: Sequence[HostCounters]) -> list[str]:
    """Put the comparisons into ``result.counter_comparison``; returns what is to be complained of."""
    tables, complaints = [], []
    everybody = [str(address) for address in result.counters.index]
    for host in hosts:
        try:
            if host.addresses:
                tables.append(compare_counters(result.counters, host.values, host.addresses))
            elif len(everybody) > _MOST_HOSTS:
                raise ArgumentError(
                    f"the capture has {len(everybody)} hosts; say whose counters these are: ADDRESS={host.files[0]}"
                )
            elif not everybody:
                raise ArgumentError("the capture has no RoCE host to compare with")
            else:
                tables += [compare_counters(result.counters, host.values, [address]) for address in everybody]
        except ArgumentError as error:
            complaints.append(f"--counters: {error}")
    if tables:
        result.counter_comparison = pd.concat(tables, ignore_index=True)
    return complaints


def print_comparison(result: Analysis, hosts: Sequence[HostCounters]) -> None:
    """Print the comparisons that `compare_hosts` made on standard output."""
    table = result.counter_comparison
    parts: list[RenderableType] = []
    everybody = [str(address) for address in result.counters.index]
    for host in hosts:
        names = [", ".join(host.addresses)] if host.addresses else everybody
        if not set(host.addresses or everybody[:_MOST_HOSTS]).intersection(everybody) or len(names) > _MOST_HOSTS:
            continue  # it was complained of
        parts += _host(host, [table[table["address"] == name] for name in names], names)
        parts += _rest(incomparable_counters(result.counters, host.values))
    if parts:
        title = Text("Counters, host against wire", style="bold")
        title.append(" (difference: host less wire)", style="not bold dim")
        write(make_console(), Group(Text(), title, *parts))


def _host(host: HostCounters, tables: list[pd.DataFrame], names: list[str]) -> Iterator[RenderableType]:
    files = [safe(file) for file in host.files]
    source = f"{files[1]} less {files[0]}" if len(files) == 2 else f"{files[0]} as it is"
    if host.addresses:
        source = f"{names[0]}: {source}"
    if tables[0].empty:
        yield Text(f"{source}; it holds no counter that packets can give")
        return
    best = max(map(_score, tables))
    alike = [name for name, table in zip(names, tables, strict=True) if _score(table) == best]
    if host.addresses:
        yield Text(f"{source}; {_agreement(best, len(tables[0]))}")
        yield _one_host(tables[0])
        yield from _reasons(tables[0])
    else:
        fits = f"{alike[0]} best" if len(alike) == 1 else f"{' and '.join(alike)} alike"
        yield Text(f"{source}, beside every host; it fits {fits}: {_agreement(best, len(tables[0]))}")
        yield _several_hosts(tables, names)
        yield _line("say --counters ADDRESS=FILE to be told what may have made the differences", "dim")
    if len(files) == 1 and all((table["difference"] > 0).any() for table in tables):
        yield _line("one file: if it counts since the driver was loaded, give the snapshot from before, too", "dim")


def _score(table: pd.DataFrame) -> int:
    return int(table["agrees"].sum())


def _line(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, 3))


def _agreement(agreeing: int, of_all: int) -> str:
    if agreeing == of_all:
        return f"all {of_all} counters agree" if of_all > 1 else "the one counter agrees"
    return f"{agreeing} of {of_all} counters agree"


def _one_host(table: pd.DataFrame) -> RenderableType:
    grid = _grid("counter", "host", "wire", "difference")
    for row in table.itertuples():
        cells = (row.counter, count(row.host), count(row.wire), f"{row.difference:+,}" if row.difference else "-")
        grid.add_row(*map(Text, cells), style="" if row.agrees else "yellow")
    return Padding(grid, (0, 0, 0, 3))


def _several_hosts(tables: list[pd.DataFrame], names: list[str]) -> RenderableType:
    grid = _grid("counter", "host", *names)
    for rows in zip(*(table.itertuples() for table in tables), strict=True):
        wires = [Text(_beside(row), style="" if row.agrees else "yellow") for row in rows]
        grid.add_row(Text(rows[0].counter), Text(count(rows[0].host)), *wires)
    return Padding(grid, (0, 0, 0, 3))


def _beside(row: Any) -> str:
    return f"{row.wire:,} ({row.difference:+,})" if row.difference else count(row.wire)


def _grid(first: str, *others: str) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", collapse_padding=False)
    grid.add_column(first, overflow="fold")
    for heading in others:
        grid.add_column(heading, justify="right", overflow="fold")
    return grid


def _reasons(table: pd.DataFrame) -> Iterator[RenderableType]:
    """A line for each reason, with the counters that it is about."""
    for remark, rows in table[table["remark"] != ""].groupby("remark", sort=False):
        changed = zip(rows["counter"], rows["difference"], strict=True)
        named = ", ".join(f"{name} {difference:+,}" for name, difference in changed)
        yield _line(f"{named}: {remark}")


def _rest(rest: dict[str, int]) -> Iterator[RenderableType]:
    """One line for what packets do not give; zeros are not named."""
    named = [f"{name} {value:,}" for name, value in rest.items() if value]
    zeros = len(rest) - len(named)
    parts = [
        ", ".join(named[:_MOST_NAMES]) + (f" and {len(named) - _MOST_NAMES:,} more" if named[_MOST_NAMES:] else "")
    ]
    parts += [f"{plural(zeros, 'counter')} of 0"] if zeros else []
    if rest:
        yield _line(f"not comparable: {'; '.join(part for part in parts if part)}", "dim")
