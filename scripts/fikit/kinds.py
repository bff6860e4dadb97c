"""What launches are the bottleneck of, beside others: an urgent task of some kind, and ways of sharing, interleaved.

In: a `Bench`, kinds, what works beside them, ways. Out: rows, and of each three their ratios: the urgent task's p50
and p99 over its own, alone, in the same process right before and behind, and what the other one does of what it does
alone. All processes live side by side and rest until it is their turn; a daemon is started for each turn.
"""
# ruff: noqa: T201

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench import Bench, Failed, Worker
from pairs import profiles

KINDS = {
    "eager": ("encoder", 0.0),
    "thought": ("encoder", 4.0),
    "compiled": ("encoder_compiled", 0.0),
    "graph": ("encoder_graph", 0.0),
    "graph+": ("encoder_graph", 4.0),
}
BESIDE = {"training": ("convolutions_train", 0.0), "inference": ("fcn", 0.0)}


@dataclass(frozen=True)
class Way:
    """How the GPU is shared: the place of the processes, of the SMs which part for the lower one, and a daemon."""

    mps: bool = False
    share: int = 100
    policy: str = ""
    settings: tuple[str, ...] = ()


WAYS = {
    "default": Way(),
    "fikit": Way(policy="quantile"),
    "MPS 100 %": Way(mps=True),
    "MPS 70 %": Way(mps=True, share=70),
    "MPS 40 %": Way(mps=True, share=40),
    "fikit over MPS": Way(mps=True, policy="quantile", settings=("--switch-ns", "0")),
    "fikit --mps": Way(mps=True, share=70, policy="quantile", settings=("--switch-ns", "0", "--beside-permille", "50")),
}


def below(base: dict[str, str], share: int) -> dict[str, str]:
    """The environment of a lower task under MPS."""
    return base | {"CUDA_MPS_CLIENT_PRIORITY": "1", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(share)}


class Table:
    """Processes of all kinds, and what was measured."""

    def __init__(self, bench: Bench, kinds: Sequence[str], beside: Sequence[str], ways: Sequence[str],
                 data: dict[str, Any], save: Callable[[], None], stack: contextlib.ExitStack) -> None:  # fmt: skip
        self.bench, self.kinds, self.beside, self.ways = bench, kinds, beside, ways
        bases = {False: bench.base}
        if any(WAYS[way].mps for way in ways):
            bases[True] = stack.enter_context(bench.mps())
            shares = {WAYS[way].share for way in ways if WAYS[way].mps and WAYS[way].policy}
            for share in shares:
                profiles(bench, [BESIDE[one] for one in beside], data["profiles"], save, below(bases[True], share),
                         f"@{share}")  # fmt: skip
        self.high: dict[tuple[str, bool], Worker] = {}
        self.low: dict[tuple[str, bool, int], Worker] = {}
        for under, base in bases.items():
            for kind in kinds:
                self.high[kind, under] = self._worker(KINDS[kind], 9, base, stack)
        for name in beside:
            for under, share in sorted({(WAYS[way].mps, WAYS[way].share) for way in ways}):
                own = below(bases[under], share) if under else bases[under]
                mark = f"@{share}" if under else ""
                self.low[name, under, share] = self._worker(BESIDE[name], 1, own, stack, mark)
        for worker in (*self.high.values(), *self.low.values()):
            bench.ready(worker, "high")

    def _worker(self, task: tuple[str, float], priority: int, base: dict[str, str], stack: contextlib.ExitStack,
                mark: str = "") -> Any:  # fmt: skip
        self.bench.socket = self.bench.folder / f"k{len(self.high)}.{len(self.low)}.sock"
        worker = self.bench.worker(*task, self.bench.task_env(priority, *task, base, mark))
        worker.socket = self.bench.socket  # type: ignore[attr-defined]
        stack.callback(worker.close)
        return worker

    def turn(self, kind: str, beside: str, name: str, seconds: float, warm: float) -> dict[str, Any]:
        """One kind alone, then in one way of sharing."""
        way = WAYS[name]
        high, low = self.high[kind, way.mps], self.low[beside, way.mps, way.share]
        with contextlib.ExitStack() as stack:
            if way.policy:
                self._serve(way, KINDS[kind], BESIDE[beside], (high, low), stack)
            high.ask(f"slices {seconds / 2:g} 0.05 1")
            (alone,) = high.answer(60)["slices"]
            low.ask("work")
            high.ask(f"slices {warm if way.policy else 0.2:g} 0 1")
            high.answer(60)
            low.ask("rest")
            low.answer(60)
            low.ask("work")
            high.ask(f"slices {seconds:g} 0 1")
            (found,) = high.answer(60)["slices"]
            said = self.bench.status()["tasks"] if way.policy else []
            low.ask("rest")
        rate = low.answer(60)["per_s"]
        high.ask(f"slices {seconds / 2:g} 0.05 1")
        (after,) = high.answer(60)["slices"]
        row: dict[str, Any] = {"kind": kind, "beside": beside, "way": name, "low_per_s": rate}
        for at, one in (("alone", alone), ("found", found), ("after", after)):
            row |= {f"{at}_{value}": round(one[value], 1) for value in ("mean_us", "p50_us", "p99_us")}
        return row | {"tasks": said}

    def _serve(self, way: Way, high: tuple[str, float], low: tuple[str, float], both: Sequence[Worker],
               stack: contextlib.ExitStack) -> None:  # fmt: skip
        """A daemon for two, until the stack is left: what each takes for its socket leads to it meanwhile."""
        self.bench.socket = self.bench.folder / "served.sock"
        tasks = (self.bench.key(*high), self.bench.key(*low, f"@{way.share}" if way.mps else ""))
        stack.callback(self.bench.stop, self.bench.serve(way.policy, *way.settings, tasks=tasks))
        for one in both:
            name = one.socket  # type: ignore[attr-defined]
            name.symlink_to(self.bench.socket)
            stack.callback(name.unlink)
        self.bench.attached(2)


def kinds(bench: Bench, wanted: tuple[Sequence[str], Sequence[str], Sequence[str]], rounds: int, seconds: float,
          warm: float, until: float, data: dict[str, Any], save: Callable[[], None]) -> str:  # fmt: skip
    """Rounds of all of them; the table."""
    names, others, ways = wanted
    profiles(bench, [KINDS[kind] for kind in names] + [BESIDE[one] for one in others], data["profiles"], save)
    found: list[dict[str, Any]] = data.setdefault("kinds", [])
    rates: dict[str, float] = data.setdefault("alone_per_s", {})
    with contextlib.ExitStack() as stack:
        begin = time.monotonic()
        table = Table(bench, names, others, ways, data, save, stack)
        print(f"{len(table.high) + len(table.low)} processes after {time.monotonic() - begin:.0f} s", flush=True)
        for (name, under, share), low in table.low.items():
            low.ask(f"slices {2 * seconds:g} 0.1 1")
            rate = low.answer(60)["slices"][0]["per_s"]
            if not under:
                rates[name] = round(rate, 2)
            print(f"{name} alone, MPS {under}, {share} %: {rate:.1f}/s", flush=True)
        for beside in others:
            for number in range(rounds):
                for kind in names:
                    for way in ways if number % 2 == 0 else ways[::-1]:
                        if time.monotonic() > until:
                            return told(found, rates)
                        try:
                            found.append(table.turn(kind, beside, way, seconds, warm))
                        except Failed as problem:
                            print(f"{kind} / {beside}, {way} FAILED: {problem}", flush=True)
                    save()
    return told(found, rates)


def told(rows: Sequence[dict[str, Any]], rates: dict[str, float]) -> str:
    """A line for each kind, what is beside it, and way: medians of the rounds, and the least and the most."""
    lines = [f"{'':28} {'':16} {'alone':>7} {'p50':>7}  over alone (from, to)   p99 over alone     other's rate, part"]
    for key in dict.fromkeys((one["kind"], one["beside"], one["way"]) for one in rows):
        some = [one for one in rows if (one["kind"], one["beside"], one["way"]) == key]
        p50, p99 = ([2 * one[f"found_{p}"] / (one[f"alone_{p}"] + one[f"after_{p}"]) for one in some]
                    for p in ("p50_us", "p99_us"))  # fmt: skip
        alone, shared = (statistics.median(one[f"{at}_p50_us"] for one in some) / 1e3 for at in ("alone", "found"))
        low = statistics.median(one["low_per_s"] for one in some)
        lines.append(
            f"{key[0] + ' / ' + key[1]:28} {key[2]:16} {alone:7.2f} {shared:7.2f}  "
            f"{statistics.median(p50):5.2f} ({min(p50):.2f}, {max(p50):.2f})   "
            f"{statistics.median(p99):5.2f} ({min(p99):.2f}, {max(p99):.2f})   "
            f"{low:7.1f}  {low / rates.get(key[1], float('nan')):5.2f}"
        )
    return "\n".join(lines)
