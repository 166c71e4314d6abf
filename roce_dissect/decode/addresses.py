"""IP networks, and which hosts of a hosts table lie in them.

A hosts table grows while a capture is read, and nothing in it changes: each row is looked at once.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roce_dissect.decode.hosts import address_words
from roce_dissect.errors import ArgumentError
from roce_dissect.layout import LID_BLOCK

if TYPE_CHECKING:
    from roce_dissect.decode.hosts import HostTable

__all__ = ["HostSet", "Network", "parse_network"]

_MAPPED = 0xFFFF << 32
_MAPPED_BITS = 96  # of an IPv4-mapped address before the IPv4 address begins
_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Network:
    """The addresses whose leading `prefix` of 128 bits are those of `value`; IPv4 in its IPv4-mapped form."""

    value: int
    prefix: int

    def holds(self, words: np.ndarray) -> np.ndarray:
        """Whether each address, uint64[n, 2], lies in it, bool[n]."""
        mask = (1 << 128) - (1 << (128 - self.prefix))
        high, low = np.uint64(mask >> 64), np.uint64(mask & _WORD)
        inside = (words[:, 0] & high) == np.uint64(self.value >> 64)
        inside &= (words[:, 1] & low) == np.uint64(self.value & _WORD)
        if self.prefix < _MAPPED_BITS:  # a network of IPv6: hosts of IPv4 are none of it, and neither are LIDs
            block = words[:, 1] >> np.uint64(32)
            inside &= (words[:, 0] != 0) | (block != np.uint64(0xFFFF)) & (block != np.uint64(LID_BLOCK))
        return np.asarray(inside, bool)


def parse_network(text: str, what: str) -> Network:
    """The network that ``ADDRESS`` or ``ADDRESS/PREFIX`` names; the address may be any of the network's.

    Parameters
    ----------
    text : str
        IPv4 or IPv6, or ``LID 5``. An IPv4-mapped address, as GIDs have it, is the IPv4 address.
    what : str
        What the error begins with.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    try:
        bare = text.strip()
        if bare.startswith("LID "):  # hosts of native InfiniBand without a GRH
            high, low = address_words(bare)
            return Network(high << 64 | low, 128)
        network = ipaddress.ip_network(bare, strict=False)
    except ValueError:
        told = "is neither an IP address nor a network (10.0.0.0/24), and no LID (LID 5)"
        raise ArgumentError(f"{what}: {text!r:.60} {told}") from None
    value = int(network.network_address)
    if network.version == 4:
        return Network(value | _MAPPED, network.prefixlen + _MAPPED_BITS)
    return Network(value, network.prefixlen)


class HostSet:
    """The hosts of one table that lie in any of some networks.

    Parameters
    ----------
    networks : iterable of Network
    """

    def __init__(self, networks: Iterable[Network]) -> None:
        self._networks = tuple(dict.fromkeys(networks))
        self._hosts: HostTable | None = None
        self._inside = np.zeros(1, bool)
        self._looked_at = 1  # row 0 stands for hosts that found no room: it lies in no network

    def of(self, codes: np.ndarray, hosts: HostTable) -> np.ndarray:
        """Whether the host of each code lies in a network, bool, as long as `codes`."""
        if self._hosts is not hosts:
            self._hosts, self._looked_at = hosts, 1
            self._inside = np.zeros(len(hosts.words), bool)
        known = len(hosts)
        if known > self._looked_at:
            words = hosts.words[self._looked_at : known]
            for network in self._networks:
                self._inside[self._looked_at : known] |= network.holds(words)
            self._looked_at = known
        return self._inside[codes]
