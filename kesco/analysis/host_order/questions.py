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
from kesco.analysis.host_order.steps import Key, Scope, Steps, Trips, trips
from kesco.analysis.host_order.words import Words
from kesco.llvm.values import Function, Instruction

_END = "\0end"
_PLACED = "what is asked at"


@dataclass(slots=True)
class Questions:
    """See the module's docstring."""

    engine: Engine
    steps: Steps
    words: Words
    leaving: dict[int, dict[str, None]] = field(default_factory=dict)
    _open: dict[Key, dict[tuple[str, Trips], list[str]]] = field(default_factory=dict)
    _depends: dict[str, dict[str, frozenset[tuple[str, int]]]] = field(default_factory=dict)
    _last: tuple[int, str, str] = (-1, "", "")  # the activation, its block, and what was asked at its end

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
        answers = _answers(asked, instruction)
        self._open.setdefault(self._outer(frame), {})[frame.block, around] = answers
        steady = self.words.is_steady(frame, instruction.operands[0])
        self._last = frame.number, frame.block, asked if steady and instruction.opcode == "br" else _PLACED
        leaves = [frame.graph.leaves(frame.block, target) for target in instruction.targets]
        left = {head for each in leaves for head in each}
        fixed = [head for head, trip in around if trip < 0]
        for head, number in zip(reversed(fixed), reversed(self.steps.loops()), strict=False):
            for which, each in enumerate(leaves):
                if head in each:
                    self.leaving.setdefault(number, {})[answers[which]] = None
        told = any(trip < 0 or head != frame.block for head, trip in around if head in left)
        return asked if told and self.engine.leads_to_cuda(frame.function.name) else ""

    def _placed(self, instruction: Instruction) -> str:
        place = self.engine.module.place(instruction.place)
        return f"{_PLACED} {place}" if place is not None else "a question without a place"

    def around(self) -> list[str]:
        """The questions on which it depends that control is here."""
        found: list[str] = []
        for frame in self.steps.activations():
            asked = self._open.get(self._outer(frame))
            if not asked:
                continue
            controlling: dict[str, list[int]] = {}
            for one, which in sorted(self._controlling(frame.function).get(frame.block, ())):
                controlling.setdefault(one, []).append(which)
            here = dict(trips(frame, frame.block))
            for (block, there), answers in asked.items():
                same = all(here.get(head, trip) == trip for head, trip in there)
                if same and not self._leaves(frame, block):
                    found += [answers[which] for which in controlling.get(block, ())]
        return found

    def answer(self, frame: Frame, target: str) -> tuple[Scope, str, int] | None:
        """Which question has just been answered by going on with a block: where, in words, and how."""
        number, block, asked = self._last
        if (number, block) != (frame.number, frame.block) or asked.startswith(_PLACED):
            return None
        return self.scope(frame, block), asked, frame.graph.blocks[block].instructions[-1].targets.index(target)

    def scope(self, frame: Frame, block: str) -> Scope:
        """Where the same words are the same question: an activation, and the trips of the loops around a block."""
        calls = (f"{name} {at} {around}" for name, at, around in self._outer_calls(frame))
        return "/".join((frame.function.name, *calls)), trips(frame, block)

    def _leaves(self, frame: Frame, block: str) -> bool:
        """Whether a branch leaves a loop around where control is."""
        around = frame.graph.inside[frame.block]
        targets = frame.graph.blocks[block].instructions[-1].targets
        return any(head in around for target in targets for head in frame.graph.leaves(block, target))

    def _outer(self, frame: Frame) -> Key:
        return (frame.function.name, *self._outer_calls(frame))

    def _outer_calls(self, frame: Frame) -> list[tuple[str, int, Trips]]:
        frames = self.steps.activations()
        return [(f.function.name, id(f.at), trips(f, f.block)) for f in frames[frames.index(frame) + 1 :]]

    def _controlling(self, function: Function) -> dict[str, frozenset[tuple[str, int]]]:
        if function.name not in self._depends:
            self._depends[function.name] = _control_dependence(function)
        return self._depends[function.name]


def _answers(asked: str, instruction: Instruction) -> list[str]:
    """A question with each of its answers, by the ways that control may take."""
    if instruction.opcode == "br":
        return [asked, f"not {asked}"]
    values = instruction.indices
    return [f"{asked} is none of {sorted(values)}", *(f"{asked} is {value}" for value in values)]


def _control_dependence(function: Function) -> dict[str, frozenset[tuple[str, int]]]:
    """Of each block, those whose branches decide whether control comes to it, each with the way that leads there."""
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
    direct: dict[str, set[tuple[str, int]]] = {}
    ends = {block.name: block.instructions[-1].targets for block in function.blocks}
    for name in flow:
        targets = list(flow[name])
        if len(targets) < 2:
            continue
        for target in targets:
            runner: str | None = target
            while runner is not None and runner not in (after.get(name), _END):
                direct.setdefault(runner, set()).update((name, i) for i, t in enumerate(ends[name]) if t == target)
                behind = after.get(runner)
                runner = behind if behind != runner else None
    found: dict[str, frozenset[tuple[str, int]]] = {}
    for name in flow:
        every, todo = set[tuple[str, int]](), [name]
        while todo:
            for one in direct.get(todo.pop(), ()):
                if one not in every:
                    every.add(one)
                    todo.append(one[0])
        found[name] = frozenset(every)
    return found
