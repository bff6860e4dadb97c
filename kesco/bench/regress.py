"""Watch what kesco makes of programs: no operation, wait or microsecond may get worse unnoticed.

In: programs, costs and a baseline, a JSON file kept beside them. Out: what changed. For each program the baseline has
its plan (`plans`) line by line, with its counts and its digest, and the model's microseconds. A function that is no
longer rewritten, an operation that goes to the default stream, more waits, fewer copies on streams, fewer graphs or
more time is a regression; any other difference is only told.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kesco.bench.costs import Costs
from kesco.bench.model import predict
from kesco.bench.programs import Made
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

NO_BASELINE = "K527"
WORSE = "K528"
CHANGED = "K529"
_SLACK = 1.005
"""Modelled times are rounded when written."""


@dataclass(frozen=True, slots=True)
class State:
    """What kesco makes of one program; `rewritten` functions, `default` operations by name, `model_us` microseconds."""

    digest: str
    rewritten: int
    streams: int
    operations: int
    default: dict[str, int]
    waits: int
    moved: int
    graphs: int
    model_us: float
    serial_us: float
    plan: list[str]


def states(programs: Iterable[Made], costs: Costs) -> dict[str, State]:
    """The state of every program that gives the device work; what no costs are known of costs the same everywhere."""
    return {one.name: _state(one, costs) for one in programs if one.plan.operations}


def _state(one: Made, costs: Costs) -> State:
    plan = one.plan
    times = [predict(f, costs, one.setting, one.passes) for f in one.functions if f.schedule.stream_of]
    model, serial = (round(sum(each[name] for each in times), 1) for name in ("kesco", "serial"))
    return State(plan.digest, sum(f.rewritten for f in one.functions), plan.streams, plan.operations,
                 dict(sorted(Counter(plan.default).items())), plan.waits, plan.moved, plan.graphs, model, serial,
                 list(plan.lines))  # fmt: skip


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
        elif reasons := list(_worse(old, new)):
            worse.append(_told(WORSE, Severity.ERROR, f"{name}: {'; '.join(reasons)}"))
        else:
            changed.append(_told(CHANGED, Severity.WARNING, f"{name}: {_difference(old, new)}"))
    return worse, changed


def _worse(old: State, new: State) -> Iterable[str]:
    if new.rewritten < old.rewritten:
        yield f"{old.rewritten - new.rewritten} of {old.rewritten} functions no longer rewritten"
    if gone := Counter(new.default) - Counter(old.default):
        yield f"on the default stream now: {', '.join(f'{name} ({many})' for name, many in sorted(gone.items()))}"
    if new.waits > old.waits:
        yield f"{old.waits} waits became {new.waits}"
    if new.moved < old.moved:
        yield f"{old.moved} copies on streams became {new.moved}"
    if new.graphs < old.graphs:
        yield f"{old.graphs} graphs became {new.graphs}"
    if new.model_us > old.model_us * _SLACK:
        yield f"{old.model_us:g} µs became {new.model_us:g} in the model"


def _difference(old: State, new: State) -> str:
    parts = [
        f"{field}: {before} became {after}"
        for field, before in asdict(old).items()
        if isinstance(before, int | float) and (after := getattr(new, field)) != before
    ]
    return "; ".join(parts) or "another plan of the same counts"


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
        away = "move it away, and " if path.exists() else ""
        help_ = f"{away}'kesco regress --update' writes one"
        raise UsageError(
            Diagnostic(NO_BASELINE, Severity.ERROR, f"{path} is no baseline: {error}", help=help_)
        ) from None
