"""How a gap is filled: jumps of its distribution, clients that wake up late, what is risked, credits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.test_fikit_policy import granted

from kesco.fikit import compare
from kesco.fikit.gpu import Machine
from kesco.fikit.policy import Held, Kind, Policy, Reason, TaskState, settings
from kesco.fikit.trace import Step, Trace, TracedKernel, TracedTask
from kesco.ir.costs import Times
from kesco.ir.kfikit import KNOTS_IN_ALL, Kernel, knots

US = 1000
HIGH, LOW, LOWER = 0, 1, 2
SHORT, LONG, HOLDERS, NOVEL = 1, 2, 3, 4  # identities; nothing is known of the gap behind the last one
SETTINGS = {
    "threshold_ns": 100 * US, "guard_ns": 10 * US, "switch_ns": 0, "inflight_ns": 500 * US, "away_ns": 50_000 * US,
    "unknown_ns": 300 * US, "react_ns": 100 * US, "react_permille": 30,
}  # fmt: skip
KERNELS = {
    SHORT: Kernel("short", time=Times.of([50 * US] * 20)),
    LONG: Kernel("long", time=Times.of([200 * US] * 20)),
    HOLDERS: Kernel("holder's", time=Times.of([100 * US] * 20), gap=Times.of([3000 * US] * 20)),
    NOVEL: Kernel("of no known gap", time=Times.of([100 * US] * 20)),
}


@contextmanager
def policy(priorities: tuple[int, ...] = (9, 5), **chosen: int) -> Iterator[Policy]:
    """Tasks 0, 1, … with these priorities, which all know `KERNELS`; now is 0."""
    with Policy(settings(Kind.QUANTILE, SETTINGS | chosen)) as found:
        for task, priority in enumerate(priorities):
            assert found.arrives(0, task, priority)
            for identity, kernel in KERNELS.items():
                assert found.cost(task, identity, kernel)
        yield found


def state(found: Policy, task: int) -> TaskState:
    one = found.task(task)
    assert one is not None
    return one


def idle_since(found: Policy, now: int, kernel: int, launches: int = 1) -> None:
    """The holder's launch of so many is done now, and took 100 us."""
    assert found.passed(now - 100 * US, HIGH, kernel)
    assert found.done(now, HIGH, launches)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_knots_ascend_from_the_shortest_to_the_longest(values: list[int]) -> None:
    found = knots(Times.of(values))
    assert (found[0], found[-1], len(found)) == ((0, min(values)), (10**6, max(values)), KNOTS_IN_ALL)
    assert [one for one, _ in found] == sorted(one for one, _ in found)
    assert [one for _, one in found] == sorted(one for _, one in found)


def test_nothing_is_between_the_knots_of_a_jump() -> None:
    found = knots(Times.of([10 * US] * 50 + [3000 * US] * 10))
    ends = [(one, other) for (part, one), (same, other) in pairwise(found) if part == same and other > 2 * one]
    assert [(round(one / US), round(other / US)) for one, other in ends] == [(10, 3000)]
    between = [(part, value) for part, value in found if 11 * US < value < 2900 * US]
    assert between == []


def test_a_gap_that_outlasts_the_short_ones_is_one_of_the_long_ones() -> None:
    """Five gaps of six are short: 80 of 100 and 90 of 100 of them are ends of a line on which no gap is."""
    with policy() as found:
        found.cost(HIGH, HOLDERS, Kernel(time=Times.of([100 * US]), gap=Times.of([15 * US] * 50 + [3000 * US] * 10)))
        found.passed(0, HIGH, HOLDERS)
        found.done(100 * US, HIGH, 1)
        assert found.decide(100 * US)[0] == []
        found.waits(120 * US, LOW, LONG, 1)
        grants, wake = found.decide(120 * US)
        assert grants == [] and wake == pytest.approx(125 * US, rel=0.01)  # the report of a short one may be under way
        (grant,), _ = found.decide(wake)
        assert grant.gap_left_ns == pytest.approx(2965 * US, rel=0.01)


def test_who_wakes_up_late_is_no_slow_kernel() -> None:
    """A client that sleeps at its launch needs up to half a millisecond; its kernel is as short as ever."""
    for says in (True, False):
        with policy(drift_limit=4) as found:
            now = 60_000 * US
            for launch in range(1, 12):
                assert found.waits(now, LOW, SHORT, launch)
                assert granted(found, now) == [(LOW, launch, Reason.FREE)]
                if says:
                    assert found.begins(now + 400 * US, LOW, launch)
                found.done(now + 450 * US, LOW, launch)
                now += 500 * US
            assert state(found, LOW).drifted == (0 if says else 1)
            assert (found.predicts(LOW, SHORT) < 60 * US) is says


def test_a_kernel_that_takes_longer_from_when_it_began_is_no_longer_believed() -> None:
    with policy(drift_limit=4) as found:
        now = 60_000 * US
        for launch in range(1, 5):
            assert found.waits(now, LOW, SHORT, launch)
            assert granted(found, now) == [(LOW, launch, Reason.FREE)]
            found.begins(now + 400 * US, LOW, launch)
            found.done(now + 800 * US, LOW, launch)
            now += 900 * US
        assert found.predicts(LOW, SHORT) == 0
        assert state(found, LOW).drifted == 1


def test_until_a_launch_begins_the_gap_is_not_filled() -> None:
    with policy() as found:
        assert found.waits(0, LOW, LONG, 1)
        idle_since(found, 100 * US, HOLDERS)
        assert granted(found, 100 * US) == [(LOW, 1, Reason.FILL)]
        found.begins(400 * US, LOW, 1)
        found.done(600 * US, LOW, 1)
        found.passed(3100 * US, HIGH, HOLDERS)
        assert (state(found, HIGH).fillable_ns, state(found, HIGH).busy_ns) == (2990 * US, 200 * US)


def test_a_credit_stands_again_once_the_late_one_has_begun() -> None:
    with policy() as found:
        assert found.waits(0, LOW, SHORT, 1)
        idle_since(found, 100 * US, HOLDERS)
        assert granted(found, 100 * US) == [(LOW, 1, Reason.FILL)]
        assert found.credit(LOW)
        found.decide(400 * US)  # a kernel of 50 us that is not done after 300: who knows how much longer
        assert found.credit(LOW) is None
        found.begins(410 * US, LOW, 1)
        found.decide(410 * US)
        credit = found.credit(LOW)
        assert credit and credit.until == pytest.approx(3090 * US, rel=0.02)


def test_a_word_that_something_begins_means_nothing_by_itself() -> None:
    with policy() as found:
        assert found.waits(0, LOW, SHORT, 1)
        assert not found.begins(10, 7, 1)
        assert not found.begins(10, LOW, 0)
        before = bytes(state(found, LOW))
        assert found.begins(10, LOW, 1)  # it still waits
        assert found.begins(10, LOW, 9)
        assert bytes(state(found, LOW)) == before


def test_what_nobody_predicts_is_filled_with_what_the_gap_has_lasted() -> None:
    with policy() as found:
        assert found.waits(0, LOW, SHORT, 1)
        idle_since(found, 200 * US, NOVEL)
        assert found.decide(200 * US) == ([], 300 * US)
        assert granted(found, 299 * US) == []
        assert state(found, LOW).held_reason == Held.NO_GAP
        assert granted(found, 300 * US) == [(LOW, 1, Reason.REACT)]
        assert found.decide(300 * US)[0] == []


def test_a_longer_kernel_has_to_wait_until_the_gap_has_lasted_as_long() -> None:
    with policy() as found:
        assert found.waits(0, LOW, LONG, 1)
        idle_since(found, 200 * US, NOVEL)
        assert granted(found, 300 * US) == []
        assert state(found, LOW).held_reason == Held.NO_FIT
        _, wake = found.decide(301 * US)
        assert wake == pytest.approx(400 * US, rel=0.02)
        assert granted(found, wake) == [(LOW, 1, Reason.REACT)]


def test_a_risk_is_no_longer_than_half_of_what_is_left_of_such_gaps() -> None:
    """Of the gaps that last 400 us half are over after 460: nothing of 200 us is let in, however long it has been."""
    often = Times.of([420 * US] * 10 + [460 * US] * 10 + [3000 * US] * 2)
    for gap, grants in ((often, []), (None, [(LOW, 1, Reason.REACT)])):
        with policy(threshold_ns=700 * US, gap_percent=1) as found:
            found.cost(HIGH, NOVEL, Kernel(time=Times.of([100 * US]), gap=gap))
            assert found.waits(0, LOW, LONG, 1)
            idle_since(found, 200 * US, NOVEL)
            found.decide(200 * US)
            assert granted(found, 600 * US) == grants


def test_who_lost_time_by_a_risk_is_left_alone_until_that_is_little() -> None:
    """100 us lost by work in the way are 3 % of 3.33 ms."""
    with policy() as found:
        assert found.waits(0, LOW, SHORT, 1)
        idle_since(found, 200 * US, NOVEL)
        assert granted(found, 300 * US) == [(LOW, 1, Reason.REACT)]
        assert found.passed(320 * US, HIGH, NOVEL)
        found.done(420 * US, LOW, 1)
        found.done(430 * US, HIGH, 2)
        assert (state(found, HIGH).harm_ns, state(found, LOW).overruns) == (100 * US, 1)
        assert found.waits(430 * US, LOW, SHORT, 2)
        paid = 420 * US + 100 * US * 1000 // 30
        assert granted(found, 2000 * US) == []
        assert found.decide(2100 * US) == ([], paid)
        assert granted(found, paid) == [(LOW, 2, Reason.REACT)]


def test_the_switch_back_is_a_loss_as_well() -> None:
    with policy(switch_ns=60 * US) as found:
        assert found.waits(0, LOW, SHORT, 1)
        idle_since(found, 200 * US, NOVEL)
        assert granted(found, 310 * US) == [(LOW, 1, Reason.REACT)]
        found.done(400 * US, LOW, 1)
        idle_since(found, 600 * US, NOVEL, 2)  # it came back at 500, and nothing was in its way
        assert found.waits(600 * US, LOW, SHORT, 2)
        assert granted(found, 2400 * US) == []
        assert granted(found, 500 * US + 60 * US * 1000 // 30) == [(LOW, 2, Reason.REACT)]


def test_nothing_is_risked_where_nothing_may_be_lost() -> None:
    with policy(react_permille=0) as found:
        assert found.waits(0, LOW, SHORT, 1)
        idle_since(found, 200 * US, NOVEL)
        assert granted(found, 5000 * US) == []
        assert state(found, LOW).held_reason == Held.NO_GAP


def test_a_risk_gives_a_credit_of_its_own_bounds() -> None:
    with policy() as found:
        assert found.waits(0, LOW, SHORT, 1)
        idle_since(found, 200 * US, NOVEL)
        assert granted(found, 300 * US) == [(LOW, 1, Reason.REACT)]
        credit = found.credit(LOW)
        assert credit and (credit.until, credit.flight_ns) == (400 * US, 100 * US)
        found.decide(350 * US)
        later = found.credit(LOW)
        assert later and later.until == 500 * US and later.number == credit.number
        found.passed(360 * US, HIGH, NOVEL)
        found.decide(360 * US)
        assert found.credit(LOW) is None


ONE_TWO = (TracedKernel(1, "one"), TracedKernel(2, "two"))


def test_a_low_task_that_sleeps_at_its_launches_still_fills_the_gaps() -> None:
    """Kernels of 10 us beside a client that needs 250 us to wake up, and reports that come every 60 us."""
    high = TracedTask("high", 9, tuple(Step((3000 + n % 7) * US, 0, 300 * US, True) for n in range(60)))
    low = tuple(Step((5 if n % 26 else 60) * US, 1, (10 + n % 3) * US, n % 26 == 25) for n in range(12_000))
    slow = Machine(slice_ns=2000 * US, grant_ns=250 * US, notice_ns=2 * US, ended_ns=5 * US, poll_ns=60 * US)
    trace = Trace(ONE_TWO, (high, TracedTask("low", 1, low)))
    found = compare.compare(trace, [Kind.QUANTILE], slow, {}).replays[Kind.QUANTILE]
    high_counters, low_counters = (one.counters for one in found.tasks)
    assert low_counters["drifted"] == 0
    assert found.fill > 0.65
    assert low_counters["overruns"] < 0.02 * (low_counters["credited"] + low_counters["granted_fill"])
    # What is counted as busy is what was done, the way of reports and switches, and not the waking up.
    assert found.fill <= high_counters["busy_ns"] / high_counters["fillable_ns"] < found.fill + 0.15


def test_a_gap_that_follows_one_launch_of_six_of_its_kernel_is_filled() -> None:
    """The gaps behind one kernel are 3 us or 3 ms, and which of them it is shows after the short ones."""
    steps = tuple(Step((3000 if n % 6 == 0 else 3) * US, 0, 100 * US, True) for n in range(180))
    low = (Step(5 * US, 1, 50 * US, True),) * 2000
    trace = Trace(ONE_TWO, (TracedTask("high", 9, steps), TracedTask("low", 1, low)))
    machine = Machine(slice_ns=2000 * US, grant_ns=10 * US, notice_ns=2 * US)
    found = compare.compare(trace, [Kind.QUANTILE], machine, {}).replays[Kind.QUANTILE]
    high_counters, low_counters = (one.counters for one in found.tasks)
    assert (high_counters["promises"], high_counters["broken"], found.overruns) == (30, 0, 0)
    assert low_counters["granted_fill"] <= 60  # one or two for each of the 30 gaps; the rest on credit
    assert found.fill > 0.8
