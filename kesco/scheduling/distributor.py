"""KeSCo's distributor: ``distribute(dfg, streams)`` turns a `Dfg` into a `Schedule` with few waits.

In: the data-flow graph and how many streams there may be. Out: a stream for each movable site and the order
in which they were placed. It is the published algorithm (ICCD 2023) with every choice that was left to chance
made by a rule, so that the same program always gives the same output.

Method, phase by phase (a phase is what lies between two full barriers):

1. Levelize. Operation *i* of the first level goes to stream *i* mod *S*.
2. Then level by level. An operation *prefers* those predecessors that are still the last operation of their
   stream: right behind one of them it needs no event for it.
3. Place first the operation with the fewest preferred predecessors; among equals the one with the fewest
   predecessors that no other operation of this level went behind; then the first in the text. It goes right
   behind the preferred predecessor that the fewest others prefer (then the latest), which takes that one out
   of the others' sets.
4. With none left it goes where it delays least: to the stream with the fewest operations of this level, then
   the fewest at all, then the one of its latest predecessor, then the first.
5. A copy or memset of a few kilobytes takes no time worth a stream: it is left out at first, and then joins the stream
   on which it needs the fewest events. (The published algorithm knows kernels only.)
6. Larger transfers between host and device are left out, too, and placed behind the others (`lanes`).
7. Memory is allocated on the stream of the first operation that uses it, and freed on that of the last one.
8. Large memsets and copies within the device are settled (`fillers`).
9. Streams that stayed empty are closed up, so that those in use count from 0.

What it refuses to do: reorder the text (a stream runs its operations in the order in which the program issues
them), use more streams than asked for, or look at priorities.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from kesco.ir.dfg import Dfg
from kesco.ir.flow import SMALL, SiteKind
from kesco.ir.schedule import Schedule
from kesco.scheduling import fillers, lanes
from kesco.scheduling.levels import levelize, phases, predecessors


def distribute(dfg: Dfg, streams: int) -> Schedule:
    """The schedule of `dfg` over at most `streams` streams."""
    if streams < 1:
        raise ValueError(f"at least one stream is needed, not {streams}")
    light = small(dfg) - {*memory(dfg)}
    ways = lanes.transfers(dfg, light)
    before = predecessors(dfg, {*light, *ways, *memory(dfg)})
    apart = {*ways, *memory(dfg)}
    level_of = {site: level for level, sites in enumerate(levelize(dfg, apart)) for site in sites}
    groups = phases(dfg)
    at_once = Counter((phase[0], level_of[site]) for phase in groups for site in phase if site in before)
    working = _for_work(streams, len({*ways.values()}), max(at_once.values(), default=1))
    stream_of: dict[int, int] = {}
    for phase in groups:
        levels: dict[int, list[int]] = {}
        for site in (s for s in phase if s in before):
            levels.setdefault(level_of[site], []).append(site)
        placed = _Phase(before, working)
        for level in sorted(levels):
            if level == 0:
                for turn, site in enumerate(levels[level]):
                    placed.put(site, turn % working)
            else:
                placed.level(levels[level])
        stream_of.update(placed.stream_of)
    return behind_others("kesco", dfg, stream_of, ways, light, groups, range(working, streams))


def behind_others(
    strategy: str,
    dfg: Dfg,
    stream_of: dict[int, int],
    ways: Mapping[int, lanes.Way],
    light: Collection[int],
    groups: Sequence[tuple[int, ...]],
    spare: range,
) -> Schedule:
    """The schedule, once all other work has streams: transfers and small ones are placed, gaps are closed.

    `stream_of` has the others in the order of their placement, `spare` are the streams for lanes.
    """
    stream_of, held = fillers.settle(dfg, stream_of, ways)
    stream_of.update(lanes.place(dfg, ways, groups, stream_of, spare))
    for site in sorted(light):
        stream_of[site] = _fewest_events(dfg, site, stream_of)
    for site in memory(dfg):
        stream_of[site] = _beside(dfg, site, stream_of)
    number = {stream: index for index, stream in enumerate(sorted(set(stream_of.values())))}
    pairs = tuple((site, number[stream_of[site]]) for site in sorted(stream_of))
    return Schedule(strategy, len(number), pairs, tuple(stream_of), barriers=held)


def small(dfg: Dfg) -> set[int]:
    """The sites of small copies and memsets."""
    sites = dfg.region.sites
    return {n for n in dfg.graph.nodes if (size := sites[n].bytes) is not None and size <= SMALL}


def memory(dfg: Dfg) -> tuple[int, ...]:
    """The sites at which device memory is allocated or freed."""
    kinds = (SiteKind.ALLOC, SiteKind.FREE)
    return tuple(n for n in sorted(dfg.graph.nodes) if dfg.region.sites[n].kind in kinds)


def _beside(dfg: Dfg, site: int, stream_of: dict[int, int]) -> int:
    """The stream of the first operation that uses memory, or of the last one if it is freed, also across barriers."""
    sites = dfg.region.sites
    mine = {a.buffer.key for a in sites[site].accesses}
    users = [n for n in stream_of if n != site and any(a.buffer.key in mine for a in sites[n].accesses)]
    if sites[site].kind is SiteKind.FREE:
        return stream_of.get(max((n for n in users if n < site), default=-1), 0)
    return stream_of.get(min((n for n in users if n > site), default=-1), 0)


def _for_work(streams: int, ways: int, at_once: int) -> int:
    """How many of the streams kernels get: all but the lanes, unless that is less than there are on a level."""
    return max(1, streams - ways, min(streams, at_once)) if ways else streams


def _fewest_events(dfg: Dfg, site: int, stream_of: dict[int, int]) -> int:
    """The stream of most of what a light operation depends on or what depends on it.

    If there is nothing, it is the first; a prefetch goes where its memory is used next.
    """
    around = (*dfg.graph.predecessors(site), *dfg.graph.successors(site))
    streams = [stream_of[one] for one in around if one in stream_of]
    if not streams and dfg.region.sites[site].kind is SiteKind.PREFETCH:
        return _beside(dfg, site, stream_of)
    return min(streams, key=lambda stream: (-streams.count(stream), stream), default=0)


class _Phase:
    """The streams while the operations of one phase are placed on them."""

    def __init__(self, before: dict[int, tuple[int, ...]], streams: int) -> None:
        self.before = before
        self.stream_of: dict[int, int] = {}  # in the order of placement
        self.last: list[int | None] = [None] * streams
        self.load = [0] * streams

    def put(self, site: int, stream: int) -> int | None:
        """Place `site` at the end of `stream`; the operation that was the last one there."""
        behind = self.last[stream]
        self.last[stream] = site
        self.load[stream] += 1
        self.stream_of[site] = stream
        return behind

    def level(self, sites: list[int]) -> None:
        """Place all operations of one level, all of which have their predecessors placed."""
        prefers = {
            site: {source for source in self.before[site] if self.last[self.stream_of[source]] == source}
            for site in sites
        }
        open_predecessors = {site: len(self.before[site]) for site in sites}
        wanted_by: dict[int, set[int]] = {}
        for site, sources in prefers.items():
            for source in sources:
                wanted_by.setdefault(source, set()).add(site)
        level_load = [0] * len(self.load)
        queue = [(len(prefers[site]), open_predecessors[site], site) for site in sites]
        heapq.heapify(queue)
        while queue:
            *counts, site = heapq.heappop(queue)
            if site in self.stream_of or counts != [len(prefers[site]), open_predecessors[site]]:
                continue  # placed, or queued again since with what is left to it
            if prefers[site]:
                source = min(prefers[site], key=lambda source: (len(wanted_by[source]), -source))
                stream = self.stream_of[source]
            else:
                stream = self._least_delaying(site, level_load)
            for source in prefers[site]:
                wanted_by[source].discard(site)
            behind = self.put(site, stream)
            level_load[stream] += 1
            for loser in sorted(wanted_by.pop(behind, ())) if behind is not None else ():
                prefers[loser].discard(behind)
                open_predecessors[loser] -= 1
                heapq.heappush(queue, (len(prefers[loser]), open_predecessors[loser], loser))

    def _least_delaying(self, site: int, level_load: list[int]) -> int:
        """The stream for an operation that can go right behind none of its predecessors."""
        latest = self.stream_of[self.before[site][-1]] if self.before[site] else -1
        streams = range(len(self.load))
        return min(streams, key=lambda s: (level_load[s], self.load[s], s != latest, s))
