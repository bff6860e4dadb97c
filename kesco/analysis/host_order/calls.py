"""Calls of the CUDA runtime and its libraries → steps.

In: the name and the arguments of a call, before it has been done. Out: a step, if it has to do with order or memory.
What a call is, the table of CUDA's calls says. A call that the table lacks may do anything, on any stream.

1. What gives a stream work goes to the stream that the call names, or to the default one. 2. Pageable memory that a
copy keeps the host for has been read when it returns. 3. Graphs, captured streams, a second device: the program
is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kesco.analysis.host.leading import of_symbol
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import cuda_entry
from kesco.analysis.host.values import Object, Value, number, objects, scalar
from kesco.analysis.host_order.graphs import Graphs
from kesco.frontend.api_table import CudaCall
from kesco.frontend.library_table import library_call
from kesco.ir.access import UNKNOWN, UNSEEN_HOST, AccessMode, BufferKind
from kesco.ir.execution import LEGACY, THREAD, Argument, StepKind, Waits
from kesco.ir.poly import ByteRange, constant

if TYPE_CHECKING:
    from kesco.analysis.host_order.steps import Draft
    from kesco.analysis.host_order.watching import Watching

_HOST_KINDS = {BufferKind.HOST, BufferKind.PINNED}
_BOTH = AccessMode.READ_WRITE
_DIRECTIONS = {"HostToHost": 0, "HostToDevice": 1, "DeviceToHost": 2, "DeviceToDevice": 3}
_NAMES = {number_: name for name, number_ in _DIRECTIONS.items()}
_NON_BLOCKING = 1
_ON_HOST = (StepKind.ENTRY, StepKind.HOST, StepKind.QUESTION, StepKind.ANSWER, StepKind.LOOP)
_HOST_SIDE = {"HostToDevice": 1, "DeviceToHost": 0}  # of what is written and read
_NOTHING = ("query", "advise", "prefetch", "event_create", "event_destroy", "stream_destroy", "alias")
_HARMLESS = (
    "cudaProfilerStart", "cudaProfilerStop", "cudaDeviceGetDefaultMemPool", "cudaDeviceGetMemPool",
    "cudaMemPoolSetAttribute", "cudaMemPoolGetAttribute", "cudaGetDriverEntryPoint",
)  # fmt: skip


@dataclass(slots=True)
class Calls:
    """Makes steps of calls."""

    watching: Watching
    graphs: Graphs = field(init=False)
    _creating: bool | None = None  # whether the stream that is made next blocks
    _allocating: Draft | None = field(default=None)
    _made: bool = False  # whether anything has been made or done on a device
    _chosen: int | None = 0  # which device, if that is known

    def __post_init__(self) -> None:
        self.graphs = Graphs(self.watching, self)

    def makes(self, one: Object) -> None:
        """Memory, a stream or an event is made."""
        pointing = self.watching.pointing
        self._made = self._made or one.kind in ("stream", "event", "device", "managed", "pinned")
        if one.kind in ("graph", "node", "exec"):
            self.graphs.makes(one)
        elif one.kind == "stream":
            known = pointing.blocking.get(one, self._creating)
            pointing.blocking[one] = known if known == self._creating else None
        elif self._allocating is not None:
            buffer = pointing.buffer(one)
            self._allocating.touch(buffer, "allocation", AccessMode.WRITE)
            self._allocating.pointed.setdefault("", set()).add(buffer.key)
            self._allocating = None

    def calls(self, name: str, values: list[Value], state: State) -> None:
        """The runtime, or one of CUDA's libraries, is called."""
        self._allocating = None
        self._made = self._made or any(one.kind not in _ON_HOST for one in self.watching.steps.drafts)
        entry = cuda_entry(name, len(values))
        if entry is not None and entry.kind in ("graph", "capture"):
            self.graphs.called(entry.name, values, state)
        elif entry is None or entry.kind in ("opaque", "host_func", "launch"):
            self._strange(name, entry, values, state)
        elif entry.kind == "stream_create":
            flags = number(values[entry.flags]) if entry.flags is not None else 0
            self._creating = None if flags is None else not flags & _NON_BLOCKING
        elif entry.kind in ("copy", "memset"):
            self._transfer(entry, values, state)
        elif entry.kind == "alloc":
            if entry.stream is not None:
                self._allocating = draft = self._work(StepKind.ALLOCATION, entry, values, state)
                if draft is not None:
                    draft.given([Argument()])
        elif entry.kind == "free":
            self._free(entry, values, state)
        elif entry.kind in ("sync", "event_sync", "event_record", "event_wait"):
            self._orders(entry, values, state)
        elif entry.kind == "device":
            self._device(entry, values, state)
        elif entry.kind not in _NOTHING:
            self._strange(name, entry, values, state)

    def _work(self, kind: StepKind, entry: CudaCall, values: list[Value], state: State) -> Draft | None:
        draft = self.watching.step(kind, entry.name, state)
        if draft is None:
            return None
        if entry.stream is not None and entry.stream < len(values):
            draft.goes_to(*self.watching.pointing.streams(values[entry.stream]))
        else:
            draft.goes_to({THREAD if self.watching.pointing.per_thread else LEGACY}, False)
        return draft

    def _access(
        self, draft: Draft, name: str, value: Value, mode: AccessMode, length: int | None, *, on_host: bool = False
    ) -> None:
        for buffer, offset in self.watching.pointing.parts(value):
            part = None
            if offset is not None and length is not None:
                part = ByteRange(constant(offset), constant(offset + length))
            if buffer is UNKNOWN:
                what = UNSEEN_HOST if on_host else UNKNOWN
                draft.touch(what, "a pointer that may point anywhere", mode)
            else:
                draft.touch(buffer, draft.kind.value, mode, part)
            draft.pointed.setdefault(name, set()).add(buffer.key)

    def _transfer(self, entry: CudaCall, values: list[Value], state: State) -> None:
        """A copy or a memset."""
        kind = StepKind.COPY if entry.kind == "copy" else StepKind.MEMSET
        draft = self._work(kind, entry, values, state)
        if draft is None:
            return
        way = self._way(entry, values)
        values = [of_symbol(self.watching.engine, v) if i == entry.symbol else v for i, v in enumerate(values)]
        flat = not entry.pitched and entry.symbol is None and entry.size is not None
        length = number(values[entry.size]) if flat and entry.size is not None else None
        arguments: list[Argument] = []
        kinds: list[set[BufferKind]] = []
        for indexes, mode, host in (
            (entry.writes, AccessMode.WRITE, way in ("DeviceToHost", "HostToHost")),
            (entry.reads, AccessMode.READ, way in ("HostToDevice", "HostToHost")),
        ):
            for index in indexes:
                self._access(draft, str(index), values[index], mode, length, on_host=host)
                parts = self.watching.pointing.parts(values[index])
                kinds.append({buffer.kind for buffer, _ in parts})
                arguments.append(self.watching.pointing.argument(values[index]))
                state.copied |= objects(values[index])
        arguments.append(Argument(words="" if length is None else str(length)))
        if kind is StepKind.MEMSET and len(values) > 1:
            byte = number(values[1])
            arguments.append(Argument(words="" if byte is None else str(byte)))
        draft.given(arguments)
        self._keeps_host(draft, entry, way, kinds)
        if draft.waits is not Waits.NO and way == "HostToDevice" and entry.stream is None:
            for index in entry.reads:  # pageable memory has been read, though the copy may not be done
                for buffer, _ in self.watching.pointing.parts(values[index]):
                    if buffer.kind in (BufferKind.HOST, BufferKind.UNSEEN_HOST, BufferKind.UNKNOWN):
                        draft.finished.add(buffer.key)

    def copied(
        self, draft: Draft, to: Value, source: Value, length: int | None, words: str, direction: int | None
    ) -> None:
        """What a node of a graph copies."""
        way = _NAMES.get(direction) if direction is not None else None
        given = [self.watching.pointing.argument(one) for one in (to, source)]
        for name, value, mode, host in (
            ("0", to, AccessMode.WRITE, way in ("DeviceToHost", "HostToHost")),
            ("1", source, AccessMode.READ, way in ("HostToDevice", "HostToHost")),
        ):
            self._access(draft, name, value, mode, length, on_host=host)
        draft.given([*given, Argument(words=words if length is None else str(length))])

    def put(self, draft: Draft, to: Value, length: int | None, byte: str) -> None:
        """What a node of a graph sets."""
        self._access(draft, "0", to, AccessMode.WRITE, length)
        size = Argument(words="" if length is None else str(length))
        draft.given([self.watching.pointing.argument(to), size, Argument(words=byte)])

    def _way(self, entry: CudaCall, values: list[Value]) -> str | None:
        """Where a copy goes, as it says or as its memory is."""
        way = entry.fixed_direction
        if entry.direction is not None and entry.direction < len(values):
            known = number(values[entry.direction])
            way = _NAMES.get(known) if known is not None else None
        if way in _DIRECTIONS or entry.kind != "copy" or entry.symbol is not None:
            return way if way in _DIRECTIONS else None
        sides = []
        for indexes in (entry.writes, entry.reads):
            kinds = {buffer.kind for i in indexes for buffer, _ in self.watching.pointing.parts(values[i])}
            sides.append(0 if kinds <= _HOST_KINDS else 1 if kinds == {BufferKind.DEVICE} else 2)
        return {(1, 0): "HostToDevice", (0, 1): "DeviceToHost", (1, 1): "DeviceToDevice"}.get((sides[0], sides[1]))

    def _keeps_host(self, draft: Draft, entry: CudaCall, way: str | None, kinds: list[set[BufferKind]]) -> None:
        waits = Waits(entry.waits(way))
        if way == "DeviceToHost" and kinds and BufferKind.MANAGED in kinds[0]:
            waits = Waits.MAYBE
        if waits is Waits.MAYBE and entry.kind == "copy" and way in _HOST_SIDE:
            on_host = kinds[_HOST_SIDE[way]] if len(kinds) == 2 else set()
            if on_host == {BufferKind.PINNED}:  # with a stream it comes back at once, without one when it is done
                waits = Waits.NO if entry.stream is not None else Waits.STREAM
        elif waits is Waits.MAYBE and all(one == {BufferKind.DEVICE} for one in kinds):
            waits = Waits.NO
        draft.waits = waits if draft.seen == 1 or draft.waits is waits else Waits.MAYBE

    def _free(self, entry: CudaCall, values: list[Value], state: State) -> None:
        value = values[entry.frees] if entry.frees is not None else frozenset()
        if scalar(value) == {0}:
            return
        if entry.stream is not None:
            draft = self._work(StepKind.FREE, entry, values, state)
        else:
            draft = self.watching.step(StepKind.FREE, entry.name, state)
        if draft is None:
            return
        if entry.stream is None:
            draft.waits = Waits.DEVICE
        if not all(type(atom) is int for atom in scalar(value)):
            self._access(draft, "0", value, AccessMode.WRITE, None)
            draft.given([self.watching.pointing.argument(value)])

    def _orders(self, entry: CudaCall, values: list[Value], state: State) -> None:
        """Synchronizes, event records and waits."""
        kinds = {"event_record": StepKind.RECORD, "event_wait": StepKind.WAIT}
        kind = kinds.get(entry.kind, StepKind.SYNC)
        if entry.kind == "sync" and entry.host_waits == "device":
            draft = self.watching.step(kind, entry.name, state)
            if draft is not None:
                draft.waits = Waits.DEVICE
            return
        draft = self.watching.step(kind, entry.name, state)
        if draft is None:
            return
        pointing = self.watching.pointing
        if entry.stream is not None and entry.stream < len(values):
            draft.goes_to(*pointing.streams(values[entry.stream]))
        elif entry.kind == "event_record":
            draft.goes_to({THREAD if pointing.per_thread else LEGACY}, False)
        if entry.event is not None:
            draft.is_about(*pointing.events(values[entry.event]))
        if kind is StepKind.SYNC:
            draft.waits = Waits.STREAM

    def _device(self, entry: CudaCall, values: list[Value], state: State) -> None:
        if entry.name == "cudaSetDevice":
            chosen = number(values[0])
            if self._made and (chosen is None or chosen != self._chosen):
                self.watching.refuse("it may use several devices")
            self._chosen = chosen if not self._made else self._chosen
        elif entry.name in ("cudaDeviceReset", "cudaThreadExit"):
            draft = self.watching.step(StepKind.SYNC, entry.name, state)
            if draft is not None:
                draft.waits = Waits.DEVICE

    def _strange(self, name: str, entry: CudaCall | None, values: list[Value], state: State) -> None:
        """What is not known, and what needs more than is done here."""
        known = library_call(name, len(values))
        if known is not None and not (known.reads_held or known.writes_held):  # what descriptors hold is not followed
            if known.kind == "work":
                self._library(name, known.all_read, known.all_written, values, state)
            return
        if name in _HARMLESS:
            return
        draft = self.watching.step(StepKind.OPAQUE, name, state)
        if draft is not None:
            draft.astray = True
            draft.touch(UNKNOWN, f"what {name} does is not known", _BOTH)

    def _library(
        self, name: str, reads: tuple[int, ...], writes: tuple[int, ...], values: list[Value], state: State
    ) -> None:
        """Work that a library gives the stream of its handle."""
        draft = self.watching.step(StepKind.LIBRARY, name, state)
        if draft is None:
            return
        draft.astray = True
        for indexes, mode in ((reads, AccessMode.READ), (writes, AccessMode.WRITE)):
            for index in indexes:
                self._access(draft, str(index), values[index], mode, None)
