"""Device LLVM IR → how many instructions a thread of each kernel is likely to execute: a weight, not a time.

In: the IR of one translation unit. Out: mangled name → instructions, those in a loop counted `TRIPS` times for each
loop around them, those of called device functions with them. A module of its own because nothing that must
be right rests on it.

Each function's blocks and branches are read from the text. A loop is a set of blocks that reach each other; loops
inside it are found when its head is taken out. Numbers of trips are not looked for: they mostly depend on arguments.
"""

from __future__ import annotations

import re

import networkx as nx

TRIPS = 16
_MOST = 10**9
_FUNCTION = re.compile(r'^define\b[^@\n]*@("[^"\n]*"|[-\w.$]+)\(.*?^}', re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):')
_TARGET = re.compile(r'label %("[^"]*"|[-\w.$]+)')
_CALL = re.compile(r'\bcall\b[^@\n]*@("[^"\n]*"|[-\w.$]+)\(')


def device_work(ir_text: str) -> dict[str, int]:
    """The weight of every function that the module defines, kernels and others, by mangled name; at least 1."""
    own: dict[str, int] = {}
    calls: dict[str, list[tuple[str, int]]] = {}  # what a function calls, and how often
    for found in _FUNCTION.finditer(ir_text):
        name = found[1].strip('"')
        own[name], calls[name] = _function(found[0].splitlines()[1:-1])
    graph = nx.DiGraph((name, other) for name, made in calls.items() for other, _ in made if other in own)
    graph.add_nodes_from(own)
    group = {name: number for number, one in enumerate(nx.strongly_connected_components(graph)) for name in one}
    total: dict[str, int] = {}
    for one in nx.strongly_connected_components(graph):  # callees come first
        for name in sorted(one):
            known = ((other, times) for other, times in calls[name] if group.get(other) != group[name])
            total[name] = min(_MOST, own[name] + sum(times * total.get(other, 1) for other, times in known))
    return total


def _function(lines: list[str]) -> tuple[int, list[tuple[str, int]]]:
    """The weight of a body's own instructions, and its calls, each with the times that it is executed."""
    blocks: dict[str, list[str]] = {"": []}
    current = ""
    for line in lines:
        label = _LABEL.match(line)
        if label:
            current = label[1]
            if not blocks.get("", [""]):  # the first block has a name
                del blocks[""]
            blocks.setdefault(current, [])
        elif line.strip() and not line.lstrip().startswith((";", "#dbg")):
            blocks[current].append(line)
    graph = nx.DiGraph((name, target) for name, body in blocks.items() for target in _TARGET.findall("\n".join(body)))
    graph.add_nodes_from(blocks)
    depth = dict.fromkeys(blocks, 0)
    _nest(graph, depth)
    weight, calls = 1, []
    for name, body in blocks.items():
        times = TRIPS ** min(depth[name], 4)
        weight += times * len(body)
        calls += [(one.strip('"'), times) for line in body for one in _CALL.findall(line)]
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
