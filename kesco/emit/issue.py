"""The serial program with statements in another order: text that is planned, and then emitted as streams.

In: the text, and which statements change places. Out: the new text, and which stretches of the old one are in it. Apart
from the rest of the emitter because it stands before the analysis: what it writes is read again like the user's own
text.

What stood between the statements, at most empty lines, stays where it was. A statement that moved gets a line above it
that says why; what it is in front of or behind now is not marked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kesco.diagnostics import Diagnostic
from kesco.emit.edits import line_indent, newline_of
from kesco.ir.issue import Reordered
from kesco.ir.pieces import pieces
from kesco.source import Span

Kept = tuple[int, int, int]


def reordered_text(text: bytes, changes: Iterable[Reordered]) -> tuple[bytes, tuple[Kept, ...]]:
    """The text with its statements in another order, and what of the old one is where: begin and end there, begin here.

    In the order of the new text; all of the old one is in it.
    """
    parts: list[bytes] = []
    kept: list[Kept] = []
    size = position = 0

    def put(start: int, end: int) -> None:
        nonlocal size
        if start < end:
            kept.append((start, end, size))
            parts.append(text[start:end])
            size += end - start

    for change in sorted(changes, key=lambda one: one.pieces):
        for (start, end), number in zip(change.pieces, change.order, strict=True):
            put(position, start)
            if why := change.why[number]:
                indent = line_indent(text, change.pieces[number][0])
                parts.append(f"{indent}// kesco: {why}{newline_of(text)}".encode())
                size += len(parts[-1])
            put(*change.pieces[number])
            position = end
    put(position, len(text))
    return b"".join(parts), tuple(kept)


def places_before(path: str, text: bytes, kept: Sequence[Kept]) -> Callable[[Span], Span]:
    """Takes a place of the new text to the one in the old `text`; an inserted line is where the next one was.

    Both are of the file at `path`; places in other files stay.
    """
    starts = [place for _, _, place in kept]

    def offset(new: int) -> int:
        start, end, place = kept[max(bisect_right(starts, new) - 1, 0)]
        if new - place < end - start or new == place:
            return start + new - place
        following = bisect_right(starts, new)
        return kept[following][0] if following < len(kept) else end

    def before(span: Span) -> Span:
        if span.path != path:
            return span
        start = offset(span.start)
        end = offset(span.end - 1) + 1 if span.end > span.start else start
        return pieces(path, text).span(start, max(start, end))

    return before


def diagnostics_before(before: Callable[[Span], Span]) -> Callable[[Diagnostic], Diagnostic]:
    """Takes what is said of the new text to the places of the old one."""

    def back(one: Diagnostic) -> Diagnostic:
        notes = tuple(replace(n, span=before(n.span)) if n.span is not None else n for n in one.notes)
        return replace(one, span=before(one.span) if one.span is not None else None, notes=notes)

    return back
