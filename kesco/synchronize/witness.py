"""Whether a path exists on which nothing else orders a pair: the backward half of the synchronization generator (step
4).

In: a candidate wait that the forward facts would keep. Out: whether there is a path that proves it needed.
"""

from __future__ import annotations

from kesco.synchronize.facts import State, Task, bits

SEARCH_LIMIT = 2_000  # chains looked at for one wait


def has_witness(task: Task, behind: list[State], x: int, b: int) -> bool:
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


def _waits(task: Task, site: int, but: int = -1) -> int:
    """The facts that all candidates of `site` ask for."""
    return sum(1 << task.streams + source for source in task.candidates.get(site, ()) if source != but)


def _back(task: Task, chain: list[int], x: int, facts: int | None) -> int | None:
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


def _undecided(task: Task, state: State, x: int, facts: int) -> int | None:
    """Those of `facts` that hold in `state` on some paths only; None if one of them holds on none."""
    if not state.pending >> x & 1:
        return None
    for fact in bits(facts):
        event = fact - task.streams
        late = state.late[fact] if event < 0 else state.late_event.get(event, state.pending)
        if not late >> x & 1:
            return None
        if not (state.early[fact] if event < 0 else state.early_event.get(event, 0)) >> x & 1:
            facts &= ~(1 << fact)
    return facts
