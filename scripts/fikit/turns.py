"""What FIKIT adds to a task, from requests with it and past it that take turns in one process.

In: the ways to be compared, and how a process of each kind is started. Out: a row for each way. Processes of one
program differ from each other for as long as they run, and a machine is slow for whole seconds, both by more than what
is looked for here. So

1. a process does its requests with what is measured and past it in turn: with, past, past, with, each a millisecond or
   some (`alternate.h`, `worker.py`). A daemon, or another task, is there for both or for neither;
2. of each such four the first two and the last two are compared. The median of all ratios, an interval that holds it in
   95 of 100 cases, and each process's own median are shown;
3. the two in the middle, which are the same, say what the method itself sees where there is nothing: half of them is
   turned about, as it is for the others.
"""
# ruff: noqa: T201, D102

from __future__ import annotations

import contextlib
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import HERE, Bench, Failed, Worker

from kesco.bench.pairs import interval
from kesco.fikit import serving


@dataclass(frozen=True, slots=True)
class Way:
    """What is measured in processes of a kind: `hooks`, or the `library`.

    `daemon`: `alone` or `beside` another task that is idle, or none.
    """

    name: str
    kind: str
    what: str = "library"
    daemon: str = ""


def attached(kind: str, name: str = "") -> tuple[Way, ...]:
    """The ways of a process that asks for a daemon."""
    return (
        Way(f"{name}no daemon", kind), Way(f"{name}attached, alone", kind, daemon="alone"),
        Way(f"{name}attached, a lower one", kind, daemon="beside"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """How many processes of each kind, how many rounds at most, and until when a round may begin."""

    processes: int
    rounds: int
    seconds: float
    until: float
    warm: float = 0.05


Taken = Mapping[str, Sequence[float]]
"""What requests took, in their order: `with`, and `aside`."""


def measured(
    bench: Bench, ways: Sequence[Way], kinds: Mapping[str, Callable[[], Worker]], plan: Plan
) -> dict[str, Any]:
    """The rows of all ways, by name."""
    with contextlib.ExitStack() as stack:
        turns = Turns(bench, kinds, plan, stack)
        rounds, longest = 0, 0.0
        taken: dict[str, list[list[Taken]]] = {way.name: [[] for _ in range(plan.processes)] for way in ways}
        while rounds < plan.rounds and (not rounds or time.monotonic() + longest < plan.until):
            begin = time.monotonic()
            try:
                for number in range(plan.processes):
                    for way in ways if (rounds + number) % 2 == 0 else ways[::-1]:
                        taken[way.name][number].append(turns.turn(way, number))
            except Failed as problem:
                if not rounds:
                    raise
                print(f"overhead  after {rounds} rounds: {problem}", flush=True)
                break
            rounds += 1
            longest = max(longest, time.monotonic() - begin)
    return {name: row([one[:rounds] for one in each]) for name, each in taken.items()}


class Turns:
    """Processes that live side by side, with a daemon for one of them at most."""

    def __init__(
        self, bench: Bench, kinds: Mapping[str, Callable[[], Worker]], plan: Plan, stack: contextlib.ExitStack
    ) -> None:
        self.bench, self.plan = bench, plan
        self.sockets = {
            (kind, number): bench.folder / f"t{at}-{number}.sock"
            for at, kind in enumerate(kinds)
            for number in range(plan.processes)
        }
        self.served: tuple[str, int] | None = None
        self.daemon: subprocess.Popen[str] | None = None
        self.lower: subprocess.Popen[bytes] | None = None
        self.workers: dict[tuple[str, int], Worker] = {}
        stack.callback(setattr, bench, "socket", bench.socket)
        stack.callback(self._serve, None)
        for which, socket in self.sockets.items():
            bench.socket = socket
            self.workers[which] = kinds[which[0]]()
            stack.callback(self.workers[which].close)
        for worker in self.workers.values():
            bench.ready(worker, "high")

    def turn(self, way: Way, number: int) -> Taken:
        which = way.kind, number
        wanted = which if way.daemon else None
        if wanted != self.served:
            self._serve(wanted)
        if wanted and (way.daemon == "beside") != (self.lower is not None):
            self._end_lower() if self.lower else self._begin_lower()
            self.bench.attached(2 if self.lower else 1)
        self.workers[which].ask(f"alternate {way.what} {self.plan.seconds} {self.plan.warm}")
        return self.workers[which].answer(60)

    def _serve(self, which: tuple[str, int] | None) -> None:
        """A daemon for this process, which has come to it then, or none."""
        self._end_lower()
        if self.daemon:
            self.bench.stop(self.daemon)
        self.daemon, self.served = None, which
        if which:
            self.bench.socket = self.sockets[which]
            self.daemon = self.bench.serve("quantile")
            self.bench.attached(1)

    def _begin_lower(self) -> None:
        settings = {"SOCKET": str(self.bench.socket), "PRIORITY": "1"}
        env = serving.environment(self.bench.client, settings, self.bench.base)
        command = (sys.executable, str(HERE / "idle_task.py"))
        with self.bench.places.begun_in("low"):
            self.lower = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _end_lower(self) -> None:
        if self.lower:
            self.lower.kill()
            self.lower.wait()
        self.lower = None


def row(taken: Sequence[Sequence[Taken]]) -> dict[str, Any]:
    """What is measured over what passes by, in percent more, from the turns of each process."""
    each = [[ratio for turn in one for ratio in _ratios(turn)] for one in taken]
    every = [ratio for one in each for ratio in one]
    same = [ratio for one in taken for turn in one for ratio in _same(turn)]
    aside = [time for one in taken for turn in one for time in turn["aside"]]
    found = {"aside": statistics.median(aside), "pairs": len(every), "percent": _percent(statistics.median(every))}
    low, high = map(_percent, interval(every))
    found |= {"low": low, "high": high, "processes": [_percent(statistics.median(one)) for one in each]}
    low, high = map(_percent, interval(same))
    return found | {"same": {"percent": _percent(statistics.median(same)), "low": low, "high": high}}


def _ratios(turn: Taken) -> list[float]:
    return [a / b for a, b in zip(turn["with"], turn["aside"], strict=True)]


def _same(turn: Taken) -> list[float]:
    """Of each two that stand beside each other and are the same, one over the other, every second time turned about."""
    pairs = zip(turn["aside"][::2], turn["aside"][1::2], strict=True)
    return [a / b if n % 2 else b / a for n, (a, b) in enumerate(pairs)]


def _percent(ratio: float) -> float | None:
    return round(100 * (ratio - 1), 4) if math.isfinite(ratio) else None  # of few: anywhere


def _between(low: float | None, high: float | None) -> str:
    return "anywhere" if low is None or high is None else f"{low:+.2f} to {high:+.2f}"


def told(rows: Mapping[str, Mapping[str, Any]], unit: str) -> str:
    """A line for each way: what a request past it takes, and how much more one with it does."""
    lines = [
        f"{'':33} {unit:>9}  more, percent, where it lies, each process; where there is nothing, and where it lies"
    ]
    for name, one in rows.items():
        single = " ".join(f"{process:+.2f}" for process in one["processes"])
        nothing = one["same"]
        lines.append(f"{name:33} {one['aside']:9.1f}  {one['percent']:+6.2f} ({_between(one['low'], one['high'])}; "
                     f"{single}); {nothing['percent']:+.2f} ({_between(nothing['low'], nothing['high'])}), "
                     f"{one['pairs']} pairs")  # fmt: skip
    return "\n".join(lines)
