"""Which of two readings of a function is used: that of its text, or that of its IR.

In: the regions as `resolve` has them, and as `host_regions` has them. Out: one for each function. The reading of the
text knows turns of loops; that of the IR knows templates, jumps, threads, objects, containers, lambdas and the handles
of libraries. So the IR's is used where more pairs of operations of the text may run beside each other than by the
text's, or fewer calls are not seen: pairs of the text, as one of them may count the trips of a loop that the other
follows as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kesco.frontend.library_table import setter_of
from kesco.ir import program as ir
from kesco.ir.access import BY_HOST_IN_CALL, HELD_IN_CALL, UNKNOWN, AccessMode, Buffer, may_alias
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region, Role, Site, SiteKind, is_sure_barrier, is_wait
from kesco.parts import Parts
from kesco.source import Span

MOST = 150
"""Sites of work that are compared with each other: what comes behind them in a text is much the same in both."""
_WORK = (SiteKind.KERNEL, SiteKind.LIBRARY, SiteKind.CALL)
_DEVICE = (SiteKind.KERNEL, SiteKind.LIBRARY, SiteKind.COPY, SiteKind.MEMSET, SiteKind.PREFETCH)


def hopeful(program: ir.Program, regions: Sequence[Region], effects: Mapping[str, KernelEffects]) -> bool:
    """Whether it may be worth to ask the IR: there is work, and the text's reading leaves something apart.

    So it does where a function, or what a launch or code of objects does, is not known, where a call is a barrier
    for work, where no two launches of a function may run beside each other, and where one stands in a range-based
    loop, the trips of which only the IR tells apart.
    """
    if not effects:
        return any(map(_is_library, (site for region in regions for site in region.sites)))
    loops = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Loop) and n.ranged)
    if any(isinstance(n, ir.Launch) for loop in loops for n in ir.walk(loop.body)):
        return True
    works = {r.span for r in regions if any(s.kind in _DEVICE for s in r.sites)}
    if any(r.serial_because or _is_held(r, works) or _is_chain(r) for r in regions):
        return True
    sites = [site for region in regions for site in region.sites if site.foreign]
    if any(site.label.startswith("~") for site in sites):
        return True
    unseen = {site.operation for site in sites}
    calls = (n for f in program.functions for n in ir.walk(f.body) if unseen and isinstance(n, ir.Call))
    return any(n.operation in unseen and (n.constructs or n.name.startswith("std::")) for n in calls)


def _is_held(region: Region, works: Collection[Span]) -> bool:
    """Whether a site keeps others apart: a call does if there is work in it, or in front of it and behind it."""

    def is_work(site: Site) -> bool:
        calls = site.kind is SiteKind.CALL and (not site.calls or any(at in works for _, at in site.calls))
        return calls or site.kind in _DEVICE

    def leads_to_work(steps: Sequence[Sequence[int]], site: Site) -> bool:
        return any(is_work(region.sites[n]) for n in _reached(steps, site.number))

    if any((s.kind is SiteKind.KERNEL and not _moves(s)) or _is_library(s) for s in region.sites):
        return True
    calls = [s for s in region.sites if s.kind is SiteKind.CALL and s.role is Role.JOIN]
    before = _turned(region)
    return any(is_work(s) or (leads_to_work(region.successors, s) and leads_to_work(before, s)) for s in calls)


def _turned(region: Region) -> list[list[int]]:
    """The sites that come right before each."""
    before: list[list[int]] = [[] for _ in region.sites]
    for number, after in enumerate(region.successors):
        for one in after:
            before[one].append(number)
    return before


def _reached(steps: Sequence[Sequence[int]], start: int) -> set[int]:
    """Where control may be after a site, or may have been before it."""
    found, todo = set[int](), [start]
    while todo:
        new = set(steps[todo.pop()]) - found
        found |= new
        todo += new
    return found


def _is_chain(region: Region) -> bool:
    return _moving(region) > 1 and not _free(region)


def is_moving_library(site: Site) -> bool:
    """Whether it is a call of one of CUDA's libraries that may run beside others."""
    return site.kind is SiteKind.LIBRARY and site.role is Role.MOVABLE


def _is_library(site: Site) -> bool:
    """Whether it is a call of one of CUDA's libraries, which the text's reading does not let move."""
    return bool(setter_of(site.label.partition("#")[0]))


def better(regions: tuple[Region, ...], seen: tuple[Region, ...]) -> tuple[tuple[Region, ...], frozenset[int]]:
    """For each function the region in which more launches may move, or calls of functions that launch.

    A call moves only where what it runs follows in the same reading. Also told is which of them are the IR's.
    """
    by_place = {one.span: one for one in seen}
    whole = len({one.serial_because for one in regions}) == 1  # what keeps all of the text from being read
    chosen = {one.span: _either(one, by_place.get(one.span), whole=whole) for one in regions}
    for one in regions:  # what is scheduled as one is of one reading
        together = {span for _, span in one.linked.members} if one.linked and chosen[one.span] is one else set()
        chosen |= {other.span: other for other in regions if other.span in together}
    for one in regions:
        other = by_place.get(one.span)
        if other is None or other.calling is None or other.serial_because:
            continue
        if _calls(chosen[one.span]) and chosen[one.span] is not other:
            continue
        run = _run_by(other, by_place)
        found = [chosen[span] for span in run if span in chosen]
        if all(_is_no_less(by_place[span], chosen[span]) for span in run if span in chosen) and len(found) == len(run):
            chosen |= {span: by_place[span] for span in run}
    result = [_without_strangers(chosen[one.span], chosen) for one in regions]
    some = any(one.open or any(site.foreign for site in one.sites) for one in _judged(result, by_place))
    trusting = any(one.trusting for one in seen)  # then the text's reading knows of callers that the IR's leaves out
    of_text = [trusting and chosen[one.span] is one for one in regions]
    by_ir = frozenset(n for n, one in enumerate(regions) if chosen[one.span] is by_place.get(one.span))
    return tuple(_opened(one, some or its) for one, its in zip(result, of_text, strict=True)), by_ir


def _without_strangers(region: Region, chosen: Mapping[Span, Region]) -> Region:
    """The region, in which calls move only if what they run follows in the reading that is used of it."""
    if region.calling is None:
        return region
    calls = (s for s in region.calling.sites if s.kind is SiteKind.CALL)
    moving = (s for s in calls if s.role is Role.MOVABLE or (s.holds and not s.stuck))
    run = {one for s in moving for _, at in s.calls if at in chosen for one in _run_by(chosen[at], chosen)}
    follow = all(span in chosen and not chosen[span].not_followed for span in run)
    return region if follow else replace(region, calling=None)


def _judged(regions: Sequence[Region], by_place: Mapping[Span, Region]) -> Iterator[Region]:
    """The regions that say whether unseen code may call a function, or have left work: the IR knows who calls it.

    A function that the IR's reading never came to has nothing to do with the device, or nobody calls it.
    """
    followed = any(not other.serial_because for other in by_place.values())
    for one in regions:
        other = by_place.get(one.span)
        if other is not None and not other.serial_because:
            yield other
        elif other is not None or not followed:
            yield one


def _opened(region: Region, some: bool) -> Region:
    """The region of a function before which unseen code may have left work running, or (not `some`) none of any has."""
    if region.function == "main" or region.open is some:
        return region
    return replace(region, open=some, calling=None if region.calling is None else replace(region.calling, open=some))


def _run_by(region: Region, by_place: Mapping[Span, Region]) -> set[Span]:
    """A function, and all that its calls which may move run."""
    found, work = {region.span}, [region]
    while work:
        for _, span in (call for site in work.pop().sites for call in site.calls):
            if span not in found:
                found.add(span)
                work += [by_place[span]] if span in by_place else []
    return found


def _is_no_less(other: Region, one: Region) -> bool:
    """Whether a call may count on this reading of what it runs: to follow, nothing inside needs to overlap."""
    if other.serial_because and other.not_followed:
        return False
    inside = not one.serial_because and bool(_free(one))
    return not inside or _moving(other) >= _moving(one)


def _calls(region: Region) -> bool:
    return region.calling is not None and not region.serial_because


def _is_read(region: Region) -> bool:
    """Whether what keeps a region serial is no reason for calls of it not to move: it was followed."""
    return region.serial_because != region.not_followed and any(s.kind in _WORK for s in region.sites)


def _either(one: Region, other: Region | None, *, whole: bool) -> Region:
    if other is None:
        return one
    if other.serial_because:
        return (
            replace(one, serial_because=other.serial_because)
            if whole and one.serial_because and _is_read(other)
            else one
        )
    if len(_told(other)) > len(_told(one)) and _gain(other)[:2] >= _gain(one)[:2]:
        return other
    if _gain(other) < (0, 2) and not (one.serial_because and _is_known(other)):
        return one
    if _calls(one) and other.calling is None:
        return one
    as_one = one.linked is not None  # operations of several functions weigh more than calls of these
    ours, theirs = ((_gain(x, calls=not as_one), _gain(x)) for x in (one, other))
    return other if one.serial_because or theirs > ours else one


def _is_known(region: Region) -> bool:
    """Whether it is known what all of its work touches: then what is said of the region is the reason."""
    touched = (a.buffer for s in region.sites if s.role is Role.MOVABLE for a in s.accesses)
    return UNKNOWN not in touched


def _told(region: Region) -> set[str]:
    """The loops in which it is known what all touch, so that their turns may be told from each other."""
    sites = (region.calling or region).sites
    spans = {s.loop: s.span for s in sites if s.mark is not None}
    vague = [s for s in sites if s.foreign or s.outside or any(a.buffer == UNKNOWN for a in s.accesses)]
    inside = {key for key, span in spans.items() for s in vague if span.start <= s.span.start < span.end}
    return spans.keys() - inside


def _gain(region: Region, *, calls: bool = True) -> tuple[int, int, int, int]:
    """What may run beside each other, what beside something, what would if no wait were needed, and what is seen."""
    own = _with_copies(region.calling) if calls and region.calling is not None else None
    forms = [one for one in (region, own, region.linked) if one is not None]
    unseen = sum(site.foreign for site in region.sites)
    free, apart = (max(len(_free(one, waits=waits)) for one in forms) for waits in (True, False))
    return free, _moving(region), apart, -unseen


def _with_copies(region: Region) -> Region:
    """The region in which calls are on streams with the copies in them that keep the host."""
    aside = (HELD_IN_CALL, BY_HOST_IN_CALL)
    sites = (
        replace(s, role=Role.MOVABLE, accesses=tuple(a for a in s.accesses if a.why not in aside))
        if s.holds and not (s.stuck or s.looks or s.outside)
        else s
        for s in region.sites
    )
    return replace(region, sites=tuple(sites))


def _free(region: Region, *, waits: bool = True) -> set[tuple[int, int]]:
    """The pairs of operations of the text that may run beside each other, the way the sites stand.

    With `waits` not beside what the host has waited for: it is not known yet which waits go.
    """
    parts, found = Parts(region), set[tuple[int, int]]()
    work: list[tuple[Site, dict[Buffer, AccessMode]]] = []
    for site in region.sites[: MOST * 8]:
        waiting = is_wait(site)
        if is_sure_barrier(site) and site.role not in (Role.ENTRY, Role.EXIT) and (waits or not waiting):
            work = []
        elif site.kind in _WORK and _moves(site):
            touched: dict[Buffer, AccessMode] = {}
            for access in site.accesses:
                for one in parts.touched(access):
                    touched[one] = touched.get(one, AccessMode.NONE) | access.mode
            found |= {_pair(before, site) for before, other in work if not _meet(other, touched)}
            work = [*work, (site, touched)][-MOST:]
    return found


def _pair(one: Site, other: Site) -> tuple[int, int]:
    return min(one.operation, other.operation), max(one.operation, other.operation)


def _meet(one: Mapping[Buffer, AccessMode], other: Mapping[Buffer, AccessMode]) -> bool:
    return any(
        AccessMode.WRITE in mine | its and may_alias(a, b) for a, mine in one.items() for b, its in other.items()
    )


def _moving(region: Region) -> int:
    return sum(site.kind in (SiteKind.KERNEL, SiteKind.LIBRARY) and _moves(site) for site in region.sites)


def _moves(site: Site) -> bool:
    """Whether a launch, or a call of a library, may run beside others."""
    return site.role is Role.MOVABLE and all(access.buffer != UNKNOWN for access in site.accesses)
