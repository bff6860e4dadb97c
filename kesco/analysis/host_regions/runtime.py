"""Calls of CUDA's runtime → sites with what they touch.

In: the call, its entry in the table, the values of its arguments. Out: a site of the function that control is in.

1. A call does what the table says. 2. A copy that the host may wait for stays where it is. 3. What the table does not
know joins all work, and may touch any memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kesco.analysis.host.cuda import moved
from kesco.analysis.host.leading import of_symbol
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import cuda_entry
from kesco.analysis.host.values import Value, number, objects
from kesco.analysis.host_regions.handles import handle_of
from kesco.analysis.host_regions.libraries import Libraries
from kesco.analysis.host_regions.pointing import Pointing
from kesco.analysis.host_regions.watching import Watching
from kesco.analysis.region import ANY_SIZE, Draft
from kesco.frontend.api_table import CudaCall, cuda_call
from kesco.frontend.library_table import library_call
from kesco.ir.access import (
    UNKNOWN,
    UNSEEN_HOST,
    AccessMode,
    BufferKind,
)  # fmt: skip
from kesco.ir.failures import CLEANS
from kesco.ir.flow import CURRENT, Handle, Held, Role, SiteKind
from kesco.ir.poly import ByteRange, constant
from kesco.ir.replay import FILL
from kesco.ir.transfers import COPY_HERE, FETCH, GIVE_HERE, OWN, SEND

_BOTH = AccessMode.READ_WRITE
_KINDS = {"copy": SiteKind.COPY, "memset": SiteKind.MEMSET, "prefetch": SiteKind.PREFETCH}
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_DIRECTIONS = {"HostToHost": 0, "HostToDevice": _TO_DEVICE, "DeviceToHost": _TO_HOST, "DeviceToDevice": _ON_DEVICE}
_HELD = {1: Held.SOURCE, 2: Held.ALL}
COPIED_AS = {own: name for name, own in OWN.items()} | dict.fromkeys((SEND, FETCH, COPY_HERE), "cudaMemcpy")
_FLAT = ("cudaMemset", "cudaMemcpy")
_SIZED = ("cudaMemset", "cudaMemcpy", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")


@dataclass(slots=True)
class Runtime:
    """Makes sites of calls of the runtime."""

    pointing: Pointing
    libraries: Libraries

    @property
    def paths(self) -> Watching:
        """Where the sites go."""
        return self.pointing.paths

    def calls(self, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""
        of_library = library_call(name, len(values))
        if of_library is not None:
            self.libraries.calls(name, of_library, values, state)
            return
        entry = cuda_entry(name, len(values))
        kind = entry.kind if entry is not None else "opaque"
        frame = self.paths.engine.frame
        if state.failing and frame is not None and frame.is_last and (name in CLEANS or self._is_again()):
            return
        if entry is None or kind in ("opaque", "graph", "capture", "host_func", "launch"):
            self.libraries.reached(state.reached({one for value in values for one in objects(value)}), name, state)
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

    def gives(self, state: State, values: list[Value]) -> None:
        """Memory that a function has taken for itself is given back, which is its end where no stream is set."""
        draft = self.paths.site(state, "cudaFree", GIVE_HERE, SiteKind.FREE, Role.JOIN)
        self._access(draft, values[0], AccessMode.WRITE)
        if draft is not None:
            draft.stream = CURRENT

    def _stays_here(self, draft: Draft | None) -> None:
        if draft is not None:
            draft.acts, draft.note = False, "stream-ordered memory stays on the default stream"

    def _access(
        self, draft: Draft | None, value: Value, mode: AccessMode, length: int | None = None, *, on_host: bool = False
    ) -> None:
        if draft is None:
            return
        why = "copies" if draft.kind is SiteKind.COPY else draft.kind.value
        for buffer, offset in self.pointing.parts(value):
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
        *_, own = paths.where()
        if own and handle is None and not (event is not None and event.key.startswith("kesco:")):
            paths.site(state, entry.name, entry.name, SiteKind.SYNC, Role.JOIN)
        # in a function that is called this is the call, which is one join as it is in the input
        draft = paths.site(state, entry.name, entry.name, SiteKind.SYNC, role)
        if draft is not None:
            draft.stream, draft.event = handle, event
            draft.waits = entry.kind == "sync" and handle is None

    # ---- copies

    def _is_again(self) -> bool:
        """Whether what is executed stands in an argument that a macro evaluates twice, and was executed before."""
        _, at, _, own = self.paths.where()
        return own and at is not None and self.paths.texts.is_again(at)

    def _transfer(self, state: State, entry: CudaCall, values: list[Value], own: str = "") -> None:
        """A copy, a memset or a prefetch; `own`: its name in kesco's prologue."""
        name = entry.name.removesuffix("Async")
        handle = handle_of(values[entry.stream]) if entry.stream is not None and own != COPY_HERE else None
        handle = CURRENT if own == COPY_HERE else handle
        way = self._way(entry, values)
        values = [of_symbol(self.paths.engine, v) if i == entry.symbol else v for i, v in enumerate(values)]
        shared = entry.symbol is not None and not all(b.on_device for b in self.pointing.pointed(values[entry.symbol]))
        note = self._why_stuck(entry, values, way, shared=shared)
        role = Role.LEGACY if note and handle is None else Role.MOVABLE
        draft = self.paths.site(state, name, own or entry.name, _KINDS[entry.kind], role, handle)
        if draft is None:
            return
        draft.note = note or draft.note
        self.pointing.put_on(draft, handle, own or entry.name)
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
                state.copied |= objects(values[index])
        if entry.kind == "prefetch":
            self._access(draft, values[0], AccessMode.WRITE)

    def fill(self, state: State, values: list[Value]) -> None:
        """A memset that kesco's prologue defines, on a stream."""
        entry = cuda_call("cudaMemsetAsync")
        assert entry is not None
        self._transfer(state, entry, values, FILL)
        self._moved(state, entry, values)

    def own_copy(self, state: State, own: str, values: list[Value]) -> None:
        """The copy that kesco's prologue defines: on a stream; its last argument: then wait for all."""
        entry = cuda_call(f"{COPIED_AS[own]}Async")
        assert entry is not None and entry.stream is not None
        self._transfer(state, replace(entry, name=COPIED_AS[own]), values, own)
        self._moved(state, entry, values)
        if len(values) > entry.stream + 1 and number(values[entry.stream + 1]) == 1:
            self.paths.site(state, OWN[COPIED_AS[own]], own, SiteKind.SYNC, Role.DEVICE_SYNC)

    def _moved(self, state: State, entry: CudaCall, values: list[Value]) -> None:
        engine = self.paths.engine
        if engine.frame is not None:
            values = [of_symbol(engine, v) if i == entry.symbol else v for i, v in enumerate(values)]
            moved(engine.frame, state, entry, values)

    def _way(self, entry: CudaCall, values: list[Value]) -> int | None:
        if entry.direction is None or entry.direction >= len(values):
            return _DIRECTIONS.get(entry.fixed_direction or "")
        return number(values[entry.direction])

    def _why_stuck(self, entry: CudaCall, values: list[Value], way: int | None, *, shared: bool) -> str:
        """Why a copy or memset keeps its place on the default stream, or an empty text."""
        if shared:
            return "the host may use the symbol, too"
        sides = {
            b.kind for i in (*entry.reads, *entry.writes) if i != entry.symbol for b in self.pointing.pointed(values[i])
        }
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
