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
6. Barriers that the schedule asks for come last, as candidates against the waits that are there by then. They may take
   the place of some of those, but not between tasks: there no dependence ever rests on a barrier.

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

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import RemovedWait, SyncPlan, Wait
from kesco.synchronize.facts import Result, Task, facts_of, prepare
from kesco.synchronize.witness import SEARCH_LIMIT as SEARCH_LIMIT
from kesco.synchronize.witness import has_witness


def synchronize(dfg: Dfg, schedule: Schedule) -> SyncPlan:
    """The needed waits and joins of `dfg` under `schedule`."""
    task = prepare(dfg, schedule)
    result = facts_of(task)
    needed = _needed(task, result)
    held = {(b.source, b.target): b.why for b in schedule.barriers if (b.source, b.target) not in needed}
    if held:
        task = prepare(dfg, schedule, {*needed, *held})
        left = _needed(task, facts_of(task))
        needed = left if not schedule.by_task else needed | left
    waits = [
        Wait(*pair, why=held[pair]) if pair in held else Wait(*pair, dfg.between(*pair)) for pair in sorted(needed)
    ]
    joins = tuple(sorted(result.joins, key=lambda join: join.target))
    events = tuple(sorted({wait.source for wait in waits}))
    waits.sort(key=lambda wait: (wait.target, wait.source))
    return SyncPlan(events, tuple(waits), joins, _removed(dfg, task, needed))


def _needed(task: Task, result: Result) -> set[tuple[int, int]]:
    """The candidates that are left after step 4."""
    if all(len(before) < 2 for before in task.predecessors):
        return result.needed
    return {(x, b) for x, b in result.needed if has_witness(task, result.behind, x, b)}


_Waiters = dict[int, list[tuple[int, tuple[int, ...]]]]  # stream → its sites that wait, ascending, and for whom


def _removed(dfg: Dfg, task: Task, needed: set[tuple[int, int]]) -> tuple[RemovedWait, ...]:
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


def _because(task: Task, waiters: _Waiters, source: int, target: int) -> str:
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


def _way_round(task: Task, waiters: _Waiters, source: int, target: int, limit: int = 64) -> tuple[int, ...]:
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
