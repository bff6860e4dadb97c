"""The graph that never changes, held against a library for all graphs."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from kesco.ir.graph import Graph


def drawn(seed: int) -> tuple[Graph[int], nx.DiGraph[int]]:
    draw = random.Random(seed)
    nodes = draw.sample(range(40), draw.randint(1, 12))
    edges = [(draw.choice(nodes), draw.choice(nodes)) for _ in range(draw.randint(0, 2 * len(nodes)))]
    theirs: nx.DiGraph[int] = nx.DiGraph(edges)
    theirs.add_nodes_from(nodes)
    return Graph(nodes, edges), theirs


@pytest.mark.parametrize("seed", range(300))
def test_it_answers_as_a_library_does(seed: int) -> None:
    ours, theirs = drawn(seed)
    assert len(ours) == len(theirs) and {*ours} == {*theirs} and len(ours.edges) == len({*ours.edges})
    assert {*ours.edges} == {*theirs.edges}
    for node in ours:
        assert {*ours.successors(node)} == {*theirs.successors(node)}
        assert {*ours.predecessors(node)} == {*theirs.predecessors(node)}
        around = any(nx.has_path(theirs, after, node) for after in theirs.successors(node))
        assert ours.reached(node) == nx.descendants(theirs, node) | ({node} if around else set())
        for other in ours:
            assert ours.has_path(node, other) == nx.has_path(theirs, node, other)
            assert ours.has_edge(node, other) == theirs.has_edge(node, other)
        known = dict(nx.immediate_dominators(theirs, node))
        known.pop(node, None)
        assert ours.dominators(node) == known
    half = ours.nodes[::2]
    assert {*ours.subgraph(half).edges} == {*theirs.subgraph(half).edges}


@pytest.mark.parametrize("seed", range(300))
def test_components_come_behind_those_they_lead_to(seed: int) -> None:
    ours, theirs = drawn(seed)
    found = ours.components()
    assert {*found} == set(map(frozenset, nx.strongly_connected_components(theirs)))
    place = {node: number for number, part in enumerate(found) for node in part}
    assert all(place[target] <= place[source] for source, target in ours.edges)


def test_order_is_that_of_the_words() -> None:
    graph = Graph([3, 1], [(1, 2), (3, 2), (1, 3), (1, 2)])
    assert graph.nodes == (3, 1, 2)
    assert graph.edges == ((3, 2), (1, 2), (1, 3))
    assert graph.predecessors(2) == (1, 3)
    assert graph == Graph([1, 2, 3], graph.edges) != Graph([1, 2, 3])


def test_long_chains_need_no_deep_stack() -> None:
    chain = Graph(range(20_000), ((n, n + 1) for n in range(19_999)))
    assert len(chain.components()) == 20_000
    assert chain.dominators(0)[19_999] == 19_998
    assert len(chain.reached(0)) == 19_999
