"""Where a text says that each stream has its own memory for a pointer, that memory must be scratch.

In: the program and its regions. Out: what speaks against it, in words. Apart from the order of the device's work, which
takes such memory for what only this stream touches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kesco.ir import program as ir
from kesco.ir.flow import Region
from kesco.ir.scratch import OWN, OWNED
from kesco.source import Span
from kesco.verify.sources import word_of

_NAMED = re.compile(rf"(?<!Kesco\* )(?<!Pointer\* )\b(?:{OWN}|{OWNED})\b(\()?".encode())


def scratch_problems(program: ir.Program, regions: Iterable[Region]) -> Iterator[tuple[Span, str]]:
    """What speaks against the pointers of a file that mean what each stream has for itself."""
    stated = _NAMED.findall(program.text)
    if not stated:
        return
    known = {(one.start, one.end) for region in regions for one in region.scratch}
    nodes = (n for f in program.functions if f.here for n in ir.walk(f.body))
    calls = [n for n in nodes if isinstance(n, ir.Call) and word_of(n) in (OWN, OWNED)]
    wrong = [n for n in calls if not n.arguments or _place(n.arguments[0]) not in known]
    yield from ((n.span, "it is not known that each call fills this memory first, and nothing else") for n in wrong)
    if not wrong and (not all(stated) or len(stated) != len({n.span.start for n in calls})):
        yield Span(program.path, 0, 1, 1, 1), "a stream has memory of its own where it cannot be followed"


def _place(one: ir.Expr) -> tuple[int, int]:
    inner = ir.bare(one)
    span = inner.span if isinstance(inner, (ir.Name, ir.Select, ir.Call)) else None
    return (span.start, span.end) if span is not None else (-1, -1)
