"""What mixes came to: medians, ratios to the programs started together, the bound, and the JSON that keeps the times.

A task's time goes from the common start to its results on the host; a mix's time is that of its last task, taken in
each round and then as the median. The bound is perfect overlap: every task takes as long as it does alone, serially or
as kesco compiles it, whichever is less; and the mix as long as its longest task.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kesco.bench.mixes import Mix
from kesco.bench.results import NO_RESULTS
from kesco.bench.sharing import Outcome
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

VERSION = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """Outcomes, and where and how they came to be; `plans` as `figures` reads them."""

    outcomes: tuple[Outcome, ...]
    environment: dict[str, str]
    plans: dict[str, str] = field(default_factory=dict)

    def find(self, mix: str, scheme: str) -> Outcome | None:
        """The outcome of a scheme, if it has times."""
        return next((o for o in self.outcomes if (o.mix, o.scheme) == (mix, scheme) and o.times), None)

    def task(self, mix: str, scheme: str, task: str) -> float | None:
        """The median milliseconds of a task."""
        found = self.find(mix, scheme)
        return statistics.median(found.times[task]) if found and found.times.get(task) else None

    def overall(self, mix: str, scheme: str) -> float | None:
        """The median milliseconds until the last task of a mix is done."""
        found = self.find(mix, scheme)
        if found is None:
            return None
        last: list[float] = [max(one) for one in zip(*found.times.values(), strict=True)]
        return statistics.median(last)

    def bound(self, mix: str, task: str | None = None) -> float | None:
        """The milliseconds of perfect overlap, in all or for a task."""
        found = self.find(mix, "alone-kesco")
        tasks = tuple(found.times) if found is not None else ()
        best = {
            one: min(x for x in (self.task(mix, alone, one) for alone in ("alone", "alone-kesco")) if x is not None)
            for one in tasks
        }
        return best.get(task) if task is not None else max(best.values(), default=None)

    def closeness(self, mix: str, scheme: str) -> float | None:
        """The bound over the time of a scheme: 1 would be perfect overlap."""
        bound, overall = self.bound(mix), self.overall(mix, scheme)
        return bound / overall if bound and overall else None

    def speed(self, mix: str, scheme: str, over: str = "baseline", task: str | None = None) -> float | None:
        """How many times faster than another scheme, in all or for a task."""
        one, other = (
            self.overall(mix, name) if task is None else self.task(mix, name, task) for name in (scheme, over)
        )
        return other / one if one and other else None


def lines(shared: Shared, mixes: Sequence[Mix]) -> Iterator[str]:
    """The results as text: a table for each mix, and the means over the mixes."""
    there = [mix for mix in mixes if any(o.mix == mix.name for o in shared.outcomes)]
    schemes = list(dict.fromkeys(o.scheme for o in shared.outcomes))
    for mix in there:
        yield f"{mix.name}: {mix.title}; milliseconds (times faster than the programs started together)"
        yield _row("", [*(task.name for task in mix.tasks), "all"])
        for scheme in schemes:
            problem = next((o.problem for o in shared.outcomes if (o.mix, o.scheme) == (mix.name, scheme)), "")
            columns = [
                _cell(shared.task(mix.name, scheme, t.name), shared.speed(mix.name, scheme, task=t.name))
                for t in mix.tasks
            ]
            columns.append(_cell(shared.overall(mix.name, scheme), shared.speed(mix.name, scheme)))
            yield _row(scheme, columns) if not problem else f"{scheme:<12} {problem}"
        yield _row("bound", [_cell(shared.bound(mix.name, t.name), None) for t in mix.tasks]
                   + [_cell(shared.bound(mix.name), None)])  # fmt: skip
        yield ""
    yield _row("", ["/baseline", "/mps", "/mps-kesco", "of the bound", "first/alone", "first/kesco", "slowest"])
    for scheme in schemes:
        over = [_mean([shared.speed(m.name, scheme, o) for m in there]) for o in ("baseline", "mps", "mps-kesco")]
        over.append(_mean([shared.closeness(m.name, scheme) for m in there]))
        first = [
            _most([_inverse(shared.speed(m.name, scheme, alone, m.tasks[0].name)) for m in there])
            for alone in ("alone", "alone-kesco")
        ]
        slowest = _least([shared.speed(m.name, scheme, task=t.name) for m in there for t in m.tasks])
        yield _row(scheme, [f"{one:.2f}" if one else "-" for one in (*over, *first, slowest)])
    yield "means over the mixes; of the bound: the time with perfect overlap over the time; first/alone: the time of"
    yield "the first task over its time alone, serial and by kesco, the worse mix; slowest: the least speed of any task"
    yield "over its speed among programs started together"


def compared(model: Shared, measured: Shared, mixes: Sequence[Mix]) -> Iterator[str]:
    """How far a model's times are from those that were measured, in percent; a table for each mix, and in all."""
    off: list[float] = []
    for mix in mixes:
        yield f"{mix.name}: the model's time over the measured one, less 1"
        yield _row("", [*(task.name for task in mix.tasks), "all"])
        for scheme in dict.fromkeys(o.scheme for o in model.outcomes):
            pairs = [(model.task(mix.name, scheme, t.name), measured.task(mix.name, scheme, t.name)) for t in mix.tasks]
            pairs.append((model.overall(mix.name, scheme), measured.overall(mix.name, scheme)))
            columns = []
            for one, other in pairs:
                columns.append(f"{one / other - 1:+.0%}" if one and other else "-")
                off += [abs(one / other - 1)] if one and other else []
            yield _row(scheme, columns)
        yield ""
    if off:
        yield f"{len(off)} times; half of them are off by at most {statistics.median(off):.0%}, all by {max(off):.0%}"


def _row(name: str, columns: Sequence[str]) -> str:
    return f"{name:<12} " + " ".join(f"{one:>17}" for one in columns)


def _cell(milliseconds: float | None, speed: float | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds:.1f}" + (f" ({speed:.2f})" if speed else "")


def _mean(values: Sequence[float | None]) -> float | None:
    found = [one for one in values if one is not None]
    return statistics.mean(found) if found and len(found) == len(values) else None


def _most(values: Sequence[float | None]) -> float | None:
    return max((one for one in values if one is not None), default=None)


def _least(values: Sequence[float | None]) -> float | None:
    return min((one for one in values if one is not None), default=None)


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None


def to_json(shared: Shared) -> str:
    """The results as JSON text."""
    outcomes = [asdict(one) for one in shared.outcomes]
    made = {"environment": shared.environment, "plans": shared.plans}
    return json.dumps({"version": VERSION, **made, "mixes": outcomes}, indent=1) + "\n"


def read(path: Path) -> Shared:
    """Results from a file; raises `UsageError` (K524)."""
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["version"] != VERSION:
            raise ValueError(f"version {found['version']}, not {VERSION}")
        outcomes = tuple(
            Outcome(**{**one, "times": {name: tuple(times) for name, times in one["times"].items()}})
            for one in found["mixes"]
        )
        return Shared(outcomes, dict(found["environment"]), dict(found.get("plans", {})))
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"{path} holds no results of mixes: {error}"
        help_ = "scripts/mixes.py --json FILE writes them"
        raise UsageError(Diagnostic(NO_RESULTS, Severity.ERROR, what, help=help_)) from None
