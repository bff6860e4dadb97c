"""The data-flow graph: which site must come after which, and why."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kesco.ir.access import Buffer
from kesco.ir.flow import Region

if TYPE_CHECKING:
    import networkx as nx


class DependenceKind(enum.Enum):
    """The three hazards: read after write, write after read, write after write; and what a flag tells of the others.

    At a release one of the two sites does not touch the buffer, but whoever sees what it writes may.
    """

    RAW = "RAW"
    WAR = "WAR"
    WAW = "WAW"
    RELEASE = "release"


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
        a, b = region.sites[self.source].label, region.sites[self.target].label
        around = " (in an earlier iteration)" if self.carried else ""
        if self.kind is DependenceKind.RELEASE:
            return f"release of {self.buffer.name}: the host may look at it between {a}{around} and {b}"
        verb = {"RAW": ("writes", "reads"), "WAR": ("reads", "writes"), "WAW": ("writes", "writes")}[self.kind.value]
        return f"{self.kind.value} on {self.buffer.name}: {a} {verb[0]} it{around}, {b} {verb[1]} it"


@dataclass(frozen=True, slots=True)
class Dfg:
    """Dependences between the movable sites of one region.

    `graph` is a frozen `networkx.DiGraph` over site numbers. It may have cycles and self loops, by carried dependences.
    `dependences` lists them all, ordered by (source, target, kind, buffer).
    """

    region: Region
    graph: nx.DiGraph[int]
    dependences: tuple[Dependence, ...]

    def between(self, source: int, target: int) -> tuple[Dependence, ...]:
        """All dependences of one edge."""
        return tuple(self.graph.edges[source, target]["dependences"])
