"""Which events are recorded and awaited: ``synchronize(dfg, schedule)`` turns both into a `SyncPlan`.

In: the data-flow graph of one region and a stream for each movable site. Out: the waits that are needed, the
joins with the legacy default stream, and for every dependence that needs no event the reason. It is a stage
of its own because the graph says what must be ordered, the schedule says what is ordered already, and this is
the difference.

The site rule: a site has one stream for ever. For a dependence a → b on two streams an event is recorded
behind each execution of a, and b's stream waits for the event's latest record right before each execution of
b. An event that was never recorded holds nobody up. This is right for every path, so all such pairs are
*candidates*.

Method:

1. Take every edge of the graph between two streams as a candidate.
2. With all candidates in place, walk the control-flow graph to a fixpoint and know at each point for each
   stream s the set U(s) of sites that may have run and are not known to come before the next operation of s,
   and for each event the set UC(x) of sites that may have run and are not known to come before the latest
   record of x's event. A site x on stream t adds itself to U(s) of all s ≠ t and to UC(y) of all y ≠ x, then
   sets UC(x) := U(t). Waiting for y on t sets U(t) := U(t) ∩ UC(y): executions of one site are in order with
   each other, so a site is late only if it is late for both. Full barriers empty all sets; where paths meet
   the sets are united.
3. The candidate x → b, b on t, is redundant where x ∉ U(t) ∩ UC(y) ∩ UC(z) … over b's other candidates y, z,
   …
4. Where paths meet, step 2 may forget that the one fact fails only where the other holds. So each candidate
   it would keep is tried again backwards: "x is in U(t) and in UC(y) and …" right before b is a conjunction
   of facts, and each site turns a conjunction that is asked behind it into one that is asked before it. A
   path back to an execution of x on which no fact fails is a proof that the wait is needed; if there is none,
   the wait is redundant. At the end of each chain the sets of step 2, and those of sites that may be in time,
   decide most facts at once.
5. A join takes one stream after the other off its list while U over those that remain has no pending site in
   common.

Why all redundant waits may go at once: fix any execution and look at its operations in the order in which the
host issues them. Stream order and waits are edges from earlier to later ones. A redundant wait from an
execution of x to one of b has another way round, and since no second edge joins these two, each step of that
way lies strictly inside the interval from x to b. By induction over the length of the interval, each wait on
that way is kept or implied by kept ones. So the kept waits order all that the candidates order. And each kept
one is needed: on some path nothing else, not even all other candidates together, orders its pair. (A
transitive reduction is unique where the graph has no cycle, and an execution has none.)

What it refuses to do: wait for a site that is not a dependence, order what the host does, or reorder the
program. Where the search of step 4 grows beyond `SEARCH_LIMIT` it keeps the wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, Role
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import Join, RemovedWait, SyncPlan, Wait

SEARCH_LIMIT = 2_000  # chains looked at for one wait
_BARRIERS = frozenset({Role.ENTRY, Role.EXIT, Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC})
_JOINED = frozenset({Role.EXIT, Role.JOIN})


def synchronize(dfg: Dfg, schedule: Schedule) -> SyncPlan:
    """The needed waits and joins of `dfg` under `schedule`."""
    task = _task(dfg, schedule)
    result = _facts(task)
    needed = result.needed
    if any(len(before) > 1 for before in task.predecessors):
        needed = {(x, b) for x, b in needed if _has_witness(task, result.behind, x, b)}
    waits = tuple(
        Wait(source, target, dfg.between(source, target))
        for source, target in sorted(needed, key=lambda pair: (pair[1], pair[0]))
    )
    joins = tuple(sorted(result.joins, key=lambda join: join.target))
    events = tuple(sorted({source for source, _ in needed}))
    return SyncPlan(events, waits, joins, _removed(dfg, task, needed))


@dataclass(frozen=True, slots=True)
class _Task:
    """The question in the form that the steps work on."""

    region: Region
    streams: int
    stream_of: dict[int, int]
    candidates: dict[int, tuple[int, ...]]  # target → its sources on other streams, ascending
    sources: frozenset[int]
    predecessors: tuple[tuple[int, ...], ...]  # of each site, reachable ones only
    chains: list[list[int]]  # the reachable sites in straight chains, in reverse post order of their first ones
    chain_of: dict[int, int]

    def is_barrier(self, site: int) -> bool:
        return self.region.sites[site].role in _BARRIERS


def _task(dfg: Dfg, schedule: Schedule) -> _Task:
    stream_of = schedule.as_dict()
    missing = sorted(set(dfg.graph.nodes) - stream_of.keys())
    if missing:
        raise ValueError(f"the schedule has no stream for {', '.join(map(str, missing))}")
    candidates: dict[int, list[int]] = {}
    for source, target in sorted(dfg.graph.edges):
        if stream_of[source] != stream_of[target]:
            candidates.setdefault(target, []).append(source)
    order = _reverse_post_order(dfg.region)
    predecessors: list[list[int]] = [[] for _ in dfg.region.sites]
    for site in sorted(order):
        for after in dfg.region.successors[site]:
            predecessors[after].append(site)
    chains = _chains(dfg.region, order, predecessors)
    return _Task(
        dfg.region,
        max(stream_of.values(), default=-1) + 1,
        stream_of,
        {target: tuple(sources) for target, sources in candidates.items()},
        frozenset(source for sources in candidates.values() for source in sources),
        tuple(tuple(before) for before in predecessors),
        chains,
        {site: index for index, chain in enumerate(chains) for site in chain},
    )


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
class _State:
    """The sets of step 2 at one point, as bit masks, and the like for step 4.

    `late` is U by stream and `late_event` is UC by site; `early` and `early_event` are the sites that may have run
    and been in time. An event that is in neither was not recorded since the last barrier.
    """

    late: list[int]
    early: list[int]
    pending: int = 0  # all sites that may have run since the last barrier
    late_event: dict[int, int] = field(default_factory=dict)
    early_event: dict[int, int] = field(default_factory=dict)

    def join(self, other: _State) -> bool:
        """Unite with `other`, which may hold on another path; whether anything was new."""
        before = (self.late, self.early, self.pending)
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
        return changed or before != (self.late, self.early, self.pending)


@dataclass(slots=True)
class _Result:
    """What the last round over the region writes down; `behind` is the state behind each chain."""

    needed: set[tuple[int, int]] = field(default_factory=set)
    joins: list[Join] = field(default_factory=list)
    behind: list[_State] = field(default_factory=list)


def _facts(task: _Task) -> _Result:
    """The candidates that step 3 cannot do without, the joins, and the states for step 4."""
    chains = task.chains
    awaited = _awaited_later(task)
    known: list[_State | None] = [None] * len(chains)
    known[0] = _State([0] * task.streams, [0] * task.streams)
    work, waiting = [0], {0}
    while work:
        index = heapq.heappop(work)
        waiting.discard(index)
        state = _run(task, chains[index], known[index], awaited[index], None)
        for after in task.region.successors[chains[index][-1]]:
            target = task.chain_of[after]
            there = known[target]
            if there is None:
                known[target] = _State(
                    state.late, state.early, state.pending, dict(state.late_event), dict(state.early_event)
                )
            elif not there.join(state):
                continue
            if target not in waiting:
                waiting.add(target)
                heapq.heappush(work, target)
    result = _Result()
    for index, chain in enumerate(chains):
        result.behind.append(_run(task, chain, known[index], awaited[index], result))
    return result


def _awaited_later(task: _Task) -> list[int]:
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


def _run(task: _Task, chain: list[int], known: _State | None, awaited: int, result: _Result | None) -> _State:
    """The state behind `chain`, with the events in `awaited`; what steps 3 and 5 find is added to `result`.

    Adding each site to all sets of events would cost the square of their number. Instead each set remembers
    which sites of this chain had run when it was last written, and gets what ran since when it is looked at.
    """
    if known is None:
        raise ValueError("a chain was looked at before any path led to it")
    late, early, pending = list(known.late), list(known.early), known.pending
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
            if result is not None and pending and task.region.sites[site].role in _JOINED:
                result.joins.append(Join(site, _join(task, pending, late)))
            late, early, pending = [0] * task.streams, [0] * task.streams, 0
            events.clear()
        elif site in task.stream_of:
            stream, bit = task.stream_of[site], 1 << site
            sources = task.candidates.get(site, ())
            masks = [of_event(source) for source in sources]
            if result is not None and sources:
                others = _all_others(late[stream], [mask for mask, _ in masks])
                result.needed.update((x, site) for x, mask in zip(sources, others, strict=True) if mask >> x & 1)
            for late_mask, early_mask in masks:
                late[stream] &= late_mask
                early[stream] |= early_mask
            pending |= bit
            run |= bit
            late = [mask if index == stream else mask | bit for index, mask in enumerate(late)]
            early = [mask | bit if index == stream else mask & ~bit for index, mask in enumerate(early)]
            if site in task.sources:
                events[site] = (late[stream], early[stream], run)
    current = {source: of_event(source) for source in events if awaited >> source & 1}
    return _State(
        late,
        early,
        pending,
        {source: late_mask for source, (late_mask, _) in current.items()},
        {source: early_mask for source, (_, early_mask) in current.items()},
    )


def _all_others(first: int, masks: list[int]) -> list[int]:
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


def _join(task: _Task, pending: int, late: list[int]) -> tuple[int, ...]:
    """Streams that together come behind all `pending` sites, none of them dispensable."""
    latest: dict[int, int] = {}
    for site in _bits(pending):
        latest[task.stream_of[site]] = site
    kept = set(latest)
    for stream in sorted(latest, key=lambda s: latest[s]):
        missed = pending
        for other in kept - {stream}:
            missed &= late[other]
        if not missed:
            kept.discard(stream)
    return tuple(sorted(kept))


def _bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


# Step 4: a path on which nothing else orders the pair ---------------------------------------------------------


def _has_witness(task: _Task, behind: list[_State], x: int, b: int) -> bool:
    """Whether on some path from an execution of `x` to `b` only the wait of `b` for `x` orders them.

    Facts are bits: bit s is "x is late for stream s", bit `streams` + y is "x is late for the event of y".
    """
    place = task.chain_of[b]
    chain = task.chains[place]
    rest = chain[: chain.index(b)]
    facts: int | None = 1 << task.stream_of[b] | _waits(task, b, but=x)
    asked: dict[int, list[int]] = {}  # by chain: the weakest conjunctions already followed from its end
    stack: list[tuple[int, int]] = []
    for _ in range(SEARCH_LIMIT):
        facts = _back(task, rest, x, facts)
        if facts == 0:
            return True
        for before in task.predecessors[chain[0]] if facts is not None else ():
            earlier = task.chain_of[before]
            open_facts = _undecided(task, behind[earlier], x, facts or 0)
            if open_facts == 0:
                return True
            if open_facts is not None:
                weaker = asked.setdefault(earlier, [])
                if not any(other & open_facts == other for other in weaker):
                    weaker[:] = [other for other in weaker if other & open_facts != open_facts]
                    weaker.append(open_facts)
                    stack.append((earlier, open_facts))
        if not stack:
            return False
        place, facts = stack.pop()
        rest = chain = task.chains[place]
    return True


def _waits(task: _Task, site: int, but: int = -1) -> int:
    """The facts that all candidates of `site` ask for."""
    return sum(1 << task.streams + source for source in task.candidates.get(site, ()) if source != but)


def _back(task: _Task, chain: list[int], x: int, facts: int | None) -> int | None:
    """What must hold before `chain` for `facts` to hold behind it: 0 if they do, None if they cannot."""
    for site in reversed(chain):
        if facts is None or task.is_barrier(site):
            return None
        stream = task.stream_of.get(site)
        if stream is not None:
            if facts >> task.streams + site & 1:
                facts = facts & ~(1 << task.streams + site) | 1 << stream
            if site == x:
                return None if facts >> stream & 1 else 0
            if facts >> stream & 1:
                facts |= _waits(task, site)
    return facts


def _undecided(task: _Task, state: _State, x: int, facts: int) -> int | None:
    """Those of `facts` that hold in `state` on some paths only; None if one of them holds on none."""
    if not state.pending >> x & 1:
        return None
    for fact in _bits(facts):
        event = fact - task.streams
        late = state.late[fact] if event < 0 else state.late_event.get(event, state.pending)
        if not late >> x & 1:
            return None
        if not (state.early[fact] if event < 0 else state.early_event.get(event, 0)) >> x & 1:
            facts &= ~(1 << fact)
    return facts


# Words ---------------------------------------------------------------------------------------------------------

_Waiters = dict[int, list[tuple[int, tuple[int, ...]]]]  # stream → its sites that wait, ascending, and for whom


def _removed(dfg: Dfg, task: _Task, needed: set[tuple[int, int]]) -> tuple[RemovedWait, ...]:
    """Every edge that needs no event, with the reason."""
    awaited: dict[int, list[int]] = {}
    for source, target in sorted(needed):
        awaited.setdefault(target, []).append(source)
    waiters: _Waiters = {}
    for target in sorted(awaited):
        waiters.setdefault(task.stream_of[target], []).append((target, tuple(awaited[target])))
    return tuple(
        RemovedWait(source, target, _because(task, waiters, source, target))
        for source, target in sorted(dfg.graph.edges, key=lambda edge: (edge[1], edge[0]))
        if (source, target) not in needed
    )


def _because(task: _Task, waiters: _Waiters, source: int, target: int) -> str:
    """Why `target` need not wait for `source`."""
    sites, stream = task.region.sites, task.stream_of[target]
    a, b = sites[source].label, sites[target].label
    if source == target:
        return f"all executions of {a} are on stream {stream}"
    if task.stream_of[source] == stream:
        return f"{a} and {b} are on stream {stream}"
    way = _way_round(task, waiters, source, target)
    if not way:
        return f"every path from {a} to {b} already orders them"
    return f"{' → '.join(sites[site].label for site in way)} already orders it"


def _way_round(task: _Task, waiters: _Waiters, source: int, target: int, limit: int = 64) -> tuple[int, ...]:
    """The sites by which kept waits lead from `source` to the stream of `target`.

    Nothing where there are branches between the two, so that there is more than one way, or where it is very long.
    """
    place = task.chain_of[source]
    if task.chain_of[target] != place or source > target:
        return ()
    queue: list[tuple[int, tuple[int, ...]]] = [(target, ())]
    seen = {target}
    for begin, way in queue:
        for waiter, sources in reversed(waiters.get(task.stream_of[begin], [])):
            if waiter < source or len(queue) > limit:
                break
            if waiter > begin or task.chain_of[waiter] != place:
                continue
            for awaited in sources:
                onward = (awaited, *(() if waiter in {target, *way[:1]} else (waiter,)), *way)
                if awaited == source:
                    return onward
                if awaited < source or awaited > waiter or task.chain_of[awaited] != place:
                    continue
                if task.stream_of[awaited] == task.stream_of[source]:
                    return (source, *onward)
                if awaited not in seen:
                    seen.add(awaited)
                    queue.append((awaited, onward))
    return ()
