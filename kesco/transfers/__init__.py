"""Prefetches for managed memory: ``insert(program, region)`` adds what an expert would have written by hand.

In: the program and one function's region. Out: the region with a site for each prefetch, and the prefetches, with what
is to be written where. It is a stage of its own, before the data-flow graph, so that all that follows (streams, events,
pictures) sees a prefetch as one more operation that writes what it moves.

1. Find the kernels that read managed memory which the host touched last (`away`). 2. The prefetch stands right before
the first such kernel: its launch is then held up by no other prefetch. Where that is in a loop in which pointer and
pages stay as they are, it stands before the loop. 3. The pointer is written as it is in the launch; it must be a name,
an element or a member, with nothing that changes anything. How much to move the program looks up as it runs, so that
it is always the allocation that the kernel is about to read, while it lives.

A prefetch changes no result, so the proof need not know it. What it refuses to do: prefetch what is known to be small,
what the host may touch while the kernel runs, memory that kernels only write, or in a program that advises the driver
itself or ties memory to streams.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, through_parameter
from kesco.ir.flow import SMALL, Iteration, Region, Role, Site, SiteKind
from kesco.ir.transfers import Prefetch
from kesco.source import Span
from kesco.transfers.away import may_be_shared, touched_by_host, touches
from kesco.transfers.pointers import spelled, stays
from kesco.transfers.weave import Weaver

_BY_HAND = ("cudaMemAdvise", "cudaStreamAttachMem")
Trip = tuple[Iteration, ...]
_LOOP = re.compile(rb"(?:for|while|do)\b")


def insert(program: ir.Program, region: Region) -> tuple[Region, tuple[Prefetch, ...]]:
    """The region with prefetches, and what to write for them; the region itself where there are none."""
    away = touched_by_host(region)
    if region.serial_because or not any(away) or _is_tuned(program):
        return region, ()
    function = next(f for f in program.functions if f.here and f.span == region.span)
    kernels: dict[int, list[Site]] = {}
    for site in region.sites:
        if site.kind is SiteKind.KERNEL and site.role is Role.MOVABLE:
            kernels.setdefault(site.operation, []).append(site)
    found: dict[tuple[Span, str], tuple[Prefetch, _Candidate]] = {}
    for launch in _launches(function.body, ()):
        number = launch.node.operation
        place = program.operations[number].statement
        if number not in kernels or place is None or program.operations[number].stream_text is None:
            continue
        first, *others = kernels[number]
        reader = first.label.partition("#")[0] if others else first.label
        for index in range(len(launch.node.arguments)):
            one = _candidate(program, region, away, launch, kernels[number], index)
            if one is not None:
                at, before = one.where or place, -1 if one.where else number
                operation = len(program.operations) + len(found)
                found.setdefault((at, one.pointer), (Prefetch(operation, one.pointer, reader, before, at), one))
    if not found:
        return region, ()
    return _woven(region, found.values()), tuple(prefetch for prefetch, _ in found.values())


def _woven(region: Region, found: Collection[tuple[Prefetch, _Candidate]]) -> Region:
    """The region with the sites of all prefetches; those before outer loops first, so that inner ones are inside."""
    weaver = Weaver(region)
    for prefetch, one in sorted(found, key=lambda pair: _extent(pair[1].where), reverse=True):
        for trip, (buffers, inside) in one.trips.items():
            reader = region.sites[min(inside)]
            site = Site(
                0,
                prefetch.operation,
                "prefetch",
                SiteKind.PREFETCH,
                Role.MOVABLE,
                reader.span,
                trip,
                tuple(Access(buffer, AccessMode.READ_WRITE, "prefetch") for buffer in sorted(buffers)),
                added=True,
            )
            weaver.add(site, inside, loop=one.where is not None)
    return weaver.finish()


def _extent(loop: Span | None) -> int:
    return loop.end - loop.start if loop is not None else 0


def _is_tuned(program: ir.Program) -> bool:
    """Whether the program tells the driver itself where pages should be."""
    calls = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Call))
    return any(call.name.startswith(_BY_HAND) for call in calls)


@dataclass(frozen=True, slots=True)
class _Around:
    """A loop around a launch; `in_block`: lines can be put before it."""

    loop: ir.Loop
    in_block: bool


@dataclass(frozen=True, slots=True)
class _Launch:
    """A launch that is a statement, and the loops around it, the outermost first."""

    node: ir.Launch
    loops: tuple[_Around, ...]


def _launches(node: ir.Expr | ir.Stmt, loops: tuple[_Around, ...], in_block: bool = False) -> Iterator[_Launch]:
    """The launches inside `node`, in the text's order."""
    if isinstance(node, ir.Loop):
        loops = (*loops, _Around(node, in_block))
    if isinstance(node, ir.Evaluate) and isinstance(node.expression, ir.Launch):
        yield _Launch(node.expression, loops)
    if isinstance(node, ir.Stmt):
        for child in ir.children(node):
            yield from _launches(child, loops, isinstance(node, ir.Block))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What could be prefetched for one argument: before `where`, or before the launch itself where that is None.

    `trips` has for each iteration of the unrolled loops around it what moves, and the sites that it stands before.
    """

    pointer: str
    where: Span | None
    trips: dict[Trip, tuple[frozenset[Buffer], frozenset[int]]]


def _candidate(
    program: ir.Program, region: Region, away: list[frozenset[str]], launch: _Launch, sites: list[Site], index: int
) -> _Candidate | None:
    """What to prefetch for the argument with this index, if anything."""
    through = through_parameter(index)
    kernel = launch.node.kernel
    if index >= len(kernel.parameters) or kernel.parameters[index].shape is not ir.Shape.POINTER:
        return None
    accesses = [a for site in sites for a in site.accesses if f"{a.why} ".startswith(f"{through} ")]
    buffers = {a.buffer for a in accesses}
    if not any(AccessMode.READ in a.mode for a in accesses) or any(b.kind is not BufferKind.MANAGED for b in buffers):
        return None
    keys = frozenset(b.key for b in buffers)
    if all(b.bytes is not None and b.bytes <= SMALL for b in buffers) or may_be_shared(region, sites, keys):
        return None
    argument = launch.node.arguments[index]
    pointer = spelled(argument, program.text)
    parts = (*launch.node.configuration, *launch.node.arguments)
    if not pointer or any(isinstance(n, ir.Assign) for part in parts for n in ir.walk(part)):
        return None
    passed = _passed(program, region, launch, argument, keys)
    if passed is None:
        return None
    outer = {around.loop.number for around in passed}
    where = passed[0].loop.span if passed else None
    found: dict[Trip, tuple[frozenset[Buffer], frozenset[int]]] = {}
    needed: set[Trip] = set()
    for site in sites:
        trip = tuple(i for i in site.iterations if i.loop not in outer)
        mine = frozenset(a.buffer for a in site.accesses if a.why == through)
        if any(b.key in away[site.number] for b in mine):
            needed.add(trip)
        known, before = found.get(trip, (frozenset(), frozenset()))
        found[trip] = known | mine, before | {site.number}
    if needed != found.keys():
        return None
    if where is not None:
        found = {trip: (moved, _inside(region, where, trip)) for trip, (moved, _) in found.items()}
    return _Candidate(pointer, where, found)


def _passed(
    program: ir.Program, region: Region, launch: _Launch, argument: ir.Expr, keys: frozenset[str]
) -> tuple[_Around, ...] | None:
    """The loops that the prefetch stands before, the outermost first; none if it stands before the launch.

    None where it would be done again and again for nothing: in a loop that runs on in which the host touches nothing.
    """

    def touched(loop: ir.Loop) -> bool:
        return any(touches(s, keys) for s in region.sites if loop.span.start <= s.span.start < loop.span.end)

    best = len(launch.loops)
    for position in range(len(launch.loops) - 1, -1, -1):
        loop = launch.loops[position].loop
        if touched(loop) or not stays(loop, argument) or not _LOOP.match(program.text, loop.span.start):
            break
        if launch.loops[position].in_block:
            best = position
    unrolled = {i.loop for s in region.sites for i in s.iterations}
    again = any(one.loop.number not in unrolled and not touched(one.loop) for one in launch.loops[:best])
    return None if again else launch.loops[best:]


def _inside(region: Region, span: Span, trip: Trip) -> frozenset[int]:
    """The sites in a loop, in this iteration of those around it."""
    inside = (s for s in region.sites if span.start <= s.span.start < span.end)
    return frozenset(s.number for s in inside if s.iterations[: len(trip)] == trip)
