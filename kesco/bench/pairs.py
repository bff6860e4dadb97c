"""How much faster one variant is than another, from times that belong together, and how sure that is.

In: two rows of `paired`. Out: the median of the ratios of each round, and an interval that holds the true median with
95 % probability, whatever the ratios' distribution is: as many of n ratios lie below it as of n coins show heads, so
that its ends are two of the ratios in their order (the sign test's interval). It takes rounds for independent. Where a
machine is slow for some rounds they are not, and processes may differ from each other by more than the rounds of one:
so the smallest and the largest median of one process stand beside it, and the serial program beside itself.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kesco.bench.measure import Row, Setting
from kesco.bench.results import Results

ROUNDS = "rounds"
"""The name under which results say how many rounds there were in each process."""
_OUTSIDE = 0.05


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times faster: the median of the rounds, its interval, and the medians of single processes."""

    median: float
    low: float
    high: float
    processes: tuple[float, ...]


def ratio(results: Results, setting: Setting, variant: str, over: str = "serial") -> Ratio | None:
    """A variant beside another; None where one of them has no times."""
    this, other = results.find(setting, variant), results.find(setting, over)
    if this is None or other is None or not (rounds := int(results.environment.get(ROUNDS, 0))):
        return None
    return judged(ratios(this, other), rounds)


def judged(found: Sequence[float], rounds: int) -> Ratio:
    """What the ratios of some processes say, so many rounds of each, one process behind another."""
    low, high = interval(found)
    pieces = [found[at : at + rounds] for at in range(0, len(found), rounds)]
    return Ratio(statistics.median(found), low, high, tuple(map(statistics.median, pieces)))


def ratios(this: Row, other: Row) -> list[float]:
    """The other's time over this one's, round by round."""
    return [b / a for a, b in zip(this.times, other.times, strict=True)]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median of what the values are drawn from lies, but for one case in twenty; of few, anywhere."""
    ordered, count = sorted(values), len(values)
    ways, below, heads = 1, 0, 0  # of 2**count: with just so many heads, and with fewer
    while (below + ways) * round(2 / _OUTSIDE) <= 1 << count:
        below, heads = below + ways, heads + 1
        ways = ways * (count - heads + 1) // heads
    return (ordered[heads - 1], ordered[count - heads]) if heads else (-math.inf, math.inf)
