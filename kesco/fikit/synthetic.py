"""Traces of made-up tasks: for tests, and to try a policy where nothing was recorded.

In: a number that chooses the random ones. Out: a `Trace`; the same number always gives the same one. Gaps and kernels'
times vary as those of real programs do: around a value for each kernel, with some launches far off.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kesco.fikit.trace import Step, Trace, TracedKernel, TracedTask


@dataclass(frozen=True, slots=True)
class Shape:
    """What a made-up task is like. Times in nanoseconds; `waits`: the part of launches that the host waits for.

    `spread` is the relative deviation of times and gaps, `outliers` the part that takes ten times as long.
    """

    name: str
    priority: int
    launches: int
    kernels: int
    time_ns: int
    gap_ns: int
    waits: float = 0.3
    spread: float = 0.05
    outliers: float = 0.0
    arrives_ns: int = 0


INFERENCE = Shape("inference", 9, 300, 12, 150_000, 400_000, waits=1.0, outliers=0.01)
TRAINING = Shape("training", 3, 1500, 20, 200_000, 3_000, waits=0.02)
BATCH = Shape("batch", 0, 1000, 6, 80_000, 2_000, waits=0.01)


def trace(seed: int, shapes: tuple[Shape, ...] = (INFERENCE, TRAINING, BATCH)) -> Trace:
    """A trace of tasks of these shapes."""
    random = Random(seed)
    kernels: list[TracedKernel] = []
    tasks = []
    for shape in shapes:
        own = range(len(kernels), len(kernels) + shape.kernels)
        for number in own:
            name = f"{shape.name}_{number - own.start}"
            kernels.append(TracedKernel(random.getrandbits(63) + 1, name, (random.randint(1, 512), 1, 1), (256, 1, 1)))
        tasks.append(_task(random, shape, own))
    return Trace(tuple(kernels), tuple(tasks), "synthetic")


def _task(random: Random, shape: Shape, own: range) -> TracedTask:
    times = {kernel: shape.time_ns * random.uniform(0.2, 2.5) for kernel in own}
    gaps = {kernel: shape.gap_ns * random.uniform(0.2, 2.5) for kernel in own}
    waits = {kernel: random.random() < shape.waits for kernel in own}
    steps, gap = [], gaps[own[0]]
    for number in range(shape.launches):
        kernel = own[number % len(own)]
        steps.append(
            Step(_around(random, shape, gap), kernel, max(1, _around(random, shape, times[kernel])), waits[kernel])
        )
        gap = gaps[kernel]
    return TracedTask(shape.name, shape.priority, tuple(steps), shape.arrives_ns)


@dataclass(frozen=True, slots=True)
class Requests:
    """A made-up task that serves requests or trains: the same kernels again and again, asynchronously, then a wait.

    `kernels`: of each its time and the host's time before it; `rest_ns` is the host's time between two requests.
    `spread` and `outliers` as in `Shape`; an outlier here takes two to five times as long.
    """

    name: str
    priority: int
    requests: int
    kernels: tuple[tuple[int, int], ...]
    rest_ns: int = 0
    spread: float = 0.15
    outliers: float = 0.01


def served(seed: int, tasks: tuple[Requests, ...]) -> Trace:
    """A trace of such tasks; the host waits for the last kernel of each request."""
    random = Random(seed)
    kernels: list[TracedKernel] = []
    made = []
    for task in tasks:
        first = len(kernels)
        for number in range(len(task.kernels)):
            kernels.append(TracedKernel(random.getrandbits(63) + 1, f"{task.name}_{number}", (1, 1, 1), (256, 1, 1)))

        def vary(value: float, of: Requests = task) -> int:
            far = random.uniform(2, 5) if random.random() < of.outliers else 1
            return max(1, round(value * far * max(0.5, random.gauss(1, of.spread))))

        steps = [
            Step(vary(gap + (task.rest_ns if number == 0 and turn else 0)), first + number, vary(time),
                 number + 1 == len(task.kernels))
            for turn in range(task.requests)
            for number, (time, gap) in enumerate(task.kernels)
        ]  # fmt: skip
        made.append(TracedTask(task.name, task.priority, tuple(steps)))
    return Trace(tuple(kernels), tuple(made), "synthetic")


def _around(random: Random, shape: Shape, value: float) -> int:
    far = 10 if random.random() < shape.outliers else 1
    return round(value * far * max(0.1, random.gauss(1, shape.spread)))
