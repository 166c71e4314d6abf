"""What ``vtool`` printed: the verbs it posted, and how each one ended, from ``*.truth.txt`` of the Soft-RoCE captures.

vtool is the lab's own verbs program. Its client posts the work requests that ``--ops`` lists (``verb:bytes:count``,
``@flag`` behind it) and prints every completion; its server posts receives and prints theirs. ``vtool612``, for FLUSH
and ATOMIC WRITE, prints in a form of its own.

What to know about the files:

* A completion with an error says ``opcode=0 bytes=0``, whatever was asked for; verb and id are right. `Run.posted`
  says what was asked for, where the command line is known.
* The client prints ``imm=0x00000000`` with every send of immediate data; only the server's receives tell the value.
* UD receives count the 40 bytes of the GRH.
* Of the two ``flt_blackout`` sets and ``fmt`` the command lines are not recorded.
* ``sq_psn``, at the end, is the PSN that the QP would have sent next: what lies behind it never reached the wire.
* A work request that could not be posted (``post_send ... failed``) is an error without a completion, and a client
  that met an error posts no more than it had: ``posted`` may be fewer than ``--ops`` lists.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FLUSHED, REMOTE_INVALID, REMOTE_ACCESS, REMOTE_OPERATION, RETRIES, RNR_RETRIES = 5, 9, 10, 11, 12, 13

_HOST = re.compile(r"a=server (\S+) .*; b=client (\S+) ")
_BLOCK = re.compile(r"\[([ab])\] (?:\$ |output of: )?(vtool.*)")
_END = re.compile(r"(local|remote) +QPN 0x([0-9a-f]+) PSN 0x([0-9a-f]+) (?:.* GID (\S+))?")
_COMPLETION = re.compile(
    r"[\d.]+ wc (\w+) id=(\d+) status=(\d+)\((.*)\) opcode=(\d+) bytes=(\d+)(?: imm=0x([0-9a-f]+))?"
)
_COMPLETION_612 = re.compile(r"wr (\d+) (\w+)(?: global)? (\d+|whole MR): k=1 status=(\d+) (.*) opcode=(\d+)")
_DONE = re.compile(r"(client|server) done (.*)")
_STATE = re.compile(r"[\d.]+ qp_state=(\d+) sq_psn=0x([0-9a-f]+) rq_psn=0x([0-9a-f]+)")


@dataclass(frozen=True)
class End:
    """One end of a connection; `address` as the tables print it."""

    qpn: int
    psn: int
    address: str


@dataclass(frozen=True)
class Completion:
    """One ``wc`` line; `length` is None where it does not tell, `imm` where there is none."""

    verb: str
    id: int
    status: int
    text: str
    opcode: int
    length: int | None
    imm: int | None = None


@dataclass(frozen=True)
class Posted:
    """One work request of ``--ops``."""

    verb: str
    length: int
    flag: str = ""


@dataclass
class Run:
    """One vtool process."""

    guest: str
    command: str
    local: End
    remote: End
    attrs: dict[str, str] = field(default_factory=dict)
    completions: list[Completion] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    not_posted: list[str] = field(default_factory=list)
    sq_psn: int | None = None
    rq_psn: int | None = None
    exit_status: int | None = None

    @property
    def is_client(self) -> bool:
        """Whether it posts sends; the server's completions are receives."""
        return self.guest == "b"

    @property
    def transport(self) -> str:
        """``RC``, ``UC`` or ``UD``."""
        return self.attrs.get("qpt", "RC")

    @property
    def mtu(self) -> int:
        """Path MTU in bytes."""
        return int(self.attrs.get("mtu", 1024))

    @property
    def dest_qp(self) -> int:
        """QP that its requests name: the remote one, but for ``--force-dqpn``."""
        forced = re.search(r"--force-dqpn (\S+)", self.command)
        return int(forced[1], 0) if forced else self.remote.qpn

    @property
    def posted(self) -> list[Posted] | None:
        """The work requests that it posted, in order, by its command line; None: not recorded."""
        given = re.search(r"--ops (\S+)", self.command)
        if not given:
            return None
        work = []
        for item in given[1].split(","):
            what, _, flag = item.partition("@")
            verb, *numbers = what.split(":")
            if verb != "sleep":
                work += [Posted(verb, int(numbers[0]), flag)] * int(numbers[1])
        for verb in self.not_posted:
            work.remove(next(one for one in reversed(work) if one.verb == verb))
        return work[: self.done.get("posted", len(work))]


def _address(gid: str) -> str:
    ip = ipaddress.ip_address(gid)
    return str(getattr(ip, "ipv4_mapped", None) or ip)


def _blocks(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (guest, command, lines) of each vtool process that printed anything."""
    guest, command, lines = "", "", []
    for line in [*text.splitlines(), "## end"]:
        opening = _BLOCK.match(line)
        if opening or line.startswith(("## ", "[a] ", "[b] ", "counters ")):
            if guest and lines:
                yield guest, command, lines
            guest, command = opening.groups() if opening else ("", "")
            lines = []
        elif line:
            lines.append(line)


def _run(guest: str, command: str, lines: list[str], addresses: dict[str, str]) -> Run:
    ends: dict[str, End] = {}
    where = {"local": addresses[guest], "remote": addresses["a" if guest == "b" else "b"]}
    for line in lines:
        if end := _END.match(line):
            gid = end[4]
            ends[end[1]] = End(int(end[2], 16), int(end[3], 16), _address(gid) if gid else where[end[1]])
    run = Run(guest, command.strip(), ends["local"], ends["remote"])
    for line in lines:
        if line.startswith("attrs "):
            run.attrs = dict(item.split("=") for item in line.split()[1:])
        elif one := _COMPLETION.match(line):
            verb, number, status, text, opcode, length, imm = one.groups()
            size = None if int(status) else int(length)
            told = None if imm is None else int(imm, 16)
            run.completions.append(Completion(verb, int(number), int(status), text, int(opcode), size, told))
        elif one := _COMPLETION_612.match(line):
            number, verb, length, status, text, opcode = one.groups()
            size = int(length) if length.isdecimal() else None
            run.completions.append(Completion(verb, int(number), int(status), text, int(opcode), size))
        elif done := _DONE.match(line):
            run.done = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)(?= |$)", done[2])}
        elif state := _STATE.match(line):
            run.sq_psn, run.rq_psn = int(state[2], 16), int(state[3], 16)
        elif failed := re.search(r"post_send (\w+) failed", line):
            run.not_posted.append(failed[1])
        elif left := re.match(r"\[exit (\d+)\]", line):
            run.exit_status = int(left[1])
    return run


def runs(path: Path) -> list[Run]:
    """Return the vtool processes of a truth file, in its order: the client, then the server.

    Raises
    ------
    ValueError
        If a line that looks like a completion could not be read.
    """
    text = path.read_text()
    hosts = _HOST.search(text)
    addresses = {"a": hosts[1], "b": hosts[2]} if hosts else {"a": "", "b": ""}
    found = [_run(*block, addresses) for block in _blocks(text)]
    read = sum(len(run.completions) for run in found)
    told = len(re.findall(r"^(?:[\d.]+ wc |wr \d+ )", text, re.MULTILINE))
    if read != told:
        raise ValueError(f"{path.name}: {told} completions, of which {read} were understood")
    return found
