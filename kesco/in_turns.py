"""Turns of loops beside each other, where that overlaps more than one turn behind the other.

In: a function as it is planned one turn behind the other, and what plans it otherwise. Out: a `FunctionResult` in which
turns run beside each other, or the given one. Apart from planning because that asks for it in the end, and is asked by
it.

1. `rings` says of which loops that may be asked, with copies where they are and with copies on streams. 2. A loop whose
operations are on several streams already stays as it is, unless the host waits in each turn of it. 3. One in which it
still waits then gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from kesco.ir.flow import Held, Region, Role, Site, SiteKind
from kesco.ir.tree import Loop
from kesco.source import Span

if TYPE_CHECKING:
    from kesco.ir.compilation import FunctionResult
    from kesco.ir.program import Program
    from kesco.ir.turns import Turns
    from kesco.options import Options

_WORK = (SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET)


def in_turns(
    program: Program,
    region: Region,
    options: Options,
    result: FunctionResult,
    ask: Callable[[Region, Region | None, Options, tuple[Turns, ...]], FunctionResult],
) -> FunctionResult:
    """The function with turns of its loops beside each other; `ask` plans it, told what it was before copies moved.

    One of which nothing is rewritten, since the host waits in each turn, says so.
    """
    from kesco.remarks.verdicts import HELD, NOTHING
    from kesco.rings import as_planned, is_in
    from kesco.transfers.copies import moved
    from kesco.transfers.pinning import with_pins

    if not _is_asked(options) or program.tasks or not region.loops:
        return result
    renamed = {n for n, one in enumerate(program.operations) if (one.rename or one.call) and not one.stuck}
    for copies in ("keep",) if options.copies == "keep" else ("keep", "move"):
        more = region if copies == "keep" else moved(region, renamed, taking=True)
        found = _rings(program, more)
        apart = {s.operation for s in more.sites if s.takes and not any(is_in(s, one.span) for one in found)}
        if copies == "move" and apart:
            more = moved(region, renamed - apart, taking=True)
            found = _rings(program, more)
        if not found or (copies == "move" and more is region) or any(_overlaps(result, one) for one in found):
            continue
        if copies == "move":
            found = tuple(with_pins(program, more, one) for one in found)
        before = region if copies == "move" else None
        planned = ask(as_planned(more, found), before, replace(options, copies=copies), found)
        if planned.rewritten:
            turns = tuple(replace(one, streams=_width(planned, one.span)) for one in planned.turns)
            return replace(planned, before=region, turns=turns)
        held = _waits_in(planned, planned.turns)
        if held is not None and result.left_because == NOTHING:
            loop = next(one for one in planned.turns if is_in(held, one.whole))
            why = f"turns of the loop in line {loop.span.line} could overlap, {HELD} '{held.label}'"
            result = replace(result, left_because=why)
    return result


def _rings(program: Program, region: Region) -> tuple[Turns, ...]:
    """The loops of a region whose turns may overlap."""
    from kesco.rings import rings
    from kesco.transfers.harmless import Harmless

    held = (s for s in region.sites if (s.kind is SiteKind.COPY and s.held is not None) or s.holds)
    return rings(program, region, Harmless(program, frozenset(s.operation for s in held)).statement)


def _width(result: FunctionResult, loop: Span) -> int:
    """From the first stream of the operations in a loop to the last."""
    used = {result.schedule.as_dict()[number] for number in _inside(result, loop)}
    return max(used) - min(used) + 1 if used else 1


def may_turn(results: Iterable[FunctionResult], options: Options) -> frozenset[int]:
    """The outermost loops of known trips in which there is work, on one stream at most: their turns may overlap."""
    streams: dict[int, set[int]] = {}
    for one in results if _is_asked(options) else ():
        given = one.schedule.as_dict() if one.rewritten else {}
        for site in (s for s in one.region.sites if s.iterations and s.kind in _WORK):
            at = given.get(site.number)
            streams.setdefault(site.iterations[0].loop, set()).update(() if at is None else (at,))
    return frozenset(number for number, used in streams.items() if len(used) < 2)


def turning(program: Program, results: Iterable[FunctionResult]) -> frozenset[int]:
    """The loops whose turns run beside each other, and those around them."""
    from kesco.ir.walking import walk

    spans = {turns.whole for one in results for turns in one.turns}
    nodes = (node for function in program.functions for node in walk(function.body))
    return frozenset(
        node.number for node in nodes if isinstance(node, Loop) and any(_is_in(one, node.span) for one in spans)
    )


def _is_in(one: Span, other: Span) -> bool:
    return one.path == other.path and other.start <= one.start and one.end <= other.end


def host_waits_in(result: FunctionResult, loops: Iterable[Turns]) -> bool:
    """Whether the host waits for the device in each turn of one of these loops, so that none overlaps another."""
    return _waits_in(result, loops) is not None


def _waits_in(result: FunctionResult, loops: Iterable[Turns]) -> Site | None:
    """What the host waits for in each turn of one of these loops."""
    gone, sites = result.plan.needless, result.region.sites
    waits = [(s.span.start, s) for s in sites if s.role is Role.DEVICE_SYNC and s.number not in gone]
    keeping = (s for s in sites if s.held is Held.ALL or (s.holds and not s.later))
    waits += [(s.span.start, s) for s in keeping if s.role is Role.MOVABLE]
    if (fetches := result.fetches) is not None:
        later = next((s for s in sites if s.operation in fetches.operations), None)
        waits += [(at, later) for at in (*fetches.before, *fetches.ends) if later is not None]
    return next((s for at, s in waits for one in loops if one.whole.start < at < one.whole.end), None)


def _is_asked(options: Options) -> bool:
    plain = options.emit == "streams" and not options.prefetch and options.memory == "keep"
    return options.turns and plain and options.streams != 1 and options.strategy != "serial"


def _overlaps(result: FunctionResult, loop: Turns) -> bool:
    """Whether operations of a loop are on several streams already, for which the host does not wait in each turn."""
    streams = result.schedule.as_dict()
    several = len({streams[number] for number in _inside(result, loop.span)}) > 1
    return result.rewritten and several and not host_waits_in(result, (loop,))


def _inside(result: FunctionResult, loop: Span) -> list[int]:
    sites = [s for s in result.region.sites if loop.start <= s.span.start < loop.end]
    return [s.number for s in sites if s.number in result.schedule.as_dict()]
