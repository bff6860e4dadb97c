"""Device LLVM IR → how many instructions a thread of each kernel is likely to execute: a weight, not a time.

In: the IR of one translation unit. Out: mangled name → instructions, those in a loop counted `TRIPS` times for each
loop around them, those of called device functions with them. A module of its own because nothing that must
be right rests on it.

A loop is a set of blocks that reach each other; loops inside it are found when its head is taken out. Numbers of trips
are not looked for: they mostly depend on arguments.
"""

from __future__ import annotations

import networkx as nx

from kesco.llvm.module import Module
from kesco.llvm.values import Function, callee

TRIPS = 16
_MOST = 10**9


def device_work(ir_text: str) -> dict[str, int]:
    """The weight of every function that the module defines, kernels and others, by mangled name; at least 1."""
    module = Module(ir_text)
    own: dict[str, int] = {}
    calls: dict[str, list[tuple[str, int]]] = {}  # what a function calls, and how often
    for name in module.defined():
        function = module.function(name)
        if function is not None:
            own[name], calls[name] = _function(function)
    graph = nx.DiGraph((name, other) for name, made in calls.items() for other, _ in made if other in own)
    graph.add_nodes_from(own)
    group = {name: number for number, one in enumerate(nx.strongly_connected_components(graph)) for name in one}
    total: dict[str, int] = {}
    for one in nx.strongly_connected_components(graph):  # callees come first
        for name in sorted(one):
            known = ((other, times) for other, times in calls[name] if group.get(other) != group[name])
            total[name] = min(_MOST, own[name] + sum(times * total.get(other, 1) for other, times in known))
    return total


def _function(function: Function) -> tuple[int, list[tuple[str, int]]]:
    """The weight of a body's own instructions, and its calls, each with the times that it is executed."""
    graph = nx.DiGraph((b.name, target) for b in function.blocks for target in b.instructions[-1].targets)
    graph.add_nodes_from(block.name for block in function.blocks)
    depth = dict.fromkeys((block.name for block in function.blocks), 0)
    _nest(graph, depth)
    weight, calls = 1, []
    for block in function.blocks:
        times = TRIPS ** min(depth[block.name], 4)
        weight += times * len(block.instructions)
        calls += [(called, times) for one in block.instructions if (called := callee(one))]
    return min(weight, _MOST), calls


def _nest(graph: nx.DiGraph[str], depth: dict[str, int]) -> None:
    """Add one to the depth of all blocks of each loop, and go on inside it."""
    work = [graph]
    while work:
        outer = work.pop()
        for loop in nx.strongly_connected_components(outer):
            first = next(iter(loop))
            if len(loop) == 1 and not outer.has_edge(first, first):
                continue
            heads = {b for a, b in outer.edges if b in loop and a not in loop} or {min(loop)}
            for name in loop & depth.keys():
                depth[name] += 1
            inner = nx.DiGraph(outer.subgraph(loop))
            inner.remove_edges_from([(a, b) for a, b in outer.edges if b in heads])
            work.append(inner)
