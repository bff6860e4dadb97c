"""What happens on the paths of the host → the sites of each function of the text, and the order between them.

In: what the interpreter tells, in the order in which it walks. Out: an `Activation` for each function of the text and
each way that led there, with its `RegionBuilder`. It is the only part that knows which function of the text control is
in; what a launch or a call touches is worked out in `touching`.

1. A function of the text that is called has sites of its own; in its caller the call is one join, if the device is
touched. 2. All other code (lambdas, headers, the library) is a part of the function of the text that it runs in: what
it does to the device is a join at the call that led there. 3. Sites are asked for by what they are, so that walking a
loop again adds edges and accesses but no sites. 4. What has no place in the text keeps its function serial.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kesco.analysis.host.engine import STUB, Engine
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import Object
from kesco.analysis.host_regions.entries import MARK
from kesco.analysis.host_regions.texts import Texts
from kesco.analysis.region import Draft, RegionBuilder
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, UNSEEN_HOST, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Iteration, Role, SiteKind
from kesco.llvm.values import Function, Instruction
from kesco.source import Span

_BOTH = AccessMode.READ_WRITE
_ENDS = (Role.ENTRY, Role.EXIT, Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC)  # all work before has been joined
_WRAPPERS = ("/cuda_runtime.h",)
_FIRST = re.compile(r"\(\s*(?:\([^()]*\)\s*)?&\s*([\w.>\[\]-]+)\s*,")  # what an allocation is put into


@dataclass(slots=True)
class Activation:
    """One function of the text, in one way that led there."""

    function: ir.Function
    root: str
    generic: bool
    builder: RegionBuilder
    touches_device: bool = False
    foreign: bool = False
    device_changed: bool = False
    throws: bool = False
    serial: str = ""
    unseen_in: Span | None = None

    def stay_serial(self, why: str, span: Span) -> None:
        """The function is left as it is."""
        self.serial = self.serial or f"{why} (line {span.line})"


@dataclass(slots=True)
class _Level:
    """A function that was entered: its activation, and the call in the text of its function that led to it.

    `call` is None as long as control is in that text itself.
    """

    activation: Activation
    function: str
    call: Instruction | None = None
    callee: str = ""
    before: frozenset[int] = frozenset()
    is_text: bool = False


@dataclass(slots=True)
class Watching:
    """The sites of all activations; what `Engine.watcher` needs beside `touching`."""

    engine: Engine
    texts: Texts
    streams: bool
    looks: bool
    buffers: dict[Object, Buffer] = field(default_factory=dict)
    activations: dict[str, dict[tuple[str, int], Activation]] = field(default_factory=dict)
    levels: list[_Level] = field(default_factory=list)
    file_wide: str = ""  # why no function of the file can be followed
    generic: bool = False  # whether the path began at the function itself, with what came in

    # ---- functions

    def begin(self, function: Function, state: State, *, generic: bool) -> None:
        """A path begins at a function."""
        self.generic = generic
        self.levels = []
        text = self.texts.function(function)
        if text is None:
            nowhere = ir.Function("", function.name, (), ir.Block(self.texts.span_at(0), ()),
                                  self.texts.span_at(0), False, False)  # fmt: skip
            activation = Activation(nowhere, function.name, generic, RegionBuilder(function.name, nowhere.span))
            self.levels.append(_Level(activation, function.name))
        else:
            self.levels.append(_Level(self._activation(text, function.name, 0, generic), function.name, is_text=True))
        state.frontier = frozenset((0,))

    def _activation(self, text: ir.Function, function: str, context: int, generic: bool) -> Activation:
        known = self.activations.setdefault(text.key, {})
        key = (self.engine.record.root if not generic else f"generic {function}", context)
        if key not in known:
            known[key] = Activation(text, self.engine.record.root, generic, RegionBuilder(text.name, text.span))
        return known[key]

    @property
    def now(self) -> _Level:
        """The innermost function."""
        return self.levels[-1]

    def enters(self, call: Instruction, function: Function, context: int, state: State) -> object:
        """A function is called."""
        level = self.now
        text = self.texts.function(function)
        outer = level.call if level.call is not None else call
        name = level.callee or function.name
        if level.call is None and (STUB in function.name or self._wraps(function)):
            self.levels.append(_Level(level.activation, function.name, None, "", state.frontier, False))
            # the wrapper's own calls stand where it is called
            self.levels[-1].call, self.levels[-1].callee = call, "="
            return self.now
        if text is None:
            self.levels.append(_Level(level.activation, function.name, outer, name, state.frontier))
            return self.now
        again = function.name in self.engine.stack
        activation = self._activation(text, function.name, -1 if again else context, False)
        self.levels.append(_Level(activation, function.name, None, "", state.frontier, True))
        if again and self.launches_in(function.name):
            activation.touches_device = True
        state.frontier = frozenset((0,))
        return self.now

    def _wraps(self, function: Function) -> bool:
        """Whether a function of CUDA's header only calls its namesake in C."""
        number = next((n for name, n in function.head.metadata if name == "dbg"), -1)
        place = self.engine.module.place(number)
        return place is not None and place.file.endswith(_WRAPPERS)

    def launches_in(self, name: str) -> bool:
        """Whether a function, or one that it mentions, has to do with the device."""
        return any(STUB in one or one.startswith("cuda") for one in self.engine.named_in(name))

    def leaves(self, entered: object, left: State | None, thrown: State | None) -> None:
        """A function came back."""
        assert isinstance(entered, _Level)
        while self.levels.pop() is not entered:
            pass
        if not entered.is_text:
            return
        inner, level = entered.activation, self.now
        self.unwinds(inner, thrown)
        frontier = entered.before
        if inner.touches_device:
            state = left or thrown
            if state is not None:
                state.frontier = frontier
                self._call_site(inner, entered.function, state)
                frontier = state.frontier
        elif inner.throws and thrown is not None and not inner.generic:
            state = left or thrown
            state.frontier = frontier
            self.join(state, entered.function, foreign=False)
            frontier = state.frontier
        if not inner.touches_device:
            level.activation.throws = level.activation.throws or inner.throws
        for one in (left, thrown):
            if one is not None:
                one.frontier = frontier

    def unwinds(self, activation: Activation, thrown: State | None) -> None:
        """An exception leaves a function: who catches it goes on with the default stream, which waits for nothing."""
        drafts = activation.builder.drafts
        open_ends = thrown.frontier if thrown is not None and activation.function.name != "main" else frozenset()
        left = next((drafts[n] for n in sorted(open_ends) if drafts[n].role not in _ENDS), None)
        if left is not None:
            activation.stay_serial("an exception may leave it behind a launch", left.span)

    def _call_site(self, inner: Activation, name: str, state: State) -> None:
        level = self.now
        activation = level.activation
        touched = activation.touches_device
        site = self.join(state, name, foreign=inner.foreign or (inner.device_changed and touched))
        shared: dict[Buffer, AccessMode] = {}
        for draft in inner.builder.drafts:
            for (buffer, _, _), mode in draft.accesses.items():
                shared[buffer] = shared.get(buffer, AccessMode.NONE) | mode
        if site is not None:
            for buffer, mode in shared.items():
                site.touch(buffer, "in the function called", mode)
        activation.device_changed = activation.device_changed or inner.device_changed
        activation.throws = activation.throws or inner.throws

    # ---- where control is

    def where(self) -> tuple[Activation, Instruction | None, str, bool]:
        """The activation, the instruction of its text, what is called there, and whether it is what happens itself."""
        level = self.now
        frame = self.engine.frame
        if level.call is None:
            return level.activation, frame.at if frame is not None else None, "", True
        return level.activation, level.call, "" if level.callee == "=" else level.callee, level.callee == "="

    def operation(self, activation: Activation, at: Instruction | None, callee: str) -> int:
        """The number in the text of what is executed, or -1."""
        if at is None:
            return -1
        found = self.texts.operation(activation.function, at.place, callee)
        return found if found >= 0 else self.texts.at_end(activation.function, at.place)

    def span(self, activation: Activation, at: Instruction | None) -> Span:
        """Where that stands, for messages."""
        offset = self.texts.offset(at.place) if at is not None else -1
        return self.texts.span_at(offset) if offset >= 0 else activation.function.span

    # ---- sites

    def site(
        self, state: State, name: str, callee: str, kind: SiteKind, role: Role, turns: tuple[Iteration, ...] = ()
    ) -> Draft | None:
        """The site of what is executed; None where it has no place in the text."""
        activation, at, through, own = self.where()
        operation = self.operation(activation, at, through or callee)
        span = self.span(activation, at)
        if operation < 0:
            activation.touches_device = True
            activation.stay_serial(f"{name} has no place of its own in the text", span)
            return None
        if not own:
            kind, role = SiteKind.CALL, Role.JOIN
        known = self.texts.program.operations[operation]
        if role is Role.MOVABLE and (known.stuck or known.stream_text is None):
            role = Role.LEGACY
        draft, state.frontier = activation.builder.add(
            (operation, role.value, turns), name, kind, role, known.span if own else span, state.frontier
        )
        if role is Role.LEGACY and known.stuck:
            draft.note = known.stuck
        activation.touches_device = True
        return draft

    def join(self, state: State, callee: str, *, foreign: bool) -> Draft | None:
        """Pending work is joined before what is executed."""
        name = callee
        draft = self.site(state, name, callee, SiteKind.CALL, Role.JOIN)
        activation = self.now.activation
        if draft is not None:
            draft.foreign = draft.foreign or foreign
            node = next((n for n in self.texts.nodes(activation.function) if n.operation == draft.operation), None)
            draft.name = node.name.rpartition("::")[2] if node is not None and not node.name.startswith("!") else name
        activation.foreign = activation.foreign or foreign
        return draft

    def turns(self, instruction: Instruction, state: State) -> None:
        """Control may leave the function here: at its ``return``, or where its text ends."""
        level = self.now
        if not level.is_text or level.call is not None or instruction.opcode not in ("br", "ret", "unreachable"):
            return
        activation = level.activation
        operation, how = self.texts.leave(activation.function, instruction.place)
        if operation < 0 and instruction.opcode != "ret":
            return
        drafts = activation.builder.drafts
        if operation < 0 and all(drafts[n].role is Role.EXIT for n in state.frontier):
            return
        span = self.span(activation, instruction)
        if operation < 0:
            operation, how = self.texts.last(activation.function)
        if operation < 0:
            end = activation.function.span
            how, span = "end", Span(end.path, max(end.start, end.end - 1), end.end, end.line, end.column)
        _, state.frontier = activation.builder.add(
            (operation, how, ()), how, SiteKind.BOUNDARY, Role.EXIT, span, state.frontier
        )

    def throws(self, state: State) -> None:
        """An exception is thrown in the text."""
        activation, at, _, _ = self.where()
        activation.throws = True
        operation, _ = self.texts.leave(activation.function, at.place if at is not None else -1)
        span = self.span(activation, at)
        if operation < 0:
            activation.stay_serial("an exception has no place of its own in the text", span)
        _, state.frontier = activation.builder.add(
            (operation, "throw", ()), "throw", SiteKind.BOUNDARY, Role.EXIT, span, state.frontier
        )

    # ---- the host

    def touches(self, state: State, one: Object | None, *, writes: bool) -> None:
        """The host reads or writes what the device may reach; None: it is not known what."""
        if not self.levels:
            return
        activation, at, _, _ = self.where()
        if self.streams and self.texts.is_of_kesco(self.texts.offset(at.place) if at is not None else -1):
            return  # pointers are compared: the serial program does not look there
        mode = AccessMode.WRITE if writes else AccessMode.READ
        if one is None:
            for number in state.frontier:
                activation.builder.drafts[number].outside = True
            return
        self._host(state, activation, at).touch(self.seen_by_host(self.buffer(one)), "host", mode)

    def looked(self, state: State) -> None:
        """What the host does may show how far the device is."""
        activation, at, _, _ = self.where()
        self._host(state, activation, at).looks = True

    def _host(self, state: State, activation: Activation, at: Instruction | None) -> Draft:
        offset = self.texts.offset(at.place) if at is not None else -1
        span = self.texts.statement(activation.function, offset)
        name = "unwinding" if state.unwinds else "host"  # destructors run in both ways
        key = (-2 - span.start, name, ())
        builder = activation.builder
        last = builder.drafts[next(iter(state.frontier))] if len(state.frontier) == 1 else None
        if last is not None and (last.operation, last.name) == key[:2]:
            return last
        draft, state.frontier = builder.add(key, name, SiteKind.HOST_USE, Role.HOST, span, state.frontier)
        return draft

    def seen_by_host(self, one: Buffer) -> Buffer:
        """What that is to the host, which cannot reach all memory."""
        return UNSEEN_HOST if one.kind is BufferKind.UNKNOWN else one

    def buffer(self, one: Object) -> Buffer:
        """The unit of aliasing that an object belongs to."""
        if one not in self.buffers:
            self.buffers[one] = self._buffer(one)
        return self.buffers[one]

    def _buffer(self, one: Object) -> Buffer:
        if one.kind in ("outside", "function"):
            return UNKNOWN
        if one.kind == "symbol":
            return Buffer(one.name, one.name, BufferKind.SYMBOL, apart=not self._has_managed())
        kind = _KINDS.get(one.kind, BufferKind.HOST)
        name = one.name
        if kind is not BufferKind.ENTRY and one.place >= 0:
            places = (one.place, *(call.place for call, _ in self.engine.chain(one.context)))
            name = (
                next((self._called(place, one.name) for place in places if self.texts.offset(place) >= 0), "") or name
            )
        if kind is BufferKind.ENTRY:
            function, _, name = name.partition(MARK)
            return Buffer(f"entry:{function}:{name}", name, kind)
        size = one.size if one.size >= 0 else None
        return Buffer(f"{one.kind}:{one.number}", name, kind, None, size)

    def _has_managed(self) -> bool:
        return any(name == "managed" for name, _ in self.texts.program.constructs)

    def _called(self, place: int, callee: str) -> str:
        """The variable that an allocation at a place is put into, as the text says it."""
        offset = self.texts.offset(place)
        for function in self.texts.program.functions:
            if not (function.here and function.span.start <= offset < function.span.end):
                continue
            operation = self.texts.operation(function, place, callee)
            if operation >= 0:
                span = self.texts.program.operations[operation].span
                written = self.texts.program.text[span.start : span.end].decode("utf-8", "replace")
                found = _FIRST.search(written)
                return found[1].strip() if found is not None else ""
        return ""

    def unseen(self, state: State, name: str, reached: Iterable[Object]) -> None:
        """Code that is not seen runs: it may do anything to all that it knows."""
        draft = self.join(state, name, foreign=True)
        if draft is not None:
            draft.touch(UNKNOWN, "code that is not seen", _BOTH)


_KINDS = {
    "device": BufferKind.DEVICE, "managed": BufferKind.MANAGED, "pinned": BufferKind.PINNED, "entry": BufferKind.ENTRY,
}  # fmt: skip
