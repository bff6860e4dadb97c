"""One trace under every policy: what the urgent task loses, what the others get.

In: a `Trace`, a `Machine`, settings, and a store of profiles or None. Out: a `Comparison`. Without a store each task is
measured alone first, in the same model: the policies then know exactly the distributions of the trace, which flatters
those that predict. Give a profile of another run to see what a prediction is worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kesco.fikit.gpu import Machine
from kesco.fikit.policy import Kind, settings
from kesco.fikit.simulate import Replay, TaskCosts, alone, replay
from kesco.fikit.trace import Trace
from kesco.ir.kfikit import Store, TaskProfile


@dataclass(frozen=True, slots=True)
class Comparison:
    """The replays by kind, and how long each task takes alone, by name, in nanoseconds."""

    alone: Mapping[str, int]
    replays: Mapping[Kind, Replay]

    def slowdown(self, kind: Kind, place: int = 0) -> float:
        """How many times as long as alone a task takes; the most urgent one has place 0."""
        task = self.replays[kind].tasks[place]
        return task.taken_ns / max(self.alone[task.name], 1)

    def to_json(self) -> dict[str, object]:
        """As plain data; times in nanoseconds."""
        return {"alone_ns": dict(self.alone), "policies": {k.name.lower(): self._row(k) for k in self.replays}}

    def _row(self, kind: Kind) -> dict[str, object]:
        one = self.replays[kind]
        tasks = [
            {
                "name": task.name, "priority": task.priority, "taken_ns": task.taken_ns, "kernel_ns": task.kernel_ns,
                "beside_ns": task.beside_ns, "slowdown": round(self.slowdown(kind, place), 4),
                "counters": dict(task.counters),
            }
            for place, task in enumerate(one.tasks)
        ]  # fmt: skip
        return {
            "slowdown": round(self.slowdown(kind), 4), "beside": round(one.beside, 4), "fill": round(one.fill, 4),
            "gaps": one.gaps, "gap_ns": one.gap_ns, "fillable_ns": one.fillable_ns, "filled_ns": one.filled_ns,
            "overruns": one.overruns, "late_ns": one.late_ns, "decisions": one.decisions, "tasks": tasks,
        }  # fmt: skip


def compare(
    trace: Trace, kinds: Iterable[Kind], machine: Machine, chosen: dict[str, int], store: Store | None = None
) -> Comparison:
    """Replay a trace under some policies; `chosen` are settings by name that differ from the defaults."""
    measured = [alone(trace, number, settings(Kind.EXCLUSIVE), machine) for number in range(len(trace.tasks))]
    costs: dict[str, TaskCosts] = {}
    for task, one in zip(trace.tasks, measured, strict=True):
        if store is None:
            costs[task.name] = one.costs
        elif (known := store.task(task.key or task.name)) is not None:
            costs[task.name] = dict(known.kernels)
    chosen = {"switch_ns": 0 if machine.concurrent else machine.switch_ns} | chosen
    replays = {}
    for kind in kinds:
        forced = {"deadline_ns": 0} if kind is Kind.EXCLUSIVE else {}  # a job that has the GPU keeps it
        replays[kind] = replay(trace, settings(kind, chosen | forced), machine, costs)
    took = {task.name: one.taken_ns for task, one in zip(trace.tasks, measured, strict=True)}
    return Comparison(took, replays)


def measured(trace: Trace, machine: Machine) -> Store:
    """What measuring each task of a trace alone would have found, as a store."""
    tasks = []
    for number, task in enumerate(trace.tasks):
        found = alone(trace, number, settings(Kind.EXCLUSIVE), machine).costs
        tasks.append(TaskProfile(task.key or task.name, tuple(sorted(found.items())), task.name))
    return Store(trace.gpu, "", tuple(sorted(tasks, key=lambda one: one.key)))
