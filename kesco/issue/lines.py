"""Which lines of the text belong to a statement, so that it can stand elsewhere in its block.

In: the bytes of a file, a block and its statements. Out: for each statement the bytes of whole lines that are its own,
with the comments right above, if there are such. Apart from the rest because it is about the text only.

1. The statement has its lines to itself: but for a comment behind it nothing else stands there. 2. Comments right above
go with it. What else stands between two statements must be empty lines, which stay where they are; else the two are not
*beside* each other. 3. No directive is in it or right above, and no line of it or above it goes on in the next one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from kesco.ir import program as ir
from kesco.issue.pairs import paired

_DIRECTIVE = re.compile(rb"^[ \t]*(?:#|%:)", re.MULTILINE)
_REST = re.compile(rb"[ \t]*(?://[^\n]*[^\\\s])?[ \t]*\r?")
_COMMENT = re.compile(rb"[ \t]*(?://[^\n]*[^\\\s]|/\*(?:[^*\n]|\*(?!/))*\*/)[ \t]*\r?\n")
_EMPTY_MACRO = re.compile(rb"[A-Za-z_]\w*[ \t]*\Z")

Piece = tuple[int, int]


def blocks(body: ir.Stmt, text: bytes, known: Collection[str]) -> Iterator[tuple[ir.Stmt, ...]]:
    """The statements of each block with braces of its own, with `known` statuses and their checks as one."""
    for node in ir.walk(body):
        if isinstance(node, ir.Block) and not node.declares and text[node.span.start : node.span.start + 1] == b"{":
            yield paired(node.body, known)


def piece_of(program: ir.Program, block: Sequence[ir.Stmt], at: int) -> Piece | None:
    """The lines of the statement at a position of its block."""
    text, one = program.text, block[at]
    start, end = _extent(program, one)
    if not is_whole(program, block, at):
        return None
    line = text.rfind(b"\n", 0, start) + 1
    if isinstance(one, ir.Block) and not one.body and (name := _EMPTY_MACRO.search(text, line, start)):
        start = name.start()
    newline = text.find(b"\n", end)
    if newline < 0 or text[line:start].strip() or not _REST.fullmatch(text[end:newline]):
        return None
    floor = max((_extent(program, other)[1] for other in block[:at]), default=0)
    while line > floor:
        previous = text.rfind(b"\n", 0, line - 1) + 1
        if previous < floor or not _COMMENT.fullmatch(text[previous:line]):
            break
        line = previous
    above = text[text.rfind(b"\n", 0, max(line - 1, 0)) + 1 : line].strip()
    torn = above.endswith((b"\\", b"*/")) or above.startswith(b"#")
    inside = text[line : newline + 1]
    if torn or _DIRECTIVE.search(inside) or b'R"' in inside or text[start : start + 1] == b"{":
        return None
    return line, newline + 1


def is_whole(program: ir.Program, block: Sequence[ir.Stmt], at: int) -> bool:
    """Whether the text of a statement makes no other one: a macro may make several."""
    own = _extent(program, block[at])
    return not any(n != at and _meet(_extent(program, other), own) for n, other in enumerate(block))


def beside(text: bytes, first: Piece, second: Piece) -> bool:
    """Whether nothing but empty lines stands between two pieces."""
    return first[1] <= second[0] and not text[first[1] : second[0]].strip()


def _extent(program: ir.Program, one: ir.Stmt) -> Piece:
    """Where a statement begins and ends, with its semicolon; that of a macro invocation is the operation's."""
    start, end = one.span.start, one.span.end
    for node in ir.walk(one):
        if isinstance(node, (ir.Launch, ir.Call)) and node.operation >= 0:
            place = program.operations[node.operation].statement
            if place is not None and place.path == one.span.path:
                start, end = min(start, place.start), max(end, place.end)
    behind = re.compile(rb"\s*;").match(program.text, end)
    return start, behind.end() if behind and program.text[end - 1 : end] not in b";}" else end


def _meet(a: Piece, b: Piece) -> bool:
    return a[0] < b[1] and b[0] < a[1]
