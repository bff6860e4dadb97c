"""What moving allocations does to the peak of device memory, in a model.

In: a function's region, schedule and plan, with the sites at which its memory is taken and given back. Out: how much of
it there may be at a time. Apart from the other remarks because it is arithmetic on a graph.

1. Two allocations share no time if the end of one comes before the other one begins: by a stream, a wait or a barrier,
which is also what a memory pool asks before it hands the memory out again. 2. The peak is the heaviest set of which all
pairs may be there at a time: in bytes where all sizes are constants, in allocations otherwise.

3. An allocation that shares time with all others, or only not with far smaller ones, need not move at all (`idle`).

It refuses to guess what runs at the same time: what nothing orders, does.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

from kesco.ir.flow import SiteKind, is_sure_barrier
from kesco.ir.poly import Poly, unwrapped

if TYPE_CHECKING:
    import networkx as nx

    from kesco.ir.flow import Region
    from kesco.ir.lifetimes import Moved
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan

_LEAST = 1 << 25  # bytes that a pool takes from the device at a time, and may not fill
_SHARE = 16  # how many times as large as another one an allocation may be, and still be worth handing on to it
_MOST = 64  # allocations, beyond which the heaviest set is not looked for


def peak(moved: tuple[Moved, ...], region: Region, schedule: Schedule, plan: SyncPlan) -> int:
    """The most bytes that may be there at a time, or allocations where a size is not a constant."""
    import networkx as nx  # here, because few ask for any of this

    weights = weights_of(moved, region)
    if len(weights) > _MOST:
        return sum(weights.values())
    together = nx.complement(_apart(weights, region, schedule, plan))
    nx.set_node_attributes(together, weights, "weight")
    return int(nx.max_weight_clique(together, "weight")[1])


def idle(moved: tuple[Moved, ...], region: Region, schedule: Schedule, plan: SyncPlan) -> frozenset[str]:
    """The pointers whose memory no other one can use again, or none that is worth it: it would only be rounded up.

    What is less than a sixteenth of the other, in terms of the program's integers, is not worth it.
    """
    weights = weights_of(moved, region)
    if len(weights) > _MOST:
        return frozenset()
    if known(moved) and sum(weights.values()) - peak(moved, region, schedule, plan) < _LEAST:
        return frozenset(m.pointer for m in moved)
    length = {a.buffer.name: a.buffer.length for s in region.sites if s.kind is SiteKind.ALLOC for a in s.accesses}
    apart = _apart(weights, region, schedule, plan)
    worth = {a for edge in apart.edges for a in edge if not _far_less(*(length.get(name) for name in edge))}
    return frozenset(m.pointer for m in moved) - {name.partition("[")[0] for name in worth}


def _far_less(a: Poly | None, b: Poly | None) -> bool:
    """Whether one of two sizes is far less than the other, whatever the integers are."""
    if a is None or b is None:
        return False
    one, other = (dict(unwrapped(size, 1 << 64).terms) for size in (a, b))
    least = {monomial: factor * _SHARE for monomial, factor in one.items()}
    most = {monomial: factor * _SHARE for monomial, factor in other.items()}
    ways = ((least, other), (most, one))
    return one.keys() == other.keys() and any(all(x[key] < y[key] for key in x) for x, y in ways)


def _apart(names: Iterable[str], region: Region, schedule: Schedule, plan: SyncPlan) -> nx.Graph[str]:
    """The allocations, with an edge between each two that share no time."""
    import networkx as nx

    before = _order(region, schedule, plan)
    begins, ends = (_places(region, kind) for kind in (SiteKind.ALLOC, SiteKind.FREE))
    apart: nx.Graph[str] = nx.Graph()
    apart.add_nodes_from(names)
    for a, b in combinations(sorted(names), 2):
        if any(nx.has_path(before, ends[x], begins[y]) for x, y in ((a, b), (b, a)) if x in ends and y in begins):
            apart.add_edge(a, b)
    return apart


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
    import networkx as nx

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
