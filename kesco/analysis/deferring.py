"""What the statements of a loop's turns do to each other: ``turn_facts(program, ir_text, turns)``.

In: a program, the IR of its host side, and loops whose last statements might be kept for the next turn
(`kesco.ir.deferred`). Out: `TurnFacts` for each, in the same order. A module of its own because it is asked twice: of a
program, and of what was written of it, by the proof.

1. The host is followed (`analysis.host`). Each instruction belongs to the statement at whose place it stands, or to
those of the calls that led there. Two statements *meet* if they touch the same memory, and one writes it. 2. They meet,
too, if both call what has a state that is not known: output, input, random numbers. 3. What a kernel may reach, what is
kept must not touch if the statement calls CUDA. 4. Where what is kept calls CUDA, it waits for the device: what passes
it must not, nor touch what the device may be at then, nor say anything. 5. Of variables that are in registers the text
tells (`deferred_names`).

Where a call of CUDA has failed, what a statement says, and that it ends the process, does not count: what the turn
before has kept is then not done. It refuses loops that read a clock, and what throws.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kesco.analysis.deferred_names import Names
from kesco.analysis.host import everywhere
from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.engine import Engine
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import Models, cuda_entry
from kesco.analysis.host.orders import Orders, Part
from kesco.analysis.host.record import refused_by
from kesco.analysis.host.values import (
    ANYWHERE,
    NUMBER,
    STATUS,
    Object,
    Offset,
    Unknown,
    Value,
    objects,
    pointer,
    scalar,
)
from kesco.analysis.host_regions.texts import Texts
from kesco.frontend.api_table import host_call
from kesco.ir import program as ir
from kesco.ir.deferred import AROUND, Turn, TurnFacts
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module
from kesco.llvm.types import Type
from kesco.llvm.values import Function, Instruction, Local, callee

_CLOCK = re.compile(
    r"clock|chrono|gettimeofday|^time$|^ftime$|omp_get_wtime|rdtsc|readcyclecounter|^cudaEventElapsedTime|^cudaProfiler|rusage|^times$"
)
_STATE = re.compile(r"^s?rand(?:om|_r)?$|rand48|^strtok|^(?:un)?setenv$|^getenv$|^omp_set|locale|^signal|^sigaction")
"""What the tables say to write nothing that a caller could see, and has a state of its own."""
_PLAIN = re.compile(
    r"llvm\.(?!readcyclecounter)|_Z(?:nw|na|dl|da)[mP]|__cxa_(?:allocate_exception|free_exception|begin_catch|end_catch"
    r"|guard_\w+|get_exception_ptr|pure_virtual)$|_ZSt\d*__throw_|_ZSt9terminatev$|__clang_call_terminate$"
    r"|_Unwind_Resume$|__dynamic_cast$|_ZSt18_Rb_tree_|_ZSt29_Rb_tree_|_ZNKSt8__detail20_Prime_rehash_policy"
    r"|_ZNSt8__detail15_List_node_base|__assert_fail$"
)
"""Functions that touch what they are given, and nothing else; the library's own exceptions end a program gone wrong."""
_QUIET_KINDS = ("pure", "memory", "swap", "container")
_THROWS = ("__cxa_throw", "__cxa_rethrow")
_OURS = re.compile(r"^_ZN\w*?\d(?:kesco_|Kesco)")
_STREAMS = re.compile(r"\dkesco_(?:streams|stretch|pace|turn|lane)")
_COPIES = re.compile(r"\dkesco_(?:copy|send|fetch)(?!ed)")
_LATER = re.compile(r"\dkesco_(?:send|fetch)(?!ed)")
_WAITS = re.compile(r"\dkesco_(?:sent|fetched|turned|freed|settle|malloc|take|give)")
_GOES_ON = re.compile(
    r"Async$|^cuda(?:Get|Peek|SetDevice$|LaunchKernel|Memset$|FuncSet|EventRecord|EventCreate|StreamWaitEvent)|^__cuda(?:Push|Pop)"
)
_WORKS = re.compile(r"^cudaMemcpy\w*Async$|^cudaLaunchKernel")


def turn_facts(program: ir.Program, ir_text: str, turns: Sequence[Turn]) -> tuple[TurnFacts, ...]:
    """What was found of each loop; `InputError` (K110) if LLVM cannot read the IR."""
    module = Module(canonical(ir_text, "host", sroa=True))
    texts = Texts(program, module)
    variables = _variables(texts, turns)
    places = _Places(texts, turns, [Names.of(program, turn, variables) for turn in turns])
    engine = Engine(module, Models())
    engine.weak = program.weak
    engine.orders = Orders(places.parts_at)
    seen = _Seen(engine, places, timed=b"cudaEventElapsedTime" in program.text)
    engine.watcher = seen
    refused = refused_by(lambda: everywhere(engine))
    return tuple(TurnFacts(why=refused) if refused else _facts(places, seen, number) for number in range(len(turns)))


def _variables(texts: Texts, turns: Sequence[Turn]) -> dict[int, Type]:
    """The variables in memory of the functions with these loops, by where their lives begin in the text."""
    found: dict[int, Type] = {}
    for name in texts.module.defined():
        function = texts.module.function(name)
        text = texts.function(function) if function is not None else None
        if function is None or text is None or not any(_is_in(text, turn) for turn in turns):
            continue
        every = [one for block in function.blocks for one in block.instructions]
        made = {one.result.name: one.about for one in every if one.opcode == "alloca" and one.result is not None}
        for one in every:
            local = one.operands[0] if callee(one).startswith("llvm.lifetime.start") else None
            kind = made.get(local.name) if isinstance(local, Local) else None
            if kind is not None and (offset := texts.offset(one.place)) >= 0:
                found[offset] = kind
    return found


def _is_in(function: ir.Function, turn: Turn) -> bool:
    return function.span.start <= turn.whole.start < function.span.end


@dataclass(slots=True)
class _Variables:
    """A function's variables, by their names in the IR: what each turn of a loop has by itself, as it is held;
    what the kept part has; and what is gone behind a turn, or behind the loop.
    """

    number: int
    turn: Turn
    declared: frozenset[int]
    own: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)

    def lives(self, one: Instruction, offset: int) -> None:
        """The life of a variable begins there, or ends."""
        variables = {v.name for v in one.operands if isinstance(v, Local)}
        begins, (start, end) = ".start" in callee(one), self.turn.part
        if begins and offset in self.declared:
            self.own |= variables
        elif begins and start <= offset < end:
            self.inner |= variables
        elif not begins and self.turn.whole.start <= offset <= self.turn.whole.end:
            self.ending |= variables


@dataclass(slots=True)
class _Places:
    """Which statements an instruction belongs to.

    `Part.argument` is a statement's number, `AROUND`, or for what is kept that of its first one.
    """

    texts: Texts
    turns: Sequence[Turn]
    names: Sequence[Names]
    variables: dict[str, list[_Variables]] = field(default_factory=dict)  # by function
    _unplaced: dict[int, frozenset[Part]] = field(default_factory=dict)
    covered: set[Part] = field(default_factory=set)

    def __post_init__(self) -> None:
        functions = {one.span.start: one for one in self.texts.program.functions if one.here}
        owners = [
            max(at for at, one in functions.items() if at <= turn.whole.start < one.span.end) for turn in self.turns
        ]
        for name in self.texts.module.defined():
            function = self.texts.module.function(name)
            text = self.texts.function(function) if function is not None else None
            mine = [n for n, owner in enumerate(owners) if text is not None and owner == text.span.start]
            if function is not None and mine:
                self._place(function, mine)

    def _place(self, function: Function, mine: list[int]) -> None:
        """What has no place in the text may belong to any statement of the function's loops."""
        every = frozenset(part for n in mine for part in self.parts(n))
        mine_in = self.variables.setdefault(function.name, [])
        mine_in += (_Variables(n, self.turns[n], self.names[n].own) for n in mine)
        for one in (one for block in function.blocks for one in block.instructions):
            found = self._at(self.texts.offset(one.place))
            self.covered |= found
            if callee(one).startswith("llvm.lifetime"):
                for each in mine_in:
                    each.lives(one, self.texts.offset(one.place))
            plain = one.opcode not in ("load", "store", "call", "invoke") or callee(one).startswith("llvm.")
            if not plain and self.texts.offset(one.place) < 0:
                self._unplaced[id(one)] = every

    def parts(self, number: int) -> Iterable[Part]:
        """All parts of a loop."""
        return (Part(number, at) for at in range(AROUND, self.turns[number].kept + 1))

    def parts_at(self, instruction: Instruction) -> frozenset[Part]:
        """Those that an instruction is in by its own place."""
        return self._unplaced.get(id(instruction)) or self._at(self.texts.offset(instruction.place))

    def _at(self, offset: int) -> frozenset[Part]:
        return frozenset(
            Part(n, number)
            for n, turn in enumerate(self.turns)
            if turn.whole.start <= offset <= turn.whole.end and (number := _statement(turn, offset)) is not None
        )


def _statement(turn: Turn, offset: int) -> int | None:
    """The statement at an offset; None for one that is kept by itself."""
    if not turn.begin < offset < turn.end or offset > turn.part[1]:
        by_itself = turn.statements[turn.last : turn.beyond]
        return None if by_itself and by_itself[0].start <= offset <= by_itself[-1].end else AROUND
    found = bisect_right([one.start for one in turn.statements], offset) - 1
    return min(found, turn.kept) if found >= 0 else AROUND


@dataclass(slots=True)
class _Seen:
    """What the parts do beside reading and writing; the engine's watcher."""

    engine: Engine
    places: _Places
    timed: bool  # whether the program asks how long it is from one event to another
    own: defaultdict[int, set[Object]] = field(default_factory=lambda: defaultdict(set))  # by loop
    ending: defaultdict[int, set[Object]] = field(default_factory=lambda: defaultdict(set))
    flying: set[Object] = field(default_factory=set)  # what is copied while the host goes on
    speaks: set[Part] = field(default_factory=set)  # what has a state of its own
    works: set[Part] = field(default_factory=set)  # they give the device work
    waits: set[Part] = field(default_factory=set)
    calls_cuda: set[Part] = field(default_factory=set)
    throws: set[Part] = field(default_factory=set)
    clocks: set[Part] = field(default_factory=set)
    shares: set[Part] = field(default_factory=set)  # they touch what kernels may reach

    def _here(self) -> frozenset[Part]:
        return self.engine.orders.of(self.engine.frame)

    # ---- what the device is given

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched."""
        self.works |= self._here()
        self.calls_cuda |= self._here()

    def calls(self, frame: Frame, call: Instruction, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""
        parts = self.engine.orders.of(frame)
        self.calls_cuda |= parts
        if _CLOCK.search(name) or (self.timed and name.startswith("cudaEvent")):
            self.clocks |= parts
        entry = cuda_entry(name, len(values))
        if _WORKS.search(name):
            self.works |= parts
        if entry is None or not _GOES_ON.search(name):
            self.waits |= parts
        else:
            self.flying |= {one for value in values for one in state.reached(objects(value))}
        reads = entry.reads if entry is not None else ()
        for number, value in enumerate(values):
            if call.operands[number].type.kind == "ptr":
                self._reaches(frame, state, value, writes=number not in reads)

    def _reaches(self, frame: Frame | None, state: State, value: Value, *, writes: bool) -> None:
        """What a pointer leads to is read, and written if so."""
        orders = self.engine.orders
        for one in state.reached(objects(value)):
            for kind in (False, True) if writes else (False,):
                orders.access(frame, state, one, (ANYWHERE, 1), NUMBER, writes=kind)
        if any(type(atom) is Unknown for atom in scalar(value)):
            orders.access(frame, state, None, (ANYWHERE, 1), NUMBER, writes=writes)

    # ---- other code

    def runs(self, frame: Frame, name: str, reached: Iterable[Object], state: State, *, seen: bool) -> None:
        """Code that is not followed runs and may reach these."""
        parts = self.engine.orders.of(frame)
        if not parts:
            return
        names = self.engine.named_in(name) if self.engine.module.has_body(name) else frozenset((name,))
        if any(map(_CLOCK.search, names)):
            self.clocks |= parts
        if not state.failing and name in _THROWS:
            self.throws |= parts
        if not state.failing and not all(map(self._is_plain, names)):
            self.speaks |= parts
        if not seen:  # it may do with the device what it likes
            self.calls_cuda |= parts
            self.shares |= parts
            self.waits |= parts
        model = self.engine.models.of(name)
        if model is None or model.given or model.keeps:
            for one in reached:
                self.engine.orders.access(frame, state, one, (ANYWHERE, 1), NUMBER, writes=True)
                self._touched(state, one, parts)

    def _is_plain(self, name: str) -> bool:
        if _PLAIN.match(name):
            return True
        if self.engine.module.has_body(name) or self.engine.module.variable(name) is not None:
            return not _STATE.search(name)
        model, host = self.engine.models.of(name), host_call(name)
        if host is not None and (host.kind not in _QUIET_KINDS or _STATE.search(name)):
            return False
        return model is not None and not (model.given or model.keeps or model.ends or model.later is not None)

    def touches(
        self, state: State, one: Object | None, where: tuple[Offset, int | None] = (ANYWHERE, None), *, writes: bool
    ) -> None:
        """The host reads or writes what the device may reach."""
        self._touched(state, one, self._here())

    def _touched(self, state: State, one: Object | None, parts: frozenset[Part]) -> None:
        if one is None or one.kind in ("managed", "entry", "outside") or one in state.device:
            self.shares |= parts

    def may_be_late(self, part: Part) -> bool:
        """Whether a part says something, or touches what the device may be at, and so should wait for that."""
        touched = self.engine.orders.known_in(part)
        return part in self.shares or part in self.speaks or not touched.isdisjoint(self.flying)

    # ---- of which nothing is asked

    def enters(self, frame: Frame, call: Instruction, function: Function, context: int, state: State) -> object:
        """A function is called."""
        return None

    def leaves(self, entered: object, left: State | None, thrown: State | None) -> None:
        """It came back."""

    def thrown_out(self, state: State) -> None:
        """An exception leaves a function."""

    def unwinds(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """An exception is on its way."""

    def turns(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """Control comes to the end of a block: the function's variables are there by then."""
        for each in self.places.variables.get(frame.function.name, ()):
            self.own[each.number] |= {one for one in frame.locals if one.name in each.own}
            gone = each.ending - each.own - each.inner
            self.ending[each.number] |= {one for one in frame.locals if one.name in gone}

    def takes(self, frame: Frame, target: str, state: State) -> None:
        """Control goes on with one of several blocks."""

    def begins(self, frame: Frame, head: str, state: State) -> None:
        """A trip of a loop begins."""

    def makes(self, one: Object) -> None:
        """Memory is made: that of a vector which is held belongs to its turn."""
        parts = self._here()
        for part in parts if one.kind == "heap" else ():
            if part.argument in self.places.names[part.expression].made:
                self.own[part.expression].add(one)

    def answers(self, name: str, values: list[Value], state: State) -> Value | None:
        """What a function of kesco's own prologue returns: of the program's memory it touches what it copies."""
        if _OURS.search(name) is None or self.engine.module.has_body(name):
            return None
        parts, frame = self._here(), self.engine.frame
        self.calls_cuda |= parts
        copies = _COPIES.search(name) is not None
        self.waits |= parts if copies or _WAITS.search(name) is not None else frozenset()
        for number, value in enumerate(values[:2] if copies else ()):
            self._reaches(frame, state, value, writes=number == 0)
            self.flying |= state.reached(objects(value)) if _LATER.search(name) is not None else frozenset()
        return pointer(self.engine.resource("kesco", "")) if _STREAMS.search(name) is not None else STATUS


def _facts(places: _Places, seen: _Seen, number: int) -> TurnFacts:
    turn, names = places.turns[number], places.names[number]
    kept = Part(number, turn.kept)
    every = [Part(number, at) for at in range(AROUND, turn.kept)]
    if kept not in places.covered:
        return TurnFacts(why="no code is made of what uses the results")
    if seen.clocks & {kept, *every}:
        return TurnFacts(why="a clock is read in the loop")
    if kept in seen.throws:
        return TurnFacts(why="what uses the results throws")
    if names.why:
        return TurnFacts(why=names.why)
    orders, own = seen.engine.orders, seen.own[number]
    meets = {
        part.argument
        for part in every
        if orders.touched(part, kept, own)
        or (part in seen.speaks and kept in seen.speaks)
        or (part in seen.calls_cuda and (kept in seen.shares or kept in seen.calls_cuda))
        or (kept in seen.calls_cuda and seen.may_be_late(part))
    } | names.meets
    gone = not orders.known_in(kept).isdisjoint(seen.ending[number])
    if gone or (kept in seen.calls_cuda and not own.isdisjoint(seen.flying)):
        meets.add(AROUND)
    return TurnFacts(
        frozenset(meets),
        frozenset(part.argument for part in every if part in seen.works),
        frozenset(part.argument for part in every if part in seen.waits),
        names.held,
    )
