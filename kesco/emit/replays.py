"""Loops around the statements that become graphs.

In: the edits of a function and its replays. Out: edits in which those inside a replay have become one, with the loop
around. Apart from the writing of waits and records because it is done with their result.

The body of the loop is the text as it is on streams, one level deeper. `kesco_replay` is true once for each time the
statements are to run as they stand, be it to be captured, and false when their work has been given to the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kesco.emit.edits import Edit, apply, is_behind, line_indent, newline_of
from kesco.emit.places import CannotInsert, line_end
from kesco.ir import program as ir
from kesco.ir.replay import ALONE, AMONG_OTHERS, Replay

_WIDTH = 120
_OUTSIDE = -1  # edits of this rank and below belong before whatever else stands at their place


def wrapped(
    program: ir.Program,
    edits: Sequence[Edit],
    replays: Sequence[tuple[int, Replay]],
    heads: Mapping[int, Sequence[str]],
) -> list[Edit]:
    """The edits with those in replays made into loops; `heads` are the lines before their statements, by number."""
    source = program.text
    left = list(edits)
    for number, one in replays:
        end = line_end(source, one.end)
        within = [e for e in left if one.start <= e.start and e.end <= end]
        inner = [e for e in within if e.rank > _OUTSIDE or (is_behind(e) and e.start > one.start)]
        left = [e for e in left if e not in inner]
        if any(e.start < end and e.end > one.start for e in left):
            line = source.count(b"\n", 0, one.start) + 1
            raise CannotInsert(f"line {line}: something else is inserted around what would become a graph")
        shifted = [Edit(e.start - one.start, e.end - one.start, e.text, e.rank) for e in inner]
        text = apply(source[one.start : end], shifted).decode("utf-8", "surrogateescape")
        left.append(_loop(source, one, end, text, heads[number]))
    return left


def _loop(source: bytes, replay: Replay, end: int, text: str, head: Sequence[str]) -> Edit:
    newline, indent = newline_of(source), line_indent(source, replay.start)
    body = "".join(f"  {line}" if line.strip() else line for line in f"{indent}{text}".splitlines(keepends=True))
    first = "".join(f"{indent if at else ''}{line}{newline}" for at, line in enumerate(head))
    return Edit(replay.start, end, f"{first}{body}{newline}{indent}}}")


def loop_head(source: bytes, replay: Replay, number: int, name: str) -> list[str]:
    """The head of the loop, on as many lines as it needs."""
    call = f"while ({ALONE if replay.alone else AMONG_OTHERS}("
    room = _WIDTH - len(line_indent(source, replay.start)) - len(call)
    lines = [f"{name}, {number}, {name}->stream[{replay.stream}]"]
    for value in replay.values:
        if len(lines[-1]) + len(value) + len("))) {,") > room:
            lines[-1] += ","
            lines.append(value)
        else:
            lines[-1] += f", {value}"
    comment = f"// kesco: a graph that is captured again where {'these values change' if replay.values else 'needed'}"
    text = [call + lines[0], *(" " * len(call) + line for line in lines[1:])]
    text[-1] += ")) {"
    return [comment, *text]
