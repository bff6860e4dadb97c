"""Copies, memsets and prefetches → sites: what they touch, and whether they may leave the default stream.

In: a call, its table entry and the state. Out: its site. Which copies keep the host is the CUDA guide's table "API
synchronization behavior"; of kesco's own it is known (`Held`).
"""

from __future__ import annotations

from dataclasses import replace

from kesco.analysis.extents import copied
from kesco.analysis.integers import size_of
from kesco.analysis.memory import NOTHING, TOP, Place, Value
from kesco.analysis.region import ANY_SIZE, Draft
from kesco.analysis.sites import Sites
from kesco.analysis.state import State, current_stream
from kesco.analysis.zeroes import certain_part
from kesco.frontend.api_table import CudaCall, cuda_call
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, UNSEEN_HOST, AccessMode, BufferKind
from kesco.ir.flow import Held, Role, SiteKind
from kesco.ir.poly import Poly
from kesco.ir.transfers import COPY_HERE, FETCH, OWN, SEND

_SIZED = ("cudaMemset", "cudaMemcpy", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")  # in bytes, third argument
_FLAT = ("cudaMemset", "cudaMemcpy")  # and all of it right behind the pointers
KINDS = {"copy": SiteKind.COPY, "memset": SiteKind.MEMSET, "prefetch": SiteKind.PREFETCH}
_HOST_TO_HOST, _HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 0, 1, 2, 3
_HELD = {_HOST_TO_DEVICE: Held.SOURCE, _DEVICE_TO_HOST: Held.ALL}
_DIRECTIONS = {"HostToDevice": _HOST_TO_DEVICE, "DeviceToHost": _DEVICE_TO_HOST, "DeviceToDevice": _DEVICE_TO_DEVICE}
COPIED_AS = {own: name for name, own in OWN.items()} | dict.fromkeys((SEND, FETCH, COPY_HERE), "cudaMemcpy")
"""The copies of kesco's prologue, and what each of them is on a stream."""


class Transfers(Sites):
    """What the calls that move or set memory do."""

    def stream_argument(self, call: ir.Call, values: list[Value], entry: CudaCall) -> tuple[Value, bool]:
        """The value of the stream argument, and whether it is written at all."""
        if call.name.rpartition("::")[2] == COPY_HERE:
            return current_stream(), True
        index = entry.stream
        if index is None or index >= len(values) or call.arguments[index] == ir.Literal("default"):
            return NOTHING, False
        return values[index], True

    def transfer(self, state: State, call: ir.Call, entry: CudaCall) -> Value:
        """A copy, a memset or a prefetch."""
        values = [
            v.without_shape() if v.fields else v  # a cudaPitchedPtr by value
            for v in self.argument_values(state, call)
        ]
        stream, given = self.stream_argument(call, values, entry)
        note = self._why_stuck(call, entry, values)
        name = entry.name.removesuffix("Async")  # the same operation before and after it is made asynchronous
        if note and not given:
            draft = self.site(state, name, KINDS[entry.kind], Role.LEGACY, call.operation, call.span)
            draft.note, draft.stuck = note, self.is_beside_unseen()
        elif note:
            handle = self.handle_of(stream)
            role = Role.LEGACY if handle is None else Role.MOVABLE
            draft = self.site(state, name, KINDS[entry.kind], role, call.operation, call.span)
            draft.note = note
            self.put_on(draft, handle, call.name, call.span)
        else:
            kind = KINDS[entry.kind]
            draft = self.device_site(state, name, kind, call.operation, call.span, stream, given, "", call.name)
        size = values[2].number if name in _SIZED and len(values) > 2 else _touched(entry, values)
        draft.bytes, draft.acts = max(draft.bytes, size or ANY_SIZE), draft.acts and bool(size)
        length = values[2].integer if name in _FLAT and len(values) > 2 else None
        way = _way(call, entry, values)
        if name in OWN and entry.name == name and not self._is_shared(entry, values):
            draft.held = None if way is None else _HELD.get(way)
            if draft.held is Held.ALL and call.name.rpartition("::")[2] == FETCH:
                draft.held = Held.LATER
        for indexes, mode, on_host in (
            (entry.reads, AccessMode.READ, way == _HOST_TO_DEVICE),
            (entry.writes, AccessMode.WRITE, way == _DEVICE_TO_HOST),
        ):
            for index in indexes:
                value = values[index] if index < len(values) else TOP
                plane = _plane(entry, values, index)
                self.access(state, draft, value, mode, length if plane is None else plane, on_host=on_host)
                if plane is not None and entry.kind == "memset":
                    self._one_row(state, draft, entry, values, value)
        if name == "cudaMemset" and self.strays:
            if values[1].number == 0 and certain_part(values[0].places, values[0].unknown, size) is not None:
                draft.zeroes = call.operation
            else:
                self.spoilt.add(call.operation)
        if entry.kind == "prefetch":
            self.access(state, draft, values[0], AccessMode.WRITE)
        return NOTHING

    def _one_row(self, state: State, draft: Draft, entry: CudaCall, values: list[Value], value: Value) -> None:
        """The pitch of one row alone is not used, and may be anything."""
        rows, width = (values[i] if i is not None and i < len(values) else TOP for i in (entry.rows, entry.width))
        if rows.number is None or rows.number == 1:
            self.access(state, draft, value, AccessMode.WRITE, width.integer)

    def kesco_copy(self, state: State, call: ir.Call) -> Value:
        """The copy that kesco's prologue defines: ``cudaMemcpy`` on a stream; its last argument: then wait for all."""
        own = call.name.rpartition("::")[2]
        entry = cuda_call(f"{COPIED_AS[own]}Async")
        assert entry is not None and entry.stream is not None
        result = self.transfer(state, call, replace(entry, name=COPIED_AS[own]))
        last = entry.stream + 1
        if len(call.arguments) > last and self.evaluate(state, call.arguments[last]).number == 1:
            self.site(state, OWN[COPIED_AS[own]], SiteKind.SYNC, Role.DEVICE_SYNC, call.operation, call.span)
        return result

    def access(
        self,
        state: State,
        draft: Draft,
        value: Value,
        mode: AccessMode,
        length: Poly | None = None,
        *,
        on_host: bool = False,
    ) -> None:
        """What the site touches through a pointer, `length` bytes where that is known.

        `on_host` tells that it is one that the host may use.
        """
        for place in value.places:
            why = "copies" if draft.kind is SiteKind.COPY else draft.kind.value
            draft.touch(self.buffer_of(place), why, mode, copied(place, length))
            if draft.role is Role.MOVABLE:
                self.note_reached((place.object,))
            if mode & AccessMode.READ:  # pointers in it may come back from there
                self.escape_contents(state, (place.object,))
            if mode & AccessMode.WRITE and self._is_in_numbers(place, length):
                self.assign(state, frozenset((replace(place, path=(*place.path[:-1], None)),)), False, TOP)
            elif mode & AccessMode.WRITE:
                state.store.clobber((place.object,))
        if value.unknown or not value.places:
            draft.touch(UNSEEN_HOST if on_host else UNKNOWN, "through a pointer that may point anywhere", mode)
            if mode & AccessMode.WRITE:
                self.clobber_escaped(state)

    def _is_in_numbers(self, place: Place, length: Poly | None) -> bool:
        """Whether so many bytes from a place on are in an array of numbers that is a part of a variable."""
        if not place.path or place.offset is not None or length is None or length.constant is None:
            return False
        kind, first = self.type_at(replace(place, path=place.path[:-1]), inside=True), place.path[-1]
        held = kind.element if kind is not None and kind.shape is ir.Shape.ARRAY else None
        each = size_of(held) if held is not None and held.shape is not ir.Shape.POINTER else None
        if kind is None or each is None or not isinstance(first, int) or first < 0:
            return False
        return first * each + length.constant <= kind.count * each

    def _is_shared(self, entry: CudaCall, values: list[Value]) -> bool:
        """Whether a copy is to or from a symbol that the host may use, too, or one that is not known."""
        if entry.symbol is None:
            return False
        named = values[entry.symbol] if entry.symbol < len(values) else TOP
        buffers = [self.buffer_of(place) for place in named.places]
        return named.unknown or not buffers or not all(one.on_device for one in buffers)

    def _why_stuck(self, call: ir.Call, entry: CudaCall, values: list[Value]) -> str:
        """Why a copy or memset keeps its place on the default stream, or an empty text."""
        if self._is_shared(entry, values):
            return "the host may use the symbol, too"
        if entry.stream is not None:
            if entry.kind != "copy":
                return ""
            return self._why_copy_waits(call, entry, values)
        if entry.async_form is None:
            return "it has no asynchronous form"
        touched = [values[i] if i < len(values) else TOP for i in (*entry.reads, *entry.writes) if i != entry.symbol]
        kinds = {self.buffer_of(p).kind for value in touched for p in value.places}
        known = all(value.places and not value.unknown for value in touched)
        if not known or kinds - {BufferKind.DEVICE}:
            return "the host may have to wait for it here"
        if entry.kind == "copy" and _way(call, entry, values) != _DEVICE_TO_DEVICE:
            return "the host may have to wait for it here"
        return ""

    def _why_copy_waits(self, call: ir.Call, entry: CudaCall, values: list[Value]) -> str:
        """Why an asynchronous copy may make the host wait: for pageable memory it does, as the CUDA guide says."""
        if entry.direction is None:
            return "copies of this kind stay in place"
        direction = _way(call, entry, values)
        if direction == _DEVICE_TO_DEVICE:
            return ""
        if direction == _HOST_TO_HOST:
            return "the host waits for it here"
        sides = {_HOST_TO_DEVICE: entry.reads, _DEVICE_TO_HOST: entry.writes}.get(direction or -1)
        every = tuple(i for i in (*entry.reads, *entry.writes) if i != entry.symbol)
        for index in every if sides is None else sides:
            value = values[index] if index < len(values) else TOP
            kinds = {self.buffer_of(p).kind for p in value.places}
            known = {BufferKind.PINNED, BufferKind.MANAGED, BufferKind.DEVICE}
            if value.unknown or not kinds or kinds - known:
                return "its host memory may be pageable, and then the host waits for it here"
        return ""


def _way(call: ir.Call, entry: CudaCall, values: list[Value]) -> int | None:
    """The direction of a copy, where it is known."""
    at = entry.direction
    if at is None or at >= len(values):
        return None
    if call.arguments[at] == ir.Literal("default"):
        return _DIRECTIONS.get(entry.fixed_direction or "")
    return values[at].number


def _touched(entry: CudaCall, values: list[Value]) -> int | None:
    """How many bytes a copy or memset of rows moves, where that is a number."""
    if entry.width is None or entry.rows is None or max(entry.width, entry.rows) >= len(values):
        return None
    width, rows = values[entry.width].number, values[entry.rows].number
    return None if width is None or rows is None else width * rows


def _plane(entry: CudaCall, values: list[Value], index: int) -> Poly | None:
    """How many bytes rows take from the first on, where one of the arguments is memory in rows.

    A row is not longer than what lies between two, or the call fails. Nothing wraps around: what takes 2⁶³ bytes fails.
    """
    if index not in entry.pitched or entry.rows is None or max(index + 1, entry.rows) >= len(values):
        return None
    pitch, rows = values[index + 1].integer, values[entry.rows].integer
    return None if pitch is None or rows is None else pitch * rows
