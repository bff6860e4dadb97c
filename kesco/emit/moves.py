"""The serial program with allocations late and frees early: text that is planned, and then emitted as streams.

In: the text and what moves in it. Out: the new text, and where its places were in the old one. Apart from the rest of
the emitter because it stands before the analysis: what it writes is read again like the user's own text.

1. The statement that allocates becomes a comment and stands again, stream-ordered, before the first that needs the
memory. 2. Behind the last one the memory is freed on its stream. 3. The statement that freed it stays where it was: the
host waits there, as it did, and looks at errors.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from kesco.diagnostics import Diagnostic
from kesco.emit.edits import Edit, apply, at_line_start
from kesco.emit.issue import diagnostics_before
from kesco.emit.places import line_end, lines_before
from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, SiteKind
from kesco.ir.lifetimes import ALLOCATE, FREE, FREED, Moved
from kesco.ir.pieces import pieces
from kesco.source import Span

_NAMES = {
    (SiteKind.ALLOC, Role.MOVABLE): ALLOCATE,
    (SiteKind.FREE, Role.MOVABLE): FREE,
    (SiteKind.FREE, Role.DEVICE_SYNC): FREED,
}


def moved_text(text: bytes, moves: Iterable[Moved]) -> tuple[bytes, Callable[[Diagnostic], Diagnostic]]:
    """The text in which the allocations have moved, and a function that takes what is said of it to the old one."""
    edits = []
    for rank, one in enumerate(moves):
        old = " ".join(text[one.allocation.start : one.allocation.end].decode().split())
        lonely = (
            at_line_start(text, one.allocation.start)
            and not text[one.allocation.end : line_end(text, one.allocation.end)].strip()
        )
        what = f"kesco: allocated where it is first needed: {old}"
        edits.append(Edit(one.allocation.start, one.allocation.end, f"// {what}" if lonely else f"/* {what} */"))
        made = f"{_ordered(text, one.allocation, one.allocates)}  // kesco: first needed here"
        freed = f"{_freed(text, one)}  // kesco: last needed above"
        for place, line, first in ((one.first, made, 1), (one.behind, freed, -len(text))):
            edit = lines_before(text, place, [line])
            edits.append(Edit(edit.start, edit.end, edit.text, first + rank))
    result = apply(text, edits)
    return result, _back(text, edits)


def renamed(program: ir.Program, region: Region) -> list[Edit]:
    """The calls get the names of those in the prologue."""
    edits = {}
    for site in region.sites:
        name = _NAMES.get((site.kind, site.role))
        if name is not None:
            start = program.operations[site.operation].span.start
            end = program.text.index(b"(", start)
            edits[site.operation] = Edit(start, end, name)
    return list(edits.values())


def _freed(text: bytes, one: Moved) -> str:
    """The end of the memory, in the loop that frees it where it is an array; what checks the result is left out."""
    argument = text[one.frees.start : one.frees.end].partition(b"(")[2][:-1].strip()
    header = text[one.release.start : one.frees.start]
    loop = header[: _closed(header)] + b" " if header.startswith(b"for") else b""
    return " ".join((loop + b"cudaFreeAsync(" + argument + b", 0);").decode().split())


def _closed(header: bytes) -> int:
    """Where the parenthesis behind ``for`` is closed."""
    depth = 0
    for at, byte in enumerate(header):
        depth += (byte == ord("(")) - (byte == ord(")"))
        if depth == 0 and byte == ord(")"):
            return at + 1
    return len(header)


def _ordered(text: bytes, statement: Span, call: Span) -> str:
    """A statement that allocates, on a stream."""
    inner = text[call.start : call.end]
    written = b"cudaMallocAsync" + inner[inner.index(b"(") : -1] + b", 0)"
    whole = text[statement.start : call.start] + written + text[call.end : statement.end]
    return " ".join(whole.decode().split())


def _back(text: bytes, edits: list[Edit]) -> Callable[[Diagnostic], Diagnostic]:
    """Takes a diagnostic of the new text to the places of the old one."""
    starts, olds = [0], [0]
    shift = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end, e.rank, e.text)):
        size = len(edit.text.encode())
        starts += [edit.start + shift, edit.start + shift + size]
        olds += [edit.start, edit.end]
        shift += size - (edit.end - edit.start)
    edited = set(range(1, len(starts), 2))

    def offset(new: int) -> int:
        index = bisect_right(starts, new) - 1
        return olds[index] if index in edited else olds[index] + new - starts[index]

    def place(span: Span) -> Span:
        start, end = offset(span.start), offset(span.end)
        return pieces(span.path, text).span(start, max(start, end))

    return diagnostics_before(place)
