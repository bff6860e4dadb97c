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
from dataclasses import dataclass

from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import cuda_entry
from kesco.analysis.host.values import Object, Pointer, Unknown, Value, number, pointer, scalar
from kesco.analysis.host_regions.handles import handle_of, turn_of
from kesco.analysis.host_regions.texts import LAUNCH
from kesco.analysis.host_regions.watching import Watching
from kesco.analysis.region import ANY_SIZE, Draft
from kesco.frontend.api_table import CudaCall, host_call
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
from kesco.ir.flow import Handle, Role, SiteKind
from kesco.ir.volatiles import is_watched
from kesco.llvm.names import kernel_of
from kesco.llvm.values import Function, Instruction

_BOTH = AccessMode.READ_WRITE
_KINDS = {"copy": SiteKind.COPY, "memset": SiteKind.MEMSET, "prefetch": SiteKind.PREFETCH}
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_DIRECTIONS = {"HostToHost": 0, "HostToDevice": _TO_DEVICE, "DeviceToHost": _TO_HOST, "DeviceToDevice": _ON_DEVICE}
_STREAMS = re.compile(r"\d(?:kesco_streams|kesco_streams_if_distinct|kesco_stretch)(?:E|I)")
_PROGRESS = ("io", "clock", "exit", "thread")
_SIZED = ("cudaMemset", "cudaMemcpy", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")
_HIDDEN = (BufferKind.DEVICE, BufferKind.ENTRY, BufferKind.ORDER)
_WATCHED = "it writes memory that the host may look at before it waits"


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

    def answers(self, name: str, values: list[Value]) -> Value | None:
        """What a function of kesco's own prologue returns: the streams and events of a text that is read again."""
        if not self.paths.streams or "kesco_" not in name or self.paths.engine.module.has_body(name):
            return None
        return pointer(self.paths.engine.resource("kesco", "")) if _STREAMS.search(name) else None

    # ---- launches

    def launches(self, frame: Frame, stub: str, launch: Launch, found: list[tuple[str, Value]], state: State) -> None:
        """A kernel is launched; no name: it is not known which."""
        kernel = kernel_of(stub)
        effects = self.effects.get(kernel) if stub else None
        node = self._launch_node(launch)
        name = node.kernel.name if node is not None else kernel or "a kernel"
        note = ""
        touched: dict[tuple[Buffer, str], AccessMode] = {}
        if effects is None or effects.opaque or self._is_stated(node):
            why = effects.opaque if effects is not None and effects.opaque else "its body is not visible"
            touched[UNKNOWN, why] = _BOTH
            self._order(frozenset({"unseen"}), touched)
        if effects is not None:
            note = self._apply(effects, found, touched)
        settings = dict(launch.settings)
        handle = handle_of(settings.get("stream", frozenset()))
        role = Role.MOVABLE if not note or handle is not None else Role.LEGACY
        draft = self.paths.site(state, name, LAUNCH, SiteKind.KERNEL, role)
        if draft is None:
            return
        draft.note = note or draft.note
        draft.acts = draft.acts and all(_positive(settings.get(one)) for one in ("grid", "block"))
        self._put_on(draft, handle, name)
        if node is not None and node.kernel.priority is not None:
            draft.priority = node.kernel.priority
        for (buffer, why), mode in touched.items():
            draft.touch(buffer, why, mode)
        shown = any(_is_shown(buffer) and mode & AccessMode.WRITE for (buffer, _), mode in touched.items())
        parameters = node.kernel.parameters if node is not None else ()
        if shown or any(is_watched(one, self.paths.texts.program.records) for one in parameters):
            self.paths.now.activation.stay_serial(f"{name}: {_WATCHED}", draft.span)

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
        self, effects: KernelEffects, found: list[tuple[str, Value]], touched: dict[tuple[Buffer, str], AccessMode]
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
                self._root(values, effect, why, touched)
        for symbol, effect in effects.symbols:
            buffer = self.symbol(symbol)
            touched[buffer, "device symbol"] = touched.get((buffer, "device symbol"), AccessMode.NONE) | effect.direct
            if effect.deep:
                touched[UNKNOWN, f"through pointers stored in {symbol}"] = effect.deep
        self._order(effects.order, touched)
        if "texture" in effects.order:
            touched[UNKNOWN, "reads a texture"] = AccessMode.READ
        if "launch" in effects.order:
            touched[UNKNOWN, "launches kernels itself"] = _BOTH
        if "spin" in effects.order:
            return "its blocks wait for each other, so that all of them must be on the GPU at once"
        if "clock" in effects.order:
            return "it reads a clock, so running beside others would change what it measures"
        return ""

    def _root(
        self, values: list[Value], effect: RootEffect, why: str, touched: dict[tuple[Buffer, str], AccessMode]
    ) -> None:
        if effect.direct:
            if not values:
                touched[UNKNOWN, f"{why} may point anywhere"] = effect.direct
            for value in values:
                for buffer in self.pointed(value):
                    reason = why if buffer is not UNKNOWN else f"{why} may point anywhere"
                    touched[buffer, reason] = touched.get((buffer, reason), AccessMode.NONE) | effect.direct
        if effect.deep:
            key = (UNKNOWN, f"through pointers loaded from {why}")
            touched[key] = touched.get(key, AccessMode.NONE) | effect.deep

    def _order(self, order: frozenset[str], touched: dict[tuple[Buffer, str], AccessMode]) -> None:
        orders = {one for effects in self.effects.values() for one in effects.order}
        for name, buffer in (("printf", DEVICE_PRINTF), ("heap", DEVICE_HEAP)):
            if name in order or ("unseen" in order and name in orders):
                touched[buffer, buffer.name] = _BOTH

    def symbol(self, mangled: str) -> Buffer:
        """The buffer of a device symbol."""
        return self.paths.buffer(self.paths.engine.resource("symbol", mangled))

    # ---- values

    def pointed(self, value: Value) -> list[Buffer]:
        """The buffers that a pointer may lead to; a null pointer leads nowhere."""
        found: dict[Buffer, None] = {}
        atoms = scalar(value)
        for atom in atoms:
            if type(atom) is Pointer:
                found[self.paths.buffer(atom.object)] = None
            elif type(atom) is Unknown or atom:
                found[UNKNOWN] = None
        if not atoms:
            found[UNKNOWN] = None
        return list(found)

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
        elif self.paths.looks and kind == "query" and entry.shows != "nothing":
            self.paths.looked(state)

    def _stays_here(self, draft: Draft | None) -> None:
        if draft is not None:
            draft.acts, draft.note = False, "stream-ordered memory stays on the default stream"

    def _access(
        self, draft: Draft | None, value: Value, mode: AccessMode, why: str = "", *, on_host: bool = False
    ) -> None:
        if draft is None:
            return
        why = why or ("copies" if draft.kind is SiteKind.COPY else draft.kind.value)
        for buffer in self.pointed(value):
            if buffer is UNKNOWN:
                draft.touch(UNSEEN_HOST if on_host else UNKNOWN, "through a pointer that may point anywhere", mode)
            else:
                draft.touch(buffer, why, mode)

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
        draft = paths.site(state, entry.name, entry.name, SiteKind.SYNC, role, turn_of(event))
        if draft is not None:
            draft.stream, draft.event = handle, event
            draft.waits = entry.kind == "sync" and handle is None

    # ---- copies

    def _transfer(self, state: State, entry: CudaCall, values: list[Value]) -> None:
        name = entry.name.removesuffix("Async")
        handle = handle_of(values[entry.stream]) if entry.stream is not None else None
        way = self._way(entry, values)
        note = self._why_stuck(entry, values, way)
        role = Role.LEGACY if note and handle is None else Role.MOVABLE
        draft = self.paths.site(state, name, entry.name, _KINDS[entry.kind], role)
        if draft is None:
            return
        draft.note = note or draft.note
        self._put_on(draft, handle, entry.name)
        size = number(values[2]) if name in _SIZED and len(values) > 2 else None
        draft.bytes = max(draft.bytes, size if size is not None and size > 0 else ANY_SIZE)
        draft.acts = draft.acts and bool(size)
        for index in entry.reads:
            self._access(draft, values[index], AccessMode.READ, on_host=way == _TO_DEVICE)
        for index in entry.writes:
            self._access(draft, values[index], AccessMode.WRITE, on_host=way == _TO_HOST)
        if entry.kind == "prefetch":
            self._access(draft, values[0], AccessMode.WRITE)
        shown = any(_is_shown(b) and m & AccessMode.WRITE for (b, _, _), m in draft.accesses.items())
        if shown and draft.role is Role.MOVABLE:
            self.paths.now.activation.stay_serial(f"{entry.name}: {_WATCHED}", draft.span)

    def _way(self, entry: CudaCall, values: list[Value]) -> int | None:
        if entry.direction is None or entry.direction >= len(values):
            return _DIRECTIONS.get(entry.fixed_direction or "")
        return number(values[entry.direction])

    def _why_stuck(self, entry: CudaCall, values: list[Value], way: int | None) -> str:
        """Why a copy or memset keeps its place on the default stream, or an empty text."""
        if entry.symbol is not None:
            if entry.kind == "copy":
                return "copies of symbols stay in place"
            buffers = self.pointed(values[entry.symbol])
            if not all(one.on_device for one in buffers):
                return "the host may use the symbol, too"
        sides = [buffer for index in (*entry.reads, *entry.writes) for buffer in self.pointed(values[index])]
        if entry.stream is not None:
            if entry.kind != "copy" or way == _ON_DEVICE:
                return ""
            known = {BufferKind.PINNED, BufferKind.MANAGED, BufferKind.DEVICE}
            if way in (_TO_DEVICE, _TO_HOST) and {one.kind for one in sides} <= known:
                return ""
            return "its host memory may be pageable, and then the host waits for it here"
        if entry.async_form is None:
            return "it has no asynchronous form"
        if any(one.kind is not BufferKind.DEVICE for one in sides) or (entry.kind == "copy" and way != _ON_DEVICE):
            return "the host may have to wait for it here"
        return ""

    # ---- code that is not followed

    def runs(self, frame: Frame, name: str, reached: Iterable[Object], state: State, *, seen: bool) -> None:
        """Code that is not followed runs and may reach these; `seen`: it belongs to no program."""
        paths = self.paths
        if name in ("__cxa_throw", "__cxa_rethrow"):
            paths.throws(state)
            return
        every = list(reached)
        called = [o.name for o in every if o.kind == "function" and paths.engine.module.has_body(o.name)]
        acting = [one for one in called if paths.launches_in(one)]
        if not seen or acting:
            if acting and name in _THREADS:
                paths.file_wide = "the file starts host threads that have to do with the device"
            paths.unseen(state, name, every)
            return
        for one in every:
            if one.visible and (one.shared or one in state.device):
                paths.touches(state, one, writes=False)
                paths.touches(state, one, writes=True)
        host = host_call(name)
        if paths.looks and not name.startswith("llvm.") and (host is None or host.kind in _PROGRESS):
            paths.looked(state)


_THREADS = (
    "pthread_create", "thrd_create", "__kmpc_fork_call", "__kmpc_fork_teams", "__kmpc_omp_task",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
)  # fmt: skip


def _is_shown(buffer: Buffer) -> bool:
    """Whether the host can look at memory without CUDA, as far as is known here; callers know of what came in."""
    return not (buffer.kind in _HIDDEN or buffer.on_device)


def _positive(value: Value | None) -> bool:
    """Whether a number of blocks or threads is known, and none of its dimensions 0."""
    if not isinstance(value, tuple):
        return False
    found = [number(one) for one in value]
    return all(one is not None and one > 0 for one in found)
