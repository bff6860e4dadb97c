"""What may be late where: the forward half of the synchronization generator (steps 1, 2, 3 and 5 of the package).

In: graph and schedule, brought into the form that the walk works on. Out: for each candidate wait whether it is needed
as far as facts that are united where paths meet can tell, and the joins.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, Role, is_sure_barrier
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import Join

_JOINED = frozenset({Role.EXIT, Role.JOIN})


@dataclass(frozen=True, slots=True)
class Task:
    """The question in the form that the steps work on."""

    region: Region
    streams: int
    stream_of: dict[int, int]
    candidates: dict[int, tuple[int, ...]]  # target → its sources on other streams, ascending
    sources: frozenset[int]
    predecessors: tuple[tuple[int, ...], ...]  # of each site, reachable ones only
    chains: list[list[int]]  # the reachable sites in straight chains, in reverse post order of their first ones
    chain_of: dict[int, int]
    joined: frozenset[int]  # behind calls that the default stream waits before, whether what is called works or not

    def is_barrier(self, site: int) -> bool:
        """Whether everything before a site is ordered before everything behind it, whatever the sizes."""
        return is_sure_barrier(self.region.sites[site])


def prepare(dfg: Dfg, schedule: Schedule, pairs: Collection[tuple[int, int]] | None = None) -> Task:
    """The question in the form that the walk works on: of `pairs`, or of all edges of the graph."""
    stream_of = schedule.as_dict()
    missing = sorted(set(dfg.graph.nodes) - stream_of.keys())
    if missing:
        raise ValueError(f"the schedule has no stream for {', '.join(map(str, missing))}")
    candidates: dict[int, list[int]] = {}
    for source, target in sorted(dfg.graph.edges if pairs is None else pairs):
        if stream_of[source] != stream_of[target]:
            candidates.setdefault(target, []).append(source)
    order = _reverse_post_order(dfg.region)
    predecessors: list[list[int]] = [[] for _ in dfg.region.sites]
    for site in sorted(order):
        for after in dfg.region.successors[site]:
            predecessors[after].append(site)
    chains = _chains(dfg.region, order, predecessors)
    return Task(
        dfg.region,
        max(stream_of.values(), default=-1) + 1,
        stream_of,
        {target: tuple(sources) for target, sources in candidates.items()},
        frozenset(source for sources in candidates.values() for source in sources),
        tuple(tuple(before) for before in predecessors),
        chains,
        {site: index for index, chain in enumerate(chains) for site in chain},
        frozenset(_joined(dfg.region, predecessors)),
    )


def _joined(region: Region, predecessors: list[list[int]]) -> Iterator[int]:
    """The sites behind a call in their own statement, whether control came to the work of that call or not."""
    for call in (s for s in region.sites if s.role is Role.JOIN):
        for site in (region.sites[number] for number in region.successors[call.number]):
            around = site.span.path == call.span.path and site.span.start <= call.span.start < site.span.end
            ways = {*predecessors[site.number]} <= {call.number, *predecessors[call.number]}
            if around and ways and site.role is Role.HOST and site.mark is None:
                yield site.number


def _reverse_post_order(region: Region) -> tuple[int, ...]:
    seen = {0}
    finished: list[int] = []
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(region.successors[0]))]
    while stack:
        site, rest = stack[-1]
        after = next((number for number in rest if number not in seen), None)
        if after is None:
            finished.append(site)
            stack.pop()
        else:
            seen.add(after)
            stack.append((after, iter(region.successors[after])))
    return tuple(reversed(finished))


def _chains(region: Region, order: tuple[int, ...], predecessors: list[list[int]]) -> list[list[int]]:
    """`order` cut into longest straight chains."""
    follows = {
        before[0]: site
        for site, before in enumerate(predecessors)
        if site and len(before) == 1 and len(region.successors[before[0]]) == 1
    }
    inside = set(follows.values())
    chains: list[list[int]] = []
    for site in order:
        if site not in inside:
            chain = [site]
            while chain[-1] in follows:
                chain.append(follows[chain[-1]])
            chains.append(chain)
    return chains


# Steps 2, 3 and 5: what may be late ---------------------------------------------------------------------------


@dataclass(slots=True)
class State:
    """The sets of step 2 at one point, as bit masks, and the like for step 4.

    `late` is U by stream and `late_event` is UC by site; `early` and `early_event` are the sites that may have run
    and been in time. An event that is in neither was not recorded since the last barrier.
    """

    late: list[int]
    early: list[int]
    pending: int = 0  # all sites that may have run since the last barrier
    owed: int = 0  # those of them that the default stream may not have waited for
    late_event: dict[int, int] = field(default_factory=dict)
    early_event: dict[int, int] = field(default_factory=dict)

    def join(self, other: State) -> bool:
        """Unite with `other`, which may hold on another path; whether anything was new."""
        before = (self.late, self.early, self.pending, self.owed)
        changed = False
        for site in [*other.late_event, *(site for site in self.late_event if site not in other.late_event)]:
            late = self.late_event.get(site, self.pending) | other.late_event.get(site, other.pending)
            early = self.early_event.get(site, 0) | other.early_event.get(site, 0)
            if late != self.late_event.get(site) or early != self.early_event.get(site):
                self.late_event[site], self.early_event[site] = late, early
                changed = True
        self.late = [a | b for a, b in zip(self.late, other.late, strict=True)]
        self.early = [a | b for a, b in zip(self.early, other.early, strict=True)]
        self.pending |= other.pending
        self.owed |= other.owed
        return changed or before != (self.late, self.early, self.pending, self.owed)


@dataclass(slots=True)
class Result:
    """What the last round over the region writes down; `behind` is the state behind each chain."""

    needed: set[tuple[int, int]] = field(default_factory=set)
    joins: list[Join] = field(default_factory=list)
    behind: list[State] = field(default_factory=list)


def facts_of(task: Task) -> Result:
    """The candidates that step 3 cannot do without, the joins, and the states for step 4."""
    chains = task.chains
    awaited = _awaited_later(task)
    known: list[State | None] = [None] * len(chains)
    known[0] = State([0] * task.streams, [0] * task.streams)
    work, waiting = [0], {0}
    while work:
        index = heapq.heappop(work)
        waiting.discard(index)
        state = _run(task, chains[index], known[index], awaited[index], None)
        for after in task.region.successors[chains[index][-1]]:
            target = task.chain_of[after]
            there = known[target]
            if there is None:
                known[target] = replace(state, late_event=dict(state.late_event), early_event=dict(state.early_event))
            elif not there.join(state):
                continue
            if target not in waiting:
                waiting.add(target)
                heapq.heappush(work, target)
    result = Result()
    for index, chain in enumerate(chains):
        result.behind.append(_run(task, chain, known[index], awaited[index], result))
    return result


def _awaited_later(task: Task) -> list[int]:
    """For each chain the events whose latest record may still be awaited behind it."""
    alive: list[int] = []
    ends: list[int] = []
    for chain in task.chains:
        use, end = 0, 0
        for site in chain:
            if task.is_barrier(site):
                end = -1
            for source in task.candidates.get(site, ()):
                use |= (1 << source) & ~end
            if site in task.sources:
                end |= 1 << site
        alive.append(use)
        ends.append(end)
    work = list(range(len(task.chains)))
    while work:
        index = work.pop()
        for before in task.predecessors[task.chains[index][0]]:
            earlier = task.chain_of[before]
            new = alive[earlier] | alive[index] & ~ends[earlier]
            if new != alive[earlier]:
                alive[earlier] = new
                work.append(earlier)
    behind = [0] * len(task.chains)
    for index, chain in enumerate(task.chains):
        for after in task.region.successors[chain[-1]]:
            behind[index] |= alive[task.chain_of[after]]
    return behind


def _run(task: Task, chain: list[int], known: State | None, awaited: int, result: Result | None) -> State:
    """The state behind `chain`, with the events in `awaited`; what steps 3 and 5 find is added to `result`.

    Adding each site to all sets of events would cost the square of their number. Instead each set remembers
    which sites of this chain had run when it was last written, and gets what ran since when it is looked at.
    """
    if known is None:
        raise ValueError("a chain was looked at before any path led to it")
    late, early, pending, owed = list(known.late), list(known.early), known.pending, known.owed
    events = {site: (mask, known.early_event[site], 0) for site, mask in known.late_event.items()}
    run = 0

    def of_event(source: int) -> tuple[int, int]:
        found = events.get(source)
        if found is None:
            return pending, 0
        since = run & ~found[2]
        return found[0] | since, found[1] & ~since

    for site in chain:
        if task.is_barrier(site):
            if result is not None and owed and task.region.sites[site].role in _JOINED:
                result.joins.append(Join(site, _join(task, owed, late)))
            late, early, pending, owed = [0] * task.streams, [0] * task.streams, 0, 0
            events.clear()
        elif site in task.joined:
            owed = 0
        elif site in task.stream_of:
            stream, bit = task.stream_of[site], 1 << site
            sources = task.candidates.get(site, ())
            masks = [of_event(source) for source in sources]
            if result is not None and sources:
                others = all_others(late[stream], [mask for mask, _ in masks])
                result.needed.update((x, site) for x, mask in zip(sources, others, strict=True) if mask >> x & 1)
            for late_mask, early_mask in masks:
                late[stream] &= late_mask
                early[stream] |= early_mask
            pending |= bit
            owed |= bit
            run |= bit
            late = [mask if index == stream else mask | bit for index, mask in enumerate(late)]
            early = [mask | bit if index == stream else mask & ~bit for index, mask in enumerate(early)]
            if site in task.sources:
                events[site] = (late[stream], early[stream], run)
    current = {source: of_event(source) for source in events if awaited >> source & 1}
    return State(
        late,
        early,
        pending,
        owed,
        {source: late_mask for source, (late_mask, _) in current.items()},
        {source: early_mask for source, (_, early_mask) in current.items()},
    )


def all_others(first: int, masks: list[int]) -> list[int]:
    """For each of `masks` the intersection of `first` and all the others."""
    result = []
    for mask in masks:
        result.append(first)
        first &= mask
    last = -1
    for index in reversed(range(len(masks))):
        result[index] &= last
        last &= masks[index]
    return result


def _join(task: Task, pending: int, late: list[int]) -> tuple[int, ...]:
    """Streams that together come behind all `pending` sites, none of them dispensable."""
    latest: dict[int, int] = {}
    for site in bits(pending):
        latest[task.stream_of[site]] = site
    kept = set(latest)
    for stream in sorted(latest, key=lambda s: latest[s]):
        missed = pending
        for other in kept - {stream}:
            missed &= late[other]
        if not missed:
            kept.discard(stream)
    return tuple(sorted(kept))


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
