"""Which of two readings of a function is used: that of its text, or that of its IR.

In: the regions as `resolve` has them, and as `host_regions` has them. Out: one for each function. The reading of the
text knows turns of loops and parts of buffers by symbols; that of the IR knows templates, jumps, threads, objects,
containers and the handles of libraries. So the IR's is used where more launches and calls of libraries may run beside
others than by the text's, or fewer calls are not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kesco.frontend.library_table import setter_of
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.source import Span


def hopeful(program: ir.Program, regions: Sequence[Region], effects: Mapping[str, KernelEffects]) -> bool:
    """Whether it may be worth to ask the IR: there are kernels, and a function, or what a launch or code of objects
    does, is not known.
    """
    sites = [site for region in regions for site in region.sites]
    held = any((s.kind is SiteKind.KERNEL and not _moves(s)) or _is_library(s) for s in sites)
    unseen = {s.operation for s in sites if s.foreign}
    held = held or any(s.foreign and s.label.startswith("~") for s in sites)
    held = held or any(r.serial_because for r in regions)
    if effects and not held and unseen:
        calls = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Call))
        held = any(n.operation in unseen and (n.constructs or n.name.startswith("std::")) for n in calls)
    return bool(effects) and held


def is_moving_library(site: Site) -> bool:
    """Whether it is a call of one of CUDA's libraries that may run beside others."""
    return site.kind is SiteKind.LIBRARY and site.role is Role.MOVABLE


def _is_library(site: Site) -> bool:
    """Whether it is a call of one of CUDA's libraries, which the text's reading does not let move."""
    return bool(setter_of(site.label.partition("#")[0]))


def better(regions: tuple[Region, ...], seen: tuple[Region, ...]) -> tuple[Region, ...]:
    """For each function the region in which more launches may move, or calls of functions that launch.

    A call moves only where what it runs follows in the same reading.
    """
    by_place = {one.span: one for one in seen}
    chosen = {one.span: _either(one, by_place.get(one.span)) for one in regions}
    for one in regions:
        other = by_place.get(one.span)
        if other is None or other.calling is None or other.serial_because or _calls(chosen[one.span]):
            continue
        run = _run_by(other, by_place)
        found = [chosen[span] for span in run if span in chosen]
        if all(_is_no_less(by_place[span], chosen[span]) for span in run if span in chosen) and len(found) == len(run):
            chosen |= {span: by_place[span] for span in run}
    result = [_without_strangers(chosen[one.span], chosen) for one in regions]
    if any(one.open or any(site.foreign for site in one.sites) for one in result):
        result = [_open(one) for one in result]
    return tuple(result)


def _without_strangers(region: Region, chosen: Mapping[Span, Region]) -> Region:
    """The region, in which calls move only if what they run follows in the reading that is used of it."""
    if region.calling is None:
        return region
    moving = (s for s in region.calling.sites if s.kind is SiteKind.CALL and s.role is Role.MOVABLE)
    run = {one for s in moving for _, at in s.calls if at in chosen for one in _run_by(chosen[at], chosen)}
    follow = all(span in chosen and not chosen[span].not_followed for span in run)
    return region if follow else replace(region, calling=None)


def _open(region: Region) -> Region:
    """The region of a function before which unseen code may have left work running."""
    if region.function == "main" or region.open:
        return region
    return replace(region, open=True, calling=None if region.calling is None else replace(region.calling, open=True))


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
    return not other.serial_because and _moving(other) >= _moving(one)


def _calls(region: Region) -> bool:
    return region.calling is not None and not region.serial_because


def _either(one: Region, other: Region | None) -> Region:
    if other is None or other.serial_because or _moving(other) < 2:
        return one
    if _calls(one) and other.calling is None:
        return one
    return other if one.serial_because or _follows(other) > _follows(one) else one


def _follows(region: Region) -> tuple[int, int]:
    """How much of a function is followed: what may run beside others, and as little as possible that is not seen."""
    return _moving(region), -sum(site.foreign for site in region.sites)


def _moving(region: Region) -> int:
    return sum(site.kind in (SiteKind.KERNEL, SiteKind.LIBRARY) and _moves(site) for site in region.sites)


def _moves(site: Site) -> bool:
    """Whether a launch, or a call of a library, may run beside others."""
    return site.role is Role.MOVABLE and all(access.buffer != UNKNOWN for access in site.accesses)
