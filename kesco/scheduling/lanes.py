"""Where transfers between host and device go: ``place(…)`` gives each a stream once all other work has one.

In: the data-flow graph, which sites are transfers, calls of functions that only copy among them, and the streams of
everything else. Out: a stream for each transfer.
It is apart from the distributor because transfers do not compete for the device's processors: there is one engine for
each direction, which works in the order of issue, so that a stream of their own makes none of them faster.

1. A copy to the device goes on the stream of the first operation that needs it, if nothing runs there before that
   operation: it delays nothing, and needs no event. 2. A copy to the host goes behind the last operation that it
waits for, if nothing runs there after it. 3. All others go on a *lane*, one stream for each direction: there they delay
no kernel, and whoever needs one waits for that one alone. 4. Where no stream is left for a lane they go to the
operation that needs them all the same.

Prefetches of managed memory are transfers, too, those of the program and those that were put in. The text does not say
which way they go; one behind which other work of its phase needs the memory goes to the device, any other to the host.

What it refuses to do: reorder the text (what the program copies last arrives last).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

import networkx as nx

from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Held, Site, SiteKind
from kesco.scheduling.levels import in_turn, phases


class Way(Enum):
    """The direction of a transfer."""

    IN = "to the device"
    OUT = "to the host"


def transfers(dfg: Dfg, light: Iterable[int]) -> dict[int, Way]:
    """The movable transfers between host and device, but for those that are `light`."""
    small = {*light}
    found: dict[int, Way] = {}
    sites = dfg.region.sites
    prefetches = {n for n in dfg.graph.nodes if sites[n].kind is SiteKind.PREFETCH}
    phase_of = {n: number for number, phase in enumerate(phases(dfg)) for n in phase} if prefetches else {}
    for number in sorted(dfg.graph.nodes):
        if number in prefetches:
            later = (n for n in dfg.graph.successors(number) if n > number and n not in prefetches)
            way: Way | None = Way.IN if any(phase_of[n] == phase_of[number] for n in later) else Way.OUT
        else:
            way = None if number in small else _way(sites[number])
        if way is not None:
            found[number] = way
    return found


def _way(site: Site) -> Way | None:
    if site.kind is SiteKind.CALL:  # of a function that only copies, and waits for that
        if not site.holds or site.busy:
            return None
        comes_in = {AccessMode.WRITE in a.mode for a in site.accesses if a.buffer.on_device}
        return None if len(comes_in) != 1 else Way.IN if True in comes_in else Way.OUT
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
    forward = _forward(dfg)
    free = iter(spare)
    lanes: dict[Way, int | None] = {}
    found: dict[int, int] = {}
    for phase in phases:
        works = [site for site in phase if site in stream_of]
        moving = [site for site in phase if site in ways]
        for site in moving:
            way = ways[site]
            partner = _partner(dfg, site, way, works)
            comes_in = way is Way.IN
            first, second = (site, partner) if comes_in else (partner, site)
            beside = partner >= 0 and not in_turn(dfg, first, second)
            if beside:
                with_it = [n for n in works if stream_of[n] == stream_of[partner]]
                others = {n for n in with_it if (n < partner if comes_in else n > partner)}
                bound = nx.ancestors(forward, site) if comes_in else nx.descendants(forward, site)
                beside = others <= bound
            if not beside:
                if way not in lanes:
                    lanes[way] = next(free, None)
                lane = lanes[way]
                if lane is not None:
                    found[site] = lane
                    continue
            found[site] = stream_of.get(partner, 0)
    return found


def _forward(dfg: Dfg) -> nx.DiGraph[int]:
    """What waits for what in one pass through the text; the host is a chain of nodes of its own, below 0.

    The host issues each operation at its place, behind those for whose end it has waited.
    """
    forward: nx.DiGraph[int] = nx.DiGraph((a, b) for a, b in dfg.graph.edges if a < b)
    for site in dfg.region.sites:
        forward.add_edge(-1 - site.number, site.number)
        forward.add_edge(-1 - site.number, -2 - site.number)
        if site.held is Held.ALL:
            forward.add_edge(site.number, -2 - site.number)
    return forward


def _partner(dfg: Dfg, site: int, way: Way, works: list[int]) -> int:
    """The first operation that needs what comes in, or the last one that what goes out waits for; -1 for none."""
    if way is Way.IN:
        return min({*dfg.graph.successors(site)}.intersection(n for n in works if n > site), default=-1)
    return max({*dfg.graph.predecessors(site)}.intersection(n for n in works if n < site), default=-1)
