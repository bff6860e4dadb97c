"""Which managed memory the host touched last: ``touched_by_host(region)``.

In: a region. Out: for each site the buffers whose pages may be on the host's side when control reaches it. Kept apart
because it is a data-flow analysis of its own.

1. The host's own accesses bring a buffer to the host, work of the device brings it to the device. What a call that is
not seen does with one is anybody's guess, and counts for neither. 2. Where paths meet, what may be away on either is
away. 3. What nobody has touched yet has no pages at all. Memory that is not known says nothing: a prefetch too few is
only slower.
"""

from __future__ import annotations

from collections.abc import Iterable

from kesco.ir.access import BufferKind
from kesco.ir.flow import Region, Role, Site, SiteKind

_DEVICE = (Role.MOVABLE, Role.LEGACY)
_WAITS = (Role.DEVICE_SYNC, Role.STREAM_SYNC, Role.EVENT_SYNC, Role.LEGACY, Role.JOIN, Role.EXIT)


def touches(site: Site, keys: Iterable[str]) -> bool:
    """Whether the host may touch one of the buffers at a site."""
    host = site.role is Role.HOST or (site.role is Role.JOIN and site.kind is SiteKind.CALL)
    return host and not _managed(site).isdisjoint(keys)


def _managed(site: Site) -> frozenset[str]:
    return frozenset(a.buffer.key for a in site.accesses if a.buffer.kind is BufferKind.MANAGED)


def touched_by_host(region: Region) -> list[frozenset[str]]:
    """For each site the keys of the managed buffers that may be away from the device."""
    nothing: frozenset[str] = frozenset()
    before = [nothing] * len(region.sites)
    reached = {0}
    work = [0]
    while work:
        number = work.pop()
        site = region.sites[number]
        after = before[number]
        if site.role is Role.HOST:
            after |= _managed(site)
        elif site.role in _DEVICE:
            after -= _managed(site)
        for successor in region.successors[number]:
            if successor not in reached or not after <= before[successor]:
                before[successor] |= after
                reached.add(successor)
                work.append(successor)
    return before


def may_be_shared(region: Region, sites: Iterable[Site], keys: frozenset[str]) -> bool:
    """Whether the host may touch one of the buffers while one of the kernels runs."""
    seen: set[int] = set()
    work = [after for site in sites for after in region.successors[site.number]]
    while work:
        number = work.pop()
        site = region.sites[number]
        if number in seen or site.role in _WAITS:
            continue
        seen.add(number)
        if touches(site, keys):
            return True
        work += region.successors[number]
    return False
