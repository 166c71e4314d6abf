"""Requests: SEND, WRITE, READ, atomics, FLUSH, ATOMIC WRITE, as whole packets.

::

    there = carrier("192.0.2.1", "192.0.2.2", dscp=26, vlan_id=100)
    packets = rdma_write(there, 3000, dest_qp=0x11, psn=7, va=0x1000, r_key=0x203, mtu=1024)  # FIRST, MIDDLE, LAST
    answer = ack(packets[-1], dest_qp=0x12)

The first argument is the layers below the BTH: what `carrier` returns, any Scapy layers, or None for the transport
alone. All other fields of the headers can be given by name (``mig_req=1``, ``p_key=0x8001``, ``xrc_srq=5``), whichever
header has them.

Source: IBTA Vol. 1, 9.4 (operations) and 9.7.3 (segments); annex A19 (FLUSH, ATOMIC WRITE).
"""

from __future__ import annotations

from typing import Any

from scapy.packet import Packet

from roce_dissect.errors import ArgumentError
from roce_dissect.layers.craft import message, roce

__all__ = ["compare_swap", "fetch_add", "rdma_atomic_write", "rdma_flush", "rdma_read", "rdma_send", "rdma_write"]

_ATOMIC_SIZE = 8
#: Transports that acknowledge: the last packet of a message asks for it.
_ACKNOWLEDGED = frozenset({"RC", "RD", "XRC"})


def rdma_send(
    carrier: Packet | None,
    data: bytes | int,
    *,
    dest_qp: int,
    psn: int = 0,
    mtu: int = 1024,
    imm_data: int | None = None,
    inv_r_key: int | None = None,
    transport: str = "RC",
    **fields: Any,
) -> list[Packet]:
    """Packets of a SEND.

    Parameters
    ----------
    carrier : Packet or None
        Layers below the BTH.
    data : bytes or int
        Payload, or how many zero bytes of it.
    dest_qp, psn : int
        Destination QP, and PSN of the first packet.
    mtu : int
        Path MTU in bytes.
    imm_data, inv_r_key : int, optional
        Immediate data, or the remote key to invalidate (RC and XRC), of the last packet.
    transport : str
        ``"RC"``, ``"UC"``, ``"RD"``, ``"UD"`` (give ``q_key`` and ``src_qp``) or ``"XRC"`` (give ``xrc_srq``).
    **fields
        Other fields, of all packets. ``ack_req`` is 1 on the last packet where the transport acknowledges.

    Raises
    ------
    ArgumentError
        A field that no header has, both `imm_data` and `inv_r_key`, or a UD message longer than `mtu`.

    Examples
    --------
    >>> for packet in rdma_send(None, 2500, dest_qp=0x11, psn=0xFFFFFF, mtu=1024, imm_data=7):
    ...     print(packet.summary())
    BTH RC SEND FIRST dest_qp=0x11 psn=16777215 / Raw
    BTH RC SEND MIDDLE dest_qp=0x11 psn=0 / Raw
    BTH RC SEND LAST IMM dest_qp=0x11 psn=1 ack_req / ImmDt imm_data=0x7 / Raw
    """
    size = data if isinstance(data, int) else len(data)
    if transport == "UD" and size > mtu:
        raise ArgumentError(f"a UD message is one packet: {size} bytes are more than the path MTU of {mtu}")
    if imm_data is not None and inv_r_key is not None:
        raise ArgumentError("a SEND carries immediate data or invalidates a key, not both")
    last: dict[str, Any] = {}
    suffix = ""
    if imm_data is not None:
        last, suffix = {"imm_data": imm_data}, " IMM"
    elif inv_r_key is not None:
        last, suffix = {"inv_r_key": inv_r_key}, " INV"
    return message(
        carrier, f"{transport} SEND", data, mtu, suffix=suffix, last=_asking(transport, fields) | last,
        dest_qp=dest_qp, psn=psn, **fields,
    )  # fmt: skip


def rdma_write(
    carrier: Packet | None,
    data: bytes | int,
    *,
    dest_qp: int,
    psn: int = 0,
    mtu: int = 1024,
    va: int = 0,
    r_key: int = 0,
    imm_data: int | None = None,
    transport: str = "RC",
    **fields: Any,
) -> list[Packet]:
    """Packets of an RDMA WRITE.

    Parameters
    ----------
    carrier : Packet or None
        Layers below the BTH.
    data : bytes or int
        Payload, or how many zero bytes of it; none at all is one packet.
    dest_qp, psn : int
        Destination QP, and PSN of the first packet.
    mtu : int
        Path MTU in bytes.
    va, r_key : int
        Remote address and key, in the RETH of the first packet beside the length.
    imm_data : int, optional
        Immediate data, in the last packet.
    transport : str
        ``"RC"``, ``"UC"``, ``"RD"`` or ``"XRC"``.
    **fields
        Other fields, of all packets.

    Raises
    ------
    ArgumentError
        A field that no header has, or an unusable `mtu`.

    Examples
    --------
    >>> [packet.sprintf("%BTH.opcode% %BTH.psn%") for packet in rdma_write(None, 5000, dest_qp=1, psn=7, mtu=2048)]
    ['RC WRITE FIRST 7', 'RC WRITE MIDDLE 8', 'RC WRITE LAST 9']
    """
    size = data if isinstance(data, int) else len(data)
    first = {"va": va, "r_key": r_key, "dma_len": size}
    last = {} if imm_data is None else {"imm_data": imm_data}
    suffix = "" if imm_data is None else " IMM"
    return message(
        carrier, f"{transport} WRITE", data, mtu, suffix=suffix, first=first, last=_asking(transport, fields) | last,
        dest_qp=dest_qp, psn=psn, **fields,
    )  # fmt: skip


def rdma_read(
    carrier: Packet | None,
    length: int,
    *,
    dest_qp: int,
    psn: int = 0,
    va: int = 0,
    r_key: int = 0,
    transport: str = "RC",
    **fields: Any,
) -> Packet:
    """RDMA READ REQUEST for `length` bytes; `rdma_read_response` makes what comes back.

    Examples
    --------
    >>> rdma_read(None, 64, dest_qp=0x11, psn=7, va=0x1000, r_key=0x203).summary()
    'BTH RC READ REQUEST dest_qp=0x11 psn=7 / RETH va=0x1000 r_key=0x203 dma_len=64'
    """
    return roce(
        carrier, f"{transport} READ REQUEST",
        **({"dest_qp": dest_qp, "psn": psn, "va": va, "r_key": r_key, "dma_len": length} | fields),
    )  # fmt: skip


def compare_swap(
    carrier: Packet | None,
    *,
    dest_qp: int,
    va: int,
    r_key: int,
    compare: int,
    swap: int,
    transport: str = "RC",
    **fields: Any,
) -> Packet:
    """Atomic COMPARE SWAP on the 8 bytes at `va`; `atomic_response` makes what comes back."""
    operands = {"compare_data": compare, "swap_add_data": swap}
    return roce(carrier, f"{transport} COMPARE SWAP", dest_qp=dest_qp, va=va, r_key=r_key, **(operands | fields))


def fetch_add(
    carrier: Packet | None, *, dest_qp: int, va: int, r_key: int, add: int, transport: str = "RC", **fields: Any
) -> Packet:
    """Atomic FETCH ADD on the 8 bytes at `va`; `atomic_response` makes what comes back."""
    return roce(carrier, f"{transport} FETCH ADD", dest_qp=dest_qp, va=va, r_key=r_key, swap_add_data=add, **fields)


def rdma_flush(
    carrier: Packet | None,
    length: int,
    *,
    dest_qp: int,
    va: int,
    r_key: int,
    global_visibility: bool = True,
    persistence: bool = False,
    whole_region: bool = False,
    **fields: Any,
) -> Packet:
    """FLUSH of what was written (annex A19): make it visible to all, or persistent. RC only.

    Examples
    --------
    >>> rdma_flush(None, 4096, dest_qp=1, va=0x1000, r_key=2, persistence=True).summary().split(" / ")[1]
    'FETH selectivity=range placement=global_visibility+persistence'
    """
    wanted = {"placement": int(global_visibility) | int(persistence) << 1, "selectivity": int(whole_region)}
    address = {"va": va, "r_key": r_key, "dma_len": length}
    return roce(carrier, "RC FLUSH", dest_qp=dest_qp, **(wanted | address | fields))


def rdma_atomic_write(
    carrier: Packet | None, data: bytes, *, dest_qp: int, va: int, r_key: int, **fields: Any
) -> Packet:
    """ATOMIC WRITE of 8 bytes (annex A19). RC only.

    Raises
    ------
    ArgumentError
        Other than 8 bytes: `roce` builds those.
    """
    if len(data) != _ATOMIC_SIZE:
        raise ArgumentError(f"an ATOMIC WRITE is of {_ATOMIC_SIZE} bytes, not {len(data)}")
    return roce(carrier, "RC ATOMIC WRITE", data, dest_qp=dest_qp, va=va, r_key=r_key, dma_len=_ATOMIC_SIZE, **fields)


def _asking(transport: str, fields: dict[str, Any]) -> dict[str, Any]:
    """``ack_req`` of the last packet, unless the caller gave it for all."""
    return {"ack_req": 1} if transport in _ACKNOWLEDGED and "ack_req" not in fields else {}
