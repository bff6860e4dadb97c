"""One execution by itself: the order of issue is what is meant → pairs that conflict and are not ordered.

In: an `Execution`, and what tells which bytes a launch touches. Out: `Alone`. A pair is

- *ordered* where the first is over, on each way there, when the second may begin: by a stream, by an event, or by the
  host;
- a *race* where the two are on streams that are known and touch a byte for sure, one of them happens whenever the
  other does, and nothing orders them on any way;
- *not known* otherwise, with what is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kesco.ir.access import BufferKind
from kesco.ir.execution import LEGACY, Execution, Step, StepKind
from kesco.ir.touched import Asked
from kesco.verify.executions.conflicts import Conflict, Conflicts
from kesco.verify.executions.order import DONE, Order


@dataclass(frozen=True, slots=True)
class Finding:
    """Two steps that conflict and are not ordered; `doubt`: why that may be none the less. `advice`: what would."""

    first: Step
    second: Step
    conflict: Conflict
    doubt: str
    advice: str


@dataclass(frozen=True, slots=True)
class Alone:
    """What was found; `ordered` has the number of pairs by what orders them."""

    findings: tuple[Finding, ...] = ()
    ordered: Mapping[str, int] = field(default_factory=dict)
    work: int = 0

    @property
    def races(self) -> tuple[Finding, ...]:
        """The findings that are certain."""
        return tuple(one for one in self.findings if not one.doubt)


def judged(execution: Execution, asked: Asked | None = None) -> tuple[Alone, Order, Conflicts]:
    """What is found in an execution, with what it was found by."""
    order, conflicts = Order(execution), Conflicts(execution, asked)
    findings: list[Finding] = []
    counted: Counter[str] = Counter()
    for first, second in pairs(execution, order):
        over = order.is_over(first.number, second)
        if over and not order.reaches(first.number, second.number):
            continue
        if not conflicts.may(first, second):
            continue
        if over:
            counted[order.by_what(first, second)] += 1
            continue
        conflict = conflicts.of(first, second)
        if conflict is not None and conflict.buffer.kind is not BufferKind.ORDER:
            doubt = conflict.doubt or _doubt(execution, order, first, second)
            findings.append(Finding(first, second, conflict, doubt, _advice(execution, order, first, second)))
    work = sum(one.is_work for one in execution.steps)
    return Alone(tuple(findings), dict(counted), work), order, conflicts


def pairs(execution: Execution, order: Order) -> Iterator[tuple[Step, Step]]:
    """Work, and what touches memory and may come after it."""
    steps = [one for one in execution.steps if one.accesses]
    work = [one for one in steps if one.is_work or (one.kind is StepKind.FREE and one.streams)]
    for second in steps:
        for first in work:
            if first.number in order.always[second.number] or order.reaches(first.number, second.number):
                yield first, second


def _doubt(execution: Execution, order: Order, first: Step, second: Step) -> str:
    """Why two steps may be ordered though it could not be shown."""
    for one in (first, second):
        if one.astray or not all(handle.certain for handle in one.streams):
            return f"it is not known on which stream '{one.name}' is"
    if order.may_be_over(first.number, second):
        return "they are ordered on some ways, or by what is not known for certain"
    if not (_always_before(execution, first, second) or _always_behind(execution, first, second)):
        return "it is not known whether both happen"
    return ""


def _always_before(execution: Execution, first: Step, second: Step) -> bool:
    """Whether the first has happened whenever the second does."""
    return second.number not in _behind(execution, 0, first.number) or first.number == 0


def _always_behind(execution: Execution, first: Step, second: Step) -> bool:
    """Whether the second happens whenever the first did, unless the program is left early."""
    ends = {one.number for one in execution.steps if one.kind is StepKind.EXIT}
    behind = _behind(execution, first.number, second.number)
    return bool(ends) and not ends & behind


def _behind(execution: Execution, start: int, without: int) -> set[int]:
    """The steps behind one, on ways that do not go through another."""
    found: set[int] = set()
    todo = [start]
    while todo:
        for number in execution.steps[todo.pop()].after:
            if number != without and number not in found:
                found.add(number)
                todo.append(number)
    return found


def _advice(execution: Execution, order: Order, first: Step, second: Step) -> str:
    """The wait that is missing."""
    on = first.streams[0].name if len(first.streams) == 1 else "its stream"
    if second.kind is StepKind.HOST:
        return f"synchronize with {_stream(on)} before line {second.span.line}"
    to = second.streams[0].name if len(second.streams) == 1 else "its stream"
    mask = order.always[second.number].get(first.number, DONE)
    for one in dict.fromkeys(e for step in execution.steps for e in step.events):
        if mask != DONE and mask & order.bit(one) and one.certain:
            return f"let {_stream(to)} wait for {one.name} before line {second.span.line}: it is recorded behind this"
    advice = f"record an event behind line {first.span.line}, and let {_stream(to)} wait for it"
    loose = [s.name for step in (first, second) for s in step.streams if s.blocking is False]
    if loose and any(s.key == LEGACY.key for step in (first, second) for s in step.streams):
        advice += f"; the default stream and {loose[0]}, which is non-blocking, do not wait for each other"
    return advice


def _stream(name: str) -> str:
    return name if "stream" in name else f"stream {name}"
