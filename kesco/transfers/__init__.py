"""Prefetches for managed memory: ``insert(program, region)`` adds what an expert would have written by hand.

In: the program and one function's region. Out: the region with a site for each prefetch, and the prefetches, with what
is to be written where. It is a stage of its own, before the data-flow graph, so that all that follows (streams, events,
pictures) sees a prefetch as one more operation that writes what it moves.

1. Find the kernels that read managed memory which the host touched last (`away`). 2. The prefetch stands right before
the first such kernel: its launch is then held up by no other prefetch. Where that is in a loop in which pointer and
pages stay as they are, it stands before the loop, or, in its first trip, behind launches that come before
(`first_trip`). 3. Where nobody writes the memory any more (`mostly`) and the host
reads it again, both sides get a copy; then what the host reads is no reason to stay in a loop. 4. What the host reads
next comes back right behind the last kernel that uses it (`results`). 5. The pointer is written as it is in the launch;
it must be a name, an element or a member, with nothing that changes anything. How much to move the program looks up as
it runs, so that it is always the allocation that the kernel is about to read, while it lives.

A prefetch changes no result, so the proof need not know it. What it refuses to do: prefetch what the host may touch
while the kernel runs, to the device memory that kernels only write, or anything in a program that advises the driver
itself or ties memory to streams.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain

from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, through_parameter
from kesco.ir.flow import SMALL, Region, Role, Site, SiteKind
from kesco.ir.transfers import Pages, Prefetch, Zeroes
from kesco.source import Span
from kesco.transfers.away import may_be_shared, touched_by_host, touches
from kesco.transfers.first_trip import behind_launches
from kesco.transfers.launches import Around, Launched, launches
from kesco.transfers.mostly import only_read
from kesco.transfers.pointers import spelled, stays
from kesco.transfers.reading import Reading, Unit, root_of
from kesco.transfers.results import reads, results
from kesco.transfers.spots import Spot, Trip, Trips, inside
from kesco.transfers.weave import Weaver
from kesco.transfers.zeroes import with_memsets

_BY_HAND = ("cudaMemAdvise", "cudaStreamAttachMem")
_LABELS = {Pages.DEVICE: "prefetch", Pages.HOST: "prefetch to host", Pages.BOTH: "prefetch to both"}
_LOOP = re.compile(rb"(?:for|while|do)\b")


def insert(program: ir.Program, region: Region) -> tuple[Region, tuple[Prefetch, ...]]:
    """The region with prefetches, and what to write for them; the region itself where there are none."""
    if not has_managed(region) or _is_tuned(program):
        return region, ()
    kernels: dict[int, list[Site]] = {}
    for site in region.sites:
        if site.kind is SiteKind.KERNEL and site.role is Role.MOVABLE:
            kernels.setdefault(site.operation, []).append(replace(site, accesses=site.own))
    function = next(f for f in program.functions if f.here and f.span == region.span)
    finder = _Finder(program, region, Reading(program, _failed(region, function.body)), function.body)
    found: dict[tuple[Span, str, bool], tuple[Prefetch, Spot]] = {}
    for launch in launches(function.body):
        number = launch.node.operation
        place = program.operations[number].statement
        if number not in kernels or place is None or program.operations[number].stream_text is None:
            continue
        first, *others = kernels[number]
        kernel = first.label.partition("#")[0] if others else first.label
        ahead = finder.ahead(launch, kernels[number])
        behind = results(program, region, finder.reading, function.body, launch, kernels[number], finder.kept)
        for spot in chain(ahead, behind):
            at, beside = spot.where or place, -1 if spot.where else number
            one = Prefetch(len(program.operations) + len(found), spot.pointer, kernel, beside, at, spot.pages)
            found.setdefault((at, spot.pointer, spot.pages is Pages.HOST), (one, spot))
    if not found:
        return region, ()
    chosen = list(_in_place(region, found.values()))
    return _woven(region, chosen), tuple(prefetch for prefetch, _ in chosen)


def zeroed(program: ir.Program, region: Region) -> tuple[tuple[Region, Zeroes | None], ...]:
    """The function with memsets in place of stores of zero, if there are any, and as it is."""
    as_it_is = region, None
    if region.serial_because or not has_managed(region) or _is_tuned(program):
        return (as_it_is,)
    found = with_memsets(program, region)
    return (found, as_it_is) if found[1] is not None else (as_it_is,)


def has_managed(region: Region) -> bool:
    """Whether kernels whose streams can be chosen touch managed memory."""
    kernels = (s for s in region.sites if s.kind is SiteKind.KERNEL and s.role is Role.MOVABLE)
    touched = (a.buffer.kind is BufferKind.MANAGED for s in kernels for a in s.own)
    return not region.serial_because and any(touched)


def _failed(region: Region, body: ir.Stmt) -> frozenset[int]:
    """The operations of the ways out of a function to which only a failed call of CUDA leads."""
    ways = {n.operation for n in ir.walk(body) if isinstance(n, ir.Leave)}
    return frozenset(ways - {-1} - {s.operation for s in region.sites if s.role is Role.EXIT and not s.failed})


def _in_place(region: Region, found: Collection[tuple[Prefetch, Spot]]) -> Iterator[tuple[Prefetch, Spot]]:
    """The prefetches, with those that are issued in the first trip of a loop in their places there.

    What joins the streams of code that is not seen stands before the first operation: that is better done once, with a
    prefetch in front of the loop, than in each trip.
    """
    owed = region.open or any(s.foreign for s in region.sites)
    before = {spot.where for _, spot in found if spot.later is None and spot.pages is not Pages.HOST}
    for prefetch, spot in found:
        if spot.later is None:
            yield prefetch, spot
        elif owed and spot.where not in before:
            yield prefetch, replace(spot, later=None)
        else:
            yield replace(prefetch, statement=spot.later.statement, only=spot.later.condition), spot


def _woven(region: Region, found: Collection[tuple[Prefetch, Spot]]) -> Region:
    """The region with the sites of all prefetches; those at outer loops first, so that inner ones are inside."""
    weaver = Weaver(region)
    for prefetch, spot in sorted(found, key=lambda pair: (-_extent(pair[1].where), pair[1].later is not None)):
        for trip, (buffers, at) in spot.trips.items():
            size = _light(buffers)
            mode = AccessMode.READ_WRITE if size is None else AccessMode.READ
            site = Site(
                0,
                prefetch.operation,
                _LABELS[spot.pages],
                SiteKind.PREFETCH,
                Role.MOVABLE,
                region.sites[min(at)].span,
                trip,
                tuple(Access(buffer, mode, "prefetch") for buffer in sorted(buffers)),
                bytes=size,
                added=True,
            )
            if spot.pages is Pages.HOST:
                weaver.add_behind(site, at, loop=spot.where is not None)
            else:
                weaver.add(site, at, loop=spot.where is not None, passed_by=spot.later is not None)
    return weaver.finish()


def _light(buffers: Collection[Buffer]) -> int | None:
    """The size of the largest, where all are known to be small: done within the call, so that nobody waits for it."""
    size = max((SMALL + 1 if b.bytes is None else b.bytes for b in buffers), default=0)
    return size if size <= SMALL else None


def _extent(loop: Span | None) -> int:
    return loop.end - loop.start if loop is not None else 0


def _is_tuned(program: ir.Program) -> bool:
    """Whether the program tells the driver itself where pages should be."""
    calls = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Call))
    return any(call.name.startswith(_BY_HAND) for call in calls)


class _Finder:
    """Finds what is to be prefetched to the device; `kept` are the buffers that have a copy on either side then."""

    def __init__(self, program: ir.Program, region: Region, reading: Reading, body: ir.Stmt) -> None:
        self.program, self.region, self.reading, self.body = program, region, reading, body
        self.away = touched_by_host(region)
        self.kept: dict[Buffer, frozenset[int]] = {}  # and the sites before which they get it

    def ahead(self, launch: Launched, sites: list[Site]) -> Iterator[Spot]:
        """What belongs before a launch, whose sites are given."""
        if launch.changes or not any(self.away):
            return
        units = self.reading.units(self.body, launch.node)
        for index, argument in enumerate(launch.node.arguments[: len(launch.node.kernel.parameters)]):
            if launch.node.kernel.parameters[index].shape is not ir.Shape.POINTER:
                continue
            if spelled(argument, self.program.text):
                spot = self._spot(launch, sites, index, units)
                if spot is not None:
                    yield spot

    def _spot(self, launch: Launched, sites: list[Site], index: int, units: list[Unit]) -> Spot | None:
        """What to prefetch for the argument with this index, if anything."""
        through = through_parameter(index)
        accesses = [a for site in sites for a in site.accesses if f"{a.why} ".startswith(f"{through} ")]
        buffers = frozenset(a.buffer for a in accesses)
        if not any(AccessMode.READ in a.mode for a in accesses) or any(
            b.kind is not BufferKind.MANAGED for b in buffers
        ):
            return None
        keys = frozenset(b.key for b in buffers)
        if may_be_shared(self.region, sites, keys):
            return None
        if all(b in self.kept and not self._reached_without(self.kept[b], sites) for b in buffers):
            return None
        argument = launch.node.arguments[index]
        if _light(buffers) is None and self._is_shared(argument, sites, buffers, units):
            spot = self._placed(launch, sites, argument, through, frozenset(), Pages.BOTH)
            if spot is not None:
                self.kept |= {b: at for mine, at in spot.trips.values() for b in mine}
                return spot
        return self._placed(launch, sites, argument, through, keys, Pages.DEVICE)

    def _is_shared(self, argument: ir.Expr, sites: list[Site], buffers: frozenset[Buffer], units: list[Unit]) -> bool:
        """Whether all only read these buffers from here on, and the host most of them again."""
        root = root_of(argument)
        again = [u for u in units if root and self.reading.much(u, root)]
        if not all(any(reads(self.region, u.span, b) for u in again) for b in buffers):
            return False
        return only_read(self.region, [s.number for s in sites], buffers)

    def _reached_without(self, anchors: frozenset[int], sites: list[Site]) -> bool:
        """Whether control may come to one of the sites, and not to the anchors before."""
        wanted = {s.number for s in sites} - anchors
        seen, work = {0}, [0]
        while work:
            for after in self.region.successors[work.pop()]:
                if after in wanted:
                    return True
                if after not in seen and after not in anchors:
                    seen.add(after)
                    work.append(after)
        return False

    def _placed(
        self,
        launch: Launched,
        sites: list[Site],
        argument: ir.Expr,
        through: str,
        keys: frozenset[str],
        pages: Pages,
    ) -> Spot | None:
        """Where the prefetch stands; `keys` are what the host must not touch in a loop that it stands before."""
        passed = self._passed(launch, argument, keys)
        if passed is None:
            return None
        outer = {around.loop.number for around in passed}
        where = passed[0].loop.span if passed else None
        found: Trips = {}
        needed: set[Trip] = set()
        for site in sites:
            trip = tuple(i for i in site.iterations if i.loop not in outer)
            mine = frozenset(a.buffer for a in site.accesses if a.why == through)
            if any(b.key in self.away[site.number] for b in mine):
                needed.add(trip)
            known, before = found.get(trip, (frozenset(), frozenset()))
            found[trip] = known | mine, before | {site.number}
        if needed != found.keys():
            return None
        later = None
        if where is not None:
            loops, moving = [one.loop for one in passed], [b for moved, _ in found.values() for b in moved]
            later = behind_launches(self.program, self.region, loops, launch.node, moving)
            found = {trip: (moved, inside(self.region, where, trip)) for trip, (moved, _) in found.items()}
        return Spot(spelled(argument, self.program.text), where, found, pages, later)

    def _passed(self, launch: Launched, argument: ir.Expr, keys: frozenset[str]) -> tuple[Around, ...] | None:
        """The loops that the prefetch stands before, the outermost first; none if it stands before the launch.

        None where it would be done again and again for nothing: in a loop that runs on in which the host touches
        nothing.
        """

        def touched(loop: ir.Loop) -> bool:
            span = loop.span
            return any(touches(s, keys) for s in self.region.sites if span.start <= s.span.start < span.end)

        best = len(launch.loops)
        for position in range(len(launch.loops) - 1, -1, -1):
            loop = launch.loops[position].loop
            if touched(loop) or not stays(loop, argument) or not _LOOP.match(self.program.text, loop.span.start):
                break
            if launch.loops[position].in_block:
                best = position
        unrolled = {i.loop for s in self.region.sites for i in s.iterations}
        again = any(one.loop.number not in unrolled and not touched(one.loop) for one in launch.loops[:best])
        return None if again else launch.loops[best:]
