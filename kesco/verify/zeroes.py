"""Stores of zero that the concurrent program leaves to the device.

In: both regions. Out: the serial region in the form that the rest of the proof compares with, in which such a store is
a memset; and which of its sites are. Apart because here alone something of the host's is taken for work of the device.

1. A store and a memset are the same if all that either does is to set the same bytes of the same allocation to zero:
the analysis says so of each (`Site.zeroes`), and one buffer alone has that name.
2. Which is which is told by the order of the text: in both programs as many sites set the same bytes to zero, and the
n-th of one is the n-th of the other. That it stands at the same place in the flow of control is proven with all other
sites.
3. At the store the serial program's host has waited for all that was issued: no kernel watches for it.
4. When the store is done the host has its result. So the memset counts as work that the host has waited for at once:
whatever may look at that memory later, or leave the function, must be behind a wait that the concurrent text has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace

from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.verify.happens_before import HappensBefore


def with_memsets(serial: Region, concurrent: Region) -> tuple[Region, frozenset[int]]:
    """The serial region with memsets for the stores that are some in the concurrent one, and their sites."""
    ours, theirs = _by_bytes(serial), _by_bytes(concurrent)
    found = {
        one.number: other
        for key, sites in ours.items()
        if len(sites) == len(theirs[key])
        for one, other in zip(sites, theirs[key], strict=True)
        if one.role is Role.HOST and other.role is Role.MOVABLE
    }
    if not found:
        return serial, frozenset()
    facts = HappensBefore(serial, generous=True).run()
    stores = frozenset(n for n in found if n in facts and not facts[n].pending)

    def compared(site: Site) -> Site:
        if site.number not in stores:
            return site
        return replace(site, role=Role.MOVABLE, kind=SiteKind.MEMSET, label=found[site.number].label)

    return replace(serial, sites=tuple(map(compared, serial.sites))), stores


def _by_bytes(region: Region) -> defaultdict[Hashable, list[Site]]:
    """The stores and memsets of zero, by what they set and in which trips of unrolled loops."""
    found: defaultdict[Hashable, list[Site]] = defaultdict(list)
    for site in region.sites:
        if site.zeroes >= 0 and (site.role is Role.HOST or site.kind is SiteKind.MEMSET):
            (access,) = site.accesses
            found[access.buffer.name, access.bytes, tuple(i.value for i in site.iterations)].append(site)
    return found
