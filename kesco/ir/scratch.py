"""Memory that every call of a function fills anew, so that each stream may have its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kesco.ir.flow import Region
    from kesco.ir.turns import Turns

OWN, OWNED = "kesco_own", "kesco_owned"
"""What the prologue calls it: where a call first writes to it, and where that is used."""
EACH = "of which each stream has its own"
"""The `Access.why` of such memory at a call, which needs of it what it held before the streams had any."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A pointer to such memory that a launch, copy or memset is given: the operation, and its text's range.

    `values` are the texts of what decides which bytes a call first writes there, and None for what comes behind that.
    `buffers` are the keys of what it may point to.
    """

    operation: int
    start: int
    end: int
    values: tuple[str, ...] | None
    buffers: frozenset[str]


def allocation(key: str) -> str:
    """The key of an allocation, whichever call of a function it was seen in."""
    return key.partition("@")[0]


def of_each_stream(region: Region, stream_of: Mapping[int, int], turns: Sequence[Turns]) -> frozenset[str]:
    """The allocations that calls on several streams have as scratch, or calls in turns that overlap.

    `stream_of` are the streams of sites, by their numbers.
    """
    found: dict[str, set[int]] = {}
    for site in (s for s in region.sites if s.number in stream_of):
        again = any(one.whole.start <= site.span.start < one.whole.end for one in turns)
        for key in {allocation(a.buffer.key) for a in site.accesses if a.why == EACH}:
            found.setdefault(key, set()).update({stream_of[site.number], *((-1,) if again else ())})
    return frozenset(key for key, streams in found.items() if len(streams) > 1)
