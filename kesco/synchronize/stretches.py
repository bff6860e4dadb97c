"""Where the program may ask, as it runs, whether several streams are worth their price.

In: a region and its schedule. Out: the sites behind which a *stretch* begins: work from one place where the host waits
for the device to the next, executed again and again. Launches that take longer than the work they start are slower on
several streams than on one, and whether that is so depends on sizes that no compiler sees; the emitted text times both.

1. A stretch ends where the host waits for the whole device, and the next begins there. 2. In ``main`` only those count
that are executed again, with work in between; other functions may be called again, so that their entry begins one, too.
3. Where it waits for nothing a loop is *paced*, from turn to turn: the innermost ones with work on several streams, but
for those of few trips. So is a function without such loops, from entry to entry, if a loop calls it or code that is not
seen. 4. Behind unseen code a function fetches its streams anew, several of them: all work is joined there, so that no
wait relies on an event that was left out before, and the next stretch chooses again. 5. Where work may also be replayed
as graphs, only stretches with such work are tried, and what is between them takes the same way. 6. Where tasks have
priorities nothing is tried: one stream keeps none of them.
"""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx

from kesco.ir import program as ir
from kesco.ir.flow import Region, is_wait
from kesco.ir.schedule import Schedule
from kesco.source import Span

_TRIPS = 64
"""As many turns as a trial takes."""


def replayed(region: Region, schedule: Schedule, inside: Collection[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sites behind which a stretch begins in which `inside` may run, and those where only another one ends."""
    found = stretches(region, schedule)
    begins = tuple(b for b in found if not _until_waits(region, b).isdisjoint(inside))
    return (begins, tuple(b for b in found if b and b not in begins)) if begins else ((), ())


def _until_waits(region: Region, start: int) -> set[int]:
    """What may run behind a site before the host waits for the device."""
    found: set[int] = set()
    work = list(region.successors[start])
    while work:
        number = work.pop()
        if number not in found:
            found.add(number)
            site = region.sites[number]
            if not is_wait(site):
                work += region.successors[number]
    return found


def stretches(region: Region, schedule: Schedule) -> tuple[int, ...]:
    """The sites behind which a stretch begins, 0 for the entry, ascending."""
    if schedule.streams < 2 or schedule.by_task:
        return ()
    work = {site for site, _ in schedule.stream_of}
    moving = {region.sites[n].operation for n in work}  # copies that also wait for the device
    barriers = [s.number for s in region.sites if is_wait(s) and s.operation not in moving and not s.added]
    if region.function != "main":
        return (0, *barriers) if barriers else ()
    graph = nx.DiGraph((site, after) for site, successors in enumerate(region.successors) for after in successors)
    loops = [loop for loop in nx.strongly_connected_components(graph) if not work.isdisjoint(loop)]
    return tuple(b for b in barriers if any(b in loop for loop in loops))


def paces(program: ir.Program, region: Region, schedule: Schedule) -> tuple[Span, ...]:
    """The first statements of loops that are paced, in the order of the text, or the function; it has no stretches."""
    function = next((f for f in program.functions if f.here and f.span == region.span), None)
    if schedule.streams < 2 or schedule.by_task or function is None:
        return ()
    sites = region.sites
    graph = nx.DiGraph((site, after) for site, successors in enumerate(region.successors) for after in successors)
    again = {n for part in nx.strongly_connected_components(graph) if len(part) > 1 for n in part}
    stream_at = [(sites[number].span.start, stream) for number, stream in schedule.stream_of if number in again]
    apart = [s.span.start for s in sites if s.foreign or is_wait(s)]
    loops = [node for node in ir.walk(function.body) if isinstance(node, ir.Loop)]
    found = [one for one in loops if len({stream for at, stream in stream_at if _is_in(at, one)}) > 1]
    found = [one for one in found if not (_is_short(one) or any(_is_in(at, one) for at in apart))]
    found.sort(key=lambda one: (one.span.start, -one.span.end))
    behind = (*(other.span.start for other in found[1:]), -1)  # a loop inside another one is right behind it
    inner = [one for one, start in zip(found, behind, strict=False) if not _is_in(start, one)]
    firsts = [one.body.body[0].span for one in inner if isinstance(one.body, ir.Block) and one.body.body]
    if firsts:
        return tuple(sorted(firsts, key=lambda span: span.start))
    return (region.span,) if region.function != "main" and _runs_again(program, function) else ()


def _is_short(loop: ir.Loop) -> bool:
    """Whether it is seen to end before the trial would."""
    match loop.condition:
        case ir.Binary(operator="<" | "<=" | "!=", right=end):
            trips = _value(end)
            return trips is not None and trips < _TRIPS
    return False


def _value(expression: ir.Expr) -> int | None:
    """An integer that the text shows: a number, or a constant."""
    match expression:
        case ir.Cast():
            return _value(expression.operand)
        case ir.Constant():
            return expression.value
        case ir.Name():
            return expression.variable.constant
    return None


def _is_in(offset: int, loop: ir.Loop) -> bool:
    return loop.span.start <= offset < loop.span.end


def _runs_again(program: ir.Program, function: ir.Function) -> bool:
    """Whether a function may run more than a few times: a loop calls it, or code whose calls are not known."""
    calls: nx.DiGraph[str] = nx.DiGraph()
    looped = set()
    for one in program.functions:
        calls.add_node(one.key)
        loops = [node.span for node in ir.walk(one.body) if isinstance(node, ir.Loop)]
        for node in ir.walk(one.body):
            if isinstance(node, ir.Call):
                calls.add_edge(node.key, one.key)
                if any(loop.start <= node.span.start < loop.end for loop in loops):
                    looped.add(node.key)
    uncalled = {f.key for f in program.functions if not (f.internal or calls[f.key] or f.name == "main")}
    unknown = uncalled.union(f.key for f in program.functions if f.address_taken or f.virtual)
    callers = {function.key, *nx.descendants(calls, function.key)}
    return not looped.isdisjoint(callers) or not unknown.isdisjoint(callers)
