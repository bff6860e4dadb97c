"""Which of two readings of a function is used: that of its text, or that of its IR.

In: the regions as `resolve` has them, and as `host_regions` has them. Out: one for each function. The reading of the
text knows parts of buffers, turns of loops and copies; that of the IR knows templates, jumps, threads and containers.
So the IR's is used where more launches may run beside others than by the text's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kesco.ir.access import UNKNOWN
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region, Role, Site, SiteKind


def hopeful(regions: Sequence[Region], effects: Mapping[str, KernelEffects]) -> bool:
    """Whether it may be worth to ask the IR: there are kernels, and a function, or what a launch does, is not known."""
    stays = any(r.serial_because for r in regions)
    held = any(s.kind is SiteKind.KERNEL and not _moves(s) for r in regions for s in r.sites)
    return bool(effects) and (stays or held)


def better(regions: tuple[Region, ...], seen: tuple[Region, ...]) -> tuple[Region, ...]:
    """For each function the region in which more launches may move."""
    by_place = {one.span: one for one in seen}
    chosen = [_either(one, by_place.get(one.span)) for one in regions]
    if any(one.open or any(site.foreign for site in one.sites) for one in chosen):
        chosen = [replace(one, open=True) if one.function != "main" and not one.open else one for one in chosen]
    return tuple(chosen)


def _either(one: Region, other: Region | None) -> Region:
    if other is None or other.serial_because or _moving(other) < 2:
        return one
    return other if one.serial_because or _moving(other) > _moving(one) else one


def _moving(region: Region) -> int:
    return sum(site.kind is SiteKind.KERNEL and _moves(site) for site in region.sites)


def _moves(site: Site) -> bool:
    """Whether a launch may run beside others."""
    return site.role is Role.MOVABLE and all(access.buffer != UNKNOWN for access in site.accesses)
