"""On which questions of the program it depends whether a step happens, and by which a loop is left.

In: the ends of blocks that control comes to, with what is known there. Out: questions in words.

1. A block depends on a branch if one way of it always leads there and the other may not (control dependence), or on a
   branch that such a one depends on. Ways that never come back, as behind a failed check, do not count.
2. A branch whose answer is known where control is, is no question, and neither is whether a call of CUDA failed.
3. A branch that leaves a loop decides for how long it goes on, and not what is done in a trip.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import networkx as nx

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.steps import evaluated
from kesco.analysis.host.values import numbers
from kesco.analysis.host.walk import where_it_failed
from kesco.analysis.host_order.steps import Key, Steps, trips
from kesco.analysis.host_order.words import Words
from kesco.llvm.values import Function, Instruction

_END = "\0end"
Trips = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Questions:
    """See the module's docstring."""

    engine: Engine
    steps: Steps
    words: Words
    leaving: dict[int, dict[str, None]] = field(default_factory=dict)
    _open: dict[Key, dict[tuple[str, Trips], str]] = field(default_factory=dict)
    _depends: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)

    def comes_to(self, frame: Frame, instruction: Instruction, state: State) -> str:
        """Control comes to the end of a block; what is returned is a question by which a loop is left."""
        if len(set(instruction.targets)) < 2 or not instruction.operands:
            return ""
        known = numbers(evaluated(frame, instruction.operands[0], state))
        if known is not None and len(set(known)) == 1:
            return ""
        if state.failing or where_it_failed(frame, instruction, state):
            return ""
        asked = self.words.of(frame, instruction.operands[0]) or self._placed(instruction)
        around = trips(frame, frame.block)
        self._open.setdefault(self._outer(frame), {})[frame.block, around] = asked
        left = {head for target in instruction.targets for head in frame.graph.leaves(frame.block, target)}
        fixed = [head for head, trip in around if trip < 0]
        for head, number in zip(reversed(fixed), reversed(self.steps.loops()), strict=False):
            if head in left:
                self.leaving.setdefault(number, {})[asked] = None
        told = any(trip < 0 or head != frame.block for head, trip in around if head in left)
        return asked if told and self.engine.leads_to_cuda(frame.function.name) else ""

    def _placed(self, instruction: Instruction) -> str:
        place = self.engine.module.place(instruction.place)
        return f"what is asked at {place}" if place is not None else "a question without a place"

    def around(self) -> list[str]:
        """The questions on which it depends that control is here."""
        found: list[str] = []
        for frame in self.steps.activations():
            asked = self._open.get(self._outer(frame))
            if not asked:
                continue
            controlling = self._controlling(frame.function).get(frame.block, frozenset())
            here = dict(trips(frame, frame.block))
            for (block, there), words in asked.items():
                same = all(here.get(head, trip) == trip for head, trip in there)
                if block in controlling and same and not self._leaves(frame, block):
                    found.append(words)
        return found

    def _leaves(self, frame: Frame, block: str) -> bool:
        """Whether a branch leaves a loop around where control is."""
        around = frame.graph.inside[frame.block]
        targets = frame.graph.blocks[block].instructions[-1].targets
        return any(head in around for target in targets for head in frame.graph.leaves(block, target))

    def _outer(self, frame: Frame) -> Key:
        frames = self.steps.activations()
        behind = frames[frames.index(frame) + 1 :]
        return (frame.function.name, *((f.function.name, id(f.at), trips(f, f.block)) for f in behind))

    def _controlling(self, function: Function) -> dict[str, frozenset[str]]:
        if function.name not in self._depends:
            self._depends[function.name] = _control_dependence(function)
        return self._depends[function.name]


def _control_dependence(function: Function) -> dict[str, frozenset[str]]:
    """Of each block, the blocks whose branches decide whether control comes to it."""
    flow: nx.DiGraph[str] = nx.DiGraph()
    for block in function.blocks:
        last = block.instructions[-1]
        flow.add_node(block.name)
        flow.add_edges_from((block.name, target) for target in last.targets)
        if last.opcode == "ret":
            flow.add_edge(block.name, _END)
    if _END not in flow:
        return {}
    coming = nx.ancestors(flow, _END) | {_END}
    flow = nx.DiGraph(flow.subgraph(coming))
    after = dict(nx.immediate_dominators(flow.reverse(copy=True), _END))
    direct: dict[str, set[str]] = {}
    for name in flow:
        targets = list(flow[name])
        if len(targets) < 2:
            continue
        for target in targets:
            runner: str | None = target
            while runner is not None and runner not in (after.get(name), _END):
                direct.setdefault(runner, set()).add(name)
                behind = after.get(runner)
                runner = behind if behind != runner else None
    found: dict[str, frozenset[str]] = {}
    for name in flow:
        every, todo = set[str](), [name]
        while todo:
            for one in direct.get(todo.pop(), ()):
                if one not in every:
                    every.add(one)
                    todo.append(one)
        found[name] = frozenset(every)
    return found
