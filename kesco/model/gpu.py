"""A GPU as a discrete-event simulation: how long a sequence of launches, records and waits takes.

In: a `Machine`, and the host's `Step`s in order, each kernel with its measured `KernelCost`. Out: the makespan.

1. The host issues one step after another; each takes its time. 2. A stream is a queue: its head starts when what stands
before it is done; a wait is done when the event's record is. 3. A kernel that starts takes block slots of the SMs (by
threads, blocks, registers and shared memory per SM), oldest kernel first; with some of its blocks waiting it runs at a
part of its speed. Kernels of urgent streams come first, but they cannot take a slot from a block that runs: before a
kernel all of whose blocks are resident they have to wait. 4. Running kernels share the SMs' throughput, the
bandwidth of memory and that of page faults: each has a share of each when it runs alone; where the shares add up to
more than all, each slows down by as much. 5. A copy takes the engine of its direction, one at a time, and nothing else.

Between two events all speeds are constant, so the simulation jumps from event to event. What it leaves out: caches,
clocks, the order in which blocks are placed. Sources: CUDA C++ Programming Guide, "Asynchronous Concurrent Execution"
and "Compute Capabilities" (limits per SM).
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One launch measured alone: microseconds, its shape, and the shares of the whole GPU's throughput it used."""

    microseconds: float
    blocks: int
    threads: int
    registers: int = 32
    shared: int = 0
    """Bytes of shared memory per block."""
    sm: float = 0.0
    """Share of the SMs' peak throughput, 0 to 1."""
    memory: float = 0.0
    """Share of the peak throughput of device memory, 0 to 1."""
    faults: float = 0.0
    """Share of the rate at which managed memory can move to the GPU on demand, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The GPU's limits and what the host's calls cost, in microseconds."""

    sms: int = 132
    threads_per_sm: int = 2048
    blocks_per_sm: int = 32
    registers_per_sm: int = 65536
    shared_per_sm: int = 233472
    launch: float = 3.6
    record: float = 0.16
    wait: float = 0.19
    synchronize: float = 5.0
    """From the end of the last work to the host's return."""
    start: float = 1.2
    """From a kernel being ready to its first instruction."""
    hop: float = 0.6
    """From the end of work to when a stream goes on that waited for it behind another stream's event."""
    graph_launch: float = 6.0
    graph_node: float = 0.8

    def blocks_at_once(self, cost: KernelCost) -> int:
        """How many blocks of this kernel fit on the empty GPU."""
        per_sm = min(
            self.threads_per_sm // max(cost.threads, 1),
            self.blocks_per_sm,
            self.registers_per_sm // max(cost.registers * cost.threads, 1),
            self.shared_per_sm // max(cost.shared, 1),
        )
        return max(per_sm, 1) * self.sms


class Kind(Enum):
    """What the host does in one step."""

    LAUNCH = "launch"
    COPY = "copy"
    RECORD = "record"
    WAIT = "wait"
    SYNCHRONIZE = "synchronize"
    AWAIT = "await"
    BARRIER = "barrier"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the host: a launch, copy, or an event's record or wait on a stream, or a synchronize with the device.

    An await holds the host until an event's last record is done, or, without one, until its stream is. A barrier is a
    synchronize that costs the host no time: what stands for an operation that orders everything.
    `engine` says which of the GPU's copy engines a copy takes.
    """

    kind: Kind
    stream: int = 0
    cost: KernelCost | None = None
    event: int = -1
    engine: str = ""


@dataclass(slots=True)
class _Task:
    """Something in a stream's queue."""

    step: Step
    issued: float
    after: _Task | None = None  # the record that a wait looks at
    began: float = math.inf  # of a launch or copy
    done: float = math.inf
    left: float = 1.0  # part of a kernel's work


@dataclass(slots=True)
class _Device:
    """The streams' queues and the kernels that run."""

    machine: Machine
    now: float = 0.0
    queues: dict[int, deque[_Task]] = field(default_factory=dict)
    running: list[tuple[_Task, int]] = field(default_factory=list)
    starting: list[tuple[float, int, _Task, int]] = field(default_factory=list)
    count: int = 0
    ranks: Mapping[int, int] = field(default_factory=dict)  # of streams; those without one come last
    busy: set[int] = field(default_factory=set)  # streams whose kernel or copy runs or is about to
    engines: set[str] = field(default_factory=set)  # those that are copying

    def heads(self) -> None:
        """Let every stream's head that can start do so; records and waits are done at once."""
        moved = True
        while moved:
            moved = False
            for stream, queue in self.queues.items():
                while queue and self._begin(queue[0], stream):
                    queue.popleft()
                    moved = True

    def _begin(self, task: _Task, stream: int) -> bool:
        if task.issued > self.now or stream in self.busy:
            return False
        if task.step.kind is Kind.WAIT and self._passes(task, stream) > self.now:
            return False
        if task.step.kind is Kind.COPY and task.step.engine in self.engines:
            return False
        if task.step.kind in (Kind.LAUNCH, Kind.COPY):
            self.count += 1
            self.busy.add(stream)
            if task.step.kind is Kind.COPY:
                self.engines.add(task.step.engine)
            heapq.heappush(self.starting, (self.now + self.machine.start, self.count, task, stream))
        else:
            task.done = self.now
        return True

    def _passes(self, task: _Task, stream: int) -> float:
        """When a stream goes on behind a wait."""
        if task.after is None:
            return self.now
        return task.after.done + (self.machine.hop if task.after.step.stream != stream else 0.0)

    def speeds(self) -> list[float]:
        """How fast each running kernel or copy goes, as a part of its speed alone."""
        free = 1.0
        resident = [1.0] * len(self.running)
        for place in self._served():
            task, _ = self.running[place]
            if task.step.kind is Kind.COPY:
                continue
            cost = _cost(task)
            slots = self.machine.blocks_at_once(cost)
            wanted = max(min(cost.blocks, slots), 1) / slots
            given = min(wanted, free)
            free -= given
            resident[place] = given / wanted
        sm = sum(_cost(t).sm * r for (t, _), r in zip(self.running, resident, strict=True))
        memory = sum(_cost(t).memory * r for (t, _), r in zip(self.running, resident, strict=True))
        faults = sum(_cost(t).faults * r for (t, _), r in zip(self.running, resident, strict=True))
        return [
            r
            / max(
                1.0,
                sm if _cost(t).sm > 0.02 else 0.0,
                memory if _cost(t).memory > 0.02 else 0.0,
                faults if _cost(t).faults > 0.02 else 0.0,
            )
            for (t, _), r in zip(self.running, resident, strict=True)
        ]

    def _served(self) -> list[int]:
        """The order in which running kernels get their slots, as places in `running`, where they are by age."""
        last = max(self.ranks.values(), default=0) + 1

        def rank(place: int) -> int:
            task, stream = self.running[place]
            cost = _cost(task)
            waiting = cost.blocks > self.machine.blocks_at_once(cost)
            return self.ranks.get(stream, last) if waiting else 0

        places = range(len(self.running))
        return sorted(places, key=rank) if self.ranks else list(places)

    def advance(self, limit: float, until: _Task | None = None) -> None:
        """Go on from event to event, at most to `limit`, or until a task is done."""
        while self.now < limit:
            self.heads()
            if until is not None and until.done <= self.now:
                return
            speeds = self.speeds()
            ends = [
                self.now + task.left * _cost(task).microseconds / speed if speed > 0 else math.inf
                for (task, _), speed in zip(self.running, speeds, strict=True)
            ]
            issued = [q[0].issued for q in self.queues.values() if q and q[0].issued > self.now]
            starts = [self.starting[0][0]] if self.starting else []
            passes = [self._passes(q[0], s) for s, q in self.queues.items() if q and q[0].step.kind is Kind.WAIT]
            following = min([*ends, *issued, *starts, *(t for t in passes if t > self.now), limit])
            if following == math.inf:
                return
            passed = following - self.now
            self.now = following
            for (task, stream), speed, end in zip(self.running, speeds, ends, strict=True):
                task.left -= passed * speed / max(_cost(task).microseconds, 1e-9)
                if end <= following or task.left <= 1e-9:
                    task.done = self.now
                    self.busy.discard(stream)
                    if task.step.kind is Kind.COPY:
                        self.engines.discard(task.step.engine)
            self.running = [(t, s) for t, s in self.running if t.done == math.inf]
            while self.starting and self.starting[0][0] <= self.now:
                _, _, task, stream = heapq.heappop(self.starting)
                task.began = self.now
                self.running.append((task, stream))
        self.heads()

    def finish(self) -> None:
        """Run until nothing is left."""
        self.advance(math.inf)


def makespan(machine: Machine, steps: Iterable[Step], urgent: Collection[int] = ()) -> float:
    """Microseconds from the host's first call to the return of a synchronize behind the last.

    Kernels of the streams in `urgent` come before those of others.
    """
    return _run(machine, steps, dict.fromkeys(urgent, 0))[0]


def ends(machine: Machine, steps: Iterable[Step], ranks: Mapping[int, int]) -> list[float]:
    """When each launch and copy ends, in microseconds from the host's first call, in the order of the steps.

    Kernels of streams with a lower rank come before others; those of streams without one come last.
    """
    return [task.done for task in _run(machine, steps, ranks)[1]]


def spans(machine: Machine, steps: Iterable[Step], ranks: Mapping[int, int]) -> list[tuple[float, float]]:
    """When each launch and copy begins and ends, as `ends` has it."""
    return [(task.began, task.done) for task in _run(machine, steps, ranks)[1]]


def ends_of_hosts(machine: Machine, hosts: Sequence[Sequence[Step]], ranks: Mapping[int, int]) -> list[list[float]]:
    """The same for several hosts that begin at once and share the GPU; no stream and no event belongs to two of them.

    They give work, record and wait on streams, and do not wait themselves.
    """
    device = _Device(machine, ranks=ranks)
    works = [_given(device, steps) for steps in hosts]
    device.finish()
    return [[task.done for task in of_one] for of_one in works]


def _given(device: _Device, steps: Iterable[Step]) -> list[_Task]:
    """Put what one host does into the streams' queues; the launches and copies."""
    prices = {Kind.RECORD: device.machine.record, Kind.WAIT: device.machine.wait}
    records: dict[int, _Task] = {}
    works: list[_Task] = []
    host = 0.0
    for step in steps:
        assert step.kind in (Kind.LAUNCH, Kind.COPY, Kind.RECORD, Kind.WAIT)
        host += prices.get(step.kind, device.machine.launch)
        task = _Task(step, host, records.get(step.event) if step.kind is Kind.WAIT else None)
        if step.kind is Kind.RECORD:
            records[step.event] = task
        elif step.kind is not Kind.WAIT:
            works.append(task)
        device.queues.setdefault(step.stream, deque()).append(task)
    return works


def _run(machine: Machine, steps: Iterable[Step], ranks: Mapping[int, int]) -> tuple[float, list[_Task]]:
    """When a synchronize behind the last step returns, and the launches and copies."""
    device = _Device(machine, ranks=ranks)
    works: list[_Task] = []
    records: dict[int, _Task] = {}
    prices = {Kind.RECORD: machine.record, Kind.WAIT: machine.wait}  # everything else is given to the device
    host = 0.0
    for step in (*steps, Step(Kind.SYNCHRONIZE)):
        if step.kind in (Kind.SYNCHRONIZE, Kind.BARRIER):
            device.advance(host)
            device.finish()
            host = max(host, device.now) + (machine.synchronize if step.kind is Kind.SYNCHRONIZE else 0.0)
            device.now = max(device.now, host)
            continue
        if step.kind is Kind.AWAIT:
            host = _awaited(device, step, records.get(step.event), host) + machine.synchronize
            continue
        host += prices.get(step.kind, machine.launch)
        task = _Task(step, host, records.get(step.event) if step.kind is Kind.WAIT else None)
        if step.kind is Kind.RECORD:
            records[step.event] = task
        elif step.kind in (Kind.LAUNCH, Kind.COPY):
            works.append(task)
        device.queues.setdefault(step.stream, deque()).append(task)
    return host, works


def _awaited(device: _Device, step: Step, record: _Task | None, host: float) -> float:
    """When a host that begins to wait at `host` goes on."""
    until = record
    if step.event < 0:  # for all that its stream has
        until = _Task(Step(Kind.RECORD), host)
        device.queues.setdefault(step.stream, deque()).append(until)
    if until is None:  # never recorded
        return host
    device.advance(math.inf, until)
    return max(host, until.done)


def graph_makespan(machine: Machine, costs: Sequence[KernelCost], edges: Iterable[tuple[int, int]]) -> float:
    """Microseconds for a graph of kernels launched at once: node i may start when all with an edge to it are done."""
    before: dict[int, list[int]] = {}
    for source, target in edges:
        before.setdefault(target, []).append(source)
    device = _Device(replace(machine, hop=0.0))  # a graph has its own ways from node to node
    records: dict[int, _Task] = {}
    for number, cost in enumerate(costs):
        ready = machine.graph_launch + machine.graph_node * number
        queue = device.queues.setdefault(number, deque())
        for source in before.get(number, ()):
            queue.append(_Task(Step(Kind.WAIT), ready, records[source]))
        queue.append(_Task(Step(Kind.LAUNCH, number, cost), ready))
        records[number] = _Task(Step(Kind.RECORD, number), ready)
        queue.append(records[number])
    device.finish()
    return device.now + machine.synchronize


def _cost(task: _Task) -> KernelCost:
    assert task.step.cost is not None
    return task.step.cost
