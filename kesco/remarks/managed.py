"""What the author is told of managed memory whose pages could move ahead of the kernels: ``said_of_managed(…)``.

In: the functions into which prefetches would be put, and how many. Out: one diagnostic for the file. Apart from the
other remarks because it is about what was not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.flow import Region

_HELP = "'--prefetch' puts them in; without it the pages move on demand"
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
