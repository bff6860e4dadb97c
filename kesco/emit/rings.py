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
from kesco.emit.ranges import is_counter
from kesco.ir import program as ir
from kesco.ir.turns import GIVE, LANE, PIN, PLACE, TAKE, TURN, TURNED, TURNS, Turns
from kesco.source import Span

_WAITS = "  // kesco: the host waits"
_AHEAD = -1  # of what waits for others at the same place


def add_ends(before: dict[int, list[str]], turns: Sequence[Turns], name: str) -> list[str]:
    """Adds the lines before the statements that leave the function within; returns what the turns are numbered by."""
    numbers = {whole: at for at, whole in enumerate(dict.fromkeys(one.whole for one in turns))}
    ends = {n: f"{TURNED}({_own(name, numbers[one.whole])});{_WAITS}" for one in turns for n in one.left}
    for operation, line in ends.items():
        before.setdefault(operation, []).append(line)
    return [one.lane for one in turns]


def begun(turns: Sequence[Turns]) -> list[str]:
    """Those of them that are counted by the lines with which turns begin."""
    return [one.lane for one in turns if one.lone]


def _own(name: str, number: int) -> str:
    return f"{name}_loop{number or ''}"


def turn_edits(program: ir.Program, turns: Sequence[Turns], name: str) -> list[Edit]:
    """All of them, for the loops of one function; `name` is that of its streams."""
    numbers: dict[Span, int] = {}
    edits: list[Edit] = []
    for one in turns:
        shared = one.whole in numbers
        edits += _of_loop(program, one, name, numbers.setdefault(one.whole, len(numbers)), shared=shared)
    return edits


def _of_loop(program: ir.Program, one: Turns, name: str, number: int, *, shared: bool) -> list[Edit]:
    """Those of one loop; with `shared`, what stands around the loop around it is there for another one."""
    source, own = program.text, _own(name, number)
    said = "turns of other numbers overlap" if one.lane else "turns overlap"
    if one.buffers or one.taken:
        said = "turns that overlap have their own" + ("" if one.buffers else " memory")
    before = [f"KescoTurns {own} = {TURNS}({', '.join((name, *one.buffers))});  // kesco: {said}"]
    if one.pins:
        before.append(f"{PIN}({', '.join((own, *one.pins))});  // kesco: pinned in the loop, if that pays")
    begins = [f"++{one.lane};"] if is_counter(one.lane) and one.lone else []  # else where the body begins
    given = (own, one.lane) if one.lane else (own, *one.alike)
    begins += [f"KescoStreams* {name} = {LANE if one.lane else TURN}({', '.join(given)});"]
    for place, buffer in enumerate(one.buffers):
        begins.append(f"decltype({buffer}) {buffer};")
        begins.append(f"{PLACE}({own}, {place}, &{buffer});")
    ends = f"{TURNED}({own});{_WAITS}"
    edits = [] if shared else [lines_before(source, one.whole.start, before), _behind(source, one, ends)]
    first = _opened(source, one.first.start, begins) if one.lone else lines_before(source, one.first.start, begins)
    edits.append(Edit(first.start, first.end, first.text, _AHEAD))
    if one.lone and one.outer is not None:
        end, start = one.span.end + 1, one.span.start  # the body's, which ends before the loop does
        edits.append(Edit(end, end, f"{newline_of(source)}{line_indent(source, start)}}}", behind(one.first.start)))
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
    lone = one.lone and one.outer is None
    end = one.whole.end + (source[one.whole.end : one.whole.end + 1] == b";")
    rest = source[end : line_end(source, end)]
    start = newline_of(source) + line_indent(source, one.whole.start)
    text = f"{f'{start}}}' if lone else ''}{start}{line}"
    if rest.strip() and not rest.strip().startswith(b"//"):  # the rest of the line goes to a line of its own
        if rest.rstrip().endswith(b"\\"):
            raise CannotInsert(f"line {one.whole.line}: something stands right behind the loop")
        return Edit(end, end + len(rest) - len(rest.lstrip()), f"{text}{start}")
    end = line_end(source, end)
    return Edit(end, end, text, behind(one.whole.start))
