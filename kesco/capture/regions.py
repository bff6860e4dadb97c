"""A region in which each replay is one site, and the region of one replay alone.

In: a region and its replays. Out: regions with the same numbers of sites, for the stages that plan. Apart from the
search because the rest of the compiler sees replays only through these two views.

The graph of a replay is launched on one stream, and every launch of it comes after the one before. So outside it is one
operation that touches what all its sites touch; inside, only what is in the graph has to be ordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kesco.ir.access import Access, AccessMode, Buffer
from kesco.ir.flow import Region, Role, SiteKind, is_sure_barrier, may_be_nothing
from kesco.ir.replay import Replay


def outside(region: Region, replays: Sequence[Replay]) -> Region:
    """The region with the first site of each replay standing for all of it."""
    first = {n: r.sites[0] for r in replays for n in r.sites}
    sites = list(region.sites)
    successors = [{first.get(s, s) for s in after} for after in region.successors]
    for one in replays:
        head = one.sites[0]
        members = frozenset(one.sites)
        # Work of unknown trips may be none at all; the graph is launched nevertheless, which only orders more.
        left = {first.get(s, s) for n in members for s in region.successors[n] if s not in members}
        again = {head} if _begins_again(region, one) else set[int]()
        for number in members - {head}:
            sites[number] = replace(sites[number], role=Role.HOST, kind=SiteKind.HOST_USE, accesses=(), looks=False)
            successors[number] = set()
        tasks = {region.sites[n].task for n in members if region.sites[n].role is Role.MOVABLE}
        sites[head] = replace(
            sites[head], role=Role.MOVABLE, kind=SiteKind.KERNEL, accesses=_union(region, one), bytes=None,
            task=tasks.pop() if len(tasks) == 1 else "",
        )  # fmt: skip
        successors[head] = left | again
    return replace(region, sites=tuple(sites), successors=tuple(tuple(sorted(s)) for s in successors))


def inside(region: Region, replay: Replay) -> Region:
    """The region with nothing in it but a replay, which begins anew each time: no work is left from the last time."""
    members = frozenset(replay.sites)
    end = next((s.number for s in region.sites if s.role is Role.EXIT), 0)
    entered = {s for n, after in enumerate(region.successors) if n not in members for s in after if s in members}
    successors: list[tuple[int, ...]] = [()] * len(region.sites)
    for number in members:
        after = region.successors[number]
        kept = {s for s in after if s in members and (replay.rolled or s > number)}
        successors[number] = tuple(sorted(kept | ({end} if kept != set(after) or not after else set())))
    successors[0] = tuple(sorted(entered or {min(members)}))
    idle = (
        s if s.number in members or s.number in (0, end) else replace(s, role=Role.HOST, accesses=(), looks=False)
        for s in region.sites
    )
    return replace(region, sites=tuple(idle), successors=tuple(successors), open=False)


def is_alone(region: Region, replay: Replay) -> bool:
    """Whether all that runs before a replay and behind it is kept apart from it, whatever streams it uses.

    The host waits for the device there, or the default stream has work, which waits for all streams and they for it.
    """
    before: list[list[int]] = [[] for _ in region.sites]
    for number, after in enumerate(region.successors):
        for successor in after:
            before[successor].append(number)
    if replay.again or (not replay.rolled and _begins_again(region, replay)):
        return False
    return _meets_waits(region, replay, before) and _meets_waits(region, replay, region.successors)


def _meets_waits(region: Region, replay: Replay, near: Sequence[Sequence[int]]) -> bool:
    members = frozenset(replay.sites)
    work = [n for m in members for n in near[m] if n not in members]
    seen = set(work)
    while work:
        number = work.pop()
        site = region.sites[number]
        if site.role in (Role.LEGACY, Role.DEVICE_SYNC) and is_sure_barrier(site):
            continue
        if site.role is Role.ENTRY and region.function == "main":
            continue
        if not (site.role is Role.HOST or may_be_nothing(site)) or number in members:
            return False
        fresh = set(near[number]) - seen
        seen |= fresh
        work += fresh
    return True


def _begins_again(region: Region, replay: Replay) -> bool:
    """Whether a replay may directly follow itself."""
    return any(s <= n for n in replay.sites for s in region.successors[n] if s in replay.sites)


def _union(region: Region, replay: Replay) -> tuple[Access, ...]:
    modes: dict[tuple[Buffer, str], AccessMode] = {}
    for access in (a for n in replay.sites for a in region.sites[n].accesses):
        key = access.buffer, access.why
        modes[key] = modes.get(key, AccessMode.NONE) | access.mode
    return tuple(Access(buffer, mode, why) for (buffer, why), mode in modes.items())
