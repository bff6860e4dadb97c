"""Where an operation stands in the text, and which part of the text says its stream.

In: the cursor of a launch or call and the statement around it. Out: `ir.program.Operation`. The parse tells what a
program means; this module tells what may be edited. It refuses text inside macro bodies, operations that share
a statement, and operations inside conditions, each with the reason in words.
"""

from __future__ import annotations

from dataclasses import dataclass

from clang.cindex import Cursor

from kesco.frontend.clang import Place, SourceFile, file_place
from kesco.ir.pieces import pieces
from kesco.source import Span

IN_HEAD = "it is part of a condition or a returned value"
"""Why nothing can be put behind an operation, though it may get another name."""


@dataclass(slots=True)
class Anchor:
    """The statement of the file around what is being lowered, while descending.

    `start`/`end` are byte offsets without the semicolon; `stuck` is set where what is inside is not executed exactly
    once each time the statement is, or cannot be told apart from its neighbours.
    """

    start: int
    end: int
    lone: bool
    stuck: str = ""


def skip_space(text: bytes, position: int) -> int:
    """The offset of the next byte that is neither white space nor in a comment."""
    while position < len(text):
        if text[position : position + 2] == b"//":
            position = _after(text, b"\n", position)
        elif text[position : position + 2] == b"/*":
            position = _after(text, b"*/", position)
        elif text[position : position + 1].isspace() or text[position : position + 2] == b"\\\n":
            position += 1
        else:
            break
    return position


def _after(text: bytes, what: bytes, position: int) -> int:
    found = text.find(what, position)
    return len(text) if found < 0 else found + len(what)


def with_semicolon(text: bytes, end: int) -> int:
    """The offset behind the semicolon that follows `end`, or `end` itself when none does."""
    position = skip_space(text, end)
    return position + 1 if text[position : position + 1] == b";" else end


def header_semicolons(text: bytes, start: int) -> tuple[int, int, int] | None:
    """The offsets of both semicolons and of the closing parenthesis of the ``for (…)`` that begins at `start`."""
    position = text.find(b"(", start)
    if position < 0:
        return None
    depth, found = 0, list[int]()
    while position < len(text):
        byte = text[position : position + 1]
        if text[position : position + 2] in (b"//", b"/*"):
            position = skip_space(text, position)
            continue
        if byte in (b'"', b"'"):
            position = end_of_literal(text, position, byte)
            continue
        if byte in (b"(", b"{", b"["):
            depth += 1
        elif byte in (b")", b"}", b"]"):
            depth -= 1
            if depth == 0:
                return (found[0], found[1], position) if len(found) == 2 else None
        elif byte == b";" and depth == 1:
            found.append(position)
        position += 1
    return None


def end_of_literal(text: bytes, position: int, quote: bytes) -> int:
    """The offset behind the string or character literal that begins at `position`."""
    if quote == b"'" and position and text[position - 1 : position].isalnum():
        return position + 1  # a digit separator
    position += 1
    while position < len(text) and text[position : position + 1] != quote:
        position += 2 if text[position : position + 1] == b"\\" else 1
    return position + 1


def semicolon_between(text: bytes, start: int, end: int) -> bool:
    """Whether a semicolon stands between two offsets, outside comments."""
    position = start
    while position < end:
        position = skip_space(text, position)
        if position < end and text[position : position + 1] == b";":
            return True
        position += 1
    return False


def file_range(cursor: Cursor) -> tuple[Place, Place]:
    """Start and end of a cursor as text of the file; both ends are the invocation for a macro's own body."""
    extent = cursor.extent
    return file_place(extent.start), file_place(extent.end)


def span_of(source: SourceFile, cursor: Cursor) -> Span:
    """Where a person would say the cursor is: in the file's text, macro arguments at their own place."""
    start, end = file_range(cursor)
    path, last = source.path, max(start.offset, end.offset)
    files = pieces(path, source.text)
    if files.every and start.file in (path, ""):
        return files.span(start.offset, last)
    if start.file and start.file != path:
        return Span(start.file, start.offset, last, start.line, start.column)
    return Span(path, start.offset, last, start.line, start.column)


def launch_stream_text(text: bytes, path: str, configuration: Cursor) -> tuple[int, int] | None:
    """The offsets of ``<<<`` and ``>>>`` of a launch, or None when they are not in the file's own text."""
    start, end = file_range(configuration)
    if start.file != path or end.file != path:
        return None
    for close in (end.offset - 3, end.offset):
        if (
            text[start.offset : start.offset + 3] == b"<<<"
            and text[close : close + 3] == b">>>"
            and close > start.offset
        ):
            return start.offset, close
    return None


def call_text(text: bytes, path: str, cursor: Cursor, named: Cursor | None) -> tuple[int, int] | None:
    """Where a call stands that is what names a function, and parentheses; None where a macro is a part of that."""
    start, end = file_range(cursor)
    if not start.file == end.file == path:
        return None
    behind = start if named is None else file_range(named)[1]
    close = closing_parenthesis(text, behind.offset)
    whole = close is not None and start.offset < behind.offset <= close == end.offset - 1
    return (start.offset, end.offset) if whole else None


def closing_parenthesis(text: bytes, position: int) -> int | None:
    """The offset of the parenthesis that closes the one opening at or behind `position`."""
    return closing(text, position, b"(", b")")


def closing(text: bytes, position: int, opens: bytes, closes: bytes) -> int | None:
    """The same for any brackets."""
    position = skip_space(text, position)
    if text[position : position + 1] != opens:
        return None
    depth = 0
    while position < len(text):
        byte = text[position : position + 1]
        if text[position : position + 2] in (b"//", b"/*"):
            position = skip_space(text, position)
            continue
        if byte in (b'"', b"'"):
            position = end_of_literal(text, position, byte)
            continue
        depth += {opens: 1, closes: -1}.get(byte, 0)
        if depth == 0:
            return position
        position += 1
    return None
