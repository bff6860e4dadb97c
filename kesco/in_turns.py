"""Turns of loops beside each other, where that overlaps more than one turn behind the other.

In: a function as it is planned one turn behind the other, and what plans it otherwise. Out: a `FunctionResult` in which
turns run beside each other, or None. Apart from planning because that asks for it in the end, and is asked by it.

1. `rings` says of which loops that may be asked, with copies where they are and with copies on streams. 2. A loop whose
operations are on several streams already stays as it is. 3. One in which the host waits in each turn gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kesco.ir.flow import Held, Region, Role
from kesco.source import Span

if TYPE_CHECKING:
    from kesco.ir.compilation import FunctionResult
    from kesco.ir.program import Program
    from kesco.ir.turns import Turns
    from kesco.options import Options


def in_turns(
    program: Program,
    region: Region,
    options: Options,
    result: FunctionResult,
    ask: Callable[[Region, Region | None, Options, tuple[Turns, ...]], FunctionResult],
) -> FunctionResult | None:
    """The function with turns of its loops beside each other; `ask` plans it, told what it was before copies moved."""
    from kesco.rings import as_planned, rings
    from kesco.transfers.copies import moved

    if not options.turns or options.emit != "streams" or options.prefetch or options.memory != "keep" or program.tasks:
        return None
    if options.streams == 1 or options.strategy == "serial" or not region.loops:
        return None
    renamed = {n for n, one in enumerate(program.operations) if one.rename is not None and not one.stuck}
    for copies in ("keep",) if options.copies == "keep" else ("keep", "move"):
        more = region if copies == "keep" else moved(region, renamed)
        found = rings(program, more)
        if not found or (copies == "move" and more is region) or any(_overlaps(result, one.span) for one in found):
            continue
        before = region if copies == "move" else None
        planned = ask(as_planned(more, found), before, replace(options, copies=copies), found)
        if planned.rewritten:
            return replace(planned, before=region)
    return None


def host_waits_in(result: FunctionResult) -> bool:
    """Whether the host waits for the device in each turn of such a loop, so that none overlaps another."""
    gone = result.plan.needless
    waits = [s.span.start for s in result.region.sites if s.role is Role.DEVICE_SYNC and s.number not in gone]
    waits += [s.span.start for s in result.region.sites if s.held is Held.ALL and s.role is Role.MOVABLE]
    waits += (*result.fetches.before, *result.fetches.ends) if result.fetches is not None else ()
    return any(one.span.start < at < one.span.end for at in waits for one in result.turns)


def _overlaps(result: FunctionResult, loop: Span) -> bool:
    """Whether operations of a loop are on several streams already."""
    streams = result.schedule.as_dict()
    inside = (s.number for s in result.region.sites if loop.start <= s.span.start < loop.end)
    return result.rewritten and len({streams[number] for number in inside if number in streams}) > 1
