"""The model of a GPU: small cases whose times one can work out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesco.model.gpu import KernelCost, Kind, Machine, Step, ends, graph_makespan, makespan

FREE = Machine(launch=0, record=0, wait=0, synchronize=0, start=0, hop=0, graph_launch=0, graph_node=0)
SMALL = KernelCost(100, 64, 32)
WHOLE = KernelCost(100, 264, 1024)  # two blocks on each of 132 SMs: nothing else fits


def launches(*streams: int, cost: KernelCost = SMALL) -> list[Step]:
    return [Step(Kind.LAUNCH, stream, cost) for stream in streams]


def record(stream: int, event: int) -> Step:
    return Step(Kind.RECORD, stream, event=event)


def wait(stream: int, event: int) -> Step:
    return Step(Kind.WAIT, stream, event=event)


def test_one_stream_is_a_queue_and_several_run_side_by_side() -> None:
    assert makespan(FREE, launches(0, 0, 0)) == 300
    assert makespan(FREE, launches(0, 1, 2)) == 100
    assert makespan(FREE, launches(0, 1, 0)) == 200


def test_every_call_of_the_host_costs_time() -> None:
    machine = replace(FREE, launch=4, record=1, wait=2, synchronize=5, start=3)
    assert makespan(machine, launches(0)) == 4 + 3 + 100 + 5
    assert makespan(machine, [*launches(0), record(0, 1), wait(1, 1), *launches(1)]) == 4 + 3 + 100 + 3 + 100 + 5
    assert makespan(machine, launches(*range(50))) == 50 * 4 + 3 + 100 + 5


def test_a_synchronize_stops_the_host() -> None:
    machine = replace(FREE, launch=4, synchronize=5)
    steps = [*launches(0), Step(Kind.SYNCHRONIZE), *launches(1)]
    assert makespan(machine, steps) == 2 * (4 + 100 + 5)


def test_a_host_that_awaits_an_event_or_a_stream_is_held_no_longer() -> None:
    machine = replace(FREE, launch=4)
    long = replace(SMALL, microseconds=500)
    behind = [*launches(0, cost=long), *launches(1), record(1, 7)]
    for awaited in (Step(Kind.AWAIT, event=7), Step(Kind.AWAIT, 1)):
        assert makespan(machine, [*behind, awaited, *launches(2, cost=long)]) == 8 + 100 + 4 + 500
    assert makespan(machine, [*behind, Step(Kind.AWAIT, 0), *launches(2)]) == 4 + 500 + 4 + 100
    assert makespan(machine, [Step(Kind.AWAIT, event=7), *behind]) == makespan(machine, behind)  # never recorded


def test_a_wait_is_for_the_record_before_it() -> None:
    first = [*launches(0), record(0, 7)]
    assert makespan(FREE, [*first, wait(1, 7), *launches(1)]) == 200
    assert makespan(FREE, [*first, *launches(0), wait(1, 7), *launches(1)]) == 200
    assert makespan(FREE, [wait(1, 7), *launches(1), *first]) == 100  # never recorded: no wait


def test_going_on_behind_another_stream_takes_its_time() -> None:
    machine = replace(FREE, hop=2)
    first = [*launches(0), record(0, 7)]
    assert makespan(machine, [*first, wait(1, 7), *launches(1)]) == 202
    assert makespan(machine, [*first, wait(0, 7), *launches(0)]) == 200  # its own
    assert makespan(machine, [*first, *launches(1, 1), wait(1, 7), *launches(1)]) == 300  # long done
    assert graph_makespan(machine, [SMALL, SMALL], [(0, 1)]) == graph_makespan(FREE, [SMALL, SMALL], [(0, 1)])


def test_a_kernel_that_fills_the_gpu_leaves_no_room() -> None:
    assert makespan(FREE, launches(0, 1, cost=WHOLE)) == pytest.approx(200)
    half = replace(WHOLE, blocks=132)
    assert makespan(FREE, launches(0, 1, cost=half)) == pytest.approx(100)
    assert makespan(FREE, launches(0, 1, 2, cost=half)) == pytest.approx(200)


@pytest.mark.parametrize(
    ("cost", "fits"),
    [
        (KernelCost(1, 1, 1024), 2 * 132),
        (KernelCost(1, 1, 32), 32 * 132),
        (KernelCost(1, 1, 256, registers=255), 132),
        (KernelCost(1, 1, 32, shared=100_000), 2 * 132),
        (KernelCost(1, 1, 1024, registers=255), 132),
    ],
)
def test_blocks_that_fit_at_once(cost: KernelCost, fits: int) -> None:
    assert Machine().blocks_at_once(cost) == fits


def test_shares_of_a_throughput_add_up_to_one() -> None:
    hungry = replace(SMALL, memory=0.6)
    assert makespan(FREE, launches(0, cost=hungry)) == 100
    assert makespan(FREE, launches(0, 1, cost=hungry)) == pytest.approx(120)
    mixed = [*launches(0, cost=hungry), *launches(1, cost=replace(SMALL, sm=0.9))]
    assert makespan(FREE, mixed) == 100


def test_a_graph_costs_one_launch_and_keeps_its_edges() -> None:
    machine = replace(FREE, graph_launch=6, graph_node=1, synchronize=2)
    assert graph_makespan(machine, [SMALL] * 3, [(0, 2), (1, 2)]) == 6 + 1 + 100 + 100 + 2
    assert graph_makespan(machine, [SMALL] * 3, []) == 6 + 2 + 100 + 2


programs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 50), st.integers(1, 400), st.floats(0, 1), st.floats(0, 1)),
    min_size=1,
    max_size=12,
)


@given(programs)
def test_streams_are_never_slower_than_one_and_never_faster_than_the_longest(
    program: list[tuple[int, int, int, float, float]],
) -> None:
    steps = [Step(Kind.LAUNCH, s, KernelCost(t, b, 256, sm=x, memory=m)) for s, t, b, x, m in program]
    serial = makespan(FREE, [replace(step, stream=0) for step in steps])
    assert serial == pytest.approx(sum(t for _, t, *_ in program))
    found = makespan(FREE, steps)
    assert max(t for _, t, *_ in program) - 1e-6 <= found <= serial * (1 + 1e-6)


def test_copies_of_one_direction_take_turns_and_of_two_run_at_once() -> None:
    copy = KernelCost(100, 1, 32)
    here, there = (Step(Kind.COPY, stream, copy, engine=way) for stream, way in ((0, "in"), (1, "out")))
    again = Step(Kind.COPY, 1, copy, engine="in")
    machine = Machine(launch=0, start=0, synchronize=0)
    assert makespan(machine, [here, there]) == pytest.approx(100)
    assert makespan(machine, [here, again]) == pytest.approx(200)


def test_a_copy_takes_nothing_from_a_kernel() -> None:
    full = KernelCost(100, 132 * 64, 1024)
    steps = [Step(Kind.LAUNCH, 0, full), Step(Kind.COPY, 1, KernelCost(100, 1, 32), engine="in")]
    assert makespan(Machine(launch=0, start=0, synchronize=0), steps) == pytest.approx(100)


def test_an_urgent_kernel_passes_one_with_blocks_still_waiting_but_not_a_resident_one() -> None:
    machine = Machine(launch=0, start=0, synchronize=0)
    waves, resident, short = (
        KernelCost(1000, 132 * 64, 1024),
        KernelCost(1000, 132 * 2, 1024),
        KernelCost(100, 132, 1024),
    )

    def behind(first: KernelCost, urgent: tuple[int, ...]) -> float:
        """When all is done if two short kernels, one behind the other, and a third follow on another stream."""
        steps = [Step(Kind.LAUNCH, 0, first), *[Step(Kind.LAUNCH, 1, short)] * 8]
        return makespan(machine, steps, urgent)

    assert behind(waves, ()) == pytest.approx(1800)
    assert behind(waves, (1,)) == pytest.approx(1400)  # half of the GPU for 800 µs, then all of it
    assert behind(resident, ()) == behind(resident, (1,)) == pytest.approx(1800)


def test_a_barrier_costs_the_host_nothing() -> None:
    one = Step(Kind.LAUNCH, 0, KernelCost(100, 1, 32))
    machine = Machine(launch=0, start=0)
    assert makespan(machine, [one, Step(Kind.BARRIER), one]) == pytest.approx(205)
    assert makespan(machine, [one, Step(Kind.SYNCHRONIZE), one]) == pytest.approx(210)


def test_waiting_blocks_are_served_by_the_rank_of_their_stream() -> None:
    """Three kernels that fill the GPU twice over end in the order of the ranks, whatever the order of the launches."""
    machine = Machine(launch=0.0, start=0.0, synchronize=0.0)
    twice = replace(WHOLE, blocks=2 * machine.blocks_at_once(WHOLE))
    steps = launches(0, 1, 2, cost=twice)
    first, second, third = ends(machine, steps, {0: 2, 1: 1, 2: 0})
    assert third < second < first
    first, second, third = ends(machine, steps, {1: 0})
    assert second < first < third


def test_kernels_share_what_page_faults_can_bring() -> None:
    brings = replace(SMALL, faults=0.6)
    assert makespan(FREE, launches(0, cost=brings)) == 100
    assert makespan(FREE, launches(0, 1, cost=brings)) == pytest.approx(120)
    beside = [*launches(0, 1, cost=brings), *launches(2)]  # the third brings nothing
    assert ends(FREE, beside, {}) == pytest.approx([120, 120, 100])
