"""Memsets in place of the host's stores of zero, and where the host waits for them.

In: the store's operation and its stream, or the loops behind which the host waits. Out: edits. Apart from the writing
of streams because the whole statement is replaced; a comment behind it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kesco.emit.edits import Edit
from kesco.emit.places import around, line_end
from kesco.ir import program as ir
from kesco.source import Span

_WAIT = "cudaDeviceSynchronize();  // kesco: until what is set to zero above is zero"
_WHY = "kesco: in place of the host's store"


def memset(program: ir.Program, operation: ir.Operation, stream: str) -> Edit:
    """The statement as a memset."""
    place, zeroing = operation.statement, operation.zeroing
    assert place is not None and zeroing is not None
    rest = program.text[place.end : line_end(program.text, place.end)]
    why = f" /* {_WHY} */" if rest.strip() else f"  // {_WHY}"
    return Edit(
        place.start, place.end, f"cudaMemsetAsync({zeroing.pointer}, 0, sizeof({zeroing.target}), {stream});{why}"
    )


def waits(program: ir.Program, loops: Iterable[Span]) -> Iterator[Edit]:
    """The host's waits behind loops."""
    for span in loops:
        one = replace(program, operations=(ir.Operation(0, span, span, False, False, None),))
        yield from around(one, (span.start, span.end), 0, [], [_WAIT])
