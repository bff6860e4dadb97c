"""Counters of range-based loops: the lines that bring them in, where what was inserted asks which trip it is.

In: the program, functions of it, and the inserted texts. Out: edits, and lines in front of operations. Apart from the
rest of the emitter since a counter is all that the text lacks there: everything else names it like any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from kesco.emit.edits import Edit, behind, line_indent, newline_of
from kesco.emit.places import lines_before
from kesco.ir import program as ir
from kesco.ir.ranges import COUNTER, Ranged, range_loops

_FAR = 1 << 40  # outside of what else stands there, and of the braces of loops inside
_AHEAD = -1  # of what waits for others at the same place
_NAME = re.compile(rf"\b{COUNTER}\d*\b")


def asked(program: ir.Program, functions: Iterable[ir.Function], texts: Iterable[str]) -> tuple[Ranged, ...]:
    """The loops whose counters the texts name."""
    names = {name for text in texts for name in _NAME.findall(text)}
    return tuple(r for f in functions for r in range_loops(program, f) if r.name in names) if names else ()


def is_counter(name: str) -> bool:
    """Whether it is the name of one that is brought in."""
    return _NAME.fullmatch(name) is not None


def count_edits(
    program: ir.Program, loops: Iterable[Ranged], before: dict[int, list[str]], elsewhere: Collection[str]
) -> list[Edit]:
    """The declarations of the counters, and where a trip begins; of a body without braces in `before` its operation.

    Trips of those of these names begin `elsewhere`.
    """
    edits = []
    text, every = program.text, list(loops)
    newline = newline_of(text)
    within = {one.loop.span.start: one for one in every if one.end >= 0}
    bodies = {one.first.span.start for one in every if one.closed >= 0}
    for one in every:
        start, first = one.loop.span.start, one.first.span.start
        if start in bodies:
            pass  # it stands in the braces that the loop around it gets
        elif one.end >= 0:
            indent = line_indent(text, start)
            opened = f"{{{newline}{indent}  {_declared(one)}{newline}{indent}"
            edits.append(Edit(start, start, opened, 2 * start - _FAR))
            edits.append(Edit(one.end, one.end, f"{newline}{indent}}}", behind(start)))
        else:
            edits.append(lines_before(text, start, [_declared(one)]))
        if one.name in elsewhere:
            continue
        if one.alone >= 0:
            before.setdefault(one.alone, []).insert(0, f"++{one.name};")
        elif one.closed >= 0:
            indent = _indent(text, one, every)
            rows = [f"++{one.name};", *(_declared(within[at]) for at in (first,) if at in within), ""]
            begun = "{" + "".join(f"{newline}{indent}  {row}" for row in rows)
            edits.append(Edit(first, first, begun, 2 * start + 1 - _FAR))
            edits.append(Edit(one.closed, one.closed, f"{newline}{indent}}}", behind(first)))
        else:
            edit = lines_before(text, first, [f"++{one.name};"])
            edits.append(Edit(edit.start, edit.end, edit.text, _AHEAD))
    return edits


def _declared(one: Ranged) -> str:
    return f"int {one.name} = -1;  // kesco: counts the turns of the loop"


def _indent(text: bytes, one: Ranged, every: list[Ranged]) -> str:
    """What the braces of a body are behind: one inside loops of the same line stands further in."""
    line = text.rfind(b"\n", 0, one.first.span.start)
    around = [o for o in every if line < o.loop.span.start < one.loop.span.start < o.loop.span.end]
    return line_indent(text, one.first.span.start) + "  " * len(around)
