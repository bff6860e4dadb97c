"""Loops whose turns run beside each other: the lines around the loop, and at the beginning of a turn.

In: the program, and what a function has of such loops. Out: edits. Apart from the rest of the emitter since nothing
else depends on it: in the body the streams and the buffers keep their names, which stand for those of the turn there.

1. Before the loop each buffer gets a second place. 2. A turn begins with its streams and buffers, under the same names.
3. What it allocates and frees it takes and gives. 4. Behind the loop the buffers hold what the last turn left in them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kesco.emit.edits import Edit, at_line_start, behind, line_indent, newline_of
from kesco.emit.places import CannotInsert, line_end, lines_before
from kesco.ir import program as ir
from kesco.ir.turns import GIVE, PIN, PLACE, TAKE, TURN, TURNED, TURNS, Turns

_AHEAD = -1  # of what waits for others at the same place


def turn_edits(program: ir.Program, turns: Sequence[Turns], name: str) -> list[Edit]:
    """All of them, for the loops of one function; `name` is that of its streams."""
    return [edit for number, one in enumerate(turns) for edit in _of_loop(program, one, name, number)]


def _of_loop(program: ir.Program, one: Turns, name: str, number: int) -> list[Edit]:
    source, own = program.text, f"{name}_loop{number or ''}"
    said = "turns overlap"
    if one.buffers or one.taken:
        said = "turns that overlap have their own" + ("" if one.buffers else " memory")
    before = [f"KescoTurns {own} = {TURNS}({', '.join((name, *one.buffers))});  // kesco: {said}"]
    if one.pins:
        before.append(f"{PIN}({', '.join((own, *one.pins))});  // kesco: pinned in the loop, if that pays")
    begins = [f"KescoStreams* {name} = {TURN}({', '.join((own, *one.alike))});"]
    for place, buffer in enumerate(one.buffers):
        begins.append(f"decltype({buffer}) {buffer};")
        begins.append(f"{PLACE}({own}, {place}, &{buffer});")
    behind = f"{TURNED}({own});  // kesco: the host waits"
    edits = [lines_before(source, one.span.start, before), _behind(source, one, behind)]
    first = _opened(source, one.first.start, begins) if one.lone else lines_before(source, one.first.start, begins)
    edits.append(Edit(first.start, first.end, first.text, _AHEAD))
    for index, memory in enumerate(one.taken):
        for call, text in ((memory.allocates, f"{TAKE}({own}, {index}, "), (memory.frees, f"{GIVE}({own}, ")):
            edits.append(Edit(call.start, source.index(b"(", call.start) + 1, text))
    return edits


def _opened(source: bytes, offset: int, lines: Sequence[str]) -> Edit:
    """A block begins in front of the statement there, with these lines; on the line of the head where that ends one."""
    newline, indent = newline_of(source), line_indent(source, offset)
    if not at_line_start(source, offset):
        inner = newline + indent + "  "
        return Edit(offset, offset, "{" + "".join(inner + line for line in lines) + inner)
    head = len(source[:offset].rstrip())
    if source[head - 1 : head] == b")":
        return Edit(head, head, " {" + "".join(newline + indent + line for line in lines))
    return Edit(offset, offset, "{" + "".join(newline + indent + line for line in lines) + newline + indent)


def _behind(source: bytes, one: Turns, line: str) -> Edit:
    end = one.span.end + one.lone  # behind the semicolon
    rest = source[end : line_end(source, end)]
    start = newline_of(source) + line_indent(source, one.span.start)
    text = f"{f'{start}}}' if one.lone else ''}{start}{line}"
    if rest.strip() and not rest.strip().startswith(b"//"):  # the rest of the line goes to a line of its own
        if rest.rstrip().endswith(b"\\"):
            raise CannotInsert(f"line {one.span.line}: something stands right behind the loop")
        return Edit(end, end + len(rest) - len(rest.lstrip()), f"{text}{start}")
    end = line_end(source, end)
    return Edit(end, end, text, behind(one.span.start))
