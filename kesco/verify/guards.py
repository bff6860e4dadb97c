"""Which pointers a function compares as the program runs, as its text says.

In: the concurrent text and a function's region. Out: the expressions that are compared. Apart from the order of work
because it is read from the text as it stands: the prologue, which says what comparing means, is compared as text, too.
"""

from __future__ import annotations

import re

from kesco.ir.flow import Region

_COMPARED = re.compile(r"_streams_if_distinct\(|\bkesco_paced\(\d+, ")


def guarded(text: bytes, region: Region) -> set[str]:
    """The expressions that the function's text compares at run time, as they are at its entry."""
    body = text[region.span.start : region.span.end].decode("utf-8", "replace")
    _, found, rest = body.partition("_at_entry[] = {")
    given, _, rest = rest.partition("};")
    if not found or not _COMPARED.search(rest):
        return set()
    return {a.strip().removeprefix("(const void*)") for a in given.split(",")}
