"""Counters of range-based loops: the lines that bring them in, where what was inserted asks which trip it is.

In: the program, functions of it, and the inserted texts. Out: edits, and lines in front of operations. Apart from the
rest of the emitter since a counter is all that the text lacks there: everything else names it like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kesco.emit.edits import Edit, line_indent, newline_of
from kesco.emit.places import lines_before
from kesco.ir import program as ir
from kesco.ir.ranges import COUNTER, Ranged, range_loops

_OUTSIDE = -100  # of what else stands there
_AHEAD = -1  # of what waits for others at the same place
_NAME = re.compile(rf"\b{COUNTER}\d*\b")


def asked(program: ir.Program, functions: Iterable[ir.Function], texts: Iterable[str]) -> tuple[Ranged, ...]:
    """The loops whose counters the texts name."""
    names = {name for text in texts for name in _NAME.findall(text)}
    return tuple(r for f in functions for r in range_loops(program, f) if r.name in names) if names else ()


def count_edits(program: ir.Program, loops: Iterable[Ranged], before: dict[int, list[str]]) -> list[Edit]:
    """The declarations of the counters, and where a trip begins; of a body without braces in `before` its operation."""
    edits = []
    for one in loops:
        declared = f"int {one.name} = -1;  // kesco: counts the turns of the loop"
        if one.end >= 0:
            newline, indent = newline_of(program.text), line_indent(program.text, one.loop.span.start)
            opened = f"{{{newline}{indent}  {declared}{newline}{indent}"
            edits.append(Edit(one.loop.span.start, one.loop.span.start, opened, _OUTSIDE))
            edits.append(Edit(one.end, one.end, f"{newline}{indent}}}", -_OUTSIDE))
        else:
            edits.append(lines_before(program.text, one.loop.span.start, [declared]))
        if one.alone >= 0:
            before.setdefault(one.alone, []).insert(0, f"++{one.name};")
            continue
        edit = lines_before(program.text, one.first.span.start, [f"++{one.name};"])
        edits.append(Edit(edit.start, edit.end, edit.text, _AHEAD))
    return edits
