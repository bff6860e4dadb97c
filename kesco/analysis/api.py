"""Calls of the CUDA runtime API → sites, by the table in ``frontend/resources/cuda_api.toml``.

In: a call, its table entry and the state. Out: its site, and what it does to the store: new buffers, streams and events
behind out-parameters. What the table calls opaque joins pending work and is otherwise left alone.
"""

from __future__ import annotations

from kesco.analysis.evaluate import Evaluator, kernel_named
from kesco.analysis.evaluation_order import order_matters, pure_functions
from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Place, Value, pointer
from kesco.analysis.region import ANY_SIZE, Draft
from kesco.analysis.state import State
from kesco.frontend.api_table import CudaCall
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Handle, Role, SiteKind
from kesco.source import Span

_MEMORY = {
    "device": BufferKind.DEVICE,
    "managed": BufferKind.MANAGED,
    "pinned": BufferKind.PINNED,
    "mapped": BufferKind.PINNED,
    "array": BufferKind.DEVICE,
    "async": BufferKind.DEVICE,
}
_SIZED = ("cudaMemset", "cudaMemcpy", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")  # in bytes, third argument
_KINDS = {"copy": SiteKind.COPY, "memset": SiteKind.MEMSET, "prefetch": SiteKind.PREFETCH}
_HOST_TO_HOST, _HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 0, 1, 2, 3
_NON_BLOCKING = 1


class CudaApi(Evaluator):
    """What the calls of the runtime API do."""

    def __init__(self, program: ir.Program, *, streams: bool) -> None:
        super().__init__(program)
        self.streams = streams
        self.pure = pure_functions(program)
        self.escaped: set[Object] = set()

    # ---- sites ------------------------------------------------------------------------------------------------------

    def site(self, state: State, name: str, kind: SiteKind, role: Role, operation: int, span: Span) -> Draft:
        """The site of an operation at this point; control has passed it afterwards."""
        self.flush_host(state)
        key = (operation, role.value, self.now.iterations)
        draft, state.frontier = self.now.builder.add(key, name, kind, role, span, state.frontier)
        if role not in (Role.HOST, Role.EXIT):
            self.now.touches_device = True
        return draft

    def flush_host(self, state: State) -> None:
        """A site for what the host itself has touched, or looked at, since the last site."""
        if not (self.now.host or self.now.looked):
            return
        span = self.now.statement or self.now.function.span
        touched, self.now.host = self.now.host, {}
        key = (-2 - span.start, "host", self.now.iterations)
        draft, state.frontier = self.now.builder.add(key, "host", SiteKind.HOST_USE, Role.HOST, span, state.frontier)
        draft.looks, self.now.looked = draft.looks or self.now.looked, False
        for buffer, mode in touched.items():
            draft.accesses[buffer, "host"] = draft.accesses.get((buffer, "host"), AccessMode.NONE) | mode

    def device_site(
        self,
        state: State,
        name: str,
        kind: SiteKind,
        operation: int,
        span: Span,
        stream: Value,
        has_stream: bool,
        note: str,
    ) -> Draft:
        """The site of asynchronous device work: movable where its text can be edited and nothing speaks against it."""
        handle = self.handle_of(stream) if has_stream else None
        stuck = self.program.operations[operation].stuck
        if self.program.operations[operation].stream_text is None and not stuck:
            stuck = "its text cannot be edited"
        if self.now.unseen_in is not None and self.now.unseen_in == self.now.statement:
            stuck = stuck or "code that is not seen runs in the same statement"
        if handle is not None and not self.streams:
            self.stay_serial(f"{name} uses a stream of its own", span)
        role = Role.LEGACY if (stuck or note) and handle is None else Role.MOVABLE
        draft = self.site(state, name, kind, role, operation, span)
        draft.note = note or stuck
        draft.stream = handle
        return draft

    def stay_serial(self, why: str, span: Span) -> None:
        """This function is left as it was."""
        if not self.now.builder.serial_because:
            self.now.builder.serial_because = f"{why} (line {span.line})"

    def handle_of(self, value: Value) -> Handle | None:
        """The stream or event a value stands for; None for the legacy default stream."""
        if not value.places and not value.unknown and value.number in (0, 1):
            return None  # 0 and cudaStreamLegacy
        handles = {p.object.handle for p in value.places if p.object.handle is not None}
        if len(handles) == 1 and not value.unknown and len(value.places) == 1:
            (place,) = value.places
            handle = place.object.handle
            if handle is not None and not place.object.many:
                return handle
        names = ",".join(sorted(h.name for h in handles)) or "unknown"
        return Handle(f"?{names}", names, all(h.blocking for h in handles) and not value.unknown, False)

    def buffer_of(self, place: Place) -> Buffer:
        """The unit of aliasing a place belongs to."""
        one = place.object
        if one.buffer is not None:
            return one.buffer
        return Buffer(f"host:{one.key}", one.name, BufferKind.HOST)

    # ---- calls ------------------------------------------------------------------------------------------------------

    def cuda(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """A call that the table knows."""
        kind = entry.kind
        if kind in ("query", "advise"):
            return self._query(state, call, entry)
        if kind == "alloc":
            return self._alloc(state, call, entry)
        if kind in ("stream_create", "event_create"):
            return self._create(state, call, entry)
        if kind in ("stream_destroy", "event_destroy"):
            return self._evaluated(state, call)
        if kind in _KINDS:
            return self._transfer(state, call, entry)
        if kind == "launch" and entry.name == "cudaLaunchKernel":
            return self._launch_call(state, call, entry)
        if kind == "free":
            return self._free(state, call, entry)
        if kind in ("sync", "event_sync", "event_record", "event_wait"):
            return self._order(state, call, entry)
        if kind == "device":
            return self._device(state, call)
        return self.opaque(state, call, foreign=kind in ("opaque", "graph", "capture", "launch", "host_func"))

    def _evaluated(self, state: State, call: ir.Call) -> Value:
        self.argument_values(state, call)
        return NOTHING

    def argument_values(self, state: State, call: ir.Call) -> list[Value]:
        """The values of the arguments; one that is passed by a reference that is not const counts as its address."""
        values = []
        for index, argument in enumerate(call.arguments):
            if index < len(call.references) and call.references[index] and _is_lvalue(argument):
                places, unknown = self.places(state, argument)
                values.append(Value(places, None, unknown))
            else:
                values.append(self.evaluate(state, argument))
        return self.in_any_order(call.arguments, values)

    def in_any_order(self, arguments: tuple[ir.Expr, ...], values: list[Value]) -> list[Value]:
        """The values of arguments; none is known where one may change what another mentions."""
        return [TOP] * len(values) if order_matters(arguments, self.pure, self._is_exposed) else values

    def _is_exposed(self, variable: ir.Variable) -> bool:
        own = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and variable.type.shape is not ir.Shape.REFERENCE
        return not own or self.object_of(variable) in self.escaped

    def _query(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = self.argument_values(state, call)
        self.now.looked = self.looks
        for index in entry.out:
            if index < len(values):
                self.assign(state, values[index].places, values[index].unknown, TOP)
        return NOTHING

    def _alloc(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = self.argument_values(state, call)
        if entry.stream is not None:
            self._ordered(state, call, entry, values, SiteKind.ALLOC)
        for index in entry.out:
            if index < len(values) and index != entry.allocates:
                self.assign(state, values[index].places, values[index].unknown, TOP)
        if entry.allocates is None or entry.allocates >= len(values):
            return self.opaque(state, call)
        target = values[entry.allocates]
        name = "/".join(sorted(p.name for p in target.places)) or entry.name
        base = self.fresh(f"alloc:{call.operation}", name)
        kind = _MEMORY.get(entry.memory or "device", BufferKind.UNKNOWN)
        size = values[entry.size].number if entry.size is not None and entry.size < len(values) else None
        buffer = Buffer(base.key, name, kind, call.span, size)
        made = Object(base.key, name, ObjectKind.BUFFER, buffer, many=base.many)
        self.assign(state, target.places, target.unknown, pointer(Place(made)))
        return NOTHING

    def _create(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = self.argument_values(state, call)
        if entry.allocates is None or entry.allocates >= len(values):
            return self.opaque(state, call)
        target = values[entry.allocates]
        name = "/".join(sorted(p.name for p in target.places)) or entry.name
        base = self.fresh(f"handle:{call.operation}", name)
        flags = values[entry.flags] if entry.flags is not None and entry.flags < len(values) else None
        blocking = flags is None or flags.number == 0
        handle = Handle(base.key, name, blocking, not base.many)
        made = Object(base.key, name, ObjectKind.HANDLE, handle=handle, many=base.many)
        self.assign(state, target.places, target.unknown, pointer(Place(made)))
        return NOTHING

    def _stream(self, call: ir.Call, values: list[Value], entry: CudaCall) -> tuple[Value, bool]:
        """The value of the stream argument, and whether it is written at all."""
        index = entry.stream
        if index is None or index >= len(values) or call.arguments[index] == ir.Literal("default"):
            return NOTHING, False
        return values[index], True

    def _transfer(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = [
            Value(v.every_place(), None, v.any_unknown()) if v.fields else v  # a cudaPitchedPtr by value
            for v in self.argument_values(state, call)
        ]
        stream, given = self._stream(call, values, entry)
        note = self._why_stuck(entry, values)
        name = entry.name.removesuffix("Async")  # the same operation before and after it is made asynchronous
        if note and not given:
            draft = self.site(state, name, _KINDS[entry.kind], Role.LEGACY, call.operation, call.span)
            draft.note = note
        elif note:
            handle = self.handle_of(stream)
            if handle is not None and not self.streams:
                self.stay_serial(f"{entry.name} uses a stream of its own", call.span)
            role = Role.LEGACY if handle is None else Role.MOVABLE
            draft = self.site(state, name, _KINDS[entry.kind], role, call.operation, call.span)
            draft.note, draft.stream = note, handle
        else:
            kind = _KINDS[entry.kind]
            draft = self.device_site(state, name, kind, call.operation, call.span, stream, given, "")
        size = values[2].number if name in _SIZED and len(values) > 2 else None
        draft.bytes = max(draft.bytes, size or ANY_SIZE)
        for indexes, mode in ((entry.reads, AccessMode.READ), (entry.writes, AccessMode.WRITE)):
            for index in indexes:
                self._access(state, draft, values[index] if index < len(values) else TOP, mode)
        if entry.kind == "prefetch":
            self._access(state, draft, values[0], AccessMode.WRITE)
        return NOTHING

    def _access(self, state: State, draft: Draft, value: Value, mode: AccessMode) -> None:
        for place in value.places:
            key = (self.buffer_of(place), "copies" if draft.kind is SiteKind.COPY else draft.kind.value)
            draft.accesses[key] = draft.accesses.get(key, AccessMode.NONE) | mode
            if mode & AccessMode.WRITE:
                state.store.clobber((place.object,))
        if value.unknown or not value.places:
            key = (UNKNOWN, "through a pointer that may point anywhere")
            draft.accesses[key] = draft.accesses.get(key, AccessMode.NONE) | mode
            if mode & AccessMode.WRITE:
                self.clobber_escaped(state)

    def _why_stuck(self, entry: CudaCall, values: list[Value]) -> str:
        """Why a copy or memset keeps its place on the default stream, or an empty text."""
        if entry.symbol is not None:
            return "copies to and from symbols stay on the default stream"
        if entry.stream is not None:
            if entry.kind != "copy":
                return ""
            return self._why_copy_waits(entry, values)
        if entry.async_form is None:
            return "it has no asynchronous form"
        touched = [values[i] if i < len(values) else TOP for i in (*entry.reads, *entry.writes)]
        kinds = {self.buffer_of(p).kind for value in touched for p in value.places}
        known = all(value.places and not value.unknown for value in touched)
        if not known or kinds - {BufferKind.DEVICE}:
            return "the host may have to wait for it here"
        if entry.kind == "copy":
            direction = (
                values[entry.direction].number
                if entry.direction is not None and entry.direction < len(values)
                else None
            )
            if direction != _DEVICE_TO_DEVICE:
                return "the host may have to wait for it here"
        return ""

    def _why_copy_waits(self, entry: CudaCall, values: list[Value]) -> str:
        """Why an asynchronous copy may make the host wait: for pageable memory it does, as the CUDA guide says."""
        if entry.direction is None:
            return "copies of this kind stay in place"
        direction = values[entry.direction].number if entry.direction < len(values) else None
        if direction == _DEVICE_TO_DEVICE:
            return ""
        if direction == _HOST_TO_HOST:
            return "the host waits for it here"
        sides = {_HOST_TO_DEVICE: entry.reads, _DEVICE_TO_HOST: entry.writes}.get(direction or -1)
        for index in (*entry.reads, *entry.writes) if sides is None else sides:
            value = values[index] if index < len(values) else TOP
            kinds = {self.buffer_of(p).kind for p in value.places}
            known = {BufferKind.PINNED, BufferKind.MANAGED, BufferKind.DEVICE}
            if value.unknown or not kinds or kinds - known:
                return "its host memory may be pageable, and then the host waits for it here"
        return ""

    def _launch_call(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """``cudaLaunchKernel(function, grid, block, arguments, shared, stream)``."""
        values = self.argument_values(state, call)
        kernel = kernel_named(call.arguments[0]) if call.arguments else None
        stream, given = self._stream(call, values, entry)
        index = entry.arguments
        if kernel is None or index is None or index >= len(values):
            return self.opaque(state, call)
        arguments = []
        for position in range(len(kernel.parameters)):
            at = self.offset(values[index], position)
            slot = self.read_all(state, at.places, at.unknown)
            arguments.append(self.read_all(state, slot.places, slot.unknown or not slot.places))
        self.kernel_site(state, kernel, arguments, call.operation, call.span, stream, given)
        return NOTHING

    def _free(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = self.argument_values(state, call)
        if entry.stream is not None:
            return self._ordered(state, call, entry, values, SiteKind.FREE)
        draft = self.site(state, entry.name, SiteKind.FREE, Role.JOIN, call.operation, call.span)
        if entry.frees is not None and entry.frees < len(values):
            self._access(state, draft, values[entry.frees], AccessMode.WRITE)
        return NOTHING

    def _ordered(self, state: State, call: ir.Call, entry: CudaCall, values: list[Value], kind: SiteKind) -> Value:
        """Stream-ordered allocation and deallocation: stays where it is."""
        stream, given = self._stream(call, values, entry)
        handle = self.handle_of(stream) if given else None
        if handle is not None and not self.streams:
            self.stay_serial(f"{entry.name} uses a stream of its own", call.span)
        role = Role.LEGACY if handle is None else Role.MOVABLE
        draft = self.site(state, entry.name, kind, role, call.operation, call.span)
        draft.stream = handle
        draft.note = "stream-ordered memory stays on the default stream"
        if entry.frees is not None and entry.frees < len(values):
            self._access(state, draft, values[entry.frees], AccessMode.WRITE)
        return NOTHING

    def _order(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """Synchronizes, event records and waits."""
        values = self.argument_values(state, call)
        if entry.kind == "sync" and entry.host_waits == "device":
            self.site(state, entry.name, SiteKind.SYNC, Role.DEVICE_SYNC, call.operation, call.span)
            return NOTHING
        stream, given = self._stream(call, values, entry)
        handle = self.handle_of(stream) if given else None
        event = None
        if entry.event is not None and entry.event < len(values):
            event = self.handle_of(values[entry.event]) or Handle("?event", "an event", True, False)
        if not self.streams:
            if handle is not None:
                self.stay_serial(f"{entry.name} uses a stream of its own", call.span)
            self.site(state, entry.name, SiteKind.SYNC, Role.JOIN, call.operation, call.span)
            return NOTHING
        role = {
            "sync": Role.STREAM_SYNC,
            "event_sync": Role.EVENT_SYNC,
            "event_record": Role.RECORD,
            "event_wait": Role.WAIT,
        }[entry.kind]
        mine = event is not None and event.key.startswith("kesco:")
        if handle is None and not mine:  # on the default stream it may show what has run: the serial program's view
            self.site(state, entry.name, SiteKind.SYNC, Role.JOIN, call.operation, call.span)
        draft = self.site(state, entry.name, SiteKind.SYNC, role, call.operation, call.span)
        draft.stream, draft.event = handle, event
        return NOTHING

    def _device(self, state: State, call: ir.Call) -> Value:
        """``cudaSetDevice``, ``cudaDeviceReset``: pending work is joined before, streams are fetched again behind."""
        self._evaluated(state, call)
        touched = self.now.touches_device
        site = self.site(state, call.name, SiteKind.SYNC, Role.JOIN, call.operation, call.span)
        site.foreign = site.foreign or touched
        self.now.device_changed = True
        return NOTHING

    def kernel_site(
        self,
        state: State,
        kernel: ir.Kernel,
        arguments: list[Value],
        operation: int,
        span: Span,
        stream: Value,
        has_stream: bool,
    ) -> None:
        """Left to the subclass."""
        raise NotImplementedError

    def opaque(self, state: State, call: ir.Call, name: str = "", foreign: bool = True) -> Value:
        """Left to the subclass."""
        raise NotImplementedError

    def leave(self, state: State, how: str, span: Span, operation: int = -1) -> None:
        """Left to the subclass."""
        raise NotImplementedError


def _is_lvalue(expression: ir.Expr) -> bool:
    return isinstance(expression, (ir.Name, ir.Select, ir.Subscript, ir.Dereference, ir.Call, ir.Cast, ir.Assign))
