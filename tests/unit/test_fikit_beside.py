"""Whether others run beside a task that is busy: tried, measured, and ended when it costs too much."""

from __future__ import annotations

import random

import pytest
from unit.test_fikit_filling import HIGH, LOW, NOVEL, SHORT, US, policy, state

from kesco.fikit.policy import Policy

MS = 1000 * US
REST = 30 * US
LIMIT = {"beside_permille": 50}
HOST_BOUND = {"host": 100 * US, "kernel": 30 * US}
GPU_BOUND = {"host": 5 * US, "kernel": 100 * US}


class World:
    """An urgent task that makes request after request of twenty kernels, and one that launches whenever it may.

    Kernels take `slow` times as long while the other one is at work; all of it in virtual time.
    """

    def __init__(self, found: Policy, seed: int = 1, noise: float = 0.1, told: bool = False) -> None:
        self.found, self.now, self.launched, self.low, self.low_until = found, 1 * MS, 0, 0, 0
        self.ticket, self.waits, self.chance, self.noise = 0, False, random.Random(seed), noise
        self.told, self.free = told, 0  # whether it is known when nothing is on the GPU within a request; when that is
        self.beside = 0  # nanoseconds in which the lower one was at work while the other one was busy

    def low_turn(self) -> None:
        """The lower task's kernels of 50 us, each behind the other, as far as it may."""
        if self.low_until and self.low_until <= self.now:
            self.low += 1
            self.found.done(self.low_until, LOW, self.low)
            self.low_until = 0
        if not self.low_until and not self.waits:
            self.ticket += 1
            self.found.waits(self.now, LOW, SHORT, self.ticket)
            self.waits = True
        grants, _ = self.found.decide(self.now)
        if any(one.task == LOW for one in grants):
            self.waits, self.low_until = False, self.now + 50 * US

    def goes_on(self, until: int) -> None:
        while self.now < until:
            step = min(25 * US, until - self.now)
            self.beside += step if self.low_until else 0
            self.now += step
            if self.told and self.free <= self.now:
                self.found.done(self.now, HIGH, self.launched)
            self.low_turn()

    def request(self, slow: float, host: int = 100 * US, kernel: int = 30 * US, launches: int = 20) -> None:
        host = int(host * max(0.1, 1 + self.chance.gauss(0, self.noise)))
        for _ in range(launches):
            self.found.passed(self.now, HIGH, NOVEL)
            self.launched += 1
            self.low_turn()
            self.free = max(self.free, self.now) + int(kernel * (slow if self.low_until else 1))
            self.goes_on(self.now + host)
        waits = self.now
        self.goes_on(self.free)
        self.found.done(self.now, HIGH, self.launched)
        self.found.waited(self.now, HIGH, self.now - waits)
        self.low_turn()
        self.now += REST
        self.low_turn()

    def requests(self, many: int, slow: float, **how: int) -> float:
        """Of the time that these took: in which part the other one was beside."""
        before, begin = self.beside, self.now
        for _ in range(many):
            self.request(slow, **how)
        return (self.beside - before) / (self.now - begin)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("slow", "noise"), [(1.0, 0.02), (1.5, 0.2)])
def test_beside_a_task_that_launches_slowly_others_run(seed: int, slow: float, noise: float) -> None:
    """What they cost is hidden by the host, also where that takes now longer and now less."""
    with policy(**LIMIT) as found:
        world = World(found, seed, noise)
        world.requests(50, slow)
        assert world.requests(500, slow) > 0.85
        one = state(found, HIGH)
        assert one.trials == 1 and abs(one.slow_permille - 1000) < 30 and one.beside_ns > 800 * MS


def test_what_fills_gaps_within_requests_is_in_the_way_of_no_trial() -> None:
    """Between its launches it is idle for long, and that is filled; a request ends only where it waits for it."""
    with policy(**LIMIT) as found:
        world = World(found, told=True)
        world.requests(60, 1.5, host=400 * US)
        assert world.requests(200, 1.5, host=400 * US) > 0.85
        one = state(found, HIGH)
        assert one.trials == 1 and abs(one.slow_permille - 1000) < 30


@pytest.mark.parametrize("slow", [1.2, 1.9])
def test_where_it_costs_more_than_the_limit_it_ends_soon_and_is_tried_rarely(slow: float) -> None:
    with policy(**LIMIT) as found:
        world = World(found)
        assert world.requests(2000, slow, **GPU_BOUND) < 0.03  # 4 s
        one = state(found, HIGH)
        assert one.beside == 0 and 1 <= one.trials <= 3 and one.slow_permille > 1100


def test_what_becomes_wrong_ends_within_a_second_and_what_becomes_right_is_found() -> None:
    with policy(**LIMIT) as found:
        world = World(found)
        world.requests(200, 2.0)
        assert state(found, HIGH).beside == 1
        begin = world.now
        while state(found, HIGH).beside or world.now - begin < 60 * MS:
            world.request(2.0, **GPU_BOUND)
            assert world.now - begin < 1000 * MS
        world.requests(3000, 2.0)
        assert world.requests(200, 2.0) > 0.8


def test_what_becomes_slow_among_requests_of_one_kind_is_measured_against_new_ones() -> None:
    """The same launches, of which each takes longer from now on, also alone: that is nobody's fault."""
    with policy(**LIMIT) as found:
        world = World(found)
        world.requests(200, 1.0, **GPU_BOUND)
        world.requests(100, 1.0, host=5 * US, kernel=150 * US)
        assert world.requests(200, 1.0, host=5 * US, kernel=150 * US) > 0.8
        assert state(found, HIGH).trials == 1


def test_a_request_of_another_kind_is_measured_by_its_own() -> None:
    """Long and short ones in turn: beside each other they would look like noise."""
    with policy(**LIMIT) as found:
        world = World(found)
        for _ in range(60):
            world.request(1.0)
            world.request(1.0, kernel=3000 * US, launches=3)
        assert state(found, HIGH).beside == 1 and abs(state(found, HIGH).slow_permille - 1000) < 40


def test_among_requests_of_ever_new_kinds_nobody_is_left_unmeasured() -> None:
    with policy(**LIMIT) as found:
        world = World(found)
        world.requests(50, 1.0)
        assert state(found, HIGH).beside == 1
        for launches in range(30, 80):
            world.request(2.0, launches=launches, **GPU_BOUND)
        assert state(found, HIGH).beside == 0


def test_what_nobody_knows_runs_beside_as_well() -> None:
    """No profile has the lower one's kernel: beside a busy task it is bounded by its number, and has a credit."""
    with policy(**LIMIT) as found:
        world = World(found)
        world.requests(50, 1.0)
        found.done(world.now, LOW, 10**6)
        for ticket in range(1001, 1004):
            found.waits(world.now, LOW, 77, ticket)
        found.passed(world.now, HIGH, NOVEL)
        grants, _ = found.decide(world.now)
        assert [one.ticket for one in grants][-3:] == [1001, 1002, 1003]
        credit = found.credit(LOW)
        assert credit is not None and credit.unknown_ns > 0


@pytest.mark.parametrize(("priorities", "chosen", "runs"), [((9, 5), {}, 0), ((5, 5), LIMIT, 0), ((6, 5), LIMIT, 1)])
def test_only_where_it_is_asked_for_and_for_lower_tasks(
    priorities: tuple[int, ...], chosen: dict[str, int], runs: int
) -> None:
    with policy(priorities, **chosen) as found:
        world = World(found)
        world.waits = True  # the other one launches nothing yet
        world.requests(50, 1.0)
        world.waits = False
        world.requests(3, 1.0)
        assert state(found, HIGH).beside == runs


def test_a_burst_without_an_end_has_nobody_beside_it() -> None:
    with policy(**LIMIT) as found:
        world = World(found)
        world.requests(100, 1.0)
        found.passed(world.now, HIGH, NOVEL)
        found.decide(world.now)
        assert state(found, HIGH).beside == 1
        found.decide(world.now + 1001 * MS)
        assert state(found, HIGH).beside == 0
