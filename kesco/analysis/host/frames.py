"""An activation of a function as it is walked, and how a call ends. What `walk`, `steps` and `calls` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.graphs import Graph
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import NOTHING, Object, Scalar, Value, number
from kesco.llvm.values import Function, Instruction


@dataclass(slots=True)
class Outcome:
    """How a call ends: with a value in a state, with an exception in another, or in neither way."""

    value: Value = NOTHING
    state: State | None = None
    thrown: State | None = None


Way = tuple[object, ...]  # what tells paths apart that come to one block
_MAIN, _HANDLER = "main", "_ZSt13set_terminatePFvvE"
SETTINGS = "<<<"  # the name of the launch settings among an activation's values
_IN_WORDS = "= "

Caller = Callable[["Frame", Instruction, State], Outcome]


@dataclass(slots=True)
class Frame:
    """One activation, or all of a context."""

    engine: Engine
    function: Function
    graph: Graph
    context: int
    extra: Scalar = NOTHING  # what is passed beyond the parameters
    block: str = ""
    at: Instruction | None = None  # what is executed
    locals: set[Object] = field(default_factory=set)
    pending: dict[tuple[str, Way], State] = field(default_factory=dict)
    trips: dict[str, int] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)  # how far the engine was when a loop was entered
    unsure: set[str] = field(default_factory=set)  # loops of which it was not known whether there is another trip
    told: set[str] = field(default_factory=set)  # heads at which it was known whether there is another trip
    fixed: dict[str, tuple[State, int]] = field(default_factory=dict)  # loops walked to a fixed point
    deep: dict[str, State] = field(default_factory=dict)  # what loops in many others were entered with
    outcome: Outcome = field(default_factory=Outcome)
    caller: Frame | None = None
    values: Mapping[str, Value] = field(default_factory=dict)  # what `Engine.words` is asked about, at a call
    number: int = field(default_factory=count().__next__)  # its own, whereas its id may come again
    counters: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  # of each head, the numbers that a trip began with

    def forget(self, state: State) -> None:
        """Take away what is gone when the function is left."""
        state.values = {}
        state.forget([one for one in self.locals if not one.many])

    def keep(self, state: State, block: str) -> None:
        """Drop the values that nothing uses from a block on."""
        values = state.values
        state.values = {name: values[name] for name in self.graph.live[block] if name in values}
        if SETTINGS in values:
            state.values[SETTINGS] = values[SETTINGS]
        if self.engine.words is not None:
            state.values |= {name: value for name, value in values.items() if name.startswith(_IN_WORDS)}

    def way(self, state: State, block: str) -> Way:
        """Which paths are not joined there: where a call of CUDA has failed, until a trip of a loop ends, and where
        control goes on to different places when a scope has been left.
        """
        if block in self.graph.inside[block]:
            return ()
        onward = (number(state.values.get(name, NOTHING)) for name in self.graph.onward.get(block, ()))
        return (*onward,) if block in self.graph.ends else (state.failing, *onward)

    @property
    def catches(self) -> bool:
        """Whether what is thrown where control is may be caught in this function."""
        if self.at is None or self.at.opcode != "invoke":
            return False
        pad = next(one for one in self.graph.blocks[self.at.targets[1]].instructions if one.opcode == "landingpad")
        return pad.words != ("cleanup",)

    @property
    def is_last(self) -> bool:
        """Whether the process ends behind where control is, whatever happens."""
        start = self.graph.last.get(self.block)
        return start is not None and any(one is self.at for one in self.graph.blocks[self.block].instructions[start:])

    @property
    def around(self) -> tuple[str, ...]:
        """The loops around where control is."""
        return self.graph.inside[self.block]

    def first_deep(self, around: tuple[str, ...]) -> int:
        """The outermost of loops in each other that are in many others; 0 if none is."""
        return next((index for index, head in enumerate(around) if head in self.deep), 0)


def in_words(name: str) -> str:
    """Among an activation's values, the name of how the program came by what it loaded."""
    return _IN_WORDS + name


def ends_the_process(frame: Frame) -> bool:
    """Whether an exception that is thrown where control is finds nobody who catches it.

    It is looked for before anything is unwound (Itanium C++ ABI, "Exception Handling", 1.3), so then nothing is.
    """
    engine = frame.engine
    if engine.recursing or engine.module.head(_HANDLER) is not None:
        return False
    one: Frame | None = frame
    while one is not None:
        if one.catches:
            return False
        if one.caller is None:
            return one.function.name == _MAIN
        one = one.caller
    return False
