"""Which operations of a function need nothing of each other, with all that keeps them apart thought away.

In: a `Region`, with the `Facts` of its text. Out: its `Pair`s of operations. Apart from the stages because it asks
about a program that does not exist: the one without waits of the host, joins and copies that hold the host.

1. *Operations* are kernels, calls of functions that launch, calls of libraries and of unseen code that are given device
memory, and copies of more than `SMALL` bytes. 2. Two of them, of which one is no copy
and the second is reached from the first in one round of every loop, depend on each other if a chain of `Ties` leads
from one to the other, through whatever else touches memory. 3. So do an operation of one turn of a loop and one, maybe
the same, of the next turn. 4. The weakest tie of the firmest chain counts. Without a chain the two are independent.
5. Independent ones are kept apart where one of them is a barrier itself, where every path between them has a barrier,
or where they are one site, which has one stream.

It proves nothing and changes nothing: it says where to look. Of more than `MOST` sites of work it says nothing. The
operations of `known` pairs are independent, whatever it finds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kesco.ir.flow import SMALL, Region, Role, Site, SiteKind, is_barrier
from kesco.remarks.facts import Facts
from kesco.remarks.ties import Circle, Grade, Tie, Ties, circles

MOST = 150
_DEVICE = (Role.MOVABLE, Role.LEGACY)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two operations, `second` of the next turn of `circle` where there is one.

    `ties` is why they are not independent, empty where they are: all of one grade. `barriers` stand between them, in
    the order of the text; `apart` tells that they cannot overlap as it is.
    """

    first: Site
    second: Site
    circle: Circle | None
    ties: tuple[Tie, ...]
    barriers: tuple[Site, ...] = ()
    apart: bool = True

    @property
    def grade(self) -> Grade | None:
        """How firmly they depend on each other; None for not at all."""
        return self.ties[0].grade if self.ties else None


class Independence:
    """The pairs of one region."""

    def __init__(self, region: Region, facts: Facts, known: Collection[tuple[int, int]] = ()) -> None:
        self.region, self.facts, self.known = region, facts, known
        self.work = [s.number for s in region.sites if _is_work(s)]
        self.operations = [n for n in self.work if self.is_operation(region.sites[n])]
        self.too_large = len(self.work) > MOST or len(region.sites) > 8 * MOST

    @cached_property
    def ties(self) -> Ties:
        """The dependences."""
        return Ties(self.region, self.facts)

    @cached_property
    def circles(self) -> tuple[Circle, ...]:
        """The loops around operations."""
        found = circles(self.region, self.facts)
        return tuple(c for c in found if c.body.intersection(self.operations))

    def is_operation(self, site: Site) -> bool:
        """Whether a site is something that another one could run beside."""
        if site.kind is SiteKind.KERNEL:
            return True
        if site.kind is SiteKind.COPY and site.role in _DEVICE:
            return site.bytes is None or site.bytes > SMALL
        if site.kind is SiteKind.LIBRARY:
            return len(site.accesses) > 1  # the workspace of its handle, and what it works on
        if site.kind is SiteKind.CALL and self.facts.only_makes(site):
            return False
        if site.kind is SiteKind.CALL:
            return site.operation in self.facts.calls or any(a.buffer.on_device for a in site.accesses)
        return False

    def _counts(self, *pair: Site) -> bool:
        """Whether it is worth a word if two sites overlap: not if both only copy, or one does once beside a loop."""
        copies = [site for site in pair if self.facts.only_copies(site)]
        if len(copies) != 1:
            return not copies
        other = pair[0] if copies[0] is pair[1] else pair[1]
        return not any(other.number in c.body and copies[0].number not in c.body for c in self.circles)

    @property
    def with_copies(self) -> frozenset[tuple[int, int]]:
        """The operations of the pairs, one of each a copy, that may overlap as it is."""
        free = (p for p in self.pairs if not p.apart and SiteKind.COPY in (p.first.kind, p.second.kind))
        return frozenset((p.first.operation, p.second.operation) for p in free)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of the region and its loops."""
        if self.too_large:
            return ()
        found = list(self._of_round())
        for circle in self.circles:
            found += self.of_turns(circle)
        return tuple(found)

    def _of_round(self) -> Iterator[Pair]:
        behind = {n: self.ties.reached(n, (), None) for n in self.work}
        direct = {
            a: {b: tie for b in self.work if b in behind[a] and b != a and (tie := self.ties.between(a, b)) is not None}
            for a in self.work
        }
        for a in self.operations:
            chains = _Chains(direct, (a,))
            for b in self.operations:
                if b != a and b in behind[a] and self._counts(self.region.sites[a], self.region.sites[b]):
                    yield self._pair(a, b, None, chains.to(b))

    def of_turns(self, circle: Circle) -> Iterator[Pair]:
        """The pairs of a turn of a loop and the next."""
        inside = [n for n in self.work if n in circle.body]
        heavy = [n for n in self.operations if n in circle.body]
        behind = {n: self._in_turn(n, circle) for n in inside}
        graph: dict[int, dict[int, Tie]] = {}
        later = len(self.region.sites)  # the number of a site of the next turn is so much more
        for a in inside:
            mine = {b: t for b in inside if b in behind[a] and (t := self.ties.between(a, b)) is not None}
            graph[a + later] = {b + later: t for b, t in mine.items()}
            across = ((b, self.ties.between(a, b, circle)) for b in inside)
            graph[a] = mine | {b + later: t for b, t in across if t is not None}
        for a in heavy:
            chains = _Chains(graph, (a,))
            for b in heavy:
                if self._counts(self.region.sites[a], self.region.sites[b]):
                    yield self._pair(a, b, circle, chains.to(b + later))

    def _in_turn(self, start: int, circle: Circle) -> frozenset[int]:
        """The sites that may follow in the same turn."""
        found: set[int] = set()
        work = list(self.region.successors[start])
        while work:
            site = work.pop()
            if site in circle.body and site != circle.head and site not in found:
                found.add(site)
                work += self.region.successors[site]
        return frozenset(found)

    def _pair(self, a: int, b: int, circle: Circle | None, ties: tuple[Tie, ...]) -> Pair:
        first, second = self.region.sites[a], self.region.sites[b]
        if ties and (first.operation, second.operation) not in self.known:
            return Pair(first, second, circle, ties)
        free = a != b and not is_barrier(first) and not is_barrier(second) and self._path(a, b, circle, through=False)
        if free:
            return Pair(first, second, circle, (), (), apart=False)
        path = self._path(a, b, circle, through=True)
        return Pair(first, second, circle, (), tuple(s for s in path if is_barrier(s)))

    def _path(self, a: int, b: int, circle: Circle | None, *, through: bool) -> Sequence[Site]:
        """A shortest path from one site to another, in one round or across the beginning of a turn, with both ends."""
        start = (a, circle is None)
        came: dict[tuple[int, bool], tuple[int, bool]] = {}
        queue = deque([start])
        while queue:
            at = queue.popleft()
            number, crossed = at
            for after in (self.ties.forward if circle is None else self.region.successors)[number]:
                if circle is not None and (after not in circle.body or (crossed and after == circle.head)):
                    continue
                to = (after, crossed or (circle is not None and after == circle.head))
                if to in came or (not through and after != b and is_barrier(self.region.sites[after])):
                    continue
                came[to] = at
                if to == (b, True):
                    path = [to]
                    while path[-1] != start or len(path) == 1:
                        path.append(came[path[-1]])
                    return [self.region.sites[n] for n, _ in reversed(path)]
                queue.append(to)
        return ()


class _Chains:
    """The firmest chains that begin at one place of a graph of ties."""

    def __init__(self, graph: dict[int, dict[int, Tie]], starts: tuple[int, ...]) -> None:
        self._found = [self._walk(graph, starts, least) for least in (Grade.FIRM, Grade.UNKNOWN, Grade.RENAME)]

    @staticmethod
    def _walk(graph: dict[int, dict[int, Tie]], starts: tuple[int, ...], least: Grade) -> dict[int, tuple[int, Tie]]:
        """What can be come to by ties that are at least so firm, each with where it is come from."""
        found: dict[int, tuple[int, Tie]] = {}
        queue = deque(starts)
        while queue:
            at = queue.popleft()
            for after, tie in graph[at].items():
                if after not in found and tie.grade >= least:
                    found[after] = (at, tie)
                    queue.append(after)
        return found

    def to(self, end: int) -> tuple[Tie, ...]:
        """The weakest ties of the firmest chain."""
        for grade, found in zip((Grade.FIRM, Grade.UNKNOWN, Grade.RENAME), self._found, strict=True):
            if end in found:
                ties = []
                at, seen = end, set[int]()
                while at in found and at not in seen:
                    seen.add(at)
                    at, tie = found[at]
                    ties.append(tie)
                return tuple(dict.fromkeys(t for t in reversed(ties) if t.grade is grade))
        return ()


def _is_work(site: Site) -> bool:
    return site.role in _DEVICE or bool(site.accesses and _touches_device(site))


def _touches_device(site: Site) -> bool:
    """Whether a site that is no work of the device takes part in its order: the host's own uses, calls, frees."""
    if site.kind is SiteKind.CALL and site.foreign:
        return any(a.buffer.on_device for a in site.accesses)
    return site.role in (Role.HOST, Role.JOIN)
