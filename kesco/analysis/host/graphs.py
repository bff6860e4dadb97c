"""A function's control flow as the interpreter walks it: an order of its blocks, and its loops.

In: a function. Out: a `Graph`: each block's position, the heads of the loops around it, and which loops are worth to be
walked trip by trip. The order is a weak topological one: whatever is in a loop comes before what is behind it, so that
control that has left it is gone on with once.

1. Blocks that reach each other are a loop; its head is where it is entered. 2. Without the edges to its head there are
the loops inside it. 3. Every cycle goes through a head, so whoever stops growing there stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx

from kesco.llvm.values import Block, Function, Instruction


@dataclass(frozen=True, slots=True)
class Graph:
    """See the module's docstring; `inside` are the heads around a block, outermost first."""

    blocks: dict[str, Block]
    entry: str
    order: dict[str, int]
    inside: dict[str, tuple[str, ...]]
    paying: frozenset[str]

    def leaves(self, source: str, target: str) -> tuple[str, ...]:
        """The loops that an edge leads out of."""
        around = self.inside[target]
        return tuple(head for head in self.inside[source] if head not in around)


def graph_of(function: Function, pays: Callable[[Instruction], bool]) -> Graph:
    """The graph of a function; `pays` says whether an instruction is a reason to walk a loop trip by trip."""
    blocks = {block.name: block for block in function.blocks}
    flow: nx.DiGraph[str] = nx.DiGraph()
    flow.add_nodes_from(blocks)
    for name, block in blocks.items():
        flow.add_edges_from((name, target) for target in block.instructions[-1].targets)
    entry = function.blocks[0].name
    flow = nx.DiGraph(flow.subgraph(nx.descendants(flow, entry) | {entry}))
    inside: dict[str, tuple[str, ...]] = {}
    position = {name: at for at, name in enumerate(blocks)}
    counted: list[str] = []
    _lay_out(flow, entry, position, counted, inside)
    order = {name: at for at, name in enumerate(counted)}
    worth = {head for name in counted for head in inside[name] if any(map(pays, blocks[name].instructions))}
    return Graph(blocks, entry, order, inside, frozenset(worth))


def _lay_out(
    flow: nx.DiGraph[str], entry: str, position: dict[str, int], counted: list[str], inside: dict[str, tuple[str, ...]]
) -> None:
    """Put the blocks in order, loop by loop."""
    stack: list[tuple[nx.DiGraph[str], tuple[str, ...], frozenset[str]]] = [(flow, (), frozenset((entry,)))]
    while stack:
        graph, around, entered = stack.pop()
        parts = list(nx.strongly_connected_components(graph))  # those that are reached come first
        later = []
        for part in reversed(parts):
            first = next(iter(part))
            if len(part) == 1 and not graph.has_edge(first, first):
                later.append((part, "", graph))
                continue
            outside = {b for a, b in graph.edges if b in part and a not in part} | (part & entered)
            head = min(outside or part, key=position.__getitem__)
            inner = nx.DiGraph(graph.subgraph(part))
            inner.remove_edges_from([(a, head) for a in list(inner.predecessors(head))])
            later.append((part, head, inner))
        # what is in a loop stands where the loop stands: go on with it before what comes behind
        for at, (part, head, inner) in enumerate(later):
            if not head:
                one = next(iter(part))
                counted.append(one)
                inside[one] = around
            else:
                rest = set().union(*(p for p, _, _ in later[at + 1 :])) if at + 1 < len(later) else set()
                if rest:
                    stack.append((nx.DiGraph(graph.subgraph(rest)), around, entered))
                stack.append((inner, (*around, head), frozenset((head,))))
                break
