"""What `device_threads` asks of a function again and again: its blocks in an order, its loops, and what is needed.

In: a function's instructions. Out: a `Code`. Only what addresses and branches are made of is *needed*; whatever else a
kernel computes is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import networkx as nx

from kesco.analysis.device_flow import Flow
from kesco.llvm.values import Function, Instruction, Local, Value

_MEMORY = {"load": (0,), "store": (1,), "atomicrmw": (0,), "cmpxchg": (0,)}  # which operands are addresses


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop by the numbers of its blocks."""

    header: int
    blocks: frozenset[int]
    patience: int  # trips after which it no longer depends on the trip which pointers its header's values are made of


@dataclass(frozen=True, slots=True)
class Code:
    """A function; blocks are numbered in an order in which each comes before those that only it leads to."""

    function: Function
    names: tuple[str, ...]
    numbers: dict[str, int]
    phis: tuple[tuple[Instruction, ...], ...]
    steps: tuple[tuple[Instruction, ...], ...]  # of each block what is needed, its last instruction at the end
    loops: tuple[Loop, ...]
    deciders: dict[str, frozenset[str]]

    def depends(self, block: int, on: frozenset[int]) -> bool:
        """Whether it depends on the branch at the end of any of these blocks if control comes to `block`."""
        wanted = {self.names[one] for one in on}
        seen, todo = {self.names[block]}, [self.names[block]]
        while todo:
            for one in self.deciders.get(todo.pop(), frozenset()):
                if one in wanted:
                    return True
                if one not in seen:
                    seen.add(one)
                    todo.append(one)
        return False


def code_of(function: Function) -> Code:
    """The function as it will be walked."""
    flow = Flow(function)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(flow.blocks)
    for block in flow.blocks:
        graph.add_edges_from((block, target) for target in flow.after(block))
    bodies = flow.loops()

    def outermost_first(blocks: Iterable[str]) -> list[str]:
        return sorted(blocks, key=lambda block: sum(block in body for body in bodies))

    # Who leaves a loop is looked at first, so that it is numbered behind the whole loop.
    order = list(nx.dfs_postorder_nodes(graph, flow.entry, sort_neighbors=outermost_first))[::-1]
    numbers = {name: at for at, name in enumerate(order)}
    needed = _needed(function)
    blocks = {block.name: block.instructions for block in function.blocks}
    phis = tuple(tuple(one for one in blocks[name] if one.opcode == "phi" and one.result in needed) for name in order)
    steps = tuple(tuple(one for one in blocks[name] if one.opcode != "phi" and _runs(one, needed)) for name in order)
    loops = []
    for body in bodies:
        inside = frozenset(numbers[name] for name in body if name in numbers)
        if inside:
            header = min(inside)
            loops.append(Loop(header, inside, 2 + sum(one.type.kind == "ptr" for one in phis[header])))
    return Code(function, tuple(order), numbers, phis, steps, tuple(loops), flow.deciders())


def _runs(code: Instruction, needed: set[Value]) -> bool:
    return code.result is None or code.opcode in (*_MEMORY, "call") or code.result in needed


def _needed(function: Function) -> set[Value]:
    made = {one.result: one for block in function.blocks for one in block.instructions if one.result is not None}
    todo: list[Value] = []
    for block in function.blocks:
        for one in block.instructions:
            if one.opcode in _MEMORY:
                todo += [one.operands[at] for at in _MEMORY[one.opcode]]
            elif one.opcode == "call" or (one.opcode != "phi" and one.targets) or one.opcode == "ret":
                todo += one.operands
    needed: set[Value] = set()
    while todo:
        value = todo.pop()
        if isinstance(value, Local) and value not in needed:
            needed.add(value)
            if value in made:
                todo += made[value].operands
    return needed
