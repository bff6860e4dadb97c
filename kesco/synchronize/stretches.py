"""Where the program may ask, as it runs, whether several streams are worth their price.

In: a region and its schedule. Out: the sites behind which a *stretch* begins: work from one place where the host waits
for the device to the next, executed again and again. Launches that take longer than the work they start are slower on
several streams than on one, and whether that is so depends on sizes that no compiler sees; the emitted text times both.

1. A stretch ends where the host waits for the whole device, and the next begins there. 2. In ``main`` only those count
that are executed again, with work in between; other functions may be called again, so that their entry begins one, too.
3. Behind unseen code a function fetches its streams anew, several of them: all work is joined there, so that no wait
relies on an event that was left out before, and the next stretch chooses again. 4. Where work may also be replayed as
graphs, only stretches with such work are tried, and what is between them takes the same way. 5. Where tasks have
priorities nothing is tried: one stream keeps none of them.
"""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx

from kesco.ir.flow import Region, Role, SiteKind
from kesco.ir.schedule import Schedule


def replayed(region: Region, schedule: Schedule, inside: Collection[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sites behind which a stretch begins in which `inside` may run, and those where only another one ends."""
    found = stretches(region, schedule)
    begins = tuple(b for b in found if not _until_waits(region, b).isdisjoint(inside))
    return (begins, tuple(b for b in found if b and b not in begins)) if begins else ((), ())


def _until_waits(region: Region, start: int) -> set[int]:
    """What may run behind a site before the host waits for the device."""
    found: set[int] = set()
    work = list(region.successors[start])
    while work:
        number = work.pop()
        if number not in found:
            found.add(number)
            site = region.sites[number]
            if site.role is not Role.DEVICE_SYNC or site.kind is not SiteKind.SYNC:
                work += region.successors[number]
    return found


def stretches(region: Region, schedule: Schedule) -> tuple[int, ...]:
    """The sites behind which a stretch begins, 0 for the entry, ascending."""
    if schedule.streams < 2 or schedule.by_task:
        return ()
    work = {site for site, _ in schedule.stream_of}
    moving = {region.sites[n].operation for n in work}  # copies that also wait for the device
    barriers = [
        s.number
        for s in region.sites
        if s.role is Role.DEVICE_SYNC and s.kind is SiteKind.SYNC and s.operation not in moving and not s.added
    ]
    if region.function != "main":
        return (0, *barriers) if barriers else ()
    graph = nx.DiGraph((site, after) for site, successors in enumerate(region.successors) for after in successors)
    loops = [loop for loop in nx.strongly_connected_components(graph) if not work.isdisjoint(loop)]
    return tuple(b for b in barriers if any(b in loop for loop in loops))
