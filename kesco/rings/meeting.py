"""What the sites of loops whose turns may overlap do: whether they may be in one at all, and what two of them share."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kesco.ir.access import Access, AccessMode, BufferKind, may_alias
from kesco.ir.flow import EXCEPTION, Region, Role, Site, SiteKind
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
        return site.kind in _WORK or (site.kind is SiteKind.CALL and not site.holds and not site.looks)
    return site.role is Role.HOST or (site.role is Role.DEVICE_SYNC and site.kind is SiteKind.SYNC)


def may_throw(region: Region, sites: Collection[Site]) -> bool:
    """Whether an exception may leave the function from among sites of it."""
    behind = {n for s in sites for n in region.successors[s.number]}
    return any(region.sites[n].label.partition("#")[0] == EXCEPTION for n in behind)


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
    return site.accesses if site.held is None else tuple(a for a in site.accesses if a.buffer.on_device)
