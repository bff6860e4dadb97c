"""Watch what kesco makes of programs: streams, waits and modelled time may not get worse unnoticed.

In: files, costs and a baseline, a JSON file kept beside them. Out: what changed. For each function of each file the
baseline has the number of streams and waits, the schedule (operation by operation) and the model's microseconds. More
waits, more time, or a function that is no longer rewritten is a regression; any other difference is only told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kesco.bench.costs import Costs
from kesco.bench.model import predict
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.options import Options
from kesco.pipeline import FunctionResult, compile_file

NO_BASELINE = "K527"
WORSE = "K528"
CHANGED = "K529"
_SLACK = 1.005
"""Modelled times are rounded when written."""


@dataclass(frozen=True, slots=True)
class State:
    """What kesco makes of one function; `schedule` is ``label@stream`` for each operation, `model_us` microseconds."""

    rewritten: bool
    streams: int
    waits: int
    model_us: float
    serial_us: float
    schedule: str


def states(
    paths: Iterable[Path], options: Options, costs: Costs, settings: Mapping[str, tuple[str, int]] | None = None
) -> dict[str, State]:
    """The state of every function that launches something, as ``file:function``.

    `settings` says for a file's path which costs to take and how often loops run; without it every kernel costs the
    same and every loop runs once.
    """
    found: dict[str, State] = {}
    for path in paths:
        setting, passes = (settings or {}).get(str(path), ("", 1))
        for function in compile_file(str(path), options).functions:
            if function.schedule.stream_of:
                found[f"{path}:{function.region.function}"] = _state(function, costs, setting, passes)
    return found


def _state(function: FunctionResult, costs: Costs, setting: str, passes: int) -> State:
    times = predict(function, costs, setting, passes)
    sites = function.region.sites
    return State(
        function.rewritten,
        function.schedule.streams if function.rewritten else 1,
        len(function.plan.waits) if function.rewritten else 0,
        round(times["kesco"], 1),
        round(times["serial"], 1),
        " ".join(f"{sites[n].label}@{stream}" for n, stream in function.schedule.stream_of)
        if function.rewritten
        else "",
    )


def compare(baseline: Mapping[str, State], found: Mapping[str, State]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """What got worse, and what else is different."""
    worse, changed = [], []
    for name in sorted(baseline.keys() | found.keys()):
        old, new = baseline.get(name), found.get(name)
        if old == new:
            continue
        if old is None or new is None:
            what = "is not in the baseline" if old is None else "is no longer there"
            changed.append(_told(CHANGED, Severity.WARNING, f"{name} {what}"))
            continue
        reasons = []
        if old.rewritten and not new.rewritten:
            reasons.append("it is no longer rewritten")
        if new.waits > old.waits:
            reasons.append(f"{old.waits} waits became {new.waits}")
        if new.model_us > old.model_us * _SLACK:
            reasons.append(f"{old.model_us:g} µs became {new.model_us:g} in the model")
        if reasons:
            worse.append(_told(WORSE, Severity.ERROR, f"{name}: {'; '.join(reasons)}"))
        else:
            changed.append(_told(CHANGED, Severity.WARNING, f"{name}: {_difference(old, new)}"))
    return worse, changed


def _difference(old: State, new: State) -> str:
    parts = [
        f"{field}: {before} became {after}"
        for field, before in asdict(old).items()
        if field != "schedule" and (after := getattr(new, field)) != before
    ]
    return "; ".join(parts) or "another schedule of the same length"


def _told(code: str, severity: Severity, message: str) -> Diagnostic:
    return Diagnostic(code, severity, message, help="'kesco regress --update' accepts what is there now")


def to_json(found: Mapping[str, State]) -> str:
    """A baseline as JSON text."""
    return json.dumps({name: asdict(state) for name, state in sorted(found.items())}, indent=1) + "\n"


def read(path: Path) -> dict[str, State]:
    """A baseline; raises `UsageError` (K527)."""
    try:
        return {name: State(**facts) for name, facts in json.loads(path.read_text("utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            Diagnostic(
                NO_BASELINE,
                Severity.ERROR,
                f"{path} is no baseline: {error}",
                help="'kesco regress --update' writes one",
            )
        ) from None
