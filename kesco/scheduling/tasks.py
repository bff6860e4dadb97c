"""Zones: the tasks of one region as the strategies with priorities see them.

In: a `Dfg` whose sites name their tasks. Out: its `Zone`s by descending priority, the graph of one zone by itself, how
many streams each gets, and what the host issues before what. It is apart from the strategies because both need it.

1. A zone is a task's movable work. Work of no task that a task needs is that task's, of several the one with the
highest priority; what no task needs is a zone of its own, the last one, which waits for nobody and nobody waits for it.
2. What another task with a higher priority needs is as urgent as that task, whatever its own says. 3. At most `limit`
streams belong to one priority: a stream runs one operation at a time, so that no more of them are in flight.

What it refuses to do: order anything, or look at more than one region.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, Role, SiteKind, is_barrier
from kesco.scheduling.distributor import memory, small
from kesco.scheduling.levels import predecessors
from kesco.scheduling.streams import MOST_STREAMS, default_streams

LIMIT = 6
"""Operations of one priority in flight, as published."""
NO_TASK = -1
"""The priority of work of no task."""


@dataclass(frozen=True, slots=True)
class Zone:
    """The movable sites of one task, ascending."""

    name: str
    priority: int
    sites: tuple[int, ...]


def zones_of(dfg: Dfg) -> tuple[Zone, ...]:
    """The zones by descending priority; of one priority in the order of the text."""
    members: dict[tuple[int, str], list[int]] = {}
    for site, zone in _belongs(dfg).items():
        members.setdefault(zone, []).append(site)
    found = (Zone(name, priority, tuple(sorted(sites))) for (priority, name), sites in members.items())
    return tuple(sorted(found, key=lambda zone: (-zone.priority, zone.sites)))


def has_tasks(dfg: Dfg) -> bool:
    """Whether a region has work that priorities could order: kernels or copies of a task, and others."""
    light = small(dfg)
    return len({zone for site, zone in _belongs(dfg).items() if site not in light}) > 1


def _belongs(dfg: Dfg) -> dict[int, tuple[int, str]]:
    """Priority and name of the zone of each movable site."""
    sites = dfg.region.sites
    found: dict[int, tuple[int, str]] = {}
    wanted = _wanted(dfg)
    for site in sorted(dfg.graph.nodes):
        task = sites[site].task
        found[site] = (sites[site].priority, task) if task else wanted.get(site, (NO_TASK, ""))
    return found


def _wanted(dfg: Dfg) -> dict[int, tuple[int, str]]:
    """For each site the most urgent of the tasks that need it, if any does."""
    sites = dfg.region.sites
    before = predecessors(dfg)
    found: dict[int, tuple[int, str]] = {}
    for site in sorted(before, reverse=True):
        own = (sites[site].priority, sites[site].task) if sites[site].task else (NO_TASK, "")
        most = max((own, found.get(site, own)), key=lambda one: one[0])
        for source in before[site] if most[1] else ():
            if most[0] >= found.get(source, (NO_TASK, ""))[0]:
                found[source] = most
    return found


def priorities(dfg: Dfg) -> dict[int, int]:
    """For each site the priority of its zone."""
    return {site: zone[0] for site, zone in _belongs(dfg).items()}


def urgency(dfg: Dfg) -> dict[int, int]:
    """For each site the highest priority of its own task and of those that need it."""
    wanted = _wanted(dfg)
    return {site: max(zone[0], wanted.get(site, zone)[0]) for site, zone in _belongs(dfg).items()}


def heavy(dfg: Dfg) -> frozenset[int]:
    """The sites that take time worth waiting for: no small transfers, no memory that comes or goes."""
    return frozenset(dfg.graph.nodes) - small(dfg) - {*memory(dfg)}


def folded(zones: Sequence[Zone], streams: int, limit: int) -> tuple[Zone, ...]:
    """Zones that can have a stream each: tasks of one priority beyond `limit` share, and the last ones of all."""
    found: list[Zone] = []
    for priority in sorted({zone.priority for zone in zones}, reverse=True):
        level = [zone for zone in zones if zone.priority == priority]
        shared = level[:limit]
        for number, zone in enumerate(level[limit:]):
            shared[number % limit] = _joined(shared[number % limit], zone)
        found += shared
    while len(found) > max(streams, 1):
        found[-2:] = [_joined(*found[-2:])]
    return tuple(found)


def _joined(one: Zone, other: Zone) -> Zone:
    return Zone(f"{one.name}, {other.name}", one.priority, tuple(sorted((*one.sites, *other.sites))))


def shares(dfg: Dfg, zones: Sequence[Zone], streams: int, limit: int) -> tuple[int, ...]:
    """How many of the streams each zone gets, at least one: by turns, the highest priority first."""
    wanted = [min(streams, default_streams(only(dfg, zone.sites))) for zone in zones]
    given = [1] * len(zones)
    while True:
        before = list(given)
        for number, zone in enumerate(zones):
            level = sum(n for n, other in zip(given, zones, strict=True) if other.priority == zone.priority)
            if given[number] < wanted[number] and sum(given) < streams and (zone.priority < 0 or level < limit):
                given[number] += 1
        if given == before:
            return tuple(given)


def zone_streams(dfg: Dfg, limit: int) -> int:
    """As many streams as the zones can use, at most 16."""
    return min(MOST_STREAMS, sum(shares(dfg, folded(zones_of(dfg), MOST_STREAMS, limit), MOST_STREAMS, limit)))


def only(dfg: Dfg, sites: Collection[int]) -> Dfg:
    """The graph of these sites by themselves; all other work does nothing in it. Numbers stay."""
    kept = frozenset(sites)
    region = dfg.region
    others = tuple(
        replace(s, role=Role.HOST, kind=SiteKind.HOST_USE, accesses=())
        if s.role is Role.MOVABLE and s.number not in kept
        else s
        for s in region.sites
    )
    graph = dfg.graph.subgraph(kept)
    inside = tuple(d for d in dfg.dependences if d.source in kept and d.target in kept)
    return Dfg(replace(region, sites=others), graph, inside)


# ---- what the host issues before what ------------------------------------------------------------------------------


def reach(region: Region, sites: Iterable[int]) -> dict[int, int]:
    """For each site those that control may come to behind it without passing a full barrier, as bits."""
    barrier = sum(1 << site.number for site in region.sites if is_barrier(site))
    found = {}
    for start in sites:
        seen, work = 0, list(region.successors[start])
        while work:
            site = work.pop()
            if not (seen | barrier) >> site & 1:
                seen |= 1 << site
                work += region.successors[site]
        found[start] = seen
    return found


def chains(region: Region) -> list[int]:
    """For each site the first one of its straight chain: whenever one of a chain runs, so do those behind it."""
    entered = [0] * len(region.sites)
    for successors in region.successors:
        for after in successors:
            entered[after] += 1
    first = list(range(len(region.sites)))
    for site, successors in enumerate(region.successors):
        if len(successors) == 1 and entered[successors[0]] == 1 and successors[0] > site:
            first[successors[0]] = first[site]
    return first


def latest(sites: Iterable[int], stream_of: Mapping[int, int], chain: Sequence[int]) -> list[int]:
    """Those of the sites behind which none of the others follows on the same stream, ascending."""
    last = {(stream_of[site], chain[site]): site for site in sorted(sites)}
    return sorted(last.values())
