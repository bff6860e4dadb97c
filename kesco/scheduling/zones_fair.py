"""Zones in which nobody starves: ``zones_fair(dfg, streams, limit, age, costs, machine, …)`` → `Schedule`.

In: a data-flow graph whose sites name their tasks, how many streams there may be, how many operations of one priority
may be in flight, the ageing bound, and what operations cost where that is known. Out: a stream for each site, which
streams the GPU prefers, and the barriers that hold lower tasks back. It differs from `zones` in that a barrier has to
pay: it is there only where a lower operation would take what a higher one needs, and never for long.

1. Each task has streams of its own, all of one priority at most `limit`, and the GPU prefers those of higher tasks.
   That is what orders work at run time: blocks of higher tasks are placed first, whatever the host has issued before.
   It cannot take a place from a block that runs, and says nothing about the memory's bandwidth; hence the barriers.
2. An operation is held behind those of higher tasks that the host has issued before it, in their order, up to the first
   of them beside which there is room. Where costs are known there is room if what runs then leaves enough block slots
   and bandwidth, and has not been promised to others. A copy between host and device leaves room for a kernel, and a
   kernel for a copy: for one each, or as many as fit into its time where that is known.
3. It is not held for an operation that may be late without making its task late: one whose slack is longer.
4. *Ageing*: before the first operations of a task have run, its barriers hold it for at most `age` times as long as
   they take, all in all; so holding makes no task slower than 1 + `age` times. Without costs every operation counts the
   same. An operation in a loop counts as endless for those outside: nobody is held behind it. With an age of 0 nothing
   is held. That is the default without costs: then nothing is known to be gained, and a short task that is held behind
   one long kernel would starve.
5. Behind a loop of the highest task others are held for a part of it, so that it keeps its promise (`promise`).
6. Barriers that dependences, streams or other barriers imply are left out (`synchronize`).

Barriers lead from what the host issues earlier to what it issues later, so that there is no deadlock. What it refuses
to do: hold small transfers, what a higher task needs, or work of no task. With fewer streams than tasks, the lowest
ones share one, and nothing is promised of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Barrier, Hold, Schedule
from kesco.model.gpu import KernelCost, Machine
from kesco.scheduling import lanes
from kesco.scheduling.critical_path import critical_path, ranks
from kesco.scheduling.distributor import distribute, small
from kesco.scheduling.levels import phases, predecessors
from kesco.scheduling.loops import Loops
from kesco.scheduling.promise import PROMISE, promised
from kesco.scheduling.tasks import (
    LIMIT,
    NO_TASK,
    Zone,
    chains,
    folded,
    has_tasks,
    heavy,
    latest,
    only,
    priorities,
    reach,
    shares,
    urgency,
    zones_of,
)
from kesco.scheduling.zones import between

_ANY = KernelCost(1.0, 1, 1)
"""What counts for one of something where nothing is known."""
AGE = 4
"""How many times as long as it runs itself a task may be held."""


def zones_fair(
    dfg: Dfg,
    streams: int,
    limit: int = LIMIT,
    age: int | None = None,
    costs: Mapping[int, KernelCost] | None = None,
    machine: Machine | None = None,
    promise: int | None = None,
    total: Mapping[int, float] | None = None,
) -> Schedule:
    """The schedule of `dfg` over at most `streams` streams; the distributor's own one where nothing is marked.

    `age` None is `AGE` where there are costs, and 0 where there are none. `promise` is in percent, and `total` has the
    microseconds of all executions of each site; without it nothing is promised.
    """
    if not has_tasks(dfg):
        return distribute(dfg, streams)
    found = folded(zones_of(dfg), streams, limit)
    stream_of: dict[int, int] = {}
    order: list[int] = []
    rank_of: list[int] = []
    settled: list[Barrier] = []
    levels = sorted({zone.priority for zone in found}, reverse=True)
    for zone, share in zip(found, shares(dfg, found, streams, limit), strict=True):
        inside = only(dfg, zone.sites)
        placed = distribute(inside, share) if costs is None else critical_path(inside, share, costs, machine)
        stream_of |= {site: len(rank_of) + stream for site, stream in placed.stream_of}
        order += placed.order
        settled += placed.barriers
        rank_of += [levels.index(zone.priority)] * placed.streams
    bound = age if age is not None else 0 if costs is None else AGE
    holding = _Holding(dfg, found, stream_of, bound, costs, machine or Machine())
    held = tuple(sorted((*holding.barriers(), *settled), key=lambda one: (one.target, one.source)))
    holds: tuple[Hold, ...] = ()
    if costs is not None and total is not None and bound > 0:
        percent = PROMISE if promise is None else promise
        holds = promised(dfg, found, stream_of, total, percent, bound, holding.held_for)
    late = {one.target for one in holds}
    released = tuple((site, why) for site, why in sorted(holding.released.items()) if site not in late)
    pairs = tuple(sorted(stream_of.items()))
    preferred = tuple(rank_of) if len({*rank_of}) > 1 else ()
    return Schedule("zones-fair", len(rank_of), pairs, tuple(order), ranks=preferred, barriers=held,
                    released=released, holds=holds)  # fmt: skip


@dataclass(slots=True)
class _Room:
    """What one operation leaves free while it runs: shares of the whole GPU, and how much of them for how long."""

    slots: float
    sm: float
    memory: float
    area: float  # free block slots times microseconds, less what has been promised
    engine: float  # the same of the copy engines: microseconds


@dataclass(slots=True)
class _Holding:
    """Steps 2 to 4, phase by phase."""

    dfg: Dfg
    zones: Sequence[Zone]
    stream_of: Mapping[int, int]
    age: int
    costs: Mapping[int, KernelCost] | None
    machine: Machine
    priority: dict[int, int] = field(default_factory=dict)
    before: dict[int, int] = field(default_factory=dict)  # site → all that comes before it, as bits
    own: dict[int, int] = field(default_factory=dict)  # site → its task's, also where tasks share a zone
    urgent: dict[int, int] = field(default_factory=dict)
    ways: dict[int, lanes.Way] = field(default_factory=dict)
    loops: Loops = field(init=False)
    rooms: dict[int, _Room] = field(default_factory=dict)
    slack: dict[int, float] = field(default_factory=dict)
    released: dict[int, str] = field(default_factory=dict)  # site → why it is not held any further
    held_for: dict[int, float] = field(default_factory=dict)  # zone → microseconds for which barriers hold it

    def barriers(self) -> tuple[Barrier, ...]:
        """All barriers, by target."""
        if self.age < 1:
            return ()
        self.priority = {site: z.priority for z in self.zones for site in z.sites if z.priority != NO_TASK}
        self.own, self.urgent = priorities(self.dfg), urgency(self.dfg)
        self.urgent |= {site: max(self.urgent[site], own) for site, own in self.priority.items()}
        self.loops = Loops(self.dfg.region)
        self.ways = lanes.transfers(self.dfg, small(self.dfg))
        direct, works, chain = predecessors(self.dfg), heavy(self.dfg), chains(self.dfg.region)
        return tuple(found for phase in phases(self.dfg) for found in self._phase(phase, direct, works, chain))

    def _phase(
        self, phase: tuple[int, ...], direct: Mapping[int, tuple[int, ...]], works: Collection[int],
        chain: Sequence[int],
    ) -> list[Barrier]:  # fmt: skip
        zone_of = {site: number for number, zone in enumerate(self.zones) for site in zone.sites}
        after = reach(self.dfg.region, phase)
        tasks = [site for site in phase if site in self.priority and site in works]
        self._measure(tasks)
        last: dict[int, int] = {}  # stream → its last operation
        worked: dict[int, float] = {}  # zone → how long its operations take that were looked at
        held: dict[int, int] = {}  # zone → what its operations were held for
        found: list[Barrier] = []
        for site in phase:
            own = 0
            for source in (*direct[site], *(last[s] for s in (self.stream_of[site],) if s in last)):
                own |= self.before.get(source, 0) | 1 << source
            last[self.stream_of[site]] = site
            self.before[site] = own
            if site not in works or self.own[site] == NO_TASK:
                continue
            number = zone_of[site]
            worked[number] = worked.get(number, 0.0) + self._cost(site).microseconds
            higher = [x for x in tasks if x < site and self.priority[x] > self.urgent[site] and after[x] >> site & 1]
            taken, spent = self._taken(site, higher, held.get(number, 0), self.age * worked[number])
            held[number] = spent
            for source in taken:
                self.before[site] |= self.before[source] | 1 << source
            sources = latest(taken, self.stream_of, chain)
            why = [Barrier(source, site, between(self.own, source, site)) for source in sources]
            found += [one for one in why if self.stream_of[one.source] != self.stream_of[site]]
        return found

    def _taken(self, site: int, higher: Sequence[int], spent: int, budget: float) -> tuple[list[int], int]:
        """What an operation is held behind, and what its task has been held for since its phase began, as bits."""
        taken: list[int] = []
        endless = self.loops.endless(site) if higher else 0
        above = sum(1 << x for x in self.priority if self.priority[x] > self.priority[site])
        for x in higher:
            if self._may_be_late(x, site):
                continue
            name = self.dfg.region.sites[x].label
            if self._fits(x, site):
                self.released[site] = f"there is room beside {name}"
                break
            for_this = (self.before[x] | 1 << x) & above
            if for_this & endless:
                self.released[site] = f"{name} is in a loop or behind one, which may last"
                continue
            if sum(self._cost(one).microseconds for one in _bits(spent | for_this)) > budget:
                self.released[site] = f"with {name} its task would wait over {self.age} times as long as it runs"
                break
            spent |= for_this
            taken.append(x)
        return taken, spent

    # ---- room and slack ------------------------------------------------------------------------------------------

    def _measure(self, tasks: Sequence[int]) -> None:
        """What each operation leaves free, and by how much it may be late."""
        if self.costs is None:
            for site in tasks:
                free = 1.0 if site in self.ways else 0.0
                self.rooms[site] = _Room(free, free, free, free, 1.0)
            return
        for priority in {self.priority[site] for site in tasks}:
            level = [site for site in tasks if self.priority[site] == priority]
            direct = predecessors(only(self.dfg, level))
            before = {site: tuple(s for s in direct[site] if s < site) for site in level}  # in the order of the text
            time = {site: self._cost(site).microseconds + self.machine.start for site in level}
            up = ranks(before, time)
            down: dict[int, float] = {}
            ancestors: dict[int, int] = {}
            for site in level:
                down[site] = time[site] + max((down[source] for source in before[site]), default=0.0)
                ancestors[site] = sum(1 << s for s in before[site])
                for source in before[site]:
                    ancestors[site] |= ancestors[source]
            longest = max(up.values(), default=0.0)
            for site in level:
                self.slack[site] = longest - (up[site] + down[site] - time[site])
                beside = [x for x in level if x != site and not (ancestors[x] >> site | ancestors[site] >> x) & 1]
                self.rooms[site] = self._room(site, beside)

    def _room(self, site: int, beside: Sequence[int]) -> _Room:
        """What is free while an operation and others of its level run."""
        costs = [self._cost(x) for x in (site, *beside)]
        slots = 1.0 - min(1.0, sum(self._slots(x) for x in (site, *beside)))
        time = costs[0].microseconds
        return _Room(slots, 1.0 - sum(c.sm for c in costs), 1.0 - sum(c.memory for c in costs), slots * time, time)

    def _fits(self, higher: int, site: int) -> bool:
        """Whether there is room for an operation beside a higher one; what it takes is taken."""
        room = self.rooms[higher]
        if site in self.ways:
            if room.engine <= 0.0 or self.ways.get(higher) is self.ways[site]:
                return False
            room.engine -= self._cost(site).microseconds
            return True
        cost, slots = self._cost(site), self._slots(site)
        if room.area <= 0.0 or slots > room.slots or cost.sm > room.sm or cost.memory > room.memory:
            return False
        room.area -= slots * cost.microseconds
        return True

    def _may_be_late(self, higher: int, site: int) -> bool:
        return self.costs is not None and self.slack[higher] >= self._cost(site).microseconds > 0.0

    def _cost(self, site: int) -> KernelCost:
        return _ANY if self.costs is None else self.costs[site]

    def _slots(self, site: int) -> float:
        """The share of the GPU's block slots that an operation takes."""
        if site in self.ways:
            return 0.0
        if self.costs is None:
            return 1.0
        cost = self._cost(site)
        return min(1.0, max(cost.blocks, 1) / self.machine.blocks_at_once(cost))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
