"""The policy through its C interface: who is granted when, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kesco.fikit.policy import NEVER, Held, Kind, Policy, Reason, Settings, TaskState, settings
from kesco.ir.costs import Times
from kesco.ir.kfikit import KNOTS, Kernel

HEADER = (Path(__file__).resolve().parent.parent.parent / "kesco/runtime/fikit/policy.h").read_text()
US = 1000
HIGH, LOW, LOWER = 0, 1, 2
SETTINGS = {
    "threshold_ns": 100 * US, "guard_ns": 10 * US, "switch_ns": 0, "inflight_ns": 500 * US, "away_ns": 5000 * US,
    "unknown_ns": 300 * US, "react_permille": 0,
}  # fmt: skip
SHORT, LONG, HOLDERS = 1, 2, 3  # identities
KERNELS = {
    0: Kernel(gap=Times.of([400 * US])),
    SHORT: Kernel("short", time=Times.of([50 * US] * 20), gap=Times.of([0])),
    LONG: Kernel("long", time=Times.of([200 * US] * 20), gap=Times.of([0])),
    HOLDERS: Kernel("holder's", time=Times.of([100 * US] * 20), gap=Times.of([1000 * US] * 20)),
}


@contextmanager
def policy(kind: Kind = Kind.QUANTILE, priorities: tuple[int, ...] = (9, 5, 1), **chosen: int) -> Iterator[Policy]:
    """Tasks 0, 1, … with these priorities, which all know `KERNELS`; now is 0."""
    with Policy(settings(kind, SETTINGS | chosen)) as found:
        for task, priority in enumerate(priorities):
            assert found.arrives(0, task, priority)
            for identity, kernel in KERNELS.items():
                assert found.cost(task, identity, kernel)
        yield found


def granted(found: Policy, now: int) -> list[tuple[int, int, Reason]]:
    return [(one.task, one.ticket, one.reason) for one in found.decide(now)[0]]


def held(found: Policy, task: int) -> Held:
    state = found.task(task)
    assert state is not None
    return Held(state.held_reason)


def states(found: Policy) -> list[bytes]:
    return [bytes(state) for task in range(3) if (state := found.task(task))]


def busy_holder(found: Policy) -> None:
    """The holder has launched, and the others wait: a long kernel of 5, a short and then a long one of 1."""
    assert found.passed(0, HIGH, HOLDERS)
    assert found.waits(0, LOW, LONG, 1)
    assert found.waits(0, LOWER, SHORT, 1)


def test_the_structures_are_those_of_the_header() -> None:
    for structure, name in ((Settings, "KescoPolicySettings"), (TaskState, "KescoTaskState")):
        body = HEADER[: HEADER.index(f"}} {name};")].rpartition("typedef struct {")[2]
        fields = re.findall(r"^\s+(?:u?int\d+_t) (\w+(?:\[\w+\])?);", body, re.MULTILINE)
        grants = [f"granted_{reason.name.lower()}" for reason in Reason]
        wanted = [one for field in fields for one in (grants if field.startswith("grants[") else [field])]
        assert [field[0] for field in structure._fields_] == wanted


def test_the_words_are_those_of_the_header() -> None:
    for enumeration, prefix in ((Kind, "KESCO_"), (Reason, "KESCO_GRANT_"), (Held, "KESCO_HELD_")):
        for one in enumeration:
            name = "KESCO_NOT_HELD" if one is Held.NOT_HELD else f"{prefix}{one.name}"
            assert re.search(rf"\b{name} = {int(one)},", HEADER), name
    probabilities = re.search(r"in percent: ([\d\s*]+)\.", HEADER)
    assert probabilities
    assert tuple(map(int, probabilities[1].replace("*", " ").split())) == KNOTS


def test_who_is_higher_holds_and_passes() -> None:
    with policy() as found:
        assert found.holder == HIGH
        busy_holder(found)
        assert granted(found, 50 * US) == []
        assert held(found, LOW) is held(found, LOWER) is Held.BUSY
        assert found.leaves(60 * US, HIGH)
        assert found.holder == LOW
        assert granted(found, 60 * US) == [(LOW, 1, Reason.HOLDER)]


def test_a_gap_is_filled_by_the_highest_queue_first_and_then_the_rest_of_it() -> None:
    with policy(priorities=(9, 5, 1, 1)) as found:
        busy_holder(found)
        found.waits(0, 3, LONG, 1)
        found.done(100 * US, HIGH, 1)
        # 1000 µs are promised; in flight at most 500: 200 of priority 5, then the longest of priority 1
        assert granted(found, 100 * US) == [(LOW, 1, Reason.FILL), (3, 1, Reason.FILL), (LOWER, 1, Reason.FILL)]


def test_what_does_not_fit_the_rest_waits() -> None:
    with policy() as found:
        busy_holder(found)
        found.done(100 * US, HIGH, 1)
        found.leaves(100 * US, LOW)
        assert granted(found, 900 * US) == [(LOWER, 1, Reason.FILL)]
        found.done(950 * US, LOWER, 1)
        found.waits(960 * US, LOWER, LONG, 2)
        assert granted(found, 960 * US) == []
        assert held(found, LOWER) is Held.NO_FIT


def test_filling_stops_when_the_holder_is_back() -> None:
    with policy() as found:
        busy_holder(found)
        found.done(100 * US, HIGH, 1)
        found.passed(150 * US, HIGH, HOLDERS)
        assert granted(found, 150 * US) == []
        found.done(250 * US, HIGH, 2)
        assert (LOW, 1, Reason.FILL) in granted(found, 250 * US)


def test_an_overrun_is_counted_on_both_sides() -> None:
    with policy() as found:
        busy_holder(found)
        found.done(100 * US, HIGH, 1)
        assert (LOW, 1, Reason.FILL) in granted(found, 100 * US)
        found.passed(200 * US, HIGH, HOLDERS)
        found.done(260 * US, LOW, 1)
        found.done(280 * US, LOWER, 1)
        high, low = found.task(HIGH), found.task(LOW)
        assert high and low
        assert (high.harms, high.harm_ns, low.overruns) == (1, 80 * US, 1)
        assert (high.gaps, high.gap_ns, high.promises, high.broken) == (2, 100 * US, 1, 1)


def test_a_short_gap_is_not_begun() -> None:
    with policy(threshold_ns=1001 * US) as found:
        busy_holder(found)
        found.done(100 * US, HIGH, 1)
        assert granted(found, 100 * US) == []
        assert held(found, LOW) is Held.NO_GAP


def test_quantiles_count_and_not_the_mean() -> None:
    often_short = Times.of([50 * US] * 8 + [4000 * US] * 12)  # mean 2420 µs
    for kind, fills in ((Kind.QUANTILE, False), (Kind.MEAN, True)):
        with policy(kind) as found:
            found.cost(HIGH, HOLDERS, Kernel(time=Times.of([100 * US]), gap=often_short))
            busy_holder(found)
            found.done(100 * US, HIGH, 1)
            grants, wake = found.decide(100 * US)
            assert bool(grants) is fills
            if fills:
                continue
            # Once the short ones are over, it is one of the long ones.
            assert 140 * US < wake < 200 * US
            assert (LOW, 1, Reason.FILL) in granted(found, 165 * US)


def test_a_kernel_counts_with_its_high_quantile() -> None:
    with policy() as found:
        found.cost(LOW, LONG, Kernel(time=Times.of([100 * US] * 18 + [1500 * US] * 2)))
        found.passed(0, HIGH, HOLDERS)
        found.waits(0, LOW, LONG, 1)
        found.done(100 * US, HIGH, 1)
        assert granted(found, 100 * US) == []
        assert held(found, LOW) is Held.NO_FIT


def test_unknown_kernels_go_one_at_a_time() -> None:
    with policy() as found:
        busy_holder(found)
        found.abandoned(10 * US, LOW, 1)
        found.done(20 * US, LOW, 1)
        found.waits(50 * US, LOW, 77, 2)
        found.done(100 * US, HIGH, 1)
        assert granted(found, 100 * US) == [(LOW, 2, Reason.FILL)]
        assert held(found, LOWER) is Held.IN_FLIGHT
        found.done(200 * US, LOW, 2)
        assert granted(found, 200 * US) == [(LOWER, 1, Reason.FILL)]
        found.waits(210 * US, LOW, 77, 3)
        assert granted(found, 210 * US) == []
        assert held(found, LOW) is Held.IN_FLIGHT


def test_who_is_away_leaves_the_gpu_to_the_next_and_takes_it_back() -> None:
    with policy() as found:
        busy_holder(found)
        found.done(100 * US, HIGH, 1)
        found.decide(100 * US)
        found.done(200 * US, LOW, 1)
        found.done(200 * US, LOWER, 1)
        assert found.acting == HIGH
        found.waits(5000 * US, LOW, SHORT, 2)
        assert found.decide(5000 * US) == ([], 5100 * US)
        assert granted(found, 5100 * US) == [(LOW, 2, Reason.FREE)]
        assert (found.acting, found.holder) == (LOW, HIGH)
        found.waits(5110 * US, LOWER, SHORT, 2)
        assert granted(found, 5110 * US) == []
        assert held(found, LOWER) is Held.BUSY
        found.passed(5120 * US, HIGH, HOLDERS)
        found.waits(5130 * US, LOW, SHORT, 3)
        assert granted(found, 5130 * US) == []


def test_free_work_in_flight_is_bounded() -> None:
    with policy(priorities=(9, 5), inflight_ns=120 * US) as found:
        for ticket in (1, 2, 3):  # three threads
            found.waits(0, LOW, SHORT, ticket)
        assert granted(found, 5000 * US) == [(LOW, 1, Reason.FREE), (LOW, 2, Reason.FREE)]
        assert held(found, LOW) is Held.IN_FLIGHT
        found.done(5100 * US, LOW, 1)
        assert granted(found, 5100 * US) == [(LOW, 3, Reason.FREE)]


def test_strict_and_reactive_do_not_predict() -> None:
    for kind, waits in ((Kind.STRICT, 0), (Kind.REACTIVE, 100 * US)):
        with policy(kind) as found:
            busy_holder(found)
            assert granted(found, 50 * US) == []
            found.done(100 * US, HIGH, 1)
            if waits:
                assert found.decide(100 * US) == ([], 100 * US + waits)
            assert granted(found, 100 * US + waits) == [(LOW, 1, Reason.FREE)]


def test_exclusive_is_for_who_came_first_and_sharing_for_all() -> None:
    with policy(Kind.EXCLUSIVE, (1, 9), deadline_ns=0) as found:
        assert found.holder == 0
        found.waits(0, 1, SHORT, 1)
        assert found.decide(10**12) == ([], NEVER)
        found.leaves(10**12, 0)
        assert granted(found, 10**12) == [(1, 1, Reason.HOLDER)]
    with policy(Kind.SHARING) as found:
        assert found.holder == -1
        busy_holder(found)
        assert granted(found, 0) == [(LOW, 1, Reason.FREE), (LOWER, 1, Reason.FREE)]


def test_a_clairvoyant_knows_when_the_task_is_back() -> None:
    with policy(Kind.CLAIRVOYANT) as found:
        busy_holder(found)
        found.tell_time(LOW, 1, 140 * US)
        found.tell_time(LOWER, 1, 2 * US)
        found.done(100 * US, HIGH, 1)
        found.tell_return(HIGH, 245 * US)
        assert granted(found, 100 * US) == [(LOWER, 1, Reason.FILL)]  # 140 and the guard of 10 are more than 145
        assert held(found, LOW) is Held.NO_FIT


def test_every_hold_has_a_deadline_and_may_age() -> None:
    for chosen, reason in (({"deadline_ns": 3000}, Reason.DEADLINE), ({"age_ns": 3000}, Reason.AGED)):
        with policy(**chosen) as found:
            busy_holder(found)
            assert found.decide(10) == ([], 3000)
            assert granted(found, 2999) == []
            assert granted(found, 3000) == [(LOW, 1, reason), (LOWER, 1, reason)]


def test_the_harm_budget_stops_filling_until_it_is_earned_again() -> None:
    with policy(harm_permille=100) as found:
        busy_holder(found)
        found.done(100 * US, HIGH, 1)
        assert (LOW, 1, Reason.FILL) in granted(found, 100 * US)
        found.passed(200 * US, HIGH, HOLDERS)  # lower work is in its way for 100 µs: a tenth of the first 1000 µs
        found.done(300 * US, LOW, 1)
        found.done(300 * US, LOWER, 1)
        found.done(310 * US, HIGH, 2)
        found.waits(310 * US, LOW, SHORT, 2)
        assert found.decide(310 * US) == ([], 1000 * US)
        assert held(found, LOW) is Held.HARM
        assert granted(found, 1000 * US) == [(LOW, 2, Reason.FILL)]


def test_tasks_of_one_priority_take_turns() -> None:
    with policy(priorities=(5, 5, 5), quantum_ns=1000 * US) as found:
        assert found.passed(0, 0, SHORT)
        found.waits(10, 2, SHORT, 1)
        assert found.decide(10) == ([], 1000 * US + 10)  # its turn began when it was first asked
        assert granted(found, 1000 * US + 10) == [(2, 1, Reason.HOLDER)]
        assert found.holder == 2
        found.waits(1001 * US, 0, SHORT, 1)
        found.waits(1001 * US, 1, SHORT, 1)
        assert granted(found, 2100 * US) == [(0, 1, Reason.HOLDER)]
        assert granted(found, 3200 * US) == [(1, 1, Reason.HOLDER)]


def test_a_gap_that_is_always_shorter_than_promised_is_no_longer_believed() -> None:
    with policy(drift_limit=4) as found:
        now = 0
        for launch in range(1, 5):
            found.passed(now, HIGH, HOLDERS)
            found.done(now + 100 * US, HIGH, launch)
            found.decide(now + 100 * US)
            now += 400 * US  # 300 µs instead of 1000
        found.passed(now, HIGH, HOLDERS)
        found.waits(now, LOW, SHORT, 1)
        found.done(now + 100 * US, HIGH, 5)
        assert granted(found, now + 100 * US) == []
        assert held(found, LOW) is Held.DRIFT
        state = found.task(HIGH)
        assert state and state.drifted == 1
        for launch in range(6, 40):  # and once it is right again for long enough, it is
            now += 1200 * US
            found.passed(now, HIGH, HOLDERS)
            found.done(now + 100 * US, HIGH, launch)
            found.decide(now + 100 * US)
        found.waits(now + 110 * US, LOW, SHORT, 2)
        assert (LOW, 2, Reason.FILL) in granted(found, now + 110 * US)


def test_a_kernel_that_takes_longer_than_its_profile_becomes_unknown() -> None:
    with policy(drift_limit=4, priorities=(9, 5)) as found:
        now = 6000 * US
        for launch in range(1, 5):
            found.waits(now, LOW, SHORT, launch)
            assert found.decide(now)[0][0].predicted_ns == pytest.approx(50 * US, rel=0.02)
            found.done(now + 400 * US, LOW, launch)
            now += 500 * US
        found.waits(now, LOW, SHORT, 9)
        assert found.decide(now)[0][0].predicted_ns == SETTINGS["unknown_ns"]


def test_events_that_make_no_sense_change_nothing() -> None:
    with policy() as found:
        busy_holder(found)
        before = states(found)
        assert not found.arrives(1, HIGH, 3)
        assert not found.arrives(1, 7, 10)
        assert not found.arrives(1, 300, 1)
        assert not found.passed(1, 7, SHORT)
        assert not found.waits(1, LOW, SHORT, 1)
        assert not found.waits(1, LOW, SHORT, 0)
        assert not found.done(1, 7, 1)
        assert not found.cost(7, 1, KERNELS[SHORT])
        assert found.done(1, HIGH, 0)
        assert states(found) == before
        assert found.task(7) is None


def test_a_task_has_room_for_so_many_tickets() -> None:
    with policy() as found:
        found.passed(0, HIGH, HOLDERS)
        assert all(found.waits(0, LOW, SHORT, ticket) for ticket in range(1, 65))
        assert not found.waits(0, LOW, SHORT, 65)


def test_a_clock_that_goes_back_is_taken_for_the_latest_time() -> None:
    with policy() as found:
        busy_holder(found)
        found.decide(50 * US)
        found.waits(10 * US, LOWER, SHORT, 2)
        found.leaves(50 * US, HIGH)
        assert found.decide(0)[0]
        state = found.task(LOW)
        assert state and state.waited_ns == 50 * US


@pytest.mark.parametrize(
    "wrong",
    [{"quantum_ns": 0}, {"inflight_launches": 0}, {"gap_percent": 101}, {"drift_limit": 33}, {"guard_ns": 1 << 60}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="make no sense"):
        Policy(settings(Kind.QUANTILE, wrong))


def test_the_same_events_give_the_same_answers() -> None:
    def story() -> list[object]:
        with policy() as found:
            busy_holder(found)
            found.done(100 * US, HIGH, 1)
            said: list[object] = [found.decide(now * US) for now in range(100, 2000, 7)]
            return [*said, *states(found)]

    assert story() == story()


def test_gaps_that_are_always_shorter_than_measured_are_learned_anew() -> None:
    with policy(priorities=(9, 5), away_ns=10**9) as found:
        now, state = 0, None
        for launch in range(1, 40):  # 1000 µs as measured alone, 600 as the daemon hears of it
            found.passed(now, HIGH, HOLDERS)
            found.done(now + 100 * US, HIGH, launch)
            found.decide(now + 100 * US)
            now += 700 * US
        state = found.task(HIGH)
        assert state and state.drifted == 1 and state.wide_gaps >= 38
        found.passed(now, HIGH, HOLDERS)
        found.waits(now, LOW, LONG, 1)
        found.done(now + 100 * US, HIGH, 40)
        (one,) = found.decide(now + 100 * US)[0]
        assert one.reason is Reason.FILL and one.gap_left_ns == pytest.approx(590 * US, rel=0.01)


def test_a_task_is_back_within_the_guard_as_promised() -> None:
    with policy(priorities=(9, 5), away_ns=10**9) as found:
        for launch in range(1, 33):
            at = launch * 1095 * US  # 995 µs idle instead of 1000; the guard is 10
            found.passed(at, HIGH, HOLDERS)
            found.done(at + 100 * US, HIGH, launch)
            found.decide(at + 100 * US)
        state = found.task(HIGH)
        assert state and (state.broken, state.drifted) == (0, 0) and state.promises >= 31


@pytest.mark.parametrize(("late", "drifted"), [(0, 1), (300, 1), (350, 0)])
def test_a_report_that_may_be_late_is_no_miss(late: int, drifted: int) -> None:
    """Each kernel is said to have ended after 400 µs; it was last seen under way `late` µs before."""
    with policy(drift_limit=4) as found:
        now = 0
        for launch in range(1, 6):
            found.passed(now, HIGH, SHORT)
            assert found.done(now + 400 * US, HIGH, launch, late * US)
            now += 10_000 * US
        state = found.task(HIGH)
        assert state and state.drifted == drifted


def test_a_report_read_behind_later_ones_is_no_miss() -> None:
    """Each kernel ended after 60 µs, seen at once; what others said later was read before."""
    with policy(drift_limit=4) as found:
        for launch in range(1, 6):
            now = launch * 10_000 * US
            found.passed(now, HIGH, SHORT)
            found.decide(now + 400 * US)
            assert found.done(now + 60 * US, HIGH, launch)
        state = found.task(HIGH)
        assert state and state.drifted == 0
