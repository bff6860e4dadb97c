"""Loops that are come to again and again, of which turns of one number are in order and others need not be.

In: the program, a region, and its loops. Out: those loops (`ir.turns.Turns`, with `lane` and `outer`). Apart from other
rings since they are about all of the loop around them: ``for (step …) for (i …) k<<<…>>>(x[i])``.

1. In the outer loop, the device has nothing to do but the work of such loops in it, of which each is there with a
counter. 2. What two turns touch, of one of these loops or of two, is apart wherever their counters have other values.
So turns of one value are on the same streams, and the order of others does not matter. 3. Before and behind the outer
loop the host waits; in it, it never does. So a function that may be called again and again must wait there by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kesco.ir import program as ir
from kesco.ir.access import Access
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.ir.ranges import range_loops
from kesco.ir.turns import Turns
from kesco.parts import apart, apart_in_lanes
from kesco.rings.body import Body
from kesco.rings.meeting import is_in, may_stay, may_throw, meeting, waits_behind
from kesco.source import Span


def in_lanes(program: ir.Program, region: Region, bodies: Sequence[Body]) -> Iterator[Turns]:
    """The loops among these; one that is inside another one of them is a part of that."""
    found: list[Span] = []
    for outer in {o.number: o for b in bodies for o in b.outers}.values():
        if any(one.start <= outer.span.start < one.end for one in found):
            continue
        inside = [b for b in bodies if any(o is outer for o in b.outers)]
        spans = [b.loop.span for b in inside]
        inside = [b for b in inside if not any(s.start < b.loop.span.start < s.end for s in spans)]
        for turns in _of_loop(program, region, outer, inside):
            found.append(outer.span)
            yield turns


def _of_loop(program: ir.Program, region: Region, outer: ir.Loop, inside: Sequence[Body]) -> Iterator[Turns]:
    turns = [[s for s in b.sites(region) if s.mark is None and s.role is not Role.EXIT] for b in inside]
    work = [site for one in turns for site in one]
    within = [s for s in region.sites if is_in(s, outer.span) and s.mark is None]
    numbers = {site.number for site in work}
    around = [s for s in within if s.number not in numbers and s.role is not Role.EXIT]
    left = _left_by(program, outer, [s for s in within if s.role is Role.EXIT])
    if left is None:
        return
    calm = all(b.allocates_nothing_else(program, ()) for b in inside)
    if (
        not calm
        or not all(turns)
        or not all(may_stay(s, waits=False) for s in (*work, *around))
        or may_throw(region, (*work, *around))
    ):
        return
    if any(s.kind is SiteKind.COPY or s.holds or s.role is Role.DEVICE_SYNC for s in work):
        return
    if any(s.role is not Role.HOST or any(True for one in work for _ in meeting(s, one)) for s in around):
        return
    inner = [s for s in region.sites if is_in(s, outer.span) and s.role is not Role.EXIT]
    if _is_repeated(program, region) and not waits_behind(region, inner, outer.span):
        return
    counters = {b.key: _counter(b, one) for b, one in zip(inside, turns, strict=True)}
    names = [_named(program, b, counters[b.key]) for b in inside]
    if not all(_are_apart(one, other, counters) for n, one in enumerate(work) for other in work[n:]):
        return
    given = {s.operation for s in work if s.role is Role.MOVABLE}
    firsts = [b.first(given.intersection(s.operation for s in one), ()) for b, one in zip(inside, turns, strict=True)]
    late = any(_changes_before(b, counters[b.key]) for b in inside)
    if all(names) and all(one is not None for one in firsts) and not late:
        for body, first, name in zip(inside, firsts, names, strict=True):
            assert first is not None
            yield Turns(
                body.key, body.loop.span, first.span, (), (), (), body.lone, lane=name, outer=outer.span, left=left
            )


def _is_repeated(program: ir.Program, region: Region) -> bool:
    """Whether a function may be called again and again: it is, or what calls it is, in a loop."""
    calls = {f.key: {n.key for n in ir.walk(f.body) if isinstance(n, ir.Call)} for f in program.functions}
    loops = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Loop))
    todo = list({n.key for loop in loops for n in ir.walk(loop) if isinstance(n, ir.Call)})
    found = set(todo)
    while todo:
        new = calls.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return any(f.key in found for f in program.functions if f.span == region.span)


def _left_by(program: ir.Program, outer: ir.Loop, exits: Sequence[Site]) -> tuple[int, ...] | None:
    """The operations by which the function is left within the loop; None where a line cannot be put before one."""
    leaves = [n for n in ir.walk(outer) if isinstance(n, ir.Leave) and n.how in ("return", "throw")]
    found = {n.operation for n in leaves}
    plain = all(n.how == "return" and n.operation >= 0 and not program.operations[n.operation].within for n in leaves)
    places = all(
        program.operations[n].statement is not None and not program.operations[n].stuck for n in found if n >= 0
    )
    return tuple(sorted(found)) if plain and places and {s.operation for s in exits} <= found else None


def _counter(body: Body, sites: Sequence[Site]) -> str:
    """What is counted in a loop and says where its work goes; the counter of its head if that is not one variable."""
    every = (c.turn for s in sites for a in s.accesses if a.bytes is not None for c in a.bytes.counters)
    found = {turn.counter for turn in every if turn is not None and turn.loop == body.key}
    return found.pop() if len(found) == 1 else body.counter


def _changes_before(body: Body, counter: str) -> bool:
    """Whether a counter has another value where a turn's work begins than when the turn does."""
    parts = [p for p in (body.loop.condition, *body.statements[: body.begins() + 1]) if p is not None]
    targets = (n.target for one in parts for n in ir.walk(one) if isinstance(n, ir.Assign))
    return any(isinstance(n, ir.Name) and n.variable.name == counter for one in targets for n in ir.walk(one))


def _named(program: ir.Program, body: Body, counter: str) -> str:
    """What numbers the turns in the text: the counter of a loop over a range is brought in."""
    if not body.loop.ranged:
        return counter
    if counter != body.counter:
        return ""
    return next((r.name for r in range_loops(program, body.function) if r.loop is body.loop), "")


def _are_apart(one: Site, other: Site, counters: Mapping[str, str]) -> bool:
    """Whether two turns share nothing where the counters have other values, whenever that is."""
    return all(_is_apart(x, y, counters) for x, y in meeting(one, other))


def _is_apart(x: Access, y: Access, counters: Mapping[str, str]) -> bool:
    if x.buffer != y.buffer or x.bytes is None or y.bytes is None:
        return False
    return apart(x.bytes, y.bytes) or apart_in_lanes(x.bytes, y.bytes, counters)
