"""Which of two readings of a function is used: that of its text, or that of its IR.

In: the regions as `resolve` has them, and as `host_regions` has them. Out: one for each function. The reading of the
text knows parts of buffers, turns of loops and copies; that of the IR knows templates, jumps, threads and containers.
So the IR's is used where the text's leaves launches in place that the IR's does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region, Role, SiteKind


def hopeful(regions: Sequence[Region], effects: Mapping[str, KernelEffects]) -> bool:
    """Whether it may be worth to ask the IR: there are kernels, and a function is not followed, or a launch stays."""
    stays = any(r.serial_because for r in regions)
    held = any(s.kind is SiteKind.KERNEL and s.role is Role.LEGACY for r in regions for s in r.sites)
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
    return sum(site.kind is SiteKind.KERNEL and site.role is Role.MOVABLE for site in region.sites)
