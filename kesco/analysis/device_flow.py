"""One device function's instructions as the footprint analysis asks for them: blocks, dominators and what tests say.

In: a function as `llvm` reads it. Out: its instructions in the order of the text, and for each block, and each edge,
the comparisons that are known to hold there. Kept apart from the arithmetic (`device_ranges`) because it knows of
control flow only.

A comparison holds in a block if a branch on it dominates the block: then it was made on the very values that the block
sees, since each of them dominates the branch. It refuses switches and indirect branches: they tell nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx

from kesco.llvm.types import BIT
from kesco.llvm.values import Function, Instruction, Integer, Value

_OPPOSITE = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ult": "uge", "uge": "ult", "ugt": "ule",
             "ule": "ugt", "eq": "ne", "ne": "eq"}  # fmt: skip
MIRRORED = {"slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle", "ult": "ugt", "ugt": "ult", "ule": "uge",
            "uge": "ule", "eq": "eq", "ne": "ne"}  # fmt: skip


class Fact(NamedTuple):
    """``left relation right`` holds, the relation being one of LLVM's names for it."""

    relation: str
    left: Value
    right: Value


class Node(NamedTuple):
    """One instruction and the block it is in."""

    block: str
    code: Instruction

    @property
    def opcode(self) -> str:
        """What it does."""
        return self.code.opcode

    @property
    def operands(self) -> tuple[Value, ...]:
        """What it does it with."""
        return self.code.operands


class Flow:
    """A function's instructions and control flow."""

    def __init__(self, function: Function) -> None:
        self.order = [Node(block.name, one) for block in function.blocks for one in block.instructions]
        self.nodes: dict[Value, Node] = {one.code.result: one for one in self.order if one.code.result is not None}
        self.entry = function.blocks[0].name
        self._last = {block.name: Node(block.name, block.instructions[-1]) for block in function.blocks}
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self._last)
        for block, node in self._last.items():
            graph.add_edges_from((block, target) for target in node.code.targets)
        self._graph = graph
        self._parent: dict[str, str] = dict(nx.immediate_dominators(graph, self.entry))
        self._parent.pop(self.entry, None)
        self._facts: dict[str, tuple[Fact, ...]] = {}

    @property
    def blocks(self) -> tuple[str, ...]:
        """The names of all blocks."""
        return tuple(self._last)

    def dominates(self, a: str, b: str) -> bool:
        """Whether every way to block `b` leads through block `a`."""
        at: str | None = b
        while at is not None and at != a:
            at = self._parent.get(at)
        return at == a

    def after(self, block: str) -> frozenset[str]:
        """The blocks that may come next."""
        return frozenset(self._graph.successors(block))

    def conditions(self, block: str) -> tuple[Node, ...]:
        """The instruction that decides where control goes from a block, if one does."""
        return (self._last[block],) if len(self.after(block)) > 1 else ()

    def deciders(self) -> dict[str, frozenset[str]]:
        """For each block those from whose branches it depends at once whether control comes there.

        Where no end of the function can be reached any more, each branch may have decided.
        """
        return {block: frozenset(branch for branch, _ in those) for block, those in self.decided().items()}

    def decided(self) -> dict[str, frozenset[tuple[str, int]]]:
        """The same with the number of the way that leads there.

        A branch decides of a block if one of its ways leads there for certain and another one may not.
        """
        end = ""
        back: nx.DiGraph[str] = self._graph.reverse()
        back.add_node(end)
        back.add_edges_from((end, block) for block in self.blocks if not self.after(block))
        behind: dict[str, str] = dict(nx.immediate_dominators(back, end))
        behind.pop(end, None)
        branches = frozenset(block for block in self.blocks if self.conditions(block))
        every = {(branch, way) for branch in branches for way, _ in enumerate(self._last[branch].code.targets)}
        found = {block: set[tuple[str, int]]() if block in behind else set(every) for block in self.blocks}
        for branch in branches:
            for way, target in enumerate(self._last[branch].code.targets):
                at = target
                while at in behind and at != behind.get(branch):
                    found[at].add((branch, way))
                    at = behind[at]
        return {block: frozenset(one) for block, one in found.items()}

    def loops(self) -> list[frozenset[str]]:
        """The natural loops, each as its blocks; those with one head are one."""
        found: dict[str, set[str]] = {}
        for source, head in self._graph.edges:
            if self.dominates(head, source):
                body, stack = found.setdefault(head, {head}), [source]
                while stack:
                    block = stack.pop()
                    if block not in body:
                        body.add(block)
                        stack += self._graph.predecessors(block)
        return [frozenset(body) for body in found.values()]

    def facts(self, block: str) -> tuple[Fact, ...]:
        """What holds whenever control is in a block."""
        if block not in self._facts:
            found: list[Fact] = []
            at: str | None = block
            while at is not None:
                before = list(self._graph.predecessors(at))
                if len(before) == 1:
                    found += self._of_edge(before[0], at)
                at = self._parent.get(at)
            self._facts[block] = tuple(found)
        return self._facts[block]

    def facts_on_edge(self, source: str, target: str) -> tuple[Fact, ...]:
        """What holds whenever control goes from one block to another."""
        return (*self._of_edge(source, target), *self.facts(source))

    def incoming(self, node: Node) -> list[tuple[Value, str]]:
        """A phi's values, each with the block it comes from."""
        return list(zip(node.operands, node.code.targets, strict=True))

    def _of_edge(self, source: str, target: str) -> list[Fact]:
        node = self._last[source]
        ways = node.code.targets
        if node.opcode != "br" or len(ways) != 2 or ways[0] == ways[1]:
            return []
        return self._hold(node.operands[0], target == ways[0], 8)

    def _hold(self, condition: Value, true: bool, depth: int) -> list[Fact]:
        """What a condition says when it is true, or false."""
        node = self.nodes.get(condition)
        if node is None or not depth:
            return []
        if node.opcode == "icmp":
            relation = node.code.words[-1]
            if relation not in _OPPOSITE:
                return []
            return [Fact(relation if true else _OPPOSITE[relation], node.operands[0], node.operands[1])]
        parts: list[Value] = []
        if node.opcode == ("and" if true else "or"):
            parts = list(node.operands)
        elif node.opcode == "select" and _is_bit(node.operands[1 if not true else 2], not true):
            parts = [node.operands[0], node.operands[2 if not true else 1]]
        elif node.opcode == "xor" and _is_bit(node.operands[1], True):
            return self._hold(node.operands[0], not true, depth - 1)
        return [fact for part in parts for fact in self._hold(part, true, depth - 1)]


def _is_bit(value: Value, on: bool) -> bool:
    return value == Integer(int(on), BIT)
