"""What the interpreter finds, and whom it tells: visits of launches and calls, what could not be followed, a `Watcher`.

In: what happens on the paths. Out: a `Record` of it. Apart from the engine because whoever looks needs no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kesco.analysis.host.memory import State
from kesco.analysis.host.values import ANYWHERE, Object, Offset, Value, joined
from kesco.llvm.values import Function, Instruction
from kesco.llvm.values import Value as Operand

if TYPE_CHECKING:
    from kesco.analysis.host.cuda import Launch
    from kesco.analysis.host.frames import Frame


class OutOfBudget(Exception):
    """The program takes too long to follow."""


class Refused(Exception):
    """The program does what cannot be followed at all."""


def refused_by(walk: Callable[[], object]) -> str:
    """Why what is walked cannot be followed, or an empty text."""
    try:
        walk()
    except Refused as reason:
        return str(reason)
    except OutOfBudget:
        return "it takes too long to follow"
    except RecursionError:
        return "its calls are nested too deeply"
    return ""


@dataclass(slots=True)
class Visit:
    """A launch or a call of CUDA, as often as it was reached in one way."""

    instruction: Instruction
    function: str
    name: str
    values: list[tuple[str, Value]]
    settings: list[tuple[str, Value]]
    context: int = 0
    times: int = 1


@dataclass(slots=True)
class Record:
    """What was found. `root` is where the path began."""

    root: str = ""
    visits: dict[tuple[str, int, str, int], Visit] = field(default_factory=dict)
    pushed: set[int] = field(default_factory=set)  # the settings of launches that were reached
    reached: dict[str, set[str]] = field(default_factory=dict)  # of each root, the functions
    lost: dict[str, None] = field(default_factory=dict)  # what has a consequence: calls and stores to who knows where
    wanted: dict[str, None] = field(default_factory=dict)  # functions that code may call which is not followed

    def visit(self, visit: Visit) -> None:
        """Remember a launch or a call of CUDA."""
        key = (self.root, id(visit.instruction), visit.name, visit.context)
        old = self.visits.get(key)
        if old is None:
            self.visits[key] = visit
            return
        old.times += 1
        old.values = _both(old.values, visit.values)
        old.settings = _both(old.settings, visit.settings)


def _both(a: list[tuple[str, Value]], b: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
    found = dict(a)
    for name, value in b:
        found[name] = joined(found[name], value) if name in found else value
    return list(found.items())


class Words(Protocol):
    """Who knows how the program comes by numbers that are not known; only values in memory have such names."""

    def loaded(self, frame: Frame, instruction: Instruction, state: State, value: Value) -> Value:
        """What was loaded is so called from now on; the value without its name."""

    def stored(self, frame: Frame, operand: Operand, state: State, value: Value) -> Value:
        """What is to be stored, with its name."""


class Watcher(Protocol):
    """Who is told what happens on the paths, in their order; `State.frontier` is its own."""

    def enters(self, frame: Frame, call: Instruction, function: Function, context: int, state: State) -> object:
        """A function is called; what comes back is given to `leaves`."""

    def leaves(self, entered: object, left: State | None, thrown: State | None) -> None:
        """It came back."""

    def thrown_out(self, state: State) -> None:
        """An exception leaves the function that control is in."""

    def unwinds(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """An exception is on its way to who catches it in the function that control is in."""

    def turns(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """Control comes to the end of a block."""

    def takes(self, frame: Frame, target: str, state: State) -> None:
        """Control goes on with one of several blocks that it may go on with."""

    def begins(self, frame: Frame, head: str, state: State) -> None:
        """Control comes to where a trip of a loop begins."""

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched with these pointers and numbers; no name: it is not known which."""

    def calls(self, frame: Frame, call: Instruction, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""

    def makes(self, one: Object) -> None:
        """Memory, a stream or an event is made, or may be made once more."""

    def runs(self, frame: Frame, name: str, reached: Iterable[Object], state: State, *, seen: bool) -> None:
        """Code that is not followed runs and may reach these; `seen`: it belongs to no program."""

    def answers(self, name: str, values: list[Value], state: State) -> Value | None:
        """What a function without a body returns of which the watcher knows what it does; None if it does not."""

    def touches(
        self, state: State, one: Object | None, where: tuple[Offset, int | None] = (ANYWHERE, None), *, writes: bool
    ) -> None:
        """The host reads or writes what the device may reach, `where` in it; None: it is not known what."""
