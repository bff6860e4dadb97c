"""What the sites of loops whose turns may overlap do: whether they may be in one at all, and what two of them share."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kesco.ir.access import HELD_IN_CALL, Access, AccessMode, BufferKind, may_alias
from kesco.ir.flow import EXCEPTION, Held, Region, Role, Site, SiteKind, is_wait
from kesco.source import Span

_WORK = (SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET)
_NOT_KNOWN = (BufferKind.UNKNOWN, BufferKind.ORDER)


def is_in(site: Site, loop: Span) -> bool:
    """Whether a site is in the text of a loop."""
    return loop.start <= site.span.start < loop.end


def may_stay(site: Site, *, waits: bool = True) -> bool:
    """Whether a site may be in such a loop, in which the host `waits`, so that it may have to look elsewhere, too."""
    if site.foreign or (waits and site.outside) or any(a.buffer.kind in _NOT_KNOWN for a in site.accesses):
        return False
    if site.role is Role.MOVABLE:
        # whether the host waits for a copy is known when all is planned
        return site.kind in _WORK or (site.kind is SiteKind.CALL and not site.looks)
    return site.role is Role.HOST or is_wait(site)


def may_throw(region: Region, sites: Collection[Site]) -> bool:
    """Whether an exception may leave the function from among sites of it."""
    behind = {n for s in sites for n in region.successors[s.number]}
    return any(region.sites[n].label.partition("#")[0] == EXCEPTION for n in behind)


def waits_behind(region: Region, sites: Collection[Site], loop: Span, later: Collection[Span] = ()) -> bool:
    """Whether the first that the host has to do with the device behind a loop, if anything, is to wait for it.

    It waits before another loop with turns, too: one of the `later` ones.
    """
    seen, found = {s.number for s in sites}, False
    todo = {n for s in sites for n in region.successors[s.number]} - seen
    while todo:
        one = region.sites[todo.pop()]
        seen.add(one.number)
        waits = one.held is Held.ALL or one.role in (Role.DEVICE_SYNC, Role.JOIN)
        turns = any(is_in(one, other) and other.start >= loop.end for other in later)
        if waits or turns or (one.role is Role.LEGACY and one.kind is SiteKind.COPY):
            found = True
        elif one.role is Role.HOST:
            todo |= set(region.successors[one.number]) - seen
        elif one.role is not Role.EXIT:
            return False
    return found


def meeting(one: Site, other: Site) -> Iterator[tuple[Access, Access]]:
    """The accesses of two sites in different turns that may be to one place, one of them writing."""
    if one.role is Role.HOST and other.role is Role.HOST:
        return
    for x in _left(one):
        for y in _left(other):
            if (x.mode | y.mode) & AccessMode.WRITE and may_alias(x.buffer, y.buffer):
                yield x, y


def _left(site: Site) -> tuple[Access, ...]:
    """What a site may still do in other turns: copies of kesco's own see to the host's memory by themselves."""
    if site.kind is SiteKind.CALL:
        return tuple(a for a in site.accesses if not (site.holds and a.why == HELD_IN_CALL))
    return site.accesses if site.held is None else tuple(a for a in site.accesses if a.buffer.on_device)
