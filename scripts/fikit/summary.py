"""What the rounds of a pair say: ratios of slices that lie side by side, their medians, and how sure they are.

In: rounds as `slices` makes them. Out: for each way the time of the urgent task's requests over alone, the median of
all ratios with the interval that holds it in 95 of 100 cases, as `kesco.bench.pairs` takes it, and what the lower task
got over alone. `self` and `self_mps` are the same for the urgent processes with nobody beside them, for each process by
itself: what one of them is slower than the plain one is part of its other ratios. `again` is the plain one over itself.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from pairs import EXTRA, MODES, Pair
from slices import ALONE

from kesco.bench.pairs import interval

_MEAN, _P99 = 2, 4  # in a slice


def ratios(slices: Sequence[Sequence[Any]], way: str) -> list[float]:
    """Each slice of a way over the slice alone beside it: the one before, or else the one behind."""
    found = []
    for at, one in enumerate(slices):
        if one[0] != way:
            continue
        beside = [slices[near] for near in (at - 1, at + 1) if 0 <= near < len(slices) and slices[near][0] == ALONE]
        found.append(one[_MEAN] / beside[0][_MEAN])
    return found


def _median(values: Sequence[float | None]) -> float | None:
    there = [one for one in values if one is not None]
    return statistics.median(there) if there else None


def _judged(rounds: Sequence[dict[str, Any]], way: str) -> dict[str, Any] | None:
    """The median of all ratios, where it lies (None: anywhere), and the median of each process."""
    processes: dict[int, list[float]] = {}
    for one in rounds:
        whose = [block["process"] for block in one["blocks"] if block["way"] == way for _ in range(2)]
        for process, ratio in zip(whose, ratios(one["slices"], way), strict=True):
            processes.setdefault(process, []).append(ratio)
    every = [ratio for found in processes.values() for ratio in found]
    if not every:
        return None
    lies = [round(end, 4) if math.isfinite(end) else None for end in interval(every)]
    single = [round(statistics.median(found), 4) for found in processes.values() if found]
    return {"ratio": statistics.median(every), "lies": lies, "of": len(every), "processes": single}


def _sums(one: dict[str, Any], way: str) -> dict[str, float]:
    """What was counted in the blocks of a round and a way, added up."""
    found: dict[str, float] = {}
    for block in one["blocks"]:
        if block["way"] == way:
            for name, value in block.items():
                if name not in ("way", "process", "low_per_s"):
                    found[name] = found.get(name, 0) + value
    return found


def _over(above: str, below: str) -> Callable[[dict[str, float]], float | None]:
    """One sum over another, nanoseconds in seconds; None where there is nothing of the latter."""
    unit = 1e9 if above.endswith("_ns") and not below.endswith("_ns") else 1

    def value(sums: dict[str, float]) -> float | None:
        return sums[above] / unit / sums[below] if above in sums and sums.get(below) else None

    return value


def summary(pair: Pair, kept: Sequence[dict[str, Any]], profiled: dict[str, Any]) -> dict[str, Any]:
    """Of all rounds together; nothing where there are none. `bound`, `idle`, `fill`, `overran`: medians of rounds.

    `bound` is the part of the time in gaps where a waiting kernel fits: as fast as alone, the low task gets no more.
    """
    rounds = [one for one in kept if one.get("slices") and one.get("low_alone_per_s")]
    if not rounds:
        return {}
    alone = [one[_MEAN] for each in rounds for one in each["slices"] if one[0] == ALONE]
    low_alone = statistics.median(one["low_alone_per_s"] for one in rounds)
    kernels = (profiled.get(f"{pair.low[0]}+{pair.low[1]:g}") or {}).get("kernels_per_request")
    same = all(len({sum_ for one in rounds for sum_ in one["results"][who]}) <= 1 for who in ("high", "low"))
    result: dict[str, Any] = {"alone_us": statistics.median(alone), "alone_us_from": min(alone),
                              "alone_us_to": max(alone), "low_alone_per_s": low_alone, "same": same}  # fmt: skip
    for way in EXTRA:
        if found := _judged(rounds, way):
            result[way] = found
    for mode in MODES:
        if not (found := _judged(rounds, mode)):
            continue
        sums = [one for each in rounds if (one := _sums(each, mode))]
        if MODES[mode][1]:  # while the high one ran; then the low one went on alone
            got = [each["done"] / each["low_seconds"] / kernels if kernels else None for each in sums]
        else:
            got = [block["low_per_s"] for one in rounds for block in one["blocks"] if block["way"] == mode]
        rate = _median(got)
        p99 = [one[_P99] for each in rounds for one in each["slices"] if one[0] == mode]
        result[mode] = found | {
            "high_p99_us": statistics.median(p99), "low": None if rate is None else rate / low_alone,
            "idle": _median([_over("wide_ns", "seconds")(one) for one in sums]),
            "fill": _median([_over("busy_ns", "fillable_ns")(one) for one in sums]),
            "overran": _median([_over("overruns", "fills")(one) for one in sums]),
            "bound": _median([_over("fillable_ns", "seconds")(one) for one in sums]),
            "late": sum(one.get("late", 0) for one in sums),
        }  # fmt: skip
    return result


SHOWN = {"sharing": "sharing", "mps": "MPS", "strict": "strict", "reactive": "reactive", "fikit": "FIKIT",
         "fikit_mps": "FIKIT/MPS"}  # fmt: skip


def _number(value: float | None, width: int = 6) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width}.2f}"


def _lies(found: dict[str, Any] | None) -> str:
    """Where a ratio lies."""
    if not found:
        return f"{'-':>10}"
    low, high = found["lies"]
    return f"{'anywhere':>10}" if low is None or high is None else f"{f'{low:.2f}-{high:.2f}':>10}"


def _each(found: dict[str, Any] | None) -> str:
    return f"{'/'.join(f'{one:.2f}' for one in found['processes']) if found else '-':>9}"


def table(summaries: dict[str, dict[str, Any]]) -> str:
    """The high task's time over alone, and the low one's rate over alone, for each pair and mode."""
    lines = [
        f"{'pair':26} {'alone ms':>8} " + " ".join(f"{one:>11}" for one in SHOWN.values())
        + f"  {'FIKIT in':>10} {'/MPS in':>10} {'self':>9} {'self/MPS':>9} {'again in':>10}  bound   fill  over"
    ]  # fmt: skip
    for name, one in summaries.items():
        if not one:
            continue
        cells = [
            f"{one[mode]['ratio']:6.2f}/{_number(one[mode]['low'], 4)}" if mode in one else f"{'-':>11}"
            for mode in SHOWN
        ]
        said = one.get("fikit") or {}
        part = [_lies(one.get("fikit")), _lies(one.get("fikit_mps")), _each(one.get("self")),
                _each(one.get("self_mps")), _lies(one.get("again")),
                *(_number(said.get(n)) for n in ("bound", "fill", "overran"))]  # fmt: skip
        wrong = "" if one["same"] else "  RESULTS DIFFER"
        lines.append(f"{name:26} {one['alone_us'] / 1e3:8.2f} {' '.join(cells)}  {' '.join(part)}{wrong}")
    return "\n".join(lines)
