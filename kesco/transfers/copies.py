"""Copies that the host waits for, on streams: ``moved(region, operations)`` makes ``cudaMemcpy`` one more operation.

In: one function's region, and the operations whose text can be changed. Out: the region in which such copies are
movable, each with a wait of the host right behind it, or the region itself. So are calls of functions with such copies
that follow their caller's stream. A stage of its own, before the needless
waits are taken out, so that these are among them.

1. ``cudaMemcpy`` waits for the device, copies, and lets the host go on. What is emitted instead waits for its own
stream only: to the device until the source has been read, to the host until the copy is complete. 2. So what the host
does with its own side of the copy needs no order, unless other work of the function may touch that memory, too; then
the copy stays as it is. 3. That the host has also waited for everything else becomes a site of its own: where the host
looks before it waits again, it has to stay.

What it refuses to do: move copies whose direction or device memory is not known, or those in a text that cannot be
edited; nor small ones (the launch of which costs more than they do), unless they stand behind a large one that is read
in the background with nothing in between that waits: on the default stream they would wait for that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import networkx as nx

from kesco.ir.access import BY_HOST_IN_CALL, HELD_IN_CALL, Access, Buffer, BufferKind, may_alias
from kesco.ir.flow import HOSTS_SIDE, SMALL, Held, Region, Role, Site, SiteKind
from kesco.ir.transfers import PAYS

_WAITS = (Role.ENTRY, Role.EXIT, Role.JOIN, Role.DEVICE_SYNC)


def moved(region: Region, editable: Collection[int], *, taking: bool = False) -> Region:
    """The region with its copies on streams; `editable` has the operations whose text can be changed.

    With `taking` calls that allocate and free memory move, too: in loops, behind which that is given back.
    """
    if region.serial_because:
        return region
    stay = set[int]() if taking else {s.operation for s in region.sites if s.takes}
    others = _touched_by_others(region)
    chosen = {s.operation for s in region.sites if _could_move(s) and s.operation in editable} - stay
    chosen -= {
        s.operation for s in region.sites if s.operation in chosen and not (_could_move(s) and _apart(s, others))
    }
    chosen -= _small(region, chosen)
    if not chosen:
        return region
    place: list[int] = []
    count = 0
    for site in region.sites:
        place.append(count)
        count += 2 if site.operation in chosen else 1
    sites: list[Site] = []
    after: list[tuple[int, ...]] = []
    for site, successors in zip(region.sites, region.successors, strict=True):
        following = tuple(place[s] for s in successors)
        here = place[site.number]
        if site.operation not in chosen:
            sites.append(replace(site, number=here))
            after.append(following)
            continue
        device = tuple(a for a in site.accesses if not _on_the_hosts_side(site, a))
        sites.append(replace(site, number=here, role=Role.MOVABLE, accesses=device, note=""))
        wait = Site(here + 1, site.operation, site.label, SiteKind.SYNC, Role.DEVICE_SYNC, site.span, site.iterations)
        sites.append(replace(wait, outside=site.outside))
        after += [(here + 1,), following]
    return replace(region, sites=tuple(sites), successors=tuple(after))


def _could_move(site: Site) -> bool:
    """Whether it is such a copy, or a call that may go to a stream with those in it.

    What the host looks at in a call it looks at before the wait behind it.
    """
    if may_hold(site):
        touched = (a.buffer for a in site.accesses if not _on_the_hosts_side(site, a))
        return not (site.looks or site.outside) and all(b.on_device for b in touched)
    if site.kind is not SiteKind.COPY or site.role is not Role.LEGACY or site.held is None or site.stuck:
        return False
    device = [a.buffer for a in site.accesses if not _on_the_hosts_side(site, a)]
    return bool(device) and all(b.on_device for b in device)


def may_hold(site: Site) -> bool:
    """Whether a call may go to a stream with the copies in it."""
    return site.holds and not site.stuck and site.role is Role.JOIN


def may_pay(region: Region) -> bool:
    """Whether it may pay that the copies of a function move: not where they are few, pageable and known to be small.

    Until a program's copies of pageable memory add up to `PAYS` bytes they are its own, wherever they stand.
    """
    found = [s for s in region.sites if _could_move(s)]
    if any(a.buffer.kind is BufferKind.PINNED for s in found for a in s.accesses if _on_the_hosts_side(s, a)):
        return True
    again = _repeated(region)
    if any(s.bytes is None or (s.number in again and s.bytes > SMALL) for s in found):
        return True
    return sum(s.bytes or 0 for s in found) >= PAYS


def _repeated(region: Region) -> set[int]:
    """The sites in loops."""
    follows = nx.DiGraph((s.number, n) for s, after in zip(region.sites, region.successors, strict=True) for n in after)
    circles = (c for c in nx.strongly_connected_components(follows) if len(c) > 1)
    return {n for circle in circles for n in circle} | {n for n, _ in nx.selfloop_edges(follows)}


def is_flat(site: Site) -> bool:
    """Whether a copy is a ``cudaMemcpy``, the only one that can be in the background."""
    return site.label.partition("#")[0] == "cudaMemcpy"


def _small(region: Region, chosen: Collection[int]) -> set[int]:
    """The small copies among `chosen` but for those that would wait for others' work, and need not.

    These are the ones behind a large one read in the background, and those to symbols behind kernels.
    """
    sites = [s for s in region.sites if s.operation in chosen]
    large = {s.operation for s in sites if s.busy or s.bytes is None or s.bytes > SMALL}
    sources = [s.number for s in sites if s.operation in large and s.held is Held.SOURCE and is_flat(s)]
    kernels = [s.number for s in region.sites if s.kind is SiteKind.KERNEL and s.role is Role.MOVABLE]
    to_symbols = {s.operation for s in sites if s.label.partition("#")[0] == "cudaMemcpyToSymbol"}
    late = _behind(region, sources) | (_behind(region, kernels) & to_symbols)
    return {s.operation for s in sites} - large - late


def _behind(region: Region, sources: Collection[int]) -> set[int]:
    """The operations that may come behind these sites while they are running, as far as no other one waits."""
    found: set[int] = set()
    stack = [after for number in sources for after in region.successors[number]]
    while stack:
        number = stack.pop()
        if number not in found and region.sites[number].role not in _WAITS:
            found.add(number)
            stack += region.successors[number]
    return {region.sites[n].operation for n in found}


def _on_the_hosts_side(site: Site, access: Access) -> bool:
    if site.kind is SiteKind.CALL:
        return site.holds and access.why in (HELD_IN_CALL, BY_HOST_IN_CALL)
    return site.held is not None and access.mode == HOSTS_SIDE[site.held]


def _touched_by_others(region: Region) -> tuple[Buffer, ...]:
    """What work touches, but for the host's side of copies that keep the host until that is done."""
    found: dict[str, Buffer] = {}
    for site in region.sites:
        if site.role in (Role.MOVABLE, Role.LEGACY):
            found |= {a.buffer.key: a.buffer for a in site.accesses if not _on_the_hosts_side(site, a)}
    return tuple(found.values())


def _apart(site: Site, others: Collection[Buffer]) -> bool:
    """Whether no other work of the function touches the host's side of a copy.

    What two pointers from outside point to, or one of them and a device symbol, may be the same: nothing compares them
    as the program runs, since the host's memory is mostly none that the driver could say anything about.
    """
    mine = [a.buffer for a in site.accesses if _on_the_hosts_side(site, a)]
    symbol = any(a.buffer.kind is BufferKind.SYMBOL for a in site.accesses)
    if symbol and any(b.kind is BufferKind.ENTRY for b in others):
        return False
    outside = any(b.kind in (BufferKind.ENTRY, BufferKind.SYMBOL) for b in others)
    if outside and any(a.kind is BufferKind.ENTRY for a in mine):
        return False
    return not any(may_alias(a, b) for a in mine for b in others)


def waits_of_copies(region: Region) -> tuple[int, ...]:
    """The sites that stand for the wait of a copy which is on a stream."""
    on_streams = {s.operation for s in region.sites if (s.held or s.holds) and s.role is Role.MOVABLE}
    return tuple(s.number for s in region.sites if s.role is Role.DEVICE_SYNC and s.operation in on_streams)


def fetched_later(region: Region, operations: Collection[int]) -> Region:
    """The region in which these copies to the host, and those in these calls, do not keep it."""

    def later(site: Site) -> Site:
        if site.operation not in operations or site.role is not Role.MOVABLE:
            return site
        return replace(site, held=Held.LATER) if site.held is Held.ALL else replace(site, later=site.holds)

    return replace(region, sites=tuple(map(later, region.sites)))


def into_pageable(region: Region) -> set[int]:
    """The copies to the host whose memory comes from ``malloc`` and the like, as far as the function shows."""
    written: dict[int, set[BufferKind]] = {}
    for site in region.sites:
        if site.held is Held.ALL:
            kinds = {a.buffer.kind for a in site.accesses if _on_the_hosts_side(site, a)}
            written.setdefault(site.operation, set()).update(kinds)
    return {operation for operation, kinds in written.items() if kinds == {BufferKind.HOST}}
