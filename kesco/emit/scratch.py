"""Scratch of which each stream has its own: the edits, and where they are needed.

In: what is rewritten. Out: edits. Apart from the rest of the writing because the pointers stand in the functions that
follow, and who needs it is their callers.
"""

from __future__ import annotations

from collections.abc import Sequence

from kesco.emit.edits import Edit
from kesco.emit.places import Rewrite
from kesco.ir.scratch import OWN, OWNED, Scratch, of_each_stream


def scratch_in(rewrites: Sequence[Rewrite]) -> tuple[Scratch, ...]:
    """The pointers to what calls on several streams have as scratch, or calls in turns that overlap."""
    found: dict[Scratch, None] = {}
    for one in rewrites:
        keys = of_each_stream(one.region, one.schedule.as_dict(), one.turns)
        found |= dict.fromkeys(each for each in one.region.scratch if keys & each.buffers)
    return tuple(found)


def scratch_edits(given: Sequence[Scratch]) -> list[Edit]:
    """The edits that let these pointers mean what the current stream has."""
    edits: list[Edit] = []
    for one in given:
        name = OWNED if one.values is None else OWN
        edits.append(Edit(one.start, one.start, f"{name}("))
        edits.append(Edit(one.end, one.end, "".join(f", {value}" for value in one.values or ()) + ")"))
    return edits
