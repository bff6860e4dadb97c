"""Streams: the published example, the shape of graphs, and what decides where the paper throws dice."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from property.regions import program

from kesco.dataflow import build
from kesco.ir.flow import Region
from kesco.scheduling.distributor import distribute
from kesco.scheduling.levels import critical_path_length, levelize, phases, width
from kesco.scheduling.serial import serial
from kesco.scheduling.strategies import STRATEGIES, default_streams

# The paper's ten kernels. Each writes a buffer of its own name, which its successors read.
TEN = "A(w A) B(w B) C(w C) D(r A,B; w D) E(r A,C; w E) F(r C; w F) "
BY_NAME = TEN + "G(r A,F; w G) H(r D; w H) I(r D,E; w I) J(r E; w J)"
BY_PLACE = TEN + "H(r D; w H) I(r D,E; w I) J(r E; w J) G(r A,F; w G)"


def streams(region: Region, count: int) -> list[str]:
    """The labels on each stream, in the order in which they were placed."""
    schedule = distribute(build(region), count)
    found = [""] * schedule.streams
    for number in schedule.order:
        found[schedule.as_dict()[number]] += region.sites[number].label
    return found


@pytest.mark.parametrize("text", [BY_NAME, BY_PLACE])
def test_the_ten_kernel_example(text: str) -> None:
    assert streams(program(text), 3) == ["AEI", "BDH", "CFJG"]


def test_the_order_of_the_ten_kernels() -> None:
    region = program(BY_NAME)
    assert "".join(region.sites[n].label for n in distribute(build(region), 3).order) == "ABCFEDHIJG"


def test_the_shape_of_the_ten_kernels() -> None:
    dfg = build(program(BY_NAME))
    assert levelize(dfg) == ((1, 2, 3), (4, 5, 6), (7, 8, 9, 10))
    assert critical_path_length(dfg) == 3
    assert width(dfg) == 4
    assert default_streams(dfg) == 4


def test_the_first_level_goes_round() -> None:
    assert streams(program("A(w A) B(w B) C(w C) D(w D) E(w E)"), 2) == ["ACE", "BD"]


def test_a_chain_stays_on_its_stream() -> None:
    assert streams(program("A(rw X) P(rw Y) B(rw X) Q(rw Y)"), 8) == ["AB", "PQ"]


def test_an_operation_leaves_to_others_the_predecessor_that_they_want() -> None:
    assert streams(program("A(w A) B(w B) C(w C) X(r A,B; w X) Y(r A,C; w Y)"), 3) == ["A", "BX", "CY"]


def test_forks_spread_over_idle_streams() -> None:
    found = streams(program("A(w X) B(r X; w B) C(r X; w C) D(r X; w D) E(r X; w E)"), 4)
    assert found[0] == "AB"
    assert sorted(map(len, found)) == [1, 1, 1, 2]


def test_unused_streams_are_closed_up() -> None:
    schedule = distribute(build(program("A(rw X) B(rw X)")), 16)
    assert schedule.streams == 1
    assert schedule.stream_of == ((1, 0), (2, 0))


def test_phases_are_distributed_apart() -> None:
    text = "A(w X) B(w Y) device-sync C(w X) D(w Y) E(r X; w P) F(r Y; w Q)"
    dfg = build(program(text))
    assert phases(dfg) == ((1, 2), (4, 5, 6, 7))
    assert width(dfg) == 2
    assert streams(program(text), 2) == ["ACE", "BDF"]


def test_carried_dependences_make_no_level() -> None:
    dfg = build(program("A(r X; w Y) B(r Y; w X)", "B>A"))
    assert levelize(dfg) == ((1,), (2,))
    assert width(dfg) == 1


def test_no_operations() -> None:
    dfg = build(program("host"))
    assert (width(dfg), critical_path_length(dfg), default_streams(dfg)) == (0, 0, 1)
    assert all(strategy(dfg, 4).stream_of == () for strategy in STRATEGIES.values())


def test_serial_is_one_stream_in_the_order_of_the_text() -> None:
    schedule = serial(build(program(BY_NAME)), 8)
    assert schedule.streams == 1
    assert set(schedule.as_dict().values()) == {0}
    assert schedule.order == tuple(range(1, 11))


def test_at_least_one_stream() -> None:
    with pytest.raises(ValueError, match="at least one"):
        distribute(build(program("A(w X)")), 0)


def test_many_independent_operations_get_sixteen_streams() -> None:
    assert default_streams(build(program(" ".join(f"K{n}(w X{n})" for n in range(40))))) == 16


@pytest.mark.parametrize("seed", range(30))
def test_the_width_is_the_largest_antichain(seed: int) -> None:
    draw = random.Random(seed)
    text = " ".join(f"K{n}(r {draw.choice('ABCDEF')}; w {draw.choice('ABCDEF')})" for n in range(draw.randrange(1, 11)))
    dfg = build(program(text))
    graph: nx.DiGraph[int] = nx.DiGraph(dfg.graph.edges)
    graph.add_nodes_from(dfg.graph.nodes)
    assert width(dfg) == max(map(len, nx.antichains(graph)))


@pytest.mark.parametrize("seed", range(30))
def test_a_large_width_is_never_overstated(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    names = "ABCDEFGHIJ"
    text = " ".join(f"K{n}(r {draw.choice(names)}; w {draw.choice(names)})" for n in range(60))
    dfg = build(program(text))
    exact = width(dfg)
    monkeypatch.setattr("kesco.scheduling.levels.EXACT_WIDTH", 0)
    assert max(map(len, levelize(dfg))) == width(dfg) <= exact
