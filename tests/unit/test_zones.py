"""Zones: the slides' picture, and each rule of the two strategies by the smallest example that shows it."""

from __future__ import annotations

import pytest
from property.regions import named, program
from property.tasks import marked

from kesco.dataflow import build
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region
from kesco.ir.schedule import Schedule, joined_ranks
from kesco.model.gpu import KernelCost
from kesco.scheduling.distributor import distribute
from kesco.scheduling.loops import Loops
from kesco.scheduling.tasks import has_tasks, zone_streams, zones_of
from kesco.scheduling.zones import zones
from kesco.scheduling.zones_fair import zones_fair
from kesco.synchronize import synchronize

# A, B and C have the higher priority; B and C need A, and 5 needs 3 and 4.
PICTURE = "A(w A) B(r A; w B) C(r A; w C) 1(w a) 2(w b) 3(w c) 4(w d) 5(r c,d; w e)"
HIGH_AND_LOW = {"ABC": 3, "12345": 2}
SMALL, HALF, FULL = (KernelCost(100.0, blocks, 256) for blocks in (16, 132 * 4, 132 * 32))


def graph(text: str, tasks: dict[str, int], paths: str = "") -> Dfg:
    return build(marked(program(text, paths), tasks))


def streams(region: Region, schedule: Schedule) -> list[str]:
    """The labels on each stream, in the order of the text."""
    found = [""] * schedule.streams
    for site, stream in schedule.stream_of:
        found[stream] += region.sites[site].label
    return found


def barriers(dfg: Dfg, schedule: Schedule) -> list[str]:
    """The waits between tasks that are left, as ``A1`` where 1 waits for A."""
    sites = dfg.region.sites
    waits = synchronize(dfg, schedule).waits
    return sorted(sites[w.source].label + sites[w.target].label for w in waits if not w.dependences)


# ---- the published zones ---------------------------------------------------------------------------------------------


def test_the_picture_of_the_slides() -> None:
    """1 is issued early, beside C, behind B on its stream; 2, 3 and 4 get barriers, and 5 needs none."""
    dfg = graph(PICTURE, HIGH_AND_LOW)
    schedule = zones(dfg, 16)
    assert streams(dfg.region, schedule) == ["AB1", "C2", "3", "45"]
    assert barriers(dfg, schedule) == ["B2", "B3", "B4", "C3", "C4"]  # 2 is behind C on its stream
    assert {one.why for one in schedule.barriers} == {"zone of priority 3 before 2"}
    assert schedule.ranks == ()


def test_the_operation_that_is_issued_early_waits_for_all_but_the_last() -> None:
    dfg = graph("A(w A) B(w B) C(r A,B; w C) 1(w a)", {"ABC": 3, "1": 2})
    schedule = zones(dfg, 16)
    assert streams(dfg.region, schedule) == ["A1", "BC"]
    assert barriers(dfg, schedule) == ["B1"]


def test_only_the_next_lower_priority_is_issued_early() -> None:
    dfg = graph("A(rw A) B(rw A) 1(rw a) 2(rw a) x(w x)", {"AB": 3, "12": 2, "x": 1})
    schedule = zones(dfg, 16)
    assert streams(dfg.region, schedule) == ["ABx", "12"]
    assert barriers(dfg, schedule) == ["1x", "A1", "B2"]  # x is beside 2, and behind B on its stream


def test_a_priority_has_at_most_so_many_streams() -> None:
    text = " ".join(f"{letter}(w {letter})" for letter in "ABCDEFGHIJ")
    dfg = graph(f"{text} 1(w 1) 2(w 2)", {"ABCDE": 3, "FGHIJ": 3, "12": 1})
    for limit in (1, 2, 6):
        found = streams(dfg.region, zones(dfg, 16, limit))
        assert sum(any(letter in "ABCDEFGHIJ" for letter in stream) for stream in found) == limit


def test_streams_of_finished_zones_are_used_again_and_of_others_not() -> None:
    after = graph("A(rw A) B(rw A) 1(rw a) 2(rw a)", {"AB": 3, "12": 2})
    assert zones(after, 16).streams == 2  # 1 is beside B; were it on B's stream, it would not be early
    between = graph("A(rw A) 1(rw a) B(rw A) 2(rw a)", {"AB": 3, "12": 2})
    assert streams(between.region, zones(between, 16)) == ["AB", "12"]
    around = graph("A(rw A) B(rw A) 1(rw a) 2(rw a)", {"AB": 3, "12": 2}, "2>A")
    assert streams(around.region, zones(around, 16)) == ["AB", "12"]


def test_what_the_host_issues_earlier_is_not_held() -> None:
    dfg = graph("1(rw a) A(rw A) B(rw A) 2(rw a)", {"AB": 3, "12": 2})
    assert barriers(dfg, zones(dfg, 16)) == ["A2"]  # and 2 is early, beside B


def test_tasks_of_one_priority_do_not_wait_for_each_other() -> None:
    dfg = graph("A(rw A) B(rw A) 1(rw a) 2(rw a)", {"AB": 3, "12": 3})
    for schedule in (zones(dfg, 16), zones_fair(dfg, 16, age=4)):
        assert streams(dfg.region, schedule) == ["AB", "12"]
        assert schedule.barriers == ()
        assert schedule.ranks == ()


# ---- which operations are of which zone ------------------------------------------------------------------------------


def test_what_a_task_needs_is_its_own_and_the_rest_is_nobodys() -> None:
    dfg = graph("S(w S) T(w T) R(w R) A(r S,T; w A) 1(r T; w a)", {"A": 5, "1": 2})
    names = [("".join(dfg.region.sites[n].label for n in z.sites), z.priority) for z in zones_of(dfg)]
    assert names == [("STA", 5), ("1", 2), ("R", -1)]
    assert zone_streams(dfg, 6) == 4
    assert zones_fair(dfg, 16).ranks == (0, 0, 1, 2)


def test_what_a_higher_task_needs_is_not_held() -> None:
    """1 is of the low task, but A cannot begin without it."""
    dfg = graph("H(w H) 1(w a) 2(w b) A(r a,H; w A)", {"HA": 5, "12": 2})
    assert barriers(dfg, zones_fair(dfg, 16, age=4)) == ["H2"]
    text = "H(w H) I(w I) 1(w a) 2(w b) A(r a,H,I; w A)"
    assert barriers(graph(text, {"HIA": 5, "12": 2}), zones(graph(text, {"HIA": 5, "12": 2}), 16)) == ["H2", "I2"]


def test_one_task_alone_changes_nothing() -> None:
    for tasks in ({}, {"ABC12345": 3}):
        dfg = graph(PICTURE, tasks)
        assert not has_tasks(dfg)
        assert zones(dfg, 4) == zones_fair(dfg, 4) == distribute(dfg, 4)
    assert has_tasks(graph(PICTURE, {"ABC": 3}))


# ---- fair zones ------------------------------------------------------------------------------------------------------


def test_each_task_has_streams_of_its_own_and_their_rank() -> None:
    dfg = graph(PICTURE, HIGH_AND_LOW)
    schedule = zones_fair(dfg, 16)
    assert streams(dfg.region, schedule) == ["AB", "C", "1", "2", "3", "45"]
    assert schedule.ranks == (0, 0, 1, 1, 1, 1)


def test_with_fewer_streams_than_tasks_the_lowest_share() -> None:
    dfg = graph("A(w A) 1(w a) x(w x)", {"A": 3, "1": 2, "x": 1})
    assert streams(dfg.region, zones_fair(dfg, 2)) == ["A", "1x"]
    assert streams(dfg.region, zones_fair(dfg, 1)) == ["A1x"]


LONG = " ".join(f"{letter}(rw A)" for letter in "ABCDEFGH") + " 1(rw a) 2(rw a) 3(rw a)"


@pytest.mark.parametrize(
    ("age", "expected"),
    [(0, []), (1, ["A1", "B2", "C3"]), (2, ["B1", "D2", "F3"]), (3, ["C1", "F2", "H3"]), (8, ["H1"])],
)
def test_ageing_lets_a_task_on(age: int, expected: list[str]) -> None:
    """The n-th operation of the low task is held for n times so many of the high one."""
    dfg = graph(LONG, {"ABCDEFGH": 3, "123": 1})
    assert barriers(dfg, zones_fair(dfg, 16, age=age)) == expected


def test_ageing_counts_time_where_it_is_known() -> None:
    """A short task is not held behind a long kernel, and a long one is behind short kernels."""
    dfg = graph("A(rw A) B(rw A) C(rw A) 1(rw a) 2(rw a)", {"ABC": 3, "12": 1})
    full = KernelCost(100.0, 132 * 32, 256)
    for short, expected in ((10.0, []), (25.0, ["A1", "B2"]), (75.0, ["C1"])):
        costs = dict.fromkeys(dfg.graph.nodes, full) | {
            named(dfg.region, label): KernelCost(short, 132 * 32, 256) for label in "12"
        }
        assert barriers(dfg, zones_fair(dfg, 16, costs=costs)) == expected


def test_without_costs_and_unasked_only_the_streams_have_priorities() -> None:
    dfg = graph(PICTURE, HIGH_AND_LOW)
    schedule = zones_fair(dfg, 16)
    assert schedule.barriers == ()
    assert schedule.ranks == (0, 0, 1, 1, 1, 1)


def test_published_zones_starve_where_fair_ones_do_not() -> None:
    dfg = graph(LONG, {"ABCDEFGH": 3, "123": 1})
    assert barriers(dfg, zones(dfg, 16)) == ["G1", "H2"]
    assert barriers(dfg, zones_fair(dfg, 16, age=2)) == ["B1", "D2", "F3"]


def test_released_operations_say_why() -> None:
    dfg = graph(LONG, {"ABCDEFGH": 3, "123": 1})
    released = dict(zones_fair(dfg, 16, age=3).released)
    assert released[named(dfg.region, "1")] == "with D its task would wait over 3 times as long as it runs"


@pytest.mark.parametrize(
    ("cost", "expected"),
    [(SMALL, []), (HALF, ["B2", "B3", "C2", "C3"]), (FULL, ["C1"])],
)
def test_where_costs_are_known_work_goes_where_there_is_room(cost: KernelCost, expected: list[str]) -> None:
    """Small kernels fit beside all others; halves beside A, which has room for one; full ones beside nothing."""
    dfg = graph(PICTURE, HIGH_AND_LOW)
    schedule = zones_fair(dfg, 16, costs=dict.fromkeys(dfg.graph.nodes, cost))
    assert barriers(dfg, schedule) == expected


def test_bandwidth_counts_as_room() -> None:
    dfg = graph("A(w A) 1(w a)", {"A": 3, "1": 1})
    for share, expected in ((0.4, []), (0.8, ["A1"])):
        cost = KernelCost(100.0, 16, 256, memory=share)
        assert barriers(dfg, zones_fair(dfg, 16, costs=dict.fromkeys(dfg.graph.nodes, cost))) == expected


def test_nobody_waits_for_what_may_be_late() -> None:
    """B is short and beside the long C: what is no longer than its slack need not wait for it."""
    dfg = graph("A(w A) B(r A; w B) C(r A; w C) 1(w a)", {"ABC": 3, "1": 1})
    costs = {n: KernelCost(100.0, 132 * 8, 256) for n in dfg.graph.nodes}
    costs[named(dfg.region, "B")] = KernelCost(10.0, 132 * 8, 256)
    for time, expected in ((50.0, ["C1"]), (500.0, ["B1", "C1"])):
        costs[named(dfg.region, "1")] = KernelCost(time, 132 * 8, 256)
        assert barriers(dfg, zones_fair(dfg, 16, costs=costs)) == expected


def test_a_copy_leaves_room_for_a_kernel() -> None:
    dfg = graph("P(r host; w P) A(rw P) 1(rw a) 2(rw b)", {"PA": 3, "12": 1})
    assert barriers(dfg, zones_fair(dfg, 16, age=4)) == ["A2"]  # 1 is beside the copy


def test_nobody_is_held_behind_a_loop() -> None:
    """A and B may run any number of times before 1; C stands behind them and needs them."""
    dfg = graph("A(rw A) B(rw A) C(r A; w C) D(w D) 1(rw a)", {"ABCD": 3, "1": 1}, "B>A")
    assert barriers(dfg, zones_fair(dfg, 16, age=4)) == ["D1"]
    assert barriers(dfg, zones(dfg, 16)) != ["D1"]


def test_in_a_common_loop_a_step_is_held_behind_a_step() -> None:
    dfg = graph("A(rw A) B(rw A) 1(rw a)", {"AB": 3, "1": 1}, "1>A")
    assert barriers(dfg, zones_fair(dfg, 16, age=4)) == ["B1"]


def test_what_is_endless() -> None:
    region = program("A(w A) B(w B) C(w C) D(w D)", "B>A D>C D>A")
    a, b, c, d = (named(region, letter) for letter in "ABCD")
    assert Loops(region).endless(d) == 1 << a | 1 << b
    assert Loops(region).endless(a) == 1 << c | 1 << d
    assert Loops(program("A(w A) B(w B)")).endless(1) == 0


def test_streams_of_several_functions_get_the_more_urgent_rank() -> None:
    one = Schedule("zones-fair", 3, (), ranks=(0, 1, 2))
    other = Schedule("zones-fair", 2, (), ranks=(1, 0))
    plain = Schedule("kesco", 4, ())
    assert joined_ranks([one, other], 3) == (0, 0, 2)
    assert joined_ranks([one, plain], 4) == (0, 1, 2, 2)
    assert joined_ranks([plain], 4) == ()
