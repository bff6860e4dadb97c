"""What the highest task is promised: how much of it must be done before others begin, and where that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property.regions import named, program
from property.tasks import marked

from kesco.dataflow import build
from kesco.ir.schedule import Schedule
from kesco.model.gpu import KernelCost
from kesco.scheduling.promise import BESIDE, done, held_until, staggered
from kesco.scheduling.zones_fair import zones_fair

TWO_LOOPS = "A(w A) B(w B) 1(w a) 2(w b)"
TASKS = {"AB": 9, "12": 1}


def held(
    text: str, tasks: dict[str, int], paths: str, total: dict[str, float], promise: int | None = None,
    age: int | None = None, known: bool = True,
) -> tuple[list[tuple[str, str, int]], Schedule]:  # fmt: skip
    """Which site waits for how many percent of which; `total` has the microseconds of all executions by label."""
    dfg = build(marked(program(text, paths), tasks))
    sites = dfg.region.sites
    times = {named(dfg.region, label): time for label, time in total.items()}
    costs = {number: KernelCost(10.0, 64, 256) for number in dfg.graph.nodes}
    schedule = zones_fair(dfg, 16, 6, age, costs, None, promise, times if known else None)
    return [(sites[one.mark].label, sites[one.target].label, one.share) for one in schedule.holds], schedule


@given(st.floats(1.0, 1e6), st.floats(0.05, 1.0), st.integers(0, 300))
def test_a_task_that_others_run_beside_keeps_its_promise(serial: float, part: float, promise: int) -> None:
    """If the rest of the task takes `BESIDE` times as long; and where it can be later, it is not held for nothing."""
    alone = serial * part
    until = held_until(serial, alone, promise)
    assert 0.0 <= until <= 1.0
    ends = alone * (until + (1 - until) * BESIDE)
    assert ends <= serial * (1 + promise / 100) * (1 + 1e-9)
    if until > 0.0:
        assert ends == pytest.approx(min(serial * (1 + promise / 100), alone * BESIDE))


def test_lower_tasks_wait_for_a_part_of_the_highest_ones_loop() -> None:
    """A and B are on streams of their own: alone they take 60 of serially 100, with the promise 110."""
    paths, total = "B>A 2>1", {"A": 60.0, "B": 40.0, "1": 50.0, "2": 50.0}
    until = 1 - (110 / 60 - 1) / (BESIDE - 1)
    found, schedule = held(TWO_LOOPS, TASKS, paths, total)
    assert found == [("A", "1", 21), ("A", "2", 21)]  # A's stream has most to do: B may be ahead
    assert until == pytest.approx(0.206, abs=0.001)
    assert schedule.barriers == ()
    assert {one.why for one in schedule.holds} == {"so that task AB takes at most 10 % longer than serially alone"}
    assert held(TWO_LOOPS, TASKS, paths, total, promise=0)[0] == [("A", "1", 37), ("A", "2", 37)]
    assert held(TWO_LOOPS, TASKS, paths, total, promise=32)[0] == []  # it can be kept without
    one_stream = held("A(rw A) B(rw A) 1(w a) 2(w b)", TASKS, paths, total)[0]
    assert one_stream == [("B", "1", 91), ("B", "2", 91)]


def test_ageing_bounds_how_long_a_task_is_held() -> None:
    total = {"A": 60.0, "B": 40.0, "1": 1.5, "2": 1.5}
    found, schedule = held(TWO_LOOPS, TASKS, "B>A 2>1", total)
    assert found == [("A", "1", 20), ("A", "2", 20)]  # of 60, 4 times 3
    assert {one.why for one in schedule.holds} == {"for at most 4 times as long as its task takes"}
    assert held(TWO_LOOPS, TASKS, "B>A 2>1", total, age=1)[0] == [("A", "1", 5), ("A", "2", 5)]
    assert held(TWO_LOOPS, TASKS, "B>A 2>1", total, age=0)[0] == []


def test_the_lowest_task_gives_way_until_the_rest_of_the_highest_takes_as_long_as_it_does() -> None:
    """A and B take 60 together, serially 100, with the promise 110; 2 takes 24 by itself, so it begins at 86."""
    paths, total = "B>A 1>1 2>2", {"A": 60.0, "B": 40.0, "1": 50.0, "2": 24.0}
    found, schedule = held(TWO_LOOPS, {"AB": 9, "1": 5, "2": 1}, paths, total)
    until = held_until(100, 60, 10)
    assert staggered(until, 60, {5: 50, 1: 24}) == {5: pytest.approx(until * 60), 1: pytest.approx(86)}
    part = done(until, 60, 86)
    assert (1 - part) * 60 * BESIDE == pytest.approx(24)  # what is left of the highest
    assert found == [("A", "1", 21), ("A", "2", int(part * 100))]
    assert [one.why for one in schedule.holds] == [
        "so that task AB takes at most 10 % longer than serially alone",
        "it gives way until what is left of task AB takes as long as it does",
    ]
    long = held(TWO_LOOPS, {"AB": 9, "1": 5, "2": 1}, paths, total | {"2": 99.0})[0]
    assert long == [("A", "1", 21), ("A", "2", 21)]  # it has more to do than is left: it begins with the other
    equal = held(TWO_LOOPS, {"AB": 9, "1": 5, "2": 5}, paths, total)[0]
    assert equal == [("A", "1", 21), ("A", "2", 21)]
    three = (
        "A(w A) B(w B) 1(w a) 2(w b) 3(w c)"  # of two that are equally low the longer one decides, whichever is first
    )
    order = {"AB": 9, "1": 5, "2": 1, "3": 1}
    times = total | {"2": 99.0, "3": 24.0}
    assert [one[2] for one in held(three, order, f"{paths} 3>3", times)[0]] == [21, 21, 21]


_TIMES = st.lists(st.integers(1, 100), min_size=3, max_size=3)


@given(st.lists(st.sampled_from("XYZ"), min_size=3, max_size=3), _TIMES, _TIMES, st.integers(0, 100), st.integers(1, 5))
def test_random_loops_keep_the_promise_or_the_ageing_bound(
    on: list[str], high: list[int], low: list[int], promise: int, age: int
) -> None:
    """In the model of the promise: what runs beside others takes `BESIDE` times as long, and all of the rest may."""
    text = "".join(f"{name}(rw {buffer}) " for name, buffer in zip("ABC", on, strict=True)) + "1(rw p) 2(rw q) 3(rw p)"
    total = dict(zip("ABC123", map(float, [*high, *low]), strict=True))
    found, schedule = held(text, {"ABC": 9, "123": 1}, "C>A 3>1", total, promise, age)
    alone = max(sum(t for t, b in zip(high, on, strict=True) if b == buffer) for buffer in on)
    allowed = max(sum(high) * (1 + promise / 100), alone)
    if not found:
        assert alone * BESIDE <= allowed * (1 + 1e-9)
        return
    assert {target for _, target, _ in found} == {"1", "2"}  # the first on each stream
    (done,) = {share / 100 for _, _, share in found}
    assert (done - 0.01) * alone < age * sum(low)
    ends = alone * (done + (1 - done) * BESIDE)
    if all(one.why.startswith("so that") for one in schedule.holds):
        assert ends <= allowed * (1 + 1e-9)
        assert ends > allowed - 0.02 * alone * BESIDE  # nobody is held for longer than that takes
    else:
        assert (done + 0.01) * alone > age * sum(low)


def test_nothing_is_promised_where_costs_are_not_known() -> None:
    total = {"A": 60.0, "B": 40.0, "1": 50.0, "2": 50.0}
    assert held(TWO_LOOPS, TASKS, "B>A 2>1", total, known=False)[0] == []
    assert held(TWO_LOOPS, TASKS, "B>A 2>1", dict.fromkeys(total, 0.0))[0] == []
    assert held(TWO_LOOPS, TASKS, "2>1", total)[0] == []  # A and B run once: barriers do that


def test_the_part_may_end_in_the_second_of_two_loops() -> None:
    total = {"A": 50.0, "B": 50.0, "1": 90.0}
    assert held("A(rw A) B(rw A) 1(w a)", {"AB": 9, "1": 1}, "A>A B>B 1>1", total)[0] == [("B", "1", 81)]
    total = {"A": 95.0, "B": 5.0, "1": 90.0}
    assert held("A(rw A) B(rw A) 1(w a)", {"AB": 9, "1": 1}, "A>A B>B 1>1", total)[0] == [("A", "1", 96)]


def test_what_a_higher_task_needs_and_what_shares_its_loop_is_not_held() -> None:
    total = {"A": 60.0, "B": 40.0, "1": 50.0, "2": 50.0, "C": 1.0}
    text = "A(rw A) B(rw A) 1(w a) 2(w b) C(r a; w c)"
    assert held(text, {"ABC": 9, "12": 1}, "B>A", total)[0] == [("B", "2", 91)]
    total.pop("C")
    assert held("A(rw A) B(rw A) 1(w a) 2(w b)", TASKS, "2>A", total)[0] == []
    assert held("1(w a) 2(w b) A(rw A) B(rw A)", TASKS, "B>A", total)[0] == []  # the host issues it before


def test_what_is_behind_a_held_loop_is_not_held_again() -> None:
    total = {"A": 60.0, "B": 40.0, "1": 50.0, "2": 50.0}
    assert held("A(rw A) B(rw A) 1(rw a) 2(rw a)", TASKS, "B>A 1>1", total)[0] == [("B", "1", 91)]
    branch = "A(rw A) B(rw A) 1(rw a) 2(rw a)"  # 1 or 2
    assert held(branch, TASKS, "B>A B>2 1|2 1>exit", total)[0] == [("B", "1", 91), ("B", "2", 91)]
