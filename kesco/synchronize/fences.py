"""Where unseen code may have left work on streams of its own, and the default stream must be made a barrier for it.

In: a region. Out: the movable sites before which that is needed. In the serial program each launch on the default
stream waits for all blocking streams by itself; a launch on one of kesco's streams does not. It is a stage of its own
because it has nothing to do with the dependences that are known.

1. At the entry of a function that unseen code may call, and behind a call of unseen code, a barrier is owed.
2. Work on the default stream, a synchronize of the device, and the barrier itself pay it. 3. A movable site that can be
reached while it is owed pays it. 4. One in a loop would pay it in each turn, and keep the turns' work apart: what is
owed since the entry alone is paid there.
"""

from __future__ import annotations

from kesco.ir.flow import Region, Role, may_be_nothing


def fences(region: Region) -> tuple[int, ...]:
    """The movable sites that need a barrier on the default stream before them, ascending; 0 where the entry has it."""
    owed: set[int] = set()
    found: set[int] = set()
    work = [0]
    seen: set[tuple[int, bool]] = set()
    while work:
        number = work.pop()
        site = region.sites[number]
        owing = number in owed
        if (number, owing) in seen:
            continue
        seen.add((number, owing))
        if site.role is Role.ENTRY:
            after = region.open
        elif site.role is Role.JOIN:
            after = site.foreign or owing
        elif site.role in (Role.LEGACY, Role.DEVICE_SYNC):
            after = owing and may_be_nothing(site)
        elif site.role is Role.MOVABLE:
            after = False
            if owing:
                found.add(number)
        else:
            after = owing
        for successor in region.successors[number]:
            if after:
                owed.add(successor)
            work.append(successor)
    return tuple(sorted({0 if _paid_at_entry(region, number) else number for number in found}))


def _paid_at_entry(region: Region, number: int) -> bool:
    """Whether the barrier of a site may stand at the entry instead, and not in each turn of a loop."""
    if any(site.foreign for site in region.sites):
        return False
    seen: set[int] = set()
    work = [*region.successors[number]]
    while work:
        one = work.pop()
        if one not in seen:
            seen.add(one)
            work += region.successors[one]
    return number in seen
