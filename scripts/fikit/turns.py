"""What FIKIT adds to a task, from processes that live side by side and take short turns.

In: the ways to be compared, and how a process of each kind is started. Out: a row for each way, and what it was beside.
Processes of one program differ from each other for as long as they run, by more than what is looked for here, and the
turns of one process differ, too. So

1. some processes of each kind start together, each with a daemon's socket of its own, and then have the same CPUs;
2. in a round, process n of each kind takes a turn in each of its ways, one right behind another, and in every second
   round the other way about. A turn begins with a while that is not counted, since some are behind a pause;
3. two ways of one process are judged by the ratios of their turns, round by round: the median of all, an interval that
   holds it in 95 of 100 cases, and each process's own median. What noise does is seen at one way taken twice;
4. two kinds are judged by the medians of their processes, and the interval is that from the fastest to the slowest
   of one kind over the other's median. It is no statement about what would be seen with more processes.
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

from kesco.bench.pairs import judged
from kesco.fikit import serving


@dataclass(frozen=True, slots=True)
class Way:
    """What a process does in a turn: `beside` and `alone` with a daemon, with another task that is idle or without."""

    name: str
    kind: str
    over: str = ""
    """The way that it is compared with."""
    daemon: str = ""


def attached(kind: str, name: str = "") -> tuple[Way, ...]:
    """The ways of a process that asks for a daemon, each compared with the nearest turn without one."""
    base = f"{name}no daemon"
    return (
        Way(base, kind, "plain"), Way(f"{base}, again", kind, base),
        Way(f"{name}attached, alone", kind, f"{base}, again", "alone"),
        Way(f"{name}attached, a lower one", kind, f"{base}, again", "beside"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """How many processes of each kind, how many rounds at most, and until when a round may begin."""

    processes: int
    rounds: int
    seconds: float
    until: float
    warm: float = 0.05


def measured(bench: Bench, ways: Sequence[Way], kinds: Mapping[str, Callable[[], Worker]], value: str,
             plan: Plan) -> dict[str, Any]:  # fmt: skip
    """The rows of all ways, by name; `value` is what the processes answer."""
    with contextlib.ExitStack() as stack:
        turns = Turns(bench, kinds, plan, stack)
        rounds, longest = 0, 0.0
        times: dict[str, list[list[float]]] = {way.name: [[] for _ in range(plan.processes)] for way in ways}
        while rounds < plan.rounds and (not rounds or time.monotonic() + longest < plan.until):
            begin = time.monotonic()
            try:
                for number in range(plan.processes):
                    for way in ways if (rounds + number) % 2 == 0 else ways[::-1]:
                        times[way.name][number].append(turns.turn(way, number)[value])
            except Failed as problem:
                if not rounds:
                    raise
                print(f"overhead  after {rounds} rounds: {problem}", flush=True)
                break
            rounds += 1
            longest = max(longest, time.monotonic() - begin)
    whole = {name: [one[:rounds] for one in each] for name, each in times.items()}
    return {way.name: _row(way, ways, whole) for way in ways}


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
        for worker in self.workers.values():  # until clocks are as they will be
            worker.ask(f"run {plan.warm}")
            worker.answer(60)

    def turn(self, way: Way, number: int) -> dict[str, Any]:
        which = way.kind, number
        wanted = which if way.daemon else None
        if wanted != self.served:
            self._serve(wanted)
        if wanted and (way.daemon == "beside") != (self.lower is not None):
            self._end_lower() if self.lower else self._begin_lower()
            self.bench.attached(2 if self.lower else 1)
        self.workers[which].ask(f"run {self.plan.seconds} {self.plan.warm}")
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


def _row(way: Way, ways: Sequence[Way], times: dict[str, list[list[float]]]) -> dict[str, Any]:
    each = [statistics.median(one) for one in times[way.name]]
    row = {"median": statistics.median(each), "least": min(each), "most": max(each), "times": times[way.name]}
    kind = next((one.kind for one in ways if one.name == way.over), way.kind)
    if kind == way.kind and way.over:  # within each process, round by round
        pairs = [both for this, base in zip(times[way.name], times[way.over], strict=True)
                 for both in zip(this, base, strict=True)]  # fmt: skip
        found = judged([this / base for this, base in pairs], len(times[way.name][0]))
        middle, low, high, single = found.median, found.low, found.high, found.processes
        row["more"] = statistics.median(this - base for this, base in pairs)
    else:
        base = statistics.median(map(statistics.median, times[way.over or way.name]))
        single = tuple(one / base for one in each)
        middle, low, high = statistics.median(single), min(single), max(single)
        row["more"] = statistics.median(each) - base
    percent = {"percent": middle, "low": low, "high": high}
    row |= {name: 100 * (one - 1) if math.isfinite(one) else None for name, one in percent.items()}  # of few: anywhere
    return row | {"over": way.over, "same process": kind == way.kind, "processes": [100 * (one - 1) for one in single]}


def _between(low: float | None, high: float | None) -> str:
    return "anywhere" if low is None or high is None else f"{low:+.2f} to {high:+.2f}"


def told(rows: Mapping[str, Mapping[str, Any]], unit: str) -> str:
    """A line for each way: its time, and how much more that is than what it is compared with."""
    lines = [f"{'':33} {unit:>9}  {'more':>9}   percent, where it lies, each process"]
    for name, row in rows.items():
        single = " ".join(f"{one:+.2f}" for one in row["processes"])
        lines.append(f"{name:33} {row['median']:9.1f}  {row['more']:+9.1f}   {row['percent']:+6.2f} "
                     f"({_between(row['low'], row['high'])}; {single})"
                     + (f" over {row['over']}" if row["over"] else ""))  # fmt: skip
    return "\n".join(lines)
