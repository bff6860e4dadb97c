"""What the statements of a loop's turns do beside reading and writing memory: `Seen`, the engine's watcher.

In: what happens on the paths. Out: by part (`host.orders`), what calls CUDA, launches, waits, says something, throws,
reads a clock, or touches what kernels may reach; and which objects the variables are.

Where a call of CUDA has failed, what a statement says, and that it ends the process, does not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from kesco.analysis.deferring.places import Places
from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.engine import Engine
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import cuda_entry
from kesco.analysis.host.orders import Part
from kesco.analysis.host.values import (
    ANYWHERE,
    NUMBER,
    STATUS,
    Object,
    Offset,
    Unknown,
    Value,
    number,
    objects,
    pointer,
    scalar,
)
from kesco.frontend.api_table import CudaCall, host_call
from kesco.llvm.values import Function, Instruction

_CLOCK = re.compile(
    r"clock|chrono|gettimeofday|^f?time$|omp_get_wtime|rdtsc|readcyclecounter|rusage|^times$"
    r"|^cuda(?:EventElapsedTime|Profiler|EventQuery|StreamQuery)"
)
_STATE = re.compile(
    r"^s?rand(?:om|_r)?$|rand48|^strtok|^(?:un)?setenv$|^getenv$|^omp_set|locale|^signal|^sigaction|^__errno_location$"
)
"""What the tables say to write nothing that a caller could see, and has a state of its own."""
_PLAIN = re.compile(
    r"llvm\.(?!readcyclecounter|\w*trap)|_Z(?:nw|na|dl|da)[mP]|__cxa_(?:allocate_exception|free_exception|begin_catch"
    r"|end_catch|guard_\w+|get_exception_ptr|pure_virtual)$|__clang_call_terminate$"
    r"|_Unwind_Resume$|_ZSt18_Rb_tree_|_ZSt29_Rb_tree_|_ZNKSt8__detail20_Prime_rehash_policy"
    r"|_ZNSt8__detail15_List_node_base"
)
"""Functions that touch what they are given, and nothing else."""
_GONE_WRONG = re.compile(r"_ZSt\d+__throw_(?:length_error|bad_alloc|bad_array_new_length|bad_function_call)")
_GROWS = re.compile(r"push_back|emplace_back|_M_realloc_")
"""What throws only when there is no more memory, or no end to a container."""
_THROWS = re.compile(r"__cxa_(?:throw|rethrow|bad_cast|bad_typeid)|_ZSt\d+__throw_|_ZSt17rethrow_exception")
_QUIET = ("pure", "memory", "swap", "container")
_STOPS = re.compile(r"_ZSt9terminatev$|llvm\.\w*trap|__assert_fail$")
_OURS = re.compile(r"^_ZN\w*?\d(?:kesco_|Kesco)")
_STREAMS = re.compile(r"\dkesco_(?:streams|stretch|pace|turn|lane)")
_COPIES, _LATER = re.compile(r"\dkesco_(?:copy|send|fetch)(?!ed)"), re.compile(r"\dkesco_(?:send|fetch)(?!ed)")
_WAITS = re.compile(r"\dkesco_(?:sent|fetched|turned|freed|settle|malloc|take|give)")
_GOES_ON = re.compile(
    r"Async$|^__cuda(?:Push|Pop)"
    r"|^cuda(?:Get|Peek|SetDevice$|LaunchKernel|Memset$|FuncSet|EventRecord|EventCreate|StreamWaitEvent)"
)
_WORKS = re.compile(r"^cudaMemcpy\w*Async$|^cudaLaunchKernel")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is so in all of a program."""

    timed: bool  # it asks how long it is from one event to another
    prints: bool  # a kernel does
    catches: bool  # it may go on behind an exception
    shares: bool  # it has memory that both may reach
    errors: bool  # it asks what the library's functions said of errors


@dataclass(slots=True)
class Seen:
    """See the module's docstring."""

    engine: Engine
    places: Places
    facts: Facts
    variables: defaultdict[tuple[str, str], set[Object]] = field(default_factory=lambda: defaultdict(set))
    made: defaultdict[Part, set[Object]] = field(default_factory=lambda: defaultdict(set))
    kept_in: defaultdict[Object, set[Object | None]] = field(default_factory=lambda: defaultdict(set))  # its address
    escaped: set[Object] = field(default_factory=set)
    flying: set[Object] = field(default_factory=set)  # what is copied while the host goes on
    speaks: set[Part] = field(default_factory=set)  # what has a state of its own
    works: set[Part] = field(default_factory=set)  # they give the device work
    waits: set[Part] = field(default_factory=set)
    calls_cuda: set[Part] = field(default_factory=set)
    leaves_it: set[Part] = field(default_factory=set)  # they throw, or end the process
    clocks: set[Part] = field(default_factory=set)
    shares: set[Part] = field(default_factory=set)  # they touch what kernels may reach

    def _here(self) -> frozenset[Part]:
        return self.engine.orders.of(self.engine.frame)

    def may_be_late(self, part: Part) -> bool:
        """Whether a part says something, or touches what the device may be at, and so should wait for that."""
        touched = self.engine.orders.known_in(part)
        return part in self.shares or part in self.speaks or not touched.isdisjoint(self.flying)

    # ---- what the device is given

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched: what one before has printed may come then."""
        parts = self._here()
        self.works |= parts
        self.calls_cuda |= parts
        self.speaks |= parts if self.facts.prints else frozenset()

    def calls(self, frame: Frame, call: Instruction, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""
        parts = self.engine.orders.of(frame)
        self.calls_cuda |= parts
        self.speaks |= parts if self.facts.prints else frozenset()
        if _CLOCK.search(name) or (self.facts.timed and name.startswith("cudaEvent")):
            self.clocks |= parts
        entry = cuda_entry(name, len(values))
        if _WORKS.search(name):
            self.works |= parts
        if entry is None or not _GOES_ON.search(name):
            self.waits |= parts
        else:
            self.flying |= {one for value in values for one in state.reached(objects(value))}
        reads = entry.reads if entry is not None else ()
        device = self._of_the_device(entry, values) if entry is not None else ()
        for at, value in enumerate(values):
            if call.operands[at].type.kind == "ptr" and at not in device:
                self._reaches(frame, state, value, writes=at not in reads)

    def _of_the_device(self, entry: CudaCall, values: list[Value]) -> tuple[int | None, ...]:
        """The arguments that point to the device's memory, as a copy's direction says, or are streams and events."""
        at = entry.direction
        way = number(values[at]) if at is not None and at < len(values) else None
        found = {1: entry.writes, 2: entry.reads, 3: (*entry.writes, *entry.reads)}.get(-1 if way is None else way, ())
        if entry.kind == "memset" and not self.facts.shares:
            found = entry.writes
        return (*found, entry.stream, entry.event)

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
        model = self.engine.models.of(name)
        here = self.engine.module.has_body(name) and not (model is not None and model.closed)
        names = self.engine.named_in(name) if here else frozenset((name,))
        if any(map(_CLOCK.search, names)):
            self.clocks |= parts
        if not state.failing:
            self.leaves_it |= parts if any(self._leaves(frame, one) for one in names) else frozenset()
            self.speaks |= parts if not all(map(self._is_plain, names)) else frozenset()
        if not seen:  # it may do with the device what it likes
            self.calls_cuda |= parts
            self.shares |= parts
            self.waits |= parts
        if model is None or model.given or model.keeps:
            for one in reached:
                self.engine.orders.access(frame, state, one, (ANYWHERE, 1), NUMBER, writes=True)
                self._touched(state, one, parts)

    def _is_plain(self, name: str) -> bool:
        if _PLAIN.match(name) or _GONE_WRONG.match(name):
            return True
        model, host = self.engine.models.of(name), host_call(name)
        here = self.engine.module.has_body(name) and not (model is not None and model.closed)
        if here or self.engine.module.variable(name) is not None:
            return True
        if host is not None and (host.kind not in _QUIET or _STATE.search(name)):
            return False
        if host is not None and host.kind == "pure" and self.facts.errors:
            return False  # it may say so there that something is wrong
        return model is not None and not (model.given or model.keeps or model.ends or model.later is not None)

    def _leaves(self, frame: Frame, name: str) -> bool:
        """Whether a function throws, or ends the process, but where the program has gone wrong."""
        if _PLAIN.match(name):
            return False
        if _GONE_WRONG.match(name):
            around: Frame | None = frame
            while around is not None and not _GROWS.search(around.function.name):
                around = around.caller
            return self.facts.catches and around is None
        if _STOPS.match(name):
            return frame.function.name != "__clang_call_terminate"
        host = host_call(name)
        return _THROWS.match(name) is not None or (host is not None and host.kind == "exit")

    def touches(
        self, state: State, one: Object | None, where: tuple[Offset, int | None] = (ANYWHERE, None), *, writes: bool
    ) -> None:
        """The host reads or writes what the device may reach."""
        self._touched(state, one, self._here())

    def _touched(self, state: State, one: Object | None, parts: frozenset[Part]) -> None:
        if one is None or one.kind in ("managed", "entry", "outside") or one in state.device:
            self.shares |= parts

    def answers(self, name: str, values: list[Value], state: State) -> Value | None:
        """What a function of kesco's own prologue returns: of the program's memory it touches what it copies."""
        if _OURS.search(name) is None or self.engine.module.has_body(name):
            return None
        parts, frame = self._here(), self.engine.frame
        self.calls_cuda |= parts
        copies = _COPIES.search(name) is not None
        self.waits |= parts if copies or _WAITS.search(name) is not None else frozenset()
        for at, value in enumerate(values[:2] if copies else ()):
            self._reaches(frame, state, value, writes=at == 0)
            self.flying |= state.reached(objects(value)) if _LATER.search(name) is not None else frozenset()
        return pointer(self.engine.resource("kesco", "")) if _STREAMS.search(name) is not None else STATUS

    # ---- whose objects they are

    def turns(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """Control comes to the end of a block: the function's variables are there by then."""
        if frame.function.name not in self.places.functions.values():
            return
        for one in frame.locals:
            self.variables[frame.function.name, one.name].add(one)
        self.escaped |= state.escaped

    def stored(self, frame: Frame | None, at: Object | None, value: Value) -> None:
        """A value is put there: the addresses in it are known there then, unless that is gone as a call comes back."""
        found = [one for one in objects(value) if one.kind in ("stack", "heap")]
        around = frame if found else None
        while around is not None and around.function.name not in self.places.functions.values():
            if at in around.locals:
                return
            around = around.caller
        for one in found:
            self.kept_in[one].add(at)

    def is_alone(self, one: Object, holders: Collection[Object]) -> bool:
        """Whether nobody but these knows an object's address."""
        return one not in self.escaped and self.kept_in.get(one, set()) <= set(holders)

    def makes(self, one: Object) -> None:
        """Memory is made."""
        for part in self._here() if one.kind == "heap" else ():
            self.made[part].add(one)

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

    def takes(self, frame: Frame, target: str, state: State) -> None:
        """Control goes on with one of several blocks."""

    def begins(self, frame: Frame, head: str, state: State) -> None:
        """A trip of a loop begins."""
