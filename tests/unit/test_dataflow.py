"""The data-flow graph: which pairs are found, of which kind, and which of them are carried around a loop."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import networkx as nx
import pytest
from property.regions import named, program

from kesco.dataflow import build
from kesco.ir.flow import Region
from kesco.ir.poly import ByteRange, constant
from kesco.parts import apart


def edges(region: Region) -> set[str]:
    """Such as ``A>B RAW X``, with a ``*`` where it is carried."""
    return {
        f"{region.sites[d.source].label}>{region.sites[d.target].label} {d.kind.value} {d.buffer.name}"
        + "*" * d.carried
        for d in build(region).dependences
    }


def ordered(region: Region, a: str, b: str) -> bool:
    return bool(nx.has_path(build(region).graph, named(region, a), named(region, b)))


def test_the_three_kinds() -> None:
    assert edges(program("A(w X) B(r X) C(w X)")) == {"A>B RAW X", "B>C WAR X", "A>C WAW X"}


def test_reads_do_not_order_each_other() -> None:
    assert edges(program("A(r X) B(r X)")) == set()


def test_an_update_in_place_reads_and_writes() -> None:
    assert edges(program("A(rw X) B(rw X)")) == {"A>B RAW X", "A>B WAW X"}


def test_only_the_last_writer_counts() -> None:
    assert edges(program("A(w X) B(w X) C(r X)")) == {"A>B WAW X", "B>C RAW X"}


def test_several_accesses_of_one_buffer_by_one_site() -> None:
    assert edges(program("A(r X; w X) B(r X)")) == {"A>B RAW X"}


def test_first_program_that_the_published_tool_gets_wrong() -> None:
    region = program("A(w X,W) B(w Y) D(w Z; r W) C(rw X)")
    assert edges(region) == {"A>D RAW W", "A>C RAW X", "A>C WAW X"}


def test_second_program_that_the_published_tool_gets_wrong() -> None:
    region = program("W1(w X,P) W2(rw X) S(r X; w S1) T(r S1; w T1) R(r P; w R1) N(r X; w N1)")
    assert edges(region) == {
        "W1>W2 RAW X", "W1>W2 WAW X", "W2>S RAW X", "S>T RAW S1", "W1>R RAW P", "W2>N RAW X",
    }  # fmt: skip


def test_branches_unite_their_last_writers() -> None:
    region = program("A(w X) F(r Q) B(w X) C(w X) D(r X)", "F>C B|C B>D")
    assert edges(region) == {"A>B WAW X", "A>C WAW X", "B>D RAW X", "C>D RAW X"}


def test_a_branch_without_a_write_lets_the_earlier_writer_through() -> None:
    assert "A>D RAW X" in edges(program("A(w X) B(w X) D(r X)", "A>D"))


def test_an_early_return_carries_nothing_on() -> None:
    region = program("F(r Q) A(w X) exit B(r X)", "F>B exit@3|B")
    assert edges(region) == set()


def test_a_loop_carries_dependences() -> None:
    region = program("A(r X; w Y) B(r Y; w X)", "B>A")
    assert edges(region) == {
        "A>B RAW Y", "A>B WAR X", "B>A RAW X*", "B>A WAR Y*", "A>A WAW Y*", "B>B WAW X*",
    }  # fmt: skip


def test_a_dependence_that_holds_both_ways_is_not_carried() -> None:
    found = edges(program("A(r X) B(w X)", "B>A B>B"))
    assert "A>B WAR X" in found
    assert "A>B WAR X*" not in found


def test_a_site_in_a_loop_depends_on_itself() -> None:
    region = program("A(rw X)", "A>A")
    assert edges(region) == {"A>A RAW X*", "A>A WAW X*"}
    assert build(region).graph.has_edge(1, 1)


@pytest.mark.parametrize("barrier", ["join", "legacy", "device-sync", "entry", "exit"])
def test_barriers_end_all_dependences(barrier: str) -> None:
    assert edges(program(f"A(w X) {barrier} B(rw X)", f"{barrier}@2>B")) == set()


@pytest.mark.parametrize("role", ["host", "record", "wait", "stream-sync", "event-sync"])
def test_other_sites_order_nothing_here(role: str) -> None:
    assert edges(program(f"A(w X) {role} B(r X)")) == {"A>B RAW X"}


def test_a_loop_with_a_barrier_carries_nothing() -> None:
    assert edges(program("A(rw X) device-sync", "device-sync@2>A")) == set()


def test_unknown_memory_overlaps_with_all_memory() -> None:
    assert edges(program("A(w X) B(r Y) U(rw ?) C(r X) D(w Y) E(r Z)")) == {
        "A>U RAW X", "A>U WAW X", "B>U WAR Y",
        "U>C RAW X", "U>D WAW Y", "U>E RAW Z",
    }  # fmt: skip


def test_unknown_reads_let_other_reads_pass() -> None:
    assert edges(program("A(w X) U(r ?) B(r X) C(w X)")) == {
        "A>U RAW X", "A>B RAW X", "U>C WAR X", "B>C WAR X", "A>C WAW X",
    }  # fmt: skip


def test_two_unknown_writes_are_ordered_once() -> None:
    assert edges(program("U(w ?) A(w X) V(w ?) B(r X)")) == {
        "U>A WAW X", "U>V WAW unknown memory", "A>V WAW X", "V>B RAW X",
    }  # fmt: skip


def test_unknown_memory_is_no_order_buffer() -> None:
    assert edges(program("P(w !printf) U(rw ?) Q(w !printf)")) == {"P>Q WAW device printf"}


def test_unreachable_sites_are_nodes_without_edges() -> None:
    region = program("A(w X) exit B(r X)", "exit@2|B")
    assert edges(region) == set()
    assert sorted(build(region).graph.nodes) == [1, 3]


def test_the_graph_is_frozen_and_sorted() -> None:
    dfg = build(program("A(w X,Y) B(r Y,X) C(w Y,X)"))
    keys = [(d.source, d.target, d.kind.value, d.buffer.key) for d in dfg.dependences]
    assert keys == sorted(keys)
    assert nx.is_frozen(dfg.graph)
    assert [d.buffer.name for d in dfg.between(1, 2)] == ["X", "Y"]


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_one_buffer_are_ordered_where_they_meet_and_only_there(seed: int) -> None:
    r = random.Random(seed)
    whole = program(" ".join(f"S{n}(w X)" for n in range(8)))
    lows = [r.randint(0, 30) for _ in whole.sites]
    ranges = [ByteRange(constant(low), constant(low + r.randint(1, 12))) for low in lows]
    parted = replace(
        whole,
        sites=tuple(
            replace(s, accesses=tuple(replace(a, bytes=ranges[s.number]) for a in s.accesses)) for s in whole.sites
        ),
    )
    work = [s.number for s in parted.sites if s.accesses]
    meeting: nx.DiGraph[int] = nx.DiGraph()
    meeting.add_nodes_from(work)
    meeting.add_edges_from((a, b) for a, b in combinations(work, 2) if not apart(ranges[a], ranges[b]))
    assert set(nx.transitive_closure(build(parted).graph).edges) == set(nx.transitive_closure(meeting).edges)
