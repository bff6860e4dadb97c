"""Streams by what operations cost, on graphs small enough to know the answer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from property.regions import site

from kesco.choosing import WORTH, choose, critical
from kesco.dataflow import build
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, Role
from kesco.model.forecast import Price, Prices, concurrent_time, serial_time
from kesco.model.gpu import KernelCost, Machine
from kesco.scheduling.critical_path import critical_path, longest_chain, ranks
from kesco.scheduling.levels import predecessors
from kesco.source import Span
from kesco.synchronize import synchronize


def graph(*edges: str) -> Dfg:
    """A line of kernels named by letters, in alphabetical order, with these dependences, such as ``AB``."""
    names = sorted({letter for edge in edges for letter in edge})
    accesses: dict[str, list[Access]] = {name: [] for name in names}
    for edge in edges:
        if len(edge) == 2:
            buffer = Buffer(edge, edge, BufferKind.DEVICE)
            accesses[edge[0]].append(Access(buffer, AccessMode.WRITE))
            accesses[edge[1]].append(Access(buffer, AccessMode.READ))
    sites = [site(0, "entry", Role.ENTRY)]
    sites += [site(n, name, Role.MOVABLE, tuple(accesses[name])) for n, name in enumerate(names, 1)]
    sites.append(site(len(sites), "exit", Role.EXIT))
    after = tuple((n + 1,) if n + 1 < len(sites) else () for n in range(len(sites)))
    return build(Region("f", Span("a.cu", 0, 1, 1, 1), tuple(sites), after))


def costs(dfg: Dfg, **times: float) -> dict[int, KernelCost]:
    """Times in microseconds by letter; small kernels."""
    return {s.number: KernelCost(times[s.label], 1, 32) for s in dfg.region.sites if s.label in times}


def prices(found: Mapping[int, KernelCost], runs: int = 1) -> Prices:
    return Prices(of={number: Price(cost, True, runs) for number, cost in found.items()})


def streams(dfg: Dfg, most: int, known: Mapping[int, KernelCost]) -> str:
    """The letters of each stream, such as ``AC B``."""
    schedule = critical_path(dfg, most, known)
    rows: dict[int, str] = {}
    for number, stream in schedule.stream_of:
        rows[stream] = rows.get(stream, "") + dfg.region.sites[number].label
    return " ".join(rows[stream] for stream in sorted(rows))


def test_ranks_are_the_longest_way_to_the_end() -> None:
    dfg = graph("AB", "AC", "BD", "CD")
    before = predecessors(dfg)
    rank = ranks(before, {1: 1.0, 2: 10.0, 3: 2.0, 4: 3.0})
    assert rank == {1: 14.0, 2: 13.0, 3: 5.0, 4: 3.0}
    assert longest_chain(before, {}, rank) == (1, 2, 4)


def test_independent_work_goes_to_streams_of_its_own() -> None:
    dfg = graph("A", "B", "C")
    assert streams(dfg, 3, costs(dfg, A=100, B=100, C=100)) == "A B C"


def test_short_work_goes_behind_short_work() -> None:
    """The distributor, which counts operations, would put C behind A."""
    dfg = graph("A", "B", "C", "D")
    assert streams(dfg, 2, costs(dfg, A=1000, B=100, C=100, D=100)) == "A BCD"


def test_who_the_rest_waits_for_keeps_the_stream() -> None:
    dfg = graph("AB", "AC", "CD")
    assert streams(dfg, 2, costs(dfg, A=100, B=100, C=500, D=500)) == "ACD B"


def test_kernels_that_fill_the_gpu_stay_on_one_stream() -> None:
    dfg = graph("A", "B", "C")
    full = {number: KernelCost(100, 132 * 64, 1024) for number in (1, 2, 3)}
    assert streams(dfg, 3, full) == "ABC"


def test_no_more_streams_than_asked_for() -> None:
    dfg = graph("A", "B", "C")
    known = costs(dfg, A=100, B=100, C=100)
    assert [critical_path(dfg, most, known).streams for most in (1, 2, 3, 8)] == [1, 2, 3, 3]
    with pytest.raises(ValueError, match="at least one stream"):
        critical_path(dfg, 0, known)


def test_as_few_streams_as_do() -> None:
    """One long and eight short ones: a second stream is enough, though nine could run at once."""
    dfg = graph(*"ABCDEFGHI")
    known = costs(dfg, A=1000, **dict.fromkeys("BCDEFGHI", 100))
    schedule, plan = choose(dfg, prices(known), 0)
    assert schedule.streams == 2
    wide = critical_path(dfg, 9, known)
    best = concurrent_time(dfg.region, prices(known), wide, synchronize(dfg, wide))
    assert concurrent_time(dfg.region, prices(known), schedule, plan) <= best * (1 + WORTH)


def test_work_shorter_than_its_launch_gets_one_stream() -> None:
    dfg = graph("AC", "BC")
    schedule, _ = choose(dfg, prices(costs(dfg, A=1, B=1, C=1)), 0)
    assert schedule.streams == 1
    forced, _ = choose(dfg, prices(costs(dfg, A=1, B=1, C=1)), 0, least=2)
    assert forced.streams == 2


def test_critical_streams_are_urgent_where_the_gpu_is_full() -> None:
    """A long kernel that fills the GPU stands before a short one with a chain behind it that does not."""
    dfg = graph("A", "BC", "CD")
    known = {1: KernelCost(1000, 132 * 64, 1024)}
    known |= {number: KernelCost(400, 16, 1024) for number in (2, 3, 4)}
    schedule, plan = choose(dfg, prices(known), 0)
    stream = schedule.as_dict()
    assert schedule.urgent == (stream[2],)
    assert critical(dfg, prices(known)) == (2, 3, 4)
    from dataclasses import replace

    plain = concurrent_time(dfg.region, prices(known), replace(schedule, urgent=()), plan)
    assert concurrent_time(dfg.region, prices(known), schedule, plan) < 0.8 * plain


def test_nothing_is_urgent_where_it_does_not_help() -> None:
    dfg = graph("A", "BC", "CD")
    schedule, _ = choose(dfg, prices(costs(dfg, A=1000, B=400, C=400, D=400)), 0)
    assert schedule.streams == 2
    assert schedule.urgent == ()


def test_what_never_ran_takes_no_time() -> None:
    dfg = graph("A", "B")
    known = {1: Price(KernelCost(100, 1, 32), True, 1), 2: Price(KernelCost(1e6, 1, 32), absent=True)}
    machine = Machine()
    one = machine.launch + machine.start + 100 + machine.synchronize
    assert serial_time(dfg.region, Prices(machine, known)) == pytest.approx(one)


def test_a_loop_counts_as_often_as_it_ran_up_to_four_times() -> None:
    line = graph("A").region
    loop = Region(line.function, line.span, line.sites, ((1,), (1, 2), ()))
    times = [serial_time(loop, Prices(of={1: Price(KernelCost(100, 1, 32), True, runs)})) for runs in (1, 2, 4, 1000)]
    assert times == sorted(times)
    assert times[2] == times[3]
    assert times[2] > 3.9 * 100 > times[1] > times[0]
