"""Run the programs of a benchmark, taking turns, and compare every result with the serial program's.

In: a build and what to measure. Out: rows of times in milliseconds. Each program repeats its pipeline in one process;
the programs of a setting run one after another, and again in the next round, so that a busy moment or a warm GPU
does not favour one of them. The first repetitions of every process are warm-up and left out. Where a repetition of the
serial program takes less than a millisecond, launches are most of it and times vary: then each process repeats often.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kesco.bench.build import Build, Program
from kesco.bench.suite import FORMS, USUAL, VARIANTS, Variant, Workload
from kesco.errors import ToolchainError
from kesco.toolchain.process import run

_TIMES = re.compile(r"^times_ms (.*)$", re.MULTILINE)
_RESULT = re.compile(r"^result (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the variants of one comparison have in common; `n` elements, `grid` blocks of `block` threads."""

    workload: str
    style: str
    size: str
    n: int
    block: int
    grid: int
    tolerance: float


@dataclass(frozen=True, slots=True)
class Row:
    """The times of one variant in one setting, in milliseconds and in order; `problem` says why there are none."""

    setting: Setting
    variant: str
    streams: int
    times: tuple[float, ...]
    result: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """How often: `repeat` repetitions that count, spread over `rounds` processes, each after `warmup` more."""

    repeat: int = 12
    rounds: int = 3
    warmup: int = 2
    short_repeat: int = 200
    """Repetitions of one process that count, after a tenth as many more, where one takes less than a millisecond."""
    variants: tuple[str, ...] = USUAL
    streams: tuple[int, ...] = ()
    timeout: float = 120.0
    """Seconds for one process."""

    @property
    def iterations(self) -> int:
        """Repetitions of one process."""
        return self.warmup + -(-self.repeat // self.rounds)

    def for_short(self) -> Plan:
        """The plan for repetitions of less than a millisecond."""
        each = max(self.short_repeat, -(-self.repeat // self.rounds))
        return replace(self, repeat=each * self.rounds, warmup=max(self.warmup, each // 10))


@dataclass(slots=True)
class _Runner:
    """Collects the runs of one variant."""

    command: list[str]
    """The program and its arguments, but for the number of repetitions."""
    environment: dict[str, str]
    row: Row
    times: list[float] = field(default_factory=list)
    results: list[float] = field(default_factory=list)

    def once(self, plan: Plan) -> None:
        """Run one process, unless an earlier one failed."""
        if self.row.problem:
            return
        try:
            arguments = ["--iters", str(plan.iterations), "--no-check"]
            done = run([*self.command, *arguments], env=os.environ | self.environment, timeout=plan.timeout)
        except ToolchainError as error:
            self.row = replace(self.row, problem=error.diagnostics[0].message)
            return
        times, result = _TIMES.search(done.text), _RESULT.search(done.text)
        if done.returncode != 0 or times is None or result is None:
            said = (done.stderr or done.text).strip().splitlines() or ["it printed nothing"]
            self.row = replace(self.row, problem=f"exit code {done.returncode}: {said[-1]}")
            return
        self.times += [float(one) for one in times[1].split()][plan.warmup :]
        self.results.append(float(result[1]))


def settings(
    workloads: Sequence[Workload], styles: Sequence[str], sizes: Sequence[str], blocks: Sequence[int]
) -> list[Setting]:
    """Every combination; a size that is a number is taken as ``--n``. Sizes change slowest, so that all get a turn."""
    return [
        Setting(w.name, style, size, w.sizes.get(size) or int(size), block, w.grid, w.tolerance)
        for size in sizes
        for style in styles
        for block in blocks
        for w in workloads
    ]


def measure(
    build: Build,
    wanted: Sequence[Setting],
    plan: Plan,
    progress: Callable[[Setting], None] = lambda setting: None,
    until: float = float("inf"),
) -> Iterator[Row]:
    """The rows of each setting once it is done. `until`: a time of `time.monotonic` after which nothing is begun.

    Raises `UsageError` (K523) where the programs are not for processes of their own.
    """
    build.require(in_turns=False)
    for setting in wanted:
        if time.monotonic() > until:
            return
        progress(setting)
        yield from _setting(build, setting, plan)


def _setting(build: Build, setting: Setting, plan: Plan) -> list[Row]:
    runners = []
    for name, variant, streams in ways(plan.variants, plan.streams):
        program = build.find(setting.workload, setting.style, variant.program)
        if program is None:
            continue
        numbers = {"--n": setting.n, "--block": setting.block, "--grid": setting.grid}
        arguments = [str(part) for pair in numbers.items() for part in pair]
        command = [str(build.folder / program.path), *arguments]
        used = streams_of(program, variant, streams)
        runners.append(_Runner(command, environment(variant, streams), Row(setting, name, used, ())))
    _take_turns(runners, plan)
    rows = [
        replace(r.row, times=tuple(r.times), result=r.results[0]) if r.results and not r.row.problem else r.row
        for r in runners
    ]
    serial = next((row for row in rows if row.variant == "serial"), None)
    return [checked(row, r.results, serial) for row, r in zip(rows, runners, strict=True)]


def _take_turns(runners: Sequence[_Runner], plan: Plan) -> None:
    """Run every variant in every round, more often once the serial program shows that a repetition takes no time."""
    serial = next((r for r in runners if r.row.variant == "serial"), None)
    if serial is not None:
        serial.once(plan)
        if not serial.row.problem and min(serial.times, default=1.0) < 1.0:
            plan = plan.for_short()
            serial.times, serial.results = [], []
            serial.once(plan)
    for number in range(plan.rounds):
        for runner in runners:
            if number > 0 or runner is not serial:
                runner.once(plan)


def ways(variants: Sequence[str], streams: Sequence[int]) -> Iterator[tuple[str, Variant, int]]:
    """Every way to run a workload: its name, the variant, and for kesco's program the number of streams it is held to.

    0 is as many as it likes.
    """
    for name in variants:
        yield name, VARIANTS[name], 0
    for count in streams:
        yield f"kesco-{count}", VARIANTS["kesco"], count


def streams_of(program: Program, variant: Variant, streams: int) -> int:
    """How many streams kesco's program uses, 0 for others."""
    return streams or (program.streams if variant.name in FORMS else 0)


def environment(variant: Variant, streams: int) -> dict[str, str]:
    """What a program finds in its environment."""
    return dict(variant.environment) | ({"KESCO_STREAMS": str(streams)} if streams else {})


def checked(row: Row, results: Sequence[float], serial: Row | None) -> Row:
    """The row, with a problem and no times if any of its results is not the serial program's, or was not compared."""
    if row.problem:
        return row
    if serial is None or serial.result is None:
        return replace(row, times=(), problem="the serial program has no result to compare with")
    allowed = row.setting.tolerance * abs(serial.result)
    wrong = [one for one in results if not abs(one - serial.result) <= allowed]
    if not wrong:
        return row
    return replace(row, times=(), problem=f"result {wrong[0]:.9g}, the serial program's is {serial.result:.9g}")
