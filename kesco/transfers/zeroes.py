"""Stores of zero that become memsets on streams: ``with_memsets(program, region)``.

In: a program and one function's region. Out: the region in which they are work of the device, and what to write; or the
region itself. Apart from the prefetches because it replaces what the host does: between kernels that use a number in
managed memory, a store of the host moves its page to the host and back.

1. The store is in a loop in which a kernel uses the memory and the host does nothing else with it. The host has just
waited for the device: nothing was issued since.
2. From there to the next such wait the host does nothing but issue work, ask for errors and store more of these zeros:
it neither looks at managed memory, which it must not on devices that cannot share it, nor at how far the device is, nor
leaves the function.
3. Where that holds in the loop only, the host waits behind the loop.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.access import BufferKind
from kesco.ir.flow import Region, Role, Site, SiteKind, is_wait
from kesco.ir.transfers import Zeroes
from kesco.source import Span
from kesco.transfers.away import touches
from kesco.transfers.launches import Around
from kesco.transfers.spots import inside
from kesco.transfers.weave import Weaver

_LOOP = re.compile(rb"(?:for|while)\b")
_ISSUES = (Role.MOVABLE, Role.LEGACY, Role.HOST)
_SHARED = (BufferKind.MANAGED, BufferKind.UNSEEN_HOST, BufferKind.UNKNOWN, BufferKind.ENTRY)


def with_memsets(program: ir.Program, region: Region) -> tuple[Region, Zeroes | None]:
    """The region in which such stores are memsets, and which they are."""
    function = next(f for f in program.functions if f.here and f.span == region.span)
    stores = {s.zeroes for s in region.sites if s.role is Role.HOST and s.zeroes >= 0}
    each = ((n, _loop(program, region, n, around)) for n, around in _stores(function.body) if n in stores)
    loops = {n: loop for n, loop in each if loop is not None}
    while True:
        kept = {n: loop for n, loop in loops.items() if _is_apart(region, n, loop, loops)}
        if len(kept) == len(loops):
            break
        loops = kept
    if region.serial_because or not loops:
        return region, None
    behind = {loop.span.start: loop for n, loop in loops.items() if _reaches(region, _sites(region, n), None, loops)}
    waits = [behind[start] for start in sorted(behind)]
    found = replace(region, sites=tuple(_as_work(program, s, loops) for s in region.sites))
    return _waiting(found, waits, loops), Zeroes(frozenset(loops), tuple(loop.span for loop in waits))


def _stores(
    node: ir.Stmt | ir.Expr, around: tuple[Around, ...] = (), in_block: bool = False
) -> Iterator[tuple[int, tuple[Around, ...]]]:
    """The operations of stores inside `node`, with the loops around each, the outermost first."""
    if isinstance(node, ir.Loop):
        around = (*around, Around(node, in_block))
    if isinstance(node, ir.Evaluate) and isinstance(node.expression, ir.Assign) and node.expression.operation >= 0:
        yield node.expression.operation, around
    for child in ir.children(node) if isinstance(node, ir.Stmt) else ():
        yield from _stores(child, around, isinstance(node, ir.Block))


def _sites(region: Region, store: int) -> list[Site]:
    return [s for s in region.sites if s.zeroes == store]


def _loop(program: ir.Program, region: Region, store: int, around: tuple[Around, ...]) -> ir.Loop | None:
    """The innermost loop around a store in which a kernel uses the memory, if all its sites are certain."""
    sites, place = _sites(region, store), program.operations[store].statement
    here = [s for s in region.sites if place is not None and s.role is Role.HOST and s.span.start == place.start]
    if len(here) != len(sites):
        return None
    keys = {s.accesses[0].buffer.key for s in sites}
    for one in reversed(around):
        within = (region.sites[n] for n in inside(region, one.loop.span, ()))
        kernels = [s for s in within if s.kind is SiteKind.KERNEL and s.role is Role.MOVABLE]
        if keys <= {a.buffer.key for s in kernels for a in s.accesses}:
            plain = one.in_block and _LOOP.match(program.text, one.loop.span.start)
            return one.loop if plain else None
    return None


def _is_apart(region: Region, store: int, loop: ir.Loop, stores: Collection[int]) -> bool:
    """Whether the host has waited before the store, and does nothing in the loop that the memset could disturb."""
    sites = _sites(region, store)
    before: list[list[int]] = [[] for _ in region.sites]
    for number, after in enumerate(region.successors):
        for one in after:
            before[one].append(number)
    work, seen = [n for s in sites for n in before[s.number]], set[int]()
    while work:
        site = region.sites[work.pop()]
        if site.number in seen or is_wait(site):
            continue
        if site.role is not Role.HOST:
            return False
        seen.add(site.number)
        work += before[site.number]
    keys = {a.buffer.key for s in sites for a in s.accesses}
    others = (region.sites[n] for n in inside(region, loop.span, ()) if region.sites[n].zeroes not in stores)
    return not any(touches(one, keys) for one in others) and not _reaches(region, sites, loop.span, stores)


def _reaches(region: Region, sites: list[Site], within: Span | None, stores: Collection[int]) -> bool:
    """Whether control may come from there to what a memset could disturb, before the host waits; `within` a loop."""
    inner = None if within is None else inside(region, within, ())
    work, seen = [n for s in sites for n in region.successors[s.number]], set[int]()
    while work:
        site = region.sites[work.pop()]
        if site.number in seen or is_wait(site) or (inner is not None and site.number not in inner):
            continue
        shared = site.role is Role.HOST and any(a.buffer.kind in _SHARED for a in site.accesses)
        if site.role not in _ISSUES or site.looks or site.foreign or (shared and site.zeroes not in stores):
            return True
        seen.add(site.number)
        work += region.successors[site.number]
    return False


def _as_work(program: ir.Program, site: Site, stores: Collection[int]) -> Site:
    zeroing = program.operations[site.zeroes].zeroing if site.zeroes in stores else None
    if zeroing is None or site.role is not Role.HOST:
        return site
    work = replace(site, operation=site.zeroes, kind=SiteKind.MEMSET, role=Role.MOVABLE, bytes=zeroing.bytes)
    return replace(work, label=f"zero of {site.accesses[0].buffer.name}")


def _waiting(region: Region, loops: Iterable[ir.Loop], stores: Collection[int]) -> Region:
    """The region in which the host waits behind these loops, the outer ones first, in each trip of unrolled ones."""
    weaver = Weaver(region)
    for loop in loops:
        own = {n.number for n in ir.walk(loop) if isinstance(n, ir.Loop)}
        within = (region.sites[n] for n in inside(region, loop.span, ()))
        trips = {tuple(i for i in s.iterations if i.loop not in own): None for s in within if s.zeroes in stores}
        behind = replace(loop.span, start=loop.span.end)
        for trip in trips:
            wait = Site(0, -1, "cudaDeviceSynchronize", SiteKind.SYNC, Role.DEVICE_SYNC, behind, trip, added=True)
            weaver.add_behind(wait, inside(region, loop.span, trip), loop=True)
    return weaver.finish()
