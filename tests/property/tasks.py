"""Regions whose operations belong to tasks, for tests: marked by hand or at random; and what is ordered in a line."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from kesco.ir.flow import Region, Role
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import Wait


def marked(region: Region, tasks: dict[str, int]) -> Region:
    """The region with tasks by the letters of labels: ``{"ABC": 3, "12": 1}`` has two."""
    found = {}
    for letters, priority in tasks.items():
        found |= dict.fromkeys(letters, (f"task {letters}", priority))
    sites = (
        replace(s, task=found[s.label][0], priority=found[s.label][1]) if s.label in found else s for s in region.sites
    )
    return replace(region, sites=tuple(sites))


@st.composite
def with_tasks(draw: st.DrawFn, plain: st.SearchStrategy[Region], loose: bool = True) -> Region:
    """A random region with up to four tasks of random priorities; with `loose`, some work belongs to none."""
    region = draw(plain)
    priorities = draw(st.lists(st.integers(0, 9), min_size=2, max_size=4))
    choices = st.integers(-1 if loose else 0, len(priorities) - 1)
    sites = []
    for site in region.sites:
        number = draw(choices) if site.role is Role.MOVABLE else -1
        task = {"task": f"task {number}", "priority": priorities[number]} if number >= 0 else {}
        sites.append(replace(site, **task))
    return replace(region, sites=tuple(sites))


def order_of(region: Region, schedule: Schedule, waits: tuple[Wait, ...]) -> dict[int, int]:
    """For a region without branches: all that streams, waits and full barriers order before each site, as bits."""
    full = {Role.ENTRY, Role.EXIT, Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC}
    stream_of = schedule.as_dict()
    before: dict[int, int] = {}
    last: dict[int, int] = {}
    base = everything = 0
    for site in region.sites:
        if site.role in full:
            base = everything
        if site.number not in stream_of:
            continue
        mask = base
        sources = [w.source for w in waits if w.target == site.number and w.source in before]
        for source in (*sources, *(last[s] for s in (stream_of[site.number],) if s in last)):
            mask |= before[source] | 1 << source
        before[site.number] = mask
        last[stream_of[site.number]] = site.number
        everything |= 1 << site.number
    return before
