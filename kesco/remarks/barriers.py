"""Which independent operations a function keeps apart, and what stands between them.

In: a `Region`. Out: for each barrier the pairs of operations that could run at once if it were not there. It is apart
from the stages because it asks about a program that does not exist: the one without the barrier.

1. Work is what moves, what stays on the default stream, and a call of a function whose accesses are known. 2. Two such
sites depend on each other where both touch a buffer, one of them writes it, and one reaches the other; and where a
chain of such sites leads from one to the other, within one round of every loop. What the host reads it may pass on to
all that follows. 3. Two launches (or copies that move, or calls) that do not, although one reaches the other, are
independent. 4. Where no path leads from one to the other without a barrier, the barriers on a shortest path are what
keeps them apart.

It proves nothing and changes nothing: it says where to look.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.flow import Region, Role, Site, SiteKind, is_barrier

MOST_SITES = 600
_UNKNOWN = BufferKind.UNKNOWN


@dataclass(frozen=True, slots=True)
class Apart:
    """The barriers between two independent operations, in the order in which they stand; `more` further such pairs."""

    first: Site
    second: Site
    barriers: tuple[Site, ...]
    more: int = 0


def kept_apart(region: Region) -> tuple[Apart, ...]:
    """One entry for each barrier that comes first between two independent operations, in the text's order."""
    sites = region.sites
    work = [s.number for s in sites if _is_work(s)]
    chosen = [n for n in work if _could_overlap(sites[n])]
    if not 1 < len(chosen) <= MOST_SITES or len(sites) > 4 * MOST_SITES:
        return ()
    after = region.forward()
    reach = {n: _reached(region, after, n, through_barriers=True) for n in work}
    linked = _linked(sites, work, reach)
    found: dict[int, Apart] = {}
    seen: set[tuple[int, int]] = set()
    for a in chosen:
        together = _reached(region, after, a, through_barriers=False)
        for b in chosen:
            pair = (sites[a].operation, sites[b].operation)
            if b == a or not reach[a] >> b & 1 or linked[a] >> b & 1 or together >> b & 1 or pair in seen:
                continue
            seen.add(pair)
            between = _between(region, after, a, b)
            if between:
                key = between[0].operation
                known = found.get(key)
                found[key] = (
                    Apart(sites[a], sites[b], between)
                    if known is None
                    else Apart(known.first, known.second, known.barriers, known.more + 1)
                )
    return tuple(sorted(found.values(), key=lambda one: one.barriers[0].number))


def why_one_stream(region: Region, width: int) -> str:
    """Why a function's operations are all on one stream, when at most `width` of them can run at once."""
    if width > 1:
        return "one stream holds all of its operations"
    apart = "barriers keep its independent operations apart"
    return apart if kept_apart(region) else "no two of its operations are independent"


def _is_work(site: Site) -> bool:
    if site.role in (Role.MOVABLE, Role.LEGACY, Role.HOST):
        return True
    return site.kind is SiteKind.CALL and bool(site.accesses) and not _vague(site)


def _could_overlap(site: Site) -> bool:
    if site.held is not None:
        return False
    if site.role is Role.MOVABLE or site.kind is SiteKind.KERNEL:
        return site.kind is not SiteKind.MEMSET and not _vague(site)
    return site.kind is SiteKind.CALL and not site.foreign


def _vague(site: Site) -> bool:
    return any(a.buffer.kind is _UNKNOWN for a in site.accesses)


def _reached(region: Region, after: tuple[tuple[int, ...], ...], start: int, *, through_barriers: bool) -> int:
    """The sites that control may come to behind `start`, as bits."""
    found, queue = 0, deque(after[start])
    if not through_barriers and is_barrier(region.sites[start]):
        return 0
    while queue:
        site = queue.popleft()
        if found >> site & 1 or (not through_barriers and is_barrier(region.sites[site])):
            continue
        found |= 1 << site
        queue.extend(after[site])
    return found


def _conflict(a: Site, b: Site) -> bool:
    if _vague(a) or _vague(b):
        return True
    modes = {x.buffer.key: AccessMode.NONE for x in a.accesses}
    for x in a.accesses:
        modes[x.buffer.key] |= x.mode
    return any(x.buffer.key in modes and AccessMode.WRITE & (x.mode | modes[x.buffer.key]) for x in b.accesses)


def _told(site: Site) -> bool:
    """Whether the host learns here what the device computed; all that follows may depend on it."""
    wanted = AccessMode.READ if site.role is Role.HOST else AccessMode.WRITE
    if site.role is not Role.HOST and site.kind is not SiteKind.COPY:
        return False
    return any(a.mode & wanted and a.buffer.kind is not BufferKind.DEVICE for a in site.accesses)


def _linked(sites: tuple[Site, ...], work: list[int], reach: dict[int, int]) -> dict[int, int]:
    """For each site of work the ones that depend on it, directly or through others, as bits."""
    linked = {
        a: sum(1 << b for b in work if reach[a] >> b & 1 and (_told(sites[a]) or _conflict(sites[a], sites[b])))
        for a in work
    }
    changed = True
    while changed:
        changed = False
        for a in reversed(work):
            mask = linked[a]
            for b in work:
                if mask >> b & 1:
                    mask |= linked[b]
            if mask != linked[a]:
                linked[a], changed = mask, True
    return linked


def _between(region: Region, after: tuple[tuple[int, ...], ...], start: int, end: int) -> tuple[Site, ...]:
    """The barriers on a shortest path; the first site itself where it is one."""
    came: dict[int, int] = {}
    queue = deque([start])
    while queue and end not in came:
        site = queue.popleft()
        for following in after[site]:
            if following not in came:
                came[following] = site
                queue.append(following)
    path = [end]
    while path[-1] != start or len(path) == 1:
        if path[-1] not in came:
            return ()
        path.append(came[path[-1]])
    return tuple(s for s in (region.sites[n] for n in reversed(path)) if is_barrier(s))
