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

from collections.abc import Iterable
from dataclasses import dataclass, field

from kesco.analysis.following import why_not_followed
from kesco.analysis.host.engine import STUB, Engine
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import Object
from kesco.analysis.host_regions.activations import Activation, Level, Trips
from kesco.analysis.host_regions.buffers import Buffers
from kesco.analysis.host_regions.callees import call_site, used_inside
from kesco.analysis.host_regions.counting import Counting
from kesco.analysis.host_regions.leaving import leaves_by, returns_at, waits
from kesco.analysis.host_regions.texts import Texts
from kesco.analysis.region import Draft, RegionBuilder
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, UNSEEN_HOST, AccessMode, Buffer, BufferKind
from kesco.ir.failures import ends_the_process
from kesco.ir.flow import CURRENT, EXCEPTION, Handle, Iteration, Role, SiteKind
from kesco.ir.poly import ByteRange
from kesco.llvm.names import display_name
from kesco.llvm.values import Function, Instruction
from kesco.source import Span

_VOLATILE = frozenset(("volatile", "atomic"))
_BOTH = AccessMode.READ_WRITE


@dataclass(slots=True)
class Watching:
    """The sites of all activations; what `Engine.watcher` needs beside `touching`."""

    engine: Engine
    texts: Texts
    streams: bool
    looks: bool
    counting: Counting
    buffers: Buffers
    activations: dict[str, dict[tuple[str, int, Trips], Activation]] = field(default_factory=dict)
    levels: list[Level] = field(default_factory=list)
    watched: set[Buffer] = field(default_factory=set)  # the host names it as volatile, or atomic
    volatile: set[int] = field(default_factory=set)  # operations that are given a pointer to volatile memory
    told: set[Buffer] = field(default_factory=set)  # what code that is not seen may know
    shares: bool = False  # whether memory was made that the device reaches, too
    file_wide: str = ""  # why no function of the file can be followed
    generic: bool = False  # whether the path began at the function itself, with what came in
    assumed: list[Activation] = field(default_factory=list)  # which follow by what was seen when they call themselves

    # ---- functions

    def begin(self, function: Function, state: State, *, generic: bool) -> None:
        """A path begins at a function."""
        self.generic, self.levels = generic, []
        text = self.texts.function(function)
        if text is None:
            span = self.texts.span_at(0)
            nowhere = ir.Function("", function.name, (), ir.Block(span, ()), span, False, False)
            activation = Activation(nowhere, function.name, generic, RegionBuilder(function.name, nowhere.span))
            self.levels.append(Level(activation, function.name))
        else:
            self.levels.append(Level(self._activation(text, function.name, 0, generic), function.name, is_text=True))
        state.frontier = frozenset((0,))

    def _activation(
        self, text: ir.Function, function: str, context: int, generic: bool, trips: Trips = ()
    ) -> Activation:
        known = self.activations.setdefault(text.key, {})
        key = (f"generic {function}" if generic else self.engine.record.root, context, trips)
        if key not in known:
            known[key] = Activation(text, self.engine.record.root, generic, RegionBuilder(text.name, text.span))
        return known[key]

    def _outermost(self, text: ir.Function, function: Function) -> int:
        """The context of all activations within one that calls itself: below 0, another one for each that began it."""
        first = next((one.activation for one in self.levels if one.function == function.name), None)
        known = self.activations.get(text.key, {}).items()
        return -1 - next((context for (_, context, _), one in known if one is first and context >= 0), 0)

    @property
    def now(self) -> Level:
        """The innermost function."""
        return self.levels[-1]

    def enters(self, call: Instruction, function: Function, context: int, state: State) -> Level:
        """A function is called."""
        level = self.now
        text = self.texts.function(function)
        outer = level.call if level.call is not None else call
        name = level.callee or function.name
        if level.call is None and (STUB in function.name or self.texts.wraps(function)):
            self.levels.append(Level(level.activation, function.name, None, "", state.frontier, False, level.trips))
            # the wrapper's own calls stand where it is called
            self.levels[-1].call, self.levels[-1].callee = call, "="
            return self.now
        if text is None:
            self.levels.append(Level(level.activation, function.name, outer, name, state.frontier, False, level.trips))
            return self.now
        again = function.name in self.engine.stack
        trips = () if again else (*level.trips, *((one.loop, one.index) for one in self.iterations()))
        context = self._outermost(text, function) if again else context
        activation = self._activation(text, function.name, context, False, trips)
        self.levels.append(Level(activation, function.name, None, "", state.frontier, True, trips))
        if again and self.engine.leads_to_cuda(function.name):
            activation.touches_device = True
        state.frontier = frozenset((0,))
        return self.now

    def leaves(self, entered: Level, left: State | None, thrown: State | None) -> None:
        """A function came back."""
        while self.levels.pop() is not entered:
            pass
        if not entered.is_text:
            return
        inner = entered.activation
        inner.returns = thrown is None and (inner.returns or left is not None)
        frontier = entered.before
        if inner.touches_device:
            state = left or thrown
            if state is not None:
                state.frontier = frontier
                call_site(self, inner, entered.function, state)
                frontier = state.frontier
        elif (state := left or thrown) is not None:
            state.frontier = frontier
            used_inside(self, inner, state)
            frontier = state.frontier
        for one in (left, thrown):
            if one is not None:
                one.frontier = frontier

    def thrown_out(self, state: State) -> None:
        """An exception leaves a function: who catches it goes on with the default stream, which waits for nothing."""
        level, activation = self.now, self.now.activation
        if not level.is_text or level.call is not None:
            return
        behind = any(activation.builder.drafts[n].role is not Role.ENTRY for n in state.frontier)
        activation.throws = activation.throws or (behind and not state.failing)
        if activation.function.name == "main":
            return
        if any(activation.builder.drafts[n].role not in (Role.ENTRY, Role.EXIT) for n in state.frontier):
            self.exit(activation, state, -1, EXCEPTION, activation.function.span)

    def set_stream(self, stream: Handle | None) -> None:
        """In a text that is read again, a call in the same statement runs on a stream."""
        self.now.setting = self._statement(), stream

    def _statement(self) -> int:
        activation, at, _, _ = self.where()
        offset = self.texts.offset(at.place) if at is not None else -1
        return self.texts.statement(activation.function, offset).start

    def stream_of(self, inner: Activation) -> Handle | None:
        """The stream of all that a call gives the device, in a text that sets streams; None where it is not on one."""
        if not self.streams:
            return None
        follows = not why_not_followed(inner, CURRENT)
        self.assumed += [inner] * (follows and self.engine.recursing > 0)  # there may be more to come
        # what a ``std::function`` runs is in the statement of the text
        statement, stream = next((one for one in reversed(self.levels) if one.is_text), self.now).setting
        if statement < 0 or statement != self._statement():
            return CURRENT if follows else None
        if not follows or inner.lends:  # it is not known which handle is put on that stream
            activation, at, _, _ = self.where()
            activation.stay_serial("a stream is set for a call that does not follow it", self.span(activation, at))
        return stream if follows and not inner.lends else None

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
        return -1 if at is None else self.texts.operation_at(activation.function, at, callee)

    def span(self, activation: Activation, at: Instruction | None) -> Span:
        """Where that stands, for messages."""
        offset = self.texts.offset(at.place) if at is not None else -1
        return self.texts.span_at(offset) if offset >= 0 else activation.function.span

    def iterations(self) -> tuple[Iteration, ...]:
        """The trips of counted loops that control is in."""
        level, frame = self.now, self.engine.frame
        text = next((one for one in reversed(self.levels) if one.is_text), None)
        while frame is not None and (text is None or frame.function.name != text.function):
            frame = frame.caller
        return self.counting.around(frame, level.activation.function) if frame is not None else ()

    # ---- sites

    def site(
        self, state: State, name: str, callee: str, kind: SiteKind, role: Role, on: Handle | None = None
    ) -> Draft | None:
        """The site of what is executed, `on` a stream that the text says; None where it has no place in the text."""
        activation, at, through, own = self.where()
        operation = self.operation(activation, at, through or callee)
        span, does = self.span(activation, at), frozenset({kind} - {SiteKind.CALL}) if not own else frozenset()
        if operation < 0:
            activation.touches_device = True
            activation.stay_serial(f"{name} has no place of its own in the text", span)
            return None
        if not own:
            role = role if kind is SiteKind.CALL and on is not None else Role.JOIN
            kind, name = SiteKind.CALL, self._written(activation, operation, through)
        known = self.texts.program.operations[operation]
        if role is Role.MOVABLE and on is None and (known.stuck or (known.stream_text or known.handle) is None):
            role = Role.LEGACY
        key, place = (operation, role.value, self.iterations()), known.span if own else span
        draft, state.frontier = activation.builder.add(key, name, kind, role, place, state.frontier)
        draft.does |= does
        if role is Role.LEGACY and known.stuck:
            draft.note = known.stuck
        if role is not Role.JOIN:
            self.engine.orders.works(self.engine.orders.at(at))
        activation.touches_device = True
        return draft

    def join(self, state: State, callee: str, *, foreign: bool) -> Draft | None:
        """Pending work is joined before what is executed."""
        draft = self.call(state, callee, Role.JOIN)
        if draft is not None:
            draft.foreign = draft.foreign or foreign
        self.now.activation.foreign = self.now.activation.foreign or foreign
        return draft

    def call(self, state: State, callee: str, role: Role, on: Handle | None = None) -> Draft | None:
        """The site of a call, under the name that the text has for it."""
        activation, at, through, _ = self.where()
        operation = self.operation(activation, at, through or callee)
        return self.site(state, self._written(activation, operation, callee), callee, SiteKind.CALL, role, on)

    def _written(self, activation: Activation, operation: int, callee: str) -> str:
        """What the text calls what is called there; where it does not name it, what it is."""
        found = (n.name for n in self.texts.nodes(activation.function) if n.operation == operation >= 0)
        name = next(found, "!").rpartition("::")[2]
        return display_name(callee) if name.startswith("!") else name

    def turns(self, instruction: Instruction, state: State) -> None:
        """Control may leave the function here: at its ``return``, or where its text ends."""
        level, frame = self.now, self.engine.frame
        if not level.is_text or level.call is not None or instruction.opcode not in ("br", "ret", "unreachable"):
            return
        activation = level.activation
        if frame is not None:
            self.counting.turns(frame, activation.function, instruction, state)
        operation, how = returns_at(self.texts, activation.function, frame, instruction), "return"
        if instruction.opcode != "ret" and not leaves_by(
            self.texts, activation.function, operation, frame, instruction
        ):
            return
        staying = frozenset(n for n in state.frontier if activation.builder.drafts[n].role is not Role.EXIT)
        if operation < 0 and not staying:
            return
        span = self.span(activation, instruction)
        if operation < 0:
            state.frontier = staying
            operation, how = self.texts.last(activation.function)
        if operation < 0:
            end = activation.function.span
            how, span = "end", Span(end.path, max(end.start, end.end - 1), end.end, end.line, end.column)
        shared = instruction.place < 0
        self.exit(activation, state, operation, how, span, shared=shared)

    def exit(
        self, activation: Activation, state: State, operation: int, how: str, span: Span, *, shared: bool = False
    ) -> None:
        """The function is left; `shared`: there also where no call of CUDA has failed."""
        if (
            state.failing
            and how == "return"
            and not shared
            and ends_the_process(self.texts.program, activation.function)
        ):
            state.frontier = frozenset()
            return
        if self.streams and self.engine.frame is not None and waits(self.engine.frame, state):
            key, name = (operation, "waits", self.iterations()), "cudaDeviceSynchronize"
            add = activation.builder.add
            _, state.frontier = add(key, name, SiteKind.SYNC, Role.DEVICE_SYNC, span, state.frontier)
        before = len(activation.builder.drafts)
        draft, state.frontier = activation.builder.add(
            (operation, how, self.iterations()), how, SiteKind.BOUNDARY, Role.EXIT, span, state.frontier
        )
        draft.failed = state.failing and (draft.failed or draft.number == before)

    # ---- the host

    def touches(self, state: State, one: Object | None, part: ByteRange | None = None, *, writes: bool) -> None:
        """The host reads or writes what the device may reach; None: it is not known what."""
        activation, at, _, _ = self.where()
        if self.streams and self.texts.is_of_kesco(self.texts.offset(at.place) if at is not None else -1):
            return  # pointers are compared: the serial program does not look there
        mode = AccessMode.WRITE if writes else AccessMode.READ
        behind = [activation.builder.drafts[number] for number in state.frontier]
        buffer = UNSEEN_HOST if one is None else self.buffer(one)
        for draft in behind:
            draft.is_looked_behind({(buffer, mode, False)}, one is None)
        frame = self.engine.frame
        if one is not None and frame is not None and frame.at is not None and _VOLATILE.intersection(frame.at.words):
            self.watched.add(buffer)
        if one is None:
            if self.shares:
                self._host(state, activation, at).touch_few(UNSEEN_HOST, "host", mode, None)
            return
        self._host(state, activation, at).touch_few(self.seen_by_host(self.buffer(one)), "host", mode, part)

    def is_about_launch(self, state: State, shows: str) -> bool:
        """Whether a query tells nothing but whether the last launch could be made."""
        builder = self.now.activation.builder
        return shows == "nothing" or (shows == "errors" and builder.follows_launches(state.frontier))

    def looked(self, state: State) -> None:
        """What the host does may show how far the device is."""
        if state.failing:
            return
        self.engine.orders.looks(self.engine.frame)
        self.used(state).looks = True

    def used(self, state: State) -> Draft:
        """The use by the host where control is."""
        activation, at, _, _ = self.where()
        return self._host(state, activation, at)

    def _host(self, state: State, activation: Activation, at: Instruction | None) -> Draft:
        offset = self.texts.offset(at.place) if at is not None else -1
        span = self.texts.statement(activation.function, offset)
        name = "unwinding" if state.unwinds else "host"  # destructors run in both ways
        key = (-2 - max(offset, span.start), name, self.iterations())
        builder = activation.builder
        last = builder.drafts[next(iter(state.frontier))] if len(state.frontier) == 1 else None
        if last is not None and (last.span, last.name, last.iterations) == (span, *key[1:]) and last.role is Role.HOST:
            return last
        draft, state.frontier = builder.add(key, name, SiteKind.HOST_USE, Role.HOST, span, state.frontier)
        return draft

    def seen_by_host(self, one: Buffer) -> Buffer:
        """What that is to the host, which cannot reach all memory."""
        return UNSEEN_HOST if one.kind is BufferKind.UNKNOWN else one

    def buffer(self, one: Object) -> Buffer:
        """The unit of aliasing that an object belongs to."""
        return self.buffers.of(one)

    def unseen(self, state: State, name: str, reached: Iterable[Object]) -> None:
        """Code that is not seen runs: it may do anything to all that it knows."""
        draft = self.join(state, name, foreign=True)
        if draft is not None:
            draft.touch(UNKNOWN, "code that is not seen", _BOTH)
