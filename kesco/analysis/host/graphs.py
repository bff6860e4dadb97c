"""A function's control flow as the interpreter walks it: an order of its blocks, and its loops.

In: a function. Out: a `Graph`: each block's position, the heads of the loops around it, which loops are worth to be
walked trip by trip, and which values are still needed where a block begins. The order is a weak topological one:
whatever is in a loop comes before what is behind it, so that control that has left it is gone on with once.

1. Blocks that reach each other are a loop; its head is where it is entered. 2. Without the edges to its head there are
the loops inside it. 3. Every cycle goes through a head, so whoever stops growing there stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networkx as nx

from kesco.llvm.values import Block, Function, Instruction, Local, Value


@dataclass(frozen=True, slots=True)
class Graph:
    """See the module's docstring; `inside` are the heads around a block, outermost first."""

    blocks: dict[str, Block]
    entry: str
    order: dict[str, int]
    inside: dict[str, tuple[str, ...]]
    paying: frozenset[str]
    live: dict[str, tuple[str, ...]]  # of each block, the values that it or a later one uses, its own phis among them

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
    position = {name: at for at, name in enumerate(blocks)}
    flow = _only(flow, nx.descendants(flow, entry) | {entry}, position)
    inside: dict[str, tuple[str, ...]] = {}
    counted: list[str] = []
    _lay_out(flow, entry, position, counted, inside)
    order = {name: at for at, name in enumerate(counted)}
    worth = {head for name in counted for head in inside[name] if any(map(pays, blocks[name].instructions))}
    return Graph(blocks, entry, order, inside, frozenset(worth), _live([blocks[name] for name in counted]))


def _live(blocks: list[Block]) -> dict[str, tuple[str, ...]]:
    """What is needed behind each block's phis; the sets are bits of numbers, as there may be many values and blocks."""
    bits: dict[str, int] = {}

    def bit(value: Value) -> int:
        return bits.setdefault(value.name, 1 << len(bits)) if isinstance(value, Local) else 0

    used: dict[str, int] = {}  # before it is made in the block
    made: dict[str, int] = {}
    phis: dict[str, int] = {}
    given: dict[tuple[str, str], int] = {}  # what the phis of a block need that comes from another
    before: dict[str, list[str]] = {}
    for block in blocks:
        use = own = 0
        for one in block.instructions:
            if one.opcode == "phi":
                for value, source in zip(one.operands, one.targets, strict=True):
                    given[source, block.name] = given.get((source, block.name), 0) | bit(value)
                if one.result is not None:
                    phis[block.name] = phis.get(block.name, 0) | bit(one.result)
                continue
            for value in one.operands:
                use |= bit(value) & ~own
            if one.result is not None:
                own |= bit(one.result)
        used[block.name], made[block.name] = use, own
        for target in block.instructions[-1].targets:
            before.setdefault(target, []).append(block.name)
    needed = dict.fromkeys(used, 0)
    behind = dict.fromkeys(used, 0)
    todo = dict.fromkeys(block.name for block in blocks)
    while todo:
        name, _ = todo.popitem()
        needed[name] = used[name] | (behind[name] & ~made[name])
        for source in before.get(name, ()) if name in needed else ():
            if source in behind:
                more = needed[name] & ~phis.get(name, 0) | given.get((source, name), 0)
                if more & ~behind[source]:
                    behind[source] |= more
                    todo[source] = None
    names = list(bits)
    return {name: tuple(_names(found, names)) for name, found in needed.items()}


def _names(bits: int, names: list[str]) -> Iterator[str]:
    while bits:
        low = bits & -bits
        yield names[low.bit_length() - 1]
        bits ^= low


def _only(graph: nx.DiGraph[str], names: set[str], position: dict[str, int]) -> nx.DiGraph[str]:
    """The part of a graph between these, in the text's order: that of a set is another one in each run."""
    found: nx.DiGraph[str] = nx.DiGraph()
    ordered = sorted(names, key=position.__getitem__)
    found.add_nodes_from(ordered)
    found.add_edges_from((a, b) for a in ordered for b in graph[a] if b in names)
    return found


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
            inner = _only(graph, part, position)
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
                    stack.append((_only(graph, rest, position), around, entered))
                stack.append((inner, (*around, head), frozenset((head,))))
                break
