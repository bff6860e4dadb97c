"""What the author is told of managed memory: what could move ahead of the kernels, and what no longer moves.

In: the functions into which prefetches would be put, and how many; or a function with memsets in place of the host's
stores. Out: diagnostics. Apart from the other remarks because most of it is about what was not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.flow import Region
from kesco.ir.transfers import Zeroes

_HELP = "'--prefetch' puts them in; without it the pages move on demand"
_STAYS = "without '--prefetch' the host stores them, and each time the page moves to it and back"
_MOST = 3


def said_of_managed(found: Sequence[tuple[Region, int]]) -> tuple[Diagnostic, ...]:
    """That prefetches could be put in (K220), once for a file."""
    if not found:
        return ()
    (first, some), *others = found
    many = f"{some} prefetches" if some > 1 else "one prefetch"
    message = f"'{first.function}': {many} of managed memory could be put in"
    notes = [Note(f"and {count} in '{region.function}'", region.span) for region, count in others]
    return (Diagnostic("K220", Severity.REMARK, message, first.span, tuple(notes[:_MOST]), _HELP),)


def said_of_zeroes(region: Region, zeroes: Zeroes | None) -> list[Diagnostic]:
    """Which stores of zero are memsets (K222)."""
    if zeroes is None:
        return []
    sites = {s.operation: s for s in reversed(region.sites) if s.operation in zeroes.operations}
    many = f"{len(sites)} stores of zero are memsets" if len(sites) > 1 else "one store of zero is a memset"
    waits = ", for which the host waits behind the loop" if zeroes.behind else ""
    notes = [Note(f"of '{s.accesses[0].buffer.name}'", s.span) for s in sorted(sites.values(), key=lambda s: s.number)]
    message = f"'{region.function}': {many}{waits}"
    return [Diagnostic("K222", Severity.REMARK, message, region.span, tuple(notes[:_MOST]), _STAYS)]
