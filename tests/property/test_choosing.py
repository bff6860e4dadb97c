"""Random regions with random costs: the choice keeps every order, and the model never likes another one better."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st
from property.regions import regions
from property.test_schedules import STREAMS, conflicts, examples, late, random_walk, run

from kesco.choosing import WORTH, choose, critical, expected
from kesco.dataflow import build
from kesco.ir.flow import Region, Role
from kesco.model.forecast import Price, Prices, concurrent_time, serial_time
from kesco.model.gpu import KernelCost, Machine
from kesco.scheduling.critical_path import critical_path
from kesco.scheduling.distributor import distribute
from kesco.scheduling.strategies import default_streams
from kesco.synchronize import synchronize


def priced(region: Region, seed: int) -> Prices:
    """A cost for each operation, from a microsecond to some milliseconds, from one block to more than fit."""
    chance = random.Random(seed)
    found = {}
    for site in region.sites:
        if site.role in (Role.MOVABLE, Role.LEGACY):
            blocks = chance.choice((1, 16, 64, 132, 1000, 20_000))
            shares = chance.choice((0.0, 0.1, 0.6)), chance.choice((0.0, 0.1, 0.9))
            microseconds = chance.choice((0.0, 1.0, 5.0, 60.0, 400.0, 5000.0))
            cost = KernelCost(microseconds, blocks, chance.choice((32, 256, 1024)), 32, 0, *shares)
            found[site.operation] = Price(cost, chance.random() < 0.9, chance.choice((1, 2, 9)), False)
    return Prices(Machine(), found)


@examples(75)
@given(regions(size=6), st.integers(0, 1 << 30))
def test_the_chosen_schedule_orders_every_conflict(region: Region, seed: int) -> None:
    dfg, prices, clash = build(region), priced(region, seed), conflicts(region)
    for most in (0, *STREAMS):
        schedule, plan = choose(dfg, prices, most)
        assert schedule.streams <= (most or default_streams(dfg))
        assert sorted(schedule.as_dict()) == sorted(dfg.graph.nodes)
        assert set(schedule.urgent) < set(range(schedule.streams)) or not schedule.urgent
        for number in range(4):
            walk = random_walk(region, seed + number)
            assert run(region, clash, schedule.as_dict(), plan, walk) == ""


@examples(60)
@given(regions(size=4), st.integers(0, 1 << 30))
def test_the_strategy_with_costs_has_no_removable_wait(region: Region, seed: int) -> None:
    if len(region.sites) > 20:
        return
    dfg, prices, clash = build(region), priced(region, seed), conflicts(region)
    costs = {number: prices.at(region.sites[number]).cost for number in dfg.graph.nodes}
    for most in (1, 2, 3, 8):
        schedule = critical_path(dfg, most, costs)
        plan = synchronize(dfg, schedule)
        waits = {(wait.source, wait.target) for wait in plan.waits}
        for b, others in clash.items():
            assert not any(late(region, schedule.as_dict(), waits, x, b) for x in others)
        assert all(late(region, schedule.as_dict(), waits - {one}, *one) for one in waits)


@examples(100)
@given(regions(size=6), st.integers(0, 1 << 30))
def test_no_worse_than_one_stream_or_the_distributor(region: Region, seed: int) -> None:
    dfg, prices = build(region), priced(region, seed)
    if not dfg.graph:
        return
    for most in (1, 2, 3, 8):
        schedule, plan = choose(dfg, prices, most)
        time = concurrent_time(region, prices, schedule, plan)
        for other in (critical_path(dfg, 1), distribute(dfg, most)):
            assert time <= (1 + WORTH) * concurrent_time(region, prices, other, synchronize(dfg, other)) + 1e-6
        joins = sum(len(join.streams) for join in plan.joins) + len(plan.fences)
        pays_for_joins = 16 * joins * (prices.machine.record + prices.machine.wait)  # as often as loops are taken
        assert time <= (1 + WORTH) * (serial_time(region, prices) + pays_for_joins) + 1e-6


@examples(100)
@given(regions(loops=False, size=6), st.integers(0, 1 << 30))
def test_nothing_is_faster_than_its_longest_chain(region: Region, seed: int) -> None:
    dfg, prices = build(region), priced(region, seed)
    if not dfg.graph:
        return
    schedule, plan = choose(dfg, prices, 0)
    found = expected(region, dfg, prices, schedule, plan)
    chain = critical(dfg, prices)
    assert found.path == tuple(region.sites[site].label for site in chain)
    assert all(dfg.graph.has_edge(a, b) for a, b in itertools.pairwise(chain))
    assert found.critical <= found.concurrent + 1e-6
    assert found.concurrent == concurrent_time(region, prices, schedule, plan)


@examples(100)
@given(regions(size=6), st.integers(0, 1 << 30))
def test_the_same_answer_every_time(region: Region, seed: int) -> None:
    first = choose(build(region), priced(region, seed), 0)
    assert choose(build(region), priced(region, seed), 0) == first
