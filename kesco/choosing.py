"""How many streams a function gets, and whether it is worth it: the question that needs strategy, events and model.

In: a function's graph, its prices and options. Out: a schedule with its plan, and what is expected of it. It is part of
planning, and apart from it because without prices nothing of it happens.

1. Each number of streams up to the largest gives a schedule of the strategy; so does the distributor's own one, so that
   the choice is never worse in the model than without a profile. 2. Each gets its events, and the model says how long
   it takes. 3. If it is faster by a hundredth with the critical operations' streams preferred by the GPU, they are.
4. The one with the fewest streams within a hundredth of the best is taken.

What it refuses to do: measure. The model's errors are in docs/results.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from kesco.ir.costs import Expected
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, Role, SiteKind
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.model.forecast import Price, Prices, concurrent_time, serial_time
from kesco.model.gpu import KernelCost
from kesco.options import BY_TASK, Options
from kesco.scheduling.critical_path import critical_path, longest_chain, ranks
from kesco.scheduling.distributor import distribute, small
from kesco.scheduling.levels import predecessors
from kesco.scheduling.strategies import STRATEGIES, default_streams
from kesco.scheduling.tasks import has_tasks, zone_streams
from kesco.scheduling.zones import zones
from kesco.scheduling.zones_fair import zones_fair
from kesco.synchronize import synchronize
from kesco.synchronize.fences import fences

WORTH = 0.01
"""Gains below a hundredth are none: the model is not that good, and neither is a measurement."""
_MANY = 300  # sites: above it only some numbers of streams are tried


def strategy(name: str, prices: Prices | None) -> Callable[[Dfg, int], Schedule]:
    """A strategy of the table that knows these prices."""
    if name != "critical_path" or prices is None:
        return STRATEGIES[name]
    known = prices

    def with_prices(dfg: Dfg, streams: int) -> Schedule:
        return critical_path(dfg, streams, costs_of(dfg, known), known.machine)

    return with_prices


def placed(dfg: Dfg, options: Options, prices: Prices | None) -> Schedule:
    """The schedule that the options ask for, with as many streams as it can use where they do not say how many."""
    name = options.strategy_for(has_tasks(dfg))
    if name not in BY_TASK:
        return strategy(name, prices)(dfg, options.streams or default_streams(dfg))
    streams = options.streams or zone_streams(dfg, options.zone_limit)
    if name == "zones":
        return zones(dfg, streams, options.zone_limit)
    costs, machine = (costs_of(dfg, prices), prices.machine) if prices is not None else (None, None)
    total = times_of(dfg, prices) if prices is not None else None
    return zones_fair(dfg, streams, options.zone_limit, options.zone_age, costs, machine, options.promise, total)


def times_of(dfg: Dfg, prices: Prices) -> dict[int, float]:
    """The microseconds of all executions of each movable site in the profiled run; 0 where none was measured."""
    sites = dfg.region.sites
    trips = Counter(sites[number].operation for number in dfg.graph.nodes)
    found = {}
    for number in dfg.graph.nodes:
        price = prices.at(sites[number])
        found[number] = price.cost.microseconds * price.runs / trips[sites[number].operation]
    return found


def costs_of(dfg: Dfg, prices: Prices) -> dict[int, KernelCost]:
    """The cost of each movable site. What never ran takes no time."""
    found = {}
    for number in dfg.graph.nodes:
        price = prices.at(dfg.region.sites[number])
        found[number] = replace(price.cost, microseconds=0.0, blocks=1) if price.absent else price.cost
    return found


def choose(dfg: Dfg, prices: Prices, most: int, least: int = 1) -> tuple[Schedule, SyncPlan]:
    """The schedule and plan with `least` to `most` streams (0: as many as can be of use) that the model likes best."""
    widest = most or default_streams(dfg)
    place = strategy("critical_path", prices)
    counts = list(range(min(least, widest), widest + 1))
    if len(dfg.graph) > _MANY and len(counts) > 3:
        counts = sorted({counts[0], 2, 4, 8, widest} & {*counts})
    schedules = [*(place(dfg, count) for count in counts), distribute(dfg, widest)]
    chain = critical(dfg, prices)
    tried: dict[tuple[tuple[int, int], ...], tuple[float, Schedule, SyncPlan]] = {}
    for one in schedules:
        if one.stream_of not in tried:
            plan = replace(synchronize(dfg, one), fences=fences(dfg.region))
            tried[one.stream_of] = _preferring(dfg, prices, chain, one, plan)
    some = [found for found in tried.values() if found[1].streams >= least] or list(tried.values())
    best = min(time for time, _, _ in some)
    good = (found for found in some if found[0] <= best * (1 + WORTH))
    _, schedule, plan = min(good, key=lambda found: (found[1].streams, len(found[2].waits), found[0]))
    return schedule, plan


def _preferring(
    dfg: Dfg, prices: Prices, chain: tuple[int, ...], schedule: Schedule, plan: SyncPlan
) -> tuple[float, Schedule, SyncPlan]:
    """The time of a schedule, with its critical streams urgent where that helps."""
    time = concurrent_time(dfg.region, prices, schedule, plan)
    urgent = tuple(sorted({stream for site, stream in schedule.stream_of if site in chain}))
    if len(urgent) < schedule.streams:
        preferred = replace(schedule, urgent=urgent)
        other = concurrent_time(dfg.region, prices, preferred, plan)
        if other < time * (1 - WORTH):
            return other, preferred, plan
    return time, schedule, plan


def critical(dfg: Dfg, prices: Prices) -> tuple[int, ...]:
    """The longest chain of dependent operations."""
    before = predecessors(dfg, small(dfg))
    time = _times(dfg, prices)
    return longest_chain(before, time, ranks(before, {site: time[site] for site in before}))


def _times(dfg: Dfg, prices: Prices) -> dict[int, float]:
    return {n: cost.microseconds + prices.machine.start for n, cost in costs_of(dfg, prices).items()}


def expected(region: Region, dfg: Dfg, prices: Prices, schedule: Schedule, plan: SyncPlan) -> Expected:
    """What the model expects of a function; `region` is it as its author wrote it, with all waits of the host."""
    chain = critical(dfg, prices)
    time = _times(dfg, prices)
    found = _asked(dfg, prices)
    published = distribute(dfg, default_streams(dfg))
    other = replace(synchronize(dfg, published), fences=fences(dfg.region))
    return Expected(
        serial_time(region, prices),
        concurrent_time(dfg.region, prices, schedule, plan),
        sum(time[site] for site in chain),
        tuple(region.sites[site].label for site in chain),
        schedule.streams,
        sum(one.measured for one in found),
        len(found),
        concurrent_time(dfg.region, prices, published, other),
        prices.exact,
    )


def _asked(dfg: Dfg, prices: Prices) -> list[Price]:
    """The prices of a function's operations that matter: kernels, large copies, and memsets that were measured."""
    light = small(dfg)
    works = [s for s in dfg.region.sites if s.role is Role.MOVABLE and s.number not in light]
    return [prices.at(s) for s in works if s.kind is not SiteKind.MEMSET or prices.at(s).measured]


def may_refuse(dfg: Dfg, prices: Prices) -> bool:
    """Whether enough is known to leave a function serial: every operation was measured, with this very text."""
    return prices.exact and in_model(dfg.region) and all(one.measured for one in _asked(dfg, prices))


def in_model(region: Region) -> bool:
    """Whether the model knows how the operations work: not of copies that keep the host though they are on streams."""
    return not any(site.held is not None and site.role is Role.MOVABLE for site in region.sites)
