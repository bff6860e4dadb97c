"""What a call does: to which function it goes, and what that leaves behind.

In: an activation, a call, a state. Out: an `Outcome`.

1. The address that is called may be several functions; each is tried, and what they leave is joined. One that is not
   known may be any function whose address is known outside, or one that is not here.
2. A launch, and a call of CUDA, is `cuda`'s. 3. What has a model does as the model says. 4. A function with a body is
   walked, in a context of its own. One that calls itself is walked to a fixed point: all its activations are one.
5. What is not followed is `unfollowed`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.analysis.host import cuda
from kesco.analysis.host.copying import copy_bytes
from kesco.analysis.host.engine import REPLACED, STUB, Engine
from kesco.analysis.host.frames import Frame, Outcome
from kesco.analysis.host.joining import join_states
from kesco.analysis.host.memory import State
from kesco.analysis.host.modelled import modelled
from kesco.analysis.host.record import OutOfBudget, Refused
from kesco.analysis.host.steps import evaluated
from kesco.analysis.host.unfollowed import Unfollowed, ran
from kesco.analysis.host.values import (
    EXCEPTION,
    NOTHING,
    Object,
    Pointer,
    Unknown,
    Value,
    joined,
    objects,
    pointer,
    scalar,
    unknown,
)
from kesco.analysis.host.walk import run
from kesco.frontend.api_table import is_cuda_name
from kesco.llvm.values import Assembly, Function, Instruction

_DEEPEST, _LONG = 120, "too long"
_ROUNDS = 30
_NO_THROW = "nounwind"


@dataclass(slots=True)
class _Recursion:
    """A function that is walked to a fixed point: what all its activations begin and end with."""

    arguments: list[Value]
    state: State
    outcome: Outcome = field(default_factory=Outcome)
    dirty: bool = True


@dataclass(slots=True)
class Calls:
    """Calls of one engine; `call` is what `walk.run` is given."""

    engine: Engine
    recursions: dict[str, _Recursion] = field(default_factory=dict)
    unfollowed: Unfollowed = field(init=False)

    def __post_init__(self) -> None:
        self.unfollowed = Unfollowed(self.engine)

    def call(self, frame: Frame, instruction: Instruction, state: State) -> Outcome:
        """Execute a call or an invoke."""
        *operands, called = instruction.operands
        values = [evaluated(frame, one, state) for one in operands]
        if isinstance(called, Assembly):
            return self.unfollowed.assembly(frame, instruction, state, values)
        target = scalar(evaluated(frame, called, state))
        names = sorted({a.object.name for a in target if type(a) is Pointer and a.object.kind == "function"})
        strange = [a for a in target if type(a) is Unknown or (type(a) is Pointer and a.object.kind != "function")]
        if not names and set(strange) == {EXCEPTION} and not self.unfollowed.own.exceptions:
            return Outcome(unknown("what an exception says"), state)  # `what` of one that the library made
        if len(names) == 1 and not strange:
            return self._named(frame, instruction, state, names[0], values)
        outcomes = []
        keep = state.values
        for name in names:
            own = state.copy()
            outcomes.append(self._named(frame, instruction, own, name, list(values)))
        if strange:
            self.engine.lose(f"a call through an unknown pointer in {frame.function.name}")
            state.values = keep
            outcomes.append(self.unfollowed.unseen(frame, instruction, state, values, "a function that is not known"))
        return _either(outcomes)

    def _named(self, frame: Frame, instruction: Instruction, state: State, name: str, values: list[Value]) -> Outcome:
        engine = self.engine
        name = engine.real(name)
        function = engine.module.function(name)
        if STUB in name:
            return self._stub(frame, instruction, state, name, values)
        model = engine.models.of(name)
        closed = name in engine.weak or (
            model is not None and model.closed and not (model.string and self.unfollowed.own.new)
        )
        if function is not None and not closed and not REPLACED.intersection(function.head.words):
            return self._entered(frame, instruction, state, function, values)
        if self._comes_back(instruction, name):
            raise Refused(f"it calls {name}, after which control comes back more than once")
        answer = engine.watcher.answers(name, values, state) if engine.watcher is not None else None
        if answer is not None:
            return Outcome(answer, state)
        state.unwinds = state.unwinds and name != "__cxa_begin_catch"
        outcome = cuda.called(frame, instruction, state, name, values)
        if outcome is not None:
            return outcome
        if "12basic_string" in name and self.unfollowed.own.new:  # it may call that
            return self.unfollowed.unseen(frame, instruction, state, values, name)
        if model is not None and not (model.keeps or model.given):
            ran(frame, name, {o for v in values for o in objects(v)}, state, seen=True)
            return modelled(frame, instruction, state, model, values)
        if is_cuda_name(name) or (model is not None and not model.keeps):
            return self.unfollowed.library(frame, instruction, state, values, name)
        if model is not None or engine.models.knows(name):
            return self.unfollowed.library(frame, instruction, state, values, name, escaped=True)
        engine.lose(f"a call of {name}, which is not seen")
        return self.unfollowed.unseen(frame, instruction, state, values, name)

    def _comes_back(self, instruction: Instruction, name: str) -> bool:
        """Whether control may come out of a call again, later."""
        head = self.engine.module.head(name)
        promised = (*instruction.promised, *(head.attributes if head is not None else ()))
        return "returns_twice" in promised or "setjmp" in name or name.startswith(("llvm.coro.", "llvm.eh.sjlj"))

    def _stub(self, frame: Frame, instruction: Instruction, state: State, name: str, values: list[Value]) -> Outcome:
        """A launch: the stub puts the arguments into places, and an array of these into the runtime's hands."""
        engine = self.engine
        launch = cuda.begun(frame, instruction, state)
        function = engine.module.function(name)
        if function is None:
            cuda.launched_unseen(frame, state, launch, name, values)
            return Outcome(NOTHING, state)
        around, engine.launch = engine.launch, launch
        try:
            return self._entered(frame, instruction, state, function, values)
        finally:
            engine.launch = around

    # ---- functions with a body

    def _entered(
        self, frame: Frame, instruction: Instruction, state: State, function: Function, values: list[Value]
    ) -> Outcome:
        engine, name = self.engine, function.name
        if not function.is_read:
            return self.unfollowed.left_out(frame, instruction, state, values, name, "not understood")
        if len(engine.stack) >= _DEEPEST:
            return self.unfollowed.left_out(frame, instruction, state, values, name, "too deep")
        short, aside = engine.is_short(function), not engine.is_bounded and not engine.leads_to_cuda(name)
        late = engine.steps > engine.enough and not short and STUB not in name
        if late or (aside and name in engine.long):
            return self.unfollowed.left_out(
                frame, instruction, state, values, name, "called after too much" if late else _LONG
            )
        if aside and not short:
            before = state.copy()
            try:
                with engine.bounded():
                    return self._walked(frame, instruction, state, function, values)
            except OutOfBudget:
                if engine.steps > engine.bound:
                    raise
                engine.long.add(name)
                return self.unfollowed.left_out(frame, instruction, before, values, name, _LONG)
        return self._walked(frame, instruction, state, function, values)

    def _walked(
        self, frame: Frame, instruction: Instruction, state: State, function: Function, values: list[Value]
    ) -> Outcome:
        engine, name = self.engine, function.name
        keep = state.values
        context = engine.context(frame.context, instruction, frame.function.name)
        values, copies = self._by_value(frame, instruction, state, function, values, context)
        watcher, orders = engine.watcher, engine.orders
        around, orders.around = orders.around, orders.of(frame)
        entered = watcher.enters(frame, instruction, function, context, state) if watcher is not None else None
        try:
            if name in engine.stack or name in self.recursions:
                outcome = self._recursive(function, values, state, context)
            else:
                engine.stack.append(name)
                try:
                    outcome = run(engine, function, values, state, context, self.call)
                finally:
                    engine.stack.pop()
        except OutOfBudget:
            if watcher is not None:
                watcher.leaves(entered, None, None)
            raise
        finally:
            orders.around = around
        if outcome.state is None and outcome.thrown is not None:
            orders.stops(instruction)
        if watcher is not None:
            watcher.leaves(entered, outcome.state, outcome.thrown)
        for left in (outcome.state, outcome.thrown):
            if left is not None and copies:
                left.forget(copies)
        if outcome.state is not None:
            outcome.state.values = dict(keep) if outcome.thrown is not None else keep
        if outcome.thrown is not None:
            outcome.thrown.values = keep
        return outcome

    def _by_value(
        self,
        frame: Frame,
        instruction: Instruction,
        state: State,
        function: Function,
        values: list[Value],
        context: int,
    ) -> tuple[list[Value], list[Object]]:
        """The arguments, those that are passed by value copied; what goes beyond the parameters may be anywhere."""
        found, copies = list(values), list[Object]()
        for index, parameter in enumerate(function.parameters[: len(values)]):
            byval = parameter.promised("byval")
            if byval is not None and byval.type is not None:
                size = self.engine.layouts.size(byval.type)
                own = self.engine.local(parameter.value.name, parameter, instruction, context, size, False)
                state.make(own)
                copy_bytes(state, pointer(own), values[index], size, members=True)
                found[index] = pointer(own)
                copies += [] if own.many else [own]
        for value in values[len(function.parameters) :]:
            state.escape(value)
        return found, copies

    def _recursive(self, function: Function, values: list[Value], state: State, context: int) -> Outcome:
        """A call of a function that is being walked already; all calls in it are of this context, too."""
        engine = self.engine
        known = self.recursions.get(function.name)
        if known is not None:  # one that its own fixed point meets
            engine.orders.lose()
            new = [joined(a, b, widen=True) for a, b in zip(known.arguments, values, strict=False)]
            known.state, changed = join_states(known.state, state, widen=True)
            if changed or new != known.arguments:
                known.dirty = True
            known.arguments = new
            return _copied(known.outcome)
        known = self.recursions[function.name] = _Recursion(values, state)
        engine.fixed += 1
        engine.recursing += 1
        engine.stack.append(function.name)
        try:
            for _ in range(_ROUNDS):
                if not known.dirty:
                    break
                known.dirty = False
                outcome = run(engine, function, known.arguments, known.state.copy(), context, self.call)
                known.dirty |= _grow(known.outcome, outcome)
            else:
                engine.lose(f"{function.name}, which calls itself, and whose results do not settle")
                if known.outcome.state is not None:
                    known.outcome.value = unknown("what a function that calls itself returns")
        finally:
            engine.stack.pop()
            engine.fixed -= 1
            engine.recursing -= 1
            del self.recursions[function.name]
        return _copied(known.outcome)


def _either(outcomes: list[Outcome]) -> Outcome:
    """What is left by one of several."""
    result = Outcome()
    for one in outcomes:
        _grow(result, one)
    return result


def _grow(known: Outcome, more: Outcome) -> bool:
    """Join an outcome into another; whether that is more than before. The second is used up."""
    changed = False
    if more.state is not None:
        if known.state is None:
            known.state, known.value, changed = more.state, more.value, True
        else:
            value = joined(known.value, more.value)
            known.state, grown = join_states(known.state, more.state)
            changed = grown or value != known.value
            known.value = value
    if more.thrown is not None:
        if known.thrown is None:
            known.thrown, changed = more.thrown, True
        else:
            known.thrown, grown = join_states(known.thrown, more.thrown)
            changed = changed or grown
    return changed


def _copied(one: Outcome) -> Outcome:
    state = None if one.state is None else one.state.copy()
    return Outcome(one.value, state, None if one.thrown is None else one.thrown.copy())
