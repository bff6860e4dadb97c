"""The shape of a region: its straight pieces, and what stands between a capture and its replay.

In: a region. Out: blocks of sites, and events. Apart from the ordering rules because nothing here depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kesco.ir.flow import Region, Role
from kesco.verify.conflicts import union


def blocks(region: Region) -> dict[int, tuple[int, ...]]:
    """Maximal runs of sites without a branch or a meeting of paths, by their first site."""
    predecessors = [0] * len(region.sites)
    for successors in region.successors:
        for successor in successors:
            predecessors[successor] += 1
    heads = {0}
    for successors in region.successors:
        heads.update(s for s in successors if len(successors) > 1 or predecessors[s] > 1)
    result = {}
    for head in heads:
        run = [head]
        while len(region.successors[run[-1]]) == 1 and region.successors[run[-1]][0] not in heads:
            run.append(region.successors[run[-1]][0])
        result[head] = tuple(run)
    return result


def recorded_inside(region: Region, events: Mapping[str, int]) -> dict[int, int]:
    """For the operation of each replay the mask of events, by their numbers, that are recorded in it."""
    found: dict[int, int] = {}
    for begin in (s for s in region.sites if s.role is Role.CAPTURE):
        work, seen = [begin.number], {begin.number}
        while work:
            site = region.sites[work.pop()]
            if site.role is Role.REPLAY:
                continue
            if site.role is Role.RECORD and site.event is not None:
                event = events.get(site.event.key)
                mask = 1 << event if event is not None else -1
                found[begin.operation] = found.get(begin.operation, 0) | mask
            fresh = set(region.successors[site.number]) - seen
            seen |= fresh
            work += fresh
        found.setdefault(begin.operation, 0)
    return found


def reachable(graph: Mapping[int, frozenset[int]]) -> dict[int, int]:
    """For each node the mask of those behind it on some path."""
    reach = dict.fromkeys(graph, 0)
    changed = True
    while changed:
        changed = False
        for number in sorted(graph, reverse=True):
            mask = union((1 << s) | reach.get(s, 0) for s in graph[number])
            if mask != reach[number]:
                reach[number], changed = mask, True
    return reach


def first_of(graph: Mapping[int, frozenset[int]], start: int, stops: set[int]) -> set[int]:
    """The first of `stops` on each path that leaves `start`."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(graph.get(start, ()))
    while stack:
        number = stack.pop()
        if number in stops:
            found.add(number)
        elif number not in seen:
            seen.add(number)
            stack += graph.get(number, ())
    return found


def turns_of(graph: Mapping[int, frozenset[int]], first: int, second: int, ends: set[int]) -> tuple[set[int], ...]:
    """Which of two sites, or of the ends of all paths, may come next, from the entry and from each of the two."""
    return tuple(first_of(graph, start, {first, second} | ends) for start in (0, first, second))
