"""Ways out of a function that have no text of their own: ``watched(program, region)`` makes the host wait there.

In: one function's region as its author wrote it. Out: the region to plan with, and the operations that leave. A stage
of its own, before the graph, because from then on such an exit is nothing but a wait of the host for the device.

1. No line can be put before a ``return`` that stands in a macro and is taken where a call of CUDA has failed, nor where
an exception leaves, so that work which is pending there could not be joined. What can be put is an object whose end
waits for the device, right behind the line that fetches the streams: before all work, in the function's own block, or
in that of the ``try`` around all of it where destructors run before a handler does.
2. All work is then complete before the caller, or whoever catches a
throw, goes on: neither joins nor earlier waits of the host are needed for its sake. 3. The other exits tell the object
that they are none of these, and join as they always do.

Where such an object cannot do its work, what the macros themselves give the device stays on the default stream
(`in_place`), so that nothing is pending when they leave.

What it refuses to do: leave that to a macro whose return has nothing to do with an error, which may be the usual way
out; and functions whose calls are a part of another one.
"""

from __future__ import annotations

from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.flow import CAUGHT, EXCEPTION, Region, Role, Site, SiteKind


def watched(program: ir.Program, region: Region, *, macros: bool = True) -> tuple[Region, tuple[int, ...]]:
    """The region in which the host waits where macros leave with work pending; itself and nothing if there are none.

    Without `macros` it only waits where exceptions are on their way past destructors of the function itself.
    """
    if region.serial_because or region.members:
        return region, ()
    pending = _behind_work(region)
    chosen = {s.number for s in region.sites if _has_no_text(program, s) and s.number in pending}
    if not macros:
        chosen = {n for n in chosen if _is_caught(region.sites[n])}
    if not chosen:
        return region, ()
    sites = tuple(
        replace(s, role=Role.DEVICE_SYNC, kind=SiteKind.SYNC) if s.number in chosen else s for s in region.sites
    )
    return replace(region, sites=sites), tuple(sorted({region.sites[n].operation for n in chosen}))


def in_place(program: ir.Program, region: Region) -> tuple[Region, frozenset[int]]:
    """The region in which no operation of a macro that may leave is on a stream, and all such operations."""
    leaving = {s.operation for s in region.sites if _has_no_text(program, s) and s.operation >= 0}
    places = {program.operations[n].statement for n in leaving}
    stay = frozenset(
        n for n, one in enumerate(program.operations) if one.statement is not None and one.statement in places
    )
    note = "the macro around it may leave the function"
    sites = tuple(
        replace(s, role=Role.JOIN if s.kind is SiteKind.CALL else Role.LEGACY, note=note)
        if s.role is Role.MOVABLE and s.operation in stay
        else s
        for s in region.sites
    )
    return (replace(region, sites=sites) if sites != region.sites else region), stay


def _has_no_text(program: ir.Program, site: Site) -> bool:
    if _is_caught(site):
        return True
    if site.role is not Role.EXIT:
        return False
    if site.operation < 0:
        return site.label.partition("#")[0] == EXCEPTION
    return site.failed and bool(program.operations[site.operation].within)


def _is_caught(site: Site) -> bool:
    return site.label.partition("#")[0] == CAUGHT


def _behind_work(region: Region) -> set[int]:
    """The sites that may be reached from work whose stream can be chosen."""
    found: set[int] = set()
    stack = [n for s in region.sites if s.role is Role.MOVABLE for n in region.successors[s.number]]
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            stack += region.successors[number]
    return found
