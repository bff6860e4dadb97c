"""Where the program may ask, as it runs, whether several streams are worth their price.

In: a region and its schedule. Out: the sites behind which a *stretch* begins: work from one place where the host waits
for the device to the next, executed again and again. Launches that take longer than the work they start are slower on
several streams than on one, and whether that is so depends on sizes that no compiler sees; the emitted text times both.

1. A stretch ends where the host waits for the whole device, and the next begins there. 2. In ``main`` only those count
that are executed again, with work in between; other functions may be called again, so that their entry begins one, too.
3. Behind unseen code a function fetches its streams anew, several of them: all work is joined there, so that no wait
relies on an event that was left out before, and the next stretch chooses again.
"""

from __future__ import annotations

import networkx as nx

from kesco.ir.flow import Region, Role, SiteKind
from kesco.ir.schedule import Schedule


def stretches(region: Region, schedule: Schedule) -> tuple[int, ...]:
    """The sites behind which a stretch begins, 0 for the entry, ascending."""
    if schedule.streams < 2:
        return ()
    work = {site for site, _ in schedule.stream_of}
    barriers = [s.number for s in region.sites if s.role is Role.DEVICE_SYNC and s.kind is SiteKind.SYNC]
    if region.function != "main":
        return (0, *barriers) if barriers else ()
    graph = nx.DiGraph((site, after) for site, successors in enumerate(region.successors) for after in successors)
    loops = [loop for loop in nx.strongly_connected_components(graph) if not work.isdisjoint(loop)]
    return tuple(b for b in barriers if any(b in loop for loop in loops))
