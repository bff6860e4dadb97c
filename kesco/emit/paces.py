"""Loops and functions in which the host waits for nothing: where the program asks the device which way is faster.

In: the plan of a function. Out: what of it can be paced in the text, and the edits for it. Apart from the rest of the
emitter since nothing else depends on it.

1. A function is paced by the call that fetches its streams. 2. A loop is paced in front of the first statement of its
body, if the body stands in braces, and behind the fetch.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kesco.emit.edits import Edit
from kesco.emit.places import Rewrite, fetch_place, lines_before
from kesco.ir import program as ir
from kesco.source import Span

_COMMENT = re.compile(rb"(?://[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)\Z")
_AHEAD = -1  # of what waits for others at the same place


def paces_of(program: ir.Program, rewrite: Rewrite, needed: Collection[int]) -> tuple[Span, ...]:
    """Those of the plan that can be written, in its order; `needed` are the operations that need streams."""
    planned = rewrite.plan.paces
    if not planned:
        return ()
    fetched = fetch_place(program, rewrite, needed)

    def fits(place: Span) -> bool:
        return place == rewrite.region.span or (place.start >= fetched and _begins_a_block(program.text, place.start))

    return tuple(filter(fits, planned))


def _begins_a_block(text: bytes, offset: int) -> bool:
    """Whether nothing but comments stands between a brace and this place."""
    before = text[:offset].rstrip()
    while (shorter := _COMMENT.sub(b"", before).rstrip()) != before:
        before = shorter
    return before.endswith(b"{")


def pace_edits(program: ir.Program, paces: Sequence[Span], function: Span, name: str, first: int) -> list[Edit]:
    """The lines at the beginning of turns; `name` is that of the streams, and `first` the number of the first pace."""
    edits = []
    for number, place in enumerate(paces, first):
        if place != function:
            line = f"{name} = kesco_pace({name}, {number});  // kesco: on one stream while that is faster"
            edit = lines_before(program.text, place.start, [line])
            edits.append(Edit(edit.start, edit.end, edit.text, _AHEAD))
    return edits
