"""Scratch of which each stream has its own: the edits, and where they are needed.

In: what is rewritten. Out: edits. Apart from the rest of the writing because the pointers stand in the functions that
follow, and who needs it is their callers.
"""

from __future__ import annotations

from collections.abc import Sequence

from kesco.emit.edits import Edit
from kesco.emit.places import Rewrite
from kesco.ir.scratch import EACH, OWN, OWNED, Scratch, allocation


def scratch_in(rewrites: Sequence[Rewrite]) -> tuple[Scratch, ...]:
    """The pointers to what calls on several streams have as scratch, or calls in turns that overlap."""
    given = (one for r in rewrites if (keys := _shared(r)) for one in r.region.scratch if keys & one.buffers)
    return tuple(dict.fromkeys(given))


def _shared(rewrite: Rewrite) -> frozenset[str]:
    found: dict[str, set[int]] = {}
    stream_of = rewrite.schedule.as_dict()
    for site in (s for s in rewrite.region.sites if s.number in stream_of):
        again = any(one.whole.start <= site.span.start < one.whole.end for one in rewrite.turns)
        for key in {allocation(a.buffer.key) for a in site.accesses if a.why == EACH}:
            found.setdefault(key, set()).update({stream_of[site.number], *((-1,) if again else ())})
    return frozenset(key for key, streams in found.items() if len(streams) > 1)


def scratch_edits(given: Sequence[Scratch]) -> list[Edit]:
    """The edits that let these pointers mean what the current stream has."""
    edits: list[Edit] = []
    for one in given:
        name = OWNED if one.values is None else OWN
        edits.append(Edit(one.start, one.start, f"{name}("))
        edits.append(Edit(one.end, one.end, "".join(f", {value}" for value in one.values or ()) + ")"))
    return edits
