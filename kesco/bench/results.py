"""What was measured, as numbers one can compare: medians, spreads, ratios, geometric means; and the JSON that keeps it.

A speed-up is the serial program's median over the variant's: above 1 is faster. The spread is the distance between the
quartiles, as a part of the median.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kesco.bench.measure import Row, Setting
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

NO_RESULTS = "K524"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Results:
    """Rows, and where and how they came to be (GPU, driver, CUDA, commit, settings); `plans` are for `figures`."""

    rows: tuple[Row, ...]
    environment: dict[str, str]
    plans: dict[str, str] = field(default_factory=dict)

    def settings(self) -> list[Setting]:
        """The settings measured, in order."""
        return list(dict.fromkeys(row.setting for row in self.rows))

    def find(self, setting: Setting, variant: str) -> Row | None:
        """The row of a variant, if it has times."""
        return next((r for r in self.rows if r.setting == setting and r.variant == variant and r.times), None)

    def speedup(self, setting: Setting, variant: str, over: str = "serial") -> float | None:
        """How many times faster than another variant, by medians; None where one of them has no times."""
        this, other = self.find(setting, variant), self.find(setting, over)
        return median(other) / median(this) if this and other else None

    def mean_speedup(self, settings: Iterable[Setting], variant: str, over: str = "serial") -> float | None:
        """The geometric mean over settings, as far as both variants have times."""
        return geometric_mean([s for one in settings if (s := self.speedup(one, variant, over)) is not None])

    @property
    def problems(self) -> list[Row]:
        """The rows that failed or computed something else."""
        return [row for row in self.rows if row.problem]


def median(row: Row) -> float:
    """The median time, in milliseconds."""
    return statistics.median(row.times)


def spread(row: Row) -> float:
    """The distance between the quartiles as a part of the median; 0 for fewer than four times."""
    if len(row.times) < 4:
        return 0.0
    low, middle, high = statistics.quantiles(row.times, n=4)
    return (high - low) / middle


def geometric_mean(values: Sequence[float]) -> float | None:
    """The geometric mean, None of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def to_json(results: Results) -> str:
    """The results as JSON text, a row on each line."""
    made = {"version": VERSION, "environment": results.environment, "plans": results.plans}
    rows = ",\n".join(f"  {json.dumps(asdict(row))}" for row in results.rows)
    return f'{json.dumps(made, indent=1).removesuffix("}").rstrip()},\n "rows": [\n{rows}\n ]\n}}\n'


def read(path: Path) -> Results:
    """Results from a file; raises `UsageError` (K524)."""
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["version"] != VERSION:
            raise ValueError(f"version {found['version']}, not {VERSION}")
        rows = tuple(
            Row(**{**one, "setting": Setting(**one["setting"]), "times": tuple(one["times"])}) for one in found["rows"]
        )
        return Results(rows, dict(found["environment"]), dict(found.get("plans", {})))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            Diagnostic(
                NO_RESULTS,
                Severity.ERROR,
                f"{path} holds no results of a benchmark: {error}",
                help="'kesco bench --json FILE' writes them",
            )
        ) from None
