"""The published stream zones: ``zones(dfg, streams, limit)`` → `Schedule` with barriers between tasks.

In: a data-flow graph whose sites name their tasks, how many streams there may be, and how many operations of one
priority may be in flight. Out: a stream for each site, and the barriers by which lower tasks wait for higher ones. It
is KeSCo's hierarchical scheduling of independent tasks (ICCD 2023), with what the slides leave open decided here.

1. Each task is distributed in a zone of its own (`distributor`), all tasks of one priority on at most `limit` streams.
2. An operation waits for every operation of a higher priority that the host has issued before it. What comes later in
   the text cannot be waited for, nor what only an earlier iteration of a loop has issued behind it.
3. When a higher priority is down to its last operation, the first one of the next lower priority is issued early: it
   waits for all but that last one.
4. A zone takes the streams of higher zones that are finished before it begins: there the stream is the barrier. The
   operation that is issued early goes to one that the last operation is not on.
5. Barriers that dependences, streams or other barriers imply are left out (`synchronize`).

Barriers lead from what the host issues earlier to what it issues later, so that there is no deadlock. Small transfers
are not held, nor is what a higher task needs. What it refuses to do: look at how long anything takes. The lowest task
may starve; `zones_fair` is the answer to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Barrier, Schedule
from kesco.scheduling.distributor import distribute
from kesco.scheduling.levels import phases
from kesco.scheduling.tasks import (
    LIMIT,
    NO_TASK,
    Zone,
    chains,
    folded,
    has_tasks,
    heavy,
    latest,
    only,
    priorities,
    reach,
    shares,
    urgency,
    zones_of,
)


def zones(dfg: Dfg, streams: int, limit: int = LIMIT) -> Schedule:
    """The schedule of `dfg` over at most `streams` streams; the distributor's own one where nothing is marked."""
    if not has_tasks(dfg):
        return distribute(dfg, streams)
    found = folded(zones_of(dfg), len(dfg.graph), limit)
    after = reach(dfg.region, dfg.graph.nodes)
    waits_for, last = _held(dfg, found, after)
    stream_of, order, settled = _placed(dfg, found, streams, limit, after, last)
    chain, own = chains(dfg.region), priorities(dfg)
    held = [
        Barrier(source, target, between(own, source, target))
        for target in sorted(waits_for)
        for source in latest(waits_for[target], stream_of, chain)
        if stream_of[source] != stream_of[target]
    ]
    barriers = tuple(sorted((*held, *settled), key=lambda one: (one.target, one.source)))
    return Schedule("zones", len({*stream_of.values()}), tuple(sorted(stream_of.items())), order, barriers=barriers)


def between(priority: Mapping[int, int], source: int, target: int) -> str:
    """Why one operation is held behind another one."""
    return f"zone of priority {priority[source]} before {priority[target]}"


def _held(dfg: Dfg, found: Sequence[Zone], after: dict[int, int]) -> tuple[dict[int, list[int]], dict[int, int]]:
    """Steps 2 and 3: what each site is held behind; and for each that is issued early, the last one it runs beside."""
    priority = {site: zone.priority for zone in found for site in zone.sites if zone.priority != NO_TASK}
    urgent, works = urgency(dfg), heavy(dfg)
    waits_for: dict[int, list[int]] = {}
    beside: dict[int, int] = {}
    for phase in phases(dfg):
        tasks = [site for site in phase if site in priority and site in works]
        levels = sorted({priority[site] for site in tasks}, reverse=True)
        for site in tasks:
            higher = [x for x in tasks if x < site and priority[x] > urgent[site] and after[x] >> site & 1]
            if higher:
                waits_for[site] = higher
        for upper, lower in pairwise(levels):
            final = max(site for site in tasks if priority[site] == upper)
            early = min((s for s in tasks if priority[s] == lower and s in waits_for and s > final), default=None)
            if early is not None and final in waits_for[early]:
                waits_for[early].remove(final)
                beside[early] = final
    return {site: many for site, many in waits_for.items() if many}, beside


def _placed(
    dfg: Dfg,
    found: Sequence[Zone],
    streams: int,
    limit: int,
    after: dict[int, int],
    beside: dict[int, int],
) -> tuple[dict[int, int], tuple[int, ...], list[Barrier]]:
    """Steps 1 and 4: a stream for each site, the order in which they were placed, and what waits for `fillers`."""
    most = shares(dfg, found, max(streams, 1) * len(found), limit)
    members: list[list[int]] = []  # global stream → its sites
    above: list[int] = []  # global stream → the lowest priority on it
    stream_of: dict[int, int] = {}
    order: list[int] = []
    settled: list[Barrier] = []
    finals = frozenset(beside.values())
    for zone, share in zip(found, most, strict=True):
        placed = distribute(only(dfg, zone.sites), min(share, streams))
        settled += placed.barriers
        local: list[list[int]] = [[] for _ in range(placed.streams)]
        for site, stream in placed.stream_of:
            local[stream].append(site)
        reached = 0
        for site in zone.sites:
            reached |= after[site]
        free = [
            g for g, sites in enumerate(members)
            if above[g] > zone.priority > NO_TASK and not any(reached >> site & 1 for site in sites)
        ]  # fmt: skip
        taken: set[int] = set()
        for number in sorted(range(len(local)), key=lambda n: not any(site in beside for site in local[n])):
            avoid = {beside[site] for site in local[number] if site in beside}
            stream = _stream(members, [g for g in free if g not in taken], taken, streams, avoid, finals)
            if stream == len(members):
                members.append([])
                above.append(zone.priority)
            taken.add(stream)
            members[stream] += local[number]
            above[stream] = min(above[stream], zone.priority)
            stream_of |= dict.fromkeys(local[number], stream)
        order += placed.order
    return stream_of, tuple(order), settled


def _stream(
    members: Sequence[Sequence[int]], free: Sequence[int], taken: set[int], streams: int, avoid: set[int],
    finals: frozenset[int],
) -> int:  # fmt: skip
    """A stream for one of a zone's: of a finished zone, else a new one, else the shortest that it has not taken.

    Not one with a site of `avoid`, if there is another; rather one that ends with one of `finals`.
    """

    def ends_last(stream: int) -> bool:
        return members[stream][-1] in finals

    fitting = [g for g in free if avoid.isdisjoint(members[g])]
    if fitting:
        return min(fitting, key=lambda g: (not ends_last(g), g))
    if len(members) < streams:
        return len(members)
    others = free or [g for g in range(len(members)) if g not in taken] or range(len(members))
    return min(others, key=lambda g: (len(members[g]), g))
