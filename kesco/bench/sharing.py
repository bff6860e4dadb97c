"""Run the tasks of a mix on one GPU under each scheme, all from a common start, and compare every result.

In: programs that were built, mixes and schemes. Out: for each mix and scheme the milliseconds of every task from the
common start to its results on the host. It is apart from `measure` because several processes run at once, and because a
task is not a repetition.

1. The programs prepare their data, say that they are ready by counting up a word of a file that all map, and wait. 2.
When all are ready, the harness writes the time of the clock at which they begin. So neither loading, making the context
nor the input counts, in any scheme. 3. Programs that were started do several such rounds, each from a common start of
its own, and the first of them is warm-up. 4. The schemes of a mix take turns; the whole is repeated with programs that
are started anew. 5. Each checksum is compared with that of the serial program alone.

Tasks alone prepare their data beside each other, too, and begin one after another: what waits for its turn gives the
GPU nothing. The control daemon of MPS is started for a run and stopped behind it (`mps`); the GPU's settings are left
alone. What cannot be run is a problem of that scheme, and the others go on.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kesco.bench import mps
from kesco.bench.build import Build
from kesco.bench.mixes import PROCESSES, SCHEMES, STYLE, Mix, Scheme, Task
from kesco.errors import ToolchainError
from kesco.toolchain.process import Finished, run

_TASK = re.compile(r"^task (\S+) (\S+) (\S+)(?: (PASS|FAIL))?$", re.MULTILINE)
ENVIRONMENT = {"CUDA_MODULE_LOADING": "EAGER", mps.QUEUES: str(mps.MOST), "KESCO_STREAMS": "32"}
"""For every scheme: kernels are loaded before the start, streams have queues of their own, and kesco's programs use all
streams that they have, without a trial of one in some of the rounds."""
_LEAD = 20_000_000  # nanoseconds from the last one ready to the start
_WORDS = 512  # of the file by which the programs start together: there are fewer rounds
_Found = dict[str, tuple[float, float]]  # for each task its milliseconds and checksum


class Failed(Exception):
    """A run that gave no times; its text says why."""


class _Unready(Failed):
    """A program ended before the start."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scheme of one mix: the times of each task in milliseconds, by rounds; `problem` says why there are none."""

    mix: str
    scheme: str
    times: dict[str, tuple[float, ...]]
    results: dict[str, float]
    problem: str = ""


@dataclass(slots=True)
class _Kept:
    """What the runs of one scheme gave so far."""

    times: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, list[float]] = field(default_factory=dict)
    problem: str = ""


def share(
    build: Build,
    mixes: Sequence[Mix],
    schemes: Sequence[Scheme],
    rounds: int = 10,
    timeout: float = 120.0,
    until: float = float("inf"),
    progress: Callable[[str], None] = lambda said: None,
    repeats: int = 5,
) -> Iterator[tuple[Outcome, ...]]:
    """The outcomes so far, after each turn of all schemes.

    Of every scheme there are `rounds` that count, `repeats` of them from each start of its programs. No program is
    started after `until` (of `time.monotonic`).
    """
    kept = {(mix.name, scheme.name): _Kept() for mix in mixes for scheme in schemes}
    for done in range(0, rounds, repeats):
        count = min(repeats, rounds - done)
        for mix in mixes:
            for scheme in schemes:
                if time.monotonic() > until:
                    return
                one = kept[mix.name, scheme.name]
                if one.problem:
                    continue
                progress(f"{done} of {rounds} rounds, {count} more: {mix.name} {scheme.name}")
                try:
                    found = once(build, mix, scheme, timeout, 1 + count)
                except (Failed, ToolchainError) as problem:
                    one.problem = str(problem)
                    continue
                for number, of in enumerate(found):
                    for task, (took, result) in of.items():
                        if number > 0:
                            one.times.setdefault(task, []).append(took)
                        one.results.setdefault(task, []).append(result)
        yield tuple(_outcome(mix, s, kept) for mix in mixes for s in schemes)


def once(build: Build, mix: Mix, scheme: Scheme, timeout: float, rounds: int) -> list[_Found]:
    """Each task's milliseconds and checksum, of all rounds of programs that are started once; raises `Failed`."""
    commands = _commands(build, mix, scheme)
    tries = mps.CONNECTIONS if scheme.mps else (mps.MOST,)
    for most in tries[:-1]:
        with suppress(_Unready):
            return _started(commands, scheme, timeout, mps.queues(len(commands), most), rounds)
    queues = mps.queues(len(commands), tries[-1]) if scheme.mps else mps.MOST
    return _started(commands, scheme, timeout, queues, rounds)


def _commands(build: Build, mix: Mix, scheme: Scheme) -> list[tuple[list[str], tuple[Task, ...]]]:
    """The programs to run, with their arguments and the tasks that each of them does."""
    if scheme.program not in PROCESSES:
        arguments: list[str] = []
        for task in mix.tasks:
            arguments += ["--", *task.arguments] if arguments else task.arguments
        return [([_program(build, mix.name, scheme.program), *arguments], mix.tasks)]
    return [([_program(build, t.program, scheme.program), *t.arguments], (t,)) for t in mix.tasks]


def _program(build: Build, name: str, program: str) -> str:
    found = build.find(name, STYLE, program)
    if found is None:
        raise Failed(f"'{name}' was not built for {program}")
    return str((build.folder / found.path).absolute())


def _started(
    commands: Sequence[tuple[list[str], tuple[Task, ...]]], scheme: Scheme, timeout: float, queues: int, rounds: int
) -> list[_Found]:
    """Run these programs from common starts; or, for the tasks alone, one after another, each when it is ready."""
    with (
        tempfile.TemporaryDirectory(prefix="kesco-") as name,
        ThreadPoolExecutor(len(commands) + 1) as pool,
        ExitStack() as stack,
    ):
        folder = Path(name)
        try:
            service = stack.enter_context(mps.service(folder, pool, timeout)) if scheme.mps else {}
            number = 1 if scheme.together else len(commands)
            starts = [stack.enter_context(_Start(folder / f"start{n}")) for n in range(number)]
            environment = os.environ | ENVIRONMENT | service | {mps.QUEUES: str(queues), "MP_ROUNDS": str(rounds)}
            running = [
                pool.submit(run, argv, env=environment | {"MP_START": str(starts[n % number].path)}, timeout=timeout)
                for n, (argv, _) in enumerate(commands)
            ]
            tasks = sum(len(of) for _, of in commands)
            for start in starts:
                start.when_ready(0, tasks // number, running, timeout)
            if service:
                mps.is_served(service)
            found: list[_Found] = [{} for _ in range(rounds)]
            for n, (future, (_, of)) in enumerate(zip(running, commands, strict=True)):
                if n < number:
                    for round_ in range(rounds):
                        starts[n].when_ready(
                            round_, tasks // number, running[n : n + 1] if number > 1 else running, timeout
                        )
                        starts[n].go(round_)
                for one, more in zip(found, _read(future.result(), of, rounds), strict=True):
                    one |= more
            return found
        except mps.Unserved as problem:
            raise Failed(str(problem)) from None
        except _Unready as problem:
            said = mps.said_by(folder)
            raise _Unready(f"{problem} (MPS: {said})" if said else str(problem)) from None


def _read(done: Finished, tasks: Sequence[Task], rounds: int) -> list[_Found]:
    """What a program says of its tasks; it calls them by their names or, of two with one program, both by that.

    Each task has a line for each round, in their order; those of several tasks may be between each other.
    """
    lines = list(_TASK.finditer(done.text))
    if done.returncode != 0 or len(lines) != len(tasks) * rounds or any(m[4] == "FAIL" for m in lines):
        said = (done.stderr or done.text).strip().splitlines() or ["it printed nothing"]
        raise Failed(f"{Path(done.argv[0]).name}: exit code {done.returncode}: {said[-1]}")
    found: list[_Found] = []
    for _ in range(rounds):
        found.append({})
        for task in tasks:
            line = next((m for m in lines if m[1] in (task.name, task.program)), None)
            if line is None:
                raise Failed(f"{Path(done.argv[0]).name} told of {', '.join(m[1] for m in lines)}, not of {task.name}")
            lines.remove(line)
            found[-1][task.name] = (float(line[2]), float(line[3]))
    return found


class _Start:
    """The file of words that the programs map: how often they were ready, and when each round begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(8 * _WORDS))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * _WORDS)
        self._words: ctypes.Array[ctypes.c_int64] | None = (ctypes.c_int64 * _WORDS).from_buffer(self._map)

    def __enter__(self) -> _Start:
        return self

    def __exit__(self, *_: object) -> None:
        if self._words is not None:
            for round_ in range(1, _WORDS):  # where something failed, whoever still waits may go on, and end
                self._words[round_] = self._words[round_] or 1
        self._words = None  # the map cannot be closed while it is in use
        with suppress(BufferError):
            self._map.close()

    def when_ready(self, round_: int, tasks: int, running: Sequence[Future[Finished]], timeout: float) -> None:
        """Wait until all are ready for a round; raises `Failed` where one of them ends before."""
        until = time.monotonic() + timeout
        assert self._words is not None
        while self._words[0] < tasks * (round_ + 1):
            ended = next((one for one in running if one.done()), None)
            if ended is not None:
                done = ended.result()
                name = Path(done.argv[0]).name
                said = (done.stderr or done.text).strip().splitlines() or ["it printed nothing"]
                if round_ > 0:
                    raise Failed(f"{name}: exit code {done.returncode}: {said[-1]}")
                raise _Unready(f"{name} ended before the start ({done.returncode}): {said[-1]}")
            if time.monotonic() > until:
                ready = self._words[0] - tasks * round_
                raise Failed(f"{ready} of {tasks} tasks were ready after {timeout:g} seconds")
            time.sleep(0.002)

    def go(self, round_: int) -> None:
        """Write the time at which all begin a round; std::chrono::steady_clock is the same clock."""
        assert self._words is not None
        self._words[1 + round_] = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + _LEAD


def _outcome(mix: Mix, scheme: Scheme, kept: Mapping[tuple[str, str], _Kept]) -> Outcome:
    """What is known of one scheme, checked against the serial programs alone."""
    one = kept[mix.name, scheme.name]
    right = kept.get((mix.name, SCHEMES["alone"].name))
    problem = one.problem
    for task in mix.tasks:
        if problem:
            break
        if right is None or not right.results.get(task.name):
            problem = "there is no serial program's result to compare with"
            break
        expected = right.results[task.name][0]
        allowed = task.tolerance * abs(expected)
        wrong = [x for x in one.results.get(task.name, []) if not abs(x - expected) <= allowed]
        if wrong:
            problem = f"{task.name}: result {wrong[0]:.9g}, the serial program's is {expected:.9g}"
    times = {} if problem else {name: tuple(many) for name, many in one.times.items()}
    return Outcome(mix.name, scheme.name, times, {n: r[0] for n, r in one.results.items() if r}, problem)
