"""Pairs of tasks on one GPU: a high one and a low one, under each way of sharing, the ways in turn.

In: a `Bench`, the pairs, how many rounds, and how long a slice is. Out: for each pair a list of rounds as `slices`
makes them; what is there already is not done again. Five processes live for each pair, started together with those of
other pairs, since starting PyTorch takes longer than a round: high and low without MPS, the same under MPS, and a plain
copy of high that knows of no daemon, which does all that is done alone. A mode is a daemon that is started for it, or
none; the tasks attach and go on alone by themselves.
"""
# ruff: noqa: T201

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import Bench, Failed, Worker
from slices import Chain, Way, missing


@dataclass(frozen=True)
class Pair:
    """Two tasks, each a name and the milliseconds that its host rests behind each request."""

    name: str
    high: tuple[str, float]
    low: tuple[str, float]


PAIRS = tuple(
    Pair(f"{high}+{hr:g}/{low}" if hr else f"{high}/{low}", (high, hr), (low, 0.0))
    for high, hr, low in (
        ("bert", 0, "product8192"), ("alexnet", 0, "vgg16"), ("rcnn", 0, "fcn"), ("resnet50", 0, "product4096"),
        ("bert", 2, "product4096"), ("resnet50", 3, "resnet50_train"), ("alexnet", 2, "small"), ("vgg16", 4, "fcn"),
        ("rcnn", 5, "small"), ("fcn", 3, "alexnet"), ("bert", 0, "small"), ("resnet50", 2, "bert_train"),
    )
)  # fmt: skip
MODES: dict[str, tuple[bool, str, tuple[str, ...]]] = {  # under MPS; the policy, or none; its settings
    "sharing": (False, "", ()),
    "strict": (False, "strict", ()),
    "reactive": (False, "reactive", ()),
    "fikit": (False, "quantile", ()),
    "mps": (True, "", ()),
    "fikit_mps": (True, "quantile", ("--switch-ns", "0")),
}
EXTRA = {"self": False, "self_mps": True, "again": False}  # by itself, no daemon: the urgent processes, the plain one
METHOD = "slices"
"""What rounds say of how they were taken; others are not gone on with."""


def profiles(bench: Bench, tasks: Iterable[tuple[str, float]], found: dict[str, Any], save: Callable[[], None],
             base: Mapping[str, str] | None = None, mark: str = "") -> None:  # fmt: skip
    """Measures each task alone that was not measured on this machine; with a mark, in another environment."""
    missing = [
        one for one in dict.fromkeys(tasks)
        if bench.key(*one, mark) not in bench.known or f"{one[0]}+{one[1]:g}{mark}" not in found
    ]  # fmt: skip
    begin = time.monotonic()
    for task, said in bench.profiles(missing, 1.5, base, mark):
        name = f"{task[0]}+{task[1]:g}{mark}"
        if isinstance(said, Exception):
            print(f"measured  {name:20} FAILED: {type(said).__name__}: {said}", flush=True)
            continue
        found[name] = said
        text = f"{said['mean_us']:.0f} us a request, {said['kernels_per_request']} kernels"
        print(f"measured  {name:20} {text}, after {time.monotonic() - begin:.0f} s", flush=True)
        save()


class Group:
    """Some pairs whose processes are alive, five for each: high and low, without MPS and under it, and a plain high."""

    def __init__(self, bench: Bench, pairs: list[Pair], modes: list[str], stack: contextlib.ExitStack) -> None:
        self.bench, self.modes = bench, modes
        self.workers: dict[tuple[Pair, bool], tuple[Worker, Worker]] = {}
        self.plain: dict[Pair, Worker] = {}
        self.number = {pair: number for number, pair in enumerate(PAIRS, 1)}
        bases = {False: bench.base}
        if any(MODES[mode][0] for mode in modes):
            try:
                bases[True] = stack.enter_context(bench.mps())
            except (Failed, OSError) as problem:
                print(f"MPS: {problem}", flush=True)
        for pair in pairs:
            self.plain[pair] = bench.worker(*pair.high, bench.base)
            stack.callback(self.plain[pair].close)
            for under_mps, base in bases.items():
                bench.of_group(under_mps, self.number[pair])
                both = [
                    bench.worker(*task, bench.task_env(priority, *task, base))
                    for task, priority in ((pair.high, 9), (pair.low, 1))
                ]
                for one in both:
                    stack.callback(one.close)
                self.workers[pair, under_mps] = both[0], both[1]
        for pair in pairs:
            self._begin(pair)

    def _begin(self, pair: Pair) -> None:
        """Until its processes are ready; those that do not come are ended."""
        try:
            self.bench.ready(self.plain[pair], "high")
        except Failed as problem:
            print(f"{pair.name}: {problem}", flush=True)
            self.drop(pair)
        for under_mps in (False, True):
            try:
                for one, role in zip(self.workers.get((pair, under_mps), ()), ("high", "low"), strict=False):
                    self.bench.ready(one, role)
            except Failed as problem:
                print(f"{pair.name}{' under MPS' if under_mps else ''}: {problem}", flush=True)
                for one in self.workers.pop((pair, under_mps)):
                    one.close()

    def warm(self, pair: Pair) -> None:
        """Before the first round in a call: then clocks and caches are as they will be."""
        both = (self.workers.get((pair, under_mps), ()) for under_mps in (False, True))
        for one in (self.plain[pair], *(worker for workers in both for worker in workers)):
            one.ask("slices 0.1 0 1")
            one.answer(60)

    def drop(self, pair: Pair) -> None:
        """Ends the processes of a pair, of which one may be at work."""
        for workers in [(self.plain.pop(pair),), *(self.workers.pop((pair, way), ()) for way in (False, True))]:
            for one in workers:
                one.close()

    def missing(self, pair: Pair, number: int, kept: dict[str, Any], record: Path | None) -> list[Way]:
        """What is to be done for a round, each time in another order, as far as there are processes for it."""
        first = number % max(1, len(self.modes))
        found = []
        for name in missing(kept, self.modes[first:] + self.modes[:first], list(EXTRA)):
            under_mps, policy, settings = MODES[name] if name in MODES else (EXTRA[name], "", ())
            if (pair, under_mps) not in self.workers:
                continue
            high, low = self.workers[pair, under_mps]
            if name in EXTRA:
                found.append(Way(name, self.plain[pair] if name == "again" else high))
                continue
            if record and policy and number == 0 and name not in {one.name for one in found}:
                settings = (*settings, "--record", str(record / f"{self.number[pair]}-{name}.kfe"))
            found.append(Way(name, high, low, under_mps, policy, settings))
        return found

    def round(self, pair: Pair, ways: list[Way], seconds: float, kept: dict[str, Any], until: float) -> None:
        """Adds to one round of a pair what is missing, while there is time."""
        tasks = self.bench.key(*pair.high), self.bench.key(*pair.low)
        chain = Chain(self.bench, self.number[pair], self.plain[pair], tasks, seconds, kept)
        if "low_alone_per_s" not in kept:
            chain.low_alone(self.workers[pair, False][1])
        chain.go(ways, lambda: time.monotonic() > until)


def whole(kept: dict[str, Any], modes: list[str]) -> bool:
    """Whether a round has all of these modes."""
    return not missing(kept, modes, [one for one in EXTRA if one != "self_mps" or any(MODES[m][0] for m in modes)])


def several(bench: Bench, pairs: list[Pair], modes: list[str], rounds: int, seconds: float, until: float,
            found: dict[str, list[dict[str, Any]]], save: Callable[[], None], record: Path | None) -> None:  # fmt: skip
    """Adds rounds of some pairs, whose processes live side by side, until there are enough or the time is over."""
    with contextlib.ExitStack() as stack:
        begin = time.monotonic()
        group = Group(bench, pairs, modes, stack)
        count = len(group.plain) + 2 * len(group.workers)
        print(f"{count} processes after {time.monotonic() - begin:.0f} s", flush=True)
        warm: set[Pair] = set()
        for number, pair in ((number, pair) for number in range(rounds) for pair in pairs):
            kept = found.setdefault(pair.name, [])
            if time.monotonic() > until:
                break
            if pair not in group.plain or (pair, False) not in group.workers:
                continue
            while len(kept) <= number:
                kept.append({})
            if not (ways := group.missing(pair, number, kept[number], record)):
                continue
            begin = time.monotonic()
            try:
                if pair not in warm:
                    group.warm(pair)
                    warm.add(pair)
                group.round(pair, ways, seconds, kept[number], until)
            except Exception as problem:
                print(f"{pair.name} FAILED: {type(problem).__name__}: {problem}", flush=True)
                group.drop(pair)
                continue
            finally:
                save()
            print(f"{pair.name} round {number + 1}: {time.monotonic() - begin:.1f} s", flush=True)
        bench.of_group(False)
