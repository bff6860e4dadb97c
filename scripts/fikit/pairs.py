"""Pairs of tasks on one GPU: a high one and a low one, alone and under each way of sharing, the ways in turn.

In: a `Bench`, the pairs, how many rounds, and how long. Out: for each pair a list of rounds, each with what the two
said and what the daemon counted, by mode; what is there already is not done again. Four processes live for each pair,
started together with those of other pairs, since starting PyTorch takes longer than a round: high and low without MPS,
and the same under MPS. A mode is a daemon that is started for it, or none; the tasks attach and go on alone by
themselves.
"""
# ruff: noqa: T201, D102

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import Bench, Failed, Worker


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
_COUNTERS = (
    "launched", "done", "holds", "abandoned", "waited_ns", "filled_ns", "overruns", "gaps", "gap_ns", "wide_gaps",
    "wide_ns", "promises", "broken", "harms", "harm_ns", "drifted", "unknown", "lost_records", "grants",
    "credited", "fillable_ns", "busy_ns",
)  # fmt: skip


class Runs:
    """One pair at work."""

    def __init__(self, bench: Bench, pair: Pair, seconds: float) -> None:
        self.bench, self.pair, self.seconds = bench, pair, seconds

    def together(self, high: Worker, low: Worker, policy: str, settings: tuple[str, ...]) -> dict[str, Any]:
        daemon = self.bench.serve(policy, *settings) if policy else None
        found: dict[str, Any] = {}
        try:
            if daemon:
                self.bench.attached(2)
            low.ask(f"run {self.seconds}")
            high.ask(f"run {self.seconds}")
            found["high"] = high.answer(self.seconds + 60)
            if daemon:
                tasks = {one["priority"]: one for one in self.bench.status()["tasks"]}
                for name, priority in (("high", 9), ("low", 1)):
                    found[f"{name}_counters"] = {n: tasks[priority][n] for n in _COUNTERS if n in tasks[priority]}
        finally:
            if daemon:
                self.bench.stop(daemon)  # and the low one goes on to its end
        found["low"] = low.answer(self.seconds + 90)
        return found

    def alone(self, worker: Worker) -> dict[str, Any]:
        worker.ask(f"run {self.seconds * 0.6:.2f}")
        return worker.answer(self.seconds + 60)


def profiles(bench: Bench, tasks: Iterable[tuple[str, float]], found: dict[str, Any], save: Callable[[], None]) -> None:
    """Measures each task alone that was not measured on this machine."""
    missing = [
        one for one in dict.fromkeys(tasks) if bench.key(*one) not in bench.known or f"{one[0]}+{one[1]:g}" not in found
    ]
    begin = time.monotonic()
    for task, said in bench.profiles(missing, 1.5):
        name = f"{task[0]}+{task[1]:g}"
        if isinstance(said, Exception):
            print(f"measured  {name:20} FAILED: {type(said).__name__}: {said}", flush=True)
            continue
        found[name] = said
        text = f"{said['mean_us']:.0f} us a request, {said['kernels_per_request']} kernels"
        print(f"measured  {name:20} {text}, after {time.monotonic() - begin:.0f} s", flush=True)
        save()


class Group:
    """Some pairs whose processes are alive, four for each: high and low, without MPS and under it."""

    def __init__(self, bench: Bench, pairs: list[Pair], modes: list[str], stack: contextlib.ExitStack) -> None:
        self.bench, self.modes = bench, modes
        self.workers: dict[tuple[Pair, bool], tuple[Worker, Worker]] = {}
        self.number = {pair: number for number, pair in enumerate(PAIRS, 1)}
        bases = {False: bench.base}
        if any(MODES[mode][0] for mode in modes):
            try:
                bases[True] = stack.enter_context(bench.mps())
            except (Failed, OSError) as problem:
                print(f"MPS: {problem}", flush=True)
        for pair in pairs:
            for under_mps, base in bases.items():
                bench.of_group(under_mps, self.number[pair])
                both = [
                    bench.worker(*task, bench.task_env(priority, *task, base))
                    for task, priority in ((pair.high, 9), (pair.low, 1))
                ]
                for one in both:
                    stack.callback(one.close)
                self.workers[pair, under_mps] = both[0], both[1]
        for (pair, under_mps), both in list(self.workers.items()):
            try:
                for one, role in zip(both, ("high", "low"), strict=True):
                    bench.ready(one, role)
            except Failed as problem:
                print(f"{pair.name}{' under MPS' if under_mps else ''}: {problem}", flush=True)
                del self.workers[pair, under_mps]

    def round(self, pair: Pair, number: int, seconds: float, kept: dict[str, Any], record: Path | None) -> None:
        """One round of a pair: what is missing in `kept`, in another order each time."""
        ways = ["alone", *self.modes]
        runs = Runs(self.bench, pair, seconds)
        if number == 0:  # until clocks and caches are as they will be
            for one in self.workers[pair, False]:
                one.ask("run 0.3")
                one.answer(60)
        for mode in ways[number % len(ways) :] + ways[: number % len(ways)]:
            if mode == "alone":
                if "low alone" not in kept:
                    kept["high alone"] = {"high": runs.alone(self.workers[pair, False][0])}
                    kept["low alone"] = {"low": runs.alone(self.workers[pair, False][1])}
                continue
            under_mps, policy, settings = MODES[mode]
            if (pair, under_mps) not in self.workers or mode in kept:
                continue
            if record and policy and number == 0:
                settings = (*settings, "--record", str(record / f"{self.number[pair]}-{mode}.kfe"))
            self.bench.of_group(under_mps, self.number[pair])
            kept[mode] = runs.together(*self.workers[pair, under_mps], policy, settings)


def several(bench: Bench, pairs: list[Pair], modes: list[str], rounds: int, seconds: float, until: float,
            found: dict[str, list[dict[str, Any]]], save: Callable[[], None], record: Path | None) -> None:  # fmt: skip
    """Adds rounds of some pairs, whose processes live side by side, until there are enough or the time is over."""
    need = {"high alone", "low alone", *modes}
    with contextlib.ExitStack() as stack:
        begin = time.monotonic()
        group = Group(bench, pairs, modes, stack)
        print(f"{len(group.workers) * 2} processes after {time.monotonic() - begin:.0f} s", flush=True)
        for pair in pairs:
            kept = found.setdefault(pair.name, [])
            for number in range(rounds):
                if time.monotonic() > until or (pair, False) not in group.workers:
                    break
                while len(kept) <= number:
                    kept.append({})
                if need <= kept[number].keys():
                    continue
                begin = time.monotonic()
                try:
                    group.round(pair, number, seconds, kept[number], record)
                except Exception as problem:
                    print(f"{pair.name} FAILED: {type(problem).__name__}: {problem}", flush=True)
                    break
                finally:
                    save()
                print(f"{pair.name} round {number + 1}: {time.monotonic() - begin:.0f} s", flush=True)
        bench.of_group(False)


def summary(pair: Pair, kept: list[dict[str, Any]], profiled: dict[str, Any]) -> dict[str, Any]:
    """Medians over rounds, by mode: the high task's time as a ratio to alone, the low one's part of its rate alone."""

    def middle(mode: str, value: Callable[[dict[str, Any]], float | None]) -> float | None:
        found = [v for one in kept if mode in one and (v := value(one[mode])) is not None]
        return statistics.median(found) if found else None

    alone = middle("high alone", lambda one: one["high"]["mean_us"])
    low_alone = middle("low alone", lambda one: one["low"]["per_s"])
    if not alone or not low_alone:
        return {}
    kernels = (profiled.get(f"{pair.low[0]}+{pair.low[1]:g}") or {}).get("kernels_per_request")
    sums = {one[mode][who]["result"] for one in kept for mode in one for who in ("high",) if who in one[mode]}
    lows = {one[mode]["low"]["result"] for one in kept for mode in one if "low" in one[mode]}
    result: dict[str, Any] = {"alone_us": alone, "low_alone_per_s": low_alone, "same": len(sums) == len(lows) == 1}

    def rate(one: dict[str, Any]) -> float | None:
        if "low_counters" in one and kernels:  # while the high one ran; then the low one went on alone
            ran = one["high"]["requests"] / one["high"]["per_s"]
            return float(one["low_counters"]["done"]) / kernels / ran
        return float(one["low"]["per_s"])

    def fill(one: dict[str, Any]) -> float | None:
        wide = one.get("high_counters", {}).get("fillable_ns")
        return one["high_counters"]["busy_ns"] / wide if wide else None

    def overran(one: dict[str, Any]) -> float | None:
        if "low_counters" not in one:
            return None
        low = one["low_counters"]
        fills = low["grants"][2] + low["grants"][5] + low["credited"]
        return low["overruns"] / fills if fills else None

    def idle(one: dict[str, Any]) -> float | None:
        wide = one.get("high_counters", {}).get("wide_ns")
        return None if wide is None else wide / 1e9 / (one["high"]["requests"] / one["high"]["per_s"])

    def bound(one: dict[str, Any]) -> float | None:
        """The part of the time in gaps where a waiting kernel fits: as fast as alone, the low task gets no more."""
        wide = one.get("high_counters", {}).get("fillable_ns")
        return None if wide is None else wide / 1e9 / (one["high"]["requests"] / one["high"]["per_s"])

    for mode in MODES:
        took, got = middle(mode, lambda one: one["high"]["mean_us"]), middle(mode, rate)
        if took is None or got is None:
            continue
        p99 = middle(mode, lambda one: one["high"]["p99_us"])
        result[mode] = {
            "high": took / alone, "high_p99_us": p99, "low": got / low_alone, "idle": middle(mode, idle),
            "fill": middle(mode, fill), "overran": middle(mode, overran),
            "bound": middle(mode, bound),
        }  # fmt: skip
    return result


def table(summaries: dict[str, dict[str, Any]]) -> str:
    """The high task's time over alone, and the low one's rate over alone, for each pair and mode."""
    shown = {"sharing": "sharing", "mps": "MPS", "strict": "strict", "reactive": "reactive", "fikit": "FIKIT",
             "fikit_mps": "FIKIT/MPS"}  # fmt: skip
    lines = [
        f"{'pair':26} {'alone ms':>8} " + " ".join(f"{one:>11}" for one in shown.values()) + "  bound   fill  over"
    ]
    for name, one in summaries.items():
        if not one:
            continue
        cells = [f"{one[mode]['high']:6.2f}/{one[mode]['low']:4.2f}" if mode in one else f"{'-':>11}" for mode in shown]
        said = one.get("fikit") or {}
        part = [f"{said[n]:6.2f}" if said.get(n) is not None else "     -" for n in ("bound", "fill", "overran")]
        wrong = "" if one["same"] else "  RESULTS DIFFER"
        lines.append(f"{name:26} {one['alone_us'] / 1e3:8.2f} {' '.join(cells)} {' '.join(part)}{wrong}")
    return "\n".join(lines)
