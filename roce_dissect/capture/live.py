"""Packets of an interface: dumpcap or tcpdump writes them to a pipe that `open_capture` reads.

::

    with LiveSource("eth0") as source, open_capture(source, poll_s=0.5) as capture:
        for records in capture:
            ...                     # source.stop() lets the loop end after what is still under way

Neither tool is given to a shell, and an interface name that could be taken for an option is refused.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any

from roce_dissect.errors import LiveError
from roce_dissect.spec.net import (
    ETHERTYPE_QINQ,
    ETHERTYPE_ROCE_V1,
    ETHERTYPE_VLAN,
    PORT_ROCE_V2,
    PROTO_AUTHENTICATION,
    PROTO_DESTINATION,
    PROTO_FRAGMENT,
    PROTO_HOP_BY_HOP,
    PROTO_ROUTING,
)

__all__ = ["ROCE_FILTER", "ROCE_FILTER_COOKED", "TOOLS", "LiveSource", "find_tools"]

#: The tools that are tried, in this order.
TOOLS = ("dumpcap", "tcpdump")

# libpcap's `udp` does not look behind IPv6 extension headers: let all packets with some pass. As `ip6 proto`, not as
# `ip6[6]`: on a live interface, libpcap (seen in 1.10.3) keeps the constants of such an index in the register that
# holds the offset behind the tags, and all that follows then looks at wrong bytes.
_EXTENSIONS = (PROTO_HOP_BY_HOP, PROTO_ROUTING, PROTO_FRAGMENT, PROTO_AUTHENTICATION, PROTO_DESTINATION)

_UNTAGGED = (
    f"(udp dst port {PORT_ROCE_V2} or ether proto {ETHERTYPE_ROCE_V1:#06x}"
    f" or {' or '.join(f'ip6 proto {number}' for number in _EXTENSIONS)})"
)
#: RoCE v2 and v1 under up to two tags. Each ``vlan`` of libpcap shifts the offsets of all that follows it, in
#: parentheses or not; so the terms are nested, the untagged one first.
ROCE_FILTER = f"{_UNTAGGED} or (vlan and ({_UNTAGGED} or (vlan and {_UNTAGGED})))"
#: The same for cooked link types, which refuse ``vlan``: all that has a second tag passes.
ROCE_FILTER_COOKED = f"{_UNTAGGED} or ether proto {ETHERTYPE_VLAN:#06x} or ether proto {ETHERTYPE_QINQ:#06x}"

_START_S = 15.0  # until the first bytes; both tools write the file header at once
_HEADER_BYTES = 24
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # where tcpdump may be, off an ordinary user's path
_KERNEL_BUFFER_MIB = 64

_GRANT = {
    "dumpcap": "sudo setcap cap_net_raw,cap_net_admin=eip $(command -v dumpcap)",
    "tcpdump": "sudo setcap cap_net_raw,cap_net_admin=eip $(command -v tcpdump)",
}
_INSTALL = (
    "neither dumpcap nor tcpdump is installed: "
    "sudo apt install tcpdump (Debian, Ubuntu; dumpcap is in wireshark-common), "
    "sudo dnf install tcpdump (Fedora, RHEL; dumpcap is in wireshark-cli)"
)

_NO_DEVICE = re.compile(r"no device named|no such device|doesn't exist|SIOCGIFHWADDR", re.IGNORECASE)
_NO_RIGHTS = re.compile(r"permission|not permitted|CAP_NET_RAW", re.IGNORECASE)
_DOWN = re.compile(r"is not up|network is down", re.IGNORECASE)
_NO_FILTER = re.compile(r"capture filter|no VLAN support|not implemented|not supported for", re.IGNORECASE)
# What both tools say while all is well.
_CHATTER = re.compile(r"cap_set_proc|listening on|data link type|verbose output|^Warning", re.IGNORECASE)

_DROPPED_DUMPCAP = re.compile(r"received/dropped on interface .*: \d+/(\d+)")
_DROPPED_TCPDUMP = re.compile(r"^(\d+) packets? dropped by (?:kernel|interface)", re.MULTILINE)


def find_tools() -> list[tuple[str, str]]:
    """Return (name, path) of the tools that are installed and may be run, the preferred one first."""
    where = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SBIN])
    found = []
    for name in TOOLS:
        path = shutil.which(name, path=where)
        if path is not None:
            found.append((name, path))
    return found


class LiveSource:
    """A binary stream of pcap from an interface, for `open_capture`.

    Parameters
    ----------
    interface : str
        As the system names it, or ``any``.
    snaplen : int, optional
        Bytes to keep of each frame; all by default.
    filter : str, optional
        A filter in libpcap's language instead of `ROCE_FILTER`.

    Attributes
    ----------
    name : str
        The interface.
    tool : str
        ``"dumpcap"`` or ``"tcpdump"``.
    dropped : int or None
        Frames that the tool says were lost before it could write them; None before `stop` and where it does not say.

    Raises
    ------
    LiveError
        If no tool is installed, there is no such interface, rights are missing, or the tool ends at once. Also while
        reading, when the tool ends unasked for.
    """

    def __init__(self, interface: str, *, snaplen: int | None = None, filter: str | None = None) -> None:
        if not interface or interface.startswith("-") or not interface.isprintable():
            raise LiveError(f"{interface!r} is not the name of an interface")
        self.name = interface
        self.dropped: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._words: Any = None
        self._kept = b""  # read ahead: the first bytes, or what came between the signal and the end
        self._stopped = False
        tools = find_tools()
        if not tools:
            raise LiveError(_INSTALL)
        first: LiveError | None = None
        for self.tool, path in tools:
            try:
                self._start(path, snaplen, [filter] if filter is not None else [ROCE_FILTER, ROCE_FILTER_COOKED])
                return
            except LiveError as error:  # the other tool may have the rights that this one lacks
                first = first or error
            except BaseException:  # Ctrl-C: leave no child behind
                self.close()
                raise
        assert first is not None
        raise first

    def _start(self, path: str, snaplen: int | None, filters: list[str]) -> None:
        """Start the tool with the first filter that it takes: link types without tags refuse `vlan`."""
        for index, text in enumerate(filters):
            words = self._try(path, snaplen, text)
            if words is None:
                return
            if index + 1 == len(filters) or not _NO_FILTER.search(words):
                raise self._error(words)

    def _arguments(self, snaplen: int | None, text: str) -> list[str]:
        size = [] if snaplen is None else ["-s", str(int(snaplen))]
        if self.tool == "dumpcap":
            buffer = ["-B", str(_KERNEL_BUFFER_MIB)]
            return ["-q", "-i", self.name, *buffer, *size, "-f", text, "-w", "-", "-P"]
        buffer = ["-B", str(_KERNEL_BUFFER_MIB << 10)]
        return ["-i", self.name, "-U", *buffer, *size, "-w", "-", "--", text]

    def _try(self, path: str, snaplen: int | None, text: str) -> str | None:
        """Start the tool and wait for the file header; returns None, or its words if it ended instead."""
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close; a file never blocks its writer)
        try:
            self._child = subprocess.Popen(
                [path, *self._arguments(snaplen, text)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._words,
                bufsize=0,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,  # Ctrl-C is for this process, which then ends the tool
            )
        except OSError as error:
            self._words.close()
            return f"{self.tool}: {error.strerror or error}"
        deadline = time.monotonic() + _START_S
        while len(self._kept) < _HEADER_BYTES:
            piece = self._read_until(deadline)
            if not piece:
                words = self._end(0.0 if piece is None else 2.0)
                self._kept = b""
                self._close_pipe()
                return words if piece is not None else f"{self.tool}: nothing came within {_START_S:g} s"
            self._kept += piece
        return None

    def _read_until(self, deadline: float) -> bytes | None:
        """Return what is in the pipe, b"" at its end, None at the deadline."""
        descriptor = self.fileno()
        poll = select.poll()  # not select, which takes no descriptor above 1023
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(deadline - time.monotonic(), 0.0) * 1000):
            return None
        return os.read(descriptor, 1 << 16)

    # -- a binary stream

    def fileno(self) -> int:
        """Return the pipe's descriptor."""
        assert self._child is not None
        assert self._child.stdout is not None
        return self._child.stdout.fileno()

    def readinto(self, buffer: Any) -> int:
        """Read what is there into `buffer`; 0 at the end.

        Raises
        ------
        LiveError
            If the tool ended although `stop` was not called, and says why.
        """
        view = memoryview(buffer)
        if self._kept:
            count = min(len(self._kept), len(view))
            view[:count] = self._kept[:count]
            self._kept = self._kept[count:]
            return count
        if self._stopped:
            return 0
        assert self._child is not None
        assert self._child.stdout is not None
        count = self._child.stdout.readinto(view) or 0  # type: ignore[attr-defined]
        if count == 0:
            words = self._end(2.0)
            self._stopped = True
            if self._child.returncode != 0 or self._complaint(words):
                raise self._error(words)
        return count

    # -- the end

    def stop(self, grace_s: float = 3.0) -> None:
        """End the tool: SIGINT, so that it writes what it holds and its counts; SIGKILL after `grace_s` seconds.

        What is still in the pipe can be read after that, then the stream ends. Call it from the thread that reads.
        """
        if self._stopped or self._child is None:
            return
        self._stopped = True
        if self._child.poll() is not None and self._words.closed:  # it never started
            return
        _signal(self._child, signal.SIGINT)
        # The pipe may be full, and the tool then waits for a reader before it looks at the signal.
        deadline = time.monotonic() + grace_s
        tail = bytearray(self._kept)
        while piece := self._read_until(deadline):
            tail += piece
        self._kept = bytes(tail)
        self._end(max(deadline - time.monotonic(), 0.0))

    def _end(self, grace_s: float) -> str:
        """Wait for the child, or kill it; take `dropped` from its last words, and return them."""
        assert self._child is not None
        try:
            self._child.wait(grace_s)
        except subprocess.TimeoutExpired:
            _signal(self._child, signal.SIGKILL)
            self._child.wait()
        if self._words.closed:
            return ""
        self._words.seek(0)
        words = self._words.read(1 << 16).decode(errors="replace")
        self._words.close()
        counts = _DROPPED_DUMPCAP.findall(words) if self.tool == "dumpcap" else _DROPPED_TCPDUMP.findall(words)
        if counts:
            self.dropped = sum(map(int, counts))
        return words

    def close(self) -> None:
        """Stop the tool and close the pipe."""
        if self._child is None:
            return
        self.stop()
        self._close_pipe()

    def _close_pipe(self) -> None:
        assert self._child is not None
        if self._child.stdout is not None:
            self._child.stdout.close()

    def __enter__(self) -> LiveSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- words

    def _complaint(self, words: str) -> str:
        """Return the first line in which the tool speaks of a failure."""
        for line in words.splitlines():
            if line.startswith(f"{self.tool}: ") and not _CHATTER.search(line):
                return line.partition(": ")[2].strip()
        return ""

    def _error(self, words: str) -> LiveError:
        complaint = self._complaint(words)
        if _NO_DEVICE.search(complaint):
            return LiveError(f"there is no interface {self.name!r} (there are: {', '.join(_interfaces())})")
        if _NO_RIGHTS.search(complaint):
            return LiveError(
                f"{self.tool} is not permitted to capture on {self.name!r}: "
                f"permit it with {_GRANT[self.tool]}, or run this as root"
            )
        if _DOWN.search(complaint):
            return LiveError(f"interface {self.name!r} is down: sudo ip link set dev {self.name} up")
        status = "" if self._child is None else f" with status {self._child.returncode}"
        return LiveError(f"{self.tool} on {self.name!r} ended early: {complaint or ('it exited' + status)}")


def _interfaces() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(number)
