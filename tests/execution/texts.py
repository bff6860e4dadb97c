"""Places of line tables and spans of the parser, brought together: both are of the same texts, in other terms.

In: files, as they are asked for. Out: whether a line and column is in a span of bytes, or leads to it by a macro.
"""

from __future__ import annotations

import bisect
from pathlib import Path

from execution.instrument import Place
from kesco.source import Span


class Texts:
    """The texts of files: where a place of a line table is in a span."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[str, bytes, list[int]]] = {}

    def holds(self, span: Span | None, place: Place | None) -> bool:
        offset = self._offset(span, place)
        return span is not None and offset is not None and span.start <= offset <= max(span.start, span.end - 1)

    def leads_to(self, place: Place | None, span: Span) -> bool:
        """Whether a place is that of a macro whose use has the span in it: the line table names its beginning."""
        offset = self._offset(span, place)
        return offset is not None and offset < span.start and b";" not in self._file(span.path)[1][offset : span.start]

    def line_in(self, span: Span, place: Place | None) -> bool:
        if self._offset(span, place) is None or place is None:
            return False
        last = bisect.bisect_right(self._file(span.path)[2], max(span.start, span.end - 1))
        return span.line <= place.line <= last

    def _offset(self, span: Span | None, place: Place | None) -> int | None:
        """Where a place is in the file of a span; None where it is in another."""
        if span is None or place is None or self._file(span.path)[0] != self._file(place.file)[0]:
            return None
        starts = self._file(span.path)[2]
        return starts[place.line - 1] + max(0, place.column - 1) if place.line <= len(starts) else None

    def _file(self, path: str) -> tuple[str, bytes, list[int]]:
        if path not in self._files:
            data = Path(path).read_bytes() if Path(path).is_file() else b""
            starts = [0, *(i + 1 for i, byte in enumerate(data) if byte == 10)]
            self._files[path] = (str(Path(path).resolve()), data, starts)
        return self._files[path]
