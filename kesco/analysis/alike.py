"""Loops that are better followed as loops, though their trips are known: ``rolled(regions, again)``.

In: the regions of a program with loops of known trips unrolled, and what reads it again with some of them as loops.
Out: the regions as they are best read. Both readings ask it, of a serial program and of an output: then what is emitted
for such a loop is one text for all trips.

1. A loop may be rolled if in every region each operation of it touches the same in each trip that it is in, on the same
stream, with the same event. 2. It is rolled if the regions then say as much as before: each operation of the program
touches the same, and has the same role. So no trip left a pointer behind that is told apart by trips only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator

from kesco.ir.flow import Region, Site, SiteKind

_WORK = frozenset(set(SiteKind) - {SiteKind.HOST_USE, SiteKind.BOUNDARY})
_MOST = 6  # loops that are tried one by one, where they cannot be rolled together
_CALL = re.compile(r"@\d+$")
"""In the key of a buffer: which of the calls of a function it comes from."""
_Regions = tuple[Region, ...]


def rolled(regions: _Regions, again: Callable[[Collection[int]], _Regions]) -> _Regions:
    """The regions with as many loops rolled as may be; `again` reads them with these loops as loops."""
    loops = sorted(_alike(regions))
    for together in (loops, *([one] for one in loops[:_MOST] if len(loops) > 1)):
        if together and _say_as_much(other := again(together), regions):
            return other
    return regions


def _alike(regions: Iterable[Region]) -> set[int]:
    same: dict[int, bool] = {}
    for form in (one for region in regions for one in _forms(region)):
        for loop, found in _trips(form).items():
            same[loop] = same.get(loop, True) and found
    return {loop for loop, found in same.items() if found}


def _forms(region: Region) -> Iterator[Region]:
    return (one for one in (region, region.calling, region.linked) if one is not None)


def _trips(region: Region) -> dict[int, bool]:
    """For each loop that is unrolled in a region whether each operation does the same in all trips."""
    seen: defaultdict[tuple[int, Hashable], set[Hashable]] = defaultdict(set)
    for site in (s for s in region.sites if s.kind in _WORK):
        for at, one in enumerate(site.iterations):
            others = tuple((i.loop, i.index) for n, i in enumerate(site.iterations) if n != at)
            seen[one.loop, (site.operation, site.kind, site.role, others)].add(_does(site))
    found: dict[int, bool] = {}
    for (loop, _), ways in seen.items():
        found[loop] = found.get(loop, True) and len(ways) == 1
    return found


def _does(site: Site) -> Hashable:
    touched = frozenset((a.buffer.key, a.mode, a.bytes) for a in site.accesses)
    return touched, site.bytes, site.stream and site.stream.key, site.event and site.event.key, site.calls


def _say_as_much(new: _Regions, old: _Regions) -> bool:
    """Whether each operation does in all what it did; where a region was not followed, nothing is lost."""
    if len(new) != len(old):
        return False
    for one, other in zip(new, old, strict=True):
        if one.serial_because and not other.serial_because:
            return False
        if not other.serial_because and any(_in_all(a) != _in_all(b) for a, b in _both(one, other)):
            return False
    return True


def _both(one: Region, other: Region) -> Iterator[tuple[Region, Region]]:
    yield one, other
    for mine, its in ((one.calling, other.calling), (one.linked, other.linked)):
        if its is not None:
            yield mine or one, its


def _in_all(region: Region) -> dict[Hashable, set[Hashable]]:
    found: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
    for site in (s for s in region.sites if s.kind in _WORK):
        touched = ((_CALL.sub("", a.buffer.key), a.mode) for a in site.accesses)
        found[site.operation, site.kind, site.role].update(touched, site.calls)
    return dict(found)
