"""Sites that do nothing but set bytes to zero: which, and of which memory (`Site.zeroes`).

In: where a store or a memset goes, as the walk comes to it; in the end, the regions. Out: the one part of one managed
allocation that it sets, or None; and the regions in which only those sites keep their mark that are certain. Apart
because the proof takes a memset for a store only where both have it.

It refuses what was anything else on some path or in some call, several allocations made at one place of the text, and
two of one name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from kesco.analysis.extents import copied
from kesco.analysis.memory import Place
from kesco.ir.access import AccessMode, Buffer, BufferKind
from kesco.ir.flow import Region, Site
from kesco.ir.poly import ByteRange, constant

Part = tuple[Buffer, ByteRange]


def certain_part(places: Collection[Place], unknown: bool, size: int | None) -> Part | None:
    """The bytes that are written, where they are certainly `size` bytes of one managed allocation."""
    if unknown or len(places) != 1 or not size:
        return None
    (place,) = places
    buffer = place.object.buffer
    if buffer is None or buffer.kind is not BufferKind.MANAGED or place.object.many or place.path:
        return None
    at = None if place.offset is None else place.offset.bounds()
    part = copied(place, constant(size))
    return (buffer, part) if part is not None and at is not None and at[0] == at[1] >= 0 else None


def only_certain(region: Region, spoilt: Collection[int]) -> Region:
    """The region in which no other site has the mark; `spoilt` are operations that were something else elsewhere."""
    if all(s.zeroes < 0 for s in region.sites):
        return region
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for access in (a for s in region.sites for a in s.accesses):
        keys[access.buffer.name].add(access.buffer.key)

    def certain(site: Site) -> bool:
        alone = len(site.accesses) == 1 and site.accesses[0].mode is AccessMode.WRITE and not site.looks
        return alone and site.zeroes not in spoilt and len(keys[site.accesses[0].buffer.name]) == 1

    sites = (replace(s, zeroes=-1) if s.zeroes >= 0 and not certain(s) else s for s in region.sites)
    return replace(region, sites=tuple(sites))
