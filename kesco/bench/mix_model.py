"""Predict, without a GPU, what each scheme makes of a mix: results as if measured, one round.

In: mixes, the workloads' sizes, and what each kernel costs alone. Out: `Shared` results. It is apart from `model`
because tasks of several hosts share the GPU here, and each is asked when its results arrive.

1. kesco's programs of the tasks and the merged ones make a dry run with the mix's arguments; their launches, copies,
records and waits behind the common start become steps. On one stream, without events, they are the serial program's.
2. A kernel costs what it cost at about 1 GB, times how much less a task works on: the arguments and the manifest's
sizes say that. 3. Processes without MPS take turns in time slices that cost nothing: with k of them at work each has a
k-th part of the GPU. Under MPS, and in one program, kernels run beside each other as the model of a GPU says; a host
thread for each task is a host of its own. 4. In a merged program a task ends with its last `finished` kernel.

What it leaves out: what kernels do to each other in caches, in the memory's rows and on one SM; switches of context.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.bench.build import rewrite
from kesco.bench.costs import Costs
from kesco.bench.mix_results import Shared
from kesco.bench.mixes import SCHEMES, STRATEGIES, Mix, Task
from kesco.bench.recorded import Reading, dry_run, repetition
from kesco.bench.sharing import Outcome
from kesco.bench.suite import Workload
from kesco.model.gpu import KernelCost, Kind, Machine, Step, ends_of_hosts
from kesco.options import Options
from kesco.verify.trace import Launched, Trace

_BLOCK = 256
_MEASURED = "1gb"
_FINISHED = "finished"
_WORKS = (Kind.LAUNCH, Kind.COPY)
_APART = 1000  # between the numbers of streams and events of two hosts


@dataclass(frozen=True, slots=True)
class Host:
    """One program: its steps, and for each launch and copy the place of its task among the mix's tasks."""

    steps: tuple[Step, ...]
    tasks: tuple[int, ...]


def predicted(
    mixes: Sequence[Mix],
    workloads: Sequence[Workload],
    folder: Path,
    costs: Costs,
    progress: Callable[[str], None] = lambda said: None,
) -> Shared:
    """All schemes of the mixes, each with one time; `folder` is that of the workloads.

    Raises `InputError` (K100, K536) where a program does not compile or does not come to its end.
    """
    known = {workload.name: workload for workload in workloads}
    outcomes: list[Outcome] = []
    kept: dict[tuple[str, ...], tuple[Step, ...]] = {}
    for mix in mixes:
        prices = {t.program: prices_of(t, known[t.program], costs) for t in mix.tasks}
        kesco: list[Host] = []
        for number, task in enumerate(mix.tasks):
            key = (task.program, *task.arguments)
            if key not in kept:
                progress(f"{mix.name}: {task.program}")
                made = record_of(folder / "mp" / f"{task.program}.cu", Options(), task.arguments)
                kept[key] = _steps(made, prices[task.program], costs)
            works = sum(step.kind in _WORKS for step in kept[key])
            kesco.append(Host(_numbered(kept[key], number), (number,) * works))
        merged: dict[str, Host] = {}
        for strategy in STRATEGIES:
            progress(f"{mix.name}: {strategy}")
            every = {label: cost for of in prices.values() for label, cost in of.items()}
            merged[strategy] = _merged(mix, strategy, folder, every, costs)
        for scheme, times in schemes_of(mix, kesco, merged, costs.machine).items():
            named: dict[str, tuple[float, ...]] = {
                t.name: (time / 1000,) for t, time in zip(mix.tasks, times, strict=True)
            }
            outcomes.append(Outcome(mix.name, scheme, named, {}))
    return Shared(tuple(outcomes), {"gpu": "a model of an NVIDIA H200"})


def schemes_of(mix: Mix, kesco: Sequence[Host], merged: Mapping[str, Host], machine: Machine) -> dict[str, list[float]]:
    """Microseconds of each task under each scheme, from kesco's programs of the tasks and the merged ones."""
    serial = [Host(_on_one_stream(host.steps, number), host.tasks) for number, host in enumerate(kesco)]
    levels = sorted({task.priority for task in mix.tasks}, reverse=True)
    rank = [levels.index(task.priority) for task in mix.tasks]

    def run(hosts: Sequence[Host], by_rank: bool = False) -> list[float]:
        ranks = {step.stream: rank[task] for host in hosts for step, task in zip(_works(host), host.tasks, strict=True)}
        found = [0.0] * len(mix.tasks)
        ends = ends_of_hosts(machine, [host.steps for host in hosts], ranks if by_rank else {})
        for host, done in zip(hosts, ends, strict=True):
            for task, end in zip(host.tasks, done, strict=True):
                found[task] = max(found[task], end)
        return found

    alone, alone_kesco = ([max(run([host])) for host in hosts] for hosts in (serial, kesco))
    found = {
        "alone": alone, "alone-kesco": alone_kesco, "baseline": in_turns(alone), "mps": run(serial),
        "kesco": in_turns(alone_kesco), "mps-kesco": run(kesco), "zones": run([merged["zones"]]),
        "zones-fair": run([merged["zones-fair"]], by_rank=True), "threads": run(kesco, by_rank=True),
        "one-thread": run([_as_one(kesco)], by_rank=True),
    }  # fmt: skip
    assert list(found) == list(SCHEMES)
    return found


def in_turns(alone: Sequence[float]) -> list[float]:
    """When each of several processes ends that take turns, by how long each takes alone."""
    found = [0.0] * len(alone)
    now = done = 0.0
    for left, (time, process) in enumerate(sorted((time, n) for n, time in enumerate(alone))):
        now += (time - done) * (len(alone) - left)
        found[process], done = now, time
    return found


# ---- steps -----------------------------------------------------------------------------------------------------------


def prices_of(task: Task, workload: Workload, costs: Costs) -> dict[str, KernelCost]:
    """What each kernel of a task costs at its size, by its label in the workload."""
    n = int(task.arguments[task.arguments.index("--n") + 1])
    small, large = workload.sizes[_MEASURED], workload.sizes["10gb"]
    power = round(1 / math.log10(large / small))  # a side of a square counts twice
    known = costs.settings[f"{workload.name}/{_MEASURED}/{_BLOCK}"]
    return {label: replace(c, microseconds=c.microseconds * (n / small) ** power) for label, c in known.items()}


def record_of(source: Path, options: Options, arguments: Sequence[str]) -> Trace:
    """The record of a dry run of what kesco makes of a program."""
    os.environ["MP_UNWATCHED"] = "1"  # for the merged programs, in which kernels tell that a task is done
    with TemporaryDirectory(prefix="kesco-model-") as name:
        target, _ = rewrite(source, options, Path(name) / source.name)
        return dry_run(target, (f"-I{source.parent}",), arguments, Path(name))


def _steps(trace: Trace, prices: Mapping[str, KernelCost], costs: Costs) -> tuple[Step, ...]:
    reading = Reading(trace, {**prices, _FINISHED: KernelCost(2.0, 1, 1)}, costs)
    steps = (step for event in repetition(trace) for step in reading.step(event))
    return tuple(step for step in steps if step.kind in (*_WORKS, Kind.RECORD, Kind.WAIT))


def _merged(mix: Mix, strategy: str, folder: Path, prices: Mapping[str, KernelCost], costs: Costs) -> Host:
    arguments: list[str] = []
    for task in mix.tasks:
        arguments += ["--", *task.arguments] if arguments else task.arguments
    trace = record_of(folder / "mp" / f"{mix.program}.cu", Options(strategy=strategy), arguments)
    counted = [e.arguments for e in repetition(trace) if isinstance(e, Launched) and _FINISHED in e.name]
    results: list[bytes] = []  # by its second argument a task's counter is known
    for one in counted:
        assert one is not None
        if one[1] not in results:
            results.append(one[1])
    assert len(results) == len(mix.tasks)
    left = [sum(one is not None and one[1] == result for one in counted) for result in results]
    tasks: list[int] = []
    at = 0
    steps = _steps(trace, prices, costs)
    for step in steps:
        if step.kind in _WORKS:
            tasks.append(at)
            if step.cost is not None and step.cost.blocks == step.cost.threads == 1:
                left[at] -= 1
                at += left[at] == 0
    return Host(steps, tuple(tasks))


def _numbered(steps: Sequence[Step], host: int) -> tuple[Step, ...]:
    """The steps with streams and events that no other host has."""
    return tuple(replace(s, stream=s.stream + _APART * host, event=s.event + _APART * host) for s in steps)


def _on_one_stream(steps: Sequence[Step], host: int) -> tuple[Step, ...]:
    return tuple(replace(step, stream=_APART * host) for step in steps if step.kind in _WORKS)


def _as_one(hosts: Sequence[Host]) -> Host:
    """A host that gives all tasks' work, one task after another: they wait only at their ends."""
    return Host(tuple(s for host in hosts for s in host.steps), tuple(t for host in hosts for t in host.tasks))


def _works(host: Host) -> list[Step]:
    return [step for step in host.steps if step.kind in _WORKS]
