"""Which waits of the host are not needed, because nothing looks at the device before its next wait.

In: a region, and the sites whose text could be taken out. Out: those that may go; and the region without them, in which
they order nothing. A stage of its own, before the data-flow graph, because a wait of the host is a barrier for all
streams and so keeps apart what could overlap.

1. A *look* is whatever may show how far the device is: a clock, output, a call that is not seen, the end of the
function; and a query for errors, unless it stands behind a launch: then it is about that one. 2. A wait stays if a
look can be reached from it without another wait in between: the last wait before each look stays on every path, and it
waits for all that the others waited for. There a copy to the host that stays on the default stream is a wait, too. 3. A
wait also stays if it may be the first behind code that is not seen,
which may have left work on streams that nothing else waits for. 4. The first waits of a function stay where the host
touches memory behind them that work of the caller may still be writing: what the function did not make. Where unseen
code may call it, that work may be on a stream that the default stream does not wait for, and they stay also where
work behind them touches other memory than what was allocated since. 5. Where some work touches managed or page-locked
memory, a wait goes only where nothing but launches and what touches no memory is between it and the next one. All stay
where it touches what the host could look at in ways that are not seen here.

6. A wait whose result is looked at stays unless that of the next one which stays is, too, on every path. A copy to the
host is one that stays: it may be waited for later, but then with the same words.

Errors that the device finds are reported by the wait that stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.flow import Held, Region, Role, Site, SiteKind, comes_home, is_wait

_SHARED = (BufferKind.MANAGED, BufferKind.PINNED)
"""Memory of both sides, which the host does not touch without being seen to."""


def needless(
    region: Region, whole: Collection[int], single: Collection[int] = (), checked: Mapping[int, bool] | None = None
) -> tuple[int, ...]:
    """The candidates that may go, ascending: of `whole` all of an operation's sites or none, of `single` any.

    `checked` are all waits of which the program says so and ends if they fail, and whether it asks about launches, too.
    """
    candidates = (*whole, *single)
    if not candidates:
        return ()
    unseen = {s.number for s in region.sites if s.foreign}
    kept = _reached(region, unseen)
    kept |= {c for c in candidates if any(_looks(region.sites[n]) for n in _reached(region, (c,), homes=True))}
    others = [site for site in region.sites if not _on_the_device(site)]
    if any(a.buffer.kind not in _SHARED for site in others for a in site.accesses if not a.buffer.on_device):
        return ()
    if others:
        kept |= {c for c in candidates if any(_may_see(region.sites[n]) for n in _reached(region, (c,)))}
    kept |= _for_the_caller(region, candidates, kept)
    kept |= _for_the_report(region, whole, candidates, checked or {}, kept)
    operations = {region.sites[c].operation for c in whole if c in kept}
    gone = {c for c in whole if region.sites[c].operation not in operations}
    return tuple(sorted(gone.union(c for c in single if c not in kept)))


def _for_the_report(
    region: Region,
    whole: Collection[int],
    candidates: Collection[int],
    checked: Mapping[int, bool],
    kept: Collection[int],
) -> set[int]:
    """Further candidates to be kept: those that would report an error of the device which then might go unreported."""
    gone = set(candidates).difference(kept)
    asked = sorted(gone.intersection(whole).intersection(checked), reverse=True)
    home = {s.operation for s in region.sites if s.role is Role.MOVABLE and s.held is Held.ALL}
    told = {n for n in gone.difference(whole) if region.sites[n].operation in home}

    def reports(wait: int, one: int) -> bool:
        says = wait in checked and checked[wait] >= checked[one]
        return says or not (is_wait(region.sites[wait]) or comes_home(region.sites[wait]))

    while True:
        before = len(gone)
        for wait in asked:
            silent = gone - told
            behind = _reached(region, (wait,), silent, homes=True) if wait in gone else set()
            if not all(reports(n, wait) for n in behind - silent):
                gone.discard(wait)
        if len(gone) == before:
            return set(asked) - gone


def _for_the_caller(region: Region, candidates: Collection[int], kept: Collection[int]) -> set[int]:
    """Further candidates to be kept: those that may be the first to wait for work of the caller, which matters behind.

    What ran before ``main`` is nothing.
    """
    more: set[int] = set()
    launched = _reached(region, (s.number for s in region.sites if s.kind is SiteKind.KERNEL), range(len(region.sites)))
    while region.function != "main":
        gone = set(candidates) - more.union(kept)
        first = _reached(region, (0,), gone)
        left = first.intersection(candidates) - more.union(kept)
        # One that waits for no kernel of the function costs nothing, and serves those behind it.
        new = {c for c in left if _matters(region, c, () if c in launched else gone)}
        if not new:
            break
        more |= new & _reached(region, (0,), set(candidates) - more.union(kept) - new)  # no other one stands before
    return more


def _matters(region: Region, wait: int, gone: Collection[int]) -> bool:
    """Whether something behind a wait, up to the next one but `gone`, may touch what work of the caller does.

    Or right before it: without the wait nobody could tell that from behind it.
    """
    if any(site.outside and wait in region.successors[site.number] for site in region.sites):
        return True
    between = [region.sites[n] for n in _reached(region, (wait,), gone)]
    outside = [s for s in (region.sites[wait], *between) if s.outside and (s.number in (wait, *gone) or not is_wait(s))]
    return bool(outside) or any(_touches(region, s) for s in between)


def without(region: Region, gone: Collection[int]) -> Region:
    """The region in which these sites order nothing; the numbers of sites stay."""
    if not gone:
        return region
    sites = tuple(replace(s, role=Role.HOST, kind=SiteKind.HOST_USE) if s.number in gone else s for s in region.sites)
    return replace(region, sites=sites)


def _on_the_device(site: Site) -> bool:
    """Whether the host cannot see what the site's work does, except through a call of CUDA."""
    if site.kind is SiteKind.COPY and "Async" not in site.label and (site.held or site.role is Role.LEGACY):
        if site.held in (Held.ALL, Held.LATER):
            return True  # the host waits for it
        # Else it may be until the source is read.
        behind = (a.buffer for a in site.accesses if site.held is None or a.mode != AccessMode.READ)
        return not any(b.kind in _SHARED for b in behind)
    works = site.role in (Role.MOVABLE, Role.LEGACY) or site.kind is SiteKind.LIBRARY
    return not works or all(access.buffer.on_device for access in site.accesses)


def _may_see(site: Site) -> bool:
    """Whether the host may touch memory here that work shares with it."""
    if is_wait(site):
        return False
    quiet = site.role is Role.HOST and site.kind is SiteKind.HOST_USE and not site.foreign
    return bool(site.accesses) if quiet else site.role is not Role.MOVABLE or site.kind is not SiteKind.KERNEL


def _looks(site: Site) -> bool:
    if site.role is Role.HOST or (site.role is Role.MOVABLE and site.kind is SiteKind.CALL):
        return site.looks
    return site.role not in (Role.MOVABLE, Role.LEGACY) and not is_wait(site)


def _touches(region: Region, site: Site) -> bool:
    """Whether a site may touch what work of the caller does: on the device only work that is not seen is not awaited.

    A copy that keeps the host has a side in the host's memory, too. And a kernel that stays where it is, because it
    waits for others or reads a clock, say, is to run alone.
    """
    if site.role is Role.HOST:
        return bool(site.accesses)
    if not region.open or site.role not in (Role.MOVABLE, Role.LEGACY):
        return False
    own = region.fresh and site.held is None and (site.role is Role.MOVABLE or site.kind is not SiteKind.KERNEL)
    return not own or any(a.buffer.kind is not BufferKind.DEVICE for a in site.accesses)


def _reached(region: Region, start: Iterable[int], gone: Collection[int] = (), *, homes: bool = False) -> set[int]:
    """The sites that may come next, one after the other, up to the next waits of the host but `gone`, with these.

    With `homes` up to the next copy to the host that stays where it is, too.
    """
    found: set[int] = set()
    stack = [successor for number in start for successor in region.successors[number]]
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            if number in gone or not (is_wait(region.sites[number]) or (homes and comes_home(region.sites[number]))):
                stack += region.successors[number]
    return found
