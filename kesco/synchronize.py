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
   the wait is redundant.
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

SEARCH_LIMIT = 100_000  # steps back from one wait
_BARRIERS = frozenset({Role.ENTRY, Role.EXIT, Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC})
_JOINED = frozenset({Role.EXIT, Role.JOIN})


def synchronize(dfg: Dfg, schedule: Schedule) -> SyncPlan:
    """The needed waits and joins of `dfg` under `schedule`."""
    task = _task(dfg, schedule)
    needed, joins = _facts(task)
    if any(len(before) > 1 for before in task.predecessors):
        needed = {(x, b) for x, b in sorted(needed) if _has_witness(task, x, b)}
    waits = tuple(
        Wait(source, target, dfg.between(source, target))
        for source, target in sorted(needed, key=lambda pair: (pair[1], pair[0]))
    )
    return SyncPlan(
        tuple(sorted({source for source, _ in needed})), waits, joins, _removed(dfg, task, needed)
    )


@dataclass(frozen=True, slots=True)
class _Task:
    """The question in the form that the steps work on."""

    region: Region
    streams: int
    stream_of: dict[int, int]
    candidates: dict[int, tuple[int, ...]]  # target → its sources on other streams, ascending
    sources: frozenset[int]
    order: tuple[int, ...]  # reachable sites in reverse post order
    predecessors: tuple[tuple[int, ...], ...]  # reachable ones of each site

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
    return _Task(
        dfg.region,
        max(stream_of.values(), default=-1) + 1,
        stream_of,
        {target: tuple(sources) for target, sources in candidates.items()},
        frozenset(source for sources in candidates.values() for source in sources),
        order,
        tuple(tuple(before) for before in predecessors),
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


def _chains(task: _Task) -> list[list[int]]:
    """The reachable sites in longest straight chains, in reverse post order of their first sites."""
    follows = {
        before[0]: site
        for site, before in enumerate(task.predecessors)
        if site and len(before) == 1 and len(task.region.successors[before[0]]) == 1
    }
    inside = set(follows.values())
    chains: list[list[int]] = []
    for site in task.order:
        if site not in inside:
            chain = [site]
            while chain[-1] in follows:
                chain.append(follows[chain[-1]])
            chains.append(chain)
    return chains


# Steps 2, 3 and 5: what is certainly ordered ---------------------------------------------------------------


@dataclass(slots=True)
class _State:
    """The sets of step 2 as bit masks. An event not in `unordered` was not recorded since a barrier."""

    late: list[int]  # U, by stream
    pending: int = 0  # all sites that may have run since the last barrier
    unordered: dict[int, int] = field(default_factory=dict)  # UC, by site

    def join(self, other: _State) -> bool:
        """Unite with `other`, which may hold on another path; whether anything was new."""
        before = (self.late, self.pending, self.unordered)
        self.late = [a | b for a, b in zip(self.late, other.late, strict=True)]
        self.unordered = {
            site: self.unordered.get(site, self.pending) | other.unordered.get(site, other.pending)
            for site in self.unordered.keys() | other.unordered.keys()
        }
        self.pending |= other.pending
        return before != (self.late, self.pending, self.unordered)


@dataclass(slots=True)
class _Result:
    """What the last round over the region writes down."""

    needed: set[tuple[int, int]] = field(default_factory=set)
    joins: list[Join] = field(default_factory=list)


def _facts(task: _Task) -> tuple[set[tuple[int, int]], tuple[Join, ...]]:
    """The candidates that step 3 cannot do without, and the joins."""
    chains = _chains(task)
    place = {chain[0]: index for index, chain in enumerate(chains)}
    awaited = _awaited_later(task, chains, place)
    known: list[_State | None] = [None] * len(chains)
    known[0] = _State([0] * task.streams)
    work, waiting = [0], {0}
    while work:
        index = heapq.heappop(work)
        waiting.discard(index)
        state = _run(task, chains[index], known[index], None)
        for after in task.region.successors[chains[index][-1]]:
            target = place[after]
            alive = {site: late for site, late in state.unordered.items() if awaited[target] >> site & 1}
            arriving = _State(list(state.late), state.pending, alive)
            there = known[target]
            if there is None:
                known[target] = arriving
            elif not there.join(arriving):
                continue
            if target not in waiting:
                waiting.add(target)
                heapq.heappush(work, target)
    result = _Result()
    for index, chain in enumerate(chains):
        _run(task, chain, known[index], result)
    return result.needed, tuple(sorted(result.joins, key=lambda join: join.target))


def _awaited_later(task: _Task, chains: list[list[int]], place: dict[int, int]) -> list[int]:
    """For each chain the events whose latest record may still be awaited where it begins."""
    uses: list[int] = []
    ends: list[int] = []
    for chain in chains:
        use, end = 0, 0
        for site in chain:
            if task.is_barrier(site):
                end = -1
            for source in task.candidates.get(site, ()):
                use |= (1 << source) & ~end
            if site in task.sources:
                end |= 1 << site
        uses.append(use)
        ends.append(end)
    alive = list(uses)
    before: list[list[int]] = [[] for _ in chains]
    for index, chain in enumerate(chains):
        for after in task.region.successors[chain[-1]]:
            before[place[after]].append(index)
    work = list(range(len(chains)))
    while work:
        index = work.pop()
        for earlier in before[index]:
            new = alive[earlier] | alive[index] & ~ends[earlier]
            if new != alive[earlier]:
                alive[earlier] = new
                work.append(earlier)
    return alive


def _run(task: _Task, chain: list[int], known: _State | None, result: _Result | None) -> _State:
    """The state behind `chain`; what step 3 and step 5 find on the way is added to `result` where given.

    Adding each site to all sets of events would cost the square of their number. Instead each set remembers
    which sites of this chain had run when it was last written, and gets what ran since when it is looked at.
    """
    if known is None:
        raise ValueError("a chain was looked at before any path led to it")
    late, pending = list(known.late), known.pending
    unordered = {site: (mask, 0) for site, mask in known.unordered.items()}
    run = 0

    def of_event(source: int) -> int:
        found = unordered.get(source)
        return pending if found is None else found[0] | run & ~found[1]

    for site in chain:
        if task.is_barrier(site):
            if result is not None and pending and task.region.sites[site].role in _JOINED:
                result.joins.append(Join(site, _join(task, pending, late)))
            late, pending = [0] * task.streams, 0
            unordered.clear()
        elif site in task.stream_of:
            stream, bit = task.stream_of[site], 1 << site
            sources = task.candidates.get(site, ())
            if sources:
                masks = [of_event(source) for source in sources]
                if result is not None:
                    others = _all_others(late[stream], masks)
                    result.needed.update(
                        (x, site) for x, mask in zip(sources, others, strict=True) if mask >> x & 1
                    )
                for mask in masks:
                    late[stream] &= mask
            pending |= bit
            run |= bit
            late = [mask if index == stream else mask | bit for index, mask in enumerate(late)]
            if site in task.sources:
                unordered[site] = (late[stream], run)
    return _State(late, pending, {source: of_event(source) for source in unordered})


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


# Step 4: a path on which nothing else orders the pair ------------------------------------------------------


def _has_witness(task: _Task, x: int, b: int) -> bool:
    """Whether on some path from an execution of `x` to `b` only the wait of `b` for `x` orders them.

    Facts are bits: bit s is "x is late for stream s", bit `streams` + y is "x is late for the event of y".
    """
    streams, stream_of = task.streams, task.stream_of

    def waits(site: int, but: int = -1) -> int:
        return sum(1 << streams + source for source in task.candidates.get(site, ()) if source != but)

    asked: dict[int, list[int]] = {}  # weakest conjunctions already followed, where paths may meet again
    stack = [(site, 1 << stream_of[b] | waits(b, x)) for site in task.predecessors[b]]
    for _ in range(SEARCH_LIMIT):
        if not stack:
            return False
        site, facts = stack.pop()
        if task.is_barrier(site):
            continue
        if len(task.region.successors[site]) > 1:
            weaker = asked.setdefault(site, [])
            if any(other & facts == other for other in weaker):
                continue
            weaker[:] = [other for other in weaker if other & facts != facts]
            weaker.append(facts)
        stream = stream_of.get(site)
        if stream is not None:
            if facts >> streams + site & 1:
                facts = facts & ~(1 << streams + site) | 1 << stream
            if site == x:
                if facts >> stream & 1:
                    continue
                return True
            if facts >> stream & 1:
                facts |= waits(site)
        stack.extend((earlier, facts) for earlier in task.predecessors[site])
    return True


# Words -----------------------------------------------------------------------------------------------------


def _removed(dfg: Dfg, task: _Task, needed: set[tuple[int, int]]) -> tuple[RemovedWait, ...]:
    """Every edge that needs no event, with the reason."""
    behind: dict[int, list[tuple[int, tuple[int, ...]]]] = {}  # by stream: the sites that wait
    by_target: dict[int, list[int]] = {}
    for source, target in sorted(needed):
        by_target.setdefault(target, []).append(source)
    for target in sorted(by_target):
        behind.setdefault(task.stream_of[target], []).append((target, tuple(by_target[target])))
    straight = all(len(after) <= 1 for after in dfg.region.successors)
    removed: list[RemovedWait] = []
    for source, target in sorted(dfg.graph.edges, key=lambda edge: (edge[1], edge[0])):
        if (source, target) not in needed:
            removed.append(RemovedWait(source, target, _because(task, behind, source, target, straight)))
    return tuple(removed)


def _because(
    task: _Task,
    behind: dict[int, list[tuple[int, tuple[int, ...]]]],
    source: int,
    target: int,
    straight: bool,
) -> str:
    """Why `target` need not wait for `source`."""
    sites, stream = task.region.sites, task.stream_of[target]
    a, b = sites[source].label, sites[target].label
    if source == target:
        return f"all executions of {a} are on stream {stream}"
    if task.stream_of[source] == stream:
        return f"{a} and {b} are on stream {stream}"
    chain = _way_round(task, behind, source, target)
    if not chain:
        return f"on every path {b} already comes after {a}"
    words = " → ".join(sites[site].label for site in chain)
    return (
        f"{words} already orders it" if straight else f"every path orders it already, one of them by {words}"
    )


def _way_round(
    task: _Task,
    behind: dict[int, list[tuple[int, tuple[int, ...]]]],
    source: int,
    target: int,
    limit: int = 64,
) -> tuple[int, ...]:
    """The sites by which kept waits lead from `source` to the stream of `target`, or nothing."""
    queue: list[tuple[int, tuple[int, ...]]] = [(target, ())]
    seen = {target}
    for place, chain in queue:
        if len(queue) > limit:
            break
        for waiter, sources in reversed(behind.get(task.stream_of[place], [])):
            if waiter > place:
                continue
            if waiter < source or len(queue) > limit:
                break
            for awaited in sources:
                onward = (awaited, *((waiter,) if waiter != target else ()), *chain)
                if awaited == source:
                    return onward
                if awaited > source and task.stream_of[awaited] == task.stream_of[source]:
                    return (source, *onward)
                if awaited > source and awaited not in seen:
                    seen.add(awaited)
                    queue.append((awaited, onward))
    return ()
