"""Edits on a text and their application.

In: the bytes of a file and replacements of byte ranges. Out: the new bytes. A module of its own because everything
that is inserted goes through here, so that an overlap is an error and never a surprise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``[start, end)`` by `text`. At one offset, edits with a lower `rank` come first."""

    start: int
    end: int
    text: str
    rank: int = 0


_BEHIND = -(1 << 41)  # before all that begins at an offset


def behind(start: int) -> int:
    """The rank of what stands behind the statement that begins at `start`: what is inside a statement ends first."""
    return _BEHIND - start


def is_behind(edit: Edit) -> bool:
    """Whether it stands behind a statement."""
    return edit.rank <= _BEHIND


class OverlapError(ValueError):
    """Two edits want to change the same bytes."""


def apply(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with all edits made; raises `OverlapError` if two of them replace the same bytes."""
    pieces: list[bytes] = []
    position = 0
    for edit in sorted(set(edits), key=lambda e: (e.start, e.end, e.rank, e.text)):
        if edit.start < position:
            raise OverlapError(f"two edits overlap at byte {edit.start}")
        pieces += (source[position : edit.start], edit.text.encode())
        position = edit.end
    pieces.append(source[position:])
    return b"".join(pieces)


def kept(source: bytes, edits: Iterable[Edit]) -> tuple[tuple[int, int, int], ...]:
    """What `apply` keeps: where each stretch begins and ends in the source, and begins in the text."""
    stretches: list[tuple[int, int, int]] = []
    position = place = 0
    for edit in sorted(set(edits), key=lambda e: (e.start, e.end, e.rank, e.text)):
        if position < edit.start:
            stretches.append((position, edit.start, place))
        place += edit.start - position + len(edit.text.encode())
        position = edit.end
    if position < len(source):
        stretches.append((position, len(source), place))
    return tuple(stretches)


def line_indent(source: bytes, offset: int) -> str:
    """The white space at the beginning of the line that holds `offset`."""
    start = source.rfind(b"\n", 0, offset) + 1
    end = start
    while source[end : end + 1] in (b" ", b"\t"):
        end += 1
    return source[start:end].decode()


def at_line_start(source: bytes, offset: int) -> bool:
    """Whether only white space stands before `offset` on its line."""
    return not source[source.rfind(b"\n", 0, offset) + 1 : offset].strip()


def newline_of(source: bytes) -> str:
    """The line ending that the file uses."""
    return "\r\n" if b"\r\n" in source[:4096] else "\n"


def kept_through(
    first: Iterable[tuple[int, int, int]], second: Iterable[tuple[int, int, int]]
) -> tuple[tuple[int, int, int], ...]:
    """What two rounds of edits keep together: `second` begins where `first` ends."""
    result: list[tuple[int, int, int]] = []
    later = tuple(second)
    for start, end, place in first:
        for begin, stop, at in later:
            low, high = max(place, begin), min(place + end - start, stop)
            if low < high:
                result.append((start + low - place, start + high - place, at + low - begin))
    return tuple(result)
