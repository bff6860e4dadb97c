"""The shape of a data-flow graph: its phases, levels, width and longest chain, for strategies and reports.

In: a `Dfg`. Out: plain tuples and numbers. It is apart from the strategies because several need it and so do
the pictures and the choice of the number of streams.

Method:

1. *Phases*: the parts of the region that remain connected when its full barriers are taken out. Sites of two
   phases never run together, whatever the streams, so a phase is levelled, measured and distributed by
   itself.
2. *Levels*: an operation is one level below the lowest of its predecessors. Dependences carried around a loop
   and those of a site on itself are left out: within one round they order nothing, and what remains has no
   cycle. But where a full barrier stands on every path from the target to the source, a round of the phase
   begins behind that barrier: there a carried dependence orders like any other.
3. *Width*: the largest set of operations of one phase of which none depends on another. By Dilworth's theorem
   it is the number of sites less the largest matching between sites and their (indirect) successors.
   Augmenting paths find that matching, on bit masks. Phases above `EXACT_WIDTH` sites take their largest
   level instead, which is never more. Where all that is independent stands on branches that exclude each other,
   the width is 1.

What it refuses to do: choose a stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import networkx as nx

from kesco.ir.dfg import Dfg
from kesco.ir.flow import SMALL, Held, SiteKind, is_barrier, may_be_nothing
from kesco.ir.schedule import Schedule

EXACT_WIDTH = 300


def phases(dfg: Dfg) -> tuple[tuple[int, ...], ...]:
    """The movable sites, grouped so that between two groups there is a full barrier on every path."""
    region = dfg.region
    leader = list(range(len(region.sites)))

    def find(site: int) -> int:
        while leader[site] != site:
            leader[site] = leader[leader[site]]
            site = leader[site]
        return site

    for site, successors in enumerate(region.successors):
        if is_barrier(region.sites[site]):
            continue
        for after in successors:
            if not is_barrier(region.sites[after]):
                a, b = find(site), find(after)
                leader[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for site in sorted(dfg.graph.nodes):
        groups.setdefault(find(site), []).append(site)
    return tuple(tuple(group) for group in groups.values())


def overlaps(dfg: Dfg, schedule: Schedule, one_of: Collection[int] = ()) -> bool:
    """Whether two independent kernels or copies, not just memsets, are on different streams.

    With `one_of`, one of the two is among those.
    """
    sites = dfg.region.sites
    light = (SiteKind.MEMSET, SiteKind.ALLOC, SiteKind.FREE)
    heavy = {n: stream for n, stream in schedule.stream_of if sites[n].kind not in light}
    level_of = {site: level for level, there in enumerate(levelize(dfg)) for site in there}
    return len({*heavy.values()}) > 1 and _meet(dfg, predecessors(dfg), level_of, heavy, one_of)


def issued_beside(dfg: Dfg, schedule: Schedule, one_of: Collection[int], done: Collection[int]) -> bool:
    """Whether, of two independent operations on different streams, one is issued while the other may be running.

    One of the two is among `one_of`; those of `done`, and copies, have ended before anything is issued behind them.
    """
    sites, stream_of = dfg.region.sites, schedule.as_dict()
    light = {n for n in stream_of if sites[n].kind is SiteKind.MEMSET}
    held = {n for n in stream_of if sites[n].held in (Held.SOURCE, Held.ALL)}
    pairs = _issued_pairs(dfg, stream_of.keys() - light - held - set(done), stream_of.keys() - light, ())
    return any(stream_of[a] != stream_of[b] and (a in one_of or b in one_of) for a, b in pairs)


def overlaps_as_issued(dfg: Dfg, schedule: Schedule, later: Collection[int], *, copies: bool) -> bool:
    """Whether two kernels or large copies run at once in this order of issue; with `copies`, a kernel beside a copy.

    Behind a copy that keeps the host nothing is issued before it is done, and what it waits for. `later` are operations
    of those whose host may go on at once.
    """
    sites, stream_of = dfg.region.sites, schedule.as_dict()
    copied = {n for n in stream_of if sites[n].held is not None or (sites[n].holds and not sites[n].busy)}
    keeps = {n for n in copied if sites[n].held is not Held.LATER and sites[n].operation not in later}
    small = {n for n in copied if (size := sites[n].bytes) is not None and size <= SMALL}
    heavy = {n for n in stream_of if sites[n].kind is SiteKind.KERNEL or sites[n].busy} | copied - small
    allowed = (1,) if copies else (0, 1)
    pairs = _issued_pairs(dfg, heavy - keeps, heavy, keeps)
    return any(stream_of[a] != stream_of[b] and len(copied & {a, b}) in allowed for a, b in pairs)


def _issued_pairs(
    dfg: Dfg, firsts: Collection[int], seconds: Collection[int], keeps: Collection[int]
) -> Iterator[tuple[int, int]]:
    """The independent operations, the second issued behind the first and before one of `keeps` that waits for it.

    In one round of every loop what counts is that round alone; from one trip to a later one, all dependences.
    """
    before, forward = predecessors(dfg), dfg.region.forward()
    rounds: nx.DiGraph[int] = nx.DiGraph()
    rounds.add_nodes_from(before)
    rounds.add_edges_from((source, site) for site, sources in before.items() for source in sources)
    for a in sorted(firsts):
        needs = nx.descendants(dfg.graph, a)
        stop, bound = needs.intersection(keeps), nx.descendants(rounds, a)
        for b in sorted((reached(dfg, forward, a, stop) & set(seconds)) - bound - {a}):
            if a not in nx.descendants(rounds, b):
                yield a, b
        for b in sorted((reached(dfg, dfg.region.successors, a, stop) & set(seconds)) - needs - {a}):
            if a not in nx.descendants(dfg.graph, b):
                yield a, b


def predecessors(dfg: Dfg, without: Collection[int] = ()) -> dict[int, tuple[int, ...]]:
    """The sites that each site depends on within one round of every loop and one phase, ascending.

    Those of `without` are left out; what they depend on takes their place.
    """
    direct = _predecessors(dfg)
    if not without:
        return direct
    found: dict[int, tuple[int, ...]] = {}
    for site in sorted(direct):  # predecessors come first in the text
        sources: set[int] = set()
        for source in direct[site]:
            sources.update(found.get(source, ()) if source in without else (source,))
        found[site] = tuple(sorted(sources))
    return {site: sources for site, sources in found.items() if site not in without}


def _predecessors(dfg: Dfg) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {site: [] for site in sorted(dfg.graph.nodes)}
    behind: dict[int, set[int]] = {}
    across = any(map(may_be_nothing, dfg.region.sites))  # whether dependences may go through a barrier

    def reaches(site: int, other: int) -> bool:
        if site not in behind:
            behind[site] = reached(dfg, dfg.region.successors, site)
        return other in behind[site]

    for dependence in dfg.dependences:
        source, target = dependence.source, dependence.target
        sources = found[target]
        # dependences come ordered by source, so that a second one of the same edge follows the first
        if source == target or source in sources[-1:]:
            continue
        if dependence.carried and reaches(target, source):
            continue
        if across and not reaches(source, target):
            continue
        sources.append(source)
    return {site: tuple(sources) for site, sources in found.items()}


def reached(dfg: Dfg, successors: Sequence[Sequence[int]], start: int, ends: Collection[int] = frozenset()) -> set[int]:
    """The sites that control comes to behind `start` without passing a full barrier, or one of `ends`."""
    sites = dfg.region.sites
    found: set[int] = set()
    work = list(successors[start])
    while work:
        site = work.pop()
        if site not in found and site not in ends and not is_barrier(sites[site]):
            found.add(site)
            work += successors[site]
    return found


def levelize(dfg: Dfg, without: Collection[int] = ()) -> tuple[tuple[int, ...], ...]:
    """The sites of each level, ascending, but for those of `without`; the first level depends on nothing."""
    before = predecessors(dfg, without)
    after: dict[int, list[int]] = {site: [] for site in before}
    missing = {site: len(sources) for site, sources in before.items()}
    for site, sources in before.items():
        for source in sources:
            after[source].append(site)
    levels: list[tuple[int, ...]] = []
    ready = [site for site, count in missing.items() if not count]
    while ready:
        levels.append(tuple(sorted(ready)))
        follow: list[int] = []
        for site in ready:
            for target in after[site]:
                missing[target] -= 1
                if not missing[target]:
                    follow.append(target)
        ready = follow
    return tuple(levels)


def critical_path_length(dfg: Dfg) -> int:
    """How many operations the longest chain of dependences has."""
    return len(levelize(dfg))


def width(dfg: Dfg, without: Collection[int] = ()) -> int:
    """How many operations can run at once: the largest antichain of any phase (large ones: a lower bound)."""
    levels = levelize(dfg, without)
    before = predecessors(dfg, without)
    level_of = {site: level for level, sites in enumerate(levels) for site in sites}
    best = 0
    for phase in (tuple(s for s in sites if s in before) for sites in phases(dfg)):
        if len(phase) <= best:
            continue
        if len(phase) <= EXACT_WIDTH:
            best = max(best, _antichain(phase, before, level_of))
        else:
            sizes = [0] * len(levels)
            for site in phase:
                sizes[level_of[site]] += 1
            best = max(best, *sizes)
    return best if best < 2 or _meet(dfg, before, level_of) else 1


def _meet(
    dfg: Dfg,
    before: dict[int, tuple[int, ...]],
    level_of: dict[int, int],
    among: Mapping[int, int] | None = None,
    one_of: Collection[int] = (),
) -> bool:
    """Whether two independent operations ever run in one phase: not on branches that exclude each other.

    With `among`, only its sites count, and only those that it gives different streams; with `one_of`, one of the two is
    among those.
    """
    forward = dfg.region.forward()
    ancestors: dict[int, int] = {}
    for site in sorted(before, key=lambda one: (level_of[one], one)):
        mask = 0
        for source in before[site]:
            mask |= ancestors[source] | 1 << source
        ancestors[site] = mask

    def independent(a: int, b: int) -> bool:
        apart = a != b if among is None else among[a] != among[b]
        if dfg.region.sites[a].held is not None and dfg.region.sites[b].held is not None:
            return False  # copies that keep the host follow each other
        if one_of and a not in one_of and b not in one_of:
            return False
        return apart and not ancestors[a] >> b & 1 and not ancestors[b] >> a & 1

    for phase in phases(dfg):
        inside = {*phase} & (before if among is None else among).keys()
        for a in sorted(inside):
            if any(independent(a, b) for b in reached(dfg, forward, a) & inside):
                return True
        for a in sorted(inside):  # around a loop: one trip takes the one branch, a later trip the other
            around = reached(dfg, dfg.region.successors, a) & inside
            for b in (one for one in around if independent(a, one)):
                if not (nx.has_path(dfg.graph, a, b) and nx.has_path(dfg.graph, b, a)):
                    return True
            if any((among is None or among[a] != among[b]) and in_turn(dfg, b, a) for b in around):
                return True
    return False


def stages(dfg: Dfg) -> int:
    """How many operations of one phase can run at once, each of another trip of a loop; 0 without such a loop."""
    most = 0
    for phase in phases(dfg) if dfg.region.loops else ():
        found: list[int] = []
        for site in phase:
            if all(in_turn(dfg, other, site) or in_turn(dfg, site, other) for other in found):
                found.append(site)
        most = max(most, len(found))
    return most


def in_turn(dfg: Dfg, first: int, second: int) -> bool:
    """Whether `first` of one trip of a loop may run beside `second` of the trip before, on which it does not depend.

    It does not if the host has waited for that.
    """
    if first == second or not dfg.region.loops or dfg.region.sites[second].held is Held.ALL:
        return False
    behind = first in reached(dfg, dfg.region.successors, second)
    return behind and not nx.has_path(dfg.graph, second, first)


def _antichain(phase: tuple[int, ...], before: dict[int, tuple[int, ...]], level_of: dict[int, int]) -> int:
    """The size of the largest antichain of `phase`: its sites less a largest matching with ancestors."""
    order = sorted(phase, key=lambda site: (level_of[site], site))
    index = {site: position for position, site in enumerate(order)}
    ancestors: list[int] = []
    for site in order:
        mask = 0
        for source in before[site]:
            mask |= ancestors[index[source]] | 1 << index[source]
        ancestors.append(mask)
    taken_by: dict[int, int] = {}  # ancestor → the site matched with it
    matched = 0
    for root in range(len(order)):
        matched += _augment(root, ancestors, taken_by)
    return len(order) - matched


def _augment(root: int, ancestors: list[int], taken_by: dict[int, int]) -> bool:
    """Match one more site, `root`, by an alternating path, if there is one. Breadth first, so never deep."""
    fresh = (1 << len(ancestors)) - 1  # ancestors that no step has looked at
    free = fresh
    for ancestor in taken_by:
        free &= ~(1 << ancestor)
    reached_from: dict[int, int] = {}
    partner: dict[int, int] = {}  # site → the ancestor that it holds now
    queue = [root]
    for site in queue:
        direct = ancestors[site] & fresh & free
        if direct:
            ancestor = direct.bit_length() - 1
            while True:
                taken_by[ancestor] = site
                if site == root:
                    return True
                ancestor, site = partner[site], reached_from[partner[site]]
        mask = ancestors[site] & fresh
        fresh &= ~mask
        while mask:
            low = mask & -mask
            mask ^= low
            ancestor = low.bit_length() - 1
            holder = taken_by[ancestor]
            reached_from[ancestor] = site
            partner[holder] = ancestor
            queue.append(holder)
    return False
