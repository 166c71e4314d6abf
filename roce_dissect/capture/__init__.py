"""Bytes -> records: capture files, compressed or not, pipes and live interfaces."""

from __future__ import annotations

from roce_dissect.capture.reader import NO_PACKET, Capture, Records, open_capture

__all__ = ["NO_PACKET", "Capture", "Records", "open_capture"]
