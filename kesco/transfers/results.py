"""Managed memory that goes back to the host before the host reads it: ``results(…)``.

In: a program, a region and its function. Out: where a prefetch to the host is put in, and of what. Apart from those to
the device because what comes behind a launch is asked here, not what comes before it.

1. For each launch and each of its pointers to managed memory: is the next that touches the memory, on every path, a
statement of the host which reads most of it (`reading`)? Then the prefetch stands right behind the launch. 2. Where the
launch is in a loop that comes to it again before, the same is asked behind the loop, if the pointer stays as it is in
it. 3. The pointer is written as it is in the launch.

What it refuses to do: move what the device needs again first, what the host only writes or reads a little of, what is
known to be small, or what the host may touch while the kernel runs; what the host reads without waiting for the device
once more; and anything behind a loop that control may leave by ``return`` or ``throw``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from kesco.ir import program as ir
from kesco.ir.access import AccessMode, Buffer, BufferKind, may_alias, through_parameter
from kesco.ir.flow import SMALL, Region, Role, Site
from kesco.ir.transfers import Pages
from kesco.source import Span
from kesco.transfers.away import may_be_shared
from kesco.transfers.launches import Launched
from kesco.transfers.pointers import spelled, stays
from kesco.transfers.reading import Reading, Unit, root_of
from kesco.transfers.spots import Spot, Trips, inside

_LOOP = re.compile(rb"(?:for|while)\b")
_WAITS = (Role.DEVICE_SYNC, Role.STREAM_SYNC, Role.EVENT_SYNC, Role.LEGACY)


def results(
    program: ir.Program,
    region: Region,
    reading: Reading,
    body: ir.Stmt,
    launch: Launched,
    sites: list[Site],
    kept: Collection[Buffer],
) -> Iterator[Spot]:
    """The prefetches to the host that belong behind a launch, whose sites are given, or behind a loop around it."""
    one = program.operations[launch.node.operation]
    if launch.changes or one.within or one.statement is None:
        return
    units = reading.units(body, launch.node)
    for index in range(min(len(launch.node.arguments), len(launch.node.kernel.parameters))):
        if not spelled(launch.node.arguments[index], program.text):
            continue
        spot = _spot(program, region, reading, units, launch, sites, index)
        if spot is not None and not all(b in kept for moved, _ in spot.trips.values() for b in moved):
            yield spot


def _spot(
    program: ir.Program,
    region: Region,
    reading: Reading,
    units: list[Unit],
    launch: Launched,
    sites: list[Site],
    index: int,
) -> Spot | None:
    argument, through = launch.node.arguments[index], through_parameter(index)
    of = {s.number: frozenset(a.buffer for a in s.accesses if f"{a.why} ".startswith(f"{through} ")) for s in sites}
    buffers = frozenset[Buffer]().union(*of.values())
    if not all(of.values()) or any(b.kind is not BufferKind.MANAGED for b in buffers):
        return None
    if all(b.bytes is not None and b.bytes <= SMALL for b in buffers):
        return None
    if may_be_shared(region, sites, frozenset(b.key for b in buffers)):
        return None
    root = root_of(argument)
    readers = [unit for unit in units if root and reading.much(unit, root)]
    if not readers:
        return None
    if all(_is_next(region, readers, (*region.successors[n],), b) for n, mine in of.items() for b in mine):
        at: Trips = {site.iterations: (of[site.number], frozenset((site.number,))) for site in sites}
        return Spot(spelled(argument, program.text), None, at, Pages.HOST)
    return _behind_loop(program, region, reading, readers, launch, argument, of)


def _behind_loop(
    program: ir.Program,
    region: Region,
    reading: Reading,
    readers: list[Unit],
    launch: Launched,
    argument: ir.Expr,
    of: dict[int, frozenset[Buffer]],
) -> Spot | None:
    """Behind the innermost loop around the launch behind which the host reads next."""
    outer: set[int] = set()
    for around in reversed(launch.loops):
        loop = around.loop
        outer.add(loop.number)
        if not stays(loop, argument) or any(reading.leaves_function(n) for n in ir.walk(loop)):
            return None
        trips: Trips = {}
        for number, mine in of.items():
            trip = tuple(i for i in region.sites[number].iterations if i.loop not in outer)
            moved = trips[trip][0] if trip in trips else frozenset[Buffer]()
            trips[trip] = moved | mine, inside(region, loop.span, trip)
        ends = [(b, _exits(region, within)) for mine, within in trips.values() for b in mine]
        if (
            around.in_block
            and _is_plain(program, loop)
            and all(_is_next(region, readers, after, b) for b, after in ends)
        ):
            return Spot(spelled(argument, program.text), loop.span, trips, Pages.HOST)
    return None


def _is_plain(program: ir.Program, loop: ir.Loop) -> bool:
    """Whether a line can be put right behind a loop."""
    text = program.text
    return bool(_LOOP.match(text, loop.span.start)) and text[loop.span.end - 1 : loop.span.end] == b"}"


def _exits(region: Region, within: frozenset[int]) -> frozenset[int]:
    """Where control goes from these sites."""
    return frozenset(n for one in within for n in region.successors[one]) - within


def _is_next(region: Region, readers: Iterable[Unit], starts: Iterable[int], buffer: Buffer) -> bool:
    """Whether the host reads the buffer there before anything else touches it, on each path from these sites.

    And it must wait for the device before that, or the pages are not there any earlier. Where control may pass by a
    loop that reads, it is taken into the loop; but not where it may turn back instead.
    """
    mine = [one for one in readers if reads(region, one.span, buffer)]

    def is_read(number: int) -> bool:
        return any(_holds(one.span, region.sites[number]) for one in mine)

    def leads_on(number: int) -> bool:
        after = [region.sites[n] for n in region.successors[number]]
        ahead = [one for one in mine if any(_holds(one.span, site) for site in after)]
        return any(all(_holds(loop, one) for loop in one.loops_at(region.sites[number].span)) for one in ahead)

    found, seen = False, set[tuple[int, bool]]()
    work = [(number, False) for number in starts]
    while work:
        number, waited = work.pop()
        site = region.sites[number]
        if (number, waited) in seen or (site.role is Role.EXIT and site.failed):
            continue
        seen.add((number, waited))
        waited |= site.role in _WAITS
        if is_read(number) or (not _touches(site, buffer) and leads_on(number)):
            if not waited:
                return False
            found = True
            continue
        if site.role in (Role.EXIT, Role.ENTRY) or _touches(site, buffer):
            return False
        work += [(after, waited) for after in region.successors[number]]
    return found


def _holds(span: Span, one: Site | Unit) -> bool:
    return span.start <= one.span.start < span.end


def _touches(site: Site, buffer: Buffer) -> bool:
    """Whether the device, unseen code, or the host by writing may touch a buffer at a site."""
    mine = [a for a in site.accesses if may_alias(a.buffer, buffer)]
    return any(site.role is not Role.HOST or AccessMode.WRITE in a.mode for a in mine)


def reads(region: Region, span: Span, buffer: Buffer) -> bool:
    """Whether a statement reads a buffer, and nothing but the host works in it."""
    within = [s for s in region.sites if _holds(span, s)]
    mine = (a for s in within for a in s.accesses if a.buffer == buffer and AccessMode.READ in a.mode)
    return all(s.role is Role.HOST for s in within) and any(mine)
