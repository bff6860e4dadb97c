"""Random task sets under both strategies: nothing unordered, priorities kept where promised, nobody held too long."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from property.regions import lines, regions
from property.tasks import order_of, with_tasks
from property.test_schedules import STREAMS, conflicts, examples, random_walk, run

from kesco.dataflow import build
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region
from kesco.ir.graph import Graph
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.model.gpu import KernelCost
from kesco.scheduling.levels import phases
from kesco.scheduling.tasks import has_tasks, heavy, urgency, zones_of
from kesco.scheduling.zones import zones
from kesco.scheduling.zones_fair import zones_fair
from kesco.synchronize import synchronize

LIMITS, AGES = (1, 2, 6), (0, 1, 2, 5)
SETTINGS = st.lists(
    st.tuples(st.sampled_from(STREAMS), st.sampled_from(LIMITS), st.sampled_from(AGES)), min_size=2, max_size=2
)
TIMES = st.one_of(st.none(), st.lists(st.integers(1, 100), min_size=16, max_size=16))


def plans(dfg: Dfg, settings: list[tuple[int, int, int]]) -> Iterator[tuple[Schedule, SyncPlan, int]]:
    """Schedules and plans of both strategies with some settings, each different schedule once."""
    seen = set()
    for streams, limit, age in settings:
        for schedule in (zones(dfg, streams, limit), zones_fair(dfg, streams, limit, age)):
            key = schedule.strategy, schedule.stream_of, schedule.barriers
            if key not in seen:
                seen.add(key)
                yield schedule, synchronize(dfg, schedule), limit


def without_barriers(plan: SyncPlan) -> SyncPlan:
    return dataclasses.replace(plan, waits=tuple(w for w in plan.waits if w.dependences))


@examples(60)
@given(with_tasks(regions(size=7)), SETTINGS, st.integers(0, 1000))
def test_every_site_has_a_stream_and_no_conflict_is_unordered(
    region: Region, settings: list[tuple[int, int, int]], seed: int
) -> None:
    """With the barriers between tasks and, since nothing may rest on them, without."""
    dfg, clash = build(region), conflicts(region)
    walks = [random_walk(region, seed + number) for number in range(3)]
    for schedule, plan, _ in plans(dfg, settings):
        assert [number for number, _ in schedule.stream_of] == sorted(schedule.order) == sorted(dfg.graph.nodes)
        assert set(schedule.as_dict().values()) == set(range(schedule.streams))
        assert len(schedule.ranks) in (0, schedule.streams)
        for walk in walks:
            assert run(region, clash, schedule.as_dict(), plan, walk) == ""
            assert run(region, clash, schedule.as_dict(), without_barriers(plan), walk) == ""


@examples(150)
@given(with_tasks(regions(size=7)), SETTINGS)
def test_barriers_lead_forward_from_higher_to_lower_tasks(region: Region, settings: list[tuple[int, int, int]]) -> None:
    """From what the host issues earlier to what it issues later: no circle of waits, so no deadlock."""
    dfg = build(region)
    priority = {site: zone.priority for zone in zones_of(dfg) for site in zone.sites}
    light = set(dfg.graph.nodes) - heavy(dfg)
    for schedule, plan, _ in plans(dfg, settings):
        known = {(b.source, b.target): b for b in schedule.barriers}
        for wait in (w for w in plan.waits if not w.dependences):
            assert known[wait.source, wait.target].why == wait.why
        for one in schedule.barriers:
            source, target = priority[one.source], priority[one.target]
            assert one.source < one.target
            assert source > target >= 0
            assert not {one.source, one.target} & light
            assert one.why == f"zone of priority {source} before {target}"


@examples(150)
@given(with_tasks(lines(12)))
def test_zones_keep_the_order_of_priorities(region: Region) -> None:
    """All that comes later in the text waits for all of higher tasks, but for one operation that is issued early."""
    dfg = build(region)
    urgent, works = urgency(dfg), heavy(dfg)
    priority = {site: zone.priority for zone in zones_of(dfg) for site in zone.sites}
    for streams in STREAMS if has_tasks(dfg) else ():
        schedule = zones(dfg, streams)
        assert schedule.streams <= streams
        before = order_of(region, schedule, synchronize(dfg, schedule).waits)
        for phase in phases(dfg):
            works_here = [s for s in phase if s in works and priority[s] >= 0]
            early = 0
            for a, b in itertools.combinations(works_here, 2):
                if priority[a] > urgent[b] and not before[b] >> a & 1:
                    level = [s for s in works_here if priority[s] == priority[a]]
                    assert a == level[-1], "only the last one of a priority may be passed"
                    early += 1
            assert early < max(1, len({priority[s] for s in works_here}))


@examples(100)
@given(with_tasks(lines(12)), SETTINGS, TIMES)
def test_what_barriers_promise_is_kept(
    region: Region, settings: list[tuple[int, int, int]], times: list[int] | None
) -> None:
    """Whatever stands in place of a barrier, and whether costs are known or not: its target comes behind its source."""
    dfg = build(region)
    costs = {n: KernelCost(float(times[n % 16]), 132 * 32, 256) for n in dfg.graph.nodes} if times else None
    for streams, limit, age in settings:
        for schedule in (zones(dfg, streams, limit), zones_fair(dfg, streams, limit, age, costs)):
            before = order_of(region, schedule, synchronize(dfg, schedule).waits)
            for one in schedule.barriers:
                assert before[one.target] >> one.source & 1


@examples(60)
@given(with_tasks(regions(size=9)), SETTINGS)
def test_no_more_than_the_limit_of_one_priority_is_in_flight(
    region: Region, settings: list[tuple[int, int, int]]
) -> None:
    """A stream runs one operation at a time: so many streams, so many operations."""
    dfg = build(region)
    found = zones_of(dfg)
    for schedule, _, limit in plans(dfg, settings) if has_tasks(dfg) else ():
        stream_of = schedule.as_dict()
        if schedule.strategy == "zones-fair" and schedule.streams < len(found):
            continue  # the last zones share
        for priority in {zone.priority for zone in found if zone.priority >= 0}:
            level = {stream_of[s] for zone in found if zone.priority == priority for s in zone.sites}
            assert len(level) <= limit


@examples(120)
@given(with_tasks(lines(14), loose=False), TIMES)
def test_ageing_bounds_how_long_a_task_is_held(region: Region, times: list[int] | None) -> None:
    """The barriers of a task hold its first operations for at most so many times as long as those run.

    In microseconds where costs are known, and one for each operation where they are not.
    """
    dfg = build(region)
    if not has_tasks(dfg):
        return
    found, works = zones_of(dfg), heavy(dfg)
    takes = {n: float(times[n % 16]) if times else 1.0 for n in dfg.graph.nodes}
    costs = {n: KernelCost(takes[n], 132 * 32, 256) for n in dfg.graph.nodes} if times else None
    for age in AGES:
        schedule = zones_fair(dfg, 16, 6, age, costs)
        waits = synchronize(dfg, schedule).waits
        full = order_of(region, schedule, waits)
        for zone in found:
            own = frozenset(zone.sites)
            less = order_of(region, schedule, tuple(w for w in waits if w.dependences or w.target not in own))
            higher = [s for other in found if other.priority > zone.priority for s in other.sites]
            for phase in phases(dfg):
                held: set[int] = set()
                worked = 0.0
                for site in (s for s in phase if s in own and s in works):
                    worked += takes[site]
                    held |= {x for x in higher if full[site] >> x & 1 and not less[site] >> x & 1}
                    assert sum(takes[x] for x in held) <= age * worked


@examples(30)
@given(with_tasks(regions(size=7)), SETTINGS, st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_incidental_order(
    region: Region, settings: list[tuple[int, int, int]], shuffle: random.Random
) -> None:
    dfg = build(region)
    edges = shuffle.sample(sorted(dfg.graph.edges), len(dfg.graph.edges))
    graph = Graph(shuffle.sample(sorted(dfg.graph.nodes), len(dfg.graph)), edges)
    shuffled = Dfg(region, graph, dfg.dependences)
    for streams, limit, age in settings:
        assert zones(dfg, streams, limit) == zones(shuffled, streams, limit)
        assert zones_fair(dfg, streams, limit, age) == zones_fair(shuffled, streams, limit, age)


@examples(30)
@given(regions(size=7))
def test_without_tasks_nothing_changes(region: Region) -> None:
    from kesco.scheduling.distributor import distribute

    dfg = build(region)
    for streams in STREAMS:
        assert zones(dfg, streams) == zones_fair(dfg, streams) == distribute(dfg, streams)
