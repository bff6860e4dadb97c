"""Places in a source file.

Offsets are byte offsets into the file's content, so that edits never depend on an encoding; lines and columns count
from 1, columns in bytes, as clang prints them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open byte range ``[start, end)`` of one file, with the line and column of its start."""

    path: str
    start: int
    end: int
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"
