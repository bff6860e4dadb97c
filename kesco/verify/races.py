"""The race detector: pairs of operations of one run that touch the same memory, one writing, and that nothing orders.

In: the events of a run and the effects of the kernels. Out: `Findings`: each pair of places once, however often it
happened, and what was given memory that is freed already. It shares no line with the stages that choose streams.

1. Each event moves the `Clocks`, and each access is compared with those of the same allocation that may still be under
   way: if it conflicts with one whose epoch its clock does not know, and their bytes meet, that is a race;
2. an access is forgotten when a later one that knows it covers it, or when the host has waited for it; where many are
   left, those of one line become one that knows which bytes they touched.

How sure it is (`overlaps`). A race is *certain* where there is a byte that both touch whatever memory holds, or where
the two are launches that touch the same bytes, whichever those are. It is *possible* where that is not known: where an
address, or whether it is touched, depends on what memory holds. Where no byte may be touched by both it is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kesco.ir.effects import KernelEffects, Steering
from kesco.ir.touched import Asked, Bytes
from kesco.verify.clocks import HOST, Clock, Clocks
from kesco.verify.footprint import Access, Footprints, Given
from kesco.verify.meeting import Meeting, covers, identity, overlaps
from kesco.verify.timeline import Lately, Step
from kesco.verify.trace import (
    Allocated,
    Called,
    Copied,
    Destroyed,
    Event,
    Failed,
    Freed,
    HandedOut,
    Handle,
    HostFunction,
    Launched,
    Range,
    Recorded,
    Refused,
    StreamMade,
    Synchronized,
    TakenBack,
    Touched,
    Unsupported,
    Waited,
)

_KEPT = 64  # accesses of one allocation that are kept before looking which ones are over
_REMEMBERED = 1 << 16  # pairs of accesses, and what pools took back


@dataclass(frozen=True, slots=True)
class Operation:
    """What touched memory: in words, where (a stack's number), on which agent."""

    what: str
    stack: int
    agent: int


@dataclass(slots=True)
class Race:
    """Two operations that nothing orders, in the order in which they were issued, and how often that happened."""

    first: Operation
    second: Operation
    kind: str
    allocation: int
    certain: bool
    vague: str = ""
    times: int = 1
    why: str = ""  # it is not certain
    steps: tuple[Step, ...] = ()  # what the two did from the first one to the second


@dataclass(frozen=True, slots=True)
class Stale:
    """An operation that was given memory which had been freed; `freed` is the stack of where."""

    operation: Operation
    allocation: int
    freed: int


@dataclass(slots=True)
class Findings:
    """What the detector found; allocations and streams are named by their numbers in the trace."""

    races: tuple[Race, ...] = ()
    stale: tuple[Stale, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    allocations: Mapping[int, Allocated] = field(default_factory=dict)
    streams: Mapping[int, StreamMade] = field(default_factory=dict)
    operations: int = 0
    kernels: int = 0
    unsupported: tuple[Unsupported, ...] = ()
    failed: tuple[Failed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Past:
    access: Access
    operation: Operation
    epoch: int
    since: int  # the first epoch, where it stands for several accesses
    step: Step


def find_races(
    events: Iterable[Event],
    effects: Mapping[str, KernelEffects],
    steering: Mapping[str, Steering] = MappingProxyType({}),
    asked: Asked = lambda *_: None,
) -> Findings:
    """All races of a recorded run; a kernel that is not in `steering` is steered by all its arguments.

    `asked` knows which bytes a launch touches.
    """
    return _Detector(Footprints(effects, steering, asked)).run(events)


class _Detector:
    def __init__(self, footprints: Footprints) -> None:
        self.footprints = footprints
        self.clocks = Clocks()
        self.past: dict[int, list[_Past]] = {}
        self.limit: dict[int, int] = {}
        self.races: dict[tuple[int, int, str, int, bool], Race] = {}
        self.stale: dict[tuple[int, int], Stale] = {}
        self.streams: dict[int, StreamMade] = {}
        self.unsupported: dict[Unsupported, None] = {}
        self.failed: dict[Failed, None] = {}
        self.lately = Lately()
        self.left: list[_Past] = []  # of what pools took back: the last thing that was done with it
        self.met: dict[tuple[object, object], Meeting] = {}
        self.operations = self.kernels = 0

    def run(self, events: Iterable[Event]) -> Findings:
        for event in events:
            self._event(event)
        memory = self.footprints.memory
        return Findings(
            tuple(self.races.values()), tuple(self.stale.values()), self.footprints.unknown, memory.all, self.streams,
            self.operations, self.kernels, tuple(self.unsupported), tuple(self.failed),
        )  # fmt: skip

    def _event(self, event: object) -> None:
        match event:
            case Launched():
                self._launched(event)
            case Copied():
                self._copied(event)
            case Called():
                self._device(Operation(event.function, event.stack, event.stream), self.footprints.called(event))
            case Recorded(number, stream, stack):
                self.lately.note(stream, f"record event {number}", stack)
                self.clocks.record(number, stream)
            case Waited(number, stream, stack):
                self.lately.note(stream, f"wait for event {number}", stack)
                self.clocks.wait(stream, number)
            case Synchronized("d", device, stack):
                self.lately.note(HOST, "wait for the device", stack)
                self.clocks.wait_host_device(device)
            case Synchronized("s", stream, stack):
                self.lately.note(HOST, f"wait for stream {stream}", stack)
                self.clocks.wait_host_stream(stream)
            case Synchronized(_, number, stack):
                self.lately.note(HOST, f"wait for event {number}", stack)
                self.clocks.wait_host_event(number)
            case Touched(_, _, stack):
                self._host(Operation("the host", stack, HOST), self.footprints.ranges(event))
            case Destroyed(number):
                self.clocks.forget(number)
            case HandedOut():
                self._handed_out(event)
            case TakenBack():
                self._taken_back(event)
            case Allocated():
                self._allocated(event)
            case Freed():
                self._freed(event)
            case Handle(number, address, writes):
                self.footprints.memory.handles[number] = (address, writes)
            case HostFunction(stream):
                self.clocks.operation(stream)
                self.clocks.done(stream)
                self.clocks.wait_host_stream(stream)  # it runs on the host, behind what was on the stream
            case StreamMade(number, device, kind):
                self.streams[number] = event
                self.clocks.add_stream(number, device, kind)
            case Refused(stack, function, addresses):
                for address in filter(None, addresses):
                    self._given(Operation(function, stack, HOST), address)
            case Unsupported():
                self.unsupported[event] = None
            case Failed():
                self.failed[event] = None

    def _launched(self, event: Launched) -> None:
        effect = self.footprints.effects.get(event.name)
        operation = Operation(effect.display if effect else event.name, event.stack, event.stream)
        self.kernels += 1
        if effect is not None:
            for one in self.footprints.roots(event, effect):
                if one.effect.direct or one.effect.deep:
                    self._given(operation, one.pointer, (event, one))
        self._device(operation, self.footprints.kernel(event))

    def _copied(self, event: Copied) -> None:
        if event.before:
            self.clocks.wait_host_stream(event.stream)
        self._device(Operation(event.function, event.stack, event.stream), self.footprints.ranges(event))
        if event.after:
            self.clocks.wait_host_stream(event.stream)

    def _allocated(self, event: Allocated) -> None:
        self.footprints.memory.add(event)
        if event.stream >= 0:
            whole = Access(event.id, True, Range(True, event.base, event.size), exact=True)
            self._device(Operation("cudaMallocAsync", event.stack, event.stream), (whole,))

    def _freed(self, event: Freed) -> None:
        number = self.footprints.memory.remove(event)
        if number is None:
            return
        made = self.footprints.memory.all[number]
        whole = Access(number, True, Range(True, made.base, made.size), exact=True)
        if event.stream >= 0:
            self._device(Operation("cudaFreeAsync", event.stack, event.stream), (whole,))
        else:
            self.clocks.wait_host_device(event.device)
            self._host(Operation("cudaFree", event.stack, HOST), (whole,))
        self.past.pop(number, None)
        self.limit.pop(number, None)

    def _handed_out(self, event: HandedOut) -> None:
        """What used the memory before must be over by then; what uses it from now on is compared with this alone."""
        memory = self.footprints.memory
        piece = memory.hand_out(event)
        end = piece.base + piece.size
        before = [one for one in self.left if one.access.bytes.low < end and piece.base < one.access.bytes.high]
        gone = [one for one in before if piece.base <= one.access.bytes.low and one.access.bytes.high <= end]
        self.left = [one for one in self.left if one not in gone][-_REMEMBERED:]
        self.past[piece.id] = before
        whole = Access(piece.id, True, Range(True, piece.base, piece.size), exact=True)
        self._device(Operation("KESCO_ALLOCATED", event.stack, event.stream), (whole,))
        self.past[piece.id] = self.past[piece.id][-1:]

    def _taken_back(self, event: TakenBack) -> None:
        memory = self.footprints.memory
        number = memory.take_back(event.base, event.stack)
        if number is None:
            return
        piece = memory.all[number]
        whole = Access(number, True, Range(True, piece.base, piece.size), exact=True)
        self._device(Operation("KESCO_FREED", event.stack, event.stream), (whole,))
        self.left.append(self.past.pop(number)[-1])
        self.limit.pop(number, None)

    def _given(self, operation: Operation, address: int, through: tuple[Launched, Given] | None = None) -> None:
        """An operation is given an address: is the memory there still allocated?"""
        memory = self.footprints.memory
        if (found := memory.freed_at(address)) is not None:
            made, stack = found
            if memory.is_piece(made.id) and not self.footprints.stays(through, made):
                return  # it may be the pool's own, which knows what it does with the whole
            if (operation.stack, made.stack) not in self.stale:
                memory.keep(made.id)
                self.stale[operation.stack, made.stack] = Stale(operation, made.id, stack)

    def _device(self, operation: Operation, accesses: Iterable[Access]) -> None:
        clock, epoch = self.clocks.operation(operation.agent)
        step = self.lately.note(operation.agent, operation.what, operation.stack)
        for access in accesses:
            self._access(operation, access, clock, epoch, step)
        self.clocks.done(operation.agent)
        self.operations += 1

    def _host(self, operation: Operation, accesses: Iterable[Access]) -> None:
        clock, epoch = self.clocks.host_operation()
        step = self.lately.note(HOST, operation.what, operation.stack)
        for access in accesses:
            self._access(operation, access, clock, epoch, step)

    def _access(self, operation: Operation, access: Access, clock: Clock, epoch: int, step: Step) -> None:
        past = self.past.setdefault(access.allocation, [])
        kept = []
        for one in past:
            seen = clock.get(one.operation.agent, 0)
            ordered = one.epoch <= seen
            if one.epoch == epoch and one.operation.agent == operation.agent:
                ordered = True  # the same operation
            elif not ordered and (access.writes or one.access.writes):
                meeting = self._meeting(one.access, access)
                if meeting is not Meeting.NO:
                    self._report(one, operation, access, meeting is Meeting.YES and one.since > seen, step)
            if not (ordered and covers(access, one.access, self.footprints.memory)):
                kept.append(one)
        kept.append(_Past(access, operation, epoch, epoch, step))
        if len(kept) > self.limit.get(access.allocation, _KEPT):
            host = self.clocks.host
            kept = self._fewer([one for one in kept if one.epoch > host.get(one.operation.agent, 0)])
            self.limit[access.allocation] = max(_KEPT, 2 * len(kept))
        self.past[access.allocation] = kept

    def _meeting(self, a: Access, b: Access) -> Meeting:
        """`overlaps`, remembered."""
        if a.known is not None or b.known is not None:
            return self._overlaps(a, b)
        key = (identity(a), identity(b))
        found = self.met.get(key)
        if found is None:
            if len(self.met) > _REMEMBERED:
                self.met.clear()
            found = self.met[key] = self._overlaps(a, b)
        return found

    def _overlaps(self, a: Access, b: Access) -> Meeting:
        made = self.footprints.memory.all[b.allocation]
        return overlaps(a, b, self.footprints.touched, (made.base, made.base + made.size))

    def _fewer(self, kept: list[_Past]) -> list[_Past]:
        """The accesses of one line and stream as one; first those that touch the same bytes."""
        same: dict[object, _Past] = {}
        for one in kept:
            key = one.operation, (id(one) if one.access.known else identity(one.access))
            same[key] = replace(one, since=min(one.since, same[key].since)) if key in same else one
        if 2 * len(same) <= len(kept):
            return list(same.values())
        groups: dict[object, list[_Past]] = {}
        for one in same.values():
            groups.setdefault((one.operation, one.access.writes, one.access.vague), []).append(one)
        return [group[0] if len(group) == 1 else self._several(group) for group in groups.values()]

    def _several(self, group: list[_Past]) -> _Past:
        last = group[-1]
        if last.access.vague:
            return last
        known = Bytes.any_of([self.footprints.touched(one.access) for one in group])
        access = last.access._replace(exact=False, most=None, part=None, launch=None, known=known)
        return _Past(access, last.operation, last.epoch, min(one.since for one in group), last.step)

    def _report(self, first: _Past, second: Operation, access: Access, sure: bool, step: Step) -> None:
        kind = "WAW" if access.writes and first.access.writes else "WAR" if access.writes else "RAW"
        key = (first.operation.stack, second.stack, kind, self._origin(access.allocation), sure)
        if key in self.races:
            self.races[key].times += 1
            return
        self.footprints.memory.keep(access.allocation)
        vague = access.vague or first.access.vague
        why = "" if sure or vague else self._why(first, second, access)
        steps = self.lately.between(first.step, step)
        self.races[key] = Race(first.operation, second, kind, access.allocation, sure, vague, 1, why, steps)

    def _why(self, first: _Past, second: Operation, access: Access) -> str:
        """What is not known of two accesses that may meet."""
        for operation, one in ((second, access), (first.operation, first.access)):
            if self.footprints.touched(one).may is None:
                return f"which bytes '{operation.what}' touches is not known"
        return "whether both touch them depends on more than their arguments"

    def _origin(self, allocation: int) -> int:
        return self.footprints.memory.all[allocation].stack
