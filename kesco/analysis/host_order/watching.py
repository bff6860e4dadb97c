"""The interpreter's watcher that makes steps: whatever has to do with the device, the host's accesses, loops, calls.

In: what the interpreter tells. Out: an `Execution`. What a call of CUDA does is in `calls`; this is the rest: launches,
loops, the host's reads and writes, and code that is not followed.

What follows a call of CUDA that failed is no part of the execution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kesco.analysis.host.arguments import signature
from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.engine import PUSH, STUB, Engine
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import ANYWHERE, NOTHING, Object, Offset, Value, number
from kesco.analysis.host_order.answers import answered
from kesco.analysis.host_order.calls import Calls
from kesco.analysis.host_order.launching import argument_of, launched_with
from kesco.analysis.host_order.pointing import Pointing, is_same_file, span_of
from kesco.analysis.host_order.questions import Questions
from kesco.analysis.host_order.steps import Draft, Key, Steps
from kesco.analysis.host_order.words import Words
from kesco.analysis.host_regions.kernels import Kernels, launch_values_of
from kesco.frontend.api_table import is_cuda_name
from kesco.ir.access import UNKNOWN, UNSEEN_HOST, AccessMode
from kesco.ir.effects import KernelEffects
from kesco.ir.execution import Argument, Execution, StepKind
from kesco.llvm.names import kernel_of
from kesco.llvm.values import Function, Instruction, callee
from kesco.source import Span

_THREADS = (
    "pthread_create", "thrd_create", "__kmpc_fork_call", "__kmpc_fork_teams", "__kmpc_omp_task",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
)  # fmt: skip
_WRAPPERS = ("/cuda_runtime.h", "/cuda_runtime_api.h")


@dataclass(slots=True)
class Watching:
    """See the module's docstring."""

    engine: Engine
    path: str
    effects: Mapping[str, KernelEffects]
    deciding: Mapping[str, frozenset[int] | None]
    pointing: Pointing = field(init=False)
    steps: Steps = field(init=False)
    questions: Questions = field(init=False)
    words: Words = field(init=False)
    refused: str = ""
    _calls: Calls = field(init=False)

    def __post_init__(self) -> None:
        self.pointing = Pointing(self.engine, self.path)
        self.steps = Steps(self.engine)
        self.words = Words(self.engine)
        self.questions = Questions(self.engine, self.steps, self.words)
        self._calls = Calls(self)

    def told(self, refused: str) -> Execution:
        """All that was found."""
        drafts = answered(self.steps.drafts)
        leaving = tuple((loop, tuple(sorted(asked))) for loop, asked in sorted(self.questions.leaving.items()))
        return Execution(self.path, drafts, refused or self.refused, leaving, tuple(self.addresses().items()))

    def addresses(self) -> dict[str, int]:
        """Where each buffer begins, for launches: far from each other, and from all that a device makes up."""
        return {buffer.key: (one.number + 1) << 36 for one, buffer in self.pointing.known().items()}

    def refuse(self, why: str) -> None:
        """The execution is not known."""
        self.refused = self.refused or why

    # ---- steps

    def boundary(self, kind: StepKind, state: State) -> None:
        """Where the program begins or ends."""
        self.steps.add((kind,), kind, kind.value, Span(self.path, 0, 1, 1, 1), (), state)

    def step(self, kind: StepKind, name: str, state: State) -> Draft | None:
        """The step of what is executed; None where a call of CUDA has failed before."""
        if state.failing:
            return None
        if self.engine.recursing:
            self.refuse("a function that calls itself has to do with the device")
        if self._calls.graphs.open is not None:
            return self._calls.graphs.captured(kind, name)
        key = (kind, name, *self.steps.where())
        draft = self.steps.add(key, kind, name, self.span(), self.steps.loops(), state)
        draft.conditions |= dict.fromkeys(self.questions.around())
        draft.seen += 1
        return draft

    def span(self) -> Span:
        """Where control is: in the file that is compiled, if it is there at all."""
        places = []
        for frame in self.steps.activations():
            place = self.engine.module.place(frame.at.place) if frame.at is not None else None
            if place is not None and not place.file.endswith(_WRAPPERS) and STUB not in frame.function.name:
                places.append(place)
        own = next((one for one in places if is_same_file(one.file, self.path)), None)
        found = own or next(iter(places), None)
        return span_of(found) if found is not None else Span(self.path, 0, 1, 1, 1)

    # ---- what the interpreter tells

    def enters(self, frame: Frame, call: Instruction, function: Function, context: int, state: State) -> object:
        """A function is called: nothing happens by that."""
        return None

    def leaves(self, entered: object, left: State | None, thrown: State | None) -> None:
        """It came back."""

    def thrown_out(self, state: State) -> None:
        """An exception leaves a function: nothing happens by that, either."""

    def unwinds(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """An exception is on its way: nothing happens by that."""

    def turns(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """Control comes to the end of a block."""
        asked = self.questions.comes_to(frame, instruction, state)
        if asked:
            key = (StepKind.QUESTION, *self.steps.where())
            self.steps.add(key, StepKind.QUESTION, asked, self.span(), self.steps.loops(), state)

    def takes(self, frame: Frame, target: str, state: State) -> None:
        """Control goes on with one of several blocks."""
        if state.failing or not self.engine.leads_to_cuda(frame.function.name):
            return
        found = self.questions.answer(frame, target)
        if found is not None:
            scope, asked, which = found
            key = (StepKind.ANSWER, target, *self.steps.where())
            draft = self.steps.add(key, StepKind.ANSWER, asked, self.span(), self.steps.loops(), state)
            draft.scope, draft.answer, draft.asked = scope, which, id(frame.at)

    def begins(self, frame: Frame, head: str, state: State) -> None:
        """A trip of a loop begins, which may be any but the first."""
        if head not in frame.fixed or state.failing or not self._may_act(head, frame):
            return
        loops = self.steps.loops(head)
        key: Key = (StepKind.LOOP, loops[-1] if loops else head)
        draft = self.steps.add(key, StepKind.LOOP, "loop", self.span(), loops, state)
        draft.scope = self.questions.scope(frame, head)

    def _may_act(self, head: str, frame: Frame) -> bool:
        """Whether a loop is worth a mark: it does more than count, and has to do with CUDA."""
        return head in frame.graph.paying and self.engine.leads_to_cuda(frame.function.name)

    def makes(self, one: Object) -> None:
        """Memory, a stream or an event is made."""
        self._calls.makes(one)

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched."""
        draft = self.step(StepKind.LAUNCH, self.display(stub), state)
        if draft is None:
            return
        settings = dict(launch.settings)
        draft.goes_to(*self.pointing.streams(settings.get("stream", NOTHING)))
        outer = next((f for f in self.steps.activations() if f.at is launch.instruction), None)
        said = [self._dimension(name, settings, outer) for name in ("grid", "block", "shared")]
        operands = enumerate(launch.instruction.operands[:-1]) if outer is not None else ()
        words = {index: self.words.of(outer, one) for index, one in operands if outer is not None}
        self.describe(draft, stub, settings, found, numbers, said, words)

    def display(self, stub: str) -> str:
        """What a kernel is called."""
        effects = self.effects.get(kernel_of(stub)) if stub else None
        return effects.display if effects is not None else kernel_of(stub) or "a kernel"

    def describe(
        self,
        draft: Draft,
        stub: str,
        settings: Mapping[str, Value],
        found: list[tuple[str, Value]],
        numbers: Mapping[int, int],
        said: list[str],
        words: Mapping[int, str],
    ) -> None:
        """What a launch touches and is given: `said` are its dimensions in words, `words` its arguments."""
        kernel = kernel_of(stub)
        effects = self.effects.get(kernel) if stub else None
        kernels = Kernels(self.effects, self.pointing)
        touched, note = kernels.of(effects, None, found, launch_values_of(dict(numbers), dict(settings)))
        for (buffer, why, part), mode in touched.items():
            draft.touch(buffer, why, mode, part)
        draft.note = draft.note or note
        for name, value in found:
            draft.pointed.setdefault(name, set()).update(b.key for b, _ in self.pointing.parts(value))
        types = signature(self.engine.module, stub)
        arguments = [Argument(words=kernel), *(Argument(words=one) for one in said)]
        given = dict(found)
        for index in range(len(types)):
            inside = [(n, v) for n, v in found if n.partition(".")[0] == str(index)]
            text = str(numbers[index]) if index in numbers else words.get(index, "")
            arguments += argument_of(self.pointing, inside, text)
        made = launched_with(
            self.engine, self.pointing, kernel, types, given, numbers, settings, self.deciding.get(kernel)
        )
        draft.launched = made if draft.seen == 1 or draft.launched == made else None
        draft.given(arguments)

    def _dimension(self, name: str, settings: Mapping[str, Value], outer: Frame | None) -> str:
        """A dimension of a launch, in words."""
        value = settings.get(name, NOTHING)
        parts = value if isinstance(value, tuple) else (value,)
        known = [number(one) for one in parts]
        if all(one is not None for one in known):
            return "×".join(map(str, known))
        pushed = number(settings.get("<<<", NOTHING))
        if outer is None or pushed is None:
            return ""
        every = (one for block in outer.function.blocks for one in block.instructions)
        pushes = [one for one in every if callee(one) == PUSH and one.place == pushed]
        if len(pushes) != 1:
            return ""
        operands = {"grid": pushes[0].operands[:2], "block": pushes[0].operands[2:4], "shared": pushes[0].operands[4:5]}
        words = [self.words.of(outer, one) for one in operands[name]]
        if len(words) > 1 and known[-1] is not None:
            words[-1] = str(known[-1])
        return "×".join(words) if all(words) else ""

    def calls(self, frame: Frame, call: Instruction, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""
        self._calls.calls(name, values, state)

    def answers(self, name: str, values: list[Value], state: State) -> Value | None:
        """Nothing is known here that others do not know."""
        return None

    # ---- the host

    def runs(self, frame: Frame, name: str, reached: Iterable[Object], state: State, *, seen: bool) -> None:
        """Code that is not followed runs and may reach these."""
        if name in ("__cxa_throw", "__cxa_rethrow") or is_cuda_name(name):  # `calls` was told of CUDA's
            return
        every = list(reached)
        called = [o.name for o in every if o.kind == "function" and self.engine.module.has_body(o.name)]
        acting = [one for one in called if self.engine.leads_to_cuda(one)]
        if acting and name in _THREADS:
            self.refuse("it starts host threads that have to do with the device")
        inner = self.engine.module.has_body(name) and not self.engine.leads_to_cuda(name)  # it took too long
        if acting or not (seen or inner):
            draft = self.step(StepKind.OPAQUE, name, state)
            if draft is not None:
                draft.astray = True
                draft.touch(UNKNOWN, "code that is not seen", AccessMode.READ_WRITE)
            return
        model = self.engine.models.of(name)
        if model is not None and (model.fills or model.copies):
            return  # what that reads and writes was told one by one
        for one in every:
            if one.visible and state.is_reached(one):
                self.touches(state, one, writes=False)
                self.touches(state, one, writes=True)

    def touches(
        self, state: State, one: Object | None, where: tuple[Offset, int | None] = (ANYWHERE, None), *, writes: bool
    ) -> None:
        """The host reads or writes what the device may reach; None: it is not known what."""
        if state.failing:
            return
        if one is None:  # it leads to what has escaped, of which counts what the device reaches
            known = state.reached(state.escaped)
            for each in known:
                if each.visible and each.kind not in ("entry", "outside") and state.is_reached(each):
                    self._host(state, each, writes=writes, sure=False)
            return
        self._host(state, one, writes=writes, sure=not one.many)

    def _host(self, state: State, one: Object, *, writes: bool, sure: bool) -> None:
        loops = self.steps.loops()
        last = self.steps.drafts[next(iter(state.frontier))] if len(state.frontier) == 1 else None
        if last is not None and last.kind is StepKind.HOST and last.loops == loops:
            draft = last
        else:
            key = (StepKind.HOST, *self.steps.where())
            draft = self.steps.add(key, StepKind.HOST, "host", self.span(), loops, state)
            draft.conditions |= dict.fromkeys(self.questions.around())
        buffer = self.pointing.buffer(one)
        draft.touch(buffer, "the host", AccessMode.WRITE if writes else AccessMode.READ)
        found = draft.pointed.setdefault(buffer.key, set())
        found.update((buffer.key,) if sure else (buffer.key, UNSEEN_HOST.key))
