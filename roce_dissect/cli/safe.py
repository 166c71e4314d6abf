"""Text from a packet, a file name or an error message, made harmless for a terminal."""

from __future__ import annotations

__all__ = ["safe"]


def safe(text: str) -> str:
    """Text in which nothing acts on a terminal: what does not print stands there as an escape.

    That is control characters (C0, C1, ESC, line breaks), bidirectional overrides and other invisible characters, and
    the bytes of a file name that are no UTF-8.

    Parameters
    ----------
    text : str
        Anything.

    Examples
    --------
    >>> safe("trace\\x1b[2J.pcap")
    'trace\\\\x1b[2J.pcap'
    >>> safe("näme \\u202egnp.pcap")
    'näme \\\\u202egnp.pcap'
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(ord(character)) for character in text)


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # an undecodable byte, as os.fsdecode keeps it
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
