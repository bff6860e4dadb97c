"""What moving allocations does to the peak of device memory, in a model.

In: a function's region, schedule and plan, with the sites at which its memory is taken and given back. Out: how much of
it there may be at a time. Apart from the other remarks because it is arithmetic on a graph.

1. Two allocations share no time if the end of one comes before the other one begins: by a stream, a wait or a barrier,
which is also what a memory pool asks before it hands the memory out again. 2. The peak is the heaviest set of which all
pairs may be there at a time: in bytes where all sizes are constants, in allocations otherwise.

It refuses to guess what runs at the same time: what nothing orders, does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from kesco.ir.flow import SiteKind, is_sure_barrier

if TYPE_CHECKING:
    from kesco.ir.flow import Region
    from kesco.ir.lifetimes import Moved
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan

_MOST = 64  # allocations, beyond which the heaviest set is not looked for


def peak(moved: tuple[Moved, ...], region: Region, schedule: Schedule, plan: SyncPlan) -> int:
    """The most bytes that may be there at a time, or allocations where a size is not a constant."""
    weights = weights_of(moved, region)
    if len(weights) > _MOST:
        return sum(weights.values())
    before = _order(region, schedule, plan)
    begins, ends = (_places(region, kind) for kind in (SiteKind.ALLOC, SiteKind.FREE))
    together: nx.Graph[str] = nx.Graph()
    together.add_nodes_from((name, {"weight": weight}) for name, weight in weights.items())
    names = sorted(weights)
    for a, b in ((a, b) for n, a in enumerate(names) for b in names[n + 1 :]):
        apart = any(nx.has_path(before, ends[x], begins[y]) for x, y in ((a, b), (b, a)) if x in ends and y in begins)
        if not apart:
            together.add_edge(a, b)
    return int(nx.max_weight_clique(together, "weight")[1])


def weights_of(moved: tuple[Moved, ...], region: Region) -> dict[str, int]:
    """The bytes of each allocation by its name, or 1 where not all of them are constants; arrays have several."""
    size = {m.pointer: (m.bytes or 0) if known(moved) else 1 for m in moved}
    return {n: size[n.partition("[")[0]] for n in _places(region, SiteKind.ALLOC) if n.partition("[")[0] in size}


def known(moved: tuple[Moved, ...]) -> bool:
    """Whether all sizes are constants."""
    return all(m.bytes is not None for m in moved)


def _places(region: Region, kind: SiteKind) -> dict[str, int]:
    return {a.buffer.name: s.number for s in region.sites if s.kind is kind for a in s.accesses}


def _order(region: Region, schedule: Schedule, plan: SyncPlan) -> nx.DiGraph[int]:
    """What surely comes before what, in one pass through the function."""
    text = nx.DiGraph((site, after) for site, successors in enumerate(region.forward()) for after in successors)
    behind = {site: nx.descendants(text, site) for site in text}
    stream_of = schedule.as_dict()
    barriers = {s.number for s in region.sites if is_sure_barrier(s)}
    order: nx.DiGraph[int] = nx.DiGraph()
    order.add_nodes_from(range(len(region.sites)))
    for site in (*stream_of, *barriers):
        for other in behind.get(site, set()):
            same = other in stream_of and stream_of.get(site) == stream_of[other]
            if same or other in barriers or (site in barriers and other in stream_of):
                order.add_edge(site, other)
    order.add_edges_from((w.source, w.target) for w in plan.waits if w.target in behind.get(w.source, set()))
    return order
