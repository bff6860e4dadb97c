"""Where a prefetch can be put for one argument of a launch: `Spot`. Both directions make them."""

from __future__ import annotations

from dataclasses import dataclass

from kesco.ir.access import Buffer
from kesco.ir.flow import Iteration, Region
from kesco.ir.transfers import Pages
from kesco.source import Span
from kesco.transfers.first_trip import FirstTrip

Trip = tuple[Iteration, ...]
Trips = dict[Trip, tuple[frozenset[Buffer], frozenset[int]]]


@dataclass(frozen=True, slots=True)
class Spot:
    """What could be prefetched for one argument: at the loop `where`, or at the launch itself where that is None.

    `trips` has for each iteration of the unrolled loops around it what moves, and the sites that it stands before, or
    behind. `pages` tells where they go. `later` is where in the first trip of that loop it is issued instead.
    """

    pointer: str
    where: Span | None
    trips: Trips
    pages: Pages
    later: FirstTrip | None = None


def inside(region: Region, span: Span, trip: Trip) -> frozenset[int]:
    """The sites in a loop, in this iteration of those around it."""
    within = (s for s in region.sites if span.start <= s.span.start < span.end)
    return frozenset(s.number for s in within if s.iterations[: len(trip)] == trip)
