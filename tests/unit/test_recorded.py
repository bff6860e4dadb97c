"""One repetition of a recorded run as steps for the model of a GPU."""

from __future__ import annotations

import pytest

from kesco.bench.costs import Costs
from kesco.bench.recorded import ALL_FAULTS, FAULTS, LINK, PREFETCH, repetition, steps
from kesco.model.gpu import KernelCost, Kind, Step
from kesco.verify.trace import Launched, read

FIRST = "K 1 5 _Z6squarePf 64,1,1 32,1,1 0 ="
SECOND = "K 2 6 _Z6squarePf 64,1,1 32,1,1 0 ="
WIDE = "K 2 6 _Z6squarePf 64,1,1 32,1,1 100 ="
INTO, OUT_OF = "r:500:1000 w:1000:1000", "r:1000:1000 w:500:1000"
PRICES = {
    "square#1": KernelCost(10, 64, 32),
    "square#2": KernelCost(20, 64, 32),
    "square#3": KernelCost(30, 64, 32, shared=100),
}
COSTS = Costs(settings={"it": PRICES})


def found(*body: str, kinds: str = "nn") -> list[Step]:
    """Steps of a repetition, behind one of other kernels."""
    streams = [f"S {number} 0 {kind} 1" for number, kind in enumerate("l" + kinds)]
    before = ["V 1 0", *streams, "A 0 d 1000 4096 2 -1", "K 0 3 _Z5otherv 1,1,1 1,1,1 0 =", "H d 0 4"]
    return steps(
        read("\n".join([*before, *body, "H d 0 9", "M 0 8 cudaMemcpy 2 r:1000:4 w:500:4", "Q", ""])), COSTS, "it"
    )


def test_the_last_piece_with_a_kernel_is_the_repetition() -> None:
    lines = ["V 1 0", "S 0 0 l 1", FIRST, "H d 0 2", "H d 0 3", SECOND, "R 0 2 4", "H s 2 5", "F 1000 6 -1 0", "Q", ""]
    assert [type(one).__name__ for one in repetition(read("\n".join(lines)))] == [
        "Launched",
        "Recorded",
        "Synchronized",
    ]
    assert isinstance(repetition(read("\n".join(lines)))[0], Launched)
    assert repetition(read("V 1 0\nH d 0 1\nQ\n")) == ()


def test_launches_events_and_waits_keep_their_streams() -> None:
    assert found(FIRST, "R 7 1 5", "W 7 2 5", SECOND) == [
        Step(Kind.LAUNCH, 1, PRICES["square#1"]),
        Step(Kind.RECORD, 1, event=7),
        Step(Kind.WAIT, 2, event=7),
        Step(Kind.LAUNCH, 2, PRICES["square#2"]),
    ]


def test_launches_of_one_name_are_told_apart_by_shared_memory_and_then_by_order() -> None:
    costs = [step.cost for step in found(FIRST, WIDE, SECOND, SECOND, WIDE)]
    assert [one.microseconds for one in costs if one] == [10, 30, 20, 10, 30]


@pytest.mark.parametrize(
    ("line", "way", "held"),
    [
        (f"M 1 5 cudaMemcpyAsync 0 {INTO}", "in", False),
        (f"M 1 5 cudaMemcpy 3 {OUT_OF}", "out", True),
        ("M 1 5 cudaMemcpyAsync 0 r:1000:1000 w:1100:1000", "", False),
    ],
)
def test_a_copy_takes_the_engine_of_its_direction_and_may_hold_the_host(line: str, way: str, held: bool) -> None:
    copy, *rest = found(line, SECOND)
    assert (copy.kind, copy.stream, copy.engine) == (Kind.COPY, 1, way)
    assert copy.cost is not None
    assert copy.cost.microseconds == pytest.approx(1000 / LINK[way])
    assert [step.kind for step in rest] == [*([Kind.AWAIT] if held else []), Kind.LAUNCH]


def test_a_blocking_stream_and_the_legacy_one_are_apart() -> None:
    legacy = SECOND.replace("K 2", "K 0")
    assert [step.kind for step in found(FIRST, legacy, FIRST, kinds="bb")].count(Kind.BARRIER) == 2
    assert [step.kind for step in found(FIRST, legacy, FIRST, kinds="nn")].count(Kind.BARRIER) == 0


# Two managed allocations of 4096 bytes; the second argument of a kernel points into one of them.
MANAGED = ["A 1 m 10000 4096 2 -1", "A 2 m 20000 4096 2 -1"]
TAKES_FIRST = "K 1 5 _Z6squarePf 64,1,1 32,1,1 0 = 07 0800010000000000"
TAKES_BOTH = "K 2 6 _Z6squarePf 64,1,1 32,1,1 0 = 00000100000000000000020000000000"


def managed(*body: str) -> list[Step]:
    """Steps of a repetition, behind one in which a kernel brought both allocations."""
    return found(*MANAGED, "T w 10000 3", "T w 20000 3", TAKES_BOTH, "H d 0 3", *body)


def extra(step: Step, alone: float) -> float:
    """The bytes that a kernel brings, from what it takes longer than alone (microseconds); its share says the same."""
    assert step.cost is not None
    moved = (step.cost.microseconds - alone) * FAULTS
    assert step.cost.faults == pytest.approx(moved / ALL_FAULTS / step.cost.microseconds)
    return moved


def test_a_kernel_brings_what_the_host_touched_and_only_the_first_one() -> None:
    first, again = managed("T r 10800 3", TAKES_FIRST, TAKES_FIRST)
    assert extra(first, 10) == pytest.approx(4096)
    assert again.cost == PRICES["square#2"]
    (both,) = managed("T w 10000 3", "T w 20fff 3", TAKES_BOTH)
    assert extra(both, 10) == pytest.approx(8192)
    assert [extra(step, 10) for step in managed(TAKES_BOTH)] == [0]


def test_a_prefetch_copies_what_is_on_the_host_and_nothing_else() -> None:
    copy, launch = managed("T w 10000 3", "N 1 4 10000 4096", "N 1 4 20000 4096", TAKES_BOTH)
    assert (copy.kind, copy.stream, copy.engine) == (Kind.COPY, 1, "in")
    assert copy.cost is not None
    assert copy.cost.microseconds == pytest.approx(4096 / PREFETCH)
    assert extra(launch, 10) == 0


def test_a_repetition_in_which_the_host_waits_has_two_pieces() -> None:
    lines = ["V 1 0", "S 1 0 n 1", "S 2 0 n 1", *[FIRST, "H d 0 2", SECOND, "H s 2 3"] * 2, "Q", ""]
    kinds = [(step.kind, step.stream) for step in steps(read("\n".join(lines)), COSTS, "it")]
    assert kinds == [(Kind.LAUNCH, 1), (Kind.SYNCHRONIZE, 0), (Kind.LAUNCH, 2)]
    assert steps(read("V 1 0\nH d 0 1\nQ\n"), COSTS, "it") == []
