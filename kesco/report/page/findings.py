"""What was gained and what was lost, by function: plain data for the page's template.

In: the outcome for a file and its timelines. Out: for each function what was done, what was lost with the reason and
what the user could do, and the diagnostics whose place is in it. It repeats what `explain` and the diagnostics say,
in their words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kesco.diagnostics import Diagnostic
from kesco.ir.timeline import Timeline
from kesco.report import Function, counted, levels_of
from kesco.report.explain import lost
from kesco.report.page.timeline_view import duration


def findings(
    functions: Sequence[Function], diagnostics: Sequence[Diagnostic], timelines: Sequence[Sequence[Timeline]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """An entry for each function, and the diagnostics that belong to none."""
    left = list(diagnostics)
    found = []
    for number, function in enumerate(functions):
        mine = [one for one in left if _within(one, function)]
        left = [one for one in left if one not in mine]
        runs = timelines[number] if number < len(timelines) else ()
        found.append(
            {
                "name": function.region.function,
                "place": str(function.region.span),
                "line": function.region.span.line,
                "rewritten": function.rewritten,
                "follows": function.follows,
                "why": function.left_because,
                "gained": list(_gained(function, runs)),
                "lost": [{"line": one.line, "what": one.what, "help": one.help} for one in lost(function)],
                "diagnostics": [_said(one) for one in mine],
            }
        )
    return found, [_said(one) for one in left]


def _within(one: Diagnostic, function: Function) -> bool:
    span, place = function.region.span, one.span
    return place is not None and place.path == span.path and span.start <= place.start < max(span.end, span.start + 1)


def _said(one: Diagnostic) -> dict[str, Any]:
    return {
        "code": one.code,
        "severity": one.severity.value,
        "message": one.message,
        "line": one.span.line if one.span is not None else 0,
        "notes": [note.message for note in one.notes],
        "help": one.help,
    }


def _gained(function: Function, runs: Sequence[Timeline]) -> Iterator[str]:
    if not function.rewritten:
        return
    plan, schedule = function.plan, function.schedule
    operations, streams = counted(len(schedule.stream_of), "operation"), counted(schedule.streams, "stream")
    levels = counted(len(levels_of(function)), "level")
    yield f"{operations} on {streams}: up to {function.width} can run at once, in {levels}"
    yield f"{counted(len(plan.waits), 'wait')} between streams; {len(plan.removed)} more are not needed"
    if plan.needless:
        yield f"{counted(len(plan.needless), 'wait')} of the host for the device taken out"
    if plan.replays:
        yield f"{counted(len(plan.replays), 'graph')} instead of single launches"
    if len(runs) > 1 and runs[0].exact and runs[1].end > 0:
        factor = runs[0].end / runs[1].end
        times = f"{duration(runs[1].end)} instead of {duration(runs[0].end)}"
        yield f"{factor:.2f} times as fast as serial in the model: {times}"
