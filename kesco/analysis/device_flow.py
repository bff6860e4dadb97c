"""One device function's instructions as the footprint analysis asks for them: blocks, dominators and what tests say.

In: a function of a module that llvmlite has parsed. Out: its instructions in an order in which values come before their
uses, and for each block, and each edge, the comparisons that are known to hold there. Kept apart from the arithmetic
(`device_ranges`) because it knows of control flow only.

A comparison holds in a block if a branch on it dominates the block: then it was made on the very values that the block
sees, since each of them dominates the branch. It refuses switches and indirect branches: they tell nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import networkx as nx

_FLAGS = re.compile(r"\b(nsw|nuw|nneg|disjoint|inbounds|nusw)\b")
_COMPARED = re.compile(r"\bicmp (?:samesign )?(\w+) ")
_LABEL = re.compile(r'^\s*("[^"]*"|[^\s:"]+):')
_BRANCHES = re.compile(r', label %("[^"]*"|[^\s,]+), label %("[^"]*"|[^\s,]+)')
_OPPOSITE = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ult": "uge", "uge": "ult", "ugt": "ule",
             "ule": "ugt", "eq": "ne", "ne": "eq"}  # fmt: skip
MIRRORED = {"slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle", "ult": "ugt", "ugt": "ult", "ule": "uge",
            "uge": "ule", "eq": "eq", "ne": "ne"}  # fmt: skip


class Fact(NamedTuple):
    """``left relation right`` holds, the relation being one of LLVM's names for it."""

    relation: str
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class Node:
    """One instruction: the block it is in, what it does, its operands."""

    block: int
    opcode: str
    operands: tuple[Any, ...]
    value: Any

    @property
    def text(self) -> str:
        """LLVM's spelling; it takes long in a large module, so only what is asked for is spelled."""
        return str(self.value).strip()

    @property
    def flags(self) -> frozenset[str]:
        """What the instruction promises, such as ``nsw``."""
        head = self.text.partition(" = ")[2].split(", ", 1)[0]
        return frozenset(_FLAGS.findall(head))


class Flow:
    """A function's instructions and control flow; blocks and values are known by llvmlite's hash of them."""

    def __init__(self, function: Any) -> None:
        self.nodes: dict[int, Node] = {}
        self.order: list[Node] = []
        self.blocks = {hash(block): block for block in function.blocks}
        last: dict[int, Node] = {}
        for block in function.blocks:
            for one in block.instructions:
                node = Node(hash(block), str(one.opcode), tuple(one.operands), one)
                self.nodes[hash(one)] = node
                self.order.append(node)
                last[hash(block)] = node
        self.entry = self.order[0].block
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(self.blocks)
        for block, node in last.items():
            graph.add_edges_from((block, k) for o in node.operands if (k := hash(o)) in self.blocks)
        self._last, self._graph = last, graph
        self._parent: dict[int, int] = dict(nx.immediate_dominators(graph, self.entry))
        self._parent.pop(self.entry, None)
        self._facts: dict[int, tuple[Fact, ...]] = {}
        self._labels: dict[int, str] = {}

    def dominates(self, a: int, b: int) -> bool:
        """Whether every way to block `b` leads through block `a`."""
        at: int | None = b
        while at is not None and at != a:
            at = self._parent.get(at)
        return at == a

    def after(self, block: int) -> frozenset[int]:
        """The blocks that may come next."""
        return frozenset(self._graph.successors(block))

    def conditions(self, block: int) -> tuple[Node, ...]:
        """The instruction that decides where control goes from a block, if one does."""
        last = self._last[block]
        return (last,) if len(self.after(block)) > 1 else ()

    def deciders(self) -> dict[int, frozenset[int]]:
        """For each block those from whose branches it depends at once whether control comes there.

        A branch decides of a block if one of its ways leads there for certain and another one may not. Where no end of
        the function can be reached any more, each branch may have decided.
        """
        end = -1
        back: nx.DiGraph[int] = self._graph.reverse()
        back.add_node(end)
        back.add_edges_from((end, block) for block in self.blocks if not self.after(block))
        behind: dict[int, int] = nx.immediate_dominators(back, end)
        behind.pop(end, None)
        branches = frozenset(block for block in self.blocks if self.conditions(block))
        found: dict[int, set[int]] = {block: set() if block in behind else set(branches) for block in self.blocks}
        for branch in branches:
            for at in self.after(branch):
                while at in behind and at != behind.get(branch):
                    found[at].add(branch)
                    at = behind[at]
        return {block: frozenset(one) for block, one in found.items()}

    def loops(self) -> list[frozenset[int]]:
        """The natural loops, each as its blocks; those with one head are one."""
        found: dict[int, set[int]] = {}
        for source, head in self._graph.edges:
            if self.dominates(head, source):
                body, stack = found.setdefault(head, {head}), [source]
                while stack:
                    block = stack.pop()
                    if block not in body:
                        body.add(block)
                        stack += self._graph.predecessors(block)
        return [frozenset(body) for body in found.values()]

    def facts(self, block: int) -> tuple[Fact, ...]:
        """What holds whenever control is in a block."""
        if block not in self._facts:
            found: list[Fact] = []
            at: int | None = block
            while at is not None:
                before = list(self._graph.predecessors(at))
                if len(before) == 1:
                    found += self._of_edge(before[0], at)
                at = self._parent.get(at)
            self._facts[block] = tuple(found)
        return self._facts[block]

    def facts_on_edge(self, source: int, target: int) -> tuple[Fact, ...]:
        """What holds whenever control goes from one block to another."""
        return (*self._of_edge(source, target), *self.facts(source))

    def incoming(self, node: Node) -> list[tuple[Any, int]]:
        """A phi's values, each with the block it comes from."""
        blocks = [hash(block) for block in node.value.incoming_blocks]
        return list(zip(node.operands, blocks, strict=True))

    def _of_edge(self, source: int, target: int) -> list[Fact]:
        node = self._last[source]
        ways = [k for o in node.operands if (k := hash(o)) in self.blocks]
        if node.opcode != "br" or len(ways) != 2 or ways[0] == ways[1]:
            return []
        spelled = _BRANCHES.search(node.text)
        if spelled is None or {spelled[1], spelled[2]} != {self._label(way) for way in ways}:
            return []
        return self._hold(node.operands[0], self._label(target) == spelled[1], 8)

    def _label(self, block: int) -> str:
        """What a branch to a block calls it; LLVM numbers blocks that have no name."""
        if block not in self._labels:
            found = _LABEL.search(str(self.blocks[block]))
            self._labels[block] = found[1] if found else ""
        return self._labels[block]

    def _hold(self, condition: Any, true: bool, depth: int) -> list[Fact]:
        """What a condition says when it is true, or false."""
        node = self.nodes.get(hash(condition))
        if node is None or not depth:
            return []
        if node.opcode == "icmp":
            relation = _COMPARED.search(node.text)
            if relation is None or relation[1] not in _OPPOSITE:
                return []
            return [Fact(relation[1] if true else _OPPOSITE[relation[1]], *node.operands)]
        parts: list[Any] = []
        if node.opcode == ("and" if true else "or"):
            parts = list(node.operands)
        elif node.opcode == "select" and _is_bit(node.operands[1 if not true else 2], not true):
            parts = [node.operands[0], node.operands[2 if not true else 1]]
        elif node.opcode == "xor" and _is_bit(node.operands[1], True):
            return self._hold(node.operands[0], not true, depth - 1)
        return [fact for part in parts for fact in self._hold(part, true, depth - 1)]


def _is_bit(value: Any, on: bool) -> bool:
    return bool(value.is_constant) and str(value).strip() == f"i1 {'true' if on else 'false'}"
