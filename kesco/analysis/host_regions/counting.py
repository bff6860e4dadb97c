"""Loops of the text whose trips are told apart: which loop of the IR each is, and in which trip control is.

In: the walk, as it comes to the heads of loops. Out: the `Iteration`s around a site. A program is walked twice: first
it is seen how often each loop turns; then, where that is a number and the same each time, its trips have sites of
their own, so that ``x[i]`` is a different buffer in each.

1. A loop of the IR is that loop of the text in whose step it adds to what its head counts; one over a range is that
at whose colon its head decides. 2. A trip begins where its head goes on into the loop. 3. A loop that is walked to a
fixed point, or in other numbers each time, is not counted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.steps import evaluated
from kesco.analysis.host.values import numbers
from kesco.analysis.host_regions.texts import Texts
from kesco.analysis.loops import MAX_TRIPS, MAX_UNROLLED, counter_of, step_of
from kesco.ir import program as ir
from kesco.ir.flow import Iteration
from kesco.ir.ranges import range_loops
from kesco.llvm.values import Instruction, Integer, Local


@dataclass(frozen=True, slots=True)
class _Counted:
    """A loop of the text, what its head counts with, and by how much; one over a range counts its trips."""

    number: int
    name: str
    phi: str
    step: int


@dataclass(slots=True)
class Counting:
    """Which loops are counted: `first` and number of trips of each, once `decided`; None: they differ."""

    texts: Texts
    trips: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    decided: bool = False
    _loops: dict[tuple[str, str], _Counted | None] = field(default_factory=dict)
    _open: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)  # of a frame and head: first, trips

    def turns(self, frame: Frame, function: ir.Function, instruction: Instruction, state: State) -> None:
        """Control leaves a block: a trip may begin there, or the loop end."""
        if self.decided or instruction.opcode != "br":
            return
        head = frame.block
        if head not in frame.around:
            return
        loop = self._loop(frame, function, head)
        if loop is None:
            return
        value = _value(frame, head, loop)
        if head in frame.fixed or value is None:
            self.trips[loop.number] = None
            return
        goes = numbers(evaluated(frame, instruction.operands[0], state)) if instruction.operands else None
        if goes is None or len(goes) != 1:
            self.trips[loop.number] = None
            return
        target = instruction.targets[0 if goes[0] else 1]
        trip = frame.trips.get(head, 0)
        begun = trip + (head in frame.graph.inside[target])
        first = value - trip * loop.step
        known = self.trips.get(loop.number, (first, begun))
        self.trips[loop.number] = None if known is None or known[0] != first else (first, max(known[1], begun))
        self._open[frame.number, head] = (loop.number, begun)

    def copy(self) -> Counting:
        """What was seen so far, to be settled one way; another copy may be settled another way."""
        return replace(self, trips=dict(self.trips))

    def settle(self, turning: Collection[int]) -> bool:
        """All was walked: a loop is counted if it turned as often each time, but for these. Whether there is any."""
        ends: dict[int, set[int]] = {}
        for number, trips in self._open.values():
            ends.setdefault(number, set()).add(trips)
        for number, counts in ends.items():
            known = self.trips.get(number)
            if known is not None and (len(counts) > 1 or not 0 < known[1] <= MAX_TRIPS):
                self.trips[number] = None
        self.trips |= dict.fromkeys(turning)
        self.decided = True
        return any(self.trips.values())

    def is_counted(self, loop: ir.Loop) -> bool:
        """Whether trips of a loop have sites of their own."""
        return self.decided and self.trips.get(loop.number) is not None

    def around(self, frame: Frame, function: ir.Function) -> tuple[Iteration, ...]:
        """The trips that control is in, of the loops around it that are counted, outermost first."""
        if not self.decided:
            return ()
        found: list[Iteration] = []
        inside = 1
        for head in frame.around:
            loop = self._loop(frame, function, head)
            known = self.trips.get(loop.number) if loop is not None else None
            if loop is None or known is None or any(one.counter == loop.name for one in found):
                continue
            value = _value(frame, head, loop)
            first, trips = known
            inside *= trips
            if value is None or inside > MAX_UNROLLED:
                continue
            index = (value - first) // loop.step
            found.append(Iteration(loop.number, loop.name, index, trips, value, first, loop.step))
        return tuple(found)

    def _loop(self, frame: Frame, function: ir.Function, head: str) -> _Counted | None:
        key = (frame.function.name, head)
        if key not in self._loops:
            self._loops[key] = self._found(frame, function, head)
        return self._loops[key]

    def _is_colon(self, offset: int) -> bool:
        return offset >= 0 and self.texts.program.text[offset : offset + 1] == b":"

    def _found(self, frame: Frame, function: ir.Function, head: str) -> _Counted | None:
        graph = frame.graph
        place = self.texts.offset(graph.blocks[head].instructions[-1].place)
        for ranged in range_loops(self.texts.program, function) if self._is_colon(place) else ():
            if ranged.loop.span.start < place < ranged.first.span.start:
                return _Counted(ranged.loop.number, ranged.name, "", 1)
        phis = [one for one in graph.blocks[head].instructions if one.opcode == "phi" and one.result is not None]
        added = {
            one.result.name: one
            for name, block in graph.blocks.items() if head in graph.inside.get(name, ())
            for one in block.instructions if one.opcode in ("add", "sub") and one.result is not None
        }  # fmt: skip
        for loop in (n for n in ir.walk(function.body) if isinstance(n, ir.Loop)):
            counter = counter_of(loop)
            step = step_of(loop.step, counter) if counter is not None else None
            if counter is None or not step or loop.tested_after or loop.condition is None:
                continue
            span = loop.step.span if isinstance(loop.step, ir.Assign) else loop.span
            for phi in phis:
                for operand in phi.operands:
                    one = added.get(operand.name) if isinstance(operand, Local) else None
                    place = self.texts.offset(one.place) if one is not None else -1
                    if one is not None and span.start <= place < span.end and _adds(one, phi.result):
                        assert phi.result is not None
                        return _Counted(loop.number, counter.name, phi.result.name, step)
        return None


def _value(frame: Frame, head: str, loop: _Counted) -> int | None:
    return frame.counters.get(head, {}).get(loop.phi) if loop.phi else frame.trips.get(head, 0)


def _adds(one: Instruction, phi: Local | None) -> bool:
    """Whether an instruction adds a number to what a head counts with."""
    left, right = one.operands
    return left == phi and isinstance(right, Integer)
