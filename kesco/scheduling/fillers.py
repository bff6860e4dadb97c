"""Launches that begin on an empty device: ``settle(dfg, stream_of)`` keeps them out of the way of what fills it.

In: the data-flow graph and the streams so far. Out: the streams, and barriers that no dependence needs. It is apart
from the strategies because all of them place large memsets and copies within the device like any other operation.

A memset or a copy within the device is a kernel of the driver that takes every multiprocessor, for as long as the
memory's bandwidth says. Nothing is gained by running something beside it; but much can be lost. The blocks of a launch
go where there is room at the moment when it begins: beside the end of such an operation that is on the few
multiprocessors which are empty first, and there they stay. (Measured on an H200: 32 blocks on 6 of 132
multiprocessors, six on each, which took 14 ms instead of 6; see docs/results.md.) In a serial program that does not
happen, as a launch begins when everything before it has ended.

1. A *run* are fillers that directly follow each other in the text. It matters where the first launch behind it on some
   stream depends on none of it, and the run is ready no later than that launch: all that it waits for comes before the
   launch anyway, by dependences or streams. Otherwise the launch would wait for strange work.
2. Such a run goes on one stream, and the first launch behind it on each other stream that is ready no earlier waits for
   the last of it.

What it refuses to do: order work of different tasks, or hold a launch for a small memset. Kernels that fill the device
do the same to those that do not; that cannot be seen without their sizes, and is left to the trial at run time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby, pairwise

from kesco.ir.dfg import Dfg
from kesco.ir.flow import SMALL, SiteKind
from kesco.ir.graph import Graph
from kesco.ir.schedule import Barrier
from kesco.scheduling.levels import phases, predecessors, reached

WHY = "it fills the device: blocks that start beside its end crowd on few multiprocessors"


def settle(
    dfg: Dfg, stream_of: Mapping[int, int], moving: Collection[int]
) -> tuple[dict[int, int], tuple[Barrier, ...]]:
    """The streams with such runs on one, and what waits, by target; `moving` are the copies from or to the host."""
    placed = dict(stream_of)
    found: list[Barrier] = []
    runs = [run for phase in phases(dfg) for run in _runs(dfg, [n for n in phase if n in placed], moving)]
    forward, depends = (dfg.region.forward(), _within_a_round(dfg)) if runs else ((), Graph[int]())
    for run in runs:
        launches = sorted(n for n in reached(dfg, forward, run[-1]) if n in placed and _may_wait(dfg, run, n))
        order = _order(dfg, placed)
        first = {placed[n]: n for n in reversed(launches)}  # what would begin beside the end of the run
        apart = {*first.values()}.difference(*map(depends.reached, run))
        if not any(_ready(order, run, launch) for launch in apart):
            continue
        placed.update(dict.fromkeys(run, placed[run[0]]))
        order = _order(dfg, placed)
        streams = {placed[run[-1]]}
        for launch in launches:
            if placed[launch] not in streams and _ready(order, run, launch):
                streams.add(placed[launch])
                found.append(Barrier(run[-1], launch, WHY))
    return placed, tuple(sorted(found, key=lambda one: (one.target, one.source)))


def _runs(dfg: Dfg, works: list[int], moving: Collection[int]) -> Iterator[tuple[int, ...]]:
    """The fillers of one phase that have no other operation between them in the text."""
    for fills, run in groupby(works, lambda site: _fills(dfg, site, moving)):
        if fills:
            yield tuple(run)


def _may_wait(dfg: Dfg, run: tuple[int, ...], number: int) -> bool:
    """Whether a site is a launch of the same task as the run."""
    site = dfg.region.sites[number]
    return site.kind in (SiteKind.KERNEL, SiteKind.LIBRARY) and site.task == dfg.region.sites[run[-1]].task


def _within_a_round(dfg: Dfg) -> Graph[int]:
    """The dependences within one round of every loop."""
    before = predecessors(dfg)
    return Graph(before, ((source, site) for site, sources in before.items() for source in sources))


def _fills(dfg: Dfg, number: int, moving: Collection[int]) -> bool:
    """Whether a site takes the whole device for a while."""
    site = dfg.region.sites[number]
    if site.kind not in (SiteKind.MEMSET, SiteKind.COPY) or number in moving or site.held is not None:
        return False
    return site.bytes is None or site.bytes > SMALL


def _order(dfg: Dfg, stream_of: Mapping[int, int]) -> Graph[int]:
    """What comes directly before what, by dependences and streams, also from one trip of a loop to the next."""
    ways = [*dfg.graph.edges]
    on: dict[int, list[int]] = {}
    for site in sorted(stream_of):
        on.setdefault(stream_of[site], []).append(site)
    for sites in on.values():
        ways += pairwise(sites)
        if sites[0] in reached(dfg, dfg.region.successors, sites[-1]):
            ways.append((sites[-1], sites[0]))
    return Graph(dfg.graph, ways)


def _ready(order: Graph[int], fillers: tuple[int, ...], other: int) -> bool:
    """Whether all that `fillers` wait for comes before `other` anyway."""
    known, work = {*fillers, other}, [other]
    for site in work:
        more = [n for n in order.predecessors(site) if n not in known]
        known.update(more)
        work += more
    return all(known.issuperset(order.predecessors(one)) for one in fillers)
