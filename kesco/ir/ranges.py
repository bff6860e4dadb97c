"""Range-based loops whose trips can be counted: which they are, and what their counters are called.

In: a program and a function. Out: for each such loop the name that its counter has, or would have. The text has no
counter for these trips, so the output brings one in; the analysis counts by the same name. Both ask here.

1. A loop has a name if a line can be put before it and one at the beginning of its body: it is a statement of a block
with braces of its own, or all of the body of a loop or branch, and then gets braces around it; and its body is such a
block, or one statement that gets braces: an operation, a loop, a branch. 2. No jump leads over the line before it: the
function has no labels, and the block is none of a switch.
"""

from __future__ import annotations

from dataclasses import dataclass

from kesco.ir import program as ir

COUNTER = "kesco_trip"
_JUMPS = ("goto", "a computed goto", "a label")


@dataclass(frozen=True, slots=True)
class Ranged:
    """A loop, the statement that a trip begins with, and the operation that is all of its body, or -1.

    `end` is where the loop ends, if it is to get braces around it, and `closed` where its body ends, if that is; else
    negative.
    """

    name: str
    loop: ir.Loop
    first: ir.Stmt
    alone: int
    end: int = -1
    closed: int = -1


def range_loops(program: ir.Program, function: ir.Function) -> tuple[Ranged, ...]:
    """The range-based loops of a function that may get a counter; the names are apart from each other."""
    nodes = tuple(ir.walk(function.body))
    if any(isinstance(one, ir.Obstacle) and one.reason in _JUMPS for one in nodes):
        return ()
    found: list[Ranged] = []
    for node in nodes:
        for one, lone in _statements(program, node):
            loop = _unwrapped(one)
            if loop is None or program.text[loop.span.start : loop.span.start + 3] != b"for":
                continue
            name = COUNTER + str(len(found) or "")
            each = loop.body.body[-1] if isinstance(loop.body, ir.Block) else loop.body
            end = _end(program, each)
            block = isinstance(each, ir.Block) and _has_braces(program, each)  # and not that of a macro
            if end < 0 or (isinstance(each, ir.Block) and not each.body):
                continue
            operation = _operation(program, each)
            first = each.body[0] if block and isinstance(each, ir.Block) else each
            closed = -1 if block or operation >= 0 else end
            found.append(Ranged(name, loop, first, operation, end if lone else -1, closed))
    return tuple(found)


def _statements(program: ir.Program, node: ir.Expr | ir.Stmt) -> list[tuple[ir.Stmt, bool]]:
    """The statements right in a node before which a line can be put, and whether they need braces for it."""
    if isinstance(node, ir.Block):
        free = _has_braces(program, node) and not any(isinstance(one, ir.Case) for one in node.body)
        return [(one, False) for one in node.body] if free else []
    if isinstance(node, ir.If):
        return [(one, True) for one in (node.then, node.other) if one is not None]
    if isinstance(node, ir.Loop):
        return [(node.inner, True)]
    return []


def _unwrapped(one: ir.Stmt) -> ir.Loop | None:
    """The range-based loop that a statement is; one over a class stands in a block of its own."""
    if isinstance(one, ir.Block) and one.body and one.body[0].span == one.span:
        one = one.body[0]
    return one if isinstance(one, ir.Loop) and one.ranged else None


def _end(program: ir.Program, one: ir.Stmt) -> int:
    """Where a statement ends that gets braces or has some; negative where that is not known."""
    text, start = program.text, one.span.start
    if isinstance(one, ir.Block) and _has_braces(program, one):
        return one.span.end if text[one.span.end - 1 : one.span.end] == b"}" else -1
    if isinstance(one, ir.Loop) and not one.tested_after and text.startswith((b"for", b"while"), start):
        return _end(program, one.inner)
    if isinstance(one, ir.If) and text.startswith(b"if", start):
        return _end(program, one.then if one.other is None else one.other)
    operation = _operation(program, one)
    statement = program.operations[operation].statement if operation >= 0 else None
    return statement.end if statement is not None else -1


def _has_braces(program: ir.Program, one: ir.Block) -> bool:
    return program.text[one.span.start : one.span.start + 1] == b"{"


def _operation(program: ir.Program, one: ir.Stmt) -> int:
    """The operation of a body without braces, the outermost of several; -1 if there is none, as in a condition."""
    every = [
        (each.span.start - each.span.end, number)
        for number, each in enumerate(program.operations)
        if each.lone and each.statement is not None and each.statement.start == one.span.start and not each.within
    ]
    return min(every)[1] if every else -1
