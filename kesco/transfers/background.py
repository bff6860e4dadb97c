"""Copies for which the host does not wait at once: ``fetches_of(…)`` to it, and ``sends_of(…)`` to the device.

In: a function as it is planned, or what was made of it. Out: the copies that `fetching` and `sending` are asked about,
and what they say. Apart from these since it is about the plan, and they are about the text.
"""

from __future__ import annotations

from collections.abc import Collection

from kesco.ir.compilation import FunctionResult
from kesco.ir.flow import Held, Region, Role, SiteKind, sees_itself
from kesco.ir.program import Function, Program
from kesco.ir.transfers import LEAST, LEAST_FETCHED, Fetches, Sends
from kesco.transfers.copies import into_pageable, is_flat
from kesco.transfers.fetching import fetches
from kesco.transfers.sending import sends


def sends_of(
    program: Program, functions: Collection[Function], result: FunctionResult, pinned: frozenset[int]
) -> Sends | None:
    """The copies of a function that are read in the background; none for which the host always waits."""
    sites = [s for s in result.region.sites if s.role is Role.MOVABLE and is_flat(s)]
    stay = {
        (s.operation, s.iterations)
        for s in result.region.sites
        if s.role is Role.DEVICE_SYNC and s.number not in result.plan.needless
    }
    sources = [s for s in sites if s.held is Held.SOURCE]
    large = [s for s in sources if s.bytes is None or s.bytes >= LEAST or s.operation in pinned]
    copies = {s.operation for s in large if (s.operation, s.iterations) not in stay}
    waits = {s.operation for s in sites if s.held is Held.ALL}
    later = {s.operation for s in result.region.sites if s.held is Held.LATER or s.later}
    fetches = result.fetches
    stops = (*fetches.before, *fetches.ends) if fetches is not None else ()
    return sends(program, functions, copies, waits, later, stops, _launching(result.region))


def fetches_of(
    program: Program, functions: Collection[Function], region: Region, gone: Collection[int], original: Region,
    pinned: frozenset[int], calls: Collection[int],
) -> Fetches | None:  # fmt: skip
    """The copies to the host that are waited for later; none for which the host always waits for the device.

    With them the copies in `calls`. Nor small ones into memory that is certainly pageable, as the `original` region
    shows, and stays so: for them the host waits anyway.
    """
    free = {region.sites[number].operation for number in gone}
    sites = [s for s in region.sites if s.role is Role.MOVABLE and s.held is not None and is_flat(s)]
    results = [s for s in sites if s.held is Held.ALL]
    large = [s for s in results if s.bytes is None or s.bytes >= LEAST_FETCHED or s.operation in pinned]
    copies = {s.operation for s in large if s.operation in free}
    small = {s.operation for s in large if s.bytes is not None and s.bytes < LEAST} - pinned
    if b"cudaHostRegister" in program.text:
        small = set()
    copies -= small & into_pageable(original)
    moving = {s.operation for s in region.sites if s.role is Role.MOVABLE and s.operation in calls} & free
    moving -= {s.operation for s in region.sites if sees_itself(s)}
    ours = {s.operation for s in sites} | moving
    every = copies | moving
    return fetches(program, functions, every, ours, small, moving, _launching(region))


def _launching(region: Region) -> set[int]:
    """The calls that give the device work."""
    return {s.operation for s in region.sites if s.kind is SiteKind.CALL and s.role is Role.MOVABLE}
