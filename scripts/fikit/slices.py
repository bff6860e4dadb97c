"""One round of a pair: its urgent task's turns beside another, each directly beside one of that task alone.

In: the pair's processes, and in which ways they are to work. Out, added to the round: `slices`, in the order in which
they were taken, `blocks`, what was counted meanwhile, and `results`, the checksums. A machine may be slow for seconds,
so only slices that lie side by side are compared. The round is a chain

    alone  way way  alone  way way  alone ...

A block is two slices of one way, the first one with the slice alone before it, the second one with that behind it. So
each way is as often first as second, and each slice alone is of use twice, for two ways. Each way has two blocks in a
round, and between them are those of the others. What is alone is always one and the same process, a plain program that
knows of no daemon. What it is as a process, compared with the urgent ones, is measured as a way, too: `self` and
`self_mps` are those with nobody beside them, and no daemon, and `again` is the plain one once more.

A daemon lives for one block. It is started before the slice alone that is before it, in which the tasks attach (if they
come later there is another slice alone), and it ends with the block: so the lower task is let go at once, wherever it
stands, and has ended before the next slice alone. So what a daemon does rarely, once in 0.4 s (a deadline), is seen in
some blocks and not in others: `late` counts it, and longer slices show more of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench import Bench, Worker

ALONE = "alone"
WARM = 0.03  # seconds at the beginning of what begins, which do not count
LATE = 0.05  # seconds between two slices after which they do not lie side by side
LIMIT = 60  # seconds beyond which no answer comes
BLOCKS = 2  # of each way of sharing, in a round
SLICE = ("way", "start_s", "mean_us", "p50_us", "p99_us", "requests")
"""What the numbers of a slice are."""


@dataclass(frozen=True, slots=True)
class Way:
    """Who works, beside whom, under which daemon; without a lower one the higher works by itself."""

    name: str
    high: Worker
    low: Worker | None = None
    under_mps: bool = False
    policy: str = ""
    settings: tuple[str, ...] = ()


def missing(kept: dict[str, Any], ways: Sequence[str], extra: Sequence[str]) -> list[str]:
    """What is to be done for a whole round, in order: each way, what is there once, each way again."""
    there = Counter(one["way"] for one in kept.get("blocks", ()))
    found = [one for one in ways if there[one] < BLOCKS - 1]
    found += [one for one in extra if not there[one]]
    return found + [one for one in ways if there[one] < BLOCKS]


class Chain:
    """Adds blocks to a round, each only as a whole, with a slice alone on either side."""

    def __init__(self, bench: Bench, pair: int, plain: Worker, tasks: tuple[str, str], seconds: float,
                 kept: dict[str, Any]) -> None:  # fmt: skip
        self.bench, self.pair, self.plain, self.tasks, self.kept = bench, pair, plain, tasks, kept
        self.seconds = kept.setdefault("slice_seconds", seconds)
        kept.setdefault("began", round(time.time(), 1))
        kept.setdefault("slices", [])
        kept.setdefault("blocks", [])
        kept.setdefault("results", {"high": [], "low": []})
        self.daemon: Any = None

    def go(self, ways: Sequence[Way], over: Callable[[], bool]) -> None:
        """All of these ways, or those for which there is time."""
        if not ways:
            return
        try:
            self._serve(ways[0])
            self.kept["slices"] += self._slices(self.plain, ALONE, 1)
            for way, then in zip(ways, (*ways[1:], None), strict=True):
                if over():
                    return
                if self.daemon and not self._came_in_time():
                    self.kept["slices"] += self._slices(self.plain, ALONE, 1)
                rows, counted = self._block(way)
                if then:
                    self._serve(then)
                rows += self._slices(self.plain, ALONE, 1)
                self.kept["slices"] += rows
                self.kept["blocks"].append(counted)
            self._result("high", self.plain)
        finally:
            self._end()

    def low_alone(self, low: Worker) -> None:
        """Its rate, with nobody beside it and no daemon."""
        low.ask(f"slices {2 * self.seconds:g} {WARM:g} 1")
        self.kept["low_alone_per_s"] = round(low.answer(LIMIT)["slices"][0]["per_s"], 3)

    def _serve(self, way: Way) -> None:
        if way.policy:
            self.bench.of_group(way.under_mps, self.pair)
            self.daemon = self.bench.serve(way.policy, *way.settings, tasks=self.tasks)

    def _came_in_time(self) -> bool:
        """Waits until both tasks are there; false where the slice alone is no longer right beside what follows."""
        begin = time.monotonic()
        self.bench.attached(2)
        return time.monotonic() - begin < LATE

    def _end(self) -> None:
        if self.daemon:
            self.bench.stop(self.daemon)
        self.daemon = None

    def _slices(self, worker: Worker, name: str, count: int) -> list[list[Any]]:
        begin = time.time()
        worker.ask(f"slices {self.seconds:g} {WARM:g} {count}")
        return self._rows(worker, name, begin)

    def _rows(self, worker: Worker, name: str, begin: float) -> list[list[Any]]:
        return [
            [name, round(begin + one["after_s"] - self.kept["began"], 3),
             *(round(one[value], 1) for value in ("mean_us", "p50_us", "p99_us")), one["requests"]]
            for one in worker.answer(LIMIT)["slices"]
        ]  # fmt: skip

    def _result(self, who: str, worker: Worker) -> None:
        worker.ask("sum")
        self.kept["results"][who] = sorted({*self.kept["results"][who], worker.answer(LIMIT)["result"]})

    def _block(self, way: Way) -> tuple[list[list[Any]], dict[str, Any]]:
        """Two slices of a way, and what was counted from the beginning of the first to the end of the second."""
        counted: dict[str, Any] = {"way": way.name, "process": way.high.child.pid}
        if not way.low:
            rows = self._slices(way.high, way.name, 2)
            self._result("high", way.high)
            return rows, counted
        begin, clock = time.time(), time.monotonic()
        way.high.ask(f"slices {self.seconds:g} {WARM:g} 2")
        time.sleep(WARM / 3)  # the lower task comes to one that is at work
        low_clock = time.monotonic()
        way.low.ask("work")
        rows = self._rows(way.high, way.name, begin)
        if self.daemon:
            counted |= _counters(self.bench.status()["tasks"])
        end = time.monotonic()
        counted |= {"seconds": round(end - clock, 4), "low_seconds": round(end - low_clock, 4)}
        first = way.name not in {one["way"] for one in self.kept["blocks"]}
        if first:
            self._result("high", way.high)
        way.low.ask("rest")
        self._end()  # and whatever waits goes on
        counted["low_per_s"] = round(way.low.answer(LIMIT)["per_s"], 3)
        if first:
            self._result("low", way.low)
        return rows, counted


def _counters(tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the daemon says of both tasks, as far as it is looked at later."""
    both = {one["priority"]: one for one in tasks}
    high, low = both[9], both[1]
    grants = low["grants"]
    return {
        "done": low["done"], "fills": grants[2] + grants[5] + low["credited"], "late": grants[3] + grants[4],
        "overruns": low["overruns"], "abandoned": low["abandoned"],
        "lost_records": low["lost_records"] + high["lost_records"],
    } | {name: high[name] for name in ("fillable_ns", "busy_ns", "wide_ns")}  # fmt: skip
