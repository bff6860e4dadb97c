"""The record of an instrumented run → what happened: which call of which activation did what, in order.

In: a `Trace` and the table of the marks. Out: a `Run`: its activations, and its steps, each a call of CUDA with the
events that followed it in the record.

1. Each mark begins a step. 2. A launch happens when its stub is called, which is behind the marks of what its arguments
call: it belongs to the last configuration that was pushed and not used. 3. An allocation belongs to the step that made
it, and knows the how-many-th of its call it is.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from execution.instrument import Call, Function, Instrumented
from kesco.verify.trace import Allocated, Entered, Freed, Launched, Marked, Touched, Trace


@dataclass(slots=True, eq=False)
class Activation:
    """One execution of a function: which, called from where, with the number of the step before it."""

    function: Function
    caller: Activation | None
    call: Call | None
    began: int
    thread: int

    def chain(self) -> list[Activation]:
        """It and those that it was called by, innermost first."""
        found, one = [], self
        while one is not None:
            found.append(one)
            one = one.caller
        return found


@dataclass(slots=True, eq=False)
class Step:
    """One call of CUDA: where it stands, in which activation, and what it did."""

    number: int
    call: Call
    activation: Activation | None
    execution: int  # the how-many-th of this call
    events: list[object] = field(default_factory=list)
    touched: list[Touched] = field(default_factory=list)  # by the host, behind this step and before the next

    def __str__(self) -> str:
        names = [one.name for one in self.events if isinstance(one, Launched)]
        return f"{names[0] if names else self.call.callee} at {self.call.place}"


@dataclass(slots=True, eq=False)
class Memory:
    """One allocation of the run: by which step (None: a symbol), and by which it was freed."""

    event: Allocated
    step: Step | None
    freed: int | None = None  # the step that ended it

    def __str__(self) -> str:
        if self.step is None:
            return self.event.name or "memory"
        return f"{self.step.call.callee} at {self.step.call.place}, time {self.step.execution}"


@dataclass(slots=True)
class Run:
    """What happened."""

    steps: list[Step]
    activations: list[Activation]
    memories: list[Memory]  # by their addresses
    ended: bool
    _bases: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memories.sort(key=lambda one: one.event.base)
        self._bases = [one.event.base for one in self.memories]

    @property
    def threads(self) -> int:
        return len({one.thread for one in self.activations})

    @property
    def launches(self) -> int:
        return sum(isinstance(event, Launched) for step in self.steps for event in step.events)

    def memory_at(self, address: int, step: Step) -> Memory | None:
        """The allocation that an address was in at that step."""
        first = bisect.bisect_right(self._bases, address)
        for one in reversed(self.memories[max(0, first - 64) : first]):
            began = one.step.number if one.step is not None else -1
            alive = began < step.number and (one.freed is None or one.freed >= step.number)
            if alive and address < one.event.base + max(1, one.event.size):
                return one
        return None


def happened(trace: Trace, table: Instrumented) -> Run:
    """What a trace tells."""
    activations: list[Activation] = []
    steps: list[Step] = []
    memories: list[Memory] = []
    live: dict[int, Memory] = {}
    pushed: list[Step] = []
    counts: dict[int, int] = {}
    for event in trace.events:
        last = steps[-1] if steps else None
        if isinstance(event, Entered):
            caller = activations[event.caller] if event.caller >= 0 else None
            call = table.calls[event.call] if event.call else None
            activations.append(Activation(table.functions[event.function], caller, call, len(steps), event.thread))
        elif isinstance(event, Marked):
            activation = activations[event.entry] if event.entry >= 0 else None
            counts[event.call] = counts.get(event.call, 0) + 1
            steps.append(Step(len(steps), table.calls[event.call], activation, counts[event.call]))
            if steps[-1].call.launches:
                pushed.append(steps[-1])
        elif isinstance(event, Launched) and pushed and last and not last.call.callee.startswith("cudaLaunch"):
            launched = pushed.pop()
            launched.events.append(event)
            if launched is not last:  # its arguments called CUDA, and it happens now
                steps.remove(launched)
                steps.append(launched)
                for number in range(launched.number, len(steps)):
                    steps[number].number = number
        elif isinstance(event, Allocated):
            live[event.base] = Memory(event, None if event.kind == "s" else last)
            memories.append(live[event.base])
        elif isinstance(event, Touched):  # an argument of a launch is evaluated behind its mark, and in front of it
            pending = bool(pushed) and pushed[-1] is last
            behind = steps[-2] if pending and len(steps) > 1 else None if pending else last
            if behind is not None:
                behind.touched.append(event)
        elif last is not None:
            if isinstance(event, Freed) and event.base in live:
                live[event.base].freed = last.number
            last.events.append(event)
    return Run(steps, activations, memories, trace.ended)
