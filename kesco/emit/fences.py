"""What stands behind code that is not seen, which may have changed the device and have streams of its own.

In: a region, and the sites behind which streams are fetched in any case. Out: the sites in front of which they are
fetched again, whatever has been waited for (`fetched_again`), and the lines (`fence_lines`).
"""

from __future__ import annotations

from collections.abc import Collection

from kesco.ir.flow import Region, Role


def fetched_again(region: Region, others: Collection[int]) -> frozenset[int]:
    """The movable sites that unseen code may lead to, with none of these, and none of `others`, in between."""
    unseen = [site.number for site in region.sites if site.foreign and site.role is Role.JOIN]
    found: set[int] = set()
    work = [n for one in unseen for n in region.successors[one]]
    seen: set[int] = set()
    while work:
        number = work.pop()
        if number in seen:
            continue
        seen.add(number)
        if region.sites[number].role is Role.MOVABLE:
            found.add(number)
        elif number not in others:
            work += region.successors[number]
    return frozenset(found)


def fence_lines(name: str, call: str) -> tuple[str, str, str]:
    """The streams are fetched again by a call; and the default stream waits for blocking streams of others."""
    return (
        f"{name} = {call};  // kesco: code not seen here may have changed the device",
        f"cudaEventRecord({name}->tail[0], {name}->stream[0]);",
        f"cudaStreamWaitEvent(cudaStreamLegacy, {name}->tail[0], 0);"
        "  // kesco: streams of code not seen here come first",
    )
