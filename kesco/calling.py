"""Which calls become operations of their callers, and which functions follow their caller's stream: ``with_calls(…)``.

In: the regions of a file and what is made of each function by itself. Out: the same with calls as operations, where
that lets one of them run beside something. It is apart from `planning`, which it asks, because it is about a file.

1. Go through the functions, those that are called first. 2. A function that was rewritten has streams of its own: it
does not follow, and a call of it stays a barrier. 3. Plan the others with the calls that may move (`Region.calling`);
keep that where one of those calls overlaps with anything, or where joins are saved. 4. What such a call runs, itself
or through others, follows.

It refuses functions that are planned as one with what they call: there each operation has its own place already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from kesco.ir.compilation import FunctionResult
from kesco.ir.flow import Held, Region, Role, Site, SiteKind, is_barrier, is_wait
from kesco.ir.summary import Summary
from kesco.model.forecast import Price, Prices
from kesco.rings import is_in
from kesco.source import Span

Key = tuple[str, Span]
FOLLOWS = "launches on the stream of whoever calls it"


def with_calls(
    regions: Sequence[Region],
    found: Mapping[Key, FunctionResult],
    plan: Callable[[Region], FunctionResult] | None,
    without_own: Collection[Key] = (),
) -> dict[Key, FunctionResult]:
    """The results with calls as operations; `plan` is asked for further ones, and None where there are to be none.

    The functions `without_own` get no streams of their own.
    """
    from kesco.remarks.verdicts import HELD, NOTHING

    results = dict(found)
    if plan is None:
        return results
    by_key = {(r.function, r.span): r for r in regions}
    own = {key for key, one in results.items() if one.rewritten} | (by_key.keys() - results.keys())
    follow: set[Key] = set()
    for key in _called_first(by_key):
        calling = by_key[key].calling
        left = key in follow or key in without_own or key not in results
        if calling is None or left or results[key].region.members:
            continue
        candidate = _staying(calling, by_key, own | {key})
        moving = {s.number for s in candidate.sites if _may_move(s)}
        if not moving:
            continue
        result = plan(candidate)
        if result.rewritten and (_overlap(result, by_key) or _saves_joins(result, results[key])):
            results[key] = result
            own.add(key)
            calls = (k for s in result.region.sites if is_moving(s.role, s.kind) for k in s.calls)
            follow |= {one for call in calls for one in _run_by(call, by_key)}
        elif HELD in result.left_because and results[key].left_because == NOTHING:
            results[key] = replace(results[key], left_because=result.left_because)
    for key in follow:
        results[key] = replace(results[key], follows=True, left_because=FOLLOWS)
    return results


def summaries(regions: Sequence[Region]) -> tuple[Summary, ...]:
    """What each function that gives the device work does, for whoever calls it."""
    from kesco import dataflow
    from kesco.scheduling.levels import width

    busy = (r for r in regions if any(is_work(s) or s.calls for s in r.sites))
    follow = {(r.function, r.span) for r in regions if not r.not_followed}
    return tuple(
        Summary(
            r.function,
            r.span,
            *r.general,
            tuple(
                f"{s.label} {s.span.line}:{s.span.column}"
                for s in r.sites
                if _is_barrier_within(s) and not (s.calls and follow.issuperset(s.calls))
            ),
            any(s.looks for s in r.sites),
            width(dataflow.build(r)),
            r.not_followed,
        )
        for r in busy
    )


def _is_barrier_within(site: Site) -> bool:
    return is_barrier(site) and site.kind is not SiteKind.BOUNDARY


def priced(prices: Prices, regions: Sequence[Region]) -> Prices:
    """The prices, with those of calls: what each costs that is called gives the device, one after the other."""
    by_key = {(r.function, r.span): r for r in regions}
    known: dict[Key, Price | None] = {}

    def of(site: Site) -> Price | None:
        if site.calls and site.kind is SiteKind.CALL:
            return _together([price for key in site.calls if (price := whole(key)) is not None])
        return prices.at(site) if is_work(site) and site.operation >= 0 else None

    def whole(key: Key) -> Price | None:
        if key not in known:
            known[key] = None  # while it is looked at: recursion is not priced
            sites = by_key[key].sites if key in by_key else ()
            known[key] = _together([price for site in sites if (price := of(site)) is not None])
        return known[key]

    calls = ((s.operation, of(s)) for r in regions for s in r.sites if s.calls)
    return replace(prices, of={**prices.of, **{number: one for number, one in calls if one is not None}})


def _together(parts: Sequence[Price]) -> Price | None:
    """The price of several operations in a row, which have the shape of the longest one."""
    if not parts:
        return None
    longest = max(parts, key=lambda one: one.cost.microseconds)
    time = sum(one.cost.microseconds for one in parts if not one.absent)
    every, none = all(one.measured for one in parts), all(one.absent for one in parts)
    return Price(replace(longest.cost, microseconds=time), every, max(one.runs for one in parts), none)


def is_work(site: Site) -> bool:
    """Whether a site gives the device something to do."""
    return site.role in (Role.MOVABLE, Role.LEGACY)


def is_moving(role: Role, kind: SiteKind) -> bool:
    """Whether a site is a call that goes to a stream."""
    return role is Role.MOVABLE and kind is SiteKind.CALL


def _may_move(site: Site) -> bool:
    """Whether a site is a call that may go to a stream, if maybe only with the copies in it."""
    return is_moving(site.role, site.kind) or (site.holds and not site.stuck)


def _called_first(by_key: Mapping[Key, Region]) -> list[Key]:
    """The functions, each behind those that it calls."""
    order: dict[Key, None] = {}

    def visit(key: Key, path: frozenset[Key]) -> None:
        if key in order or key in path or key not in by_key:
            return
        for site in by_key[key].sites:
            for one in site.calls:
                visit(one, path | {key})
        order[key] = None

    for key in by_key:
        visit(key, frozenset())
    return list(order)


def _run_by(call: Key, by_key: Mapping[Key, Region]) -> set[Key]:
    """A function and all that it calls."""
    found, work = {call}, [call]
    while work:
        one = by_key.get(work.pop())
        for key in (k for s in one.sites for k in s.calls) if one is not None else ():
            if key not in found:
                found.add(key)
                work.append(key)
    return found


def _staying(calling: Region, by_key: Mapping[Key, Region], own: Collection[Key]) -> Region:
    """The region in which calls of functions with streams of their own stay barriers."""
    sites = (
        replace(s, role=Role.JOIN, looks=False, stuck=s.holds)
        if _may_move(s) and any(not _run_by(k, by_key).isdisjoint(own) for k in s.calls)
        else s
        for s in calling.sites
    )
    return replace(calling, sites=tuple(sites))


def _saves_joins(result: FunctionResult, old: FunctionResult) -> bool:
    """Whether a function that is rewritten anyway joins its streams in fewer places."""
    return old.rewritten and len(result.plan.joins) < len(old.plan.joins)


def overlaps_itself(result: FunctionResult) -> bool:
    """Whether two calls of one function run beside each other."""
    from kesco.scheduling.levels import overlaps

    if not result.rewritten:
        return False
    calls: dict[tuple[Key, ...], list[int]] = {}
    for site in (s for s in result.dfg.region.sites if is_moving(s.role, s.kind)):
        calls.setdefault(site.calls, []).append(site.number)
    stream_of = result.schedule.as_dict()
    schedules = (
        replace(result.schedule, stream_of=tuple((n, stream_of[n]) for n in numbers)) for numbers in calls.values()
    )
    return any(overlaps(result.dfg, one) for one in schedules)


def _ends_done(key: Key, by_key: Mapping[Key, Region], around: frozenset[Key] = frozenset()) -> bool:
    """Whether all that a function gives the device is done when it comes back: on each path a result is copied last."""
    region = by_key.get(key)
    if region is None or key in around:
        return region is not None  # one that calls itself: if the calls within do so, this one does
    waits = {
        s.number
        for s in region.sites
        if (s.kind is SiteKind.COPY and s.held is Held.ALL and s.acts)
        or is_wait(s)
        or (s.calls and all(_ends_done(one, by_key, around | {key}) for one in s.calls))
    }
    work = [s.number for s in region.sites if is_work(s) or s.calls]
    todo = [after for n in work if n not in waits for after in region.successors[n]]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one in seen or one in waits:
            continue
        if region.sites[one].role is Role.EXIT and not region.sites[one].failed:
            return False
        seen.add(one)
        todo += region.successors[one]
    return bool(work)


def _overlap(result: FunctionResult, by_key: Mapping[Key, Region]) -> bool:
    """Whether a call runs beside something: another call, perhaps its own in another turn.

    One that gives the device nothing that is not done when it comes back runs beside nothing that is issued later.
    """
    from kesco.scheduling.levels import issued_beside, overlaps

    if any(is_moving(s.role, s.kind) and is_in(s, one.span) for one in result.turns for s in result.region.sites):
        return True
    calls = [s.number for s in result.dfg.region.sites if is_moving(s.role, s.kind)]
    if not overlaps(result.dfg, result.schedule, calls):
        return False
    done = {n for n in calls if all(_ends_done(one, by_key) for one in result.dfg.region.sites[n].calls)}
    return not done or issued_beside(result.dfg, result.schedule, calls, done)


def ordered_more(whole: FunctionResult, part: FunctionResult) -> bool:
    """Whether two operations of one call may overlap in the part by itself, and not in the whole.

    One set of accesses stands for all calls of a function, so that the whole may see conflicts that no call has. What a
    full barrier keeps apart in the part does not overlap there.
    """
    import networkx as nx

    from kesco.scheduling.levels import phases

    def name(result: FunctionResult, site: int) -> tuple[object, ...]:
        return result.dfg.region.sites[site].operation, result.dfg.region.sites[site].iterations

    phase_of = {name(part, n): number for number, phase in enumerate(phases(part.dfg)) for n in phase}
    closure = nx.transitive_closure(part.dfg.graph)
    known = {(name(part, a), name(part, b)) for a, b in closure.edges}
    ours = {(name(whole, d.source), name(whole, d.target)) for d in whole.dfg.dependences if not d.carried}
    return any(a in phase_of and phase_of[a] == phase_of.get(b) and (a, b) not in known for a, b in ours)


def joined(result: FunctionResult, within: Region) -> tuple[int, int]:
    """How many streams the default stream waits for in each turn of a loop, and how many once, to compare as a tuple.

    A join costs a record and a wait for each stream. All of a function's joins are in a loop where it is called in one:
    then what it does outside its own loops stands in a loop of the region `within`, of which it is a part.
    """
    from kesco.scheduling.loops import turning

    region = result.dfg.region
    again, around = turning(region), {within.sites[n].operation for n in turning(within)}
    own = {s.operation for s in region.sites if s.number not in again and s.operation >= 0}
    called_again = not own.isdisjoint(around)
    often = sum(len(join.streams) for join in result.plan.joins if called_again or join.target in again)
    return often, sum(len(join.streams) for join in result.plan.joins) - often
