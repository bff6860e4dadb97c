"""What the host does in one repetition of a workload's program, from a dry run: a schedule that nobody has to describe.

In: a program of the suite, a setting, and what its kernels cost. Out: the `Step`s of its last repetition, for the model
of a GPU. So the model knows the hand-written programs, whose streams and events stand nowhere but in their text.

1. The program is built against the dry-run runtime and makes two repetitions of the setting's size: what the first one
   creates stays. 2. The record is cut where the host waits for the device or a stream; the last piece with a kernel is
   one repetition. 3. A kernel costs what the launch of its name and shared memory cost that was measured, in the order
   of the launches; a copy its bytes over the link's speed in its direction. 4. What is on the legacy stream and what
   is on a blocking one are apart by a barrier. 5. Managed memory that the host has touched is on the host, all of the
allocation. A prefetch copies it; a kernel that gets a pointer into it takes longer by its bytes over the speed at which
one kernel's page faults bring it, and kernels that do so at once share what faults can bring together.

kesco's program is read in the same way as the others; a choice that it makes at run time is the dry run's.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.bench.build import rewrite
from kesco.bench.costs import MEMSET, Costs
from kesco.bench.measure import Row, Setting
from kesco.bench.suite import STYLES, Workload
from kesco.check import Run, prepare, record
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.llvm.names import display_name
from kesco.model.gpu import KernelCost, Kind, Step, makespan
from kesco.options import Options
from kesco.verify.trace import (
    Allocated,
    Copied,
    Event,
    Launched,
    Prefetched,
    Recorded,
    StreamMade,
    Synchronized,
    Touched,
    Trace,
    Waited,
)

NOT_RUN = "K536"
KNOWN_STYLES = ("device", "pinned", "managed", "inserted", "prefetch")
"""The memory styles whose programs can be asked for."""
LINK = {"in": 55_000.0, "out": 53_000.0, "": 2_000_000.0}
"""Bytes per microsecond of a copy to the device, from it, and within it: an H200's, from pinned memory."""
FAULTS, ALL_FAULTS, PREFETCH = 8_000.0, 10_500.0, 48_000.0
"""The same for managed memory: on demand, of one kernel and of all together; and prefetched."""
_LIMIT = 300.0  # seconds for a dry run: the host fills its inputs at full size
_WORD = struct.Struct("<Q")
_MANAGED = "m"  # the letter of managed memory in a record
_ON_DEVICE = ("d", "s")  # the letters of allocated memory and of symbols in a record


def rows(
    workloads: Sequence[Workload],
    style: str,
    programs: Iterable[str],
    costs: Costs,
    sizes: Sequence[str],
    blocks: Sequence[int],
    jobs: int = 2,
) -> Iterator[Row]:
    """One row for each of these programs and each setting whose kernels' costs are known, as if measured once.

    Raises `InputError` (K100, K536) where a program does not compile or does not come to its end.
    """

    def predict(job: tuple[Workload, str, str]) -> list[Row]:
        workload, program, size = job
        wanted = [block for block in blocks if f"{workload.name}/{size}/{block}" in costs.settings]
        n = workload.sizes.get(size, 0)
        if not wanted:
            return []
        trace = traced(workload, style, program, n)
        return [
            Row(
                Setting(workload.name, style, size, n, block, workload.grid, workload.tolerance),
                program,
                0,
                (makespan(costs.machine, steps(trace, costs, f"{workload.name}/{size}/{block}")) / 1000,),
            )
            for block in wanted
        ]

    jobs_ = [(workload, program, size) for workload in workloads for size in sizes for program in programs]
    with ThreadPoolExecutor(jobs) as pool:
        yield from itertools.chain.from_iterable(pool.map(predict, jobs_))


def traced(workload: Workload, style: str, program: str, n: int) -> Trace:
    """The record of one dry run with two repetitions; raises `InputError` (K536) where it does not come to its end."""
    found = workload.source(STYLES[style], program)
    assert found is not None
    source, flags = found
    with TemporaryDirectory(prefix="kesco-model-") as name:
        folder = Path(name)
        if program == "kesco":
            options = Options(flags=flags, prefetch=STYLES[style].insert)
            source, _ = rewrite(source, options, folder / "kesco.cu")
        watch = "managed" in STYLES[style].serial
        numbers = {"--n": n, "--grid": workload.grid, "--iters": 2}
        arguments = [str(part) for pair in numbers.items() for part in pair]
        return dry_run(source, (*flags, f"-I{workload.folder}"), (*arguments, "--no-check"), folder, watch)


def dry_run(source: Path, flags: Sequence[str], arguments: Sequence[str], folder: Path, watch: bool = False) -> Trace:
    """The record of a program that is built in a folder; raises `InputError` (K536) where it does not come to its end.

    With `watch` it says where the host touches managed memory. Raises K100, too, where the program does not compile.
    """
    prepared = prepare(str(source), (), Options(flags=tuple(flags)), folder)
    ran, trace = record(prepared, Run(arguments=tuple(arguments), limit=_LIMIT, watch=watch))
    if trace is None or not trace.ended or ran.returncode != 0:
        said = (ran.said.strip().splitlines() or ["nothing said"])[-1]
        what = "was stopped" if ran.stopped else f"ended with {ran.returncode}: {said}"
        raise InputError(Diagnostic(NOT_RUN, Severity.ERROR, f"{source}: its dry run {what}"))
    return trace


def repetition(trace: Trace) -> tuple[Event, ...]:
    """The events of the last piece with a kernel: between two waits of the host; ends with the second wait."""
    pieces = _pieces(trace)
    begin, end = pieces[-1] if pieces else (0, 0)
    return trace.events[begin:end]


def _pieces(trace: Trace) -> list[tuple[int, int]]:
    """Between which events of the record the pieces with a kernel are."""
    ends = [number + 1 for number, event in enumerate(trace.events) if isinstance(event, Synchronized)]
    pieces = itertools.pairwise([0, *ends, len(trace.events)])
    return [p for p in pieces if any(isinstance(event, Launched) for event in trace.events[p[0] : p[1]])]


def steps(trace: Trace, costs: Costs, setting: str) -> list[Step]:
    """The second of two repetitions as steps for the model, without the wait at its end."""
    reading = Reading(trace, costs.settings.get(setting, {}), costs)
    pieces = _pieces(trace) or [(0, 0)]
    begin, end = pieces[-max(len(pieces) // 2, 1)][0], pieces[-1][1]
    for event in trace.events[:begin]:
        reading.moved(event)
    return list(itertools.chain.from_iterable(map(reading.step, trace.events[begin : end - 1])))


class Reading:
    """What the record says of streams and memory, and how many launches of each kernel there were."""

    def __init__(self, trace: Trace, known: Mapping[str, KernelCost], costs: Costs) -> None:
        self.kinds = {e.stream: e.kind for e in trace.events if isinstance(e, StreamMade)}
        self.memory = [e for e in trace.events if isinstance(e, Allocated) and e.kind in _ON_DEVICE]
        self.managed = [e for e in trace.events if isinstance(e, Allocated) and e.kind == _MANAGED]
        self.on_host: set[int] = set()  # the managed allocations that are there
        self.known, self.costs = known, costs
        self.seen: Counter[tuple[str, int]] = Counter()
        self.side = ""  # of what is in the queues: legacy or blocking

    def step(self, event: Event) -> list[Step]:
        """What an event of the record is for the model."""
        moved = self.moved(event)
        match event:
            case Launched():
                return [*self._apart(event.stream), Step(Kind.LAUNCH, event.stream, faulting(self._cost(event), moved))]
            case Prefetched():
                if not moved:
                    return []
                copy = Step(Kind.COPY, event.stream, KernelCost(moved / PREFETCH, 1, 32), engine="in")
                return [*self._apart(event.stream), copy]
            case Copied():
                copy = Step(Kind.COPY, event.stream, *self._copied(event))
                waits = [Step(Kind.AWAIT, event.stream)] if event.after else []
                return [*self._apart(event.stream), copy, *waits]
            case Recorded():
                return [Step(Kind.RECORD, event.stream, event=event.event)]
            case Waited():
                return [Step(Kind.WAIT, event.stream, event=event.event)]
            case Synchronized("d"):
                return [Step(Kind.SYNCHRONIZE)]
            case Synchronized("s", stream):
                return [Step(Kind.AWAIT, stream)]
            case Synchronized(_, number):
                return [Step(Kind.AWAIT, event=number)]
        return []

    def moved(self, event: Event) -> int:
        """How many bytes of managed memory an event brings to the device; afterwards it is known where they are."""
        match event:
            case Touched(_, address):
                self.on_host.update(one.id for one in self.managed if _holds(one, address))
            case Prefetched():
                return self._brought(lambda one: _holds(one, event.address))
            case Launched():
                given = [word for argument in event.arguments or () for (word,) in _WORD.iter_unpack(_whole(argument))]
                return self._brought(lambda one: any(_holds(one, word) for word in given))
        return 0

    def _brought(self, wanted: Callable[[Allocated], bool]) -> int:
        found = [one for one in self.managed if one.id in self.on_host and wanted(one)]
        self.on_host.difference_update(one.id for one in found)
        return sum(one.size for one in found)

    def _apart(self, stream: int) -> list[Step]:
        side = self.kinds.get(stream, "b")
        if side not in "lb" or side == self.side:
            return []
        before, self.side = self.side, side
        return [Step(Kind.BARRIER)] if before else []

    def _cost(self, event: Launched) -> KernelCost:
        name = display_name(event.name)
        labels = [label for label in self.known if label.partition("#")[0] == name]
        same = [label for label in labels if self.known[label].shared == event.shared] or labels
        number = self.seen[name, event.shared]
        self.seen[name, event.shared] += 1
        return self.known[same[number % len(same)]] if same else self.costs.of("", name)

    def _copied(self, event: Copied) -> tuple[KernelCost, int, str]:
        """The cost of a copy or memset, no event, and the engine that it takes."""
        source = next((r for r in event.ranges if not r.writes), None)
        target = next((r for r in event.ranges if r.writes), None)
        if source is None or target is None:
            return MEMSET, -1, ""
        way = "in" if not self._on_device(source.low) else "out" if not self._on_device(target.low) else ""
        return KernelCost(source.width * source.rows / LINK[way], 1, 32), -1, way

    def _on_device(self, address: int) -> bool:
        return any(_holds(one, address) for one in self.memory)


def faulting(cost: KernelCost, moved: int) -> KernelCost:
    """What a kernel costs that brings so many bytes by its page faults."""
    if not moved:
        return cost
    took = cost.microseconds + moved / FAULTS
    part = cost.microseconds / took
    return replace(
        cost, microseconds=took, sm=cost.sm * part, memory=cost.memory * part, faults=moved / ALL_FAULTS / took
    )


def _holds(one: Allocated, address: int) -> bool:
    return one.base <= address < one.base + one.size


def _whole(argument: bytes) -> bytes:
    """As much of an argument as may hold pointers."""
    return argument[: len(argument) // _WORD.size * _WORD.size]
