"""What may run any number of times before something else runs once: ``Loops(region).endless(site)``.

In: a region. Out: for a site all those that control can come back to without passing it, nor a full barrier. A barrier
that holds the site behind one of them would hold it for as many executions as there are.

1. The loops of a region are the strongly connected parts of its control flow without full barriers. 2. All of a loop
that a site is not in is endless for it. 3. In its own loop, what is left when the site is taken out, and then again and
again what nothing leads to or what leads nowhere, is endless, or lies between two parts that are.
"""

from __future__ import annotations

from functools import cached_property

import networkx as nx

from kesco.ir.flow import Region, is_barrier


class Loops:
    """The loops of one region."""

    def __init__(self, region: Region) -> None:
        graph: nx.DiGraph[int] = nx.DiGraph()
        inside = [site.number for site in region.sites if not is_barrier(site)]
        graph.add_nodes_from(inside)
        graph.add_edges_from((a, b) for a in inside for b in region.successors[a] if not is_barrier(region.sites[b]))
        self._after = {site: tuple(graph.successors(site)) for site in inside}
        self._before = {site: tuple(graph.predecessors(site)) for site in inside}
        self._loops = [
            frozenset(part)
            for part in nx.strongly_connected_components(graph)
            if len(part) > 1 or any(site in self._after[site] for site in part)
        ]
        self._known: dict[int, int] = {}

    @cached_property
    def _all(self) -> int:
        return sum(1 << site for loop in self._loops for site in loop)

    def around(self, site: int) -> frozenset[int]:
        """The sites of the loop that a site is in; none where it is in no loop."""
        return next((loop for loop in self._loops if site in loop), frozenset())

    def endless(self, site: int) -> int:
        """The sites that may run any number of times before `site` runs once, as bits."""
        if site not in self._known:
            own = self.around(site)
            others = self._all & ~sum(1 << one for one in own)
            self._known[site] = others | sum(1 << one for one in self._left(own - {site}))
        return self._known[site]

    def _left(self, sites: frozenset[int]) -> set[int]:
        """The sites without those that nothing among them leads to, and those that lead to nothing among them."""
        left = set(sites)
        for near, far in ((self._before, self._after), (self._after, self._before)):
            count = {site: sum(other in left for other in near[site]) for site in left}
            work = [site for site, many in count.items() if not many]
            while work:
                site = work.pop()
                left.discard(site)
                for other in far[site]:
                    if other in left:
                        count[other] -= 1
                        if not count[other]:
                            work.append(other)
        return left


def turning(region: Region) -> set[int]:
    """The sites that control may come back to, barriers among them."""
    graph = nx.DiGraph((site, after) for site, successors in enumerate(region.successors) for after in successors)
    return {site for part in nx.strongly_connected_components(graph) if len(part) > 1 for site in part}
