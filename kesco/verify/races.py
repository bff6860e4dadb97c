"""The race detector: pairs of operations of one run that touch the same memory, one writing, and that nothing orders.

In: a `Trace` and the effects of the kernels. Out: `Findings`: each pair of places once, however often it happened, and
what was given memory that is freed already. It shares no line with the stages that choose streams and waits.

1. `footprint.uses` walks the run once, to see which allocations are used in parts;
2. then each event moves the `Clocks`, and each access is compared with those of the same allocation that may still be
   under way: if it conflicts with one whose epoch its clock does not know, that is a race;
3. an access is forgotten when a later one that knows it covers it, or when the host has waited for it.

How sure it is. A race is *certain* where both touch the same bytes for all that can be seen: exact ranges that overlap,
the same pointer and the same part given to both, or an allocation of which nobody uses parts. It is *possible* where
only the allocation is the same, or where a kernel's accesses are not known. What an operation on memory would do with
certain values in it is not asked: a kernel that only reads under a condition counts as reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kesco.ir.effects import KernelEffects, Steering
from kesco.verify.clocks import HOST, Clock, Clocks
from kesco.verify.footprint import Access, Footprints, Use, uses
from kesco.verify.trace import (
    Allocated,
    Copied,
    Failed,
    Freed,
    Handle,
    HostFunction,
    Launched,
    Range,
    Recorded,
    Refused,
    StreamMade,
    Synchronized,
    Touched,
    Trace,
    Unsupported,
    Waited,
)

_KEPT = 64  # accesses of one allocation that are kept before looking which ones are over


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


def find_races(
    trace: Trace, effects: Mapping[str, KernelEffects], steering: Mapping[str, Steering] = MappingProxyType({})
) -> Findings:
    """All races of a recorded run; a kernel that is not in `steering` is steered by all its arguments."""
    return _Detector(trace, Footprints(effects, steering)).run()


class _Detector:
    def __init__(self, trace: Trace, footprints: Footprints) -> None:
        self.trace, self.footprints = trace, footprints
        self.uses: dict[int, Use] = uses(trace.events, self.footprints)
        self.clocks = Clocks()
        self.past: dict[int, list[_Past]] = {}
        self.limit: dict[int, int] = {}
        self.races: dict[tuple[int, int, str, int, bool], Race] = {}
        self.stale: dict[tuple[int, int], Stale] = {}
        self.streams: dict[int, StreamMade] = {}
        self.unsupported: dict[Unsupported, None] = {}
        self.failed: dict[Failed, None] = {}
        self.operations = self.kernels = 0

    def run(self) -> Findings:
        for event in self.trace.events:
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
            case Recorded(number, stream):
                self.clocks.record(number, stream)
            case Waited(number, stream):
                self.clocks.wait(stream, number)
            case Synchronized("d", device):
                self.clocks.wait_host_device(device)
            case Synchronized("s", stream):
                self.clocks.wait_host_stream(stream)
            case Synchronized(_, number):
                self.clocks.wait_host_event(number)
            case Touched(_, _, stack):
                self._host(Operation("the host", stack, HOST), self.footprints.ranges(event))
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
                    self._given(operation, one.pointer)
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

    def _given(self, operation: Operation, address: int) -> None:
        """An operation is given an address: is the memory there still allocated?"""
        memory = self.footprints.memory
        if memory.at(address) is None and (found := memory.freed_at(address)) is not None:
            number, freed = found
            self.stale.setdefault((operation.stack, number), Stale(operation, number, freed.stack))

    def _device(self, operation: Operation, accesses: Iterable[Access]) -> None:
        clock, epoch = self.clocks.operation(operation.agent)
        for access in accesses:
            self._access(operation, access, clock, epoch)
        self.clocks.done(operation.agent)
        self.operations += 1

    def _host(self, operation: Operation, accesses: Iterable[Access]) -> None:
        clock, epoch = self.clocks.host_operation()
        for access in accesses:
            self._access(operation, access, clock, epoch)

    def _access(self, operation: Operation, access: Access, clock: Clock, epoch: int) -> None:
        past = self.past.setdefault(access.allocation, [])
        kept = []
        use = self.uses[access.allocation]
        for one in past:
            ordered = one.epoch <= clock.get(one.operation.agent, 0)
            if one.epoch == epoch and one.operation.agent == operation.agent:
                ordered = True  # the same operation
            elif not ordered and (access.writes or one.access.writes) and overlap(one.access, access):
                self._report(one, operation, access, certain(one.access, access, use))
            if not (ordered and _covers(access, one.access, use)):
                kept.append(one)
        kept.append(_Past(access, operation, epoch))
        if len(kept) > self.limit.get(access.allocation, _KEPT):
            host = self.clocks.host
            kept = [one for one in kept if one.epoch > host.get(one.operation.agent, 0)]
            self.limit[access.allocation] = max(_KEPT, 2 * len(kept))
        self.past[access.allocation] = kept

    def _report(self, first: _Past, second: Operation, access: Access, sure: bool) -> None:
        kind = "WAW" if access.writes and first.access.writes else "WAR" if access.writes else "RAW"
        key = (first.operation.stack, second.stack, kind, self._origin(access.allocation), sure)
        if key in self.races:
            self.races[key].times += 1
            return
        vague = access.vague or first.access.vague
        self.races[key] = Race(first.operation, second, kind, access.allocation, sure, vague)

    def _origin(self, allocation: int) -> int:
        return self.footprints.memory.all[allocation].stack


def overlap(a: Access, b: Access) -> bool:
    """Whether two accesses of one allocation may touch a common byte; those of kernels may unless both have limits."""
    if not (a.exact and b.exact):
        x_limits, y_limits = _limits(a), _limits(b)
        return x_limits is None or y_limits is None or (x_limits[0] < y_limits[1] and y_limits[0] < x_limits[1])
    x, y = a.bytes, b.bytes
    if x.high <= y.low or y.high <= x.low:
        return False
    pitch = x.pitch if x.rows > 1 else y.pitch
    if pitch and (x.rows == 1 or x.pitch == pitch) and (y.rows == 1 or y.pitch == pitch):
        apart = (y.low - x.low) % pitch  # columns of one grid
        return apart < x.width or apart + y.width > pitch
    return True


def _limits(access: Access) -> tuple[int, int] | None:
    """The addresses between which an access stays; None where that may be anywhere in the allocation."""
    return (access.bytes.low, access.bytes.high) if access.exact else access.most


def certain(a: Access, b: Access, use: Use) -> bool:
    """Whether two accesses that may overlap touch the same bytes for all that can be seen."""
    if a.vague or b.vague:
        return False
    if (a.exact and b.exact) or use.whole:
        return True
    if a.part != b.part:
        return False
    if a.exact or b.exact:
        exact, other = (a, b) if a.exact else (b, a)
        return exact.bytes.low <= other.bytes.low < exact.bytes.high
    return a.bytes.low == b.bytes.low


def _covers(new: Access, old: Access, use: Use) -> bool:
    """Whether whatever conflicts with the old access conflicts with the new one, and as certainly."""
    if old.writes and not new.writes:
        return False
    if new.vague and not old.vague:
        return False
    if new.most is not None and new.most != _limits(old):
        return False
    if use.whole and not new.exact:
        return True
    if new.exact != old.exact or (new.part and new.part != old.part):
        return new.exact and not new.part and old.exact
    if not new.exact:
        return new.bytes.low == old.bytes.low
    rows_hold = new.bytes.rows == 1 or new.bytes == old.bytes._replace(writes=new.bytes.writes)
    return rows_hold and new.bytes.low <= old.bytes.low and old.bytes.high <= new.bytes.high
