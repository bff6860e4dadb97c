"""What a task with the highest priority is promised beside others: ``promised(dfg, zones, …)`` → `Hold`s.

In: a graph whose sites name their tasks, what operations cost and how often each ran, the promise, the ageing bound.
Out: for operations of lower tasks, how much of a loop of the highest task must be done before they begin. It is apart
from `zones_fair` because barriers hold an operation behind single others, and a loop is done by and by.

The promise is that the highest task takes at most so many percent longer than serially by itself.

1. Alone, with streams, the task takes less than serially: the longest of its streams and of its chains. The difference
   and the promise are what others may cost it. 2. While others run beside it, it is taken to need `BESIDE` times as
   long: streams' priorities do not take back a place on the GPU, and caches and bandwidth are shared whoever is first.
   So the part of it in which others may run beside it is known, and until the rest of it is done they are held.
3. The first of the lower priorities begins then. Those below it give way: they begin when the rest of the highest task
   takes as long as they do by themselves. Fewer run beside it then, and beside each other. 4. Where such a point lies
   in a loop, they wait for this share of the executions that the host has issued by then: how many there are is only
   known as the program runs. 5. *Ageing*: no task is held for more than `age` times as long as it takes by itself,
   less what barriers hold it for.

What it refuses to do: hold anything where costs are not measured; hold what a higher task needs, what shares a loop
with the task, or what its own loop leads back to; promise anything to tasks that are not the highest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Hold
from kesco.scheduling.critical_path import ranks
from kesco.scheduling.levels import phases, predecessors
from kesco.scheduling.loops import Loops
from kesco.scheduling.tasks import NO_TASK, Zone, chains, heavy, only, reach, urgency

PROMISE = 10
"""Percent that the highest task may take longer than serially by itself."""
BESIDE = 2.05
"""How many times as long a task is taken to need while others run beside it: measured on an H100 for ML of MP-2."""


def held_until(serial: float, alone: float, promise: float) -> float:
    """The part of a task (0 to 1) that must be done before others begin, for it to keep the promise in percent.

    `serial` is how long it takes serially and by itself, `alone` how long with its streams, in any one unit.
    """
    if alone <= 0.0:
        return 0.0
    spare = serial * (1 + promise / 100) / alone - 1
    return min(1.0, max(0.0, 1 - spare / (BESIDE - 1)))


def staggered(until: float, alone: float, lower: Mapping[int, float]) -> dict[int, float]:
    """When each lower priority begins, after the highest task did.

    `until` is the part of that after which others may begin, `alone` how long it takes by itself; `lower` has by
    priority how long the longest of its tasks takes by itself, in the same unit.
    """
    begin = until * alone
    ends = begin + BESIDE * (alone - begin)
    found: dict[int, float] = {}
    for priority in sorted(lower, reverse=True):
        begin = max(begin, ends - lower[priority]) if found else begin
        found[priority] = begin
    return found


def done(until: float, alone: float, time: float) -> float:
    """The part of the highest task that is done after that time, where others run beside it from `until` on."""
    part = time / alone
    return part if part <= until else min(1.0, until + (part - until) / BESIDE)


def promised(
    dfg: Dfg,
    zones: Sequence[Zone],
    stream_of: Mapping[int, int],
    total: Mapping[int, float],
    promise: float,
    age: float,
    spent: Mapping[int, float],
) -> tuple[Hold, ...]:
    """The holds, by target.

    `total` has for each site the microseconds of all its executions in the profiled run, and `spent` for each zone what
    barriers hold it for.
    """
    loops, urgent, works, chain = Loops(dfg.region), urgency(dfg), heavy(dfg), chains(dfg.region)
    found: list[Hold] = []
    for phase in phases(dfg):
        parts = [
            (zone, [site for site in phase if site in works and site in {*zone.sites}])
            for zone in zones
            if zone.priority != NO_TASK
        ]
        parts = [(zone, sites) for zone, sites in parts if sites]
        highest = max((zone.priority for zone, _ in parts), default=NO_TASK)
        after = reach(dfg.region, phase)
        for first in (sites for zone, sites in parts if zone.priority == highest):
            serial = sum(total[site] for site in first)
            alone = _alone(dfg, first, stream_of, total)
            until = held_until(serial, alone, promise)
            lower: dict[int, float] = {}
            for zone, sites in parts:
                if zone.priority < highest:
                    lower[zone.priority] = max(lower.get(zone.priority, 0.0), _alone(dfg, sites, stream_of, total))
            begins = staggered(until, alone, lower)
            for zone, sites in parts:
                if zone.priority == highest or until <= 0.0:
                    continue
                serially = sum(total[site] for site in sites)
                left = max(0.0, age * serially - spent.get(zones.index(zone), 0.0))
                begin = begins[zone.priority]
                aged, gives_way = left < begin, begin > until * alone
                part = done(until, alone, min(left, begin))
                place = _place(loops, first, stream_of, total, part, math.floor if gives_way else math.ceil)
                if place is None:
                    continue
                loop, mark, share = place
                targets = [
                    site for site in _begins(sites, stream_of, chain, loops)
                    if site not in loop and mark < site and after[mark] >> site & 1 and urgent[site] < highest
                    and not after[site] >> mark & 1
                ]  # fmt: skip
                name = dfg.region.sites[mark].task or "the highest task"
                why = (
                    f"for at most {age:g} times as long as its task takes" if aged
                    else f"it gives way until what is left of {name} takes as long as it does" if gives_way
                    else f"so that {name} takes at most {promise:g} % longer than serially alone"
                )  # fmt: skip
                found += [Hold(mark, site, share, why) for site in targets]
    return tuple(sorted(found, key=lambda one: (one.target, one.mark)))


def _alone(dfg: Dfg, sites: Sequence[int], stream_of: Mapping[int, int], total: Mapping[int, float]) -> float:
    """How long a task takes by itself with its streams: its longest stream, or its longest chain of dependences."""
    streams: dict[int, float] = {}
    for site in sites:
        streams[stream_of[site]] = streams.get(stream_of[site], 0.0) + total[site]
    chain = ranks(predecessors(only(dfg, sites)), {site: total[site] for site in sites})
    return max(*streams.values(), *chain.values())


def _place(
    loops: Loops,
    sites: Sequence[int],
    stream_of: Mapping[int, int],
    total: Mapping[int, float],
    until: float,
    whole: Callable[[float], int],
) -> tuple[Collection[int], int, int] | None:
    """The loop in which a part of a task's work ends, an operation of it, and how many percent of the loop that is.

    The operations of a task follow each other in the text; where the part ends outside of loops, it is the loop before.
    The operation is the last one on the stream that has most to do in the loop: others may be ahead of it.
    """
    work = until * sum(total[site] for site in sites)
    before, place = 0.0, None
    seen: set[int] = set()
    for site in sites:
        if before >= work or site in seen:
            continue
        loop = loops.around(site)
        inside = [one for one in sites if one in loop] if loop else [site]
        seen.update(inside)
        time = sum(total[one] for one in inside)
        if loop and time > 0.0:
            share = whole(round(100 * min(1.0, (work - before) / time), 9))
            load: dict[int, float] = {}
            for one in inside:
                load[stream_of[one]] = load.get(stream_of[one], 0.0) + total[one]
            place = (loop, max(inside, key=lambda one: (load[stream_of[one]], one)), share)
        before += time
    return place


def _begins(sites: Sequence[int], stream_of: Mapping[int, int], chain: Sequence[int], loops: Loops) -> list[int]:
    """The sites that nothing before them on their streams holds: the first ones, and those of other branches.

    What is behind a loop is held with the loop.
    """
    found: list[int] = []
    for site in sorted(sites):
        before = [one for one in found if stream_of[one] == stream_of[site]]
        if not any(chain[one] == chain[site] or ((loop := loops.around(one)) and site not in loop) for one in before):
            found.append(site)
    return found
