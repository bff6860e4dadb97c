"""Streams for work that becomes a graph: ``chains(dfg)`` orders nothing but what depends on each other.

In: a `Dfg`. Out: a `Schedule` in which an operation stands behind another one on a stream only if it depends on it. A
strategy of its own because streams cost nothing in a graph, where only their order remains; the distributor of
`distributor.py` has few streams to give and so puts operations behind each other that need not be.

1. In the order of the program, each operation goes behind one that it depends on and that is the last of its stream,
on the first of these streams: a graph that ends on the stream where it begins is done sooner (measured). If there is
none, it gets a stream of its own. 2. In a loop the last operation of a stream is followed by its first. Where that does
not depend on the last one, the last one gets a stream of its own.

What it refuses to do: use more streams than the other strategy when it is told how many there are.
"""

from __future__ import annotations

from kesco.ir.dfg import Dfg
from kesco.ir.flow import Role
from kesco.ir.schedule import Schedule


def chains(dfg: Dfg, most: int) -> Schedule | None:
    """The schedule, or None where it takes more than so many streams."""
    lines: list[list[int]] = []
    order = [s.number for s in dfg.region.sites if s.role is Role.MOVABLE and s.number in dfg.graph]
    for site in order:
        open_ends = [line for line in lines if site in dfg.graph[line[-1]] and line[-1] < site]
        if open_ends:
            open_ends[0].append(site)
        else:
            lines.append([site])
    for line in list(lines):
        while len(line) > 1 and line[0] in _behind(dfg, line[-1]) and line[0] not in dfg.graph[line[-1]]:
            lines.append([line.pop()])
    if len(lines) > most:
        return None
    stream_of = {site: number for number, line in enumerate(lines) for site in line}
    return Schedule("chains", len(lines), tuple(sorted(stream_of.items())), tuple(order))


def _behind(dfg: Dfg, site: int) -> set[int]:
    """The sites that may be executed after one."""
    seen: set[int] = set()
    work = list(dfg.region.successors[site])
    while work:
        number = work.pop()
        if number not in seen:
            seen.add(number)
            work += dfg.region.successors[number]
    return seen
