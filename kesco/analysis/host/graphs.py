"""A function's control flow as the interpreter walks it: an order of its blocks, and its loops.

In: a function. Out: a `Graph`: each block's position, the heads of the loops around it, which loops are worth to be
walked trip by trip, and which values are still needed where a block begins. The order is a weak topological one:
whatever is in a loop comes before what is behind it, so that control that has left it is gone on with once. Of those
that may come next the first in the text does.

1. Blocks that reach each other are a loop; its head is where it is entered. 2. Without the edges to its head there are
the loops inside it. 3. Every cycle goes through a head, so whoever stops growing there stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat

import networkx as nx

from kesco.ir.failures import CLEANS, NAMES_ERRORS, PRINTS
from kesco.ir.replay import ENDS
from kesco.llvm.values import Block, Function, Instruction, Integer, Local, Value, callee

_ENDS = ENDS | {"_ZSt9terminatev"}
_MAY_CALL = _ENDS | CLEANS | PRINTS | NAMES_ERRORS  # what throws nothing
_END, _BACK = "end", ""  # no blocks have these names, which are numbers: the process ends, or goes on
_Part = tuple[str, "nx.DiGraph[str] | None"]


@dataclass(frozen=True, slots=True)
class Graph:
    """See the module's docstring; `inside` are the heads around a block, outermost first.

    `ends` are heads, and the blocks that lead back to them: there the paths of a trip meet. `last` are the blocks of
    which control goes nowhere but to a call that ends the process, and from which instruction on: nothing throws there.
    At the end of a scope all ways out of it run through the same blocks, and a number says which one was taken.
    """

    blocks: dict[str, Block]
    entry: str
    order: dict[str, int]
    inside: dict[str, tuple[str, ...]]
    paying: frozenset[str]
    live: dict[str, tuple[str, ...]]  # of each block, the values that it or a later one uses, its own phis among them
    ends: frozenset[str]
    last: dict[str, int]
    onward: dict[str, tuple[str, ...]]  # of each block, the values that say where control goes behind a clean-up

    def leaves(self, source: str, target: str) -> tuple[str, ...]:
        """The loops that an edge leads out of."""
        around = self.inside[target]
        return tuple(head for head in self.inside[source] if head not in around)

    def on_the_way_out(self, source: str, target: str) -> list[Instruction]:
        """The instructions from an edge until the function is left, whatever else is so; none where it may not be."""
        found: list[Instruction] = []
        known: dict[str, int] = {}
        for _ in self.blocks:
            block = self.blocks[target]
            found += block.instructions
            last = block.instructions[-1]
            if last.opcode in ("ret", "resume", "unreachable"):
                return found
            known = _chosen(block, source, known)
            if last.opcode == "switch":
                number = _number(last.operands[0], known)
                cases = dict(zip(last.indices, last.targets[1:], strict=True))
                went = cases.get(number, last.targets[0]) if number else ""  # 0: behind the block that is cleaned up
            else:
                went = last.targets[0] if last.opcode == "invoke" or len(last.targets) == 1 else ""
            if not went:
                return []
            source, target = target, went
        return []


def _chosen(block: Block, source: str, known: dict[str, int]) -> dict[str, int]:
    """What numbers are known in a block, its phis among them, where control comes from `source`."""
    found = dict(known)
    for one in block.instructions:
        if one.opcode == "phi" and one.result is not None:
            given = next((v for v, at in zip(one.operands, one.targets, strict=True) if at == source), None)
            number = None if given is None else _number(given, known)
            found.pop(one.result.name, None)
            if number is not None:
                found[one.result.name] = number
    return found


def _number(operand: Value, known: dict[str, int]) -> int | None:
    if isinstance(operand, Local):
        return known.get(operand.name)
    return operand.value if isinstance(operand, Integer) else None


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
    heads = {head for around in inside.values() for head in around}
    latches = {a for a in counted for b in blocks[a].instructions[-1].targets if b in heads and b in inside[a]}
    live = _live([blocks[name] for name in counted])
    last = _last([blocks[name] for name in counted], latches)
    onward = _onward({name: blocks[name] for name in counted})
    return Graph(blocks, entry, order, inside, frozenset(worth), live, frozenset(heads | latches), last, onward)


def _onward(blocks: Mapping[str, Block]) -> dict[str, tuple[str, ...]]:
    """See `Graph.onward`: the phis of numbers that a ``switch`` asks behind them, with nothing but calls in between."""
    found: dict[str, tuple[str, ...]] = {}
    for name, block in blocks.items():
        phis = {one.result.name for one in block.instructions if one.opcode == "phi" and one.result is not None
                and any(isinstance(value, Integer) for value in one.operands)}  # fmt: skip
        way, last = [name], block.instructions[-1]
        while phis and len(way) <= len(blocks) and (last.opcode == "invoke" or len(last.targets) == 1):
            way.append(last.targets[0])
            last = blocks[way[-1]].instructions[-1]
        asked = last.operands[0] if last.opcode == "switch" else None
        if isinstance(asked, Local) and asked.name in phis:
            found |= dict.fromkeys(way, (asked.name,))
    return found


def _last(blocks: list[Block], latches: set[str]) -> dict[str, int]:
    """See `Graph.last`."""
    flow: nx.DiGraph[str] = nx.DiGraph()
    flow.add_nodes_from((_END, _BACK))
    ways: dict[str, tuple[str, ...]] = {}
    quiet: dict[str, int] = {}  # from which instruction on a block calls nothing that may throw
    for block in blocks:
        calls = {at: callee(one) for at, one in enumerate(block.instructions) if one.opcode in ("call", "invoke")}
        quiet[block.name] = 1 + max((at for at, name in calls.items() if not _is_mild(name)), default=-1)
        end = block.instructions[-1]
        targets = end.targets[:1] if end.opcode == "invoke" else end.targets
        ways[block.name] = targets or (_BACK,) if _ENDS.isdisjoint(calls.values()) else (_END,)
        flow.add_edges_from((block.name, way) for way in ways[block.name])
        if quiet[block.name] or block.name in latches:
            flow.add_edge(block.name, _BACK)
    back = {_BACK, *nx.ancestors(flow, _BACK)}
    return {name: quiet[name] for name in ways if name not in latches and back.isdisjoint(ways[name])}


def _is_mild(name: str) -> bool:
    return name in _MAY_CALL or name.startswith(("llvm.", "cuda"))


def _live(blocks: list[Block]) -> dict[str, tuple[str, ...]]:
    """What is needed behind each block's phis: from each use, back to where the value is made."""
    made: dict[str, tuple[str, bool]] = {}  # by which block, and whether by a phi
    before: dict[str, list[str]] = {block.name: [] for block in blocks}
    live: dict[str, dict[str, None]] = {block.name: {} for block in blocks}
    for block in blocks:
        for one in block.instructions:
            if one.result is not None:
                made[one.result.name] = block.name, one.opcode == "phi"
        for target in dict.fromkeys(block.instructions[-1].targets):
            before[target].append(block.name)
    for block in blocks:
        for one in block.instructions:
            phi = one.opcode == "phi"
            for value, at in zip(one.operands, one.targets if phi else repeat(block.name), strict=False):
                if not isinstance(value, Local) or at not in live:
                    continue
                maker, todo = made.get(value.name), [at]
                while todo:
                    name = todo.pop()
                    if maker == (name, False) or value.name in live[name]:
                        continue
                    live[name][value.name] = None
                    if maker != (name, True):
                        todo += before[name]
    return {name: tuple(found) for name, found in live.items()}


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
    """Put the blocks in order: what is in a loop stands where the loop stands, before what comes behind."""
    stack: list[tuple[Iterator[_Part], tuple[str, ...]]] = [(_parts(flow, entry, position), ())]
    while stack:
        parts, around = stack[-1]
        name, inner = next(parts, ("", None))
        if not name:
            stack.pop()
        elif inner is None:
            counted.append(name)
            inside[name] = around
        else:
            stack.append((_parts(inner, name, position), (*around, name)))


def _parts(graph: nx.DiGraph[str], entry: str, position: dict[str, int]) -> Iterator[_Part]:
    """The parts of a graph in order: a block, or the head of a loop and what is in it without the edges to its head."""
    whole = nx.condensation(graph)
    first_of = {one: min(position[name] for name in whole.nodes[one]["members"]) for one in whole}
    for number in nx.lexicographical_topological_sort(whole, first_of.__getitem__):
        part = whole.nodes[number]["members"]
        first = next(iter(part))
        if len(part) == 1 and not graph.has_edge(first, first):
            yield first, None
            continue
        entered = {b for b in part if b == entry or not part.issuperset(graph.predecessors(b))}
        head = min(entered or part, key=position.__getitem__)
        inner = _only(graph, part, position)
        inner.remove_edges_from([(a, head) for a in list(inner.predecessors(head))])
        yield head, inner
