"""Which launches may be given to the device many at a time: ``batches(program)``.

In: a program. Out: the loops, and where lines have to stand for them (`kesco.ir.batches`). A stage of its own because
it asks nothing of memory: whatever a launch does, the device may do it at any time until somebody waits for it or asks
about it. So a launch on the default stream may be late as long as nothing comes in between that could tell: no call of
CUDA, no code that is not seen, no wait, no way out.

1. A loop is walked as it is written, with the functions of the file that it calls (`Walk`). In front of each statement
that could tell, while launches may be late, the host issues them. 2. A loop pays only if many launches come one behind
the other: in the trips of a loop in it, or in one of its own. 3. Callers come first: what they call is
then a part of their batches.

It refuses loops with control flow that is not followed, and what cannot be edited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kesco.batching.quiet import Quiet
from kesco.batching.walk import Found, NotBatchedError, Walk, trips_of
from kesco.ir import program as ir
from kesco.ir.batches import Batch, Batches
from kesco.source import Span

_FEW = 16
"""A loop of fewer launches is left alone, and in `main`, which runs once, one of less than eight times as many."""
_TRIED = (b"kesco_pace", b"kesco_stretch(")  # what chooses one stream where that is faster
_CAPTURES = (b"BeginCapture", b"cudaThreadExchangeStreamCaptureMode")


def batches(program: ir.Program, without: Collection[Span] = ()) -> Batches:
    """The loops of a file whose launches may be batched, `without` some.

    None where the program captures graphs of its own.
    """
    if program.has("per-thread-stream"):
        return Batches()
    if b"<<<" not in program.text or any(one in program.text for one in _CAPTURES):
        return Batches()
    quiet, whole, loops, members = Quiet(program), Found(), list[Batch](), dict[str, Found | None]()
    here = [f for f in program.functions if quiet.is_own(f) and _may_be_on_one(program, f)]
    called = {n.key for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Call)}
    for function in sorted(here, key=lambda f: (f.key in called, -f.span.start)):
        if function.key in whole.members or any(_jumps(n) for n in ir.walk(function.body)):
            continue
        for loop in _outermost(function.body):
            for one, found in _batched(quiet, members, function, loop, nested=False):
                if one.span in without or any(one.span == other.whole for other in loops):
                    continue
                whole.add(found)
                loops.append(Batch(function.name, one.span, tuple(found.launches), tuple(found.members)))
    loops.sort(key=lambda one: one.whole.start)
    return Batches(
        tuple(loops),
        tuple(whole.launches),
        tuple(whole.calls),
        tuple(whole.issues.values()),
        tuple(whole.trips.values()),
    )


def _may_be_on_one(program: ir.Program, function: ir.Function) -> bool:
    """Whether a function's own work is on the default stream, or may come to be there as the program runs."""
    text = program.text[function.span.start : function.span.end]
    return b"->stream[" not in text or any(one in text for one in _TRIED)


def _jumps(node: ir.Expr | ir.Stmt) -> bool:
    """Whether control may go past a declaration, or a directive gives a statement another meaning."""
    return isinstance(node, ir.Obstacle) and node.reason != "a try block"


def _outermost(statement: ir.Stmt) -> Iterator[ir.Loop]:
    """The loops in a block of a statement that are in no other loop, and in no `switch`."""
    if isinstance(statement, ir.Block):
        for one in statement.body:
            if isinstance(one, ir.Loop):
                yield one
            elif isinstance(one, ir.Block) and any(isinstance(s, ir.Loop) and s.ranged for s in one.body[:1]):
                yield from (s for s in one.body[:1] if isinstance(s, ir.Loop))
            else:
                yield from _outermost(one)
    elif isinstance(statement, ir.If):
        for branch in (statement.then, statement.other):
            if isinstance(branch, ir.Block):
                yield from _outermost(branch)


def _batched(
    quiet: Quiet, members: dict[str, Found | None], function: ir.Function, loop: ir.Loop, *, nested: bool
) -> Iterator[tuple[ir.Loop, Found]]:
    """A loop with what was found in it, or the loops in it."""
    try:
        found = Walk(quiet, members, function.key).loop_of_its_own(loop)
    except NotBatchedError:
        found = Found()
    least = _FEW * 8 if function.name == "main" and not nested else _FEW
    if found.pays and launches_of(loop, found) >= least:
        yield loop, found
        return
    for inner in _outermost(loop.inner):
        yield from _batched(quiet, members, function, inner, nested=True)


def launches_of(node: ir.Stmt, found: Found) -> float:
    """How many launches a statement makes, as far as its text says; infinite where that is not known."""
    if isinstance(node, ir.Loop):
        each = launches_of(node.body, found)
        return each * trips_of(node) if each else 0
    inside = ir.children(node)
    return sum(launches_of(n, found) if isinstance(n, ir.Stmt) else _launches_in(n, found) for n in inside)


def _launches_in(expression: ir.Expr, found: Found) -> int:
    calls = [n for n in ir.walk(expression) if isinstance(n, (ir.Launch, ir.Call))]
    return sum(isinstance(n, ir.Launch) or n.key in found.members for n in calls)
