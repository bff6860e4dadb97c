"""Streams by what operations cost: ``critical_path(dfg, streams, costs, machine)`` → `Schedule`.

In: the data-flow graph, how many streams there may be, what each site takes when it runs alone, and the GPU. Out: a
stream for each movable site. A strategy of its own beside `distributor`, which counts operations and needs no times.

It is list scheduling by upward rank (Topcuoglu, Hariri, Wu: "HEFT", TPDS 2002) under two bonds: a stream runs what the
program issues in the order of the text, and what runs together shares the GPU.

1. The *rank* of an operation is the length of the longest chain of dependent work from its beginning on.
2. Phase by phase, in the order of the text, each operation goes where it ends first. It begins when its stream and all
   that it depends on are done (on another stream: by an event, which takes its time) and enough block slots are free.
   A kernel that fills the GPU begins when the others end, whichever stream it is on.
3. Among streams on which it ends as early, within what an event and a start cost: behind an operation that it depends
   on; not behind one on which an unplaced operation of higher rank depends; then where the stream was idle the
   shortest.
4. Small and large transfers are placed as by the distributor: behind the others.

What it refuses to do: reorder the text, or decide how many streams pay. `planning` asks the model for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Schedule
from kesco.model.forecast import UNKNOWN
from kesco.model.gpu import KernelCost, Machine
from kesco.scheduling import lanes
from kesco.scheduling.distributor import behind_others, small
from kesco.scheduling.levels import phases, predecessors


def critical_path(
    dfg: Dfg, streams: int, costs: Mapping[int, KernelCost] | None = None, machine: Machine | None = None
) -> Schedule:
    """The schedule of `dfg` over at most `streams` streams; a site without a cost counts like any other unknown one."""
    if streams < 1:
        raise ValueError(f"at least one stream is needed, not {streams}")
    gpu, known = machine or Machine(), costs or {}
    light = small(dfg)
    ways = lanes.transfers(dfg, light)
    before = predecessors(dfg, {*light, *ways})
    cost = {site: known.get(site, UNKNOWN) for site in before}
    rank = ranks(before, {site: one.microseconds + gpu.start for site, one in cost.items()})
    working = max(1, streams - len({*ways.values()})) if ways and streams > 1 else streams
    after = _after(before)
    groups = phases(dfg)
    stream_of: dict[int, int] = {}
    for phase in groups:
        placed = _Placing(before, after, rank, cost, gpu, working)
        for site in (s for s in phase if s in before):
            placed.place(site)
        stream_of.update(placed.stream_of)
    return behind_others("critical_path", dfg, stream_of, ways, light, groups, range(working, streams))


def ranks(before: Mapping[int, tuple[int, ...]], time: Mapping[int, float]) -> dict[int, float]:
    """For each site the longest chain of times that begins with it, its own included."""
    found = dict(time)
    for site in sorted(before, reverse=True):  # predecessors come first in the text
        for source in before[site]:
            found[source] = max(found[source], time[source] + found[site])
    return found


def longest_chain(
    before: Mapping[int, tuple[int, ...]], time: Mapping[int, float], rank: Mapping[int, float]
) -> tuple[int, ...]:
    """The sites of the longest chain, in order; of equal ones the first in the text."""
    after = _after(before)
    site = min(before, key=lambda one: (-rank[one], one), default=None)
    chain: list[int] = []
    while site is not None:
        chain.append(site)
        site = min(after[site], key=lambda one: (-rank[one], one), default=None)
    return tuple(chain)


def _after(before: Mapping[int, tuple[int, ...]]) -> dict[int, list[int]]:
    after: dict[int, list[int]] = {site: [] for site in before}
    for site in sorted(before):
        for source in before[site]:
            after[source].append(site)
    return after


_REMEMBERED = 64
"""Kernels of which it is known when they run; more would only cost time."""


@dataclass(slots=True)
class _Placing:
    """The streams of one phase while its operations are placed, with times in microseconds from its beginning."""

    before: Mapping[int, tuple[int, ...]]
    after: Mapping[int, list[int]]
    rank: Mapping[int, float]
    cost: Mapping[int, KernelCost]
    machine: Machine
    streams: int
    stream_of: dict[int, int] = field(default_factory=dict)
    end: dict[int, float] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)  # stream → its last operation
    running: list[tuple[float, float, float]] = field(default_factory=list)  # begin, end, share of the block slots
    issued: float = 0.0

    def place(self, site: int) -> None:
        """Give the next operation of the text a stream."""
        self.issued += self.machine.launch
        cost = self.cost[site]
        share = min(1.0, max(cost.blocks, 1) / self.machine.blocks_at_once(cost))
        event = self.machine.record + self.machine.wait
        used = len({*self.last})
        ends = {}
        for stream in range(min(used + 1, self.streams)):  # streams that are still empty are all the same
            ready = max(self.issued, self.end.get(self.last.get(stream, -1), 0.0))
            for source in (s for s in self.before[site] if s in self.end):
                ready = max(ready, self.end[source] + (event if self.stream_of[source] != stream else 0.0))
            begin = self._free(ready + self.machine.start, share)
            ends[stream] = begin + max(cost.microseconds, 0.0)
        bound = min(ends.values()) + event + self.machine.start
        stream = min((s for s in ends if ends[s] <= bound), key=lambda s: (*self._preference(site, s), s))
        self.stream_of[site], self.end[site], self.last[stream] = stream, ends[stream], site
        self.running.append((ends[stream] - max(cost.microseconds, 0.0), ends[stream], share))
        still = sorted((one for one in self.running if one[1] > self.issued), key=lambda one: one[1])
        self.running = still[-_REMEMBERED:]

    def _preference(self, site: int, stream: int) -> tuple[bool, bool, float]:
        last = self.last.get(stream)
        if last is None:
            return True, False, 0.0
        heirs = (one for one in self.after[last] if one != site and one not in self.stream_of)
        depends = last in self.before[site]
        urgent = any(self.rank[one] > self.rank[site] for one in heirs)
        return not depends or urgent, urgent, -self.end[last]

    def _free(self, ready: float, share: float) -> float:
        """When so many of the block slots are free, not before `ready`, and not just while another kernel starts."""
        for moment in sorted({ready, *(end for _, end, _ in self.running if end > ready)}):
            after = moment + self.machine.start
            taken = sum(part for begin, end, part in self.running if begin <= after and moment < end)
            if taken + share <= 1.0 + 1e-9:
                return moment
        return ready
