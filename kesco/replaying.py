"""The schedule and the plan of a function, with work that runs again and again as CUDA graphs where that is asked for.

In: a program, a region of it, options. Out: one schedule and one plan; with graphs, of what is outside the replays with
each as one operation, and of each by itself, and of where the program tries which way is faster. Graphs are neither
awaited by event nor made to wait: one that would have to be is none (CUDA Programming Guide, "CUDA Graphs").

What it refuses to do: decide whether the function is rewritten at all. `planning` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.ir.dfg import Dfg
    from kesco.ir.flow import Region
    from kesco.ir.program import Program
    from kesco.ir.replay import Replay
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan
    from kesco.model.forecast import Prices
    from kesco.options import Options


def trials(
    region: Region, schedule: Schedule, found: SyncPlan, options: Options
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the program tries which way is faster: nowhere, with graphs only."""
    from kesco.synchronize.stretches import replayed

    if options.emit == "graph":
        return (), ()
    return replayed(region, schedule, frozenset(n for r in found.replays for n in r.sites))


def with_replays(
    program: Program, region: Region, options: Options, prices: Prices | None
) -> tuple[Schedule, SyncPlan] | None:
    """The schedule and the plan of a function some of whose statements become graphs, if there are any."""
    from kesco import dataflow
    from kesco.capture import candidates
    from kesco.capture.regions import outside
    from kesco.choosing import placed
    from kesco.synchronize import synchronize

    region = replace(region, sites=tuple(replace(s, mark=None, loop="") for s in region.sites))  # graphs know no trips
    function = next(f for f in program.functions if f.here and f.span == region.span)
    replays = candidates(program, function, region)
    while replays:
        dfg = dataflow.build(outside(region, replays))
        schedule = placed(dfg, options, prices)
        heads = {r.sites[0] for r in replays}  # a graph is not held: it would be none
        free = tuple(b for b in schedule.barriers if heads.isdisjoint((b.source, b.target)))
        found = synchronize(dfg, replace(schedule, barriers=free))
        awaited = {n for wait in found.waits for n in (wait.source, wait.target)}
        kept = tuple(r for r in replays if r.sites[0] not in awaited)
        if kept == replays:
            return _joined(region, replays, schedule, found, options, prices)
        replays = kept
    return None


def _joined(
    region: Region,
    replays: Sequence[Replay],
    schedule: Schedule,
    found: SyncPlan,
    options: Options,
    prices: Prices | None,
) -> tuple[Schedule, SyncPlan]:
    """What is outside the replays and what is in each of them, in one."""
    from kesco import dataflow
    from kesco.capture.regions import inside, is_alone
    from kesco.choosing import placed
    from kesco.ir.schedule import Schedule, joined_ranks
    from kesco.ir.syncplan import SyncPlan
    from kesco.scheduling.chains import chains
    from kesco.scheduling.streams import MOST_STREAMS
    from kesco.scheduling.tasks import has_tasks
    from kesco.synchronize import synchronize

    stream_of, order, streams = schedule.as_dict(), list(schedule.order), schedule.streams
    plans, parts, replayed = [found], [schedule], []
    for one in replays:
        dfg = dataflow.build(inside(region, one))
        free = not options.streams and options.strategy != "serial" and not has_tasks(dfg)
        inner = (chains(dfg, MOST_STREAMS) if free else None) or placed(dfg, options, prices)
        parts.append(inner)
        plans.append(synchronize(dfg, inner))
        head = one.sites[0]
        replayed.append(replace(one, stream=stream_of.pop(head), alone=is_alone(region, one)))
        at = order.index(head)
        order[at : at + 1] = inner.order
        stream_of |= {site: stream for site, stream in inner.stream_of if site in one.sites}
        streams = max(streams, inner.streams)
    merged = SyncPlan(
        tuple(sorted(event for p in plans for event in p.events)),
        tuple(sorted((w for p in plans for w in p.waits), key=lambda w: (w.target, w.source))),
        found.joins,
        tuple(sorted((r for p in plans for r in p.removed), key=lambda r: (r.target, r.source))),
        replays=tuple(replayed),
    )
    ranks = joined_ranks(parts, streams)
    return Schedule(schedule.strategy, streams, tuple(sorted(stream_of.items())), tuple(order), ranks=ranks), merged


def scheduled(
    program: Program, region: Region, dfg: Dfg, options: Options, prices: Prices | None
) -> tuple[Schedule, SyncPlan]:
    """The schedule and the plan, with graphs where they are asked for."""
    from kesco.choosing import choose, may_refuse, placed
    from kesco.scheduling.tasks import has_tasks
    from kesco.synchronize import synchronize
    from kesco.synchronize.fences import fences
    from kesco.synchronize.stretches import paces, stretches

    if options.emit != "streams" and not region.serial_because:
        parts = with_replays(program, region, options, prices)
        if parts is not None:
            schedule, found = parts
            begins, pauses = trials(region, schedule, found, options)
            if begins or options.emit == "graph":
                return schedule, replace(found, fences=fences(region), stretches=begins, pauses=pauses)
    by_costs = options.strategy_for(has_tasks(dfg)) == "critical_path"
    if prices is not None and options.profile and by_costs:
        schedule, made = choose(dfg, prices, options.streams, 1 if may_refuse(dfg, prices) and not options.force else 2)
    else:
        schedule = placed(dfg, options, prices)
        made = synchronize(dfg, schedule)
    begins = () if options.emit == "graph" or region.members else stretches(region, schedule)
    paced = () if options.emit == "graph" or region.members or begins else paces(program, region, schedule)
    return schedule, replace(made, fences=fences(region), stretches=begins, paces=paced)
