"""Run the variants of a setting in one process, in turns: two processes differ by more than what is to be found out.

In: a build of shared objects and what to measure. Out: rows as those of `measure`, whose times belong together: the
n-th of each variant are from one round. A time is the mean of a turn's repetitions.

1. Every variant is a shared object of its own, a copy where two variants are one program, so that none sees what is
   static in another. 2. `workloads/common/turns.cpp` loads them all: one context, one host thread, one stack each.
3. Each runs `warmup` repetitions, in which kesco's programs try which way is the fastest; then they take turns, in
   another order in each round. 4. The serial program is there twice: what it differs from itself by is the method's.

Not for what must be in the environment before the first CUDA call (`sync`): it would hold for all. Work queues are such
a thing: there are as many for all as the hand-written programs ask for.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.bench.build import TURNS, Build
from kesco.bench.measure import Row, Setting, checked, environment, streams_of, ways
from kesco.bench.suite import CONTROL, VARIANTS
from kesco.errors import ToolchainError
from kesco.toolchain.process import run

QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
FIT = tuple(name for name in VARIANTS if name != "sync")
"""The variants that can be run so."""
_LINE = re.compile(r"^(times_ms|result) (\d+) (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Turns:
    """How often: `rounds` turns of each variant in each of `processes`, in each turn `repeat` repetitions that count.

    `skip` more come first in each turn, and `warmup` before the first: so many that kesco's programs have tried their
    ways a second time, too.
    """

    rounds: int = 200
    repeat: int = 8
    processes: int = 1
    skip: int = 2
    warmup: int = 500
    variants: tuple[str, ...] = FIT
    streams: tuple[int, ...] = ()
    timeout: float = 300.0
    """Seconds for one process."""


def measure(
    build: Build,
    wanted: Sequence[Setting],
    turns: Turns,
    progress: Callable[[Setting], None] = lambda setting: None,
    until: float = float("inf"),
) -> Iterator[Row]:
    """The rows of each setting once it is done. `until`: a time of `time.monotonic` after which nothing is begun.

    Raises `UsageError` (K523) where the programs were not built for this.
    """
    build.require(in_turns=True)
    for setting in wanted:
        if time.monotonic() > until:
            return
        progress(setting)
        yield from _setting(build, setting, turns)


def _setting(build: Build, setting: Setting, turns: Turns) -> list[Row]:
    rows, objects = [], []
    for name, variant, streams in ways(tuple(dict.fromkeys(("serial", CONTROL, *turns.variants))), turns.streams):
        program = build.find(setting.workload, setting.style, variant.program)
        if program is not None:
            rows.append(Row(setting, name, streams_of(program, variant, streams), ()))
            given = environment(variant, streams)
            objects.append((build.folder / program.path, "".join(f":{k}={v}" for k, v in given.items())))
    results: list[list[float]] = [[] for _ in rows]
    for process in range(turns.processes):
        said, problem = _process(build.folder / TURNS, objects, setting, turns, process)
        if problem:
            return [replace(row, times=(), problem=problem) for row in rows]
        found = {(kind, int(number)): rest for kind, number, rest in _LINE.findall(said)}
        for number, row in enumerate(rows):
            times = tuple(float(one) for one in found["times_ms", number].split())
            rows[number] = replace(row, times=row.times + times)
            results[number].append(float(found["result", number]))
    rows = [replace(row, result=of[0]) for row, of in zip(rows, results, strict=True)]
    return [checked(row, of, rows[0]) for row, of in zip(rows, results, strict=True)]


def _process(
    driver: Path, objects: Sequence[tuple[Path, str]], setting: Setting, turns: Turns, number: int
) -> tuple[str, str]:
    """What one process printed, or why it failed."""
    numbers = {"--n": setting.n, "--block": setting.block, "--grid": setting.grid}
    arguments = [str(part) for pair in numbers.items() for part in pair]
    often = [turns.rounds, turns.repeat, turns.skip, turns.warmup, 1 + number]
    with TemporaryDirectory(prefix="kesco-turns-") as name:
        copies = []
        for place, (path, environment) in enumerate(objects):
            copy = Path(name) / f"{place}-{path.name}"
            shutil.copyfile(path, copy)
            copies.append(f"{copy}{environment}")
        command = [str(driver), *map(str, often), *copies, "--", *arguments, "--no-check"]
        try:
            done = run(command, env={QUEUES: "32", **os.environ}, timeout=turns.timeout)
        except ToolchainError as error:
            return "", error.diagnostics[0].message
    if done.returncode != 0 or len(_LINE.findall(done.text)) != 2 * len(objects):
        said = (done.stderr or done.text).strip().splitlines() or ["it printed nothing"]
        return "", f"exit code {done.returncode}: {said[-1]}"
    return done.text, ""
