"""Wireshark's tshark as a process: finding it, what it knows, and its rows of a capture as they come.

It runs with a configuration of its own, so that the preferences of whoever runs it have no say. In it payload
heuristics are off (a short SEND passes for RPC over RDMA), and fragments are not put together.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from roce_dissect.analysis.wireshark import CONTROL_FIELDS, IDENTIFYING_FIELDS, Row, comparable
from roce_dissect.errors import WiresharkError
from roce_dissect.spec.net import PORT_ROCE_V2

__all__ = ["MISSING", "OLDEST", "Rows", "Tshark", "find_tshark"]

#: The first version that takes a configuration folder from the environment.
OLDEST = (3, 0)
#: What is said where there is none.
MISSING = (
    "tshark is not installed: apt install tshark (Debian, Ubuntu), dnf install wireshark-cli (Fedora, RHEL), "
    "or www.wireshark.org"
)
_PREFERENCES = "ip.defragment: FALSE\nipv6.defragment: FALSE\n"
#: What tries its luck on the payload of InfiniBand, under all names that it had.
_HEURISTICS = (
    "drbd_rdma", "eth_over_ib", "ethertype_infiniband", "fc_infiniband", "iser_ib_private", "iser_infiniband",
    "lnet_ib", "lnet_ib_cm_private", "nvme_rdma", "nvme_rdma_cm_private", "rpcordma_ib_private", "rpcordma_infiniband",
    "rpcrdma_infiniband", "sdp_ib_private", "sdp_infiniband", "smb_direct_infiniband", "smcr_infiniband",
)  # fmt: skip
_READ_BYTES = 1 << 18
_MOST_COMPLAINT = 4096


@dataclass(frozen=True)
class Tshark:
    """A tshark that can be used.

    Attributes
    ----------
    path : str
        Where it is.
    version : str
        As it names it, such as ``4.0.17``.
    fields : frozenset of str
        All fields that it knows.
    reads_zstd : bool
        Whether it was built with zstd.
    """

    path: str
    version: str
    fields: frozenset[str] = field(repr=False)
    reads_zstd: bool = True

    def rows(
        self,
        path: str,
        *,
        ports: Sequence[int] = (),
        feed: Iterable[bytes] | None = None,
        poll_s: float | None = None,
    ) -> Rows:
        """Start reading a capture.

        Parameters
        ----------
        path : str
            The capture.
        ports : sequence of int
            UDP ports of RoCE v2 beside 4791.
        feed : iterable of bytes, optional
            The capture's bytes, for tshark's standard input, where it cannot read the file itself.
        poll_s : float, optional
            Deliver None when nothing came for so many seconds.
        """
        compared, _ = comparable(self.fields)
        names = [*CONTROL_FIELDS, *(name for fields in compared.values() for name in fields)]
        asked = [name for name in dict.fromkeys(names) if name in self.fields]
        command = [self.path, "-n", "-r", "-" if feed is not None else os.path.abspath(path), "-Y", _filter(ports)]
        for port in ports:
            command += ["-d", f"udp.port=={port},infiniband"]
        command += ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=|"]
        for name in asked:
            command += ["-e", name]
        return Rows(command, asked, feed, poll_s)


def _filter(ports: Sequence[int]) -> str:
    """What tshark calls InfiniBand, and what it might have: packets that the other port's protocol took away."""
    return " || ".join(["infiniband", *(f"udp.port == {port}" for port in (PORT_ROCE_V2, *ports))])


def find_tshark() -> Tshark:
    """The tshark on the search path.

    Raises
    ------
    WiresharkError
        There is none, it cannot be run, it is too old, or it knows no InfiniBand.
    """
    path = shutil.which("tshark")
    if path is None:
        raise WiresharkError(MISSING)
    about = _told(path, "--version")
    found = re.search(r"(\d+)\.(\d+)(?:\.\d+)*", about.partition("\n")[0])
    if found is None:
        raise WiresharkError(f"{path} --version names no version: {about.partition(chr(10))[0]:.80}")
    version = found.group()
    oldest = ".".join(map(str, OLDEST))
    if (int(found[1]), int(found[2])) < OLDEST:
        raise WiresharkError(f"tshark {version} is too old: {oldest} or later is needed")
    # lines of a field begin with F: name, field, type ...
    listed = (line.split("\t", 3) for line in _told(path, "-G", "fields").splitlines() if line.startswith("F\t"))
    fields = frozenset(parts[2] for parts in listed if len(parts) > 2)
    lacks = [name for name in IDENTIFYING_FIELDS if name not in fields]
    if lacks:
        raise WiresharkError(f"tshark {version} has no field {', '.join(lacks)}: it cannot be asked about RoCE")
    return Tshark(path, version, fields, "zstandard" in about.lower())


#: How long tshark may take to tell its version or its fields; loading its plugins takes a second or two.
_PATIENCE_S = 60


def _told(path: str, *arguments: str) -> str:
    """What tshark prints about itself."""
    with _configuration() as environment:
        try:
            done = subprocess.run(
                [path, *arguments],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env=environment,
                check=False,
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired as error:
            raise WiresharkError(f"tshark {' '.join(arguments)} took more than {_PATIENCE_S} s") from error
        except OSError as error:
            raise WiresharkError(f"{path} cannot be run: {error.strerror or error}") from error
    if done.returncode != 0:
        raise WiresharkError(f"tshark {' '.join(arguments)} failed: {_complaint(done.stderr, done.returncode)}")
    return done.stdout.decode("utf-8", "replace")


@contextlib.contextmanager
def _configuration() -> Iterator[dict[str, str]]:
    """Environment of a tshark with a configuration folder of its own."""
    with tempfile.TemporaryDirectory(prefix="roce-dissect-") as folder:
        Path(folder, "preferences").write_text(_PREFERENCES, encoding="ascii")
        Path(folder, "heuristic_protos").write_text("".join(f"{name},0\n" for name in _HEURISTICS), encoding="ascii")
        yield os.environ | {"WIRESHARK_CONFIG_DIR": folder, "LC_ALL": "C"}


def _complaint(stderr: bytes, status: int) -> str:
    """What went wrong as one line: the last words of a process that failed."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line and not line.startswith("Running as user")]
    if told:
        return " ".join(told).removeprefix("tshark: ").rstrip(".")[:300]
    return f"it was ended by signal {-status}" if status < 0 else f"exit status {status}"


class Rows:
    """tshark's rows of a capture, one for each frame that it takes for RoCE: an iterator that must be closed.

    Parameters
    ----------
    command : sequence of str
        What to run.
    fields : sequence of str
        What each line of its output holds, parted by tabs.
    feed : iterable of bytes, optional
        For its standard input.
    poll_s : float, optional
        Deliver None when nothing came for so many seconds.

    Attributes
    ----------
    error : str or None
        After the last row: why tshark broke off.

    Raises
    ------
    WiresharkError
        It cannot be run.
    """

    def __init__(
        self, command: Sequence[str], fields: Sequence[str], feed: Iterable[bytes] | None, poll_s: float | None
    ) -> None:
        self.error: str | None = None
        self._fields = fields
        self._poll_s = poll_s
        self._resources = contextlib.ExitStack()
        environment = self._resources.enter_context(_configuration())
        self._stderr = cast(IO[bytes], self._resources.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=environment,
                start_new_session=True,  # Ctrl-C is for us: what was compared is still to be printed
            )
        except OSError as error:
            self._resources.close()
            raise WiresharkError(f"{command[0]} cannot be run: {error.strerror or error}") from error
        self._feeder: threading.Thread | None = None
        if feed is not None:
            self._feeder = threading.Thread(target=self._pump, args=(feed,), daemon=True)
            self._feeder.start()

    def _pump(self, feed: Iterable[bytes]) -> None:
        """Write the capture to tshark's standard input. A fault of the capture is told by whoever else reads it."""
        pipe = cast(IO[bytes], self._process.stdin)
        with contextlib.suppress(Exception):
            for piece in feed:
                pipe.write(piece)
        with contextlib.suppress(OSError):
            pipe.close()

    def __iter__(self) -> Iterator[Row | None]:
        pipe = cast(IO[bytes], self._process.stdout)
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        rest = b""
        while True:
            if self._poll_s is not None and not poll.poll(self._poll_s * 1000):
                yield None
                continue
            piece = os.read(pipe.fileno(), _READ_BYTES)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                values = line.decode("utf-8", "replace").split("\t")
                if len(values) == len(self._fields):
                    yield dict(zip(self._fields, values, strict=True))
        status = self._process.wait()
        if status != 0:
            self._stderr.seek(0)
            self.error = _complaint(self._stderr.read(_MOST_COMPLAINT), status)

    def close(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        cast(IO[bytes], self._process.stdout).close()
        if self._feeder is not None:
            self._feeder.join()
        self._resources.close()

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
