"""A layered drawing of a graph: where each box goes, and how each edge runs from box to box.

In: boxes with sizes, their rows from top to bottom, and edges. Out: a `Layout` in abstract units. It is apart
from the pictures because it knows nothing of kernels, and so that no program for drawing graphs has to be
installed.

Method (Sugiyama's):

1. An edge over several rows gets a place in each row between, so that it runs around boxes and not through
   them. The longest ones go without where there would be more than `MOST_PLACES`.
2. Each row is ordered by the mean position of its neighbours in the row before, downwards and upwards by
   turns; the order with the fewest crossings wins.
3. Within its row a box moves towards the mean of its neighbours as far as the order and the distances allow.
   That is a regression under a chain of inequalities, which pooling adjacent violators solves exactly.
4. Where edges meet a box they are spread over its side in the order of where they go.

What it refuses to do: change a row.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

ROW_GAP = 54.0
BOX_GAP = 18.0
MOST_PLACES = 3_000
_ROUNDS = 8
Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """Left upper corners of boxes, points that an edge runs through (source first), and the size of it all.

    `tops` holds the upper end of each row.
    """

    corners: Mapping[int, Point]
    routes: Mapping[Edge, tuple[Point, ...]]
    tops: tuple[float, ...]
    width: float
    height: float


def levels(nodes: Iterable[int], edges: Iterable[Edge]) -> tuple[tuple[int, ...], ...]:
    """Nodes by the length of the longest chain that leads to them; `edges` must have no cycle."""
    missing = dict.fromkeys(nodes, 0)
    after: dict[int, list[int]] = {node: [] for node in missing}
    for source, target in set(edges):
        after[source].append(target)
        missing[target] += 1
    found: list[tuple[int, ...]] = []
    ready = sorted(node for node, count in missing.items() if not count)
    while ready:
        found.append(tuple(ready))
        for node in found[-1]:
            for target in after[node]:
                missing[target] -= 1
        ready = sorted({t for node in found[-1] for t in after[node] if not missing[t]})
    return tuple(found)


def wrap(row: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """A row cut into rows of about equal length, none longer than `most`."""
    parts = -(-len(row) // most)
    cuts = [len(row) * part // parts for part in range(parts + 1)]
    return [tuple(row[a:b]) for a, b in pairwise(cuts)]


def lay_out(
    rows: Sequence[Sequence[int]],
    sizes: Mapping[int, Point],
    edges: Iterable[Edge],
    gaps: Mapping[int, float] | None = None,
) -> Layout:
    """Place all boxes; `gaps` says how much more room is above a row. A box's edge to itself has no route."""
    drawing = _Drawing(rows, sizes, edges)
    drawing.order()
    drawing.spread()
    return drawing.finish(gaps or {})


@dataclass(slots=True)
class _Item:
    """A box, or the place of an edge in a row that it crosses."""

    row: int
    width: float
    height: float = 0.0
    box: int | None = None
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)
    x: float = 0.0  # of its middle


class _Drawing:
    """The items while they are put in order."""

    def __init__(self, rows: Sequence[Sequence[int]], sizes: Mapping[int, Point], edges: Iterable[Edge]) -> None:
        self.items: list[_Item] = []
        self.rows: list[list[int]] = []
        self.item_of: dict[int, int] = {}
        for number, row in enumerate(rows):
            self.rows.append([])
            for box in row:
                self.item_of[box] = self._add(_Item(number, *sizes[box], box))
        self.chains: dict[Edge, list[int]] = {}
        self.level: list[Edge] = []
        self._chain(sorted({edge for edge in edges if edge[0] != edge[1]}))

    def _add(self, item: _Item) -> int:
        self.items.append(item)
        self.rows[item.row].append(len(self.items) - 1)
        return len(self.items) - 1

    def _chain(self, edges: Sequence[Edge]) -> None:
        """Step 1. A chain goes down; an edge that goes up is turned around, and back when it is drawn."""
        left = MOST_PLACES
        for source, target in sorted(edges, key=lambda edge: (abs(self._rise(edge)), edge)):
            rise = self._rise((source, target))
            if rise == 0:
                self.level.append((source, target))
                continue
            top, bottom = (source, target) if rise > 0 else (target, source)
            chain = [self.item_of[top]]
            if abs(rise) - 1 <= left:
                left -= abs(rise) - 1
                first = self.items[chain[0]].row + 1
                chain += [self._add(_Item(row, 6.0)) for row in range(first, first + abs(rise) - 1)]
            chain.append(self.item_of[bottom])
            self.chains[source, target] = chain
            for a, b in pairwise(chain):
                if self.items[b].row == self.items[a].row + 1:
                    self.items[a].down.append(b)
                    self.items[b].up.append(a)

    def _rise(self, edge: Edge) -> int:
        return self.items[self.item_of[edge[1]]].row - self.items[self.item_of[edge[0]]].row

    # ---- step 2 --------------------------------------------------------------------------------------------

    def order(self) -> None:
        """Put every row in the best order that the sweeps come across."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for turn in range(_ROUNDS):
            if not fewest:
                break
            downwards = turn % 2 == 0
            self._sweep(downwards)
            count = self._crossings()
            if count < fewest:
                best, fewest = [list(row) for row in self.rows], count
        self.rows = best

    def _sweep(self, downwards: bool) -> None:
        position = {item: float(at) for row in self.rows for at, item in enumerate(row)}
        for row in self.rows if downwards else reversed(self.rows):
            wanted = {}
            for item in row:
                beside = self.items[item].up if downwards else self.items[item].down
                wanted[item] = sum(position[n] for n in beside) / len(beside) if beside else position[item]
            row.sort(key=lambda item: wanted[item])
            position.update((item, float(at)) for at, item in enumerate(row))

    def _crossings(self) -> int:
        position = {item: at for row in self.rows for at, item in enumerate(row)}
        count = 0
        for row in self.rows:
            seen: list[int] = []
            for item in row:
                ends = [position[below] for below in self.items[item].down]
                count += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return count

    # ---- step 3 --------------------------------------------------------------------------------------------

    def spread(self) -> None:
        """Give every item its x."""
        for row in self.rows:
            at = 0.0
            for item in row:
                self.items[item].x = at + self.items[item].width / 2
                at += self.items[item].width + BOX_GAP
        for turn in range(_ROUNDS + 4):
            for row in self.rows if turn % 2 == 0 else reversed(self.rows):
                self._pull(row, both=turn >= _ROUNDS - 2)

    def _pull(self, row: list[int], both: bool) -> None:
        items = self.items
        offset, offsets, wanted, weights = 0.0, [], [], []
        before: _Item | None = None
        for item in row:
            one = items[item]
            if before is not None:
                offset += (before.width + one.width) / 2 + BOX_GAP
            before = one
            total = pull = 0.0
            for number in (one.up + one.down) if both else (one.up or one.down):
                other = items[number]
                # an edge should rather be straight where it passes by than where it begins or ends, and where it is
                # the other's only one than where it is one of many: those cannot all be straight
                crowd = len(other.up if other.row > one.row else other.down)
                weight = 4.0 if one.box is None and other.box is None else 1.0 / max(1, crowd)
                total += weight
                pull += weight * other.x
            offsets.append(offset)
            wanted.append((pull / total if total else one.x) - offset)
            weights.append(total or 0.1)
        for item, x, shift in zip(row, _ascending(wanted, weights), offsets, strict=True):
            items[item].x = x + shift

    # ---- step 4 --------------------------------------------------------------------------------------------

    def finish(self, gaps: Mapping[int, float]) -> Layout:
        """Everything moved to where it starts at (0, 0)."""
        left = min((one.x - one.width / 2 for one in self.items), default=0.0)
        right = max((one.x + one.width / 2 for one in self.items), default=0.0)
        tops, bottoms, at = [], [], 0.0
        for number, row in enumerate(self.rows):
            at += gaps.get(number, 0.0)
            tops.append(at)
            bottoms.append(at + max((self.items[item].height for item in row), default=0.0))
            at = bottoms[-1] + ROW_GAP
        for one in self.items:
            one.x -= left
        corners = {
            box: (self.items[i].x - self.items[i].width / 2, tops[self.items[i].row]) for box, i in self.item_of.items()
        }
        ports = self._ports()
        routes: dict[Edge, tuple[Point, ...]] = {}
        for edge, chain in self.chains.items():
            points: list[Point] = []
            for position, item in enumerate(chain):
                one = self.items[item]
                if position:
                    points.append((ports.get((edge, item), one.x), tops[one.row]))
                if position < len(chain) - 1:
                    end = tops[one.row] + one.height if one.box is not None else bottoms[one.row]
                    points.append((ports.get((edge, item), one.x), end))
            routes[edge] = tuple(points if chain[0] == self.item_of[edge[0]] else reversed(points))
        for edge in self.level:
            ends = [self.items[self.item_of[box]] for box in edge]
            routes[edge] = tuple((one.x, tops[one.row] + one.height) for one in ends)
        return Layout(corners, routes, tuple(tops), right - left, max(bottoms, default=0.0))

    def _ports(self) -> dict[tuple[Edge, int], float]:
        """Where on the side of a box an edge begins or ends."""
        sides: dict[tuple[int, bool], list[tuple[float, Edge]]] = {}
        for edge, chain in self.chains.items():
            sides.setdefault((chain[0], True), []).append((self.items[chain[1]].x, edge))
            sides.setdefault((chain[-1], False), []).append((self.items[chain[-2]].x, edge))
        found = {}
        for (item, _), ends in sides.items():
            one = self.items[item]
            step = min(22.0, one.width * 0.8 / len(ends))
            for at, (_, edge) in enumerate(sorted(ends)):
                found[edge, item] = one.x + (at - (len(ends) - 1) / 2) * step
        return found


def _ascending(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The numbers nearest to `wanted` (least weighted squares) that do not descend."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(wanted, weights, strict=True):
        count = 1
        while pools and pools[-1][0] > value:
            mean, heavy, many = pools.pop()
            value = (mean * heavy + value * weight) / (heavy + weight)
            weight, count = weight + heavy, count + many
        pools.append((value, weight, count))
    return [value for value, _, count in pools for _ in range(count)]
