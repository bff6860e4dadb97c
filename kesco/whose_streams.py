"""Which functions give up streams of their own, so that calls of them run beside each other: ``with_outer_calls(…)``.

In: the regions of a file, what is made of each function by itself. Out: the results with calls as operations. A
function that is rewritten has streams of its own, and a call of it is a barrier. Apart from `calling`, which it asks
again and again, as this is a choice between whole results.

1. Take the functions that were rewritten, that could follow their callers and are called, one by one. 2. Ask what the
file would be if one had no streams of its own. 3. Keep that where the file takes less time, or the same with fewer
events. Time is counted in operations of the device: the longest chain of each function, from those that nobody calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kesco.calling import FOLLOWS, Key, is_moving, is_work, with_calls
from kesco.ir.compilation import FunctionResult
from kesco.ir.flow import Region, Site, is_barrier
from kesco.ir.program import Program

_MOST = 12  # functions that are tried: each time others are planned again


def with_outer_calls(
    program: Program,
    regions: Sequence[Region],
    found: Mapping[Key, FunctionResult],
    plan: Callable[[Region], FunctionResult] | None,
) -> dict[Key, FunctionResult]:
    """`with_calls`, where some functions may have given up streams of their own.

    Not those that other files may call, in a file without ``main``: they would be serial there.
    """
    best = with_calls(regions, found, plan)
    called = {key for region in regions for site in region.sites for key in site.calls}
    whole = any(one.name == "main" for one in program.functions)
    known = {(one.name, one.span) for one in program.functions if one.internal or whole}
    may_follow = {(r.function, r.span) for r in regions if not r.not_followed} & called & known
    plain = {key for key in may_follow if all(_is_plain(one[key]) for one in (best, found) if key in one)}
    tried = [key for key, one in best.items() if key in plain and one.rewritten]
    given_up: set[Key] = set()
    for key in tried[:_MOST] if plan is not None else ():
        without = {**found, **{one: _serial(found[one]) for one in (*given_up, key) if one in found}}
        other = with_calls(regions, without, plan, (*given_up, key))
        follow = all(other[one].follows for one in (*given_up, key))  # one that nobody's stream is set for is serial
        if follow and _Times(regions, other).score() < _Times(regions, best).score():
            best = other
            given_up.add(key)
    return best


def _is_plain(one: FunctionResult) -> bool:
    """Whether all that was done to a function is that it has streams: its text is that of its region."""
    changed = one.moved or one.reordered or one.zeroes or one.prefetches or one.sends or one.fetches
    return not (changed or one.turns or one.region.members or one.watched)


def _serial(one: FunctionResult) -> FunctionResult:
    return replace(one, left_because=FOLLOWS) if one.rewritten else one


class _Times:
    """How long functions take, in operations of the device; what calls itself takes no time in itself."""

    def __init__(self, regions: Sequence[Region], results: Mapping[Key, FunctionResult]) -> None:
        self.by_key = {(r.function, r.span): r for r in regions}
        self.results = results
        self.known: dict[tuple[Key, bool], int] = {}

    def score(self) -> tuple[int, int]:
        """How long all takes that nobody calls, and how many events and joins there are."""
        called = {key for region in self.by_key.values() for site in region.sites for key in site.calls}
        made = [one.plan for one in self.results.values() if one.rewritten]
        events = sum(len(plan.waits) + len(plan.joins) for plan in made)
        return sum(self.of(key, alone=True) for key in self.by_key.keys() - called), events

    def of(self, key: Key, *, alone: bool) -> int:
        """The time of a function; with its streams, if it has some and is `alone` with them."""
        if key not in self.by_key:
            return 0
        if (key, alone) not in self.known:
            self.known[key, alone] = 0
            self.known[key, alone] = self._found(key, alone=alone)
        return self.known[key, alone]

    def _found(self, key: Key, *, alone: bool) -> int:
        result = self.results.get(key)
        if not alone or result is None or not result.rewritten:
            return sum(self._weight(site, alone=alone) for site in self.by_key[key].sites)
        from kesco.scheduling.levels import levelize, phases, predecessors

        sites, before = result.dfg.region.sites, predecessors(result.dfg)
        ends: dict[int, int] = {}
        for number in (n for level in levelize(result.dfg) for n in level):
            start = max((ends[source] for source in before[number] if source in ends), default=0)
            ends[number] = start + self._weight(sites[number], alone=True)
        chains = sum(max((ends.get(n, 0) for n in phase), default=0) for phase in phases(result.dfg))
        return chains + sum(self._weight(site, alone=True) for site in sites if is_barrier(site))

    def _weight(self, site: Site, *, alone: bool) -> int:
        if site.calls:
            alone = alone and not is_moving(site.role, site.kind)
            return max(self.of(key, alone=alone) for key in site.calls)
        return int(is_work(site))
