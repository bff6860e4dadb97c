"""What became of each function's concurrency, with the true reason where it stays serial: ``judged(…)``.

In: the program, its regions and what was planned for them. Out: the same results with a `Verdict` each. Apart from the
remarks because it asks for another plan: where a function stays serial though it may have lost something, it is tried
whether its copies on streams would overlap, which is a help that helps and knows more than the verdict did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kesco.ir.compilation import FunctionResult
    from kesco.ir.flow import Region
    from kesco.ir.program import Program
    from kesco.remarks.independence import Independence


def judged(
    program: Program,
    regions: Sequence[Region],
    results: Sequence[FunctionResult],
    on_streams: Callable[[FunctionResult], FunctionResult] | None,
) -> tuple[FunctionResult, ...]:
    """The results with their verdicts; `on_streams` plans one with its copies on streams, None if that was decided."""
    from kesco.ir.verdicts import Word
    from kesco.remarks.facts import Facts
    from kesco.remarks.independence import Independence
    from kesco.remarks.lost import in_words
    from kesco.remarks.verdicts import advice, reason, verdict

    facts, unlinked = Facts(program, regions), {region.span: region for region in regions}
    told = []
    for one in results:
        found = Independence(one.dfg.region, facts)
        given = verdict(one, found)
        if given is None:
            told.append(one)
            continue
        moves = frozenset[tuple[int, int]]()
        if on_streams is not None and not one.rewritten and given.word in (Word.LOST, Word.UNKNOWN):
            tried = on_streams(one)
            moves = Independence(tried.dfg.region, facts).with_copies if tried.rewritten else moves
        if moves:
            found = Independence(one.dfg.region, facts, moves)
            given = verdict(one, found) or given
        lost = in_words(found, given, regions, moves)
        if one.region.members:
            lost += in_words(_calls_again(Independence(unlinked[one.region.span], facts)), given, regions, moves)
        given = replace(given, lost=tuple(lost))
        given = replace(given, reason=reason(one.left_because, given))
        given = replace(given, help=advice(given))
        told.append(replace(one, verdict=given, left_because=given.reason or one.left_because))
    return tuple(told)


def _calls_again(found: Independence) -> Independence:
    """Of the pairs of a function only the calls of one and the same: where calls are a part of it, these are one."""
    calls = found.facts.calls
    known = (p for p in found.pairs if p.circle is None and p.first.operation in calls)
    found.pairs = tuple(p for p in known if calls[p.first.operation] is calls.get(p.second.operation))
    return found
