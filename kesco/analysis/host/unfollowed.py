"""Code that is not followed: functions of libraries, of other files, or of this one that take too long; assembly.

In: a call of it. Out: how it comes back, and the memory that it may have changed, of which nothing is known then.

1. A function of a library comes to what its arguments lead to, and calls what it finds there. 2. What may belong to the
program may change that now and later, and do what other files can do with all that has escaped. 3. One of this file
that stays on the host (`stays_on_host`) only comes to what its arguments, and the variables that it names, lead to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kesco.analysis.host.engine import STUB, Engine
from kesco.analysis.host.frames import Frame, Outcome
from kesco.analysis.host.memory import State
from kesco.analysis.host.own_classes import OwnClasses
from kesco.analysis.host.staying import stays_on_host
from kesco.analysis.host.values import (
    ANYWHERE,
    NOTHING,
    NUMBER,
    NUMBER_ATOM,
    STATUS_ATOM,
    Object,
    Unknown,
    Value,
    joined,
    objects,
    scalar,
    unknown,
)
from kesco.llvm.values import Assembly, Instruction

_NO_THROW = "nounwind"


@dataclass
class Unfollowed:
    """Such calls of one engine."""

    engine: Engine

    @cached_property
    def own(self) -> OwnClasses:
        """What the library may call of the program."""
        return OwnClasses(self.engine.module)

    def left_out(
        self, frame: Frame, instruction: Instruction, state: State, values: list[Value], name: str, why: str
    ) -> Outcome:
        """A call of a function that is here and not followed: it may do what code does that is not seen."""
        stays = stays_on_host(self.engine, self.own, name)
        self.engine.lose(f"a call of {name}, which is {why}")
        if not stays:
            self.engine.record.wanted[name] = None
        return self.unseen(frame, instruction, state, values, name, stays=stays)

    def library(
        self,
        frame: Frame,
        instruction: Instruction,
        state: State,
        values: list[Value],
        name: str,
        *,
        escaped: bool = False,
    ) -> Outcome:
        """A function of a library: it may change what its arguments lead to, and call functions that it finds there."""
        model, reads = self.engine.models.of(name), self.engine.models.reads(name)
        for one in set().union(*(objects(v) for n, v in enumerate(values) if n in reads)):
            if one.visible and state.is_reached(one):
                state.touch(one, writes=False)
        plain = ("int", "float") if model is not None and model.given else ()  # which no class of the library's follows
        kinds = ["" if n in reads else one.type.kind for n, one in enumerate(instruction.operands)]
        led = [v for v, kind in zip(values, kinds, strict=False) if kind and kind not in plain]
        values = [v for v, kind in zip(values, kinds, strict=False) if kind]
        start = set().union(*map(objects, led))
        if any(type(a) is Unknown for v in led for a in scalar(v)) or escaped or self.own.streams:
            start |= state.escaped
        reached = self._lost(state, start)
        ran(frame, name, reached, state, seen=True)
        state.escaped |= reached if model is None or escaped else frozenset()
        return _ended(frame, instruction, state, values, name)

    def unseen(
        self,
        frame: Frame,
        instruction: Instruction,
        state: State,
        values: list[Value],
        name: str,
        *,
        stays: bool = False,
    ) -> Outcome:
        """A function that may belong to the program: it may also do what other files can do, which has escaped.

        One that `stays` on the host only comes to what its arguments, and the variables that it names, lead to.
        """
        self.engine.left = self.engine.left or not stays
        start = set().union(*(objects(value) for value in values))
        start |= self.engine.variables_in(name) if self.engine.module.has_body(name) else frozenset()
        anywhere = any(type(a) is Unknown for v in values for a in scalar(v)) or _leads_anywhere(state, start)
        if stays and anywhere:
            state.touch(None, writes=False)
            state.touch(None, writes=True)
        if anywhere or not stays:
            start |= state.escaped
        reached = self._lost(state, start)
        state.gone |= reached
        ran(frame, name, reached, state, seen=stays)
        return _ended(frame, instruction, state, values, name)

    def _lost(self, state: State, start: Iterable[Object]) -> set[Object]:
        """What may be changed by code that begins with these objects, which is then lost."""
        engine = self.engine
        reached: set[Object] = set()
        todo = set(start)
        while todo:
            new = state.reached(todo) - reached
            reached |= new
            todo = set()
            for one in new:
                if one.kind == "function" and engine.module.has_body(one.name) and STUB not in one.name:
                    todo |= engine.variables_in(one.name) - reached
        state.lose(one for one in reached if one.kind == "function" or not engine.is_constant(one))
        return reached

    def assembly(self, frame: Frame, instruction: Instruction, state: State, values: list[Value]) -> Outcome:
        """Inline assembly: without memory among its operands it only computes."""
        text = instruction.operands[-1]
        assert isinstance(text, Assembly)
        if "~{memory}" not in text.text and "*" not in text.text and not any(objects(v) for v in values):
            return Outcome(frame.engine.constants.uniform(instruction.type, NUMBER), state)
        self.engine.left = True
        return self.library(frame, instruction, state, values, "inline assembly", escaped=True)


def _leads_anywhere(state: State, start: Iterable[Object]) -> bool:
    """Whether a pointer of which nothing is known may be found from these objects; a number is none."""
    contents = [state.look(one) for one in state.reached(start) if one.kind != "function"]
    held = (a for one in contents if not one.volatile for v in one.held() for a in scalar(v))
    return any(one.volatile or one.lazy for one in contents) or any(
        type(a) is Unknown and a not in (NUMBER_ATOM, STATUS_ATOM) for a in held
    )


def ran(frame: Frame, name: str, reached: set[Object], state: State, *, seen: bool) -> None:
    """Code that is not walked has run: it reads these."""
    for one in reached:
        state.note(one, ANYWHERE, 1, NUMBER, writes=False)
    if frame.engine.watcher is not None:
        frame.engine.watcher.runs(frame, name, reached, state, seen=seen)


def _ended(frame: Frame, instruction: Instruction, state: State, values: list[Value], name: str) -> Outcome:
    """How a call of code that is not followed comes back: with anything, or by an exception."""
    engine = frame.engine
    head = engine.module.head(name)
    promised = (*instruction.promised, *(head.attributes if head is not None else ()))
    thrown = None if _NO_THROW in promised else state.copy()
    model = engine.models.of(name)
    if "noreturn" in promised or (model is not None and model.ends):
        return Outcome(NOTHING, None, thrown)
    for value in values:
        state.escape(value)
    result: Value = NUMBER if instruction.type.kind == "float" else unknown(f"what {name} returns")
    if model is not None and model.returns in ("argument", "first") and values:
        result = scalar(values[0]) if model.returns == "first" else joined(result, scalar(values[0]))
    return Outcome(engine.constants.uniform(instruction.type, scalar(result)), state, thrown)
