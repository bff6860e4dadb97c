"""Calls of the CUDA runtime API → sites, by the table in ``frontend/resources/cuda_api.toml``.

In: a call, its table entry and the state. Out: its site, and what it does to the store: new buffers, streams and events
behind out-parameters. What the table calls opaque joins pending work and is otherwise left alone.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from kesco.analysis.evaluate import kernel_named
from kesco.analysis.families import member, newcomer
from kesco.analysis.integers import ZERO, size_of
from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Place, Value, pointer
from kesco.analysis.numbering import begin
from kesco.analysis.region import Draft
from kesco.analysis.state import State
from kesco.analysis.transfers import KINDS, Transfers
from kesco.frontend.api_table import CudaCall
from kesco.ir import program as ir
from kesco.ir.access import AccessMode, Buffer, BufferKind
from kesco.ir.failures import CLEANS
from kesco.ir.flow import CURRENT, Handle, Role, SiteKind
from kesco.ir.lifetimes import ALLOCATE, FREE
from kesco.ir.transfers import GIVE_HERE
from kesco.source import Span

_MEMORY = {
    "device": BufferKind.DEVICE,
    "managed": BufferKind.MANAGED,
    "pinned": BufferKind.PINNED,
    "mapped": BufferKind.PINNED,
    "array": BufferKind.DEVICE,
    "async": BufferKind.DEVICE,
}
_OURS = (ALLOCATE, FREE)


class CudaApi(Transfers):
    """What the calls of the runtime API do."""

    # ---- calls ------------------------------------------------------------------------------------------------------

    def cuda(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """A call that the table knows."""
        kind = entry.kind
        self.note_volatile(call.operation, call.arguments)
        if kind in ("query", "advise"):
            return self._query(state, call, entry)
        if kind == "alloc":
            return self._alloc(state, call, entry)
        if kind == "alias":
            return self._alias(state, call, entry)
        if kind in ("stream_create", "event_create"):
            return self._create(state, call, entry)
        if kind in ("stream_destroy", "event_destroy") or (self.now.dying and entry.name in CLEANS):
            return self._evaluated(state, call)
        if kind in KINDS:
            return self.transfer(state, call, entry)
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

    def _query(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = self.argument_values(state, call)
        if self.looks and not self.now.failing:
            self.now.looked = self.now.looked or entry.shows == "progress"
            self.now.asked = self.now.asked or entry.shows == "errors"
        self.escape_addresses(state, *(value for n, value in enumerate(values) if n not in entry.out))
        for index in entry.out:
            if index < len(values):
                self.assign(state, values[index].places, values[index].unknown, TOP)
        return NOTHING

    def _alloc(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = self.argument_values(state, call)
        draft = self._ordered(state, call, entry, values, SiteKind.ALLOC) if entry.stream is not None else None
        for index in entry.out:
            if index < len(values) and index != entry.allocates:
                self.assign(state, values[index].places, values[index].unknown, TOP)
        if entry.allocates is None or entry.allocates >= len(values):
            return self.opaque(state, call)
        target = values[entry.allocates]
        name = "/".join(sorted(p.name for p in target.places)) or entry.name
        base = self.fresh(f"alloc:{call.operation}", name)
        kind = _MEMORY.get(entry.memory or "device", BufferKind.UNKNOWN)
        size = values[entry.size] if entry.size is not None and entry.size < len(values) else NOTHING
        length = None if size.integer is None or size.integer.counters else size.integer  # of this trip only
        element = next((p.element for p in target.places if len(target.places) == 1 and base.many), None)
        new = element is None and base.many and call.operation in self.learned.filing
        if element is None and not new:
            buffer, at = Buffer(base.key, name, kind, call.span, size.number, length), ZERO
        else:  # one of a family, all of which is no allocation
            at = newcomer() if element is None else member(element)
            buffer = Buffer(f"{base.key}[]", name, kind, call.span)
        made = Object(buffer.key, name, ObjectKind.BUFFER, buffer, many=base.many)
        if new:
            begin(state.store, made)
        held = [state.store.read(place) for place in target.places if state.store.has(place)]  # kept if the call fails
        value = reduce(or_, (one.without_shape() for one in held), pointer(Place(made, (), at)))
        self.assign(state, target.places, target.unknown, value)
        if draft is not None and draft.name == ALLOCATE:
            draft.touch(buffer, "alloc", AccessMode.WRITE)
        return NOTHING

    def _alias(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """A second name for memory: followed where the runtime has allocated all that it may be, pinned."""
        values = self.argument_values(state, call)
        assert entry.allocates is not None and entry.aliases is not None
        target, named = values[entry.allocates], values[entry.aliases]
        kinds = {self.buffer_of(place).kind for place in named.places}
        if named.unknown or kinds != {BufferKind.PINNED}:
            return self.opaque(state, call)
        self.assign(state, target.places, target.unknown, named)
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

    def _launch_call(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """``cudaLaunchKernel(function, grid, block, arguments, shared, stream)``."""
        values = self.argument_values(state, call)
        kernel = kernel_named(call.arguments[0]) if call.arguments else None
        stream, given = self.stream_argument(call, values, entry)
        index = entry.arguments
        if kernel is None or index is None or index >= len(values):
            return self.opaque(state, call)
        arguments = []
        for position, parameter in enumerate(kernel.parameters):
            at = self.offset(values[index], position)
            slot = self.read_all(state, at.places, at.unknown)
            given_to = self.read_all(state, slot.places, slot.unknown or not slot.places)
            arguments.append(given_to if self._is_whole_argument(slot, parameter) else given_to.without_shape())
        self.kernel_site(state, kernel, arguments, values[1:3], call.operation, call.span, stream, given)
        return NOTHING

    def _is_whole_argument(self, slot: Value, parameter: ir.Type) -> bool:
        """Whether a variable with all the bytes of a parameter stands where its argument is taken from."""
        found = [self.variables.get(place.object.key) if not place.path else None for place in slot.places]
        kinds = [None if variable is None else variable.type for variable in found]
        if parameter.shape is ir.Shape.RECORD:
            return all(kind is None or kind.record == parameter.record for kind in kinds)
        wide = size_of(parameter)
        plain = (ir.Shape.INTEGER, ir.Shape.POINTER)
        return wide is not None and all(k is not None and k.shape in plain and (size_of(k) or 0) >= wide for k in kinds)

    def _free(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        values = self.argument_values(state, call)
        if entry.stream is not None:
            self._ordered(state, call, entry, values, SiteKind.FREE)
            return NOTHING
        draft = self.site(state, entry.name, SiteKind.FREE, Role.JOIN, call.operation, call.span)
        if entry.frees is not None and entry.frees < len(values):
            self.access(state, draft, values[entry.frees], AccessMode.WRITE)
        if call.name.rpartition("::")[2] == GIVE_HERE:
            draft.stream = CURRENT
        return NOTHING

    def _ordered(self, state: State, call: ir.Call, entry: CudaCall, values: list[Value], kind: SiteKind) -> Draft:
        """Stream-ordered allocation and deallocation: stays where it is, behind a join.

        The next allocation may get the memory at once, with nothing for the device to do in between.
        """
        stream, given = self.stream_argument(call, values, entry)
        handle = self.handle_of(stream) if given else None
        ours = call.name in _OURS
        role = Role.MOVABLE if handle is not None else Role.LEGACY if ours else Role.JOIN
        draft = self.site(state, call.name if ours else entry.name, kind, role, call.operation, call.span)
        self.put_on(draft, handle, call.name, call.span)
        draft.acts = False
        draft.note = "stream-ordered memory stays on the default stream"
        if entry.frees is not None and entry.frees < len(values):
            self.access(state, draft, values[entry.frees], AccessMode.WRITE)
        return draft

    def _order(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """Synchronizes, event records and waits."""
        values = self.argument_values(state, call)
        if entry.kind == "sync" and entry.host_waits == "device":
            self.site(state, entry.name, SiteKind.SYNC, Role.DEVICE_SYNC, call.operation, call.span)
            return NOTHING
        stream, given = self.stream_argument(call, values, entry)
        handle = self.handle_of(stream) if given else None
        event = None
        if entry.event is not None and entry.event < len(values):
            event = self.handle_of(values[entry.event]) or Handle("?event", "an event", True, False)
        if not self.streams:
            if handle is not None:
                self.stay_serial(f"{call.name} uses a stream of its own", call.span)
            draft = self.site(state, entry.name, SiteKind.SYNC, Role.JOIN, call.operation, call.span)
            draft.waits = entry.kind == "sync" and handle is None
            key = event.key if event is not None and event.certain else ""
            draft.records, draft.awaits = (key * (entry.kind == f"event_{what}") for what in ("record", "sync"))
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
        draft.waits = entry.kind == "sync" and handle is None
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
        configuration: list[Value],
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
