"""The interpreter's watcher: what is about paths goes to `watching`, what is about memory to `launching` and `runtime`.

In: what the interpreter tells. Out: sites. Here is what belongs to neither: what kesco's own prologue does in a text
that is read again, and code that is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import ANYWHERE, NUMBER, ONE, STATUS, ZERO, Object, Offset, Value, pointer
from kesco.analysis.host_regions.activations import Level
from kesco.analysis.host_regions.handles import handle_of
from kesco.analysis.host_regions.launching import Launching
from kesco.analysis.host_regions.leaving import ended, is_end, throws, unwinds
from kesco.analysis.host_regions.marking import Marking
from kesco.analysis.host_regions.runtime import Runtime
from kesco.analysis.host_regions.watching import Watching
from kesco.frontend.api_table import host_call
from kesco.ir.flow import CURRENT, Role, SiteKind
from kesco.ir.poly import ByteRange, constant
from kesco.ir.transfers import TAKE_HERE
from kesco.llvm.values import Function, Instruction

_STREAMS = re.compile(
    r"\d(?:kesco_streams|kesco_streams_if_distinct|kesco_stretch|kesco_paced?|kesco_turn|kesco_lane)(?:E|I|R)"
)
_COPIES = re.compile(r"\d(kesco_copy(?:_2d|_to_symbol|_from_symbol|_here)?|kesco_send|kesco_fetch)(?:E|I|P)")
_CURRENT, _ON = re.compile(r"\dkesco_currentE"), re.compile(r"\dKesco(?:On|Later)E")
_WAITS = re.compile(r"\d(?:kesco_sent|kesco_fetched|kesco_give)(?:E|I|R)")
_AROUND = re.compile(r"\dkesco_(?:turned|turns|pin)(?:E|I|R)")
_PLACES = re.compile(r"\d(kesco_place|kesco_take|kesco_take_here)(?:E|I|R)")
_GIVES = re.compile(r"\dkesco_give_hereE")
_HINTS = re.compile(r"\d(?:kesco_prefetch|kesco_mark|kesco_hold)E")
_FILLS, _BLAS = re.compile(r"\dkesco_memsetE"), re.compile(r"\dkesco_blasE")
_OWN, _HERE = re.compile(r"\dkesco_(?:own|owned)I"), re.compile(r"\dkesco_wait_hereE")
_REPLAYS = re.compile(r"\d(kesco_replay(?:_alone)?)I")
_POINTER = 8
_PROGRESS = ("io", "clock", "exit", "thread")


_AT_EXIT = frozenset(("__cxa_atexit", "atexit", "at_quick_exit", "on_exit"))


@dataclass
class Touching:
    """See the module's docstring; the interpreter's watcher."""

    paths: Watching
    marking: Marking
    launching: Launching
    runtime: Runtime

    # ---- what is about paths

    def enters(self, frame: Frame, call: Instruction, function: Function, context: int, state: State) -> object:
        """A function is called."""
        entered = self.paths.enters(call, function, context, state)
        if entered.is_text:
            entered.lent = self.runtime.libraries.on_streams(state)
        return entered

    def leaves(self, entered: object, left: State | None, thrown: State | None) -> None:
        """It came back."""
        assert isinstance(entered, Level)
        self.paths.leaves(entered, left, thrown)

    def turns(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """Control comes to the end of a block."""
        self.paths.turns(instruction, state)

    def takes(self, frame: Frame, target: str, state: State) -> None:
        """Control goes on with one of several blocks: nothing happens by that."""

    def thrown_out(self, state: State) -> None:
        """An exception leaves the function that control is in."""
        self.paths.thrown_out(state)

    def unwinds(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """An exception is on its way to who catches it in the function that control is in."""
        unwinds(self.paths, frame, instruction, state)

    def begins(self, frame: Frame, head: str, state: State) -> None:
        """Control comes to where a trip of a loop begins."""
        self.marking.begins(frame, head, state)

    def touches(
        self, state: State, one: Object | None, where: tuple[Offset, int | None] = (ANYWHERE, None), *, writes: bool
    ) -> None:
        """The host reads or writes what the device may reach."""
        (stride, rest), size = where
        known = size is not None and not stride
        part = ByteRange(constant(rest), constant(rest + size)) if size is not None and known else None
        self.paths.touches(state, one, part, writes=writes)

    def answers(self, name: str, values: list[Value], state: State) -> Value | None:
        """What a function of kesco's own prologue returns: the streams and events of a text that is read again."""
        if not self.paths.streams or "esco" not in name or self.paths.engine.module.has_body(name):
            return None
        if _STREAMS.search(name):
            self.runtime.libraries.renew(state)
            return pointer(self.paths.engine.resource("kesco", ""))
        if (own := _COPIES.search(name)) is not None:
            self.runtime.own_copy(state, own[1], values)
            return STATUS
        if _CURRENT.search(name):
            return pointer(self.paths.engine.resource("kesco", "current"))
        if _ON.search(name):
            self.paths.set_stream(handle_of(values[0]) if values else None)
            return NUMBER
        if _HERE.search(name):
            site = self.paths.site(state, "cudaDeviceSynchronize", name, SiteKind.SYNC, Role.DEVICE_SYNC)
            if site is not None:
                site.stream = CURRENT
            return STATUS
        if _GIVES.search(name):
            self.runtime.gives(state, values)
            return STATUS
        if _OWN.search(name):  # whose memory it is `scratch` says
            return values[0]
        if _FILLS.search(name):
            self.runtime.fill(state, values)
            return STATUS
        if _BLAS.search(name):
            self.runtime.libraries.set_own(state, values)
            return NUMBER
        if _AROUND.search(name):  # there the host waits
            self.paths.site(state, "cudaDeviceSynchronize", name, SiteKind.SYNC, Role.DEVICE_SYNC)
            return NUMBER
        if (place := _PLACES.search(name)) is not None:
            return self._placed(state, place[1], values)
        if (replay := _REPLAYS.search(name)) is not None:
            return self._replayed(state, replay[1], values)
        if is_end(name):
            ended(self.paths, values, state)
            return STATUS
        return STATUS if _WAITS.search(name) or _HINTS.search(name) else None

    def _placed(self, state: State, name: str, values: list[Value]) -> Value:
        """A turn has memory of its own there, as if it had been allocated."""
        activation, at, through, _ = self.paths.where()
        operation = self.paths.operation(activation, at, through or name)
        if operation < 0:
            activation.stay_serial(f"{name} has no place of its own in the text", self.paths.span(activation, at))
        made = self.paths.engine.resource("device", f"{name}:{operation}")
        self.paths.buffers.turned[made] = operation
        state.make(made)
        state.store(values[0 if name == TAKE_HERE else 2], pointer(made), _POINTER)
        return STATUS

    def _replayed(self, state: State, name: str, values: list[Value]) -> Value:
        """What is around statements that become a graph: they run once, and what they did is given to a stream then."""
        frame = self.paths.engine.frame
        again = frame is not None and bool(frame.trips.get(frame.block))
        draft = self.paths.site(state, name, name, SiteKind.SYNC, Role.REPLAY if again else Role.CAPTURE)
        if draft is not None:
            draft.stream = handle_of(values[2]) if len(values) > 2 else None
        return ZERO if again else ONE

    def makes(self, one: Object) -> None:
        """Memory, a stream or an event is made."""
        self.paths.buffers.made[one] = self.paths.iterations()
        self.paths.shares = self.paths.shares or one.shared

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched."""
        self.launching.launches(stub, launch, found, numbers, state)

    def calls(self, frame: Frame, call: Instruction, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""
        self.runtime.calls(name, values, state)

    # ---- code that is not followed

    @cached_property
    def acts_at_exit(self) -> bool:
        """Whether something that the program has registered for its end has to do with the device."""
        module, engine = self.paths.engine.module, self.paths.engine
        registers = [set(module.mentioned(one)) for one in module.defined() if "__cuda_" not in one]
        named = {name for one in registers if not one.isdisjoint(_AT_EXIT) for name in one - _AT_EXIT}
        return any(map(engine.leads_to_cuda, named))

    def runs(self, frame: Frame, name: str, reached: Iterable[Object], state: State, *, seen: bool) -> None:
        """Code that is not followed runs and may reach these; `seen`: it belongs to no program."""
        paths = self.paths
        if name in ("__cxa_throw", "__cxa_rethrow"):
            throws(paths, state)
            return
        host = host_call(name)
        if host is not None and host.kind == "exit" and (not state.failing or self.acts_at_exit):
            paths.now.activation.exits = True
            if paths.streams and self.acts_at_exit:
                self.runtime.libraries.left((state,), name, last=True)
        every = list(reached)
        model = paths.engine.models.of(name)
        if not seen or model is None or model.keeps or model.given:
            paths.told |= {paths.buffer(one) for one in every if one.kind != "function"}
        called = [o.name for o in every if o.kind == "function" and paths.engine.module.has_body(o.name)]
        acting = [one for one in called if paths.engine.leads_to_cuda(one)]
        if not seen or (acting and name not in _AT_EXIT):
            if acting and name in _THREADS:
                paths.file_wide = "the file starts host threads that have to do with the device"
            paths.unseen(state, name, every)
            self.runtime.libraries.reached(every, name, state)
            return
        for one in every:
            if one.visible and state.is_reached(one):
                paths.touches(state, one, writes=False)
                paths.touches(state, one, writes=True)
        if paths.looks and self._may_look(name):
            paths.looked(state)

    def _may_look(self, name: str) -> bool:
        """Whether a function that is not followed may show how far the device is: by output, or a clock."""
        engine = self.paths.engine
        if engine.module.has_body(name):
            named = (one for one in engine.named_in(name) if not engine.module.has_body(one))
            return any(self._may_look(one) for one in named if engine.module.variable(one) is None)
        host, model = host_call(name), self.paths.engine.models.of(name)
        if host is not None:
            return host.kind in _PROGRESS
        shows = model is None or model.shows or model.given or model.keeps
        return not name.startswith("llvm.") and (shows or "clock" in name or "time" in name)


_THREADS = (
    "pthread_create", "thrd_create", "__kmpc_fork_call", "__kmpc_fork_teams", "__kmpc_omp_task",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
)  # fmt: skip
