"""The data-flow graph: which site must come after which, and why."""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from kesco.ir.access import Buffer
from kesco.ir.flow import Region
from kesco.ir.graph import Graph


class DependenceKind(enum.Enum):
    """The three hazards: read after write, write after read, write after write."""

    RAW = "RAW"
    WAR = "WAR"
    WAW = "WAW"


@dataclass(frozen=True, slots=True)
class Dependence:
    """Why `target` comes after `source` (site numbers).

    `carried` tells that the source may also reach the target around a loop's back edge.
    """

    source: int
    target: int
    kind: DependenceKind
    buffer: Buffer
    carried: bool = False

    def reason(self, region: Region) -> str:
        """The dependence in words, such as ``RAW on d_small: blur#1 writes it, sobel#1 reads it``."""
        verb = {"RAW": ("writes", "reads"), "WAR": ("reads", "writes"), "WAW": ("writes", "writes")}[self.kind.value]
        a, b = region.sites[self.source].label, region.sites[self.target].label
        around = " (in an earlier iteration)" if self.carried else ""
        return f"{self.kind.value} on {self.buffer.name}: {a} {verb[0]} it{around}, {b} {verb[1]} it"


@dataclass(frozen=True, slots=True)
class Dfg:
    """Dependences between the movable sites of one region.

    `graph` is over site numbers. It may have cycles, and edges from a site to itself, by carried dependences.
    `dependences` lists them all, ordered by (source, target, kind, buffer).
    """

    region: Region
    graph: Graph[int]
    dependences: tuple[Dependence, ...]

    def between(self, source: int, target: int) -> tuple[Dependence, ...]:
        """All dependences of one edge."""
        begin = bisect_left(self.dependences, (source, target), key=_edge)
        return self.dependences[begin : bisect_right(self.dependences, (source, target), key=_edge)]


def _edge(one: Dependence) -> tuple[int, int]:
    return one.source, one.target
