"""The lines of prefetches: ``written(…)``.

In: the prefetches of a function, the stream of each, and the lines collected before and behind each operation. Out:
edits at loops; those at launches join the lines there. Apart from `render` because a prefetch has no text of its own
that could be edited.

1. To the device a prefetch stands before its launch, with its waits and its record. 2. To the host it stands behind it,
and behind the record: who waits for the kernel does not wait for the pages. 3. At a loop both are edits. So are those
in the first trip of one, which stand ahead of whatever else belongs before the statement there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kesco.emit.edits import Edit
from kesco.emit.places import around, lines_before
from kesco.ir import program as ir
from kesco.ir.transfers import Pages, Prefetch
from kesco.source import Span

_AHEAD = -1
"""The rank of lines that come first of those before a statement."""
_WHY = {
    Pages.DEVICE: "ahead of {}",
    Pages.HOST: "back to the host behind {}",
    Pages.BOTH: "ahead of {}, and the host keeps what it reads, too",
}


def written(
    program: ir.Program,
    prefetches: Sequence[Prefetch],
    streams: str,
    stream_of: Callable[[int], str],
    before: dict[int, list[str]],
    after: dict[int, list[str]],
) -> list[Edit]:
    """Add the lines at launches to `before` and `after`, and return the edits at loops; `streams` names all streams."""
    at_launches: dict[int, tuple[list[str], list[str]]] = {}
    at_loops: dict[tuple[Span, bool, str], tuple[int, list[str]]] = {}
    for one in prefetches:
        line = _line(one, streams, stream_of(one.operation))
        lines = [*before.pop(one.operation, []), line, *after.pop(one.operation, [])]
        behind = one.pages is Pages.HOST
        if one.launch >= 0:
            at_launches.setdefault(one.launch, ([], []))[behind].extend(lines)
        else:
            at_loops.setdefault((one.statement, behind, one.only), (one.operation, []))[1].extend(lines)
    for operation, (first, last) in at_launches.items():
        if first:
            before[operation] = [*first, *before.get(operation, [])]
        if last:
            after[operation] = [*after.get(operation, []), *last]
    edits: list[Edit] = []
    for (place, behind, only), (operation, lines) in at_loops.items():
        if behind:
            edits += around(program, (place.start, place.end), operation, [], lines)
        elif only:
            within = [f"if ({only}) {{  // kesco: once, behind the launches that come first", *_indented(lines), "}"]
            edit = lines_before(program.text, place.start, within)
            edits.append(replace(edit, rank=_AHEAD))
        else:
            edits.append(lines_before(program.text, place.start, lines))
    return edits


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _line(one: Prefetch, streams: str, stream: str) -> str:
    where = "" if one.pages is Pages.DEVICE else f", Kesco{one.pages.value.capitalize()}"
    return f"kesco_prefetch({streams}, {one.pointer}, {stream}{where});  // kesco: {_WHY[one.pages].format(one.kernel)}"
