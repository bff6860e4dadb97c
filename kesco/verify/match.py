"""Which site of the concurrent program is which site of the serial one, and whether control flow agrees.

In: two regions. Out: a `Matching`. A stage of its own because the proof must not depend on how the concurrent
text came to be: it may be kesco's output or somebody's own work, with operations moved about.

1. Sites that do or see work are paired by name, iteration and buffers, then by name and iteration, then by
   name and buffers, each time in site order. So are marks of loops, if both programs have them.
2. Both graphs are reduced to the paired sites. If they are equal, every path of one is a path of the other.
3. Host synchronisations are paired only where that keeps the graphs equal; the others count as removed.

It decides nothing about order, and it does not compare arguments other than buffers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace

from kesco.ir.flow import CAUGHT, Region, Role, Site, SiteKind
from kesco.ir.lifetimes import ALLOCATE, FREE

Graph = dict[int, frozenset[int]]

_SYNCS = (Role.DEVICE_SYNC, Role.STREAM_SYNC, Role.EVENT_SYNC)
_ORDERING = (Role.RECORD, Role.WAIT, Role.CAPTURE, Role.REPLAY)


@dataclass(frozen=True, slots=True)
class Matching:
    """The pairs, from either side (-1 where a site has none), and what could not be paired, in words.

    `same_paths` tells that the two control-flow graphs, reduced to the pairs, are equal. `serial_graph` and
    `concurrent_graph` are those reduced graphs, both over the numbers of concurrent sites.
    """

    to_serial: tuple[int, ...]
    to_concurrent: tuple[int, ...]
    problems: tuple[str, ...]
    same_paths: bool
    serial_graph: Graph
    concurrent_graph: Graph


def is_work(site: Site) -> bool:
    """Whether the site gives the device something to do; a copy that also keeps the host waiting does."""
    if site.role in (Role.DEVICE_SYNC, Role.STREAM_SYNC):
        return bool(site.accesses) or site.kind is not SiteKind.SYNC
    return site.role in (Role.MOVABLE, Role.LEGACY)


def is_sync(site: Site) -> bool:
    """Whether all the site does is to keep the host waiting."""
    return site.role in _SYNCS and not is_work(site)


def is_idle(site: Site) -> bool:
    """Whether nothing happens at a site of the host but that it asks whether the launch before has failed."""
    return _is_of_host(site) and not site.accesses and not site.looks


def _is_of_host(site: Site) -> bool:
    return site.role is Role.HOST and site.mark is None and plain_label(site) in ("host", CAUGHT)


def plain_label(site: Site) -> str:
    """The name without its ``#k``."""
    return site.label.split("#")[0]


def may_be_none(site: Site) -> bool:
    """Whether work on the default stream may turn out to be none."""
    return is_work(site) and site.stream is None and not site.acts


def left_out(region: Region, sites: Collection[int]) -> Region:
    """The region in which these sites do nothing and order nothing."""
    idle = (
        replace(s, role=Role.HOST, kind=SiteKind.HOST_USE, accesses=()) if s.number in sites else s
        for s in region.sites
    )
    return replace(region, sites=tuple(idle))


def match(serial: Region, concurrent: Region) -> Matching:
    """Pair the sites of two regions."""
    pairs = _pair(serial, concurrent, lambda site: not (is_sync(site) or is_idle(site)) and site.role not in _ORDERING)
    pairs += _asked(serial, concurrent, pairs)
    problems = _left_over(serial, {s for s, _ in pairs}, "is missing from the concurrent program")
    problems += _left_over(concurrent, {c for _, c in pairs}, "is not in the serial program")
    # Of waits with no work between them any may be the one that is left: the last one, where that fits as well.
    syncs = (
        _in_groups(serial, concurrent, pairs),
        _pair(serial, concurrent, is_sync, last=True),
        _pair(serial, concurrent, is_sync),
    )
    found = (_agreeing(serial, concurrent, pairs, dict(one)) for one in syncs)
    to_concurrent, ours, theirs = max(found, key=lambda one: len(one[0]))
    to_serial = {c: s for s, c in to_concurrent.items()}
    return Matching(
        tuple(to_serial.get(n, -1) for n in range(len(concurrent.sites))),
        tuple(to_concurrent.get(n, -1) for n in range(len(serial.sites))),
        tuple(problems),
        ours == theirs,
        ours,
        theirs,
    )


def loops(serial: Region, concurrent: Region, matching: Matching) -> dict[str, str]:
    """The loops of the concurrent program whose trips are those of one of the serial program, which is named."""
    if not matching.same_paths:
        return {}
    pairs = [(s, serial.sites[n] if (n := matching.to_serial[s.number]) >= 0 else None)
             for s in concurrent.sites if s.mark is not None]  # fmt: skip
    found: defaultdict[str, set[str]] = defaultdict(set)
    for ours, theirs in pairs:
        found[ours.loop].add(theirs.loop if theirs is not None and theirs.mark is ours.mark else "")
    taken = Counter(s.loop for s in serial.sites if s.mark is not None)
    here = Counter(s.loop for s in concurrent.sites if s.mark is not None)
    known = {ours: next(iter(names)) for ours, names in found.items() if len(names) == 1}
    return {ours: name for ours, name in known.items() if name and here[ours] == taken[name]}


def _between(region: Region, names: dict[int, int]) -> dict[int, Hashable]:
    """For each host synchronisation the named sites that come right before and right behind it on some path."""
    before: defaultdict[int, set[int]] = defaultdict(set)
    for number, name in names.items():
        seen = set()
        stack = list(region.successors[number])
        while stack:
            site = stack.pop()
            if site not in seen and site not in names:
                seen.add(site)
                before[site].add(name)
                stack += region.successors[site]
    return {
        s.number: (
            frozenset(before[s.number]),
            frozenset(names[n] for n in through(region, s.number, names.__contains__)),
        )
        for s in region.sites
        if is_sync(s)
    }


def _in_groups(serial: Region, concurrent: Region, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Host synchronisations of one name that stand between the same sites, paired from the last of them on."""
    ours, theirs = _between(serial, dict(pairs)), _between(concurrent, {c: c for _, c in pairs})
    waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, place in theirs.items():
        waiting[plain_label(concurrent.sites[number]), place].append(number)
    found = []
    for number, place in reversed(ours.items()):
        if candidates := waiting[plain_label(serial.sites[number]), place]:
            found.append((number, candidates.pop()))
    return found


def _agreeing(
    serial: Region, concurrent: Region, pairs: list[tuple[int, int]], syncs: dict[int, int]
) -> tuple[dict[int, int], Graph, Graph]:
    """The pairs with those host synchronisations that keep the graphs equal, and both graphs."""
    while True:
        to_concurrent = dict(pairs) | syncs
        ours = _reduce(serial, to_concurrent)
        theirs = _reduce(concurrent, {c: c for c in to_concurrent.values()})
        near = {n for v in ours.keys() | theirs.keys() if ours.get(v) != theirs.get(v)
                for n in (v, *ours.get(v, ()), *theirs.get(v, ()))}  # fmt: skip
        kept = {s: c for s, c in syncs.items() if c not in near}
        if len(kept) == len(syncs):
            return to_concurrent, ours, theirs
        syncs = kept


def through(region: Region, start: int, stops: Callable[[int], bool]) -> frozenset[int]:
    """The first sites for which `stops` holds on the paths that leave `start`."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(region.successors[start])
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        if stops(number):
            found.add(number)
        else:
            stack += region.successors[number]
    return frozenset(found)


def _family(site: Site) -> str:
    if site.kind is SiteKind.CALL:
        return "call"  # a join in the one program may be work on a stream in the other
    if is_work(site):
        return "work"
    return "sync" if site.role in _SYNCS else site.role.value


def _pair(
    serial: Region, concurrent: Region, wanted: Callable[[Site], bool], last: bool = False
) -> list[tuple[int, int]]:
    """Pairs of sites that are alike, beginning with the first ones of both programs, or with the last."""

    def name(site: Site) -> Hashable:
        label = plain_label(site) if site.mark is None else site.mark.value
        return _family(site), label.removesuffix("Async")

    def iteration(site: Site) -> Hashable:
        return tuple(i.value for i in site.iterations)

    def buffers(site: Site) -> Hashable:
        return tuple(sorted((a.buffer.name, a.mode.value) for a in site.own))

    rounds: tuple[Callable[[Site], Hashable], ...] = (
        lambda site: (name(site), iteration(site), buffers(site)),
        lambda site: (name(site), iteration(site)),
        lambda site: (name(site), buffers(site)),
    )
    left, right = [s for s in serial.sites if wanted(s)], [s for s in concurrent.sites if wanted(s)]
    pairs: list[tuple[int, int]] = []
    for key in rounds:
        waiting: defaultdict[Hashable, list[Site]] = defaultdict(list)
        for site in right if last else reversed(right):
            waiting[key(site)].append(site)
        unpaired = []
        for site in reversed(left) if last else left:
            if candidates := waiting[key(site)]:
                pairs.append((site.number, candidates.pop().number))
            else:
                unpaired.append(site)
        left = sorted(unpaired, key=lambda site: site.number)
        right = sorted((s for group in waiting.values() for s in group), key=lambda site: site.number)
    return pairs


def _asked(serial: Region, concurrent: Region, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of places where the host asks for errors, behind a launch in one of the programs and not in the other."""
    ours, theirs = {s for s, _ in pairs}, {c for _, c in pairs}
    left = [s for s in serial.sites if _is_of_host(s) and s.number not in ours]
    right = [s for s in concurrent.sites if _is_of_host(s) and s.number not in theirs]
    if all(map(is_idle, (*left, *right))):
        return []
    free = {id(site) for site in (*left, *right)}
    return _pair(serial, concurrent, lambda site: id(site) in free)


def _left_over(region: Region, paired: set[int], what: str) -> list[str]:
    """Sites without a counterpart. A prefetch only moves pages about: it may come and go."""
    return [
        f"'{site.label}' ({site.span}) {what}"
        for site in region.sites
        if not (is_sync(site) or is_idle(site))
        and site.role not in _ORDERING
        and site.kind is not SiteKind.PREFETCH
        and site.mark is None  # where nothing happens; what is shown by trips needs both
        and plain_label(site) not in (ALLOCATE, FREE)  # what they do is proven apart (`lifetimes`)
        and site.number not in paired
    ]


def _reduce(region: Region, names: dict[int, int]) -> Graph:
    """The control-flow graph over the sites in `names`, renamed by it."""
    reached = {0}
    stack = [0]
    graph: Graph = {}
    while stack:
        number = stack.pop()
        successors = through(region, number, names.__contains__)
        if number in names:
            graph[names[number]] = frozenset(names[s] for s in successors)
        stack += successors - reached
        reached |= successors
    return graph
