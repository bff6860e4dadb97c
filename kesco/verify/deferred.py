"""Whether what a text defers may be run where it is: ``turn_at(program, written)``, ``deferred_problems(…)``.

In: a text without the lines that defer (`emit.deferred`), parsed, and where these stood. Out: the loop that each is
about; then, with what its statements do (`ir.deferred.TurnFacts`), what speaks against it.

What a turn keeps is run in the next one, or behind the loop. So it changes places with the loop's head, with what
stands behind it in the turn, and with what stands ahead of where it is run: it may meet none of that. What is run last
must stand right behind the loop, and what is kept must neither leave the loop, nor be entered from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kesco.ir import program as ir
from kesco.ir.deferred import AROUND, Turn, TurnFacts, Written, place_of, statements_of
from kesco.source import Span

_NOTHING = re.compile(rb"(?:\s|;|//[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_IN_FRONT = re.compile(rb"(?:\s|//[^\n]*\n|/\*.*?\*/|#[ \t]*pragma[^\n]*\n|\[\[[^\]]*\]\])*", re.DOTALL)


def turn_at(program: ir.Program, one: Written, others: Sequence[Written]) -> Turn | None:
    """The loop that lines at these places are about; None if they do not stand around and in one as they must.

    `others` may keep what stands behind, and run it later.
    """
    for function in (f for f in program.functions if f.here and not f.template):
        if not function.span.start <= one.made < function.span.end:
            continue
        if any(isinstance(n, ir.Obstacle) for n in ir.walk(function.body)):
            return None
        for loop in (n for n in ir.walk(function.body) if isinstance(n, ir.Loop)):
            if _IN_FRONT.fullmatch(program.text, one.made, loop.span.start) and isinstance(loop.inner, ir.Block):
                return _turn(program, function, loop, loop.inner, one, others)
    return None


def _turn(
    program: ir.Program,
    function: ir.Function,
    loop: ir.Loop,
    body: ir.Block,
    one: Written,
    others: Sequence[Written],
) -> Turn | None:
    groups = statements_of(body)
    places = [place_of(group) for group in groups]
    braces = program.text[body.span.start : body.span.start + 1] + program.text[body.span.end - 1 : body.span.end]
    kept, last = (_number(places, at) for at in (one.kept, one.end))
    if braces != b"{}" or body.end >= 0 or kept is None or last is None or not 0 < kept < last:
        return None
    if not _NOTHING.fullmatch(program.text, loop.span.end, one.last) or _number(places, one.due) is None:
        return None
    if not body.span.start < one.due < one.kept < one.end < body.span.end:
        return None
    if any(_leaves(each) for group in groups[kept:last] for each in group):
        return None
    beyond = last
    for other in others:
        behind, end = (_number(places, at) for at in (other.kept, other.end))
        later = one.due < other.due < one.kept and other.made < one.made and one.last < other.last
        if later and behind == last and end is not None and body.span.start < other.kept < body.span.end:
            beyond = end
    begin, ends = body.span.start, body.span.end - 1
    return Turn(function.name, loop.number, loop.span, begin, ends, tuple(places), kept, last, beyond)


def _number(places: Sequence[Span], offset: int) -> int | None:
    """The number of the statement that an offset is in front of; None if it is inside one."""
    if any(one.start < offset < one.end for one in places):
        return None
    return sum(one.end <= offset for one in places)


def _leaves(node: ir.Stmt, *, inner: bool = False) -> bool:
    if isinstance(node, ir.Leave):
        return node.how in ("return", "throw") or not inner
    if isinstance(node, (ir.Obstacle, ir.Case)) and not inner:
        return True
    inner = inner or isinstance(node, (ir.Loop, ir.Switch))
    return any(_leaves(one, inner=inner) for one in ir.children(node) if isinstance(one, ir.Stmt))


def deferred_problems(found: Sequence[tuple[Written, Turn, TurnFacts]]) -> list[tuple[Span, str]]:
    """What speaks against each, in words, with its place."""
    problems: list[tuple[Span, str]] = []
    for one, turn, facts in found:
        due = _number(turn.statements, one.due)
        passed = {AROUND, *range(due if due is not None else turn.kept)}
        if facts.why:
            problems.append((turn.whole, f"what is kept for the next turn cannot be: {facts.why}"))
        elif passed & facts.meets:
            number = min(passed & facts.meets)
            place = turn.whole if number == AROUND else turn.statements[number]
            problems.append((place, "what the turn before has kept must be done before this"))
        elif set(one.held) != set(facts.held):
            problems.append((turn.whole, "what is kept for the next turn holds other variables than it must"))
    return problems
