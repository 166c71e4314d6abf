"""What the first bytes of a file say: compression, capture format, or what it is instead.

Sources: tcpdump.org, "pcap savefile format"; draft-ietf-opsawg-pcapng; RFC 1952 (gzip); RFC 8878 (zstd).
"""

from __future__ import annotations

__all__ = ["PCAPNG_MAGIC", "PCAP_MAGICS", "SNIFF_BYTES", "compression_of", "looks_like"]

#: First bytes of a classic pcap file -> (little-endian, nanoseconds of one unit of the time's fraction).
PCAP_MAGICS = {
    b"\xd4\xc3\xb2\xa1": (True, 1000),
    b"\xa1\xb2\xc3\xd4": (False, 1000),
    b"\x4d\x3c\xb2\xa1": (True, 1),
    b"\xa1\xb2\x3c\x4d": (False, 1),
}
#: Block type of a Section Header Block: a palindrome, so that the byte order does not matter.
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"

#: Bytes that are looked at.
SNIFF_BYTES = 512

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after one byte from 0x50 to 0x5f

_OTHERS = (
    (b"\xfd7zXZ\x00", "compressed with xz"),
    (b"BZh", "compressed with bzip2"),
    (b"\x04\x22\x4d\x18", "compressed with lz4"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"snoop\x00\x00\x00", "a snoop capture: convert it with editcap"),
    (b"btsnoop\x00", "a Bluetooth capture"),
    (b"GMBU", "a Network Monitor capture: convert it with editcap"),
    (b"XCP\x00", "a NetXRay capture: convert it with editcap"),
    (b"\x34\xcd\xb2\xa1", "a capture of a patched libpcap: convert it with editcap"),
    (b"\xa1\xb2\xcd\x34", "a capture of a patched libpcap: convert it with editcap"),
    (b"PAR1", "Parquet"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "PDF"),
    (b"\x89PNG", "PNG"),
)


def compression_of(head: bytes) -> str | None:
    """Return ``"gzip"``, ``"zstd"`` or None."""
    if head[:2] == _GZIP:
        return "gzip"
    if head[:4] == _ZSTD or (head[1:4] == _ZSTD_SKIPPABLE and head[0] & 0xF0 == 0x50):
        return "zstd"
    return None


def looks_like(head: bytes) -> str:
    """Return a short word for what is no capture, or ``""``.

    Examples
    --------
    >>> looks_like(b"time,host\\n")
    'text'
    >>> looks_like(bytes(40))
    'nothing but zeros'
    """
    for magic, name in _OTHERS:
        if head.startswith(magic):
            return name
    compression = compression_of(head)
    if compression:
        return f"compressed with {compression} again"
    if not head.strip(b"\x00"):
        return "nothing but zeros"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text in UTF-16"
    control = set(range(32)) - set(b"\t\n\r\f\x1b")
    if control.isdisjoint(head):
        for cut in range(4):  # the last character may be cut
            try:
                head[: len(head) - cut].decode()
            except UnicodeDecodeError:
                continue
            return "text"
    return ""
