"""From one function's region to its graph, schedule and plan, and whether it is worth rewriting.

In: a program, a region of it, and options. Out: a `FunctionResult`. The stages do the work; here is only the order in
which they are asked.

1. Put prefetches in where they are asked for, but none with graphs: a prefetch cannot be captured. 2. Take out waits of
the host that nothing needs. 3. With graphs, find the replays; plan what is outside them with each as one operation, and
each by itself; a replay that would have to be awaited by event, or to wait, is none. 4. With a profile, choose the
number of streams by it (`choosing`). 5. Decide whether the function is rewritten at all; one that is not has no
prefetches either. Where every operation was measured and the model expects nothing of streams, it is not; graphs,
prefetches and moved copies are not in the model, so that what has them is not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kesco.ir.compilation import FunctionResult

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.emit.places import Rewrite
    from kesco.ir.flow import Region
    from kesco.ir.program import Function, Program
    from kesco.ir.transfers import Prefetch, Zeroes
    from kesco.ir.turns import Turns
    from kesco.model.forecast import Prices
    from kesco.options import Options


def plan_all(
    program: Program, regions: Sequence[Region], options: Options, prices: Prices | None = None
) -> tuple[FunctionResult, ...]:
    """What is made of each function; some become one with those they call, where that saves joins or overlaps more.

    In others calls become operations. What would make a function one with those it calls is left where two calls of one
    function overlap: as one, they would share its streams.
    """
    from kesco.calling import overlaps_itself
    from kesco.judging import judged
    from kesco.tasks import marked
    from kesco.whose_streams import with_outer_calls

    regions = marked(program, regions)
    found = {(region.function, region.span): plan(program, region, options, prices) for region in regions}
    ask = _calling_plan(program, options, prices)
    called = with_outer_calls(program, regions, found, ask)
    for region in regions:
        if region.linked is None or options.prefetch or options.emit != "streams":
            continue
        here, inside = (region.function, region.span), region.linked.members
        if overlaps_itself(called[here]):
            continue
        parts = [found[here], *(found[member] for member in inside)]
        whole = plan(program, region.linked, options, prices)
        if _pays(whole, parts):
            joins = sum(len(part.plan.joins) for part in parts if part.rewritten)
            found[here] = replace(whole, joins_saved=joins - len(whole.plan.joins))
            for member in inside:
                del found[member]
            called = with_outer_calls(program, regions, found, ask)
    unlinked = {region.span: region for region in regions}

    def on_streams(one: FunctionResult) -> FunctionResult:
        return _plan(program, unlinked[one.region.span], replace(options, copies="move"), prices)

    return judged(program, regions, tuple(called.values()), on_streams if options.copies == "auto" else None)


def _calling_plan(
    program: Program, options: Options, prices: Prices | None
) -> Callable[[Region], FunctionResult] | None:
    """What plans functions with calls as operations; none with graphs, tasks, or what changes the life of memory."""
    plain = options.emit == "streams" and options.memory == "keep" and not options.prefetch and not program.tasks
    return (lambda region: plan(program, region, options, prices)) if plain else None


def prefetchable(
    program: Program, regions: Sequence[Region], options: Options, prices: Prices | None = None
) -> tuple[tuple[Region, int], ...]:
    """The functions into which ``--prefetch`` would put prefetches, and how many, where it was not asked for."""
    from kesco.tasks import marked
    from kesco.transfers import has_managed

    if options.prefetch or options.emit != "streams":
        return ()
    asked = replace(options, prefetch=True)
    some = [region for region in marked(program, regions) if has_managed(region)]
    planned = [(region, plan(program, region, asked, prices)) for region in some]
    return tuple((region, len(one.prefetches)) for region, one in planned if one.rewritten and one.prefetches)


def _pays(whole: FunctionResult, parts: Sequence[FunctionResult]) -> bool:
    """Whether functions get better by being planned as one: nothing waits that did not, and something gains.

    Fewer joins are no gain where a part by itself is timed as it runs: what is one with its callers cannot be.
    """
    timed = any(part.plan.stretches for part in parts if part.rewritten)
    kept = [part for part in parts if part.dfg.graph and not part.rewritten]
    if not whole.rewritten or timed or (not kept and any(part.plan.paces for part in parts)):
        return False
    from kesco.calling import joined, ordered_more
    from kesco.scheduling.levels import overlaps

    if any(ordered_more(whole, part) for part in parts):
        return False
    there = whole.dfg.region
    apart = [joined(part, within=there) for part in parts if part.rewritten]
    joins, before = joined(whole, within=there), (sum(often for often, _ in apart), sum(once for _, once in apart))
    needless = sum(len(part.plan.needless) for part in parts if part.rewritten)
    if joins < before or (joins == before and len(whole.plan.needless) > needless):
        return True
    some = {s.operation for part in kept for s in part.dfg.region.sites}
    among = {s.number for s in there.sites if s.operation in some}
    return bool(among) and overlaps(whole.dfg, whole.schedule, among)


def plan(program: Program, region: Region, options: Options, prices: Prices | None = None) -> FunctionResult:
    """What is made of one function; prefetches and moved copies are in it where it can be rewritten with them.

    Left to kesco (`copies` is ``auto``), copies that the host waits for move in functions that are rewritten
    without that, too, unless they are known to be too small for it to pay; and wherever that lets work run beside
    one of them, or behind it what was kept waiting.
    """
    from kesco.in_turns import in_turns

    result = _plan_in_order(program, region, options, prices)

    def ask(more: Region, before: Region | None, own: Options, turns: tuple[Turns, ...]) -> FunctionResult:
        return _planned(program, more, own, prices, original=before, turns=turns)

    return in_turns(program, region, options, result, ask)


def _plan_in_order(program: Program, region: Region, options: Options, prices: Prices | None) -> FunctionResult:
    """The same with one turn of each loop behind the other."""
    from kesco.scheduling.levels import overlaps_as_issued
    from kesco.transfers.copies import may_pay

    if options.copies != "auto":
        return _plan(program, region, options, prices)
    kept = _plan(program, region, replace(options, copies="keep"), prices)
    if options.emit != "streams":
        return kept
    more = _plan(program, region, replace(options, copies="move"), prices)
    if not more.rewritten or (kept.rewritten and may_pay(region)):
        return more if more.rewritten else kept
    later = more.sends.operations if more.sends is not None else ()
    return more if overlaps_as_issued(more.dfg, more.schedule, later, copies=kept.rewritten) else kept


def _plan(program: Program, region: Region, options: Options, prices: Prices | None) -> FunctionResult:
    """What is made of one function whose copies move or stay.

    Where macros leave it early, the host waits there if nothing else helps, or if copies could not move otherwise.
    `prices` is None where nobody asked for what operations cost.
    """
    from kesco.synchronize.leaving import in_place

    first: FunctionResult | None = None
    if options.copies != "keep":
        first = _with_transfers(program, region, options, prices, waits=True)
        if first is not None and first.rewritten:
            return first
    as_written = _with_transfers(program, region, options, prices)
    assert as_written is not None
    if as_written.rewritten:
        return as_written
    if options.copies == "keep":
        first = _with_transfers(program, region, options, prices, waits=True)
    if first is None or first.rewritten:
        return first or as_written
    less, stay = in_place(program, region)
    last = _with_transfers(program, less, options, prices, stay=stay)
    if last is not None and last.rewritten:
        return replace(last, before=region)
    return replace(as_written, left_because=first.left_because)


def _with_transfers(
    program: Program,
    region: Region,
    options: Options,
    prices: Prices | None,
    *,
    waits: bool = False,
    stay: Collection[int] = (),
) -> FunctionResult | None:
    """The function with as many of its transfers on streams as can be, but none of those in `stay`.

    With `waits` the host waits where macros leave it early; None if there are no such macros.
    """
    from kesco.synchronize.leaving import watched

    result = None
    for more, prefetches, zeroes in (*_variants(program, region, options, stay), (region, (), None)):
        waiting, leaving = watched(program, more, macros=waits)
        if waits and not leaving:
            continue
        original = region if more is not region else None
        result = _planned(program, waiting, options, prices, prefetches, leaving, original, zeroes)
        if result.rewritten:
            return replace(result, before=region if waiting is not region else None)
    return result


def _variants(
    program: Program, region: Region, options: Options, stay: Collection[int]
) -> Iterator[tuple[Region, tuple[Prefetch, ...], Zeroes | None]]:
    """What can be made of a function's transfers, the most first."""
    from kesco.transfers import insert, zeroed
    from kesco.transfers.copies import moved

    streams = options.emit == "streams"
    asked = options.prefetch and streams
    variants = zeroed(program, region) if asked else ((region, None),)
    for start, zeroes in variants:
        more, prefetches = insert(program, start) if asked else (start, ())
        if options.copies != "keep" and streams:
            renamed = {n for n, one in enumerate(program.operations) if (one.rename or one.call) and not one.stuck}
            renamed.difference_update(stay)
            with_copies = moved(more, renamed)
            if with_copies is not more:
                yield with_copies, prefetches, zeroes
        if prefetches or zeroes is not None:
            yield more, prefetches, zeroes


def _planned(
    program: Program,
    region: Region,
    options: Options,
    prices: Prices | None,
    prefetches: tuple[Prefetch, ...] = (),
    watched: tuple[int, ...] = (),
    original: Region | None = None,
    zeroes: Zeroes | None = None,
    turns: tuple[Turns, ...] = (),
) -> FunctionResult:
    """Graph, schedule and plan of one function, and whether it is worth rewriting; `original`: before copies moved."""
    from kesco import dataflow
    from kesco.emit.places import removable
    from kesco.in_turns import host_waits_in
    from kesco.ir.flow import Role
    from kesco.issue.checked import checked
    from kesco.remarks.verdicts import IMMOVABLE, NOTHING, ONLY_MEMSETS
    from kesco.replaying import scheduled
    from kesco.rings import is_in
    from kesco.scheduling import levels
    from kesco.synchronize.needless import needless, without
    from kesco.transfers.background import fetches_of, sends_of
    from kesco.transfers.copies import fetched_later, waits_of_copies

    functions = _functions(program, region)
    looked = checked(program, region)
    whole = removable(program, region, looked) if options.syncs == "move" else ()
    gone = needless(region, whole, waits_of_copies(region), looked)
    fetches, pinned = None, frozenset[int]().union(*(one.pinned for one in turns))
    if options.copies == "move" and original is not None and not region.serial_because:
        calls = {s.operation for s in region.sites if s.holds and any(is_in(s, one.span) for one in turns)}
        fetches = fetches_of(program, functions, region, gone, original, pinned, calls)
    if fetches is not None:
        region = fetched_later(region, fetches.operations)
    within = without(region, gone)
    dfg = dataflow.build(within)
    schedule, found = scheduled(program, within, dfg, options, prices)
    found = replace(found, needless=gone)
    width = max(levels.width(dfg), levels.stages(dfg))
    result = FunctionResult(
        region, dfg, schedule, found, width, prefetches=prefetches, fetches=fetches, watched=watched, zeroes=zeroes,
        turns=turns,
    )  # fmt: skip
    if prices is not None and options.profile and not (region.serial_because or prefetches or zeroes or found.replays):
        from kesco.choosing import expected, in_model

        if dfg.graph and in_model(within):
            result = replace(result, expected=expected(region, dfg, prices, schedule, found))
    if turns:
        result = replace(result, plan=replace(found, stretches=(), paces=()))
    if options.copies == "move" and not region.serial_because:
        result = replace(result, sends=sends_of(program, functions, result, pinned))
    if result.sends or result.fetches:  # threads of the prologue work for it
        result = replace(result, plan=replace(result.plan, paces=()))
    why = region.serial_because
    if not why and not any(s.role is Role.MOVABLE for s in region.sites):
        why = IMMOVABLE
    if not why and host_waits_in(result, result.turns):
        why = NOTHING
    if not why and not options.force and width > 1 and not turns:
        why = _cannot_pay(result)
    if not why and not turns and schedule.streams < 2 and not (options.force and _gains_alone(result)):
        one = options.streams == 1 or options.strategy == "serial" or prices is not None
        why = "one stream holds all of its operations" if one and width > 1 else NOTHING
    if not why and not turns and not options.force and not levels.overlaps(dfg, schedule):
        why = ONLY_MEMSETS
    if not why:
        why = _cannot_emit(program, result)
    return replace(result, left_because=why)


def _functions(program: Program, region: Region) -> tuple[Function, ...]:
    """The function of a region, and those whose calls are a part of it."""
    spans = [region.span, *(span for _, span in region.members)]
    found = {f.span: f for f in program.functions if f.here}
    return tuple(found[span] for span in spans)


def _gains_alone(result: FunctionResult) -> bool:
    """Whether one stream is good for something: the host goes on where it waited, memory is used again, a graph."""
    from kesco.ir.flow import Held, Role, SiteKind

    sites = result.region.sites
    later = any(s.held is Held.LATER or (s.kind is SiteKind.ALLOC and s.role is Role.MOVABLE) for s in sites)
    plan = result.plan
    return later or bool(plan.needless or plan.replays or result.sends or result.fetches or result.prefetches)


def _cannot_pay(result: FunctionResult) -> str:
    """Why the model refuses a rewrite, or an empty text: only where every operation was measured."""
    from kesco.choosing import WORTH

    expected = result.expected
    if expected is None or not (expected.known and expected.exact) or expected.gain >= WORTH:
        return ""
    return f"expected gain {expected.gain * 100:.1f} %"


def _cannot_emit(program: Program, result: FunctionResult) -> str:
    from kesco.emit.render import check

    return check(program, rewrite(program, result))


def following(results: Sequence[FunctionResult]) -> tuple[Region, ...]:
    """The functions that follow their caller's stream."""
    return tuple(one.region for one in results if one.follows)


def rewrite(program: Program, result: FunctionResult) -> Rewrite:
    """What the emitter needs of a function."""
    from kesco.emit.places import Rewrite

    function, *members = _functions(program, result.region)
    return Rewrite(
        function, result.region, result.schedule, result.plan, result.prefetches, tuple(members), result.sends,
        result.watched, result.fetches, result.zeroes, result.turns,
    )  # fmt: skip
