"""The replay of traces: by hand on the smallest ones, and what must hold of every one under every policy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kesco.cli import main
from kesco.fikit import compare, policy, simulate, synthetic, trace
from kesco.fikit.gpu import NEVER, Machine, Work, gpu
from kesco.fikit.policy import Kind
from kesco.fikit.trace import Step, Trace, TracedKernel, TracedTask
from kesco.ir import kfikit

US = 1000
AT_ONCE = Machine(slice_ns=2000 * US, switch_ns=0, grant_ns=0, notice_ns=0)
TWO = (TracedKernel(1, "one"), TracedKernel(2, "two"))


def replayed(kind: Kind, tasks: tuple[TracedTask, ...], machine: Machine = AT_ONCE, **chosen: int) -> simulate.Replay:
    found = Trace(TWO, tasks)
    return compare.compare(found, [kind], machine, chosen).replays[kind]


def steps(many: int, gap: int, kernel: int, time: int, waits: bool = True) -> tuple[Step, ...]:
    return (Step(gap * US, kernel, time * US, waits),) * many


def finished(machine: Machine, launches: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """When kernels are done: launches are (when, whose, how long), in order; the result (whose, when)."""
    device = gpu(machine, 3)
    found, left = [], list(launches)
    while True:
        now = min(device.next_event(), left[0][0] if left else NEVER)
        if now == NEVER:
            return found
        found += [(work.task, now) for work in device.advance(now)]
        while left and left[0][0] == now:
            when, task, time = left.pop(0)
            device.add(now, Work(task, 0, when, time))


def test_one_context_at_a_time_in_slices() -> None:
    machine = Machine(slice_ns=100, switch_ns=10)
    assert finished(machine, [(0, 0, 50), (5, 0, 50)]) == [(0, 50), (0, 100)]
    # 0 runs its slice to 100, 1 is there from 110 to 160, 0 from 170 on with the 50 that were left
    assert finished(machine, [(0, 0, 150), (20, 1, 50)]) == [(1, 160), (0, 220)]
    # who becomes idle loses the GPU at once; who comes back to an idle GPU after another pays the switch
    assert finished(machine, [(0, 0, 10), (0, 1, 10), (100, 1, 10), (200, 0, 10)]) == [
        (0, 10), (1, 30), (1, 110), (0, 220),
    ]  # fmt: skip


def test_concurrent_kernels_share_the_gpu() -> None:
    machine = Machine(concurrent=True)
    assert finished(machine, [(0, 0, 100), (50, 1, 100)]) == [(0, 150), (1, 200)]


def test_alone_a_task_takes_its_gaps_and_kernels() -> None:
    found = Trace(TWO, (TracedTask("a", 5, (*steps(2, 10, 0, 30), *steps(1, 5, 1, 20)), 1000, 7 * US),))
    alone = simulate.alone(found, 0, policy.settings(Kind.EXCLUSIVE), AT_ONCE)
    assert alone.taken_ns == (10 + 30 + 10 + 30 + 5 + 20 + 7) * US
    assert alone.costs[1].time and alone.costs[1].time.count == 2
    assert alone.costs[1].gap and (alone.costs[1].gap.shortest, alone.costs[1].gap.longest) == (5 * US, 10 * US)
    assert alone.costs[2].gap is None
    assert alone.costs[0].gap and alone.costs[0].gap.total == 10 * US


def test_launches_that_nobody_waits_for_are_queued() -> None:
    found = Trace(TWO, (TracedTask("a", 5, steps(3, 10, 0, 100, waits=False)),))
    alone = simulate.alone(found, 0, policy.settings(Kind.EXCLUSIVE), AT_ONCE)
    assert alone.taken_ns == (10 + 300) * US
    assert alone.costs[1].gap and alone.costs[1].gap.longest == 0


def test_a_host_that_is_far_ahead_waits_for_the_driver() -> None:
    many = simulate.QUEUE + 500
    tasks = (
        TracedTask("a", 5, steps(many, 0, 0, 10, waits=False)),
        TracedTask("b", 4, steps(many, 1, 1, 10, waits=False)),
    )
    alone = simulate.alone(Trace(TWO, tasks), 0, policy.settings(Kind.EXCLUSIVE), AT_ONCE)
    assert alone.taken_ns == many * 10 * US
    for kind in (Kind.SHARING, Kind.QUANTILE):
        found = replayed(kind, tasks)
        assert [one.counters["done"] for one in found.tasks] == [many, many]
        assert max(one.completed_ns for one in found.tasks) == pytest.approx(2 * many * 10 * US, rel=0.3)


URGENT = TracedTask("urgent", 9, steps(50, 1000, 0, 100))
GREEDY = TracedTask("greedy", 1, steps(400, 0, 1, 200, waits=False))


def test_gaps_are_filled_and_the_urgent_task_loses_nothing() -> None:
    found = replayed(Kind.QUANTILE, (URGENT, GREEDY), guard_ns=10 * US, away_ns=10**9, threshold_ns=500 * US)
    assert (found.gaps, found.fillable_ns) == (49, 49_000 * US)
    assert found.tasks[0].taken_ns == 50 * 1100 * US
    assert (found.overruns, found.late_ns) == (0, 0)
    # 4 kernels of 200 µs fit each gap of 1000; the first gap, before any kernel, is known as well
    assert found.filled_ns == 49 * 800 * US
    counters = found.tasks[1].counters
    assert counters["granted_fill"] + counters["credited"] == 200
    assert counters["credited"] > 100
    assert found.tasks[1].beside_ns == 200 * 200 * US


def test_sharing_and_reacting_do_lose() -> None:
    for kind in (Kind.SHARING, Kind.STRICT, Kind.REACTIVE):
        found = replayed(kind, (URGENT, GREEDY))
        assert found.tasks[0].taken_ns > 50 * 1100 * US
        assert found.overruns > 0 and found.late_ns > 0
    exclusive = replayed(Kind.EXCLUSIVE, (GREEDY, URGENT))
    assert exclusive.tasks[0].completed_ns == (400 * 200 + 50 * 1100 - 1000) * US  # it came second


def test_what_a_profile_says_wrongly_costs_time_until_it_is_no_longer_believed() -> None:
    other = Trace(TWO, (TracedTask("urgent", 9, steps(50, 3000, 0, 100)), GREEDY))
    store = compare.measured(other, AT_ONCE)
    lost = {}
    for limit in (0, 6):
        chosen = {"drift_limit": limit, "away_ns": 10**9}
        real = compare.compare(Trace(TWO, (URGENT, GREEDY)), [Kind.QUANTILE], AT_ONCE, chosen, store)
        lost[limit] = real.replays[Kind.QUANTILE].late_ns
    assert 0 < lost[6] < lost[0] / 2


SHAPES = st.builds(
    synthetic.Shape,
    st.just("task"),
    priority=st.integers(0, 9),
    launches=st.integers(1, 25),
    kernels=st.integers(1, 4),
    time_ns=st.integers(1, 500_000),
    gap_ns=st.integers(0, 2_000_000),
    waits=st.floats(0, 1),
    spread=st.floats(0, 0.5),
    outliers=st.floats(0, 0.2),
    arrives_ns=st.integers(0, 1_000_000),
)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.lists(SHAPES, min_size=1, max_size=4), st.booleans())
def test_every_task_does_all_its_work_under_every_policy(seed: int, shapes: list[synthetic.Shape], mps: bool) -> None:
    named = tuple(replace(one, name=f"task {n}") for n, one in enumerate(shapes))
    found = synthetic.trace(seed, named)
    result = compare.compare(found, Kind, Machine(concurrent=mps), {})
    for kind, one in result.replays.items():
        for place, task in enumerate(one.tasks):
            source = next(t for t in found.tasks if t.name == task.name)
            assert task.kernel_ns == pytest.approx(sum(max(s.time_ns, 1) for s in source.steps), abs=len(source.steps))
            assert task.counters["launched"] == task.counters["done"] == len(source.steps)
            assert result.slowdown(kind, place) >= 0.999, (kind, task)
        assert 0 <= one.filled_ns <= one.fillable_ns + 4 * one.gaps
        assert one.fillable_ns <= one.gap_ns
        if kind is Kind.EXCLUSIVE and len(one.tasks) == 1:
            assert one.tasks[0].taken_ns == result.alone[one.tasks[0].name]


SMALL = synthetic.trace(
    1,
    tuple(
        replace(one, launches=one.launches // 2) for one in (synthetic.INFERENCE, synthetic.TRAINING, synthetic.BATCH)
    ),
)


def test_on_made_up_tasks_the_policies_stand_in_the_order_that_one_expects() -> None:
    result = compare.compare(SMALL, Kind, Machine(), {})
    slower = {kind: result.slowdown(kind) for kind in result.replays}
    assert slower[Kind.EXCLUSIVE] == 1
    assert slower[Kind.QUANTILE] < slower[Kind.MEAN] < slower[Kind.REACTIVE] < slower[Kind.STRICT]
    overruns = {kind: one.overruns for kind, one in result.replays.items()}
    assert overruns[Kind.CLAIRVOYANT] <= 2  # the way to the policy and back takes time
    assert overruns[Kind.QUANTILE] < overruns[Kind.MEAN] / 5
    fill = {kind: one.fill for kind, one in result.replays.items()}
    assert 0.5 < fill[Kind.QUANTILE] < fill[Kind.CLAIRVOYANT]


@pytest.mark.thorough
def test_short_launches_fill_more_of_a_gap_on_credit() -> None:
    """Kernels of 3 us in pauses of 2 ms: with a way to the policy for each of them, more of a pause is lost."""
    urgent = synthetic.Requests("urgent", 9, 60, ((10_000, 3_000),) * 30, 2_000_000)
    other = synthetic.Requests("other", 1, 600, ((3_000, 2_000),) * 40, 20_000)
    served = synthetic.served(1, (urgent, other))
    fill = {}
    for credit in (0, 1_000_000):
        result = compare.compare(served, [Kind.QUANTILE], Machine(), {"credit_ns": credit})
        assert result.slowdown(Kind.QUANTILE) < 1.06
        fill[credit] = result.replays[Kind.QUANTILE].fill
    assert fill[1_000_000] > 1.2 * fill[0]


def test_the_command_says_the_same_as_a_table_and_as_data(tmp_path: Path) -> None:
    file, profile = str(tmp_path / "a.kftrace"), str(tmp_path / "a.kfikit")
    Path(file).write_text(trace.to_json(SMALL))
    Path(profile).write_text(kfikit.to_json(compare.measured(SMALL, Machine())))
    words = ["fikit", "simulate", file, "--policy", "quantile", "--policy", "strict", "--set", "guard_ns=20000"]
    table = CliRunner().invoke(main, words)
    assert table.exit_code == 0, table.output
    found = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert list(found["policies"]) == ["quantile", "strict"]
    for name, row in found["policies"].items():
        (line,) = (line for line in table.output.splitlines() if f" {name} " in line)
        assert f"{row['slowdown']:.3f}" in line and str(row["overruns"]) in line
    # The profile of the trace is what it is measured by without one.
    assert json.loads(CliRunner().invoke(main, [*words, "--profile", profile, "--json"]).output) == found


def test_synthesize_writes_a_trace_and_what_measuring_it_finds(tmp_path: Path) -> None:
    file, profile = tmp_path / "a.kftrace", tmp_path / "a.kfikit"
    words = ["fikit", "synthesize", "-o", str(file), "--seed", "7", "--profile", str(profile)]
    made = CliRunner().invoke(main, words)
    launches = sum(len(task.steps) for task in synthetic.trace(7).tasks)
    assert made.exit_code == 0 and made.stderr == f"{file}: 3 tasks, {launches} launches\n" and made.stdout == ""
    told = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert told["output"] == str(file) and told["launches"] == launches and told["profile"] == str(profile)
    assert told["tasks"] == [task.name for task in synthetic.trace(7).tasks]
    assert CliRunner().invoke(main, [*words, "-q"]).output == ""
    assert trace.read(file) == synthetic.trace(7)
    assert kfikit.read(profile) == compare.measured(synthetic.trace(7), Machine())


@pytest.mark.parametrize("wrong", ["guard_ns=x", "guard=1", "guard_ns", "quantum_ns=0"])
def test_a_setting_that_makes_no_sense_is_refused(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "a").write_text(trace.to_json(SMALL))
    refused = CliRunner().invoke(main, ["fikit", "simulate", str(tmp_path / "a"), "--set", wrong])
    assert refused.exit_code == 2
    assert "K104" in refused.output


def test_reports_that_are_late_do_not_starve_the_low_task() -> None:
    """A profile's gaps are longer than the daemon's by the way of its reports, and these hardly vary."""
    high = TracedTask("high", 9, tuple(Step((3000 + n % 7) * US, 0, 300 * US, True) for n in range(120)))
    low = TracedTask("low", 1, steps(2000, 3, 1, 290))
    late = Machine(slice_ns=2000 * US, switch_ns=50 * US, grant_ns=25 * US, notice_ns=5 * US, ended_ns=60 * US)
    found = replayed(Kind.QUANTILE, (high, low), late)
    assert found.fill > 0.7 and found.overruns <= 2
