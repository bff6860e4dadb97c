"""Launches that begin on an empty device: ``settle(dfg, stream_of)`` keeps them out of the way of what fills it.

In: the data-flow graph and the streams so far. Out: the streams, and barriers that no dependence needs. It is apart
from the strategies because all of them place large memsets and copies within the device like any other operation.

A memset or a copy within the device is a kernel of the driver that takes every multiprocessor, for as long as the
memory's bandwidth says. Nothing is gained by running something beside it; but much can be lost. The blocks of a launch
go where there is room at the moment when it begins: beside the end of such an operation that is on the few
multiprocessors which are empty first, and there they stay. (Measured on an H200: 32 blocks on 6 of 132
multiprocessors, six on each, which took 14 ms instead of 6; see docs/results.md.) In a serial program that does not
happen, as a launch begins when everything before it has ended.

1. A filler that directly follows another one in the text, and is ready no later, goes on the same stream.
2. The first launch behind a filler on each of the other streams waits for it, if the filler is ready no later than the
   launch anyway: all that the filler waits for comes before the launch, by dependences or streams. Otherwise the launch
   would wait for strange work.

What it refuses to do: order work of different tasks, or hold a launch for a small memset. Kernels that fill the device
do the same to those that do not; that cannot be seen without their sizes, and is left to the trial at run time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

import networkx as nx

from kesco.ir.dfg import Dfg
from kesco.ir.flow import SMALL, SiteKind
from kesco.ir.schedule import ZoneBarrier
from kesco.scheduling.levels import phases, reached

_LAUNCHES = (SiteKind.KERNEL, SiteKind.LIBRARY)
WHY = "it fills the device: blocks that start beside its end crowd on few multiprocessors"


def settle(dfg: Dfg, stream_of: Mapping[int, int], moving: Collection[int]) -> dict[int, int]:
    """The streams with fillers that follow each other on one; `moving` are the copies between host and device."""
    found = dict(stream_of)
    forward = dfg.region.forward()
    for first, second in _neighbours(dfg, stream_of, moving):
        if second in reached(dfg, forward, first) and _ready(_order(dfg, found), (second,), first):
            found[second] = found[first]
    return found


def barriers(dfg: Dfg, stream_of: Mapping[int, int], moving: Collection[int]) -> tuple[ZoneBarrier, ...]:
    """The launches that wait for fillers, by target: for the last one of several that follow each other."""
    sites = dfg.region.sites
    runs: dict[int, tuple[int, ...]] = {n: (n,) for n in sorted(stream_of) if _fills(dfg, n, moving)}
    for first, second in _neighbours(dfg, stream_of, moving):
        if stream_of[first] == stream_of[second]:
            runs[second] = (*runs.pop(first), second)
    order, forward = (_order(dfg, stream_of), dfg.region.forward()) if runs else (nx.DiGraph(), ())
    found: list[ZoneBarrier] = []
    for last, run in runs.items():
        streams = {stream_of[last]}
        for launch in sorted(n for n in reached(dfg, forward, last) if sites[n].kind in _LAUNCHES and n in stream_of):
            stream = stream_of[launch]
            if stream not in streams and sites[launch].task == sites[last].task and _ready(order, run, launch):
                streams.add(stream)
                found.append(ZoneBarrier(last, launch, WHY))
    return tuple(sorted(found, key=lambda one: (one.target, one.source)))


def _neighbours(dfg: Dfg, stream_of: Mapping[int, int], moving: Collection[int]) -> Iterator[tuple[int, int]]:
    """Two fillers of one phase with no other operation between them in the text."""
    for phase in phases(dfg):
        works = [site for site in phase if site in stream_of]
        yield from (pair for pair in pairwise(works) if all(_fills(dfg, one, moving) for one in pair))


def _fills(dfg: Dfg, number: int, moving: Collection[int]) -> bool:
    """Whether a site takes the whole device for a while."""
    site = dfg.region.sites[number]
    if site.kind not in (SiteKind.MEMSET, SiteKind.COPY) or number in moving or site.held is not None:
        return False
    return site.bytes is None or site.bytes > SMALL


def _order(dfg: Dfg, stream_of: Mapping[int, int]) -> nx.DiGraph[int]:
    """What comes directly before what, by dependences and streams, also from one trip of a loop to the next."""
    order: nx.DiGraph[int] = nx.DiGraph(dfg.graph.edges)
    order.add_nodes_from(dfg.graph.nodes)
    on: dict[int, list[int]] = {}
    for site in sorted(stream_of):
        on.setdefault(stream_of[site], []).append(site)
    for sites in on.values():
        order.add_edges_from(pairwise(sites))
        if sites[0] in reached(dfg, dfg.region.successors, sites[-1]):
            order.add_edge(sites[-1], sites[0])
    return order


def _ready(order: nx.DiGraph[int], fillers: tuple[int, ...], other: int) -> bool:
    """Whether all that `fillers` wait for comes before `other` anyway."""
    known, work = {*fillers, other}, [other]
    for site in work:
        more = [n for n in order.predecessors(site) if n not in known]
        known.update(more)
        work += more
    return all(known.issuperset(order.predecessors(one)) for one in fillers)
