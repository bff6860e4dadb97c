"""Where transfers between host and device go: ``place(…)`` gives each a stream once all other work has one.

In: the data-flow graph, which sites are transfers, and the streams of everything else. Out: a stream for each transfer.
It is apart from the distributor because transfers do not compete for the device's processors: there is one engine for
each direction, which works in the order of issue, so that a stream of their own makes none of them faster.

1. A copy to the device goes on the stream of the first operation that needs it, if nothing runs there before that
   operation: it delays nothing, and needs no event. 2. A copy to the host goes behind the last operation that it
waits for, if nothing runs there after it. 3. All others go on a *lane*, one stream for each direction: there they delay
no kernel, and whoever needs one waits for that one alone. 4. Where no stream is left for a lane they go to the
operation that needs them all the same.

What it refuses to do: reorder the text (what the program copies last arrives last), or place prefetches that the
program issues itself: those are operations like kernels, until it is measured what else would be better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Held, Site, SiteKind
from kesco.scheduling.levels import in_turn


class Way(Enum):
    """The direction of a transfer."""

    IN = "to the device"
    OUT = "to the host"


def transfers(dfg: Dfg, light: Iterable[int]) -> dict[int, Way]:
    """The movable transfers between host and device, but for those that are `light`."""
    small = {*light}
    found: dict[int, Way] = {}
    for number in sorted(dfg.graph.nodes):
        way = None if number in small else _way(dfg, dfg.region.sites[number])
        if way is not None:
            found[number] = way
    return found


def _way(dfg: Dfg, site: Site) -> Way | None:
    if site.kind is SiteKind.PREFETCH and site.added:
        return Way.IN
    if site.kind is not SiteKind.COPY:
        return None
    if site.held is not None:
        return Way.IN if site.held is Held.SOURCE else Way.OUT
    read = {a.buffer.kind for a in site.accesses if AccessMode.READ in a.mode}
    written = {a.buffer.kind for a in site.accesses if AccessMode.WRITE in a.mode}
    if read == {BufferKind.PINNED} and written == {BufferKind.DEVICE}:
        return Way.IN
    return Way.OUT if read == {BufferKind.DEVICE} and written == {BufferKind.PINNED} else None


def place(
    dfg: Dfg, ways: Mapping[int, Way], phases: Iterable[tuple[int, ...]], stream_of: Mapping[int, int], spare: range
) -> dict[int, int]:
    """A stream for each transfer of `ways`; `stream_of` has those of other work, `spare` are free for lanes."""
    free = iter(spare)
    lanes: dict[Way, int | None] = {}
    found: dict[int, int] = {}
    for phase in phases:
        works = [site for site in phase if site in stream_of]
        ends = {stream_of[site]: site for site in works}  # stream → its last operation in this phase
        begins = {stream_of[site]: site for site in reversed(works)}
        moving = [site for site in phase if site in ways]
        for site in moving:
            way = ways[site]
            partner = _partner(dfg, site, way, works)
            edge = begins if way is Way.IN else ends
            first, second = (site, partner) if way is Way.IN else (partner, site)
            beside = partner >= 0 and edge[stream_of[partner]] == partner and not in_turn(dfg, first, second)
            if not beside:
                if way not in lanes:
                    lanes[way] = next(free, None)
                lane = lanes[way]
                if lane is not None:
                    found[site] = lane
                    continue
            found[site] = stream_of.get(partner, 0)
    return found


def _partner(dfg: Dfg, site: int, way: Way, works: list[int]) -> int:
    """The first operation that needs what comes in, or the last one that what goes out waits for; -1 for none."""
    if way is Way.IN:
        return min({*dfg.graph.successors(site)}.intersection(n for n in works if n > site), default=-1)
    return max({*dfg.graph.predecessors(site)}.intersection(n for n in works if n < site), default=-1)
