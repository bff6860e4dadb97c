"""A file's functions, planned with their statements in the order in which kesco would issue them.

In: a session, its regions and what was planned for them. Out: an `Ordered` text with the plans for it, or None where no
order is better, and the functions in which the proof did not follow a better one. Apart from the pipeline because it
asks stages again that it has asked, and the proof in between.

1. `issue` says which statements of the functions that are rewritten change places, also of those that are with copies
on streams only where that order lets something run beside them. 2. The text is read again in that
order, and must be the same serial program for the proof: what conflicts is issued in the order of the user's text.
3. It is planned like the user's own text. A function that would stay as it is keeps its order, and all is asked again
without it. What is proven in the end is the output against the user's text, not against this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kesco.planning import plan, plan_all
from kesco.proving import numbered, numbered_results

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.diagnostics import Diagnostic
    from kesco.ir.compilation import FunctionResult
    from kesco.ir.flow import Region
    from kesco.ir.issue import Reordered
    from kesco.ir.program import Program
    from kesco.ir.verdicts import Verdict
    from kesco.model.forecast import Prices
    from kesco.options import Options
    from kesco.session import Session
    from kesco.source import Span


@dataclass(frozen=True, slots=True)
class Ordered:
    """The program with its statements in another order, and what is made of its functions.

    `kept` has the stretches of the user's text in it, `before` takes its places to that text, and `priced` the prices
    of that text's operations to its own.
    """

    program: Program
    functions: tuple[FunctionResult, ...]
    kept: tuple[tuple[int, int, int], ...]
    before: Callable[[Span], Span]
    priced: Callable[[Prices], Prices]

    def back(self, one: Diagnostic) -> Diagnostic:
        """What is said of it, said of the user's text."""
        from kesco.emit.issue import diagnostics_before

        return diagnostics_before(self.before)(one)

    def seen(self) -> tuple[FunctionResult, ...]:
        """The functions with their places in the user's text, for people to read."""
        return tuple(map(self._seen, self.functions))

    def _seen(self, one: FunctionResult) -> FunctionResult:
        def placed(region: Region) -> Region:
            def at(span: Span) -> Span:
                found = self.before(span)
                head = (span.line, span.column) == (region.span.line, region.span.column)  # a function's end has that
                return replace(found, line=whole.line, column=whole.column) if head else found

            whole = self.before(region.span)
            sites = tuple(replace(s, span=at(s.span)) for s in region.sites)
            members = tuple((name, self.before(span)) for name, span in region.members)
            return replace(region, sites=sites, span=whole, members=members)

        given = _said(one.verdict, self) if one.verdict is not None else None
        again = replace(one, region=placed(one.region), verdict=given)
        return replace(again, dfg=replace(one.dfg, region=placed(one.dfg.region)))


def _said(given: Verdict, order: Ordered) -> Verdict:
    loops = tuple(_said(loop, order) for loop in given.loops)
    return replace(given, span=order.before(given.span), loops=loops, lost=tuple(map(order.back, given.lost)))


def ordered(
    session: Session,
    regions: Sequence[Region],
    options: Options,
    prices: Prices | None,
    functions: tuple[FunctionResult, ...],
    weights: Callable[[], Prices],
) -> tuple[Ordered | None, tuple[Region, ...]]:
    """The program in a better order of issue, if there is one, and where the proof does not follow one.

    `functions` are planned as they are written. `weights` are what operations cost, also where nobody asked for that.
    """
    if options.order == "keep":
        return None, ()
    from kesco.emit.issue import places_before, reordered_text

    tried = _with_copies(session.program, regions, options, prices, functions)
    hoped = {one.serial.span: one for one, other in zip(functions, tried, strict=True) if one is not other}
    changes = _wanted(session.program, tried, weights)
    refused: list[Region] = []
    while changes:
        text, kept = reordered_text(session.text, changes)
        before = places_before(session.path, session.text, kept)
        again = session.regions_of(text, streams=False)
        program = session.again
        same = _same(regions, again, (session.program, program), before)
        priced = _priced(session.program, program, before)
        planned = plan_all(program, again, options, priced(prices) if prices is not None else None)
        serial = {(r.function, n): r for n, r in numbered(tuple(regions))}
        results: list[FunctionResult] = []
        good: list[Reordered] = []
        done = True
        for number, one in numbered_results(program, planned):
            found = serial[one.serial.function, number]
            original = found.linked if one.serial.members else found
            assert original is not None
            inside = {original.span, *(span for _, span in original.members)}
            mine = tuple(c for c in changes if c.function in inside)
            results.append(replace(one, before=original, reordered=mine))
            if not mine:
                continue
            follows = all(c.function in same for c in mine)
            if original.span in hoped and not (follows and one.rewritten and _copies_move(one)):
                good += _wanted(session.program, [hoped.pop(original.span)], weights)  # as the copies are
                done = False
            elif one.rewritten and follows:
                good += mine
            else:
                refused += [original] if one.rewritten else []
                done = False
        if done:
            return Ordered(program, tuple(results), kept, before, priced), tuple(refused)
        changes = good
    return None, tuple(refused)


def _with_copies(
    program: Program,
    regions: Sequence[Region],
    options: Options,
    prices: Prices | None,
    functions: Sequence[FunctionResult],
) -> list[FunctionResult]:
    """The functions with their copies on streams, also where that does not pay before the order is a better one."""
    if options.copies != "auto" or options.emit != "streams" or program.tasks:
        return list(functions)
    asked = replace(options, copies="move")
    found = []
    for one in functions:
        region = next((r for r in regions if (r.function, r.span) == (one.serial.function, one.serial.span)), None)
        more = plan(program, region, asked, prices) if region is not None and not _copies_move(one) else one
        found.append(more if more.rewritten else one)
    return found


def _copies_move(one: FunctionResult) -> bool:
    from kesco.ir.flow import Role

    return any(s.held is not None and s.role is Role.MOVABLE for s in one.region.sites)


def _wanted(program: Program, functions: Sequence[FunctionResult], weights: Callable[[], Prices]) -> list[Reordered]:
    from kesco.issue import reorderings

    found = []
    for one in (f for f in functions if not f.turns):  # what a turn is given, and in what order, is the user's
        inside = {one.serial.span, *(span for _, span in one.serial.members)}
        for function in (f for f in program.functions if f.here and f.span in inside):
            found += reorderings(program, function, one, weights)
    return found


def _same(
    regions: Sequence[Region],
    again: Sequence[Region],
    programs: tuple[Program, Program],
    before: Callable[[Span], Span],
) -> set[Span]:
    """The functions that are the same serial program in both texts, by the proof; places are those of the first.

    The proof pairs operations by what they are called and touch. It must pair each with itself: otherwise it would not
    see two of one name change places, or would see what is not there.
    """
    from kesco.verify.match import is_idle, is_sync, match
    from kesco.verify.order import verify_region
    from kesco.verify.values import value_problems

    found = set()
    for one, other in zip(regions, again, strict=True):
        pairs = [(one.sites[s], c) for c, s in zip(other.sites, match(one, other).to_serial, strict=True) if s >= 0]
        themselves = all(
            _bytes(s.span) == _bytes(before(c.span))
            and [i.value for i in s.iterations] == [i.value for i in c.iterations]
            for s, c in pairs
        )
        every = {s.number for s, _ in pairs} >= {s.number for s in one.sites if not (is_sync(s) or is_idle(s))}
        follows = themselves and every and not other.serial_because and verify_region(one, other).ok
        if follows and not value_problems(one, other, *programs):
            found.add(one.span)
    return found


def _bytes(span: Span) -> tuple[str, int, int]:
    return span.path, span.start, span.end


def _priced(program: Program, again: Program, before: Callable[[Span], Span]) -> Callable[[Prices], Prices]:
    """Gives the operations of the text that was read again the prices of those that they were."""
    numbers = {one.span: one.number for one in program.operations}
    fresh = again.operations[len(program.operations) :]
    was = {one.number: numbers[at] for one in fresh if (at := before(one.span)) in numbers}

    def priced(prices: Prices) -> Prices:
        return replace(prices, of={new: prices.of[old] for new, old in was.items() if old in prices.of})

    return priced
