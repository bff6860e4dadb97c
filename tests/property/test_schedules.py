"""Random regions under every strategy: nothing unordered, nothing superfluous, always the same answer.

Two oracles that share no code with the stages judge the plans. `run` executes one path and knows for each operation
all that came before it. `late` explores all reachable states of one pair of sites, so that it also answers for loops.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Iterator

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from property.regions import lines, regions

from kesco.dataflow import build
from kesco.ir.access import AccessMode, may_alias
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, Role
from kesco.ir.graph import Graph
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.options import BY_TASK
from kesco.scheduling.strategies import STRATEGIES
from kesco.synchronize import synchronize

FULL = {Role.ENTRY, Role.EXIT, Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC}
STREAMS = (1, 2, 3, 8, 16)
PLAIN = tuple(place for name, place in STRATEGIES.items() if name not in BY_TASK)  # those: test_tasks.py
MORE = int(os.environ.get("KESCO_EXAMPLES", "1"))  # times as many examples
LESS = 1 if os.environ.get("KESCO_THOROUGH") else 2  # one part of this many


def examples(count: int) -> settings:
    return settings(
        max_examples=count * MORE // LESS,
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


def plans(region: Region) -> Iterator[tuple[Schedule, SyncPlan]]:
    """The plan of every strategy and number of streams, each different schedule once."""
    dfg = build(region)
    seen = set()
    for strategy, streams in itertools.product(PLAIN, STREAMS):
        schedule = strategy(dfg, streams)
        assert schedule.streams <= streams
        assert set(schedule.as_dict().values()) == set(range(schedule.streams))
        assert [number for number, _ in schedule.stream_of] == sorted(dfg.graph.nodes)
        assert sorted(schedule.order) == sorted(dfg.graph.nodes)
        if schedule.stream_of not in seen:
            seen.add(schedule.stream_of)
            yield schedule, synchronize(dfg, schedule)


def conflicts(region: Region) -> dict[int, list[int]]:
    """For each movable site all that it conflicts with, itself included."""
    movable = [site for site in region.sites if site.role is Role.MOVABLE]
    return {
        a.number: [
            b.number
            for b in movable
            if any(
                may_alias(x.buffer, y.buffer) and AccessMode.WRITE in x.mode | y.mode
                for x in a.accesses
                for y in b.accesses
            )
        ]
        for a in movable
    }


def run(region: Region, clash: dict[int, list[int]], stream_of: dict[int, int], plan: SyncPlan, walk: list[int]) -> str:
    """What is unordered when the sites of `walk` are issued one after another; nothing if all is well."""
    awaited: dict[int, list[int]] = {}
    for wait in plan.waits:
        awaited.setdefault(wait.target, []).append(wait.source)
    joined = {join.target: join.streams for join in plan.joins}
    upto: dict[int, int] = {}  # stream → its last operation and all that comes before that
    event: dict[int, int] = {}
    executed: dict[int, int] = {}
    base = everything = 0
    for step, number in enumerate(walk):
        role = region.sites[number].role
        if role in FULL:
            if role in {Role.EXIT, Role.JOIN}:
                seen = base
                for stream in joined.get(number, ()):
                    seen |= upto.get(stream, 0)
                if everything & ~seen:
                    return f"step {step}: site {number} leaves work behind"
            base = everything
        elif role is Role.MOVABLE:
            stream = stream_of[number]
            before = base | upto.get(stream, 0)
            for source in awaited.get(number, ()):
                before |= event.get(source, 0)
            for other in clash[number]:
                if executed.get(other, 0) & ~before:
                    return f"step {step}: site {number} overtakes {other}"
            everything |= 1 << step
            executed[number] = executed.get(number, 0) | 1 << step
            upto[stream] = event[number] = before | 1 << step
    return ""


def random_walk(region: Region, seed: int, length: int = 60) -> list[int]:
    choose = random.Random(seed)
    walk = [0]
    while len(walk) < length and region.successors[walk[-1]]:
        walk.append(choose.choice(region.successors[walk[-1]]))
    return walk


def all_walks(region: Region, most: int) -> list[list[int]]:
    """All paths of a region without loops from its entry to an exit; no answer where there are more than `most`."""
    done, open_walks = [], [[0]]
    while open_walks:
        walk = open_walks.pop()
        after = region.successors[walk[-1]]
        if not after:
            done.append(walk)
        open_walks += [[*walk, number] for number in after]
        assume(len(done) + len(open_walks) <= most)
    return done


def late(region: Region, stream_of: dict[int, int], waits: set[tuple[int, int]], x: int, b: int) -> bool:
    """Whether on some path `b` may begin before an execution of `x` that the host issued earlier has ended.

    A state is a site and the set of streams and events that come without the latest execution of `x`: few enough to
    look at all that can be reached.
    """
    streams = set(stream_of.values())
    sources = {source for source, _ in waits}
    start: frozenset[tuple[str, int]] = frozenset()
    seen = {(0, start)}
    queue = [(0, start)]
    for number, missing in queue:
        facts = set(missing)
        if region.sites[number].role in FULL:
            facts.clear()
        elif number in stream_of:
            here = ("stream", stream_of[number])
            if any(("event", y) not in facts for y, target in waits if target == number):
                facts.discard(here)
            if number == b and here in facts:
                return True
            if number == x:
                facts = {("stream", s) for s in streams} - {here} | {("event", y) for y in sources if y != x}
            elif here in facts:
                facts.add(("event", number))
            else:
                facts.discard(("event", number))
        for after in region.successors[number]:
            state = (after, frozenset(facts))
            if state not in seen:
                seen.add(state)
                queue.append(state)
    return False


def pairs(plan: SyncPlan) -> set[tuple[int, int]]:
    return {(wait.source, wait.target) for wait in plan.waits}


def without(plan: SyncPlan, number: int) -> SyncPlan:
    return dataclasses.replace(plan, waits=plan.waits[:number] + plan.waits[number + 1 :])


@examples(250)
@given(regions(size=6), st.integers(0, 1 << 30))
def test_no_unordered_conflict_on_random_walks(region: Region, seed: int) -> None:
    clash = conflicts(region)
    walks = [random_walk(region, seed + number) for number in range(8)]
    for schedule, plan in plans(region):
        for walk in walks:
            assert run(region, clash, schedule.as_dict(), plan, walk) == ""


@examples(250)
@given(regions(size=4))
def test_no_unordered_conflict_and_no_removable_wait_in_any_state(region: Region) -> None:
    assume(len(region.sites) <= 24)
    clash = conflicts(region)
    for schedule, plan in plans(region):
        stream_of, waits = schedule.as_dict(), pairs(plan)
        for b, others in clash.items():
            for x in others:
                assert not late(region, stream_of, waits, x, b), f"{b} overtakes {x}"
        for x, b in sorted(waits):
            assert late(region, stream_of, waits - {(x, b)}, x, b), f"the wait of {b} for {x} is not needed"


@examples(200)
@given(regions(loops=False, size=6))
def test_every_wait_dropped_is_noticed_on_some_path(region: Region) -> None:
    clash = conflicts(region)
    walks = all_walks(region, 60)
    for schedule, plan in plans(region):
        stream_of = schedule.as_dict()
        for walk in walks:
            assert run(region, clash, stream_of, plan, walk) == ""
        for number, wait in enumerate(plan.waits):
            fewer = without(plan, number)
            assert any(run(region, clash, stream_of, fewer, walk) for walk in walks), wait


@examples(100)
@given(lines())
def test_every_stream_of_a_join_is_needed(region: Region) -> None:
    clash = conflicts(region)
    walk = list(range(len(region.sites)))
    for schedule, plan in plans(region):
        for number, join in enumerate(plan.joins):
            for stream in join.streams:
                streams = tuple(other for other in join.streams if other != stream)
                joins = list(plan.joins)
                joins[number] = dataclasses.replace(join, streams=streams)
                fewer = dataclasses.replace(plan, joins=tuple(joins))
                assert run(region, clash, schedule.as_dict(), fewer, walk), (join, stream)


@examples(100)
@given(regions(size=6), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_incidental_order(region: Region, shuffle: random.Random) -> None:
    def mixed(items: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(shuffle.sample(items, len(items)))

    sites = tuple(dataclasses.replace(site, accesses=mixed(site.accesses)) for site in region.sites)
    dfg, again = build(region), build(dataclasses.replace(region, sites=sites))
    assert again.dependences == dfg.dependences
    graph = Graph(mixed(dfg.graph.nodes), mixed(dfg.graph.edges))
    shuffled = Dfg(region, graph, dfg.dependences)
    for strategy, streams in itertools.product(PLAIN, STREAMS):
        schedule = strategy(dfg, streams)
        assert strategy(shuffled, streams) == schedule
        assert synchronize(shuffled, schedule) == synchronize(dfg, schedule)


@examples(150)
@given(regions(size=6))
def test_every_dependence_is_a_conflict_and_accounted_for(region: Region) -> None:
    dfg, clash = build(region), conflicts(region)
    assert all(edge.target in clash[edge.source] for edge in dfg.dependences)
    assert list(dfg.dependences) == sorted(
        set(dfg.dependences), key=lambda edge: (edge.source, edge.target, edge.kind.value, edge.buffer.key)
    )
    for _, plan in plans(region):
        dropped = [(removed.source, removed.target) for removed in plan.removed]
        assert sorted([*pairs(plan), *dropped]) == sorted(dfg.graph.edges)
        assert plan.events == tuple(sorted({wait.source for wait in plan.waits}))
        assert all(removed.because for removed in plan.removed)
