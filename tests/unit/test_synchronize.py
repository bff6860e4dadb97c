"""Waits and joins: the published example, programs that go wrong elsewhere, loops, branches and the reasons given."""

from __future__ import annotations

from dataclasses import replace

import pytest
from property.regions import named, program

from kesco.dataflow import build
from kesco.ir.flow import Region
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.scheduling.distributor import distribute
from kesco.scheduling.serial import serial
from kesco.synchronize import synchronize


def plan(region: Region, streams: str) -> SyncPlan:
    """The plan for a schedule written as ``A E|B D``: the labels on each stream."""
    stream_of = {
        named(region, label): stream for stream, labels in enumerate(streams.split("|")) for label in labels.split()
    }
    count = streams.count("|") + 1
    return synchronize(build(region), Schedule("test", count, tuple(sorted(stream_of.items()))))


def waits(region: Region, found: SyncPlan) -> set[str]:
    return {f"{region.sites[w.source].label}>{region.sites[w.target].label}" for w in found.waits}


def reasons(region: Region, found: SyncPlan) -> dict[str, str]:
    return {f"{region.sites[r.source].label}>{region.sites[r.target].label}": r.because for r in found.removed}


def joins(region: Region, found: SyncPlan) -> dict[str, tuple[int, ...]]:
    return {region.sites[join.target].label: join.streams for join in found.joins}


TEN = "A(w A) B(w B) C(w C) D(r A,B; w D) E(r A,C; w E) F(r C; w F) "


def test_the_ten_kernel_example() -> None:
    region = program(TEN + "H(r D; w H) I(r D,E; w I) J(r E; w J) G(r A,F; w G)")
    dfg = build(region)
    found = synchronize(dfg, distribute(dfg, 3))
    assert waits(region, found) == {"A>D", "C>E", "D>I", "E>J"}
    assert reasons(region, found) == {
        "A>E": "A and E are on stream 0",
        "A>G": "A → E → J already orders it",
        "B>D": "B and D are on stream 1",
        "C>F": "C and F are on stream 2",
        "D>H": "D and H are on stream 1",
        "E>I": "E and I are on stream 0",
        "F>G": "F and G are on stream 2",
    }
    assert found.events == tuple(sorted(named(region, label) for label in "ACDE"))
    assert joins(region, found) == {"exit": (0, 1, 2)}


def test_the_ten_kernels_issued_by_name_need_the_fifth_event() -> None:
    """Stream 2 then runs G before J, so J's wait for E comes too late for G."""
    region = program(TEN + "G(r A,F; w G) H(r D; w H) I(r D,E; w I) J(r E; w J)")
    dfg = build(region)
    assert waits(region, synchronize(dfg, distribute(dfg, 3))) == {"A>D", "C>E", "D>I", "E>J", "A>G"}


def test_first_program_that_the_published_tool_gets_wrong() -> None:
    region = program("A(w X,W) B(w Y) D(w Z; r W) C(rw X)")
    assert waits(region, plan(region, "A D|B C")) == {"A>C"}


def test_second_program_that_the_published_tool_gets_wrong() -> None:
    region = program("W1(w X,P) W2(rw X) S(r X; w S1) T(r S1; w T1) R(r P; w R1) N(r X; w N1)")
    assert waits(region, plan(region, "W1 W2 S T|R N")) == {"W1>R", "W2>N"}


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_both_of_them_under_the_distributor(count: int) -> None:
    for text, edge in (
        ("A(w X,W) B(w Y) D(w Z; r W) C(rw X)", "A>C"),
        ("W1(w X,P) W2(rw X) S(r X; w S1) T(r S1; w T1) R(r P; w R1) N(r X; w N1)", "W2>N"),
    ):
        region = program(text)
        dfg = build(region)
        found = synchronize(dfg, distribute(dfg, count))
        assert edge in waits(region, found) or "are on stream" in reasons(region, found)[edge]


def test_a_wait_carries_the_dependences_it_is_for() -> None:
    region = program("A(w X,Y) B(r X,Y)")
    (wait,) = plan(region, "A|B").waits
    assert [dependence.buffer.name for dependence in wait.dependences] == ["X", "Y"]


def test_a_chain_over_three_streams_implies_the_long_wait() -> None:
    region = program("A(w X) B(r X; w Y) C(r X,Y)")
    found = plan(region, "A|B|C")
    assert waits(region, found) == {"A>B", "B>C"}
    assert reasons(region, found) == {"A>C": "A → B already orders it"}


def test_an_earlier_wait_of_the_same_stream_is_enough() -> None:
    region = program("A(w X) B(r X; w Y) C(r X; w Z)")
    found = plan(region, "A|B C")
    assert waits(region, found) == {"A>B"}
    assert reasons(region, found) == {"A>C": "A → B already orders it"}


def test_the_latest_of_one_stream_is_enough() -> None:
    region = program("A(w X) B(w Y) C(r X,Y)")
    found = plan(region, "A B|C")
    assert waits(region, found) == {"B>C"}
    assert reasons(region, found) == {"A>C": "A → B already orders it"}


def test_a_loop_waits_for_the_earlier_round() -> None:
    region = program("A(r X; w Y) B(r Y; w X)", "B>A")
    assert waits(region, plan(region, "A|B")) == {"A>B", "B>A"}


def test_ping_pong_with_readers_aside() -> None:
    region = program("A(r X; w Y) P(r Y; w P) B(r Y; w X) Q(r X; w Q)", "Q>A")
    found = plan(region, "A B|P|Q")
    assert waits(region, found) == {"A>P", "B>Q", "P>A", "Q>B"}


def test_a_wait_in_the_loop_stands_for_the_one_behind_it() -> None:
    region = program("A(w X) L(r X; w L) C(r X; w C)", "L>L A>C")
    assert waits(region, plan(region, "A|L C")) == {"A>L", "A>C"}
    region = program("A(w X) L(r X; w L) C(r X; w C)", "L>L")
    assert waits(region, plan(region, "A|L C")) == {"A>L"}


def test_branches_with_different_last_writers() -> None:
    region = program("F(r Q; w F) B(w X) C(w X) D(r X)", "F>C B|C B>D")
    found = plan(region, "F D|B|C")
    assert waits(region, found) == {"B>D", "C>D"}


def test_a_branch_that_orders_on_one_path_only_is_not_enough() -> None:
    region = program("A(w X) B(r X; w Y) D(r X)", "A>D")
    assert waits(region, plan(region, "A|B D")) == {"A>B", "A>D"}


def test_paths_that_order_by_different_means() -> None:
    """One branch orders Z for B by Y's event, the other one by stream 2 itself: the wait for Z is not needed."""
    region = program("Z(w P) F(r N; w F) Y(r P; w Q) W(r P; w R) B(r P,Q,R)", "F>W Y|W Y>B")
    found = plan(region, "Z|F Y|W B")
    assert waits(region, found) == {"Z>Y", "Z>W", "Y>B"}
    assert reasons(region, found)["Z>B"] == "every path from Z to B already orders them"


def test_paths_that_order_by_different_means_and_then_by_a_common_one() -> None:
    region = program("Z(w P) F(r N; w F) Y(r P; w Q) W(r P; w R) C(r Q; w S) B(r P,R,S)", "F>W Y|W Y>C")
    found = plan(region, "Z|F Y|W B|C")
    assert waits(region, found) == {"Z>Y", "Z>W", "Y>C", "C>B"}


def test_an_early_return_joins_what_is_pending_there() -> None:
    region = program("A(w X) F(w F) exit B(w Y) C(r X)", "F>B exit@3|B")
    found = plan(region, "A C|F|B")
    assert joins(region, found) == {"exit@3": (0, 1), "exit": (0, 1, 2)}
    assert waits(region, found) == set()


def test_barriers_make_waits_needless() -> None:
    region = program("A(w X) device-sync B(r X)")
    found = plan(region, "A|B")
    assert found.waits == found.removed == ()
    assert joins(region, found) == {"exit": (1,)}


def test_joins_stand_before_looks_at_the_default_stream_only() -> None:
    region = program("A(w X) join B(w X) legacy C(w X) device-sync host join")
    assert joins(region, plan(region, "A|B|C")) == {"join@2": (0,)}


@pytest.mark.parametrize(("same_statement", "joined"), [(True, ["join@3"]), (False, ["join@3", "join@5", "exit"])])
def test_what_a_call_may_do_is_joined_before_its_statement(same_statement: bool, joined: list[str]) -> None:
    """Whether the call comes to the work that looks: the lines stand before the statement in any case."""
    region = program("A(w X) B(w Y) join host join host", "B>host@4 host@4>host@6")
    if same_statement:
        sites = [
            replace(s, span=replace(s.span, start=s.span.start - 2)) if s.number in (4, 6) else s for s in region.sites
        ]
        region = replace(region, sites=tuple(sites))
    assert [*joins(region, plan(region, "A|B"))] == joined


def test_a_join_leaves_out_streams_that_another_one_comes_behind() -> None:
    region = program("A(w X) B(w Y) C(r X,Y; w Z)")
    assert joins(region, plan(region, "A|B|C")) == {"exit": (2,)}


def test_one_stream_needs_no_event() -> None:
    region = program("A(rw X) B(r X)", "B>A")
    found = synchronize(build(region), serial(build(region), 1))
    assert found.events == found.waits == ()
    assert reasons(region, found)["B>A"] == "B and A are on stream 0"
    assert reasons(region, found)["A>A"] == "all executions of A are on stream 0"
    assert joins(region, found) == {"exit": (0,)}


def test_nothing_to_do() -> None:
    assert plan(program("host join"), "") == SyncPlan((), (), (), ())


def test_a_schedule_must_be_complete() -> None:
    with pytest.raises(ValueError, match="no stream for 2"):
        synchronize(build(program("A(w X) B(r X)")), Schedule("test", 1, ((1, 0),)))
