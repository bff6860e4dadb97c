"""From one function's region to its graph, schedule and plan, and whether it is worth rewriting.

In: a program, a region of it, and options. Out: a `FunctionResult`. The stages do the work; here is only the order in
which they are asked.

1. Put prefetches in where they are asked for, but none with graphs: a prefetch cannot be captured. 2. Take out waits of
the host that nothing needs. 3. With graphs, find the replays; plan what is outside them with each as one operation, and
each by itself; a replay that would have to be awaited by event, or to wait, is none. 4. Decide whether the function is
rewritten at all; one that is not has no prefetches either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kesco.ir.compilation import FunctionResult

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.emit.places import Rewrite
    from kesco.ir.dfg import Dfg
    from kesco.ir.flow import Region
    from kesco.ir.program import Program
    from kesco.ir.replay import Replay
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan
    from kesco.ir.transfers import Prefetch
    from kesco.options import Options


def plan(program: Program, region: Region, options: Options) -> FunctionResult:
    """What is made of one function; prefetches are put in where the function can be rewritten with them."""
    from kesco.transfers import insert

    if options.prefetch and options.emit == "streams":
        more, prefetches = insert(program, region)
        result = _planned(program, more, options, prefetches) if prefetches else None
        if result is not None and result.rewritten:
            return replace(result, before=region)
    return _planned(program, region, options)


def _planned(
    program: Program, region: Region, options: Options, prefetches: tuple[Prefetch, ...] = ()
) -> FunctionResult:
    """Graph, schedule and plan of one function, and whether it is worth rewriting."""
    from kesco import dataflow
    from kesco.emit.places import removable
    from kesco.ir.flow import Role
    from kesco.remarks.barriers import why_one_stream
    from kesco.scheduling import levels
    from kesco.synchronize.needless import needless, without

    gone = needless(region, removable(program, region))
    within = without(region, gone)
    dfg = dataflow.build(within)
    schedule, found = _scheduled(program, within, dfg, options)
    found = replace(found, needless=gone)
    width = levels.width(dfg)
    result = FunctionResult(region, dfg, schedule, found, width, prefetches=prefetches)
    why = region.serial_because
    if not why and not any(s.role is Role.MOVABLE for s in region.sites):
        why = "it launches nothing that could be moved"
    if not why and schedule.streams < 2 and not options.force:
        why = why_one_stream(within, width)
    if not why and not options.force and not levels.overlaps(dfg, schedule):
        why = "only memsets could overlap with anything, which does not pay for the streams"
    if not why:
        why = _cannot_emit(program, result)
    return replace(result, left_because=why)


def _scheduled(program: Program, region: Region, dfg: Dfg, options: Options) -> tuple[Schedule, SyncPlan]:
    """The schedule and the plan, with graphs where they are asked for."""
    from kesco.scheduling.strategies import STRATEGIES, default_streams
    from kesco.synchronize import synchronize
    from kesco.synchronize.fences import fences
    from kesco.synchronize.stretches import stretches

    if options.emit != "streams" and not region.serial_because:
        parts = _with_replays(program, region, options)
        if parts is not None:
            schedule, found = parts
            begins, pauses = _trials(region, schedule, found, options)
            if begins or options.emit == "graph":
                return schedule, replace(found, fences=fences(region), stretches=begins, pauses=pauses)
    schedule = STRATEGIES[options.strategy](dfg, options.streams or default_streams(dfg))
    begins = () if options.emit == "graph" else stretches(region, schedule)
    return schedule, replace(synchronize(dfg, schedule), fences=fences(region), stretches=begins)


def _trials(
    region: Region, schedule: Schedule, found: SyncPlan, options: Options
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the program tries which way is faster: nowhere, with graphs only."""
    from kesco.synchronize.stretches import replayed

    if options.emit == "graph":
        return (), ()
    return replayed(region, schedule, frozenset(n for r in found.replays for n in r.sites))


def _with_replays(program: Program, region: Region, options: Options) -> tuple[Schedule, SyncPlan] | None:
    """The schedule and the plan of a function some of whose statements become graphs, if there are any."""
    from kesco import dataflow
    from kesco.capture import candidates
    from kesco.capture.regions import outside
    from kesco.scheduling.strategies import STRATEGIES, default_streams
    from kesco.synchronize import synchronize

    function = next(f for f in program.functions if f.here and f.span == region.span)
    replays = candidates(program, function, region)
    strategy = STRATEGIES[options.strategy]
    while replays:
        dfg = dataflow.build(outside(region, replays))
        schedule = strategy(dfg, options.streams or default_streams(dfg))
        found = synchronize(dfg, schedule)
        awaited = {n for wait in found.waits for n in (wait.source, wait.target)}
        kept = tuple(r for r in replays if r.sites[0] not in awaited)
        if kept == replays:
            return _joined(region, replays, schedule, found, options)
        replays = kept
    return None


def _joined(
    region: Region, replays: Sequence[Replay], schedule: Schedule, found: SyncPlan, options: Options
) -> tuple[Schedule, SyncPlan]:
    """What is outside the replays and what is in each of them, in one."""
    from kesco import dataflow
    from kesco.capture.regions import inside, is_alone
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan
    from kesco.scheduling.chains import chains
    from kesco.scheduling.strategies import MOST_STREAMS, STRATEGIES, default_streams
    from kesco.synchronize import synchronize

    stream_of, order, streams = schedule.as_dict(), list(schedule.order), schedule.streams
    plans, placed = [found], []
    for one in replays:
        dfg = dataflow.build(inside(region, one))
        inner = None if options.streams or options.strategy != "kesco" else chains(dfg, MOST_STREAMS)
        inner = inner or STRATEGIES[options.strategy](dfg, options.streams or default_streams(dfg))
        plans.append(synchronize(dfg, inner))
        head = one.sites[0]
        placed.append(replace(one, stream=stream_of.pop(head), alone=is_alone(region, one)))
        at = order.index(head)
        order[at : at + 1] = inner.order
        stream_of |= {site: stream for site, stream in inner.stream_of if site in one.sites}
        streams = max(streams, inner.streams)
    merged = SyncPlan(
        tuple(sorted(event for p in plans for event in p.events)),
        tuple(sorted((w for p in plans for w in p.waits), key=lambda w: (w.target, w.source))),
        found.joins,
        tuple(sorted((r for p in plans for r in p.removed), key=lambda r: (r.target, r.source))),
        replays=tuple(placed),
    )
    return Schedule(schedule.strategy, streams, tuple(sorted(stream_of.items())), tuple(order)), merged


def _cannot_emit(program: Program, result: FunctionResult) -> str:
    from kesco.emit.render import check

    return check(program, rewrite(program, result))


def rewrite(program: Program, result: FunctionResult) -> Rewrite:
    """What the emitter needs of a function."""
    from kesco.emit.places import Rewrite

    function = next(f for f in program.functions if f.here and f.span == result.region.span)
    return Rewrite(function, result.region, result.schedule, result.plan, result.prefetches)
