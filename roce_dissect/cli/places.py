"""Where something is: frames in words, and as spans for display filters."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Place", "frame_in_words", "frames_in_words", "spans_of"]

#: File, frame, last file, last frame.
Place = Sequence[int]


def frame_in_words(file: int, frame: int, name_file: bool) -> str:
    """``frame 87``, or ``file 2 frame 87`` where there are several files."""
    return f"file {file + 1} frame {frame}" if name_file else f"frame {frame}"


def frames_in_words(places: Sequence[Place], name_file: bool) -> str:
    """The frames of one thing, ``frames 126-183``, or of one that repeats, ``frames 12 to 208``."""
    file, first, last_file, last = *places[0][:2], *places[-1][2:]
    if file != last_file:
        return f"file {file + 1} frame {first} to file {last_file + 1} frame {last}"
    if first == last:
        return frame_in_words(file, first, name_file)
    where = f"file {file + 1} " if name_file else ""
    return f"{where}frames {first}-{last}" if len(places) == 1 else f"{where}frames {first} to {last}"


def spans_of(place: Place, lengths: Sequence[int]) -> list[tuple[int, int, int]]:
    """Frames by file: (file, first, last), once for each file.

    Parameters
    ----------
    place : sequence of int
    lengths : sequence of int
        Frames of each file: those between the first and the last file are taken whole.
    """
    file, frame, last_file, last_frame = place
    if file == last_file:
        return [(file, frame, last_frame)]
    if last_file < file:
        return [(file, frame, frame), (last_file, last_frame, last_frame)]
    between = [(middle, 1, lengths[middle]) for middle in range(file + 1, last_file)]
    return [(file, frame, lengths[file]), *between, (last_file, 1, last_frame)]
