"""How long one function would take, serial or on several streams: the model of a GPU asked about a plan.

In: a region, its `Prices`, and for several streams a schedule and a plan. Out: microseconds. It is apart from the model
so that the model knows neither sites nor plans, and from planning so that it can be tried alone.

1. The sites are taken in the order of the text, both sides of a branch, each loop up to `ROUNDS` times (fewer where it
   was seen to run less often) and a loop inside it up to twice: enough for what one round leaves to the next.
2. Kernels, copies and memsets become launches and copies; records, waits, joins and fences of the plan what they cost.
3. What is a barrier in the function is one here. Where the host waits for the device that costs what it costs.
4. What never ran while the profile was made is left out.

What the host does in between is not known and left out. So are the copies and kernels of functions that are called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.flow import Region, Role, Site, SiteKind, is_barrier
from kesco.ir.graph import Graph
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.model.gpu import KernelCost, Kind, Machine, Step, ends, makespan

ROUNDS = 4
_LEGACY = -1
_WORKS = (SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET, SiteKind.PREFETCH)
UNKNOWN = KernelCost(50.0, 64, 256)
"""An operation of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one operation of the text costs; `measured` in a profile, in which it ran `runs` times.

    `absent`: the profile is of this text, and the operation never ran.
    """

    cost: KernelCost
    measured: bool = False
    runs: int = 0
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a program's operations by their number, and the GPU that they are for.

    `exact`: they were measured with this very text.
    """

    machine: Machine = field(default_factory=Machine)
    of: Mapping[int, Price] = field(default_factory=dict)
    exact: bool = True

    def at(self, site: Site) -> Price:
        """The price of a site."""
        return self.of.get(site.operation, Price(UNKNOWN))


def serial_time(region: Region, prices: Prices) -> float:
    """Microseconds of a function on the default stream."""
    return makespan(prices.machine, steps_of(region, prices, None, None))


def concurrent_time(region: Region, prices: Prices, schedule: Schedule, plan: SyncPlan) -> float:
    """Microseconds of a function with these streams and events."""
    return makespan(prices.machine, steps_of(region, prices, schedule, plan), preferred(schedule))


def task_times(region: Region, prices: Prices, schedule: Schedule, plan: SyncPlan) -> dict[str, float]:
    """When the last operation of each task ends, in microseconds from the function's beginning."""
    ranks = dict(enumerate(schedule.ranks)) or dict.fromkeys(schedule.urgent, 0)
    order = map(region.sites.__getitem__, walk(region, prices))
    works = [s for s in order if (s.role is Role.MOVABLE and not prices.at(s).absent) or is_known_legacy(s, prices)]
    steps = [s for s in steps_of(region, prices, schedule, plan) if s.stream != _LEGACY]
    found: dict[str, float] = {}
    for site, end in zip(works, ends(prices.machine, steps, ranks), strict=True):
        found[site.task] = max(end, found.get(site.task, 0.0))
    return found


def preferred(schedule: Schedule) -> tuple[int, ...]:
    """The streams that come before others for the GPU."""
    first = tuple(stream for stream, rank in enumerate(schedule.ranks) if rank == 0)
    return first or schedule.urgent


def steps_of(region: Region, prices: Prices, schedule: Schedule | None, plan: SyncPlan | None) -> list[Step]:
    """The host's calls of one run of a function; without a schedule all work is on the default stream."""
    stream_of = schedule.as_dict() if schedule is not None else {}
    waits = waits_of(plan) if plan is not None else {}
    joins = {join.target: join.streams for join in plan.joins} if plan is not None else {}
    fences = frozenset(plan.fences) if plan is not None else frozenset()
    events = frozenset(plan.events) if plan is not None else frozenset()
    found: list[Step] = []
    for number in walk(region, prices):
        site = region.sites[number]
        for stream in joins.get(number, ()):
            found += [Step(Kind.RECORD, stream, event=-1 - stream), Step(Kind.WAIT, _LEGACY, event=-1 - stream)]
        if is_barrier(site):
            found += _barrier(site, prices)
        elif site.role is Role.MOVABLE and not prices.at(site).absent:
            stream = stream_of.get(number, 0)
            if number in fences:
                found += [Step(Kind.RECORD, 0, event=-100), Step(Kind.WAIT, _LEGACY, event=-100)]
            found += issued(number, _work(site, stream, prices), waits, events)
    return found


def issued(site: int, work: Step, waits: Mapping[int, Iterable[int]], events: Collection[int]) -> list[Step]:
    """What the host does for an operation: wait for others, give the work, record; events have the sites' numbers."""
    before = [Step(Kind.WAIT, work.stream, event=source) for source in waits.get(site, ())]
    return [*before, work, *([Step(Kind.RECORD, work.stream, event=site)] if site in events else [])]


def waits_of(plan: SyncPlan) -> dict[int, list[int]]:
    """For each site those whose events it waits for."""
    waits: dict[int, list[int]] = {}
    for wait in plan.waits:
        waits.setdefault(wait.target, []).append(wait.source)
    return waits


def _barrier(site: Site, prices: Prices) -> list[Step]:
    if site.role in (Role.ENTRY, Role.EXIT):
        return []
    if site.role is Role.DEVICE_SYNC:
        return [Step(Kind.SYNCHRONIZE)]
    work = [_work(site, 0, prices), Step(Kind.BARRIER)] if is_known_legacy(site, prices) else []
    return [Step(Kind.BARRIER), *work]


def is_known_legacy(site: Site, prices: Prices) -> bool:
    """Whether an operation stays on the default stream, and it is known how long it takes."""
    return site.role is Role.LEGACY and site.kind in _WORKS and prices.at(site).measured


def _work(site: Site, stream: int, prices: Prices) -> Step:
    way = engine(site)
    return Step(Kind.COPY if way else Kind.LAUNCH, stream, prices.at(site).cost, engine=way)


def engine(site: Site) -> str:
    """Which copy engine an operation takes: that of its direction, or none."""
    if site.kind not in (SiteKind.COPY, SiteKind.PREFETCH):
        return ""
    read = {a.buffer.kind for a in site.accesses if AccessMode.READ in a.mode}
    on_host = {BufferKind.HOST, BufferKind.PINNED}
    if read and read <= on_host:
        return "in"
    written = {a.buffer.kind for a in site.accesses if AccessMode.WRITE in a.mode}
    return "out" if written and written <= on_host else "in" if site.kind is SiteKind.PREFETCH else ""


def walk(region: Region, prices: Prices) -> list[int]:
    """One run through a function: its sites in the order of the text, loops as often as the module's docstring says."""
    ways = ((a, b) for a, after in enumerate(region.successors) for b in after)
    return _walk(Graph(range(len(region.sites)), ways), region, prices, ROUNDS, 1)


def _walk(graph: Graph[int], region: Region, prices: Prices, most: int, outside: int) -> list[int]:
    loop_of: dict[int, frozenset[int]] = {}
    for component in graph.components():
        first = min(component)
        if len(component) > 1 or graph.has_edge(first, first):
            loop_of |= dict.fromkeys(component, component)
    found: list[int] = []
    done: set[int] = set()
    for site in sorted(graph):
        if site in done:
            continue
        loop = loop_of.get(site, frozenset())
        if not loop:
            found.append(site)
            continue
        done |= loop
        heads = {b for a, b in graph.edges if b in loop and a not in loop} or {min(loop)}
        inner = Graph(sorted(loop), ((a, b) for a, b in graph.edges if a in loop and b in loop and b not in heads))
        runs = _runs((region.sites[n] for n in loop), prices)
        rounds = most if runs is None else max(1, min(most, round(runs / outside)))
        found += _walk(inner, region, prices, min(most, 2), max(1, runs or 1)) * rounds
    return found


def _runs(sites: Iterable[Site], prices: Prices) -> int | None:
    """How often a loop was run, by the operation in it that ran least; None where that is not known."""
    together: dict[int, int] = {}
    for site in sites:
        if site.role is Role.MOVABLE and prices.at(site).measured:
            together[site.operation] = together.get(site.operation, 0) + 1
    return min((prices.of[number].runs // count for number, count in together.items()), default=None)
