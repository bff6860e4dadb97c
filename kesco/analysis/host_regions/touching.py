"""Launches and calls of CUDA → sites with what they touch.

In: the call, the values of its arguments, the effects of kernels, the table of the runtime. Out: a site of the function
that control is in. Apart from `watching` because that is about paths, and this about memory.

1. A launch touches what its kernel's effects say of each parameter, and of each pointer inside one. 2. A call of the
runtime does what the table says. A copy that the host may wait for stays where it is. 3. What is not known may be any
memory, and joins all work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kesco.analysis.extents import LaunchValues, extent
from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import cuda_entry
from kesco.analysis.host.values import NUMBER, STATUS, Object, Pointer, Unknown, Value, number, pointer, scalar
from kesco.analysis.host_regions.handles import handle_of
from kesco.analysis.host_regions.texts import LAUNCH
from kesco.analysis.host_regions.watching import Watching
from kesco.analysis.region import ANY_SIZE, Draft
from kesco.frontend.api_table import CudaCall, cuda_call, host_call
from kesco.ir import program as ir
from kesco.ir.access import (
    DEVICE_HEAP,
    DEVICE_PRINTF,
    UNKNOWN,
    UNSEEN_HOST,
    AccessMode,
    Buffer,
    BufferKind,
    through_parameter,
)  # fmt: skip
from kesco.ir.effects import KernelEffects, RootEffect
from kesco.ir.flow import Handle, Held, Role, SiteKind
from kesco.ir.poly import ByteRange, Poly, constant
from kesco.ir.transfers import FETCH, OWN, SEND
from kesco.ir.volatiles import is_watched, points_to_volatile
from kesco.llvm.names import kernel_of
from kesco.llvm.values import Function, Instruction

_BOTH = AccessMode.READ_WRITE
_KINDS = {"copy": SiteKind.COPY, "memset": SiteKind.MEMSET, "prefetch": SiteKind.PREFETCH}
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_DIRECTIONS = {"HostToHost": 0, "HostToDevice": _TO_DEVICE, "DeviceToHost": _TO_HOST, "DeviceToDevice": _ON_DEVICE}
_STREAMS = re.compile(r"\d(?:kesco_streams|kesco_streams_if_distinct|kesco_stretch)(?:E|I)")
_COPIES = re.compile(r"\d(kesco_copy(?:_2d|_to_symbol|_from_symbol)?|kesco_send|kesco_fetch)(?:E|I|P)")
_CURRENT, _ON = re.compile(r"\dkesco_currentE"), re.compile(r"\dKescoOnE")
_WAITS = re.compile(r"\d(?:kesco_sent|kesco_fetched)E")
_HELD = {1: Held.SOURCE, 2: Held.ALL}
COPIED_AS = {own: name for name, own in OWN.items()} | dict.fromkeys((SEND, FETCH), "cudaMemcpy")
_Touched = dict[tuple[Buffer, str, ByteRange | None], AccessMode]
_PROGRESS = ("io", "clock", "exit", "thread")
_FLAT = ("cudaMemset", "cudaMemcpy")
_SIZED = ("cudaMemset", "cudaMemcpy", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")


@dataclass(slots=True)
class Touching:
    """See the module's docstring; the interpreter's watcher."""

    paths: Watching
    effects: Mapping[str, KernelEffects]

    # ---- what is about paths

    def enters(self, frame: Frame, call: Instruction, function: Function, context: int, state: State) -> object:
        """A function is called."""
        return self.paths.enters(call, function, context, state)

    def leaves(self, entered: object, left: State | None, thrown: State | None) -> None:
        """It came back."""
        self.paths.leaves(entered, left, thrown)

    def turns(self, frame: Frame, instruction: Instruction, state: State) -> None:
        """Control comes to the end of a block."""
        self.paths.turns(instruction, state)

    def touches(self, state: State, one: Object | None, *, writes: bool) -> None:
        """The host reads or writes what the device may reach."""
        self.paths.touches(state, one, writes=writes)

    def answers(self, name: str, values: list[Value], state: State) -> Value | None:
        """What a function of kesco's own prologue returns: the streams and events of a text that is read again."""
        if not self.paths.streams or "esco" not in name or self.paths.engine.module.has_body(name):
            return None
        if _STREAMS.search(name):
            return pointer(self.paths.engine.resource("kesco", ""))
        if (own := _COPIES.search(name)) is not None:
            self._own_copy(state, own[1], values)
            return STATUS
        if _CURRENT.search(name):
            return pointer(self.paths.engine.resource("kesco", "current"))
        if _ON.search(name):
            self.paths.set_stream(handle_of(values[0]) if values else None)
            return NUMBER
        return STATUS if _WAITS.search(name) else None

    def makes(self, one: Object) -> None:
        """Memory, a stream or an event is made."""
        self.paths.made[one] = self.paths.iterations()

    # ---- launches

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched with these pointers and numbers; no name: it is not known which."""
        kernel = kernel_of(stub)
        effects = self.effects.get(kernel) if stub else None
        node = self._launch_node(launch)
        name = node.kernel.name if node is not None else kernel or "a kernel"
        note = ""
        touched: _Touched = {}
        settings = dict(launch.settings)
        dimensions = tuple(size for one in ("grid", "block") for size in _three(settings.get(one)))
        given_ = LaunchValues(tuple(_constant(numbers.get(i)) for i in range(max(numbers, default=-1) + 1)), dimensions)
        if effects is None or effects.opaque or self._is_stated(node):
            why = effects.opaque if effects is not None and effects.opaque else "its body is not visible"
            touched[UNKNOWN, why, None] = _BOTH
            self._order(frozenset({"unseen"}), touched)
        if effects is not None:
            note = self._apply(effects, found, touched, given_)
        handle = handle_of(settings.get("stream", frozenset()))
        role = Role.MOVABLE if not note or handle is not None else Role.LEGACY
        draft = self.paths.site(state, name, LAUNCH, SiteKind.KERNEL, role, handle)
        if draft is None:
            return
        draft.note = note or draft.note
        draft.acts = draft.acts and all(_positive(settings.get(one)) for one in ("grid", "block"))
        self._put_on(draft, handle, name)
        if node is not None and node.kernel.priority is not None:
            draft.priority = node.kernel.priority
        for (buffer, why, part), mode in touched.items():
            draft.touch(buffer, why, mode, part)
        parameters = node.kernel.parameters if node is not None else ()
        records = self.paths.texts.program.records
        given = node.arguments if node is not None else ()
        if any(is_watched(one, records) for one in parameters) or any(points_to_volatile(a, records) for a in given):
            self.paths.volatile.add(draft.operation)
        if effects is None or effects.keeps:
            self.paths.told |= {buffer for _, value in found for buffer in self.pointed(value)}

    def _launch_node(self, launch: Launch) -> ir.Launch | None:
        activation, at, _, own = self.paths.where()
        operation = self.paths.operation(activation, at, LAUNCH) if own else -1
        nodes = (n for n in ir.walk(activation.function.body) if isinstance(n, ir.Launch))
        return next((n for n in nodes if n.operation == operation >= 0), None)

    def _is_stated(self, node: ir.Launch | None) -> bool:
        """Whether the author says what a kernel does: that is not used here."""
        if node is None:
            return False
        stated = any(one.kernel == node.kernel.name for one in self.paths.texts.program.stated)
        return stated or node.kernel.outputs is not None

    def _apply(
        self, effects: KernelEffects, found: list[tuple[str, Value]], touched: _Touched, launched: LaunchValues
    ) -> str:
        given: dict[tuple[int, int], Value] = {}
        for name, value in found:
            number_, _, inside = name.partition(".")
            given[int(number_), int(inside or 0)] = value
        for parameter in effects.params:
            why = through_parameter(parameter.index)
            for offset, effect in parameter.fields:
                if offset < 0:
                    values = [value for (index, _), value in given.items() if index == parameter.index]
                else:
                    values = [given[parameter.index, offset]] if (parameter.index, offset) in given else []
                self._root(values, effect, why, touched, launched)
        for symbol, effect in effects.symbols:
            buffer = self.symbol(symbol)
            touched[buffer, "device symbol", None] = effect.direct
            if effect.deep:
                touched[UNKNOWN, f"through pointers stored in {symbol}", None] = effect.deep
        self._order(effects.order, touched)
        if "texture" in effects.order:
            touched[UNKNOWN, "reads a texture", None] = AccessMode.READ
        if "launch" in effects.order:
            touched[UNKNOWN, "launches kernels itself", None] = _BOTH
        if "spin" in effects.order:
            return "its blocks wait for each other, so that all of them must be on the GPU at once"
        if "clock" in effects.order:
            return "it reads a clock, so running beside others would change what it measures"
        return ""

    def _root(
        self, values: list[Value], effect: RootEffect, why: str, touched: _Touched, launched: LaunchValues
    ) -> None:
        if effect.direct:
            parts = [part for value in values for part in self.parts(value)] or [(UNKNOWN, None)]
            for buffer, offset in parts:
                reason = why if buffer is not UNKNOWN else f"{why} may point anywhere"
                key = (buffer, reason, extent(_constant(offset), effect.footprint, launched))
                touched[key] = touched.get(key, AccessMode.NONE) | effect.direct
        if effect.deep:
            deep = (UNKNOWN, f"through pointers loaded from {why}", None)
            touched[deep] = touched.get(deep, AccessMode.NONE) | effect.deep

    def _order(self, order: frozenset[str], touched: _Touched) -> None:
        orders = {one for effects in self.effects.values() for one in effects.order}
        for name, buffer in (("printf", DEVICE_PRINTF), ("heap", DEVICE_HEAP)):
            if name in order or ("unseen" in order and name in orders):
                touched[buffer, buffer.name, None] = _BOTH

    def symbol(self, mangled: str) -> Buffer:
        """The buffer of a device symbol."""
        return self.paths.buffer(self.paths.engine.resource("symbol", mangled))

    # ---- values

    def parts(self, value: Value) -> list[tuple[Buffer, int | None]]:
        """The buffers that a pointer may lead to, and where in them if that is known; a null pointer leads nowhere."""
        found: dict[tuple[Buffer, int | None], None] = {}
        atoms = scalar(value)
        for atom in atoms:
            if type(atom) is Pointer:
                exact = not atom.offset[0] and not atom.object.many
                found[self.paths.buffer(atom.object), atom.offset[1] if exact else None] = None
            elif type(atom) is Unknown or atom:
                found[UNKNOWN, None] = None
        if not atoms:
            found[UNKNOWN, None] = None
        return list(found)

    def pointed(self, value: Value) -> list[Buffer]:
        """The same without offsets."""
        return list(dict.fromkeys(buffer for buffer, _ in self.parts(value)))

    def _put_on(self, draft: Draft, handle: Handle | None, name: str) -> None:
        draft.stream = handle
        if handle is not None and not self.paths.streams:
            draft.foreign = self.paths.now.activation.foreign = True
            self.paths.now.activation.stay_serial(f"{name} uses a stream of its own", draft.span)
            self.paths.file_wide = "on streams of its own the file may watch the work of others"

    # ---- calls of CUDA

    def calls(self, frame: Frame, call: Instruction, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""
        entry = cuda_entry(name, len(values))
        kind = entry.kind if entry is not None else "opaque"
        if entry is None or kind in ("opaque", "graph", "capture", "host_func", "launch"):
            draft = self.paths.join(state, name, foreign=True)
            if draft is not None:
                draft.touch(UNKNOWN, "what it does is not visible", _BOTH)
        elif kind in _KINDS:
            self._transfer(state, entry, values)
        elif kind == "alloc" and entry.stream is not None:
            draft = self.paths.site(state, entry.name, name, SiteKind.ALLOC, Role.JOIN)
            self._stays_here(draft)
        elif kind == "free":
            draft = self.paths.site(state, entry.name, name, SiteKind.FREE, Role.JOIN)
            self._access(draft, values[entry.frees] if entry.frees is not None else frozenset(), AccessMode.WRITE)
            if entry.stream is not None:
                self._stays_here(draft)
        elif kind in ("sync", "event_sync", "event_record", "event_wait"):
            self._ordering(state, entry, values)
        elif kind == "device":
            touched = self.paths.now.activation.touches_device
            draft = self.paths.site(state, entry.name, name, SiteKind.SYNC, Role.JOIN)
            if draft is not None:
                draft.foreign = draft.foreign or touched
            self.paths.now.activation.device_changed = True
        elif self.paths.looks and kind == "query" and not self.paths.is_about_launch(state, entry.shows):
            self.paths.looked(state)

    def _stays_here(self, draft: Draft | None) -> None:
        if draft is not None:
            draft.acts, draft.note = False, "stream-ordered memory stays on the default stream"

    def _access(
        self, draft: Draft | None, value: Value, mode: AccessMode, length: int | None = None, *, on_host: bool = False
    ) -> None:
        if draft is None:
            return
        why = "copies" if draft.kind is SiteKind.COPY else draft.kind.value
        for buffer, offset in self.parts(value):
            part = None
            if offset is not None and length is not None:
                part = ByteRange(constant(offset), constant(offset + length))
            if buffer is UNKNOWN:
                draft.touch(UNSEEN_HOST if on_host else UNKNOWN, "through a pointer that may point anywhere", mode)
            else:
                draft.touch(buffer, why, mode, part)

    def _ordering(self, state: State, entry: CudaCall, values: list[Value]) -> None:
        """Synchronizes, event records and waits."""
        paths = self.paths
        if entry.kind == "sync" and entry.host_waits == "device":
            draft = paths.site(state, entry.name, entry.name, SiteKind.SYNC, Role.DEVICE_SYNC)
            return
        handle = handle_of(values[entry.stream]) if entry.stream is not None else None
        event = handle_of(values[entry.event]) if entry.event is not None else None
        if entry.event is not None and event is None:
            event = Handle("?event", "an event", True, False)
        if not paths.streams:
            draft = paths.site(state, entry.name, entry.name, SiteKind.SYNC, Role.JOIN)
            if handle is not None and draft is not None:
                paths.now.activation.stay_serial(f"{entry.name} uses a stream of its own", draft.span)
            if draft is not None:
                draft.waits = entry.kind == "sync" and handle is None
            return
        role = {
            "sync": Role.STREAM_SYNC, "event_sync": Role.EVENT_SYNC, "event_record": Role.RECORD,
            "event_wait": Role.WAIT,
        }[entry.kind]  # fmt: skip
        if handle is None and not (event is not None and event.key.startswith("kesco:")):
            paths.site(state, entry.name, entry.name, SiteKind.SYNC, Role.JOIN)
        draft = paths.site(state, entry.name, entry.name, SiteKind.SYNC, role)
        if draft is not None:
            draft.stream, draft.event = handle, event
            draft.waits = entry.kind == "sync" and handle is None

    # ---- copies

    def _transfer(self, state: State, entry: CudaCall, values: list[Value], own: str = "") -> None:
        """A copy, a memset or a prefetch; `own`: its name in kesco's prologue."""
        name = entry.name.removesuffix("Async")
        handle = handle_of(values[entry.stream]) if entry.stream is not None else None
        way = self._way(entry, values)
        values = [self._of_symbol(v) if i == entry.symbol else v for i, v in enumerate(values)]
        shared = entry.symbol is not None and not all(b.on_device for b in self.pointed(values[entry.symbol]))
        note = self._why_stuck(entry, values, way, shared=shared)
        role = Role.LEGACY if note and handle is None else Role.MOVABLE
        draft = self.paths.site(state, name, own or entry.name, _KINDS[entry.kind], role, handle)
        if draft is None:
            return
        draft.note = note or draft.note
        self._put_on(draft, handle, own or entry.name)
        size = number(values[2]) if name in _SIZED and len(values) > 2 else None
        draft.bytes = max(draft.bytes, size if size is not None and size > 0 else ANY_SIZE)
        draft.acts = draft.acts and bool(size)
        if name in OWN and (own or entry.name == name) and not shared:
            held = _HELD.get(way) if way is not None else None
            draft.held = Held.LATER if held is Held.ALL and own == FETCH else held
        length = size if name in _FLAT and size is not None and size >= 0 else None
        for indexes, mode, on_host in (
            (entry.reads, AccessMode.READ, way == _TO_DEVICE), (entry.writes, AccessMode.WRITE, way == _TO_HOST),
        ):  # fmt: skip
            for index in indexes:
                self._access(draft, values[index], mode, length, on_host=on_host)
                state.device |= {a.object for a in scalar(values[index]) if type(a) is Pointer}
        if entry.kind == "prefetch":
            self._access(draft, values[0], AccessMode.WRITE)

    def _of_symbol(self, value: Value) -> Value:
        """A symbol's memory on the device, from the variable that stands for it on the host."""
        resource = self.paths.engine.resource
        return frozenset(
            Pointer(resource("symbol", one.object.name), one.offset)
            if type(one) is Pointer and one.object.kind == "global" else one
            for one in scalar(value)
        )  # fmt: skip

    def _own_copy(self, state: State, own: str, values: list[Value]) -> None:
        """The copy that kesco's prologue defines: on a stream; its last argument: then wait for all."""
        entry = cuda_call(f"{COPIED_AS[own]}Async")
        assert entry is not None and entry.stream is not None
        self._transfer(state, replace(entry, name=COPIED_AS[own]), values, own)
        if len(values) > entry.stream + 1 and number(values[entry.stream + 1]) == 1:
            self.paths.site(state, OWN[COPIED_AS[own]], own, SiteKind.SYNC, Role.DEVICE_SYNC)

    def _way(self, entry: CudaCall, values: list[Value]) -> int | None:
        if entry.direction is None or entry.direction >= len(values):
            return _DIRECTIONS.get(entry.fixed_direction or "")
        return number(values[entry.direction])

    def _why_stuck(self, entry: CudaCall, values: list[Value], way: int | None, *, shared: bool) -> str:
        """Why a copy or memset keeps its place on the default stream, or an empty text."""
        if shared:
            return "the host may use the symbol, too"
        sides = {b.kind for i in (*entry.reads, *entry.writes) if i != entry.symbol for b in self.pointed(values[i])}
        if entry.stream is not None:
            known = {BufferKind.PINNED, BufferKind.MANAGED, BufferKind.DEVICE}
            if entry.kind != "copy" or way == _ON_DEVICE or (way in (_TO_DEVICE, _TO_HOST) and sides <= known):
                return ""
            return "its host memory may be pageable, and then the host waits for it here"
        if entry.async_form is None:
            return "it has no asynchronous form"
        if sides - {BufferKind.DEVICE} or (entry.kind == "copy" and way != _ON_DEVICE):
            return "the host may have to wait for it here"
        return ""

    # ---- code that is not followed

    def runs(self, frame: Frame, name: str, reached: Iterable[Object], state: State, *, seen: bool) -> None:
        """Code that is not followed runs and may reach these; `seen`: it belongs to no program."""
        paths = self.paths
        if name in ("__cxa_throw", "__cxa_rethrow"):
            paths.throws(state)
            return
        host = host_call(name)
        if host is not None and host.kind == "exit" and not state.failing:
            paths.now.activation.exits = True
        every = list(reached)
        model = paths.engine.models.of(name)
        if not seen or model is None or model.keeps or model.given:
            paths.told |= {paths.buffer(one) for one in every if one.kind != "function"}
        called = [o.name for o in every if o.kind == "function" and paths.engine.module.has_body(o.name)]
        acting = [one for one in called if paths.engine.leads_to_cuda(one)]
        if not seen or acting:
            if acting and name in _THREADS:
                paths.file_wide = "the file starts host threads that have to do with the device"
            paths.unseen(state, name, every)
            return
        for one in every:
            if one.visible and (one.shared or one in state.device):
                paths.touches(state, one, writes=False)
                paths.touches(state, one, writes=True)
        if paths.looks and self._may_look(name):
            paths.looked(state)

    def _may_look(self, name: str) -> bool:
        """Whether a function of a library may show how far the device is: by output, or a clock."""
        host, model = host_call(name), self.paths.engine.models.of(name)
        if host is not None:
            return host.kind in _PROGRESS
        shows = model is None or model.shows or model.given or model.keeps
        return not name.startswith("llvm.") and (shows or "clock" in name or "time" in name)


_THREADS = (
    "pthread_create", "thrd_create", "__kmpc_fork_call", "__kmpc_fork_teams", "__kmpc_omp_task",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
)  # fmt: skip


def _constant(value: int | None) -> Poly | None:
    return None if value is None else constant(value)


def _three(value: Value | None) -> tuple[Poly | None, ...]:
    """The dimensions of a grid or block."""
    if not isinstance(value, tuple) or len(value) != 3:
        return (None,) * 3
    found = [number(one) for one in value]
    return tuple(_constant(one) if one is not None and one > 0 else None for one in found)


def _positive(value: Value | None) -> bool:
    """Whether a number of blocks or threads is known, and none of its dimensions 0."""
    if not isinstance(value, tuple):
        return False
    found = [number(one) for one in value]
    return all(one is not None and one > 0 for one in found)
