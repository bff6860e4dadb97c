"""A directed graph that never changes: nodes, the ways between them, and the few questions that the stages ask.

In: nodes and pairs of them. Out: a `Graph`. It is a module of its own, and no library's graph, because kesco runs for
every file of a build, and there reading in networkx took longer than any stage.

Whatever is listed comes in the order in which it was given, so that what is made from it is always the same.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Graph(Generic[T]):
    """Nodes and edges, each once; an edge may lead back to its node, and name nodes that `nodes` does not."""

    __slots__ = ("_after", "_before")

    def __init__(self, nodes: Iterable[T] = (), edges: Iterable[tuple[T, T]] = ()) -> None:
        after: dict[T, dict[T, None]] = {node: {} for node in nodes}
        before: dict[T, dict[T, None]] = {node: {} for node in after}
        for source, target in edges:
            for node in (source, target):
                after.setdefault(node, {})
                before.setdefault(node, {})
            after[source][target] = None
            before[target][source] = None
        self._after = {node: tuple(others) for node, others in after.items()}
        self._before = {node: tuple(others) for node, others in before.items()}

    @property
    def nodes(self) -> tuple[T, ...]:
        """All nodes."""
        return tuple(self._after)

    @property
    def edges(self) -> tuple[tuple[T, T], ...]:
        """All edges, those of one source together."""
        return tuple((source, target) for source, targets in self._after.items() for target in targets)

    def __iter__(self) -> Iterator[T]:
        return iter(self._after)

    def __len__(self) -> int:
        return len(self._after)

    def __contains__(self, node: object) -> bool:
        return node in self._after

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return {n: {*a} for n, a in self._after.items()} == {n: {*a} for n, a in other._after.items()}

    __hash__ = None  # type: ignore[assignment]

    def successors(self, node: T) -> tuple[T, ...]:
        """Where the edges from a node lead."""
        return self._after[node]

    def predecessors(self, node: T) -> tuple[T, ...]:
        """Where the edges to a node come from."""
        return self._before[node]

    def has_edge(self, source: T, target: T) -> bool:
        """Whether there is this edge."""
        return target in self._after.get(source, ())

    def subgraph(self, nodes: Collection[T]) -> Graph[T]:
        """These nodes, with the edges among them."""
        kept = {*nodes}
        inside = ((a, b) for a, b in self.edges if a in kept and b in kept)
        return Graph((node for node in self._after if node in kept), inside)

    def reached(self, node: T) -> set[T]:
        """The nodes that one edge or more lead to; `node` itself is one of them if it is on a cycle."""
        found: set[T] = set()
        work = [node]
        while work:
            fresh = [one for one in self._after[work.pop()] if one not in found]
            found.update(fresh)
            work += fresh
        return found

    def has_path(self, source: T, target: T) -> bool:
        """Whether edges lead from one node to another; from a node to itself none are needed."""
        return source == target or target in self.reached(source)

    def components(self) -> list[frozenset[T]]:
        """The largest sets of nodes that lead to each other, a set behind those that it leads to (Tarjan)."""
        number: dict[T, int] = {}
        lowest: dict[T, int] = {}
        placed: set[T] = set()
        waiting: list[T] = []
        found: list[frozenset[T]] = []
        for root in self._after:
            work = [(root, iter(self._after[root]))] if root not in number else []
            while work:
                node, rest = work[-1]
                if node not in number:
                    number[node] = lowest[node] = len(number)
                    waiting.append(node)
                for other in rest:
                    if other not in number:
                        work.append((other, iter(self._after[other])))
                        break
                    if other not in placed:
                        lowest[node] = min(lowest[node], lowest[other])
                else:
                    work.pop()
                    if work:
                        above = work[-1][0]
                        lowest[above] = min(lowest[above], lowest[node])
                    if lowest[node] == number[node]:
                        at = waiting.index(node)
                        found.append(frozenset(waiting[at:]))
                        placed.update(waiting[at:])
                        del waiting[at:]
        return found

    def dominators(self, start: T) -> dict[T, T]:
        """For each node that `start` leads to, but `start`: the last one before it that every way from there passes.

        The iteration of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
        """
        order: list[T] = []  # each node after all that come behind it
        seen = {start}
        work = [(start, iter(self._after[start]))]
        while work:
            node, rest = work[-1]
            fresh = next((one for one in rest if one not in seen), None)
            if fresh is None:
                order.append(node)
                work.pop()
            else:
                seen.add(fresh)
                work.append((fresh, iter(self._after[fresh])))
        place = {node: number for number, node in enumerate(order)}
        found = {start: start}
        changed = True
        while changed:
            changed = False
            for node in reversed(order[:-1]):
                known = [one for one in self._before[node] if one in found]
                meet = known[0]
                for other in known[1:]:
                    while meet != other:
                        while place[meet] < place[other]:
                            meet = found[meet]
                        while place[other] < place[meet]:
                            other = found[other]
                if found.get(node) != meet:
                    found[node] = meet
                    changed = True
        del found[start]
        return found
