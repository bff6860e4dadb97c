"""Managed memory that nobody writes any more: ``only_read(…)``.

In: a region, sites, and buffers. Out: whether from there on everything only reads them. Apart because it is the one
question on which advice to the driver depends: memory that is read only may have a copy on either side, and the host
then reads what it has while kernels read what they have.

1. On each path from the sites nothing may write a buffer, neither the device nor the host nor code that is not seen. 2.
A path ends where the buffer is freed, and where the program does. Where another function goes on, nobody knows: no.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kesco.ir.access import AccessMode, Buffer, may_alias
from kesco.ir.flow import Region, Role, SiteKind


def only_read(region: Region, starts: Iterable[int], buffers: Collection[Buffer]) -> bool:
    """Whether none of the buffers is written at these sites, or behind them."""
    return all(_only_read(region, starts, buffer) for buffer in buffers)


def _only_read(region: Region, starts: Iterable[int], buffer: Buffer) -> bool:
    seen: set[int] = set()
    work = [*starts]
    while work:
        number = work.pop()
        site = region.sites[number]
        if number in seen:
            continue
        seen.add(number)
        if site.kind is SiteKind.FREE and {a.buffer for a in site.accesses} == {buffer}:
            continue
        if any(AccessMode.WRITE in a.mode and may_alias(a.buffer, buffer) for a in site.accesses):
            return False
        if site.role is Role.EXIT and not site.failed and region.function != "main":
            return False
        work += region.successors[number]
    return True
